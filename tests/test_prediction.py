"""Predictions are what a slow and obvious computation says of the rules, however extreme the scores."""

from collections import Counter
from decimal import Decimal, localcontext
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pyboomer import BoomerClassifier, Loss
from pyboomer.losses import example_wise_logistic, label_wise_logistic
from pyboomer.prediction import (
    class_probabilities,
    decode_by_loss,
    decode_by_sign,
    find_label_vectors,
    joint_probabilities,
    label_probabilities,
    marginal_probabilities,
)

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


def exact_loss(y: Any, f: Any) -> Decimal:
    """sum_k exp(-y_k f_k), of which the example-wise loss (Eq. 7) is an increasing function, to 60 digits."""
    with localcontext() as context:
        context.prec = 60
        context.Emax, context.Emin = 10**15, -(10**15)
        return sum(
            ((-Decimal(float(s)) if k else Decimal(float(s))).exp() for k, s in zip(y, f, strict=True)), Decimal(0)
        )


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


# --- Decoding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", ["single", "multi"])
def test_the_label_wise_loss_decodes_by_sign(head: str) -> None:
    model = fit("label-wise-logistic", head)
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) > 0)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X) > 0.5)


def test_a_score_of_zero_is_not_relevant() -> None:
    np.testing.assert_array_equal(decode_by_sign(np.array([[0.0, -0.0, 5e-324, -5e-324]])), [[0, 0, 1, 0]])


def test_the_example_wise_loss_predicts_known_label_vectors() -> None:
    known = {tuple(row) for row in Y.tolist()}
    for decode in ("loss", "subset"):
        assert {tuple(row) for row in fit(decode=decode).predict(X).tolist()} <= known


def test_the_known_label_vectors_are_the_rows_of_y_the_most_frequent_first_then_the_first_seen() -> None:
    model = fit()
    counts = Counter(map(tuple, Y.tolist()))
    assert model.label_vectors_.tolist() == [list(row) for row, _ in counts.most_common()]
    doubled = np.where((model.label_vectors_[-1] == Y).all(axis=1), len(Y), 1.0)
    np.testing.assert_array_equal(find_label_vectors(Y.astype(np.uint8), doubled)[0], model.label_vectors_[-1])


@given(st.data())
@settings(max_examples=60)
def test_the_vector_of_least_loss_is_found_as_by_exact_arithmetic(data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 4))
    size = data.draw(st.sampled_from([1.0, 30.0, 1e3, 1e5]))
    scores = data.draw(hnp.arrays(np.float64, (3, k), elements=st.floats(-size, size, allow_subnormal=False)))
    vectors = data.draw(hnp.arrays(np.uint8, st.tuples(st.integers(1, 6), st.just(k)), elements=st.integers(0, 1)))
    vectors = find_label_vectors(vectors, np.ones(len(vectors)))
    for row, found in zip(scores, decode_by_loss(scores, vectors, example_wise_logistic), strict=True):
        losses = [exact_loss(y, row) for y in vectors.tolist()]
        chosen = vectors.tolist().index(found.tolist())
        # the first that is least but for rounding: the best to ten digits, and clearly better than those before it
        assert losses[chosen] <= min(losses) * (1 + Decimal("1e-9"))
        assert all(losses[chosen] < loss * (1 - Decimal("1e-12")) for loss in losses[:chosen])


def test_of_vectors_of_equal_loss_the_more_frequent_then_the_first_seen_is_predicted() -> None:
    labels = np.array([[1, 0], [0, 1], [0, 1], [1, 1]], dtype=np.uint8)
    vectors = find_label_vectors(labels, np.ones(len(labels)))
    assert decode_by_loss(np.zeros((1, 2)), vectors, example_wise_logistic).tolist() == [[0, 1]]
    vectors = find_label_vectors(labels[[0, 1, 3]], np.ones(len(labels[[0, 1, 3]])))
    assert decode_by_loss(np.zeros((1, 2)), vectors, example_wise_logistic).tolist() == [[1, 0]]
    assert decode_by_loss(np.array([[0.7, 0.7]]), vectors[:2], example_wise_logistic).tolist() == [[1, 0]]
    assert decode_by_loss(np.array([[1e5, 1e5]]), vectors[:2], example_wise_logistic).tolist() == [[1, 0]]


def test_a_loss_of_ones_own_is_decoded_by_its_value() -> None:
    own = Loss("own", "dense", example_wise_logistic.value, example_wise_logistic.derivatives)
    scores = 3 * np.random.default_rng(1).normal(size=(50, 3))
    vectors = find_label_vectors(Y.astype(np.uint8)[:5], np.ones(len(Y.astype(np.uint8)[:5])))
    np.testing.assert_array_equal(
        decode_by_loss(scores, vectors, own), decode_by_loss(scores, vectors, example_wise_logistic)
    )


def test_decode_hamming_takes_labels_more_probable_than_not() -> None:
    model = fit(decode="hamming")
    marginals = marginal_probabilities(model.decision_function(X), model.label_vectors_, example_wise_logistic)
    np.testing.assert_array_equal(model.predict(X), marginals > 0.5)


