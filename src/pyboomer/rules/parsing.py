"""Parsing reads a rule from the text that people type or that was printed, and writes one so that nothing is lost.

The grammar is that of printed rules, and of a little more that people type:

    rule      = "IF" condition {"AND" condition} "THEN" head  |  "DEFAULT" head
    condition = name compare limit  |  limit compare name [compare limit]  |  name ("==" | "!=") category
              | "none of:" name {"," name}
    compare   = "<=" | ">" | "<" | ">="
    limit     = number  |  level
    head      = label score {"," label score}  |  "nothing"

Keywords have space around them; other space does not matter. They are in capitals, so that a name may well contain
"and"; only if the first of them is not, all may be in any case. A name, label, level or category is any text that can
be told from what is around it, or is quoted: ``"salt, pepper"``; in quotes, a backslash takes the character behind it
as it is. What starts with a quote must be quoted, and so must what contains a keyword or (in names of features) an
operator or (in those of labels, and behind "none of:") a comma. A score may touch its label if it has a sign.

Rules know `<=` and `>` alone. ``x < 3`` is read as ``x <= 2.9999999999999996``, the largest number below 3, and
``x >= 3`` as ``x > 2.9999999999999996``: of all numbers of double precision, they say the same. ``none of: a, b`` is
read as ``a <= 0`` and ``b <= 0``.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from math import inf, isfinite, nextafter
from typing import NamedTuple

from pyboomer.rules.rule import Condition, Rule
from pyboomer.rules.schema import Category
from pyboomer.rules.text import ABSENT, NO_DIGITS, UNPRINTABLE, quote

KEYWORDS = ("IF", "AND", "THEN", "DEFAULT")
FIRST_WORD = re.compile(r"\s*(IF|DEFAULT)(?!\S)", re.IGNORECASE)
COMMA = re.compile(",")
OPERATOR = re.compile("<=|>=|==|!=|<|>")
NONE_OF = re.compile(rf"\s*+{ABSENT}", re.IGNORECASE)
LEFT_OUT = re.compile(r"\(\+[0-9]+ more\)$")
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Quantifiers are possessive, and a score starts where space starts: no text takes longer than its length allows.
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
NUMBER = re.compile(r"(?:[+-]\s*+)?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
SCORE = re.compile(rf"(?:(?<!\s)\s++|(?=[+-]))({NUMBER.pattern})\s*+$")
PLAIN_NAME = re.compile(r"[\w.]+(?: [\w.]+)*")  # what is written without quotes
SHOWN = 60  # characters of a rule on either side of a fault


class Keywords(NamedTuple):
    """The words that part a rule, and what may be quoted behind them."""

    AND: re.Pattern[str]
    THEN: re.Pattern[str]
    quoted_name: re.Pattern[str]


def _compile_keywords(flags: int) -> Keywords:
    AND, THEN = (re.compile(rf"(?<!\S){word}(?!\S)", flags) for word in KEYWORDS[1:3])
    before = rf"(?:(?<!\S)(?:{'|'.join(KEYWORDS)})\s|[,<>=!]|(?i:{ABSENT}))\s*+"
    return Keywords(AND, THEN, re.compile(rf"({before})({QUOTED.pattern})", re.DOTALL | flags))


IN_CAPITALS, IN_ANY_CASE = _compile_keywords(0), _compile_keywords(re.IGNORECASE)


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
        return [Piece(self.text, self.mask, a, b) for (_, a), (b, _) in pairwise(ends)]

    def fault(self, message: str) -> ValueError:
        """The error to raise, with the place shown."""
        place = len(self.text) - len(self.text[self.start :].lstrip())
        first, last = max(0, place - SHOWN), place + SHOWN
        line = UNPRINTABLE.sub(" ", re.sub(r"\s", " ", self.text[first:last]))
        before, after = "..." * (first > 0), "..." * (last < len(self.text))
        return ValueError(
            f"{message}, at character {place + 1} of\n{before}{line}{after}\n{' ' * (len(before) + place - first)}^"
        )

    def read_name(self, what: str) -> str:
        name = str(self)
        if not name.startswith('"'):
            if not name:
                raise self.fault(f"a {what} is missing")
            return name
        if not QUOTED.fullmatch(name):
            raise self.fault(f"the quotes of a {what} must enclose all of it")
        return re.sub(r"\\(.)", r"\1", name[1:-1], flags=re.DOTALL)

    def is_number(self) -> bool:
        return NUMBER.fullmatch(str(self)) is not None

    def read_number(self) -> float:
        if not self.is_number():
            raise self.fault(f"expected a number, got {str(self)!r:.60}" if str(self) else "a number is missing")
        number = float("".join(str(self).split()))
        if not isfinite(number):
            raise self.fault("the number is too large")
        return number

    def read_limit(self, strict: bool) -> Category:
        """A number, the largest below it, or the level of an ordinal feature."""
        if self.is_number() or not str(self):
            number = nextafter(self.read_number(), -inf) if strict else self.read_number()
            if not isfinite(number):
                raise self.fault("there is no number below")
            return number
        if strict:
            raise self.fault("levels are compared by <= and > alone")
        return self.read_name("level")

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
    first = FIRST_WORD.match(text)
    if first is None:
        raise Piece(text, text, 0, len(text)).fault("a rule starts with IF or DEFAULT")
    keywords = IN_CAPITALS if first[1].isupper() else IN_ANY_CASE
    mask = keywords.quoted_name.sub(lambda m: m[1] + "\0" * len(m[2]), text)
    rest = Piece(text, mask, first.end(), len(text))
    numbers: dict[str, int] = {}
    body: list[Condition] = []
    if first[1].upper() == "IF":
        then = keywords.THEN.search(mask, rest.start)
        if then is None:
            hint = " (in capitals, as IF is)" if IN_ANY_CASE.THEN.search(mask, rest.start) else ""
            raise rest._replace(start=rest.end).fault(f"THEN is missing{hint}")
        for piece in rest._replace(end=then.start()).cut(keywords.AND):
            if LEFT_OUT.search(str(piece)):
                raise piece.fault("some conditions were left out here: write the rule by to_text(None, None)")
            none_of = NONE_OF.match(piece.mask, piece.start, piece.end)
            read = _read_condition(piece) if none_of is None else _read_absent(piece._replace(start=none_of.end()))
            for name, operator, value in read:
                digits = 0 if none_of is None else NO_DIGITS
                body.append(Condition(numbers.setdefault(name, -1 - len(numbers)), operator, value, name, digits))
        rest = rest._replace(start=then.end())
    head = {} if str(rest) == "nothing" else _read_head(rest)
    return Rule(tuple(body), (-1,) * len(head), tuple(head.values()), tuple(head))


def _read_condition(piece: Piece) -> Iterator[tuple[str, str, Category]]:
    """The name, operator and value of each test that a condition makes."""
    sides, operators = piece.cut(OPERATOR), OPERATOR.findall(piece.mask, piece.start, piece.end)
    match operators:
        case ["==" | "!=" as operator, *_]:  # a category may look like a condition: <=50K
            yield sides[0].read_name("feature"), operator, sides[1]._replace(end=piece.end).read_category()
        case [operator]:
            mirrored = sides[0].is_number() and (operator == "<" or not sides[1].is_number())
            name, limit = reversed(sides) if mirrored else sides
            yield _read_test(name, MIRRORED[operator] if mirrored else operator, limit)
        case [first, second] if first in MIRRORED and second in MIRRORED and first[0] == second[0]:
            yield _read_test(sides[1], MIRRORED[first], sides[0])
            yield _read_test(sides[1], second, sides[2])
        case []:
            raise piece.fault("expected a condition" if str(piece) else "a condition is missing")
        case _:
            raise piece.fault(
                "a condition reads x <= 1, x > 1, 1 < x <= 2, x == a or x != a (quote a name that contains operators)"
            )


def _read_absent(whole: Piece) -> Iterator[tuple[str, str, Category]]:
    """A test for each of the features that must be absent."""
    for piece in whole.cut(COMMA):
        yield piece.read_name("feature"), "<=", 0.0


def _read_test(name: Piece, operator: str, limit: Piece) -> tuple[str, str, Category]:
    """A test of a numeric or ordinal feature, by one of the operators that rules have."""
    value = limit.read_limit(strict=operator in ("<", ">="))
    return name.read_name("feature"), {"<": "<=", ">=": ">"}.get(operator, operator), value


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
        if score is None and LEFT_OUT.search(str(piece)):
            raise piece.fault("some labels were left out here: write the rule by to_text(None, None)")
        if score is None:
            raise piece.fault("a score is missing behind the label" if str(piece) else "a label is missing")
        label = piece._replace(end=score.start()).read_name("label")
        if label in head:
            raise piece.fault(f"label {label!r} has a score already")
        head[label] = piece._replace(start=score.start(1)).read_number()
    return head


def write_rule(rule: Rule) -> str:
    """Write a rule so that `Rule.parse` reads exactly the same: all conditions, numbers in full, names quoted.

    Examples
    --------
    >>> from pyboomer import Rule
    >>> from pyboomer.rules.parsing import write_rule
    >>> rule = Rule.parse('IF tempo <= 100.123456789 THEN "calm, sad" +0.5')
    >>> write_rule(rule)
    'IF tempo <= 100.123456789 THEN "calm, sad" +0.5'
    >>> Rule.parse(write_rule(rule)) == rule
    True
    """
    conditions = [f"{_quote(c.name)} {c.operator} {_write_value(c)}" for c in rule.body]
    scores = (f"{_quote(label)} {float(score):+}" for label, score in rule.head.items())
    head = ", ".join(scores) or "nothing"
    return f"IF {' AND '.join(conditions)} THEN {head}" if conditions else f"DEFAULT {head}"


def _quote(name: str) -> str:
    if PLAIN_NAME.fullmatch(name) and not set(KEYWORDS) & set(name.split()) and not NUMBER.fullmatch(name):
        return name
    return quote(name)


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
