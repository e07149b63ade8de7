"""The training state of odds: scores of the label-wise logistic loss, where samples are small and heads are complete.

`OddsShard` has the examples of one process. `OddsState` fits the heads of a round from sums over one shard, or over the
shards of a cluster: sums are integers, so that the rules are the same.
"""

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.engine import odds
from pyboomer.engine.fixed import Scales, choose_unit
from pyboomer.engine.heads import Penalty
from pyboomer.engine.protocol import Chunk, Settings
from pyboomer.engine.rounds import Body
from pyboomer.engine.sampling import count_examples, count_labels
from pyboomer.engine.search.samples import make_rows_of_codes, transpose_codes
from pyboomer.engine.statistics import Diagonal, count_columns

if TYPE_CHECKING:
    from pyboomer.engine.cpu.threads import Threads

FEW = 2  # a sample is small if there are so many times as many examples
LARGEST_LOSS = 128.0  # of a label, by odds that are as small or as large as they may be


def are_samples_small(settings: Settings, n: int, n_labels: int) -> bool:
    """Whether heads are about all labels, and samples of n examples small."""
    size = count_examples(settings.max_samples, n, settings.sampling == "with-replacement") * settings.bootstrap
    complete = settings.head == "multi" and count_labels(settings.max_labels, n_labels) == n_labels
    return complete and 0 < size * FEW <= n


def choose_scales(largest: float, total: float) -> Scales:
    """The units of sums over examples, given the largest of their weights and all weights together."""
    return Scales(*(1 / choose_unit(largest, total) for _ in range(2)))  # no statistic is larger than 1


class OddsShard:
    """Odds of the examples of a process.

    Parameters
    ----------
    codes : (L, n) array of uint8
        The bin numbers of the examples.
    now : (n, width) array of float32
        Their odds.
    before : tuple of two (n, width) arrays, or None
        If the first rules of the round have been learned already: the odds at the beginning of the round, and the
        scores that were added in the round.
    weight : (n,) array
    scales : Scales
    threads : Threads
    """

    def __init__(
        self,
        codes: NDArray[np.uint8],
        now: odds.Odds,
        before: tuple[odds.Odds, Array] | None,
        weight: Array,
        scales: Scales,
        threads: "Threads",
    ) -> None:
        self.codes, self.weight, self.scales, self.threads = codes, weight, scales, threads
        self.now = now
        self.odds, self.changes = (now, np.empty((0, 1))) if before is None else before
        self.rows_of_codes = make_rows_of_codes(len(weight), len(codes))
        threads.share(lambda part: transpose_codes(codes, part.start, part.stop, self.rows_of_codes), self._divide())
        self.masks = np.zeros(len(weight), dtype=np.uint32)
        self.which, self.factors = 0, np.ones((1, now.shape[1]))  # scores that are to be added

    def _divide(self, n_rules: int = 1) -> list[slice]:
        """Parts of the examples that take about as long as threads need to be woken up, or longer."""
        return self.threads.divide(len(self.odds), (2 + n_rules) * self.odds.shape[1], odds.CHUNK) or [slice(0, 0)]

    def sum_round(self, bodies: odds.Bodies, n_labels: int) -> odds.RoundSums:
        """Find what the bodies of a round cover, and add up statistics."""

        self.end_round()
        n_rules = len(bodies.offsets) - 1
        sums = [odds.make_round_sums(n_rules, n_labels) for _ in range(self.threads.n_threads)]

        def work(part: slice, own: odds.RoundSums) -> None:
            odds.sum_round(
                *(self.codes, bodies, self.odds, self.weight, self.scales, self.changes, self.masks),
                *(odds.make_scratch(n_labels), part.start, part.stop, own),
            )

        self.threads.share_buffers(work, self._divide(n_rules), sums)
        self.odds, self.changes = self.now, self.changes[:0]
        return add_sums(sums)

    def apply(self, which: int, factors: Array) -> None:
        """Add the scores of some rules of the round to the examples that they cover, when the round is over.

        Odds are rounded once in a round, so that it does not matter whether the loss is asked for in between.
        """
        self.which, self.factors = self.which | which, factors

    def end_round(self) -> None:
        """Bring the odds up to date."""
        which, self.which = np.uint32(self.which), 0

        def work(part: slice) -> None:
            scratch = odds.make_scratch(self.factors.shape[1])
            odds.multiply_odds(self.odds, self.masks, which, self.factors, scratch, part.start, part.stop)

        if which:
            self.threads.share(work, self._divide(int(which).bit_count()))

    def sum_losses(self, scale: float) -> int:
        """The sum of the loss, in whole numbers."""

        def work(part: slice) -> int:
            changes = self.masks, np.uint32(self.which), self.factors
            return int(odds.sum_losses(self.now, *changes, self.weight, scale, part.start, part.stop))

        return sum(self.threads.share(work, self._divide()))


