"""Unknown labels and weights count for what they should: the sums over what is known, and nothing else."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from pyboomer import BoomerClassifier, BoomerRegressor, Loss
from pyboomer.losses import example_wise_logistic, label_wise_logistic, squared_error

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 5))
Y = (X[:, :4] + 0.5 * RNG.normal(size=(60, 4)) > 0).astype(int)
UNKNOWN = RNG.random(Y.shape) < 0.3
MASKED = np.where(UNKNOWN, np.nan, Y)

LOSSES = ["label-wise-logistic", "example-wise-logistic"]
each_loss = pytest.mark.parametrize("loss", LOSSES)
each_head = pytest.mark.parametrize("head", ["single", "multi"])


def classifier(**options: Any) -> BoomerClassifier:
    return BoomerClassifier(**{"n_rules": 30, "random_state": 1, "learning_rate": 0.3, **options})


def assert_same_scores(a: Any, b: Any, rtol: float = 1e-9) -> None:
    assert [str(rule.body) for rule in a.rules_] == [str(rule.body) for rule in b.rules_]
    np.testing.assert_allclose(a.rules_.head_matrix(), b.rules_.head_matrix(), rtol=rtol, atol=1e-12)


# --- Unknown labels against the reference -----------------------------------------------------------------------------


@pytest.mark.parametrize("bootstrap", [False, True])
def test_masked_labels_give_the_rules_of_the_reference(
    variant: dict[str, Any], bootstrap: bool, check_oracle: Callable[..., Any]
) -> None:
    weight = np.where(UNKNOWN, 0.0, 1.0)
    signs = np.where(UNKNOWN, 0, 2 * Y - 1)
    check_oracle(X, signs, n_rules=25, label_weight=weight, bootstrap=bootstrap, **variant)


def test_weights_per_label_give_the_rules_of_the_reference(
    variant: dict[str, Any], check_oracle: Callable[..., Any]
) -> None:
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], size=Y.shape)
    signs = np.where(weight > 0, 2 * Y - 1, 0)
    check_oracle(X, signs, n_rules=25, label_weight=weight, sample_weight=np.arange(60) % 3 + 0.5, **variant)


@pytest.mark.parametrize("head", ["single", "multi"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_squared_error_gives_the_rules_of_the_reference(
    head: str, weighted: bool, check_oracle: Callable[..., Any]
) -> None:
    targets = X[:, :3] @ np.array([[1.0, 2, 0], [0, 1, 1], [3, 0, 1]]) + 5
    weight = np.random.default_rng(1).choice([0.0, 0.5, 2.0], size=targets.shape) if weighted else None
    check_oracle(X, targets, n_rules=25, label_weight=weight, loss=squared_error, head=head)


def test_sums_are_those_over_the_known_labels_alone(booster_of: Callable[..., Any]) -> None:
    booster = booster_of(
        X, np.where(UNKNOWN, 0, 2 * Y - 1), loss=label_wise_logistic, head="single", label_weight=1.0 - UNKNOWN
    )
    g, h = booster.state.statistics[:60, :4], booster.state.statistics[:60, 8:12]
    assert (g[UNKNOWN] == 0).all()
    assert (h[UNKNOWN] == 0).all()
    for k in range(4):
        known = ~UNKNOWN[:, k]
        expected = label_wise_logistic.derivatives(2.0 * Y[known][:, [k]] - 1, booster.state.scores[:60][known][:, [k]])
        np.testing.assert_allclose(g[:, k].sum(), expected[0].sum())
        np.testing.assert_allclose(h[:, k].sum(), expected[1].sum())


@each_head
def test_for_one_label_unknown_means_absent(head: str) -> None:
    known = ~UNKNOWN[:, 0]
    options = {"loss": "label-wise-logistic", "head": head, "bootstrap": False}
    masked = classifier(**options).fit(X, MASKED[:, :1])
    assert_same_scores(masked, classifier(**options).fit(X[known], Y[known, :1]))


def test_with_single_label_heads_and_all_features_labels_do_not_disturb_each_other() -> None:
    """A label's first rule is that of the examples for which it is known, whatever the other labels are."""
    options = {"loss": "label-wise-logistic", "head": "single", "bootstrap": False, "max_features": None}
    rules = classifier(**options).fit(X, MASKED).rules_
    first = rules[1]
    k = first.labels[0]
    known = ~UNKNOWN[:, k]
    alone = classifier(**options).fit(X[known], Y[known][:, [k]]).rules_[1]
    # thresholds lie between values of all examples, so the covered known examples are what must agree
    covered = [np.all([c.covers(X[known, c.feature]) for c in rule.body], axis=0) for rule in (first, alone)]
    np.testing.assert_array_equal(covered[0], covered[1])
    np.testing.assert_allclose(first.scores, alone.scores)


