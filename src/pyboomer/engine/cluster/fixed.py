"""Fixed point: sums in whole numbers of a unit, which come out the same in whatever order and wherever they are added.

All who add up agree on the unit, a power of 2. A value is rounded to a multiple of it once; from then on nothing is
rounded. The unit is so small that a value keeps up to 44 bits, and so large that no sum exceeds 62.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.compiling.kernel import inner, kernel
from pyboomer.compiling.simd import LANES, load, pad, splat, store
from pyboomer.engine.cpu.sampled import Odds, derive, fetch_odds
from pyboomer.engine.statistics import Outer, fetch_rows

Whole = NDArray[np.int64]

MAGIC = 1.5 * 2.0**52  # added to a number of less than 2**51 in size, it leaves the nearest integer in the last bits
BITS = np.float64(MAGIC).view(np.int64)
LEAST = -1000  # the exponent of the smallest unit: one by it is still a number
BITS_OF_VALUE, BITS_OF_SUM = 44, 62
BLOCK = 256  # examples that stay in the cache while all is added up; sums of as many values fit 53 bits
SOME = 32  # examples that memory is asked for at once, see `cpu.sampled.BLOCK`


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


@inner(error_model="numpy", forceinline=True)
def _flush(vector: Any, whole: Whole, position: int, room: Array) -> None:
    """Add eight sums, whole numbers already, to what they are sums of."""
    store(room, 0, vector)
    for i in range(LANES):
        whole[position + i] += np.int64(room[i])


@kernel(error_model="numpy")
def add_rows(statistics: Array, rows: Rows, weights: Array, scales: Scales, room: Array, sums: Whole) -> np.int64:
    """Add the statistics of some examples to sums (Alg. 2, line 1); returns their weight.

    Of a block, numbers are rounded by adding what leaves no room for a fraction, and added up as floats: exactly, since
    so few of them stay below 2**53. `room` is for eight numbers.
    """
    size, magic = statistics.shape[1], splat(MAGIC)
    weight = np.int64(0)
    for begin in range(0, rows.shape[0], BLOCK):
        end = min(begin + BLOCK, rows.shape[0])
        fetch_rows(statistics, 0, size, rows[end : end + SOME])
        for s in range(0, size, LANES):
            total = splat(0.0)
            for r in range(begin, end):
                value = (scales.statistics * weights[rows[r]]) * load(statistics, rows[r] * size + s)
                total = total + ((value + magic) - magic)
            _flush(total, sums, s, room)
        for r in range(begin, end):
            weight += fix(scales.weight * weights[rows[r]])
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


@kernel(error_model="numpy")
def add_odds(odds: Odds, rows: Rows, weights: Array, scales: Scales, room: Array, sums: Whole) -> np.int64:
    """The same where statistics are computed from odds, see `cpu.sampled`."""
    width, magic = odds.shape[1], splat(MAGIC)
    weight = np.int64(0)
    fetch_odds(odds, rows, 0)
    for begin in range(0, rows.shape[0], SOME):
        end = min(begin + SOME, rows.shape[0])
        fetch_odds(odds, rows, end)
        for k in range(0, width, LANES):
            one, two = splat(0.0), splat(0.0)
            for r in range(begin, end):
                g, h = derive(odds, rows[r] * width + k)
                factor = scales.statistics * weights[rows[r]]
                one = one + ((factor * g + magic) - magic)
                two = two + ((factor * h + magic) - magic)
            _flush(one, sums, k, room)
            _flush(two, sums, width + k, room)
        for r in range(begin, end):
            weight += fix(scales.weight * weights[rows[r]])
    return weight


@kernel(error_model="numpy")
def add_bins(
    codes: NDArray[np.uint8],
    features: NDArray[np.int64],
    terms: Array,
    rows: Rows,
    weights: Array,
    scales: Scales,
    sums: Whole,
    weight: Whole,
) -> None:
    """Add the statistics of some examples to sums over the bins of some features, and their weights."""
    for begin in range(0, rows.shape[0], BLOCK):
        some = rows[begin : begin + BLOCK]
        for i in range(features.shape[0]):
            for r in range(some.shape[0]):
                n = some[r]
                b = codes[features[i], n]
                weight[i, b] += fix(scales.weight * weights[n])
                factor = scales.statistics * weights[n]
                for s in range(sums.shape[2]):
                    sums[i, b, s] += fix(factor * terms[n, s])


@kernel
def find_largest(statistics: Array, rows: Rows) -> float:
    """The largest statistic of some examples, in size."""
    largest = 0.0
    for r in range(rows.shape[0]):
        for s in range(statistics.shape[1]):
            largest = max(largest, abs(statistics[rows[r], s]))
    return largest
