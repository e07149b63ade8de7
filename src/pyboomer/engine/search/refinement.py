"""The body of a rule is learned condition by condition: Algorithm 3.

Of the drawn features, in ascending order, the best condition is taken if it improves the rule; the sample is then
filtered to the examples that meet it, and the next refinement begins. Where features are binned and many examples are
covered, candidates are rated from histograms; otherwise the examples are swept one by one.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.columns.binned import BinnedColumns
from pyboomer.columns.entries import keep
from pyboomer.columns.sorted import SortedColumns
from pyboomer.columns.sparse import SparseColumns, cover_rows, find_changed, meets
from pyboomer.compiling.kernel import inner, kernel
from pyboomer.compiling.kinds import by_kind
from pyboomer.engine.heads import find_best_label
from pyboomer.engine.sampling import fill_with_draw
from pyboomer.engine.search.gains import Rating, choose_head, resize_rating, sum_examples
from pyboomer.engine.search.histograms import sum_bins, sweep_bins, take_bins
from pyboomer.engine.search.plan import Complete, Partial, Plan, Search, Single
from pyboomer.engine.search.sweeping import Sample, sweep
from pyboomer.engine.statistics import Layout, count_columns, resize, sum_weights, take_labels
from pyboomer.rules.precision import NOISE

BINS_FROM = 512  # covered examples; fewer are swept one by one

# --- One refinement ---------------------------------------------------------------------------------------------------


@inner
def uses_bins(search: Search, n_covered: int) -> bool:
    """Whether candidates are rated from histograms, so that sums over what is covered are not kept up to date."""
    return search.bins.sums.shape[0] > 0 and n_covered >= BINS_FROM


@by_kind
def find_condition(
    columns: Any, sample: Sample, rating: Rating, search: Search, best: float
) -> tuple[float, np.int64, np.int64, float]:
    """The best condition on the drawn features: its gain, feature (-1: none beats `best`), operator and value."""


@find_condition.of(SortedColumns, SparseColumns, forceinline=True)
def _sweep_features(
    columns: Any, sample: Sample, rating: Rating, search: Search, best: float
) -> tuple[float, np.int64, np.int64, float]:
    chosen, operator, value = np.int64(-1), np.int64(-1), 0.0  # plain numbers would be types of their own to Numba
    drawn = search.features.drawn
    for i in range(drawn.shape[0]):
        best, found, found_value = sweep(columns, drawn[i], sample, rating, search.runs, search.min_coverage, best)
        if found >= 0:
            chosen, operator, value = drawn[i], found, found_value
    return best, chosen, operator, value


@find_condition.of(BinnedColumns)
def _sweep_histograms(
    columns: BinnedColumns, sample: Sample, rating: Rating, search: Search, best: float
) -> tuple[float, np.int64, np.int64, float]:
    if not uses_bins(search, sample.n_covered):
        return _sweep_features(columns, sample, rating, search, best)
    drawn = search.features.drawn
    bins = take_bins(search.bins, drawn.shape[0], rating.whole.shape[0])
    sum_bins(rating, columns.codes, drawn, sample, bins)
    return sweep_bins(bins, columns.nominal, drawn, rating, search.runs, search.min_coverage, best)


@by_kind
def filter_sample(
    columns: Any, feature: int, operator: int, value: float, sample: Sample, rating: Rating, search: Search
) -> Sample:
    """Keep the examples that meet a condition (Alg. 3, line 10), and bring the sums in `rating.whole` up to date."""


@filter_sample.of(SortedColumns, BinnedColumns)
def _filter_dense(
    columns: Any, feature: int, operator: int, value: float, sample: Sample, rating: Rating, search: Search
) -> Sample:
    statistics, weights, rows, whole, sums = sample.statistics, sample.weights, sample.rows, rating.whole, rating.sums
    n_rows = keep(columns, feature, operator, value, rows, search.runs.entries.examples)
    kept, dropped = rows[:n_rows], rows[n_rows:]
    if search.bins.sums.shape[0] > 0:
        if not uses_bins(search, n_rows):
            sum_examples(rating, statistics, kept, weights, whole)
    elif dropped.shape[0] < n_rows:
        sum_examples(rating, statistics, dropped, weights, sums)
        for s in range(whole.shape[0]):
            whole[s] -= sums[s]
    else:
        sum_examples(rating, statistics, kept, weights, whole)
    for r in range(dropped.shape[0]):
        weights[dropped[r]] = 0.0
    return Sample(statistics, weights, kept, n_rows, sum_weights(kept, weights))


@filter_sample.of(SparseColumns)
def _filter_sparse(
    columns: SparseColumns, feature: int, operator: int, value: float, sample: Sample, rating: Rating, search: Search
) -> Sample:
    """Only the stored values are looked at, and weights say which examples are covered."""
    statistics, weights, whole, sums = sample.statistics, sample.weights, rating.whole, rating.sums
    fill_meets = meets(columns.fill[feature], operator, value)
    changed = search.runs.entries.examples  # the covered examples that are dropped, or that are kept
    changed = changed[: find_changed(columns, feature, operator, value, weights, changed)]
    n_changed = changed.shape[0]
    sum_examples(rating, statistics, changed, weights, sums)
    changed_weight = sum_weights(changed, weights)
    if fill_meets:
        for s in range(whole.shape[0]):
            whole[s] -= sums[s]
        for r in range(n_changed):
            weights[changed[r]] = 0.0
        n_covered, weight = sample.n_covered - n_changed, sample.weight - changed_weight
        return Sample(statistics, weights, sample.rows, n_covered, weight)
    for s in range(whole.shape[0]):
        whole[s] = sums[s]
    values = search.runs.entries.values
    for r in range(n_changed):
        values[r] = weights[changed[r]]
    for n in range(weights.shape[0]):
        weights[n] = 0.0
    for r in range(n_changed):
        weights[changed[r]] = values[r]
    return Sample(statistics, weights, sample.rows, n_changed, changed_weight)


# --- Algorithm 3 ------------------------------------------------------------------------------------------------------


@inner
def refine_rule(
    columns: Any, sample: Sample, rating: Rating, search: Search, rule: int, body: Array, size: int, best: float
) -> tuple[Sample, int, float]:
    """Learn the body of a rule from a sample of the examples, whose sums are in `rating.whole`.

    `body` receives a condition per row: feature, operator, value and the gain with it, behind the `size` that there are
    already, of gain `best`; it has room for as many as there may be. Returns what the body covers of the sample, its
    number of conditions, and the gain.
    """
    best = max(best, NOISE * sample.weight)
    while size < body.shape[0]:
        fill_with_draw(search.seed, rule, size + 1, search.features)
        best, feature, operator, value = find_condition(columns, sample, rating, search, best)
        if feature < 0:
            break
        sample = filter_sample(columns, feature, operator, value, sample, rating, search)
        body[size, 0], body[size, 1], body[size, 2], body[size, 3] = feature, operator, value, best
        size += 1
    return sample, size, best


@by_kind
def learn_body(
    heads: Any, columns: Any, plan: Plan, sample: Sample, rule: int, body: Array, labels: NDArray[np.int64]
) -> tuple[Sample, int, int]:
    """Learn the body of a rule (Alg. 1, line 6), and which labels its head is about.

    Returns what the body covers of the sample, the number of conditions, and that of the labels; these are not chosen
    yet if it is 0.
    """


@learn_body.of(Complete)
def _learn_for_all(
    heads: Complete, columns: Any, plan: Plan, sample: Sample, rule: int, body: Array, labels: NDArray[np.int64]
) -> tuple[Sample, int, int]:
    rating = heads.rating
    if not uses_bins(plan.search, sample.n_covered):
        sum_examples(rating, sample.statistics, sample.rows, sample.weights, rating.whole)
    sample, size, _ = refine_rule(columns, sample, rating, plan.search, rule, body, np.int64(0), 0.0)
    for i in range(heads.layout.n_labels):
        labels[i] = i
    return sample, size, heads.layout.n_labels


@inner
def _refine_once(
    columns: Any, plan: Plan, sample: Sample, choosing: Rating, rule: int, body: Array
) -> tuple[Sample, int, float]:
    """Find the first condition, which chooses the labels; `choosing.whole` receives the sums over what it covers."""
    if not uses_bins(plan.search, sample.n_covered):
        sum_examples(choosing, sample.statistics, sample.rows, sample.weights, choosing.whole)
    sample, size, best = refine_rule(columns, sample, choosing, plan.search, rule, body[:1], np.int64(0), 0.0)
    if uses_bins(plan.search, sample.n_covered):
        sum_examples(choosing, sample.statistics, sample.rows, sample.weights, choosing.whole)
    return sample, size, best


@learn_body.of(Single)
def _learn_for_one(
    heads: Single, columns: Any, plan: Plan, sample: Sample, rule: int, body: Array, labels: NDArray[np.int64]
) -> tuple[Sample, int, int]:
    choosing, settled = heads.choosing, heads.settled
    sample, size, best = _refine_once(columns, plan, sample, choosing, rule, body)
    if size == 0:
        return sample, size, 0
    labels[0] = find_best_label(heads.layout, choosing.whole, heads.penalty, heads.gains)
    pack_pairs(sample.statistics, labels[0], sample.rows, heads.pairs)
    width = choosing.whole.shape[0] // 2
    settled.whole[0], settled.whole[1] = choosing.whole[labels[0]], choosing.whole[width + labels[0]]
    sample = Sample(heads.pairs, sample.weights, sample.rows, sample.n_covered, sample.weight)
    sample, size, best = refine_rule(columns, sample, settled, plan.search, rule, body, size, best)
    return sample, size, 1


@kernel
def pack_pairs(statistics: Array, label: int, rows: Rows, pairs: Array) -> None:
    """Gradient and curvature of one label, for some examples."""
    width = statistics.shape[1] // 2
    for r in range(rows.shape[0]):
        n = rows[r]
        pairs[n, 0] = statistics[n, label]
        pairs[n, 1] = statistics[n, width + label]


@learn_body.of(Partial)
def _learn_for_some(
    heads: Partial, columns: Any, plan: Plan, sample: Sample, rule: int, body: Array, labels: NDArray[np.int64]
) -> tuple[Sample, int, int]:
    choosing = heads.choosing
    sample, size, best = _refine_once(columns, plan, sample, choosing, rule, body)
    if size == 0:
        return sample, size, 0
    total = sum_weights(sample.rows, sample.weights)
    m = choose_head(choosing, choosing.whole, total)
    for i in range(m):
        labels[i] = choosing.labels[i]
    own = select_labels(heads.layout, sample.statistics, sample.rows, labels[:m], heads.statistics).statistics
    settled = resize_rating(heads.settled, m)
    if not uses_bins(plan.search, sample.n_covered):
        sum_examples(settled, own, sample.rows, sample.weights, settled.whole)
    sample = Sample(own, sample.weights, sample.rows, sample.n_covered, total)
    sample, size, best = refine_rule(columns, sample, settled, plan.search, rule, body, size, best)
    return sample, size, m


class View(NamedTuple):
    """The labels that a rule may be about, and their statistics."""

    labels: NDArray[np.int64]
    statistics: Array


@inner
def select_labels(layout: Layout, statistics: Array, rows: Rows, labels: NDArray[np.int64], buffer: Array) -> View:
    """Some of the labels, with the statistics of some examples, copied to a buffer."""
    n, size = statistics.shape[0], count_columns(resize(layout, labels.shape[0]))
    own = buffer[: n * size].reshape((n, size))
    take_labels(layout, statistics, rows, labels, own)
    return View(labels, own)


# --- Coverage ---------------------------------------------------------------------------------------------------------


@by_kind
def cover(columns: Any, body: Array, rows: Rows, n_kept: int, n_sampled: int, scratch: Rows) -> np.int64:
    """Put all examples that a body covers first in `rows`, sampled or not; returns how many there are.

    Before, the first `n_kept` of the `n_sampled` sampled examples are those covered (if X is not sparse).
    """


@cover.of(SortedColumns, BinnedColumns)
def _cover_dense(columns: Any, body: Array, rows: Rows, n_kept: int, n_sampled: int, scratch: Rows) -> np.int64:
    others = rows[n_sampled:]
    n_others = np.int64(others.shape[0])
    for c in range(body.shape[0]):
        feature, operator = np.int64(body[c, 0]), np.int64(body[c, 1])
        n_others = keep(columns, feature, operator, body[c, 2], others[:n_others], scratch)
    for r in range(n_others):
        rows[n_kept + r] = others[r]
    return n_kept + n_others


@cover.of(SparseColumns)
def _cover_sparse(
    columns: SparseColumns, body: Array, rows: Rows, n_kept: int, n_sampled: int, scratch: Rows
) -> np.int64:
    return cover_rows(columns, body, rows, scratch)
