"""A table: the rows of an ARFF file, one column per declared attribute.

The format is that of Weka, https://waikato.github.io/weka-wiki/formats_and_processing/arff_stable/. Existing readers
do not serve multi-label files: `scipy.io.arff` knows no sparse rows; `liac-arff`, without a release since 2020, leaves
it to the caller what an absent nominal value of a sparse row is, and does not say which attribute a bad value belongs
to. Hence this small one.

Rows are read twice over, in spirit: plain ones quickly, by functions that never complain, and every row that these
doubt by a careful reader that names the culprit. So only the careful reader holds error messages.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy import sparse

from pyboomer.datasets.dataset import NUMBER, Matrix, category_numbers
from pyboomer.rules.text import shorten

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_WHOLE_QUOTED = re.compile(_QUOTED, re.DOTALL)
_QUOTE = re.compile("""['"]""")
_KEYWORD = re.compile(r"@(\w+)\s*(.*)", re.DOTALL)
_NAME = re.compile(rf"""({_QUOTED}|(?!['"])[^\s{{]+)\s*(.*)""", re.DOTALL)
_COMMA_VALUE = re.compile(rf"""\s*({_QUOTED}|(?!['"])[^,]*)\s*(,|$)""", re.DOTALL)
_SPACE_VALUE = re.compile(rf"""({_QUOTED}|(?!['"])\S+)(\s+|$)""", re.DOTALL)
_PAIR = re.compile(rf"""\s*([^\s,]+)\s+({_QUOTED}|(?!['"])[^,]+)\s*(,|$)""", re.DOTALL)
_COMMENT = re.compile(r"(?<=\s)%")  # at the beginning of a word only: unquoted names such as `100%` exist
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED_QUOTE = re.compile(r"""\\(['"])""")

_PLAIN_DENSE = re.compile(r"[0-9eE+\-.,\s]+", re.ASCII)
_PLAIN_SPARSE = re.compile(r"\{(?:\s*[0-9]+\s+[0-9eE+\-.]+\s*,)*\s*[0-9]+\s+[0-9eE+\-.]+\s*\}", re.ASCII)


class ArffError(ValueError):
    """A file that cannot be read; the message names the file, the line and the cause."""

    def __init__(self, message: str) -> None:
        super().__init__(shorten(message))


@dataclass(frozen=True)
class Attribute:
    """A declared column: numeric where `categories` is None, nominal otherwise."""

    name: str
    line: int
    categories: tuple[str, ...] | None = None

    @cached_property
    def numbers(self) -> np.ndarray | None:
        """The numbers that the categories stand for, None for a numeric attribute or categories that are words."""
        return None if self.categories is None else category_numbers(self.categories)

    @cached_property
    def written(self) -> dict[str, float]:
        """What each category is read as: its number where all are numbers, its position otherwise."""
        names = self.categories or ()
        return dict(zip(names, range(len(names)) if self.numbers is None else self.numbers.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Table:
    """The content of an ARFF file.

    `cells` has one row per example and one column per attribute. It is sparse if any row of the file is. A nominal
    value is the position of its category in the declaration, so that 0 is what an absent sparse entry means: the
    first category. Missing values are NaN. `lines` has the line number of each row.
    """

    file: str
    relation: str
    attributes: tuple[Attribute, ...]
    cells: Matrix
    lines: np.ndarray


def read_arff(path: str | Path) -> Table:
    """Read an ARFF file with numeric and nominal attributes, with dense or sparse rows or both.

    Parameters
    ----------
    path : str or Path
        The file, in UTF-8 or else Latin-1.

    Returns
    -------
    Table
        Its content.

    Raises
    ------
    ArffError
        If the file is malformed; the message names file, line and cause.
    """
    path = Path(path)
    lines = read_text(path).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    relation, attributes, start = _read_header(path.name, lines)
    width = len(attributes)

    # Every row is a run of (column, value) pairs, a dense one too: one layout serves dense, sparse and mixed files.
    all_columns = array("i", range(width))
    columns, values, ends, numbers = array("i"), array("d"), array("q"), array("q")
    may_be_plain = not any(a.categories and a.numbers is None for a in attributes)
    any_sparse = False
    for number, line in enumerate(lines[start:], start + 1):
        row = line.strip()
        if not row or row[0] == "%":
            continue
        is_sparse = row[0] == "{"
        cells = _read_plain_row(row, width) if may_be_plain else None
        if cells is None:
            cells = _read_row_carefully(path.name, number, row, attributes)
        columns.extend(array("i", cells[0]) if is_sparse else all_columns)
        values.extend(array("d", cells[1]))
        ends.append(len(values))
        numbers.append(number)
        any_sparse |= is_sparse
    if not numbers:
        raise ArffError(f"{path.name}: there are no examples after @data")

    column_of, value_of = np.array(columns), np.array(values)
    doubtful = np.isinf(value_of) | _encode_numbered_categories(attributes, column_of, value_of)
    if doubtful.any():
        line_number = numbers[int(np.searchsorted(ends, np.argmax(doubtful), side="right"))]
        _read_row_carefully(path.name, line_number, lines[line_number - 1].strip(), attributes)

    shape = (len(numbers), width)
    content: Matrix
    if any_sparse:
        starts = np.concatenate(([0], np.array(ends)))
        content = sparse.csr_matrix((value_of, column_of, starts), shape=shape)
        content.sort_indices()
        content.eliminate_zeros()
    else:
        content = value_of.reshape(shape)
    return Table(path.name, relation, attributes, content, np.array(numbers))


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8, with or without byte order mark, or else in Latin-1."""
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def unquote(text: str) -> str:
    r"""Return the text that a word of an ARFF file stands for.

    Within quotes a backslash escapes any character; elsewhere it escapes quotes only, and other backslashes are part
    of the word.

    >>> unquote(r"'Swainson\'s Thrush'"), unquote(r"TAG_m\'usica"), unquote(r"TAG_dise\~no")
    ("Swainson's Thrush", "TAG_m'usica", 'TAG_dise\\~no')
    """
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return _ESCAPE.sub(_unescape, text[1:-1])
    return _ESCAPED_QUOTE.sub(r"\1", text)


def _unescape(match: re.Match[str]) -> str:
    escaped = match[1]
    if len(escaped) > 1:
        return chr(int(escaped[1:], 16))
    return {"n": "\n", "r": "\r", "t": "\t"}.get(escaped, escaped)


def _read_header(file: str, lines: Sequence[str]) -> tuple[str, tuple[Attribute, ...], int]:
    """Return the name of the relation, the attributes, and the number of lines up to and with @data."""
    relation = ""
    attributes: dict[str, Attribute] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text[0] == "%":
            continue
        match = _KEYWORD.match(text)
        keyword = match[1].lower() if match else ""
        try:
            if match and keyword == "relation":
                relation = unquote(_remove_comment(match[2]))
            elif match and keyword == "attribute":
                attribute = _read_attribute(_remove_comment(match[2]), number)
                if attribute.name in attributes:
                    first = attributes[attribute.name].line
                    raise ValueError(f"attribute {attribute.name!r} is already declared in line {first}")
                attributes[attribute.name] = attribute
            elif keyword == "data":
                if not attributes:
                    raise ValueError("@data, but no attribute has been declared")
                return relation, tuple(attributes.values()), number
            else:
                raise ValueError(f"expected @relation, @attribute or @data, found {_quote(text)}")
        except ValueError as cause:
            raise ArffError(f"{file}, line {number}: {cause}") from None
    raise ArffError(f"{file}: there is no @data section" if attributes else f"{file}: there is nothing declared in it")


def _read_attribute(text: str, line: int) -> Attribute:
    match = _NAME.match(text)
    if not match:
        raise ValueError(f"expected the name of an attribute, found {_quote(text)}")
    name, kind = unquote(match[1]), match[2]
    if not name:
        raise ValueError("an attribute has an empty name")
    if kind.lower() in ("numeric", "real", "integer"):
        return Attribute(name, line)
    if kind.startswith("{"):
        if not kind.endswith("}"):
            raise ValueError(f"the values of attribute {name!r} do not end with '}}'")
        categories = tuple(unquote(word) for word in _split(_COMMA_VALUE, kind[1:-1]))
        if not all(categories):
            raise ValueError(f"attribute {name!r} has an empty value among its values")
        if len(set(categories)) < len(categories):
            twice = next(c for c, count in Counter(categories).items() if count > 1)
            raise ValueError(f"attribute {name!r} lists the value {twice!r} twice")
        return Attribute(name, line, categories)
    word = kind.split()[0].lower() if kind else ""
    if word in ("string", "date", "relational"):
        raise ValueError(f"attribute {name!r} is of type {word}, but only numeric and nominal attributes can be used")
    raise ValueError(f"attribute {name!r} is of type {_quote(kind)}, expected numeric or {{value, ...}}")


def _read_plain_row(row: str, width: int) -> tuple[list[int], list[float]] | None:
    """Return columns (none for a dense row) and values of a row of bare numbers, None if it needs a closer look."""
    try:
        if row[0] != "{":
            values = list(map(float, row.split(","))) if _PLAIN_DENSE.fullmatch(row) else []
            return ([], values) if len(values) == width else None
        if not _PLAIN_SPARSE.fullmatch(row):
            return None
        words = row[1:-1].replace(",", " ").split()
        columns = list(map(int, words[::2]))
        in_order = sorted(set(columns)) == columns and columns[-1] < width
        return (columns, list(map(float, words[1::2]))) if in_order else None
    except ValueError:
        return None


def _read_row_carefully(
    file: str, line: int, row: str, attributes: Sequence[Attribute]
) -> tuple[list[int], list[float]]:
    """Return columns and values of any row, or raise an error that says what is wrong with it."""
    row = _remove_comment(row)
    try:
        pairs = list(_split_sparse(row, len(attributes)) if row[0] == "{" else _split_dense(row, len(attributes)))
        values = [_read_value(word, attributes[column]) for column, word in pairs]
        return [column for column, _ in pairs], values
    except ValueError as cause:
        raise ArffError(f"{file}, line {line}: {cause}") from None


def _split_dense(row: str, width: int) -> Iterator[tuple[int, str]]:
    # Commas separate values, so that unquoted values may contain spaces; rows without any are separated by whitespace.
    by_space = width > 1 and "," not in _blot_quoted(row)
    words = _split(_SPACE_VALUE if by_space else _COMMA_VALUE, row)
    if len(words) != width:
        raise ValueError(f"{len(words)} values, but {width} attributes are declared")
    return enumerate(words)


def _split_sparse(row: str, width: int) -> Iterator[tuple[int, str]]:
    if not row.endswith("}"):
        raise ValueError("a sparse row does not end with '}'")
    body, position, seen = row[1:-1].strip(), 0, set()
    more = bool(body)
    while more:
        match = _PAIR.match(body, position)
        if not match:
            raise ValueError(f"expected 'index value', found {_quote(body[position:].strip())}")
        if not re.fullmatch("[0-9]{1,18}", match[1]):
            raise ValueError(f"expected the index of an attribute, found {_quote(match[1])}")
        index = int(match[1])
        if index >= width:
            raise ValueError(f"index {index} is out of range, {width} attributes are declared and counted from 0")
        if index in seen:
            raise ValueError(f"index {index} occurs twice")
        seen.add(index)
        yield index, match[2].strip()
        position, more = match.end(), match[3] == ","


def _split(pattern: re.Pattern[str], text: str) -> list[str]:
    """Return the words between separators, quotes and escapes still on them."""
    words, position, more = [], 0, True
    while more:
        match = pattern.match(text, position)
        if not match:
            raise ValueError(f"cannot read {_quote(text[position:].strip())}: a quote is not closed or not at the end")
        words.append(match[1].strip())
        position = match.end()
        more = match[2] != "" and (match[2] == "," or position < len(text))
    return words


def _read_value(word: str, attribute: Attribute) -> float:
    if word == "?":
        return math.nan
    if not word:
        raise ValueError(f"the value of attribute {attribute.name!r} is empty, a missing value is written '?'")
    text = unquote(word)
    number = float(text) if NUMBER.fullmatch(text) else math.nan
    if attribute.categories is None:
        if not math.isfinite(number):
            kind = "a finite number" if _is_float(text) else "a number"
            raise ValueError(f"attribute {attribute.name!r} is numeric, but {_quote(text)} is not {kind}")
        return number
    if text in attribute.written:
        return attribute.written[text]
    if attribute.numbers is not None and number in attribute.numbers:  # 1.0 where 1 was declared
        return number
    raise ValueError(f"attribute {attribute.name!r} is nominal, but {_quote(text)} is not among its values")


def _encode_numbered_categories(attributes: Sequence[Attribute], columns: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Replace, in place, numbers that stand for categories by their positions; return where there is no such one."""
    kinds: dict[tuple[str, ...], list[int]] = {}
    for j, attribute in enumerate(attributes):
        if attribute.categories and attribute.numbers is not None:
            kinds.setdefault(attribute.categories, []).append(j)
    unknown = np.zeros(len(values), dtype=bool)
    for members in kinds.values():
        is_member = np.zeros(len(attributes), dtype=bool)
        is_member[members] = True
        (cells,) = np.nonzero(is_member[columns] & ~np.isnan(values))
        numbers = attributes[members[0]].numbers
        assert numbers is not None
        order = np.argsort(numbers)
        nearest = np.minimum(np.searchsorted(numbers[order], values[cells]), len(numbers) - 1)
        positions = order[nearest]
        unknown[cells] = numbers[positions] != values[cells]
        values[cells] = positions
    return unknown


def _remove_comment(text: str) -> str:
    match = _COMMENT.search(_blot_quoted(text)) if "%" in text else None
    return (text[: match.start()] if match else text).strip()


def _blot_quoted(text: str) -> str:
    """Return the text with all that is quoted written over by quotes, in time linear in its length."""
    parts, position, unclosed = [], 0, set()
    while match := _QUOTE.search(text, position):
        quote, start = match[0], match.start()
        # Where one is not closed, no later one of its kind is: it would have closed the first.
        whole = None if quote in unclosed else _WHOLE_QUOTED.match(text, start)
        if whole is None:
            unclosed.add(quote)
        end = match.end() if whole is None else whole.end()
        parts += [text[position:start], quote * (end - start)]
        position = end
    return "".join([*parts, text[position:]])


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _quote(text: str) -> str:
    return repr(shorten(text, most=40))
