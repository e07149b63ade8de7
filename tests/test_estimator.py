"""What classifier and regressor share: going on where they stopped, and keeping their pickles readable."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import r2_score

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


def test_going_on_with_another_loss_is_an_error() -> None:
    model = make(BoomerClassifier(), warm_start=True, n_rules=20).fit(X, Y)
    with pytest.raises(ValueError, match="loss must stay 'joint-logistic' if warm_start=True, got 'label-wise"):
        model.set_params(n_rules=30, loss="label-wise-logistic").fit(X, Y)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, pd.DataFrame])
def test_going_on_with_unknown_categories_is_an_error_that_names_the_feature(kind: Any) -> None:
    model = make(BoomerClassifier(), warm_start=True, n_rules=20, categorical_features=[0]).fit(kind(TABLE), Y)
    other = TABLE.copy()
    other[5, 0] = 77
    name = "0" if kind is pd.DataFrame else "x0"
    with pytest.raises(ValueError, match=f"feature '{name}' has a category that the model does not know"):
        model.set_params(n_rules=30).fit(kind(other), Y)


def test_label_vectors_of_further_examples_become_known() -> None:
    model = make(BoomerClassifier("example-wise-logistic", learning_rate=0.1), warm_start=True, n_rules=5).fit(
        X[:3], [[1, 0, 0]] * 3
    )
    model.set_params(n_rules=300).fit(X, Y)
    assert model.label_vectors_[0].tolist() == [1, 0, 0]
    assert {tuple(v) for v in model.label_vectors_.tolist()} == {(1, 0, 0), *map(tuple, Y.tolist())}
    assert model.score(X, Y) > 0.8


@pytest.mark.parametrize("labels", [Y[:, 0], ["a", "b", "c"] * 50])
def test_classes_cannot_follow_labels(labels: Any) -> None:
    model = make(BoomerClassifier(), warm_start=True, n_rules=5).fit(X, Y)
    with pytest.raises(ValueError, match="y is one column of classes, but the model was learned from a matrix"):
        model.set_params(n_rules=9).fit(X, labels)


def test_labels_cannot_follow_classes() -> None:
    model = make(BoomerClassifier(), warm_start=True, n_rules=5).fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="Y is a matrix of labels, but the model was learned from one column"):
        model.set_params(n_rules=9).fit(X, Y)


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


# --- Callbacks --------------------------------------------------------------------------------------------------------


def test_a_callback_that_fails_leaves_the_rules_learned_so_far() -> None:
    def fail(progress: Any) -> None:
        if progress.n_rules == 7:
            raise RuntimeError("out of paper")

    model = make(BoomerClassifier(), n_rules=50, callbacks=fail)
    with pytest.raises(RuntimeError, match="out of paper"):
        model.fit(X, Y)
    assert model.rules_ == make(BoomerClassifier(), n_rules=7).fit(X, Y).rules_


@pytest.mark.parametrize("answer", [None, False, 0.5, 1, "hello", [], np.ones(3)], ids=repr)
def test_only_true_stops_training(answer: Any) -> None:
    assert len(make(BoomerClassifier(), n_rules=5, callbacks=lambda _: answer).fit(X, Y).rules_) == 5
    assert len(make(BoomerClassifier(), n_rules=5, callbacks=lambda _: np.True_).fit(X, Y).rules_) == 1


def test_what_callbacks_were_told_does_not_change_later() -> None:
    told: list[Any] = []
    make(BoomerClassifier(), n_rules=5, callbacks=told.append).fit(X, Y)
    losses = [progress.loss for progress in told]
    assert sorted(losses, reverse=True) == losses
    assert len(set(losses)) == 5


# --- What was learned, as a value -------------------------------------------------------------------------------------


@each_variant
def test_what_was_learned_can_be_handed_to_another_estimator(estimator: Any) -> None:
    model = make(estimator, n_rules=20).fit(TABLE, Y, feature_names=list("abcdef"))
    other = clone(estimator).fit(TABLE[:9, :4], Y[:9, :2], eval_set=(TABLE[:9, :4], Y[:9, :2]))
    other.set_params(**model.get_params()).set_fitted(model.get_fitted())
    assert other.__dict__.keys() == model.__dict__.keys()
    assert other.rules_ == model.rules_
    assert other.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_array_equal(other.predict(TABLE), model.predict(TABLE))


def test_a_value_has_the_parameters_as_they_are_now() -> None:
    model = make(BoomerClassifier(), n_rules=20).fit(X, Y)
    assert model.get_fitted().decision.decode == "loss"
    assert model.get_fitted("f1").decision.decode == "f1"
    assert model.set_params(decode="hamming").get_fitted().decision.decode == "hamming"
    with pytest.raises(ValueError, match="decode must be"):
        model.get_fitted("best")
    with pytest.raises(ValueError, match="n_jobs must be"):
        model.set_params(n_jobs=0).get_fitted()


@pytest.mark.parametrize("unknown", [Y.astype(float) * [1, np.nan, 1], np.where(Y, 1.0, np.nan) * [1, np.nan, 1]])
def test_a_warning_names_the_line_of_the_user(unknown: Any) -> None:
    with pytest.warns(UserWarning, match="no example has a known value for 'y1'") as told:
        make(BoomerClassifier("label-wise-logistic"), n_rules=2).fit(X, unknown)
    assert {warning.filename for warning in told} == {__file__}


# --- Unknown labels in scores -----------------------------------------------------------------------------------------


def test_only_known_labels_count_in_the_score() -> None:
    model = make(BoomerClassifier(), n_rules=40).fit(X, Y)
    masked = Y.astype(float)
    masked[:, 1] = np.nan
    masked[:10] = np.nan
    right = (model.predict(X) == Y)[10:, [0, 2]].all(axis=1)
    assert model.score(X, masked) == right.mean()
    weight = np.arange(150.0)
    assert model.score(X, masked, sample_weight=weight) == pytest.approx(np.average(right, weights=weight[10:]))
    numbers = make(BoomerRegressor(), n_rules=40).fit(X, X[:, :2])
    masked = X[:, :2].copy()
    masked[:50, 0] = np.nan
    parts = [r2_score(X[50:, 0], numbers.predict(X)[50:, 0]), r2_score(X[:, 1], numbers.predict(X)[:, 1])]
    assert numbers.score(X, masked) == pytest.approx(np.mean(parts))


# --- Pickles and facts ------------------------------------------------------------------------------------------------


FAILURES: dict[str, tuple[dict[str, Any], tuple[Any, Any], dict[str, Any], str]] = {
    "a parameter": ({"n_rules": 0}, (X[:, :2], Y), {}, "n_rules must be"),
    "no labels": ({}, (X[:, :2], None), {}, "requires y"),
    "text": ({}, (X[:, :2].astype(str) + "a", Y), {}, "X holds text"),
    "too few labels": ({}, (X[:, :2], Y[:9]), {}, "X has 150 examples, but Y has 9"),
    "weights": ({}, (X[:, :2], Y), {"sample_weight": -np.ones(150)}, "sample_weight must not be negative"),
    "held-out examples": ({}, (X[:, :2], Y[:, :2]), {"eval_set": (X, Y)}, "eval_set: X has 6 features"),
    "other features": ({"warm_start": True}, (X[:, :2], Y), {}, "X has 2 features"),
    "more features to draw": ({"fixed_features": [9]}, (X[:, :2], Y), {}, "fixed_features has index 9"),
}


@pytest.mark.parametrize(("options", "data", "more", "message"), FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("estimator", [BoomerClassifier(), BoomerRegressor()], ids=repr)
def test_a_fit_that_fails_leaves_the_model_as_it_was(
    estimator: Any, options: dict[str, Any], data: tuple[Any, Any], more: dict[str, Any], message: str
) -> None:
    model = make(estimator, n_rules=5, early_stopping=True).fit(TABLE, Y)
    before = model.predict(TABLE)
    model.set_params(**options)
    known = model.__dict__.copy()
    with pytest.raises(ValueError, match=message):
        model.fit(*data, **more)
    assert model.__dict__.keys() == known.keys()
    assert all(model.__dict__[name] is value for name, value in known.items())
    model.set_params(**{name: getattr(estimator, name) for name in options})
    np.testing.assert_array_equal(model.predict(TABLE), before)
    if "warm_start" not in options:
        unfitted = make(estimator, **options)
        with pytest.raises(ValueError, match=message):
            unfitted.fit(*data, **more)
        assert not hasattr(unfitted, "n_features_in_")


@each_variant
def test_the_facts_of_training_are_told(estimator: Any) -> None:
    facts = make(estimator, n_rules=10).fit(TABLE, Y).training_facts_
    assert facts["examples"] == 150
    assert facts["features"] == 6
    assert facts["labels"] == 3
    assert facts["rules"] == 10
    assert facts["loss"] > 0
    assert 0 < facts["seconds"] < 100
