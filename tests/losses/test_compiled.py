"""The compiled twin of a loss gives the statistics and the values that its readable definition gives."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pyboomer.compiling.simd import pad
from pyboomer.losses import Loss, dense_hessians, example_wise_logistic, label_wise_logistic, squared_error
from pyboomer.losses.compiled import BEGIN, COMPILED, sum_values, update
from pyboomer.losses.truth import Truth, pad_signs, pad_weight

Array = NDArray[np.float64]

LOGISTIC = [label_wise_logistic, example_wise_logistic]


@st.composite
def labels_and_scores(draw: st.DrawFn) -> tuple[Array, Array]:
    n, K = draw(st.integers(1, 6)), draw(st.integers(1, 18))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([0.0, 0.5, 5.0, 100.0, 1000.0]))
    return rng.choice([-1.0, 1.0], size=(n, K)), rng.normal(scale=scale, size=(n, K))


def pad_scores(F: Array) -> Array:
    scores = np.zeros((len(F), pad(F.shape[1])))
    scores[:, : F.shape[1]] = F
    return scores


def write_statistics(loss: Loss, Y: NDArray[Any], F: Array, weight: Array | None, diagonal: bool) -> Array:
    """The two sections of the statistics of all examples; scores of targets are what is still missing."""
    n, K = Y.shape
    signs = pad_signs(Y, None if weight is None else weight > 0)
    truth = Truth(COMPILED[loss], diagonal, signs, pad_weight((n, K), weight))
    statistics = np.full((n, 2 * pad(K)), np.nan)
    update(truth, pad_scores(F), np.arange(n, dtype=np.uint32), statistics, 0, K)
    return statistics


@pytest.mark.parametrize("weighting", ["all alike", "some unknown", "weighted"])
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("loss", COMPILED, ids=lambda loss: loss.name)
@given(data=labels_and_scores(), seed=st.integers(0, 100))
def test_statistics_equal_the_definition_of_the_loss(
    loss: Loss, diagonal: bool, weighting: str, data: tuple[Array, Array], seed: int
) -> None:
    Y, F = data
    K = Y.shape[1]
    rng = np.random.default_rng(seed)
    choices = {"all alike": None, "some unknown": (0.0, 1.0), "weighted": (0.0, 0.3, 1.0, 2.5)}[weighting]
    weight = None if choices is None else rng.choice(choices, size=Y.shape)
    if loss is squared_error:
        targets = rng.normal(size=Y.shape)
        g, *curvature = loss.weighted_derivatives(targets, F, weight)
        statistics = write_statistics(loss, targets, F + BEGIN[loss](targets), weight, diagonal)
    else:
        g, *curvature = loss.weighted_derivatives(Y if weight is None else np.where(weight > 0, Y, 0.0), F, weight)
        statistics = write_statistics(loss, Y.astype(np.int8), F, weight, diagonal)
    h = np.diagonal(dense_hessians(loss.shape, tuple(curvature)), axis1=1, axis2=2) if diagonal else curvature[0]
    width = pad(K)
    np.testing.assert_allclose(statistics[:, :K], g, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(statistics[:, width : width + K], h, rtol=1e-12, atol=1e-15)
    assert (statistics[:, K:width] == 0).all()
    assert (statistics[:, width + K :] == 0).all()


@pytest.mark.parametrize("loss", LOGISTIC, ids=lambda loss: loss.name)
@pytest.mark.parametrize("diagonal", [False, True])
def test_statistics_are_finite_at_extreme_scores(loss: Loss, diagonal: bool) -> None:
    F = np.array([[1000.0, -1000.0, 0.0], [-1000.0, -1000.0, 1e308], [1e308, 1e308, -1e308]])
    for sign in (1, -1):
        statistics = write_statistics(loss, np.full(F.shape, sign, dtype=np.int8), F, None, diagonal)
        assert np.isfinite(statistics).all()
        assert (np.abs(statistics) <= 1).all()


@given(data=labels_and_scores(), weighted=st.booleans(), seed=st.integers(0, 100))
def test_one_label_is_updated_as_all_labels_are(data: tuple[Array, Array], weighted: bool, seed: int) -> None:
    Y, F = (np.tile(part, (4, 1)) for part in data)  # up to 24 examples: whole vectors of them, and some left over
    n, K = Y.shape
    rng = np.random.default_rng(seed)
    signs, scores = np.zeros((n, pad(K)), dtype=np.int8), pad_scores(F)
    signs[:, :K] = Y * rng.choice([0, 1, 1], size=Y.shape)
    weight = np.abs(signs) * rng.random(signs.shape) if weighted else np.zeros((0, pad(K)))
    truth = Truth(COMPILED[label_wise_logistic], True, signs, weight)
    rows = np.flatnonzero(rng.random(n) < 0.8).astype(np.uint32)
    label = int(rng.integers(K))
    everything = np.full((n, 2 * pad(K)), np.nan)
    update(truth, scores, rows, everything, 0, K)
    one = np.full(everything.shape, np.nan)
    update(truth, scores, rows, one, label, label + 1)
    for column in (label, pad(K) + label):
        np.testing.assert_array_equal(one[:, column], everything[:, column])


@pytest.mark.parametrize("loss", COMPILED, ids=lambda loss: loss.name)
@pytest.mark.parametrize("n_labels", [1, 8, 19, 600, 1025])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1000.0])
def test_the_sum_of_the_loss_is_that_of_its_definition(loss: Loss, n_labels: int, scale: float) -> None:
    rng = np.random.default_rng(n_labels)
    n, K = 7, n_labels
    signs, F = np.zeros((n, pad(K)), dtype=np.int8), np.zeros((n, pad(K)))
    signs[:, :K], F[:, :K] = rng.choice([-1, 0, 1, 1], size=(n, K)), rng.normal(scale=scale, size=(n, K))
    if loss is squared_error:
        signs = np.abs(signs)  # it tells which targets are known; the scores are what is still missing
    sample_weight = rng.random(n)
    found = sum_values(Truth(COMPILED[loss], False, signs, np.zeros((0, pad(K)))), F, sample_weight)
    targets = np.zeros((n, K)) if loss is squared_error else signs[:, :K].astype(float)
    expected = loss.weighted_value(targets, F[:, :K], np.abs(signs[:, :K]).astype(float)) @ sample_weight
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)
