"""Decodings are the best answers for their measures, as found by trying all answers; however extreme the scores."""

from collections import Counter
from decimal import Decimal, localcontext
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import expit

from pyboomer import BoomerClassifier, Loss
from pyboomer.losses import example_wise_logistic, label_wise_logistic
from pyboomer.metrics import example_f1
from pyboomer.predicting.decoding import (
    class_probabilities,
    decode_by_f1,
    decode_by_loss,
    decode_by_rank,
    decode_by_sign,
    find_cuts,
    find_label_vectors,
    joint_probabilities,
    marginal_probabilities,
    tune_thresholds,
)

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(60, 5)), 1) * (RNG.random((60, 5)) < 0.6)
X[RNG.random(X.shape) < 0.1] = np.nan
X[:, 4] = RNG.integers(0, 4, 60)
Y = (np.nan_to_num(X[:, :3]) + 0.4 * RNG.normal(size=(60, 3)) > 0.1).astype(int)
LOSSES = ["label-wise-logistic", "example-wise-logistic"]


def fit(loss: Any = "example-wise-logistic", head: str = "multi", **options: Any) -> BoomerClassifier:
    options = {"n_rules": 30, "random_state": 1, "categorical_features": [4], "learning_rate": 0.3, **options}
    return BoomerClassifier(loss, head=head, **options).fit(X, Y)


def exact_loss(y: Any, f: Any) -> Decimal:
    """sum_k exp(-y_k f_k), of which the example-wise loss (Eq. 7) is an increasing function, to 60 digits."""
    with localcontext() as context:
        context.prec = 60
        context.Emax, context.Emin = 10**15, -(10**15)
        return sum(
            ((-Decimal(float(s)) if k else Decimal(float(s))).exp() for k, s in zip(y, f, strict=True)), Decimal(0)
        )


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
    np.testing.assert_array_equal(find_label_vectors(Y.astype(np.uint8), doubled)[0][0], model.label_vectors_[-1])


@given(st.data())
@settings(max_examples=60)
def test_the_vector_of_least_loss_is_found_as_by_exact_arithmetic(data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 4))
    size = data.draw(st.sampled_from([1.0, 30.0, 1e3, 1e5]))
    scores = data.draw(hnp.arrays(np.float64, (3, k), elements=st.floats(-size, size, allow_subnormal=False)))
    vectors = data.draw(hnp.arrays(np.uint8, st.tuples(st.integers(1, 6), st.just(k)), elements=st.integers(0, 1)))
    vectors = find_label_vectors(vectors, np.ones(len(vectors)))[0]
    for row, found in zip(scores, decode_by_loss(scores, vectors, example_wise_logistic), strict=True):
        losses = [exact_loss(y, row) for y in vectors.tolist()]
        chosen = vectors.tolist().index(found.tolist())
        # the first that is least but for rounding: the best to ten digits, and clearly better than those before it
        assert losses[chosen] <= min(losses) * (1 + Decimal("1e-9"))
        assert all(losses[chosen] < loss * (1 - Decimal("1e-12")) for loss in losses[:chosen])


def test_of_vectors_of_equal_loss_the_more_frequent_then_the_first_seen_is_predicted() -> None:
    labels = np.array([[1, 0], [0, 1], [0, 1], [1, 1]], dtype=np.uint8)
    vectors = find_label_vectors(labels, np.ones(len(labels)))[0]
    assert decode_by_loss(np.zeros((1, 2)), vectors, example_wise_logistic).tolist() == [[0, 1]]
    vectors = find_label_vectors(labels[[0, 1, 3]], np.ones(len(labels[[0, 1, 3]])))[0]
    assert decode_by_loss(np.zeros((1, 2)), vectors, example_wise_logistic).tolist() == [[1, 0]]
    assert decode_by_loss(np.array([[0.7, 0.7]]), vectors[:2], example_wise_logistic).tolist() == [[1, 0]]
    assert decode_by_loss(np.array([[1e5, 1e5]]), vectors[:2], example_wise_logistic).tolist() == [[1, 0]]


