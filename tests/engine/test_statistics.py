"""Compiled statistics are the derivatives that the readable definitions give, in the stated layout."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numpy.typing import NDArray

from pyboomer.compiling.simd import LANES, largest, load, product, total
from pyboomer.engine.statistics import (
    DENSE,
    DIAGONAL,
    EXAMPLE_WISE,
    LABEL_WISE,
    OUTER,
    OUTER_GRADIENT,
    SQUARED,
    Truth,
    choose_layout,
    count_columns,
    pad,
    sum_hessians,
    sum_rows,
    sum_values,
    update_statistics,
)
from pyboomer.engine.statistics import write_statistics as _write
from pyboomer.losses import Loss, dense_hessians, example_wise_logistic, label_wise_logistic, squared_error

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


def write_statistics(loss: Loss, Y: Array, F: Array, single: bool) -> tuple[int, Array]:
    """The layout and the statistics of all examples."""
    layout = choose_layout(loss, single)
    statistics = np.zeros((len(Y), count_columns(layout, Y.shape[1])))
    update(loss, layout, Y, F, np.arange(len(Y)), statistics)
    return layout, statistics


def update(loss: Loss, layout: int, Y: Array, F: Array, rows: Any, statistics: Array) -> None:
    """Write the statistics of some examples; labels and scores are padded for it."""
    n, K = Y.shape
    signs, scores = np.zeros((n, pad(K)), dtype=np.int8), np.zeros((n, pad(K)))
    signs[:, :K], scores[:, :K] = Y, F
    _write(loss, layout, Truth(signs, np.zeros((0, pad(K)))), scores, np.asarray(rows, dtype=np.uint32), statistics, K)


def expected_sections(loss: Loss, layout: int, Y: Array, F: Array) -> list[Array]:
    g, *curvature = loss.derivatives(Y, F)
    H = dense_hessians(loss.shape, tuple(curvature))
    if layout == DENSE:
        return [g, H[:, *np.tril_indices(Y.shape[1])]]
    if layout == DIAGONAL:
        return [g, np.diagonal(H, axis1=1, axis2=2)]
    return [g, *curvature][: 2 if layout == OUTER_GRADIENT else 3]


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
    layout, statistics = write_statistics(loss, Y, F, single)
    start = 0
    for section in expected_sections(loss, layout, Y, F):
        width = pad(section.shape[1])
        np.testing.assert_allclose(statistics[:, start : start + section.shape[1]], section, rtol=1e-12, atol=1e-15)
        assert (statistics[:, start + section.shape[1] : start + width] == 0).all()
        start += width
    assert start == statistics.shape[1]


def test_every_loss_and_kind_of_head_has_its_layout() -> None:
    assert [choose_layout(loss, single=False) for loss in LOSSES] == [DIAGONAL, OUTER_GRADIENT, DIAGONAL, OUTER, DENSE]
    assert {choose_layout(loss, single=True) for loss in LOSSES} == {DIAGONAL}


@pytest.mark.parametrize("loss", [label_wise_logistic, example_wise_logistic], ids=lambda loss: loss.name)
@pytest.mark.parametrize("single", [False, True])
def test_statistics_are_finite_at_extreme_scores(loss: Loss, single: bool) -> None:
    F = np.array([[1000.0, -1000.0, 0.0], [-1000.0, -1000.0, 1e308], [1e308, 1e308, -1e308]])
    for sign in (1.0, -1.0):
        statistics = write_statistics(loss, np.full(F.shape, sign), F, single)[1]
        assert np.isfinite(statistics).all()
        assert (np.abs(statistics) <= 1).all()


@pytest.mark.parametrize("loss", [label_wise_logistic, example_wise_logistic], ids=lambda loss: loss.name)
def test_only_the_given_examples_are_updated(loss: Loss) -> None:
    Y, F = np.ones((5, 3)), np.zeros((5, 3))
    layout, statistics = write_statistics(loss, Y, F, single=False)
    before = statistics.copy()
    update(loss, layout, Y, F + 1, [1, 3], statistics)
    np.testing.assert_array_equal((statistics != before).any(axis=1), [False, True, False, True, False])


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
    layout, statistics = write_statistics(loss, Y, F, single=False)
    sums = np.full(statistics.shape[1], np.nan)
    assert sum_rows(statistics, 0, rows, weights, sums) == pytest.approx(weights[rows].sum())
    np.testing.assert_allclose(sums, weights[rows] @ statistics[rows], rtol=1e-12, atol=1e-14)
    if layout in (OUTER, OUTER_GRADIENT):
        A = np.full((K, pad(K)), np.nan)
        sum_hessians(layout, 0, statistics, rows, weights, A)
        _, *curvature = loss.derivatives(Y, F)
        H = np.tensordot(weights[rows], dense_hessians(loss.shape, tuple(curvature))[rows], axes=1)
        i, j = np.tril_indices(K)
        np.testing.assert_allclose(A[i, j], H[i, j], rtol=1e-12, atol=1e-14)


@given(data=labels_and_scores(), weighted=st.booleans(), seed=st.integers(0, 100))
def test_one_label_is_updated_as_all_labels_are(data: tuple[Array, Array], weighted: bool, seed: int) -> None:
    Y, F = (np.tile(part, (4, 1)) for part in data)  # up to 24 examples: whole vectors of them, and some left over
    n, K = Y.shape
    rng = np.random.default_rng(seed)
    signs, scores = np.zeros((n, pad(K)), dtype=np.int8), np.zeros((n, pad(K)))
    signs[:, :K], scores[:, :K] = Y * rng.choice([0, 1, 1], size=Y.shape), F
    truth = Truth(signs, np.abs(signs) * rng.random(signs.shape) if weighted else np.zeros((0, pad(K))))
    rows = np.flatnonzero(rng.random(n) < 0.8).astype(np.uint32)
    label = int(rng.integers(K))
    everything = np.full((n, 2 * pad(K)), np.nan)
    update_statistics(LABEL_WISE, DIAGONAL, truth, scores, rows, everything, 0, K)
    one = np.full(everything.shape, np.nan)
    update_statistics(LABEL_WISE, DIAGONAL, truth, scores, rows, one, label, label + 1)
    for column in (label, pad(K) + label):
        np.testing.assert_array_equal(one[:, column], everything[:, column])


@pytest.mark.parametrize("update", [LABEL_WISE, EXAMPLE_WISE, SQUARED])
@pytest.mark.parametrize("n_labels", [1, 8, 19, 600, 1025])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1000.0])
def test_the_sum_of_the_loss_is_that_of_its_definition(update: int, n_labels: int, scale: float) -> None:
    rng = np.random.default_rng(n_labels)
    n, K = 7, n_labels
    Y, F = np.zeros((n, pad(K)), dtype=np.int8), np.zeros((n, pad(K)))
    Y[:, :K], F[:, :K] = rng.choice([-1, 0, 1, 1], size=(n, K)), rng.normal(scale=scale, size=(n, K))
    Y = np.abs(Y) if update == SQUARED else Y  # it tells which targets are known; the scores are what is still missing
    sample_weight = rng.random(n)
    found = sum_values(update, Truth(Y, np.zeros((0, pad(K)))), F, sample_weight)
    loss = {LABEL_WISE: label_wise_logistic, EXAMPLE_WISE: example_wise_logistic, SQUARED: squared_error}[update]
    targets = np.zeros((n, K)) if update == SQUARED else Y[:, :K].astype(float)
    expected = loss.weighted_value(targets, F[:, :K], np.abs(Y[:, :K]).astype(float)) @ sample_weight
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(numbers=st.lists(st.floats(-1e6, 1e6), min_size=LANES, max_size=LANES))
def test_a_vector_is_reduced_to_one_number(numbers: list[float]) -> None:
    array = np.array(numbers)
    assert reduce_vector(array) == pytest.approx((array.sum(), array.max(), array.prod()), rel=1e-9, abs=1e-6)


@njit
def reduce_vector(array: Array) -> tuple[float, float, float]:
    vector = load(array, 0)
    return total(vector), largest(vector), product(vector)
