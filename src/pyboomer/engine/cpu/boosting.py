"""Boosting is the loop over rules: Algorithm 1.

The loop is compiled and learns a chunk of rules per call, without the interpreter lock. Where several rules make a
round, their bodies are learned by a call each, side by side, and their heads by another.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.compiling.kernel import inner, kernel
from pyboomer.compiling.kinds import by_kind
from pyboomer.engine.heads import find_best_label, fit_head, solve_label
from pyboomer.engine.protocol import Chunk
from pyboomer.engine.sampling import draw_examples, fill_with_labels
from pyboomer.engine.search.gains import choose_head, sum_examples
from pyboomer.engine.search.plan import AllLabels, Complete, Labels, Partial, Plan, Sampling, Single, SomeLabels
from pyboomer.engine.search.refinement import View, cover, learn_body, select_labels
from pyboomer.engine.search.sweeping import Sample
from pyboomer.engine.statistics import add_scores_to_rows, advance, resize, sum_label, sum_rows, sum_weights
from pyboomer.losses.compiled import update
from pyboomer.losses.truth import JointGroup, JointTruth, Truth


class Examples(NamedTuple):
    """The training examples as compiled code sees them."""

    truth: Truth | JointTruth
    scores: Array
    statistics: Array
    weight: Array


class LabelGroup(NamedTuple):
    """The same as if there were no other labels than those of a group, see `groups`."""

    truth: Truth | JointGroup
    scores: Array
    statistics: Array
    weight: Array
    labels: NDArray[np.int64]


class HeadBuffer(NamedTuple):
    """Room for the head of a rule: its labels, among those it may be about, their scores, and scores of all labels."""

    labels: NDArray[np.int64]
    scores: Array
    head: Array


# --- The labels that a rule may be about ------------------------------------------------------------------------------


@by_kind
def look_at(examples: Any, labels: Labels, rows: Rows, seed: int, rule: int) -> View:
    """The labels that a rule may be about, and their statistics of some examples."""


@look_at.of(Examples)
def _look_at_all(examples: Examples, labels: Labels, rows: Rows, seed: int, rule: int) -> View:
    return draw_view(labels, examples.statistics, rows, seed, rule)


@by_kind
def draw_view(labels: Labels, statistics: Array, rows: Rows, seed: int, rule: int) -> View:
    """Draw the labels that a rule may be about, unless these are all labels."""


@draw_view.of(AllLabels)
def _view_all(labels: AllLabels, statistics: Array, rows: Rows, seed: int, rule: int) -> View:
    return View(labels.draw.choices, statistics)


@draw_view.of(SomeLabels)
def _view_some(labels: SomeLabels, statistics: Array, rows: Rows, seed: int, rule: int) -> View:
    fill_with_labels(seed, rule, labels.in_turn, labels.draw)
    return select_labels(labels.layout, statistics, rows, labels.draw.drawn, labels.buffer)


@look_at.of(LabelGroup)
def _look_at_group(examples: LabelGroup, labels: Labels, rows: Rows, seed: int, rule: int) -> View:
    return View(examples.labels, examples.statistics)


@by_kind
def change(examples: Any, view: View, rows: Rows, found: HeadBuffer, m: int) -> None:
    """Add the m scores of a rule to the examples that it covers, and bring their statistics up to date (line 4)."""


@change.of(Examples)
def _change_all(examples: Examples, view: View, rows: Rows, found: HeadBuffer, m: int) -> None:
    for i in range(m):
        found.labels[i] = view.labels[found.labels[i]]
    _change(examples, rows, found, m)


@change.of(LabelGroup)
def _change_group(examples: LabelGroup, view: View, rows: Rows, found: HeadBuffer, m: int) -> None:
    _change(examples, rows, found, m)


@inner
def _change(examples: Any, rows: Rows, found: HeadBuffer, m: int) -> None:
    begin, end = _write_head(found, m)
    add_scores_to_rows(examples.scores, rows, found.head, begin, end)
    update(examples.truth, examples.scores, rows, examples.statistics, begin, end)


@inner
def _write_head(found: HeadBuffer, m: int) -> tuple[np.int64, np.int64]:
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
def _take_sample(sampling: Sampling, n_sampled: int, statistics: Array) -> Sample:
    sampled = sampling.rows[:n_sampled]
    return Sample(statistics, sampling.weights, sampled, n_sampled, sum_weights(sampled, sampling.weights))


# --- Heads of each kind -----------------------------------------------------------------------------------------------


@by_kind
def find_head(
    heads: Any, statistics: Array, rows: Rows, weight: Array, found: HeadBuffer, m: int
) -> tuple[int, float, float]:
    """Algorithm 2 for a finished body: the head for the m labels in `found`; if m is 0, these are chosen now.

    `found.scores` receives their scores. Returns the number of labels, the gain and the coverage.
    """


@find_head.of(Complete)
def _find_complete(
    heads: Complete, statistics: Array, rows: Rows, weight: Array, found: HeadBuffer, m: int
) -> tuple[int, float, float]:
    k = heads.layout.n_labels
    gain, coverage = fit_head(heads.layout, statistics, rows, weight, heads.penalty, heads.buffers, found.scores[:k])
    return k, gain, coverage


@find_head.of(Single)
def _find_single(
    heads: Single, statistics: Array, rows: Rows, weight: Array, found: HeadBuffer, m: int
) -> tuple[int, float, float]:
    if m == 0:  # nothing to learn from the sample: the label that suits all examples best
        sum_rows(statistics, 0, rows, weight, heads.choosing.whole)
        found.labels[0] = find_best_label(heads.layout, heads.choosing.whole, heads.penalty, heads.gains)
    g, h, coverage = sum_label(statistics, found.labels[0], rows, weight)
    gain, found.scores[0] = solve_label(g, h, heads.penalty)
    return 1, gain, coverage


@find_head.of(Partial)
def _find_partial(
    heads: Partial, statistics: Array, rows: Rows, weight: Array, found: HeadBuffer, m: int
) -> tuple[int, float, float]:
    if m == 0:  # nothing to learn from the sample: the labels that suit all examples best
        choosing = heads.choosing
        sum_examples(choosing, statistics, rows, weight, choosing.whole)
        m = choose_head(choosing, choosing.whole, sum_weights(rows, weight))
        for i in range(m):
            found.labels[i] = choosing.labels[i]
    own = select_labels(heads.layout, statistics, rows, found.labels[:m], heads.statistics).statistics
    gain, coverage = fit_head(
        resize(heads.layout, m), own, rows, weight, heads.penalty, heads.buffers, found.scores[:m]
    )
    return m, gain, coverage


@inner
def _shrink_head(heads: Any, learning_rate: float, found: HeadBuffer, m: int) -> int:
    """Multiply the scores by the learning rate (line 8), and leave out those that L1 regularisation made 0."""
    n_scores = 0
    for i in range(m):
        found.labels[n_scores], found.scores[n_scores] = found.labels[i], learning_rate * found.scores[i]
        n_scores += heads.penalty.l1 == 0.0 or found.scores[n_scores] != 0.0
    return max(n_scores, 1)  # if none is left: the last one, which stands in the first place


# --- Algorithm 1 ------------------------------------------------------------------------------------------------------


@kernel
def learn_rules(
    columns: Any, examples: Any, labels: Labels, heads: Any, plan: Plan, found: HeadBuffer, first: int, chunk: Chunk
) -> tuple[int, np.int64]:
    """Learn rules from number `first` on (Alg. 1, lines 3 to 8), as many as a chunk has room for.

    Scores and statistics are updated; the statistics of a user's own loss are left to the caller. Returns how many
    rules were learned, and how many examples the last one covers: the first in `plan.sampling.rows`.
    """
    seed, rows, longest = plan.search.seed, plan.sampling.rows, plan.longest
    scratch = plan.search.runs.entries.examples
    used = used_scores = 0
    n_rows = np.int64(0)
    for t in range(chunk.gain.shape[0]):
        if used + longest > chunk.conditions.shape[0]:
            return t, n_rows
        rule, body = first + t, chunk.conditions[used : used + longest]
        n_sampled = draw_rows(plan.sampling, seed, rule, examples.weight)  # line 5
        view = look_at(examples, labels, rows, seed, rule)
        sample = _take_sample(plan.sampling, n_sampled, view.statistics)
        sample, size, m = learn_body(heads, columns, plan, sample, rule, body, found.labels)  # line 6
        n_rows = cover(columns, body[:size], rows, sample.rows.shape[0], n_sampled, scratch)
        m, gain, coverage = find_head(heads, view.statistics, rows[:n_rows], examples.weight, found, m)  # line 7
        chunk.n_conditions[t], chunk.gain[t], chunk.coverage[t] = size, gain, coverage
        used += size
        m = _shrink_head(heads, plan.learning_rate, found, m)
        for i in range(m):
            chunk.labels[used_scores + i] = view.labels[found.labels[i]]
            chunk.scores[used_scores + i] = found.scores[i]
        chunk.n_scores[t] = m
        used_scores += m
        change(examples, view, rows[:n_rows], found, m)  # line 4 of the next round
    return chunk.gain.shape[0], n_rows


@kernel
def learn_one_body(
    columns: Any, examples: Examples, labels: Labels, heads: Any, plan: Plan, found: HeadBuffer, rule: int, body: Array
) -> tuple[int, int]:
    """Learn the body of a rule (lines 5 and 6); returns how many conditions it has, and labels if these are chosen."""
    n_sampled = draw_rows(plan.sampling, plan.search.seed, rule, examples.weight)
    return learn_drawn_body(columns, examples.statistics, labels, heads, plan, n_sampled, rule, body, found.labels)


@kernel
def learn_drawn_body(
    columns: Any,
    statistics: Array,
    labels: Labels,
    heads: Any,
    plan: Plan,
    n_sampled: int,
    rule: int,
    body: Array,
    chosen: NDArray[np.int64],
) -> tuple[int, int]:
    """The same from a sample that has been drawn: the first examples in `plan.sampling.rows`."""
    view = draw_view(labels, statistics, plan.sampling.rows[:n_sampled], plan.search.seed, rule)
    sample = _take_sample(plan.sampling, n_sampled, view.statistics)
    sample, size, m = learn_body(heads, columns, plan, sample, rule, body, chosen)
    return size, m


@kernel
def fit_one_head(
    columns: Any,
    examples: Examples,
    labels: Labels,
    heads: Any,
    plan: Plan,
    found: HeadBuffer,
    rule: int,
    body: Array,
    m: int,
) -> tuple[np.int64, int, float, float]:
    """Fit the head of a body (lines 7 and 8), and bring the statistics of what it covers up to date to first order.

    Returns how many examples are covered, the first in `plan.sampling.rows`, and labels scored; gain and coverage.
    """
    rows = plan.sampling.rows
    for n in range(rows.shape[0]):
        rows[n] = n
    covered = rows[: cover(columns, body, rows, 0, 0, plan.search.runs.entries.examples)]
    view = look_at(examples, labels, covered, plan.search.seed, rule)
    m, gain, coverage = find_head(heads, view.statistics, covered, examples.weight, found, m)
    m = _shrink_head(heads, plan.learning_rate, found, m)
    for i in range(m):
        found.labels[i] = view.labels[found.labels[i]]
    _write_head(found, m)
    advance(labels.layout, examples.statistics, covered, found.head.reshape((1, found.head.shape[0])))
    return np.int64(covered.shape[0]), m, gain, coverage
