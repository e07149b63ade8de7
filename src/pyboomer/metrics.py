"""A metric: one number for how well predicted label vectors agree with the true ones.

Every metric takes the true and the predicted labels as matrices of 0 and 1 of the same shape (N, K): arrays, sparse
matrices or DataFrames. Two vectors are taken as the single column of such matrices. All agree with the metrics of
scikit-learn where it has them.

In the formulas, y_n and p_n are the sets of true and of predicted labels of example n, and |.| counts. Weights
replace means over examples by weighted means, and counts of examples by sums of their weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


def hamming_loss(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Return the share of labels that are predicted wrongly, Eq. 4 of the paper.

    .. math:: \frac{1}{N K} \sum_n \sum_k [y_{nk} \neq p_{nk}]

    Parameters
    ----------
    Y_true, Y_pred : array-like, sparse matrix or DataFrame of shape (N, K)
        True and predicted labels, 0 or 1.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.

    Returns
    -------
    float
        Between 0, all labels are right, and 1.
    """
    true, pred, weight = _check(Y_true, Y_pred, sample_weight)
    return float(np.average((true != pred).mean(axis=1), weights=weight))


def subset_zero_one_loss(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Return the share of examples with at least one label predicted wrongly, Eq. 5 of the paper.

    .. math:: \frac{1}{N} \sum_n [y_n \neq p_n]

    Parameters
    ----------
    Y_true, Y_pred : array-like, sparse matrix or DataFrame of shape (N, K)
        True and predicted labels, 0 or 1.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.

    Returns
    -------
    float
        Between 0, all label vectors are right, and 1.
    """
    true, pred, weight = _check(Y_true, Y_pred, sample_weight)
    return float(np.average((true != pred).any(axis=1), weights=weight))


def example_f1(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: int = 1) -> float:
    r"""Return the mean over examples of the harmonic mean of precision and recall.

    .. math:: \frac{1}{N} \sum_n \frac{2 |y_n \cap p_n|}{|y_n| + |p_n|}

    Parameters
    ----------
    Y_true, Y_pred : array-like, sparse matrix or DataFrame of shape (N, K)
        True and predicted labels, 0 or 1.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.
    zero_division : {0, 1}, default=1
        What an example counts that has no true and no predicted label: by default 1, nothing is wrong with it.

    Returns
    -------
    float
        Between 0 and 1, all label vectors are right.
    """
    true, pred, weight = _check(Y_true, Y_pred, sample_weight)
    both = (true & pred).sum(axis=1)
    ratios = _divide(2 * both, true.sum(axis=1) + pred.sum(axis=1), zero_division)
    return float(np.average(ratios, weights=weight))


def example_precision(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: int = 1) -> float:
    r"""Return the mean over examples of the share of predicted labels that are true.

    .. math:: \frac{1}{N} \sum_n \frac{|y_n \cap p_n|}{|p_n|}

    Parameters
    ----------
    Y_true, Y_pred : array-like, sparse matrix or DataFrame of shape (N, K)
        True and predicted labels, 0 or 1.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.
    zero_division : {0, 1}, default=1
        What an example counts that has no predicted label, whatever its true ones: by default 1.

    Returns
    -------
    float
        Between 0 and 1, all predicted labels are true.
    """
    true, pred, weight = _check(Y_true, Y_pred, sample_weight)
    ratios = _divide((true & pred).sum(axis=1), pred.sum(axis=1), zero_division)
    return float(np.average(ratios, weights=weight))


def example_recall(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: int = 1) -> float:
    r"""Return the mean over examples of the share of true labels that are predicted.

    .. math:: \frac{1}{N} \sum_n \frac{|y_n \cap p_n|}{|y_n|}

    Parameters
    ----------
    Y_true, Y_pred : array-like, sparse matrix or DataFrame of shape (N, K)
        True and predicted labels, 0 or 1.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.
    zero_division : {0, 1}, default=1
        What an example counts that has no true label, whatever its predicted ones: by default 1.

    Returns
    -------
    float
        Between 0 and 1, all true labels are predicted.
    """
    true, pred, weight = _check(Y_true, Y_pred, sample_weight)
    ratios = _divide((true & pred).sum(axis=1), true.sum(axis=1), zero_division)
    return float(np.average(ratios, weights=weight))


def example_jaccard(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: int = 1) -> float:
    r"""Return the mean over examples of the share of labels, true or predicted, that are both.

    .. math:: \frac{1}{N} \sum_n \frac{|y_n \cap p_n|}{|y_n \cup p_n|}

    Parameters
    ----------
    Y_true, Y_pred : array-like, sparse matrix or DataFrame of shape (N, K)
        True and predicted labels, 0 or 1.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.
    zero_division : {0, 1}, default=1
        What an example counts that has no true and no predicted label: by default 1, nothing is wrong with it.

    Returns
    -------
    float
        Between 0 and 1, all label vectors are right.
    """
    true, pred, weight = _check(Y_true, Y_pred, sample_weight)
    ratios = _divide((true & pred).sum(axis=1), (true | pred).sum(axis=1), zero_division)
    return float(np.average(ratios, weights=weight))


def micro_f1(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: int = 1) -> float:
    r"""Return the F1 of all labels of all examples taken together.

    .. math:: \frac{\sum_n 2 |y_n \cap p_n|}{\sum_n |y_n| + |p_n|}

    Parameters
    ----------
    Y_true, Y_pred : array-like, sparse matrix or DataFrame of shape (N, K)
        True and predicted labels, 0 or 1.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.
    zero_division : {0, 1}, default=1
        The result if no example has any label, true or predicted.

    Returns
    -------
    float
        Between 0 and 1, all labels are right.
    """
    true, pred, weight = _check(Y_true, Y_pred, sample_weight)
    both = weight @ (true & pred).sum(axis=1)
    ratio = _divide(2 * both, weight @ (true.sum(axis=1) + pred.sum(axis=1)), zero_division)
    return float(ratio)


def macro_f1(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: int = 1) -> float:
    r"""Return the mean over labels of the F1 of each.

    .. math:: \frac{1}{K} \sum_k \frac{2 \sum_n y_{nk} p_{nk}}{\sum_n y_{nk} + p_{nk}}

    Parameters
    ----------
    Y_true, Y_pred : array-like, sparse matrix or DataFrame of shape (N, K)
        True and predicted labels, 0 or 1.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.
    zero_division : {0, 1}, default=1
        What a label counts that no example has, true or predicted: by default 1, nothing is wrong with it.

    Returns
    -------
    float
        Between 0 and 1, all labels are right.
    """
    true, pred, weight = _check(Y_true, Y_pred, sample_weight)
    both = weight @ (true & pred)
    return float(_divide(2 * both, weight @ true + weight @ pred, zero_division).mean())


@dataclass(frozen=True)
class Metric:
    """A function of true and predicted labels, and whether more of it is better."""

    function: Callable[..., float]
    larger_is_better: bool

    def __call__(self, Y_true: Any, Y_pred: Any, **options: Any) -> float:
        """Return the value of the metric."""
        return self.function(Y_true, Y_pred, **options)


METRICS: dict[str, Metric] = {
    "hamming_loss": Metric(hamming_loss, larger_is_better=False),
    "subset_zero_one_loss": Metric(subset_zero_one_loss, larger_is_better=False),
    "example_f1": Metric(example_f1, larger_is_better=True),
    "example_precision": Metric(example_precision, larger_is_better=True),
    "example_recall": Metric(example_recall, larger_is_better=True),
    "example_jaccard": Metric(example_jaccard, larger_is_better=True),
    "micro_f1": Metric(micro_f1, larger_is_better=True),
    "macro_f1": Metric(macro_f1, larger_is_better=True),
}


def evaluate(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None) -> dict[str, float]:
    """Return the value of every metric by its name.

    Parameters
    ----------
    Y_true, Y_pred : array-like, sparse matrix or DataFrame of shape (N, K)
        True and predicted labels, 0 or 1.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.

    Returns
    -------
    dict of str to float
        In the order of `METRICS`.
    """
    true, pred, weight = _check(Y_true, Y_pred, sample_weight)
    return {name: metric(true, pred, sample_weight=weight) for name, metric in METRICS.items()}


def _check(Y_true: Any, Y_pred: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return both matrices as booleans and the weights of the examples, or raise an error that names the culprit."""
    true, pred = _read_labels("Y_true", Y_true), _read_labels("Y_pred", Y_pred)
    if true.shape != pred.shape:
        raise ValueError(f"Y_pred has shape {pred.shape}, but Y_true has shape {true.shape}")
    if true.size == 0:
        raise ValueError(f"Y_true and Y_pred are empty, their shape is {true.shape}")
    if true.ndim == 1:
        true, pred = true[:, np.newaxis], pred[:, np.newaxis]
    n = len(true)
    if sample_weight is None:
        return true, pred, np.ones(n)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}, but Y_true has {n} examples")
    if not np.isfinite(weight).all() or (weight < 0).any() or weight.sum() == 0:
        raise ValueError("sample_weight must be finite and not negative, and not all zero")
    return true, pred, weight


def _read_labels(name: str, Y: Any) -> np.ndarray:
    labels = np.asarray(Y.toarray() if hasattr(Y, "toarray") else Y)  # sparse matrices and arrays have it
    if labels.ndim not in (1, 2):
        raise ValueError(f"{name} must have two dimensions, examples and labels, got shape {labels.shape}")
    if labels.dtype == bool:
        return labels
    wrong = np.argwhere((labels != 0) & (labels != 1))
    if len(wrong):
        place = ", ".join(f"{what} {i}" for what, i in zip(("row", "column"), wrong[0].tolist(), strict=False))
        raise ValueError(f"{name} must hold 0 and 1 only, got {labels[tuple(wrong[0])]!s} in {place}")
    return labels == 1


def _divide(numerator: np.ndarray, denominator: np.ndarray, zero_division: int) -> np.ndarray:
    if zero_division not in (0, 1):
        raise ValueError(f"zero_division must be 0 or 1, got {zero_division!r}")
    is_zero = np.equal(denominator, 0)
    return np.where(is_zero, zero_division, numerator / np.where(is_zero, 1, denominator))
