"""A prediction is what an ensemble says of an example: scores, then a label vector or probabilities (Sec. 4.3).

Scores are the sums of the heads of all rules that cover the example (Eq. 2). *Decoding* turns them into a label vector:
by sign for a decomposable loss (Eq. 18), or into the known label vector, one that occurs in the training data, of least
loss (Eq. 19).

Probabilities are those of independent labels with the given log-odds, for a non-decomposable loss conditioned on the
label vector being a known one: P(y) is proportional to prod_k logistic(y_k f_k). This was measured to be much better
calibrated than exp(-loss), which for the example-wise logistic loss is far too flat.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray
from scipy.special import expit, softmax

from pyboomer.features import ABOVE, AT_MOST, EQUAL, Columns, Matrix, cover_rows, store_columns
from pyboomer.heads import TIE
from pyboomer.kernel import kernel
from pyboomer.losses import Loss, example_wise_logistic
from pyboomer.rules import RuleEnsemble
from pyboomer.simd import LANES, at_most, count_trailing_zeros, equal, load, splat

Array = NDArray[np.float64]
Vectors = NDArray[np.uint8]

BLOCK = 64  # examples scored at once: a bit of a word for each
PART = 4096  # examples of a compiled call: a thread's share of the work
BLOCK_NUMBERS = 2**22  # numbers in the largest temporary array of decoding: 32 MB
CERTAIN = 1e12  # log-odds beyond this are cut off: beside larger ones, a sum would lose those of the other labels


class FlatRules(NamedTuple):
    """The arrays of a `RuleEnsemble`, for compiled code."""

    condition_offsets: NDArray[np.int64]
    condition_features: NDArray[np.int32]
    condition_operators: NDArray[np.int8]
    condition_values: Array
    head_offsets: NDArray[np.int64]
    head_labels: NDArray[np.int32]
    head_scores: Array


@kernel
def _find_present(block: Array, feature: int) -> np.uint64:
    """Which of the 64 examples of a block have a value: a bit for each."""
    present = np.uint64(0)
    for n in range(0, BLOCK, LANES):
        x = load(block, feature * BLOCK + n)
        present |= equal(x, x) << np.uint64(n)
    return present


@kernel
def _meet(block: Array, feature: int, operator: int, value: float, present: np.uint64) -> np.uint64:
    """Which of the 64 examples of a block meet a condition: a bit for each. A missing value meets none."""
    limit = splat(value)
    start = feature * BLOCK
    met = np.uint64(0)
    if operator <= ABOVE:
        for n in range(0, BLOCK, LANES):
            met |= at_most(load(block, start + n), limit) << np.uint64(n)
    else:
        for n in range(0, BLOCK, LANES):
            met |= equal(load(block, start + n), limit) << np.uint64(n)
    negated = np.uint64(0) - np.uint64(operator & 1)  # no branch: > and != are as frequent as <= and ==
    return (met ^ negated) & present


@kernel
def _score_block(block: Array, present: NDArray[np.uint64], n_rows: int, rules: FlatRules, scores: Array) -> None:
    """Add the scores of up to 64 examples; `block` holds a row per feature, a column per example."""
    everyone = ~np.uint64(0) >> np.uint64(BLOCK - n_rows)
    for t in range(rules.condition_offsets.shape[0] - 1):
        covered = everyone
        for c in range(rules.condition_offsets[t], rules.condition_offsets[t + 1]):
            f = rules.condition_features[c]
            covered &= _meet(block, f, rules.condition_operators[c], rules.condition_values[c], present[f])
            if covered == np.uint64(0):
                break
        while covered != np.uint64(0):
            n = count_trailing_zeros(covered)
            covered &= covered - np.uint64(1)
            _add_head(rules, t, scores[n])


@kernel(forceinline=True)
def _add_head(rules: FlatRules, t: int, scores: Array) -> None:
    """Add the head of a rule to the scores of an example."""
    start = rules.head_offsets[t]
    length = rules.head_offsets[t + 1] - start
    if length == scores.shape[0]:
        for k in range(length):
            scores[k] += rules.head_scores[start + k]
    else:
        for h in range(start, start + length):
            scores[rules.head_labels[h]] += rules.head_scores[h]


@njit(cache=True, nogil=True)
def _score_dense(X: Array, features: NDArray[np.int64], rules: FlatRules, scores: Array) -> None:
    """Add the scores of the rows of a dense X, of which some features are used, 64 rows at a time."""
    block = np.zeros((features.shape[0], BLOCK))
    present = np.empty(features.shape[0], dtype=np.uint64)
    for start in range(0, X.shape[0], BLOCK):
        n_rows = min(BLOCK, X.shape[0] - start)
        for n in range(n_rows):
            for f in range(features.shape[0]):
                block[f, n] = X[start + n, features[f]]
        for f in range(features.shape[0]):
            present[f] = _find_present(block, f)
        _score_block(block, present, n_rows, rules, scores[start : start + n_rows])


@njit(cache=True, nogil=True)
def _score_sparse(columns: Columns, rules: FlatRules, scores: Array) -> None:
    """Add the scores of the rows of a sparse X, rule by rule; only the values that are stored are looked at."""
    rows, met = np.empty(scores.shape[0], dtype=np.int32), np.empty(scores.shape[0], dtype=np.int32)
    offsets = rules.condition_offsets
    body = np.empty((rules.condition_features.shape[0], 3))
    for c in range(body.shape[0]):
        body[c, 0], body[c, 1] = rules.condition_features[c], rules.condition_operators[c]
        body[c, 2] = rules.condition_values[c]
    for t in range(offsets.shape[0] - 1):
        for r in range(cover_rows(columns, body[offsets[t] : offsets[t + 1]], rows, met)):
            _add_head(rules, t, scores[rows[r]])


@kernel
def _order_conditions(
    offsets: NDArray[np.int64],
    features: NDArray[np.int32],
    operators: NDArray[np.int8],
    values: Array,
    new_offsets: NDArray[np.int64],
    order: NDArray[np.int64],
) -> None:
    """The conditions to test, rule by rule: of several on a feature with the same operator, the tightest is enough."""
    used = 0
    for t in range(offsets.shape[0] - 1):
        for c in range(offsets[t], offsets[t + 1]):
            f, operator, value = features[c], operators[c], values[c]
            tightest = True
            for other in range(offsets[t], offsets[t + 1]):
                if features[other] == f and operators[other] == operator and other != c:
                    closer = values[other] < value if operator == AT_MOST else values[other] > value
                    tightest &= operator >= EQUAL or not (closer or (values[other] == value and other < c))
            if tightest:
                order[used] = c
                used += 1
        new_offsets[t + 1] = used


def add_scores(rules: RuleEnsemble, X: Matrix, scores: Array, n_threads: int = 1) -> None:
    """Add the scores that some rules give to the rows of X (Eq. 2).

    The nominal features of a dense X hold category codes, those of a sparse X categories. Only the features that the
    rules mention are looked at.
    """
    mentioned = np.zeros(len(rules.feature_names), dtype=bool)
    mentioned[rules.condition_features] = True
    used = np.flatnonzero(mentioned)
    features = (np.cumsum(mentioned) - 1)[rules.condition_features].astype(np.int32)
    categories = {i: rules.categories[f] for i, f in enumerate(used.tolist()) if f in rules.categories}
    operators, thresholds = rules.condition_operators, rules.condition_values
    offsets, order = np.zeros(len(rules) + 1, dtype=np.int64), np.empty(len(features), dtype=np.int64)
    _order_conditions(rules.condition_offsets, features, operators, thresholds, offsets, order)
    order = order[: offsets[-1]]
    heads = rules.head_offsets, rules.head_labels, rules.head_scores
    flat = FlatRules(offsets, features[order], operators[order], thresholds[order], *heads)

    def add_part(part: slice) -> None:
        rows = X[part]
        if sp.issparse(X):
            _score_sparse(store_columns(rows.tocsc()[:, used], categories), flat, scores[part])
        else:
            # a read-only array would be another type, and compiled again
            _score_dense(rows if rows.flags.writeable else rows.copy(), used, flat, scores[part])

    parts = [slice(start, start + PART) for start in range(0, X.shape[0], PART)]
    if n_threads == 1 or len(parts) == 1:
        for part in parts:
            add_part(part)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(add_part, parts))


def find_label_vectors(Y: Vectors, weight: Array) -> Vectors:
    """The distinct rows of Y, the most frequent (by weight) first, then the one seen first."""
    bits = np.zeros((len(Y), -(-Y.shape[1] // 64) * 8), dtype=np.uint8)
    bits[:, : -(-Y.shape[1] // 8)] = np.packbits(Y, axis=1)
    words = bits.view(np.uint64).T  # much faster to sort than rows of bytes
    order = np.lexsort(words)  # stable: of equals, the one seen first is first
    new = np.ones(len(Y), dtype=bool)
    new[1:] = (words[:, order[1:]] != words[:, order[:-1]]).any(axis=0)
    first = order[new]
    frequency = np.add.reduceat(weight[order], np.flatnonzero(new))
    return np.ascontiguousarray(Y[first[np.lexsort((first, -frequency))]])


def decode_by_sign(scores: Array) -> Vectors:
    """Each label by the sign of its score (Eq. 18)."""
    return (scores > 0).astype(np.uint8)


def decode_by_loss(scores: Array, vectors: Vectors, loss: Loss) -> Vectors:
    """The known label vector of least loss (Eq. 19); of equals, the first."""
    result = np.empty(scores.shape, dtype=np.uint8)
    for rows in _blocks(scores, vectors):
        if loss is example_wise_logistic:
            losses = _sum_exponentials(scores[rows], vectors)
            limit = losses.min(axis=1, keepdims=True) * (1 + TIE)
        else:
            losses = np.stack(
                [loss.value(np.broadcast_to(2.0 * y - 1, scores[rows].shape), scores[rows]) for y in vectors], axis=1
            )
            smallest = losses.min(axis=1, keepdims=True)
            limit = smallest + TIE * np.minimum(smallest, 1.0)  # a large loss may well be a logarithm
        result[rows] = vectors[np.argmax(losses <= limit, axis=1)]
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
