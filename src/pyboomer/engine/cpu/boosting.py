"""Boosting is the loop over rules: Algorithm 1.

The loop is compiled and learns a chunk of rules per call, without the interpreter lock. What it leaves behind is the
scores of the training examples and the statistics that follow from them.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.compiling.kernel import inner, kernel
from pyboomer.compiling.kinds import by_kind
from pyboomer.engine.cpu.refinement import cover, refine_rule
from pyboomer.engine.heads import find_best_label, fit_head, solve_label
from pyboomer.engine.plan import Complete, Labels, Partial, Plan, Sampling, Single
from pyboomer.engine.promise import Chunk
from pyboomer.engine.rating import choose_head, focus_rating, sum_examples
from pyboomer.engine.sampling import draw_examples, fill_with_labels
from pyboomer.engine.statistics import (
    Layout,
    add_scores_to_rows,
    count_columns,
    resize,
    sum_label,
    sum_rows,
    sum_weights,
    take_labels,
)
from pyboomer.engine.sweeping import Sample
from pyboomer.losses.truth import JointHand, JointTruth, Truth
from pyboomer.losses.twins import update


class Examples(NamedTuple):
    """The training examples as compiled code sees them."""

    truth: Truth | JointTruth
    scores: Array
    statistics: Array
    weight: Array


class Hand(NamedTuple):
    """The same as if there were no other labels than those of a hand, see `dealing`."""

    truth: Truth | JointHand
    scores: Array
    statistics: Array
    weight: Array
    labels: NDArray[np.int64]


class Found(NamedTuple):
    """Room for the head of a rule: its labels, among those it may be about, their scores, and scores of all labels."""

    labels: NDArray[np.int64]
    scores: Array
    head: Array


# --- The labels that a rule may be about ------------------------------------------------------------------------------


class View(NamedTuple):
    """The labels that a rule may be about, and their statistics."""

    labels: NDArray[np.int64]
    statistics: Array


@by_kind
def look_at(examples: Any, labels: Labels, seed: int, rule: int) -> View:
    """The labels that a rule may be about."""


@look_at.of(Examples)
def _look_at_all(examples: Examples, labels: Labels, seed: int, rule: int) -> View:
    if not labels.some:
        return View(labels.draw.choices, examples.statistics)
    fill_with_labels(seed, rule, labels.in_turn, labels.draw)
    return _focus(labels.layout, examples.statistics, labels.draw.drawn, labels.room)


@look_at.of(Hand)
def _look_at_hand(examples: Hand, labels: Labels, seed: int, rule: int) -> View:
    return View(examples.labels, examples.statistics)


@inner
def _focus(layout: Layout, statistics: Array, labels: NDArray[np.int64], room: Array) -> View:
    """Some of the labels."""
    n, size = statistics.shape[0], count_columns(resize(layout, labels.shape[0]))
    own = room[: n * size].reshape((n, size))
    take_labels(layout, statistics, labels, own)
    return View(labels, own)


@by_kind
def change(examples: Any, view: View, rows: Rows, found: Found, m: int) -> None:
    """Add the m scores of a rule to the examples that it covers, and bring their statistics up to date (line 4)."""


@change.of(Examples)
def _change_all(examples: Examples, view: View, rows: Rows, found: Found, m: int) -> None:
    for i in range(m):
        found.labels[i] = view.labels[found.labels[i]]
    _change(examples, rows, found, m)


@change.of(Hand)
def _change_hand(examples: Hand, view: View, rows: Rows, found: Found, m: int) -> None:
    _change(examples, rows, found, m)


@inner
def _change(examples: Any, rows: Rows, found: Found, m: int) -> None:
    begin, end = _write_head(found, m)
    add_scores_to_rows(examples.scores, rows, found.head, begin, end)
    update(examples.truth, examples.scores, rows, examples.statistics, begin, end)


@inner
def _write_head(found: Found, m: int) -> tuple[np.int64, np.int64]:
    """Write m scores where their labels are, and 0 elsewhere; returns where they begin and end."""
    for k in range(found.head.shape[0]):
        found.head[k] = 0.0
    for i in range(m):
        found.head[found.labels[i]] = found.scores[i]
    return found.labels[0], found.labels[m - 1] + 1


# --- The examples that a rule is learned from -------------------------------------------------------------------------


@kernel
def draw_rows(sampling: Sampling, seed: int, rule: int, weight: Array) -> np.int64:
    """Draw the examples that a rule is learned from (Alg. 1, line 5); returns how many there are.

    Those sampled, of positive weight, are first in `sampling.rows`; behind them follow the others.
    """
    weights, rows = sampling.weights, sampling.rows
    if sampling.size > 0:
        draw_examples(seed, rule, sampling.size, sampling.strata, weights)
    for n in range(rows.shape[0]):
        weights[n] = weights[n] * weight[n] if sampling.size > 0 else weight[n]
    n_sampled, last = np.uint64(0), np.uint64(rows.shape[0] - 1)
    for n in range(rows.shape[0]):
        sampled = np.uint64(weights[n] > 0.0)
        rows[n_sampled] = n
        rows[last] = n
        n_sampled += sampled
        last -= np.uint64(1) - sampled
    return np.int64(n_sampled)


@inner
def _draw_sample(sampling: Sampling, seed: int, rule: int, weight: Array, statistics: Array) -> Sample:
    n_sampled = draw_rows(sampling, seed, rule, weight)
    sampled = sampling.rows[:n_sampled]
    return Sample(statistics, sampling.weights, sampled, n_sampled, sum_weights(sampled, sampling.weights))


# --- Rules with heads of each kind ------------------------------------------------------------------------------------


@by_kind
def learn_rule(
    heads: Any,
    columns: Any,
    plan: Plan,
    sample: Sample,
    weight: Array,
    rule: int,
    body: Array,
    found: Found,
) -> tuple[np.int64, int, int, float, float]:
    """Learn a rule from a sample (Alg. 1, lines 6 and 7); `weight` is that of all examples.

    Returns how many examples it covers, then first in `plan.sampling.rows`, the number of its conditions and of its
    labels, its gain and its coverage.
    """


@learn_rule.of(Complete)
def _learn_complete(
    heads: Complete,
    columns: Any,
    plan: Plan,
    sample: Sample,
    weight: Array,
    rule: int,
    body: Array,
    found: Found,
) -> tuple[np.int64, int, int, float, float]:
    search, rows, rating = plan.search, plan.sampling.rows, heads.rating
    statistics, n_sampled = sample.statistics, sample.n_covered
    sum_examples(rating, statistics, sample.rows, sample.weights, rating.whole)
    sample, size, _ = refine_rule(columns, sample, rating, search, rule, body, np.int64(0), 0.0)
    n_rows = cover(columns, body[:size], rows, sample.rows.shape[0], n_sampled, search.runs.entries.examples)
    k = heads.layout.n_labels
    gain, coverage = fit_head(
        heads.layout, statistics, rows[:n_rows], weight, heads.penalty, heads.room, found.scores[:k]
    )
    for i in range(k):
        found.labels[i] = i
    return n_rows, size, k, gain, coverage


@learn_rule.of(Single)
def _learn_single(
    heads: Single,
    columns: Any,
    plan: Plan,
    sample: Sample,
    weight: Array,
    rule: int,
    body: Array,
    found: Found,
) -> tuple[np.int64, int, int, float, float]:
    search, rows = plan.search, plan.sampling.rows
    statistics, n_sampled = sample.statistics, sample.n_covered
    penalty, choosing, settled, labels = heads.penalty, heads.choosing, heads.settled, found.labels
    sum_examples(choosing, statistics, sample.rows, sample.weights, choosing.whole)
    sample, size, best = refine_rule(columns, sample, choosing, search, rule, body[:1], np.int64(0), 0.0)
    if size > 0:
        labels[0] = find_best_label(heads.layout, choosing.whole, penalty, heads.gains)
        pack_pairs(statistics, labels[0], sample.rows, heads.pairs)
        width = choosing.whole.shape[0] // 2
        settled.whole[0], settled.whole[1] = choosing.whole[labels[0]], choosing.whole[width + labels[0]]
        sample = Sample(heads.pairs, sample.weights, sample.rows, sample.n_covered, sample.weight)
        sample, size, best = refine_rule(columns, sample, settled, search, rule, body, size, best)
    n_rows = cover(columns, body[:size], rows, sample.rows.shape[0], n_sampled, search.runs.entries.examples)
    covered = rows[:n_rows]
    if size == 0:  # nothing to learn from the sample: the label that suits all examples best
        sum_rows(statistics, 0, covered, weight, choosing.whole)
        labels[0] = find_best_label(heads.layout, choosing.whole, penalty, heads.gains)
    g, h, coverage = sum_label(statistics, labels[0], covered, weight)
    gain, found.scores[0] = solve_label(g, h, penalty)
    return n_rows, size, 1, gain, coverage


@kernel
def pack_pairs(statistics: Array, label: int, rows: Rows, pairs: Array) -> None:
    """Gradient and curvature of one label, for some examples."""
    width = statistics.shape[1] // 2
    for r in range(rows.shape[0]):
        n = rows[r]
        pairs[n, 0] = statistics[n, label]
        pairs[n, 1] = statistics[n, width + label]


@learn_rule.of(Partial)
def _learn_partial(
    heads: Partial,
    columns: Any,
    plan: Plan,
    sample: Sample,
    weight: Array,
    rule: int,
    body: Array,
    found: Found,
) -> tuple[np.int64, int, int, float, float]:
    search, rows, choosing = plan.search, plan.sampling.rows, heads.choosing
    statistics, n_sampled = sample.statistics, sample.n_covered
    sum_examples(choosing, statistics, sample.rows, sample.weights, choosing.whole)
    sample, size, best = refine_rule(columns, sample, choosing, search, rule, body[:1], np.int64(0), 0.0)
    total = sum_weights(sample.rows, sample.weights)
    if size == 0:  # nothing to learn from the sample: the labels that suit all examples best
        sum_examples(choosing, statistics, rows, weight, choosing.whole)
        total = sum_weights(rows, weight)
    m = choose_head(choosing, choosing.whole, total)
    for i in range(m):
        found.labels[i] = choosing.labels[i]
    own = _focus(heads.layout, statistics, found.labels[:m], heads.statistics).statistics
    if size > 0:
        settled = focus_rating(heads.settled, m)
        sum_examples(settled, own, sample.rows, sample.weights, settled.whole)
        sample = Sample(own, sample.weights, sample.rows, sample.n_covered, total)
        sample, size, best = refine_rule(columns, sample, settled, search, rule, body, size, best)
    n_rows = cover(columns, body[:size], rows, sample.rows.shape[0], n_sampled, search.runs.entries.examples)
    gain, coverage = fit_head(
        resize(heads.layout, m), own, rows[:n_rows], weight, heads.penalty, heads.room, found.scores[:m]
    )
    return n_rows, size, m, gain, coverage


# --- Algorithm 1 ------------------------------------------------------------------------------------------------------


@kernel
def learn_rules(
    columns: Any, examples: Any, labels: Labels, heads: Any, plan: Plan, found: Found, first: int, chunk: Chunk
) -> tuple[int, np.int64]:
    """Learn rules from number `first` on (Alg. 1, lines 3 to 8), as many as a chunk has room for.

    Scores and statistics are updated; the statistics of a user's own loss are left to the caller. Returns how many
    rules were learned, and how many examples the last one covers: the first in `plan.sampling.rows`.
    """
    seed, rows, longest = plan.search.seed, plan.sampling.rows, plan.longest
    used = used_scores = 0
    n_rows = np.int64(0)
    for t in range(chunk.gain.shape[0]):
        if used + longest > chunk.conditions.shape[0]:
            return t, n_rows
        rule, body = first + t, chunk.conditions[used : used + longest]
        view = look_at(examples, labels, seed, rule)
        sample = _draw_sample(plan.sampling, seed, rule, examples.weight, view.statistics)  # line 5
        n_rows, size, m, gain, coverage = learn_rule(heads, columns, plan, sample, examples.weight, rule, body, found)
        chunk.n_conditions[t], chunk.gain[t], chunk.coverage[t] = size, gain, coverage
        used += size
        n_scores = 0
        for i in range(m):  # line 8
            found.labels[n_scores], found.scores[n_scores] = found.labels[i], plan.learning_rate * found.scores[i]
            n_scores += heads.penalty.l1 == 0.0 or found.scores[n_scores] != 0.0  # L1 regularisation leaves labels out
        n_scores = max(n_scores, 1)  # if none is left: the last one, which stands in the first place
        for i in range(n_scores):
            chunk.labels[used_scores + i] = view.labels[found.labels[i]]
            chunk.scores[used_scores + i] = found.scores[i]
        chunk.n_scores[t] = n_scores
        used_scores += n_scores
        change(examples, view, rows[:n_rows], found, n_scores)  # line 4 of the next round
    return chunk.gain.shape[0], n_rows
