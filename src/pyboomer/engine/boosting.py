"""Boosting is the loop over rules: Algorithm 1.

The loop is compiled and learns a chunk of rules per call, without the interpreter lock. What it leaves behind is the
scores of the training examples and the statistics that follow from them.

Heads are about all labels, about one or about some; in the latter cases the first condition of a rule chooses the
labels, and from then on statistics and sums are about these alone. That of one label has its own way to do so: packed
in pairs of numbers, for the covered examples only, it is rated several times faster than as a head of some labels that
happen to be one.
"""

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.compiling.kernel import inner, kernel
from pyboomer.compiling.kinds import by_kind
from pyboomer.compiling.simd import pad
from pyboomer.engine.heads import (
    Penalty,
    Room,
    choose_labels,
    fit_head,
    make_room,
    rate_each_label,
    rate_label,
    shrink,
)
from pyboomer.engine.ledger import Ledger
from pyboomer.engine.promise import Chunk, Settings, Task
from pyboomer.engine.rating import (
    OneLabel,
    Rating,
    choose_head,
    focus_rating,
    make_rating,
    make_single_rating,
    sum_examples,
)
from pyboomer.engine.refinement import Search, cover, refine_rule
from pyboomer.engine.sampling import (
    Draw,
    Strata,
    count_examples,
    count_features,
    count_labels,
    draw_examples,
    fill_with_labels,
    make_draw,
)
from pyboomer.engine.statistics import (
    Diagonal,
    Layout,
    add_scores_to_rows,
    count_columns,
    resize,
    sum_label,
    sum_rows,
    sum_weights,
    take_labels,
)
from pyboomer.engine.sweeping import Sample, make_runs
from pyboomer.engine.threads import Threads
from pyboomer.losses.twin import update
from pyboomer.rules.precision import FLOOR


class Examples(NamedTuple):
    """The training examples as compiled code sees them."""

    truth: Any  # what the loss knows of them, see `losses.twin`
    scores: Array
    statistics: Array
    weight: Array


class Sampling(NamedTuple):
    """How examples are sampled, and room for what is drawn."""

    size: int  # of a sample; 0 for no sampling
    strata: Strata
    weights: Array  # of each example in the sample
    rows: Rows  # the examples: those sampled first


class Plan(NamedTuple):
    """How all rules are learned."""

    sampling: Sampling
    search: Search
    longest: int  # the most conditions that a body may have
    learning_rate: float


class Found(NamedTuple):
    """Room for the head of a rule: its labels, among those it may be about, their scores, and scores of all labels."""

    labels: NDArray[np.int64]
    scores: Array
    head: Array


# --- The labels that a rule may be about --------------------------------------------------------------------------------


class AllLabels(NamedTuple):
    """All of them."""

    labels: Draw  # of which nothing is drawn: `choices` are all labels


class DrawnLabels(NamedTuple):
    """Some, drawn for each rule or taken in turn, and room for their statistics."""

    labels: Draw
    in_turn: bool
    layout: Layout
    room: Array


class View(NamedTuple):
    """The labels that a rule is about, and their statistics."""

    labels: NDArray[np.int64]
    statistics: Array


@by_kind
def look_at(labels: Any, seed: int, rule: int, statistics: Array) -> View:
    """The labels that a rule may be about."""


@look_at.of(AllLabels)
def _look_at_all(labels: AllLabels, seed: int, rule: int, statistics: Array) -> View:  # noqa: ARG001
    return View(labels.labels.choices, statistics)


@look_at.of(DrawnLabels)
def _look_at_drawn(labels: DrawnLabels, seed: int, rule: int, statistics: Array) -> View:
    fill_with_labels(seed, rule, labels.in_turn, labels.labels)
    return _focus(labels.layout, statistics, labels.labels.drawn, labels.room)


@inner
def _focus(layout: Layout, statistics: Array, labels: NDArray[np.int64], room: Array) -> View:
    """Some of the labels."""
    n, size = statistics.shape[0], count_columns(resize(layout, labels.shape[0]))
    own = room[: n * size].reshape((n, size))
    take_labels(layout, statistics, labels, own)
    return View(labels, own)


# --- Rules with heads of each kind --------------------------------------------------------------------------------------


