"""Table 1: how well the approaches do on benchmark data, corrected for the bias of tuning.

`summarise` turns the stored outcomes of tasks into a `Table`, a value; `reports` and `plots` are functions of it.

The published figures are those of one bootstrap, the last of a hundred drawn one after another from
`numpy.random.RandomState(1)`. That one is `Cell.last`, for comparison; `Cell.estimate`, the mean over a thousand, is
the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from pyboomer.datasets import load_dataset
from pyboomer.experiments.bootstrap import correct_bias, draw_bootstraps
from pyboomer.experiments.measures import MEASURES
from pyboomer.experiments.significance import Comparison, compare
from pyboomer.experiments.store import Store
from pyboomer.experiments.tasks import APPROACHES, Setting, Task, split_folds

BOOTSTRAPS = 1000
PUBLISHED_BOOTSTRAP = 99  # counted from 0: the last of a hundred


@dataclass(frozen=True)
class Cell:
    """One figure of the table, in percent.

    Attributes
    ----------
    estimate, low, high : float
        The mean over the bootstraps and its 95 % percentile interval.
    last : float
        The figure of the bootstrap that the paper printed.
    uncorrected : float
        What the best setting has on the examples it was chosen by.
    best : str
        That setting, and its number of rules.
    n_settings : int
        How many settings it was chosen from, numbers of rules included.
    """

    estimate: float
    low: float
    high: float
    last: float
    uncorrected: float
    best: str
    n_settings: int


@dataclass(frozen=True)
class Table:
    """Cells by measure, data set and approach; approaches that lack a data set are left out."""

    data: tuple[str, ...]
    approaches: tuple[str, ...]
    cells: dict[tuple[str, str, str], Cell]

    def list_values(self, measure: str, approaches: Sequence[str] | None = None, kind: str = "estimate") -> np.ndarray:
        """The figures of a measure, data sets by approaches."""
        chosen = self.approaches if approaches is None else approaches
        return np.array([[getattr(self.cells[measure, name, a], kind) for a in chosen] for name in self.data])

    def compare(self, measure: str, approaches: Sequence[str] | None = None, kind: str = "estimate") -> Comparison:
        """The approaches ranked and tested by a measure."""
        chosen = tuple(self.approaches if approaches is None else approaches)
        larger = MEASURES[measure].larger_is_better
        return compare(self.list_values(measure, chosen, kind), chosen, larger_is_better=larger)


def summarise(tasks: Sequence[Task], store: Store) -> Table:
    """The table of all outcomes that are there; a setting counts as soon as all its folds do."""
    cells: dict[tuple[str, str, str], Cell] = {}
    by_data = sorted(tasks, key=lambda task: task.data)
    for name, of_data in groupby(by_data, key=lambda task: task.data):
        own = list(of_data)
        complete = group_complete(own, store)
        if not complete:
            continue
        Y = np.asarray(load_dataset(name).Y) == 1
        counts = draw_bootstraps(len(Y), BOOTSTRAPS)
        for approach, groups in complete.items():
            labels, values = _rate_settings(groups, store, Y)
            tuned_on = APPROACHES[approach].tuned_on
            losses = MEASURES[tuned_on].as_loss(values[tuned_on])
            for measure in MEASURES:
                found = correct_bias(losses, 100 * values[measure], counts)
                cells[measure, name, approach] = Cell(
                    found.estimate,
                    *found.interval(),
                    last=float(found.values[PUBLISHED_BOOTSTRAP]),
                    uncorrected=found.uncorrected,
                    best=labels[found.best],
                    n_settings=len(labels),
                )
    have = {key[1:] for key in cells}
    data = tuple(sorted({name for name, _ in have}))
    return Table(data, tuple(a for a in APPROACHES if all((name, a) in have for name in data) and data), cells)


def group_complete(tasks: Sequence[Task], store: Store) -> dict[str, list[list[Task]]]:
    """For each approach the settings, as lists of tasks, of which all folds are in the store."""
    groups: dict[tuple[str, Setting], list[Task]] = {}
    for task in tasks:
        groups.setdefault((task.approach, task.setting), []).append(task)
    complete: dict[str, list[list[Task]]] = {}
    for (approach, _), own in groups.items():
        if len(own) == own[0].n_folds and all(store.has(task.key) for task in own):
            complete.setdefault(approach, []).append(own)
    return complete


def _rate_settings(
    groups: Sequence[Sequence[Task]], store: Store, Y: np.ndarray
) -> tuple[list[str], dict[str, np.ndarray]]:
    """Names of all settings, numbers of rules included, and each measure of each example under each of them."""
    labels: list[str] = []
    columns: dict[str, list[np.ndarray]] = {measure: [] for measure in MEASURES}
    for own in groups:
        stages = [f"{own[0].setting} rules={stage}" for stage in own[0].stages] or [str(own[0].setting)]
        labels += stages
        rated = {measure: np.empty((len(Y), len(stages))) for measure in MEASURES}
        for task in own:
            _, test = split_folds(len(Y), task.n_folds)[task.fold]
            predicted = store.read(task.key).labels
            for measure, function in MEASURES.items():
                rated[measure][test] = function(Y[test], predicted).T
        for measure, values in rated.items():
            columns[measure].append(values)
    return labels, {measure: np.hstack(parts) for measure, parts in columns.items()}
