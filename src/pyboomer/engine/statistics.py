"""Statistics are what the search needs to know of each example: its gradient and the curvature of the loss there.

They lie in one array, a row per example, made of sections of equal width: the gradient first, then the curvature. Rows
are padded with zeros so that a section is a whole number of vector registers. The layout follows from the loss and the
kind of head:

==================  ==============================  ================================================================
layout              sections of a row               for
==================  ==============================  ================================================================
``DIAGONAL``        g, h                            losses that decompose; every loss, if heads are single
``OUTER_GRADIENT``  g, a                            H = diag(a) - g g^T: the example-wise logistic loss
``OUTER``           g, a, b                         H = diag(a) - b b^T: other losses of that shape
``DENSE``           g, lower triangle of H          all other losses
==================  ==============================  ================================================================

Sums of rows have the layout of a row. Y and the scores are padded in the same way. A Y of 0 makes all statistics 0:
that of the padding, and that of unknown labels.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows, Signs
from pyboomer.compiling.kernel import kernel
from pyboomer.compiling.simd import (
    LANES,
    exp,
    gather,
    larger,
    largest,
    load,
    prefetch,
    product,
    scatter,
    splat,
    store,
    total,
    where_above,
)
from pyboomer.losses.loss import Loss, example_wise_logistic, label_wise_logistic, squared_error

DIAGONAL, OUTER_GRADIENT, OUTER, DENSE = range(4)
BLOCK = 256  # examples whose statistics stay in the cache while more than one thing is done with them
CACHE = 2**18  # numbers that fit the second-level cache
AHEAD = 8  # examples between asking for what memory holds of one and needing it, ...
SOME = 32  # ... or examples that it is asked for at once
PRODUCT = 512  # numbers up to 2 whose product is well within what a float64 can hold
LABEL_WISE, EXAMPLE_WISE, SQUARED, USER_DEFINED = range(4)  # which compiled update serves the loss


class Truth(NamedTuple):
    """What is known of the examples: their labels, and the weights of these if some are neither 0 nor 1.

    For the squared error, the scores that go with it are those still missing, f - y, so that `Y` need only tell which
    targets are known, by 1 and 0. For a user's own loss in regression `Y` holds the targets, and the weights tell.
    """

    Y: Signs  # (N, width): -1 and +1, 0 for an unknown label
    weight: Array  # (N, width), or (0, width) where all that is known has weight 1

    def take(self, rows: Rows, k: int) -> tuple[Array, Array | None]:
        """The labels of some examples and their weights, None if all are 1."""
        Y = self.Y[rows, :k].astype(np.float64)
        if len(self.weight):
            return Y, self.weight[rows, :k]
        unknown = Y == 0
        return Y, (1.0 - unknown if self.Y.dtype == np.int8 and unknown.any() else None)


@kernel
def pad(k: int) -> int:
    """The width of a section for k numbers."""
    return -(-k // LANES) * LANES


def choose_layout(loss: Loss, single: bool) -> int:
    """The layout of the statistics for a loss, and for single- or multi-label heads."""
    if single or loss.decomposable:
        return DIAGONAL
    if loss.shape == "dense":
        return DENSE
    return OUTER_GRADIENT if loss is example_wise_logistic else OUTER


@kernel
def count_columns(layout: int, n_labels: int) -> int:
    """The length of a row of statistics, or of sums of them."""
    if layout == DENSE:
        return pad(n_labels) + pad(n_labels * (n_labels + 1) // 2)
    return pad(n_labels) * (3 if layout == OUTER else 2)


def choose_update(loss: Loss) -> int:
    """Which compiled function keeps the statistics of a loss up to date."""
    updates = {label_wise_logistic: LABEL_WISE, example_wise_logistic: EXAMPLE_WISE, squared_error: SQUARED}
    return updates.get(loss, USER_DEFINED)


def write_statistics(
    loss: Loss,
    layout: int,
    truth: Truth,
    scores: Array,
    rows: Rows,
    statistics: Array,
    k: int,
    update_rows: Callable[..., None] | None = None,
) -> None:
    """Compute the statistics of some examples anew (Alg. 1, lines 1 and 4); `k` is the number of labels.

    `update_rows` may take the place of `update_statistics`, to which the built-in losses leave it.
    """
    update = choose_update(loss)
    if update != USER_DEFINED:
        (update_rows or update_statistics)(update, layout, truth, scores, rows, statistics, 0, pad(k))
        return
    Y, weight = truth.take(rows, k)
    g, *curvature = loss.weighted_derivatives(Y, scores[rows, :k], weight)
    width = pad(k)
    statistics[rows, :k] = g
    if layout == DENSE:
        i, j = np.tril_indices(k)
        statistics[rows, width : width + len(i)] = curvature[0][:, i, j]
    elif loss.shape == "dense":
        statistics[rows, width : width + k] = np.diagonal(curvature[0], axis1=1, axis2=2)
    elif layout == DIAGONAL and not loss.decomposable:
        statistics[rows, width : width + k] = curvature[0] - curvature[1] ** 2
    else:
        statistics[rows, width : width + k] = curvature[0]
        if layout == OUTER:
            statistics[rows, 2 * width : 2 * width + k] = curvature[1]


@kernel(error_model="numpy", forceinline=True)
def _derive_logistic(y: Any, weight: Any, score: Any) -> tuple[Any, Any]:
    """Gradient and curvature of the logistic loss: vectors of labels, or of examples."""
    zero = splat(0.0)
    margin = y * score
    e = exp(where_above(margin, zero, zero - margin, margin))  # exp(-|f|)
    p = 1.0 / (1.0 + e)  # logistic(|f|)
    q = e * p
    return (zero - y) * weight * where_above(margin, zero, q, p), weight * p * q


@kernel(error_model="numpy")
def update_statistics(
    update: int, layout: int, truth: Truth, scores: Array, rows: Rows, statistics: Array, first: int, last: int
) -> None:
    """Compute the statistics of some examples anew, for the built-in losses.

    Labels `first` to `last` - 1 are the ones whose scores have changed.
    """
    Y, weight = truth.Y, truth.weight
    weighted = weight.shape[0] > 0
    width = scores.shape[1]
    size = statistics.shape[1]
    far = statistics.shape[0] * size > CACHE
    begin, end = (0, width) if update == EXAMPLE_WISE else (first // LANES * LANES, pad(last))
    zero = splat(0.0)
    done = 0
    if update == LABEL_WISE and last - first == 1 and not far:  # one label: eight examples at a time
        done = rows.shape[0] // LANES * LANES
        for r in range(0, done, LANES):
            y = gather(Y, rows, r, width, first)
            w = gather(weight, rows, r, width, first) if weighted else y * y
            g, h = _derive_logistic(y, w, gather(scores, rows, r, width, first))
            scatter(statistics, rows, r, size, first, g)
            scatter(statistics, rows, r, size, width + first, h)
    for r in range(done, rows.shape[0]):
        n = rows[r]
        if far:
            soon = rows[min(r + AHEAD, rows.shape[0] - 1)]
            prefetch(Y, soon * width + begin)
            for k in range(begin, end, LANES):
                prefetch(scores, soon * width + k)
                prefetch(statistics, soon * size + k)
                prefetch(statistics, soon * size + width + k)
        if update == LABEL_WISE:
            for k in range(begin, end, LANES):
                y = load(Y, n * width + k)
                w = load(weight, n * width + k) if weighted else y * y
                g, h = _derive_logistic(y, w, load(scores, n * width + k))
                store(statistics, n * size + k, g)
                store(statistics, n * size + width + k, h)
        elif update == SQUARED:
            for k in range(begin, end, LANES):
                w = load(weight, n * width + k) if weighted else load(Y, n * width + k)
                store(statistics, n * size + k, w * load(scores, n * width + k))
                store(statistics, n * size + width + k, w)
        else:
            most = zero
            for k in range(0, width, LANES):
                exponent = zero - load(Y, n * width + k) * load(scores, n * width + k)
                store(statistics, n * size + k, exponent)
                most = larger(most, exponent)
            shift = largest(most)
            sums = zero
            for k in range(0, width, LANES):
                y = load(Y, n * width + k)
                w = load(weight, n * width + k) if weighted else y * y
                e = w * exp(load(statistics, n * size + k) - shift)
                store(statistics, n * size + k, e)
                sums = sums + e
            scale = 1.0 / (np.exp(-shift) + total(sums))
            for k in range(0, width, LANES):
                p = load(statistics, n * size + k) * scale
                store(statistics, n * size + k, (zero - load(Y, n * width + k)) * p)
                store(statistics, n * size + width + k, p * (1.0 - p) if layout == DIAGONAL else p)


@kernel(error_model="numpy")
def sum_values(update: int, truth: Truth, scores: Array, weights: Array) -> float:
    """The weighted sum over all examples of a built-in loss, labels without weights of their own (see `losses`).

    Label-wise, log(1 + e) is summed over the labels as the logarithm of a product, of no more than `PRODUCT` labels.
    """
    Y = truth.Y
    width = scores.shape[1]
    zero, one = splat(0.0), splat(1.0)
    sums = 0.0
    for n in range(scores.shape[0]):
        start = n * width
        value = 0.0
        if update == LABEL_WISE:
            for begin in range(0, width, PRODUCT):
                factor, linear = one, zero
                for k in range(begin, min(begin + PRODUCT, width), LANES):
                    y = load(Y, start + k)
                    margin = y * load(scores, start + k)
                    factor = factor * (1.0 + y * y * exp(where_above(margin, zero, zero - margin, margin)))
                    linear = linear + larger(zero - margin, zero)
                value += np.log(product(factor)) + total(linear)
        elif update == SQUARED:
            squares = zero
            for k in range(0, width, LANES):
                missing = load(Y, start + k) * load(scores, start + k)
                squares = squares + missing * missing
            value = 0.5 * total(squares)
        else:
            most = zero
            for k in range(0, width, LANES):
                most = larger(most, zero - load(Y, start + k) * load(scores, start + k))
            shift = largest(most)
            e = zero
            for k in range(0, width, LANES):
                y = load(Y, start + k)
                e = e + y * y * exp(zero - y * load(scores, start + k) - shift)
            value = np.log1p(total(e)) if shift == 0.0 else shift + np.log(np.exp(-shift) + total(e))
        sums += weights[n] * value
    return sums


@kernel
def take_labels(layout: int, n_labels: int, statistics: Array, labels: NDArray[np.int64], taken: Array) -> None:
    """Copy the statistics of some of the labels, in ascending order: of the Hessian, their rows and columns remain."""
    m = labels.shape[0]
    width, new_width = pad(n_labels), pad(m)
    n_sections = 1 if layout == DENSE else statistics.shape[1] // width
    for n in range(statistics.shape[0]):
        for s in range(taken.shape[1]):
            taken[n, s] = 0.0
        for section in range(n_sections):
            for i in range(m):
                taken[n, section * new_width + i] = statistics[n, section * width + labels[i]]
        if layout == DENSE:
            position = new_width
            for i in range(m):
                start = width + labels[i] * (labels[i] + 1) // 2
                for j in range(i + 1):
                    taken[n, position + j] = statistics[n, start + labels[j]]
                position += i + 1


@kernel(error_model="numpy")
def add_scores_to_rows(scores: Array, rows: Rows, head: Array, first: int, last: int) -> None:
    """Add a rule's head, of labels `first` to `last` - 1, to the scores of the examples it covers."""
    width = scores.shape[1]
    first, last = first // LANES * LANES, pad(last)
    for begin in range(0, rows.shape[0], BLOCK):
        end = min(begin + BLOCK, rows.shape[0])
        for k in range(first, last, LANES):
            change = load(head, k)
            for r in range(begin, end):
                position = rows[r] * width + k
                store(scores, position, load(scores, position) + change)