# --- Unknown labels in all their forms --------------------------------------------------------------------------------


def in_frame(values: Any, dtype: str) -> pd.DataFrame:
    return pd.DataFrame(values, columns=list("abcd")).astype(dtype)


FORMS = {
    "float32": MASKED.astype(np.float32),
    "lists": MASKED.tolist(),
    "None": np.where(UNKNOWN, None, Y),
    "sparse": sp.csr_array(MASKED),
    "sparse matrix": sp.csc_matrix(MASKED),
    "frame": in_frame(MASKED, "float64"),
    "nullable integers": in_frame(MASKED, "Int64"),
    "nullable booleans": in_frame(np.where(UNKNOWN, None, Y.astype(bool)), "boolean"),
    "objects": in_frame(np.where(UNKNOWN, None, Y), "object"),
}


@each_loss
@pytest.mark.parametrize("labels", FORMS.values(), ids=FORMS)
def test_unknown_labels_may_be_written_in_many_ways(labels: Any, loss: str) -> None:
    model = classifier(loss=loss).fit(X, labels)
    expected = classifier(loss=loss).fit(X, MASKED)
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))
    predicted = model.predict(X)
    predicted = predicted.toarray() if sp.issparse(predicted) else np.asarray(predicted)
    np.testing.assert_array_equal(predicted.astype(int), expected.predict(X).astype(int))


@each_loss
def test_only_complete_rows_are_known_label_vectors(loss: str) -> None:
    complete = ~UNKNOWN.any(axis=1)
    vectors = classifier(loss=loss).fit(X, MASKED).label_vectors_
    assert {tuple(v) for v in vectors.tolist()} == {tuple(v) for v in Y[complete].tolist()}


def test_without_complete_rows_labels_are_predicted_by_sign_with_a_warning() -> None:
    labels = MASKED.copy()
    labels[np.arange(60), np.arange(60) % 4] = np.nan
    with pytest.warns(UserWarning, match="no example has all its labels known"):
        model = classifier(loss="example-wise-logistic").fit(X, labels)
    for decode in ("loss", "hamming", "subset"):
        predicted = model.set_params(decode=decode).predict(X)
        np.testing.assert_array_equal(predicted, model.decision_function(X) > 0)
    assert model.label_vectors_.shape == (0, 4)


@each_loss
@each_head
@pytest.mark.parametrize("l2", [0.0, 1.0])
def test_a_label_that_is_never_known_gets_score_0_with_a_warning(loss: str, head: str, l2: float) -> None:
    labels = MASKED.copy()
    labels[:, 2] = np.nan
    with pytest.warns(UserWarning, match="no example has a known value for 'y2': the score will be 0"):
        model = fit_quietly(classifier(loss=loss, head=head, l2=l2), labels)
    assert (model.decision_function(X)[:, 2] == 0).all()
    assert (model.predict(X)[:, 2] == 0).all()
    assert np.isfinite(model.decision_function(X)).all()


