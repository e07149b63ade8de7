"""A rating is the gain of a condition, and of its negation: Algorithm 2 for all candidates of a feature.

A sweep hands over examples in ascending or descending order of the feature's values, in runs of equal values. Each
rating fills `met`, twice the gain of the examples up to the end of a run, and `unmet`, that of all others: their
sums are what the former leave of the total. Sums start anew after each run of a nominal feature (`restart`), whose
conditions are about single values.

Which kind of rating it is follows from the loss, the heads and the search:

====================  ================================================================================================
kind                  a condition is rated by
====================  ================================================================================================
``SumOfLabels``       q = sum_k g_k^2 / (h_k + l2): losses that decompose
``BoundOfLabels``     the bound, which follows from q: H = diag(|g|) - g g^T
``BestLabel``         the largest term of q: heads of one label, which is yet to be chosen
``OneLabel``          the only term of q: heads of one label that has been chosen
``HeadByLabel``       the gains of the labels that a head is about: heads of some labels, or L1 regularisation
``HeadByBound``       the bound for these labels; for all, if H = diag(a) - b b^T in general
``HeadBySystem``      Eq. 16, solved for these labels: exact search
====================  ================================================================================================

The first three need one division for both sides of a condition, the last three rate side by side.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.compiling.kernel import inner, kernel, plain
from pyboomer.compiling.kinds import by_kind
from pyboomer.compiling.simd import LANES, larger, largest, load, make_zeros, pad, splat, store, total, where_above
from pyboomer.engine.heads import (
    Penalty,
    bound_from_q,
    bound_gain,
    choose_labels,
    combine_bound,
    eliminate,
    rate_each_label,
    shrink,
    unpack,
)
from pyboomer.engine.statistics import (
    Dense,
    Diagonal,
    Layout,
    Outer,
    add_row,
    add_rows,
    count_columns,
    derive_curvature,
    sum_pairs,
    sum_rows,
)
from pyboomer.rules.precision import FLOOR

ROUNDING = 1e-9  # what the error of a sum stays below, relative to its largest part


class Swept(NamedTuple):
    """What is swept: entries (examples, or bins) in order, where runs of equal values end, and their statistics."""

    entries: Rows
    ends: Rows
    statistics: Array
    weights: Array  # what the statistics of an entry are multiplied with ...
    masses: Array  # ... and the weight of its examples


class Rates(NamedTuple):
    """The ratings of conditions: twice the gain of each and of its negation, and the weight of what meets it."""

    met: Array
    unmet: Array
    weight: Array


class SumOfLabels(NamedTuple):
    """See the table above. Like all kinds, it has room for sums: of all covered examples, of those whose value is
    present, and of those up to a condition.
    """

    penalty: Penalty
    whole: Array
    present: Array
    sums: Array


class BoundOfLabels(NamedTuple):
    """See the table above."""

    penalty: Penalty
    whole: Array
    present: Array
    sums: Array


class BestLabel(NamedTuple):
    """See the table above."""

    penalty: Penalty
    whole: Array
    present: Array
    sums: Array


class OneLabel(NamedTuple):
    """See the table above. Statistics are pairs: gradient and curvature of the label."""

    penalty: Penalty
    whole: Array
    present: Array
    sums: Array


class HeadByLabel(NamedTuple):
    """See the table above. `size` and `share` say which labels a head is about, see `heads.choose_labels`."""

    penalty: Penalty
    whole: Array
    present: Array
    sums: Array
    others: Array
    layout: Diagonal
    size: int
    share: float
    gains: Array
    labels: NDArray[np.int64]


class HeadByBound(NamedTuple):
    """See the table above."""

    penalty: Penalty
    whole: Array
    present: Array
    sums: Array
    others: Array
    layout: Outer
    size: int
    share: float
    gains: Array
    labels: NDArray[np.int64]


class HeadBySystem(NamedTuple):
    """See the table above. Sums are those of the Hessians, `Dense`, whatever the layout of the statistics is."""

    penalty: Penalty
    whole: Array
    present: Array
    sums: Array
    others: Array
    layout: Dense
    size: int
    share: float
    gains: Array
    labels: NDArray[np.int64]
    b: int  # the section b of statistics that are not dense; -1 if they are
    A: Array
    L: Array
    z: Array


HeadRating = HeadByLabel | HeadByBound | HeadBySystem
Rating = SumOfLabels | BoundOfLabels | BestLabel | OneLabel | HeadRating


def make_rating(layout: Layout, penalty: Penalty, size: int, share: float, exact: bool) -> Rating:
    """The rating for heads of at most `size` labels, of a gain of at least a share of the largest."""
    k = layout.n_labels
    some = size < k or share > 0
    exact = (exact and isinstance(layout, Outer)) or isinstance(layout, Dense)
    if not (some or exact or penalty.l1 > 0 or (isinstance(layout, Outer) and layout.b > 0)):
        quick = SumOfLabels if isinstance(layout, Diagonal) else BoundOfLabels
        return quick(penalty, *make_zeros((3, count_columns(layout))))
    whole, present, sums, others = make_zeros((4, count_columns(Dense(k) if exact else layout)))
    gains, labels = np.empty(k), np.empty(k, dtype=np.int64)
    if isinstance(layout, Diagonal):
        return HeadByLabel(penalty, whole, present, sums, others, layout, size, share, gains, labels)
    if isinstance(layout, Outer) and not exact:
        return HeadByBound(penalty, whole, present, sums, others, layout, size, share, gains, labels)
    b = layout.b if isinstance(layout, Outer) else -1
    system = make_zeros((k, pad(k))), make_zeros((k, pad(k))), np.empty(k)
    return HeadBySystem(penalty, whole, present, sums, others, Dense(k), size, share, gains, labels, b, *system)


def make_single_rating(layout: Diagonal, penalty: Penalty) -> Rating:
    """The rating for heads of one label that is yet to be chosen."""
    if penalty.l1 > 0:
        return make_rating(layout, penalty, 1, 0.0, exact=False)
    return BestLabel(penalty, *make_zeros((3, count_columns(layout))))


@by_kind
def resize_rating(rating: Rating, n_labels: int) -> Rating:
    """The same rating in the same room, for heads about all of fewer labels."""


@resize_rating.of(SumOfLabels, compile=plain)
def _focus_sum(rating: SumOfLabels, n_labels: int) -> SumOfLabels:
    n = 2 * pad(n_labels)
    return SumOfLabels(rating.penalty, rating.whole[:n], rating.present[:n], rating.sums[:n])


@resize_rating.of(BoundOfLabels, compile=plain)
def _focus_bound(rating: BoundOfLabels, n_labels: int) -> BoundOfLabels:
    n = 2 * pad(n_labels)
    return BoundOfLabels(rating.penalty, rating.whole[:n], rating.present[:n], rating.sums[:n])


@resize_rating.of(HeadByLabel, compile=plain)
def _focus_by_label(rating: HeadByLabel, n_labels: int) -> HeadByLabel:
    layout = Diagonal(n_labels)
    n = count_columns(layout)
    whole, present, sums, others = rating.whole[:n], rating.present[:n], rating.sums[:n], rating.others[:n]
    gains, labels = rating.gains[:n_labels], rating.labels[:n_labels]
    return HeadByLabel(rating.penalty, whole, present, sums, others, layout, n_labels, 0.0, gains, labels)


@resize_rating.of(HeadByBound, compile=plain)
def _focus_by_bound(rating: HeadByBound, n_labels: int) -> HeadByBound:
    layout = Outer(n_labels, rating.layout.b)
    n = count_columns(layout)
    whole, present, sums, others = rating.whole[:n], rating.present[:n], rating.sums[:n], rating.others[:n]
    gains, labels = rating.gains[:n_labels], rating.labels[:n_labels]
    return HeadByBound(rating.penalty, whole, present, sums, others, layout, n_labels, 0.0, gains, labels)


@resize_rating.of(HeadBySystem, compile=plain)
def _focus_by_system(rating: HeadBySystem, n_labels: int) -> HeadBySystem:
    layout = Dense(n_labels)
    n = count_columns(layout)
    whole, present, sums, others = rating.whole[:n], rating.present[:n], rating.sums[:n], rating.others[:n]
    gains, labels, z = rating.gains[:n_labels], rating.labels[:n_labels], rating.z[:n_labels]
    return HeadBySystem(
        rating.penalty,
        whole,
        present,
        sums,
        others,
        layout,
        n_labels,
        0.0,
        gains,
        labels,
        rating.b,
        rating.A,
        rating.L,
        z,
    )


# --- Sums -------------------------------------------------------------------------------------------------------------


@by_kind
def sum_examples(rating: Rating, statistics: Array, rows: Rows, weights: Array, sums: Array) -> None:
    """Sum the statistics of some examples, as far as the rating needs them."""


@by_kind
def add_example(rating: Rating, statistics: Array, n: int, weight: float, sums: Array) -> None:
    """Add the statistics of an example to sums."""


@sum_examples.of(SumOfLabels, BoundOfLabels, BestLabel, HeadByLabel, HeadByBound)
def _sum_rows(rating: Any, statistics: Array, rows: Rows, weights: Array, sums: Array) -> None:
    sum_rows(statistics, 0, rows, weights, sums)


@add_example.of(SumOfLabels, BoundOfLabels, BestLabel, HeadByLabel, HeadByBound)
def _add_row(rating: Any, statistics: Array, n: int, weight: float, sums: Array) -> None:
    add_row(statistics, n, weight, sums)


@sum_examples.of(OneLabel)
def _sum_pairs(rating: OneLabel, pairs: Array, rows: Rows, weights: Array, sums: Array) -> None:
    sum_pairs(pairs, rows, weights, sums)


@add_example.of(OneLabel)
def _add_pair(rating: OneLabel, pairs: Array, n: int, weight: float, sums: Array) -> None:
    sums[0] += weight * pairs[n, 0]
    sums[1] += weight * pairs[n, 1]


@sum_examples.of(HeadBySystem)
def _sum_systems(rating: HeadBySystem, statistics: Array, rows: Rows, weights: Array, sums: Array) -> None:
    for s in range(sums.shape[0]):
        sums[s] = 0.0
    for r in range(rows.shape[0]):
        _add_system(rating, statistics, rows[r], weights[rows[r]], sums)


@add_example.of(HeadBySystem, error_model="numpy")
def _add_system(rating: HeadBySystem, statistics: Array, n: int, weight: float, sums: Array) -> None:
    """H = diag(a) - b b^T, if it is not at hand."""
    if rating.b < 0:
        add_row(statistics, n, weight, sums)
        return
    width = pad(rating.layout.n_labels)
    section = rating.b * width
    position = width
    for k in range(rating.layout.n_labels):
        sums[k] += weight * statistics[n, k]
        b = weight * statistics[n, section + k]
        for j in range(k + 1):
            sums[position + j] -= b * statistics[n, section + j]
        position += k + 1
        sums[position - 1] += weight * statistics[n, width + k]


# --- Rating the runs of a feature -------------------------------------------------------------------------------------


@by_kind
def rate_runs(rating: Rating, swept: Swept, restart: bool, totals: Array, total_weight: float, rates: Rates) -> None:
    """Rate the condition that each run ends, and its negation; see the module's docstring."""


