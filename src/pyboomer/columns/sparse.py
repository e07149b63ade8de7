"""Sparse columns are the features of a sparse X: of each, the values that are stored, each with its example.

They are ascending; behind them stand the examples whose value is missing (NaN). All other examples hold the column's
`fill` value: zero, or the code of category 0.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Matrix, Rows
from pyboomer.columns.categories import Categories, count_below, encode_stored, find_fill, list_categories, mark_nominal
from pyboomer.columns.entries import START, Entries
from pyboomer.compiling.kernel import inner, kernel
from pyboomer.rules.operators import ABOVE, AT_MOST, EQUAL

SHORT = 64  # entries of a column that are sorted by insertion
ONE = np.uint64(1)


class SparseColumns(NamedTuple):
    """The features of a sparse X, one after another."""

    start: NDArray[np.int64]  # entries of feature f: start[f] to start[f + 1]
    present: NDArray[np.int64]  # how many of them have a value; the rest are missing
    outline: NDArray[np.int64]  # (F, 3), once sorted: how many are below the fill value and above it; if values differ
    example: NDArray[np.uint32]  # the example of an entry
    value: Array  # the value of an entry, ascending within a feature
    fill: Array  # the value of the examples that have no entry
    nominal: NDArray[np.bool_]


def store_columns(X: Matrix, categories: Categories) -> SparseColumns:
    """The columns of a sparse X, whose nominal features hold categories; not sorted: enough to tell who is covered."""
    n_features = X.shape[1]
    X = X.tocsc()
    start = X.indptr.astype(np.int64)
    listed = list_categories(categories)
    value, example = encode_stored(X, listed), X.indices.astype(np.uint32)
    missing = np.flatnonzero(np.isnan(value))
    present = np.diff(start) - np.bincount(np.searchsorted(start, missing, "right") - 1, minlength=n_features)
    fill, nominal = find_fill(n_features, listed), mark_nominal(n_features, listed.features)
    return SparseColumns(start, present, np.zeros((n_features, 3), dtype=np.int64), example, value, fill, nominal)


def sort_stored(X: Matrix, categories: Categories) -> SparseColumns:
    """The columns of a sparse X, sorted."""
    columns = store_columns(X, categories)
    left = np.zeros(X.shape[1], dtype=np.bool_)
    _sort_short_columns(columns.start, columns.value, columns.example, left)
    for f in np.flatnonzero(left):
        own = slice(columns.start[f], columns.start[f + 1])
        order = np.argsort(columns.value[own], kind="stable")  # NaN sorts last
        columns.value[own], columns.example[own] = columns.value[own][order], columns.example[own][order]
    _outline_columns(columns)
    return columns


@kernel
def _sort_short_columns(start: NDArray[np.int64], value: Array, example: Rows, left: NDArray[np.bool_]) -> None:
    """Sort the entries of the columns that have few, by insertion: most often they are in order already.

    `left` receives whether a longer column is yet to be sorted.
    """
    for f in range(start.shape[0] - 1):
        if start[f + 1] - start[f] > SHORT:
            for i in range(start[f] + 1, start[f + 1]):
                left[f] |= not value[i - 1] <= value[i]
            continue
        for i in range(start[f] + 1, start[f + 1]):
            x, n = value[i], example[i]
            place = i
            while place > start[f] and (value[place - 1] > x or (x == x and value[place - 1] != value[place - 1])):
                value[place] = value[place - 1]
                example[place] = example[place - 1]
                place -= 1
            value[place] = x
            example[place] = n


@kernel
def _outline_columns(columns: SparseColumns) -> None:
    """Fill `columns.outline`, so that a sweep looks at values only where there are several."""
    for f in range(columns.present.shape[0]):
        n = columns.present[f]
        stored, fill = columns.value[columns.start[f] : columns.start[f] + n], columns.fill[f]
        columns.outline[f, 0] = count_below(stored, fill, False)
        columns.outline[f, 1] = n - count_below(stored, fill, True)
        columns.outline[f, 2] = n > 0 and stored[0] != stored[n - 1]


@inner
def meets(x: float, operator: int, value: float) -> bool:
    """Whether a value meets a condition; a missing one meets none, whichever the operator."""
    if operator == AT_MOST:
        return x <= value
    if operator == ABOVE:
        return x > value
    if operator == EQUAL:
        return x == value
    return x != value and x == x


@inner(forceinline=True)
def collect_stored(
    columns: SparseColumns, feature: int, weights: Array, entries: Entries
) -> tuple[np.int64, np.int64, np.int64]:
    """Collect what is stored of a feature for the covered examples, those of positive weight.

    Ascending those below the fill value, then descending those above it, then those that are missing. Returns how many
    there are of each kind.
    """
    f = np.uint64(feature)
    examples, values, entry, stored = entries.examples, entries.values, columns.example, columns.value
    below, above, differ = columns.outline[f, 0], columns.outline[f, 1], columns.outline[f, 2]
    first, end = np.uint64(columns.start[f]), np.uint64(columns.start[f + ONE])
    absent = first + np.uint64(columns.present[f])  # where those that are missing begin
    m = START
    for e in range(first, first + np.uint64(below)):  # no branch: all are written, and overwritten if they do not count
        n = entry[e]
        examples[m] = n
        if differ:
            values[m] = stored[e]
        m += np.uint64(weights[n] > 0.0)
    m_below = m
    for i in range(np.uint64(above)):
        last = absent - i - ONE
        n = entry[last]
        examples[m] = n
        if differ:
            values[m] = stored[last]
        m += np.uint64(weights[n] > 0.0)
    m_present = m
    if not differ and m > START:  # the first value and the last one tell that no other is different
        values[START] = values[m - ONE] = stored[first]
    for e in range(absent, end):
        n = entry[e]
        examples[m] = n
        m += np.uint64(weights[n] > 0.0)
    return np.int64(m_below), np.int64(m_present - m_below), np.int64(m - m_present)


@inner
def find_changed(
    columns: SparseColumns, feature: int, operator: int, value: float, weights: Array, changed: Rows
) -> np.int64:
    """Find the covered examples for which a condition is met otherwise than for the fill value; returns how many."""
    fill_meets = meets(columns.fill[feature], operator, value)
    entry = columns.example[columns.start[feature] : columns.start[feature + 1]]
    stored = columns.value[columns.start[feature] : columns.start[feature + 1]]
    count = START
    for e in range(entry.shape[0]):
        n = entry[e]
        changed[count] = n
        count += np.uint64((weights[n] > 0.0) & (meets(stored[e], operator, value) != fill_meets))
    return np.int64(count)


@inner
def cover_rows(columns: SparseColumns, body: Array, rows: Rows, met: Rows) -> np.int64:
    """Find the examples that a body covers, by looking at the stored values of sparse features only.

    An example is covered if it holds no stored value that fails a condition which the fill value meets, and a stored
    value that meets each of the other conditions. `rows` receives the examples; `met` is scratch with a place for each.
    Returns how many are covered.
    """
    n_examples = rows.shape[0]
    for n in range(n_examples):
        met[n] = 0
    required = 0
    out_of_reach = 1 + body.shape[0]
    for c in range(body.shape[0]):
        feature, operator, value = np.int64(body[c, 0]), np.int64(body[c, 1]), body[c, 2]
        fill_meets = meets(columns.fill[feature], operator, value)
        required += not fill_meets
        if_met, if_not = (0, out_of_reach) if fill_meets else (1, 0)
        entry = columns.example[columns.start[feature] : columns.start[feature + 1]]
        stored = columns.value[columns.start[feature] : columns.start[feature + 1]]
        for e in range(entry.shape[0]):
            met[entry[e]] += if_met if meets(stored[e], operator, value) else if_not
    covered = START
    for n in range(n_examples):
        rows[covered] = n
        covered += np.uint64(met[n] == required)
    return np.int64(covered)
