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
from pyboomer.metrics import METRICS, evaluate, evaluate_ranking

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
@settings(deadline=None, max_examples=25)  # the oracle takes its time
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
        ([[0, 1]], [[0.0, np.nan]], "Y_pred must hold 0 and 1 only, got a missing value in row 0, column 1"),
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


# --- Unknown labels ---------------------------------------------------------------------------------------------------

UNKNOWN = {
    "nan": lambda Y, known: np.where(known, Y, np.nan),
    "masked": lambda Y, known: np.ma.array(Y, mask=~known),
    "objects": lambda Y, known: np.where(known, Y.astype(object), None),
    "NA": lambda Y, known: pd.DataFrame(np.where(known, Y, np.nan)).astype("Int64"),
    "sparse": lambda Y, known: sparse.csr_array(np.where(known, Y, np.nan)),
}


@pytest.mark.parametrize("forget", UNKNOWN.values(), ids=UNKNOWN)
def test_examples_without_known_labels_are_as_if_they_were_not_there(forget: Callable[..., Any]) -> None:
    rng = np.random.default_rng(1)
    true, pred = rng.integers(0, 2, (2, 20, 4))
    scores, weight = rng.normal(size=(20, 4)), rng.random(20) + 0.1
    known = np.ones(true.shape, dtype=bool)
    known[::3] = False
    there = known.all(axis=1)
    left = evaluate(true[there], pred[there], sample_weight=weight[there])
    assert evaluate(forget(true, known), pred, sample_weight=weight) == pytest.approx(left)
    left = evaluate_ranking(true[there], scores[there], sample_weight=weight[there])
    assert evaluate_ranking(forget(true, known), scores, sample_weight=weight) == pytest.approx(left)


def test_labels_that_are_never_known_are_as_if_they_were_not_there() -> None:
    rng = np.random.default_rng(2)
    true, pred = rng.integers(0, 2, (2, 20, 4))
    scores = rng.normal(size=(20, 4))
    hidden = true.astype(float)
    hidden[:, 1] = np.nan
    rest = [0, 2, 3]
    assert evaluate(hidden, pred) == pytest.approx(evaluate(true[:, rest], pred[:, rest]))
    assert evaluate_ranking(hidden, scores) == pytest.approx(evaluate_ranking(true[:, rest], scores[:, rest]))


def test_what_is_predicted_for_an_unknown_label_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    true, pred = rng.integers(0, 2, (2, 20, 4))
    scores = rng.normal(size=(20, 4))
    unknown = rng.random(true.shape) < 0.4
    hidden = np.where(unknown, np.nan, true)
    assert evaluate(hidden, pred) == evaluate(hidden, np.where(unknown, 1 - pred, pred))
    assert evaluate_ranking(hidden, scores) == evaluate_ranking(hidden, np.where(unknown, 99.0 - scores, scores))
    assert metrics.hamming_loss(hidden, pred) == pytest.approx((true != pred)[~unknown].mean())


def test_some_label_has_to_be_known() -> None:
    with pytest.raises(ValueError, match="Y_true has no label that is known"):
        evaluate([[np.nan, np.nan]], [[0, 1]])
    with pytest.raises(ValueError, match="Y_true has no label that is known, in examples of any weight"):
        evaluate([[np.nan], [1]], [[0], [1]], sample_weight=[1, 0])


# --- Rankings ---------------------------------------------------------------------------------------------------------

RANKING_ORACLES = {
    "average_precision": oracle.label_ranking_average_precision_score,
    "coverage_error": oracle.coverage_error,
    "ranking_loss": oracle.label_ranking_loss,
}


@settings(deadline=None)  # the oracle takes its time on a busy machine
@given(data=labels_and_weights(), draw=st.data())
def test_rankings_agree_with_scikit_learn(data: tuple[np.ndarray, np.ndarray, np.ndarray], draw: st.DataObject) -> None:
    true, _, weight = data
    scores = draw.draw(arrays(np.float64, true.shape, elements=st.sampled_from([-1.5, 0.0, 0.25, 1.0, 3.0])))
    for w in (None, weight):
        values = evaluate_ranking(true, scores, sample_weight=w)
        for name, function in RANKING_ORACLES.items():
            assert values[name] == pytest.approx(function(true, scores, sample_weight=w), abs=1e-12)
        if 0 < true.sum() < true.size:
            expected = oracle.roc_auc_score(true, scores, average="micro", sample_weight=w)
            assert values["micro_auc"] == pytest.approx(expected, abs=1e-12)
        mixed = [k for k in range(true.shape[1]) if 0 < true[:, k].sum() < len(true)]
        if mixed:
            areas = [oracle.roc_auc_score(true[:, k], scores[:, k], sample_weight=w) for k in mixed]
            assert values["macro_auc"] == pytest.approx(np.mean(areas), abs=1e-12)


def test_one_error_asks_for_the_first_label() -> None:
    scores = [[3, 2, 1], [3, 2, 1], [3, 3, 1], [3, 2, 1]]
    assert metrics.one_error([[1, 0, 0], [0, 1, 1], [1, 0, 0], [0, 0, 0]], scores) == 0.5  # wrong: second and third
    assert metrics.one_error([[1, 1, 1]] * 4, scores) == 0


def test_a_label_of_one_kind_has_no_area() -> None:
    assert np.isnan(metrics.macro_auc([[1, 0], [1, 0]], [[0.1, 0.2], [0.3, 0.4]]))
    assert np.isnan(metrics.micro_auc([[1], [1]], [[0.1], [0.2]]))
    assert metrics.macro_auc([[1, 0], [1, 1]], [[0.1, 0.2], [0.3, 0.4]]) == 1


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([[0.5]], r"scores has shape \(1, 1\), but Y_true has shape \(1, 2\)"),
        ([[0.5, np.nan]], "scores must be finite, got nan in row 0, column 1"),
        (np.ma.array([[0.5, 0.2]], mask=[[False, True]]), "scores must be finite, got nan in row 0, column 1"),
    ],
)
def test_bad_scores_are_refused(scores: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate_ranking([[0, 1]], scores)


@pytest.mark.parametrize("zero_division", [0, 1])
def test_evaluate_passes_zero_division_on(zero_division: int) -> None:
    true, pred = np.array([[0, 0], [1, 0]]), np.array([[0, 0], [1, 0]])
    values = evaluate(true, pred, zero_division=zero_division)
    for name, function in RATIOS.items():
        assert values[name] == function(true, pred, zero_division=zero_division)
