"""Histograms are sums of statistics over the bins of features; candidates are rated from them.

Bins hold sums of float64 statistics or, where statistics are made for a sample, of int32 terms: whole numbers of a
unit. These take a third of the time, as the histogram of a feature fits the first-level cache, and candidates that
cover the same examples have the same gain, in whatever order the examples were added up.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.columns.binned import MISSING, OTHER, SHARED
from pyboomer.compiling.kernel import inner, kernel, plain
from pyboomer.compiling.kinds import by_kind
from pyboomer.compiling.simd import LANES, add_integers, load, make_zeros, prefetch, store
from pyboomer.engine.search.gains import (
    BestLabel,
    BoundOfLabels,
    HeadByBound,
    HeadByLabel,
    HeadBySystem,
    OneLabel,
    Rating,
    SumOfLabels,
    Swept,
    rate_runs,
)
from pyboomer.engine.search.sweeping import Runs, Sample, midpoint, pick_condition
from pyboomer.engine.statistics import Terms
from pyboomer.rules.operators import AT_MOST, EQUAL

BLOCK = 128  # examples whose statistics stay in the cache while they are added to the bins of all drawn features
BLOCK_OF_TERMS = 2048  # the same in the second-level cache, while the histogram of a feature is in the first-level one


class BinSums(NamedTuple):
    """Sums over the bins of some features."""

    sums: Array | Terms  # (features, 256, statistics)
    weight: Array  # (features, 256): the weight of the examples in a bin
    units: Array  # (256,): what the sums are multiplied with; 1, or the unit of whole numbers


class BinBuffer(NamedTuple):
    """Memory for the sums over bins; `sums` is flat, so that it serves any number of labels."""

    sums: Array | Terms
    weight: Array
    units: Array


def make_bin_buffer(n_features: int, size: int) -> BinBuffer:
    """Memory for the sums over the bins of so many features."""
    return BinBuffer(make_zeros((n_features * 256, size)).ravel(), np.empty((n_features, 256)), np.ones(256))


def make_term_buffer(n_features: int, size: int) -> BinBuffer:
    """The same for sums of terms."""
    return BinBuffer(make_terms(n_features * 256, size).ravel(), np.empty((n_features, 256)), np.ones(256))


def make_terms(n: int, size: int) -> Terms:
    """Memory for terms; rows begin where a cache line does."""
    return make_zeros((n, size // 2)).view(np.int32)


@plain
def take_bins(buffer: BinBuffer, n_features: int, size: int) -> BinSums:
    """Sums of so many statistics in a buffer."""
    sums = buffer.sums[: n_features * 256 * size].reshape((n_features, 256, size))
    return BinSums(sums, buffer.weight[:n_features], buffer.units)


@by_kind
def sum_bins(rating: Any, codes: NDArray[np.uint8], features: NDArray[np.int64], sample: Sample, bins: BinSums) -> None:
    """Sum the statistics of the covered examples over the bins of some features."""


@sum_bins.of(SumOfLabels, BoundOfLabels, BestLabel, HeadByLabel, HeadByBound, HeadBySystem)
def _sum_bins(
    rating: Any, codes: NDArray[np.uint8], features: NDArray[np.int64], sample: Sample, bins: BinSums
) -> None:
    sum_bins_of_rows(codes, features, sample, bins)


@sum_bins.of(OneLabel)
def _sum_bins_of_one(
    rating: OneLabel, codes: NDArray[np.uint8], features: NDArray[np.int64], sample: Sample, bins: BinSums
) -> None:
    sum_bins_of_pairs(codes, features, sample, bins)


@kernel(error_model="numpy")
def sum_bins_of_rows(codes: NDArray[np.uint8], features: NDArray[np.int64], sample: Sample, bins: BinSums) -> None:
    """Sum rows of statistics.

    Examples are taken in blocks that fit the cache: their statistics are read from memory once for all features, and
    prefetched while the block before is summed, a share of them with each feature.
    """
    statistics, weights, rows, sums = sample.statistics, sample.weights, sample.rows, bins.sums
    size = statistics.shape[1]
    width = sums.shape[2]
    last = rows.shape[0] - 1
    _clear(bins)
    for start in range(0, rows.shape[0], BLOCK):
        end = min(start + BLOCK, rows.shape[0])
        for i in range(features.shape[0]):
            feature = features[i]
            for r in range(start, end):
                n = rows[r]
                code = np.int64(codes[feature, n])
                weight = weights[n]
                bins.weight[i, code] += weight
                source, target = n * size, (i * 256 + code) * width
                for s in range(0, width, LANES):
                    store(sums, target + s, load(sums, target + s) + weight * load(statistics, source + s))
                soon = rows[min(r + BLOCK, last)] * size
                share = i * LANES
                while share < width:
                    prefetch(statistics, soon + share)
                    share += features.shape[0] * LANES


@kernel
def sum_bins_of_terms(
    codes: NDArray[np.uint8], features: NDArray[np.int64], terms: Terms, rows: Rows, weights: Array, bins: BinSums
) -> None:
    """Sum rows of terms, which have been multiplied by the weights; `codes` has a row for each example, too."""
    size, n_features = terms.shape[1], codes.shape[1]
    flat, sums = codes.reshape(-1), bins.sums
    _clear(bins)
    for start in range(0, rows.shape[0], BLOCK_OF_TERMS):
        end = min(start + BLOCK_OF_TERMS, rows.shape[0])
        for i in range(features.shape[0]):
            feature, first, weight = np.uint64(features[i]), i * 256, bins.weight[i]
            for r in range(start, end):
                n = np.uint64(rows[r])
                code = flat[n * np.uint64(n_features) + feature]
                weight[code] += weights[n]
                source, target = np.int64(n) * size, (first + np.int64(code)) * size
                for s in range(0, size, 2 * LANES):
                    add_integers(sums, target + s, terms, source + s)


@kernel
def sum_bins_of_pairs(codes: NDArray[np.uint8], features: NDArray[np.int64], sample: Sample, bins: BinSums) -> None:
    """Sum pairs of gradient and curvature, of one label."""
    pairs, weights, rows, sums = sample.statistics, sample.weights, sample.rows, bins.sums
    _clear(bins)
    for start in range(0, rows.shape[0], BLOCK):
        end = min(start + BLOCK, rows.shape[0])
        for i in range(features.shape[0]):
            feature = features[i]
            for r in range(start, end):
                n = rows[r]
                code = np.int64(codes[feature, n])
                weight = weights[n]
                bins.weight[i, code] += weight
                sums[i, code, 0] += weight * pairs[n, 0]
                sums[i, code, 1] += weight * pairs[n, 1]


@inner
def _clear(bins: BinSums) -> None:
    for i in range(bins.sums.shape[0]):
        for b in range(256):
            bins.weight[i, b] = 0.0
            for s in range(bins.sums.shape[2]):
                bins.sums[i, b, s] = 0


@kernel
def sweep_bins(
    bins: BinSums,
    nominal: NDArray[np.int8],
    features: NDArray[np.int64],
    rating: Rating,
    runs: Runs,
    min_coverage: float,
    best: float,
) -> tuple[float, np.int64, np.int64, float]:
    """The best condition on some features that beats `best`, given the sums over their bins.

    Its gain, feature (-1: there is none), operator and value: a bin number, or a number between two of them.
    """
    chosen, operator, value = np.int64(-1), np.int64(-1), 0.0
    for i in range(bins.sums.shape[0]):
        best, found, found_value = _sweep_feature(bins, i, nominal[features[i]], rating, runs, min_coverage, best)
        if found >= 0:
            chosen, operator, value = features[i], found, found_value
    return best, chosen, operator, value


@inner
def _sweep_feature(
    bins: BinSums, i: int, nominal: int, rating: Rating, runs: Runs, min_coverage: float, best: float
) -> tuple[float, int, float]:
    """`sweep` for a binned feature: each bin that is not empty is a run."""
    sums, weight, totals = bins.sums[i], bins.weight[i], rating.present
    for s in range(totals.shape[0]):
        totals[s] = 0.0
    total_weight = 0.0
    m = 0
    for b in range(MISSING):
        if weight[b] > 0.0:
            runs.entries.examples[m] = b
            runs.entries.ends[m] = m
            m += 1
            total_weight += weight[b]
            for s in range(totals.shape[0]):
                totals[s] += bins.units[b] * sums[b, s]
    if m < 2:
        return best, -1, 0.0
    is_shared = nominal == SHARED and runs.entries.examples[m - 1] == OTHER
    n_runs = m if nominal and not is_shared else m - 1
    swept = Swept(runs.entries.examples, runs.entries.ends[:n_runs], sums, bins.units, weight)
    rate_runs(rating, swept, nominal > 0, totals, total_weight, runs.rates)
    w = 0.0
    for run in range(n_runs):
        w = weight[runs.entries.examples[run]] + (0.0 if nominal else w)
        runs.rates.weight[run] = w
    best, run, negated = pick_condition(rating, n_runs, total_weight, runs.rates, min_coverage, best)
    if run < 0:
        return best, -1, 0.0
    number = np.float64(runs.entries.examples[run])
    if nominal:
        return best, EQUAL + negated, number
    return best, AT_MOST + negated, midpoint(number, np.float64(runs.entries.examples[run + 1]))
