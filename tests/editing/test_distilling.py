"""Distilled models: small, better than what is cut off, for every kind of loss and head; errors name the culprit."""

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from pyboomer import BoomerClassifier, BoomerRegressor, distil
from pyboomer.editing import replace_rules, size_curve
from pyboomer.editing.edits import read_for
from pyboomer.explore.displays import SizeCurveDisplay

RNG = np.random.default_rng(8)
X = np.column_stack([RNG.normal(size=(300, 4)), RNG.integers(0, 4, size=(300, 2))])
X[RNG.random(X.shape) < 0.05] = np.nan
Y = (np.nan_to_num(X[:, [0, 1, 5]]) + 0.5 * RNG.normal(size=(300, 3)) > 0).astype(float)
HOLES = np.where(RNG.random(Y.shape) < 0.2, np.nan, Y)
WEIGHT = RNG.integers(0, 4, size=300) * 0.5


def fit(estimator: Any, Y: Any = Y, weight: Any = None) -> Any:
    return estimator.set_params(n_rules=60, random_state=1, categorical_features=[4, 5]).fit(X, Y, weight)


MODELS: dict[str, Any] = {
    "label-wise, single": BoomerClassifier("label-wise-logistic", head="single"),
    "example-wise": BoomerClassifier("example-wise-logistic"),
    "joint": BoomerClassifier("joint-logistic"),
    "regressor": BoomerRegressor(),
}
each_model = pytest.mark.parametrize("estimator", MODELS.values(), ids=MODELS)


@each_model
def test_a_distilled_model_is_within_its_budget_and_better_than_the_first_rules(estimator: Any) -> None:
    model = fit(estimator, HOLES, WEIGHT)
    before, facts = model.rules_, dict(model.training_facts_)
    curve = size_curve(model, X, HOLES, n_conditions=[6, 12])
    assert (curve.losses["distilled"] < curve.losses["cut"]).all()
    small = distil(model, X, HOLES, WEIGHT, n_conditions=12)
    assert type(small) is type(model)
    assert 6 < len(small.rules_.condition_features) <= 12
    assert small.training_facts_["loss"] < model.get_fitted().mean_loss(*_score_first(model, small)) + 1e-9
    assert small.training_facts_["edited"]
    assert (model.rules_, model.training_facts_) == (before, facts)
    assert small.predict(X).shape == Y.shape


def _score_first(model: Any, small: Any) -> tuple[Any, Any]:
    """As many of the first rules, on the data of `small`."""
    examples = read_for(model, X, HOLES, WEIGHT)
    return examples, model.get_fitted().score(examples.matrix, model.rules_[: len(small.rules_)])


def test_every_body_is_the_beginning_of_one_learned_and_heads_keep_their_labels() -> None:
    model = fit(BoomerClassifier("label-wise-logistic", head="single"))
    begun = {
        (frozenset((c.feature, c.operator, c.value) for c in rule.body[:length]), rule.labels)
        for rule in model.rules_
        for length in range(1, len(rule.body) + 1)
    }
    small = distil(model, X, Y, n_rules=8)
    assert len(small.rules_) == 8
    assert small.rules_[0].body == ()
    assert small.rules_[0].labels == (0, 1, 2)
    for rule in list(small.rules_)[1:]:
        assert any(
            frozenset((c.feature, c.operator, c.value) for c in rule.body) <= body and rule.labels == labels
            for body, labels in begun
        )


def test_a_rule_that_says_it_all_is_found() -> None:
    truth = (X[:, [0]] > 0.3).astype(int) * np.array([[1, 0, 1]]) + np.array([[0, 1, 0]]) * (X[:, [0]] <= 0.3)
    model = fit(BoomerClassifier("example-wise-logistic"), truth)
    small = distil(model, X, truth, n_conditions=1)
    assert len(small.rules_) == 2
    assert small.rules_[1].body[0].feature == 0
    known = ~np.isnan(X[:, 0])
    assert (small.predict(X)[known] == truth[known]).mean() > 0.97