@by_kind
def finish_rates(rating: Rating, n_runs: int, total_weight: float, rates: Rates) -> None:
    """What is left to do when all runs are rated."""


@by_kind
def _join(rating: Rating, q: Any, term: Any) -> Any:
    """What q is with further terms, eight at once: the sum of all, or the largest."""


@by_kind
def _reduce(rating: Rating, q: Any) -> float:
    """The same of these eight."""


@_join.of(SumOfLabels, BoundOfLabels, forceinline=True)
def _add(rating: Any, q: Any, term: Any) -> Any:
    return q + term


@_reduce.of(SumOfLabels, BoundOfLabels, forceinline=True)
def _take_total(rating: Any, q: Any) -> float:
    return total(q)


@_join.of(BestLabel, forceinline=True)
def _take_larger(rating: BestLabel, q: Any, term: Any) -> Any:
    return larger(q, term)


@_reduce.of(BestLabel, forceinline=True)
def _take_largest(rating: BestLabel, q: Any) -> float:
    return largest(q)


@rate_runs.of(SumOfLabels, BoundOfLabels, BestLabel)
def _rate_all(rating: Any, swept: Swept, restart: bool, totals: Array, total_weight: float, rates: Rates) -> None:
    if _may_degenerate(rating.penalty.l2, totals):
        _rate_labels(True, rating, swept, restart, totals, rates)
    else:
        _rate_labels(False, rating, swept, restart, totals, rates)