def test_a_loss_of_ones_own_is_decoded_by_its_value() -> None:
    own = Loss("own", "dense", example_wise_logistic.value, example_wise_logistic.derivatives)
    scores = 3 * np.random.default_rng(1).normal(size=(50, 3))
    vectors = find_label_vectors(Y.astype(np.uint8)[:5], np.ones(len(Y.astype(np.uint8)[:5])))[0]
    np.testing.assert_array_equal(
        decode_by_loss(scores, vectors, own), decode_by_loss(scores, vectors, example_wise_logistic)
    )


def test_decode_hamming_takes_labels_more_probable_than_not() -> None:
    model = fit(decode="hamming")
    scores = model.decision_function(X)
    mean = (marginal_probabilities(scores, model.label_vectors_) + expit(scores)) / 2
    np.testing.assert_array_equal(model.predict(X), mean > 0.5)
    label_wise = fit("label-wise-logistic", decode="hamming")
    np.testing.assert_array_equal(label_wise.predict(X), label_wise.predict_proba(X) > 0.5)


def test_decode_subset_takes_the_most_probable_known_vector() -> None:
    model = fit(decode="subset")
    joint = joint_probabilities(model.decision_function(X), model.label_vectors_)
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
    vectors = find_label_vectors(vectors, np.ones(len(vectors)))[0]
    probabilities = marginal_probabilities(scores, vectors)
    for f, found in zip(scores, probabilities, strict=True):
        weights = [np.prod([1 / (1 + np.exp(-s if y else s)) for y, s in zip(v, f, strict=True)]) for v in vectors]
        expected = np.array(weights) @ vectors / np.sum(weights)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_probabilities_of_all_vectors_known_are_those_of_independent_labels() -> None:
    every = np.array(list(product([0, 1], repeat=3)), dtype=np.uint8)
    scores = 4 * np.random.default_rng(1).normal(size=(20, 3))
    np.testing.assert_allclose(
        marginal_probabilities(scores, every),
        expit(scores),
        rtol=1e-9,
    )


def test_log_odds_of_ones_own_loss_are_used_for_probabilities() -> None:
    own = Loss("own", "diagonal", label_wise_logistic.value, label_wise_logistic.derivatives, lambda F: 2 * F - 1)
    scores = np.random.default_rng(1).normal(size=(5, 1))
    probability = 1 / (1 + np.exp(1 - 2 * scores))
    np.testing.assert_allclose(class_probabilities(own.log_odds(scores)), np.hstack([1 - probability, probability]))
    model = fit(own)
    np.testing.assert_allclose(model.predict_proba(X), 1 / (1 + np.exp(1 - 2 * model.decision_function(X))))


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 4)), elements=st.floats(-1e300, 1e300)))
def test_probabilities_of_classes_add_up_and_the_largest_score_has_the_largest(scores: Any) -> None:
    probabilities = class_probabilities(scores)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    largest = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), largest)


# --- Extremes ---------------------------------------------------------------------------------------------------------


EXTREMES = [0.0, 1.0, -1.0, 800.0, -800.0, 1e5, -1e5, 1e300, -1e300, 1.7e308, -1.7e308, 5e-324]


@given(hnp.arrays(np.float64, (4, 3), elements=st.sampled_from(EXTREMES)))
@settings(max_examples=200)
def test_extreme_scores_break_neither_decoding_nor_probabilities(scores: Any) -> None:
    vectors = find_label_vectors(Y.astype(np.uint8)[:4], np.ones(len(Y.astype(np.uint8)[:4])))[0]
    for known in (vectors, np.array(list(product([0, 1], repeat=3)), dtype=np.uint8)):
        decoded = decode_by_loss(scores, known, example_wise_logistic)
        assert {tuple(row) for row in decoded.tolist()} <= {tuple(row) for row in known.tolist()}
        # the largest exponent decides: no known vector has a smaller one
        exponents = np.where(known == 1, -scores[:, None, :], scores[:, None, :]).max(axis=2)
        chosen = np.where(decoded == 1, -scores, scores).max(axis=1)
        assert (chosen <= exponents.min(axis=1) + 1.2).all()  # log(3), the most that three terms add, and some rounding
        for probabilities in (
            marginal_probabilities(scores, known),
            expit(scores),
            joint_probabilities(scores, known),
        ):
            assert ((probabilities >= 0) & (probabilities <= 1)).all()


