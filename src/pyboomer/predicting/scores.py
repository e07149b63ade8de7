"""A prediction is what an ensemble says of an example: the sums of the heads of all rules that cover it (Eq. 2).

`decoding` turns these scores into label vectors.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pyboomer.arrays import Array, Matrix
from pyboomer.columns.device import DeviceMatrix
from pyboomer.columns.sparse import SparseColumns, cover_rows, store_columns
from pyboomer.compiling.device import is_there_a_device
from pyboomer.compiling.kernel import entry, inner, kernel
from pyboomer.compiling.pool import start_pool
from pyboomer.compiling.simd import LANES, at_most, count_trailing_zeros, equal, load, splat
from pyboomer.predicting.device_scores import add_scores_on_device
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.operators import ABOVE, AT_MOST, EQUAL

BLOCK = 64  # examples scored at once: a bit of a word for each
PART = 4096  # examples of a compiled call: a thread's share of the work
NEAR = 2**17  # scores of a compiled call, which stay in the cache while rule after rule adds to them
WORTHWHILE = 10**7  # examples times rules, from which on "auto" means several threads, or a GPU
MARKED = 64  # rules whose coverage is found at once: a column of numbers each


class FlatRules(NamedTuple):
    """The arrays of a `RuleEnsemble`, for compiled code."""

    condition_offsets: NDArray[np.int64]
    condition_features: NDArray[np.int32]
    condition_operators: NDArray[np.int8]
    condition_values: Array
    head_offsets: NDArray[np.int64]
    head_labels: NDArray[np.int32]
    head_scores: Array


@inner
def _find_present(block: Array, feature: int) -> np.uint64:
    """Which of the 64 examples of a block have a value: a bit for each."""
    present = np.uint64(0)
    for n in range(0, BLOCK, LANES):
        x = load(block, feature * BLOCK + n)
        present |= equal(x, x) << np.uint64(n)
    return present


@inner(forceinline=True)
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


@inner
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


@inner(forceinline=True)
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


@entry
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


@entry
def _score_sparse(columns: SparseColumns, rules: FlatRules, scores: Array) -> None:
    """Add the scores of the rows of a sparse X, rule by rule; only the values that are stored are looked at."""
    rows, met = np.empty(scores.shape[0], dtype=np.uint32), np.empty(scores.shape[0], dtype=np.uint32)
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


def add_scores(rules: RuleEnsemble, X: Matrix, scores: Array, n_threads: int = 1, device: str = "cpu") -> None:
    """Add the scores that some rules give to the rows of X (Eq. 2).

    The nominal features of a dense X hold category codes, those of a sparse X categories. Only the features that the
    rules mention are looked at. A dense X may be scored by a GPU, and one that is on a GPU always is.
    """
    mentioned = np.zeros(len(rules.feature_names), dtype=bool)
    mentioned[rules.condition_features] = True
    used = np.flatnonzero(mentioned)
    features = (np.cumsum(mentioned) - 1)[rules.condition_features].astype(np.int32)
    categories = rules.schema.pick_categories(used.tolist())
    operators, thresholds = rules.condition_operators, rules.condition_values
    offsets, order = np.zeros(len(rules) + 1, dtype=np.int64), np.empty(len(features), dtype=np.int64)
    _order_conditions(rules.condition_offsets, features, operators, thresholds, offsets, order)
    order = order[: offsets[-1]]
    heads = rules.head_offsets, rules.head_labels, rules.head_scores
    flat = FlatRules(offsets, features[order], operators[order], thresholds[order], *heads)
    if isinstance(X, DeviceMatrix) or (not sp.issparse(X) and _chooses_device(device, X.shape[0] * len(rules))):
        add_scores_on_device(flat, used, X, scores)
        return

    def add_part(part: slice) -> None:
        rows = X[part]
        if sp.issparse(X):
            _score_sparse(store_columns(rows.tocsc()[:, used], categories), flat, scores[part])
        else:
            # a read-only array would be another type, and compiled again
            _score_dense(rows if rows.flags.writeable else rows.copy(), used, flat, scores[part])

    size = min(PART, max(BLOCK, NEAR // scores.shape[1]))
    parts = [slice(start, start + size) for start in range(0, X.shape[0], size)]
    n_threads = min(n_threads, len(parts))
    if n_threads <= 1:
        for part in parts:
            add_part(part)
    else:
        with start_pool(n_threads) as pool:
            list(pool.map(add_part, parts))


def _chooses_device(device: str, work: int) -> bool:
    """Whether a GPU scores examples; `work` is their number times that of the rules."""
    return device == "cuda" or (device == "auto" and work >= WORTHWHILE and is_there_a_device())


def find_covered(rules: RuleEnsemble, X: Matrix) -> Iterator[NDArray[np.uint32]]:
    """The rows of X that each rule covers: those to which it gives a score, if its head is a label of its own."""
    for start in range(0, len(rules), MARKED):
        part = rules[start : start + MARKED]
        size = len(part)
        marking = replace(
            part,
            head_offsets=np.arange(size + 1),
            head_labels=np.arange(size, dtype=np.int32),
            head_scores=np.ones(size),
            label_names=tuple(map(str, range(size))),
        )
        marks = np.zeros((X.shape[0], size))
        add_scores(marking, X, marks)
        yield from (np.flatnonzero(mark).astype(np.uint32) for mark in marks.T)
