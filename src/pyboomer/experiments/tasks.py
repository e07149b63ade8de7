"""A task is one model to be learned and judged: a data set, an approach, its setting, and a fold for testing.

A task says everything that its outcome depends on, so that any process can do it and none needs to do it twice.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import KFold

from pyboomer.classifier import BoomerClassifier
from pyboomer.datasets import Dataset, load_dataset
from pyboomer.experiments import baselines
from pyboomer.experiments.baselines import Boosting
from pyboomer.experiments.store import Outcome

SEED = 1  # of the folds and of every learner


class Approach(NamedTuple):
    """A way to learn label vectors: what the paper tunes it on, and the parameters of its kind."""

    tuned_on: str
    kind: str  # "rules", "BR", "LP", "CC" or "forest"
    parameters: dict[str, Any]


RULES = {
    "l.w.-log. single": Approach("hamming", "rules", {"loss": "label-wise-logistic", "head": "single"}),
    "l.w.-log. multi": Approach("hamming", "rules", {"loss": "label-wise-logistic", "head": "multi"}),
    "ex.w.-log. single": Approach("subset", "rules", {"loss": "example-wise-logistic", "head": "single"}),
    "ex.w.-log. multi": Approach("subset", "rules", {"loss": "example-wise-logistic", "head": "multi"}),
}
REDUCTIONS = {"BR": "hamming", "LP": "subset", "CC": "subset"}  # what each is tuned on
FIXED = {
    f"XGBoost {kind}": Approach(tuned_on, kind, {"early_stopping": False}) for kind, tuned_on in REDUCTIONS.items()
}
STOPPED = {
    f"XGBoost {kind}, early stopping": Approach(tuned_on, kind, {"early_stopping": True})
    for kind, tuned_on in REDUCTIONS.items()
}
FOREST = {"random forest": Approach("subset", "forest", {})}
APPROACHES = {**RULES, **FIXED, **STOPPED, **FOREST}


class Setting(NamedTuple):
    """What an approach is tuned by; `size` is the number of rules, rounds or trees at most."""

    size: int
    learning_rate: float | None = None
    l2: float | None = None
    order: int | None = None  # the number of a random order of the labels

    def __str__(self) -> str:
        """Name the setting, in words that can be part of a file name."""
        parts = {"rate": self.learning_rate, "l2": self.l2, "order": self.order, "size": self.size}
        return " ".join(f"{name}={value:g}" for name, value in parts.items() if value is not None)


class Task(NamedTuple):
    """One model to be learned on all folds but one, and to be judged on that one."""

    data: str
    approach: str
    setting: Setting
    fold: int
    n_folds: int = 10
    stages: tuple[int, ...] = ()  # numbers of rules after which to predict; others predict once
    max_features: str | None = "log2"  # of the rules
    bootstrap: bool = True  # of the rules

    @property
    def key(self) -> str:
        """The name of the task in a store."""
        kind = self.approach if self.bootstrap else f"{self.approach}, no bootstrap"
        return f"{self.data}/{kind}/{self.setting} fold={self.fold}of{self.n_folds}"


def split_folds(n: int, n_folds: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows of each fold: those of the paper."""
    return list(KFold(n_folds, shuffle=True, random_state=SEED).split(np.empty(n)))


def do_task(task: Task, data: Dataset | None = None) -> Outcome:
    """Learn, and predict the labels of the test fold at every stage; data that is not given is loaded by its name."""
    data = _load(task.data) if data is None else data
    train, test = split_folds(len(data.Y), task.n_folds)[task.fold]
    start, cpu = time.perf_counter(), time.thread_time()  # a worker of a cluster may have other threads
    labels, facts = _predict(task, data, train, test)
    facts |= {"seconds": round(time.perf_counter() - start, 3), "cpu": round(time.thread_time() - cpu, 3)}
    return Outcome(labels, facts)


def _predict(task: Task, data: Dataset, train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
    approach, setting = APPROACHES[task.approach], task.setting
    X, Y = data.X if approach.kind == "rules" else _prepare(data), data.Y
    if approach.kind == "forest":
        forest = baselines.predict_forest(X[train], Y[train], X[test], n_trees=setting.size, seed=SEED)
        return forest.labels[None], {}
    if setting.learning_rate is None or setting.l2 is None:
        raise ValueError(f"{task.approach} needs a learning rate and an L2 weight, got the setting {setting}")
    if approach.kind == "rules":
        model = BoomerClassifier.paper(
            **approach.parameters,
            n_rules=setting.size,
            learning_rate=setting.learning_rate,
            l2=setting.l2,
            max_features=task.max_features,
            bootstrap=task.bootstrap,
            categorical_features=list(data.nominal_features) or None,
            random_state=SEED,
        ).fit(X[train], Y[train])
        return np.stack(list(model.staged_predict(X[test], at=task.stages))).astype(bool), {}
    how = Boosting(setting.learning_rate, setting.l2, setting.size, approach.parameters["early_stopping"], SEED)
    if approach.kind == "CC":
        labels, rounds = baselines.predict_chain(X[train], Y[train], X[test], how=how, order=setting.order or 0)
    else:
        predict = {"BR": baselines.predict_relevance, "LP": baselines.predict_powerset}[approach.kind]
        labels, rounds = predict(X[train], Y[train], X[test], how=how)
    return labels[None], {"rounds": rounds}


@lru_cache(maxsize=8)  # a process does many tasks on the same data sets
def _load(name: str) -> Dataset:
    return load_dataset(name)


@lru_cache(maxsize=8)
def _prepare(data: Dataset) -> Any:
    return baselines.prepare_features(data.X)
