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
from pyboomer.engine.cluster.task import Block, ClusterTask
from pyboomer.engine.cpu.threads import Threads, divide
from pyboomer.engine.rounds import Body
from pyboomer.engine.sampling import Places, draw_here


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
        self.learning = Threads(n_threads)  # bodies, while samples are gathered for other workers
        self.size = task.count_sampled()
        blocks = sorted(blocks, key=lambda block: block.first) or [_take_none(held_out[0])]
        self.examples = join_blocks(blocks)
        self.places, _, self.weight = self.examples
        self.n = len(self.weight)
        self.everyone = np.arange(self.n, dtype=np.uint32)
        self.are_all_one = bool((self.weight == 1).all())
        self.n_updates = 0
        self.sent: dict[Any, tuple[NDArray[np.uint8], NDArray[Any]]] = {}  # the memory of what was sent, by receiver
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
        self.learning.close()

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

    def gather(self, rules: Sequence[int], receiver: Any) -> SampledRows:
        """The same for another worker; what the receiver was sent before it does not need any more."""
        drawn = self.draw(rules)
        n = len(drawn.rows)
        if receiver not in self.sent or len(self.sent[receiver][0]) < n:
            self.sent[receiver] = self._make_rows(n + n // 8)  # memory is slow when it is new
        codes, scores = (array[:n] for array in self.sent[receiver])
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
            drawn = np.sort(drawn[: draw_here(seed, rule, self.size, self.task.summary.n, self.places, drawn)])
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
        return numbers.astype(np.uint32) if self.task.summary.n <= 2**32 else numbers

    def learn_bodies(self, rules: Sequence[int], gathered: Sequence[SampledRows]) -> Learned:
        """Learn the bodies of some rules from what all shards have gathered (Alg. 1, line 6)."""
        if not self.memory:
            self.memory.extend(self._make_memory() for _ in range(self.learning.n_threads))
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
