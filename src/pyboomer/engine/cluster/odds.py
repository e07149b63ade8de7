"""Odds of the examples of a cluster, see `odds_state`."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.compiling.kernel import kernel
from pyboomer.compiling.simd import pad, prefetch
from pyboomer.engine.cluster.leader import Leader
from pyboomer.engine.cluster.shard import Examples, SampledRows, Shard, join_blocks, order_parts
from pyboomer.engine.cluster.task import Block
from pyboomer.engine.cpu.rounds import (
    SampleBuffers,
    do_learn_together,
    learn_alone,
    learn_together,
    make_sample_buffers,
)
from pyboomer.engine.odds import BLOCK, Bodies, Odds, RoundSums, write_odds
from pyboomer.engine.odds_state import OddsShard, add_sums, choose_scales
from pyboomer.engine.rounds import Body
from pyboomer.engine.search.samples import Codes, copy_rows
from pyboomer.engine.statistics import Diagonal
from pyboomer.losses.truth import pad_signs

CACHE_LINE = 64  # bytes


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
        scales = choose_scales(task.summary.largest_weight, task.summary.weight)
        return OddsShard(codes, now, before, weight, scales, self.threads)

    def _make_memory(self) -> SampleBuffers:
        room = self.task.make_solver_buffers()
        memory = make_sample_buffers(room, self.task.settings, Diagonal(self.task.n_labels), len(room.Y))
        memory.sample.odds[:] = 0  # padding is not sent
        return memory

    def _list_arrays(self) -> tuple[Codes, Odds]:
        return self.state.rows_of_codes, self.state.odds

    def _make_rows(self, n: int) -> tuple[Codes, Odds]:
        shape = n, self.task.n_labels + self.task.n_labels % 2  # whole words
        return np.empty((n, self.state.rows_of_codes.shape[1]), np.uint8), np.empty(shape, np.float32)

    def update(self) -> None:
        """Bring the odds up to date; samples that are drawn by another thread must not do it."""
        self.state.end_round()

    def gather(self, rules: Sequence[int], receiver: Any) -> SampledRows:
        """What is here of the samples of some rules of a round, by odds that are up to date."""
        self.state.end_round()
        return super().gather(rules, receiver)

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
            return learn_alone(memory, collect(i, memory), rules[i])

        if do_learn_together(self.learning, len(rules), self.memory[0].sample):
            return learn_together(self.learning, self.memory, rules, collect, is_collected)
        return self.learning.share_buffers(learn, range(len(rules)), self.memory)

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


class ClusterOdds:
    """The odds of all shards, see `odds_state.Shards`."""

    def __init__(self, leader: Leader) -> None:
        self.leader = leader

    def learn_bodies(self, rules: range) -> list[Body]:
        """Learn the bodies of a round."""
        return self.leader.learn_bodies(rules)[0]

    def sum_round(self, bodies: Bodies, n_labels: int) -> RoundSums:
        """Sums over the examples that the bodies of a round cover."""
        return add_sums(self.leader.ask("sum_round", bodies, n_labels))

    def apply(self, which: int, factors: Array) -> None:
        """Add the scores of some rules of the round to the examples that they cover."""
        self.leader.update(which, factors)

    def sum_losses(self, scale: float, held_out: bool = False) -> int:
        """The sum of the loss, in whole numbers."""
        return sum(self.leader.ask("sum_losses", held_out, scale))
