"""What the known label vectors say of the labels: their probabilities, added up for each label and size.

Eight examples are looked at together, a number of each in a vector. Of V known label vectors that have M ones in all,
they take V exponentials and 2 M additions: what a vector scores is added up from its labels, and its probability is
added to each of them. No room is needed for the vectors.

Exponentials are taken of scores less the largest one there could be, if all labels with positive terms occurred
together. Should all scores be far below it, the largest one that there is has to be found first.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Vectors
from pyboomer.compiling.kernel import inner, kernel
from pyboomer.compiling.simd import LANES, at_most, exp, larger, largest, load, make_zeros, splat, store, where_above
from pyboomer.losses.truth import Ones, list_ones
from pyboomer.predicting.fmeasure import Shares
from pyboomer.rules.precision import CERTAIN

LEAST = -700.0  # exponentials of numbers not above it count as 0
ONE, EIGHT = np.uint64(1), np.uint64(2**LANES - 1)
FAR = 600.0  # if the largest score is as far below what others are compared with, they might all count as 0


class BySize(NamedTuple):
    """The known label vectors in the order of their sizes."""

    sizes: NDArray[np.int64]  # those that occur, ascending
    ends: NDArray[np.int64]  # where the vectors of each size end
    ones: Ones  # by the places that their terms have for eight examples
    bias: Array  # what each scores besides its labels, less the most that one does


class Room(NamedTuple):
    """Room for eight examples, whose numbers of the same kind lie side by side."""

    terms: Array  # of each label
    sums: Array  # of each label
    one: Array


def order_by_size(vectors: Vectors, bias: Array | float) -> BySize:
    """Label vectors as `share_out` wants them."""
    size = vectors.sum(axis=1, dtype=np.int64)
    order = np.argsort(size, kind="stable")
    sizes, counts = np.unique(size, return_counts=True)
    own = np.broadcast_to(np.asarray(bias, dtype=np.float64), len(vectors))
    offsets, places = list_ones(vectors[order])
    return BySize(sizes, np.cumsum(counts), Ones(offsets, places * np.uint32(LANES)), own[order] - own.max())


def share_out(terms: Array, known: BySize, curve: Array) -> Shares:
    """What the known vectors say of some examples, given what each label adds to the scores of vectors that have it.

    A `curve`, two rows of numbers, turns probabilities of label vectors into calibrated ones; it may be empty.
    """
    n, n_labels = terms.shape
    of_labels, of_sizes = np.empty((n, len(known.sizes), n_labels)), np.empty((n, len(known.sizes)))
    room = Room(*(make_zeros((size, LANES)).ravel() for size in (n_labels, n_labels, 1)))
    _share_out(np.clip(terms, -CERTAIN, CERTAIN), known, np.ascontiguousarray(curve), room, of_labels, of_sizes)
    whole = of_sizes.sum(axis=1)
    of_labels /= whole[:, None, None]
    return Shares(known.sizes, of_labels, of_sizes / whole[:, None])


@kernel(error_model="numpy")
def _share_out(terms: Array, known: BySize, curve: Array, room: Room, of_labels: Array, of_sizes: Array) -> None:
    """Fill the shares, up to what all vectors of an example have together."""
    ends, offsets, places = known.ends, known.ones.offsets, known.ones.places
    n, n_labels = terms.shape
    for begin in range(0, n, LANES):
        for k in range(n_labels):
            for i in range(LANES):  # the last example is looked at again if there are fewer
                room.terms[k * LANES + i] = terms[min(begin + i, n - 1), k]
        limit, whole = _find_limit(known, n_labels, room), splat(0.0)
        for v in range(known.bias.shape[0] if curve.shape[1] > 0 else 0):
            whole = whole + _exponentiate(_add_up(known, v, room) - limit)
        for g in range(ends.shape[0]):
            for k in range(n_labels):
                store(room.sums, k * LANES, splat(0.0))
            size_sum = splat(0.0)
            for v in range(ends[g - 1] if g > 0 else 0, ends[g]):
                p = _exponentiate(_add_up(known, v, room) - limit)
                if curve.shape[1] > 0:
                    p = _bend(p / whole, curve, room)
                size_sum = size_sum + p
                for e in range(offsets[v], offsets[v + ONE]):
                    place = places[e]
                    store(room.sums, place, load(room.sums, place) + p)
            store(room.one, 0, size_sum)
            for i in range(min(LANES, n - begin)):
                of_sizes[begin + i, g] = room.one[i]
                for k in range(n_labels):
                    of_labels[begin + i, g, k] = room.sums[k * LANES + i]


@inner(error_model="numpy")
def _find_limit(known: BySize, n_labels: int, room: Room) -> Any:
    """What scores of eight examples are compared with: nothing they could exceed, or else the largest of each."""
    limit, most = splat(0.0), splat(-np.inf)
    for k in range(n_labels):
        limit = limit + larger(load(room.terms, k * LANES), splat(0.0))
    for v in range(known.bias.shape[0]):
        most = larger(most, _add_up(known, v, room))
        if at_most(limit - FAR, most) == EIGHT:
            return limit
    return where_above(limit - FAR, most, most, limit)  # whatever the other examples are


@inner(error_model="numpy", forceinline=True)
def _add_up(known: BySize, v: int, room: Room) -> Any:
    """What a vector scores, of eight examples."""
    offsets, places = known.ones.offsets, known.ones.places
    score = splat(known.bias[v])
    for e in range(offsets[v], offsets[v + ONE]):
        score = score + load(room.terms, places[e])
    return score


@inner(error_model="numpy", forceinline=True)
def _exponentiate(score: Any) -> Any:
    """What a score below the largest one makes of a probability; 0 if that is next to nothing."""
    return where_above(score, splat(LEAST), exp(score), splat(0.0))


@inner(error_model="numpy")
def _bend(p: Any, curve: Array, room: Room) -> Any:
    """What a curve makes of eight probabilities: a line through its points, level beyond the first and the last."""
    x, y = curve[0], curve[1]
    if largest(p) < x[0]:  # as most are
        return splat(y[0])
    store(room.one, 0, p)
    for i in range(LANES):
        j = np.searchsorted(x, room.one[i], side="right") - 1
        if j < 0 or j >= x.shape[0] - 1:
            room.one[i] = y[max(j, 0)]
        else:
            room.one[i] = (y[j + 1] - y[j]) / (x[j + 1] - x[j]) * (room.one[i] - x[j]) + y[j]
    return load(room.one, 0)
