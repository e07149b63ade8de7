"""A feature is a column of X, made ready for sweeping: its values in ascending order, each with its example.

Dense and sparse data take the same form. Of a column are stored

- the values that are present, ascending, each beside the example it belongs to;
- behind them, the examples whose value is missing (NaN);
- nothing for the other examples, which all hold the column's `fill` value. A dense column has none of those; in a
  sparse one they are the zeros.

A nominal feature holds category codes: the position of a category among the sorted categories of the training data.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pyboomer.kernel import kernel
from pyboomer.simd import count_trailing_zeros

Array = NDArray[np.float64]
Matrix = Any  # a dense array or one of scipy's sparse matrices, which have no types to name
Categories = Mapping[int, tuple[Any, ...]]

AT_MOST, ABOVE, EQUAL, UNEQUAL = range(4)  # codes of the operators <=, >, ==, !=
SHORT = 64  # entries of a sparse column that are sorted by insertion
MISSING = 255  # the bin number of a missing value
NONE = np.uint64(0)  # where to begin counting: an index that may be negative costs a comparison each time it is used


class Columns(NamedTuple):
    """The features of the training data, sorted; plain arrays for compiled code."""

    start: NDArray[np.int64]  # entries of feature f: start[f] to start[f + 1]
    present: NDArray[np.int64]  # how many of them have a value; the rest are missing
    example: NDArray[np.uint32]  # the example of an entry
    value: Array  # the value of an entry, ascending within a feature
    fill: Array  # the value of the examples that have no entry
    nominal: NDArray[np.bool_]
    position: NDArray[np.uint32]  # (L, N): the place of each example among the entries; (L, 0) if X is not dense
    codes: NDArray[
        np.uint8
    ]  # (L, N): bin numbers and category codes, if X is binned and none of the above; else (L, 0)


def sort_columns(X: Matrix, categories: Categories) -> Columns:
    """Sort the columns of X; the nominal ones of a dense X hold category codes, those of a sparse X categories."""
    n, n_features = X.shape
    if sp.issparse(X):
        columns = store_columns(X, categories)
        left = np.zeros(n_features, dtype=np.bool_)
        _sort_short_columns(columns.start, columns.value, columns.example, left)
        for f in np.flatnonzero(left):
            own = slice(columns.start[f], columns.start[f + 1])
            order = np.argsort(columns.value[own], kind="stable")  # NaN sorts last
            columns.value[own], columns.example[own] = columns.value[own][order], columns.example[own][order]
        return columns
    example = np.empty((n_features, n), dtype=np.uint32)
    position = np.empty((n_features, n), dtype=np.uint32)
    value = np.array(X.T, dtype=np.float64, order="C")
    present = np.empty(n_features, dtype=np.int64)
    keys, orders = np.empty((2, n), dtype=np.uint64), np.empty((2, n), dtype=np.uint32)
    counts = np.empty((8, 256), dtype=np.int64)
    _sort_rows(value.view(np.uint64), example, position, present, keys, orders, counts)
    start = np.arange(n_features + 1, dtype=np.int64) * n
    nominal, no_codes = _mark_nominal(n_features, categories), np.empty((n_features, 0), dtype=np.uint8)
    return Columns(start, present, example.ravel(), value.ravel(), np.zeros(n_features), nominal, position, no_codes)


_SIGN, _INFINITY, _LAST = np.uint64(1 << 63), np.uint64(0x7FF << 52), np.uint64(2**64 - 1)
_BYTE, _EIGHT = np.uint64(255), np.uint64(8)


@kernel
def _sort_rows(
    bits: NDArray[np.uint64],
    example: NDArray[np.uint32],
    position: NDArray[np.uint32],
    present: NDArray[np.int64],
    keys: NDArray[np.uint64],
    orders: NDArray[np.uint32],
    counts: NDArray[np.int64],
) -> None:
    """Sort each row, given as the bits of its numbers, in place: byte by byte, the last one first (a radix sort).

    Equal numbers keep their order, and NaN comes last. Three times as fast as sorting by comparisons.
    """
    n = bits.shape[1]
    for f in range(bits.shape[0]):
        for b in range(8):
            for c in range(256):
                counts[b, c] = 0
        present[f] = n
        for i in range(n):
            number = bits[f, i]
            if number & ~_SIGN > _INFINITY:  # NaN
                present[f] -= 1
                key = _LAST
            elif number == _SIGN:  # -0, which is 0
                key = _SIGN
            else:  # so that the order of keys is that of the numbers
                key = ~number if number & _SIGN else number | _SIGN
            keys[0, i] = key
            orders[0, i] = i
            for b in range(8):
                counts[b, np.int64(key & _BYTE)] += 1
                key = key >> _EIGHT
        source = 0
        for b in range(8):
            shift = np.uint64(8 * b)
            if counts[b, np.int64((keys[source, 0] >> shift) & _BYTE)] == n:  # the same byte everywhere
                continue
            begin = 0
            for c in range(256):
                begin += counts[b, c]
                counts[b, c] = begin - counts[b, c]
            for i in range(n):
                key = keys[source, i]
                byte = np.int64((key >> shift) & _BYTE)
                place = counts[b, byte]
                keys[1 - source, place] = key
                orders[1 - source, place] = orders[source, i]
                counts[b, byte] += 1
            source = 1 - source
        for i in range(n):
            key = keys[source, i]
            bits[f, i] = key ^ _SIGN if key & _SIGN else ~key
            example[f, i] = orders[source, i]
            position[f, orders[source, i]] = i


@kernel
def _sort_short_columns(
    start: NDArray[np.int64], value: Array, example: NDArray[np.uint32], left: NDArray[np.bool_]
) -> None:
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


def store_columns(X: Matrix, categories: Categories) -> Columns:
    """The columns of a sparse X, not sorted: enough to tell which examples a rule covers."""
    n_features = X.shape[1]
    X = X.tocsc()
    start = X.indptr.astype(np.int64)
    value, example = _encode_stored(X, categories), X.indices.astype(np.uint32)
    missing = np.flatnonzero(np.isnan(value))
    present = np.diff(start) - np.bincount(np.searchsorted(start, missing, "right") - 1, minlength=n_features)
    fill, nominal = find_fill(n_features, categories), _mark_nominal(n_features, categories)
    nowhere, no_codes = np.empty((n_features, 0), dtype=np.uint32), np.empty((n_features, 0), dtype=np.uint8)
    return Columns(start, present, example, value, fill, nominal, nowhere, no_codes)


def _mark_nominal(n_features: int, categories: Categories) -> NDArray[np.bool_]:
    nominal = np.zeros(n_features, dtype=bool)
    nominal[list(categories)] = True
    return nominal


@kernel
def is_sparse(columns: Columns) -> bool:
    """Whether only some values of a column are stored."""
    return columns.position.shape[1] == 0 and columns.codes.shape[1] == 0


@kernel
def meets(x: float, operator: int, value: float) -> bool:
    """Whether a value meets a condition; a missing one meets none, whichever the operator."""
    if operator == AT_MOST:
        return x <= value
    if operator == ABOVE:
        return x > value
    if operator == EQUAL:
        return x == value
    return x != value and x == x


@kernel(forceinline=True)
def collect_column(
    columns: Columns,
    feature: int,
    rows: NDArray[np.uint32],
    weights: Array,
    examples: NDArray[np.uint32],
    values: Array,
    ends: NDArray[np.uint32],
    bits: NDArray[np.uint64],
) -> tuple[int, int, int]:
    """Collect what is stored of a feature for the covered examples, those of positive weight (if X is dense, `rows`).

    `examples` and `values` receive the entries: ascending those below the fill value (all of them, if X is dense),
    then descending those above it, then those that are missing. `ends` and `bits` are scratch; `bits` are zeros, one
    per example. Returns how many entries there are of each kind.
    """
    start = columns.start[feature]
    end = columns.start[feature + 1]
    middle = start + columns.present[feature]
    if columns.codes.shape[1] > 0:
        return _collect_codes(columns.codes[feature], rows, examples, values, ends)
    if columns.position.shape[1] > 0 and 3 * rows.shape[0] < weights.shape[0]:
        return _collect_few(columns, feature, rows, examples, values, bits)
    entry = columns.example[start:end]
    stored = columns.value[start:middle]
    below, above = stored.shape[0], stored.shape[0]
    if is_sparse(columns):
        below = count_below(stored, columns.fill[feature], False)
        above = count_below(stored, columns.fill[feature], True)
    m = NONE
    for e in range(below):  # no branch: every entry is written, and overwritten if it does not count
        n = entry[e]
        examples[m] = n
        values[m] = stored[e]
        m += np.uint64(weights[n] > 0.0)
    m_below = np.int64(m)
    for e in range(stored.shape[0] - above):
        last = stored.shape[0] - 1 - e
        n = entry[last]
        examples[m] = n
        values[m] = stored[last]
        m += np.uint64(weights[n] > 0.0)
    m_present = np.int64(m)
    for e in range(stored.shape[0], entry.shape[0]):
        n = entry[e]
        examples[m] = n
        m += np.uint64(weights[n] > 0.0)
    return m_below, m_present - m_below, np.int64(m) - m_present


@kernel(forceinline=True)
def _collect_few(
    columns: Columns,
    feature: int,
    rows: NDArray[np.uint32],
    examples: NDArray[np.uint32],
    values: Array,
    bits: NDArray[np.uint64],
) -> tuple[int, int, int]:
    """`collect_column` for a dense column and few examples: mark their places, then read the marks."""
    one = np.uint64(1)
    place_of = columns.position[feature]
    for r in range(rows.shape[0]):
        place = np.uint64(place_of[rows[r]])
        bits[place >> np.uint64(6)] |= one << (place & np.uint64(63))
    start, end = columns.start[feature], columns.start[feature + 1]
    entry, stored = columns.example[start:end], columns.value[start:end]
    present = np.uint64(columns.present[feature])
    m, m_all = NONE, NONE
    for b in range(bits.shape[0]):
        word = bits[b]
        bits[b] = NONE
        while word != NONE:
            p = np.uint64(64 * b + count_trailing_zeros(word))
            word &= word - one
            examples[m_all] = entry[p]
            values[m_all] = stored[p]
            m += np.uint64(p < present)
            m_all += one
    return np.int64(m), 0, np.int64(m_all) - np.int64(m)


@kernel
def _collect_codes(
    codes: NDArray[np.uint8],
    rows: NDArray[np.uint32],
    examples: NDArray[np.uint32],
    values: Array,
    starts: NDArray[np.uint32],
) -> tuple[int, int, int]:
    """`collect_column` for a binned column: sort by counting."""
    for b in range(257):
        starts[b] = 0
    for r in range(rows.shape[0]):
        starts[np.int64(codes[rows[r]]) + 1] += 1
    n_missing = starts[MISSING + 1]
    for b in range(256):
        starts[b + 1] += starts[b]
    for r in range(rows.shape[0]):
        code = codes[rows[r]]
        examples[starts[code]] = rows[r]
        values[starts[code]] = code
        starts[code] += 1
    return rows.shape[0] - n_missing, 0, n_missing


@kernel
def count_below(ascending: Array, value: float, or_equal: bool) -> int:
    """How many of some ascending values are below a value, or at most equal to it."""
    low, high = 0, ascending.shape[0]
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < value or (or_equal and ascending[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def narrow_rows(
    columns: Columns, feature: int, operator: int, value: float, rows: NDArray[np.uint32], dropped: NDArray[np.uint32]
) -> int:
    """Sort covered examples by a condition on a dense feature: those that meet it first; returns how many do.

    Each part keeps its order. `dropped` is scratch with a place per example.
    """
    kept, n_dropped = NONE, NONE
    if columns.codes.shape[1] > 0:
        codes = columns.codes[feature]
        for r in range(rows.shape[0]):
            n = rows[r]
            code = codes[n]
            keep = meets(np.float64(code), operator, value) & (code != MISSING)
            rows[kept] = n
            dropped[n_dropped] = n
            kept += np.uint64(keep)
            n_dropped += np.uint64(not keep)
    else:
        start = columns.start[feature]
        present = columns.present[feature]
        # The values from `first` to `last` - 1 in ascending order meet the condition, or just they do not (> and !=).
        ascending = columns.value[start : start + present]
        first = count_below(ascending, value, False) if operator >= EQUAL else 0
        last = count_below(ascending, value, True)
        negated = operator in (ABOVE, UNEQUAL)
        place_of = columns.position[feature]
        for r in range(rows.shape[0]):
            n = rows[r]
            p = place_of[n]
            keep = (((first <= p) & (p < last)) != negated) & (p < present)
            rows[kept] = n
            dropped[n_dropped] = n
            kept += np.uint64(keep)
            n_dropped += np.uint64(not keep)
    behind = rows[kept:]
    for r in range(behind.shape[0]):
        behind[r] = dropped[r]
    return np.int64(kept)


@kernel
def cover_rows(columns: Columns, body: Array, rows: NDArray[np.uint32], met: NDArray[np.uint32]) -> int:
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
    covered = NONE
    for n in range(n_examples):
        rows[covered] = n
        covered += np.uint64(met[n] == required)
    return np.int64(covered)


def find_categories(X: Matrix, nominal: NDArray[np.bool_]) -> dict[int, tuple[Any, ...]]:
    """The sorted categories of the nominal features of a numeric X (the zeros of a sparse one among them)."""
    categories: dict[int, tuple[Any, ...]] = {}
    if not nominal.any():
        return categories
    if sp.issparse(X):
        # Most sparse nominal features are indicators: one value besides 0, found for all columns at once.
        X = X.tocsc()
        counts = np.diff(X.indptr)
        smallest, largest = np.zeros(len(counts)), np.zeros(len(counts))
        if len(X.data):
            smallest[counts > 0] = np.minimum.reduceat(X.data, X.indptr[:-1][counts > 0])
            largest[counts > 0] = np.maximum.reduceat(X.data, X.indptr[:-1][counts > 0])
        indicator = nominal & (smallest == largest) & (counts < X.shape[0])
        pairs = {one: _list_values({0.0, one}) for one in set(smallest[indicator].tolist())}
        features = np.flatnonzero(indicator).tolist()
        categories.update(zip(features, map(pairs.__getitem__, smallest[indicator].tolist()), strict=True))
        nominal = nominal & ~indicator
    for feature in np.flatnonzero(nominal).tolist():
        if sp.issparse(X):
            values = set(X.data[X.indptr[feature] : X.indptr[feature + 1]].tolist())
            if X.indptr[feature + 1] - X.indptr[feature] < X.shape[0]:
                values.add(0.0)
        else:
            values = set(X[:, feature].tolist())
        categories[feature] = _list_values(values)
    return dict(sorted(categories.items()))


def _list_values(values: set[float]) -> tuple[float | int, ...]:
    """The categories among some values, ascending, as people write them: 3, not 3.0."""
    return tuple(int(value) if value.is_integer() else value for value in sorted(v for v in values if v == v))


def encode(X: Matrix, categories: Categories) -> Matrix:
    """Replace the values of the nominal features of a numeric X, dense or CSC, by category codes.

    A value that was not seen in training gets a code of its own, which meets every ``!=`` and no ``==``.
    The zeros that a sparse X does not store keep standing for category 0, wherever that is among the codes.
    """
    if not categories:
        return X
    X = X.copy()
    if sp.issparse(X):
        X.data = _encode_stored(X, categories)
        return X
    features, offsets, values = _list_categories(categories)
    for i, feature in enumerate(features):
        X[:, feature] = encode_values(X[:, feature], values[offsets[i] : offsets[i + 1]])
    return X


def _encode_stored(X: Matrix, categories: Categories) -> Array:
    """What a CSC matrix stores, encoded."""
    stored = np.array(X.data, dtype=np.float64)
    if categories:
        _encode_entries(*_list_categories(categories), X.indptr.astype(np.int64), stored)
    return stored


def find_fill(n_features: int, categories: Categories) -> Array:
    """What the zeros that a sparse X does not store become: 0, or the code of category 0."""
    fill = np.zeros(n_features)
    if categories:
        features, offsets, values = _list_categories(categories)
        zeros = np.zeros(len(features))
        _encode_entries(np.arange(len(features)), offsets, values, np.arange(len(features) + 1), zeros)
        fill[features] = zeros
    return fill


def encode_values(column: Array, values: Array) -> Array:
    """The codes of a column's values: their positions among `values`, len(values) if unseen, NaN if missing."""
    codes = np.array(column, dtype=np.float64)
    _encode_entries(np.zeros(1, dtype=np.int64), np.array([0, len(values)]), values, np.array([0, len(codes)]), codes)
    return codes


def _list_categories(categories: Categories) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """The nominal features, where the categories of each start, and all categories one after another."""
    features = np.array(list(categories), dtype=np.int64)
    offsets = np.cumsum([0, *map(len, categories.values())])
    return features, offsets, np.fromiter(chain.from_iterable(categories.values()), np.float64)


@kernel
def _encode_entries(
    features: NDArray[np.int64], offsets: NDArray[np.int64], values: Array, indptr: NDArray[np.int64], data: Array
) -> None:
    """Replace the entries of some columns by their positions among the values of the column."""
    for i in range(features.shape[0]):
        own = values[offsets[i] : offsets[i + 1]]
        for e in range(indptr[features[i]], indptr[features[i] + 1]):
            if data[e] == data[e]:  # a missing value stays missing
                code = count_below(own, data[e], False)
                data[e] = code if code < own.shape[0] and own[code] == data[e] else own.shape[0]