def add_sums(parts: Sequence[odds.RoundSums]) -> odds.RoundSums:
    """The sums over all parts of the examples."""
    return odds.RoundSums(*(reduce(np.add, own) for own in zip(*parts, strict=True)))


class Shards(Protocol):
    """All examples: the shard of this process, or the shards of a cluster."""

    def learn_bodies(self, rules: range) -> Sequence[Body]:
        """Learn the bodies of a round (Alg. 1, lines 4 to 6)."""

    def sum_round(self, bodies: odds.Bodies, n_labels: int) -> odds.RoundSums:
        """Find what the bodies of a round cover, and add up statistics."""

    def apply(self, which: int, factors: Array) -> None:
        """Add the scores of some rules of the round to the examples that they cover."""

    def sum_losses(self, scale: float) -> int:
        """The sum of the loss, in whole numbers."""


class OddsState:
    """See `rounds.TrainingState`.

    `largest` is the largest weight of an example, and `total` that of all together.
    """

    def __init__(self, shards: Shards, n_labels: int, settings: Settings, largest: float, total: float) -> None:
        self.shards, self.layout, self.settings = shards, Diagonal(n_labels), settings
        self.largest, self.total, self.scales = largest, total, choose_scales(largest, total)
        self.n_applied = 0

    def learn_bodies(self, rules: range) -> Sequence[Body]:
        """Learn the bodies of a round (Alg. 1, lines 4 to 6)."""
        return self.shards.learn_bodies(rules)

    def fit_heads(self, first: int, bodies: Sequence[Body]) -> list[Chunk]:  # noqa: ARG002
        """Fit the heads (Alg. 1, lines 7 and 8)."""
        k, n_rules, settings = self.layout.n_labels, len(bodies), self.settings
        offsets = np.cumsum([0, *(len(body.conditions) for body in bodies)])
        conditions = np.concatenate([body.conditions for body in bodies])
        sums = self.shards.sum_round(odds.Bodies(conditions, offsets), k)
        heads = odds.RoundHeads(np.empty((n_rules, k)), np.empty(n_rules), np.empty(n_rules))
        penalty, buffer = Penalty(float(settings.l1), float(settings.l2)), np.empty(count_columns(self.layout))
        odds.solve_heads(self.layout, sums, self.scales, penalty, float(settings.learning_rate), buffer, heads)
        self.factors = odds.find_factors(len(buffer) // 2, heads.scores)
        self.n_applied = 0
        rules = []
        for body, scores, gain, coverage in zip(bodies, *heads, strict=True):
            labels = np.flatnonzero(scores) if settings.l1 > 0 else np.arange(k)
            labels = labels if len(labels) else np.array([k - 1])
            rules.append(make_rule(body.conditions, labels, scores[labels], coverage, gain))
        return rules

    def apply(self, rules: Sequence[Chunk]) -> None:
        """Add the scores of the next rules of the round to the examples that they cover."""
        which = ((1 << len(rules)) - 1) << self.n_applied
        self.n_applied += len(rules)
        self.shards.apply(which, self.factors)

    def mean_loss(self) -> float:
        """The mean loss of the training examples."""
        unit = choose_loss_unit(self.largest, self.total, self.layout.n_labels)
        return float(self.shards.sum_losses(1 / unit) * unit) / self.total


def choose_loss_unit(largest: float, total: float, n_labels: int) -> float:
    """The unit of sums of the loss."""
    return choose_unit(largest * LARGEST_LOSS * n_labels, total * LARGEST_LOSS)


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