@kernel(error_model="numpy")
def sum_rows(statistics: Array, first: int, rows: Rows, weights: Array, sums: Array) -> float:
    """Sum the statistics of the covered examples (Alg. 2, line 1) from column `first` on, as many as `sums` has.

    Returns the sum of the weights.
    """
    for s in range(sums.shape[0]):
        sums[s] = 0.0
    if rows.shape[0] * sums.shape[0] < CACHE:
        return add_rows(statistics, first, rows, weights, sums)
    for begin in range(0, rows.shape[0], SOME):
        end = min(begin + SOME, rows.shape[0])
        fetch_rows(statistics, first, sums.shape[0], rows[end : end + SOME])
        add_rows(statistics, first, rows[begin:end], weights, sums)
    return _sum_weights(rows, weights)


@kernel(error_model="numpy")
def fetch_rows(statistics: Array, first: int, size: int, rows: Rows) -> None:
    """Ask for the statistics of examples whose turn comes soon: as many columns from `first` on as `size` says."""
    for r in range(rows.shape[0]):
        start = rows[r] * statistics.shape[1] + first
        for s in range(0, size, LANES):
            prefetch(statistics, start + s)


@kernel(error_model="numpy")
def add_rows(statistics: Array, first: int, rows: Rows, weights: Array, sums: Array) -> float:
    """Add the statistics of some examples to sums, see `sum_rows`; returns the sum of their weights."""
    size = statistics.shape[1]
    for s in range(0, sums.shape[0], 2 * LANES):  # two vectors at a time; an odd last one is done twice
        other = s + LANES if s + LANES < sums.shape[0] else s
        one = load(sums, s)
        two = load(sums, other)
        for r in range(rows.shape[0]):
            n = rows[r]
            one = one + weights[n] * load(statistics, n * size + first + s)
            two = two + weights[n] * load(statistics, n * size + first + other)
        store(sums, s, one)
        store(sums, other, two)
    return _sum_weights(rows, weights)


