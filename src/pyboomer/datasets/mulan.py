"""A multi-label file: an ARFF table some of whose columns are labels.

Which ones, an XML file says for Mulan (http://mulan.sourceforge.net/format.html), and the name of the relation for
MEKA (`@relation 'emotions: -C 6'`, https://waikato.github.io/meka/).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.parsers import expat

import numpy as np
from scipy import sparse

from pyboomer.datasets.arff import ArffError, Attribute, Table, read_arff, read_text, unquote
from pyboomer.datasets.dataset import Dataset, Matrix, is_sparse_matrix, write_codes

_MEKA_OPTION = re.compile(r"-C\s+([+-]?[0-9]+)(.*)", re.DOTALL)


def load_mulan(arff: str | Path, xml: str | Path | None = None, name: str | None = None) -> Dataset:
    r"""Load a data set in Mulan's format: an ARFF file, and an XML file that names the labels.

    Parameters
    ----------
    arff : str or Path
        The file with the examples.
    xml : str or Path, optional
        The file with the names of the labels. By default the one beside `arff` with the same name; where there is
        none, the option `-C` in the name of the relation; and where there is none either, the file of a longer
        series, `scene.xml` for `scene-train.arff`.
    name : str, optional
        The name of the data set, by default that of the ARFF file.

    Returns
    -------
    Dataset
        With the labels in the order of the XML file, and the features in that of the ARFF file.

    Raises
    ------
    ArffError
        A ValueError, if a file is malformed or the two do not fit.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pyboomer.datasets import load_mulan
    >>> lines = ["@relation songs", "@attribute tempo numeric", "@attribute calm {0,1}", "@data", "90,1", "140,0"]
    >>> _ = Path("songs.arff").write_text("\n".join(lines))
    >>> xml = '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="calm"/></labels>'
    >>> _ = Path("songs.xml").write_text(xml)
    >>> load_mulan("songs.arff")
    <Dataset 'songs': 2 examples, 1 features, 1 labels>
    """
    return load_parts([Path(arff)], xml, name)


def load_meka(arff: str | Path, name: str | None = None) -> Dataset:
    r"""Load a data set in MEKA's format: an ARFF file whose relation name counts the labels.

    Parameters
    ----------
    arff : str or Path
        The file; `-C 6` in the name of its relation declares the first six attributes as labels, `-C -6` the last.
    name : str, optional
        The name of the data set, by default that of the ARFF file.

    Returns
    -------
    Dataset
        With labels and features in the order of the file.

    Raises
    ------
    ArffError
        A ValueError, if the file is malformed or does not count its labels.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pyboomer.datasets import load_meka
    >>> lines = ["@relation 'songs: -C 1'", "@attribute calm {0,1}", "@attribute tempo numeric", "@data", "1,90"]
    >>> _ = Path("songs.arff").write_text("\n".join(lines))
    >>> load_meka("songs.arff").label_names
    ('calm',)
    """
    table = read_arff(arff)
    columns = _count_labels(table)
    if columns is None:
        raise ArffError(f"{table.file}: the name of the relation, {table.relation!r}, has no option -C")
    return _assemble([table], columns, name or Path(arff).stem)


def load_parts(paths: Sequence[Path], xml: str | Path | None = None, name: str | None = None) -> Dataset:
    """Load a data set whose examples are spread over files with the same attributes, in the order given."""
    tables = [read_arff(path) for path in paths]
    first = tables[0]
    for table in tables[1:]:
        if [(a.name, a.categories) for a in table.attributes] != [(a.name, a.categories) for a in first.attributes]:
            raise ArffError(f"{table.file}: the attributes are not those of {first.file}")
    columns = _find_labels(first, paths[0], xml)
    return _assemble(tables, columns, name or paths[0].stem)


def read_label_names(xml: str | Path) -> list[str]:
    """Return the names of all `label` elements of an XML file, nested ones too, in the order of the file."""
    path = Path(xml)
    names: list[str] = []

    def start(element: str, attributes: dict[str, str]) -> None:
        if element.rpartition(" ")[2] == "label":
            if "name" not in attributes:
                raise ArffError(f"{path.name}, line {parser.CurrentLineNumber}: a label has no name")
            names.append(attributes["name"])

    def refuse(*_: object) -> None:
        raise ArffError(f"{path.name}, line {parser.CurrentLineNumber}: document types are not allowed")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = start
    # Entities are declared in a document type, and a few nested ones expand to gigabytes. Label files need none.
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(read_text(path), True)
    except expat.ExpatError as error:
        raise ArffError(f"{path.name}, line {error.lineno}: {expat.ErrorString(error.code)}") from None
    if not names:
        raise ArffError(f"{path.name}: there are no label elements in it")
    return names


def _find_labels(table: Table, path: Path, xml: str | Path | None) -> list[int]:
    """Return the columns of the labels, from the XML file, the relation, or the XML file of the series."""
    own = path.with_name(path.stem + ".xml")
    if xml is None and not own.exists():
        columns = _count_labels(table)
        if columns is not None:
            return columns
        parts = path.stem.split("-")
        shorter = [path.with_name("-".join(parts[:n]) + ".xml") for n in range(len(parts) - 1, 0, -1)]
        xml = next((candidate for candidate in shorter if candidate.exists()), None)
        if xml is None:
            raise ArffError(
                f"{table.file}: which attributes are labels? There is no {own.name} beside it, "
                f"and the name of its relation has no option -C"
            )
    return _match_labels(table, Path(own if xml is None else xml))


def _match_labels(table: Table, xml: Path) -> list[int]:
    position = {attribute.name: j for j, attribute in enumerate(table.attributes)}
    columns: dict[int, None] = {}
    for name in read_label_names(xml):
        # Some XML files repeat the escapes or the quotes of the ARFF file: `TAG_m\'usica` in delicious.
        column = position.get(name, position.get(unquote(name.strip()), -1))
        if column < 0:
            raise ArffError(f"{xml.name}: label {name!r} is not an attribute of {table.file}")
        if column in columns:
            raise ArffError(f"{xml.name}: label {name!r} is named twice")
        columns[column] = None
    return list(columns)


def _count_labels(table: Table) -> list[int] | None:
    """Return the columns that the relation's option -C declares as labels, None if it has no such option."""
    match = _MEKA_OPTION.search(table.relation)
    if not match:
        return None
    count, width = int(match[1][:19]), len(table.attributes)  # Python refuses numbers of many digits
    if not 0 < abs(count) <= width:
        raise ArffError(f"{table.file}: the relation says -C {count}, but {width} attributes are declared")
    if ".Reorder" in match[2]:  # Weka appends its filters to the name and leaves the option as it was
        raise ArffError(
            f"{table.file}: the relation says -C {count}, but also that the attributes were reordered since; "
            f"name the labels in an XML file"
        )
    return list(range(count) if count > 0 else range(width + count, width))