@inner
def _may_degenerate(l2: float, totals: Array) -> bool:
    """Whether a denominator h + l2 may be degenerate."""
    width = totals.shape[0] // 2
    most = splat(0.0)
    for k in range(width, 2 * width, LANES):
        most = larger(most, load(totals, k))
    return l2 <= 2 * FLOOR + ROUNDING * largest(most)


@inner(error_model="numpy", forceinline=True)
def _rate_labels(guarded: bool, rating: Any, swept: Swept, restart: bool, totals: Array, rates: Rates) -> None:
    """q, or its largest term: of the examples that meet a condition, and of the others.

    One division serves both sides: with r = 1 / (a b), 1 / a = b r and 1 / b = a r. The first argument is known where
    this is compiled in, so that nothing is asked for each label.
    """
    statistics, weights, l2, sums = swept.statistics, swept.weights, rating.penalty.l2, rating.sums
    size, width = statistics.shape[1], sums.shape[0] // 2
    zero = splat(0.0)
    floor = splat(FLOOR)
    for s in range(sums.shape[0]):
        sums[s] = 0.0
    w = 0.0
    j = 0
    for run in range(swept.ends.shape[0]):
        end = swept.ends[run]
        if j < end:
            w += add_rows(statistics, 0, swept.entries[j:end], weights, sums)
            j = end
        n = swept.entries[j]  # the last of the run: rate while adding
        w += weights[n]
        j += 1
        q_met, q_unmet = zero, zero
        for k in range(0, width, LANES):
            g = load(statistics, n * size + k)
            h = load(statistics, n * size + width + k) if size > width else derive_curvature(g)
            g, h = load(sums, k) + weights[n] * g, load(sums, width + k) + weights[n] * h
            store(sums, k, g)
            store(sums, width + k, h)
            a = h + l2
            b = load(totals, width + k) - h + l2
            o = load(totals, k) - g
            p_met, p_unmet = g * g, o * o
            if guarded:
                p_met, p_unmet = where_above(a, floor, p_met, zero), where_above(b, floor, p_unmet, zero)
                a, b = larger(a, floor), larger(b, floor)
            r = 1.0 / (a * b)
            p_met, p_unmet = p_met * (b * r), p_unmet * (a * r)
            q_met, q_unmet = _join(rating, q_met, p_met), _join(rating, q_unmet, p_unmet)
        rates.met[run], rates.unmet[run] = _reduce(rating, q_met), _reduce(rating, q_unmet)
        rates.weight[run] = w
        if restart:
            w = 0.0
            for s in range(sums.shape[0]):
                sums[s] = 0.0