def fit_quietly(model: BoomerClassifier, labels: Any) -> BoomerClassifier:
    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="no example has all its labels known")
        return model.fit(X, labels)


@each_loss
def test_no_known_label_at_all_is_an_error(loss: str) -> None:
    with pytest.raises(ValueError, match="Y has no known label at all"):
        classifier(loss=loss).fit(X, np.full(Y.shape, np.nan))
    with pytest.raises(ValueError, match="Y has no known label at all"):
        classifier(loss=loss).fit(X, MASKED, sample_weight=UNKNOWN.astype(float))


@each_loss
def test_an_example_without_any_known_label_counts_as_absent(loss: str) -> None:
    labels = Y.astype(float)
    labels[[3, 17, 40]] = np.nan
    kept = ~np.isnan(labels[:, 0])
    assert classifier(loss=loss).fit(X, labels).rules_ == classifier(loss=loss).fit(X[kept], Y[kept]).rules_


@given(st.integers(1, 8), st.integers(1, 4), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_any_pattern_of_unknown_labels_is_learned_from(n: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.choice([0.0, 1.0, np.nan], size=(n, k))
    labels[0, 0] = 1
    import warnings

    for loss in LOSSES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = classifier(loss=loss, n_rules=5).fit(rng.normal(size=(n, 2)), labels)
        assert np.isfinite(model.decision_function(rng.normal(size=(3, 2)))).all()


# --- Weights ----------------------------------------------------------------------------------------------------------


@each_loss
@each_head
def test_a_weight_of_two_equals_the_example_twice(loss: str, head: str) -> None:
    twice = np.arange(60) % 3 == 0
    options = {"loss": loss, "head": head, "bootstrap": False}
    weighted = classifier(**options).fit(X, MASKED, sample_weight=1.0 + twice)
    repeated = classifier(**options).fit(np.vstack([X, X[twice]]), np.vstack([MASKED, MASKED[twice]]))
    assert_same_scores(weighted, repeated)


@each_loss
@each_head
def test_a_weight_of_zero_equals_absence(loss: str, head: str) -> None:
    gone = np.arange(60) % 4 == 0
    options = {"loss": loss, "head": head}
    weighted = classifier(**options).fit(X, MASKED, sample_weight=np.where(gone, 0.0, 1.0))
    assert weighted.rules_ == classifier(**options).fit(X[~gone], MASKED[~gone]).rules_


@each_loss
@each_head
def test_weights_per_label_of_zero_equal_unknown_labels(loss: str, head: str) -> None:
    options = {"loss": loss, "head": head}
    weighted = classifier(**options).fit(X, Y, sample_weight=1.0 - UNKNOWN)
    masked = classifier(**options).fit(X, MASKED)
    assert weighted.rules_ == masked.rules_
    np.testing.assert_array_equal(weighted.label_vectors_, masked.label_vectors_)
    # beside other weights, too
    some = np.random.default_rng(1).choice([0.5, 1.0, 2.0], size=Y.shape)
    assert (
        classifier(**options).fit(X, Y, sample_weight=np.where(UNKNOWN, 0, some)).rules_
        == classifier(**options).fit(X, MASKED, sample_weight=some).rules_
    )


@each_head
def test_for_the_label_wise_loss_equal_weights_of_all_labels_are_the_weight_of_the_example(head: str) -> None:
    weight = np.random.default_rng(1).choice([0.5, 1.0, 2.0], size=60)
    options = {"loss": "label-wise-logistic", "head": head, "bootstrap": False}
    per_label = classifier(**options).fit(X, Y, sample_weight=np.tile(weight[:, None], (1, 4)))
    assert_same_scores(per_label, classifier(**options).fit(X, Y, sample_weight=weight))


@each_head
def test_for_the_label_wise_loss_a_weight_of_two_equals_the_label_twice(head: str) -> None:
    """Repeat the examples, with all labels unknown but those of weight 2."""
    twice = np.random.default_rng(1).random(Y.shape) < 0.3
    options = {"loss": "label-wise-logistic", "head": head, "bootstrap": False}
    weighted = classifier(**options).fit(X, Y, sample_weight=1.0 + twice)
    repeated = classifier(**options).fit(np.vstack([X, X]), np.vstack([Y, np.where(twice, Y, np.nan)]))
    assert_same_scores(weighted, repeated)


def test_weights_favour_the_labels_that_have_them() -> None:
    noisy = np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    errors = []
    for weight in ([5.0, 0.1], [0.1, 5.0]):
        model = classifier(n_rules=6, max_features=None).fit(X, noisy, sample_weight=np.tile(weight, (60, 1)))
        errors.append(((model.decision_function(X) > 0) != noisy).mean(axis=0))
    assert errors[0][0] < errors[1][0]
    assert errors[1][1] < errors[0][1]


@pytest.mark.parametrize("shape", ["diagonal", "dense"])
def test_a_loss_of_ones_own_takes_unknown_labels_if_it_decomposes(shape: str) -> None:
    if shape == "diagonal":
        own = Loss("mine", "diagonal", label_wise_logistic.value, lambda Y, F: label_wise_logistic.derivatives(Y, F))
        model = classifier(loss=own).fit(X, MASKED)
        assert_same_scores(model, classifier(loss="label-wise-logistic").fit(X, MASKED), rtol=1e-7)
    else:
        own = Loss("mine", "dense", example_wise_logistic.value, lambda Y, F: (Y, F))
        with pytest.raises(ValueError, match="loss 'mine' can learn neither from unknown labels nor"):
            classifier(loss=own).fit(X, MASKED)


BAD_WEIGHTS = {
    "negative": (np.where(np.arange(60)[:, None] == 7, -2.0, np.ones((60, 4))), "must not be negative, got -2.0 .* 7"),
    "NaN": (np.where(np.arange(60)[:, None] == 7, np.nan, np.ones((60, 4))), "must be finite, got nan for example 7"),
    "infinite": (np.where(np.arange(60)[:, None] == 9, np.inf, np.ones((60, 4))), "must be finite, got inf .* 9"),
    "zero": (np.zeros((60, 4)), "must be positive for at least one"),
    "too many labels": (np.ones((60, 5)), r"must have shape \(60,\), a weight per example, or \(60, 4\), .* \(60, 5\)"),
    "too few": (np.ones((59, 4)), r"must have shape .*; got \(59, 4\)"),
    "three dimensions": (np.ones((60, 4, 1)), r"must have shape .*; got \(60, 4, 1\)"),
    "too large": (np.full((60, 4), 1e307), "too large to be added up"),
    "too large for squares": (np.full(60, 1e160), "too large to be added up"),
    "text": (["a"] * 60, "sample_weight must be numbers, one or a row per example"),
    "ragged": ([[1.0], [1.0, 2.0]] * 30, "sample_weight must be numbers, one or a row per example"),
}


@pytest.mark.parametrize(("weight", "message"), BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
@pytest.mark.parametrize("kind", [BoomerClassifier, BoomerRegressor])
def test_weights_per_label_that_make_no_sense_are_refused(weight: Any, message: str, kind: Any) -> None:
    with pytest.raises(ValueError, match=message):
        kind(n_rules=3).fit(X, Y, sample_weight=weight)


def test_weights_with_other_names_than_the_labels_are_refused() -> None:
    weight = pd.DataFrame(np.ones((60, 4)), columns=["a", "b", "d", "c"])
    with pytest.raises(ValueError, match="sample_weight has label 'd' where the model was learned from 'c'"):
        classifier().fit(X, pd.DataFrame(Y, columns=list("abcd")), sample_weight=weight)


def test_classes_have_weights_per_example_only() -> None:
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(60,\)"):
        classifier().fit(X, Y[:, 0], sample_weight=np.ones((60, 2)))