class Complete(NamedTuple):
    """Heads about all labels."""

    penalty: Penalty
    layout: Layout
    rating: Rating
    room: Room


class Single(NamedTuple):
    """Heads about one label."""

    penalty: Penalty
    layout: Diagonal
    choosing: Rating  # of the first condition
    settled: OneLabel  # of all others
    pairs: Array  # gradient and curvature of each example for the label
    sums: Array
    gains: Array


class Partial(NamedTuple):
    """Heads about some labels."""

    penalty: Penalty
    layout: Layout
    choosing: Rating  # of the first condition
    settled: Rating  # of all others
    room: Room
    statistics: Array  # room for those of the labels chosen


@kernel
def draw_sample(sampling: Sampling, seed: int, rule: int, weight: Array, statistics: Array) -> Sample:
    """Draw the examples that a rule is learned from (Alg. 1, line 5).

    Those sampled, of positive weight, are first in `sampling.rows`; behind them follow the others.
    """
    weights, rows = sampling.weights, sampling.rows
    if sampling.size > 0:
        draw_examples(seed, rule, sampling.size, sampling.strata, weights)
    n_sampled, last = np.uint64(0), np.uint64(rows.shape[0] - 1)
    for n in range(rows.shape[0]):
        weights[n] = weights[n] * weight[n] if sampling.size > 0 else weight[n]
        rows[n_sampled] = n
        rows[last] = n
        n_sampled += np.uint64(weights[n] > 0.0)
        last -= np.uint64(not weights[n] > 0.0)
    sampled = rows[: np.int64(n_sampled)]
    return Sample(statistics, weights, sampled, np.int64(n_sampled), sum_weights(sampled, weights))


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

    Returns how many examples it covers, which are then first in `plan.sampling.rows`, the number of its conditions and of
    its labels, its gain and its coverage.
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


@inner
def best_label(layout: Diagonal, sums: Array, penalty: Penalty, gains: Array, chosen: NDArray[np.int64]) -> np.int64:
    """The label of the largest gain; it is put into `chosen`."""
    rate_each_label(layout, sums, 0.0, penalty, gains)
    choose_labels(gains, 1, 0.0, chosen)
    return chosen[0]


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
        label = best_label(heads.layout, choosing.whole, penalty, heads.gains, labels)
        pack_pairs(statistics, label, sample.rows, choosing.whole, heads.pairs, settled.whole)
        sample = Sample(heads.pairs, sample.weights, sample.rows, sample.n_covered, sample.weight)
        sample, size, best = refine_rule(columns, sample, settled, search, rule, body, size, best)
    n_rows = cover(columns, body[:size], rows, sample.rows.shape[0], n_sampled, search.runs.entries.examples)
    covered = rows[:n_rows]
    if size == 0:  # nothing to learn from the sample: the label that suits all examples best
        sum_rows(statistics, 0, covered, weight, heads.sums)
        best_label(heads.layout, heads.sums, penalty, heads.gains, labels)
    g, h, coverage = sum_label(statistics, labels[0], covered, weight)
    gain, found.scores[0] = solve_label(g, h, penalty)
    return n_rows, size, 1, gain, coverage


@kernel
def solve_label(g: float, h: float, penalty: Penalty) -> tuple[float, float]:
    """The gain and the score of a head for one label."""
    g = shrink(g, penalty.l1)
    return rate_label(g, h, penalty.l2), -g / (h + penalty.l2) if h + penalty.l2 > FLOOR else 0.0  # Eq. 17


@kernel
def pack_pairs(statistics: Array, label: int, rows: Rows, whole: Array, pairs: Array, sums: Array) -> None:
    """Gradient and curvature of one label, for some examples, and of their sums."""
    width = statistics.shape[1] // 2
    for r in range(rows.shape[0]):
        n = rows[r]
        pairs[n, 0] = statistics[n, label]
        pairs[n, 1] = statistics[n, width + label]
    sums[0], sums[1] = whole[label], whole[width + label]


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


# --- Algorithm 1 ----------------------------------------------------------------------------------------------------------


