"""A gathered sample holds all that it takes to learn the body of a rule, whichever examples there are besides.

Its examples are numbered anew: bin numbers lie example by example, and scores are odds. As long as many examples are
covered, candidates are rated from histograms of terms, which are whole numbers; when few are left, they are swept one
by one.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.columns.binned import MISSING, BinnedColumns
from pyboomer.columns.sparse import meets
from pyboomer.compiling.kernel import inner, kernel
from pyboomer.compiling.simd import LANES, make_zeros, pad, prefetch
from pyboomer.engine.odds import BLOCK, Odds, write_statistics, write_terms
from pyboomer.engine.sampling import fill_with_draw
from pyboomer.engine.search.gains import sum_examples
from pyboomer.engine.search.histograms import (
    BinBuffer,
    BinSums,
    Terms,
    make_term_buffer,
    make_terms,
    sum_bins_of_terms,
    sweep_bins,
    take_bins,
)
from pyboomer.engine.search.plan import Complete, Plan
from pyboomer.engine.search.refinement import BINS_FROM, refine_rule
from pyboomer.engine.search.sweeping import Sample
from pyboomer.engine.statistics import sum_weights
from pyboomer.rules.precision import NOISE

BEGIN, TERMS, SUMS, CONDITION, END, ALL = range(6)  # steps of learning a body
WORD = 8  # bytes

Codes = NDArray[np.uint8]  # (N, L) and padding: a row for each example


class Few(NamedTuple):
    """The examples of a sample that are left when they are few."""

    columns: BinnedColumns
    rows: Rows
    places: Rows  # in the sample
    weights: Array
    statistics: Array


class GatheredSample(NamedTuple):
    """See the module's docstring."""

    codes: Codes
    nominal: NDArray[np.int8]
    odds: Odds
    weights: Array
    rows: Rows  # numbers of the examples that are covered
    terms: Terms
    bins: BinBuffer
    few: Few


def make_sample(n: int, nominal: NDArray[np.int8], n_labels: int, n_drawn: int) -> GatheredSample:
    """Memory for a sample of at most n examples, of whose features so many are drawn for a condition."""
    n_features, size, m = len(nominal), 2 * pad(n_labels), min(n, BINS_FROM)
    columns = BinnedColumns(np.empty((n_features, m), dtype=np.uint8), nominal)
    rows, places = np.empty((2, m), dtype=np.uint32)
    return GatheredSample(
        codes=make_rows_of_codes(n, n_features),
        nominal=nominal,
        odds=np.empty((n, pad(n_labels)), dtype=np.float32),
        weights=np.empty(n),
        rows=np.empty(n, dtype=np.uint32),
        terms=make_terms(n, size),
        bins=make_term_buffer(n_drawn, size),
        few=Few(columns, rows, places, np.empty(m), make_zeros((m, size))),
    )


