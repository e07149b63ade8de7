"""Calibrated probabilities are right on average, on examples that the rules were not learned from."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold

from pyboomer import BoomerClassifier, Progress, load_model
from pyboomer.predicting.calibration import Calibration, Curve, calibrate

RNG = np.random.default_rng(1)
X = RNG.normal(size=(600, 5))
P = expit(2 * X[:, :3])
Y = (RNG.random(P.shape) < P).astype(int)
TRAIN, TEST = np.arange(400), np.arange(400, 600)


def classifier(**options: Any) -> BoomerClassifier:
    defaults: dict[str, Any] = {"n_rules": 200, "random_state": 1, "learning_rate": 0.5, "max_conditions": None}
    return BoomerClassifier(**{**defaults, "calibration": "isotonic", **options})


def expected_calibration_error(Y: Any, P: Any, n_bins: int = 15) -> float:
    """The mean distance, weighted by size, of relevance from probability in bins of equal width."""
    bins = np.minimum((P * n_bins).astype(int), n_bins - 1).ravel()
    distance = np.bincount(bins, weights=(P - Y).ravel(), minlength=n_bins)
    return float(np.abs(distance).sum() / P.size)


@pytest.mark.parametrize("loss", ["label-wise-logistic", "example-wise-logistic"])
@pytest.mark.parametrize("how", ["cross-fitted", "held out", "early stopping"])
def test_an_overconfident_model_becomes_right(loss: str, how: str) -> None:
    options: dict[str, Any] = {"early_stopping": True, "n_iter_no_change": 1000} if how == "early stopping" else {}
    given = {"eval_set": (X[300:400], Y[300:400])} if how == "held out" else {}
    rows = TRAIN[:300] if how == "held out" else TRAIN
    model = classifier(loss=loss, validation_fraction=0.4, **options).fit(X[rows], Y[rows], **given)
    before, after = expit(model.decision_function(X[TEST])), model.predict_proba(X[TEST])
    slack = 0.01 if how == "early stopping" else 0.0  # a model that stops in time is hardly overconfident
    assert log_loss(Y[TEST].ravel(), after.ravel()) < log_loss(Y[TEST].ravel(), before.ravel()) + slack
    assert expected_calibration_error(Y[TEST], after) < expected_calibration_error(Y[TEST], before) + slack
    assert ((after > 0) & (after < 1)).all()


def test_the_rules_are_those_of_a_model_that_is_not_calibrated() -> None:
    calibrated, plain = classifier().fit(X, Y), classifier(calibration=None).fit(X, Y)
    assert calibrated.rules_ == plain.rules_
    np.testing.assert_array_equal(calibrated.decision_function(X), plain.decision_function(X))
    np.testing.assert_array_equal(calibrated.predict(X), plain.predict(X))  # the paper's decoding
    assert plain.calibration_ is None


def test_all_other_decodings_and_probabilities_follow_the_curves() -> None:
    model = classifier(loss="example-wise-logistic").fit(X, Y)
    p = model.predict_proba(X)
    assert model.calibration_ is not None
    np.testing.assert_allclose(p, expit(model.calibration_.log_odds(model.decision_function(X))))
    np.testing.assert_array_equal(model.predict(X, decode="hamming"), p > 0.5)
    joint = model.predict_joint(X)
    np.testing.assert_allclose(joint.sum(axis=1), 1)
    known = model.label_vectors_
    product = np.prod(np.where(known == 1, p[:, None], 1 - p[:, None]), axis=2)
    order = np.argsort(product / product.sum(axis=1, keepdims=True), axis=1)
    assert (np.diff(np.take_along_axis(joint, order, 1), axis=1) >= -1e-12).all()  # the curve rises


def test_joint_probabilities_of_dependent_labels_become_right() -> None:
    twin = np.column_stack([Y[:, 0], Y[:, 0], Y[:, 1]])
    plain = classifier(calibration=None).fit(X[TRAIN], twin[TRAIN])
    calibrated = classifier().fit(X[TRAIN], twin[TRAIN])
    losses = []
    for model in (plain, calibrated):
        truth = (model.label_vectors_ == twin[TEST][:, None]).all(axis=2)
        losses.append(-np.log(model.predict_joint(X[TEST])[truth]).mean())
    assert losses[1] < losses[0]


@pytest.mark.parametrize("kind", ["two", "three"])
def test_classes_are_calibrated_too(kind: str) -> None:
    y = Y[:, 0] if kind == "two" else Y[:, :2].sum(axis=1)
    plain = classifier(calibration=None).fit(X[TRAIN], y[TRAIN])
    calibrated = classifier().fit(X[TRAIN], y[TRAIN])
    losses = [log_loss(y[TEST], model.predict_proba(X[TEST])) for model in (plain, calibrated)]
    assert losses[1] < losses[0]
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)


def test_unknown_labels_and_rare_labels_are_no_trouble() -> None:
    labels = np.column_stack([Y, np.arange(600) == 3, np.zeros(600)]).astype(float)
    labels[RNG.random(labels.shape) < 0.2] = np.nan
    model = classifier(n_rules=30).fit(X, labels)
    p = model.predict_proba(X)
    assert np.isfinite(p).all()
    assert p[:, 4].max() < 0.1


def test_calibrated_models_are_saved_and_loaded(tmp_path: Path) -> None:
    model = classifier(n_rules=20).fit(X, Y)
    model.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.calibration_ == model.calibration_
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict_joint(X), model.predict_joint(X))


DAMAGED = {
    "no dict": [],
    "no joint": {"labels": []},
    "too few curves": {"labels": [], "joint": None},
    "no curve": {"labels": [3, 3, 3], "joint": None},
    "text": {"labels": [[["a"], [0.5]]] * 3, "joint": None},
    "falling scores": {"labels": [[[2, 1], [0.5, 0.6]]] * 3, "joint": None},
    "certainty": {"labels": [[[1, 2], [0, 0.6]]] * 3, "joint": None},
    "lengths": {"labels": [[[1, 2], [0.5]]] * 3, "joint": None},
    "empty": {"labels": [[[], []]] * 3, "joint": None},
    "a bad joint": {"labels": [[[1, 2], [0.5, 0.6]]] * 3, "joint": 3},
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_damaged_curves_are_refused(damage: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    classifier(n_rules=3).fit(X, Y).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"calibration": damage}))
    with pytest.raises(ValueError, match="calibration must"):
        load_model(path)


def test_too_few_examples_cannot_be_calibrated() -> None:
    with pytest.raises(ValueError, match="calibration needs at least 5 examples, got 4"):
        classifier(n_rules=3).fit(X[:4], Y[:4])
    model = classifier(n_rules=3).fit(X, Y)
    rules = model.rules_
    with pytest.raises(ValueError, match="calibration needs at least 5 examples, got 4"):
        model.fit(X[:4], Y[:4])
    assert model.rules_ is rules  # the model there was


def test_an_interrupt_before_the_calibration_is_told() -> None:
    def interrupt(_: Progress) -> None:
        raise KeyboardInterrupt

    model = classifier(n_rules=3, callbacks=[interrupt])
    with pytest.warns(UserWarning, match="probabilities are not calibrated"), pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.calibration_ is None


def test_a_curve_is_level_beyond_its_ends() -> None:
    curve = Curve((0.0, 1.0), (0.2, 0.6))
    np.testing.assert_allclose(curve(np.array([-5.0, 0.5, 7.0])), [0.2, 0.4, 0.6])
    assert Calibration.from_dict(Calibration((curve,), curve).to_dict(), 1) == Calibration((curve,), curve)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["label-wise-logistic", "example-wise-logistic"])
def test_on_most_benchmark_data_calibration_lowers_log_loss_and_calibration_error(
    benchmark_data: Callable[[str], Any], loss: str
) -> None:
    better = 0
    for name in ("emotions", "birds", "scene", "medical"):
        ds = benchmark_data(name)
        before, after = np.zeros(ds.Y.shape), np.zeros(ds.Y.shape)
        for train, test in KFold(3, shuffle=True, random_state=1).split(ds.X):
            model = classifier(
                loss=loss, learning_rate=0.1, n_rules=300, categorical_features=list(ds.nominal_features)
            ).fit(ds.X[train], ds.Y[train])
            before[test], after[test] = expit(model.decision_function(ds.X[test])), model.predict_proba(ds.X[test])
        losses = [log_loss(ds.Y.ravel(), p.ravel()) for p in (before, after)]
        errors = [expected_calibration_error(ds.Y, p) for p in (before, after)]
        better += losses[1] < losses[0] and errors[1] < errors[0]
    assert better >= 3


def test_curves_of_labels_are_drawn_towards_that_of_all() -> None:
    scores = np.linspace(-2, 2, 400)[:, None] + np.zeros((1, 2))
    truth = np.column_stack([scores[:, 0] > 0, np.zeros(400)]).astype(float)
    calibration = calibrate(scores, truth, np.array([[0, 0], [1, 0]], dtype=np.uint8))
    p = expit(calibration.log_odds(scores))
    assert 0.1 < p[-1, 1] < 0.5  # nobody has that label, but many have others at such a score
    assert p[-1, 0] > 0.6


def test_a_label_that_nothing_is_known_of_stays_undecided() -> None:
    labels = Y.astype(float)
    labels[:, 2] = np.nan
    with pytest.warns(UserWarning, match="no example"):
        model = classifier(n_rules=20).fit(X, labels)
    np.testing.assert_array_equal(model.predict_proba(X)[:, 2], 0.5)
    assert not model.predict(X, decode="hamming")[:, 2].any()
