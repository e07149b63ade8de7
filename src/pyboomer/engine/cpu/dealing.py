"""Dealing: where rules are about hands of labels (`sampling.find_hand`), what is known of a hand lies together.

To find the statistics of some labels among those of all of them, memory has to be read as a whole. A hand is read as if
there were no other labels, so that a rule costs as much with a thousand labels as with ten thousand. Each time the deck
is shuffled, scores are dealt anew.

That takes a loss whose labels do not know of each other, small hands, and statistics that are too many for the cache.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Signs
from pyboomer.compiling.kernel import kernel, plain
from pyboomer.compiling.simd import CACHE, make_zeros, pad
from pyboomer.engine.cpu.ledger import Ledger
from pyboomer.engine.plan import Complete, Heads, Labels
from pyboomer.engine.sampling import count_per_deck, fill_with_labels, find_hand
from pyboomer.losses.truth import Truth
from pyboomer.losses.twins import LABEL_WISE, SQUARED, update

FEWEST = 64  # rules for which it is worth while to deal


class Dealt(NamedTuple):
    """The training examples, dealt out: as in `boosting.Examples`, but for one more dimension, of hands."""

    truth: Truth
    scores: Array
    statistics: Array
    weight: Array
    labels: NDArray[np.int64]  # (hands, size): the labels of each hand


@plain
def take_hand(truth: Truth, hand: int) -> Truth:
    """What is known of the labels of a hand."""
    return Truth(truth.loss, truth.diagonal, truth.signs[hand], truth.weight[hand])


@kernel
def deal_out(table: Array | Signs, labels: NDArray[np.int64], dealt: Array | Signs) -> None:
    """Copy the columns of each hand."""
    for n in range(table.shape[0]):
        for hand in range(labels.shape[0]):
            for i in range(labels.shape[1]):
                dealt[hand, n, i] = table[n, labels[hand, i]]


@kernel
def take_back(table: Array, labels: NDArray[np.int64], dealt: Array) -> None:
    """Put the columns of each hand where they came from."""
    for n in range(table.shape[0]):
        for hand in range(labels.shape[0]):
            for i in range(labels.shape[1]):
                table[n, labels[hand, i]] = dealt[hand, n, i]


def suits(ledger: Ledger, labels: Labels, heads: Heads) -> bool:
    """Whether to deal."""
    truth, draw = ledger.truth, labels.draw
    alone = isinstance(truth, Truth) and truth.loss in (LABEL_WISE, SQUARED)
    drawn = labels.some and not labels.in_turn and count_per_deck(len(draw.choices), len(draw.drawn)) >= FEWEST
    return drawn and alone and isinstance(heads, Complete) and ledger.statistics.size > CACHE


class Dealer:
    """Deals what the ledger has, which is out of date until it is taken back; of statistics, the ledger has none."""

    def __init__(self, ledger: Ledger, labels: Labels, seed: int) -> None:
        self.ledger, self.labels, self.seed, self.deck = ledger, labels, seed, -1
        assert isinstance(ledger.truth, Truth)
        (n, _), k, size = ledger.scores.shape, ledger.n_labels, len(labels.draw.drawn)
        hands, width = k // size, pad(size)
        weight = np.zeros((hands, len(ledger.truth.weight), width))
        truth = Truth(ledger.truth.loss, True, np.zeros((hands, n, width), dtype=np.int8), weight)
        scores, statistics = (make_zeros((hands * n, w)).reshape(hands, n, w) for w in (width, 2 * width))
        self.dealt = Dealt(truth, scores, statistics, ledger.task.weight, np.empty((hands, size), dtype=np.int64))

    def deal(self, rule: int) -> tuple[Dealt, int]:
        """What a rule is learned from, and how many rules there are until the deck is shuffled."""
        dealt, draw, ledger = self.dealt, self.labels.draw, self.ledger
        n_labels, size = len(draw.choices), len(draw.drawn)
        deck, _ = find_hand(rule, n_labels, size)
        count = count_per_deck(n_labels, size)
        if deck != self.deck:
            self.take_back()
            self.deck = deck
            for hand in range(len(dealt.labels)):
                fill_with_labels(self.seed, deck * count + 1 + hand, False, draw)
                dealt.labels[hand] = draw.drawn
            deal_out(ledger.scores, dealt.labels, dealt.scores)
            deal_out(ledger.signs, dealt.labels, dealt.truth.signs)
            deal_out(ledger.truth.weight, dealt.labels, dealt.truth.weight)
            for hand in range(len(dealt.labels)):
                truth = take_hand(dealt.truth, hand)
                update(truth, dealt.scores[hand], ledger.everyone, dealt.statistics[hand], 0, size)
        return dealt, (deck + 1) * count + 1 - rule

    def take_back(self) -> None:
        """Bring the scores of the ledger up to date."""
        if self.deck >= 0:
            take_back(self.ledger.scores, self.dealt.labels, self.dealt.scores)
