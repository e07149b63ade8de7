"""A sweep rates all conditions on a feature and picks the best: the inner loop of Algorithm 3.

It has three steps: collect the values of the covered examples in ascending order, in *runs* of equal values; rate the
condition that each run ends, and its negation; pick the best. Binned features are swept from sums over their bins.

Candidates are visited in a fixed order: thresholds or categories ascending, ``<=`` before ``>`` and ``==`` before
``!=``. One replaces the best so far only if its gain is larger by the relative margin `heads.TIE`, so that rounding
never decides between equals.
"""

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.columns.features import MISSING, NONE, Columns, collect_column
from pyboomer.compiling.kernel import kernel
from pyboomer.compiling.simd import LANES, load, prefetch, store
from pyboomer.engine.rating import (
    RATE_BOUND,
    RATE_SINGLE,
    Settings,
    Workspace,
    add_example,
    is_rated_by_sums,
    rate_by_sums,
    rate_labels,
    rate_one_label,
    turn_into_bounds,
)
from pyboomer.rules.operators import AT_MOST, EQUAL
from pyboomer.rules.precision import TIE
from pyboomer.rules.precision import midpoint as midpoint_in_python

BLOCK = 128  # examples whose statistics stay in the cache while they are added to the bins of all drawn features
midpoint = kernel(midpoint_in_python)


@kernel(forceinline=True)
def _find_runs(values: Array, ends: NDArray[np.uint32]) -> np.int64:
    """Find where runs of equal values end; returns their number."""
    m = values.shape[0]
    if m == 0:
        return np.int64(0)
    runs = NONE
    if values[0] != values[m - 1]:
        for j in range(m - 1):
            ends[runs] = j
            runs += np.uint64(values[j] != values[j + 1])
    ends[runs] = m - 1
    return np.int64(runs) + 1


@kernel(forceinline=True)
def _pick(
    n_runs: int, total_weight: float, settings: Settings, workspace: Workspace, best: float
) -> tuple[float, int, bool]:
    """The first condition among the best that beat `best`: its gain, its run (-1: there is none), whether negated."""
    inside, outside, weight = workspace.inside, workspace.outside, workspace.weight
    if settings.rating == RATE_BOUND and not is_rated_by_sums(settings):
        turn_into_bounds(n_runs, total_weight, inside, outside, weight)
    best_run = -1
    best_negated = False
    limit = 2 * best * (1 + TIE)
    for run in range(n_runs):
        if inside[run] > limit and weight[run] >= settings.min_coverage:
            best_run, best_negated = run, False
            limit = inside[run] * (1 + TIE)
        if outside[run] > limit and total_weight - weight[run] >= settings.min_coverage:
            best_run, best_negated = run, True
            limit = outside[run] * (1 + TIE)
    if best_run >= 0:
        best = 0.5 * (outside[best_run] if best_negated else inside[best_run])
    return best, best_run, best_negated