def test_certain_scores_give_certain_probabilities() -> None:
    scores = np.array([[1e5, -1e5, 1e300], [-1e300, 1e300, -1e5]])
    every = np.array(list(product([0, 1], repeat=3)), dtype=np.uint8)
    expected = [[1, 0, 1], [0, 1, 0]]
    np.testing.assert_array_equal(decode_by_loss(scores, every, example_wise_logistic), expected)
    np.testing.assert_array_equal(expit(scores), expected)
    np.testing.assert_array_equal(marginal_probabilities(scores, every), expected)


# --- Decodings for other measures -------------------------------------------------------------------------------------


@st.composite
def scores_and_vectors(draw: st.DrawFn) -> tuple[Any, Any]:
    k = draw(st.integers(1, 4))
    scores = draw(hnp.arrays(np.float64, (3, k), elements=st.floats(-6, 6)))
    vectors = draw(hnp.arrays(np.uint8, st.tuples(st.integers(1, 8), st.just(k)), elements=st.integers(0, 1)))
    return scores, find_label_vectors(vectors, np.ones(len(vectors)))[0]


def expected_f1(joint: Any, vectors: Any, answer: Any) -> float:
    truth = np.array([example_f1(vectors[[v]], answer[None]) for v in range(len(vectors))])
    return float(joint @ truth)


@given(scores_and_vectors())
@settings(max_examples=100)
def test_f1_is_the_answer_of_largest_expected_f_measure_of_all(data: tuple[Any, Any]) -> None:
    scores, vectors = data
    answers = np.array(list(product([0, 1], repeat=scores.shape[1])), dtype=np.uint8)
    for joint, answer in zip(joint_probabilities(scores, vectors), decode_by_f1(scores, vectors), strict=True):
        best = max(expected_f1(joint, vectors, other) for other in answers)
        assert expected_f1(joint, vectors, answer) == pytest.approx(best, abs=1e-9)


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 4)), elements=st.floats(-6, 6)))
@settings(max_examples=50)
def test_f1_without_known_vectors_is_that_of_all_vectors(scores: Any) -> None:
    answers = np.array(list(product([0, 1], repeat=scores.shape[1])), dtype=np.uint8)
    for joint, answer in zip(joint_probabilities(scores, answers), decode_by_f1(scores, None), strict=True):
        best = max(expected_f1(joint, answers, other) for other in answers)
        assert expected_f1(joint, answers, answer) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_takes_every_decoding_at_fit_and_at_predict(loss: str) -> None:
    model = fit(loss)
    probabilities = model.predict_proba(X)
    expected = {
        "top-1": decode_by_rank(probabilities, 1),
        "top-2": decode_by_rank(probabilities, 2),
        "f1": decode_by_f1(model.decision_function(X), model.label_vectors_),
        "subset": model.label_vectors_[model.predict_joint(X).argmax(axis=1)],
    }
    for decode, labels in expected.items():
        np.testing.assert_array_equal(model.predict(X, decode=decode), labels)
        np.testing.assert_array_equal(fit(loss, decode=decode).predict(X), labels)
    np.testing.assert_array_equal(model.predict(X, decode=0.3), probabilities > 0.3)
    np.testing.assert_array_equal(model.predict(X, decode=[0.2, 0.5, 0.9]), probabilities > [0.2, 0.5, 0.9])
    np.testing.assert_array_equal(model.predict(X), model.predict(X, decode="loss"))


