"""Training states that learn rules in rounds: what they keep of the examples, and how they fit the heads of a round.

`learn_body` learns a body from the statistics at the beginning of the round; several threads may call it at the same
time, each with memory of its own. `fit_heads` fits the heads of the bodies, one after another and to first order.
`apply` adds the scores of finished rules to the examples, and `begin` brings the statistics up to date.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.columns.binned import BinnedColumns
from pyboomer.compiling.kernel import kernel
from pyboomer.compiling.simd import make_zeros, pad
from pyboomer.engine import odds
from pyboomer.engine.cpu.boosting import Examples, Found, draw_rows, fit_one_head, learn_one_body
from pyboomer.engine.cpu.ledger import Ledger
from pyboomer.engine.cpu.threads import divide
from pyboomer.engine.fixed import Scales, choose_unit
from pyboomer.engine.heads import Penalty
from pyboomer.engine.plan import Complete, Heads, Labels, Plan, is_single, make_plan, plan_heads, plan_labels
from pyboomer.engine.promise import Chunk, Settings
from pyboomer.engine.sampling import count_examples, count_labels, draw_few
from pyboomer.engine.samples import (
    Codes,
    GatheredSample,
    Search,
    add_condition,
    begin_search,
    find_terms,
    finish_body,
    gather_rows,
    learn_from_sample,
    make_rows_of_codes,
    make_sample,
    sum_features,
    transpose_codes,
)
from pyboomer.engine.statistics import advance, count_columns, resize
from pyboomer.losses.truth import Truth
from pyboomer.losses.twins import LABEL_WISE


EVERY_LABEL = np.empty(0, dtype=np.int64)
LARGE = 2**20  # terms of a sample that several threads learn from, if there are more than rules: a step takes long
FEW = 8  # a sample is small if there are so many times as many examples
LARGEST_LOSS = 128.0  # of a label, by odds that are as small or as large as they may be


class SampleBuffers(NamedTuple):
    """The memory of a thread that learns bodies from small samples."""

    plan: Plan
    heads: Complete
    sample: GatheredSample
    examples: Rows
    counts: NDArray[np.uint8]  # (N,): zeros


@kernel
def draw_sample(buffers: SampleBuffers, weight: Array, rule: int) -> np.int64:
    """Draw the examples of a rule (line 5), and their weights; returns how many there are."""
    sampling, seed, examples, own = buffers.plan.sampling, buffers.plan.search.seed, buffers.examples, buffers.sample
    if sampling.strata.ends.shape[0] == 0:
        bits = buffers.plan.search.runs.entries.bits
        return draw_few(seed, rule, sampling.size, weight, buffers.counts, bits, examples, own.weights)
    n = draw_rows(sampling, seed, rule, weight)
    for i in range(n):
        examples[i], own.weights[i] = sampling.rows[i], sampling.weights[sampling.rows[i]]
    return n


@kernel
def draw_and_learn(buffers: SampleBuffers, codes: Codes, odds_: odds.Odds, weight: Array, rule: int, body: Array) -> int:
    """Draw a sample, and learn the body of a rule from it (lines 5 and 6); returns the number of conditions."""
    n = draw_sample(buffers, weight, rule)
    gather_rows(codes, odds_, buffers.examples, 0, n, buffers.sample)
    return learn_from_sample(buffers.heads, buffers.plan, buffers.sample, n, rule, body)


class Body(NamedTuple):
    """A learned body."""

    conditions: Array  # (size, 4): feature, operator and value of each, and the gain that the body has with it
    labels: NDArray[np.int64]  # of the head, among those that the rule may be about; empty if they are yet to be chosen


class Buffers(NamedTuple):
    """The memory of a thread that learns bodies from statistics of all examples."""

    plan: Plan
    labels: Labels
    heads: Heads
    found: Found


class DenseState:
    """Statistics of all examples, for any loss and any head.

    `before` are scores at the beginning of a round of which some rules have been learned already; None for a new round.
    """

    def __init__(self, ledger: Ledger, settings: Settings, before: Array | None) -> None:
        self.ledger, self.settings, self.threads = ledger, settings, ledger.threads
        self.examples = Examples(ledger.truth, ledger.scores, ledger.statistics, ledger.task.weight)
        self.touched = np.zeros(len(ledger.everyone), dtype=bool)
        self.changes: Array | None = None
        if before is None:
            ledger.write()
        else:
            now = ledger.scores.copy()
            ledger.scores[:] = before
            ledger.write()
            ledger.scores[:] = now
            self.changes = now - before
        self.buffers = deque(self._make_buffers() for _ in range(self.threads.n_threads))

    def _make_buffers(self) -> Buffers:
        """Memory for one more thread."""
        ledger, settings = self.ledger, self.settings
        n, k = ledger.task.Y.shape
        labels = plan_labels(ledger.layout, n, settings)
        layout = resize(ledger.layout, len(labels.draw.drawn))
        by_bins = isinstance(ledger.task.columns, BinnedColumns) and ledger.sums_bins(settings)
        plan = make_plan(ledger.task, settings, count_columns(layout) if by_bins else 0)
        heads = plan_heads(layout, n, settings, is_single(settings.head, k), ledger.loss)
        return Buffers(plan, labels, heads, make_found(layout.n_labels, k))

    def begin(self) -> None:
        """Bring the statistics up to date."""
        self.ledger.write(self.ledger.everyone[self.touched])
        self.touched[:] = False

    def learn_bodies(self, rules: range) -> list[Body]:
        """Learn the bodies of some rules (Alg. 1, lines 5 and 6)."""
        return self.threads.share_buffers(self._learn_body, list(rules), self.buffers)

    def _learn_body(self, rule: int, buffers: Buffers) -> Body:
        plan, labels, heads, found = buffers
        body = np.empty((plan.longest, 4))
        size, m = learn_one_body(self.ledger.task.columns, self.examples, labels, heads, plan, found, rule, body)
        return Body(body[:size].copy(), found.labels[:m].copy())

    def fit_heads(self, first: int, bodies: Sequence[Body]) -> list[Chunk]:
        """Fit the heads (lines 7 and 8)."""
        if self.changes is not None:
            advance(self.ledger.layout, self.ledger.statistics, self.ledger.everyone, self.changes)
            self.changes, self.touched[:] = None, True
        plan, labels, heads, found = self.buffers[0]
        rules = []
        self.covered: list[Any] = []
        for rule, body in enumerate(bodies, first):
            found.labels[: len(body.labels)] = body.labels
            n_rows, m, gain, coverage = fit_one_head(
                *(self.ledger.task.columns, self.examples, labels, heads, plan, found),
                *(rule, body.conditions, len(body.labels)),
            )
            self.covered.append(plan.sampling.rows[:n_rows].copy())
            rules.append(make_rule(body.conditions, found.labels[:m], found.scores[:m], coverage, gain))
        return rules

    def apply(self, rules: Sequence[Chunk]) -> None:
        """Add the scores of the next rules of the round to the examples that they cover."""
        for rule in rules:
            rows = self.covered.pop(0)
            self.ledger.add_scores(rows, rule.labels, rule.scores)
            self.touched[rows] = True

    def mean_loss(self) -> float:
        """The mean loss of the training examples."""
        return self.ledger.mean_loss()


class OddsState:
    """Odds of all examples, for the label-wise logistic loss and heads about all labels, where samples are small."""

    def __init__(self, ledger: Ledger, settings: Settings, scores: Array, before: Array | None) -> None:
        assert isinstance(ledger.truth, Truth)
        self.task, self.settings, self.threads = ledger.task, settings, ledger.threads
        self.layout, self.columns = ledger.layout, ledger.task.columns
        self.odds = self.now = self._find_odds(ledger.truth, scores)
        self.changes = np.empty((0, 1))
        if before is not None:
            self.odds, self.changes = self._find_odds(ledger.truth, before), scores - before
        n, weight, codes = len(self.odds), self.task.weight, self.columns.codes
        self.rows_of_codes = make_rows_of_codes(n, len(codes))
        self.threads.share(
            lambda part: transpose_codes(codes, part.start, part.stop, self.rows_of_codes), self._divide()
        )
        self.masks = np.zeros(n, dtype=np.uint32)
        largest, total = float(weight.max()), float(weight.sum())
        self.buffers = deque(self._make_buffers() for _ in range(self.threads.n_threads))
        self.scales = Scales(*(1 / choose_unit(largest, total) for _ in range(2)))  # no statistic is larger than 1
        self.n_applied = 0

    def _make_buffers(self) -> SampleBuffers:
        """Memory for one more thread."""
        settings, k = self.settings, self.layout.n_labels
        plan = make_plan(self.task, settings, 0)
        heads = plan_heads(self.layout, 0, settings, False, settings.loss)
        assert isinstance(heads, Complete)
        size, n_drawn = plan.sampling.size, len(plan.search.features.drawn)
        sample = make_sample(size, self.columns.nominal, k, n_drawn)
        return SampleBuffers(plan, heads, sample, np.empty(size, dtype=np.uint32), np.zeros(len(self.odds), np.uint8))

    def _find_odds(self, truth: Truth, scores: Array) -> odds.Odds:
        found = np.empty(truth.signs.shape, dtype=np.float32)
        parts = self.threads.divide(len(found), found.shape[1], odds.CHUNK)
        self.threads.share(lambda part: odds.write_odds(truth.signs, scores, found, part), parts)
        return found

    def begin(self) -> None:
        """Statistics are computed from odds, which are up to date."""

    def learn_bodies(self, rules: range) -> list[Body]:
        """Learn the bodies of some rules (Alg. 1, lines 5 and 6): a thread each, or all threads for each step."""
        bodies = np.empty((len(rules), self.buffers[0].plan.longest, 4))
        n_threads, own = self.threads.n_threads, self.buffers[0].sample
        if 2 * len(rules) <= n_threads and own.terms.size >= LARGE:
            sizes = self._learn_together(rules, bodies)
        else:
            sizes = self.threads.share_buffers(self._learn_alone, list(zip(rules, bodies, strict=True)), self.buffers)
        return [Body(body[:size], EVERY_LABEL) for body, size in zip(bodies, sizes, strict=True)]

    def _learn_alone(self, rule_and_body: tuple[int, Array], buffers: SampleBuffers) -> int:
        rule, body = rule_and_body
        return draw_and_learn(buffers, self.rows_of_codes, self.odds, self.task.weight, rule, body)

    def _learn_together(self, rules: range, bodies: Array) -> list[int]:
        """Learn few bodies, each by several threads: as `draw_and_learn`, step by step."""
        share, weight, every = self.threads.share, self.task.weight, range(len(rules))
        buffers = list(self.buffers)[: len(rules)]
        n_parts = -(-self.threads.n_threads // len(rules))
        n_drawn = len(buffers[0].plan.search.features.drawn)

        def begin(i: int) -> Search:
            n = draw_sample(buffers[i], weight, rules[i])
            return begin_search(buffers[i].plan, buffers[i].sample, n, rules[i])

        def gather(part: tuple[int, slice]) -> None:
            i, some = part
            own = buffers[i].sample
            gather_rows(self.rows_of_codes, self.odds, buffers[i].examples, some.start, some.stop, own)
            find_terms(own, some.start, some.stop)

        def fill(part: tuple[int, slice]) -> None:
            i, some = part
            sum_features(buffers[i].plan, buffers[i].sample, searches[i], some.start, some.stop)

        def add(i: int) -> None:
            own = buffers[i]
            searches[i] = add_condition(own.heads, own.plan, own.sample, searches[i], rules[i], bodies[i])

        def finish(i: int) -> int:
            own = buffers[i]
            return finish_body(own.heads, own.plan, own.sample, searches[i], rules[i], bodies[i])

        searches = share(begin, every)
        share(gather, [(i, some) for i in every for some in divide(searches[i].n, n_parts)])
        while going_on := [i for i in every if not searches[i].is_over]:
            share(fill, [(i, some) for i in going_on for some in divide(n_drawn, n_parts)])
            share(add, going_on)
        return share(finish, every)

    def fit_heads(self, first: int, bodies: Sequence[Body]) -> list[Chunk]:  # noqa: ARG002
        """Fit the heads (lines 7 and 8)."""
        k, n_rules, settings = self.layout.n_labels, len(bodies), self.settings
        offsets = np.cumsum([0, *(len(body.conditions) for body in bodies)])
        packed = odds.Bodies(np.concatenate([body.conditions for body in bodies]), offsets)

        def work(part: slice) -> odds.RoundSums:
            sums = odds.make_round_sums(n_rules, k)
            odds.sum_round(
                *(self.columns.codes, packed, self.odds, self.task.weight, self.scales, self.changes, self.masks),
                *(odds.make_scratch(k), part.start, part.stop, sums),
            )
            return sums

        parts = self.threads.share(work, self._divide(n_rules))
        sums = odds.RoundSums(*(np.sum(own, axis=0) for own in zip(*parts, strict=True)))
        self.odds, self.changes = self.now, self.changes[:0]
        heads = odds.RoundHeads(np.empty((n_rules, k)), np.empty(n_rules), np.empty(n_rules))
        penalty = Penalty(float(settings.l1), float(settings.l2))
        buffer = np.empty(count_columns(self.layout))
        odds.solve_heads(self.layout, sums, self.scales, penalty, float(settings.learning_rate), buffer, heads)
        self.factors = odds.find_factors(self.odds.shape[1], heads.scores)
        self.n_applied = 0
        rules = []
        for body, scores, gain, coverage in zip(bodies, *heads, strict=True):
            labels = np.flatnonzero(scores) if settings.l1 > 0 else np.arange(k)
            labels = labels if len(labels) else np.array([k - 1])
            rules.append(make_rule(body.conditions, labels, scores[labels], coverage, gain))
        return rules

    def _divide(self, n_rules: int = 1) -> list[slice]:
        """Parts of the examples that take about as long as threads need to be woken up, or longer."""
        return self.threads.divide(len(self.odds), (2 + n_rules) * self.odds.shape[1], odds.CHUNK)

    def apply(self, rules: Sequence[Chunk]) -> None:
        """Add the scores of the next rules of the round to the examples that they cover."""
        which = np.uint32(((1 << len(rules)) - 1) << self.n_applied)
        self.n_applied += len(rules)

        def work(part: slice) -> None:
            scratch = odds.make_scratch(self.layout.n_labels)
            odds.multiply_odds(self.odds, self.masks, which, self.factors, scratch, part.start, part.stop)

        self.threads.share(work, self._divide(len(rules)))

    def mean_loss(self) -> float:
        """The mean loss of the training examples."""
        weight = self.task.weight
        total = float(weight.sum())
        unit = choose_unit(float(weight.max()) * LARGEST_LOSS * self.layout.n_labels, total * LARGEST_LOSS)
        parts = self.threads.share(
            lambda part: odds.sum_losses(self.now, weight, 1 / unit, part.start, part.stop), self._divide()
        )
        return float(sum(parts) * unit) / total


def suits_odds(ledger: Ledger, settings: Settings) -> bool:
    """Whether samples are small, heads about all labels, and odds enough to know."""
    task, truth = ledger.task, ledger.truth
    n, k = task.Y.shape
    size = count_examples(settings.max_samples, n, settings.sampling == "with-replacement") * settings.bootstrap
    plain = isinstance(truth, Truth) and truth.loss == LABEL_WISE and len(truth.weight) == 0
    complete = settings.head == "multi" and count_labels(settings.max_labels, k) == k
    return plain and complete and 0 < size * FEW <= n


def make_found(n_labels: int, n_all: int) -> Found:
    """Memory for a head of some labels, and for one of all."""
    return Found(np.empty(n_labels, dtype=np.int64), np.empty(n_labels), make_zeros((1, pad(n_all)))[0])


def make_rule(conditions: Array, labels: NDArray[np.int64], scores: Array, coverage: float, gain: float) -> Chunk:
    """A rule as a chunk of its own."""
    return Chunk(
        n_conditions=np.array([len(conditions)]),
        conditions=conditions,
        n_scores=np.array([len(labels)]),
        labels=labels.astype(np.int32),
        scores=np.array(scores),
        coverage=np.array([coverage]),
        gain=np.array([gain]),
    )