def test_a_label_that_is_noise_is_held_back_and_a_clear_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    mixed = np.column_stack([X[:, 0] > 0.3, RNG.random(300) > 0.5, X[:, 1] > 0]).astype(int)
    model = fit(BoomerClassifier("joint-logistic", learning_rate=0.05), mixed)
    own = distil(model, X, mixed, n_rules=30).predict_proba(X)
    monkeypatch.setattr("pyboomer.editing.distilling.SPREAD", 1e-6)  # all labels have the same penalty
    common = distil(model, X, mixed, n_rules=30).predict_proba(X)
    assert own[:, 1].std() < 0.95 * common[:, 1].std()
    assert own[:, 0].std() > 0.98 * common[:, 0].std()


def test_the_same_is_distilled_from_sparse_data() -> None:
    dense = np.nan_to_num(X)
    model = BoomerClassifier("label-wise-logistic", n_rules=30, random_state=1).fit(dense, Y)
    one, other = (distil(model, matrix, Y, n_rules=5) for matrix in (dense, sp.csr_array(dense)))
    np.testing.assert_allclose(one.decision_function(dense), other.decision_function(sp.csr_array(dense)))


def test_one_rule_is_the_default_rule_and_more_than_help_are_not_chosen() -> None:
    model = fit(BoomerClassifier("label-wise-logistic", head="single"))
    alone = distil(model, X, Y, n_rules=1)
    assert [rule.body for rule in alone.rules_] == [()]
    np.testing.assert_allclose(alone.predict_proba(X)[0], Y.mean(axis=0), atol=0.01)
    few = replace_rules(model, model.rules_[:3])
    assert len(distil(few, X, Y, n_rules=10**6).rules_) <= 1 + sum(len(rule.body) for rule in few.rules_)


def test_decoding_and_label_vectors_are_those_of_the_model() -> None:
    model = fit(BoomerClassifier("joint-logistic", decode="f1"))
    small = distil(model, X[:100], Y[:100], n_rules=5)
    np.testing.assert_array_equal(small.label_vectors_, model.label_vectors_)
    assert small.decode == "f1"
    np.testing.assert_array_equal(small.predict(X), small.predict(X, decode="f1"))


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({}, "give either n_rules or n_conditions, got neither"),
        ({"n_rules": 3, "n_conditions": 3}, "give either n_rules or n_conditions, got both"),
        ({"n_rules": 0}, "n_rules must be at least 1, got 0"),
        ({"n_conditions": 2.5}, "n_conditions must be a whole number, got 2.5"),
    ],
)
def test_a_wrong_budget_is_refused(options: dict[str, Any], fault: str) -> None:
    model = fit(BoomerClassifier("label-wise-logistic", head="single"))
    with pytest.raises((ValueError, TypeError), match=re.escape(fault)):
        distil(model, X, Y, **options)


def test_there_must_be_a_model_and_its_features() -> None:
    with pytest.raises(NotFittedError):
        distil(BoomerClassifier(), X, Y, n_rules=3)
    model = fit(BoomerClassifier("label-wise-logistic", head="single"))
    with pytest.raises(ValueError, match="X has 5 features"):
        distil(model, X[:, :5], Y, n_rules=3)
    with pytest.raises(ValueError, match="X_test and y_test go together"):
        size_curve(model, X, Y, X)
    with pytest.raises(ValueError, match="n_conditions must be ascending numbers"):
        size_curve(model, X, Y, n_conditions=[5, 5])


def test_a_curve_is_a_table_and_a_picture() -> None:
    model = fit(BoomerClassifier("label-wise-logistic", head="single"))
    curve = size_curve(model, X[:200], Y[:200], X[200:], Y[200:], n_conditions=[5, 10])
    assert repr(curve) == "<SizeCurve of cut, refitted, distilled models: 5 to 10 conditions>"
    frame = curve.to_frame()
    assert frame.index.tolist() == [5, 10]
    assert frame["distilled", "loss"].tolist() == curve.losses["distilled"].tolist()
    display = SizeCurveDisplay.from_curve(curve)
    assert [line.get_label() for line in display.ax_.get_lines()] == ["cut", "refitted", "distilled"]
