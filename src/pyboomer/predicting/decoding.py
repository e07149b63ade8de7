"""Decoding turns scores into a label vector (Sec. 4.3): the best answer depends on the measure one is judged by.

The probability of a label is logistic(f_k), whatever the loss; scores and probabilities rank examples alike. The joint
probability of a label vector is that of independent labels, conditioned on the vector being a known one, one that
occurs in the training data: P(y) is proportional to prod_k logistic(y_k f_k). This was measured to be much better
calibrated than exp(-loss), which for the example-wise logistic loss is far too flat.

The joint logistic loss is about the known vectors themselves: it gives each a score, and thus a probability, from which
those of the labels follow.

From these follow the decodings, each the best answer for a measure if the probabilities are right:

==============  ===================================================================================================
`decode`        label vector
==============  ===================================================================================================
``"loss"``      the paper's: signs for a decomposable loss (Eq. 18), else the known vector of least loss (Eq. 19)
``"hamming"``   each label whose probability is above 1/2
``"subset"``    the most probable known vector
``"f1"``        the vector of largest expected F-measure
``"top-3"``     the three most probable labels; any number
thresholds      each label whose probability is above its threshold
==============  ===================================================================================================

Log-odds, an (N, K) array, are what scores mean as probabilities; see `Loss.log_odds`.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax

from pyboomer.arrays import Array, Vectors
from pyboomer.losses import Loss, example_wise_logistic
from pyboomer.losses.squared import example_wise_squared_error, example_wise_squared_hinge
from pyboomer.predicting.fmeasure import (
    Shares,
    choose_of_independent,
    choose_of_known,
    count_independent,
    count_known,
)
from pyboomer.predicting.search import Costs, convert, find_least
from pyboomer.rules.precision import CERTAIN, TIE

BLOCK_NUMBERS = 2**22  # numbers in the largest temporary array: 32 MB
NO_CURVE = np.empty((2, 0))  # probabilities of label vectors are taken as they are
WIDE = 300.0  # exponentials of scores beyond it, and their inverses, are not added up


def find_label_vectors(Y: Vectors, weight: Array) -> tuple[Vectors, Array]:
    """The distinct rows of Y, the most frequent (by weight) first, then the one seen first; and these weights."""
    first, group = group_equal(pack_bits(Y))
    frequency: Array = np.bincount(group, weights=weight).astype(np.float64)
    order = np.lexsort((first, -frequency))
    return np.ascontiguousarray(Y[first[order]]), frequency[order]


def pack_bits(Y: NDArray[Any]) -> NDArray[np.uint64]:
    """The rows of a matrix of 0 and 1, each a column of words of 64 bits: much faster to sort than rows of bytes."""
    bits = np.zeros((len(Y), -(-Y.shape[1] // 64) * 8), dtype=np.uint8)
    bits[:, : -(-Y.shape[1] // 8)] = np.packbits(Y, axis=1)
    return bits.view(np.uint64).T


def group_equal(words: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first of each group of equal columns, and the number of the group that each column is in."""
    order = np.lexsort(words)  # stable: of equals, the one seen first is first
    new = np.ones(len(order), dtype=bool)
    new[1:] = (words[:, order[1:]] != words[:, order[:-1]]).any(axis=0)
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(new) - 1
    return order[new], group


