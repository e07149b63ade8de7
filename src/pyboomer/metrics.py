"""A metric: one number for how well predicted label vectors, or scores, agree with the true labels.

Every metric takes the true labels as a matrix of 0 and 1 of shape (N, K), and what was predicted as one of the same
shape: arrays, sparse matrices or DataFrames. Two vectors are taken as the single column of such matrices. `METRICS` are
about predicted labels, `RANKINGS` about scores or probabilities. All agree with the metrics of scikit-learn where it
has them.

In the formulas, y_n and p_n are the sets of true and of predicted labels of example n, and |.| counts. Weights
replace means over examples by weighted means, and counts of examples by sums of their weights.

A true label that is NaN, None, NA or masked is not known. It is left out, as if the example or the label did not exist
there. Examples and labels without any known value are left out, too.

Some measures are 0/0 for some examples, such as the precision of an example without predicted labels. The parameter
`zero_division` says what counts there: 1 by default, since nothing is wrong; scikit-learn has 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyboomer.arrays import is_missing


def hamming_loss(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Return the share of labels that are predicted wrongly.

    This is equation 4 of the paper.

    .. math:: \frac{1}{N K} \sum_n \sum_k [y_{nk} \neq p_{nk}]

    Parameters
    ----------
    Y_true, Y_pred : array-like, sparse matrix or DataFrame of shape (N, K)
        True and predicted labels, 0 or 1; NaN for a true one that is not known.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.

    Returns
    -------
    float
        Between 0 (all labels are right) and 1.

    Examples
    --------
    >>> from pyboomer.metrics import hamming_loss
    >>> Y_true = [[1, 0, 1, 0], [0, 1, 0, 0]]
    >>> Y_pred = [[1, 0, 0, 0], [0, 1, 1, 0]]
    >>> hamming_loss(Y_true, Y_pred)
    0.25
    """
    true, pred, known, weight = _check(Y_true, Y_pred, sample_weight)
    return float((weight @ (true != pred).sum(axis=1)) / (weight @ known.sum(axis=1)))


