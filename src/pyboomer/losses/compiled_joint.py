"""The compiled twin of the joint logistic loss, see `joint`.

Eight examples are looked at together, a number of each in a vector. For V known label vectors that have M ones in all,
they take K exponentials, M multiplications and M additions: where the ones are is listed twice, by vectors to multiply
the exponentials of scores, and by labels to add up probabilities. That is about 1 ns for each example and vector.
Nothing is kept between two updates but the scores.

A *group* is the part of the labels that rules are about for a while. As long as all other labels keep their scores,
known vectors that agree on the group are one vector u, of its labels alone, and what the others bring to their
probabilities is one number for each example, its *base*:

    P_u = base_u exp(sum_k u_k f_k) / sum over all u,   base_u = sum_v exp(b_v + sum_j v_j f_j)

with k in the group, j not in it, and v those that agree with u. So updates are about few and short vectors: of 2000
label vectors that bibtex has, 160 are left of a group of 31 of its 159 labels.

Most known vectors have no label of the group. Their sum, the base of u = 0, is what the others leave of the sum over
all known vectors, which the group before has found. So only those that have a label of the group are looked at.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows, Signs
from pyboomer.compiling.kernel import inner, kernel
from pyboomer.compiling.kinds import by_kind
from pyboomer.compiling.simd import (
    LANES,
    exp,
    gather_columns,
    larger,
    load,
    make_zeros,
    pad,
    scatter_columns,
    splat,
    store,
    total,
    where_above,
)
from pyboomer.losses.joint import find_limit
from pyboomer.losses.loss import KnownVectors
from pyboomer.losses.truth import JointGroup, JointTruth, Known, Ones, Scratch, list_ones

FOUR = np.uint64(4)
MOST_NUMBERS = 2**25  # bases that are worth their memory, of all examples: 256 MB
LITTLE = 1e-4  # of a sum of numbers, one of them is known to 12 digits if all others are subtracted
WORD = 64  # labels of which a number tells which a vector has

# --- Known label vectors ----------------------------------------------------------------------------------------------


def list_known(known: KnownVectors, signs: Signs) -> Known:
    """The known label vectors, and which examples have one of them."""
    n_vectors, n_labels = known.vectors.shape
    order = np.argsort(known.vectors.sum(axis=1), kind="stable")  # so that a loop is mostly as long as the one before
    vectors = np.zeros((n_vectors, signs.shape[1]), dtype=np.uint8)
    vectors[:, :n_labels] = known.vectors[order]
    own = _find_own(vectors[:, :n_labels], signs[:, :n_labels])
    return Known(np.exp(known.bias[order]), find_limit(known), list_ones(vectors), list_ones(vectors.T), own)


def _find_own(vectors: NDArray[np.uint8], signs: Signs) -> NDArray[np.int64]:
    """Which of the known vectors an example has, if all its labels are known; or else -1."""
    numbers = {vector: v for v, vector in enumerate(_pack(vectors))}
    own = np.array([numbers.get(vector, -1) for vector in _pack(signs > 0)], dtype=np.int64)
    return np.where((signs != 0).all(axis=1), own, -1)


def _pack(bits: NDArray[Any]) -> list[bytes]:
    """The bits of each row as bytes, which can be looked up."""
    packed = np.packbits(bits, axis=1)
    return list(packed.view(f"V{packed.shape[1]}").ravel().tolist())


def make_scratch(known: Known) -> Scratch:
    """Room for what one thread computes."""
    n_vectors, width = pad(len(known.factor)), len(known.by_label.offsets) - 1
    room = (make_zeros((n, LANES)).ravel() for n in (width, n_vectors, n_vectors, LANES))
    return Scratch(np.empty(LANES, dtype=np.uint32), *room)


# --- Statistics, and the loss -----------------------------------------------------------------------------------------


@inner(error_model="numpy")
def update_joint(truth: Any, scores: Array, rows: Rows, statistics: Array) -> None:
    """Update the statistics, or the gradients alone if there is room for no more; all labels of an example change."""
    known, scratch = truth.known, truth.scratch
    some, width, size = scratch.rows, scores.shape[1], statistics.shape[1]
    zero, one = splat(0.0), splat(1.0)
    for r in range(0, rows.shape[0], LANES):
        settled = True
        for i in range(LANES):
            some[i] = rows[min(r + i, rows.shape[0] - 1)]  # the last one is done again if there are fewer
            settled &= known.own[some[i]] >= 0
        sums, sums_of_own = _weigh_vectors(truth, scores), one
        if not settled:
            sums_of_own = _keep_nearest(known, truth.signs, scratch)
        for first in range(0, width, LANES):
            if settled:
                gather_columns(truth.signs, some, width, first, scratch.block, 0)
            for i in range(LANES):
                p = _add_up(known, first + i, scratch.vectors) / sums
                if settled:
                    q = larger(load(scratch.block, i * LANES), zero)
                else:
                    q = _add_up(known, first + i, scratch.own) / sums_of_own
                store(scratch.labels, (first + i) * LANES, p - q)
                store(scratch.block, i * LANES, larger(p * (one - p), zero))
            scatter_columns(statistics, some, size, first, scratch.labels, first * LANES)
            if size > width:
                scatter_columns(statistics, some, size, width + first, scratch.block, 0)


@inner(error_model="numpy")
def sum_joint(truth: JointTruth, scores: Array, weights: Array) -> float:
    """Sum the loss."""
    known, scratch = truth.known, truth.scratch
    n = scores.shape[0]
    value = 0.0
    for begin in range(0, n, LANES):
        settled = True
        for i in range(LANES):
            scratch.rows[i] = min(begin + i, n - 1)
            settled &= known.own[scratch.rows[i]] >= 0
        sums = _weigh_vectors(truth, scores)
        if settled:
            for i in range(LANES):
                scratch.labels[i] = scratch.vectors[known.own[scratch.rows[i]] * LANES + i]
        else:
            store(scratch.labels, 0, _keep_nearest(known, truth.signs, scratch))
        store(scratch.own, 0, sums)
        for i in range(min(LANES, n - begin)):
            value += weights[begin + i] * (np.log(scratch.own[i]) - np.log(scratch.labels[i]))
    return value


@by_kind
def _begin_vectors(truth: Any) -> None:
    """Fetch what known vectors score before their labels do, if it is not the same for all examples."""


@_begin_vectors.of(JointTruth, forceinline=True)
def _begin_alike(truth: JointTruth) -> None:
    pass


@_begin_vectors.of(JointGroup, forceinline=True)
def _fetch_bases(truth: JointGroup) -> None:
    base, scratch = truth.base, truth.scratch
    for v in range(0, base.shape[1], LANES):
        gather_columns(base, scratch.rows, base.shape[1], v, scratch.vectors, v * LANES)


@by_kind
def _begin_vector(truth: Any, v: int) -> Any:
    """The exponential of what a known vector scores before its labels do, of eight examples."""


@_begin_vector.of(JointTruth, forceinline=True)
def _take_factor(truth: JointTruth, v: int) -> Any:
    return splat(truth.known.factor[v])


@_begin_vector.of(JointGroup, forceinline=True)
def _take_base(truth: JointGroup, v: int) -> Any:
    return load(truth.scratch.vectors, v * LANES)


@inner(error_model="numpy")
def _weigh_vectors(truth: Any, scores: Array) -> Any:
    """The exponentials of the known vectors' scores, of eight examples, in `scratch.vectors`; returns their sums."""
    known, scratch = truth.known, truth.scratch
    labels, offsets, places = scratch.labels, known.by_vector.offsets, known.by_vector.places
    exponentiate(known, scores, scratch)
    _begin_vectors(truth)
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
    labels, width, limit = scratch.labels, scores.shape[1], splat(known.limit)
    for first in range(0, width, LANES):
        gather_columns(scores, scratch.rows, width, first, labels, first * LANES)
        for k in range(first * LANES, (first + LANES) * LANES, LANES):
            f = larger(load(labels, k), splat(-known.limit))
            store(labels, k, exp(where_above(f, limit, limit, f)))