@kernel
def learn_rules(
    columns: Any, examples: Examples, labels: Any, heads: Any, plan: Plan, found: Found, first: int, chunk: Chunk
) -> tuple[int, int]:
    """Learn rules from number `first` on (Alg. 1, lines 3 to 8), as many as a chunk has room for.

    Scores and statistics are updated; the statistics of a user's own loss are left to the caller. Returns how many rules
    were learned, and how many examples the last one covers: the first in `plan.sampling.rows`.
    """
    seed, rows, longest, head = plan.search.seed, plan.sampling.rows, plan.longest, found.head
    used = used_scores = 0
    n_rows = np.int64(0)
    for t in range(chunk.gain.shape[0]):
        if used + longest > chunk.conditions.shape[0]:
            return t, n_rows
        rule, body = first + t, chunk.conditions[used : used + longest]
        view = look_at(labels, seed, rule, examples.statistics)
        sample = draw_sample(plan.sampling, seed, rule, examples.weight, view.statistics)  # line 5
        n_rows, size, m, gain, coverage = learn_rule(
            heads, columns, plan, sample, examples.weight, rule, body, found
        )
        chunk.n_conditions[t], chunk.gain[t], chunk.coverage[t] = size, gain, coverage
        used += size
        n_scores = 0
        own_labels, own_scores = chunk.labels[used_scores:], chunk.scores[used_scores:]
        for k in range(head.shape[0]):
            head[k] = 0.0
        for i in range(m):
            k = view.labels[found.labels[i]]
            head[k] = plan.learning_rate * found.scores[i]  # line 8
            own_labels[n_scores], own_scores[n_scores] = k, head[k]
            n_scores += heads.penalty.l1 == 0.0 or found.scores[i] != 0.0  # L1 regularisation leaves labels out
        n_scores = max(n_scores, 1)
        chunk.n_scores[t] = n_scores
        used_scores += n_scores
        begin, end = np.int64(own_labels[0]), np.int64(own_labels[n_scores - 1]) + 1
        add_scores_to_rows(examples.scores, rows[:n_rows], head, begin, end)
        update(examples.truth, examples.scores, rows[:n_rows], examples.statistics, begin, end)  # line 4, next round
    return chunk.gain.shape[0], n_rows


# --- The engine ---------------------------------------------------------------------------------------------------------


class Learner:
    """What engines on this machine have in common: the ledger, and how rules are learned."""

    def __init__(
        self, task: Task, settings: Settings, replay: Callable[[Array], None] | None, n_rules: int, threads: Threads
    ) -> None:
        n, n_labels = task.Y.shape
        n_features = len(task.columns.nominal)
        size, share, self.single = measure_head(settings.head, n_labels)
        self.task, self.threads = task, threads
        self.ledger = ledger = Ledger(task, settings.loss, self.single, threads)
        self.chunks: list[Chunk] = []
        self.n_rules = n_rules
        penalty = Penalty(float(settings.l1), float(settings.l2))
        if replay is None:
            default_l2 = settings.l2 if settings.default_l2 is None else settings.default_l2
            self.chunks.append(ledger.learn_default_rule(Penalty(penalty.l1, float(default_l2))))
            self.n_rules = 1
        else:
            replayed = ledger.scores[:, :n_labels].copy()
            replay(replayed)
            ledger.scores[:, :n_labels] = replayed
        ledger.write()

        n_drawn = count_labels(settings.max_labels, n_labels)
        labels = make_draw(n_labels, max(n_drawn, 1))
        layout = ledger.layout
        self.labels: Any = AllLabels(labels)
        if n_drawn < n_labels:
            layout = resize.in_python(layout, max(n_drawn, 1))
            self.labels = DrawnLabels(labels, n_drawn == 0, ledger.layout, np.empty(n * count_columns(layout)))
        self.heads = make_heads(layout, penalty, min(size, layout.n_labels), share, settings.search == "exact", n)
        if self.single:
            self.heads = make_single_heads(layout, penalty, n)
        self.most = 1 if self.single else min(size, layout.n_labels)  # labels of a head
        k = layout.n_labels
        self.found = Found(np.empty(k, dtype=np.int64), np.empty(k), np.zeros(pad(n_labels)))

        n_samples = 0
        if settings.bootstrap:
            n_samples = count_examples(settings.max_samples, n, settings.sampling == "with-replacement")
        sampling = Sampling(n_samples, task.strata, np.empty(n), np.empty(n, dtype=np.uint32))
        fixed = task.fixed_features
        features = make_draw(n_features, count_features(settings.max_features, n_features - len(fixed)), fixed)
        min_coverage = settings.min_coverage if settings.min_coverage > 1 else 0.0  # weights may add up to less than 1
        search = Search(int(settings.seed), float(min_coverage), features, make_runs(n), True)
        longest = n if settings.max_conditions is None else min(int(settings.max_conditions), n)
        self.plan = Plan(sampling, search, longest, float(settings.learning_rate))

    def take_rules(self) -> list[Chunk]:
        """The rules learned since the last call."""
        chunks, self.chunks = self.chunks, []
        return chunks

    def training_loss(self) -> float:
        """The mean loss of the training examples."""
        return self.ledger.mean_loss()

    def close(self) -> None:
        """Let the threads go."""
        self.threads.close()


