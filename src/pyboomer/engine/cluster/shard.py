"""A shard is the examples of one worker: binned, with their weights and scores.

Examples have numbers among all examples of the cluster, and draws are of these numbers. So it does not matter which
shard has an example. Sums over examples are sums of integers (`fixed`), so that it does not matter how many shards
there are, either. A worker learns a body from a sample that is gathered from all shards.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.columns.binned import BinnedColumns
from pyboomer.compiling.kernel import kernel
from pyboomer.compiling.simd import make_zeros, pad, prefetch
from pyboomer.engine.cpu.boosting import learn_drawn_body
from pyboomer.engine.cpu.ledger import Ledger
from pyboomer.engine.cpu.rounds import (
    EVERY_LABEL,
    SampleBuffers,
    do_learn_together,
    learn_together,
    make_found,
    make_sample_buffers,
)
from pyboomer.engine.cpu.threads import Threads, divide
from pyboomer.engine.fixed import Scales, Whole, add_rows, add_systems, find_largest, fix_values
from pyboomer.engine.odds import BLOCK, Bodies, Odds, RoundSums, write_odds
from pyboomer.engine.odds_state import OddsShard, choose_scales
from pyboomer.engine.protocol import Settings, Task
from pyboomer.engine.rounds import Body
from pyboomer.engine.sampling import Places, count_examples, draw_here
from pyboomer.engine.search.plan import is_single, make_plan, plan_heads, plan_labels
from pyboomer.engine.search.refinement import cover
from pyboomer.engine.search.samples import Codes, copy_rows, learn_from_sample
from pyboomer.engine.statistics import Dense, Diagonal, Outer, count_columns, resize
from pyboomer.losses.truth import pad_signs

CACHE_LINE = 64  # bytes


class Block(NamedTuple):
    """Examples that follow one another."""

    first: int  # the number of the first one
    codes: NDArray[np.uint8]  # (L, n)
    Y: NDArray[Any]  # (n, K), as in `protocol.Task`
    weight: Array | None  # (n,); None if all are 1
    label_weight: Array | None  # (n, K)
    scores: Array | None  # (n, K): of rules that there are already
    before: Array | None = None  # those at the beginning of the round, if some rules of the round are there


class ClusterTask(NamedTuple):
    """How rules are learned on a cluster, and what is known of all examples; `protocol.Task` without the examples."""

    settings: Settings
    n: int  # examples
    weight: float  # of all of them
    largest_weight: float
    n_labels: int
    nominal: NDArray[np.int8]
    fixed_features: NDArray[np.int64]
    by_odds: bool  # whether the training state is that of odds
    default: tuple[Array, float] | None  # the head of the default rule and its gain, if they are known
    n_rules: int = 0  # that there are already
    n_held_out: int = 0
    held_out_weight: float = 0.0

    def count_sampled(self) -> int:
        """The size of a sample; 0 for no sampling."""
        return count_examples(self.settings.max_samples, self.n, True) * self.settings.bootstrap

    def count_bytes(self) -> int:
        """The size of a sample in a message, about."""
        return (self.count_sampled() or self.n) * (len(self.nominal) + (4 if self.by_odds else 24) * self.n_labels)

    def make_room(self) -> Task:
        """A task of as many examples as a sample may have, for plans to be made from."""
        n = min(self.count_sampled() or self.n, self.n)
        columns = BinnedColumns(np.empty((len(self.nominal), 0), dtype=np.uint8), self.nominal)
        return Task(columns, np.empty((n, 0)), np.empty(0), fixed_features=self.fixed_features)


class SampledRows(NamedTuple):
    """What a shard has of some samples, one sample after another."""

    ends: NDArray[np.int64]  # where each sample ends
    numbers: NDArray[Any]  # of the examples: ascending in each sample
    weights: NDArray[Any]
    rows: Rows  # where the examples are in the next two arrays
    codes: NDArray[np.uint8]
    scores: NDArray[Any]  # odds or statistics
    largest: float  # the size of the largest statistic there may be


class Learned(NamedTuple):
    """The bodies that a worker has learned, and the size of the largest statistic."""

    bodies: list[Body]
    largest: float


class Covered(NamedTuple):
    """Sums of statistics and weights over the examples that a body covers, in whole numbers."""

    statistics: Whole
    weight: int


class Examples(NamedTuple):
    """The blocks of a shard, put together."""

    places: Places
    codes: NDArray[np.uint8]
    weight: Array


def join_blocks(blocks: Sequence[Block]) -> Examples:
    """Put blocks together, which are in ascending order."""
    edges = np.cumsum([0, *(block.codes.shape[1] for block in blocks)])
    codes = np.empty((len(blocks[0].codes), edges[-1]), dtype=np.uint8)
    weight = np.ones(edges[-1])
    for block, (begin, end) in zip(blocks, pairwise(edges), strict=True):
        codes[:, begin:end] = block.codes
        if block.weight is not None:
            weight[begin:end] = block.weight
    return Examples(Places(np.array([block.first for block in blocks], dtype=np.int64), edges), codes, weight)


def order_parts(parts: Sequence[SampledRows]) -> Iterator[tuple[SampledRows, Rows]]:
    """The places of the examples of each part in their sample, which is in the order of their numbers."""
    numbers = np.concatenate([part.numbers for part in parts])
    ranks = np.empty(len(numbers), dtype=np.uint32)
    ranks[np.argsort(numbers, kind="stable")] = np.arange(len(numbers), dtype=np.uint32)
    begin = 0
    for part in parts:
        yield part, ranks[begin : begin + len(part.numbers)]
        begin += len(part.numbers)


class Shard:
    """See the module's docstring. Methods without an underscore are called by the leader or by other workers."""

    largest: float  # the size of the largest statistic there has been

    def __init__(self, blocks: Sequence[Block], held_out: Sequence[Block], task: ClusterTask, n_threads: int) -> None:
        self.task, self.threads = task, Threads(n_threads)
        self.size = task.count_sampled()
        blocks = sorted(blocks, key=lambda block: block.first) or [_take_none(held_out[0])]
        self.examples = join_blocks(blocks)
        self.places, _, self.weight = self.examples
        self.n = len(self.weight)
        self.everyone = np.arange(self.n, dtype=np.uint32)
        self.are_all_one = bool((self.weight == 1).all())
        self.n_updates = 0
        self.sent: dict[str, tuple[NDArray[np.uint8], NDArray[Any]]] = {}  # the memory of what was sent, by address
        self.memory: list[Any] = []  # of the threads that learn bodies
        self._keep_scores(blocks, held_out)

    def answer(self, updates: Sequence[tuple[int, Any]], name: str, arguments: Sequence[Any]) -> Any:
        """Apply those updates of scores that have not been applied, and return what a method returns."""
        for number, update in updates:
            if number == self.n_updates:
                self._apply(*update)
                self.n_updates += 1
        return getattr(self, name)(*arguments)

    def close(self) -> None:
        """End the threads."""
        self.threads.close()

    def update(self) -> None:
        """Apply updates only."""

    def _keep_scores(self, blocks: Sequence[Block], held_out: Sequence[Block]) -> None:
        """Make the training state of the examples, and that of those held out."""
        raise NotImplementedError

    def _apply(self, *update: Any) -> None:
        """Add the scores of rules to the examples that they cover."""
        raise NotImplementedError

    def _make_memory(self) -> Any:
        """Memory for a thread that learns bodies."""
        raise NotImplementedError

    def _list_arrays(self) -> tuple[NDArray[np.uint8], NDArray[Any]]:
        """Bin numbers and scores of the examples, a row for each."""
        raise NotImplementedError

    def _copy_rows(self, rows: Rows, codes: NDArray[np.uint8], scores: Any) -> None:
        """Copy bin numbers and scores of some examples."""
        raise NotImplementedError

    def _make_rows(self, n: int) -> tuple[NDArray[np.uint8], NDArray[Any]]:
        """Memory for them."""
        raise NotImplementedError

    def _learn_bodies(self, rules: Sequence[int], samples: Sequence[Sequence[SampledRows]]) -> list[Body]:
        """Learn bodies from what all shards have of their samples."""
        raise NotImplementedError

    # --- Samples ------------------------------------------------------------------------------------------------------

    def draw(self, rules: Sequence[int]) -> SampledRows:
        """What is here of the samples of some rules (Alg. 1, line 5)."""
        drawn = self.threads.share(self._draw, rules)
        rows, weights = (np.concatenate(arrays) for arrays in zip(*drawn, strict=True))
        numbers = np.concatenate([self._number(rows) for rows, _ in drawn])
        return SampledRows(
            np.cumsum([len(rows) for rows, _ in drawn]), numbers, weights, rows, *self._list_arrays(), self.largest
        )

    def gather(self, rules: Sequence[int], address: str) -> SampledRows:
        """The same for the worker at an address; it has received what it was sent before."""
        drawn = self.draw(rules)
        n = len(drawn.rows)
        if address not in self.sent or len(self.sent[address][0]) < n:
            self.sent[address] = self._make_rows(n + n // 8)  # memory is slow when it is new
        codes, scores = (array[:n] for array in self.sent[address])
        parts = divide(n, self.threads.n_threads)
        self.threads.share(lambda part: self._copy_rows(drawn.rows[part], codes[part], scores[part]), parts)
        return drawn._replace(rows=np.arange(n, dtype=np.uint32), codes=codes, scores=scores)

    def _draw(self, rule: int) -> tuple[Rows, NDArray[Any]]:
        """The examples of a sample that are here, in ascending order, and their weights in it."""
        if self.size == 0:
            rows, weights = self.everyone, self.weight
        else:
            drawn = np.empty(self.size, dtype=np.uint32)
            seed = int(self.task.settings.seed)
            drawn = np.sort(drawn[: draw_here(seed, rule, self.size, self.task.n, self.places, drawn)])
            starts = np.flatnonzero(np.append(True, drawn[1:] != drawn[:-1])[: len(drawn)])
            rows, times = drawn[starts], np.diff(np.append(starts, len(drawn)))
            if self.are_all_one and times.max(initial=0) < 256:
                return rows, times.astype(np.uint8)  # takes less to send
            weights = times * self.weight[rows]
        return rows[weights > 0], weights[weights > 0]

    def _number(self, rows: Rows) -> NDArray[Any]:
        """The numbers of some examples, which are in ascending order."""
        firsts, edges = self.places
        numbers = rows + np.repeat(firsts - edges[:-1], np.diff(np.searchsorted(rows, edges)))
        return numbers.astype(np.uint32) if self.task.n <= 2**32 else numbers

    def learn_bodies(self, rules: Sequence[int], gathered: Sequence[SampledRows]) -> Learned:
        """Learn the bodies of some rules from what all shards have gathered (Alg. 1, line 6)."""
        if not self.memory:
            self.memory.extend(self._make_memory() for _ in range(self.threads.n_threads))
        samples = [[_take_sample(part, i) for part in gathered] for i in range(len(rules))]
        return Learned(self._learn_bodies(rules, samples), max(part.largest for part in gathered))


def _take_none(block: Block) -> Block:
    """No examples of a block."""
    none = [None if array is None else array[:0] for array in block[3:]]
    return Block(0, block.codes[:, :0], block.Y[:0], *none)


def _take_sample(part: SampledRows, i: int) -> SampledRows:
    """One of several samples."""
    some = slice(part.ends[i - 1] if i > 0 else 0, part.ends[i])
    return part._replace(numbers=part.numbers[some], weights=part.weights[some], rows=part.rows[some])


# --- Odds -------------------------------------------------------------------------------------------------------------


@kernel
def put_rows(source: NDArray[np.uint8], rows: Rows, places: Rows, target: NDArray[np.uint8]) -> None:
    """Copy rows of bytes to their places: what a message has brought need not begin at a multiple of eight."""
    for begin in range(0, rows.shape[0], BLOCK):
        for r in range(begin + BLOCK, min(begin + 2 * BLOCK, rows.shape[0])):
            for b in range(0, source.shape[1], CACHE_LINE):
                prefetch(source, rows[r] * source.shape[1] + b)
            prefetch(source, rows[r] * source.shape[1] + source.shape[1] - 1)
        for r in range(begin, min(begin + BLOCK, rows.shape[0])):
            row, place = np.uint64(rows[r]), np.uint64(places[r])
            for b in range(source.shape[1]):
                target[place, b] = source[row, b]


class ShardOfOdds(Shard):
    """A shard that keeps scores as odds."""

    largest = 1.0

    def _keep_scores(self, blocks: Sequence[Block], held_out: Sequence[Block]) -> None:
        self.state = self._make_state(blocks, self.examples)
        others = sorted(held_out, key=lambda block: block.first)
        self.held_out = self._make_state(others, join_blocks(others)) if others else None

    def _make_state(self, blocks: Sequence[Block], examples: Examples) -> OddsShard:
        task, (places, codes, weight) = self.task, examples
        width = pad(task.n_labels)
        now, before = np.empty((len(weight), width), dtype=np.float32), None
        if any(block.before is not None for block in blocks):
            before = np.empty_like(now), np.empty((len(weight), width))
        for block, (begin, end) in zip(blocks, pairwise(places.edges), strict=True):
            known = None if block.label_weight is None else block.label_weight > 0
            signs = pad_signs(block.Y, known)
            scores = np.zeros((2, 1 if block.scores is None else end - begin, width))  # one row for all examples
            default = 0.0 if task.default is None else task.default[0]
            scores[:, :, : task.n_labels] = default if block.scores is None else block.scores
            write_odds(signs, scores[0], now[begin:end], slice(0, end - begin))
            if before is not None:
                scores[1, :, : task.n_labels] = block.before
                write_odds(signs, scores[1], before[0][begin:end], slice(0, end - begin))
                before[1][begin:end] = scores[0] - scores[1]
        scales = choose_scales(task.largest_weight, task.weight)
        return OddsShard(codes, now, before, weight, scales, self.threads)

    def _make_memory(self) -> SampleBuffers:
        room = self.task.make_room()
        memory = make_sample_buffers(room, self.task.settings, Diagonal(self.task.n_labels), len(room.Y))
        memory.sample.odds[:] = 0  # padding is not sent
        return memory

    def _list_arrays(self) -> tuple[Codes, Odds]:
        return self.state.rows_of_codes, self.state.odds

    def _make_rows(self, n: int) -> tuple[Codes, Odds]:
        shape = n, self.task.n_labels + self.task.n_labels % 2  # whole words
        return np.empty((n, self.state.rows_of_codes.shape[1]), np.uint8), np.empty(shape, np.float32)

    def _copy_rows(self, rows: Rows, codes: Codes, scores: Odds) -> None:
        copy_rows(self.state.rows_of_codes.view(np.uint64), rows, codes.view(np.uint64))
        copy_rows(self.state.odds.view(np.uint64), rows, scores.view(np.uint64))

    def _learn_bodies(self, rules: Sequence[int], samples: Sequence[Sequence[SampledRows]]) -> list[Body]:
        def collect(i: int, memory: SampleBuffers) -> int:
            own, n = memory.sample, 0
            for part, places in order_parts(samples[i]):
                put_rows(part.codes, part.rows, places, own.codes)
                put_rows(part.scores.view(np.uint8), part.rows, places, own.odds.view(np.uint8))
                own.weights[places] = part.weights
                n += len(places)
            return n

        def is_collected(memory: SampleBuffers, some: slice) -> None:
            """Nothing is left to do."""

        def learn(i: int, memory: SampleBuffers) -> Body:
            body = np.empty((memory.plan.longest, 4))
            size = learn_from_sample(memory.heads, memory.plan, memory.sample, collect(i, memory), rules[i], body)
            return Body(body[:size].copy(), EVERY_LABEL)

        if do_learn_together(self.threads, len(rules), self.memory[0].sample):
            return learn_together(self.threads, self.memory, rules, collect, is_collected)
        return self.threads.share_buffers(learn, range(len(rules)), self.memory)

    def sum_round(self, bodies: Bodies, n_labels: int) -> RoundSums:
        """Sums over the examples that the bodies of a round cover."""
        if self.held_out is not None:
            self.held_out.sum_round(bodies, n_labels)  # finds what they cover
        return self.state.sum_round(bodies, n_labels)

    def _apply(self, which: int, factors: Array) -> None:
        for state in (self.state, self.held_out):
            if state is not None:
                state.apply(which, factors)

    def sum_losses(self, held_out: bool, scale: float) -> int:
        """The sum of the loss."""
        state = self.held_out if held_out else self.state
        return 0 if state is None else state.sum_losses(scale)


# --- Statistics -------------------------------------------------------------------------------------------------------


@kernel
def list_covered(columns: BinnedColumns, body: Array, rows: Rows, scratch: Rows) -> np.int64:
    """Put the examples that a body covers first in `rows`; returns how many there are."""
    return cover(columns, body, rows, 0, 0, scratch)


class ShardOfStatistics(Shard):
    """A shard that keeps scores and statistics, for any loss and any head; rounds have one rule."""

    def _keep_scores(self, blocks: Sequence[Block], held_out: Sequence[Block]) -> None:
        self.ledger = self._make_ledger(blocks, self.examples)
        self.layout = self.ledger.layout
        others = sorted(held_out, key=lambda block: block.first)
        self.held_out = self._make_ledger(others, join_blocks(others)) if others else None
        self.largest = float(find_largest(self.ledger.statistics, self.everyone))
        self.body, self.covered = np.empty((0, 4)), self.everyone[:0]

    def _make_ledger(self, blocks: Sequence[Block], examples: Examples) -> Ledger:
        given, settings, k = self.task, self.task.settings, self.task.n_labels
        Y = np.concatenate([block.Y for block in blocks])
        label_weight = None
        if any(block.label_weight is not None for block in blocks):
            each = [np.ones(b.Y.shape) if b.label_weight is None else b.label_weight for b in blocks]
            label_weight = np.concatenate(each)
        task = Task(BinnedColumns(examples.codes, given.nominal), Y, examples.weight, label_weight)
        ledger = Ledger(task, settings.loss, is_single(settings.head, k), self.threads)
        if blocks[0].scores is not None:
            ledger.scores[:, :k] += np.concatenate([block.scores for block in blocks if block.scores is not None])
        elif given.default is not None:
            ledger.scores[:, :k] += given.default[0]
        ledger.write()
        return ledger

    def _make_memory(self) -> Any:
        task, settings, ledger = self.task, self.task.settings, self.ledger
        room = task.make_room()
        n = len(room.Y)
        labels = plan_labels(self.layout, n, settings)
        layout = resize(self.layout, len(labels.draw.drawn))
        plan = make_plan(room, settings, count_columns(layout) if ledger.sums_bins(settings) else 0)
        heads = plan_heads(layout, n, settings, is_single(settings.head, task.n_labels), settings.loss)
        columns = BinnedColumns(np.empty((len(task.nominal), n), dtype=np.uint8), task.nominal)
        found = make_found(layout.n_labels, task.n_labels)
        return plan, labels, heads, found, columns, make_zeros((n, count_columns(self.layout)))

    def _list_arrays(self) -> tuple[NDArray[np.uint8], Array]:
        return self.examples.codes.T, self.ledger.statistics

    def _make_rows(self, n: int) -> tuple[NDArray[np.uint8], Array]:
        return np.empty((n, len(self.task.nominal)), dtype=np.uint8), np.empty((n, count_columns(self.layout)))

    def _copy_rows(self, rows: Rows, codes: NDArray[np.uint8], scores: Array) -> None:
        codes[:] = np.take(self.examples.codes, rows, axis=1).T
        np.take(self.ledger.statistics, rows, axis=0, out=scores, mode="clip")  # other modes copy once more

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

        return self.threads.share_buffers(learn, range(len(rules)), self.memory)

    def find_largest(self) -> float:
        """The size of the largest statistic there has been."""
        return self.largest

    def sum_covered(self, body: Array, scales: Scales, written_out: bool) -> Covered:
        """Sums over the examples that a body covers, with Hessians written out if they are to be."""
        parts = divide(self.n, self.threads.n_threads) or [slice(0, 0)]
        layout = Dense(self.layout.n_labels) if written_out else self.layout

        def work(part: slice) -> tuple[Rows, Whole, int]:
            covered = self._list_covered(self.ledger, body, part)
            sums = np.zeros(count_columns(layout), dtype=np.int64)
            if written_out:
                assert isinstance(self.layout, Outer)
                weight = add_systems(
                    self.layout, self.ledger.statistics, covered, self.weight, scales, np.zeros(len(sums)), sums
                )
            else:
                weight = add_rows(self.ledger.statistics, covered, self.weight, scales, sums)
            return covered, sums, int(weight)

        covered, sums, weights = zip(*self.threads.share(work, parts), strict=True)
        self.body, self.covered = body, np.concatenate(covered)
        return Covered(np.sum(sums, axis=0), sum(weights))

    def _list_covered(self, ledger: Ledger, body: Array, part: slice) -> Rows:
        rows = ledger.everyone[part].copy()
        return rows[: list_covered(ledger.task.columns, body, rows, np.empty_like(rows))]

    def _apply(self, labels: NDArray[np.int64], scores: Array) -> None:
        if len(self.body) == 0:  # all statistics are new ones: those of targets far from 0 are much smaller now
            self.largest = 0.0
        self.ledger.apply(self.covered, labels, scores)
        self.largest = max(self.largest, float(find_largest(self.ledger.statistics, self.covered)))
        if self.held_out is not None:
            self.held_out.apply(self._list_covered(self.held_out, self.body, slice(None)), labels, scores)

    def find_losses(self, held_out: bool) -> float:
        """Compute the losses of all examples, or of those held out; returns the largest."""
        ledger = self.held_out if held_out else self.ledger
        self.losses = np.empty(0)
        if ledger is not None:
            losses = [ledger.list_losses(rows) for rows in ledger.list_blocks()]
            self.losses = np.concatenate([self.losses, *losses]) * ledger.task.weight
        return float(np.abs(self.losses).max(initial=0.0))

    def sum_losses(self, unit: float) -> int:
        """The sum of the losses computed last."""
        losses, self.losses = self.losses, np.empty(0)
        return int(fix_values(losses, unit).sum())


def make_shard(blocks: Sequence[Block], held_out: Sequence[Block], task: ClusterTask, n_threads: int = 1) -> Shard:
    """The shard of a worker: examples learned from, and examples held out."""
    return (ShardOfOdds if task.by_odds else ShardOfStatistics)(blocks, held_out, task, n_threads)