def test_decode_subset_takes_the_most_probable_known_vector() -> None:
    model = fit(decode="subset")
    joint = joint_probabilities(model.decision_function(X), model.label_vectors_, example_wise_logistic)
    np.testing.assert_array_equal(model.predict(X), model.label_vectors_[joint.argmax(axis=1)])


def test_decoding_can_be_changed_after_fit() -> None:
    model = fit()
    np.testing.assert_array_equal(model.set_params(decode="hamming").predict(X), fit(decode="hamming").predict(X))


# --- Probabilities ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["label-wise-logistic", "example-wise-logistic"])
def test_probabilities_are_the_logistic_function_of_the_scores(loss: str) -> None:
    model = fit(loss)
    np.testing.assert_allclose(model.predict_proba(X), 1 / (1 + np.exp(-model.decision_function(X))), rtol=1e-12)


@given(st.data())
@settings(max_examples=50)
def test_marginal_probabilities_are_those_of_all_known_vectors_enumerated(data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 4))
    scores = data.draw(hnp.arrays(np.float64, (2, k), elements=st.floats(-20, 20)))
    vectors = data.draw(hnp.arrays(np.uint8, st.tuples(st.integers(1, 6), st.just(k)), elements=st.integers(0, 1)))
    vectors = find_label_vectors(vectors, np.ones(len(vectors)))
    probabilities = marginal_probabilities(scores, vectors, example_wise_logistic)
    for f, found in zip(scores, probabilities, strict=True):
        weights = [np.prod([1 / (1 + np.exp(-s if y else s)) for y, s in zip(v, f, strict=True)]) for v in vectors]
        expected = np.array(weights) @ vectors / np.sum(weights)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_probabilities_of_all_vectors_known_are_those_of_independent_labels() -> None:
    every = np.array(list(product([0, 1], repeat=3)), dtype=np.uint8)
    scores = 4 * np.random.default_rng(1).normal(size=(20, 3))
    np.testing.assert_allclose(
        marginal_probabilities(scores, every, example_wise_logistic),
        label_probabilities(scores, label_wise_logistic),
        rtol=1e-9,
    )


def test_log_odds_of_ones_own_loss_are_used_for_probabilities() -> None:
    own = Loss("own", "diagonal", label_wise_logistic.value, label_wise_logistic.derivatives, lambda F: 2 * F - 1)
    scores = np.random.default_rng(1).normal(size=(5, 1))
    probability = 1 / (1 + np.exp(1 - 2 * scores))
    np.testing.assert_allclose(label_probabilities(scores, own), probability)
    np.testing.assert_allclose(class_probabilities(scores, own), np.hstack([1 - probability, probability]))


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 4)), elements=st.floats(-1e300, 1e300)))
def test_probabilities_of_classes_add_up_and_the_largest_score_has_the_largest(scores: Any) -> None:
    probabilities = class_probabilities(scores, label_wise_logistic)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    largest = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), largest)


# --- Extremes ---------------------------------------------------------------------------------------------------------


EXTREMES = [0.0, 1.0, -1.0, 800.0, -800.0, 1e5, -1e5, 1e300, -1e300, 1.7e308, -1.7e308, 5e-324]


@given(hnp.arrays(np.float64, (4, 3), elements=st.sampled_from(EXTREMES)))
@settings(max_examples=200)
def test_extreme_scores_break_neither_decoding_nor_probabilities(scores: Any) -> None:
    vectors = find_label_vectors(Y.astype(np.uint8)[:4], np.ones(len(Y.astype(np.uint8)[:4])))
    for known in (vectors, np.array(list(product([0, 1], repeat=3)), dtype=np.uint8)):
        decoded = decode_by_loss(scores, known, example_wise_logistic)
        assert {tuple(row) for row in decoded.tolist()} <= {tuple(row) for row in known.tolist()}
        # the largest exponent decides: no known vector has a smaller one
        exponents = np.where(known == 1, -scores[:, None, :], scores[:, None, :]).max(axis=2)
        chosen = np.where(decoded == 1, -scores, scores).max(axis=1)
        assert (chosen <= exponents.min(axis=1) + 1.2).all()  # log(3), the most that three terms add, and some rounding
        for probabilities in (
            marginal_probabilities(scores, known, example_wise_logistic),
            label_probabilities(scores, label_wise_logistic),
            joint_probabilities(scores, known, example_wise_logistic),
        ):
            assert ((probabilities >= 0) & (probabilities <= 1)).all()


def test_certain_scores_give_certain_probabilities() -> None:
    scores = np.array([[1e5, -1e5, 1e300], [-1e300, 1e300, -1e5]])
    every = np.array(list(product([0, 1], repeat=3)), dtype=np.uint8)
    expected = [[1, 0, 1], [0, 1, 0]]
    np.testing.assert_array_equal(decode_by_loss(scores, every, example_wise_logistic), expected)
    np.testing.assert_array_equal(label_probabilities(scores, label_wise_logistic), expected)
    np.testing.assert_array_equal(marginal_probabilities(scores, every, example_wise_logistic), expected)
