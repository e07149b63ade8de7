"""Statistics are what the search needs to know of each example: its gradient and the curvature of the loss there.

They lie in one array, a row per example, made of sections of equal width: the gradient first, then the curvature. Rows
are padded with zeros so that a section is a whole number of vector registers. The layout follows from the loss and the
kind of head:

==================  ==============================  ================================================================
layout              sections of a row               for
==================  ==============================  ================================================================
``Diagonal``        g, h                            losses that decompose; every loss, if heads are single
``Diagonal``        g                               logistic losses of labels that are dealt: h = |g| (1 - |g|)
``Outer``           g, a                            H = diag(a) - g g^T: the example-wise logistic loss
``Outer``           g, a, b                         H = diag(a) - b b^T: other losses of that shape
``Dense``           g, lower triangle of H          all other losses
==================  ==============================  ================================================================

Sums of rows have the layout of a row, and always h. Labels and scores are padded in the same way.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.compiling.kernel import inner, kernel, plain
from pyboomer.compiling.kinds import by_kind
from pyboomer.compiling.simd import LANES, larger, load, pad, prefetch, splat, store, total

Terms = NDArray[np.int32]  # statistics times weights, in whole numbers of a unit

BLOCK = 256  # examples whose statistics stay in the cache while more than one thing is done with them
SOME = 16  # examples that memory is asked for at once
NEAR = 2**15  # numbers that are added up without asking for them ahead


class Diagonal(NamedTuple):
    """g and h: H = diag(h). Of a logistic loss, h = p (1 - p) and |g| = p or 1 - p, so g may say all."""

    n_labels: int


class Outer(NamedTuple):
    """g, a and perhaps b: H = diag(a) - b b^T. Section `b` is the third, or the first where b = g (then a = |g|)."""

    n_labels: int
    b: int


class Dense(NamedTuple):
    """g and the lower triangle of H."""

    n_labels: int


Layout = Diagonal | Outer | Dense


@by_kind
def count_columns(layout: Layout) -> int:
    """The length of a row of statistics, or of sums of them."""


@count_columns.of(Diagonal, compile=plain)
def _count_diagonal(layout: Diagonal) -> int:
    return 2 * pad(layout.n_labels)


@count_columns.of(Outer, compile=plain)
def _count_outer(layout: Outer) -> int:
    return pad(layout.n_labels) * (3 if layout.b > 0 else 2)


@count_columns.of(Dense, compile=plain)
def _count_dense(layout: Dense) -> int:
    return pad(layout.n_labels) + pad(layout.n_labels * (layout.n_labels + 1) // 2)


@by_kind
def resize(layout: Layout, n_labels: int) -> Layout:
    """The same layout for another number of labels."""


@resize.of(Diagonal, compile=plain)
def _resize_diagonal(layout: Diagonal, n_labels: int) -> Diagonal:
    return Diagonal(n_labels)


@resize.of(Outer, compile=plain)
def _resize_outer(layout: Outer, n_labels: int) -> Outer:
    return Outer(n_labels, layout.b)


@resize.of(Dense, compile=plain)
def _resize_dense(layout: Dense, n_labels: int) -> Dense:
    return Dense(n_labels)


@by_kind
def take_labels(layout: Layout, statistics: Array, rows: Rows, labels: NDArray[np.int64], taken: Array) -> None:
    """Copy the statistics of some examples and labels, in ascending order: of H, rows and columns of these remain."""


@take_labels.of(Diagonal, Outer, compile=kernel)
def _take_sections(layout: Any, statistics: Array, rows: Rows, labels: NDArray[np.int64], taken: Array) -> None:
    m = labels.shape[0]
    width, new_width = pad(layout.n_labels), pad(m)
    for r in range(rows.shape[0]):
        n = rows[r]
        for section in range(taken.shape[1] // new_width):
            source = statistics[n, section * width : (section + 1) * width]
            target = taken[n, section * new_width : (section + 1) * new_width]
            for i in range(m):
                target[i] = source[np.uint64(labels[i])]  # not tested for a sign
            for i in range(m, new_width):
                target[i] = 0.0


@take_labels.of(Dense, compile=kernel)
def _take_dense(layout: Dense, statistics: Array, rows: Rows, labels: NDArray[np.int64], taken: Array) -> None:
    m = labels.shape[0]
    width, new_width = pad(layout.n_labels), pad(m)
    for r in range(rows.shape[0]):
        n = rows[r]
        for s in range(taken.shape[1]):
            taken[n, s] = 0.0
        position = new_width
        for i in range(m):
            taken[n, i] = statistics[n, labels[i]]
            start = width + labels[i] * (labels[i] + 1) // 2
            for j in range(i + 1):
                taken[n, position + j] = statistics[n, start + labels[j]]
            position += i + 1


@by_kind
def advance(layout: Layout, statistics: Array, rows: Rows, scores: Array) -> None:
    """Add scores to some examples to first order: the gradient becomes g + H p, and H stays as it is.

    `scores` has a row for each of the examples, or one row for all.
    """


@advance.of(Diagonal, compile=kernel, error_model="numpy")
def _advance_diagonal(layout: Diagonal, statistics: Array, rows: Rows, scores: Array) -> None:
    width, size = scores.shape[1], statistics.shape[1]
    step = width if scores.shape[0] > 1 else 0
    for r in range(rows.shape[0]):
        position = rows[r] * size
        for k in range(0, width, LANES):
            change = load(statistics, position + width + k) * load(scores, r * step + k)
            store(statistics, position + k, load(statistics, position + k) + change)


@advance.of(Outer, compile=kernel, error_model="numpy")
def _advance_outer(layout: Outer, statistics: Array, rows: Rows, scores: Array) -> None:
    width, size = scores.shape[1], statistics.shape[1]
    step = width if scores.shape[0] > 1 else 0
    for r in range(rows.shape[0]):
        position = rows[r] * size
        section = position + layout.b * width
        dot = splat(0.0)
        for k in range(0, width, LANES):
            dot = dot + load(statistics, section + k) * load(scores, r * step + k)
        product = total(dot)
        for k in range(0, width, LANES):
            change = load(statistics, position + width + k) * load(scores, r * step + k)
            change = change - product * load(statistics, section + k)
            store(statistics, position + k, load(statistics, position + k) + change)


@advance.of(Dense, compile=kernel)
def _advance_dense(layout: Dense, statistics: Array, rows: Rows, scores: Array) -> None:
    last = scores.shape[0] - 1
    for r in range(rows.shape[0]):
        n, p, position = rows[r], scores[min(r, last)], pad(layout.n_labels)
        for i in range(layout.n_labels):
            for j in range(i + 1):  # the lower triangle of H
                h = statistics[n, position + j]
                statistics[n, i] += h * p[j]
                if j < i:
                    statistics[n, j] += h * p[i]
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


@kernel
def sum_weights(rows: Rows, weights: Array) -> float:
    """The weight of some examples."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0  # each addition waits for the one before
    whole = rows.shape[0] - rows.shape[0] % 4
    for r in range(0, whole, 4):
        a += weights[rows[r]]
        b += weights[rows[r + 1]]
        c += weights[rows[r + 2]]
        d += weights[rows[r + 3]]
    for r in range(whole, rows.shape[0]):
        a += weights[rows[r]]
    return (a + b) + (c + d)


