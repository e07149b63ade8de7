"""Laws of the metrics, with scikit-learn's as the oracle."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn import metrics as oracle

from pyboomer import metrics
from pyboomer.metrics import METRICS, evaluate

RATIOS = {
    "example_f1": partial(oracle.f1_score, average="samples"),
    "example_precision": partial(oracle.precision_score, average="samples"),
    "example_recall": partial(oracle.recall_score, average="samples"),
    "example_jaccard": partial(oracle.jaccard_score, average="samples"),
    "micro_f1": partial(oracle.f1_score, average="micro"),
    "macro_f1": partial(oracle.f1_score, average="macro"),
}


@st.composite
def labels_and_weights(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    # scikit-learn takes a single column for a binary problem, hence at least two labels.
    shape = draw(st.tuples(st.integers(1, 6), st.integers(2, 5)))
    bits = arrays(np.int8, shape, elements=st.integers(0, 1))
    weights = arrays(np.float64, shape[0], elements=st.sampled_from([0.5, 1.0, 2.0, 3.25]))
    return draw(bits), draw(bits), draw(weights)


@pytest.mark.parametrize("zero_division", [0, 1])
@pytest.mark.parametrize("name", RATIOS)
@settings(deadline=None)  # the oracle takes its time on a busy machine
@given(data=labels_and_weights())
def test_ratios_agree_with_scikit_learn(
    name: str, zero_division: int, data: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    true, pred, weight = data
    for sample_weight in (None, weight):
        options: dict[str, Any] = {"zero_division": zero_division, "sample_weight": sample_weight}
        assert METRICS[name](true, pred, **options) == pytest.approx(RATIOS[name](true, pred, **options), abs=1e-12)


@settings(deadline=None)  # the oracle takes its time on a busy machine
@given(data=labels_and_weights())
def test_losses_agree_with_scikit_learn(data: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    true, pred, weight = data
    for w in (None, weight):
        hamming = oracle.hamming_loss(true, pred, sample_weight=w)
        subset = oracle.zero_one_loss(true, pred, sample_weight=w)
        assert metrics.hamming_loss(true, pred, sample_weight=w) == pytest.approx(hamming, abs=1e-12)
        assert metrics.subset_zero_one_loss(true, pred, sample_weight=w) == pytest.approx(subset, abs=1e-12)


@settings(deadline=None)  # the oracle takes its time on a busy machine
@given(data=labels_and_weights())
def test_an_integer_weight_counts_as_repetition(data: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    true, pred, _ = data
    times = np.arange(1, len(true) + 1)
    repeated = evaluate(np.repeat(true, times, axis=0), np.repeat(pred, times, axis=0))
    assert evaluate(true, pred, sample_weight=times) == pytest.approx(repeated)


@settings(deadline=None)  # the oracle takes its time on a busy machine
@given(data=labels_and_weights())
def test_the_truth_is_the_best_prediction(data: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    true, pred, _ = data
    best, other = evaluate(true, true), evaluate(true, pred)
    for name, metric in METRICS.items():
        assert best[name] == float(metric.larger_is_better)
        assert other[name] <= best[name] if metric.larger_is_better else other[name] >= best[name]


def test_losses_of_a_small_example_are_those_counted_by_hand() -> None:
    true = [[1, 0, 1], [0, 0, 0]]
    pred = [[1, 1, 0], [0, 0, 0]]
    assert metrics.hamming_loss(true, pred) == pytest.approx(2 / 6)
    assert metrics.subset_zero_one_loss(true, pred) == 0.5
    assert metrics.example_f1(true, pred) == pytest.approx((0.5 + 1) / 2)
    assert metrics.example_f1(true, pred, zero_division=0) == pytest.approx(0.5 / 2)
    assert metrics.example_jaccard(true, pred) == pytest.approx((1 / 3 + 1) / 2)


@pytest.mark.parametrize(
    "convert", [sparse.csr_matrix, sparse.csc_array, pd.DataFrame, np.ndarray.tolist, lambda Y: Y.astype(bool)]
)
def test_any_container_gives_the_same_values(convert: Callable[[np.ndarray], Any]) -> None:
    true, pred = np.random.default_rng(0).integers(0, 2, (2, 20, 4))
    assert evaluate(convert(true), convert(pred)) == evaluate(true.astype(float), pred)


def test_two_vectors_are_one_label() -> None:
    true, pred = np.array([0, 1, 1]), np.array([0, 1, 0])
    assert evaluate(true, pred) == evaluate(true[:, None], pred[:, None])


def test_evaluate_gives_every_metric() -> None:
    values = evaluate([[0, 1]], [[1, 1]])
    assert list(values) == list(METRICS)
    assert all(type(value) is float for value in values.values())


@pytest.mark.parametrize(
    ("true", "pred", "message"),
    [
        (np.zeros((5, 4)), np.zeros((5, 3)), r"Y_pred has shape \(5, 3\), but Y_true has shape \(5, 4\)"),
        (np.zeros(5), np.zeros((5, 1)), r"Y_pred has shape \(5, 1\), but Y_true has shape \(5,\)"),
        (np.zeros((0, 3)), np.zeros((0, 3)), r"Y_true and Y_pred are empty, their shape is \(0, 3\)"),
        (np.zeros((3, 0)), np.zeros((3, 0)), r"empty, their shape is \(3, 0\)"),
        ([[0, 1]], [[0, 2]], "Y_pred must hold 0 and 1 only, got 2 in row 0, column 1"),
        ([[0.0, np.nan]], [[0, 1]], "Y_true must hold 0 and 1 only, got nan in row 0, column 1"),
        ([["a", "b"]], [[0, 1]], "Y_true must hold 0 and 1 only, got a in row 0, column 0"),
        ([0, 3], [0, 1], "Y_true must hold 0 and 1 only, got 3 in row 1"),
        (0, [[1]], r"Y_true must have two dimensions, examples and labels, got shape \(\)"),
    ],
)
def test_bad_labels_are_refused_by_name(true: Any, pred: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(true, pred)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0], r"sample_weight has shape \(1,\), but Y_true has 2 examples"),
        ([1.0, -1.0], "sample_weight must be finite and not negative"),
        ([1.0, np.inf], "sample_weight must be finite and not negative"),
        ([0.0, 0.0], "not all zero"),
    ],
)
def test_bad_weights_are_refused(weight: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        metrics.hamming_loss([[0], [1]], [[0], [1]], sample_weight=weight)


def test_zero_division_is_zero_or_one() -> None:
    with pytest.raises(ValueError, match=r"zero_division must be 0 or 1, got 0\.5"):
        metrics.example_f1([[0]], [[0]], zero_division=0.5)  # type: ignore[arg-type]


def test_importing_metrics_and_datasets_is_light() -> None:
    code = (
        "import sys, pyboomer.metrics, pyboomer.datasets.catalog\n"
        "assert not {'pandas', 'scipy.stats', 'sklearn.datasets'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
