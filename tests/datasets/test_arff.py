"""ARFF files: what is written is read back, and what cannot be read is named with its line."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from pyboomer.datasets.arff import ArffError, _remove_comment, read_arff, unquote

HEADER = "@relation r\n@attribute a numeric\n@attribute b {x,'y z'}\n@attribute c {0,1}\n@data\n"


def write(folder: Path, text: str, name: str = "file.arff") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


# ---------------------------------------------------------------------------------------------- well formed


def test_dense_rows_are_read(tmp_path: Path) -> None:
    table = read_arff(write(tmp_path, HEADER + "1.5,x,1\n-2e-3, 'y z' ,0\n?,?,?\n"))
    assert table.relation == "r"
    assert [a.name for a in table.attributes] == ["a", "b", "c"]
    assert table.attributes[1].categories == ("x", "y z")
    np.testing.assert_array_equal(table.cells, [[1.5, 0, 1], [-0.002, 1, 0], [np.nan] * 3])
    assert table.lines.tolist() == [6, 7, 8]


def test_an_absent_sparse_entry_is_zero_or_the_first_category(tmp_path: Path) -> None:
    table = read_arff(write(tmp_path, HEADER + "{}\n{0 3,2 1}\n{1 'y z', 0 ?}\n{2 1,0 0.5}\n"))
    assert sparse.issparse(table.cells)
    np.testing.assert_array_equal(table.cells.toarray(), [[0, 0, 0], [3, 0, 1], [np.nan, 1, 0], [0.5, 0, 1]])


def test_dense_and_sparse_rows_may_be_mixed(tmp_path: Path) -> None:
    table = read_arff(write(tmp_path, HEADER + "4,'y z',1\n{0 3}\n"))
    np.testing.assert_array_equal(table.cells.toarray(), [[4, 1, 1], [3, 0, 0]])


def test_comments_blank_lines_tabs_case_and_line_ends_do_not_matter(tmp_path: Path) -> None:
    text = (
        "% about 'this\r\n\r\n@RELATION 'r'  % named r\r\n@Attribute\t'100% {pure}, or not'\tREAL\r\n"
        "@attribute b{0, 1}% no comment\n@ATTRIBUTE c {0,\t1} % none\n@Data\r% nothing\n1\t0\t1\n 2 ,1, 0 % last\n\n"
    )
    table = read_arff(write(tmp_path, text.replace("% no comment", " % a comment")))
    assert [a.name for a in table.attributes] == ["100% {pure}, or not", "b", "c"]
    np.testing.assert_array_equal(table.cells, [[1, 0, 1], [2, 1, 0]])


def test_latin_1_and_byte_order_marks_are_read(tmp_path: Path) -> None:
    text = "@attribute größe numeric\n@data\n1\n"
    for encoding in ("utf-8", "utf-8-sig", "latin-1"):
        path = tmp_path / f"{encoding}.arff"
        path.write_bytes(text.encode(encoding))
        assert read_arff(path).attributes[0].name == "größe"


def test_escapes_stand_for_characters() -> None:
    assert unquote(r"'a\'b\\c\"d\te\n\%\u0041'") == "a'b\\c\"d\te\n%A"
    assert unquote(r'"a\"b"') == 'a"b'
    assert unquote(r"TAG_m\'usica") == "TAG_m'usica"
    assert unquote(r"TAG_dise\~no") == r"TAG_dise\~no"


def test_a_quoted_question_mark_is_a_category_and_a_bare_one_is_missing(tmp_path: Path) -> None:
    cells = read_arff(write(tmp_path, "@attribute a {x,'?'}\n@data\n?\n'?'\n")).cells
    np.testing.assert_array_equal(cells, [[np.nan], [1]])


def quote(text: str, mark: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace(mark, "\\" + mark)
    return mark + escaped + mark


words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
marks = st.sampled_from("'\"")


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, list[tuple[str, list[str] | None]], np.ndarray]:
    """Return the text of an ARFF file, its attributes, and its cells with categories as positions."""
    names = draw(st.lists(words, min_size=1, max_size=4, unique=True))
    kinds = [draw(st.none() | st.lists(words, min_size=1, max_size=3, unique=True)) for _ in names]
    lines = [f"@relation {quote(draw(words), draw(marks))}"]
    for name, kind in zip(names, kinds, strict=True):
        declared = "numeric" if kind is None else "{" + ",".join(quote(c, draw(marks)) for c in kind) + "}"
        lines.append(f"@attribute {quote(name, draw(marks))} {declared}")
    lines.append("@data")
    finite = st.floats(allow_nan=False, allow_infinity=False)
    cells = np.empty((draw(st.integers(1, 4)), len(names)))
    for row in cells:
        written = []
        for j, kind in enumerate(kinds):
            row[j] = draw(st.just(np.nan) | (finite if kind is None else st.integers(0, len(kind) - 1)))
            if np.isnan(row[j]):
                written.append("?")
            else:
                written.append(repr(float(row[j])) if kind is None else quote(kind[int(row[j])], draw(marks)))
        if draw(st.booleans()):
            order = draw(st.permutations(range(len(names))))
            # A first category and a zero may be left out.
            pairs = [f"{j} {written[j]}" for j in order if row[j] != 0 or draw(st.booleans())]
            lines.append("{" + ", ".join(pairs) + "}")
        else:
            lines.append(",".join(written))
    return "\n".join(lines), list(zip(names, kinds, strict=True)), cells


@settings(deadline=None)  # files on a busy machine take their time
@given(table=tables())
def test_what_is_written_is_read_back(
    table: tuple[str, list[tuple[str, list[str] | None]], np.ndarray], tmp_path_factory: pytest.TempPathFactory
) -> None:
    text, attributes, cells = table
    read = read_arff(write(tmp_path_factory.mktemp("arff"), text))
    assert [(a.name, a.categories and list(a.categories)) for a in read.attributes] == attributes
    np.testing.assert_array_equal(read.cells.toarray() if sparse.issparse(read.cells) else read.cells, cells)


numbers = st.lists(st.floats(-1e6, 1e6, width=32), min_size=3, max_size=3)


@settings(deadline=None)  # files on a busy machine take their time
@given(rows=st.lists(numbers, min_size=1, max_size=5), spaces=st.sampled_from(["", " ", "\t"]))
def test_plain_and_careful_readers_agree(
    rows: list[list[float]], spaces: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    header = "@attribute a numeric\n@attribute b numeric\n@attribute c numeric\n"
    folder = tmp_path_factory.mktemp("arff")
    separator = spaces + "," + spaces
    dense = "\n".join(separator.join(map(repr, row)) for row in rows)
    thin = "\n".join("{" + separator.join(f"{j} {v!r}" for j, v in enumerate(row)) + "}" for row in rows)
    # A category that is a word sends all rows of a file to the careful reader.
    worded = header + "@attribute d {w}\n@data\n"
    read = [
        read_arff(write(folder, header + "@data\n" + dense)).cells,
        read_arff(write(folder, header + "@data\n" + thin)).cells.toarray(),
        read_arff(write(folder, worded + "\n".join(line + ",w" for line in dense.split("\n")))).cells[:, :3],
        read_arff(write(folder, worded + thin)).cells.toarray()[:, :3],
    ]
    for cells in read:
        np.testing.assert_array_equal(cells, rows)


# ---------------------------------------------------------------------------------------------- malformed


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,x\n", "file.arff, line 6: 2 values, but 3 attributes are declared"),
        ("1,x,0\n\n1,x,0,\n", "file.arff, line 8: 4 values, but 3 attributes are declared"),
        ("1,foo,0\n", "line 6: attribute 'b' is nominal, but 'foo' is not among its values"),
        ("1,x,2\n", "line 6: attribute 'c' is nominal, but '2' is not among its values"),
        ("one,x,0\n", "line 6: attribute 'a' is numeric, but 'one' is not a number"),
        ("1_0,x,0\n", "attribute 'a' is numeric, but '1_0' is not a"),
        ("inf,x,0\n", "attribute 'a' is numeric, but 'inf' is not a finite number"),
        ("nan,x,0\n", "attribute 'a' is numeric, but 'nan' is not a finite number"),
        ("1e999,x,0\n", "attribute 'a' is numeric, but '1e999' is not a finite number"),
        (",x,0\n", "the value of attribute 'a' is empty, a missing value is written '?'"),
        ("1,'y z,0\n", 'line 6: cannot read "\'y z,0": a quote is not closed'),
        ("1,'y z'x,0\n", "line 6: cannot read \"'y z'x,0\""),
        ("{0 1,3 1}\n", "line 6: index 3 is out of range, 3 attributes are declared and counted from 0"),
        ("{0 1,0 2}\n", "line 6: index 0 occurs twice"),
        ("{-1 1}\n", "expected the index of an attribute, found '-1'"),
        ("{a 1}\n", "expected the index of an attribute, found 'a'"),
        ("{0}\n", "expected 'index value', found '0'"),
        ("{0 1,}\n", "expected 'index value', found ''"),
        ("{0 1\n", "a sparse row does not end with '}'"),
        ("{0 1 2 1}\n", "attribute 'a' is numeric, but '1 2 1' is not a number"),
        ("{1 foo}\n", "attribute 'b' is nominal, but 'foo' is not among its values"),
        ("", "file.arff: there are no examples after @data"),
    ],
)
def test_a_malformed_row_is_named(rows: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ArffError, match=re.escape(message)):
        read_arff(write(tmp_path, HEADER + rows))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("0,1\n0,2\n", "file.arff, line 5: attribute 'b' is nominal, but '2' is not among its values"),
        ("{1 1}\n{0 1,1 7}\n", "file.arff, line 5: attribute 'b' is nominal, but '7' is not among its values"),
        ("1e400,1\n", "file.arff, line 4: attribute 'a' is numeric, but '1e400' is not a finite number"),
        ("1,1\n1,1,1\n", "file.arff, line 5: 3 values, but 2 attributes are declared"),
        ("1 2,1\n", "file.arff, line 4: attribute 'a' is numeric, but '1 2' is not a number"),
        ("{5 1}\n", "file.arff, line 4: index 5 is out of range"),
        ("{99999999999999999999 1}\n", "file.arff, line 4: expected the index of an attribute"),
        ("{1 1,1 1}\n", "file.arff, line 4: index 1 occurs twice"),
        ("{1,1 0 1}\n", "file.arff, line 4: expected 'index value', found '1,1 0 1'"),
    ],
)
def test_a_malformed_row_of_numbers_is_named(rows: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ArffError, match=re.escape(message)):
        read_arff(write(tmp_path, "@attribute a numeric\n@attribute b {0,1}\n@data\n" + rows))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("", "file.arff: there is nothing declared in it"),
        ("@relation r\n@attribute a numeric\n", "file.arff: there is no @data section"),
        ("@relation r\n@data\n1\n", "file.arff, line 2: @data, but no attribute has been declared"),
        ("@attribute a numeric\n1,2\n", "line 2: expected @relation, @attribute or @data, found '1,2'"),
        ("@attribute a numeric\n@attribute 'a' {x}\n", "line 2: attribute 'a' is already declared in line 1"),
        ("@attribute a string\n", "line 1: attribute 'a' is of type string, but only numeric and nominal"),
        ("@attribute 'a b' date 'yyyy'\n", "attribute 'a b' is of type date"),
        ("@attribute a\n", "attribute 'a' is of type '', expected numeric or {value, ...}"),
        ("@attribute a number\n", "attribute 'a' is of type 'number'"),
        ("@attribute\n", "expected the name of an attribute, found ''"),
        ("@attribute 'a numeric\n", "expected the name of an attribute"),
        ("@attribute '' numeric\n", "an attribute has an empty name"),
        ("@attribute a {x,y\n", "the values of attribute 'a' do not end with '}'"),
        ("@attribute a {}\n", "attribute 'a' has an empty value among its values"),
        ("@attribute a {x,'y}\n", 'cannot read "\'y"'),
        ("@attribute a {x,y,'x'}\n", "attribute 'a' lists the value 'x' twice"),
    ],
)
def test_a_malformed_header_is_named(header: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ArffError, match=re.escape(message)):
        read_arff(write(tmp_path, header))


UNCOMMENTED = re.compile(
    r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?<!\s)%|[^%])*""", re.DOTALL
)  # obvious, and takes quadratic time where quotes are not closed


@given(text=st.text("'\"\\ %,a", max_size=30))
def test_a_comment_begins_at_the_first_word_that_does_so_outside_of_quotes(text: str) -> None:
    obvious = UNCOMMENTED.match(text)
    assert obvious is not None
    assert _remove_comment(text) == obvious[0].strip()


@pytest.mark.parametrize("row", ["'", "\\'", "'\"", "\\' %", "\\',", "' "])
@pytest.mark.parametrize("frame", ["%s", "'%s", "{0 %s}", "{0 '%s}"])
def test_long_rows_of_quotes_are_refused_at_once(tmp_path: Path, row: str, frame: str) -> None:
    path = write(tmp_path, HEADER + frame.replace("%s", row * (100_000 // len(row))))
    start = time.process_time()
    with pytest.raises(ArffError, match=r"file\.arff, line 6: "):
        read_arff(path)
    assert time.process_time() - start < 3  # in quadratic time, a minute


def test_a_long_row_that_is_nearly_a_number_is_refused_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + "1" * 100_000 + "e,1")
    start = time.process_time()
    with pytest.raises(ArffError, match=r"file\.arff, line 6: "):
        read_arff(path)
    assert time.process_time() - start < 3