@kernel(error_model="numpy")
def sum_rows(statistics: Array, first: int, rows: Rows, weights: Array, sums: Array) -> float:
    """Sum the statistics of the covered examples (Alg. 2, line 1) from column `first` on, as many as `sums` has.

    Returns the sum of the weights.
    """
    for s in range(sums.shape[0]):
        sums[s] = 0.0
    return add_rows(statistics, first, rows, weights, sums)


@inner(error_model="numpy")
def fetch_rows(statistics: Array, first: int, size: int, rows: Rows) -> None:
    """Ask for the statistics of examples whose turn comes soon: as many columns from `first` on as `size` says."""
    for r in range(rows.shape[0]):
        start = rows[r] * statistics.shape[1] + first
        for s in range(0, size, LANES):
            prefetch(statistics, start + s)


@inner(error_model="numpy")
def add_rows(statistics: Array, first: int, rows: Rows, weights: Array, sums: Array) -> float:
    """Add the statistics of some examples to sums, see `sum_rows`; returns the sum of their weights."""
    width = min(statistics.shape[1], sums.shape[0])
    if rows.shape[0] * width < NEAR:
        _add_block(statistics, first, rows, weights, sums)
    else:
        for begin in range(0, rows.shape[0], SOME):
            end = min(begin + SOME, rows.shape[0])
            fetch_rows(statistics, first, width, rows[end : end + SOME])
            _add_block(statistics, first, rows[begin:end], weights, sums)
    return sum_weights(rows, weights)


@inner(error_model="numpy", forceinline=True)
def derive_curvature(g: Any) -> Any:
    """The curvature that follows from the gradient of a logistic loss, of eight labels."""
    return larger(g, splat(0.0) - g) - g * g


