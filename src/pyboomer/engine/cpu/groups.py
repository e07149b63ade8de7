"""Groups of labels: where rules in a row are about the same labels (`sampling.find_group`), their data lie together.

To find the statistics of some labels among those of all labels, memory has to be read as a whole. The data of a group
are copied and read as if there were no other labels, for as many rules in a row as are about it. Of logistic losses,
only gradients are kept, so that half as much is read. What is copied depends on the loss.

- Losses that decompose: all groups of an epoch at once. So a rule costs as much with a thousand labels as with ten
  thousand. That pays where statistics are too many for the cache.
- The joint logistic loss: one group at a time. Meanwhile all other labels keep their scores, whose part in the known
  label vectors is computed once, see `losses.compiled_joint`.
"""

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Signs
from pyboomer.compiling.kernel import kernel
from pyboomer.compiling.simd import CACHE, make_zeros, pad
from pyboomer.engine.cpu.boosting import LabelGroup
from pyboomer.engine.cpu.state import ExampleState
from pyboomer.engine.sampling import fill_with_group, find_group
from pyboomer.engine.search.plan import Complete, Heads, Labels, SomeLabels
from pyboomer.losses.compiled import LABEL_WISE, SQUARED, update
from pyboomer.losses.compiled_joint import MOST_NUMBERS, sum_vectors, take_group
from pyboomer.losses.truth import JointGroup, JointTruth, Truth


@kernel
def gather_groups(table: Array | Signs, labels: NDArray[np.int64], gathered: Array | Signs) -> None:
    """Copy the columns of each group."""
    for n in range(table.shape[0]):
        for group in range(labels.shape[0]):
            for i in range(labels.shape[1]):
                gathered[group, n, i] = table[n, np.uint64(labels[group, i])]  # not tested for a sign


@kernel
def scatter_groups(table: Array, labels: NDArray[np.int64], gathered: Array) -> None:
    """Put the columns of each group where they came from."""
    for n in range(table.shape[0]):
        for group in range(labels.shape[0]):
            for i in range(labels.shape[1]):
                table[n, np.uint64(labels[group, i])] = gathered[group, n, i]


class GroupedLabels:
    """The data of a training state by groups of labels; the state is out of date until `scatter_groups`."""

    def __init__(self, state: ExampleState, labels: Labels, seed: int) -> None:
        self.state, self.draw, self.seed = state, labels.draw, seed
        self.at_once = not isinstance(state.truth, JointTruth)  # all groups of an epoch, or a group at a time
        n, size = len(state.scores), len(self.draw.drawn)
        self.n_groups = len(self.draw.choices) // size  # of an epoch
        gathered, width = self.n_groups if self.at_once else 1, pad(size)
        self.labels = np.empty((gathered, size), dtype=np.int64)
        self.signs = np.zeros((gathered, n, width), dtype=np.int8)
        self.weight = np.zeros((gathered, len(state.truth.weight), width))
        self.scores = make_zeros((gathered * n, width)).reshape(gathered, n, width)
        self.statistics = make_zeros((n, width if _follows(state.truth) else 2 * width))
        self.sums = np.empty(n)  # of all known vectors of the joint loss
        self.current = -1, -1  # which epoch and which of its groups
        self.group: LabelGroup | None = None

    def show(self, rule: int) -> tuple[LabelGroup, int]:
        """What a rule is learned from, and how many rules in a row are."""
        epoch, group, left = find_group(rule, len(self.draw.choices), self.labels.shape[1])
        if (epoch, group) != self.current:
            self._sum_vectors(epoch)
            if not self.at_once or epoch != self.current[0]:
                self._gather_groups(epoch, range(self.n_groups) if self.at_once else [group])
            self.current = epoch, group
            self.group = None  # its memory is free for the next
            self.group = self._show(group if self.at_once else 0)
        assert self.group is not None
        return self.group, left

    def _sum_vectors(self, epoch: int) -> None:
        """Sums of the known vectors for the next group; anew for each epoch, so that rounding does not add up."""
        if self.group is not None and isinstance(self.group.truth, JointGroup) and epoch == self.current[0]:
            sum_vectors(self.group.truth, self.group.scores, self.sums)
        else:
            self.sums[:] = np.nan

    def _gather_groups(self, epoch: int, groups: range | list[int]) -> None:
        self.scatter_groups()
        draw, state = self.draw, self.state
        for place, group in enumerate(groups):
            fill_with_group(self.seed, epoch, group, draw)
            self.labels[place] = draw.drawn
        gather_groups(state.scores, self.labels, self.scores)
        gather_groups(state.signs, self.labels, self.signs)
        gather_groups(state.truth.weight, self.labels, self.weight)

    def _show(self, place: int) -> LabelGroup:
        truth, labels, scores = self.state.truth, self.labels[place], self.scores[place]
        own: Truth | JointGroup
        if isinstance(truth, JointTruth):
            own = take_group(truth, labels, self.state.scores, self.signs[place], self.sums)
        else:
            own = Truth(truth.loss, True, self.signs[place], self.weight[place])
        update(own, scores, self.state.everyone, self.statistics, 0, len(labels))
        return LabelGroup(own, scores, self.statistics, self.state.task.weight, labels)

    def scatter_groups(self) -> None:
        """Bring the scores of the state up to date."""
        if self.current[0] >= 0:
            scatter_groups(self.state.scores, self.labels, self.scores)


def _follows(truth: Truth | JointTruth) -> bool:
    """Whether the curvature follows from the gradient, as of labels that are 0 or 1 by a logistic loss."""
    return isinstance(truth, JointTruth) or (truth.loss == LABEL_WISE and len(truth.weight) == 0)


def group_labels(state: ExampleState, labels: Labels, heads: Heads, seed: int) -> GroupedLabels | None:
    """The data by groups of labels, where rules are about groups and copying their data pays."""
    truth, draw = state.truth, labels.draw
    single = len(draw.choices) < 2 * len(draw.drawn)  # group, which is shuffled for each rule
    if not isinstance(labels, SomeLabels) or labels.in_turn or single or not isinstance(heads, Complete):
        return None
    if isinstance(truth, JointTruth):
        known = truth.known
        suits = bool((known.own >= 0).all()) and len(known.own) * len(known.factor) <= MOST_NUMBERS
    else:
        suits = truth.loss in (LABEL_WISE, SQUARED) and state.statistics.size > CACHE
    return GroupedLabels(state, labels, seed) if suits else None