@finish_rates.of(BoundOfLabels, error_model="numpy")
def _turn_into_bounds(rating: BoundOfLabels, n_runs: int, total_weight: float, rates: Rates) -> None:
    """From q to twice the bound of the gain."""
    for run in range(n_runs):
        rates.met[run] = 2 * bound_from_q(rates.met[run], rates.weight[run])
        rates.unmet[run] = 2 * bound_from_q(rates.unmet[run], total_weight - rates.weight[run])


@finish_rates.of(SumOfLabels, BestLabel, OneLabel, HeadByLabel, HeadByBound, HeadBySystem)
def _leave_rates(rating: Any, n_runs: int, total_weight: float, rates: Rates) -> None:
    pass


@rate_runs.of(OneLabel, error_model="numpy")
def _rate_one(
    rating: OneLabel,
    swept: Swept,
    restart: bool,
    totals: Array,
    total_weight: float,
    rates: Rates,
) -> None:
    pairs, weights, met, unmet = swept.statistics, swept.weights, rates.met, rates.unmet
    g, h, w = 0.0, 0.0, 0.0
    j = 0
    for run in range(swept.ends.shape[0]):
        end = swept.ends[run]
        while j <= end:
            n = swept.entries[j]
            g += weights[n] * pairs[n, 0]
            h += weights[n] * pairs[n, 1]
            w += weights[n]
            j += 1
        met[run] = g
        unmet[run] = h
        rates.weight[run] = w
        if restart:
            g, h, w = 0.0, 0.0, 0.0
    G, H, l1, l2 = totals[0], totals[1], rating.penalty.l1, rating.penalty.l2
    for run in range(swept.ends.shape[0]):
        g = shrink(met[run], l1)
        o = shrink(G - met[run], l1)
        a = unmet[run] + l2
        b = H - unmet[run] + l2
        met[run] = g * g / a if a > FLOOR else 0.0
        unmet[run] = o * o / b if b > FLOOR else 0.0


