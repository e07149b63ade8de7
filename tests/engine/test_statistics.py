"""Statistics are the derivatives that the readable definitions give, in the stated layout."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pyboomer.compiling.simd import pad
from pyboomer.engine.cpu.state import ExampleState, choose_layout
from pyboomer.engine.cpu.threads import Threads
from pyboomer.engine.protocol import Task
from pyboomer.engine.statistics import Dense, Diagonal, Layout, Outer, count_columns, sum_hessians, sum_rows
from pyboomer.losses import Loss, dense_hessians, example_wise_logistic, label_wise_logistic
from pyboomer.losses.compiled import update

Array = NDArray[np.float64]


def as_user_loss(loss: Loss, shape: str) -> Loss:
    """A built-in loss in the form of a user's own, which takes the other way through the engine."""

    def derivatives(Y: Array, F: Array) -> tuple[Array, ...]:
        g, *curvature = loss.derivatives(Y, F)
        return (g, dense_hessians(loss.shape, tuple(curvature))) if shape == "dense" else (g, *curvature)

    return Loss(f"user's {loss.name}, {shape}", shape, loss.value, derivatives)


LOSSES = [
    label_wise_logistic,
    example_wise_logistic,
    as_user_loss(label_wise_logistic, "diagonal"),
    as_user_loss(example_wise_logistic, "diagonal-minus-outer"),
    as_user_loss(example_wise_logistic, "dense"),
]


def make_ledger(loss: Loss, Y: Array, F: Array, single: bool) -> ExampleState:
    """The state of some examples, with the statistics of all of them."""
    state = ExampleState(Task(None, Y.astype(np.int8), np.ones(len(Y))), loss, single, Threads())
    state.scores[:, : F.shape[1]] = F
    state.write()
    return state


def expected_sections(loss: Loss, layout: Layout, Y: Array, F: Array) -> list[Array]:
    g, *curvature = loss.derivatives(Y, F)
    H = dense_hessians(loss.shape, tuple(curvature))
    if isinstance(layout, Dense):
        return [g, H[:, *np.tril_indices(Y.shape[1])]]
    if isinstance(layout, Diagonal):
        return [g, np.diagonal(H, axis1=1, axis2=2)]
    return [g, *curvature][: 2 if layout.b == 0 else 3]


@st.composite
def labels_and_scores(draw: st.DrawFn) -> tuple[Array, Array]:
    n, K = draw(st.integers(1, 6)), draw(st.integers(1, 18))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([0.0, 0.5, 5.0, 100.0, 1000.0]))
    return rng.choice([-1.0, 1.0], size=(n, K)), rng.normal(scale=scale, size=(n, K))


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@given(data=labels_and_scores())
def test_statistics_equal_the_definition_of_the_loss(loss: Loss, single: bool, data: tuple[Array, Array]) -> None:
    Y, F = data
    state = make_ledger(loss, Y, F, single)
    statistics, start = state.statistics, 0
    for section in expected_sections(loss, state.layout, Y, F):
        width = pad(section.shape[1])
        np.testing.assert_allclose(statistics[:, start : start + section.shape[1]], section, rtol=1e-12, atol=1e-15)
        assert (statistics[:, start + section.shape[1] : start + width] == 0).all()
        start += width
    assert start == statistics.shape[1] == count_columns(state.layout)


def test_every_loss_and_kind_of_head_has_its_layout() -> None:
    expected = [Diagonal(3), Outer(3, 0), Diagonal(3), Outer(3, 2), Dense(3)]
    # as text: tuples of different kinds are equal if what they hold is
    assert [repr(choose_layout(loss, 3, single=False)) for loss in LOSSES] == [repr(layout) for layout in expected]
    assert {repr(choose_layout(loss, 3, single=True)) for loss in LOSSES} == {repr(Diagonal(3))}


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_only_the_given_examples_are_updated(loss: Loss) -> None:
    Y, F = np.ones((5, 3)), np.zeros((5, 3))
    state = make_ledger(loss, Y, F, single=False)
    before = state.statistics.copy()
    state.scores[:, :3] = F + 1
    state.write(np.array([1, 3], dtype=np.uint32))
    np.testing.assert_array_equal((state.statistics != before).any(axis=1), [False, True, False, True, False])


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@given(data=labels_and_scores(), seed=st.integers(0, 100))
def test_sums_equal_the_weighted_sums_of_gradients_and_hessians(
    loss: Loss, data: tuple[Array, Array], seed: int
) -> None:
    Y, F = data
    K = Y.shape[1]
    rng = np.random.default_rng(seed)
    weights = rng.choice([0.0, 1.0, 2.5], size=len(Y))
    rows = np.flatnonzero(rng.random(len(Y)) < 0.7).astype(np.uint32)
    state = make_ledger(loss, Y, F, single=False)
    layout, statistics = state.layout, state.statistics
    sums = np.full(statistics.shape[1], np.nan)
    assert sum_rows(statistics, 0, rows, weights, sums) == pytest.approx(weights[rows].sum())
    np.testing.assert_allclose(sums, weights[rows] @ statistics[rows], rtol=1e-12, atol=1e-14)
    if isinstance(layout, Outer):
        A = np.full((K, pad(K)), np.nan)
        sum_hessians(layout, 0, statistics, rows, weights, A)
        _, *curvature = loss.derivatives(Y, F)
        H = np.tensordot(weights[rows], dense_hessians(loss.shape, tuple(curvature))[rows], axes=1)
        i, j = np.tril_indices(K)
        np.testing.assert_allclose(A[i, j], H[i, j], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("loss", [label_wise_logistic, example_wise_logistic], ids=lambda loss: loss.name)
@pytest.mark.parametrize("single", [False, True])
def test_statistics_stay_finite_at_extreme_scores(loss: Loss, single: bool) -> None:
    F = np.array([[1000.0, -1000.0, 0.0], [-1000.0, -1000.0, 1e308], [1e308, 1e308, -1e308]])
    for sign in (1.0, -1.0):
        statistics = make_ledger(loss, np.full(F.shape, sign), F, single).statistics
        assert np.isfinite(statistics).all()
        assert (np.abs(statistics) <= 1).all()


@given(labels_and_scores())
def test_the_curvature_of_logistic_losses_follows_from_the_gradient(data: tuple[Array, Array]) -> None:
    Y, F = data
    n, K = Y.shape
    width = pad(K)
    whole = make_ledger(label_wise_logistic, Y, F, single=False)
    gradients = np.zeros((n, width))
    update(whole.truth, whole.scores, whole.everyone, gradients, 0, K)
    np.testing.assert_array_equal(gradients, whole.statistics[:, :width])
    rows, weights = np.arange(0, n, 2, dtype=np.uint32), np.random.default_rng(n).integers(1, 4, n).astype(float)
    sums, expected = np.zeros((2, 2 * width))
    assert sum_rows(gradients, 0, rows, weights, sums) == sum_rows(whole.statistics, 0, rows, weights, expected)
    np.testing.assert_allclose(sums, expected, rtol=1e-9, atol=1e-14)
