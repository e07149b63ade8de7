"""A bootstrap corrects the bias of a tuned cross validation (BBC-CV).

The best of many settings looks better than it is on the examples it was chosen by. BBC-CV (Tsamardinos, Greasidou and
Borboudakis, Machine Learning 107, 2018) pools the out-of-fold predictions of all settings, and then many times draws
examples with replacement, chooses the best setting on them, and judges it on the examples that were not drawn. No model
is learned again, and the loss of every example under every setting is all it needs.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from pickle import PicklingError
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import hash as find_hash
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils import indexable
from sklearn.utils.metaestimators import _safe_split

from pyboomer.data.labels import narrow_objects
from pyboomer.data.soundness import unmask
from pyboomer.experiments.measures import Measure, find_known, find_measure
from pyboomer.experiments.running import Job, run_jobs
from pyboomer.experiments.store import Outcome, Store

MARGIN = 1e-9  # settings whose mean losses differ by less are equal; the first of them is chosen


def draw_bootstraps(n: int, n_bootstraps: int, seed: int = 1) -> np.ndarray:
    """Return how often each of n examples is drawn in each bootstrap, shape (B, n).

    All bootstraps come from one stream, so the first ones do not depend on how many are drawn.

    Examples
    --------
    >>> from pyboomer.experiments import draw_bootstraps
    >>> counts = draw_bootstraps(n=5, n_bootstraps=3)
    >>> counts.sum(axis=1).tolist()
    [5, 5, 5]
    """
    random = np.random.RandomState(seed)  # the generator of the published figures
    return np.stack([np.bincount(random.randint(n, size=n), minlength=n) for _ in range(n_bootstraps)])


@dataclass(frozen=True, eq=False)
class Correction:
    """What the bootstraps say.

    Attributes
    ----------
    values : array of shape (B,)
        The measure of the setting chosen in each bootstrap, on the examples not drawn; NaN where all were drawn.
    chosen : int array of shape (B,)
        The numbers of these settings.
    best : int
        The setting chosen on all examples: the one to deliver.
    uncorrected : float
        What that setting has on the examples it was chosen by, which is too good to be true.

    Examples
    --------
    >>> import numpy as np
    >>> from pyboomer.experiments import correct_bias, draw_bootstraps
    >>> losses = np.random.default_rng(0).random((100, 20))
    >>> correction = correct_bias(losses, losses, draw_bootstraps(100, 500))
    >>> round(correction.uncorrected, 2), round(correction.estimate, 2)
    (0.44, 0.5)
    """

    values: np.ndarray
    chosen: np.ndarray
    best: int
    uncorrected: float

    @property
    def estimate(self) -> float:
        """The mean over the bootstraps: how well a model will do that is tuned and learned in this way."""
        return float(np.nanmean(self.values))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The percentile interval of that level."""
        low, high = np.nanpercentile(self.values, [50 * (1 - level), 50 * (1 + level)])
        return float(low), float(high)


def correct_bias(losses: np.ndarray, values: np.ndarray, counts: np.ndarray) -> Correction:
    """Choose settings by losses, and judge them by values of the same measure or another, without the bias of choosing.

    Parameters
    ----------
    losses, values : arrays of shape (N, C)
        Of each example under each setting; smaller losses are better.
    counts : int array of shape (B, N)
        The bootstraps, see `draw_bootstraps`.

    Examples
    --------
    >>> import numpy as np
    >>> from pyboomer.experiments import correct_bias, draw_bootstraps
    >>> losses = np.random.default_rng(0).random((100, 20))  # twenty settings that are equally good
    >>> correction = correct_bias(losses, losses, draw_bootstraps(100, 500))
    >>> correction.uncorrected < correction.estimate
    True
    """
    n = len(losses)
    chosen = _first_smallest(counts @ losses / n)
    candidates, column = np.unique(chosen, return_inverse=True)
    left_out = (counts == 0).astype(np.float64)
    sums = (left_out @ values[:, candidates])[np.arange(len(counts)), column]
    sizes = left_out.sum(axis=1)
    best = int(_first_smallest(losses.mean(axis=0)[None])[0])
    judged = np.divide(sums, sizes, out=np.full(len(counts), np.nan), where=sizes > 0)
    return Correction(judged, chosen, best, float(values[:, best].mean()))


def _first_smallest(means: np.ndarray) -> np.ndarray:
    return np.argmax(means <= means.min(axis=1, keepdims=True) + MARGIN, axis=1)