@inner(error_model="numpy")
def _keep_nearest(known: Known, signs: Signs, scratch: Scratch) -> Any:
    """Copy `scratch.vectors` to `scratch.own`, with 0 for all vectors but those nearest to an example; their sums."""
    labels, offsets, places = scratch.labels, known.by_vector.offsets, known.by_vector.places
    width, n_vectors = signs.shape[1], offsets.shape[0] - 1
    for k in range(0, width, LANES):
        gather_columns(signs, scratch.rows, width, k, labels, k * LANES)
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


# --- A group of labels ------------------------------------------------------------------------------------------------


class Groups(NamedTuple):
    """Known vectors in groups: those of a group agree on the labels of a group."""

    labels: NDArray[np.int64]  # of the group
    factor: Array  # of each vector
    others: Ones  # which labels each vector has that are not in the group
    ends: NDArray[np.int64]  # where groups end
    own: Ones  # which labels of the group each group has, by their places in it
    apart: bool  # whether the first group has none of them


def take_group(truth: JointTruth, labels: NDArray[np.int64], scores: Array, signs: Signs, sums: Array) -> JointGroup:
    """What the loss knows of the labels of a group, in ascending order, given the scores of all labels.

    `sums` are those of the exponentials of all known vectors' scores, of each example, or NaN if they are not known.
    """
    known, (n, width), size = truth.known, scores.shape, len(labels)
    place_of = np.full(width, -1, dtype=np.int64)
    place_of[labels] = np.arange(size)
    keys = np.zeros((len(known.factor), -(-size // WORD)), dtype=np.uint64)
    _mark(known.by_vector, place_of, keys)
    order = np.lexsort(keys.T)
    differ = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    ends = np.append(np.flatnonzero(differ) + 1, len(order))
    others, own, by_label = (_make_ones(known, m) for m in (len(order), len(ends), signs.shape[1]))
    _split(known.by_vector, order, ends, place_of, others, own, by_label)
    groups = Groups(labels, known.factor[order], others, ends, own, not keys[order[0]].any())
    base = np.empty((n, pad(len(ends))))
    _fill_base(known, groups, scores, sums, truth.scratch, make_scratch(known), base)
    known = Known(known.factor[:0], known.limit, own, by_label, known.own)  # factors are in the base
    return JointGroup(truth.diagonal, signs, truth.weight, known, truth.scratch, base)


def _make_ones(known: Known, n_rows: int) -> Ones:
    return Ones(np.zeros(n_rows + 1, dtype=np.uint64), np.empty_like(known.by_vector.places))


@kernel
def _mark(vectors: Ones, place_of: NDArray[np.int64], keys: NDArray[np.uint64]) -> None:
    """A bit for each label of the group that a vector has."""
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
    """List which labels vectors have: in order, those not in the group; of each that is left of them, those in it."""
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
def _fill_base(
    known: Known, groups: Groups, scores: Array, sums: Array, one: Scratch, two: Scratch, base: Array
) -> None:
    """The bases of all examples, twice eight at a time: where the ones are is read once for both.

    Most vectors have no label of the group. What they add up to is what all others leave of the sums over all vectors.
    If that is little, most of its digits are lost; so it is added up then, and if the sums are not known.
    """
    own, zero, lost = groups.own, splat(0.0), splat(1.0)
    for r in range(0, base.shape[0], 2 * LANES):
        all_of_one, all_of_two = (
            _begin_eight(known, scores, sums, r, one),
            _begin_eight(known, scores, sums, r + LANES, two),
        )
        rest, rest_of_two = all_of_one, all_of_two
        for u in range(int(groups.apart), groups.ends.shape[0]):
            x, y = _sum_group(groups, u, one, two)
            store(one.vectors, u * LANES, x)
            store(two.vectors, u * LANES, y)
            for e in range(own.offsets[u], own.offsets[u + 1]):
                place = groups.labels[own.places[e]] * LANES
                x, y = x * load(one.labels, place), y * load(two.labels, place)
            rest, rest_of_two = rest - x, rest_of_two - y
        if groups.apart:
            is_lost = where_above(rest, LITTLE * all_of_one, zero, lost)
            is_lost = is_lost + where_above(rest_of_two, LITTLE * all_of_two, zero, lost)
            if total(is_lost) > 0.0:
                rest, rest_of_two = _sum_group(groups, 0, one, two)
            store(one.vectors, 0, rest)
            store(two.vectors, 0, rest_of_two)
        _write_eight(one, base)
        _write_eight(two, base)


@inner
def _begin_eight(known: Known, scores: Array, sums: Array, begin: int, scratch: Scratch) -> Any:
    for i in range(LANES):
        n = min(begin + i, scores.shape[0] - 1)  # the last one is done again if there are fewer
        scratch.rows[i], scratch.block[i] = n, sums[n]
    exponentiate(known, scores, scratch)
    return load(scratch.block, 0)


@inner(error_model="numpy", forceinline=True)
def _sum_group(groups: Groups, u: int, one: Scratch, two: Scratch) -> tuple[Any, Any]:
    """What the vectors of a group have that the group does not change."""
    offsets, places = groups.others.offsets, groups.others.places
    sums: Any = splat(0.0)
    sums_of_two: Any = splat(0.0)
    for v in range(groups.ends[u - 1] if u > 0 else 0, groups.ends[u]):
        x = y = splat(groups.factor[v])
        for e in range(offsets[v], offsets[v + 1]):
            place = places[e] * LANES
            x, y = x * load(one.labels, place), y * load(two.labels, place)
        sums, sums_of_two = sums + x, sums_of_two + y
    return sums, sums_of_two


@inner
def _write_eight(scratch: Scratch, base: Array) -> None:
    for u in range(0, base.shape[1], LANES):
        scatter_columns(base, scratch.rows, base.shape[1], u, scratch.vectors, u * LANES)


@kernel(error_model="numpy")
def sum_vectors(truth: JointGroup, scores: Array, sums: Array) -> None:
    """The sums of the exponentials of all known vectors' scores, of each example."""
    scratch, n = truth.scratch, scores.shape[0]
    for begin in range(0, n, LANES):
        for i in range(LANES):
            scratch.rows[i] = min(begin + i, n - 1)
        store(scratch.block, 0, _weigh_vectors(truth, scores))
        for i in range(min(LANES, n - begin)):
            sums[begin + i] = scratch.block[i]
