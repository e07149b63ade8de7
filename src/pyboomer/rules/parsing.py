"""Parsing reads a rule from the text that people type or that was printed, and writes one so that nothing is lost.

The grammar is that of printed rules:

    rule      = "IF" condition {"AND" condition} "THEN" head  |  "DEFAULT" head
    condition = name ("<=" | ">") limit  |  limit "<" name ["<=" limit]  |  name ("==" | "!=") category
    limit     = number  |  level
    head      = label score {"," label score}  |  "nothing"

Keywords are in capitals, with space around them; other space does not matter. A name, label, level or category is any
text that can be told from what is around it, or is quoted: ``"salt, pepper"``; in quotes, a backslash takes the
character behind it as it is. What starts with a quote must be quoted, and so must what contains a keyword or (in names
of features) an operator or (in those of labels) a comma. A score may touch its label if it has a sign.
"""

import re
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from math import isfinite
from typing import NamedTuple

from pyboomer.rules.rule import Condition, Rule
from pyboomer.rules.schema import Category

KEYWORDS = ("IF", "AND", "THEN", "DEFAULT")
FIRST_WORD = re.compile(r"\s*(IF|DEFAULT)(?!\S)")
AND, THEN = (re.compile(rf"(?<!\S){word}(?!\S)") for word in KEYWORDS[1:3])
COMMA = re.compile(",")
OPERATOR = re.compile("<=|>=|==|!=|<|>")
QUOTED = r'"(?:[^"\\]|\\.)*"'
QUOTED_NAME = re.compile(rf"((?:(?<!\S)(?:{'|'.join(KEYWORDS)})\s|[,<>=!])\s*)({QUOTED})", re.DOTALL)
NUMBER = r"(?:[+-]\s*)?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
SCORE = re.compile(rf"(?:\s+|(?=[+-]))({NUMBER})\s*$")
PLAIN_NAME = re.compile(r"[\w.]+(?: [\w.]+)*")  # what is written without quotes


class Piece(NamedTuple):
    """A part of a rule's text that knows where it stands; in `mask`, all that is quoted is blotted out."""

    text: str
    mask: str
    start: int
    end: int

    def __str__(self) -> str:
        return self.text[self.start : self.end].strip()

    def cut(self, separator: re.Pattern[str]) -> list["Piece"]:
        """The pieces between separators."""
        cuts = [m.span() for m in separator.finditer(self.mask, self.start, self.end)]
        ends = [(self.start, self.start), *cuts, (self.end, self.end)]
        return [self._replace(start=a, end=b) for (_, a), (b, _) in pairwise(ends)]

    def fault(self, message: str) -> ValueError:
        """The error to raise, with the place shown."""
        place = len(self.text) - len(self.text[self.start :].lstrip())
        line = re.sub(r"\s", " ", self.text)
        return ValueError(f"{message}, at character {place + 1} of\n{line}\n{' ' * place}^")

    def read_name(self, what: str) -> str:
        name = str(self)
        if re.fullmatch(QUOTED, name, re.DOTALL):
            return re.sub(r"\\(.)", r"\1", name[1:-1], flags=re.DOTALL)
        if name.startswith('"'):
            raise self.fault(f"the quotes of a {what} must enclose all of it")
        if not name:
            raise self.fault(f"a {what} is missing")
        return name

    def is_number(self) -> bool:
        return re.fullmatch(NUMBER, str(self)) is not None

    def read_number(self) -> float:
        if not self.is_number():
            raise self.fault(f"expected a number, got {str(self)!r}" if str(self) else "a number is missing")
        number = float("".join(str(self).split()))
        if not isfinite(number):
            raise self.fault("the number is too large")
        return number

    def read_limit(self) -> Category:
        """A number, or the level of an ordinal feature."""
        return self.read_number() if self.is_number() or not str(self) else self.read_name("level")

    def read_category(self) -> Category:
        name = self.read_name("category")
        return _find_number(name) if name == str(self) else name


