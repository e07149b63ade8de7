"""Figure 1: how Hamming and subset 0/1 loss fall as rules are added, on the three synthetic data sets.

`summarise` turns the stored outcomes of tasks into a `Figure`, a value; `reports` and `plots` are functions of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pyboomer.datasets import load_dataset
from pyboomer.experiments.measures import rate_hamming, rate_subset
from pyboomer.experiments.paper.table1 import group_complete
from pyboomer.experiments.store import Store
from pyboomer.experiments.tasks import APPROACHES, Task, split_folds

# The smallest losses that any classifier can have, in percent: one label in ten is flipped, on its own or all together.
BAYES = {
    "synthetic-marginal-independence": (10.0, 100 * (1 - 0.9**6)),
    "synthetic-marginal-dependence": (10.0, 100 * (1 - 0.9**6)),
    "synthetic-conditional-dependence": (10.0, 10.0),
}


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The losses of one approach on one data set, in percent, with the best of its settings.

    Attributes
    ----------
    data, approach, setting : str
    n_rules : array of int
        The numbers of rules, ascending.
    hamming, subset : arrays
        The losses of the pooled out-of-fold predictions after so many rules.
    fold_subset : array of shape (folds, numbers of rules)
        The subset 0/1 loss of each fold by itself.
    n_settings : int
        How many settings it was chosen from.
    """

    data: str
    approach: str
    setting: str
    n_rules: np.ndarray
    hamming: np.ndarray
    subset: np.ndarray
    fold_subset: np.ndarray
    n_settings: int

    def at(self, n_rules: int) -> tuple[float, float]:
        """Hamming and subset 0/1 loss after so many rules."""
        position = int(np.searchsorted(self.n_rules, n_rules))
        return float(self.hamming[position]), float(self.subset[position])

    def count_rules_needed(self, margin: float = 0.5) -> int:
        """The smallest number of rules from which on the pooled subset loss is within `margin` of its last value."""
        return int(self.n_rules[_settle(self.subset, margin)])

    def count_rules_by_fold(self, margin: float = 0.5) -> list[int]:
        """The same for each fold by itself."""
        return [int(self.n_rules[_settle(losses, margin)]) for losses in self.fold_subset]


@dataclass(frozen=True, eq=False)
class Figure:
    """All trajectories, by data set and approach."""

    trajectories: dict[tuple[str, str], Trajectory]

    @property
    def data(self) -> tuple[str, ...]:
        """The data sets there are trajectories of."""
        return tuple(dict.fromkeys(name for name, _ in self.trajectories))


def summarise(tasks: Sequence[Task], store: Store) -> Figure:
    """The trajectories of all outcomes that are there; of each approach, with the setting that is best in the end.

    Best by the loss that the approach is meant for: Hamming for label-wise, subset 0/1 for example-wise losses.
    """
    trajectories = {}
    for name in dict.fromkeys(task.data for task in tasks):
        own = [task for task in tasks if task.data == name]
        complete = group_complete(own, store)
        Y = np.asarray(load_dataset(name).Y) == 1
        for approach, groups in complete.items():
            found = [_trace(group, store, Y, len(groups)) for group in groups]
            final = [getattr(each, APPROACHES[approach].tuned_on)[-1] for each in found]
            trajectories[name, approach] = found[int(np.argmin(final))]
    return Figure(trajectories)


def _trace(group: Sequence[Task], store: Store, Y: np.ndarray, n_settings: int) -> Trajectory:
    first = group[0]
    hamming, subset = np.empty((2, len(Y), len(first.stages)))
    by_fold = []
    for task in group:
        _, test = split_folds(len(Y), task.n_folds)[task.fold]
        predicted = store.read(task.key).labels
        hamming[test], subset[test] = rate_hamming(Y[test], predicted).T, rate_subset(Y[test], predicted).T
        by_fold.append(100 * subset[test].mean(axis=0))
    return Trajectory(
        first.data,
        first.approach,
        str(first.setting),
        np.array(first.stages),
        100 * hamming.mean(axis=0),
        100 * subset.mean(axis=0),
        np.array(by_fold),
        n_settings,
    )


def _settle(losses: np.ndarray, margin: float) -> int:
    """The position from which on all losses are within a margin of the last."""
    far = np.flatnonzero(losses > losses[-1] + margin)
    return int(far[-1]) + 1 if len(far) else 0
