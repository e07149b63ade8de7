"""Predictions are what a slow and obvious computation says of the rules, however extreme the scores."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from pyboomer import BoomerClassifier

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(60, 5)), 1) * (RNG.random((60, 5)) < 0.6)
X[RNG.random(X.shape) < 0.1] = np.nan
X[:, 4] = RNG.integers(0, 4, 60)
Y = (np.nan_to_num(X[:, :3]) + 0.4 * RNG.normal(size=(60, 3)) > 0.1).astype(int)
VARIANTS = list(product(["label-wise-logistic", "example-wise-logistic"], ["single", "multi"]))


def fit(loss: Any = "example-wise-logistic", head: str = "multi", **options: Any) -> BoomerClassifier:
    options = {"n_rules": 30, "random_state": 1, "categorical_features": [4], "learning_rate": 0.3, **options}
    return BoomerClassifier(loss, head=head, **options).fit(X, Y)


def sum_rules(rules: Any, table: Any) -> Any:
    """The scores of Eq. 2, one rule and one condition at a time."""
    scores = np.zeros((len(table), len(rules.label_names)))
    for rule in rules:
        covered = np.ones(len(table), dtype=bool)
        for condition in rule.body:
            covered &= condition.covers(table[:, condition.feature])
        for label, score in zip(rule.labels, rule.scores, strict=True):
            scores[covered, label] += score
    return scores


# --- Scores -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "head"), VARIANTS)
def test_scores_are_the_sum_of_the_heads_of_the_rules_that_cover_the_example(loss: str, head: str) -> None:
    model = fit(loss, head)
    np.testing.assert_allclose(model.decision_function(X), sum_rules(model.rules_, X), rtol=1e-12, atol=1e-14)
    unseen = np.where(
        np.random.default_rng(1).random(X.shape) < 0.3, np.nan, 10 * np.random.default_rng(1).normal(size=X.shape)
    )
    np.testing.assert_allclose(model.decision_function(unseen), sum_rules(model.rules_, unseen), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("loss", "head"), VARIANTS)
def test_dense_sparse_and_framed_examples_get_the_same_predictions(loss: str, head: str) -> None:
    model = fit(loss, head)
    for table in (sp.csr_array(X), sp.csc_matrix(X), pd.DataFrame(X), X.astype(object)):
        np.testing.assert_array_equal(model.decision_function(table), model.decision_function(X))
        np.testing.assert_array_equal(model.predict(table), model.predict(X))
        np.testing.assert_array_equal(model.predict_proba(table), model.predict_proba(X))


def test_a_prediction_does_not_depend_on_the_other_examples_or_the_threads() -> None:
    model = fit()
    many = np.tile(X, (40, 1))  # several blocks of rows
    scores = model.decision_function(X)
    for n_jobs in (None, 1, 2, -1):
        model.set_params(n_jobs=n_jobs)
        for table in (many, sp.csr_array(many)):
            np.testing.assert_array_equal(model.decision_function(table), np.tile(scores, (40, 1)))
            np.testing.assert_array_equal(model.predict(table), np.tile(model.predict(X), (40, 1)))
    for n in range(5):
        np.testing.assert_array_equal(model.decision_function(X[n : n + 1]), scores[n : n + 1])


def test_a_missing_value_meets_no_condition() -> None:
    model = fit()
    nothing = np.full((1, 5), np.nan)
    default = model.rules_.head_matrix()[[not rule.body for rule in model.rules_]].sum(axis=0)
    np.testing.assert_allclose(model.decision_function(nothing), [default])
    np.testing.assert_allclose(model.decision_function(sp.csr_array(nothing)), [default])


# --- Stages -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "head"), VARIANTS)
def test_a_stage_is_the_prediction_of_the_first_rules(loss: str, head: str) -> None:
    model = fit(loss, head)
    stages = list(model.staged_decision_function(X))
    assert len(stages) == len(model.rules_)
    for count in (1, 2, 17, 30):
        np.testing.assert_allclose(stages[count - 1], sum_rules(model.rules_[:count], X), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(stages[-1], model.decision_function(X))
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    np.testing.assert_array_equal(list(model.staged_predict_proba(X))[-1], model.predict_proba(X))


def test_stages_may_be_chosen() -> None:
    model = fit()
    every = list(model.staged_decision_function(X))
    for at in ([1, 5, 30], (5, 5), range(3, 9, 2), np.array([4, 6])):
        for form in (at, iter(at)):
            chosen = list(model.staged_decision_function(X, at=form))
            np.testing.assert_allclose(chosen, [every[n - 1] for n in at], rtol=1e-12)
    assert list(model.staged_predict(X, at=[])) == []
    assert not next(model.staged_decision_function(X, at=[0])).any()


def test_a_stage_that_was_kept_does_not_change_later() -> None:
    stages = list(fit().staged_decision_function(X, at=[1, 30]))
    assert not np.array_equal(stages[0], stages[1])


@pytest.mark.parametrize("at", [5, 2.0, "12", [1.5], ["a"], [None], [[1]]], ids=repr)
def test_stages_that_are_no_whole_numbers_are_refused(at: Any) -> None:
    with pytest.raises(ValueError, match="at must be a list of whole numbers"):
        fit().staged_predict(X, at=at)


@pytest.mark.parametrize("at", [[-1], [3, 2], [1, 31], [31]], ids=repr)
def test_stages_that_do_not_ascend_to_the_number_of_rules_are_refused(at: Any) -> None:
    model = fit()
    for method in (model.staged_predict, model.staged_predict_proba, model.staged_decision_function):
        with pytest.raises(ValueError, match="at must ascend from 0 to at most 30, the number of rules; got"):
            method(X, at=at)
