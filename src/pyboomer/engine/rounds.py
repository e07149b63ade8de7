"""A round is some rules in a row whose bodies are chosen from the same statistics.

A rule is a small step, so the next body would hardly differ if it were chosen from statistics that are a few rules old.
The bodies of a round therefore do not wait for each other, and can be learned side by side. In a round, the loss is its
second-order approximation at the beginning of the round (Eq. 13): the heads are fitted one after another, and each
changes the gradients of the examples it covers, g_n + H_n p, while the Hessians stay the same.

The size of a round depends on the number of its first rule, never on threads, workers or the device.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.engine.protocol import Chunk, Settings

GROWTH = 25  # a round that begins with rule t has t / 25 rules: the first rules change much, and learn alone


def count_rules(first: int, most: int) -> int:
    """The size of the round that begins with a rule; rounds have at most `most` rules."""
    return max(min(first // GROWTH, most), 1)


def find_round(rule: int, most: int) -> tuple[int, int]:
    """The first rule of the round that a rule belongs to, and the size of the round.

    The default rule is number 0, and belongs to no round.
    """
    first, size = 1, 1
    while first + size <= rule:
        first += size
        size = count_rules(first, most)
    return first, size


class Body(NamedTuple):
    """A learned body."""

    conditions: Array  # (size, 4): feature, operator and value of each, and the gain that the body has with it
    labels: NDArray[np.int64]  # of the head, among those that the rule may be about; empty if they are yet to be chosen


class TrainingState(Protocol):
    """Scores of the training examples, and what rules are learned from; in this process or on a cluster."""

    def learn_bodies(self, rules: range) -> Sequence[Body]:
        """Learn the bodies of a round (Alg. 1, lines 4 to 6)."""

    def fit_heads(self, first: int, bodies: Sequence[Body]) -> list[Chunk]:
        """Fit their heads (lines 7 and 8), one after another and to first order."""

    def apply(self, rules: Sequence[Chunk]) -> None:
        """Add the scores of the next rules of the round to the examples that they cover."""

    def mean_loss(self) -> float:
        """The mean loss of the training examples."""


class RoundLearner:
    """Learns rules in rounds, as many at a time as are asked for."""

    def __init__(self, state: TrainingState, settings: Settings) -> None:
        self.state, self.settings = state, settings
        self.pending: list[Chunk] = []  # rules of the round that have not been asked for
        self.finished: list[Chunk] = []  # those whose scores have not been added to the examples

    def learn(self, rule: int, count: int) -> list[Chunk]:
        """Learn rules from number `rule` on."""
        learned: list[Chunk] = []
        while len(learned) < count:
            if not self.pending:
                self._learn_round(rule + len(learned))
            left = count - len(learned)
            rules, self.pending = self.pending[:left], self.pending[left:]
            self.finished += rules
            learned += rules
        return learned

    def _learn_round(self, rule: int) -> None:
        """Learn what is left of the round that a rule belongs to, but no more rules than are wanted."""
        self.apply()
        first, size = find_round(rule, self.settings.rules_per_round)
        last = first + size
        if rule < self.settings.n_rules:
            last = min(last, self.settings.n_rules)
        self.pending = self.state.fit_heads(rule, self.state.learn_bodies(range(rule, last)))

    def apply(self) -> None:
        """Add the scores of the rules learned so far to the examples."""
        if self.finished:
            self.state.apply(self.finished)
            self.finished = []
