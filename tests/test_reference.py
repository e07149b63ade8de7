"""The reference, checked by hand: examples small enough to be worked out on paper."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyboomer import BoomerClassifier
from pyboomer.columns.categories import encode, find_categories
from pyboomer.engine import sampling
from pyboomer.engine.sampling import count_features
from pyboomer.losses import example_wise_logistic, find_loss, label_wise_logistic
from pyboomer.reference import (
    ReferenceRule,
    Setting,
    covers,
    draw_examples,
    draw_features,
    draw_labels,
    find_head,
    learn_rules,
    predict_example_wise,
    predict_label_wise,
    predict_scores,
    refine_rule,
    solve_system,
    sum_candidates,
    sum_statistics,
)

# Two examples, two labels, scores 0, example-wise logistic loss: e = 1, S = 3 and g = -y / 3, hence
#   g1 = (-1, +1) / 3    H1 = diag(1, 1) / 3 - g1 g1^T = [[2, 1], [1, 2]] / 9
#   g2 = (-1, -1) / 3    H2 = diag(1, 1) / 3 - g2 g2^T = [[2, -1], [-1, 2]] / 9
PAIR = np.array([[1.0, -1.0], [1.0, 1.0]])
PAIR_G = np.array([[-1.0, 1.0], [-1.0, -1.0]]) / 3
PAIR_H = np.array([[[2.0, 1.0], [1.0, 2.0]], [[2.0, -1.0], [-1.0, 2.0]]]) / 9


def test_statistics_of_two_examples() -> None:
    g, a, b = example_wise_logistic.derivatives(PAIR, np.zeros((2, 2)))
    np.testing.assert_allclose(g, PAIR_G)
    np.testing.assert_allclose(a[:, :, None] * np.eye(2) - b[:, :, None] * b[:, None, :], PAIR_H)


def test_the_default_rule_of_two_examples() -> None:
    # sums: g = (-2/3, 0), H = diag(4/9, 4/9); l2 = 1: p = (2/3) / (13/9) = 6/13 and 0, gain = 1/2 * 2/3 * 6/13 = 2/13
    rules = learn_rules(np.zeros((2, 1)), PAIR, Setting(example_wise_logistic, n_rules=1, default_rule="newton"))
    np.testing.assert_allclose(rules[0].head, [6 / 13, 0.0], atol=1e-15)
    assert rules[0].gain == pytest.approx(2 / 13)


def test_the_default_rule_of_least_loss_of_two_examples() -> None:
    # with scores (p, 0), both examples have the loss log(2 + exp(-p)); l2 = 1: p = 2 exp(-p) / (2 + exp(-p))
    (rule,) = learn_rules(np.zeros((2, 1)), PAIR, Setting(example_wise_logistic, n_rules=1))
    p = rule.head[0]
    assert p == pytest.approx(2 * np.exp(-p) / (2 + np.exp(-p)))
    assert rule.head[1] == pytest.approx(0, abs=1e-15)
    assert rule.gain == pytest.approx(2 * np.log(3) - 2 * np.log(2 + np.exp(-p)) - p * p / 2)


def test_a_multi_label_head_of_one_example() -> None:
    # H1 + I = [[11, 1], [1, 11]] / 9 and -g1 = (1, -1) / 3: p = (c, -c) with c (11 - 1) / 9 = 1/3, so c = 3/10;
    # gain = 1/2 * (1/3 * 3/10 + 1/3 * 3/10) = 1/10
    head, gain = find_head(
        *sum_statistics(np.array([1.0, 0.0]), PAIR_G, PAIR_H), "multi", Setting(example_wise_logistic)
    )
    np.testing.assert_allclose(head, [0.3, -0.3])
    assert gain == pytest.approx(0.1)


def test_a_single_label_head_of_one_example() -> None:
    # each label alone: p = (1/3) / (2/9 + 1) = 3/11 in size, gain = 1/2 * 1/3 * 3/11 = 1/22; of equals the first
    setting = Setting(example_wise_logistic)
    sums = sum_statistics(np.array([1.0, 0.0]), PAIR_G, PAIR_H)
    head, gain = find_head(*sums, "single", setting)
    np.testing.assert_allclose(head, [3 / 11, 0.0])
    assert gain == pytest.approx(1 / 22)
    head, gain = find_head(*sums, "single", setting, labels=np.array([1]))
    np.testing.assert_allclose(head, [0.0, -3 / 11])


def test_a_head_weighs_its_examples() -> None:
    # weights 1 and 2: g = (-3, -1) / 3, H + I = [[15, -1], [-1, 15]] / 9; determinant 224/81:
    # p = (9/224) * [[15, 1], [1, 15]] (3, 1) / 3 = (46, 18) * 3/224
    head, _ = find_head(*sum_statistics(np.array([1.0, 2.0]), PAIR_G, PAIR_H), "multi", Setting(example_wise_logistic))
    np.testing.assert_allclose(head, [46 * 3 / 224, 18 * 3 / 224])


def test_three_rules_on_four_examples() -> None:
    # x = 1, 2, 3, 4 and y = -, -, +, +; label-wise logistic loss, l2 = 1, learning rate 1/2, no sampling.
    # Default rule: g = +1/2 +1/2 -1/2 -1/2 = 0: head 0, gain 0.
    # Rule 1, at scores 0 (h = 1/4 each), gain = 1/2 g^2 / (h + 1):
    #   x <= 1.5: g = 1/2, h = 1/4: 1/10       x > 1.5: g = -1/2, h = 3/4: 1/14
    #   x <= 2.5: g = 1,   h = 1/2: 1/3        x > 2.5: g = -1,   h = 1/2: 1/3, a tie that the first wins
    #   x <= 3.5 and x > 3.5 mirror the first line.
    #   Among x <= 2.5 a second condition leaves one example, gain 1/10 < 1/3: stop.
    #   Head: -1 / (3/2) = -2/3, times 1/2.
    # Rule 2: the examples with x > 2.5 still have scores 0 and gain 1/3; the others less now. Head +1/3.
    X, Y = np.arange(1.0, 5.0)[:, None], np.array([[-1.0], [-1.0], [1.0], [1.0]])
    rules = learn_rules(X, Y, Setting(label_wise_logistic, n_rules=3, learning_rate=0.5, bootstrap=False))
    assert [rule.body for rule in rules] == [(), ((0, "<=", 2.5),), ((0, ">", 2.5),)]
    np.testing.assert_allclose([rule.head[0] for rule in rules], [0.0, -1 / 3, 1 / 3], atol=1e-15)
    np.testing.assert_allclose([rule.gain for rule in rules], [0.0, 1 / 3, 1 / 3], atol=1e-15)
    np.testing.assert_allclose(predict_scores(rules, X)[:, 0], [-1 / 3, -1 / 3, 1 / 3, 1 / 3])


def test_a_second_condition_is_added_only_if_it_gains() -> None:
    # x1 and x2 in {0, 1}, three examples each; relevant only where both are 1. Label-wise loss, scores 0, l2 = 1:
    #   x1 > 0.5 (or x2): g = 3/2 - 3/2 = 0, gain 0;   x1 <= 0.5: g = 6/2 = 3, h = 6/4: 1/2 * 9 / (5/2) = 9/5.
    #   A second condition x2 within x1 <= 0.5: g = 3/2, h = 3/4: 1/2 * (9/4) / (7/4) = 9/14 < 9/5: stop.
    X = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], 3, axis=0)
    Y = np.where(X.sum(axis=1, keepdims=True) == 2, 1.0, -1.0)
    g, h = label_wise_logistic.derivatives(Y, np.zeros(Y.shape))
    setting = Setting(label_wise_logistic, bootstrap=False)
    assert refine_rule(X, np.ones(12), g, h[:, :, None], setting, 1)[0] == ((0, "<=", 0.5),)
    # With weight 5 on the relevant examples: x1 > 0.5 has g = 3/2 - 15/2 = -6, h = 18/4: 1/2 * 36 / (11/2) = 36/11,
    # more than 9/5; then x2 > 0.5 within it has g = -15/2, h = 15/4: 1/2 * (225/4) / (19/4) = 225/38 > 36/11.
    weight = np.where(Y[:, 0] > 0, 5.0, 1.0)
    assert refine_rule(X, weight, g, h[:, :, None], setting, 1)[0] == ((0, ">", 0.5), (1, ">", 0.5))


def test_candidates_of_a_numeric_feature() -> None:
    x, w = np.array([3.0, 1.0, 3.0, 2.0]), np.array([1.0, 2.0, 1.0, 1.0])
    g = np.array([[1.0], [10.0], [100.0], [1000.0]])
    conditions, G, H, W = sum_candidates(5, x, w, g, g[:, :, None], nominal=False)
    assert conditions == [(5, "<=", 1.5), (5, ">", 1.5), (5, "<=", 2.5), (5, ">", 2.5)]
    np.testing.assert_array_equal(G[:, 0], [20.0, 1101.0, 1020.0, 101.0])
    np.testing.assert_array_equal(H[:, 0, 0], G[:, 0])
    np.testing.assert_array_equal(W, [2.0, 3.0, 3.0, 2.0])


def test_candidates_of_a_nominal_feature() -> None:
    x, w = np.array([2.0, 0.0, 2.0]), np.ones(3)
    g = np.array([[1.0], [10.0], [100.0]])
    conditions, G, _, W = sum_candidates(0, x, w, g, g[:, :, None], nominal=True)
    assert conditions == [(0, "==", 0.0), (0, "!=", 0.0), (0, "==", 2.0), (0, "!=", 2.0)]
    np.testing.assert_array_equal(G[:, 0], [10.0, 101.0, 101.0, 10.0])
    np.testing.assert_array_equal(W, [1.0, 2.0, 2.0, 1.0])


def test_a_feature_of_one_value_has_no_candidates() -> None:
    for nominal in (False, True):
        assert sum_candidates(0, np.ones(3), np.ones(3), np.ones((3, 1)), np.ones((3, 1, 1)), nominal)[0] == []


@pytest.mark.parametrize("operator", ["<=", ">", "==", "!="])
def test_a_missing_value_meets_no_condition(operator: str) -> None:
    x = np.array([[np.nan], [0.0], [1.0]])
    covered = covers(((0, operator, 0.0),), x)
    assert not covered[0]
    assert covered[1:].sum() == 1


def test_a_body_is_a_conjunction() -> None:
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [np.nan, 1.0]])
    np.testing.assert_array_equal(covers((), X), [True, True, True, True])
    np.testing.assert_array_equal(covers(((0, "<=", 0.5), (1, ">", 0.5)), X), [False, True, False, False])


def test_missing_values_take_no_part_in_candidates() -> None:
    # The example whose value is missing would make x > 0.5 the better side; it may not be counted there.
    X = np.array([[0.0], [1.0], [np.nan], [np.nan]])
    Y = np.array([[-1.0], [1.0], [1.0], [1.0]])
    rules = learn_rules(X, Y, Setting(label_wise_logistic, n_rules=2, l2=100.0, bootstrap=False))
    assert rules[1].body == ((0, "<=", 0.5),)


def test_a_degenerate_pivot_leaves_the_system() -> None:
    # label 1 has no curvature: score and gain 0; the others are solved as if it were not there
    g = np.array([[1.0, 5.0, -2.0]])
    H = np.array([[[2.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 2.0]]])
    p, gain = solve_system(g, H, Setting(label_wise_logistic, l2=0.0))
    np.testing.assert_allclose(p, [[-4 / 3, 0.0, 5 / 3]])
    assert gain[0] == pytest.approx(0.5 * (4 / 3 + 10 / 3))


def test_scores_are_summed_over_the_rules_that_cover_an_example() -> None:
    rules = [
        ReferenceRule((), np.array([0.5, -0.5])),
        ReferenceRule(((0, "<=", 1.0),), np.array([1.0, 0.0])),
        ReferenceRule(((0, ">", 0.0), (0, "<=", 1.0)), np.array([0.0, 2.0])),
    ]
    scores = predict_scores(rules, np.array([[0.0], [1.0], [2.0], [np.nan]]))
    np.testing.assert_array_equal(scores, [[1.5, -0.5], [1.5, 1.5], [0.5, -0.5], [0.5, -0.5]])


def test_label_wise_prediction_is_the_sign() -> None:
    np.testing.assert_array_equal(predict_label_wise(np.array([[2.0, -0.1, 0.0]])), [[1.0, -1.0, -1.0]])


def test_example_wise_prediction_is_the_known_vector_of_least_loss() -> None:
    # scores (2, 1): (+, -) has loss log(1 + e^-2 + e^1), (-, +) has log(1 + e^2 + e^-1): the first;
    # (+, +), which the signs ask for, is not known
    known = np.array([[-1.0, 1.0], [1.0, -1.0], [-1.0, 1.0]])
    scores = np.array([[2.0, 1.0], [1.0, 2.0], [-1.0, -3.0]])
    prediction = predict_example_wise(scores, known, example_wise_logistic)
    np.testing.assert_array_equal(prediction, [[1.0, -1.0], [-1.0, 1.0], [1.0, -1.0]])


def test_equal_losses_are_decided_by_frequency_then_by_order() -> None:
    a, b, c = [1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]
    zero = np.zeros((1, 2))
    np.testing.assert_array_equal(predict_example_wise(zero, np.array([a, b, b, c]), example_wise_logistic), [b])
    np.testing.assert_array_equal(predict_example_wise(zero, np.array([c, a, b]), example_wise_logistic), [c])


# --- Draws ------------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**31), rule=st.integers(1, 10**6), n=st.integers(1, 300), data=st.data())
def test_the_reference_draws_what_the_engine_draws(seed: int, rule: int, n: int, data: st.DataObject) -> None:
    size, step = data.draw(st.integers(1, n)), data.draw(st.integers(1, 50))
    fixed = tuple(sorted(data.draw(st.sets(st.integers(0, n - 1), max_size=n - 1))))
    setting = Setting(
        example_wise_logistic,
        n_samples=size,
        n_drawn_features=size,
        n_drawn_labels=size,
        fixed_features=fixed,
        seed=seed,
    )
    counts = np.empty(n)
    sampling.draw_examples(seed, rule, size, sampling.NO_STRATA, counts)
    np.testing.assert_array_equal(draw_examples(n, setting, rule), counts)
    features = sampling.make_draw(n, size, np.array(fixed, dtype=np.int64))
    sampling.fill_with_draw(seed, rule, step, features)
    np.testing.assert_array_equal(draw_features(n, setting, rule, step), features.drawn)
    labels = sampling.make_draw(n, size)
    sampling.fill_with_labels(seed, rule, False, labels)
    np.testing.assert_array_equal(draw_labels(n, setting, rule), labels.drawn)
    label = sampling.make_draw(n, 1)
    sampling.fill_with_labels(seed, rule, True, label)
    np.testing.assert_array_equal(draw_labels(n, replace(setting, n_drawn_labels=0), rule), label.drawn)


@given(seed=st.integers(0, 2**31), rule=st.integers(1, 10**6), groups=st.lists(st.integers(1, 20), min_size=1))
def test_the_reference_draws_from_strata_what_the_engine_draws(seed: int, rule: int, groups: list[int]) -> None:
    ends = np.cumsum(groups)
    n = int(ends[-1])
    strata = sampling.Strata(np.random.default_rng(seed).permutation(n).astype(np.uint32), ends)
    size = max(1, n * 2 // 3)
    counts = np.empty(n)
    sampling.draw_examples(seed, rule, size, strata, counts)
    setting = Setting(example_wise_logistic, n_samples=size, strata=strata, seed=seed)
    np.testing.assert_array_equal(draw_examples(n, setting, rule), counts)


# --- The paper on unseen examples -------------------------------------------------------------------------------------


def draw_mixed(rng: np.random.Generator, n: int, discrete: bool) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, two nominal features, missing values; and three labels."""
    numbers = rng.integers(0, 6, (n, 4)).astype(float) if discrete else rng.normal(size=(n, 4))
    X = np.column_stack([numbers, rng.integers(0, 4, (n, 2))])
    vote = X[:, :3] - X[:, :3].mean(axis=0) + (X[:, 4:5] == 1) - (X[:, 5:] == 2)
    Y = (vote + rng.normal(size=vote.shape) > 0).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, Y


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    "options",
    [{}, {"head": "single"}, {"loss": "label-wise-logistic"}, {"loss": "label-wise-logistic", "head": "single"}],
    ids=str,
)
def test_the_settings_of_the_paper_give_its_scores_on_unseen_examples(
    options: dict[str, Any], seed: int, discrete: bool
) -> None:
    rng = np.random.default_rng(seed)
    X, Y = draw_mixed(rng, 60, discrete)
    unseen = draw_mixed(rng, 300, discrete)[0]
    model = BoomerClassifier.paper(
        search="exact", n_rules=30, categorical_features=[4, 5], random_state=seed, **options
    ).fit(X, Y)
    setting = Setting(
        loss=find_loss(model.loss),
        head=model.head,
        default_rule=model.default_rule,
        n_rules=30,
        learning_rate=model.learning_rate,
        l2=model.l2,
        n_drawn_features=count_features(model.max_features, X.shape[1]),
        nominal=(4, 5),
        seed=model.training_facts_["seed"],
    )
    categories = find_categories(X, np.isin(np.arange(6), (4, 5)))
    rules = learn_rules(np.asarray(encode(X, categories)), 2 * Y - 1, setting)
    expected = predict_scores(rules, np.asarray(encode(unseen, categories)))
    np.testing.assert_allclose(model.decision_function(unseen), expected, rtol=0, atol=1e-9)
