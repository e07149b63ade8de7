"""The compiled twin of the joint logistic loss, see `joint`.

Eight examples are looked at together, a number of each in a vector. For V known label vectors that have M ones in all,
they take K exponentials, M multiplications and M additions: where the ones are is listed twice, by vectors to multiply
the exponentials of scores, and by labels to add up probabilities. That is about 1 ns for each example and vector.
Scores so large that a product might overflow are added up first, at the cost of V exponentials. Nothing is kept
between two updates but the scores.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows, Signs
from pyboomer.compiling.kernel import inner
from pyboomer.compiling.simd import (
    LANES,
    exp,
    gather,
    larger,
    largest,
    load,
    make_zeros,
    scatter,
    splat,
    store,
    where_above,
)
from pyboomer.losses.joint import CERTAIN, find_nearest, split_rows
from pyboomer.losses.loss import KnownVectors
from pyboomer.losses.truth import Known, Ones, Scratch, Truth

FOUR = np.uint64(4)
SAFE = 600.0  # the exponential of a score so large in size is well within what a float64 can hold


def list_known(known: KnownVectors, signs: Signs) -> Known:
    """The known label vectors, and which examples have one of them."""
    n_vectors, n_labels = known.vectors.shape
    order = np.argsort(known.vectors.sum(axis=1), kind="stable")  # so that a loop is mostly as long as the one before
    vectors, bias = np.zeros((n_vectors, signs.shape[1]), dtype=np.uint8), known.bias[order]
    vectors[:, :n_labels] = known.vectors[order]
    settled = np.empty(len(signs), dtype=np.bool_)
    for rows in split_rows(len(signs), known):
        own = signs[rows, :n_labels].astype(np.float64)
        nearest = known.vectors[find_nearest(known, own).argmax(axis=1)]
        settled[rows] = (own == 2.0 * nearest - 1).all(axis=1)
    by_vector, by_label = _list_ones(vectors), _list_ones(vectors.T)
    most = (SAFE - np.abs(bias).max()) / max(1, np.diff(by_vector.offsets).max())
    return Known(bias, np.exp(bias), float(most), by_vector, by_label, settled)


def _list_ones(table: NDArray[np.uint8]) -> Ones:
    rows, places = np.nonzero(table)
    ends = np.cumsum(np.bincount(rows, minlength=len(table)))
    return Ones(np.append(0, ends).astype(np.uint64), places.astype(np.uint32))


def make_scratch(known: Known) -> Scratch:
    """Room for what one thread computes."""
    n_vectors, width = len(known.bias), len(known.by_label.offsets) - 1
    return Scratch(
        np.empty(LANES, dtype=np.uint32), *(make_zeros((n, LANES)).ravel() for n in (width, n_vectors, n_vectors))
    )


@inner(error_model="numpy")
def update_joint(truth: Truth, scores: Array, rows: Rows, statistics: Array) -> None:
    """Update the statistics; all labels of an example change with each of them."""
    known, scratch = truth.known, truth.scratch
    signs, some = truth.signs, scratch.rows
    width, size = scores.shape[1], statistics.shape[1]
    zero, one = splat(0.0), splat(1.0)
    for r in range(0, rows.shape[0], LANES):
        settled = True
        for i in range(LANES):
            some[i] = rows[min(r + i, rows.shape[0] - 1)]  # the last one is done again if there are fewer
            settled &= known.settled[some[i]]
        sums_of_own = one
        if _load_scores(scores, scratch) < known.most:
            sums = _multiply_labels(known, scratch)
            if not settled:
                _keep_nearest(known, signs, scratch, zero)
                sums_of_own = _add_vectors(scratch.own)
        else:
            most = _add_labels(known, known.bias, scratch.labels, scratch.vectors)
            if not settled:
                sums_of_own = _exponentiate(scratch.own, _keep_nearest(known, signs, scratch, splat(-np.inf)))
            sums = _exponentiate(scratch.vectors, most)
        for k in range(width):
            p = _add_up(known, k, scratch.vectors) / sums
            if settled:
                q = where_above(gather(signs, some, 0, width, k), zero, one, zero)
            else:
                q = _add_up(known, k, scratch.own) / sums_of_own
            scatter(statistics, some, 0, size, k, p - q)
            scatter(statistics, some, 0, size, width + k, larger(p * (one - p), zero))


@inner(error_model="numpy")
def sum_joint(truth: Truth, scores: Array, weights: Array) -> float:
    """Sum the loss."""
    known, scratch = truth.known, truth.scratch
    n = scores.shape[0]
    sums = 0.0
    for begin in range(0, n, LANES):
        for i in range(LANES):
            scratch.rows[i] = min(begin + i, n - 1)
        _load_scores(scores, scratch)
        most = _add_labels(known, known.bias, scratch.labels, scratch.vectors)
        most_of_own = _keep_nearest(known, truth.signs, scratch, splat(-np.inf))
        store(scratch.labels, 0, _exponentiate(scratch.vectors, most))
        store(scratch.own, 0, _exponentiate(scratch.own, most_of_own))
        store(scratch.vectors, 0, most - most_of_own)
        for i in range(min(LANES, n - begin)):
            sums += weights[begin + i] * (scratch.vectors[i] + np.log(scratch.labels[i]) - np.log(scratch.own[i]))
    return sums


@inner(error_model="numpy")
def _load_scores(scores: Array, scratch: Scratch) -> float:
    """The scores of eight examples, side by side in `scratch.labels`; returns the largest in size."""
    width = scores.shape[1]
    zero, limit = splat(0.0), splat(CERTAIN)
    most = zero
    for k in range(width):
        f = gather(scores, scratch.rows, 0, width, k)
        f = where_above(f, limit, limit, larger(f, splat(-CERTAIN)))
        store(scratch.labels, k * LANES, f)
        most = larger(most, larger(f, zero - f))
    return largest(most)


@inner(error_model="numpy")
def _multiply_labels(known: Known, scratch: Scratch) -> Any:
    """The exponentials of the scores of the known vectors, in `scratch.vectors`; returns their sums."""
    labels, offsets, places = scratch.labels, known.by_vector.offsets, known.by_vector.places
    for k in range(0, labels.shape[0], LANES):
        store(labels, k, exp(load(labels, k)))
    sums = splat(0.0)
    for v in range(known.bias.shape[0]):
        x = splat(known.factor[v])
        for i in range(offsets[v], offsets[v + 1]):
            x = x * load(labels, places[i] * LANES)
        store(scratch.vectors, v * LANES, x)
        sums = sums + x
    return sums


@inner(error_model="numpy")
def _keep_nearest(known: Known, signs: Signs, scratch: Scratch, nothing: Any) -> Any:
    """Copy what the vectors nearest to eight examples have to `scratch.own`; returns the largest of each.

    All others have `nothing`.
    """
    width = signs.shape[1]
    for k in range(width):
        store(scratch.labels, k * LANES, gather(signs, scratch.rows, 0, width, k))
    best = _add_labels(known, known.bias[:0], scratch.labels, scratch.own) - 0.5
    most = nothing
    for v in range(known.bias.shape[0]):
        s = where_above(load(scratch.own, v * LANES), best, load(scratch.vectors, v * LANES), nothing)
        store(scratch.own, v * LANES, s)
        most = larger(most, s)
    return most


@inner(error_model="numpy")
def _add_labels(known: Known, bias: Array, labels: Array, vectors: Array) -> Any:
    """Add up, for each known vector, what its labels have; returns the largest sums."""
    offsets, places = known.by_vector.offsets, known.by_vector.places
    most = splat(-np.inf)
    for v in range(offsets.shape[0] - 1):
        s = splat(bias[v]) if bias.shape[0] > 0 else splat(0.0)
        for i in range(offsets[v], offsets[v + 1]):
            s = s + load(labels, places[i] * LANES)
        store(vectors, v * LANES, s)
        most = larger(most, s)
    return most


@inner(error_model="numpy")
def _exponentiate(vectors: Array, most: Any) -> Any:
    """Turn scores of vectors, of which `most` are the largest, into exponentials; returns their sums."""
    zero, lowest, sums = splat(0.0), splat(-np.inf), splat(0.0)
    for v in range(0, vectors.shape[0], LANES):
        s = load(vectors, v)
        x = where_above(s, lowest, exp(s - most), zero)
        store(vectors, v, x)
        sums = sums + x
    return sums


@inner(error_model="numpy")
def _add_vectors(vectors: Array) -> Any:
    """Add up what all known vectors have."""
    sums = splat(0.0)
    for v in range(0, vectors.shape[0], LANES):
        sums = sums + load(vectors, v)
    return sums


@inner(error_model="numpy", forceinline=True)
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
