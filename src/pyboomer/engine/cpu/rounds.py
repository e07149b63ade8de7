"""Training states of this process (`rounds.TrainingState`); threads learn the bodies of a round side by side."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.columns.binned import BinnedColumns
from pyboomer.compiling.kernel import kernel
from pyboomer.compiling.simd import make_zeros, pad
from pyboomer.engine.cpu.boosting import Examples, HeadBuffer, draw_rows, fit_one_head, learn_one_body
from pyboomer.engine.cpu.state import ExampleState
from pyboomer.engine.cpu.threads import Threads, divide
from pyboomer.engine.odds import CHUNK, Odds, write_odds
from pyboomer.engine.odds_state import OddsShard, are_samples_small, choose_scales, make_rule
from pyboomer.engine.protocol import Chunk, Settings, Task
from pyboomer.engine.rounds import Body
from pyboomer.engine.sampling import count_examples, draw_few
from pyboomer.engine.search.plan import Complete, Heads, Labels, Plan, is_single, make_plan, plan_heads, plan_labels
from pyboomer.engine.search.samples import (
    ALL,
    BEGIN,
    CONDITION,
    END,
    SUMS,
    TERMS,
    GatheredSample,
    Search,
    gather_rows,
    make_sample,
    take_step,
)
from pyboomer.engine.statistics import Diagonal, advance, count_columns, resize
from pyboomer.losses.compiled import LABEL_WISE
from pyboomer.losses.truth import Truth

EVERY_LABEL = np.empty(0, dtype=np.int64)
LARGE = 2**20  # terms of a sample that several threads learn from, if there are more than rules: a step takes long


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


def learn_alone(buffers: SampleBuffers, n: int, rule: int) -> Body:
    """Learn the body of a rule from a sample of n examples."""
    body = np.empty((buffers.plan.longest, 4))
    search = take_step(ALL, buffers.heads, buffers.plan, buffers.sample, Search(n, 0, 0.0, False), rule, body, 0, n)
    return Body(body[: search.size].copy(), EVERY_LABEL)


class Buffers(NamedTuple):
    """The memory of a thread that learns bodies from statistics of all examples."""

    plan: Plan
    labels: Labels
    heads: Heads
    found: HeadBuffer


def make_buffers(state: ExampleState, settings: Settings) -> Buffers:
    """Memory for one thread."""
    n, k = state.task.Y.shape
    labels = plan_labels(state.layout, n, settings)
    layout = resize(state.layout, len(labels.draw.drawn))
    by_bins = isinstance(state.task.columns, BinnedColumns) and state.sums_bins(settings)
    plan = make_plan(state.task, settings, count_columns(layout) if by_bins else 0)
    heads = plan_heads(layout, n, settings, is_single(settings.head, k), state.loss)
    return Buffers(plan, labels, heads, make_head_buffer(layout.n_labels, k))


class DenseState:
    """Statistics of all examples, for any loss and any head.

    `before` are scores at the beginning of a round of which some rules have been learned already; None for a new round.
    """

    def __init__(self, state: ExampleState, settings: Settings, before: Array | None) -> None:
        self.state, self.settings, self.threads = state, settings, state.threads
        self.examples = Examples(state.truth, state.scores, state.statistics, state.task.weight)
        self.touched = np.zeros(len(state.everyone), dtype=bool)
        self.changes: Array | None = None
        if before is None:
            state.write()
        else:
            now = state.scores.copy()
            state.scores[:] = before
            state.write()
            state.scores[:] = now
            self.changes = now - before
        self.buffers = [make_buffers(state, settings) for _ in range(self.threads.n_threads)]

    def learn_bodies(self, rules: range) -> list[Body]:
        """Bring the statistics up to date, and learn the bodies of a round (Alg. 1, lines 4 to 6)."""
        self.state.write(self.state.everyone[self.touched])
        self.touched[:] = False
        return self.threads.share_buffers(self._learn_body, list(rules), self.buffers)

    def _learn_body(self, rule: int, buffers: Buffers) -> Body:
        plan, labels, heads, found = buffers
        body = np.empty((plan.longest, 4))
        size, m = learn_one_body(self.state.task.columns, self.examples, labels, heads, plan, found, rule, body)
        return Body(body[:size].copy(), found.labels[:m].copy())

    def fit_heads(self, first: int, bodies: Sequence[Body]) -> list[Chunk]:
        """Fit the heads (lines 7 and 8)."""
        if self.changes is not None:
            advance(self.state.layout, self.state.statistics, self.state.everyone, self.changes)
            self.changes, self.touched[:] = None, True
        plan, labels, heads, found = self.buffers[0]
        rules = []
        self.covered: list[Any] = []
        for rule, body in enumerate(bodies, first):
            found.labels[: len(body.labels)] = body.labels
            n_rows, m, gain, coverage = fit_one_head(
                *(self.state.task.columns, self.examples, labels, heads, plan, found),
                *(rule, body.conditions, len(body.labels)),
            )
            self.covered.append(plan.sampling.rows[:n_rows].copy())
            rules.append(make_rule(body.conditions, found.labels[:m], found.scores[:m], coverage, gain))
        return rules

    def apply(self, rules: Sequence[Chunk]) -> None:
        """Add the scores of the next rules of the round to the examples that they cover."""
        for rule in rules:
            rows = self.covered.pop(0)
            self.state.add_scores(rows, rule.labels, rule.scores)
            self.touched[rows] = True

    def mean_loss(self) -> float:
        """The mean loss of the training examples."""
        return self.state.mean_loss()


class HostOdds(OddsShard):
    """Odds of all examples, which threads of this process learn bodies from, see `odds_state.Shards`."""

    def __init__(self, state: ExampleState, settings: Settings, scores: Array, before: Array | None) -> None:
        assert isinstance(state.truth, Truth)
        self.task, self.settings, self.layout, self.threads = state.task, settings, state.layout, state.threads
        weight = state.task.weight
        self.largest, self.total = float(weight.max()), float(weight.sum())
        now, earlier = self._find_odds(state.truth, scores), None
        if before is not None:
            earlier = self._find_odds(state.truth, before), scores - before
        scales = choose_scales(self.largest, self.total)
        super().__init__(state.task.columns.codes, now, earlier, weight, scales, state.threads)
        self.buffers = [self._make_buffers() for _ in range(self.threads.n_threads)]

    def _make_buffers(self) -> SampleBuffers:
        """Memory for one more thread."""
        settings, n = self.settings, len(self.odds)
        size = count_examples(settings.max_samples, n, settings.sampling == "with-replacement")
        memory = make_sample_buffers(self.task, settings, Diagonal(self.layout.n_labels), size)
        return memory._replace(examples=np.empty(size, dtype=np.uint32), counts=np.zeros(n, np.uint8))

    def _find_odds(self, truth: Truth, scores: Array) -> Odds:
        found: Odds = np.empty(truth.signs.shape, dtype=np.float32)
        parts = self.threads.divide(len(found), found.shape[1], CHUNK)
        self.threads.share(lambda part: write_odds(truth.signs, scores, found, part), parts)
        return found

    def learn_bodies(self, rules: range) -> list[Body]:
        """Learn the bodies of a round (Alg. 1, lines 5 and 6): a thread each, or all threads for each step."""

        def draw(i: int, own: SampleBuffers) -> int:
            return int(draw_sample(own, self.weight, rules[i]))

        def gather(own: SampleBuffers, some: slice) -> None:
            gather_rows(self.rows_of_codes, self.odds, own.examples, some.start, some.stop, own.sample)

        def learn(i: int, own: SampleBuffers) -> Body:
            n = draw(i, own)
            gather(own, slice(0, n))
            return learn_alone(own, n, rules[i])

        self.end_round()
        if do_learn_together(self.threads, len(rules), self.buffers[0].sample):
            return learn_together(self.threads, self.buffers, rules, draw, gather)
        return self.threads.share_buffers(learn, range(len(rules)), self.buffers)


def make_sample_buffers(task: Task, settings: Settings, layout: Diagonal, size: int) -> SampleBuffers:
    """Memory for samples of so many examples; for no draws yet."""
    plan = make_plan(task, settings, 0)
    heads = plan_heads(layout, 0, settings, False, settings.loss)
    assert isinstance(heads, Complete)
    sample = make_sample(size, task.columns.nominal, layout.n_labels, len(plan.search.features.drawn))
    return SampleBuffers(plan, heads, sample, np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.uint8))


def do_learn_together(threads: Threads, n_rules: int, sample: GatheredSample) -> bool:
    """Whether several threads learn each body."""
    return 2 * n_rules <= threads.n_threads and sample.terms.size >= LARGE


def learn_together(
    threads: Threads,
    memory: Sequence[SampleBuffers],
    rules: Sequence[int],
    draw: Callable[[int, SampleBuffers], int],
    gather: Callable[[SampleBuffers, slice], None],
) -> list[Body]:
    """Learn few bodies, each by several threads: as `learn_alone`, step by step."""
    share, every, buffers = threads.share, range(len(rules)), memory[: len(rules)]
    n_parts = -(-threads.n_threads // len(rules))
    n_drawn = len(buffers[0].plan.search.features.drawn)
    bodies: Array = np.empty((len(rules), buffers[0].plan.longest, 4))
    searches = [Search(0, 0, 0.0, False)] * len(rules)

    def take(step: int, i: int, some: slice = slice(0, 0)) -> None:
        own, search = buffers[i], searches[i]
        found = take_step(*(step, own.heads, own.plan, own.sample, search, rules[i], bodies[i], some.start, some.stop))
        if step not in (TERMS, SUMS):
            searches[i] = found

    def begin(i: int) -> None:
        searches[i] = Search(draw(i, buffers[i]), 0, 0.0, False)
        take(BEGIN, i)

    def collect(part: tuple[int, slice]) -> None:
        i, some = part
        gather(buffers[i], some)
        take(TERMS, i, some)

    share(begin, every)
    share(collect, [(i, some) for i in every for some in divide(searches[i].n, n_parts)])
    while going_on := [i for i in every if not searches[i].is_over]:
        share(lambda part: take(SUMS, *part), [(i, some) for i in going_on for some in divide(n_drawn, n_parts)])
        share(lambda i: take(CONDITION, i), going_on)
    share(lambda i: take(END, i), every)
    return [Body(body[: search.size].copy(), EVERY_LABEL) for body, search in zip(bodies, searches, strict=True)]


def suits_odds(state: ExampleState, settings: Settings) -> bool:
    """Whether samples are small, heads about all labels, and odds enough to know."""
    truth = state.truth
    plain = isinstance(truth, Truth) and truth.loss == LABEL_WISE and len(truth.weight) == 0
    return plain and are_samples_small(settings, *state.task.Y.shape)


def make_head_buffer(n_labels: int, n_all: int) -> HeadBuffer:
    """Memory for a head of some labels, and for one of all."""
    return HeadBuffer(np.empty(n_labels, dtype=np.int64), np.empty(n_labels), make_zeros((1, pad(n_all)))[0])