# --- From an estimator and a grid -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TunedResult:
    """What `bbc_cv` found.

    Attributes
    ----------
    correction : Correction
        The bootstraps: `correction.estimate`, `correction.interval()`.
    settings : list of dict
        All settings, in the order of their numbers.
    means : array of shape (C,)
        The measure of each setting on all pooled out-of-fold predictions.
    best_params_ : dict
        The best of them.
    best_estimator_ : estimator or None
        Learned with these parameters from all examples, if asked for.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.experiments import bbc_cv
    >>> digits = load_dataset("digits7")
    >>> grid = {"n_rules": [10, 20, 30]}
    >>> result = bbc_cv(BoomerClassifier(random_state=1), grid, digits.X[:300], digits.Y[:300], cv=3)
    >>> result.best_params_
    {'n_rules': 30}
    >>> result  # doctest: +ELLIPSIS
    <TunedResult: n_rules=30, ... (95% interval ... to ...)>
    >>> low, high = result.interval()
    >>> low < result.estimate < high
    True
    """

    correction: Correction
    settings: list[dict[str, Any]]
    means: np.ndarray
    best_params_: dict[str, Any]
    best_estimator_: Any = None

    def __repr__(self) -> str:
        best = [f"{name}={value!r}" for name, value in self.best_params_.items()]
        low, high = self.interval()
        estimate = f"estimate {self.estimate:.3g} (95% interval {low:.3g} to {high:.3g})"
        return f"<TunedResult: {', '.join([*best, estimate])}>"

    @property
    def estimate(self) -> float:
        """The corrected estimate of the measure."""
        return self.correction.estimate

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The percentile interval of that level."""
        return self.correction.interval(level)


def bbc_cv(
    estimator: Any,
    param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
    X: Any,
    y: Any,
    *,
    measure: str | Measure | Callable[[np.ndarray, np.ndarray], np.ndarray] = "subset",
    report: str | Measure | Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
    staged: str = "n_rules",
    cv: Any = 10,
    n_bootstraps: int = 1000,
    random_state: int = 1,
    refit: bool = True,
    n_jobs: int | None = None,
    client: Any = None,
    folder: str | Path | None = None,
) -> TunedResult:
    """Tune an estimator by cross-validation, and estimate without the bias of tuning how well it will do.

    Parameters
    ----------
    estimator : estimator of scikit-learn
    param_grid : dict or list of dicts
        The settings, as `GridSearchCV` takes them.
    X, y : array-like, sparse matrix or DataFrame
        Features and labels; a label that is NaN is not known, and counts nowhere.
    measure : {"subset", "hamming", "f1"}, Measure or callable
        What to tune by. A callable takes true and predicted labels and gives a loss per example; it sees NaN where a
        true label is not known.
    report : like `measure`, optional
        What to estimate, if it is not what is tuned by.
    staged : str, default="n_rules"
        The parameter whose values are read off the staged predictions of one model, fitted with the largest value. It
        needs the parameter in the grid and an estimator with `staged_predict`. Boosting of scikit-learn calls it
        "n_estimators".
    cv : int, splitter or iterable, default=10
        The folds; an int means `KFold(cv, shuffle=True, random_state=random_state)`. Each example is tested on once.
    n_bootstraps : int, default=1000
    random_state : int, default=1
        The seed of folds and bootstraps.
    refit : bool, default=True
        Whether to learn a model with the best setting from all examples.
    n_jobs : int, optional
        Processes; None for one, -1 for all cores.
    client : dask.distributed.Client, optional
        Let the workers of its cluster learn the models of the folds. The result is the same.
    folder : str or Path, optional
        Where the predictions of each fold are kept. The same call then goes on where it was stopped, and grids that
        overlap share their models. It takes the extra `experiments`.

    Returns
    -------
    TunedResult
        With the corrected estimate and its interval, the best parameters and, if asked for, the model.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> digits = load_dataset("digits7")
    >>> grid = {"learning_rate": [0.3, 0.5], "n_rules": [10, 20, 30]}
    >>> result = bbc_cv(BoomerClassifier(random_state=1), grid, digits.X, digits.Y, cv=3)
    >>> len(result.settings)
    6
    """
    if n_bootstraps < 1:
        raise ValueError(f"n_bootstraps must be at least 1, got {n_bootstraps}")
    tuned = find_measure(measure)
    reported = tuned if report is None else find_measure(report)
    X, y = indexable(X, y)
    true = narrow_objects(_as_array(unmask(y)))
    judged = np.flatnonzero(find_known(true).any(axis=1))
    if len(judged) == 0:
        raise ValueError("y has no label that is known")
    folds = list(_make_cv(cv, random_state).split(X, y))
    tested = np.concatenate([test for _, test in folds])
    if not np.array_equal(np.sort(tested), np.arange(len(true))):
        raise ValueError("cv must test on every example exactly once, so that out-of-fold predictions can be pooled")

    groups = list(_group_settings(estimator, param_grid, staged))
    settings = [setting for group in groups for setting in group]
    starts = np.cumsum([0, *map(len, groups)])
    store = None if folder is None else Store(Path(folder))
    do = partial(_predict_fold, estimator, groups, staged, X, y, folds)
    tasks = [(i, j) for i in range(len(groups)) for j in range(len(folds))]
    keys = map(str, tasks) if store is None else _name_tasks(tasks, estimator, groups, X, y, folds)
    jobs = [Job(key, do, task) for key, task in zip(keys, tasks, strict=True)]
    losses, values = np.empty((2, len(true), len(settings)))
    for job, outcome in run_jobs(jobs, store, n_jobs=n_jobs, client=client):
        labels = (outcome or store.read(job.key)).labels  # type: ignore[union-attr]
        i, j = job.task
        test = folds[j][1]
        for column, predicted in enumerate(labels, start=starts[i]):
            losses[test, column] = tuned.as_loss(tuned(true[test], predicted))
            values[test, column] = reported(true[test], predicted)

    losses, values = losses[judged], values[judged]
    if np.isnan(losses).any():
        raise ValueError(f"measure gives NaN for example {judged[np.isnan(losses).any(axis=1).argmax()]}")
    correction = correct_bias(losses, values, draw_bootstraps(len(judged), n_bootstraps, random_state))
    best = settings[correction.best]
    model = clone(estimator).set_params(**best).fit(X, y) if refit else None
    return TunedResult(correction, settings, values.mean(axis=0), best, model)


def _make_cv(cv: Any, seed: int) -> Any:
    from sklearn.model_selection import KFold

    return KFold(cv, shuffle=True, random_state=seed) if isinstance(cv, int) else check_cv(cv)


def _group_settings(estimator: Any, param_grid: Any, staged: str) -> Iterator[list[dict[str, Any]]]:
    """Lists of settings that one model can serve: equal but for the number of stages, which ascends."""
    grids = [param_grid] if isinstance(param_grid, Mapping) else list(param_grid)
    for grid in grids:
        counts = sorted(set(grid.get(staged, []))) if hasattr(estimator, "staged_predict") else []
        rest = {name: values for name, values in grid.items() if not (counts and name == staged)}
        for setting in ParameterGrid(rest):
            yield [{**setting, staged: count} for count in counts] if counts else [setting]


def _name_tasks(
    tasks: Sequence[tuple[int, int]],
    estimator: Any,
    groups: list[list[dict[str, Any]]],
    X: Any,
    y: Any,
    folds: list[tuple[np.ndarray, np.ndarray]],
) -> Iterator[str]:
    """The name of each task in a store: by all that its predictions depend on."""
    package = sys.modules[type(estimator).__module__.partition(".")[0]]
    everything = (type(estimator), estimator.get_params(), getattr(package, "__version__", None), X, y)
    try:
        whole = find_hash(everything)
        for i, j in tasks:
            yield f"{type(estimator).__name__}/{whole}/{find_hash((groups[i], folds[j]))}"
    except PicklingError as error:
        raise ValueError(f"folder= needs an estimator and data that can be pickled: {error}") from error


def _predict_fold(
    estimator: Any,
    groups: list[list[dict[str, Any]]],
    staged: str,
    X: Any,
    y: Any,
    folds: list[tuple[np.ndarray, np.ndarray]],
    task: tuple[int, int],
) -> Outcome:
    """The labels of the test examples of a fold under each setting of a group."""
    group, (train, test) = groups[task[0]], folds[task[1]]
    model = clone(estimator).set_params(**group[-1])  # with the most stages
    X_train, y_train = _safe_split(model, X, y, train)
    X_test, _ = _safe_split(model, X, y, test, train)
    model.fit(X_train, y_train)
    if len(group) > 1:
        predictions = _predict_stages(model, X_test, [setting[staged] for setting in group])
    else:
        predictions = [model.predict(X_test)]
    return Outcome(np.stack([_as_array(labels) for labels in predictions]), {})


def _predict_stages(model: Any, X: Any, counts: Sequence[int]) -> list[Any]:
    if "at" in inspect.signature(model.staged_predict).parameters:
        return list(model.staged_predict(X, at=counts))
    wanted = set(counts)
    return [labels for stage, labels in enumerate(model.staged_predict(X), start=1) if stage in wanted]


def _as_array(labels: Any) -> np.ndarray:
    """Labels as a matrix; one column of classes becomes a matrix of one column."""
    array = np.asarray(labels.toarray() if sp.issparse(labels) else labels)
    return array[:, None] if array.ndim == 1 else array
