"""A hand is the part of the labels that rules are about for a while; here is what the joint logistic loss makes of it.

As long as all other labels keep their scores, known label vectors that agree on the hand are one vector u, of the
labels of the hand alone, and what the others bring to their probabilities is one number for each example, its *base*:

    P_u = base_u exp(sum_k u_k f_k) / sum over all u,   base_u = sum_v exp(b_v + sum_j v_j f_j)

with k in the hand, j not in it, and v those that agree with u. So while a hand is played, updates are about few and
short vectors: of 2000 label vectors that bibtex has, 160 are left of a hand of 31 of its 159 labels.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Signs
from pyboomer.compiling.kernel import kernel
from pyboomer.compiling.simd import LANES, load, scatter, splat
from pyboomer.losses.joint_twin import exponentiate
from pyboomer.losses.truth import JointHand, JointTruth, Known, Ones, Scratch

MOST_NUMBERS = 2**25  # bases that are worth their memory, of all examples: 256 MB
WORD = 64  # labels of which a number tells which a vector has


def take_hand(truth: JointTruth, labels: NDArray[np.int64], scores: Array, signs: Signs) -> JointHand:
    """What the loss knows of the labels of a hand, in ascending order, given the scores of all labels."""
    known, (n, width), size = truth.known, scores.shape, len(labels)
    place_of = np.full(width, -1, dtype=np.int64)
    place_of[labels] = np.arange(size)
    keys = np.zeros((len(known.factor), -(-size // WORD)), dtype=np.uint64)
    _mark(known.by_vector, place_of, keys)
    order = np.lexsort(keys.T)
    differ = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    ends = np.append(np.flatnonzero(differ) + 1, len(order))
    others, own, by_label = _make_ones(known, len(order)), _make_ones(known, len(ends)), _make_ones(known, signs.shape[1])
    _split(known.by_vector, order, ends, place_of, others, own, by_label)
    base = np.empty((n, len(ends)))
    _fill_base(known._replace(factor=known.factor[order], by_vector=others), ends, scores, truth.scratch, base)
    known = Known(known.factor[:0], known.limit, own, by_label, known.settled)
    return JointHand(truth.diagonal, signs, truth.weight, known, truth.scratch, base)


def _make_ones(known: Known, n_rows: int) -> Ones:
    return Ones(np.zeros(n_rows + 1, dtype=np.uint64), np.empty_like(known.by_vector.places))


@kernel
def _mark(vectors: Ones, place_of: NDArray[np.int64], keys: NDArray[np.uint64]) -> None:
    """A bit for each label of the hand that a vector has."""
    for v in range(keys.shape[0]):
        for i in range(vectors.offsets[v], vectors.offsets[v + 1]):
            place = place_of[vectors.places[i]]
            if place >= 0:
                keys[v, place // WORD] |= np.uint64(1) << np.uint64(place % WORD)


@kernel
def _split(
    vectors: Ones,
    order: NDArray[np.int64],
    ends: NDArray[np.int64],
    place_of: NDArray[np.int64],
    others: Ones,
    own: Ones,
    by_label: Ones,
) -> None:
    """List which labels vectors have: in order, those not in the hand; of each that is left of them, those in it."""
    used = used_own = 0
    u = 0
    for i in range(order.shape[0]):
        v = order[i]
        last = i == ends[u] - 1
        for e in range(vectors.offsets[v], vectors.offsets[v + 1]):
            place = place_of[vectors.places[e]]
            if place < 0:
                others.places[used] = vectors.places[e]
                used += 1
            elif last:
                own.places[used_own] = place
                by_label.offsets[place + 1] += np.uint64(1)
                used_own += 1
        others.offsets[i + 1] = used
        if last:
            own.offsets[u + 1] = used_own
            u += 1
    for k in range(by_label.offsets.shape[0] - 1):
        by_label.offsets[k + 1] += by_label.offsets[k]
    for u in range(ends.shape[0] - 1, -1, -1):  # backwards: a label's end moves to where its vectors begin
        for e in range(own.offsets[u], own.offsets[u + 1]):
            k = own.places[e] + np.uint32(1)
            by_label.offsets[k] -= np.uint64(1)
            by_label.places[by_label.offsets[k]] = u
    for k in range(by_label.offsets.shape[0] - 1):
        by_label.offsets[k] = by_label.offsets[k + 1]
    by_label.offsets[by_label.offsets.shape[0] - 1] = used_own


@kernel(error_model="numpy")
def _fill_base(known: Known, ends: NDArray[np.int64], scores: Array, scratch: Scratch, base: Array) -> None:
    """The bases of all examples; of the known vectors, the labels that are not in the hand."""
    labels, offsets, places = scratch.labels, known.by_vector.offsets, known.by_vector.places
    n, n_own = base.shape
    for r in range(0, n, LANES):
        for i in range(LANES):
            scratch.rows[i] = min(r + i, n - 1)  # the last one is done again if there are fewer
        exponentiate(known, scores, scratch)
        v = 0
        for u in range(n_own):
            sums: Any = splat(0.0)
            while v < ends[u]:
                x = splat(known.factor[v])
                for e in range(offsets[v], offsets[v + 1]):
                    x = x * load(labels, places[e] * LANES)
                sums = sums + x
                v += 1
            scatter(base, scratch.rows, 0, n_own, u, sums)
