"""A sweep rates all conditions on a feature and picks the best: the inner loop of Algorithm 3.

It has three steps: collect the values of the covered examples in ascending order, in *runs* of equal values; rate the
condition that each run ends, and its negation; pick the best. Binned features are swept from sums over their bins.

Candidates are visited in a fixed order: thresholds or categories ascending, ``<=`` before ``>`` and ``==`` before
``!=``. One replaces the best so far only if its gain is larger by the relative margin `precision.TIE`, so that rounding
never decides between equals.
"""

from typing import Any, NamedTuple

import numpy as np

from pyboomer.arrays import Array, Rows
from pyboomer.columns.binned import OTHER, SHARED, BinnedColumns
from pyboomer.columns.entries import START, Entries, collect, make_entries
from pyboomer.columns.sorted import SortedColumns
from pyboomer.columns.sparse import SparseColumns, collect_stored
from pyboomer.compiling.kernel import inner
from pyboomer.compiling.kinds import by_kind
from pyboomer.engine.search.gains import Rates, Rating, Swept, add_example, finish_rates, rate_runs
from pyboomer.rules import precision
from pyboomer.rules.operators import AT_MOST, EQUAL

TIE = precision.TIE

midpoint = inner(precision.midpoint)


class Sample(NamedTuple):
    """The examples that a rule is learned from, as far as it covers them."""

    statistics: Array
    weights: Array  # of each example in the sample: 0 if it is not in it, or no longer covered
    rows: Rows  # the examples covered; if X is sparse, those that have been at the beginning
    n_covered: int
    weight: float  # of all that are covered


class Runs(NamedTuple):
    """Scratch of a sweep: the entries of a feature in order, in runs of equal values, and the ratings of these."""

    entries: Entries
    rates: Rates


def make_runs(n: int) -> Runs:
    """Scratch for n examples, or for 256 bins."""
    return Runs(make_entries(n), Rates(*np.empty((3, max(n + 1, 256)))))


@inner(forceinline=True)
def _find_runs(values: Array, ends: Rows) -> np.int64:
    """Find where runs of equal values end; returns their number."""
    m = values.shape[0]
    if m == 0:
        return np.int64(0)
    runs = START
    if values[0] != values[m - 1]:
        for j in range(m - 1):
            ends[runs] = j
            runs += np.uint64(values[j] != values[j + 1])
    ends[runs] = m - 1
    return np.int64(runs) + 1


@inner(forceinline=True)
def pick_condition(
    rating: Rating, n_runs: int, total_weight: float, rates: Rates, min_coverage: float, best: float
) -> tuple[float, int, bool]:
    """The first condition among the best that beat `best`: its gain, its run (-1: there is none), whether negated."""
    finish_rates(rating, n_runs, total_weight, rates)
    met, unmet, weight = rates.met, rates.unmet, rates.weight
    best_run = -1
    best_negated = False
    limit = 2 * best * (1 + TIE)
    for run in range(n_runs):
        if met[run] > limit and weight[run] >= min_coverage:
            best_run, best_negated = run, False
            limit = met[run] * (1 + TIE)
        if unmet[run] > limit and total_weight - weight[run] >= min_coverage:
            best_run, best_negated = run, True
            limit = unmet[run] * (1 + TIE)
    if best_run >= 0:
        best = 0.5 * (unmet[best_run] if best_negated else met[best_run])
    return best, best_run, best_negated


@inner
def _sum_present(rating: Rating, sample: Sample, missing: Rows) -> float:
    """Leave in `rating.present` what some examples leave of the sums over all; returns their weight."""
    sums, whole = rating.present, rating.whole
    for s in range(sums.shape[0]):
        sums[s] = whole[s]
    removed = 0.0
    for j in range(missing.shape[0]):
        n = missing[j]
        removed += sample.weights[n]
        add_example(rating, sample.statistics, n, -sample.weights[n], sums)
    return removed


@by_kind
def sweep(
    columns: Any, feature: int, sample: Sample, rating: Rating, runs: Runs, min_coverage: float, best: float
) -> tuple[float, int, float]:
    """The best condition on a feature that beats `best`: its gain, operator (-1: there is none) and value.

    `rating.whole` holds the sums over all that is covered.
    """


@sweep.of(SortedColumns, BinnedColumns, forceinline=True)
def _sweep_dense(
    columns: Any, feature: int, sample: Sample, rating: Rating, runs: Runs, min_coverage: float, best: float
) -> tuple[float, int, float]:
    m, n_missing = collect(columns, feature, sample.rows, sample.weights, runs.entries)
    n_values = _find_runs(runs.entries.values[:m], runs.entries.ends)
    if n_values < 2:
        return best, -1, 0.0
    totals, total_weight = rating.whole, sample.weight
    if n_missing > 0:
        totals = rating.present
        total_weight -= _sum_present(rating, sample, runs.entries.examples[m : m + n_missing])
    # Of two values, the second makes the same conditions as the first. The last threshold would leave nothing above it.
    nominal = columns.nominal[feature]
    by_value = bool(nominal) and n_values > 2
    is_shared = nominal == SHARED and runs.entries.values[m - 1] == OTHER  # no condition is about what rarer ones share
    n_runs = n_values if by_value and not is_shared else n_values - 1
    swept = Swept(runs.entries.examples, runs.entries.ends[:n_runs], sample.statistics, sample.weights, sample.weights)
    rate_runs(rating, swept, by_value, totals, total_weight, runs.rates)
    best, run, negated = pick_condition(rating, n_runs, total_weight, runs.rates, min_coverage, best)
    if run < 0:
        return best, -1, 0.0
    value = runs.entries.values[runs.entries.ends[run]]
    if nominal:
        return best, EQUAL + negated, value
    return best, AT_MOST + negated, midpoint(value, runs.entries.values[runs.entries.ends[run + 1]])