def add_incomplete(
    vectors: Vectors, counts: Array, Y: Vectors, known: NDArray[np.bool_], weight: Array
) -> tuple[Vectors, Array]:
    """Add a label vector for each incomplete one, of Y, that agrees with none of those known, if there are any.

    Those of which most is known come first. The unknown labels are what they are in the nearest vector: the one that
    differs in fewest of the known labels, of equals the first.
    """
    if len(vectors) == 0:
        return vectors, counts
    signs = np.where(known, 2.0 * Y - 1, 0.0)
    distinct, group = np.unique(signs, axis=0, return_inverse=True)
    weights = np.bincount(group.ravel(), weights=weight)
    every, size = np.empty((len(vectors) + len(distinct), vectors.shape[1])), len(vectors)
    every[:size] = vectors
    added = []
    for d in np.argsort((distinct == 0).sum(axis=1), kind="stable"):
        agreement = every[:size] @ distinct[d]  # less than it could be by the number of labels that differ
        nearest = int(agreement.argmax())
        if agreement[nearest] < (distinct[d] > 0).sum():
            every[size] = np.where(distinct[d] == 0, every[nearest], distinct[d] > 0)
            added.append(weights[d])
            size += 1
    return every[:size].astype(np.uint8), np.append(counts, added)


# --- Probabilities ----------------------------------------------------------------------------------------------------


def class_probabilities(log_odds: Array) -> Array:
    """P(class) of each class, exactly one of which is relevant; a single score is that of the second of two."""
    if log_odds.shape[1] == 1:
        log_odds = np.hstack([np.zeros_like(log_odds), log_odds])
    probabilities = softmax(np.clip(log_odds, -CERTAIN, CERTAIN), axis=1)
    # scores that differ in their last digits only have the same probability: let the largest still be told
    best = log_odds.argmax(axis=1)
    equal = np.flatnonzero(probabilities.argmax(axis=1) != best)
    probabilities[equal, best[equal]] = np.nextafter(probabilities[equal].max(axis=1), 1)
    return probabilities


def joint_probabilities(log_odds: Array, vectors: Vectors, bias: Array | float = 0.0) -> Array:
    """P(y) of each known label vector: prod_k logistic(y_k f_k), normalised over the known vectors."""
    return softmax(score_vectors(log_odds, vectors, bias), axis=1)


def score_vectors(log_odds: Array, vectors: Vectors, bias: Array | float = 0.0) -> Array:
    """log prod_k logistic(y_k f_k): the sum of f_k over the relevant labels, plus what all vectors share.

    The `bias` of each vector is added, what it scores besides its labels.
    """
    return np.asarray(np.clip(log_odds, -CERTAIN, CERTAIN) @ convert(vectors, np.float64).T + bias)


def marginal_probabilities(log_odds: Array, vectors: Vectors) -> Array:
    """P(label k is relevant), summed over the known label vectors."""
    result = np.empty(log_odds.shape)
    for rows, shares in share_out(log_odds, vectors):
        result[rows] = shares.of_labels.sum(axis=1)
    return np.clip(result, 0.0, 1.0)


def share_out(
    terms: Array, vectors: Vectors, bias: Array | float = 0.0, curve: Array = NO_CURVE
) -> Iterator[tuple[slice, Shares]]:
    """What the known label vectors say, some examples at a time; see `shares.share_out`."""
    from pyboomer.predicting import shares  # compiled: only who predicts needs a compiler

    known = shares.order_by_size(vectors, bias)
    return ((rows, shares.share_out(terms[rows], known, curve)) for rows in _blocks(len(terms), count_known(vectors)))


# --- Label vectors ----------------------------------------------------------------------------------------------------


def decode_by_sign(scores: Array) -> Vectors:
    """Each label by the sign of its score (Eq. 18)."""
    return (scores > 0).astype(np.uint8)


def decode_by_loss(scores: Array, vectors: Vectors, loss: Loss) -> Vectors:
    """The known label vector of least loss (Eq. 19); of equals, the first."""
    n = len(scores)
    if loss == example_wise_logistic:  # also one that was pickled
        costs = _exponentiate(scores)
        found = find_least(vectors, n, costs, partial(_add_up, costs, vectors), lambda least: least * (1 + TIE))
        for i in np.flatnonzero(np.abs(scores).max(axis=1) > WIDE):
            found[i] = _find_by_logarithm(scores[i], vectors)
    elif loss in (example_wise_squared_error, example_wise_squared_hinge):  # roots of sums
        costs = _square(scores, loss)
        found = find_least(vectors, n, costs, partial(_add_up, costs, vectors), _add_tie_to_square)
    else:
        found = find_least(vectors, n, None, partial(_evaluate, loss, scores, vectors), _add_tie)
    return vectors[found]


