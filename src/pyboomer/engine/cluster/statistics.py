"""Statistics of the examples of a cluster, for any loss and any head; a round has one rule."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.columns.binned import BinnedColumns
from pyboomer.compiling.kernel import kernel
from pyboomer.compiling.simd import make_zeros, pad
from pyboomer.engine.cluster.leader import Leader
from pyboomer.engine.cluster.shard import Examples, SampledRows, Shard, join_blocks, order_parts
from pyboomer.engine.cluster.task import Block, ClusterTask
from pyboomer.engine.cpu.boosting import learn_drawn_body
from pyboomer.engine.cpu.rounds import make_head_buffer
from pyboomer.engine.cpu.state import ExampleState, choose_layout
from pyboomer.engine.cpu.threads import divide
from pyboomer.engine.fixed import Scales, Whole, add_rows, add_systems, choose_unit, find_largest, fix_values
from pyboomer.engine.heads import Penalty, find_best_label, solve_diagonal, solve_label, solve_system, unpack
from pyboomer.engine.odds_state import make_rule
from pyboomer.engine.protocol import Chunk, Task
from pyboomer.engine.rounds import Body
from pyboomer.engine.sampling import fill_with_labels
from pyboomer.engine.search.gains import choose_head
from pyboomer.engine.search.plan import Partial, Single, SomeLabels, is_single, make_plan, plan_heads, plan_labels
from pyboomer.engine.search.refinement import cover
from pyboomer.engine.statistics import Dense, Diagonal, Layout, Outer, count_columns, resize, take_labels


class Covered(NamedTuple):
    """Sums of statistics and weights over the examples that a body covers, in whole numbers."""

    statistics: Whole
    weight: int


@kernel
def list_covered(columns: BinnedColumns, body: Array, rows: Rows, scratch: Rows) -> np.int64:
    """Put the examples that a body covers first in `rows`; returns how many there are."""
    return cover(columns, body, rows, 0, 0, scratch)


class ShardOfStatistics(Shard):
    """A shard that keeps scores and statistics, for any loss and any head; rounds have one rule."""

    def _keep_scores(self, blocks: Sequence[Block], held_out: Sequence[Block]) -> None:
        self.state = self._make_ledger(blocks, self.examples)
        self.layout = self.state.layout
        others = sorted(held_out, key=lambda block: block.first)
        self.held_out = self._make_ledger(others, join_blocks(others)) if others else None
        self.largest = float(find_largest(self.state.statistics, self.everyone))
        self.body, self.covered = np.empty((0, 4)), self.everyone[:0]

    def _make_ledger(self, blocks: Sequence[Block], examples: Examples) -> ExampleState:
        given, settings, k = self.task, self.task.settings, self.task.n_labels
        Y = np.concatenate([block.Y for block in blocks])
        label_weight = None
        if any(block.label_weight is not None for block in blocks):
            each = [np.ones(b.Y.shape) if b.label_weight is None else b.label_weight for b in blocks]
            label_weight = np.concatenate(each)
        task = Task(BinnedColumns(examples.codes, given.nominal), Y, examples.weight, label_weight)
        state = ExampleState(task, settings.loss, is_single(settings.head, k), self.threads)
        if blocks[0].scores is not None:
            state.scores[:, :k] += np.concatenate([block.scores for block in blocks if block.scores is not None])
        elif given.default is not None:
            state.scores[:, :k] += given.default[0]
        state.write()
        return state

    def _make_memory(self) -> Any:
        task, settings, state = self.task, self.task.settings, self.state
        room = task.make_solver_buffers()
        n = len(room.Y)
        labels = plan_labels(self.layout, n, settings)
        layout = resize(self.layout, len(labels.draw.drawn))
        plan = make_plan(room, settings, count_columns(layout) if state.sums_bins(settings) else 0)
        heads = plan_heads(layout, n, settings, is_single(settings.head, task.n_labels), settings.loss)
        columns = BinnedColumns(np.empty((len(task.nominal), n), dtype=np.uint8), task.nominal)
        found = make_head_buffer(layout.n_labels, task.n_labels)
        return plan, labels, heads, found, columns, make_zeros((n, count_columns(self.layout)))

    def _list_arrays(self) -> tuple[NDArray[np.uint8], Array]:
        return self.examples.codes.T, self.state.statistics

    def _make_rows(self, n: int) -> tuple[NDArray[np.uint8], Array]:
        return np.empty((n, len(self.task.nominal)), dtype=np.uint8), np.empty((n, count_columns(self.layout)))

    def _copy_rows(self, rows: Rows, codes: NDArray[np.uint8], scores: Array) -> None:
        codes[:] = np.take(self.examples.codes, rows, axis=1).T
        np.take(self.state.statistics, rows, axis=0, out=scores, mode="clip")  # other modes copy once more

    def _learn_bodies(self, rules: Sequence[int], samples: Sequence[Sequence[SampledRows]]) -> list[Body]:
        def learn(i: int, memory: Any) -> Body:
            plan, labels, heads, found, columns, statistics = memory
            n = 0
            for part, places in order_parts(samples[i]):
                plan.sampling.weights[places] = part.weights
                statistics[places] = part.scores[part.rows]
                columns.codes[:, places] = part.codes.T[:, part.rows]
                n += len(places)
            plan.sampling.rows[:n] = np.arange(n)
            body = np.empty((plan.longest, 4))
            size, m = learn_drawn_body(columns, statistics, labels, heads, plan, n, rules[i], body, found.labels)
            return Body(body[:size].copy(), found.labels[:m].copy())

        return self.learning.share_buffers(learn, range(len(rules)), self.memory)

    def find_largest(self) -> float:
        """The size of the largest statistic there has been."""
        return self.largest

    def sum_covered(self, body: Array, scales: Scales, written_out: bool) -> Covered:
        """Sums over the examples that a body covers, with Hessians written out if they are to be."""
        parts = divide(self.n, self.threads.n_threads) or [slice(0, 0)]
        layout = Dense(self.layout.n_labels) if written_out else self.layout

        def work(part: slice) -> tuple[Rows, Whole, int]:
            covered = self._list_covered(self.state, body, part)
            sums = np.zeros(count_columns(layout), dtype=np.int64)
            if written_out:
                assert isinstance(self.layout, Outer)
                weight = add_systems(
                    self.layout, self.state.statistics, covered, self.weight, scales, np.zeros(len(sums)), sums
                )
            else:
                weight = add_rows(self.state.statistics, covered, self.weight, scales, sums)
            return covered, sums, int(weight)

        covered, sums, weights = zip(*self.threads.share(work, parts), strict=True)
        self.body, self.covered = body, np.concatenate(covered)
        return Covered(np.sum(sums, axis=0), sum(weights))

    def _list_covered(self, state: ExampleState, body: Array, part: slice) -> Rows:
        rows = state.everyone[part].copy()
        return rows[: list_covered(state.task.columns, body, rows, np.empty_like(rows))]

    def _apply(self, labels: NDArray[np.int64], scores: Array) -> None:
        if len(self.body) == 0:  # all statistics are new ones: those of targets far from 0 are much smaller now
            self.largest = 0.0
        self.state.apply(self.covered, labels, scores)
        self.largest = max(self.largest, float(find_largest(self.state.statistics, self.covered)))
        if self.held_out is not None:
            self.held_out.apply(self._list_covered(self.held_out, self.body, slice(None)), labels, scores)

    def find_losses(self, held_out: bool) -> float:
        """Compute the losses of all examples, or of those held out; returns the largest."""
        state = self.held_out if held_out else self.state
        self.losses = np.empty(0)
        if state is not None:
            losses = [state.list_losses(rows) for rows in state.list_blocks()]
            self.losses = np.concatenate([self.losses, *losses]) * state.task.weight
        return float(np.abs(self.losses).max(initial=0.0))

    def sum_losses(self, unit: float) -> int:
        """The sum of the losses computed last."""
        losses, self.losses = self.losses, np.empty(0)
        return int(fix_values(losses, unit).sum())


class StatisticsState:
    """Statistics of all examples, for any loss and any head; a round has one rule."""

    def __init__(self, leader: Leader, task: ClusterTask) -> None:
        self.leader, self.task, self.settings = leader, task, task.settings
        k, single = task.n_labels, is_single(task.settings.head, task.n_labels)
        self.layout = choose_layout(self.settings.loss, k, single)
        self.labels = plan_labels(self.layout, 0, self.settings)
        self.heads = plan_heads(
            resize(self.layout, len(self.labels.draw.drawn)), 0, self.settings, single, self.settings.loss
        )
        self.largest = 1.0  # statistic there has been

    def learn_bodies(self, rules: range) -> list[Body]:
        """Learn the body of a rule (Alg. 1, lines 4 to 6)."""
        bodies, self.largest = self.leader.learn_bodies(rules)
        return bodies

    def fit_heads(self, first: int, bodies: Sequence[Body]) -> list[Chunk]:
        """Fit its head (lines 7 and 8)."""
        (body,) = bodies
        about = self.labels.draw.choices
        if isinstance(self.labels, SomeLabels):
            fill_with_labels(self.settings.seed, first, self.labels.in_turn, self.labels.draw)
            about = self.labels.draw.drawn.copy()
        penalty = self.heads.penalty
        if len(body.labels) == 0:  # nothing was learned from the sample: the labels that suit all examples best
            chosen = self._choose_labels(body.conditions, about)
        else:
            chosen = body.labels
        labels = about[chosen]
        scores, gain, coverage = self.fit_head(body.conditions, labels, penalty)
        kept = (scores != 0) | (penalty.l1 == 0)  # L1 regularisation leaves labels out
        kept[-1] |= not kept.any()  # if none is left: the last one, as in `cpu.boosting`
        scores = float(self.settings.learning_rate) * scores[kept]
        return [make_rule(body.conditions, labels[kept], scores, coverage, gain)]

    def _choose_labels(self, conditions: Array, about: NDArray[np.int64]) -> NDArray[np.int64]:
        """The labels of a head, by all examples that a body covers."""
        heads = self.heads
        sums, weight = self._sum_covered(conditions, self.layout)
        own = self._take(self.layout, sums, about)
        if isinstance(heads, Single):
            return np.array([find_best_label(heads.layout, own, heads.penalty, heads.gains)])
        assert isinstance(heads, Partial)
        return heads.choosing.labels[: choose_head(heads.choosing, own, weight)].copy()

    def _sum_covered(self, conditions: Array, layout: Layout) -> tuple[Array, float]:
        """Sums over all examples that a body covers, and their weight."""
        written_out = isinstance(layout, Dense)
        most = self.task.summary.largest_weight
        total = self.task.summary.n * most
        largest = max(1.0, 2 * self.largest) * self.largest if written_out else self.largest  # of a - b^2
        units = choose_unit(most * largest, total * largest), choose_unit(most, total)
        scales = Scales(*(1 / unit for unit in units))
        answers: list[Covered] = self.leader.ask("sum_covered", conditions, scales, written_out)
        sums = np.sum([covered.statistics for covered in answers], axis=0).astype(np.float64)
        return sums * units[0], sum(covered.weight for covered in answers) * units[1]

    def _take(self, layout: Layout, sums: Array, labels: NDArray[np.int64]) -> Array:
        """Sums of some of the labels."""
        taken = make_zeros((1, count_columns(resize(layout, len(labels)))))
        take_labels(layout, sums[None], np.zeros(1, dtype=np.uint32), labels, taken)
        return np.asarray(taken[0])

    def fit_head(self, conditions: Array, labels: NDArray[np.int64], penalty: Penalty) -> tuple[Array, float, float]:
        """The head of a body for some labels, its gain and its coverage."""
        m, k = len(labels), self.task.n_labels
        layout = Dense(k) if isinstance(self.layout, Outer) else self.layout
        sums, coverage = self._sum_covered(conditions, layout)
        if isinstance(self.heads, Single) and m == 1:
            gain, score = solve_label(sums[labels[0]], sums[pad(k) + labels[0]], penalty)
            return np.array([score]), gain, coverage
        own, head = self._take(layout, sums, labels), np.empty(m)
        if isinstance(layout, Diagonal):
            return head, solve_diagonal(Diagonal(m), own, penalty, head), coverage
        A, L = make_zeros((m, pad(m))), make_zeros((m, pad(m)))
        unpack(m, own, 0.0, A, head)
        return head, solve_system(own, penalty, A, L, head), coverage

    def apply(self, rules: Sequence[Chunk]) -> None:
        """Add the scores of a rule to the examples that it covers."""
        for rule in rules:
            self.leader.update(rule.labels.astype(np.int64), rule.scores)

    def fit_default_head(self, penalty: Penalty) -> tuple[Array, float]:
        """The head of the default rule of a quadratic loss, and its gain; it is applied."""
        labels, everything = np.arange(self.task.n_labels), np.empty((0, 4))
        head, gain = np.zeros(len(labels)), 0.0
        for _ in range(3):  # a step is enough; further ones find what rounding leaves of targets far from 0
            self.largest = max(self.leader.ask("find_largest"))
            step, gained, _ = self.fit_head(everything, labels, penalty)
            self.leader.update(labels, step)
            head, gain = head + step, gain + gained
        return head, gain

    def mean_loss(self, held_out: bool = False) -> float:
        """The mean loss of the training examples, or of those held out."""
        known = self.task.summary
        n, weight = (known.n_held_out, known.held_out_weight) if held_out else (known.n, known.weight)
        largest = max(self.leader.ask("find_losses", held_out))
        unit = choose_unit(largest, n * largest)
        return float(sum(self.leader.ask("sum_losses", unit)) * unit) / weight