@kernel
def _sum_weights(rows: Rows, weights: Array) -> float:
    """The weight of some examples."""
    weight = 0.0
    for r in range(rows.shape[0]):
        weight += weights[rows[r]]
    return weight


@kernel
def sum_label(statistics: Array, label: int, rows: Rows, weights: Array) -> tuple[float, float, float]:
    """Sum gradient and curvature of one label, in layout `DIAGONAL`, and the weights of the covered examples."""
    width = statistics.shape[1] // 2
    g, h, weight = 0.0, 0.0, 0.0
    for r in range(rows.shape[0]):
        n = rows[r]
        g += weights[n] * statistics[n, label]
        h += weights[n] * statistics[n, width + label]
        weight += weights[n]
    return g, h, weight


@kernel(error_model="numpy")
def sum_hessians(layout: int, first: int, statistics: Array, rows: Rows, weights: Array, A: Array) -> None:
    """Sum the Hessians diag(a_n) - b_n b_n^T of the covered examples: the lower triangle, in rows of whole vectors.

    `A` receives the rows of the labels from `first` on, an even one; two at a time, an odd last one twice.
    """
    size = statistics.shape[1]
    width = A.shape[1]
    section = 2 * width if layout == OUTER else 0
    by_size = layout == OUTER_GRADIENT  # a = |g|, which is at hand
    diagonal = 0 if by_size else width
    last = first + A.shape[0] - 1
    share = -(-2 * BLOCK // A.shape[0])  # of the next block, which is asked for bit by bit
    A[:] = 0.0
    for begin in range(0, rows.shape[0], BLOCK):  # examples that stay in the cache while all labels are paired
        end = min(begin + BLOCK, rows.shape[0])
        for i in range(first, last + 1, 2):
            soon = end + (i - first) // 2 * share
            fetch_rows(statistics, section, width, rows[soon : min(soon + share, end + BLOCK)])
            k = min(i + 1, last)
            row, next_row = (i - first) * width, (k - first) * width
            for j in range(0, i + 1, 2 * LANES):
                other = j + LANES if j + LANES <= i else j
                ij, io = load(A, row + j), load(A, row + other)
                kj, ko = load(A, next_row + j), load(A, next_row + other)
                for r in range(begin, end):
                    start = rows[r] * size + section
                    b_i = weights[rows[r]] * statistics[rows[r], section + i]
                    b_k = weights[rows[r]] * statistics[rows[r], section + k]
                    one, two = load(statistics, start + j), load(statistics, start + other)
                    ij, io = ij - b_i * one, io - b_i * two
                    kj, ko = kj - b_k * one, ko - b_k * two
                store(A, row + j, ij)
                store(A, row + other, io)
                store(A, next_row + j, kj)
                store(A, next_row + other, ko)
            a_i, a_k = 0.0, 0.0
            for r in range(begin, end):
                one_a, two_a = statistics[rows[r], diagonal + i], statistics[rows[r], diagonal + k]
                a_i += weights[rows[r]] * (abs(one_a) if by_size else one_a)
                a_k += weights[rows[r]] * (abs(two_a) if by_size else two_a)
            A[i - first, i] += a_i
            if k > i:
                A[k - first, k] += a_k
