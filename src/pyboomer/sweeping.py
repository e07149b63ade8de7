"""A sweep rates all conditions on a feature and picks the best: the inner loop of Algorithm 3.

It has three steps: collect the values of the covered examples in ascending order, in *runs* of equal values; rate the
condition that each run ends, and its negation; pick the best. Binned features are swept from sums over their bins.

Candidates are visited in a fixed order: thresholds or categories ascending, ``<=`` before ``>`` and ``==`` before
``!=``. One replaces the best so far only if its gain is larger by the relative margin `heads.TIE`, so that rounding
never decides between equals.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyboomer.features import AT_MOST, EQUAL, MISSING, Columns, collect_column
from pyboomer.heads import FLOOR, TIE, bound_from_q, bound_gain, eliminate, unpack
from pyboomer.simd import LANES, larger, largest, load, splat, store, total, where_above
from pyboomer.statistics import DENSE, OUTER, count_columns, pad

Array = NDArray[np.float64]

# How candidates are rated: what Algorithm 2 comes down to for a loss, a kind of head and a kind of search.
RATE_DECOMPOSABLE, RATE_SINGLE, RATE_BOUND, RATE_EXACT = range(4)
BLOCK = 512  # examples whose statistics stay in the cache while they are added to the bins of all drawn features


class Settings(NamedTuple):
    """What a rule is learned with: numbers for compiled code."""

    n_labels: int
    update: int
    layout: int
    rating: int
    learning_rate: float
    l2: float
    bootstrap: bool
    n_drawn_features: int
    max_conditions: int
    min_coverage: float
    seed: int


class Workspace(NamedTuple):
    """Scratch arrays of a sweep."""

    examples: NDArray[np.int32]  # the entries of a feature: examples and values, ascending
    values: Array
    ends: NDArray[np.int32]  # the last entry of each run of equal values
    inside: Array  # for each run, the gain of the condition it ends ...
    outside: Array  # ... and of its negation
    weight: Array  # the weight of the examples that meet the condition
    whole: Array  # sums over all covered, sampled examples, ...
    total: Array  # ... and over those of them whose value is present
    filled: Array  # ... and over those that hold the fill value of a sparse feature
    sums: Array
    others: Array
    A: Array  # linear systems of exact search
    L: Array
    z: Array
    pair: Array  # gradient and curvature of each example for the one label of a single-label head
    bits: NDArray[np.uint64]
    bins: Array  # (drawn features, 256, sums): sums over the bins of each drawn feature, if X is binned
    bin_weight: Array  # (drawn features, 256): the weights of the examples in the bins
    ones: Array  # what the sums over a bin are weighted with


@njit(cache=True, nogil=True)
def make_workspace(n: int, layout: int, n_labels: int, rating: int, n_histograms: int) -> Workspace:
    """Allocate the scratch for n examples."""
    size = count_columns(DENSE if rating == RATE_EXACT else layout, n_labels)
    k = n_labels if rating == RATE_EXACT else 0
    return Workspace(
        np.empty(max(n + 1, 256), dtype=np.int32),
        np.empty(max(n + 1, 256)),
        np.empty(max(n + 1, 256), dtype=np.int32),
        np.empty(max(n + 1, 256)),
        np.empty(max(n + 1, 256)),
        np.empty(max(n + 1, 256)),
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty((k, pad(n_labels))),
        np.empty((k, pad(n_labels))),
        np.empty(k),
        np.empty((n + 1 if rating == RATE_SINGLE else 0, 2)),
        np.zeros(n // 64 + 1, dtype=np.uint64),
        np.empty((n_histograms, 256, size)),
        np.empty((n_histograms, 256)),
        np.ones(257),
    )


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


# --- Rating -----------------------------------------------------------------------------------------------------------
# Each function fills `inside` and `outside`. `ends` are those of the runs to rate; sums start anew after each run of a
# nominal feature (`restart`), whose conditions are about single values.


@njit(cache=True, nogil=True, error_model="numpy")
def _rate_labels(
    largest_term: bool,
    restart: bool,
    examples: NDArray[np.int32],
    ends: NDArray[np.int32],
    statistics: Array,
    weights: Array,
    totals: Array,
    l2: float,
    inside: Array,
    outside: Array,
    weight: Array,
    sums: Array,
) -> None:
    """q = sum_k g_k^2 / (h_k + l2), or its largest term: of the examples that meet a condition, and of the others.

    One division serves both sides: with r = 1 / (a b), 1 / a = b r and 1 / b = a r.
    """
    size = statistics.shape[1]
    width = size // 2
    zero = splat(0.0)
    floor = splat(FLOOR)
    for s in range(size):
        sums[s] = 0.0
    w = 0.0
    j = 0
    for run in range(ends.shape[0]):
        while j < ends[run]:
            n = examples[j]
            for s in range(0, size, LANES):
                store(sums, s, load(sums, s) + weights[n] * load(statistics, n * size + s))
            w += weights[n]
            j += 1
        n = examples[j]  # the last of the run: rate while adding
        w += weights[n]
        j += 1
        q_inside, q_outside = zero, zero
        for k in range(0, width, LANES):
            g = load(sums, k) + weights[n] * load(statistics, n * size + k)
            h = load(sums, width + k) + weights[n] * load(statistics, n * size + width + k)
            store(sums, k, g)
            store(sums, width + k, h)
            a = h + l2
            b = load(totals, width + k) - h + l2
            r = 1.0 / (a * b)
            o = load(totals, k) - g
            p_inside = where_above(a, floor, g * g * (b * r), zero)
            p_outside = where_above(b, floor, o * o * (a * r), zero)
            q_inside = larger(q_inside, p_inside) if largest_term else q_inside + p_inside
            q_outside = larger(q_outside, p_outside) if largest_term else q_outside + p_outside
        inside[run] = largest(q_inside) if largest_term else total(q_inside)
        outside[run] = largest(q_outside) if largest_term else total(q_outside)
        weight[run] = w
        if restart:
            w = 0.0
            for s in range(size):
                sums[s] = 0.0


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _rate_label(
    restart: bool,
    examples: NDArray[np.int32],
    ends: NDArray[np.int32],
    pair: Array,
    weights: Array,
    G: float,
    H: float,
    l2: float,
    inside: Array,
    outside: Array,
    weight: Array,
) -> None:
    """q = g^2 / (h + l2) for the one label of a single-label head."""
    g, h, w = 0.0, 0.0, 0.0
    j = 0
    for run in range(ends.shape[0]):
        end = ends[run]
        while j <= end:
            n = examples[j]
            g += weights[n] * pair[n, 0]
            h += weights[n] * pair[n, 1]
            w += weights[n]
            j += 1
        inside[run] = g
        outside[run] = h
        weight[run] = w
        if restart:
            g, h, w = 0.0, 0.0, 0.0
    for run in range(ends.shape[0]):
        g = inside[run]
        h = outside[run]
        a = h + l2
        b = H - h + l2
        inside[run] = g * g / a if a > FLOOR else 0.0
        outside[run] = (G - g) * (G - g) / b if b > FLOOR else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def add_example(settings: Settings, statistics: Array, n: int, weight: float, sums: Array) -> None:
    """Add an example to sums: of its own layout, or for exact search `DENSE`, with H = diag(a) - b b^T."""
    if settings.rating != RATE_EXACT or settings.layout == DENSE:
        for s in range(0, sums.shape[0], LANES):
            store(sums, s, load(sums, s) + weight * load(statistics, n * sums.shape[0] + s))
        return
    width = pad(settings.n_labels)
    section = 2 * width if settings.layout == OUTER else 0
    position = width
    for k in range(settings.n_labels):
        sums[k] += weight * statistics[n, k]
        b = weight * statistics[n, section + k]
        for j in range(k + 1):
            sums[position + j] -= b * statistics[n, section + j]
        position += k + 1
        sums[position - 1] += weight * statistics[n, width + k]


@njit(cache=True, nogil=True)
def _rate_by_solving(
    settings: Settings,
    restart: bool,
    examples: NDArray[np.int32],
    ends: NDArray[np.int32],
    statistics: Array,
    weights: Array,
    total_weight: float,
    workspace: Workspace,
) -> None:
    """The gain of Eq. 16, or the bound of a user's own loss, from sums over the examples."""
    sums, others = workspace.sums, workspace.others
    sums[:] = 0.0
    w = 0.0
    j = 0
    for run in range(ends.shape[0]):
        while j <= ends[run]:
            n = examples[j]
            if n == weights.shape[0] - 1:
                for s in range(sums.shape[0]):
                    sums[s] += workspace.filled[s]
            else:
                add_example(settings, statistics, n, weights[n], sums)
            w += weights[n]
            j += 1
        for s in range(sums.shape[0]):
            others[s] = workspace.total[s] - sums[s]
        workspace.inside[run] = 2 * _rate_sums(settings, sums, w, workspace)
        workspace.outside[run] = 2 * _rate_sums(settings, others, total_weight - w, workspace)
        workspace.weight[run] = w
        if restart:
            sums[:] = 0.0
            w = 0.0


