"""A feature is a column of X, made ready for sweeping: its values in ascending order, each with its example.

Dense and sparse data take the same form. Of a column are stored

- the values that are present, ascending, each beside the example it belongs to;
- behind them, the examples whose value is missing (NaN);
- nothing for the other examples, which all hold the column's `fill` value. A dense column has none of those; in a
  sparse one they are the zeros.

A nominal feature holds category codes: the position of a category among the sorted categories of the training data.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pyboomer.arrays import Array, Matrix
from pyboomer.columns.categories import Categories, count_below, encode_stored, find_fill
from pyboomer.compiling.kernel import kernel
from pyboomer.compiling.simd import count_trailing_zeros
from pyboomer.rules.operators import ABOVE, AT_MOST, EQUAL, UNEQUAL

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
    value, example = encode_stored(X, categories), X.indices.astype(np.uint32)
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
) -> tuple[np.int64, np.int64, np.int64]:
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
        last = np.uint64(stored.shape[0] - 1 - e)
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
) -> tuple[np.int64, int, np.int64]:
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
def narrow_rows(
    columns: Columns, feature: int, operator: int, value: float, rows: NDArray[np.uint32], dropped: NDArray[np.uint32]
) -> np.int64:
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
def cover_rows(columns: Columns, body: Array, rows: NDArray[np.uint32], met: NDArray[np.uint32]) -> np.int64:
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