@kernel(forceinline=True)
def _rate_runs(
    restart: bool,
    examples: NDArray[np.uint32],
    ends: NDArray[np.uint32],
    statistics: Array,
    weights: Array,
    masses: Array,
    label: int,
    totals: Array,
    total_weight: float,
    settings: Settings,
    workspace: Workspace,
    inside: Array,
    outside: Array,
    weight: Array,
) -> None:
    """Rate the runs by sums of rows of statistics: of examples or bins, about all labels or one."""
    if label >= 0:
        rate_one_label(
            restart,
            examples,
            ends,
            statistics,
            weights,
            totals[0],
            totals[1],
            settings.l1,
            settings.l2,
            inside,
            outside,
            weight,
        )
    elif is_rated_by_sums(settings):
        rate_by_sums(
            settings,
            restart,
            examples,
            ends,
            statistics,
            weights,
            masses,
            totals,
            total_weight,
            inside,
            outside,
            weight,
            workspace,
        )
    else:
        rate_labels(
            settings.rating == RATE_SINGLE,
            restart,
            examples,
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


@kernel(forceinline=True)
def sweep_column(
    columns: Columns,
    feature: int,
    statistics: Array,
    weights: Array,
    rows: NDArray[np.uint32],
    n_covered: int,
    whole_weight: float,
    label: int,
    settings: Settings,
    workspace: Workspace,
    best: float,
) -> tuple[float, int, float]:
    """The best condition on a feature that beats `best`: its gain, operator (-1: there is none) and value.

    `workspace.whole` holds the sums over all covered, sampled examples (of its label alone, for a single-label head
    whose label is known). The examples that hold the fill value of a sparse feature are never summed: the others are
    swept towards it from both sides.
    """
    examples, values, ends = workspace.examples, workspace.values, workspace.ends
    inside, outside, weight = workspace.inside, workspace.outside, workspace.weight
    m_below, m_above, n_missing = collect_column(
        columns, feature, rows, weights, examples, values, ends, workspace.bits
    )
    m = m_below + m_above
    filled = m + n_missing < n_covered
    below = _find_runs(values[:m_below], ends)
    above = _find_runs(values[m_below:m], ends[below:])
    n_values = below + filled + above
    if n_values < 2:
        return best, -1, 0.0
    own = workspace.pair if label >= 0 else statistics
    totals, total_weight = workspace.whole, whole_weight
    if n_missing > 0:
        totals = workspace.total
        total_weight -= _sum_present(examples[m : m + n_missing], own, weights, label, settings, workspace)

    # Of two values, the second makes the same conditions as the first. The last threshold would leave nothing above it.
    nominal = columns.nominal[feature]
    by_value = nominal and n_values > 2
    n_runs = n_values if by_value else n_values - 1
    for part in range(3):
        restart, negated, entry, end = by_value, False, 0, 0
        if part == 0:  # upwards to the fill value
            first, last = 0, min(below, n_runs)
        elif part == 1:  # downwards to it; what is swept then meets the negations of the conditions
            first, last = below + (by_value and filled), n_runs
            negated, entry, end = not by_value, m_below, below
        else:  # a nominal feature: whatever is stored meets the negation of the condition on the fill value
            first, last = below, below + (by_value and filled)
            restart, negated, end = False, True, below + above
            ends[end] = m - 1
        if first >= last:
            continue
        _rate_runs(
            restart,
            examples[entry:],
            ends[end : end + last - first],
            own,
            weights,
            weights,
            label,
            totals,
            total_weight,
            settings,
            workspace,
            outside[first:] if negated else inside[first:],
            inside[first:] if negated else outside[first:],
            weight[first:],
        )
        if part == 1:
            _reverse(inside[first:last])
            _reverse(outside[first:last])
            _reverse(weight[first:last])
        if negated:
            for run in range(first, last):
                weight[run] = total_weight - weight[run]
    best, run, negated = _pick(n_runs, total_weight, settings, workspace, best)
    if run < 0:
        return best, -1, 0.0
    value = _read_value(run, below, filled, n_values, m_below, columns.fill[feature], workspace)
    if nominal:
        return best, EQUAL + negated, value
    above_it = _read_value(run + 1, below, filled, n_values, m_below, columns.fill[feature], workspace)
    return best, AT_MOST + negated, midpoint(value, above_it)


@kernel
def _read_value(
    run: int, below: int, filled: bool, n_values: int, m_below: int, fill: float, workspace: Workspace
) -> float:
    """The value of a run, counted in ascending order."""
    if run < below:
        return workspace.values[workspace.ends[run]]
    if filled and run == below:
        return fill
    return workspace.values[m_below + workspace.ends[below + n_values - 1 - run]]


@kernel(forceinline=True)
def _reverse(numbers: Array) -> None:
    n = numbers.shape[0]
    for i in range(n // 2):
        numbers[i], numbers[n - 1 - i] = numbers[n - 1 - i], numbers[i]


@kernel(error_model="numpy")
def sum_bins(
    codes: NDArray[np.uint8],
    features: NDArray[np.int64],
    rows: NDArray[np.uint32],
    statistics: Array,
    first: int,
    weights: Array,
    label: int,
    workspace: Workspace,
) -> None:
    """Sum the statistics of the covered examples over the bins of each drawn feature.

    All columns from `first` on that `workspace.bins` has room for, or those of the one label of a single-label head.
    Examples are taken in blocks that fit the cache: their statistics are read from memory once for all features, and
    asked for while the block before is summed, a share of them with each feature.
    """
    bins, bin_weight, pair = workspace.bins, workspace.bin_weight, workspace.pair
    size = statistics.shape[1]
    width = bins.shape[2]
    last = rows.shape[0] - 1
    for i in range(features.shape[0]):
        for b in range(256):
            bin_weight[i, b] = 0.0
            for s in range(2 if label >= 0 else width):
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
                    source, target = n * size + first, (i * 256 + code) * width
                    for s in range(0, width, LANES):
                        store(bins, target + s, load(bins, target + s) + weight * load(statistics, source + s))
                    soon = rows[min(r + BLOCK, last)] * size + first
                    share = i * LANES
                    while share < width:
                        prefetch(statistics, soon + share)
                        share += features.shape[0] * LANES


@kernel
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
            workspace.ends[m] = m
            m += 1
            total_weight += bin_weight[b]
            for s in range(size):
                sums[s] += bins[b, s]
    if m < 2:
        return best, -1, 0.0
    n_runs = m if nominal else m - 1
    _rate_runs(
        nominal,
        workspace.examples,
        workspace.ends[:n_runs],
        bins,
        workspace.ones,
        bin_weight,
        label,
        sums,
        total_weight,
        settings,
        workspace,
        workspace.inside,
        workspace.outside,
        workspace.weight,
    )
    w = 0.0
    for run in range(n_runs):
        w = bin_weight[workspace.examples[run]] + (0.0 if nominal else w)
        workspace.weight[run] = w
    best, run, negated = _pick(n_runs, total_weight, settings, workspace, best)
    if run < 0:
        return best, -1, 0.0
    bin = workspace.examples[run]
    if nominal:
        return best, EQUAL + negated, bin
    return best, AT_MOST + negated, midpoint(bin, workspace.examples[run + 1])


@kernel
def _sum_present(
    missing: NDArray[np.uint32],
    statistics: Array,
    weights: Array,
    label: int,
    settings: Settings,
    workspace: Workspace,
) -> float:
    """Leave in `workspace.total` what some examples leave of the sums over all; returns their weight."""
    sums = workspace.total
    for s in range(2 if label >= 0 else sums.shape[0]):
        sums[s] = workspace.whole[s]
    removed = 0.0
    for j in range(missing.shape[0]):
        n = missing[j]
        removed += weights[n]
        if label >= 0:
            sums[0] -= weights[n] * statistics[n, 0]
            sums[1] -= weights[n] * statistics[n, 1]
        else:
            add_example(settings, statistics, n, -weights[n], sums)
    return removed