class CompiledEngine(Learner):
    """Learns from columns that are sorted or sparse, example by example; all of Algorithm 1 is compiled."""

    def learn(self, count: int) -> None:
        """Learn `count` more rules."""
        ledger = self.ledger
        examples = Examples(ledger.truth, ledger.scores, ledger.statistics, self.task.weight)
        while count > 0:
            size = 1 if ledger.twin is None else count
            chunk = make_chunk(size, self.plan.longest, self.most)
            learned, n_rows = learn_rules(
                self.task.columns, examples, self.labels, self.heads, self.plan, self.found, self.n_rules, chunk
            )
            if ledger.twin is None:
                ledger.write(self.plan.sampling.rows[:n_rows])
            self.chunks.append(cut_chunk(chunk, learned))
            self.n_rules += learned
            count -= learned


def measure_head(head: str | int | float, n_labels: int) -> tuple[int, float, bool]:
    """The most labels that a head is about, the share of the largest gain that each must have, and if it is just one."""
    if isinstance(head, str):
        return (1 if head == "single" else n_labels), 0.0, head == "single"
    if isinstance(head, Integral):
        return min(int(head), n_labels), 0.0, int(head) == 1 < n_labels
    return n_labels, float(head), False


def make_heads(layout: Layout, penalty: Penalty, size: int, share: float, exact: bool, n: int) -> Complete | Partial:
    """How heads about all labels are learned, or about some."""
    settled = make_rating(layout, penalty, layout.n_labels, 0.0, exact)
    if size >= layout.n_labels and share == 0:
        return Complete(penalty, layout, settled, make_room(layout))
    choosing = make_rating(layout, penalty, size, share, exact)
    return Partial(penalty, layout, choosing, settled, make_room(layout), np.empty(n * count_columns(layout)))


def make_single_heads(layout: Any, penalty: Penalty, n: int) -> Single:
    """How heads about one label are learned."""
    choosing = make_single_rating(layout, penalty)
    settled = OneLabel(penalty, *np.empty((3, 2)))
    sums, gains = np.empty(count_columns(layout)), np.empty(layout.n_labels)
    return Single(penalty, layout, choosing, settled, np.empty((n, 2)), sums, gains)


def make_chunk(count: int, longest: int, most: int) -> Chunk:
    """Room for some rules, or for fewer with many conditions: memory is only taken where it is used."""
    numbers = np.empty((2, count), dtype=np.int64)
    conditions = np.empty((8 * count + 2 * longest, 3))
    labels, scores = np.empty(count * most, dtype=np.int32), np.empty(count * most)
    return Chunk(numbers[0], conditions, numbers[1], labels, scores, *np.empty((2, count)))


def cut_chunk(chunk: Chunk, count: int) -> Chunk:
    """The first rules of a chunk, without the room for more."""
    n_conditions, n_scores = chunk.n_conditions[:count], chunk.n_scores[:count]
    labels, scores = chunk.labels[: n_scores.sum()].copy(), chunk.scores[: n_scores.sum()].copy()
    conditions = chunk.conditions[: n_conditions.sum()].copy()
    return Chunk(n_conditions, conditions, n_scores, labels, scores, chunk.coverage[:count], chunk.gain[:count])
