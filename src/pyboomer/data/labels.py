"""Labels are what is learned: a matrix of 0 and 1, or one column of classes, and the format in which users gave it.

One column of two classes becomes one label (the second class), one of more classes a label per class. In a matrix, a
missing value (NaN, None, NA, or what is masked) is a label that is not known. Predictions are given back in the format
of the training labels: its dtype, sparse if it was sparse, and classes if it held classes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pyboomer.arrays import Array, Vectors, is_missing
from pyboomer.data.soundness import check_sparse, unmask
from pyboomer.rules.names import plain_text

COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)
SETS = "; sets of labels become a matrix by sklearn.preprocessing.MultiLabelBinarizer().fit_transform(Y)"


@dataclass(frozen=True)
class LabelFormat:
    """The format of the labels: `classes` is None for a 0/1 matrix, else the sorted classes of the one column."""

    names: tuple[str, ...]
    dtype: np.dtype[Any]
    sparse: str | None = None  # "array" or "matrix": scipy's two kinds
    classes: NDArray[Any] | None = None

    def list_classes(self) -> Any:
        """What scikit-learn calls `classes_`: the classes; for a matrix the numbers of its columns, as its own have."""
        return np.arange(len(self.names)) if self.classes is None else np.unique(self.classes)

    def read(self, Y: Any) -> "Labels":
        """Read further labels, which must be of this format."""
        return read_labels(Y, self)

    def shape_scores(self, scores: Array) -> Array:
        """The (N, K) scores of labels as users see them: those of two classes are one column, without a dimension."""
        return scores[:, 0] if self.classes is not None and scores.shape[1] == 1 else scores

    def restore(self, Y: Vectors) -> Any:
        """Give a 0/1 matrix of predictions the format of the training labels."""
        if self.classes is not None:
            return self.classes[Y[:, 0] if Y.shape[1] == 1 else Y.argmax(axis=1)]
        if self.sparse is not None:
            kind = sp.csr_array if self.sparse == "array" else sp.csr_matrix
            return kind(Y, dtype=self.dtype)
        return Y.astype(self.dtype)


class Labels(NamedTuple):
    """Labels as they are learned from, and the format they came in."""

    values: Vectors  # (N, K): 0 and 1; 0 where unknown
    known: NDArray[np.bool_] | None  # (N, K), or None if all are
    label_format: LabelFormat


def read_labels(Y: Any, label_format: LabelFormat | None = None) -> Labels:
    """Turn what users pass as Y into a 0/1 matrix and its format, or say what is wrong with it.

    With `label_format`, that of the labels that a model was learned from, these must be labels of the same kind.
    """
    Y = check_sparse("Y", Y) if sp.issparse(Y) else unmask(Y)
    return _read_first(Y) if label_format is None else _read_more(Y, label_format)


def _read_first(Y: Any) -> Labels:
    if sp.issparse(Y):
        matrix = Y.tocsc()
        if not matrix.has_canonical_format:  # entries may be repeated, which counts as their sum
            matrix = matrix.copy()
            matrix.sum_duplicates()
        label_format = LabelFormat(
            default_names(Y.shape[1]), Y.dtype, "array" if isinstance(Y, sp.sparray) else "matrix"
        )
        _check_binary(
            matrix.data, lambda i: _column_text(label_format.names, int(np.searchsorted(matrix.indptr, i, "right")) - 1)
        )
        return _make_labels(matrix.toarray(), label_format)
    names = tuple(str(name) for name in Y.columns) if hasattr(Y, "columns") else None
    try:
        values = np.asarray(Y)
    except ValueError:  # NumPy's word for a ragged list
        raise ValueError(f"Y must be a matrix of labels or one column of classes, got rows that differ{SETS}") from None
    if values.dtype == object and any(isinstance(value, COLLECTIONS) for value in values.flat):
        raise ValueError(f"Y must be a matrix of labels or one column of classes, got {values.flat[0]!r:.50}{SETS}")
    values = narrow_objects(values)
    if values.ndim == 1 or (values.ndim == 2 and values.shape[1] == 1 and not _is_binary(values)):
        return _read_classes(values.ravel())
    if values.ndim != 2:
        raise ValueError(f"Y must be a matrix of labels or one column of classes, got {values.ndim} dimensions")
    label_format = LabelFormat(names or default_names(values.shape[1]), values.dtype)
    if len(set(label_format.names)) < len(label_format.names):
        raise ValueError(f"labels must have distinct names, got {_first_repeated(label_format.names)!r} twice")
    _check_binary(values.ravel(), lambda i: _column_text(label_format.names, i % values.shape[1]))
    return _make_labels(values, label_format)


def _read_more(Y: Any, label_format: LabelFormat) -> Labels:
    """Read further labels of a known format; of its classes, they may have only some."""
    if label_format.classes is None:
        labels = _read_first(Y)
        if labels.label_format.classes is not None:
            raise ValueError("y is one column of classes, but the model was learned from a matrix of labels")
        check_names(labels.label_format.names, label_format.names)
        return labels._replace(label_format=label_format)
    values = np.asarray(Y)
    if sp.issparse(Y) or values.size != len(values):
        raise ValueError("Y is a matrix of labels, but the model was learned from one column of classes")
    values = narrow_objects(values).ravel()
    known = np.unique(label_format.classes)
    new = [value for value in dict.fromkeys(values.tolist()) if value not in known.tolist()]
    if new:
        raise ValueError(f"y has the class {new[0]!r}, but the model was learned from {known.tolist()}")
    relevant = values[:, None] == (label_format.classes[1:] if len(label_format.names) == 1 else label_format.classes)
    return Labels(relevant.astype(np.uint8), None, label_format)


def check_names(given: tuple[str, ...], expected: tuple[str, ...], what: str = "Y") -> None:
    """Refuse labels that are not those a model was learned from; an array names none, so numbers will do."""
    if len(given) != len(expected):
        raise ValueError(f"{what} has {len(given)} labels, but the model was learned from {len(expected)}")
    numbered = default_names(len(given))
    if given != expected and numbered not in (given, expected):
        k = next(k for k, name in enumerate(given) if name != expected[k])
        raise ValueError(f"{what} has label {given[k]!r} where the model was learned from {expected[k]!r}")


def _make_labels(values: NDArray[Any], label_format: LabelFormat) -> Labels:
    if values.shape[0] == 0:
        raise ValueError("Y has no examples")
    if values.shape[1] == 0:
        raise ValueError("Y has no labels")
    unknown = np.isnan(values) if values.dtype.kind == "f" else np.zeros(1, dtype=bool)
    if not unknown.any():
        return Labels(values.astype(np.uint8), None, label_format)
    return Labels(np.where(unknown, 0, values).astype(np.uint8), ~unknown, label_format)


def _read_classes(values: NDArray[Any]) -> Labels:
    if len(values) == 0:
        raise ValueError("Y has no examples")
    if values.dtype.kind == "f":
        if np.isnan(values).any():
            raise ValueError("y contains NaN; a column of classes must be complete")
        if not np.isfinite(values).all() or (values != np.floor(values)).any():
            raise ValueError(
                "Unknown label type: y holds continuous values; classes must be whole numbers, strings or booleans"
            )
        if values.dtype.itemsize > 8:  # long floats, which not every machine has
            with np.errstate(over="ignore"):
                exact = values.astype(np.float64)
            if (exact != values).any():
                raise ValueError(f"a class that is a number must fit 64 bits, got {values[exact != values][0]} in y")
            values = exact
    if values.dtype.kind not in "buifU":
        for value in values.tolist():
            if isinstance(value, int) and value.bit_length() > 63:
                raise ValueError(f"a class that is a number must fit 64 bits, got {value!r:.50} in y")
            if not isinstance(value, str):
                raise ValueError(f"classes must be all numbers, all strings or all booleans, got {value!r:.50} in y")
        values = np.array([plain_text(value) for value in values.tolist()], dtype=object)
    classes, codes = np.unique(values, return_inverse=True)
    if len(classes) <= 2:  # a single class is a label that is always relevant
        Y = (codes if len(classes) == 2 else np.ones(len(codes)))[:, None]
        names: tuple[str, ...] = (str(classes[-1]),)
        classes = classes if len(classes) == 2 else np.repeat(classes, 2)
    else:
        Y = codes[:, None] == np.arange(len(classes))
        names = tuple(str(c) for c in classes)
    return Labels(Y.astype(np.uint8), None, LabelFormat(names, values.dtype, None, classes))


def _check_binary(values: NDArray[Any], where: Callable[[int], str]) -> None:
    if values.dtype.kind in "buif":
        bad = np.flatnonzero((values != 0) & (values != 1) & (values == values))
    else:  # text, dates, or objects of which some are no numbers
        bad = np.array([i for i, v in enumerate(values.tolist()) if not isinstance(v, int | float) or v not in (0, 1)])
    if len(bad):
        culprit = values[bad[:1]].tolist()[0]
        cure = SETS if isinstance(culprit, str) else ""
        raise ValueError(f"Y must hold only 0 and 1, got {culprit!r:.50} in {where(int(bad[0]))}{cure}")


def _is_binary(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "buif" and bool(((values == 0) | (values == 1) | (values != values)).all())


def narrow_objects(values: NDArray[Any]) -> NDArray[Any]:
    """An array of objects as an array of numbers, if they are all numbers or missing."""
    if values.dtype != object or any(isinstance(value, str) for value in values.ravel()):
        return values
    missing = np.array([is_missing(value) for value in values.ravel()], dtype=bool).reshape(values.shape)
    try:
        narrowed = np.array(np.where(missing, np.nan, values).tolist() if missing.any() else values.tolist())
    except ValueError:
        return values
    return narrowed if narrowed.dtype.kind in "buif" and narrowed.shape == values.shape else values


def default_names(k: int) -> tuple[str, ...]:
    """How labels are called that have no names."""
    return tuple(f"y{i}" for i in range(k))


def _column_text(names: tuple[str, ...], column: int) -> str:
    return f"column {column} ({names[column]!r})"


def _first_repeated(names: tuple[str, ...]) -> str:
    return next(name for i, name in enumerate(names) if name in names[:i])