def _add_tie(loss: Array) -> Array:
    return loss + TIE * np.minimum(loss, 1.0)  # a large loss may well be a logarithm


def _add_tie_to_square(square: Array) -> Array:
    return np.maximum(_add_tie(np.sqrt(square)) ** 2, square)  # never less, by rounding


def _evaluate(loss: Loss, scores: Array, vectors: Vectors, rows: NDArray[np.int64], some: slice) -> Array:
    F = scores[rows]
    return np.stack([loss.value(np.broadcast_to(2.0 * y - 1, F.shape), F) for y in vectors[some]], axis=1)


def _add_up(costs: Costs, vectors: Vectors, rows: NDArray[np.int64], some: slice) -> Array:
    """What vectors cost: two matrix products of terms that are not negative, so that no digits are lost."""
    ones = vectors[some].astype(np.float64)
    return np.asarray(costs.relevant[rows] @ ones.T + costs.irrelevant[rows] @ (1 - ones).T)


def _exponentiate(scores: Array) -> Costs:
    """exp(-y_k f_k) for both y_k, whose sum's logarithm orders Eq. 7, up to a factor per example: nothing overflows."""
    scores = np.clip(scores, -WIDE, WIDE)
    shift = np.abs(scores).max(axis=1, keepdims=True)
    return Costs(np.exp(-scores - shift), np.exp(scores - shift))


def _find_by_logarithm(scores: Array, vectors: Vectors) -> int:
    """The vector of least sum_k exp(-y_k f_k) where the sums are beyond floating point."""
    limit = np.finfo(np.float64).max / 2
    scores = np.clip(scores, -limit, limit)  # so that their differences are finite
    exponents = np.where(vectors == 1, -scores, scores)
    largest = exponents.max(axis=1, keepdims=True)
    logarithm = (largest[:, 0] - largest.min()) + np.log(np.exp(exponents - largest).sum(axis=1))
    sums = np.exp(np.minimum(logarithm - logarithm.min(), 700.0))
    return int(np.argmax(sums <= sums.min() * (1 + TIE)))


def _square(scores: Array, loss: Loss) -> Costs:
    """The squared residuals of both answers."""
    every = np.clip(scores, -1e150, 1e150).reshape(-1, 1)  # so that squares are finite
    relevant, irrelevant = (loss.value(np.full_like(every, y), every) ** 2 for y in (1.0, -1.0))
    return Costs(relevant.reshape(scores.shape), irrelevant.reshape(scores.shape))


def decode_by_probability(log_odds: Array, vectors: Vectors, bias: Array | float = 0.0) -> Vectors:
    """The most probable known label vector; of equals, the first."""
    log_odds = np.clip(log_odds, -CERTAIN, CERTAIN)
    most = np.max(bias)  # costs may not be negative
    extra = most - bias if isinstance(bias, np.ndarray) else None
    costs = Costs(np.maximum(-log_odds, 0), np.maximum(log_odds, 0), extra)
    free = costs.irrelevant.sum(axis=1, keepdims=True) + most

    def evaluate(rows: NDArray[np.int64], some: slice) -> Array:
        return free[rows] - score_vectors(log_odds[rows], vectors[some], np.broadcast_to(bias, len(vectors))[some])

    return vectors[find_least(vectors, len(log_odds), costs, evaluate, np.asarray)]


def decode_by_marginals(log_odds: Array, vectors: Vectors) -> Vectors:
    """The labels of a probability above 1/2: the mean of what each label says alone and what the known vectors say.

    Neither is best everywhere: labels on their own miss how they depend on each other, and the known vectors give no
    room to unseen ones. The mean of the two was measured to be the safest on benchmark data.
    """
    mean = (expit(log_odds) + marginal_probabilities(log_odds, vectors)) / 2
    return (mean > 0.5).astype(np.uint8)


