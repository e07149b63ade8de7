"""Labels are what is learned: a matrix of 0 and 1, or one column of classes, and the form in which users gave it.

One column of two classes becomes one label (the second class), one of more classes a label per class. Predictions are
given back in the form of the training labels: its dtype, sparse if it was sparse, and classes if it held classes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Vectors = NDArray[np.uint8]


@dataclass(frozen=True)
class LabelForm:
    """The form of the labels: `classes` is None for a 0/1 matrix, else the sorted classes of the one column."""

    names: tuple[str, ...]
    dtype: np.dtype[Any]
    sparse: str | None = None  # "array" or "matrix": scipy's two kinds
    classes: NDArray[Any] | None = None

    def list_classes(self) -> Any:
        """The two values of each label, or the classes: scikit-learn's `classes_`."""
        if self.classes is None:
            return np.tile(np.array([0, 1], dtype=self.dtype), (len(self.names), 1))
        return np.unique(self.classes)

    def restore(self, Y: Vectors) -> Any:
        """Give a 0/1 matrix of predictions the form of the training labels."""
        if self.classes is not None:
            return self.classes[Y[:, 0] if Y.shape[1] == 1 else Y.argmax(axis=1)]
        if self.sparse is not None:
            kind = sp.csr_array if self.sparse == "array" else sp.csr_matrix
            return kind(Y, dtype=self.dtype)
        return Y.astype(self.dtype)


def read_labels(Y: Any) -> tuple[Vectors, LabelForm]:
    """Turn what users pass as Y into a 0/1 matrix and its form, or say what is wrong with it."""
    if sp.issparse(Y):
        if Y.ndim != 2:
            raise ValueError("Y must be 2-D if it is sparse")
        matrix = Y.tocsc()
        form = LabelForm(_default_names(Y.shape[1]), Y.dtype, "array" if isinstance(Y, sp.sparray) else "matrix")
        _check_binary(
            matrix.data, lambda i: _column_text(form.names, int(np.searchsorted(matrix.indptr, i, "right")) - 1)
        )
        return _check_shape(matrix.toarray().astype(np.uint8)), form
    names = tuple(str(name) for name in Y.columns) if hasattr(Y, "columns") else None
    try:
        values = _narrow(np.asarray(Y))
    except ValueError:  # NumPy's word for a ragged list
        raise ValueError("Y must be a matrix of labels or one column of classes, got rows that differ") from None
    if values.ndim == 1 or (values.ndim == 2 and values.shape[1] == 1 and not _is_binary(values)):
        return _read_classes(values.ravel())
    if values.ndim != 2:
        raise ValueError(f"Y must be a matrix of labels or one column of classes, got {values.ndim} dimensions")
    form = LabelForm(names or _default_names(values.shape[1]), values.dtype)
    if len(set(form.names)) < len(form.names):
        raise ValueError(f"labels must have distinct names, got {_first_repeated(form.names)!r} twice")
    _check_binary(values.ravel(), lambda i: _column_text(form.names, i % values.shape[1]))
    return _check_shape(values.astype(np.uint8)), form


def _read_classes(values: NDArray[Any]) -> tuple[Vectors, LabelForm]:
    if len(values) == 0:
        raise ValueError("Y has no examples")
    if values.dtype.kind == "f":
        if np.isnan(values).any():
            raise ValueError("y contains NaN; a column of classes must be complete")
        if not np.isfinite(values).all() or (values != np.floor(values)).any():
            raise ValueError(
                "Unknown label type: y holds continuous values; classes must be whole numbers, strings or booleans"
            )
    if values.dtype.kind not in "buifU":
        for value in values.tolist():
            if not isinstance(value, str):
                raise ValueError(f"classes must be all numbers, all strings or all booleans, got {value!r:.50} in y")
    classes, codes = np.unique(values, return_inverse=True)
    if len(classes) <= 2:  # a single class is a label that is always relevant
        Y = (codes if len(classes) == 2 else np.ones(len(codes)))[:, None]
        names: tuple[str, ...] = (str(classes[-1]),)
        classes = classes if len(classes) == 2 else np.repeat(classes, 2)
    else:
        Y = codes[:, None] == np.arange(len(classes))
        names = tuple(str(c) for c in classes)
    return Y.astype(np.uint8), LabelForm(names, values.dtype, None, classes)


def _check_shape(Y: Vectors) -> Vectors:
    if Y.shape[0] == 0:
        raise ValueError("Y has no examples")
    if Y.shape[1] == 0:
        raise ValueError("Y has no labels")
    return Y


def _check_binary(values: NDArray[Any], where: Callable[[int], str]) -> None:
    if values.dtype.kind in "buif":
        bad = np.flatnonzero((values != 0) & (values != 1))
    else:  # text, dates, or objects of which some are no numbers
        bad = np.array([i for i, v in enumerate(values.tolist()) if not isinstance(v, int | float) or v not in (0, 1)])
    if len(bad):
        raise ValueError(f"Y must hold only 0 and 1, got {values[bad[:1]].tolist()[0]!r:.50} in {where(int(bad[0]))}")


def _is_binary(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "buif" and bool(((values == 0) | (values == 1)).all())


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """An array of objects as an array of numbers, if they are all numbers."""
    if values.dtype != object:
        return values
    try:
        narrowed = np.array(values.tolist())
    except ValueError:
        return values
    return narrowed if narrowed.dtype.kind in "buif" and narrowed.shape == values.shape else values


def _default_names(k: int) -> tuple[str, ...]:
    return tuple(f"y{i}" for i in range(k))


def _column_text(names: tuple[str, ...], column: int) -> str:
    return f"column {column} ({names[column]!r})"


def _first_repeated(names: tuple[str, ...]) -> str:
    return next(name for i, name in enumerate(names) if name in names[:i])
