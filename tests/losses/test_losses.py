"""Losses are what they say: derivatives agree with differences, and what cannot be a loss is refused by name."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pyboomer import BoomerClassifier, Loss
from pyboomer.losses import (
    BUILT_IN,
    FOR_LABELS,
    absolute_error,
    dense_hessians,
    example_wise_logistic,
    find_loss,
    label_wise_logistic,
    make_huber,
)
from pyboomer.losses.squared import (
    example_wise_squared_error,
    example_wise_squared_hinge,
)

Array = NDArray[np.float64]

ROBUST = ("absolute-error", "huber")  # the curvature of these is not their second derivative


@st.composite
def labels_and_scores(draw: st.DrawFn) -> tuple[Array, Array]:
    n, K = draw(st.integers(1, 4)), draw(st.integers(1, 8))
    Y = draw(st.lists(st.lists(st.sampled_from([-1.0, 1.0]), min_size=K, max_size=K), min_size=n, max_size=n))
    F = draw(st.lists(st.lists(st.floats(-20, 20), min_size=K, max_size=K), min_size=n, max_size=n))
    return np.array(Y), np.array(F)


def differences(function: Any, F: Array, step: float = 1e-5) -> Array:
    """Central differences of a function of the scores in each of them; the last axis is that of the score."""
    steps = step * np.eye(F.shape[1])
    return np.stack([(function(F + s) - function(F - s)) / (2 * step) for s in steps], axis=-1)


def leave_kinks(loss: Loss, Y: Array, F: Array) -> Array:
    """Scores beside those where a loss has a kink: the margin of a hinge; where a robust loss begins to be a line."""
    size = np.abs(F - Y)
    kinks = {"hinge": np.abs(1 - Y * F), "error": np.minimum(size, np.abs(size - 1)), "huber": np.abs(size - 1)}
    near = [distance < 1e-3 for kind, distance in kinks.items() if kind in loss.name]
    return np.where(np.any(near, axis=0), F + 0.3, F) if near else F


def is_smooth(loss: Loss, value: Array) -> bool:
    """Whether a loss has derivatives there: a root has none at 0."""
    return loss not in (example_wise_squared_error, example_wise_squared_hinge) or bool(value.min() > 0.1)


# Data are drawn once for all losses: to draw takes longer than to check.


@given(data=labels_and_scores())
def test_gradients_agree_with_differences_of_the_loss(data: tuple[Array, Array]) -> None:
    for name, loss in BUILT_IN.items():
        Y, F = data[0], leave_kinks(loss, *data)
        if is_smooth(loss, loss.value(Y, F)):
            g, expected = loss.derivatives(Y, F)[0], differences(lambda F: loss.value(Y, F), F)  # noqa: B023
            np.testing.assert_allclose(g, expected, rtol=1e-6, atol=1e-8, err_msg=name)


@given(data=labels_and_scores())
def test_hessians_agree_with_differences_of_the_gradient(data: tuple[Array, Array]) -> None:
    for name, loss in BUILT_IN.items():
        Y, F = data[0], leave_kinks(loss, *data)
        if is_smooth(loss, loss.value(Y, F)) and name not in ROBUST:
            H = dense_hessians(loss.shape, loss.derivatives(Y, F)[1:])
            expected = differences(lambda F: loss.derivatives(Y, F)[0], F)  # noqa: B023
            np.testing.assert_allclose(H, expected, rtol=1e-6, atol=1e-7, err_msg=name)


@given(data=labels_and_scores())
def test_hessians_are_symmetric_and_positive_semidefinite(data: tuple[Array, Array]) -> None:
    for name, loss in BUILT_IN.items():
        curvature = loss.derivatives(*data)[1:]
        H = dense_hessians(loss.shape, curvature)
        np.testing.assert_array_equal(H, H.transpose(0, 2, 1), err_msg=name)
        assert np.linalg.eigvalsh(H).min() >= -1e-14 * max(1, np.abs(curvature[0]).max()), name


@pytest.mark.parametrize("loss", [absolute_error, make_huber(), make_huber(2.5)], ids=lambda loss: loss.name)
@given(data=labels_and_scores(), step=st.floats(-20, 20))
def test_a_parabola_with_the_curvature_of_a_robust_loss_is_nowhere_below_it(
    loss: Loss, data: tuple[Array, Array], step: float
) -> None:
    Y, F = data
    assume((np.abs(F - Y) > 0.01).all())
    g, h = loss.derivatives(Y, F)
    above = loss.value(Y, F) + (g * step + h * step**2 / 2).sum(axis=1)
    assert (loss.value(Y, F + step) <= above + 1e-9).all()


def test_a_loss_is_printed_by_its_name() -> None:
    assert [repr(loss) for loss in FOR_LABELS.values()] == [f"Loss({loss.name!r})" for loss in FOR_LABELS.values()]


def test_hubers_loss_is_a_parabola_and_then_a_line() -> None:
    Y, F = np.zeros((1, 1)), np.array([[3.0]])
    assert make_huber(5.0).value(Y, F) == 4.5
    assert make_huber(2.0).value(Y, F) == 2 * 3 - 2
    assert make_huber(2.0).name == "huber-2"
    for delta in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="delta must be a positive number"):
            make_huber(delta)


@pytest.mark.parametrize("name", ["absolute-error", "huber"])
def test_robust_losses_give_the_rules_of_the_reference(name: str, check_oracle: Callable[..., Any]) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    check_oracle(X, np.where(X[:, :3] + rng.normal(size=(60, 3)) > 0, 1, -1), loss=BUILT_IN[name], head="multi")


def test_losses_at_scores_of_0_are_those_of_the_paper() -> None:
    Y = np.array([[1.0, -1.0, 1.0]])
    np.testing.assert_allclose(label_wise_logistic.value(Y, 0 * Y), 3 * np.log(2))  # Eq. 6
    np.testing.assert_allclose(example_wise_logistic.value(Y, 0 * Y), np.log(4))  # Eq. 7


@given(data=labels_and_scores())
def test_losses_are_the_equations_of_the_paper(data: tuple[Array, Array]) -> None:
    Y, F = data
    e = np.exp(-Y * F)
    np.testing.assert_allclose(label_wise_logistic.value(Y, F), np.log1p(e).sum(axis=1))  # Eq. 6
    np.testing.assert_allclose(example_wise_logistic.value(Y, F), np.log1p(e.sum(axis=1)))  # Eq. 7


def test_both_losses_are_the_same_for_one_label() -> None:
    F = np.linspace(-30, 30, 101)[:, None]
    Y = np.ones_like(F)
    np.testing.assert_allclose(label_wise_logistic.value(Y, F), example_wise_logistic.value(Y, F), rtol=1e-12)
    for a, b in zip(
        label_wise_logistic.derivatives(Y, F),
        (
            example_wise_logistic.derivatives(Y, F)[0],
            dense_hessians("diagonal-minus-outer", example_wise_logistic.derivatives(Y, F)[1:])[:, 0],
        ),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-15)


@pytest.mark.parametrize("loss", BUILT_IN.values(), ids=BUILT_IN)
def test_extreme_scores_give_finite_losses_and_derivatives(loss: Loss) -> None:
    F = np.array([[1000.0, -1000.0], [1000.0, 1000.0], [-1000.0, -1000.0], [1000.0, 0.0]])
    for Y in (np.ones_like(F), -np.ones_like(F)):
        assert np.isfinite(loss.value(Y, F)).all()
        assert all(np.isfinite(array).all() for array in loss.derivatives(Y, F))
    worst = loss.value(np.array([[1.0, 1.0]]), np.array([[-1000.0, 1.0]]))
    expected = {"squared-error": 0.5e6, "label-wise-squared-error": 1e6, "label-wise-squared-hinge": 1e6}
    np.testing.assert_allclose(worst, expected.get(loss.name, 1000), rtol=1e-2)


def test_small_losses_keep_their_digits() -> None:
    # log(1 + x) for tiny x: 1 + x alone would round it away
    Y, F = np.ones((1, 2)), np.full((1, 2), 50.0)
    np.testing.assert_allclose(example_wise_logistic.value(Y, F), 2 * np.exp(-50), rtol=1e-12)
    np.testing.assert_allclose(label_wise_logistic.value(Y, F), 2 * np.exp(-50), rtol=1e-12)


# --- Weights of labels ------------------------------------------------------------------------------------------------


WEIGHTED = [*BUILT_IN.values(), Loss("mine", "diagonal", lambda Y, F: value(Y, F), lambda Y, F: derivatives(Y, F))]


@given(data=labels_and_scores(), seed=st.integers(0, 100))
def test_derivatives_with_weights_agree_with_differences(data: tuple[Array, Array], seed: int) -> None:
    weight = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 3.0], size=data[0].shape)
    Y = np.where(weight > 0, data[0], 0.0)
    for loss in WEIGHTED:
        F = leave_kinks(loss, Y, data[1])
        if is_smooth(loss, loss.weighted_value(Y, F, weight)):
            g, *curvature = loss.weighted_derivatives(Y, F, weight)
            expected = differences(lambda F: loss.weighted_value(Y, F, weight), F)  # noqa: B023
            np.testing.assert_allclose(g, expected, rtol=1e-5, atol=1e-7, err_msg=loss.name)
            H = dense_hessians(loss.shape, tuple(curvature))
            expected = differences(lambda F: loss.weighted_derivatives(Y, F, weight)[0], F)  # noqa: B023
            if loss.name in ROBUST:
                expected = dense_hessians(loss.shape, (weight * loss.derivatives(Y, F)[1],))
            np.testing.assert_allclose(H, expected, rtol=1e-5, atol=1e-7, err_msg=loss.name)


@given(data=labels_and_scores())
def test_the_term_of_an_unknown_label_leaves_the_loss(data: tuple[Array, Array]) -> None:
    Y, F = data
    weight = np.ones_like(Y)
    but_first = weight.copy()
    but_first[:, 0] = 0
    for loss in WEIGHTED:
        np.testing.assert_allclose(loss.weighted_value(Y, F, weight), loss.value(Y, F), err_msg=loss.name)
        unknown = loss.weighted_value(np.where(but_first > 0, Y, 0), F, but_first)
        expected = loss.value(Y[:, 1:], F[:, 1:]) if Y.shape[1] > 1 else 0
        np.testing.assert_allclose(unknown, expected, rtol=1e-9, atol=1e-12, err_msg=loss.name)


def test_the_weighted_example_wise_loss_is_the_stated_formula() -> None:
    rng = np.random.default_rng(0)
    Y, F, w = rng.choice([-1.0, 1.0], size=(9, 4)), rng.normal(size=(9, 4)), rng.random((9, 4))
    expected = np.log1p((w * np.exp(-Y * F)).sum(axis=1))
    np.testing.assert_allclose(example_wise_logistic.weighted_value(Y, F, w), expected)


def test_a_loss_that_neither_decomposes_nor_takes_weights_says_so() -> None:
    loss = Loss("mine", "dense", example_wise_logistic.value, lambda _, F: (F, F))
    with pytest.raises(ValueError, match="loss 'mine' can learn neither from unknown labels nor from weights"):
        loss.weighted_value(np.ones((2, 3)), np.ones((2, 3)), np.ones((2, 3)))


# --- A user's loss ----------------------------------------------------------------------------------------------------


def value(Y: Array, F: Array) -> Array:
    return ((Y - F) ** 2).sum(axis=1)


def derivatives(Y: Array, F: Array) -> tuple[Array, Array]:
    return 2 * (F - Y), np.full(F.shape, 2.0)


def test_an_unknown_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape of loss 'mine' must be one of diagonal, .*, dense, got 'round'"):
        Loss("mine", "round", value, derivatives)


@pytest.mark.parametrize("field", ["value", "derivatives", "log_odds"])
def test_what_cannot_be_called_is_refused(field: str) -> None:
    functions: dict[str, Any] = {"value": value, "derivatives": derivatives, field: 3}
    with pytest.raises(TypeError, match=f"{field} of loss 'mine' must be callable, got 3"):
        Loss("mine", "diagonal", **functions)


@pytest.mark.parametrize(
    ("shape", "result"),
    [
        ("diagonal", lambda _, F: (F,)),
        ("diagonal", lambda _, F: (F, F, F)),
        ("diagonal", lambda _, F: (F, F[:, :1])),
        ("diagonal", lambda _, F: (F, F[0])),
        ("diagonal-minus-outer", lambda _, F: (F, F)),
        ("dense", lambda _, F: (F, F)),
        ("dense", lambda _, F: (F, F[:, :, None])),
    ],
)
def test_derivatives_of_another_shape_are_refused_by_name(shape: str, result: Any) -> None:
    clf = BoomerClassifier(loss=Loss("mine", shape, value, result), n_rules=2)
    with pytest.raises(ValueError, match=rf"derivatives of loss 'mine' \({shape}\) must have shapes .*, got "):
        clf.fit(np.arange(6.0).reshape(3, 2), np.eye(3, dtype=int))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_derivatives_that_are_not_finite_are_refused_by_name(bad: float) -> None:
    loss = Loss("mine", "diagonal", value, lambda _, F: (F, np.full(F.shape, bad)))
    with pytest.raises(ValueError, match="derivatives of loss 'mine' are not finite"):
        BoomerClassifier(loss=loss, n_rules=2).fit(np.arange(6.0).reshape(3, 2), np.eye(3, dtype=int))


def test_derivatives_may_be_lists_or_integers() -> None:
    loss = Loss("mine", "diagonal", value, lambda Y, F: ((F - Y).tolist(), np.ones(F.shape, dtype=np.int32)))
    X, Y = np.arange(20.0)[:, None], (np.arange(20) > 9)[:, None].astype(int)
    assert BoomerClassifier(loss=loss, n_rules=20).fit(X, Y).score(X, Y) == 1


def test_losses_are_found_by_name() -> None:
    assert find_loss("label-wise-logistic") is label_wise_logistic
    assert find_loss(example_wise_logistic) is example_wise_logistic
    own = Loss("mine", "diagonal", value, derivatives)
    assert find_loss(own) is own
    with pytest.raises(ValueError, match=r"loss must be one of 'label-wise-logistic', .* got 'hinge'"):
        find_loss("hinge")


@pytest.mark.parametrize("name", FOR_LABELS)
@pytest.mark.parametrize("head", ["single", "multi"])
def test_every_loss_learns_and_says_probabilities(name: str, head: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 4))
    Y = (X[:, :3] > 0).astype(int)
    slow = name == "example-wise-squared-error"  # the nearer an example is to its goal, the shorter the steps
    rate = 0.1 if slow else 0.3
    model = BoomerClassifier(name, head=head, n_rules=150, learning_rate=rate, random_state=1).fit(X, Y)
    assert (model.predict(X) == Y).mean() > (0.85 if slow else 0.95)
    P = model.predict_proba(X)
    np.testing.assert_array_equal(P > 0.5, model.decision_function(X) > 0)
    start = FOR_LABELS[name].value(2.0 * Y - 1, np.zeros(Y.shape)).mean()
    assert model.training_facts_["loss"] < (0.85 if slow else 0.5) * start


@pytest.mark.parametrize("name", [name for name in FOR_LABELS if "squared" in name])
@pytest.mark.parametrize("head", ["single", "multi"])
@pytest.mark.parametrize("unknown", [False, True])
def test_squared_losses_give_the_rules_of_the_reference(
    name: str, head: str, unknown: bool, check_oracle: Callable[..., Any]
) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    Y = np.where(X[:, :3] + rng.normal(size=(60, 3)) > 0, 1, -1)
    weight = (rng.random(Y.shape) > 0.2).astype(float) if unknown else None
    signs = Y if weight is None else np.where(weight > 0, Y, 0)
    check_oracle(X, signs, n_rules=20, loss=FOR_LABELS[name], head=head, label_weight=weight)


def test_only_a_diagonal_loss_is_decomposable() -> None:
    assert label_wise_logistic.decomposable
    assert not example_wise_logistic.decomposable