def subset_zero_one_loss(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Return the share of examples with at least one label predicted wrongly.

    This is equation 5 of the paper.

    .. math:: \frac{1}{N} \sum_n [y_n \neq p_n]

    Parameters
    ----------
    Y_true, Y_pred : array-like, sparse matrix or DataFrame of shape (N, K)
        True and predicted labels, 0 or 1; NaN for a true one that is not known.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.

    Returns
    -------
    float
        Between 0 (all label vectors are right) and 1.

    Examples
    --------
    >>> from pyboomer.metrics import subset_zero_one_loss
    >>> Y_true = [[1, 0, 1, 0], [0, 1, 0, 0]]
    >>> Y_pred = [[1, 0, 0, 0], [0, 1, 1, 0]]
    >>> subset_zero_one_loss(Y_true, Y_pred)
    1.0
    """
    true, pred, _, weight = _check(Y_true, Y_pred, sample_weight)
    return float(np.average((true != pred).any(axis=1), weights=weight))


def example_f1(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: int = 1) -> float:
    r"""Return the mean over examples of the harmonic mean of precision and recall.

    .. math:: \frac{1}{N} \sum_n \frac{2 |y_n \cap p_n|}{|y_n| + |p_n|}

    Parameters
    ----------
    Y_true, Y_pred : array-like, sparse matrix or DataFrame of shape (N, K)
        True and predicted labels, 0 or 1; NaN for a true one that is not known.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.
    zero_division : {0, 1}, default=1
        The value of an example without true and without predicted labels; 1 means that nothing is wrong with it.

    Returns
    -------
    float
        Between 0 and 1 (all label vectors are right).

    Examples
    --------
    >>> from pyboomer.metrics import example_f1
    >>> Y_true = [[1, 0, 1, 0], [0, 1, 0, 0]]
    >>> Y_pred = [[1, 0, 0, 0], [0, 1, 1, 0]]
    >>> round(example_f1(Y_true, Y_pred), 3)
    0.667
    """
    true, pred, _, weight = _check(Y_true, Y_pred, sample_weight)
    both = (true & pred).sum(axis=1)
    ratios = _divide(2 * both, true.sum(axis=1) + pred.sum(axis=1), zero_division)
    return float(np.average(ratios, weights=weight))


def example_precision(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: int = 1) -> float:
    r"""Return the mean over examples of the share of predicted labels that are true.

    .. math:: \frac{1}{N} \sum_n \frac{|y_n \cap p_n|}{|p_n|}

    Parameters
    ----------
    Y_true, Y_pred : array-like, sparse matrix or DataFrame of shape (N, K)
        True and predicted labels, 0 or 1; NaN for a true one that is not known.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.
    zero_division : {0, 1}, default=1
        The value of an example without predicted labels, whatever its true ones.

    Returns
    -------
    float
        Between 0 and 1 (all predicted labels are true).

    Examples
    --------
    >>> from pyboomer.metrics import example_precision
    >>> Y_true = [[1, 0, 1, 0], [0, 1, 0, 0]]
    >>> Y_pred = [[1, 0, 0, 0], [0, 1, 1, 0]]
    >>> round(example_precision(Y_true, Y_pred), 3)
    0.75
    """
    true, pred, _, weight = _check(Y_true, Y_pred, sample_weight)
    ratios = _divide((true & pred).sum(axis=1), pred.sum(axis=1), zero_division)
    return float(np.average(ratios, weights=weight))


def example_recall(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: int = 1) -> float:
    r"""Return the mean over examples of the share of true labels that are predicted.

    .. math:: \frac{1}{N} \sum_n \frac{|y_n \cap p_n|}{|y_n|}

    Parameters
    ----------
    Y_true, Y_pred : array-like, sparse matrix or DataFrame of shape (N, K)
        True and predicted labels, 0 or 1; NaN for a true one that is not known.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.
    zero_division : {0, 1}, default=1
        The value of an example without true labels, whatever its predicted ones.

    Returns
    -------
    float
        Between 0 and 1 (all true labels are predicted).

    Examples
    --------
    >>> from pyboomer.metrics import example_recall
    >>> Y_true = [[1, 0, 1, 0], [0, 1, 0, 0]]
    >>> Y_pred = [[1, 0, 0, 0], [0, 1, 1, 0]]
    >>> round(example_recall(Y_true, Y_pred), 3)
    0.75
    """
    true, pred, _, weight = _check(Y_true, Y_pred, sample_weight)
    ratios = _divide((true & pred).sum(axis=1), true.sum(axis=1), zero_division)
    return float(np.average(ratios, weights=weight))


def example_jaccard(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: int = 1) -> float:
    r"""Return the mean over examples of the share of labels, true or predicted, that are both.

    .. math:: \frac{1}{N} \sum_n \frac{|y_n \cap p_n|}{|y_n \cup p_n|}

    Parameters
    ----------
    Y_true, Y_pred : array-like, sparse matrix or DataFrame of shape (N, K)
        True and predicted labels, 0 or 1; NaN for a true one that is not known.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.
    zero_division : {0, 1}, default=1
        The value of an example without true and without predicted labels; 1 means that nothing is wrong with it.

    Returns
    -------
    float
        Between 0 and 1 (all label vectors are right).

    Examples
    --------
    >>> from pyboomer.metrics import example_jaccard
    >>> Y_true = [[1, 0, 1, 0], [0, 1, 0, 0]]
    >>> Y_pred = [[1, 0, 0, 0], [0, 1, 1, 0]]
    >>> round(example_jaccard(Y_true, Y_pred), 3)
    0.5
    """
    true, pred, _, weight = _check(Y_true, Y_pred, sample_weight)
    ratios = _divide((true & pred).sum(axis=1), (true | pred).sum(axis=1), zero_division)
    return float(np.average(ratios, weights=weight))


def micro_f1(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: int = 1) -> float:
    r"""Return the F1 of all labels of all examples taken together.

    .. math:: \frac{\sum_n 2 |y_n \cap p_n|}{\sum_n |y_n| + |p_n|}

    Parameters
    ----------
    Y_true, Y_pred : array-like, sparse matrix or DataFrame of shape (N, K)
        True and predicted labels, 0 or 1; NaN for a true one that is not known.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.
    zero_division : {0, 1}, default=1
        The result if no example has any label, true or predicted.

    Returns
    -------
    float
        Between 0 and 1, all labels are right.

    Examples
    --------
    >>> from pyboomer.metrics import micro_f1
    >>> Y_true = [[1, 0, 1, 0], [0, 1, 0, 0]]
    >>> Y_pred = [[1, 0, 0, 0], [0, 1, 1, 0]]
    >>> round(micro_f1(Y_true, Y_pred), 3)
    0.667
    """
    true, pred, _, weight = _check(Y_true, Y_pred, sample_weight)
    both = weight @ (true & pred).sum(axis=1)
    ratio = _divide(2 * both, weight @ (true.sum(axis=1) + pred.sum(axis=1)), zero_division)
    return float(ratio)


def macro_f1(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: int = 1) -> float:
    r"""Return the mean over labels of the F1 of each.

    .. math:: \frac{1}{K} \sum_k \frac{2 \sum_n y_{nk} p_{nk}}{\sum_n y_{nk} + p_{nk}}

    Parameters
    ----------
    Y_true, Y_pred : array-like, sparse matrix or DataFrame of shape (N, K)
        True and predicted labels, 0 or 1; NaN for a true one that is not known.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.
    zero_division : {0, 1}, default=1
        What a label counts that no example has, true or predicted: by default 1, nothing is wrong with it.

    Returns
    -------
    float
        Between 0 and 1, all labels are right.

    Examples
    --------
    >>> from pyboomer.metrics import macro_f1
    >>> Y_true = [[1, 0, 1, 0], [0, 1, 0, 0]]
    >>> Y_pred = [[1, 0, 0, 0], [0, 1, 1, 0]]
    >>> round(macro_f1(Y_true, Y_pred), 3)
    0.75
    """
    true, pred, known, weight = _check(Y_true, Y_pred, sample_weight)
    both = weight @ (true & pred)
    ratios = _divide(2 * both, weight @ true + weight @ pred, zero_division)
    return float(ratios[weight @ known > 0].mean())


# --- Rankings ---------------------------------------------------------------------------------------------------------


def average_precision(Y_true: Any, scores: Any, *, sample_weight: Any = None) -> float:
    r"""Return the label ranking average precision: how many of the labels ranked as high as a true one are true.

    .. math:: \frac{1}{N} \sum_n \frac{1}{|y_n|} \sum_{k \in y_n}
        \frac{|\{j \in y_n: s_{nj} \geq s_{nk}\}|}{|\{j: s_{nj} \geq s_{nk}\}|}

    An example counts 1 if all or none of its labels are true.

    Parameters
    ----------
    Y_true : array-like, sparse matrix or DataFrame of shape (N, K)
        True labels, 0 or 1; NaN for one that is not known.
    scores : array-like of shape (N, K)
        Scores or probabilities of the labels.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.

    Returns
    -------
    float
        Above 0, up to 1: all true labels are ranked before all others.

    Examples
    --------
    >>> from pyboomer.metrics import average_precision
    >>> Y_true = [[1, 0, 1, 0], [0, 1, 0, 0]]
    >>> scores = [[0.9, 0.2, 0.4, 0.5], [0.1, 0.8, 0.3, 0.2]]
    >>> round(average_precision(Y_true, scores), 3)
    0.917
    """
    return _rank_labels(Y_true, scores, sample_weight, lambda own, others, _: float(np.mean(own / (own + others))), 1.0)


def coverage_error(Y_true: Any, scores: Any, *, sample_weight: Any = None) -> float:
    r"""Return how far down the ranking one must go, on average, to find all true labels.

    .. math:: \frac{1}{N} \sum_n \max_{k \in y_n} |\{j: s_{nj} \geq s_{nk}\}|

    An example counts 0 if none of its labels is true. With many of these, the mean may be below 1.

    Parameters
    ----------
    Y_true : array-like, sparse matrix or DataFrame of shape (N, K)
        True labels, 0 or 1; NaN for one that is not known.
    scores : array-like of shape (N, K)
        Scores or probabilities of the labels.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.

    Returns
    -------
    float
        At least the mean number of true labels, at most the number of all.

    Examples
    --------
    >>> from pyboomer.metrics import coverage_error
    >>> Y_true = [[1, 0, 1, 0], [0, 1, 0, 0]]
    >>> scores = [[0.9, 0.2, 0.4, 0.5], [0.1, 0.8, 0.3, 0.2]]
    >>> round(coverage_error(Y_true, scores), 3)
    2.0
    """
    return _rank_labels(Y_true, scores, sample_weight, lambda own, others, _: float(np.max(own + others)), 0.0)


def ranking_loss(Y_true: Any, scores: Any, *, sample_weight: Any = None) -> float:
    r"""Return the share of pairs of a true label and another where the other is ranked as high or higher.

    .. math:: \frac{1}{N} \sum_n \frac{|\{(k, j): k \in y_n, j \notin y_n, s_{nj} \geq s_{nk}\}|}{|y_n| (K - |y_n|)}

    An example counts 0 if all or none of its labels are true.

    Parameters
    ----------
    Y_true : array-like, sparse matrix or DataFrame of shape (N, K)
        True labels, 0 or 1; NaN for one that is not known.
    scores : array-like of shape (N, K)
        Scores or probabilities of the labels.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.

    Returns
    -------
    float
        Between 0 (all true labels are ranked before all others) and 1.

    Examples
    --------
    >>> from pyboomer.metrics import ranking_loss
    >>> Y_true = [[1, 0, 1, 0], [0, 1, 0, 0]]
    >>> scores = [[0.9, 0.2, 0.4, 0.5], [0.1, 0.8, 0.3, 0.2]]
    >>> round(ranking_loss(Y_true, scores), 3)
    0.125
    """
    return _rank_labels(
        Y_true, scores, sample_weight, lambda _, others, n: float(np.mean(others)) / n if n else 0.0, 0.0
    )


def one_error(Y_true: Any, scores: Any, *, sample_weight: Any = None) -> float:
    r"""Return the share of examples whose label of the largest score is not true.

    .. math:: \frac{1}{N} \sum_n [\max_{k \in y_n} s_{nk} \leq \max_{j \notin y_n} s_{nj}]

    Of equal scores, the wrong one counts. An example counts 0 if none of its labels is true: there is none to find.

    Parameters
    ----------
    Y_true : array-like, sparse matrix or DataFrame of shape (N, K)
        True labels, 0 or 1; NaN for one that is not known.
    scores : array-like of shape (N, K)
        Scores or probabilities of the labels.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.

    Returns
    -------
    float
        Between 0 (the first label of each example is true) and 1.

    Examples
    --------
    >>> from pyboomer.metrics import one_error
    >>> Y_true = [[1, 0, 1, 0], [0, 1, 0, 0]]
    >>> scores = [[0.9, 0.2, 0.4, 0.5], [0.1, 0.8, 0.3, 0.2]]
    >>> round(one_error(Y_true, scores), 3)
    0.0
    """
    return _rank_labels(Y_true, scores, sample_weight, lambda _, others, __: float(np.min(others) > 0), 0.0)


def micro_auc(Y_true: Any, scores: Any, *, sample_weight: Any = None) -> float:
    r"""Return the area under the ROC curve of all labels of all examples taken together.

    It is the probability that a true label has a larger score than one that is not true, whichever the examples; of
    equal scores, half of it.

    Parameters
    ----------
    Y_true : array-like, sparse matrix or DataFrame of shape (N, K)
        True labels, 0 or 1; NaN for one that is not known.
    scores : array-like of shape (N, K)
        Scores or probabilities of the labels.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.

    Returns
    -------
    float
        Between 0 and 1; 1/2 is chance. NaN if all labels are true, or none is.

    Examples
    --------
    >>> from pyboomer.metrics import micro_auc
    >>> Y_true = [[1, 0, 1, 0], [0, 1, 0, 0]]
    >>> scores = [[0.9, 0.2, 0.4, 0.5], [0.1, 0.8, 0.3, 0.2]]
    >>> round(micro_auc(Y_true, scores), 3)
    0.933
    """
    true, values, known, weight = _check_ranking(Y_true, scores, sample_weight)
    return _find_auc(true[known], values[known], np.broadcast_to(weight[:, None], known.shape)[known])


def macro_auc(Y_true: Any, scores: Any, *, sample_weight: Any = None) -> float:
    r"""Return the mean over labels of the area under the ROC curve of each.

    A label has no such area if all examples have it, or none has: it is left out.

    Parameters
    ----------
    Y_true : array-like, sparse matrix or DataFrame of shape (N, K)
        True labels, 0 or 1; NaN for one that is not known.
    scores : array-like of shape (N, K)
        Scores or probabilities of the labels.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.

    Returns
    -------
    float
        Between 0 and 1; 1/2 is chance. NaN if no label has such an area.

    Examples
    --------
    >>> from pyboomer.metrics import macro_auc
    >>> Y_true = [[1, 0, 1, 0], [0, 1, 0, 0]]
    >>> scores = [[0.9, 0.2, 0.4, 0.5], [0.1, 0.8, 0.3, 0.2]]
    >>> round(macro_auc(Y_true, scores), 3)
    1.0
    """
    true, values, known, weight = _check_ranking(Y_true, scores, sample_weight)
    columns = zip(true.T, values.T, known.T, strict=True)
    areas = np.array([_find_auc(y[of], s[of], weight[of]) for y, s, of in columns])
    defined = ~np.isnan(areas)
    return float(areas[defined].mean()) if defined.any() else float("nan")


def _rank_labels(
    Y_true: Any,
    scores: Any,
    sample_weight: Any,
    rate: Callable[[np.ndarray, np.ndarray, int], float],
    without: float,
) -> float:
    """The mean over examples of a rating; that of an example without true labels is given.

    `rate` gets, for each true label, how many true labels and how many others are ranked as high, itself included, and
    the number of others.
    """
    true, values, known, weight = _check_ranking(Y_true, scores, sample_weight)
    ratings = np.full(len(true), without)
    for n in np.flatnonzero(true.any(axis=1)):
        own, others = np.sort(values[n, true[n]]), np.sort(values[n, known[n] & ~true[n]])
        own_rank, others_rank = (len(ranked) - np.searchsorted(ranked, own) for ranked in (own, others))
        ratings[n] = rate(own_rank, others_rank, len(others))
    return float(np.average(ratings, weights=weight))


def _find_auc(true: np.ndarray, scores: np.ndarray, weight: np.ndarray) -> float:
    """The share of pairs, by weight, of which the true one has the larger score; NaN if there is no pair."""
    distinct, place = np.unique(scores, return_inverse=True)
    for_it = np.bincount(place, weights=weight * true, minlength=len(distinct))
    against = np.bincount(place, weights=weight * ~true, minlength=len(distinct))
    pairs = for_it.sum() * against.sum()
    below = np.cumsum(against) - against / 2  # of equals, half
    return float(for_it @ below / pairs) if pairs > 0 else float("nan")


# --- All of them ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Metric:
    """A function of true labels and predictions, with its sense: whether larger is better, and whether it can be 0/0.

    Examples
    --------
    >>> from pyboomer.metrics import METRICS
    >>> metric = METRICS["hamming_loss"]
    >>> metric.larger_is_better
    False
    >>> metric([[1, 0, 1, 0]], [[1, 0, 0, 0]])
    0.25
    """

    function: Callable[..., float]
    larger_is_better: bool
    may_divide_by_zero: bool = False

    def __call__(self, Y_true: Any, Y_pred: Any, **options: Any) -> float:
        """Return the value of the metric."""
        return self.function(Y_true, Y_pred, **options)


METRICS: dict[str, Metric] = {
    "hamming_loss": Metric(hamming_loss, larger_is_better=False),
    "subset_zero_one_loss": Metric(subset_zero_one_loss, larger_is_better=False),
    "example_f1": Metric(example_f1, larger_is_better=True, may_divide_by_zero=True),
    "example_precision": Metric(example_precision, larger_is_better=True, may_divide_by_zero=True),
    "example_recall": Metric(example_recall, larger_is_better=True, may_divide_by_zero=True),
    "example_jaccard": Metric(example_jaccard, larger_is_better=True, may_divide_by_zero=True),
    "micro_f1": Metric(micro_f1, larger_is_better=True, may_divide_by_zero=True),
    "macro_f1": Metric(macro_f1, larger_is_better=True, may_divide_by_zero=True),
}  # of predicted labels

RANKINGS: dict[str, Metric] = {
    "average_precision": Metric(average_precision, larger_is_better=True),
    "coverage_error": Metric(coverage_error, larger_is_better=False),
    "ranking_loss": Metric(ranking_loss, larger_is_better=False),
    "one_error": Metric(one_error, larger_is_better=False),
    "micro_auc": Metric(micro_auc, larger_is_better=True),
    "macro_auc": Metric(macro_auc, larger_is_better=True),
}  # of scores


def evaluate(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, zero_division: int = 1) -> dict[str, float]:
    """Return the value of every metric of predicted labels by its name.

    Parameters
    ----------
    Y_true, Y_pred : array-like, sparse matrix or DataFrame of shape (N, K)
        True and predicted labels, 0 or 1; NaN for a true one that is not known.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.
    zero_division : {0, 1}, default=1
        What counts where a measure is 0/0; see each metric.

    Returns
    -------
    dict of str to float
        In the order of `METRICS`.

    Examples
    --------
    >>> from pyboomer.metrics import evaluate
    >>> values = evaluate([[1, 0, 1, 0], [0, 1, 0, 0]], [[1, 0, 0, 0], [0, 1, 1, 0]])
    >>> values["hamming_loss"], values["subset_zero_one_loss"]
    (0.25, 1.0)
    """
    true, pred, known, weight = _check(Y_true, Y_pred, sample_weight)
    read, values = np.ma.array(true, mask=~known), {}
    for name, metric in METRICS.items():
        options = {"zero_division": zero_division} if metric.may_divide_by_zero else {}
        values[name] = metric(read, pred, sample_weight=weight, **options)
    return values


def evaluate_ranking(Y_true: Any, scores: Any, *, sample_weight: Any = None) -> dict[str, float]:
    """Return the value of every metric of scores by its name.

    Parameters
    ----------
    Y_true : array-like, sparse matrix or DataFrame of shape (N, K)
        True labels, 0 or 1; NaN for one that is not known.
    scores : array-like of shape (N, K)
        Scores or probabilities of the labels.
    sample_weight : array-like of shape (N,), optional
        Weights of the examples.

    Returns
    -------
    dict of str to float
        In the order of `RANKINGS`.

    Examples
    --------
    >>> from pyboomer.metrics import evaluate_ranking
    >>> values = evaluate_ranking([[1, 0, 1, 0], [0, 1, 0, 0]], [[0.9, 0.2, 0.4, 0.5], [0.1, 0.8, 0.3, 0.2]])
    >>> values["ranking_loss"], values["one_error"]
    (0.125, 0.0)
    """
    true, values, known, weight = _check_ranking(Y_true, scores, sample_weight)
    read = np.ma.array(true, mask=~known)
    return {name: metric(read, values, sample_weight=weight) for name, metric in RANKINGS.items()}


# --- What is passed ---------------------------------------------------------------------------------------------------

Checked = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _check(Y_true: Any, Y_pred: Any, sample_weight: Any) -> Checked:
    """Return true and predicted labels as booleans, both False where unknown; which are known; weights of examples."""
    true, known = _read_labels("Y_true", Y_true)
    pred, predicted = _read_labels("Y_pred", Y_pred)
    if not predicted.all():
        place = _describe_place(np.argwhere(~predicted)[0])
        raise ValueError(f"Y_pred must hold 0 and 1 only, got a missing value in {place}")
    true, pred, known, weight = _fit_together("Y_pred", true, pred, known, sample_weight)
    return true, pred & known, known, weight


def _check_ranking(Y_true: Any, scores: Any, sample_weight: Any) -> Checked:
    """Return true labels as booleans, False where unknown; the scores; which labels are known; weights of examples."""
    true, known = _read_labels("Y_true", Y_true)
    values = np.ma.asarray(scores, dtype=np.float64).filled(np.nan)
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        raise ValueError(f"scores must be finite, got {values[tuple(wrong[0])]} in {_describe_place(wrong[0])}")
    return _fit_together("scores", true, values, known, sample_weight)


def _fit_together(name: str, true: np.ndarray, predicted: np.ndarray, known: np.ndarray, sample_weight: Any) -> Checked:
    """Return all as matrices, and the weights of the examples, or raise an error that names the culprit.

    The weight is 0 of an example without any known label.
    """
    if true.shape != predicted.shape:
        raise ValueError(f"{name} has shape {predicted.shape}, but Y_true has shape {true.shape}")
    if true.size == 0:
        raise ValueError(f"Y_true and {name} are empty, their shape is {true.shape}")
    if true.ndim == 1:
        true, predicted, known = true[:, np.newaxis], predicted[:, np.newaxis], known[:, np.newaxis]
    n = len(true)
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}, but Y_true has {n} examples")
    if not np.isfinite(weight).all() or (weight < 0).any() or weight.sum() == 0:
        raise ValueError("sample_weight must be finite and not negative, and not all zero")
    weight = np.where(known.any(axis=1), weight, 0.0)
    if weight.sum() == 0:
        raise ValueError("Y_true has no label that is known, in examples of any weight")
    return true, predicted, known, weight


def _read_labels(name: str, Y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Labels as booleans, False where they are unknown, and which are known."""
    given = np.ma.asarray(Y.toarray() if hasattr(Y, "toarray") else Y)  # sparse matrices and arrays have it
    if given.ndim not in (1, 2):
        raise ValueError(f"{name} must have two dimensions, examples and labels, got shape {given.shape}")
    known = ~np.ma.getmaskarray(given)
    if given.dtype.kind == "f":
        known &= ~np.isnan(given.data)
    elif given.dtype.kind == "O":
        known &= ~np.array([is_missing(value) for value in given.data.ravel()], dtype=bool).reshape(given.shape)
    labels: np.ndarray = np.where(known, given.data, np.zeros((), dtype=given.dtype))
    wrong = np.argwhere((labels != 0) & (labels != 1) & known)
    if len(wrong):
        raise ValueError(
            f"{name} must hold 0 and 1 only, got {labels[tuple(wrong[0])]!s} in {_describe_place(wrong[0])}"
        )
    return (labels == 1) & known, known


def _describe_place(index: np.ndarray) -> str:
    return ", ".join(f"{what} {i}" for what, i in zip(("row", "column"), index.tolist(), strict=False))


def _divide(numerator: np.ndarray, denominator: np.ndarray, zero_division: int) -> np.ndarray:
    if zero_division not in (0, 1):
        raise ValueError(f"zero_division must be 0 or 1, got {zero_division!r}")
    is_zero = np.equal(denominator, 0)
    return np.where(is_zero, zero_division, numerator / np.where(is_zero, 1, denominator))
