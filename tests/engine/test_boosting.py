"""The engine learns the rules of the reference, and obeys the laws of the algorithm."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import softmax

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset, make_synthetic
from pyboomer.engine.sampling import count_features
from pyboomer.losses import Loss, example_wise_logistic, label_wise_logistic
from pyboomer.reference import ReferenceRule, covers

Array = NDArray[np.float64]
Learn = Callable[..., list[ReferenceRule]]
Check = Callable[..., None]

squared_error = Loss(
    "squared error",
    "diagonal",
    value=lambda Y, F: ((Y - F) ** 2).sum(axis=1),
    derivatives=lambda Y, F: (2 * (F - Y), np.full(F.shape, 2.0)),
)


def _dense_derivatives(Y: Array, F: Array) -> tuple[Array, Array]:
    g, a, b = example_wise_logistic.derivatives(Y, F)
    return g, a[:, :, None] * np.eye(Y.shape[1]) - b[:, :, None] * b[:, None, :]


dense_logistic = Loss("dense logistic", "dense", example_wise_logistic.value, _dense_derivatives)
outer_logistic = Loss(
    "outer logistic", "diagonal-minus-outer", example_wise_logistic.value, example_wise_logistic.derivatives
)


def _softmax_derivatives(Y: Array, F: Array) -> tuple[Array, Array, Array]:
    relevant = (Y > 0) / np.maximum((Y > 0).sum(axis=1, keepdims=True), 1)
    p = softmax(F, axis=1)
    return p - relevant, p, p


# an outer shape whose b is not the gradient; its value is not needed to learn
softmax_loss = Loss("softmax", "diagonal-minus-outer", lambda Y, F: 0 * (Y - F)[:, 0], _softmax_derivatives)


def coupled_quadratic(K: int) -> Loss:
    """A dense loss: quadratic, with labels that pull at each other."""
    M = np.eye(K) + 0.3

    def derivatives(Y: Array, F: Array) -> tuple[Array, Array]:
        return (F - Y) @ M, np.broadcast_to(M, (len(F), K, K)).copy()

    return Loss("coupled", "dense", lambda Y, F: 0.5 * np.einsum("nk,kj,nj->n", F - Y, M, F - Y), derivatives)


def make_problem(kind: str, n: int = 60, n_features: int = 6, n_labels: int = 4, seed: int = 0) -> tuple[Any, ...]:
    """Random X, labels that depend on it, and the indices of the nominal features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    if kind == "ties":
        X = rng.integers(0, 3, size=(n, n_features)).astype(float)
    truth = X @ rng.normal(size=(n_features, n_labels)) + rng.normal(size=(n, n_labels))
    Y = np.where(truth > 0.3, 1.0, -1.0)
    nominal: tuple[int, ...] = ()
    if kind == "nominal":
        X, nominal = np.floor(3 * X) / 2, tuple(range(n_features))
    elif kind == "mixed":
        X[:, ::2], nominal = np.floor(2 * X[:, ::2]), tuple(range(0, n_features, 2))
    elif kind == "missing":
        X[rng.random(X.shape) < 0.3] = np.nan
        X[:, 1] = np.nan
    elif kind == "duplicates":
        X, Y = np.repeat(X[: n // 3], 3, axis=0), np.repeat(Y[: n // 3], 3, axis=0)
    elif kind == "sparse":
        X[rng.random(X.shape) < 0.7] = 0.0
        X[:, 0] = np.round(X[:, 0])
        X[rng.random(X.shape) < 0.1] = np.nan
        X, nominal = sp.csr_array(X), (0,)
    return X, Y, nominal


KINDS = ("numeric", "nominal", "mixed", "sparse", "missing", "ties", "duplicates")


# --- The oracle -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("l2", [0.0, 0.25, 1.0, 16.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_learns_the_rules_of_the_reference(
    check_oracle: Learn, variant: dict[str, Any], kind: str, l2: float
) -> None:
    X, Y, nominal = make_problem(kind)
    rules = check_oracle(X, Y, nominal=nominal, l2=l2, n_drawn_features=3, **variant)
    assert all(rule.body for rule in rules[1:])


@pytest.mark.parametrize(
    "options",
    [
        {"bootstrap": False},
        {"max_conditions": 1},
        {"max_conditions": 2, "bootstrap": False},
        {"min_coverage": 10.0},
        {"learning_rate": 1.0},
        {"n_drawn_features": 1, "seed": 7},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["mixed", "sparse", "ties"])
def test_the_engine_follows_the_reference_whatever_the_options(
    check_oracle: Learn, variant: dict[str, Any], kind: str, options: dict[str, Any]
) -> None:
    X, Y, nominal = make_problem(kind, seed=1)
    check_oracle(X, Y, nominal=nominal, **variant, **options)


@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize("kind", ["numeric", "sparse", "missing"])
def test_the_engine_follows_the_reference_with_weights(
    check_oracle: Learn, variant: dict[str, Any], kind: str, bootstrap: bool
) -> None:
    X, Y, nominal = make_problem(kind, seed=2)
    weight = np.random.default_rng(0).choice([0.0, 0.3, 1.0, 2.5], size=len(Y))
    check_oracle(X, Y, nominal=nominal, sample_weight=weight, bootstrap=bootstrap, **variant)


@pytest.mark.parametrize("l2", [0.0, 1.0])
def test_a_label_that_is_unknown_on_one_side_of_a_threshold_has_no_gain_there(
    check_oracle: Learn, variant: dict[str, Any], l2: float
) -> None:
    rng = np.random.default_rng(0)
    X, Y = np.arange(16.0)[:, None], rng.choice([-1.0, 1.0], size=(16, 3))
    label_weight = np.ones(Y.shape)
    label_weight[8:, 0] = label_weight[:8, 1] = 0.0  # all curvature is on one side, and none at all on the other
    check_oracle(X, Y, label_weight=label_weight, l2=l2, bootstrap=False, **variant)


@pytest.mark.parametrize("head", ["multi", "single"])
@pytest.mark.parametrize(
    "loss", [dense_logistic, outer_logistic, softmax_loss, squared_error], ids=lambda loss: loss.name
)
@pytest.mark.parametrize("kind", ["mixed", pytest.param("sparse", marks=pytest.mark.slow)])
def test_the_engine_follows_the_reference_with_a_users_loss(
    check_oracle: Learn, kind: str, loss: Loss, head: str
) -> None:
    X, Y, nominal = make_problem(kind, seed=3)
    check_oracle(X, Y, nominal=nominal, loss=loss, head=head, n_rules=6)


@pytest.mark.parametrize("head", ["multi", "single"])
@pytest.mark.parametrize("loss", [dense_logistic, outer_logistic], ids=lambda loss: loss.name)
def test_the_built_in_loss_given_as_a_users_loss_gives_the_same_rules(
    learn: Learn, assert_same_rules: Check, loss: Loss, head: str
) -> None:
    X, Y, nominal = make_problem("mixed", seed=4)
    expected = learn(X, Y, nominal=nominal, head=head)
    assert_same_rules(learn(X, Y, nominal=nominal, loss=loss, head=head), expected)


def test_the_bound_of_a_users_outer_loss_is_that_of_the_built_in(learn: Learn, assert_same_rules: Check) -> None:
    X, Y, nominal = make_problem("mixed", seed=4)
    expected = learn(X, Y, nominal=nominal, search="bound")
    assert_same_rules(learn(X, Y, nominal=nominal, search="bound", loss=outer_logistic), expected)


def test_a_dense_loss_is_searched_exactly_whatever_is_asked(learn: Learn, assert_same_rules: Check) -> None:
    X, Y, _ = make_problem("numeric", seed=5)
    loss = coupled_quadratic(Y.shape[1])
    assert_same_rules(learn(X, Y, search="bound", loss=loss), learn(X, Y, search="exact", loss=loss), rtol=0)


@pytest.mark.parametrize("n_labels", [1, 2, 8, 9, 17])
def test_the_engine_follows_the_reference_at_every_width_of_a_row(
    check_oracle: Learn, variant: dict[str, Any], n_labels: int
) -> None:
    X, Y, _ = make_problem("numeric", n=40, n_features=3, n_labels=n_labels, seed=6)
    check_oracle(X, Y, n_rules=4, **variant)


def test_more_labels_than_elimination_takes_give_the_heads_of_the_reference(check_oracle: Learn) -> None:
    X, Y, _ = make_problem("numeric", n=30, n_features=2, n_labels=70, seed=7)
    check_oracle(X, Y, n_rules=3, max_conditions=2)


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    """Small data sets full of ties, with missing values, zeros, nominal features and weights, and options."""
    n, n_features, n_labels = draw(st.integers(1, 12)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = draw(st.sampled_from([(0.0, 1.0), (-1.0, 0.0, 2.0), (0.0, 1.0, np.nan), tuple(np.arange(7) / 3 - 1)]))
    X: Any = rng.choice(values, size=(n, n_features))
    if draw(st.booleans()):
        X = sp.csr_array(X)
    return {
        "X": X,
        "Y": rng.choice([-1.0, 1.0], size=(n, n_labels), p=draw(st.sampled_from([(0.5, 0.5), (0.8, 0.2)]))),
        "nominal": tuple(draw(st.sets(st.integers(0, n_features - 1)))),
        "sample_weight": draw(st.sampled_from([None, rng.choice([0.5, 1.0, 3.0], size=n)])),
        "l2": draw(st.sampled_from([0.25, 1.0, 16.0])),
        "bootstrap": draw(st.booleans()),
        "n_drawn_features": draw(st.integers(1, n_features)),
        "max_conditions": draw(st.sampled_from([None, 1, 2])),
        "min_coverage": draw(st.sampled_from([0.0, 1.0, 2.0])),
        "seed": draw(st.integers(0, 5)),
    }


@settings(max_examples=60)
@given(problem=problems())
def test_the_engine_follows_the_reference_on_any_small_data_set(
    check_oracle: Learn, variant: dict[str, Any], problem: dict[str, Any]
) -> None:
    check_oracle(**problem, **variant, n_rules=4)


def test_the_engine_follows_the_reference_on_digits(check_oracle: Learn, variant: dict[str, Any]) -> None:
    digits = load_dataset("digits7")
    check_oracle(
        digits.X[:500],
        np.where(digits.Y[:500] == 1, 1.0, -1.0),
        n_rules=10,
        n_drawn_features=count_features("log2", 64),
        **variant,
    )


def test_the_engine_follows_the_reference_on_emotions(
    check_oracle: Learn, variant: dict[str, Any], benchmark_data: Callable[..., Any]
) -> None:
    data = benchmark_data("emotions")
    size = count_features("log2", data.X.shape[1])
    check_oracle(data.X, np.where(data.Y == 1, 1.0, -1.0), n_rules=10, n_drawn_features=size, **variant)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["emotions", "birds"])
def test_the_engine_follows_the_reference_on_benchmark_data(
    check_oracle: Learn, variant: dict[str, Any], benchmark_data: Callable[..., Any], name: str
) -> None:
    data = benchmark_data(name)
    check_oracle(
        data.X,
        np.where(data.Y == 1, 1.0, -1.0),
        nominal=data.nominal_features,
        n_rules=100,
        n_drawn_features=count_features("log2", data.X.shape[1]),
        **variant,
    )


@pytest.mark.slow
@pytest.mark.parametrize("max_features", [None, "log2"])
def test_the_engine_follows_the_reference_on_synthetic_data(
    check_oracle: Learn, variant: dict[str, Any], max_features: str | None
) -> None:
    data = make_synthetic("conditional-dependence")
    size = count_features(max_features, data.X.shape[1])
    check_oracle(data.X, np.where(data.Y == 1, 1.0, -1.0), n_rules=100, n_drawn_features=size, **variant)


# --- Laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["exact", "bound"])
def test_permuting_the_labels_permutes_the_heads(
    learn: Learn, assert_same_rules: Check, multi: dict[str, Any], search: str
) -> None:
    X, Y, nominal = make_problem("mixed", n_labels=5, seed=10)
    order = np.array([3, 0, 4, 2, 1])
    rules = learn(X, Y, nominal=nominal, search=search, **multi)
    permuted = [replace(rule, head=rule.head[order]) for rule in rules]
    assert_same_rules(learn(X, Y[:, order], nominal=nominal, search=search, **multi), permuted)


@pytest.mark.parametrize("search", ["exact", "bound"])
@pytest.mark.parametrize("kind", ["mixed", "sparse"])
def test_permuting_the_examples_changes_nothing(
    learn: Learn, assert_same_rules: Check, variant: dict[str, Any], kind: str, search: str
) -> None:
    X, Y, nominal = make_problem(kind, seed=11)
    order = np.random.default_rng(0).permutation(len(Y))
    options = {"nominal": nominal, "bootstrap": False, "search": search, **variant}
    assert_same_rules(learn(X[order], Y[order], **options), learn(X, Y, **options))


@pytest.mark.parametrize("search", ["exact", "bound"])
@pytest.mark.parametrize("kind", ["mixed", "sparse", "missing"])
def test_an_example_of_weight_2_equals_the_example_twice(
    learn: Learn, assert_same_rules: Check, variant: dict[str, Any], kind: str, search: str
) -> None:
    X, Y, nominal = make_problem(kind, seed=12)
    count = np.random.default_rng(0).integers(1, 4, size=len(Y))
    repeated = np.repeat(np.arange(len(Y)), count)
    options = {"nominal": nominal, "bootstrap": False, "search": search, **variant}
    expected = learn(X[repeated], Y[repeated], **options)
    assert_same_rules(learn(X, Y, sample_weight=count.astype(float), **options), expected)


@pytest.mark.parametrize("search", ["exact", "bound"])
@pytest.mark.parametrize("kind", ["numeric", "missing"])
def test_an_example_of_weight_0_equals_its_absence(
    learn: Learn, assert_same_rules: Check, variant: dict[str, Any], kind: str, search: str
) -> None:
    X, Y, _ = make_problem(kind, seed=13)
    weight = np.where(np.random.default_rng(0).random(len(Y)) < 0.3, 0.0, 1.5)
    present = weight > 0
    options = {"bootstrap": False, "search": search, **variant}
    expected = learn(X[present], Y[present], sample_weight=weight[present], **options)
    assert_same_rules(learn(X, Y, sample_weight=weight, **options), expected)


def test_an_example_of_weight_0_is_absent_from_the_bootstrap_too() -> None:
    X, Y, _ = make_problem("numeric", seed=13)
    weight = np.where(np.random.default_rng(0).random(len(Y)) < 0.3, 0.0, 1.5)
    present = weight > 0
    clf = BoomerClassifier(n_rules=10, random_state=3).fit(X, Y > 0, sample_weight=weight)
    without = BoomerClassifier(n_rules=10, random_state=3).fit(X[present], Y[present] > 0, weight[present])
    assert clf.rules_ == without.rules_


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("l2", [0.0, 1.0])
@pytest.mark.parametrize("loss", [squared_error, coupled_quadratic(4)], ids=lambda loss: loss.name)
def test_the_training_loss_never_rises_on_a_quadratic_loss(
    booster_of: Callable[..., Any], loss: Loss, l2: float, bootstrap: bool
) -> None:
    # A rule's head minimises a quadratic loss exactly, over all the examples it covers, whatever they were sampled by.
    X, Y, nominal = make_problem("mixed", seed=14)
    booster = booster_of(X, Y, nominal=nominal, loss=loss, l2=l2, bootstrap=bootstrap, learning_rate=1.0)
    losses = [booster.training_loss()]
    for _ in range(25):
        booster.learn(1)
        losses.append(booster.training_loss())
    assert (np.diff(losses) <= 1e-12).all()
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("search", ["exact", "bound"])
def test_increasing_transformations_of_features_leave_the_coverage_unchanged(
    learn: Learn, variant: dict[str, Any], search: str
) -> None:
    X, Y, _ = make_problem("missing", seed=15)
    transformed = np.column_stack([np.exp(X[:, :2]), X[:, 2:4] ** 3, np.arctan(X[:, 4:])])
    options = {"bootstrap": False, "search": search, **variant}
    for a, b in zip(learn(X, Y, **options), learn(transformed, Y, **options), strict=True):
        assert [condition[:2] for condition in a.body] == [condition[:2] for condition in b.body]
        np.testing.assert_array_equal(covers(a.body, X), covers(b.body, transformed))
        np.testing.assert_array_equal(a.head, b.head)


@pytest.mark.parametrize("loss", [None, outer_logistic], ids=["built-in loss", "user's loss"])
def test_rules_learned_in_chunks_are_the_same(
    learn: Learn, assert_same_rules: Check, variant: dict[str, Any], loss: Loss | None
) -> None:
    X, Y, nominal = make_problem("mixed", seed=16)
    if loss is not None:
        variant = {**variant, "loss": loss}
    expected = learn(X, Y, nominal=nominal, n_rules=13, search="bound", **variant)
    for chunks in ([1] * 12, [5, 7], [2, 1, 9]):
        rules = learn(X, Y, nominal=nominal, chunks=chunks, search="bound", **variant)
        assert_same_rules(rules, expected, rtol=0)


def test_scores_are_the_sums_of_the_heads(
    learn: Learn, booster_of: Callable[..., Any], variant: dict[str, Any]
) -> None:
    X, Y, _ = make_problem("missing", seed=17)
    booster = booster_of(X, Y, **variant)
    booster.learn(9)
    scores = np.zeros(Y.shape)
    for rule in learn(X, Y, n_rules=10, **variant):
        scores[covers(rule.body, X)] += rule.head
    np.testing.assert_allclose(booster.state.scores[:, : Y.shape[1]], scores, rtol=1e-12, atol=1e-14)


def test_the_default_rule_predicts_for_every_label_without_shrinkage(learn: Learn, variant: dict[str, Any]) -> None:
    X, Y, _ = make_problem("numeric", seed=18)
    for learning_rate in (0.01, 1.0):
        assert len(learn(X, Y, n_rules=1, learning_rate=learning_rate, **variant)[0].head) == Y.shape[1]
        default = learn(X, Y, n_rules=1, learning_rate=learning_rate, default_rule="newton", **variant)[0]
        assert default.body == ()
        # Newton's step from scores of 0, written out
        if variant["loss"] is label_wise_logistic:
            head = (Y / 2).sum(axis=0) / (len(Y) / 4 + 1)
        else:
            p = 1 / (1 + Y.shape[1])
            H = len(Y) * p * np.eye(Y.shape[1]) - p * p * Y.T @ Y
            head = np.linalg.solve(H + np.eye(Y.shape[1]), p * Y.sum(axis=0))
        np.testing.assert_allclose(default.head, head, rtol=1e-10)


def test_n_rules_are_learned_even_if_no_feature_has_two_values(learn: Learn, variant: dict[str, Any]) -> None:
    _, Y, _ = make_problem("numeric", seed=19)
    for constant in (3.0, np.nan):
        rules = learn(np.full((len(Y), 2), constant), Y, n_rules=5, **variant)
        assert len(rules) == 5
        assert all(rule.body == () for rule in rules)
        assert all(np.count_nonzero(rule.head) >= 1 for rule in rules)


def test_single_label_heads_have_one_score(learn: Learn) -> None:
    X, Y, _ = make_problem("numeric", seed=22)
    for loss in (label_wise_logistic, example_wise_logistic):
        rules = learn(X, Y, head="single", loss=loss)
        assert [np.count_nonzero(rule.head) for rule in rules] == [Y.shape[1]] + [1] * 9


def test_scores_stay_finite_without_regularisation(learn: Learn, variant: dict[str, Any]) -> None:
    # Three examples that any rule tells apart: their loss has no minimum, only saturation.
    X, Y = np.array([[0.0], [1.0], [2.0]]), np.array([[1.0, -1.0], [-1.0, -1.0], [1.0, 1.0]])
    for search in ("exact", "bound"):
        rules = learn(X, Y, n_rules=300, l2=0.0, learning_rate=1.0, search=search, **variant)
        assert np.isfinite([rule.head for rule in rules]).all()
        assert np.isfinite([rule.gain for rule in rules]).all()


def test_seeds_matter_and_nothing_else_is_random(learn: Learn, assert_same_rules: Check) -> None:
    X, Y, _ = make_problem("numeric", seed=21)
    first = learn(X, Y, seed=1)
    assert_same_rules(learn(X, Y, seed=1), first, rtol=0)
    assert [rule.body for rule in learn(X, Y, seed=2)] != [rule.body for rule in first]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_gain_that_is_only_rounding_is_no_gain(check_oracle: Learn, variant: dict[str, Any], form: Any) -> None:
    # Labels and weights are balanced on both sides of the only threshold: no condition can gain anything.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        order = rng.permutation(8)
        X = np.repeat([0.0, 1.0], 4)[order, None]
        Y = np.tile([1.0, -1.0], 4)[order, None]
        weight = np.repeat(rng.choice([0.1, 0.3, 0.7, 1.0], size=4), 2)[order]
        rules = check_oracle(form(X), Y, sample_weight=weight, bootstrap=False, n_rules=2, **variant)
        assert rules[1].body == ()
