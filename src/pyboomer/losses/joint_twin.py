"""The compiled twin of the joint logistic loss, see `joint`.

Eight examples are looked at together, a number of each in a vector. For V known label vectors that have M ones in all,
they take K exponentials, M multiplications and M additions: where the ones are is listed twice, by vectors to multiply
the exponentials of scores, and by labels to add up probabilities. That is about 1 ns for each example and vector.
Nothing is kept between two updates but the scores.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows, Signs
from pyboomer.compiling.kernel import inner
from pyboomer.compiling.kinds import by_kind
from pyboomer.compiling.simd import LANES, exp, gather, larger, load, make_zeros, scatter, splat, store, where_above
from pyboomer.losses.joint import find_limit
from pyboomer.losses.loss import KnownVectors
from pyboomer.losses.truth import JointHand, JointTruth, Known, Ones, Scratch

FOUR = np.uint64(4)


def list_known(known: KnownVectors, signs: Signs) -> Known:
    """The known label vectors, and which examples have one of them."""
    n_vectors, n_labels = known.vectors.shape
    order = np.argsort(known.vectors.sum(axis=1), kind="stable")  # so that a loop is mostly as long as the one before
    vectors = np.zeros((n_vectors, signs.shape[1]), dtype=np.uint8)
    vectors[:, :n_labels] = known.vectors[order]
    settled = _find_settled(known, signs[:, :n_labels])
    return Known(np.exp(known.bias[order]), find_limit(known), _list_ones(vectors), _list_ones(vectors.T), settled)


def _find_settled(known: KnownVectors, signs: Signs) -> NDArray[np.bool_]:
    """Whether all labels of an example are known, and its label vector is."""
    there = set(_pack(known.vectors))
    return np.array([vector in there for vector in _pack(signs > 0)], dtype=np.bool_) & (signs != 0).all(axis=1)


def _pack(bits: NDArray[Any]) -> list[bytes]:
    """The bits of each row as bytes, which can be looked up."""
    packed = np.packbits(bits, axis=1)
    return list(packed.view(f"V{packed.shape[1]}").ravel().tolist())


def _list_ones(table: NDArray[np.uint8]) -> Ones:
    rows, places = np.nonzero(table)
    ends = np.cumsum(np.bincount(rows, minlength=len(table)))
    return Ones(np.append(0, ends).astype(np.uint64), places.astype(np.uint32))


def make_scratch(known: Known) -> Scratch:
    """Room for what one thread computes."""
    n_vectors, width = len(known.factor), len(known.by_label.offsets) - 1
    room = (make_zeros((n, LANES)).ravel() for n in (width, n_vectors, n_vectors))
    return Scratch(np.empty(LANES, dtype=np.uint32), *room)


@inner(error_model="numpy")
def update_joint(truth: Any, scores: Array, rows: Rows, statistics: Array) -> None:
    """Update the statistics; all labels of an example change with each of them."""
    known, scratch = truth.known, truth.scratch
    some, width, size = scratch.rows, scores.shape[1], statistics.shape[1]
    zero, one = splat(0.0), splat(1.0)
    for r in range(0, rows.shape[0], LANES):
        settled = True
        for i in range(LANES):
            some[i] = rows[min(r + i, rows.shape[0] - 1)]  # the last one is done again if there are fewer
            settled &= known.settled[some[i]]
        sums, sums_of_own = _weigh_vectors(truth, scores), one
        if not settled:
            sums_of_own = _keep_nearest(known, truth.signs, scratch)
        for k in range(width):
            p = _add_up(known, k, scratch.vectors) / sums
            if settled:
                q = where_above(gather(truth.signs, some, 0, width, k), zero, one, zero)
            else:
                q = _add_up(known, k, scratch.own) / sums_of_own
            scatter(statistics, some, 0, size, k, p - q)
            scatter(statistics, some, 0, size, width + k, larger(p * (one - p), zero))


@inner(error_model="numpy")
def sum_joint(truth: JointTruth, scores: Array, weights: Array) -> float:
    """Sum the loss."""
    known, scratch = truth.known, truth.scratch
    n = scores.shape[0]
    value = 0.0
    for begin in range(0, n, LANES):
        for i in range(LANES):
            scratch.rows[i] = min(begin + i, n - 1)
        sums = _weigh_vectors(truth, scores)
        store(scratch.labels, 0, _keep_nearest(known, truth.signs, scratch))
        store(scratch.own, 0, sums)
        for i in range(min(LANES, n - begin)):
            value += weights[begin + i] * (np.log(scratch.own[i]) - np.log(scratch.labels[i]))
    return value


@by_kind
def _begin_vector(truth: Any, v: int) -> Any:
    """The exponential of what a known vector scores before its labels do, of eight examples."""


@_begin_vector.of(JointTruth, forceinline=True)
def _take_factor(truth: JointTruth, v: int) -> Any:
    return splat(truth.known.factor[v])


@_begin_vector.of(JointHand, forceinline=True)
def _take_base(truth: JointHand, v: int) -> Any:
    return gather(truth.base, truth.scratch.rows, 0, truth.base.shape[1], v)


@inner(error_model="numpy")
def _weigh_vectors(truth: Any, scores: Array) -> Any:
    """The exponentials of the known vectors' scores, of eight examples, in `scratch.vectors`; returns their sums."""
    known, scratch = truth.known, truth.scratch
    labels, offsets, places = scratch.labels, known.by_vector.offsets, known.by_vector.places
    exponentiate(known, scores, scratch)
    sums = splat(0.0)
    for v in range(offsets.shape[0] - 1):
        x = _begin_vector(truth, v)
        for i in range(offsets[v], offsets[v + 1]):
            x = x * load(labels, places[i] * LANES)
        store(scratch.vectors, v * LANES, x)
        sums = sums + x
    return sums


