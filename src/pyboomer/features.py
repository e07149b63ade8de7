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

from pyboomer.simd import count_trailing_zeros

Array = NDArray[np.float64]
Matrix = Any  # a dense array or one of scipy's sparse matrices, which have no types to name
Categories = Mapping[int, tuple[Any, ...]]

AT_MOST, ABOVE, EQUAL, UNEQUAL = range(4)  # codes of the operators <=, >, ==, !=


class Columns(NamedTuple):
    """The features of the training data, sorted; plain arrays for compiled code."""

    start: NDArray[np.int64]  # entries of feature f: start[f] to start[f + 1]
    present: NDArray[np.int64]  # how many of them have a value; the rest are missing
    example: NDArray[np.int32]  # the example of an entry
    value: Array  # the value of an entry, ascending within a feature
    fill: Array  # the value of the examples that have no entry
    nominal: NDArray[np.bool_]
    position: NDArray[np.int32]  # (L, N): the place of each example among the entries; (L, 0) if X is sparse


def sort_columns(X: Matrix, categories: Categories) -> Columns:
    """Sort the columns of X; the nominal ones of a dense X hold category codes, those of a sparse X categories."""
    n, n_features = X.shape
    nominal = np.zeros(n_features, dtype=bool)
    nominal[list(categories)] = True
    fill = np.zeros(n_features)
    if sp.issparse(X):
        X = encode(X.tocsc(), categories)
        for feature, values in categories.items():
            fill[feature] = code_of_zero(values)
        column = np.repeat(np.arange(n_features), np.diff(X.indptr))
        order = np.lexsort((X.data, column))  # NaN sorts last
        value = np.ascontiguousarray(X.data[order], dtype=np.float64)
        missing = np.bincount(column, weights=np.isnan(X.data), minlength=n_features).astype(np.int64)
        start = X.indptr.astype(np.int64)
        example = X.indices[order].astype(np.int32)
        nowhere = np.empty((n_features, 0), dtype=np.int32)
        return Columns(start, np.diff(start) - missing, example, value, fill, nominal, nowhere)
    example = np.empty((n_features, n), dtype=np.int32)
    position = np.empty((n_features, n), dtype=np.int32)
    value = np.empty((n_features, n))
    present = np.empty(n_features, dtype=np.int64)
    for f in range(n_features):
        column = np.ascontiguousarray(X[:, f])
        order = np.argsort(column, kind="stable")  # NaN sorts last
        example[f] = order
        position[f, order] = np.arange(n)
        value[f] = column[order]
        present[f] = n - np.isnan(column).sum()
    start = np.arange(n_features + 1, dtype=np.int64) * n
    return Columns(start, present, example.ravel(), value.ravel(), fill, nominal, position)


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


@njit(cache=True, nogil=True, forceinline=True)
def collect_column(
    columns: Columns,
    feature: int,
    rows: NDArray[np.int32],
    weights: Array,
    examples: NDArray[np.int32],
    values: Array,
    bits: NDArray[np.uint64],
) -> tuple[int, int, bool]:
    """Collect a feature of some examples, the `rows`, in ascending order; just they have positive weights.

    `examples` and `values` receive the entries; example N stands for all examples that hold the fill value, if there
    are any. Behind the present entries follow the examples whose value is missing. `bits` is scratch of zeros, a bit
    per example. Returns how many there are of each, and whether some hold the fill value.
    """
    n_examples = weights.shape[0] - 1
    start = columns.start[feature]
    end = columns.start[feature + 1]
    middle = start + columns.present[feature]
    if columns.position.shape[1] > 0 and 3 * rows.shape[0] < n_examples:
        return _collect_few(columns, feature, rows, examples, values, bits)
    m = 0
    for e in range(start, middle):  # no branch: every entry is written, and overwritten if it does not count
        n = columns.example[e]
        examples[m] = n
        values[m] = columns.value[e]
        m += weights[n] > 0.0
    m_all = m
    for e in range(middle, end):
        n = columns.example[e]
        examples[m_all] = n
        m_all += weights[n] > 0.0
    if m_all == rows.shape[0]:
        return m, m_all - m, False
    # All others hold the fill value; their place is before the first larger value.
    fill = columns.fill[feature]
    slot = 0
    while slot < m and values[slot] < fill:
        slot += 1
    for j in range(m_all, slot, -1):
        examples[j] = examples[j - 1]
        values[j] = values[j - 1]
    examples[slot] = n_examples
    values[slot] = fill
    return m + 1, m_all - m, True


