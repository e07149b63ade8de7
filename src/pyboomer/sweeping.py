"""A sweep rates all conditions on a feature and picks the best: the inner loop of Algorithm 3.

It has three steps: collect the values of the covered examples in ascending order, in *runs* of equal values; rate the
condition that each run ends, and its negation; pick the best. Binned features are swept from sums over their bins.

Candidates are visited in a fixed order: thresholds or categories ascending, ``<=`` before ``>`` and ``==`` before
``!=``. One replaces the best so far only if its gain is larger by the relative margin `heads.TIE`, so that rounding
never decides between equals.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyboomer.features import AT_MOST, EQUAL, MISSING, Columns, collect_column
from pyboomer.heads import TIE
from pyboomer.rating import (
    RATE_BOUND,
    RATE_EXACT,
    RATE_SINGLE,
    Settings,
    Workspace,
    add_example,
    rate_by_solving,
    rate_labels,
    rate_one_label,
    turn_into_bounds,
)
from pyboomer.simd import LANES, load, store
from pyboomer.statistics import OUTER

Array = NDArray[np.float64]

BLOCK = 512  # examples whose statistics stay in the cache while they are added to the bins of all drawn features


@njit(cache=True, nogil=True)
def midpoint(a: float, b: float) -> float:
    """The threshold between two adjacent values a < b: at least a and below b, in floating point too."""
    middle = a / 2 + b / 2
    return middle if a <= middle < b else a


@njit(cache=True, nogil=True, forceinline=True)
def _find_runs(values: Array, ends: NDArray[np.int32]) -> int:
    """Find where runs of equal values end; returns their number."""
    runs = 0
    for j in range(values.shape[0] - 1):
        ends[runs] = j
        runs += values[j] != values[j + 1]
    ends[runs] = values.shape[0] - 1
    return runs + 1


@njit(cache=True, nogil=True, forceinline=True)
def _pick(
    inside: Array, outside: Array, weight: Array, n_runs: int, total_weight: float, min_coverage: float, best: float
) -> tuple[float, int, bool]:
    """The first condition among the best that beat `best`: its gain, its run (-1: there is none), whether negated."""
    best_run = -1
    best_negated = False
    limit = 2 * best * (1 + TIE)
    for run in range(n_runs):
        if inside[run] > limit and weight[run] >= min_coverage:
            best_run, best_negated = run, False
            limit = inside[run] * (1 + TIE)
        if outside[run] > limit and total_weight - weight[run] >= min_coverage:
            best_run, best_negated = run, True
            limit = outside[run] * (1 + TIE)
    if best_run >= 0:
        best = 0.5 * (outside[best_run] if best_negated else inside[best_run])
    return best, best_run, best_negated


@njit(cache=True, nogil=True, forceinline=True)
def _rate_runs(
    nominal: bool,
    ends: NDArray[np.int32],
    statistics: Array,
    weights: Array,
    label: int,
    totals: Array,
    settings: Settings,
    workspace: Workspace,
) -> None:
    """Rate the runs by sums of rows of statistics: of examples or bins, about all labels or one."""
    inside, outside, weight = workspace.inside, workspace.outside, workspace.weight
    if label >= 0:
        rate_one_label(
            nominal,
            workspace.examples,
            ends,
            statistics,
            weights,
            totals[0],
            totals[1],
            settings.l2,
            inside,
            outside,
            weight,
        )
    else:
        rate_labels(
            settings.rating == RATE_SINGLE,
            nominal,
            workspace.examples,
            ends,
            statistics,
            weights,
            totals,
            settings.l2,
            inside,
            outside,
            weight,
            workspace.sums,
        )


@njit(cache=True, nogil=True, forceinline=True)
def sweep_column(
    columns: Columns,
    feature: int,
    statistics: Array,
    weights: Array,
    rows: NDArray[np.int32],
    n_covered: int,
    whole_weight: float,
    label: int,
    settings: Settings,
    workspace: Workspace,
    best: float,
) -> tuple[float, int, float]:
    """The best condition on a feature that beats `best`: its gain, operator (-1: there is none) and value.

    `workspace.whole` holds the sums over all covered, sampled examples (of its label alone, for a single-label head
    whose label is known).
    """
    examples, values = workspace.examples, workspace.values
    m, n_missing, has_fill = collect_column(
        columns, feature, rows, n_covered, weights, examples, values, workspace.bits
    )
    if m < 2 or values[0] == values[m - 1]:
        return best, -1, 0.0
    size = 2 if label >= 0 else workspace.whole.shape[0]
    sums = workspace.total[:size]
    for s in range(size):
        sums[s] = workspace.whole[s]
    total_weight = whole_weight
    if n_missing > 0:
        total_weight -= _subtract_entries(
            examples[m : m + n_missing], statistics, weights, label, settings, workspace, sums
        )
    if has_fill:  # the sums of these examples are what the others leave of the total
        n_examples = weights.shape[0] - 1
        filled = workspace.filled[:size]
        for s in range(size):
            filled[s] = sums[s]
        w = total_weight - _subtract_entries(examples[:m], statistics, weights, label, settings, workspace, filled)
        weights[n_examples] = w
        for s in range(size):
            if label >= 0:
                workspace.pair[n_examples, s] = filled[s] / w
            elif settings.rating != RATE_EXACT:
                statistics[n_examples, s] = filled[s] / w

    nominal = columns.nominal[feature]
    n_runs = _find_runs(values[:m], workspace.ends)
    if not nominal:
        n_runs -= 1  # the last run is all there is: no condition
    ends = workspace.ends[:n_runs]
    if settings.rating == RATE_EXACT or settings.layout == OUTER:
        rate_by_solving(settings, nominal, examples, ends, statistics, weights, total_weight, workspace)
    else:
        own = workspace.pair if label >= 0 else statistics
        _rate_runs(nominal, ends, own, weights, label, sums, settings, workspace)
    return _choose(nominal, n_runs, total_weight, settings, workspace, best)


@njit(cache=True, nogil=True, error_model="numpy")
def sum_bins(
    codes: NDArray[np.uint8],
    features: NDArray[np.int64],
    rows: NDArray[np.int32],
    statistics: Array,
    weights: Array,
    label: int,
    workspace: Workspace,
) -> None:
    """Sum the statistics of the covered examples over the bins of each drawn feature.

    Examples are taken in blocks that fit the cache: their statistics are read from memory once for all features.
    """
    bins, bin_weight, pair = workspace.bins, workspace.bin_weight, workspace.pair
    size = statistics.shape[1]
    for i in range(features.shape[0]):
        for b in range(256):
            bin_weight[i, b] = 0.0
            for s in range(2 if label >= 0 else size):
                bins[i, b, s] = 0.0
    for start in range(0, rows.shape[0], BLOCK):
        end = min(start + BLOCK, rows.shape[0])
        for i in range(features.shape[0]):
            feature = features[i]
            for r in range(start, end):
                n = rows[r]
                code = np.int64(codes[feature, n])
                weight = weights[n]
                bin_weight[i, code] += weight
                if label >= 0:
                    bins[i, code, 0] += weight * pair[n, 0]
                    bins[i, code, 1] += weight * pair[n, 1]
                else:
                    target = (i * 256 + code) * size
                    for s in range(0, size, LANES):
                        store(bins, target + s, load(bins, target + s) + weight * load(statistics, n * size + s))


@njit(cache=True, nogil=True)
def sweep_bins(
    nominal: bool, bins: Array, bin_weight: Array, label: int, settings: Settings, workspace: Workspace, best: float
) -> tuple[float, int, float]:
    """`sweep_column` for a binned feature, given the sums over its bins: each bin that is not empty is a run."""
    size = 2 if label >= 0 else bins.shape[1]
    sums = workspace.total[:size]
    for s in range(size):
        sums[s] = 0.0
    total_weight = 0.0
    m = 0
    for b in range(MISSING):
        if bin_weight[b] > 0.0:
            workspace.examples[m] = b
            workspace.values[m] = b
            workspace.ends[m] = m
            m += 1
            total_weight += bin_weight[b]
            for s in range(size):
                sums[s] += bins[b, s]
    if m < 2:
        return best, -1, 0.0
    n_runs = m if nominal else m - 1
    ends = workspace.ends[:n_runs]
    _rate_runs(nominal, ends, bins, workspace.ones, label, sums, settings, workspace)
    w = 0.0
    for run in range(n_runs):
        w = bin_weight[workspace.examples[run]] + (0.0 if nominal else w)
        workspace.weight[run] = w
    return _choose(nominal, n_runs, total_weight, settings, workspace, best)


@njit(cache=True, nogil=True)
def _choose(
    nominal: bool, n_runs: int, total_weight: float, settings: Settings, workspace: Workspace, best: float
) -> tuple[float, int, float]:
    """Pick a condition and put it in terms of the feature: gain, operator (-1: there is none) and value."""
    if settings.rating == RATE_BOUND and settings.layout != OUTER:
        turn_into_bounds(n_runs, total_weight, workspace.inside, workspace.outside, workspace.weight)
    best, run, negated = _pick(
        workspace.inside, workspace.outside, workspace.weight, n_runs, total_weight, settings.min_coverage, best
    )
    if run < 0:
        return best, -1, 0.0
    end = workspace.ends[run]
    if nominal:
        return best, EQUAL + negated, workspace.values[end]
    return best, AT_MOST + negated, midpoint(workspace.values[end], workspace.values[end + 1])


@njit(cache=True, nogil=True)
def _subtract_entries(
    entries: NDArray[np.int32],
    statistics: Array,
    weights: Array,
    label: int,
    settings: Settings,
    workspace: Workspace,
    sums: Array,
) -> float:
    """Take single examples out of sums; returns their weight."""
    removed = 0.0
    for j in range(entries.shape[0]):
        n = entries[j]
        if n == weights.shape[0] - 1:
            continue
        removed += weights[n]
        if label >= 0:
            sums[0] -= weights[n] * workspace.pair[n, 0]
            sums[1] -= weights[n] * workspace.pair[n, 1]
        else:
            add_example(settings, statistics, n, -weights[n], sums)
    return removed
