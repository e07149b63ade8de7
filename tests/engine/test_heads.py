"""A head minimises the quadratic objective of its examples, and the bound never exceeds its gain."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from pyboomer.engine.cpu.state import ExampleState
from pyboomer.engine.cpu.threads import Threads
from pyboomer.engine.heads import Penalty, bound_gain, find_best_label, make_solver_buffers, solve_label
from pyboomer.engine.heads import fit_head as _fit_head
from pyboomer.engine.heads import solve_matrix_free as _solve_matrix_free
from pyboomer.engine.protocol import Task
from pyboomer.engine.statistics import Diagonal, Layout, Outer, sum_label, sum_rows
from pyboomer.losses import Loss, dense_hessians, example_wise_logistic, label_wise_logistic
from pyboomer.rules.precision import FLOOR

Array = NDArray[np.float64]


def _softmax_value(Y: Array, F: Array) -> Array:
    relevant = (Y > 0) / np.maximum((Y > 0).sum(axis=1, keepdims=True), 1)
    return logsumexp(F, axis=1) - (relevant * F).sum(axis=1)


def _softmax_derivatives(Y: Array, F: Array) -> tuple[Array, Array, Array]:
    relevant = (Y > 0) / np.maximum((Y > 0).sum(axis=1, keepdims=True), 1)
    p = softmax(F, axis=1)
    return p - relevant, p, p


# an outer shape whose b is not the gradient
softmax_loss = Loss("softmax", "diagonal-minus-outer", _softmax_value, _softmax_derivatives)


def as_dense(loss: Loss) -> Loss:
    def derivatives(Y: Array, F: Array) -> tuple[Array, Array]:
        g, *curvature = loss.derivatives(Y, F)
        return g, dense_hessians(loss.shape, tuple(curvature))

    return Loss(f"{loss.name}, dense", "dense", loss.value, derivatives)


class Examples(NamedTuple):
    """Labels, scores and weights of the examples that a rule covers."""

    Y: Array
    F: Array
    weights: Array


# --- The functions under test, each behind one helper -----------------------------------------------------------------


def make_statistics(loss: Loss, examples: Examples, single: bool = False) -> tuple[Layout, Array, NDArray[np.uint32]]:
    Y = examples.Y.astype(np.int8)
    state = ExampleState(Task(None, Y, examples.weights), loss, single, Threads())
    state.scores[:, : Y.shape[1]] = examples.F
    state.write()
    return state.layout, state.statistics, state.everyone


def fit_head(loss: Loss, examples: Examples, l2: float) -> tuple[Array, float, float]:
    """Head, gain and coverage."""
    layout, statistics, rows = make_statistics(loss, examples)
    head = np.full(examples.Y.shape[1], np.nan)
    gain, coverage = _fit_head(
        layout, statistics, rows, examples.weights, Penalty(0.0, l2), make_solver_buffers(layout), head
    )
    return head, gain, coverage


def choose_label(loss: Loss, examples: Examples, l2: float) -> int:
    """The label of the best single-label head."""
    layout, statistics, rows = make_statistics(loss, examples, single=True)
    sums = np.empty(statistics.shape[1])
    sum_rows(statistics, 0, rows, examples.weights, sums)
    return find_best_label(layout, sums, Penalty(0.0, l2), np.full(layout.n_labels, np.nan))


def fit_label(loss: Loss, examples: Examples, l2: float, label: int) -> tuple[float, float, float]:
    """Score, gain and coverage of a head for one label."""
    layout, statistics, rows = make_statistics(loss, examples, single=True)
    assert isinstance(layout, Diagonal)
    g, h, coverage = sum_label(statistics, label, rows, examples.weights)
    gain, score = solve_label(g, h, Penalty(0.0, l2))
    return score, gain, coverage


def solve_matrix_free(loss: Loss, examples: Examples, l2: float) -> tuple[Array, float]:
    """Head and gain, by conjugate gradients."""
    layout, statistics, rows = make_statistics(loss, examples)
    room = make_solver_buffers(layout)
    weight = sum_rows(statistics, 0, rows, examples.weights, room.sums)
    head = np.full(examples.Y.shape[1], np.nan)
    gain = _solve_matrix_free(layout, statistics, rows, examples.weights, weight, Penalty(0.0, l2), room, head)
    return head, gain


def bound(loss: Loss, examples: Examples, l2: float) -> float:
    layout, statistics, rows = make_statistics(loss, examples)
    assert isinstance(layout, Outer)
    sums = np.empty(statistics.shape[1])
    weight = sum_rows(statistics, 0, rows, examples.weights, sums)
    return bound_gain(layout, sums, weight, Penalty(0.0, l2))


def quadratic(loss: Loss, examples: Examples) -> tuple[Array, Array]:
    """The sums of gradients and Hessians, by the definition of the loss."""
    g, *curvature = loss.derivatives(examples.Y, examples.F)
    H = dense_hessians(loss.shape, tuple(curvature))
    return examples.weights @ g, np.tensordot(examples.weights, H, axes=1)


def objective(g: Array, H: Array, l2: float, p: Array) -> float:
    return float(g @ p + 0.5 * p @ H @ p + 0.5 * l2 * p @ p)  # Eq. 14 with Eq. 15


def make_examples(n: int, K: int, seed: int, scale: float = 1.0, weights: Any = (1.0, 2.0, 0.5)) -> Examples:
    rng = np.random.default_rng(seed)
    prior = rng.random(K)
    Y = np.where(rng.random((n, K)) < prior, 1.0, -1.0)
    return Examples(Y, rng.normal(scale=scale, size=(n, K)), rng.choice(weights, size=n))


examples_strategy = st.builds(
    make_examples,
    n=st.integers(1, 30),
    K=st.integers(1, 12),
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([0.0, 0.3, 2.0, 20.0]),
)
LOSSES = [
    label_wise_logistic,
    example_wise_logistic,
    softmax_loss,
    as_dense(label_wise_logistic),
    as_dense(example_wise_logistic),
    as_dense(softmax_loss),
]
OUTER_LOSSES = [example_wise_logistic, softmax_loss]
regularisation = st.sampled_from([0.25, 1.0, 16.0])


# --- Exact heads ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@given(examples=examples_strategy, l2=regularisation)
def test_the_gain_is_the_drop_of_the_quadratic_objective(loss: Loss, examples: Examples, l2: float) -> None:
    head, gain, coverage = fit_head(loss, examples, l2)
    g, H = quadratic(loss, examples)
    assert gain == pytest.approx(-objective(g, H, l2, head), rel=1e-9, abs=1e-14)
    assert coverage == pytest.approx(examples.weights.sum())
    np.testing.assert_allclose(head, np.linalg.solve(H + l2 * np.eye(len(g)), -g), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@given(examples=examples_strategy, l2=regularisation, seed=st.integers(0, 1000))
def test_no_other_head_has_a_smaller_objective(loss: Loss, examples: Examples, l2: float, seed: int) -> None:
    head, gain, _ = fit_head(loss, examples, l2)
    g, H = quadratic(loss, examples)
    for step in np.random.default_rng(seed).normal(scale=0.1, size=(5, len(head))):
        assert objective(g, H, l2, head + step) > -gain


@pytest.mark.parametrize("loss", [label_wise_logistic, example_wise_logistic], ids=lambda loss: loss.name)
@given(examples=examples_strategy, l2=regularisation)
def test_a_single_label_head_is_the_best_of_all_labels(loss: Loss, examples: Examples, l2: float) -> None:
    g, H = quadratic(loss, examples)
    scores = -g / (np.diagonal(H) + l2)
    gains = -0.5 * g * scores
    label = choose_label(loss, examples, l2)
    score, gain, coverage = fit_label(loss, examples, l2, label)
    assert gain == pytest.approx(gains.max(), rel=1e-9, abs=1e-14)
    assert gains[:label].max(initial=0.0) <= gains[label]  # the first of equals
    assert coverage == pytest.approx(examples.weights.sum())
    np.testing.assert_allclose(score, scores[label], rtol=1e-9, atol=1e-13)
    for k in range(len(g)):
        score, gain, _ = fit_label(loss, examples, l2, k)
        assert gain == pytest.approx(gains[k], rel=1e-9, abs=1e-14)
        np.testing.assert_allclose(score, scores[k], rtol=1e-9, atol=1e-13)


@given(examples=examples_strategy, l2=st.sampled_from([0.0, 0.25, 1.0]))
def test_a_diagonal_problem_solved_as_dense_gives_the_label_wise_answer(examples: Examples, l2: float) -> None:
    head, gain, _ = fit_head(label_wise_logistic, examples, l2)
    dense_head, dense_gain, _ = fit_head(as_dense(label_wise_logistic), examples, l2)
    np.testing.assert_allclose(dense_head, head, rtol=1e-10, atol=1e-12)
    assert dense_gain == pytest.approx(gain, rel=1e-10, abs=1e-14)


# --- Conjugate gradients ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", OUTER_LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("K", [1, 7, 20, 70, 150])
@pytest.mark.parametrize("n", [1, 5, 40, 300])
@pytest.mark.parametrize("l2", [0.25, 1.0, 16.0])
def test_conjugate_gradients_agree_with_elimination(loss: Loss, K: int, n: int, l2: float) -> None:
    examples = make_examples(n, K, seed=n + K, scale=1.5)
    head, gain = solve_matrix_free(loss, examples, l2)
    g, H = quadratic(loss, examples)
    expected = np.linalg.solve(H + l2 * np.eye(K), -g)
    np.testing.assert_allclose(head, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
    assert gain == pytest.approx(-0.5 * g @ expected, rel=1e-8)


@pytest.mark.parametrize("loss", OUTER_LOSSES, ids=lambda loss: loss.name)
def test_many_labels_have_the_same_heads_as_few(loss: Loss) -> None:
    # Above some number of labels another solver takes over; the answer must not show where.
    for K in (40, 63, 64, 65, 100):
        examples = make_examples(25, K, seed=K)
        head, gain, _ = fit_head(loss, examples, 1.0)
        dense_head, dense_gain, _ = fit_head(as_dense(loss), examples, 1.0)
        np.testing.assert_allclose(head, dense_head, rtol=1e-8, atol=1e-10)
        assert gain == pytest.approx(dense_gain, rel=1e-8)


@pytest.mark.parametrize(
    "loss", [label_wise_logistic, *OUTER_LOSSES, as_dense(softmax_loss)], ids=lambda loss: loss.name
)
@pytest.mark.parametrize("K", [1, 5, 16, 17, 70])
def test_room_for_many_labels_serves_fewer(loss: Loss, K: int) -> None:
    examples = make_examples(25, K, seed=K)
    layout, statistics, rows = make_statistics(loss, examples)
    for n_labels in (K, K + 1, 67, 68, 100):  # from 68 labels on, linear systems of some kinds are not laid out
        room = make_solver_buffers(layout._replace(n_labels=max(n_labels, K)))
        head = np.full(K, np.nan)
        gain, _ = _fit_head(layout, statistics, rows, examples.weights, Penalty(0.0, 1.0), room, head)
        expected = fit_head(loss, examples, 1.0)
        np.testing.assert_array_equal(head, expected[0])
        assert gain == expected[1]


# --- The bound --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", OUTER_LOSSES, ids=lambda loss: loss.name)
@given(examples=examples_strategy, l2=regularisation)
def test_the_bound_never_exceeds_the_exact_gain(loss: Loss, examples: Examples, l2: float) -> None:
    assert bound(loss, examples, l2) <= fit_head(loss, examples, l2)[1] * (1 + 1e-9)


@pytest.mark.parametrize("loss", OUTER_LOSSES, ids=lambda loss: loss.name)
@given(examples=examples_strategy, l2=regularisation)
def test_the_bound_is_the_gain_of_the_matrix_it_was_derived_from(loss: Loss, examples: Examples, l2: float) -> None:
    g, a, b = (examples.weights @ section for section in loss.derivatives(examples.Y, examples.F))
    A = np.diag(a + l2) - np.outer(b, b) / examples.weights.sum()
    assert bound(loss, examples, l2) == pytest.approx(0.5 * g @ np.linalg.solve(A, g), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("loss", OUTER_LOSSES, ids=lambda loss: loss.name)
@given(seed=st.integers(0, 1000), n=st.integers(1, 20), l2=regularisation)
def test_the_bound_is_tight_for_identical_examples(loss: Loss, seed: int, n: int, l2: float) -> None:
    # Cauchy and Schwarz hold with equality where all b are equal.
    one = make_examples(1, 6, seed)
    same = Examples(np.repeat(one.Y, n, axis=0), np.repeat(one.F, n, axis=0), np.ones(n))
    assert bound(loss, same, l2) == pytest.approx(fit_head(loss, same, l2)[1], rel=1e-9)


# --- Degenerate sums --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 5),
    K=st.integers(1, 12),
    scale=st.sampled_from([0.0, 1.0, 10.0, 40.0, 1000.0]),
)
def test_heads_are_finite_without_regularisation(loss: Loss, seed: int, n: int, K: int, scale: float) -> None:
    examples = make_examples(n, K, seed, scale)
    head, gain, _ = fit_head(loss, examples, 0.0)
    assert np.isfinite(head).all()
    assert gain >= 0
    assert np.isfinite(gain)
    # no denominator below the floor is ever divided by
    assert np.abs(head).max() <= examples.weights.sum() * K / FLOOR


@pytest.mark.parametrize("loss", OUTER_LOSSES, ids=lambda loss: loss.name)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 5), scale=st.sampled_from([0.0, 1.0, 10.0, 40.0, 1000.0]))
def test_bound_and_conjugate_gradients_are_finite_without_regularisation(
    loss: Loss, seed: int, n: int, scale: float
) -> None:
    examples = make_examples(n, 10, seed, scale)
    assert np.isfinite(bound(loss, examples, 0.0))
    assert bound(loss, examples, 0.0) >= 0
    head, gain = solve_matrix_free(loss, examples, 0.0)
    assert np.isfinite(head).all()
    assert np.isfinite(gain)


@pytest.mark.parametrize("loss", [label_wise_logistic, example_wise_logistic, as_dense(example_wise_logistic)])
def test_a_label_without_curvature_gets_score_and_gain_0(loss: Loss) -> None:
    examples = make_examples(8, 3, seed=1)
    examples.F[:, 1] = 1000 * examples.Y[:, 1]  # saturated: neither gradient nor curvature
    head, gain, _ = fit_head(loss, examples, 0.0)
    assert head[1] == 0
    assert np.count_nonzero(head) == 2
    others = Examples(examples.Y[:, [0, 2]], examples.F[:, [0, 2]], examples.weights)
    assert gain == pytest.approx(fit_head(loss, others, 0.0)[1])
    np.testing.assert_allclose(head[[0, 2]], fit_head(loss, others, 0.0)[0])


@pytest.mark.parametrize("l2", [0.0, 0.5 * FLOOR])
def test_a_gradient_without_curvature_asks_for_nothing(l2: float) -> None:
    linear = Loss("linear", "diagonal", lambda Y, F: -(Y * F).sum(axis=1), lambda Y, F: (-Y, 0 * F))
    for loss in (linear, as_dense(linear)):
        head, gain, _ = fit_head(loss, make_examples(5, 3, seed=2), l2)
        assert (head == 0).all()
        assert gain == 0
    examples = make_examples(5, 3, seed=2)
    for label in (choose_label(linear, examples, l2), 0, 1, 2):
        score, gain, _ = fit_label(linear, examples, l2, label)
        assert score == 0
        assert gain == 0
