"""Small samples are learned from without a look at the rest, and the rules are the same."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pyboomer import BoomerClassifier
from pyboomer.engine.cpu import engines, rounds
from pyboomer.engine.fixed import Scales
from pyboomer.engine.heads import Penalty
from pyboomer.engine.odds import (
    MOST,
    Bodies,
    RoundHeads,
    find_factors,
    make_round_sums,
    make_scratch,
    multiply_odds,
    solve_heads,
    sum_losses,
    sum_round,
    write_statistics,
    write_terms,
)
from pyboomer.engine.statistics import Diagonal

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
    monkeypatch.setattr(engines, "suits_odds", lambda *_: False)
    kept = learn()
    assert {"!=", "=="} & {c.operator for rule in kept.rules_ for c in rule.body}
    for name in ("condition_features", "condition_operators", "condition_values", "coverage"):
        np.testing.assert_array_equal(getattr(one.rules_, name), getattr(kept.rules_, name))
    np.testing.assert_allclose(one.rules_.head_scores, kept.rules_.head_scores, rtol=1e-4, atol=1e-6)
    assert one.training_facts_["loss"] == pytest.approx(kept.training_facts_["loss"], rel=1e-6)


def test_a_large_sample_keeps_statistics_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds.HostOdds, "learn_bodies", None)
    X, Y, _ = make_data()
    BoomerClassifier(**SETTINGS | {"max_samples": 0.6, "n_rules": 3}).fit(X, Y)


@pytest.mark.parametrize("rules_per_round", [1, 5])
def test_rounds_are_those_of_statistics_that_are_kept_up_to_date(
    rules_per_round: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyboomer.engine.rounds.GROWTH", 1)
    X, Y, weight = make_data()

    def learn() -> BoomerClassifier:
        model = BoomerClassifier(**SETTINGS, rules_per_round=rules_per_round, categorical_features=[2])
        return model.fit(X, Y, sample_weight=weight)

    by_odds = learn()
    monkeypatch.setattr(engines, "suits_odds", lambda *_: False)
    kept = learn()
    assert [rule.body for rule in by_odds.rules_] == [rule.body for rule in kept.rules_]
    np.testing.assert_allclose(by_odds.rules_.head_scores, kept.rules_.head_scores, rtol=1e-4, atol=1e-6)


def test_odds_stay_finite_and_keep_their_sign() -> None:
    odds = np.array([[1, -1, 0, 1, -1, 1, -1, 2]], dtype=np.float32)
    factors = np.array([[1e25, 1e25, 1e25, 1e-25, 1e-25, 1.0, 1.0, 3.0]])
    masks, scratch = np.ones(1, dtype=np.uint32), make_scratch(8)
    for _ in range(3):
        multiply_odds(odds, masks, np.uint32(1), factors, scratch, 0, 1)
    np.testing.assert_allclose(odds[0], [MOST, -MOST, 0, 1 / MOST, -1 / MOST, 1, -1, 54], rtol=1e-6)
    statistics, terms = np.empty((1, 16)), np.empty((1, 16), dtype=np.int32)
    row = np.zeros(1, dtype=np.uint32)
    write_statistics(odds, row, statistics)
    np.testing.assert_allclose(statistics[0, :8], [0, 1, 0, -1, 0, -0.5, 0.5, -1 / 55], atol=1e-6)
    np.testing.assert_allclose(statistics[0, 8:], [0, 0, 0, 0, 0, 0.25, 0.25, 54 / 55**2], atol=1e-6)
    write_terms(odds, row, np.array([2.0]), 2.0**20, terms)
    np.testing.assert_allclose(terms / 2.0**21, statistics, atol=2.0**-21)
    values = [0, np.log(MOST), 0, np.log(MOST), 0, np.log(2), np.log(2), np.log(55 / 54)]
    none = np.zeros(1, dtype=np.uint32), np.uint32(0), factors
    loss = sum_losses(odds, *none, np.array([2.0]), 2.0**30, 0, 1) / 2.0**30
    assert loss == pytest.approx(2 * sum(values), rel=1e-6)


def test_the_loss_with_scores_that_are_to_be_added_is_that_with_scores_that_have_been() -> None:
    rng = np.random.default_rng(0)
    n = 200
    odds = (np.exp(rng.normal(size=(n, 8))) * rng.choice([-1, 0, 1], size=(n, 8))).astype(np.float32)
    masks, which = rng.integers(0, 2**5, n).astype(np.uint32), np.uint32(0b10110)
    factors, weight = np.exp(rng.normal(size=(5, 8))), rng.random(n)
    before = odds.copy()
    loss = sum_losses(odds, masks, which, factors, weight, 2.0**40, 0, n)
    np.testing.assert_array_equal(odds, before)
    multiply_odds(odds, masks, which, factors, make_scratch(8), 0, n)
    assert sum_losses(odds, masks, np.uint32(0), factors, weight, 2.0**40, 0, n) == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rules_do_not_depend_on_whether_the_loss_is_asked_for(n_jobs: int) -> None:
    X, Y, weight = make_data()

    def learn(**options: Any) -> BoomerClassifier:
        model = BoomerClassifier(**SETTINGS | {"n_rules": 90}, rules_per_round=32, n_jobs=n_jobs, **options)
        return model.fit(X, Y, sample_weight=weight)

    losses: list[float] = []
    asked = learn(callbacks=lambda progress: losses.append(progress.loss))
    assert asked.rules_ == learn().rules_
    assert len(set(losses)) == len(losses) == 90


def test_factors_of_any_scores_are_finite_and_not_zero() -> None:
    factors = find_factors(8, np.array([[1e5, -1e5, 0.0]]))
    assert np.isfinite(factors).all()
    assert (factors > 0).all()
    assert (factors[0, 2:] == 1).all()


def test_the_heads_of_a_round_are_fitted_one_after_another_to_first_order() -> None:
    """The sums of pairs of rules stand for gradients that change with each head."""
    rng = np.random.default_rng(0)
    n, k, n_rules, rate = 5000, 11, 6, 0.4
    codes = rng.integers(0, 255, size=(3, n)).astype(np.uint8)
    odds = (np.exp(rng.normal(size=(n, 16))) * rng.choice([-1, 1], size=(n, 16))).astype(np.float32)
    odds[:, k:] = 0
    weight = rng.choice([0.5, 1.0, 3.0], n)
    conditions = np.column_stack(
        [rng.integers(0, 3, 12), rng.integers(0, 4, 12), rng.integers(0, 255, 12), np.zeros(12)]
    )
    bodies = Bodies(conditions.astype(float), np.arange(0, 13, 2))
    changes = np.zeros((n, 16))
    changes[:, :k] = rng.normal(size=(n, k))
    masks, sums, scales = np.zeros(n, dtype=np.uint32), make_round_sums(n_rules, k), Scales(2.0**40, 2.0**40)
    for first, last in ((0, 4096), (4096, n)):
        sum_round(codes, bodies, odds, weight, scales, changes, masks, make_scratch(k), first, last, sums)
    heads = RoundHeads(np.empty((n_rules, k)), np.empty(n_rules), np.empty(n_rules))
    solve_heads(Diagonal(k), sums, scales, Penalty(0.0, 1.0), rate, np.empty(32), heads)

    statistics = np.empty((n, 32))
    write_statistics(odds, np.arange(n, dtype=np.uint32), statistics)
    g, h = statistics[:, :k], statistics[:, 16 : 16 + k]
    g += h * changes[:, :k]
    tests = [np.less_equal, np.greater, np.equal, np.not_equal]
    for r in range(n_rules):
        covered = np.ones(n, dtype=bool)
        for feature, operator, value, _ in conditions[2 * r : 2 * r + 2]:
            covered &= tests[int(operator)](codes[int(feature)], value)
        assert (covered == (masks >> r & 1).astype(bool)).all()
        own_g, own_h = weight[covered] @ g[covered], weight[covered] @ h[covered]
        np.testing.assert_allclose(heads.scores[r], -rate * own_g / (own_h + 1), atol=1e-9)
        np.testing.assert_allclose(heads.gain[r], 0.5 * (own_g**2 / (own_h + 1)).sum(), rtol=1e-9)
        assert heads.coverage[r] == pytest.approx(weight[covered].sum())
        g[covered] += h[covered] * heads.scores[r]
