"""A refinement adds the best condition to a rule's body: Algorithm 3.

Of the drawn features, in ascending order, the best condition is taken if it improves the rule; then the coverage is
narrowed to the examples that meet it, and the next refinement begins.
"""

from typing import Any

import numpy as np

from pyboomer.arrays import Array, Rows
from pyboomer.columns.binned import BinnedColumns
from pyboomer.columns.entries import keep
from pyboomer.columns.sorted import SortedColumns
from pyboomer.columns.sparse import SparseColumns, cover_rows, find_changed, meets
from pyboomer.compiling.kernel import inner, kernel
from pyboomer.compiling.kinds import by_kind
from pyboomer.engine.plan import Search
from pyboomer.engine.rating import Rating, sum_examples
from pyboomer.engine.sampling import fill_with_draw
from pyboomer.engine.statistics import sum_weights
from pyboomer.engine.sweeping import Sample, sweep
from pyboomer.rules.precision import NOISE


@by_kind
def narrow(
    columns: Any, feature: int, operator: int, value: float, sample: Sample, rating: Rating, search: Search
) -> Sample:
    """Narrow the coverage by a condition, and bring the sums in `rating.whole` up to date."""


@narrow.of(SortedColumns, BinnedColumns)
def _narrow_dense(
    columns: Any, feature: int, operator: int, value: float, sample: Sample, rating: Rating, search: Search
) -> Sample:
    statistics, weights, rows, whole, sums = sample.statistics, sample.weights, sample.rows, rating.whole, rating.sums
    n_rows = keep(columns, feature, operator, value, rows, search.runs.entries.examples)
    kept, dropped = rows[:n_rows], rows[n_rows:]
    if search.subtracts and dropped.shape[0] < n_rows:
        sum_examples(rating, statistics, dropped, weights, sums)
        for s in range(whole.shape[0]):
            whole[s] -= sums[s]
    else:
        sum_examples(rating, statistics, kept, weights, whole)
    for r in range(dropped.shape[0]):
        weights[dropped[r]] = 0.0
    return Sample(statistics, weights, kept, n_rows, sum_weights(kept, weights))


@narrow.of(SparseColumns)
def _narrow_sparse(
    columns: SparseColumns, feature: int, operator: int, value: float, sample: Sample, rating: Rating, search: Search
) -> Sample:
    """Only the stored values are looked at, and weights say who is covered."""
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


@by_kind
def cover(columns: Any, body: Array, rows: Rows, n_kept: int, n_sampled: int, scratch: Rows) -> np.int64:
    """Put all examples that a body covers first in `rows`, sampled or not; returns how many there are.

    Before, the first `n_kept` of the `n_sampled` sampled examples are those covered (if X is not sparse).
    """


@cover.of(SortedColumns, BinnedColumns, compile=kernel)
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
    columns: SparseColumns,
    body: Array,
    rows: Rows,
    n_kept: int,
    n_sampled: int,
    scratch: Rows,
) -> np.int64:
    return cover_rows(columns, body, rows, scratch)


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
    features = search.features
    while size < body.shape[0]:
        chosen, operator, value = np.int64(-1), np.int64(-1), 0.0  # plain numbers would be types of their own to Numba
        fill_with_draw(search.seed, rule, size + 1, features)
        for i in range(features.drawn.shape[0]):
            feature = features.drawn[i]
            best, found, found_value = sweep(columns, feature, sample, rating, search.runs, search.min_coverage, best)
            if found >= 0:
                chosen, operator, value = feature, found, found_value
        if chosen < 0:
            break
        sample = narrow(columns, chosen, operator, value, sample, rating, search)
        body[size, 0], body[size, 1], body[size, 2], body[size, 3] = chosen, operator, value, best
        size += 1
    return sample, size, best


@kernel
def refine_to_the_end(
    columns: Any, sample: Sample, rating: Rating, search: Search, rule: int, body: Array, size: int, best: float
) -> tuple[int, float, int, float]:
    """`refine_rule` for Python, which takes no sample back, only how many examples are left in it and their weight."""
    sample, size, best = refine_rule(columns, sample, rating, search, rule, body, size, best)
    return sample.n_covered, sample.weight, size, best