def decode_by_rank(scores: Array, k: int) -> Vectors:
    """The k labels of largest score; of equals, the first."""
    result = np.zeros(scores.shape, dtype=np.uint8)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    np.put_along_axis(result, best, 1, axis=1)
    return result


def decode_by_f1(terms: Array, vectors: Vectors | None, bias: Array | float = 0.0, curve: Array = NO_CURVE) -> Vectors:
    """The label vector of largest expected F-measure.

    The probabilities are those of the known label vectors, calibrated by a curve if there is one; or, without them, of
    independent labels, whose log-odds the terms are then.
    """
    n, K = terms.shape
    result = np.empty((n, K), dtype=np.uint8)
    if vectors is None:
        for rows in _blocks(n, count_independent(K)):
            result[rows] = choose_of_independent(np.clip(terms[rows], -CERTAIN, CERTAIN))
    else:
        for rows, shares in share_out(terms, vectors, bias, curve):
            result[rows] = choose_of_known(shares)
    return result


def _blocks(n: int, width: int) -> Iterator[slice]:
    size = max(1, BLOCK_NUMBERS // max(width, 1))
    return (slice(start, start + size) for start in range(0, n, size))


# --- Thresholds -------------------------------------------------------------------------------------------------------


def find_cuts(thresholds: Array) -> Array:
    """For each threshold the largest log-odds whose probability is not above it: labels beyond are relevant.

    Whoever compares log-odds with these need not compute probabilities, which programs do with other last digits.
    """
    low, high = np.full(thresholds.shape, -800.0), np.full(thresholds.shape, 800.0)  # probabilities 0 and 1
    while (((middle := (low + high) / 2) != low) & (middle != high)).any():
        above = expit(middle) > thresholds
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.where(thresholds >= 1, np.inf, low)


def tune_thresholds(Y: ArrayLike, probabilities: ArrayLike) -> Array:
    """Find the threshold of each label's probability that gives the label the largest F-measure.

    Parameters
    ----------
    Y : array of shape (N, K)
        Labels of held-out examples, 0 and 1; NaN for an unknown one.
    probabilities : array of shape (N, K)
        What `predict_proba` says of them.

    Returns
    -------
    thresholds : array of shape (K,)
        For the parameter `decode`. Each is midway between two probabilities, so that both sides have room; 1/2 for a
        label that no held-out example has.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.predicting.decoding import tune_thresholds
    >>> digits = load_dataset("digits7")
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(digits.X[:1200], digits.Y[:1200])
    >>> held_out = slice(1200, 1500)
    >>> thresholds = tune_thresholds(digits.Y[held_out], clf.predict_proba(digits.X[held_out]))
    >>> clf.predict(digits.X[1500:], decode=thresholds).shape
    (297, 7)
    """
    Y, P = np.asarray(Y, dtype=np.float64), np.asarray(probabilities, dtype=np.float64)
    if Y.ndim != 2 or Y.shape != P.shape:
        raise ValueError(f"Y and probabilities must be matrices of the same shape, got {Y.shape} and {P.shape}")
    thresholds = np.full(Y.shape[1], 0.5)
    for k in range(Y.shape[1]):
        known = ~np.isnan(Y[:, k])
        y, p = Y[known, k], P[known, k]
        if not y.any():
            continue
        order = np.argsort(-p, kind="stable")
        found = np.cumsum(y[order])
        f1 = 2 * found / (np.arange(1, len(y) + 1) + y.sum())
        f1[:-1][np.diff(p[order]) == 0] = -1.0  # equal probabilities cannot be parted
        best = int(f1.argmax())
        below = p[order[best + 1]] if best + 1 < len(y) else 0.0
        thresholds[k] = (p[order[best]] + below) / 2
    return thresholds