def parse_rule(text: str) -> Rule:
    """Read a rule as it is printed or typed; see the grammar above.

    Which features and labels of which model the names mean is not known before `insert_rule`. Until then, labels have
    the index -1, features -1, -2, ... by name, and coverage and gain are 0.
    """
    if not isinstance(text, str):
        raise TypeError(f"a rule is read from text, got {type(text).__name__}")
    mask = QUOTED_NAME.sub(lambda m: m[1] + "\0" * len(m[2]), text)
    first = FIRST_WORD.match(mask)
    if first is None:
        raise Piece(text, mask, 0, len(text)).fault("a rule starts with IF or DEFAULT")
    rest = Piece(text, mask, first.end(), len(text))
    body: list[Condition] = []
    if first[1] == "IF":
        then = THEN.search(mask, rest.start)
        if then is None:
            raise rest._replace(start=rest.end).fault("THEN is missing")
        for piece in rest._replace(end=then.start()).cut(AND):
            body += _read_condition(piece)
        rest = rest._replace(start=then.end())
    numbers = {name: -1 - i for i, name in enumerate(dict.fromkeys(condition.name for condition in body))}
    head = {} if str(rest) == "nothing" else _read_head(rest)
    return Rule(
        tuple(replace(condition, feature=numbers[condition.name]) for condition in body),
        (-1,) * len(head),
        tuple(head.values()),
        tuple(head),
    )


def _read_condition(piece: Piece) -> list[Condition]:
    sides, operators = piece.cut(OPERATOR), OPERATOR.findall(piece.mask, piece.start, piece.end)
    match operators:
        case ["<=" | ">" as operator]:
            return [Condition(-1, operator, sides[1].read_limit(), sides[0].read_name("feature"))]
        case ["<", "<="] | ["<"] if len(operators) == 2 or sides[0].is_number():
            name = sides[1].read_name("feature")
            limits = zip((">", "<="), sides[::2], strict=False)
            return [Condition(-1, operator, side.read_limit(), name) for operator, side in limits]
        case ["==" | "!=" as operator, *_]:  # a category may look like a condition: <=50K
            category = sides[1]._replace(end=piece.end).read_category()
            return [Condition(-1, operator, category, sides[0].read_name("feature"))]
        case []:
            raise piece.fault("expected a condition" if str(piece) else "a condition is missing")
    raise piece.fault(
        "a condition reads x <= 1, x > 1, 1 < x <= 2, x == a or x != a (quote a name that contains operators)"
    )


def _find_number(category: str) -> Category:
    """The number that a category is, if it is printed in the same way: 007 is a name."""
    for kind in (int, float):
        with suppress(ValueError, OverflowError):
            if str(kind(category)) == category and isfinite(kind(category)):
                return kind(category)
    return category


def _read_head(whole: Piece) -> dict[str, float]:
    head: dict[str, float] = {}
    for piece in whole.cut(COMMA):
        score = SCORE.search(piece.mask, piece.start, piece.end)
        if score is None and re.search(r"\(\+[0-9]+ more\)$", str(piece)):
            raise piece.fault("some labels were left out here: write the rule by to_text(max_labels=None)")
        if score is None:
            raise piece.fault("a score is missing behind the label" if str(piece) else "a label is missing")
        label = piece._replace(end=score.start()).read_name("label")
        if label in head:
            raise piece.fault(f"label {label!r} has a score already")
        head[label] = piece._replace(start=score.start(1)).read_number()
    return head


def write_rule(rule: Rule) -> str:
    """Write a rule so that `Rule.parse` reads just the same: quoted where need be, all conditions, numbers in full."""
    conditions = [f"{_quote(c.name)} {c.operator} {_write_value(c)}" for c in rule.body]
    scores = (f"{_quote(label)} {float(score):+}" for label, score in rule.head.items())
    head = ", ".join(scores) or "nothing"
    return f"IF {' AND '.join(conditions)} THEN {head}" if conditions else f"DEFAULT {head}"


def _quote(name: str) -> str:
    if PLAIN_NAME.fullmatch(name) and not set(KEYWORDS) & set(name.split()):
        return name
    return '"' + re.sub(r'(["\\])', r"\\\1", name) + '"'


def _write_value(condition: Condition) -> str:
    if condition.levels:
        return _write_category(condition.value_text())
    if condition.is_nominal or isinstance(condition.value, str):
        return _write_category(condition.value)
    return repr(float(condition.value))


def _write_category(category: Category) -> str:
    if not isinstance(category, str):
        return str(category)
    return _quote(category) if isinstance(_find_number(category), str) else f'"{category}"'
