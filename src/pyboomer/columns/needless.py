"""A needless condition excludes no training example that the other conditions of its rule cover.

A rule is learned condition by condition, and what an early one excludes a later one may exclude as well, and more:
`x <= 3` makes `x <= 5` needless, and so may a condition on another feature. The rule is as good without it on all
examples learned from, and shorter to read. See `pyboomer.reference.drop_needless` for the plain definition.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.columns.binned import MISSING, BinnedColumns
from pyboomer.columns.sorted import SortedColumns, find_span
from pyboomer.columns.sparse import SparseColumns, meets
from pyboomer.compiling.kernel import inner, kernel
from pyboomer.compiling.kinds import by_kind
from pyboomer.rules.operators import ABOVE, EQUAL, UNEQUAL

WORD = 64  # examples that share a number: a bit for each
ONE = np.uint64(1)
ALL = ~np.uint64(0)
Bits = NDArray[np.uint64]


def find_heirs(columns: Any, n_examples: int, conditions: Array, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each condition of some rules its own position or, if it is needless, that of the one that makes it so.

    `conditions` has rows of feature, operator and value, as the columns know them; those of rule t are the rows from
    `offsets[t]` up to `offsets[t + 1]`. Conditions are dropped in their order; an heir may be dropped in its turn.
    """
    heirs = np.arange(len(conditions))
    n_words = -(-n_examples // WORD)
    longest = int(np.diff(offsets).max(initial=0))
    if longest > 1:
        met, behind = np.empty((2, longest, n_words), dtype=np.uint64)
        before, lacking = np.empty((2, n_words), dtype=np.uint64)
        _find_heirs(columns, n_examples, conditions, offsets, met, behind, before, lacking, heirs)
    return heirs


@kernel
def _find_heirs(
    columns: Any,
    n_examples: int,
    conditions: Array,
    offsets: NDArray[np.int64],
    met: Bits,
    behind: Bits,
    before: Bits,
    lacking: Bits,
    heirs: NDArray[np.int64],
) -> None:
    n_words = before.shape[0]
    for t in range(offsets.shape[0] - 1):
        start, size = offsets[t], offsets[t + 1] - offsets[t]
        if size < 2:
            continue
        for i in range(size):
            feature, operator = np.int64(conditions[start + i, 0]), np.int64(conditions[start + i, 1])
            _mark(columns, feature, operator, conditions[start + i, 2], n_examples, met[i])
        for w in range(n_words):
            before[w] = behind[size - 1, w] = ALL
        before[n_words - 1] = ALL >> np.uint64(WORD * n_words - n_examples)
        for i in range(size - 1, 0, -1):
            for w in range(n_words):
                behind[i - 1, w] = behind[i, w] & met[i, w]
        for i in range(size):
            if _excludes(before, met[i], behind[i]):
                for w in range(n_words):
                    before[w] &= met[i, w]
                continue
            for w in range(n_words):
                lacking[w] = before[w] & ~met[i, w]
            for j in range(i + 1, size):
                heirs[start + i] = start + j
                left = np.uint64(0)
                for w in range(n_words):
                    lacking[w] &= met[j, w]
                    left |= lacking[w]
                if left == 0:
                    break


@inner
def _excludes(before: Bits, met: Bits, behind: Bits) -> bool:
    """Whether a condition excludes an example that those kept before it and all behind it cover."""
    w = 0
    while w < before.shape[0] and before[w] & ~met[w] & behind[w] == 0:
        w += 1
    return w < before.shape[0]


@inner
def _fill(met: Bits, value: bool) -> None:
    for w in range(met.shape[0]):
        met[w] = ALL if value else np.uint64(0)


@inner(forceinline=True)
def _flip(met: Bits, examples: Rows) -> None:
    for e in range(examples.shape[0]):
        n = np.uint64(examples[e])
        met[n >> np.uint64(6)] ^= ONE << (n & np.uint64(63))


@by_kind
def _mark(columns: Any, feature: int, operator: int, value: float, n_examples: int, met: Bits) -> None:
    """Tell which examples meet a condition: a bit for each."""


@_mark.of(SortedColumns)
def _mark_sorted(columns: SortedColumns, feature: int, operator: int, value: float, n_examples: int, met: Bits) -> None:
    first, last, negated = find_span(columns, feature, operator, value)
    entry = columns.example[feature]
    inside = 2 * (last - first) < n_examples  # flip the fewer: those in the span, or all others
    _fill(met, inside == negated)
    if inside:
        _flip(met, entry[first:last])
    else:
        _flip(met, entry[:first])
        _flip(met, entry[last:])
    missing = entry[columns.present[feature] :]  # which meet no condition
    for e in range(missing.shape[0]):
        n = np.uint64(missing[e])
        met[n >> np.uint64(6)] &= ~(ONE << (n & np.uint64(63)))


@_mark.of(BinnedColumns)
def _mark_binned(columns: BinnedColumns, feature: int, operator: int, value: float, n_examples: int, met: Bits) -> None:
    codes = columns.codes[feature]
    # The codes from `first` to `last` meet the condition, or just they do not; that of a missing value never does.
    last, negated = np.uint8(value), operator in (ABOVE, UNEQUAL)
    first = last if operator >= EQUAL else np.uint8(0)
    for w in range(met.shape[0]):
        some = codes[WORD * w : WORD * (w + 1)]
        word = np.uint64(0)
        for n in range(some.shape[0]):
            code = some[n]
            keep = (((first <= code) & (code <= last)) != negated) & (code != MISSING)
            word |= np.uint64(keep) << np.uint64(n)
        met[w] = word


@_mark.of(SparseColumns)
def _mark_sparse(columns: SparseColumns, feature: int, operator: int, value: float, n_examples: int, met: Bits) -> None:
    fill_meets = meets(columns.fill[feature], operator, value)
    _fill(met, fill_meets)
    for e in range(columns.start[feature], columns.start[feature + 1]):
        if meets(columns.value[e], operator, value) != fill_meets:
            _flip(met, columns.example[e : e + 1])
