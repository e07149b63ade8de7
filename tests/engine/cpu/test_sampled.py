"""Small samples are learned from without a look at the rest, and the rules are the same."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pyboomer import BoomerClassifier
from pyboomer.engine.cpu import engines, sampled
from pyboomer.engine.cpu.sampled import MOST, Covered, multiply_chunks, sum_loss, write_statistics

SETTINGS: dict[str, Any] = {
    "loss": "label-wise-logistic",
    "n_rules": 20,
    "learning_rate": 0.3,
    "max_samples": 0.1,
    "max_conditions": 4,
    "max_bins": 16,
    "random_state": 2,
}


def make_data() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Numbers, categories, missing values, unknown labels and weights, some of them 0; more than one chunk."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(9000, 4))
    X[:, 2] = rng.integers(0, 4, size=len(X))
    X[rng.random(X.shape) < 0.05] = np.nan
    F = np.nan_to_num(np.column_stack([X[:, 0] - X[:, 3], X[:, 2] == 1, X[:, 2] - X[:, 1]]))
    Y = (F + rng.normal(scale=0.5, size=F.shape) > 0).astype(float)
    Y[rng.random(Y.shape) < 0.02] = np.nan
    return X, Y, rng.integers(0, 3, size=len(X)).astype(float)


@pytest.mark.parametrize("sampling", ["with-replacement", "without-replacement"])
def test_rules_are_those_of_statistics_that_are_kept_up_to_date(sampling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y, weight = make_data()

    def learn(**settings: Any) -> BoomerClassifier:
        model = BoomerClassifier(**SETTINGS, **settings, sampling=sampling, categorical_features=[2])
        return model.fit(X, Y, sample_weight=weight)

    one, two = learn(), learn(n_jobs=2)
    assert one.rules_ == two.rules_
    monkeypatch.setattr(engines, "suits", lambda *_: False)
    kept = learn()
    assert {"!=", "=="} & {c.operator for rule in kept.rules_ for c in rule.body}
    for name in ("condition_features", "condition_operators", "condition_values", "coverage"):
        np.testing.assert_array_equal(getattr(one.rules_, name), getattr(kept.rules_, name))
    np.testing.assert_allclose(one.rules_.head_scores, kept.rules_.head_scores, rtol=1e-4, atol=1e-6)
    assert one.training_facts_["loss"] == pytest.approx(kept.training_facts_["loss"], rel=1e-6)


def test_a_large_sample_keeps_statistics_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled.SampledSteps, "begin", None)
    X, Y, _ = make_data()
    BoomerClassifier(**SETTINGS | {"max_samples": 0.5, "n_rules": 3}).fit(X, Y)


def test_odds_stay_finite_and_keep_their_sign() -> None:
    odds = np.array([[1, -1, 0, 1, -1, 1, -1, 2]], dtype=np.float32)
    covered = Covered(np.zeros(1, dtype=np.uint32), np.ones(1, dtype=np.int64), np.zeros((1, 16)), np.zeros(1))
    factors = np.array([1e25, 1e25, 1e25, 1e-25, 1e-25, 1.0, 1.0, 3.0])
    for _ in range(3):
        multiply_chunks(odds, covered, factors, 0, 1)
    np.testing.assert_allclose(odds[0], [MOST, -MOST, 0, 1 / MOST, -1 / MOST, 1, -1, 54], rtol=1e-6)
    statistics = np.empty((1, 16))
    write_statistics(odds, covered.rows, statistics)
    np.testing.assert_allclose(statistics[0, :8], [0, 1, 0, -1, 0, -0.5, 0.5, -1 / 55], atol=1e-6)
    np.testing.assert_allclose(statistics[0, 8:], [0, 0, 0, 0, 0, 0.25, 0.25, 54 / 55**2], atol=1e-6)
    values = [0, np.log(MOST), 0, np.log(MOST), 0, np.log(2), np.log(2), np.log(55 / 54)]
    assert sum_loss(odds, np.array([2.0])) == pytest.approx(2 * sum(values), rel=1e-6)
