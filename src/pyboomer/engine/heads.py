"""A head is the vector of scores that a rule predicts; its gain is minus the objective of Eq. 14 at its minimum.

From the sums g and H of the gradients and Hessians over the covered examples (Algorithm 2):

- decomposable losses, and single-label heads: p_k = -g_k / (h_kk + l2), gain = 1/2 sum_k g_k^2 / (h_kk + l2)  (Eq. 17);
- in general: (H + l2 I) p = -g, gain = 1/2 g^T (H + l2 I)^-1 g  (Eq. 16).

A *partial* head is about some of the labels, those of the largest gain each on its own (Eq. 17); of H, their rows and
columns remain. With L1 regularisation, l1 |p_k| is added to the objective of each label: wherever a gradient is to be
made up for, s_k = sign(g_k) max(|g_k| - l1, 0) takes the place of g_k. For Eq. 17 that is the exact minimum, for Eq. 16
an approximation that keeps it a linear system.

**The bound.** Where H_n = diag(a_n) - b_n b_n^T, let a, b and W be the sums of a_n, b_n and the weights. By Cauchy and
Schwarz sum_n w_n b_n b_n^T >= b b^T / W (as matrices), hence with D = diag(a) + l2 I, by Sherman and Morrison,

    gain >= bound = 1/2 (g^T D^-1 g + (g^T D^-1 b)^2 / (W - b^T D^-1 b)),

which for b = g (the example-wise logistic loss) is 1/2 q / (1 - q / W) with q = g^T D^-1 g. It needs O(K) operations
instead of O(K^3). The matrix behind it has the diagonal a_k - b_k^2 / W, which is what a label alone is rated with.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.compiling.kernel import inner, kernel, plain
from pyboomer.compiling.kinds import by_kind
from pyboomer.compiling.simd import CACHE, LANES, load, make_zeros, pad, splat, store, total, where_above
from pyboomer.engine.statistics import Dense, Diagonal, Layout, Outer, count_columns, sum_hessians, sum_rows
from pyboomer.rules.precision import FLOOR, TIE

CONJUGATE_GRADIENTS_FROM = 17  # labels; below, forming and eliminating the K x K system is faster ...
FAR = 4  # ... or below so many times as many labels, if statistics are not in the cache: each step reads all of them
TOLERANCE = 1e-11  # of the residual of conjugate gradients, relative to the right-hand side


class Penalty(NamedTuple):
    """What keeps scores small."""

    l1: float
    l2: float


class SolverBuffers(NamedTuple):
    """Scratch for solving a head."""

    sums: Array
    vectors: Array  # of conjugate gradients
    A: Array  # a linear system, flat: rows of whole vectors
    L: Array


def make_solver_buffers(layout: Layout) -> SolverBuffers:
    """Scratch for heads of this layout, or of fewer labels."""
    k, outer = layout.n_labels, isinstance(layout, Outer)
    most = k if isinstance(layout, Dense) else min(k, FAR * CONJUGATE_GRADIENTS_FROM - 1) * outer  # that are eliminated
    A, L = make_zeros((2, most * pad(most)))
    return SolverBuffers(make_zeros((1, count_columns(layout)))[0], make_zeros((7 * outer, pad(k))), A, L)


@inner
def shrink(g: float, l1: float) -> float:
    """What L1 regularisation leaves of a gradient."""
    if g > l1:
        return g - l1
    return g + l1 if g < -l1 else 0.0


@inner
def rate_label(g: float, h: float, l2: float) -> float:
    """Gain (Eq. 17) of a head for one label."""
    return 0.5 * g * g / (h + l2) if h + l2 > FLOOR else 0.0


@inner
def bound_from_q(q: float, weight: float) -> float:
    """Lower bound of the gain for b = g; exact arithmetic keeps q below the weight, floating point may not."""
    return 0.5 * q * weight / max(weight - q, FLOOR * weight)


@kernel(error_model="numpy")
def bound_gain(layout: Outer, sums: Array, weight: float, penalty: Penalty) -> float:
    """Lower bound of the gain of a multi-label head, see the module's docstring."""
    width = pad(layout.n_labels)
    section = layout.b * width
    l1, l2 = penalty.l1, penalty.l2
    zero = splat(0.0)
    gg, gb, bb = zero, zero, zero
    for k in range(0, width, LANES):
        d = load(sums, width + k) + l2
        g = load(sums, k)
        if l1 > 0.0:
            g = where_above(g, splat(l1), g - l1, where_above(zero - g, splat(l1), g + l1, zero))
        b = load(sums, section + k)
        reciprocal = where_above(d, splat(FLOOR), 1.0 / d, zero)
        gg = gg + g * g * reciprocal
        gb = gb + g * b * reciprocal
        bb = bb + b * b * reciprocal
    if layout.b == 0 and l1 == 0.0:
        return bound_from_q(total(gg), weight)
    return combine_bound(total(gg), total(gb), total(bb), weight)


