"""Rounds follow from the number of a rule alone, and the reference has them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_boosting import KINDS, coupled_quadratic, dense_logistic, make_problem, outer_logistic

from pyboomer.engine.rounds import find_round
from pyboomer.losses import Loss, squared_error
from pyboomer.reference import Setting, count_rules, covers, learn_rules


@pytest.mark.parametrize("most", [1, 3, 32])
def test_rounds_follow_one_another_and_grow_up_to_the_most(most: int) -> None:
    setting = Setting(squared_error, rules_per_round=most)
    rule, sizes = 1, []
    while rule < 3000:
        first, size = find_round(rule, most)
        assert first == rule
        assert size == count_rules(rule, setting)
        assert {find_round(rule + i, most) for i in range(size)} == {(first, size)}
        sizes.append(size)
        rule += size
    assert sizes == sorted(sizes)
    assert sizes[0] == 1
    assert sizes[-1] == most


def test_heads_of_a_round_are_those_of_statistics_that_are_up_to_date_if_the_loss_is_quadratic() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 3)), rng.normal(size=(60, 2))
    rules = learn_rules(X, Y, Setting(squared_error, n_rules=130, rules_per_round=2, max_conditions=2))
    scores = np.zeros(Y.shape)
    for rule in rules:
        covered = covers(rule.body, X)
        step = (Y - scores)[covered].sum(axis=0) / (covered.sum() + 1.0)
        np.testing.assert_allclose(rule.head, step if not rule.body and rule is rules[0] else 0.3 * step, atol=1e-12)
        scores[covered] += rule.head


# --- The engine of this process ---------------------------------------------------------------------------------------


@pytest.fixture
def early_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds grow with each rule."""
    monkeypatch.setattr("pyboomer.engine.rounds.GROWTH", 1)
    monkeypatch.setattr("pyboomer.reference.GROWTH", 1)


OPTIONS: dict[str, dict[str, Any]] = {
    "all labels": {},
    "without l2": {"l2": 0.0},
    "l1": {"l1": 0.5},
    "without sampling": {"bootstrap": False},
    "some labels": {"head": 2},
    "a share": {"head": 0.5},
    "drawn labels": {"n_drawn_labels": 2},
    "labels in turn": {"n_drawn_labels": 0},
    "at most three": {"rules_per_round": 3},
}


@pytest.mark.usefixtures("early_rounds")
@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_learns_the_rounds_of_the_reference(
    check_oracle: Callable[..., Any], variant: dict[str, Any], kind: str
) -> None:
    X, Y, nominal = make_problem(kind)
    check_oracle(X, Y, nominal=nominal, n_rules=20, rules_per_round=8, n_drawn_features=3, **variant)


@pytest.mark.usefixtures("early_rounds")
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_whatever_the_options(
    check_oracle: Callable[..., Any], variant: dict[str, Any], options: dict[str, Any]
) -> None:
    X, Y, nominal = make_problem("mixed")
    given = {"n_rules": 20, "rules_per_round": 8, "n_drawn_features": 3, **variant, **options}
    check_oracle(X, Y, nominal=nominal, **given)


@pytest.mark.usefixtures("early_rounds")
@pytest.mark.parametrize("loss", [dense_logistic, outer_logistic, coupled_quadratic(4)], ids=lambda loss: loss.name)
def test_whatever_the_loss(check_oracle: Callable[..., Any], loss: Loss) -> None:
    X, Y, _ = make_problem("numeric")
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(X))
    check_oracle(X, Y, n_rules=14, rules_per_round=4, n_drawn_features=3, loss=loss, sample_weight=weights)


@pytest.mark.usefixtures("early_rounds")
@pytest.mark.parametrize("chunks", [[1] * 19, [2, 5, 7, 5], [19]], ids=str)
def test_a_chunk_may_end_in_a_round(learn: Callable[..., Any], variant: dict[str, Any], chunks: list[int]) -> None:
    X, Y, nominal = make_problem("mixed")
    options = {"n_rules": 20, "nominal": nominal, "rules_per_round": 8, **variant}
    for rule, expected in zip(learn(X, Y, chunks=chunks, **options), learn(X, Y, **options), strict=True):
        assert rule.body == expected.body
        np.testing.assert_array_equal(rule.head, expected.head)
