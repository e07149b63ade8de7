"""A regressor learns numbers by the same rules: laws of the squared error, planted rules, and the same tools."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_friedman1, make_regression
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pyboomer import BoomerRegressor, Loss, load_model
from pyboomer.editing import refit_heads
from pyboomer.losses import make_huber
from pyboomer.losses.catalog import FOR_NUMBERS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = np.column_stack([3.0 * (X[:, 0] > 0.3) + 1, np.where(X[:, 1] > 0, -2.0, 2.0) * (X[:, 0] > 0.3)])


def regressor(**options: Any) -> BoomerRegressor:
    return BoomerRegressor(**{"n_rules": 100, "random_state": 1, **options})


def test_planted_rules_are_found() -> None:
    model = regressor(n_rules=400, learning_rate=0.3, l2=0).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), Y, atol=0.05)
    assert {c.name for rule in model.rules_[1:20] for c in rule.body} >= {"x0", "x1"}


@pytest.mark.parametrize("offset", [0.0, 2000.0, 1.7e9, -1e12])
def test_targets_may_be_far_from_0(offset: float) -> None:
    model, moved = regressor().fit(X, Y), regressor().fit(X, Y + offset)
    np.testing.assert_allclose(moved.predict(X) - offset, model.predict(X), atol=1e-9 * max(abs(offset), 1))


def test_the_default_rule_is_the_mean() -> None:
    np.testing.assert_allclose(regressor(n_rules=1).fit(X, Y).predict(X[:1]), [Y.mean(axis=0)])
    weight = np.arange(200.0)
    model = regressor(n_rules=1).fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(model.predict(X[:1]), [np.average(Y, axis=0, weights=weight)])


@pytest.mark.parametrize("head", ["single", "multi"])
def test_the_training_loss_never_rises_without_sampling(head: str) -> None:
    losses: list[float] = []
    model = regressor(head=head, learning_rate=1.0, bootstrap=False, callbacks=lambda p: losses.append(p.loss))
    model.fit(X, Y + RNG.normal(size=Y.shape))
    assert (np.diff(losses) <= 1e-12).all()
    final = 0.5 * ((model.predict(X) - Y) ** 2).sum(axis=1).mean()
    assert losses[-1] <= final * 2  # of the noisy targets, which only the training loss knows


def test_the_loss_told_is_half_the_mean_squared_error() -> None:
    model = regressor(callbacks=lambda p: losses.append(p.loss))
    losses: list[float] = []
    model.fit(X, 1000 * Y)
    expected = 0.5 * ((model.predict(X) - 1000 * Y) ** 2).sum(axis=1).mean()
    assert losses[-1] == pytest.approx(expected)
    assert model.training_facts_["loss"] == pytest.approx(expected)


@pytest.mark.parametrize("factor", [1e-30, 2.0**-40, 1000.0, 1e60])
def test_the_unit_of_the_targets_does_not_matter(factor: float) -> None:
    model, scaled = regressor().fit(X, Y), regressor().fit(X, factor * Y)
    assert [rule.body for rule in scaled.rules_] == [rule.body for rule in model.rules_]
    np.testing.assert_allclose(scaled.predict(X), factor * model.predict(X), rtol=1e-9)


def test_a_power_of_two_changes_no_digit() -> None:
    np.testing.assert_array_equal(regressor().fit(X, 1024 * Y).predict(X), 1024 * regressor().fit(X, Y).predict(X))


@pytest.mark.parametrize("value", [0.0, 7.5, -1e80])
def test_constant_targets_are_predicted(value: float) -> None:
    model = regressor(l2=0).fit(X, np.full(200, value))
    np.testing.assert_allclose(model.predict(X), value)


def test_unknown_targets_leave_the_sum() -> None:
    masked = Y.copy()
    masked[::2, 0] = np.nan
    model = regressor(head="single", bootstrap=False, n_rules=1, l2=0).fit(X, masked)
    np.testing.assert_allclose(model.predict(X[:1]), [[Y[1::2, 0].mean(), Y[:, 1].mean()]])
    assert r2_score(Y, regressor(n_rules=500).fit(X, masked).predict(X)) > 0.95


@pytest.mark.parametrize("head", ["single", "multi"])
def test_a_weight_of_two_equals_the_example_twice(head: str) -> None:
    twice = np.arange(200) % 3 == 0
    options: dict[str, Any] = {"head": head, "bootstrap": False, "n_rules": 30}
    weighted = regressor(**options).fit(X, Y, sample_weight=1.0 + twice)
    repeated = regressor(**options).fit(np.vstack([X, X[twice]]), np.vstack([Y, Y[twice]]))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix])
def test_a_sparse_table_equals_its_dense_copy(kind: Any) -> None:
    table = np.where(np.random.default_rng(1).random(X.shape) < 0.6, 0, X)
    sparse, dense = regressor().fit(kind(table), Y), regressor().fit(table, Y)
    assert [rule.body for rule in sparse.rules_] == [rule.body for rule in dense.rules_]
    np.testing.assert_allclose(sparse.predict(kind(table)), dense.predict(table), rtol=1e-9)


def test_missing_values_and_categories_are_learned_from() -> None:
    table = np.column_stack([np.random.default_rng(1).integers(0, 5, 200), X[:, 0]])
    y = np.array([1.0, -1, 3, 0, 2])[table[:, 0].astype(int)]
    table[::7, 1] = np.nan
    model = regressor(n_rules=300, categorical_features=[0]).fit(table, y)
    assert r2_score(y, model.predict(table)) > 0.99
    assert any(condition.is_nominal for rule in model.rules_ for condition in rule.body)


def test_stages_lead_to_the_prediction() -> None:
    model = regressor(n_rules=20).fit(X, Y[:, 0])
    stages = list(model.staged_predict(X))
    assert len(stages) == 20
    assert stages[0].shape == (200,)
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    np.testing.assert_array_equal(next(model.staged_predict(X, at=[7])), stages[6])


@pytest.mark.parametrize("y", [Y, Y[:, 0]], ids=["two", "one"])
def test_models_are_saved_loaded_and_pickled(y: Any, tmp_path: Path) -> None:
    model = regressor(categorical_features=[3]).fit(np.round(X), y)
    model.save(tmp_path / "model.json")
    for copy in (load_model(tmp_path / "model.json"), pickle.loads(pickle.dumps(model))):
        assert type(copy) is BoomerRegressor
        np.testing.assert_array_equal(copy.predict(np.round(X)), model.predict(np.round(X)))
        assert copy.training_facts_ == model.training_facts_


def test_a_loss_of_ones_own_may_be_minimised(tmp_path: Path) -> None:
    """The pseudo-Huber loss, sum_k sqrt(1 + (f_k - y_k)^2) - 1, minds outliers less than the squared error."""

    def value(Y: Any, F: Any) -> Any:
        return (np.sqrt(1 + (F - Y) ** 2) - 1).sum(axis=1)

    def derivatives(Y: Any, F: Any) -> Any:
        root = np.sqrt(1 + (F - Y) ** 2)
        return (F - Y) / root, 1 / root**3

    huber = Loss("pseudo-Huber", "diagonal", value, derivatives)
    outliers = Y + np.where(np.arange(200) % 20 == 0, 30.0, 0.0)[:, None]
    robust = regressor(loss=huber, n_rules=500).fit(X, outliers)
    plain = regressor(n_rules=500).fit(X, outliers)
    usual = np.arange(200) % 20 != 0
    errors = [np.abs(model.predict(X) - Y)[usual].mean() for model in (robust, plain)]
    assert errors[0] < 0.5 * errors[1]
    masked = np.where(np.eye(200, 2, dtype=bool), np.nan, outliers)
    assert np.isfinite(regressor(loss=huber, n_rules=20).fit(X, masked).predict(X)).all()
    robust.save(tmp_path / "huber.json")
    np.testing.assert_array_equal(load_model(tmp_path / "huber.json", loss=huber).predict(X), robust.predict(X))


@pytest.mark.parametrize("loss", ["absolute-error", "huber"])
def test_robust_losses_mind_outliers_less(loss: str, tmp_path: Path) -> None:
    outliers = Y + np.where(np.arange(200) % 20 == 0, 30.0, 0.0)[:, None]
    robust, plain = (regressor(loss=each, n_rules=300).fit(X, outliers) for each in (loss, "squared-error"))
    usual = np.arange(200) % 20 != 0
    errors = [np.abs(model.predict(X) - Y)[usual].mean() for model in (robust, plain)]
    assert errors[0] < 0.5 * errors[1]
    masked = np.where(np.eye(200, 2, dtype=bool), np.nan, outliers)
    assert np.isfinite(regressor(loss=loss, n_rules=20).fit(X, masked).predict(X)).all()
    robust.save(tmp_path / "robust.json")
    np.testing.assert_array_equal(load_model(tmp_path / "robust.json").predict(X), robust.predict(X))
    refitted = refit_heads(robust, X, outliers)
    np.testing.assert_allclose(refitted.predict(X), robust.predict(X), rtol=1e-6)
    np.testing.assert_allclose(refitted.rules_.gain, robust.rules_.gain, rtol=1e-6, atol=1e-9)


def test_the_absolute_error_aims_at_the_median_in_any_unit() -> None:
    model = regressor(loss="absolute-error", n_rules=1).fit(X, np.exp(3 * X[:, 2]))
    assert model.predict(X[:1])[0] == pytest.approx(np.median(np.exp(3 * X[:, 2])), rel=0.02)
    unit = 2.0**20
    one, large = (regressor(loss="absolute-error").fit(X, scale * Y) for scale in (1.0, unit))
    np.testing.assert_array_equal(large.predict(X), unit * one.predict(X))
    np.testing.assert_array_equal(large.rules_.gain, unit * one.rules_.gain)
    assert large.training_facts_["loss"] == unit * one.training_facts_["loss"]
    assert one.training_facts_["loss"] == pytest.approx(np.abs(one.predict(X) - Y).sum(axis=1).mean())


def test_it_is_at_home_in_scikit_learn() -> None:
    pipeline = make_pipeline(StandardScaler(), regressor())
    assert cross_val_score(pipeline, X, Y, cv=KFold(3)).mean() > 0.8
    assert cross_val_predict(regressor(), X, Y, cv=3).shape == Y.shape
    search = GridSearchCV(regressor(), {"learning_rate": [0.001, 0.3]}, cv=3, scoring="neg_mean_squared_error")
    assert search.fit(X, Y[:, 0]).best_params_ == {"learning_rate": 0.3}
    scaled = TransformedTargetRegressor(regressor(), transformer=StandardScaler()).fit(X, Y * [1, 1000])
    assert r2_score(Y, scaled.predict(X) / [1, 1000]) > 0.9


def test_it_does_as_well_as_a_random_forest() -> None:
    for table, y in (make_friedman1(600, random_state=1), make_regression(600, 10, n_targets=3, random_state=1)):
        ours = regressor(n_rules=1000).fit(table[:400], y[:400]).score(table[400:], y[400:])
        forest = RandomForestRegressor(100, random_state=1).fit(table[:400], y[:400]).score(table[400:], y[400:])
        assert ours > forest - 0.02


@pytest.mark.parametrize("loss", [*FOR_NUMBERS, make_huber(2.5)], ids=str)
def test_a_model_of_any_built_in_loss_can_be_pickled(loss: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    model = BoomerRegressor(loss, n_rules=5, random_state=1).fit(X, X[:, 0])
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    assert copy.loss_.name == model.loss_.name
