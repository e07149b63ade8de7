"""Rounds follow from the number of a rule alone, and the reference has them."""

import numpy as np
import pytest

from pyboomer.engine.rounds import find_round
from pyboomer.losses import squared_error
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
