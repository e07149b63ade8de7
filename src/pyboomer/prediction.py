"""A prediction is what an ensemble says of an example: scores, then a label vector or probabilities (Sec. 4.3).

Scores are the sums of the heads of all rules that cover the example (Eq. 2). *Decoding* turns them into a label vector:
by sign for a decomposable loss (Eq. 18), or into the known label vector, one that occurs in the training data, of least
loss (Eq. 19).

Probabilities are those of independent labels with the given log-odds, for a non-decomposable loss conditioned on the
label vector being a known one: P(y) is proportional to prod_k logistic(y_k f_k). This was measured to be much better
calibrated than exp(-loss), which for the example-wise logistic loss is far too flat.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray
from scipy.special import expit, softmax

from pyboomer.features import Matrix, encode, meets
from pyboomer.heads import TIE
from pyboomer.losses import Loss, example_wise_logistic
from pyboomer.rules import RuleEnsemble

Array = NDArray[np.float64]
Vectors = NDArray[np.uint8]

BLOCK_ROWS = 1024  # examples scored at once: what is dense of a sparse X at a time, and a thread's share of the work
BLOCK_NUMBERS = 2**22  # numbers in the largest temporary array of decoding: 32 MB
CERTAIN = 1e12  # log-odds beyond this are cut off: beside larger ones, a sum would lose those of the other labels


@njit(cache=True, nogil=True)
def _add_scores(
    X: Array,
    condition_offsets: NDArray[np.int64],
    condition_features: NDArray[np.int32],
    condition_operators: NDArray[np.int8],
    condition_values: Array,
    head_offsets: NDArray[np.int64],
    head_labels: NDArray[np.int32],
    head_scores: Array,
    scores: Array,
) -> None:
    n_labels = scores.shape[1]
    for n in range(X.shape[0]):
        for t in range(condition_offsets.shape[0] - 1):
            covered = True
            for c in range(condition_offsets[t], condition_offsets[t + 1]):
                if not meets(X[n, condition_features[c]], condition_operators[c], condition_values[c]):
                    covered = False
                    break
            if not covered:
                continue
            start = head_offsets[t]
            length = head_offsets[t + 1] - start
            if length == n_labels:
                for k in range(n_labels):
                    scores[n, k] += head_scores[start + k]
            else:
                for h in range(start, start + length):
                    scores[n, head_labels[h]] += head_scores[h]


def add_scores(rules: RuleEnsemble, X: Matrix, scores: Array, n_threads: int = 1) -> None:
    """Add the scores that some rules give to the rows of X (Eq. 2), block by block.

    The nominal features of a dense X hold category codes, those of a sparse X categories; of a sparse X, only the
    features that the rules mention are ever made dense.
    """
    features, categories = rules.condition_features, rules.categories
    if sp.issparse(X):
        used, positions = np.unique(features, return_inverse=True)
        categories = {i: categories[int(f)] for i, f in enumerate(used) if int(f) in categories}
        X = X[:, used]
        features = positions.astype(np.int32)
        features.flags.writeable = False  # as the other arrays of an ensemble: one compiled version serves both

    def add_block(start: int) -> None:
        block = X[start : start + BLOCK_ROWS]
        if sp.issparse(block):
            block = encode(block.toarray(), categories)
        elif not block.flags.writeable:
            block = block.copy()
        _add_scores(
            block,
            rules.condition_offsets,
            features,
            rules.condition_operators,
            rules.condition_values,
            rules.head_offsets,
            rules.head_labels,
            rules.head_scores,
            scores[start : start + BLOCK_ROWS],
        )

    starts = range(0, X.shape[0], BLOCK_ROWS)
    if n_threads == 1 or len(starts) == 1:
        for start in starts:
            add_block(start)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(add_block, starts))


def find_label_vectors(Y: Vectors) -> tuple[Vectors, NDArray[np.int64]]:
    """The distinct rows of Y, the most frequent first, then the one seen first; and how often each occurs."""
    packed = np.packbits(Y, axis=1)  # sorting bits is much faster than sorting rows of bytes
    _, first, count = np.unique(packed, axis=0, return_index=True, return_counts=True)
    order = np.lexsort((first, -count))
    return np.ascontiguousarray(Y[first[order]]), count[order]


def decode_by_sign(scores: Array) -> Vectors:
    """Each label by the sign of its score (Eq. 18)."""
    return (scores > 0).astype(np.uint8)


def decode_by_loss(scores: Array, vectors: Vectors, loss: Loss) -> Vectors:
    """The known label vector of least loss (Eq. 19); of equals, the first."""
    result = np.empty(scores.shape, dtype=np.uint8)
    for rows in _blocks(scores, vectors):
        if loss is example_wise_logistic:
            losses = _sum_exponentials(scores[rows], vectors)
        else:
            losses = np.stack(
                [loss.value(np.broadcast_to(2.0 * y - 1, scores[rows].shape), scores[rows]) for y in vectors], axis=1
            )
        smallest = losses.min(axis=1, keepdims=True)
        result[rows] = vectors[np.argmax(losses <= smallest * (1 + TIE), axis=1)]
    return result


def decode_by_probability(scores: Array, vectors: Vectors, loss: Loss) -> Vectors:
    """The most probable known label vector; of equals, the first."""
    result = np.empty(scores.shape, dtype=np.uint8)
    for rows in _blocks(scores, vectors):
        result[rows] = vectors[_sum_log_odds(scores[rows], vectors, loss).argmax(axis=1)]
    return result


def _sum_exponentials(scores: Array, vectors: Vectors) -> Array:
    """sum_k exp(-y_k f_k) for each example and known vector, up to a factor per example: its logarithm orders Eq. 7.

    Two matrix products of non-negative terms. Scores are shifted by the largest in size, so nothing overflows; where
    the smallest sum falls below what the shift leaves of floating point, the row is done again by log-sum-exp.
    """
    positive = vectors.astype(np.float64)
    limit = np.finfo(np.float64).max / 2
    scores = np.clip(scores, -limit, limit)  # so that their differences are finite
    shift = np.abs(scores).max(axis=1, keepdims=True)
    sums = np.exp(-scores - shift) @ positive.T + np.exp(scores - shift) @ (1 - positive).T
    for n in np.flatnonzero(sums.min(axis=1) < 1e-280):
        exponents = np.where(vectors == 1, -scores[n], scores[n])
        largest = exponents.max(axis=1, keepdims=True)
        logarithm = (largest[:, 0] - largest.min()) + np.log(np.exp(exponents - largest).sum(axis=1))
        sums[n] = np.exp(np.minimum(logarithm - logarithm.min(), 700.0))
    return sums


def joint_probabilities(scores: Array, vectors: Vectors, loss: Loss) -> Array:
    """P(y) of each known label vector: prod_k logistic(y_k f_k), normalised over the known vectors."""
    return softmax(_sum_log_odds(scores, vectors, loss), axis=1)


def _sum_log_odds(scores: Array, vectors: Vectors, loss: Loss) -> Array:
    """log prod_k logistic(y_k f_k): the sum of f_k over the relevant labels, plus what all vectors share."""
    return np.asarray(np.clip(loss.log_odds(scores), -CERTAIN, CERTAIN) @ vectors.T.astype(np.float64))


def class_probabilities(scores: Array, loss: Loss) -> Array:
    """P(class) of each class, exactly one of which is relevant; a single score is that of the second of two."""
    log_odds = loss.log_odds(scores)
    if scores.shape[1] == 1:
        log_odds = np.hstack([np.zeros_like(log_odds), log_odds])
    probabilities = softmax(np.clip(log_odds, -CERTAIN, CERTAIN), axis=1)
    # scores that differ in their last digits only have the same probability: let the largest still be told
    best = log_odds.argmax(axis=1)
    equal = np.flatnonzero(probabilities.argmax(axis=1) != best)
    probabilities[equal, best[equal]] = np.nextafter(probabilities[equal].max(axis=1), 1)
    return probabilities


def marginal_probabilities(scores: Array, vectors: Vectors | None, loss: Loss) -> Array:
    """P(label k is relevant): each on its own, or summed over the known label vectors where they are given."""
    if vectors is None:
        return expit(loss.log_odds(scores))
    result = np.empty(scores.shape)
    for rows in _blocks(scores, vectors):
        result[rows] = joint_probabilities(scores[rows], vectors, loss) @ vectors
    return np.clip(result, 0.0, 1.0)


def _blocks(scores: Array, vectors: Vectors) -> list[slice]:
    size = max(1, BLOCK_NUMBERS // max(vectors.shape))
    return [slice(start, start + size) for start in range(0, len(scores), size)]
