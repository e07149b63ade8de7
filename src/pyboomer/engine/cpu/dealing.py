"""Dealing: where rules are about hands of labels (`sampling.find_hand`), what is known of a hand lies together.

To find the statistics of some labels among those of all of them, memory has to be read as a whole. A hand is read as if
there were no other labels, for as many rules in a row as are about it. Of logistic losses, only gradients are kept, so
that half as much is read. What dealing takes depends on the loss.

- Labels that do not know of each other: all hands of a deck are dealt at once. So a rule costs as much with a thousand
  labels as with ten thousand. That pays where statistics are too many for the cache.
- The joint logistic loss: a hand at a time. While it is played, all other labels keep their scores, and what these mean
  to the known label vectors is found once, see `losses.joint_twin`.
"""

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Signs
from pyboomer.compiling.kernel import kernel
from pyboomer.compiling.simd import CACHE, make_zeros, pad
from pyboomer.engine.cpu.boosting import Hand
from pyboomer.engine.cpu.ledger import Ledger
from pyboomer.engine.sampling import fill_with_hand, find_hand
from pyboomer.engine.search.plan import Complete, Heads, Labels
from pyboomer.losses.joint_twin import MOST_NUMBERS, sum_vectors, take_hand
from pyboomer.losses.truth import JointHand, JointTruth, Truth
from pyboomer.losses.twins import LABEL_WISE, SQUARED, update


@kernel
def deal_out(table: Array | Signs, labels: NDArray[np.int64], dealt: Array | Signs) -> None:
    """Copy the columns of each hand."""
    for n in range(table.shape[0]):
        for hand in range(labels.shape[0]):
            for i in range(labels.shape[1]):
                dealt[hand, n, i] = table[n, np.uint64(labels[hand, i])]  # not tested for a sign


@kernel
def take_back(table: Array, labels: NDArray[np.int64], dealt: Array) -> None:
    """Put the columns of each hand where they came from."""
    for n in range(table.shape[0]):
        for hand in range(labels.shape[0]):
            for i in range(labels.shape[1]):
                table[n, np.uint64(labels[hand, i])] = dealt[hand, n, i]


class Dealer:
    """Deals what the ledger has, which is out of date until it is taken back; of statistics, the ledger has none."""

    def __init__(self, ledger: Ledger, labels: Labels, seed: int) -> None:
        self.ledger, self.draw, self.seed = ledger, labels.draw, seed
        self.at_once = not isinstance(ledger.truth, JointTruth)  # all hands of a deck, or a hand at a time
        n, size = len(ledger.scores), len(self.draw.drawn)
        self.n_hands = len(self.draw.choices) // size  # of a deck
        dealt, width = self.n_hands if self.at_once else 1, pad(size)
        self.labels = np.empty((dealt, size), dtype=np.int64)
        self.signs = np.zeros((dealt, n, width), dtype=np.int8)
        self.weight = np.zeros((dealt, len(ledger.truth.weight), width))
        self.scores = make_zeros((dealt * n, width)).reshape(dealt, n, width)
        self.statistics = make_zeros((n, width if _follows(ledger.truth) else 2 * width))
        self.sums = np.empty(n)  # of all known vectors of the joint loss
        self.turn = -1, -1  # which deck and which of its hands
        self.hand: Hand | None = None

    def deal(self, rule: int) -> tuple[Hand, int]:
        """What a rule is learned from, and how many rules in a row are."""
        deck, hand, left = find_hand(rule, len(self.draw.choices), self.labels.shape[1])
        if (deck, hand) != self.turn:
            self._sum_vectors(deck)
            if not self.at_once or deck != self.turn[0]:
                self._deal_out(deck, range(self.n_hands) if self.at_once else [hand])
            self.turn = deck, hand
            self.hand = None  # its memory is free for the next
            self.hand = self._show(hand if self.at_once else 0)
        assert self.hand is not None
        return self.hand, left

    def _sum_vectors(self, deck: int) -> None:
        """What the hand that was played leaves to the next; anew for each deck, so that rounding does not add up."""
        if self.hand is not None and isinstance(self.hand.truth, JointHand) and deck == self.turn[0]:
            sum_vectors(self.hand.truth, self.hand.scores, self.sums)
        else:
            self.sums[:] = np.nan

    def _deal_out(self, deck: int, hands: range | list[int]) -> None:
        self.take_back()
        draw, ledger = self.draw, self.ledger
        for place, hand in enumerate(hands):
            fill_with_hand(self.seed, deck, hand, draw)
            self.labels[place] = draw.drawn
        deal_out(ledger.scores, self.labels, self.scores)
        deal_out(ledger.signs, self.labels, self.signs)
        deal_out(ledger.truth.weight, self.labels, self.weight)

    def _show(self, place: int) -> Hand:
        truth, labels, scores = self.ledger.truth, self.labels[place], self.scores[place]
        own: Truth | JointHand
        if isinstance(truth, JointTruth):
            own = take_hand(truth, labels, self.ledger.scores, self.signs[place], self.sums)
        else:
            own = Truth(truth.loss, True, self.signs[place], self.weight[place])
        update(own, scores, self.ledger.everyone, self.statistics, 0, len(labels))
        return Hand(own, scores, self.statistics, self.ledger.task.weight, labels)

    def take_back(self) -> None:
        """Bring the scores of the ledger up to date."""
        if self.turn[0] >= 0:
            take_back(self.ledger.scores, self.labels, self.scores)


def _follows(truth: Truth | JointTruth) -> bool:
    """Whether the curvature follows from the gradient, as of labels that are 0 or 1 by a logistic loss."""
    return isinstance(truth, JointTruth) or (truth.loss == LABEL_WISE and len(truth.weight) == 0)


def find_dealer(ledger: Ledger, labels: Labels, heads: Heads, seed: int) -> Dealer | None:
    """Somebody who deals, where that pays."""
    truth, draw = ledger.truth, labels.draw
    single = len(draw.choices) < 2 * len(draw.drawn)  # hand, which has one turn
    if labels.in_turn or not labels.some or single or not isinstance(heads, Complete):
        return None
    if isinstance(truth, JointTruth):
        known = truth.known
        suits = bool((known.own >= 0).all()) and len(known.own) * len(known.factor) <= MOST_NUMBERS
    else:
        suits = truth.loss in (LABEL_WISE, SQUARED) and ledger.statistics.size > CACHE
    return Dealer(ledger, labels, seed) if suits else None