# --- Sparse features --------------------------------------------------------------------------------------------------


@sweep.of(SparseColumns, forceinline=True)
def _sweep_sparse(
    columns: SparseColumns, feature: int, sample: Sample, rating: Rating, runs: Runs, min_coverage: float, best: float
) -> tuple[float, int, float]:
    """The examples that hold the fill value are never summed: the others are swept towards it from both sides."""
    m_below, m_above, n_missing = collect_stored(columns, feature, sample.weights, runs.entries)
    examples, values, ends = runs.entries.examples, runs.entries.values, runs.entries.ends
    m = m_below + m_above
    filled = m + n_missing < sample.n_covered
    below = _find_runs(values[:m_below], ends)
    above = _find_runs(values[m_below:m], ends[below:])
    n_values = below + filled + above
    if n_values < 2:
        return best, -1, 0.0
    totals, total_weight = rating.whole, sample.weight
    if n_missing > 0:
        totals = rating.present
        total_weight -= _sum_present(rating, sample, examples[m : m + n_missing])

    nominal = columns.nominal[feature]  # conditions are those of a dense feature, see above
    by_value = nominal and n_values > 2
    n_runs = n_values if by_value else n_values - 1
    rates = runs.rates
    last = min(below, n_runs)
    if last > 0:  # upwards to the fill value
        swept = Swept(examples, ends[:last], sample.statistics, sample.weights, sample.weights)
        rate_runs(rating, swept, by_value, totals, total_weight, rates)
    first = below + (by_value and filled)
    if first < n_runs:  # downwards to it; what is swept then meets the negations of the conditions
        swept = Swept(
            examples[m_below:], ends[below : below + n_runs - first], sample.statistics, sample.weights, sample.weights
        )
        part = _take_rates(rates, first, not by_value)
        rate_runs(rating, swept, by_value, totals, total_weight, part)
        _reverse(part.met[: n_runs - first])
        _reverse(part.unmet[: n_runs - first])
        _reverse(part.weight[: n_runs - first])
        if not by_value:
            _negate(rates.weight[first:n_runs], total_weight)
    if by_value and filled:  # whatever is stored meets the negation of the condition on the fill value
        end = below + above
        ends[end] = m - 1
        swept = Swept(examples, ends[end : end + 1], sample.statistics, sample.weights, sample.weights)
        rate_runs(rating, swept, False, totals, total_weight, _take_rates(rates, below, True))
        _negate(rates.weight[below : below + 1], total_weight)

    best, run, negated = pick_condition(rating, n_runs, total_weight, rates, min_coverage, best)
    if run < 0:
        return best, -1, 0.0
    places = Places(below, filled, n_values, m_below)
    value = _read_value(run, places, columns.fill[feature], runs)
    if nominal:
        return best, EQUAL + negated, value
    return best, AT_MOST + negated, midpoint(value, _read_value(run + 1, places, columns.fill[feature], runs))


@inner
def _take_rates(rates: Rates, first: int, negated: bool) -> Rates:
    """The ratings from a run on; those of the negations as if they were those of the conditions, if asked for."""
    met, unmet = rates.met[first:], rates.unmet[first:]
    return Rates(unmet, met, rates.weight[first:]) if negated else Rates(met, unmet, rates.weight[first:])


@inner
def _negate(weight: Array, total_weight: float) -> None:
    for run in range(weight.shape[0]):
        weight[run] = total_weight - weight[run]


class Places(NamedTuple):
    """Where the runs of a sparse feature are: how many below the fill value, whether it occurs, how many in all."""

    below: int
    filled: bool
    n_values: int
    m_below: int  # entries below the fill value


@inner
def _read_value(run: int, places: Places, fill: float, runs: Runs) -> float:
    """The value of a run, counted in ascending order."""
    if run < places.below:
        return runs.entries.values[runs.entries.ends[run]]
    if places.filled and run == places.below:
        return fill
    return runs.entries.values[places.m_below + runs.entries.ends[places.below + places.n_values - 1 - run]]


@inner(forceinline=True)
def _reverse(numbers: Array) -> None:
    n = numbers.shape[0]
    for i in range(n // 2):
        numbers[i], numbers[n - 1 - i] = numbers[n - 1 - i], numbers[i]