@njit(cache=True, nogil=True)
def _rate_sums(settings: Settings, sums: Array, weight: float, workspace: Workspace) -> float:
    if settings.rating == RATE_BOUND:
        return bound_gain(settings.layout, sums, weight, settings.l2)
    unpack(settings.n_labels, sums, workspace.A, workspace.z)
    return eliminate(workspace.A, settings.l2, workspace.z, workspace.L)


# --- Picking ----------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _turn_into_bounds(n_runs: int, total_weight: float, inside: Array, outside: Array, weight: Array) -> None:
    """From q to twice the bound of the gain, for all conditions."""
    for run in range(n_runs):
        inside[run] = 2 * bound_from_q(inside[run], weight[run])
        outside[run] = 2 * bound_from_q(outside[run], total_weight - weight[run])


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
    if label >= 0:
        _rate_label(
            nominal,
            examples,
            ends,
            workspace.pair,
            weights,
            sums[0],
            sums[1],
            settings.l2,
            workspace.inside,
            workspace.outside,
            workspace.weight,
        )
    elif settings.rating == RATE_EXACT or settings.layout == OUTER:
        _rate_by_solving(settings, nominal, examples, ends, statistics, weights, total_weight, workspace)
    else:
        _rate_labels(
            settings.rating == RATE_SINGLE,
            nominal,
            examples,
            ends,
            statistics,
            weights,
            sums,
            settings.l2,
            workspace.inside,
            workspace.outside,
            workspace.weight,
            workspace.sums,
        )
        if settings.rating == RATE_BOUND:
            _turn_into_bounds(n_runs, total_weight, workspace.inside, workspace.outside, workspace.weight)
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
                code = codes[feature, n]
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
    inside, outside, weight = workspace.inside, workspace.outside, workspace.weight
    if label >= 0:
        _rate_label(
            nominal,
            workspace.examples,
            ends,
            bins,
            workspace.ones,
            sums[0],
            sums[1],
            settings.l2,
            inside,
            outside,
            weight,
        )
    else:
        _rate_labels(
            settings.rating == RATE_SINGLE,
            nominal,
            workspace.examples,
            ends,
            bins,
            workspace.ones,
            sums,
            settings.l2,
            inside,
            outside,
            weight,
            workspace.sums,
        )
    w = 0.0
    for run in range(n_runs):
        w = bin_weight[workspace.examples[run]] + (0.0 if nominal else w)
        weight[run] = w
    if label < 0 and settings.rating == RATE_BOUND:
        _turn_into_bounds(n_runs, total_weight, inside, outside, weight)
    return _choose(nominal, n_runs, total_weight, settings, workspace, best)


@njit(cache=True, nogil=True)
def _choose(
    nominal: bool, n_runs: int, total_weight: float, settings: Settings, workspace: Workspace, best: float
) -> tuple[float, int, float]:
    """Pick a condition and put it in terms of the feature: gain, operator (-1: there is none) and value."""
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
