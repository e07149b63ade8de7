"""A feature is a column of X, made ready for sweeping: its values in ascending order, each with its example.

Dense and sparse data take the same form. Of a column are stored

- the values that are present, ascending, each beside the example it belongs to;
- behind them, the examples whose value is missing (NaN);
- nothing for the other examples, which all hold the column's `fill` value. A dense column has none of those; in a
  sparse one they are the zeros.

A nominal feature holds category codes: the position of a category among the sorted categories of the training data.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Matrix = Any  # a dense array or one of scipy's sparse matrices, which have no types to name
Categories = Mapping[int, tuple[Any, ...]]

AT_MOST, ABOVE, EQUAL, UNEQUAL = range(4)  # codes of the operators <=, >, ==, !=


class Columns(NamedTuple):
    """The features of the training data, sorted; plain arrays for compiled code."""

    start: NDArray[np.int64]  # entries of feature f: start[f] to start[f + 1]
    present: NDArray[np.int64]  # how many of them have a value; the rest are missing
    index: NDArray[np.int32]  # the example of an entry
    value: Array  # the value of an entry, ascending within a feature
    fill: Array  # the value of the examples that have no entry
    nominal: NDArray[np.bool_]
    dense: Array  # (L, N): X transposed, for looking up single values; (L, 0) if X is sparse


def sort_columns(X: Matrix, categories: Categories) -> Columns:
    """Sort the columns of X; the nominal ones of a dense X hold category codes, those of a sparse X categories."""
    n, n_features = X.shape
    nominal = np.zeros(n_features, dtype=bool)
    nominal[list(categories)] = True
    fill = np.zeros(n_features)
    if sp.issparse(X):
        X = encode(X.tocsc(), categories)
        for feature, values in categories.items():
            fill[feature] = _code_of_zero(values)
        column = np.repeat(np.arange(n_features), np.diff(X.indptr))
        order = np.lexsort((X.data, column))  # NaN sorts last
        value = np.ascontiguousarray(X.data[order], dtype=np.float64)
        missing = np.bincount(column, weights=np.isnan(X.data), minlength=n_features).astype(np.int64)
        start = X.indptr.astype(np.int64)
        index = X.indices[order].astype(np.int32)
        return Columns(start, np.diff(start) - missing, index, value, fill, nominal, np.empty((n_features, 0)))
    dense = np.array(X.T, dtype=np.float64, order="C")
    order = np.argsort(dense, axis=1, kind="stable")  # NaN sorts last
    value = np.take_along_axis(dense, order, axis=1).ravel()
    present = n - np.isnan(dense).sum(axis=1)
    start = np.arange(n_features + 1, dtype=np.int64) * n
    return Columns(start, present.astype(np.int64), order.astype(np.int32).ravel(), value, fill, nominal, dense)


@njit(cache=True, nogil=True)
def meets(x: float, operator: int, value: float) -> bool:
    """Whether a value meets a condition; a missing one meets none, whichever the operator."""
    if operator == AT_MOST:
        return x <= value
    if operator == ABOVE:
        return x > value
    if operator == EQUAL:
        return x == value
    return x != value and x == x


@njit(cache=True, nogil=True)
def collect_column(
    columns: Columns, feature: int, weights: Array, n_sampled: int, index: NDArray[np.int32], value: Array
) -> tuple[int, int]:
    """Collect a feature of the covered, sampled examples (those of positive weight) in ascending order.

    `index` and `value` receive the entries; index -1 stands for all examples that hold the fill value, if there are
    any. Behind the present entries follow the examples whose value is missing. Returns how many there are of each.
    """
    start = columns.start[feature]
    end = columns.start[feature + 1]
    fill = columns.fill[feature]
    filled = end - start < weights.shape[0]
    m = 0
    slot = -1
    for e in range(start, start + columns.present[feature]):
        n = columns.index[e]
        if weights[n] > 0.0:
            if filled and slot < 0 and columns.value[e] > fill:
                slot = m
                m += 1
            index[m] = n
            value[m] = columns.value[e]
            m += 1
    if filled:
        if slot < 0:
            slot = m
            m += 1
        index[slot] = -1
        value[slot] = fill
    m_all = m
    for e in range(start + columns.present[feature], end):
        n = columns.index[e]
        if weights[n] > 0.0:
            index[m_all] = n
            m_all += 1
    if filled and m_all - 1 == n_sampled:  # nobody holds the fill value: take the slot out
        for j in range(slot, m_all - 1):
            index[j] = index[j + 1]
            value[j] = value[j + 1]
        m -= 1
        m_all -= 1
    return m, m_all - m


@njit(cache=True, nogil=True)
def narrow_rows(
    columns: Columns,
    feature: int,
    operator: int,
    value: float,
    rows: NDArray[np.int32],
    weights: Array,
    marks: NDArray[np.int8],
) -> int:
    """Keep the covered examples that meet a condition: in the first places of `rows`, in their order.

    The weights of the others become 0. `marks` is scratch of zeros, one per example. Returns how many are kept.
    """
    dense = columns.dense.shape[1] > 0
    otherwise = meets(columns.fill[feature], operator, value)
    if not dense:
        for e in range(columns.start[feature], columns.start[feature + 1]):
            marks[columns.index[e]] = 2 if meets(columns.value[e], operator, value) else 1
    kept = 0
    for r in range(rows.shape[0]):
        n = rows[r]
        if dense:
            met = meets(columns.dense[feature, n], operator, value)
        else:
            met = marks[n] == 2 if marks[n] > 0 else otherwise
        if met:
            rows[kept] = n
            kept += 1
        else:
            weights[n] = 0.0
    if not dense:
        for e in range(columns.start[feature], columns.start[feature + 1]):
            marks[columns.index[e]] = 0
    return kept


def find_categories(X: Matrix, nominal: NDArray[np.bool_]) -> dict[int, tuple[Any, ...]]:
    """The sorted categories of the nominal features of a numeric X (the zeros of a sparse one among them)."""
    categories: dict[int, tuple[Any, ...]] = {}
    for feature in np.flatnonzero(nominal):
        if sp.issparse(X):
            stored = X.data[X.indptr[feature] : X.indptr[feature + 1]]
            values = np.unique(stored if len(stored) == X.shape[0] else np.append(stored, 0.0))
        else:
            values = np.unique(X[:, feature])
        categories[int(feature)] = tuple(_plain(v) for v in values[~np.isnan(values)].tolist())
    return categories


def encode(X: Matrix, categories: Categories) -> Matrix:
    """Replace the values of the nominal features of a numeric X by category codes.

    A value that was not seen in training gets a code of its own, which meets every ``!=`` and no ``==``.
    The zeros that a sparse X does not store keep standing for category 0, wherever that is among the codes.
    """
    if not categories:
        return X
    X = X.copy()
    for feature, values in categories.items():
        column = X.data[X.indptr[feature] : X.indptr[feature + 1]] if sp.issparse(X) else X[:, feature]
        column[:] = encode_values(column, np.asarray(values, dtype=np.float64))
    return X


def encode_values(column: Array, values: Array) -> Array:
    """The codes of a column's values: their positions among `values`, len(values) if unseen, NaN if missing."""
    codes = np.searchsorted(values, column).astype(np.float64)
    found = np.minimum(codes, len(values) - 1).astype(np.int64)
    seen = values[found] == column if len(values) else np.zeros(len(column), dtype=bool)
    return np.where(np.isnan(column), np.nan, np.where(seen, codes, float(len(values))))


def _code_of_zero(values: tuple[Any, ...]) -> float:
    return float(encode_values(np.zeros(1), np.asarray(values, dtype=np.float64))[0])


def _plain(value: float) -> float | int:
    """A category as people write it: 3, not 3.0."""
    return int(value) if float(value).is_integer() else value