def test_the_largest_scores_are_taken_and_of_equals_the_first() -> None:
    scores = np.array([[1.0, 3.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(decode_by_rank(scores, 2), [[0, 1, 0, 1], [1, 1, 0, 0]])
    np.testing.assert_array_equal(decode_by_rank(scores, 9), np.ones((2, 4)))


@pytest.mark.parametrize("loss", LOSSES)
def test_without_known_vectors_labels_are_independent(loss: str) -> None:
    model = fit(loss, known_vectors=False)
    for decode in ("loss", "hamming", "subset"):
        np.testing.assert_array_equal(model.predict(X, decode=decode), model.decision_function(X) > 0)
    every = np.array(list(product([0, 1], repeat=3)), dtype=np.uint8)
    expected = decode_by_f1(model.decision_function(X), every)
    np.testing.assert_array_equal(model.predict(X, decode="f1"), expected)


@pytest.mark.parametrize("loss", LOSSES)
def test_joint_probabilities_add_up_over_the_known_vectors(loss: str) -> None:
    model = fit(loss)
    joint = model.predict_joint(X)
    assert joint.shape == (60, len(model.label_vectors_))
    np.testing.assert_allclose(joint.sum(axis=1), 1)
    expected = np.prod(
        np.where(model.label_vectors_ == 1, model.predict_proba(X)[:, None], 1 - model.predict_proba(X)[:, None]),
        axis=2,
    )
    np.testing.assert_allclose(joint, expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)


@pytest.mark.parametrize(
    "decode", ["f2", "top-0", "top-", "top-1.5", 1.5, -0.1, [0.5, 2], [], None, True, [True], "0.5"]
)
def test_other_decodings_are_refused(decode: Any) -> None:
    if decode is not None:  # None, at predict: that of the estimator
        with pytest.raises(ValueError, match=r"^decode must be \"loss\", .* or thresholds in \[0, 1\], got"):
            fit().predict(X, decode=decode)
    with pytest.raises(ValueError, match=r"^decode must be"):
        fit(decode=decode)


def test_thresholds_must_be_as_many_as_labels() -> None:
    with pytest.raises(ValueError, match="decode has 2 thresholds, but there are 3 labels"):
        fit().predict(X, decode=[0.5, 0.5])
    with pytest.raises(ValueError, match="decode has 2 thresholds, but there are 3 labels"):
        fit(decode=[0.5, 0.5])


# --- Thresholds -------------------------------------------------------------------------------------------------------


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_tuned_thresholds_give_the_largest_f_measure_of_each_label(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, p = (rng.random((n, 2)) < 0.4).astype(float), np.round(rng.random((n, 2)), 1).clip(0.1, 0.9)
    truth[rng.random(truth.shape) < 0.1] = np.nan
    thresholds = tune_thresholds(truth, p)

    def f1(k: int, threshold: float) -> float:
        known = ~np.isnan(truth[:, k])
        y, h = truth[known, k], p[known, k] > threshold
        return 2 * (y * h).sum() / max(y.sum() + h.sum(), 1)

    for k in range(2):
        if np.nansum(truth[:, k]) == 0:
            assert thresholds[k] == 0.5
            continue
        best = max(f1(k, threshold) for threshold in np.arange(0.05, 1.0, 0.1))
        assert f1(k, thresholds[k]) == pytest.approx(best)


def test_thresholds_need_labels_and_probabilities_of_one_shape() -> None:
    with pytest.raises(ValueError, match=r"must be matrices of the same shape, got \(3, 2\) and \(3, 1\)"):
        tune_thresholds(np.zeros((3, 2)), np.zeros((3, 1)))


def test_log_odds_beyond_a_cut_are_probabilities_above_the_threshold() -> None:
    thresholds = np.array([0.0, 1e-300, 0.2, 0.5, np.nextafter(0.5, 1), 1 - 1e-12, np.nextafter(1.0, 0), 1.0])
    cuts = find_cuts(thresholds)
    assert cuts[-1] == np.inf
    finite = cuts[:-1]
    for log_odds in (np.nextafter(finite, -np.inf), finite, np.nextafter(finite, np.inf), finite - 1, finite + 1):
        np.testing.assert_array_equal(log_odds > finite, expit(log_odds) > thresholds[:-1])