@inner(error_model="numpy")
def exponentiate(known: Known, scores: Array, scratch: Scratch) -> None:
    """The exponentials of the labels' scores, of eight examples, in `scratch.labels`."""
    width, limit = scores.shape[1], splat(known.limit)
    for k in range(width):
        f = larger(gather(scores, scratch.rows, 0, width, k), splat(-known.limit))
        store(scratch.labels, k * LANES, exp(where_above(f, limit, limit, f)))


@inner(error_model="numpy")
def _keep_nearest(known: Known, signs: Signs, scratch: Scratch) -> Any:
    """Copy `scratch.vectors` to `scratch.own`, with 0 for all vectors but those nearest to an example; their sums."""
    labels, offsets, places = scratch.labels, known.by_vector.offsets, known.by_vector.places
    width, n_vectors = signs.shape[1], offsets.shape[0] - 1
    for k in range(width):
        store(labels, k * LANES, gather(signs, scratch.rows, 0, width, k))
    best = splat(-np.inf)
    for v in range(n_vectors):
        agreement = splat(0.0)
        for i in range(offsets[v], offsets[v + 1]):
            agreement = agreement + load(labels, places[i] * LANES)
        store(scratch.own, v * LANES, agreement)
        best = larger(best, agreement)
    best, sums = best - 0.5, splat(0.0)
    for v in range(n_vectors):
        x = where_above(load(scratch.own, v * LANES), best, load(scratch.vectors, v * LANES), splat(0.0))
        store(scratch.own, v * LANES, x)
        sums = sums + x
    return sums


@inner(error_model="numpy")
def _add_up(known: Known, k: int, vectors: Array) -> Any:
    """Add up what the known vectors have that have label k: four sums, as each addition waits for the one before."""
    places, begin, end = known.by_label.places, known.by_label.offsets[k], known.by_label.offsets[k + 1]
    whole = begin + (end - begin) // FOUR * FOUR
    a, b, c, d = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    for i in range(begin, whole, FOUR):
        a = a + load(vectors, places[i] * LANES)
        b = b + load(vectors, places[i + np.uint64(1)] * LANES)
        c = c + load(vectors, places[i + np.uint64(2)] * LANES)
        d = d + load(vectors, places[i + np.uint64(3)] * LANES)
    for i in range(whole, end):
        a = a + load(vectors, places[i] * LANES)
    return (a + b) + (c + d)