@rate_runs.of(HeadByLabel, HeadByBound, HeadBySystem)
def _rate_heads(rating: Any, swept: Swept, restart: bool, totals: Array, total_weight: float, rates: Rates) -> None:
    """Algorithm 2 in all generality: rate each condition by the sums over the examples that meet it."""
    sums, others = rating.sums, rating.others
    for s in range(sums.shape[0]):
        sums[s] = 0.0
    w = 0.0
    j = 0
    for run in range(swept.ends.shape[0]):
        while j <= swept.ends[run]:
            n = swept.entries[j]
            add_example(rating, swept.statistics, n, swept.weights[n], sums)
            w += swept.masses[n]
            j += 1
        for s in range(sums.shape[0]):
            others[s] = totals[s] - sums[s]
        rates.met[run] = 2 * rate_head(rating, sums, w)
        rates.unmet[run] = 2 * rate_head(rating, others, total_weight - w)
        rates.weight[run] = w
        if restart:
            for s in range(sums.shape[0]):
                sums[s] = 0.0
            w = 0.0


# --- Rating a head ----------------------------------------------------------------------------------------------------


@by_kind
def rate_head(rating: Rating, sums: Array, weight: float) -> float:
    """The gain of Eq. 16 or 17, or the bound of it, of the labels that a head would be about."""


@kernel
def choose_head(rating: Any, sums: Array, weight: float) -> int:
    """Put the labels that a head would be about into `rating.labels`; returns how many."""
    rate_each_label(rating.layout, sums, weight, rating.penalty, rating.gains)
    return choose_labels(rating.gains, rating.size, rating.share, rating.labels)


@inner
def _is_about_all(rating: Any) -> bool:
    return rating.size >= rating.layout.n_labels and rating.share == 0.0


@rate_head.of(HeadByLabel)
def _rate_by_label(rating: HeadByLabel, sums: Array, weight: float) -> float:
    gain = 0.0
    for i in range(choose_head(rating, sums, weight)):
        gain += rating.gains[rating.labels[i]]
    return gain


@rate_head.of(HeadByBound)
def _rate_by_bound(rating: HeadByBound, sums: Array, weight: float) -> float:
    penalty = rating.penalty
    if _is_about_all(rating):
        return bound_gain(rating.layout, sums, weight, penalty)
    width = pad(rating.layout.n_labels)
    section = rating.layout.b * width
    gg, gb, bb = 0.0, 0.0, 0.0
    for i in range(choose_head(rating, sums, weight)):
        k = rating.labels[i]
        d = sums[width + k] + penalty.l2
        if d > FLOOR:
            g, b = shrink(sums[k], penalty.l1), sums[section + k]
            gg += g * g / d
            gb += g * b / d
            bb += b * b / d
    return combine_bound(gg, gb, bb, weight)


@rate_head.of(HeadBySystem)
def _rate_by_system(rating: HeadBySystem, sums: Array, weight: float) -> float:
    A, L, z, labels = rating.A, rating.L, rating.z, rating.labels
    unpack(rating.layout.n_labels, sums, rating.penalty.l1, A, z)
    if _is_about_all(rating):
        return eliminate(A, rating.penalty.l2, z, L)
    m = choose_head(rating, sums, weight)
    for i in range(m):
        z[i] = z[labels[i]]
        for j in range(i + 1):
            A[i, j] = A[labels[i], labels[j]]
    return eliminate(A, rating.penalty.l2, z[:m], L)
