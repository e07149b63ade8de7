"""A table is what users pass as X: an array, a sparse matrix or a DataFrame, read into numbers with its faults named.

Nominal features become category codes. Those of a dense table do so here, at once; a sparse one keeps its values, since
the zeros it does not store must keep meaning zero, and is encoded where it is sorted or made dense.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from pyboomer.features import Categories, Matrix, encode, encode_values, find_categories

Array = NDArray[np.float64]


class Table(NamedTuple):
    """The features of the training data: numbers, names, and the categories of the nominal ones."""

    matrix: Matrix
    names: tuple[str, ...]
    categories: Categories


def read_training_table(estimator: BaseEstimator, X: Any, categorical_features: Any) -> Table:
    """Read X for `fit`; records the number and names of the features in the estimator."""
    if _is_frame(X):
        validate_data(estimator, X, skip_check_array=True)
        _check_shape(X.shape)
        names = tuple(str(name) for name in X.columns)
        nominal = _find_nominal(categorical_features, names, X)
        categories = {int(f): _find_frame_categories(X.iloc[:, f], names[f]) for f in np.flatnonzero(nominal)}
        return Table(_read_frame(X, categories), names, categories)
    matrix = _read_matrix(estimator, X, reset=True)
    names = tuple(getattr(estimator, "feature_names_in_", [f"x{i}" for i in range(matrix.shape[1])]))
    nominal = _find_nominal(categorical_features, names, None)
    _check_finite(matrix, names)
    if sp.issparse(matrix):
        return Table(matrix, names, find_categories(matrix, nominal))
    categories = find_categories(matrix, nominal)
    return Table(encode(matrix, categories), names, categories)


def read_table(estimator: BaseEstimator, X: Any, names: tuple[str, ...], categories: Categories) -> Matrix:
    """Read X for predictions by a fitted estimator."""
    if _is_frame(X):
        validate_data(estimator, X, skip_check_array=True, reset=False)
        _check_shape(X.shape)
        return _read_frame(X, categories)
    if any(isinstance(value, str) for values in categories.values() for value in values):
        feature = next(f for f, values in categories.items() if any(isinstance(v, str) for v in values))
        raise ValueError(f"X must be a DataFrame: feature {names[feature]!r} has categories that are strings")
    matrix = _read_matrix(estimator, X, reset=False)
    _check_finite(matrix, names)
    return matrix if sp.issparse(matrix) else encode(matrix, categories)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "iloc") and hasattr(X, "columns")


def _check_shape(shape: tuple[int, ...]) -> None:
    if shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    if shape[1] == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")


def _read_matrix(estimator: BaseEstimator, X: Any, reset: bool) -> Matrix:
    try:
        matrix = validate_data(
            estimator, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False, order="C"
        )
    except ValueError as error:
        if "could not convert string to float" in str(error):
            raise ValueError(f"X holds text, which only a DataFrame can have as categories: {error}") from None
        raise
    if sp.issparse(matrix):
        matrix = sp.csr_array(matrix, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    return matrix


def _check_finite(matrix: Matrix, names: tuple[str, ...]) -> None:
    values = matrix.data if sp.issparse(matrix) else matrix
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()  # one cheap pass settles the common case
    if not np.isfinite(total):
        bad = np.isinf(values)
        if bad.any():
            column = int(matrix.indices[bad.argmax()]) if sp.issparse(matrix) else int(bad.any(axis=0).argmax())
            raise ValueError(f"X contains infinity in column {column} ({names[column]!r})")


def _find_nominal(categorical_features: Any, names: tuple[str, ...], frame: Any) -> NDArray[np.bool_]:
    """Which features are nominal, as a mask."""
    mask = np.zeros(len(names), dtype=bool)
    if categorical_features is None:
        return mask
    if isinstance(categorical_features, str):
        if categorical_features != "from_dtype":
            raise ValueError(
                'categorical_features must be None, "from_dtype", a mask, indices or names, '
                f"got {categorical_features!r}"
            )
        if frame is not None:
            mask[:] = [dtype.kind == "O" for dtype in frame.dtypes]
        return mask
    chosen = np.asarray(categorical_features)
    if chosen.size == 0:
        return mask
    if chosen.ndim != 1:
        raise ValueError(f"categorical_features must be one-dimensional, got {chosen.ndim} dimensions")
    if chosen.dtype.kind == "b":
        if len(chosen) != len(names):
            raise ValueError(f"categorical_features is a mask of length {len(chosen)}, but X has {len(names)} features")
        return chosen.copy()
    if chosen.dtype.kind in "iu":
        if chosen.min() < 0 or chosen.max() >= len(names):
            bad = chosen[(chosen < 0) | (chosen >= len(names))][0]
            raise ValueError(f"categorical_features has index {bad}, but X has {len(names)} features")
        mask[chosen] = True
        return mask
    for name in chosen.tolist():
        if name not in names:
            raise ValueError(f"categorical_features has {name!r}, which is no column of X")
        mask[names.index(name)] = True
    return mask


def _find_frame_categories(column: Any, name: str) -> tuple[Any, ...]:
    values = {_plain(value) for value in column.dropna().unique()}
    if values & {np.inf, -np.inf}:
        raise ValueError(f"column {name!r} of X contains infinity")
    try:
        return tuple(sorted(values))
    except TypeError:
        raise ValueError(
            f"column {name!r} of X mixes categories that cannot be ordered, such as numbers and strings"
        ) from None


def _read_frame(X: Any, categories: Categories) -> Array:
    matrix = np.empty(X.shape, order="C")
    for f in range(X.shape[1]):
        column, name = X.iloc[:, f], str(X.columns[f])
        if f in categories:
            matrix[:, f] = _encode_frame_column(column, categories[f])
            continue
        if column.dtype.kind not in "buif" and column.dtype != object:
            raise ValueError(_no_number(name, column.dtype))
        try:
            matrix[:, f] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError):
            raise ValueError(_no_number(name, column.dtype)) from None
        if np.isinf(matrix[:, f]).any():
            raise ValueError(f"X contains infinity in column {f} ({name!r})")
    return matrix


def _no_number(name: str, dtype: Any) -> str:
    cure = "name it in categorical_features"
    if dtype.kind == "O":
        cure += ', or set categorical_features="from_dtype"'
    return f"column {name!r} of X is not numeric (dtype {dtype}); {cure}"


def _encode_frame_column(column: Any, values: tuple[Any, ...]) -> Array:
    if values and all(isinstance(value, int | float) for value in values) and column.dtype.kind in "buif":
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return encode_values(numbers, np.asarray(values, dtype=np.float64))
    codes = {value: float(code) for code, value in enumerate(values)}
    missing = column.isna().to_numpy()
    return np.array(
        [
            np.nan if gone else codes.get(_plain(value), float(len(values)))
            for value, gone in zip(column.tolist(), missing, strict=True)
        ],
        dtype=np.float64,
    )


def _plain(value: Any) -> Any:
    """A category as a plain Python value that a model file can hold."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and value.is_integer():
        return int(value)  # as people write it: 3, not 3.0
    return value if isinstance(value, str | int | float) else str(value)