def make_rows_of_codes(n: int, n_features: int) -> Codes:
    """Memory for the bin numbers of n examples; rows are whole words, so that they are copied fast."""
    return np.zeros((n, -(-n_features // WORD)), dtype=np.uint64).view(np.uint8)


@kernel
def transpose_codes(codes: NDArray[np.uint8], first: int, last: int, rows: Codes) -> None:
    """Copy the bin numbers of some examples, feature by feature, to rows."""
    for begin in range(first, last, BLOCK):
        for f in range(codes.shape[0]):
            for n in range(begin, min(begin + BLOCK, last)):
                rows[n, f] = codes[f, n]


@kernel(error_model="numpy")
def gather_rows(codes: Codes, odds: Odds, examples: Rows, first: int, last: int, own: GatheredSample) -> None:
    """Copy bin numbers and odds of the examples from `first` to `last` - 1 to a sample."""
    some = examples[first:last]
    copy_rows(codes.view(np.uint64), some, own.codes[first:last].view(np.uint64))
    copy_rows(odds.view(np.uint64), some, own.odds[first:last].view(np.uint64))


@kernel(error_model="numpy")
def copy_rows(source: NDArray[np.uint64], rows: Rows, target: NDArray[np.uint64]) -> None:
    """Copy rows of whole words, one after another, or the first words of rows."""
    width = target.shape[1]
    for begin in range(0, rows.shape[0], BLOCK):
        for i in range(begin + BLOCK, min(begin + 2 * BLOCK, rows.shape[0])):
            for w in range(0, width, LANES):  # a cache line
                prefetch(source, rows[i] * width + w)
            prefetch(source, rows[i] * width + width - 1)
        for i in range(begin, min(begin + BLOCK, rows.shape[0])):
            n = np.uint64(rows[i])
            for w in range(width):
                target[i, w] = source[n, w]


class Search(NamedTuple):
    """How far a body has been learned from a sample."""

    n: Any  # examples covered
    size: int  # conditions
    gain: float
    is_over: Any


@inner
def begin_search(plan: Plan, own: GatheredSample, n: int, rule: int) -> Search:
    """Begin to learn a body from n examples, whose weights are known; draw the features of the first condition."""
    for i in range(n):
        own.rows[i] = i
    weight = sum_weights(own.rows[:n], own.weights)
    _, exponent = math.frexp(weight)
    for b in range(own.bins.units.shape[0]):  # no gradient is larger than 1, so that no sum exceeds 31 bits
        own.bins.units[b] = math.ldexp(1.0, exponent - 30)
    fill_with_draw(plan.search.seed, rule, 1, plan.search.features)
    return Search(n, 0, NOISE * weight, n < BINS_FROM)


@inner(error_model="numpy")
def find_terms(own: GatheredSample, first: int, last: int) -> None:
    """Compute the terms of the examples from `first` to `last` - 1."""
    scale = 1 / own.bins.units[0]
    write_terms(own.odds[first:last], own.rows[: last - first], own.weights[first:last], scale, own.terms[first:last])


@inner
def sum_features(plan: Plan, own: GatheredSample, search: Search, first: int, last: int) -> None:
    """Fill the histograms of the drawn features from `first` to `last` - 1."""
    features = plan.search.features.drawn[first:last]
    bins = take_bins(own.bins, plan.search.features.drawn.shape[0], own.terms.shape[1])
    some = BinSums(bins.sums[first:last], bins.weight[first:last], bins.units)
    sum_bins_of_terms(own.codes, features, own.terms, own.rows[: search.n], own.weights, some)


@inner
def add_condition(heads: Complete, plan: Plan, own: GatheredSample, search: Search, rule: int, body: Array) -> Search:
    """Add the best condition by the histograms to a body, filter the sample, and draw features for the next one."""
    drawn = plan.search.features.drawn
    bins = take_bins(own.bins, drawn.shape[0], own.terms.shape[1])
    gain, feature, operator, value = sweep_bins(
        bins, own.nominal, drawn, heads.rating, plan.search.runs, plan.search.min_coverage, search.gain
    )
    size = search.size
    if feature < 0:
        return Search(search.n, size, search.gain, True)
    kept = np.uint64(0)
    for r in range(search.n):
        code = own.codes[own.rows[r], feature]
        own.rows[kept] = own.rows[r]
        kept += np.uint64(meets(np.float64(code), operator, value) & (code != MISSING))
    body[size, 0], body[size, 1], body[size, 2], body[size, 3] = feature, operator, value, gain
    n = np.int64(kept)
    fill_with_draw(plan.search.seed, rule, size + 2, plan.search.features)
    return Search(n, size + 1, gain, n < BINS_FROM or size + 1 == body.shape[0])


@inner
def finish_body(heads: Complete, plan: Plan, own: GatheredSample, search: Search, rule: int, body: Array) -> int:
    """Refine a rule that covers few examples to the end; returns the number of conditions."""
    n, few, rating = search.n, own.few, heads.rating
    if n >= BINS_FROM:
        return search.size
    for i in range(n):
        place = own.rows[i]
        few.rows[i], few.places[i], few.weights[i] = i, place, own.weights[place]
        for f in range(own.nominal.shape[0]):
            few.columns.codes[f, i] = own.codes[place, f]
    rows = few.rows[:n]
    write_statistics(own.odds, few.places[:n], few.statistics)
    sum_examples(rating, few.statistics, rows, few.weights, rating.whole)
    sample = Sample(few.statistics, few.weights, rows, n, sum_weights(rows, few.weights))
    return refine_rule(few.columns, sample, rating, plan.search, rule, body, search.size, search.gain)[1]


@kernel
def take_step(
    step: int,
    heads: Complete,
    plan: Plan,
    own: GatheredSample,
    search: Search,
    rule: int,
    body: Array,
    first: int,
    last: int,
) -> Search:
    """Learn the body of a rule (Alg. 1, line 6) from a sample of `search.n` examples: take a step, or all of them.

    Several threads may compute terms, or sums, at the same time, each from `first` to `last` - 1. (It is one function,
    as a function for each step would take twice as long to compile.)
    """
    if step in (BEGIN, ALL):
        search = begin_search(plan, own, search.n, rule)
    if step == TERMS:
        find_terms(own, first, last)
    elif step == SUMS:
        sum_features(plan, own, search, first, last)
    elif step == CONDITION:
        search = add_condition(heads, plan, own, search, rule, body)
    elif step == ALL:
        find_terms(own, 0, search.n)
        while not search.is_over:
            sum_features(plan, own, search, 0, plan.search.features.drawn.shape[0])
            search = add_condition(heads, plan, own, search, rule, body)
    if step in (END, ALL):
        size = finish_body(heads, plan, own, search, rule, body)
        search = Search(search.n, size, search.gain, True)
    return search