def _assemble(tables: Sequence[Table], labels: list[int], name: str) -> Dataset:
    attributes = tables[0].attributes
    is_label = set(labels)
    features = [j for j in range(len(attributes)) if j not in is_label]
    if not features:
        raise ArffError(f"{tables[0].file}: all {len(attributes)} attributes are labels, no features are left")
    Y = np.vstack([_read_labels(table, labels) for table in tables])
    X: Matrix
    if any(is_sparse_matrix(table.cells) for table in tables):
        X = sparse.vstack([sparse.csr_matrix(table.cells)[:, features] for table in tables], format="csr")
    else:
        X = np.ascontiguousarray(np.vstack([table.cells[:, features] for table in tables]))
    categories = {j: kind for j, column in enumerate(features) if (kind := attributes[column].categories) is not None}
    write_codes(X, categories)
    return Dataset(
        X=X,
        Y=Y,
        feature_names=tuple(attributes[j].name for j in features),
        label_names=tuple(attributes[j].name for j in labels),
        nominal_features=tuple(categories),
        categories=categories,
        name=name,
    )


def _read_labels(table: Table, labels: list[int]) -> np.ndarray:
    cells = table.cells[:, labels]
    values = np.asarray(cells.toarray() if is_sparse_matrix(cells) else cells, dtype=np.float64)
    for k, column in enumerate(labels):
        attribute = table.attributes[column]
        if attribute.categories is not None:
            values[:, k] = _read_label_categories(table.file, attribute, values[:, k])
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        row, k = (int(i) for i in np.argwhere(wrong)[0])
        value = "missing" if np.isnan(values[row, k]) else f"{values[row, k]:g}"
        label = table.attributes[labels[k]].name
        raise ArffError(f"{table.file}, line {table.lines[row]}: label {label!r} is {value}, but labels are 0 or 1")
    return values.astype(np.int8)


def _read_label_categories(file: str, attribute: Attribute, positions: np.ndarray) -> np.ndarray:
    if attribute.numbers is None or not set(attribute.numbers) <= {0.0, 1.0}:
        declared = ", ".join(attribute.categories or ())
        raise ArffError(
            f"{file}, line {attribute.line}: label {attribute.name!r} has the values {{{declared}}}, "
            f"but labels are 0 or 1"
        )
    missing = np.isnan(positions)
    return np.where(missing, np.nan, attribute.numbers[np.where(missing, 0, positions).astype(np.intp)])