@inner
def combine_bound(gg: float, gb: float, bb: float, weight: float) -> float:
    """Lower bound of the gain from g^T D^-1 g, g^T D^-1 b and b^T D^-1 b."""
    return 0.5 * (gg + gb**2 / max(weight - bb, FLOOR * weight))


@kernel(error_model="numpy")
def eliminate(A: Array, l2: float, z: Array, L: Array) -> float:
    """Forward elimination of (H + l2 I) p = -g; returns the gain.

    `A` holds the lower triangle of H, in rows of whole vectors, and is used up. `z` holds -g and is left with
    D^-1 L^-1 (-g), `L` with the factor below its diagonal. No rows need to be exchanged in a positive definite matrix;
    a label whose pivot is degenerate leaves the system.
    """
    n_labels = z.shape[0]
    width = A.shape[1]
    gain = 0.0
    for j in range(n_labels):
        pivot = A[j, j] + l2
        if pivot <= FLOOR:
            z[j] = 0.0
            for i in range(j + 1, n_labels):
                L[i, j] = 0.0
            continue
        gain += 0.5 * z[j] * z[j] / pivot
        for i in range(j + 1, n_labels):  # the upper triangle is free: row j keeps column j there, contiguous
            A[j, i] = A[i, j]
        for i in range(j + 1, n_labels):
            factor = A[j, i] / pivot
            L[i, j] = factor
            z[i] -= factor * z[j]
            for m in range((j + 1) // LANES * LANES, i + 1, LANES):  # columns up to j are done with
                store(A, i * width + m, load(A, i * width + m) - factor * load(A, j * width + m))
        z[j] /= pivot
    return gain


@kernel
def substitute_back(L: Array, z: Array) -> None:
    """Turn what `eliminate` left into the solution, in `z`."""
    for j in range(z.shape[0] - 1, 0, -1):
        for i in range(j):
            z[i] -= L[j, i] * z[j]


@kernel
def unpack(n_labels: int, dense_sums: Array, l1: float, A: Array, z: Array) -> None:
    """Lay out dense sums (gradient, lower triangle of the Hessian) as a linear system."""
    position = pad(n_labels)
    for k in range(n_labels):
        z[k] = -shrink(dense_sums[k], l1)
        for j in range(k + 1):
            A[k, j] = dense_sums[position + j]
        position += k + 1


@inner(error_model="numpy")
def _multiply_hessian(
    statistics: Array, section: int, rows: Rows, weights: Array, d: Array, v: Array, result: Array
) -> None:
    """result = A v = D v - sum_n w_n b_n (b_n . v), without ever forming A; two examples at a time."""
    width = v.shape[0]
    size = statistics.shape[1]
    last = rows.shape[0] - 1
    for k in range(width):
        result[k] = d[k] * v[k]
    for r in range(0, rows.shape[0], 2):
        n, other = rows[r], rows[min(r + 1, last)]
        start, other_start = n * size + section, other * size + section
        first, second = splat(0.0), splat(0.0)
        for k in range(0, width, LANES):
            first = first + load(statistics, start + k) * load(v, k)
            second = second + load(statistics, other_start + k) * load(v, k)
        a = weights[n] * total(first)
        b = weights[other] * total(second) if r < last else 0.0
        for k in range(0, width, LANES):
            without = load(result, k) - a * load(statistics, start + k)
            store(result, k, without - b * load(statistics, other_start + k))


@inner
def _precondition(d: Array, b: Array, scale: float, v: Array, result: Array) -> float:
    """result = (D - b b^T / W)^-1 v, the matrix behind the bound; returns v . result. `scale`: 1 / (W - b^T D^-1 b)."""
    product = 0.0
    for k in range(v.shape[0]):
        result[k] = v[k] / d[k] if d[k] > FLOOR else 0.0
        product += b[k] * result[k]
    dot = 0.0
    for k in range(v.shape[0]):
        if d[k] > FLOOR:
            result[k] += scale * product * b[k] / d[k]
        dot += v[k] * result[k]
    return dot


@kernel
def solve_matrix_free(
    layout: Outer,
    statistics: Array,
    rows: Rows,
    weights: Array,
    weight: float,
    penalty: Penalty,
    buffers: SolverBuffers,
    p: Array,
) -> float:
    """Solve Eq. 16 by preconditioned conjugate gradients, O(n K) a step; returns the gain.

    `buffers.sums` are those of the rows. The preconditioner is the matrix of the bound, so that the iteration
    starts from the bound's own solution; in exact arithmetic, n rows need at most n + 1 steps.
    """
    width = pad(layout.n_labels)
    section = layout.b * width
    l1, sums, vectors = penalty.l1, buffers.sums, buffers.vectors
    d, b, x, residual = vectors[0][:width], vectors[1][:width], vectors[2][:width], vectors[3][:width]
    z, product, direction = vectors[4][:width], vectors[5][:width], vectors[6][:width]
    for k in range(width):
        d[k] = sums[width + k] + penalty.l2
        b[k] = sums[section + k]
        x[k] = residual[k] = 0.0
    bb = 0.0
    size = 0.0
    for k in range(width):
        if d[k] > FLOOR:
            bb += b[k] * b[k] / d[k]
            residual[k] = -shrink(sums[k], l1)
            size += residual[k] * residual[k]
    scale = 1.0 / max(weight - bb, FLOOR * weight)
    rz = _precondition(d, b, scale, residual, z)
    for k in range(width):
        direction[k] = z[k]
    limit = TOLERANCE * TOLERANCE * size
    for _ in range(min(rows.shape[0], width) + 2):
        if size <= limit or rz <= 0.0:
            break
        _multiply_hessian(statistics, section, rows, weights, d, direction, product)
        curvature = 0.0
        norm = 0.0
        for k in range(width):
            if d[k] <= FLOOR:
                product[k] = 0.0
            curvature += direction[k] * product[k]
            norm += direction[k] * direction[k]
        if curvature <= FLOOR * norm:  # degenerate direction
            break
        step = rz / curvature
        size = 0.0
        for k in range(width):
            x[k] += step * direction[k]
            residual[k] -= step * product[k]
            size += residual[k] * residual[k]
        old = rz
        rz = _precondition(d, b, scale, residual, z)
        for k in range(width):
            direction[k] = z[k] + rz / old * direction[k]
    gain = 0.0
    for k in range(p.shape[0]):
        p[k] = x[k]
        gain -= 0.5 * shrink(sums[k], l1) * x[k]
    return gain


@by_kind
def rate_each_label(layout: Layout, sums: Array, weight: float, penalty: Penalty, gains: Array) -> None:
    """The gain of each label on its own (Eq. 17); where only the bound is known of H, by its diagonal."""


@rate_each_label.of(Diagonal)
def _rate_each_diagonal(layout: Diagonal, sums: Array, weight: float, penalty: Penalty, gains: Array) -> None:
    width = pad(layout.n_labels)
    for k in range(layout.n_labels):
        gains[k] = rate_label(shrink(sums[k], penalty.l1), sums[width + k], penalty.l2)


@rate_each_label.of(Outer)
def _rate_each_outer(layout: Outer, sums: Array, weight: float, penalty: Penalty, gains: Array) -> None:
    width = pad(layout.n_labels)
    section = layout.b * width
    for k in range(layout.n_labels):
        h = sums[width + k] - sums[section + k] ** 2 / max(weight, FLOOR)
        gains[k] = rate_label(shrink(sums[k], penalty.l1), h, penalty.l2)


@rate_each_label.of(Dense)
def _rate_each_dense(layout: Dense, sums: Array, weight: float, penalty: Penalty, gains: Array) -> None:
    position = pad(layout.n_labels) - 1
    for k in range(layout.n_labels):
        position += k + 1  # of h_kk in the lower triangle
        gains[k] = rate_label(shrink(sums[k], penalty.l1), sums[position], penalty.l2)


@kernel
def choose_labels(gains: Array, most: int, share: float, labels: NDArray[np.int64]) -> int:
    """Put the labels of a head into `labels`, in ascending order; returns how many.

    They are those whose gain is at least `share` of the largest one, at most `most` of them; of equals, the first.
    """
    n = 0
    for k in range(gains.shape[0]):  # the best so far are kept in descending order of their gains
        place = n
        while place > 0 and gains[k] > gains[labels[place - 1]] * (1 + TIE):
            place -= 1
        if place < most:
            n = min(n + 1, most)
            for i in range(n - 1, place, -1):
                labels[i] = labels[i - 1]
            labels[place] = k
    least = share * (1 - TIE) * gains[labels[0]]
    while n > 1 and gains[labels[n - 1]] < least:
        n -= 1
    for i in range(1, n):
        k, place = labels[i], i
        while place > 0 and labels[place - 1] > k:
            labels[place] = labels[place - 1]
            place -= 1
        labels[place] = k
    return n


@kernel
def find_best_label(layout: Diagonal, sums: Array, penalty: Penalty, gains: Array) -> int:
    """The label of the largest gain; of equals, the first."""
    rate_each_label(layout, sums, 0.0, penalty, gains)
    best = 0
    for k in range(layout.n_labels):
        if gains[k] > gains[best] * (1 + TIE):
            best = k
    return best


@kernel
def solve_label(g: float, h: float, penalty: Penalty) -> tuple[float, float]:
    """The gain and the score of a head for one label."""
    g = shrink(g, penalty.l1)
    return rate_label(g, h, penalty.l2), -g / (h + penalty.l2) if h + penalty.l2 > FLOOR else 0.0  # Eq. 17


@by_kind
def fit_head(
    layout: Layout, statistics: Array, rows: Rows, weights: Array, penalty: Penalty, buffers: SolverBuffers, head: Array
) -> tuple[float, float]:
    """Algorithm 2 for a finished body: find the head of the covered examples, always exactly.

    `head` receives a score for each label. Returns the gain, and the weight of the examples covered.
    """


@fit_head.of(Diagonal, compile=kernel)
def _fit_diagonal(
    layout: Diagonal,
    statistics: Array,
    rows: Rows,
    weights: Array,
    penalty: Penalty,
    buffers: SolverBuffers,
    head: Array,
) -> tuple[float, float]:
    sums = buffers.sums[: count_columns(layout)]
    coverage = sum_rows(statistics, 0, rows, weights, sums)
    return solve_diagonal(layout, sums, penalty, head), coverage


@kernel
def solve_diagonal(layout: Diagonal, sums: Array, penalty: Penalty, head: Array) -> float:
    """Solve Eq. 17 for each label; returns the gain."""
    width = pad(layout.n_labels)
    gain = 0.0
    for k in range(layout.n_labels):
        g, h = shrink(sums[k], penalty.l1), sums[width + k] + penalty.l2
        head[k] = -g / h if h > FLOOR else 0.0  # Eq. 17
        gain += rate_label(g, sums[width + k], penalty.l2)
    return gain


@fit_head.of(Outer, compile=kernel)
def _fit_outer(
    layout: Outer, statistics: Array, rows: Rows, weights: Array, penalty: Penalty, buffers: SolverBuffers, head: Array
) -> tuple[float, float]:
    sums = buffers.sums[: statistics.shape[1]]
    coverage = sum_rows(statistics, 0, rows, weights, sums)
    if is_matrix_free(layout, statistics, rows):
        return solve_matrix_free(layout, statistics, rows, weights, coverage, penalty, buffers, head), coverage
    A, L = shape_system(layout.n_labels, buffers)
    sum_hessians(layout, 0, statistics, rows, weights, A)
    return solve_system(sums, penalty, A, L, head), coverage


@plain
def shape_system(n_labels: int, buffers: SolverBuffers) -> tuple[Array, Array]:
    """Room for a linear system of so many labels."""
    width = pad(n_labels)
    A, L = buffers.A[: n_labels * width], buffers.L[: n_labels * width]
    return A.reshape((n_labels, width)), L.reshape((n_labels, width))


@plain
def is_matrix_free(layout: Outer, statistics: Array, rows: Rows) -> bool:
    """Whether conjugate gradients solve Eq. 16 faster than elimination."""
    in_cache = rows.shape[0] * statistics.shape[1] < CACHE
    return layout.n_labels >= (CONJUGATE_GRADIENTS_FROM if in_cache else FAR * CONJUGATE_GRADIENTS_FROM)


@kernel
def solve_system(sums: Array, penalty: Penalty, A: Array, L: Array, head: Array) -> float:
    """Solve Eq. 16 by elimination, given the sums of Hessians in `A`, which is used up; returns the gain."""
    for k in range(head.shape[0]):
        head[k] = -shrink(sums[k], penalty.l1)
    gain = eliminate(A, penalty.l2, head, L)
    substitute_back(L, head)
    return gain


@fit_head.of(Dense, compile=kernel)
def _fit_dense(
    layout: Dense, statistics: Array, rows: Rows, weights: Array, penalty: Penalty, buffers: SolverBuffers, head: Array
) -> tuple[float, float]:
    sums = buffers.sums[: statistics.shape[1]]
    coverage = sum_rows(statistics, 0, rows, weights, sums)
    A, L = shape_system(layout.n_labels, buffers)
    unpack(layout.n_labels, sums, penalty.l1, A, head)
    return solve_system(sums, penalty, A, L, head), coverage
