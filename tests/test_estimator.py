"""What classifier and regressor share: going on where they stopped, and keeping their pickles readable."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from pyboomer import BoomerClassifier, BoomerRegressor, load_model

RNG = np.random.default_rng(5)
X = RNG.normal(size=(150, 6))
Y = (X[:, :3] + 0.5 * RNG.normal(size=(150, 3)) > 0).astype(int)

VARIANTS: dict[str, Any] = {
    "ex multi": BoomerClassifier(),
    "ex single": BoomerClassifier(head="single"),
    "lw multi": BoomerClassifier("label-wise-logistic"),
    "lw single": BoomerClassifier("label-wise-logistic", head="single"),
    "no bootstrap": BoomerClassifier(bootstrap=False),
    "bins": BoomerClassifier(max_bins=16),
    "nominal": BoomerClassifier(categorical_features=[0, 3]),
    "regressor": BoomerRegressor(),
    "regressor, single": BoomerRegressor(head="single"),
}
each_variant = pytest.mark.parametrize("estimator", VARIANTS.values(), ids=VARIANTS)
TABLE = np.column_stack([np.round(X[:, :4]), X[:, 4:]])


def make(estimator: Any, **options: Any) -> Any:
    return clone(estimator).set_params(random_state=3, **options)


# --- Warm start -------------------------------------------------------------------------------------------------------


@each_variant
def test_rules_added_later_are_those_learned_at_once(estimator: Any) -> None:
    model = make(estimator, warm_start=True, n_rules=20).fit(TABLE, Y)
    model.set_params(n_rules=21).fit(TABLE, Y)
    model.set_params(n_rules=60).fit(TABLE, Y)
    at_once = make(estimator, n_rules=60).fit(TABLE, Y)
    assert model.rules_ == at_once.rules_
    np.testing.assert_array_equal(model.predict(TABLE), at_once.predict(TABLE))


@each_variant
def test_a_loaded_model_can_go_on(estimator: Any, tmp_path: Path) -> None:
    make(estimator, n_rules=20).fit(TABLE, Y).save(tmp_path / "model.json")
    model = load_model(tmp_path / "model.json").set_params(warm_start=True, n_rules=40)
    assert model.fit(TABLE, Y).rules_ == make(estimator, n_rules=40).fit(TABLE, Y).rules_


def test_going_on_keeps_the_draws_of_a_random_seed() -> None:
    model = BoomerClassifier(n_rules=20, warm_start=True).fit(X, Y)
    first, seed = model.rules_, model.training_facts_["seed"]
    model.set_params(n_rules=40).fit(X, Y)
    assert model.training_facts_["seed"] == seed
    assert model.rules_[:20] == first


def test_going_on_to_the_same_number_of_rules_changes_nothing() -> None:
    model = make(BoomerClassifier(), warm_start=True, n_rules=20).fit(X, Y)
    rules = model.rules_
    assert model.fit(X, Y).rules_ == rules


def test_fewer_rules_than_there_are_is_an_error() -> None:
    model = make(BoomerClassifier(), warm_start=True, n_rules=20).fit(X, Y)
    with pytest.raises(ValueError, match="n_rules must be at least 20, the number of rules learned already"):
        model.set_params(n_rules=10).fit(X, Y)
    assert len(model.rules_) == 20


def test_without_warm_start_fit_starts_again() -> None:
    model = make(BoomerClassifier(), n_rules=20).fit(X, Y)
    assert len(model.set_params(n_rules=10).fit(X, Y).rules_) == 10


def test_other_data_can_be_learned_from_later() -> None:
    model = make(BoomerClassifier(), warm_start=True, n_rules=30).fit(X[:75], Y[:75])
    first = model.rules_
    before = model.score(X[75:], Y[75:])
    model.set_params(n_rules=200).fit(X[75:], Y[75:])
    assert model.rules_[:30] == first
    assert model.score(X[75:], Y[75:]) > before


@pytest.mark.parametrize(
    ("table", "labels", "message"),
    [
        (X[:, :4], Y, "X has 4 features, but BoomerClassifier is expecting 6 features"),
        (X, Y[:, :2], "Y has 2 labels, but the model was learned from 3"),
        (X, pd.DataFrame(Y, columns=["a", "c", "b"]), "Y has label 'c' where the model was learned from 'b'"),
    ],
)
def test_going_on_needs_the_same_features_and_labels(table: Any, labels: Any, message: str) -> None:
    model = make(BoomerClassifier(), warm_start=True, n_rules=20).fit(X, pd.DataFrame(Y, columns=list("abc")))
    with pytest.raises(ValueError, match=message):
        model.set_params(n_rules=30).fit(table, labels)
    assert len(model.rules_) == 20  # the model is still there
    assert model.predict(X).shape == Y.shape


def test_going_on_with_early_stopping_is_stopping_later() -> None:
    options: dict[str, Any] = {"early_stopping": True, "n_iter_no_change": 1000}
    model = make(BoomerClassifier(), warm_start=True, n_rules=40, **options).fit(X, Y)
    kept = len(model.rules_)
    model.set_params(n_rules=200).fit(X, Y)
    at_once = make(BoomerClassifier(), n_rules=200, **options).fit(X, Y)
    assert kept <= len(model.rules_)
    assert model.rules_ == at_once.rules_[: len(model.rules_)] or at_once.rules_ == model.rules_[: len(at_once.rules_)]


# --- Pickles and facts ------------------------------------------------------------------------------------------------


@each_variant
def test_a_pickle_of_an_earlier_version_gets_the_parameters_that_came_later(estimator: Any) -> None:
    model = make(estimator, n_rules=10).fit(TABLE, Y)
    state = dict(model.__getstate__())
    for name in ("early_stopping", "scoring", "warm_start", "training_facts_"):
        del state[name]
    older = type(model).__new__(type(model))
    older.__setstate__(state)
    assert older.get_params() == model.get_params()
    np.testing.assert_array_equal(older.predict(TABLE), model.predict(TABLE))
    older.set_params(n_rules=20, warm_start=True).fit(TABLE, Y)
    assert len(pickle.loads(pickle.dumps(older)).rules_) == 20


@each_variant
def test_the_facts_of_training_are_told(estimator: Any) -> None:
    facts = make(estimator, n_rules=10).fit(TABLE, Y).training_facts_
    assert facts["examples"] == 150
    assert facts["features"] == 6
    assert facts["labels"] == 3
    assert facts["rules"] == 10
    assert facts["loss"] > 0
    assert 0 < facts["seconds"] < 100
