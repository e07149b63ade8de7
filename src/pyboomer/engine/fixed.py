"""Fixed point: sums in whole numbers of a unit, which come out the same in whatever order and wherever they are added.

All who add up agree on the unit, a power of 2. A value is rounded to a multiple of it once; from then on nothing is
rounded. The unit is so small that a value keeps up to 44 bits, and so large that no sum exceeds 62.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.compiling.kernel import inner, kernel
from pyboomer.compiling.simd import LANES, add_bits, larger, largest, load, pad, splat, store
from pyboomer.engine.statistics import Outer, fetch_rows

Whole = NDArray[np.int64]

MAGIC = 1.5 * 2.0**52  # added to a number of less than 2**51 in size, it leaves the nearest integer in the last bits
BITS = np.float64(MAGIC).view(np.int64)
LEAST = -1000  # the exponent of the smallest unit: one by it is still a number
BITS_OF_VALUE, BITS_OF_SUM = 44, 62
BLOCK = 256  # examples that stay in the cache while all is added up
SOME = 32  # examples that memory is asked for at once


def choose_unit(largest: float, total: float) -> float:
    """The unit for values of at most `largest` in size whose sizes add up to at most `total`."""
    exponents = [
        math.frexp(size)[1] - bits for size, bits in ((largest, BITS_OF_VALUE), (total, BITS_OF_SUM)) if size > 0
    ]
    return 2.0 ** max([LEAST, *exponents])


def fix_values(values: Array, unit: float) -> Whole:
    """Values in whole numbers of a unit, as `fix` rounds them: halves to even numbers."""
    return np.rint(values / unit).astype(np.int64)


@inner(forceinline=True)
def fix(value: float) -> np.int64:
    """The nearest whole number."""
    return np.float64(value + MAGIC).view(np.int64) - BITS


class Scales(NamedTuple):
    """How many units there are in 1: of statistics, and of weights."""

    statistics: float
    weight: float


@kernel(error_model="numpy")
def add_rows(statistics: Array, rows: Rows, weights: Array, scales: Scales, sums: Whole) -> np.int64:
    """Add the statistics of some examples to sums (Alg. 2, line 1); returns their weight.

    Numbers are rounded by adding what leaves no room for a fraction. Eight at a time, the bits of the outcome are added
    up as whole numbers, and what was added is taken off at the end.
    """
    size, magic, bits = statistics.shape[1], splat(MAGIC), sums.view(np.float64)
    weight = np.int64(0)
    for begin in range(0, rows.shape[0], BLOCK):
        end = min(begin + BLOCK, rows.shape[0])
        fetch_rows(statistics, 0, size, rows[end : end + SOME])
        for s in range(0, size, LANES):
            total = load(bits, s)
            for r in range(begin, end):
                factor = scales.statistics * weights[rows[r]]
                total = add_bits(total, factor * load(statistics, rows[r] * size + s) + magic)
            store(bits, s, total)
        for r in range(begin, end):
            weight += fix(scales.weight * weights[rows[r]])
    for s in range(size):
        sums[s] -= rows.shape[0] * BITS
    return weight


@kernel(error_model="numpy")
def add_systems(
    layout: Outer, statistics: Array, rows: Rows, weights: Array, scales: Scales, row: Array, sums: Whole
) -> np.int64:
    """The same with Hessians diag(a) - b b^T written out: sums are `Dense`; `row` is room for one."""
    width = pad(layout.n_labels)
    section = layout.b * width
    weight = np.int64(0)
    for r in range(rows.shape[0]):
        n = rows[r]
        weight += fix(scales.weight * weights[n])
        position = width
        for k in range(layout.n_labels):
            row[k] = statistics[n, k]
            b = statistics[n, section + k]
            for j in range(k + 1):
                row[position + j] = -b * statistics[n, section + j]
            position += k + 1
            row[position - 1] += statistics[n, width + k]
        factor = scales.statistics * weights[n]
        for s in range(sums.shape[0]):
            sums[s] += fix(factor * row[s])
    return weight


@kernel
def find_largest(statistics: Array, rows: Rows) -> float:
    """The largest statistic of some examples, in size."""
    size, zero = statistics.shape[1], splat(0.0)
    found = zero
    for r in range(rows.shape[0]):
        for s in range(0, size, LANES):
            values = load(statistics, rows[r] * size + s)
            found = larger(found, larger(values, zero - values))
    return largest(found)
