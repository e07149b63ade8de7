"""The best constant is a minimum: no other scores that all examples have are better."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logit

from pyboomer.losses import FOR_LABELS, Loss, example_wise_logistic, label_wise_logistic
from pyboomer.reference import Setting, find_minimum

RNG = np.random.default_rng(0)
MANY = np.where(np.eye(12)[RNG.integers(0, 12, 100)] + (RNG.random((100, 12)) < 0.05) > 0, 1.0, -1.0)  # rare labels
WEIGHT = RNG.integers(1, 4, 100) / 2
UNKNOWN = (RNG.random(MANY.shape) < 0.8) * RNG.choice([0.5, 1.0, 2.0], MANY.shape)


def rate(p: np.ndarray, setting: Setting, label_weight: np.ndarray | None) -> float:
    values = setting.loss.weighted_value(MANY, np.tile(p, (len(MANY), 1)), label_weight)
    return float(WEIGHT @ values + setting.l1 * np.abs(p).sum() + setting.l2 / 2 * p @ p)


@pytest.mark.parametrize("label_weight", [None, UNKNOWN], ids=["known", "weighted"])
@pytest.mark.parametrize("l1", [0.0, 8.0])
@pytest.mark.parametrize("name", FOR_LABELS)
def test_no_other_constant_is_better(name: str, l1: float, label_weight: np.ndarray | None) -> None:
    setting = Setting(FOR_LABELS[name], l1=l1)
    p, gain = find_minimum(MANY, setting, WEIGHT, label_weight)
    best = rate(p, setting, label_weight)
    assert gain == pytest.approx(rate(0 * p, setting, label_weight) - best)
    for scale in (1e-2, 1e-4):
        others = p + scale * RNG.normal(size=(200, len(p)))
        assert min(rate(q, setting, label_weight) for q in others) >= best
    found = minimize(lambda q: rate(q, setting, label_weight), p, method="Powell", options={"maxiter": 3})
    assert found.fun >= best * (1 - 1e-9)


def test_rare_labels_have_their_log_odds() -> None:
    share = (MANY > 0).mean(axis=0)
    p, _ = find_minimum(MANY, Setting(label_wise_logistic, l2=0.0), np.ones(100), None)
    np.testing.assert_allclose(p, logit(share), rtol=1e-9)


def test_exclusive_labels_have_the_scores_that_are_worked_out_by_hand() -> None:
    # K exclusive labels, equally frequent: the loss is log(1 + exp(-f) + (K - 1) exp(f)), least at f = -log(K - 1) / 2
    Y = 2 * np.eye(10) - 1
    p, gain = find_minimum(Y, Setting(example_wise_logistic, l2=0.0), np.ones(10), None)
    np.testing.assert_allclose(p, -np.log(9) / 2, rtol=1e-9)
    assert gain == pytest.approx(10 * (np.log(11) - np.log(1 + 2 * 3)))


def test_a_label_that_nobody_has_gets_a_finite_score_without_regularisation() -> None:
    Y = np.where(np.arange(12) == 3, -1.0, MANY)
    for loss in (label_wise_logistic, example_wise_logistic):
        p, _ = find_minimum(Y, Setting(loss, l2=0.0), WEIGHT, None)
        assert -60 < p[3] < -10


def test_l1_regularisation_leaves_scores_of_exactly_0() -> None:
    Y = np.where(np.arange(100)[:, None] < [50, 52, 90], 1.0, -1.0)  # gradients of 0, 2 and 40
    p, _ = find_minimum(Y, Setting(label_wise_logistic, l1=5.0, l2=0.0), np.ones(100), None)
    assert p[0] == p[1] == 0 < p[2]
    np.testing.assert_allclose(p[2], logit(0.85))  # where the gradient, 100 (P - 0.9), is -5


def test_the_loss_never_rises_though_a_step_overshoots() -> None:
    """Curvature that is far too small: each step has to be halved."""
    steep = Loss(
        "steep", "diagonal", lambda Y, F: ((F - Y) ** 4).sum(axis=1), lambda Y, F: (4 * (F - Y) ** 3, 0.01 + 0 * F)
    )
    p, gain = find_minimum(MANY[:, :2], Setting(steep, l2=0.0), WEIGHT, None)
    assert gain > 0
    near = [(WEIGHT @ (p[k] + d - MANY[:, k]) ** 4) for k in range(2) for d in (0, 0.05, -0.05)]
    assert near[0] < min(near[1:3])
    assert near[3] < min(near[4:])
