"""A shard is the examples of one machine, binned, with their scores: it answers for them while rules are learned.

Examples have numbers, among all examples of the cluster, and draws are of these; where an example is does not matter.
Sums are whole numbers (`fixed`). What is left of a sample when it is small is handed over, to be looked at elsewhere.

Statistics are kept in a ledger. Where samples are small and the loss is label-wise they are not: scores are kept as
odds then, see `cpu.sampled`. Odds are brought up to date by whoever has them, so that a sample can be handed over
ahead, while the leader still looks at the one before.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.columns.binned import MISSING, BinnedColumns
from pyboomer.columns.entries import keep
from pyboomer.columns.sparse import meets
from pyboomer.compiling.kernel import kernel
from pyboomer.compiling.simd import LANES, load, pad, product, splat, where_above
from pyboomer.engine.cluster.fixed import (
    Scales,
    Whole,
    add_bins,
    add_odds,
    add_rows,
    add_systems,
    find_largest,
    fix_values,
)
from pyboomer.engine.cpu.ledger import Ledger
from pyboomer.engine.cpu.sampled import (
    BLOCK,
    CHUNK,
    Odds,
    cover_chunk,
    fetch_odds,
    find_factors,
    find_odds,
    multiply_odds,
)
from pyboomer.engine.cpu.threads import Threads, divide
from pyboomer.engine.promise import Task
from pyboomer.engine.sampling import Places, draw_here, find_places
from pyboomer.engine.statistics import Dense, Diagonal, Layout, Outer, count_columns
from pyboomer.losses import Loss
from pyboomer.losses.truth import Truth, pad_signs
from pyboomer.losses.twins import LABEL_WISE


class Block(NamedTuple):
    """Examples that follow one another."""

    first: int  # the number of the first one
    codes: NDArray[np.uint8]  # (L, n)
    Y: NDArray[Any]  # (n, K), as in `promise.Task`
    weight: Array | None  # (n,); None if all are 1
    label_weight: Array | None  # (n, K)
    scores: Array | None  # (n, K): of rules that there are already


class Duty(NamedTuple):
    """What all shards are told."""

    n: int  # examples of the cluster
    size: int  # of a sample; 0 for no sampling
    seed: int
    nominal: NDArray[np.int8]
    loss: Loss
    single: bool  # whether heads are about one label
    by_odds: bool  # whether scores are kept as odds
    head: Array | None  # of the default rule, if it is known


class Handed(NamedTuple):
    """What is covered of a sample, in the order of the examples."""

    numbers: Whole
    weights: Array
    terms: Array | Odds  # statistics, or odds
    codes: NDArray[np.uint8]  # of some features


class Found(NamedTuple):
    """What a body covers."""

    sums: Whole  # of statistics
    weight: int
    handed: Rows  # where they are among what was handed over ahead


@kernel
def take_codes(codes: NDArray[np.uint8], features: NDArray[np.int64], rows: Rows, taken: NDArray[np.uint8]) -> None:
    """The bin numbers of some examples and features, each feature in a row."""
    for i in range(features.shape[0]):
        source, target = codes[features[i]], taken[i]
        for r in range(rows.shape[0]):
            target[r] = source[rows[r]]


@kernel
def find_covered(codes: NDArray[np.uint8], body: Array, rows: Rows, found: Rows) -> np.int64:
    """Where the examples that a body covers are among some; returns how many there are."""
    n_found = np.uint64(0)
    for r in range(rows.shape[0]):
        covered = True
        for c in range(body.shape[0]):
            code = codes[np.int64(body[c, 0]), rows[r]]
            covered &= meets(np.float64(code), np.int64(body[c, 1]), body[c, 2]) & (code != MISSING)
        found[n_found] = r
        n_found += np.uint64(covered)
    return np.int64(n_found)


@kernel(error_model="numpy")
def take_odds(odds: Odds, rows: Rows, taken: Odds) -> None:
    """The odds of some examples, which memory is asked for ahead."""
    for begin in range(0, rows.shape[0], BLOCK):
        fetch_odds(odds, rows, begin + BLOCK)
        for r in range(begin, min(begin + BLOCK, rows.shape[0])):
            for k in range(odds.shape[1]):
                taken[r, k] = odds[rows[r], k]


@kernel(error_model="numpy")
def write_losses(odds: Odds, weight: Array, losses: Array) -> None:
    """The loss of each example, as `cpu.sampled.sum_loss` adds it up, times its weight."""
    width, zero, one = odds.shape[1], splat(0.0), splat(1.0)
    for n in range(odds.shape[0]):
        value = 0.0
        for k in range(0, width, LANES):
            signed = load(odds, n * width + k)
            value += np.log(product(1.0 + where_above(signed, zero, one / signed, zero - signed)))
        losses[n] = weight[n] * value


@kernel
def cover_rows(codes: NDArray[np.uint8], body: Array, begin: int, marks: NDArray[np.uint8], rows: Rows) -> np.int64:
    """List the examples from `begin` on that a body covers, of as many as there is room for; returns how many."""
    covered = np.int64(0)
    for start in range(0, rows.shape[0], marks.shape[0]):
        own = marks[: rows.shape[0] - start]
        covered += cover_chunk(codes, body, begin + start, own, rows[covered:])
    return covered


class Shard:
    """See the module's docstring; methods without an underscore are what the leader asks for."""

    def __init__(self, blocks: Sequence[Block], duty: Duty, n_threads: int = 1, others: "Shard | None" = None) -> None:
        blocks = sorted(blocks, key=lambda block: block.first)
        self.duty, self.threads, self.others = duty, Threads(n_threads), others
        sizes = [block.codes.shape[1] for block in blocks]
        edges = np.cumsum([0, *sizes])
        self.places = Places(np.array([block.first for block in blocks], dtype=np.int64), edges)
        self.n = n = int(edges[-1])
        codes = np.empty((len(duty.nominal), n), dtype=np.uint8)
        for block, (begin, end) in zip(blocks, pairwise(edges), strict=True):
            codes[:, begin:end] = block.codes
        self.columns = BinnedColumns(codes, duty.nominal)
        self.weight = np.concatenate([np.ones(b.codes.shape[1]) if b.weight is None else b.weight for b in blocks])
        self.everyone = np.arange(n, dtype=np.uint32)
        self.rooms: dict[tuple[str, Any], NDArray[Any]] = {}
        self.covered: list[Rows] = []  # part by part, for each thread
        self.sampled = self.everyone[:0]  # what is here of the sample that was handed over last
        self.body = np.empty((0, 4))
        self._keep_scores(blocks)

    def _make_room(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An array that whoever asks for it next under the same name uses again: new memory is slow at first.

        What is handed over lies in it until the next sample is: whoever takes it over has done so by then.
        """
        size, room = math.prod(shape), self.rooms.get((name, dtype))
        if room is None or len(room) < size:
            self.rooms[name, dtype] = room = np.empty(size, dtype=dtype)
        return room[:size].reshape(shape)

    # --- Scores and statistics ----------------------------------------------------------------------------------------

    def _keep_scores(self, blocks: Sequence[Block]) -> None:
        Y = np.concatenate([block.Y for block in blocks])
        label_weight = None
        if any(block.label_weight is not None for block in blocks):
            each = [np.ones(b.Y.shape) if b.label_weight is None else b.label_weight for b in blocks]
            label_weight = np.concatenate(each)
        duty, k = self.duty, Y.shape[1]
        task = Task(self.columns, Y, self.weight, label_weight)
        self.ledger = ledger = Ledger(task, duty.loss, duty.single, self.threads)
        if blocks[0].scores is not None:
            ledger.scores[:, :k] += np.concatenate([block.scores for block in blocks if block.scores is not None])
        elif duty.head is not None:
            ledger.scores[:, :k] += duty.head
        ledger.write()
        self.layout: Layout = ledger.layout
        self.largest = float(find_largest(ledger.statistics, self.everyone))
        self.rows, self.weights = self.everyone[:0], np.empty(0)

    def _list_losses(self) -> Array:
        """The loss of each example, times its weight."""
        losses = [self.ledger.list_losses(rows) for rows in self.ledger.list_blocks()]
        return np.concatenate([np.empty(0), *losses]) * self.weight

    def _take_terms(self, rows: Rows) -> Array | Odds:
        statistics = self.ledger.statistics
        terms = self._make_room("terms", (len(rows), statistics.shape[1]), np.float64)
        return np.take(statistics, rows, axis=0, out=terms, mode="clip")  # in any other mode, NumPy copies it once more

    def _add(self, rows: Rows, scales: Scales, sums: Whole, written_out: bool) -> int:
        """Add the statistics of all labels to sums, with Hessians written out if asked for; returns the weight."""
        statistics = self.ledger.statistics
        if not written_out:
            return int(add_rows(statistics, rows, self.weight, scales, sums))
        assert isinstance(self.layout, Outer)
        return int(add_systems(self.layout, statistics, rows, self.weight, scales, np.zeros(len(sums)), sums))

    def _change_scores(self, labels: NDArray[np.int64], scores: Array) -> None:
        if len(self.body) == 0:  # all statistics are new ones: those of targets far from 0 are much smaller now
            self.largest = 0.0
        for rows in self.covered:
            self.ledger.apply(rows, labels, scores)
            self.largest = max(self.largest, float(find_largest(self.ledger.statistics, rows)))

    # --- The sample of a rule -----------------------------------------------------------------------------------------

    def _number(self, rows: Rows) -> Whole:
        """The numbers of some examples."""
        firsts, edges = self.places
        block = np.searchsorted(edges[1:], rows, side="right")
        return rows + (firsts - edges[:-1])[block]

    def tell_largest(self) -> float:
        """The size of the largest statistic there has been."""
        return self.largest

    def _draw(self, rule: int) -> tuple[Rows, Array]:
        """The examples of a sample that are here, in ascending order, and what they weigh in it (Alg. 1, line 5)."""
        duty = self.duty
        if duty.size == 0:
            return self.everyone.copy(), self.weight
        drawn = np.empty(duty.size, dtype=np.uint32)
        drawn = np.sort(drawn[: draw_here(duty.seed, rule, duty.size, duty.n, self.places, drawn)])
        starts = np.flatnonzero(np.append(True, drawn[1:] != drawn[:-1])[: len(drawn)])
        rows = drawn[starts]
        return rows, np.diff(np.append(starts, len(drawn))) * self.weight[rows]

    def sample(self, rule: int, features: NDArray[np.int64]) -> tuple[Handed, float]:
        """Draw a small sample and hand it over, with the size of the largest statistic there may be."""
        self.sampled, weights = self._draw(rule)
        return self._hand_over(self.sampled, weights, features), self.largest

    def _hand_over(self, rows: Rows, weights: Array, features: NDArray[np.int64]) -> Handed:
        codes = self._make_room("codes", (len(features), len(rows)), np.uint8)
        take_codes(self.columns.codes, features, rows, codes)
        return Handed(self._number(rows), weights, self._take_terms(rows), codes)

    def look_up(self, numbers: Whole, features: NDArray[np.int64]) -> tuple[Whole, NDArray[np.uint8]]:
        """The bin numbers of those examples that are here: where they are among the numbers, and their codes."""
        found = np.empty(len(numbers), dtype=np.int64)
        find_places(self.places, numbers, found)
        here = np.flatnonzero(found >= 0)
        codes = np.empty((len(features), len(here)), dtype=np.uint8)
        take_codes(self.columns.codes, features, found[here].astype(np.uint32), codes)
        return here, codes

    def draw(self, rule: int) -> tuple[int, float]:
        """Draw a large sample: how many examples of it are here, and the size of the largest statistic so far."""
        self.rows, weights = self._draw(rule)
        self.weights = np.zeros(self.n)
        self.weights[self.rows] = weights
        self.terms = self.ledger.statistics
        return len(self.rows), self.largest

    def weigh(self, unit: float) -> int:
        """The weight of what is covered."""
        return int(fix_values(self.weights[self.rows], unit).sum())

    def take(self, columns: NDArray[np.int64]) -> None:
        """Statistics are about some columns from now on; -1 stands for padding."""
        self.terms = np.ascontiguousarray(np.where(columns >= 0, self.ledger.statistics[:, columns], 0.0))

    def sum_bins(self, features: NDArray[np.int64], scales: Scales) -> tuple[Whole, Whole]:
        """Sums of statistics over the bins of some features, of what is covered, and of weights."""
        width = self.terms.shape[1]

        def work(part: slice) -> None:
            own = features[part]
            add_bins(self.columns.codes, own, self.terms, self.rows, self.weights, scales, sums[part], weight[part])

        sums = np.zeros((len(features), 256, width), dtype=np.int64)
        weight = np.zeros((len(features), 256), dtype=np.int64)
        self.threads.share(work, divide(len(features), self.threads.n_threads))
        return sums, weight

    def narrow(self, feature: int, operator: int, value: float) -> int:
        """Narrow the coverage by a condition; returns how many examples are left (Alg. 3, line 10)."""
        dropped = np.empty(len(self.rows), dtype=np.uint32)
        self.rows = self.rows[: keep(self.columns, feature, operator, value, self.rows, dropped)]
        return len(self.rows)

    def sum_sample(self, scales: Scales) -> Whole:
        """Sums of statistics, of what is covered."""
        sums = np.zeros(self.terms.shape[1], dtype=np.int64)
        terms, width = self.terms, len(sums)
        if width < LANES:  # a pair
            terms = np.pad(terms, ((0, 0), (0, LANES - width)))
            sums = np.zeros(LANES, dtype=np.int64)
        add_rows(terms, self.rows, self.weights, scales, sums)
        return sums[:width]

    def hand_over(self, features: NDArray[np.int64]) -> Handed:
        """Hand over what is covered of a large sample."""
        return self._hand_over(self.rows, self.weights[self.rows], features)

    # --- All examples -------------------------------------------------------------------------------------------------

    def finish(self, body: Array, scales: Scales, written_out: bool) -> Found:
        """Cover what a body covers, and add up its statistics."""
        self._cover(body)
        layout = Dense(self.layout.n_labels) if written_out else self.layout
        sums = np.zeros((len(self.covered), count_columns(layout)), dtype=np.int64)
        weight = [0] * len(self.covered)

        def work(part: int) -> None:
            weight[part] = self._add(self.covered[part], scales, sums[part], written_out)

        self.threads.share(work, list(range(len(self.covered))))
        return Found(sums.sum(axis=0), sum(weight), self._find_handed())

    def _find_handed(self) -> Rows:
        """Where the examples covered are among those handed over ahead: there are none."""
        return self.everyone[:0]

    def _cover(self, body: Array) -> None:
        self.body = body
        parts = divide(-(-self.n // CHUNK), self.threads.n_threads)
        rows = self._make_room("covered", (self.n,), np.uint32)
        self.covered = [self.everyone[:0]] * len(parts)

        def work(part: int) -> None:
            begin, end = parts[part].start * CHUNK, min(parts[part].stop * CHUNK, self.n)
            marks = np.empty(CHUNK, dtype=np.uint8)
            count = cover_rows(self.columns.codes, body, begin, marks, rows[begin:end])
            self.covered[part] = rows[begin : begin + count]

        self.threads.share(work, list(range(len(parts))))

    def apply(self, labels: NDArray[np.int64], scores: Array) -> None:
        """Add scores to what is covered (Alg. 1, line 4), and to what is held out."""
        self._change_scores(labels, scores)
        if self.others is not None:
            self.others._cover(self.body)
            self.others._change_scores(labels, scores)

    def find_losses(self, held_out: bool) -> float:
        """Compute the losses of all examples, or of those held out; returns the largest."""
        shard = self.others if held_out else self
        self.losses = np.empty(0) if shard is None else shard._list_losses()
        return float(np.abs(self.losses).max(initial=0.0))

    def sum_losses(self, unit: float) -> int:
        """The sum of the losses computed last."""
        losses, self.losses = self.losses, np.empty(0)
        return int(fix_values(losses, unit).sum())

    def obey(self, orders: Sequence[tuple[str, tuple[Any, ...]]]) -> Any:
        """Do as told; returns the answer to the last order."""
        answer = None
        for name, arguments in orders:
            answer = getattr(self, name)(*arguments)
        return answer

    def close(self) -> None:
        """Let the threads go."""
        self.threads.close()


class OddsShard(Shard):
    """A shard that keeps scores as odds, and no statistics; samples are handed over ahead."""

    def _keep_scores(self, blocks: Sequence[Block]) -> None:
        k = blocks[0].Y.shape[1]
        self.layout = Diagonal(k)
        self.largest = 1.0
        self.odds = np.empty((self.n, pad(k)), dtype=np.float32)
        for block, (begin, end) in zip(blocks, pairwise(self.places.edges), strict=True):
            known = None if block.label_weight is None else block.label_weight > 0
            truth = Truth(LABEL_WISE, True, pad_signs(block.Y, known), np.empty((0, pad(k))))
            scores = np.zeros((len(block.Y), pad(k)))
            if block.scores is not None:
                scores[:, :k] = block.scores
            elif self.duty.head is not None:
                scores[:, :k] = self.duty.head
            self.odds[begin:end] = find_odds(truth, scores)

    def _list_losses(self) -> Array:
        losses = np.empty(self.n)
        write_losses(self.odds, self.weight, losses)
        return losses

    def _take_terms(self, rows: Rows) -> Array | Odds:
        odds = self._make_room("odds", (len(rows), self.odds.shape[1]), np.float32)
        take_odds(self.odds, rows, odds)
        return odds

    def _find_handed(self) -> Rows:
        """Where the examples covered are among those handed over ahead."""
        found = np.empty_like(self.sampled)
        return found[: find_covered(self.columns.codes, self.body, self.sampled, found)]

    def _add(self, rows: Rows, scales: Scales, sums: Whole, written_out: bool) -> int:  # noqa: ARG002
        return int(add_odds(self.odds, rows, self.weight, scales, sums))

    def _change_scores(self, labels: NDArray[np.int64], scores: Array) -> None:
        factors = find_factors(self.odds.shape[1], labels, scores)

        def work(rows: Rows) -> None:
            multiply_odds(self.odds, rows, factors)

        self.threads.share(work, self.covered)
