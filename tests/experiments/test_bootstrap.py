"""BBC-CV: equal to a loop that does what its definition says, and as the published figures need it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import KFold, ParameterGrid
from sklearn.neighbors import KNeighborsClassifier

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset
from pyboomer.experiments import MEASURES, bbc_cv, correct_bias, draw_bootstraps
from pyboomer.experiments.measures import find_measure
from pyboomer.experiments.store import Outcome, Store
from pyboomer.metrics import example_f1, hamming_loss, subset_zero_one_loss

# Examples that the last of a hundred bootstraps leaves out, by the sizes of the paper's data sets.
LEFT_OUT = {645: 235, 593: 210, 1702: 607, 1460: 520, 1954: 703, 2407: 890, 3782: 1377, 2417: 897}


def digits(n: int = 120) -> tuple[Any, Any]:
    data = load_dataset("digits7")
    return data.X[:n], data.Y[:n]


def correct_by_loop(losses: np.ndarray, values: np.ndarray, n_bootstraps: int, seed: int) -> list[float]:
    """BBC-CV as it is told: draw rows, pick the best setting on them, judge it on the others."""
    random = np.random.RandomState(seed)
    results = []
    for _ in range(n_bootstraps):
        rows = random.randint(len(losses), size=len(losses))
        others = [i for i in range(len(losses)) if i not in set(rows.tolist())]
        means = [round(float(np.mean([losses[i, c] for i in rows])), 12) for c in range(losses.shape[1])]
        results.append(float(np.mean([values[i, means.index(min(means))] for i in others])))
    return results


@pytest.mark.parametrize("seed", [1, 7])
def test_the_correction_is_what_a_loop_over_bootstraps_gives(seed: int) -> None:
    random = np.random.default_rng(seed)
    losses = random.integers(0, 4, (30, 12)) / 3  # few distinct values: ties are common
    values = random.random((30, 12))
    found = correct_bias(losses, values, draw_bootstraps(30, 50, seed))
    np.testing.assert_allclose(found.values, correct_by_loop(losses, values, 50, seed))
    assert found.estimate == pytest.approx(np.mean(correct_by_loop(losses, values, 50, seed)))
    low, high = found.interval()
    assert low <= found.estimate <= high


@pytest.mark.parametrize(("n", "size"), LEFT_OUT.items())
def test_the_last_of_a_hundred_bootstraps_leaves_out_what_the_published_one_did(n: int, size: int) -> None:
    assert (draw_bootstraps(n, 100)[-1] == 0).sum() == size


def test_the_first_bootstraps_do_not_depend_on_how_many_are_drawn() -> None:
    np.testing.assert_array_equal(draw_bootstraps(50, 10), draw_bootstraps(50, 30)[:10])
    assert (draw_bootstraps(50, 10).sum(axis=1) == 50).all()


def test_without_a_choice_there_is_no_bias_to_correct() -> None:
    losses = np.random.default_rng(1).random((200, 1))
    found = correct_bias(losses, losses, draw_bootstraps(200, 500))
    assert found.uncorrected == pytest.approx(losses.mean())
    assert found.estimate == pytest.approx(losses.mean(), abs=0.01)


def test_the_best_of_many_useless_settings_is_found_out() -> None:
    losses = np.random.default_rng(1).integers(0, 2, (100, 200)).astype(float)  # coins: the truth is 1/2
    found = correct_bias(losses, losses, draw_bootstraps(100, 500))
    assert found.uncorrected < 0.4
    assert found.estimate == pytest.approx(0.5, abs=0.04)


def test_where_all_examples_are_drawn_there_is_no_value() -> None:
    counts = np.array([[1, 1, 1], [3, 0, 0]])
    found = correct_bias(np.eye(3), np.eye(3), counts)
    assert np.isnan(found.values[0])
    assert found.estimate == found.values[1]


# --- The tool ---------------------------------------------------------------------------------------------------------


def pool_by_hand(estimator: Any, grid: Any, X: Any, Y: Any, cv: Any, rate: Callable[..., Any]) -> Any:
    settings = list(ParameterGrid(grid))
    losses = np.empty((len(Y), len(settings)))
    for c, setting in enumerate(settings):
        for train, test in cv.split(X):
            predicted = clone(estimator).set_params(**setting).fit(X[train], Y[train]).predict(X[test])
            losses[test, c] = rate(Y[test], predicted)
    return settings, losses


def test_the_tool_equals_fitting_every_setting_by_hand_and_looping() -> None:
    X, Y = digits()
    grid = {"n_rules": [3, 6, 9], "learning_rate": [0.2, 0.6]}
    model = BoomerClassifier(random_state=1)
    cv = KFold(3, shuffle=True, random_state=1)
    settings, losses = pool_by_hand(model, grid, X, Y, cv, MEASURES["hamming"])
    result = bbc_cv(model, grid, X, Y, measure="hamming", cv=3, n_bootstraps=40)
    order = [settings.index(each) for each in result.settings]
    assert sorted(order) == list(range(len(settings)))
    np.testing.assert_allclose(result.correction.values, correct_by_loop(losses[:, order], losses[:, order], 40, 1))
    np.testing.assert_allclose(result.means, losses.mean(axis=0)[order])
    assert result.best_params_ == result.settings[int(np.argmin(result.means))]
    assert len(result.best_estimator_.rules_) == result.best_params_["n_rules"]
    assert result.estimate == result.correction.estimate
    assert result.interval()[0] <= result.estimate <= result.interval()[1]


class CountingClassifier(ClassifierMixin, BaseEstimator):
    """Predicts the number of its stages, and counts how often it is fitted."""

    fits = 0

    def __init__(self, n_rules: int = 1, shift: int = 0) -> None:
        self.n_rules = n_rules
        self.shift = shift

    def fit(self, X: Any, y: Any) -> "CountingClassifier":  # noqa: ARG002
        type(self).fits += 1
        self.classes_ = np.unique(y)
        return self

    def staged_predict(self, X: Any, at: Any) -> Any:
        return (np.full(len(X), count + self.shift) for count in at)

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.n_rules + self.shift)


def test_the_number_of_rules_is_read_off_one_fit() -> None:
    X, y = np.zeros((20, 1)), np.full(20, 13)
    CountingClassifier.fits = 0
    grid = {"n_rules": [1, 2, 3, 4], "shift": [0, 10]}
    result = bbc_cv(CountingClassifier(), grid, X, y, cv=5, n_bootstraps=10, refit=False)
    assert CountingClassifier.fits == 2 * 5  # two shifts, five folds
    assert result.best_params_ == {"n_rules": 3, "shift": 10}
    assert result.best_estimator_ is None
    assert result.estimate == 0


def test_estimators_of_scikit_learn_are_tuned_with_stages_and_without() -> None:
    X, Y = digits()
    neighbours = bbc_cv(KNeighborsClassifier(), {"n_neighbors": [1, 3]}, X, Y, cv=3, n_bootstraps=20)
    assert 0 < neighbours.estimate < 1
    y = Y[:, 4]
    boosting = GradientBoostingClassifier(max_depth=1, random_state=1)
    grid = {"n_estimators": [1, 5, 20]}
    staged = bbc_cv(boosting, grid, X, y, cv=3, n_bootstraps=20, staged="n_estimators")
    fitted = bbc_cv(boosting, grid, X, y, cv=3, n_bootstraps=20)
    np.testing.assert_allclose(staged.means, fitted.means)


def test_another_measure_can_be_reported_than_is_tuned_by() -> None:
    X, Y = digits()
    grid = {"n_rules": [5, 20]}
    result = bbc_cv(BoomerClassifier(random_state=1), grid, X, Y, measure="f1", report="subset", cv=3, n_bootstraps=20)
    by_f1 = bbc_cv(BoomerClassifier(random_state=1), grid, X, Y, measure="f1", cv=3, n_bootstraps=20)
    assert result.best_params_ == by_f1.best_params_ == by_f1.settings[int(np.argmax(by_f1.means))]
    assert result.estimate != by_f1.estimate


# --- Its folder -------------------------------------------------------------------------------------------------------


def test_what_a_folder_has_is_not_learned_again(tmp_path: Path) -> None:
    X, y = np.zeros((20, 1)), np.full(20, 13)
    grid, options = {"n_rules": [1, 2], "shift": [0, 10]}, {"cv": 5, "n_bootstraps": 10, "refit": False}

    def count_fits(grid: Any, y: Any, **others: Any) -> int:
        CountingClassifier.fits = 0
        bbc_cv(CountingClassifier(), grid, X, y, **options | others, folder=str(tmp_path))
        return CountingClassifier.fits

    assert count_fits(grid, y) == 2 * 5
    assert count_fits(grid, y, measure="hamming") == 0
    assert count_fits({"n_rules": [1, 2], "shift": [0, 10, 11]}, y) == 5  # what the larger grid adds
    assert count_fits({"n_rules": [1, 2], "shift": [10]}, y + 1) == 5  # other data
    assert count_fits({"n_rules": [1, 2], "shift": [10]}, y, cv=KFold(4)) == 4  # other folds
    assert count_fits({"n_rules": [1, 3], "shift": [10]}, y) == 5  # other stages


def test_classes_of_any_kind_are_kept(tmp_path: Path) -> None:
    X, numbers = digits(30)[0], np.arange(30) % 3
    texts = np.array(["low", "mid", "high"], dtype=object)[numbers]
    options: dict[str, Any] = {"cv": 2, "n_bootstraps": 5, "refit": False}
    for y in (numbers, numbers == 1, texts, texts.astype(str)):
        plain = bbc_cv(KNeighborsClassifier(), {"n_neighbors": [1]}, X, y, **options)
        for _ in range(2):
            kept = bbc_cv(KNeighborsClassifier(), {"n_neighbors": [1]}, X, y, **options, folder=tmp_path)
            np.testing.assert_array_equal(kept.means, plain.means)
    with pytest.raises(TypeError, match="all strings, all numbers or all bools"):
        Store(tmp_path).write("mixed", Outcome(np.array([[["a", 1]]], dtype=object), {}))


def test_an_estimator_that_a_folder_cannot_name_is_refused(tmp_path: Path) -> None:
    model = KNeighborsClassifier(metric=lambda a, b: abs(a - b).sum())
    with pytest.raises(ValueError, match="folder= needs an estimator and data that can be pickled"):
        bbc_cv(model, {}, np.eye(6), np.arange(6) % 2, cv=2, folder=tmp_path)


def test_errors_name_the_culprit_and_the_cure() -> None:
    X, Y = digits(30)
    model = KNeighborsClassifier()
    with pytest.raises(ValueError, match="measure must be 'subset'"):
        bbc_cv(model, {}, X, Y, measure="accuracy")
    with pytest.raises(ValueError, match="n_bootstraps must be at least 1, got 0"):
        bbc_cv(model, {}, X, Y, n_bootstraps=0)
    with pytest.raises(ValueError, match="every example exactly once"):
        bbc_cv(model, {}, X, Y, cv=[(np.arange(20), np.arange(20, 25))])


def test_the_means_of_the_measures_are_the_metrics() -> None:
    random = np.random.default_rng(1)
    true, predicted = random.random((2, 60, 5)) < 0.2  # some rows are empty
    for name, metric in (("hamming", hamming_loss), ("subset", subset_zero_one_loss), ("f1", example_f1)):
        assert MEASURES[name](true, predicted).mean() == pytest.approx(metric(true, predicted))
    assert find_measure(lambda t, p: (t != p).sum(axis=1))(true, predicted).shape == (60,)


def test_measures_leave_unknown_labels_out() -> None:
    true = np.array([[1, 0, np.nan], [np.nan, 1, np.nan], [1, np.nan, 1]])
    predicted = np.array([[1, 1, 1], [1, 1, 0], [0, 1, 0]])
    found = {name: MEASURES[name](true, predicted).tolist() for name in MEASURES}
    assert found == {
        "hamming": [0.5, 0.0, 1.0],
        "subset": [1.0, 0.0, 1.0],
        "f1": [pytest.approx(2 / 3), 1.0, 0.0],
    }


class Constant(ClassifierMixin, BaseEstimator):
    """Predicts no label at all."""

    def fit(self, X: Any, y: Any) -> "Constant":  # noqa: ARG002
        self.n_labels_ = y.shape[1]
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.zeros((len(X), self.n_labels_), dtype=int)


def test_unknown_labels_count_nowhere() -> None:
    X, Y = np.arange(40.0)[:, None], np.tile([[1.0, 0.0], [0.0, 0.0]], (20, 1))
    Y[::4, 0] = np.nan  # half of the relevant ones
    Y[1] = np.nan  # nothing is known: not judged at all
    for given in (Y, np.ma.masked_invalid(Y), np.where(np.isnan(Y), None, Y)):
        result = bbc_cv(Constant(), {}, X, given, cv=4, measure="hamming", refit=False, n_bootstraps=20)
        assert result.means[0] == pytest.approx(10 * 0.5 / 39)
    with pytest.raises(ValueError, match="y has no label that is known"):
        bbc_cv(Constant(), {}, X, np.full((40, 2), np.nan), cv=4)
    with pytest.raises(ValueError, match="measure gives NaN for example 0"):
        bbc_cv(Constant(), {}, X, Y, cv=4, measure=lambda true, predicted: (true - predicted).sum(axis=1))