@inner(error_model="numpy")
def _add_gradients(statistics: Array, rows: Rows, weights: Array, sums: Array) -> None:
    """Add gradients, and the curvatures that follow from them."""
    width, n_rows = statistics.shape[1], rows.shape[0]
    even = n_rows - n_rows % 2
    for k in range(0, width, LANES):
        one, two = load(sums, k), load(sums, width + k)
        next_one, next_two = splat(0.0), splat(0.0)
        for r in range(0, even, 2):  # two rows at a time, as each addition waits for the one before
            n, m = rows[r], rows[r + 1]
            g, next_g = load(statistics, n * width + k), load(statistics, m * width + k)
            one, two = one + weights[n] * g, two + weights[n] * derive_curvature(g)
            next_one = next_one + weights[m] * next_g
            next_two = next_two + weights[m] * derive_curvature(next_g)
        for r in range(even, n_rows):
            n = rows[r]
            g = load(statistics, n * width + k)
            one, two = one + weights[n] * g, two + weights[n] * derive_curvature(g)
        store(sums, k, one + next_one)
        store(sums, width + k, two + next_two)


@inner(error_model="numpy")
def _add_block(statistics: Array, first: int, rows: Rows, weights: Array, sums: Array) -> None:
    """The same, column by column; two rows at a time, as each addition waits for the one before."""
    size, n_rows = statistics.shape[1], rows.shape[0]
    if size < sums.shape[0]:
        _add_gradients(statistics, rows, weights, sums)
        return
    even = n_rows - n_rows % 2
    for s in range(0, sums.shape[0], 2 * LANES):  # two vectors at a time; an odd last one is done twice
        other = s + LANES if s + LANES < sums.shape[0] else s
        one, two = load(sums, s), load(sums, other)
        next_one, next_two = splat(0.0), splat(0.0)
        for r in range(0, even, 2):
            n, m = rows[r], rows[r + 1]
            one = one + weights[n] * load(statistics, n * size + first + s)
            two = two + weights[n] * load(statistics, n * size + first + other)
            next_one = next_one + weights[m] * load(statistics, m * size + first + s)
            next_two = next_two + weights[m] * load(statistics, m * size + first + other)
        for r in range(even, n_rows):
            n = rows[r]
            one = one + weights[n] * load(statistics, n * size + first + s)
            two = two + weights[n] * load(statistics, n * size + first + other)
        store(sums, s, one + next_one)
        store(sums, other, two + next_two)


@inner(error_model="numpy")
def add_row(statistics: Array, n: int, weight: float, sums: Array) -> None:
    """Add the statistics of one example, as many as `sums` has."""
    size = statistics.shape[1]
    for s in range(0, min(size, sums.shape[0]), LANES):
        x = load(statistics, n * size + s)
        store(sums, s, load(sums, s) + weight * x)
        if size < sums.shape[0]:
            store(sums, size + s, load(sums, size + s) + weight * derive_curvature(x))


@kernel
def sum_label(statistics: Array, label: int, rows: Rows, weights: Array) -> tuple[float, float, float]:
    """Sum gradient and curvature of one label, in layout `Diagonal`, and the weights of the covered examples."""
    width = statistics.shape[1] // 2
    g, h, weight = 0.0, 0.0, 0.0
    for r in range(rows.shape[0]):
        n = rows[r]
        g += weights[n] * statistics[n, label]
        h += weights[n] * statistics[n, width + label]
        weight += weights[n]
    return g, h, weight


@kernel
def sum_pairs(pairs: Array, rows: Rows, weights: Array, sums: Array) -> None:
    """Sum gradient and curvature of one label, which lie side by side."""
    g, h = 0.0, 0.0
    for r in range(rows.shape[0]):
        n = rows[r]
        g += weights[n] * pairs[n, 0]
        h += weights[n] * pairs[n, 1]
    sums[0], sums[1] = g, h


@kernel(error_model="numpy")
def sum_hessians(layout: Outer, first: int, statistics: Array, rows: Rows, weights: Array, A: Array) -> None:
    """Sum the Hessians diag(a_n) - b_n b_n^T of the covered examples: the lower triangle, in rows of whole vectors.

    `A` receives the rows of the labels from `first` on, an even one; two at a time, an odd last one twice.
    """
    size = statistics.shape[1]
    width = A.shape[1]
    section = layout.b * width
    by_size = layout.b == 0  # a = |g|, which is at hand
    diagonal = 0 if by_size else width
    last = first + A.shape[0] - 1
    share = -(-2 * BLOCK // A.shape[0])  # of the next block, which is asked for bit by bit
    for i in range(A.shape[0]):
        for j in range(width):
            A[i, j] = 0.0
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
