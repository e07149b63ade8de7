"""A rating is the gain of a condition, and of its negation: Algorithm 2 for all candidates of a feature.

A sweep hands over examples in ascending or descending order of the feature's values, in runs of equal values. Each
function fills `inside`, twice the gain of the examples up to the end of a run, and `outside`, that of all others: their
sums are what the former leave of the total. Sums start anew after each run of a nominal feature (`restart`), whose
conditions are about single values.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.compiling.kernel import kernel
from pyboomer.compiling.simd import LANES, larger, largest, load, splat, store, total, where_above
from pyboomer.engine.heads import (
    bound_from_q,
    bound_gain,
    choose_labels,
    combine_bound,
    eliminate,
    rate_each_label,
    shrink,
    unpack,
)
from pyboomer.engine.statistics import DENSE, OUTER, add_rows, count_columns, pad
from pyboomer.rules.precision import FLOOR

ROUNDING = 1e-9  # what the error of a sum stays below, relative to its largest part

# How candidates are rated: what Algorithm 2 comes down to for a loss, a kind of head and a kind of search.
RATE_DECOMPOSABLE, RATE_SINGLE, RATE_BOUND, RATE_EXACT = range(4)


class Settings(NamedTuple):
    """What a rule is learned with: numbers for compiled code."""

    n_labels: int
    update: int
    layout: int
    rating: int
    head_size: int  # the most labels that a head is about: 1 for single-label heads, all, or some, ...
    head_share: float  # ... of a gain of at least this share of the largest
    learning_rate: float
    l1: float
    l2: float
    n_samples: int  # examples of a sample; 0 for no sampling
    n_drawn_labels: int  # labels that a rule may be about; 0 for one after the other
    n_drawn_features: int
    max_conditions: int
    min_coverage: float
    seed: int


@kernel
def is_partial(settings: Settings) -> bool:
    """Whether heads are about some labels, chosen with the first condition."""
    return settings.rating != RATE_SINGLE and (settings.head_size < settings.n_labels or settings.head_share > 0.0)


@kernel
def is_rated_by_sums(settings: Settings) -> bool:
    """Whether candidates are rated one by one; else all that is needed is q, see `rate_labels`."""
    return settings.rating == RATE_EXACT or settings.layout == OUTER or settings.l1 > 0.0 or is_partial(settings)


class Workspace(NamedTuple):
    """Scratch arrays of a sweep."""

    examples: NDArray[np.uint32]  # the entries of a feature: examples and values, in the order of the sweep
    values: Array
    ends: NDArray[np.uint32]  # the last entry of each run of equal values
    inside: Array  # for each run, the gain of the condition it ends ...
    outside: Array  # ... and of its negation
    weight: Array  # the weight of the examples that meet the condition
    whole: Array  # sums over all covered, sampled examples, ...
    total: Array  # ... and over those of them whose value is present
    sums: Array
    others: Array
    gains: Array  # of each label on its own ...
    labels: NDArray[np.int64]  # ... and the labels chosen
    A: Array  # linear systems of exact search
    L: Array
    z: Array
    pair: Array  # gradient and curvature of each example for the one label of a single-label head
    bits: NDArray[np.uint64]
    bins: Array  # (drawn features, 256, sums): sums over the bins of each drawn feature, if X is binned
    bin_weight: Array  # (drawn features, 256): the weights of the examples in the bins
    ones: Array  # what the sums over a bin are weighted with
    features: NDArray[np.int64]  # the features to draw from
    fixed: NDArray[np.int64]  # those that need not be drawn
    drawn: NDArray[np.int64]  # the features drawn, and the fixed ones


@njit(cache=True, nogil=True)
def make_workspace(n: int, n_features: int, fixed: NDArray[np.int64], binned: bool, settings: Settings) -> Workspace:
    """Allocate the scratch for n examples."""
    n_labels, rating = settings.n_labels, settings.rating
    size = count_columns(DENSE if rating == RATE_EXACT else settings.layout, n_labels)
    k = n_labels if rating == RATE_EXACT else 0
    features = np.empty(n_features - fixed.shape[0], dtype=np.int64)
    n_fixed = 0
    for f in range(n_features):
        if n_fixed < fixed.shape[0] and fixed[n_fixed] == f:
            n_fixed += 1
        else:
            features[f - n_fixed] = f
    n_drawn = min(settings.n_drawn_features, features.shape[0]) + n_fixed
    n_histograms = n_drawn if binned and rating != RATE_EXACT else 0
    return Workspace(
        np.empty(max(n + 1, 256), dtype=np.uint32),
        np.empty(max(n + 1, 256)),
        np.empty(max(n + 1, 257), dtype=np.uint32),
        np.empty(max(n + 1, 256)),
        np.empty(max(n + 1, 256)),
        np.empty(max(n + 1, 256)),
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty(n_labels),
        np.empty(n_labels, dtype=np.int64),
        np.empty((k, pad(n_labels))),
        np.empty((k, pad(n_labels))),
        np.empty(k),
        np.empty((n if rating == RATE_SINGLE else 0, 2)),
        np.zeros(n // 64 + 1, dtype=np.uint64),
        np.empty((n_histograms, 256, size)),
        np.empty((n_histograms, 256)),
        np.ones(257),
        features,
        fixed,
        np.empty(n_drawn, dtype=np.int64),
    )


@kernel(error_model="numpy")
def rate_labels(
    largest_term: bool,
    restart: bool,
    examples: NDArray[np.uint32],
    ends: NDArray[np.uint32],
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
    width = totals.shape[0] // 2
    most = splat(0.0)
    for k in range(width, 2 * width, LANES):
        most = larger(most, load(totals, k))
    guarded = l2 <= 2 * FLOOR + ROUNDING * largest(most)  # else no denominator can be degenerate
    if largest_term and guarded:
        _rate_labels(
            True, True, restart, examples, ends, statistics, weights, totals, l2, inside, outside, weight, sums
        )
    elif largest_term:
        _rate_labels(
            True, False, restart, examples, ends, statistics, weights, totals, l2, inside, outside, weight, sums
        )
    elif guarded:
        _rate_labels(
            False, True, restart, examples, ends, statistics, weights, totals, l2, inside, outside, weight, sums
        )
    else:
        _rate_labels(
            False, False, restart, examples, ends, statistics, weights, totals, l2, inside, outside, weight, sums
        )


@kernel(error_model="numpy", forceinline=True)
def _rate_labels(
    largest_term: bool,
    guarded: bool,
    restart: bool,
    examples: NDArray[np.uint32],
    ends: NDArray[np.uint32],
    statistics: Array,
    weights: Array,
    totals: Array,
    l2: float,
    inside: Array,
    outside: Array,
    weight: Array,
    sums: Array,
) -> None:
    """`rate_labels`, compiled for each way it is called: what never changes is not asked for each label."""
    size = statistics.shape[1]
    width = size // 2
    zero = splat(0.0)
    floor = splat(FLOOR)
    for s in range(size):
        sums[s] = 0.0
    w = 0.0
    j = 0
    for run in range(ends.shape[0]):
        if j < ends[run]:
            w += add_rows(statistics, 0, examples[j : ends[run]], weights, sums)
            j = ends[run]
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
            o = load(totals, k) - g
            p_inside, p_outside = g * g, o * o
            if guarded:
                p_inside, p_outside = where_above(a, floor, p_inside, zero), where_above(b, floor, p_outside, zero)
                a, b = larger(a, floor), larger(b, floor)
            r = 1.0 / (a * b)
            p_inside, p_outside = p_inside * (b * r), p_outside * (a * r)
            q_inside = larger(q_inside, p_inside) if largest_term else q_inside + p_inside
            q_outside = larger(q_outside, p_outside) if largest_term else q_outside + p_outside
        inside[run] = largest(q_inside) if largest_term else total(q_inside)
        outside[run] = largest(q_outside) if largest_term else total(q_outside)
        weight[run] = w
        if restart:
            w = 0.0
            for s in range(size):
                sums[s] = 0.0


@kernel(error_model="numpy", forceinline=True)
def rate_one_label(
    restart: bool,
    examples: NDArray[np.uint32],
    ends: NDArray[np.uint32],
    pair: Array,
    weights: Array,
    G: float,
    H: float,
    l1: float,
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
        g = shrink(inside[run], l1)
        o = shrink(G - inside[run], l1)
        a = outside[run] + l2
        b = H - outside[run] + l2
        inside[run] = g * g / a if a > FLOOR else 0.0
        outside[run] = o * o / b if b > FLOOR else 0.0


@kernel(error_model="numpy")
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


@kernel
def rate_by_sums(
    settings: Settings,
    restart: bool,
    examples: NDArray[np.uint32],
    ends: NDArray[np.uint32],
    statistics: Array,
    weights: Array,
    masses: Array,
    totals: Array,
    total_weight: float,
    inside: Array,
    outside: Array,
    weight: Array,
    workspace: Workspace,
) -> None:
    """Rate each condition by the sums over the examples that meet it: Algorithm 2 in all generality.

    What is swept may be bins: then their sums have weight 1, and `masses` are the weights of the examples in them.
    """
    sums, others = workspace.sums, workspace.others
    sums[:] = 0.0
    w = 0.0
    j = 0
    for run in range(ends.shape[0]):
        while j <= ends[run]:
            n = examples[j]
            add_example(settings, statistics, n, weights[n], sums)
            w += masses[n]
            j += 1
        for s in range(sums.shape[0]):
            others[s] = totals[s] - sums[s]
        inside[run] = 2 * rate_sums(settings, sums, w, workspace)
        outside[run] = 2 * rate_sums(settings, others, total_weight - w, workspace)
        weight[run] = w
        if restart:
            sums[:] = 0.0
            w = 0.0


@kernel
def choose_head(settings: Settings, sums: Array, weight: float, workspace: Workspace) -> int:
    """Put the labels that a head would be about into `workspace.labels`; returns how many."""
    layout = DENSE if settings.rating == RATE_EXACT else settings.layout
    rate_each_label(layout, sums, weight, settings.l1, settings.l2, workspace.gains)
    return choose_labels(workspace.gains, settings.head_size, settings.head_share, workspace.labels)


@kernel
def rate_sums(settings: Settings, sums: Array, weight: float, workspace: Workspace) -> float:
    """The gain of Eq. 16 or 17, or the bound of it; of a partial head, if heads are partial."""
    A, L, z = workspace.A, workspace.L, workspace.z
    complete = not is_partial(settings)
    if settings.rating == RATE_BOUND and complete:
        return bound_gain(settings.layout, sums, weight, settings.l1, settings.l2)
    if settings.rating == RATE_EXACT:
        unpack(settings.n_labels, sums, settings.l1, A, z)
        if complete:
            return eliminate(A, settings.l2, z, L)
    m = choose_head(settings, sums, weight, workspace)
    labels = workspace.labels[:m]
    if settings.rating == RATE_EXACT:
        for i in range(m):
            z[i] = z[labels[i]]
            for j in range(i + 1):
                A[i, j] = A[labels[i], labels[j]]
        return eliminate(A, settings.l2, z[:m], L)
    if settings.rating == RATE_BOUND:
        return _bound_some_labels(settings, sums, weight, labels)
    gain = 0.0
    for i in range(m):
        gain += workspace.gains[labels[i]]
    return gain


@kernel
def _bound_some_labels(settings: Settings, sums: Array, weight: float, labels: NDArray[np.int64]) -> float:
    """`heads.bound_gain` for some of the labels."""
    width = pad(settings.n_labels)
    section = 2 * width if settings.layout == OUTER else 0
    gg, gb, bb = 0.0, 0.0, 0.0
    for i in range(labels.shape[0]):
        d = sums[width + labels[i]] + settings.l2
        if d > FLOOR:
            g, b = shrink(sums[labels[i]], settings.l1), sums[section + labels[i]]
            gg += g * g / d
            gb += g * b / d
            bb += b * b / d
    return combine_bound(gg, gb, bb, weight)


@kernel(error_model="numpy", forceinline=True)
def turn_into_bounds(n_runs: int, total_weight: float, inside: Array, outside: Array, weight: Array) -> None:
    """From q to twice the bound of the gain, for all conditions."""
    for run in range(n_runs):
        inside[run] = 2 * bound_from_q(inside[run], weight[run])
        outside[run] = 2 * bound_from_q(outside[run], total_weight - weight[run])
