"""A prediction is what an ensemble says of an example: the sums of the heads of all rules that cover it (Eq. 2).

`decoding` turns these scores into label vectors.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from pyboomer.features import ABOVE, AT_MOST, EQUAL, Matrix, encode, find_fill, meets
from pyboomer.rules import RuleEnsemble
from pyboomer.simd import LANES, at_most, count_trailing_zeros, equal, load, splat

Array = NDArray[np.float64]

BLOCK = 64  # examples scored at once: a bit of a word for each
PART = 4096  # examples of a compiled call: a thread's share of the work


class FlatRules(NamedTuple):
    """The arrays of a `RuleEnsemble`, for compiled code."""

    condition_offsets: NDArray[np.int64]
    condition_features: NDArray[np.int32]
    condition_operators: NDArray[np.int8]
    condition_values: Array
    head_offsets: NDArray[np.int64]
    head_labels: NDArray[np.int32]
    head_scores: Array


@njit(cache=True, nogil=True)
def _find_present(block: Array, feature: int) -> np.uint64:
    """Which of the 64 examples of a block have a value: a bit for each."""
    present = np.uint64(0)
    for n in range(0, BLOCK, LANES):
        x = load(block, feature * BLOCK + n)
        present |= equal(x, x) << np.uint64(n)
    return present


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _score_block(
    block: Array, present: NDArray[np.uint64], varied: NDArray[np.bool_], n_rows: int, rules: FlatRules, scores: Array
) -> None:
    """Add the scores of up to 64 examples; `block` holds a row per feature, a column per example.

    Only the features marked as `varied` are looked at example by example; of the others, all hold the same value.
    """
    everyone = ~np.uint64(0) >> np.uint64(BLOCK - n_rows)
    n_labels = scores.shape[1]
    for t in range(rules.condition_offsets.shape[0] - 1):
        covered = everyone
        for c in range(rules.condition_offsets[t], rules.condition_offsets[t + 1]):
            f = rules.condition_features[c]
            if varied[f]:
                covered &= _meet(block, f, rules.condition_operators[c], rules.condition_values[c], present[f])
            elif not meets(block[f, 0], rules.condition_operators[c], rules.condition_values[c]):
                covered = np.uint64(0)
            if covered == np.uint64(0):
                break
        start = rules.head_offsets[t]
        length = rules.head_offsets[t + 1] - start
        while covered != np.uint64(0):
            n = count_trailing_zeros(covered)
            covered &= covered - np.uint64(1)
            if length == n_labels:
                for k in range(n_labels):
                    scores[n, k] += rules.head_scores[start + k]
            else:
                for h in range(start, start + length):
                    scores[n, rules.head_labels[h]] += rules.head_scores[h]


@njit(cache=True, nogil=True)
def _score_dense(X: Array, features: NDArray[np.int64], rules: FlatRules, scores: Array) -> None:
    """Add the scores of the rows of a dense X, of which some features are used, 64 rows at a time."""
    block = np.zeros((features.shape[0], BLOCK))
    present = np.empty(features.shape[0], dtype=np.uint64)
    varied = np.ones(features.shape[0], dtype=np.bool_)
    for start in range(0, X.shape[0], BLOCK):
        n_rows = min(BLOCK, X.shape[0] - start)
        for n in range(n_rows):
            for f in range(features.shape[0]):
                block[f, n] = X[start + n, features[f]]
        for f in range(features.shape[0]):
            present[f] = _find_present(block, f)
        _score_block(block, present, varied, n_rows, rules, scores[start : start + n_rows])


@njit(cache=True, nogil=True)
def _score_sparse(
    indptr: NDArray[np.int64], indices: NDArray[np.int64], data: Array, fill: Array, rules: FlatRules, scores: Array
) -> None:
    """Add the scores of the rows of a sparse X (CSR), 64 rows at a time; no more than that is ever dense."""
    block = np.empty((fill.shape[0], BLOCK))
    for f in range(fill.shape[0]):
        for n in range(BLOCK):
            block[f, n] = fill[f]
    present = np.empty(fill.shape[0], dtype=np.uint64)
    varied = np.zeros(fill.shape[0], dtype=np.bool_)
    for start in range(0, scores.shape[0], BLOCK):
        n_rows = min(BLOCK, scores.shape[0] - start)
        first, last = indptr[start], indptr[start + n_rows]
        for n in range(n_rows):
            for e in range(indptr[start + n], indptr[start + n + 1]):
                block[indices[e], n] = data[e]
        for e in range(first, last):
            if not varied[indices[e]]:
                varied[indices[e]] = True
                present[indices[e]] = _find_present(block, indices[e])
        _score_block(block, present, varied, n_rows, rules, scores[start : start + n_rows])
        for n in range(n_rows):
            for e in range(indptr[start + n], indptr[start + n + 1]):
                block[indices[e], n] = fill[indices[e]]
                varied[indices[e]] = False


@njit(cache=True, nogil=True)
def _order_conditions(
    offsets: NDArray[np.int64],
    features: NDArray[np.int32],
    operators: NDArray[np.int8],
    values: Array,
    fill: Array,
    new_offsets: NDArray[np.int64],
    order: NDArray[np.int64],
) -> None:
    """The conditions to test, rule by rule: of several on a feature with the same operator, the tightest is enough.

    Those that the fill value of a sparse X does not meet come first: they leave the fewest examples.
    """
    used = 0
    for t in range(offsets.shape[0] - 1):
        for fill_meets in range(2):
            for c in range(offsets[t], offsets[t + 1]):
                f, operator, value = features[c], operators[c], values[c]
                if meets(fill[f], operator, value) != (fill_meets == 1):
                    continue
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
    fill = np.zeros(len(used))
    if sp.issparse(X):
        fill = find_fill(len(used), categories)
        X = sp.csr_array(encode(X[:, used].tocsc(), categories) if categories else X[:, used])

    operators, thresholds = rules.condition_operators, rules.condition_values
    offsets, order = np.zeros(len(rules) + 1, dtype=np.int64), np.empty(len(features), dtype=np.int64)
    _order_conditions(rules.condition_offsets, features, operators, thresholds, fill, offsets, order)
    order = order[: offsets[-1]]
    heads = rules.head_offsets, rules.head_labels, rules.head_scores
    flat = FlatRules(offsets, features[order], operators[order], thresholds[order], *heads)

    def add_part(part: slice) -> None:
        rows = X[part]
        if sp.issparse(X):
            indptr, indices = rows.indptr.astype(np.int64), rows.indices.astype(np.int64)
            _score_sparse(indptr, indices, rows.data, fill, flat, scores[part])
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