@njit(cache=True, nogil=True, forceinline=True)
def _collect_few(
    columns: Columns,
    feature: int,
    rows: NDArray[np.int32],
    examples: NDArray[np.int32],
    values: Array,
    bits: NDArray[np.uint64],
) -> tuple[int, int, bool]:
    """`collect_column` for a dense column and few examples: mark their places, then read the marks."""
    one = np.uint64(1)
    for r in range(rows.shape[0]):
        place = np.uint64(columns.position[feature, rows[r]])
        bits[place >> np.uint64(6)] |= one << (place & np.uint64(63))
    start = columns.start[feature]
    present = columns.present[feature]
    m = 0
    m_all = 0
    for b in range(bits.shape[0]):
        word = bits[b]
        bits[b] = np.uint64(0)
        while word != np.uint64(0):
            p = 64 * b + count_trailing_zeros(word)
            word &= word - one
            examples[m_all] = columns.example[start + p]
            values[m_all] = columns.value[start + p]
            m += p < present
            m_all += 1
    return m, m_all - m, False


@njit(cache=True, nogil=True)
def _count_below(ascending: Array, value: float, or_equal: bool) -> int:
    """How many of some ascending values are below a value, or at most equal to it."""
    low, high = 0, ascending.shape[0]
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < value or (or_equal and ascending[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def narrow_rows(
    columns: Columns,
    feature: int,
    operator: int,
    value: float,
    rows: NDArray[np.int32],
    dropped: NDArray[np.int32],
    marks: NDArray[np.int8],
) -> int:
    """Sort the covered examples by a condition: those that meet it first, each part in its order; returns how many do.

    `dropped` and `marks`, the latter of zeros, are scratch with a place per example.
    """
    start = columns.start[feature]
    end = columns.start[feature + 1]
    present = columns.present[feature]
    kept = 0
    if columns.position.shape[1] > 0:
        # The values from `first` to `last` - 1 in ascending order meet the condition, or just they do not (> and !=).
        ascending = columns.value[start : start + present]
        first = _count_below(ascending, value, False) if operator >= EQUAL else 0
        last = _count_below(ascending, value, True)
        negated = operator in (ABOVE, UNEQUAL)
        for r in range(rows.shape[0]):
            n = rows[r]
            p = columns.position[feature, n]
            rows[kept] = n
            dropped[r - kept] = n
            kept += (((first <= p) & (p < last)) != negated) & (p < present)
    else:
        otherwise = meets(columns.fill[feature], operator, value)
        for e in range(start, end):
            marks[columns.example[e]] = 2 if meets(columns.value[e], operator, value) else 1
        for r in range(rows.shape[0]):
            n = rows[r]
            rows[kept] = n
            dropped[r - kept] = n
            kept += (marks[n] == 2) | ((marks[n] == 0) & otherwise)
        for e in range(start, end):
            marks[columns.example[e]] = 0
    for r in range(kept, rows.shape[0]):
        rows[r] = dropped[r - kept]
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


def code_of_zero(values: tuple[Any, ...]) -> float:
    """The code of the zeros that a sparse X does not store."""
    return float(encode_values(np.zeros(1), np.asarray(values, dtype=np.float64))[0])


def _plain(value: float) -> float | int:
    """A category as people write it: 3, not 3.0."""
    return int(value) if float(value).is_integer() else value
