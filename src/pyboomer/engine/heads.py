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

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.compiling.kernel import kernel
from pyboomer.compiling.simd import LANES, load, splat, store, total, where_above
from pyboomer.engine.statistics import CACHE, DENSE, DIAGONAL, OUTER, Rows, pad, sum_hessians, sum_label, sum_rows
from pyboomer.rules.precision import FLOOR, TIE

CONJUGATE_GRADIENTS_FROM = 17  # labels; below, forming and eliminating the K x K system is faster
TOLERANCE = 1e-11  # of the residual of conjugate gradients, relative to the right-hand side


@kernel
def shrink(g: float, l1: float) -> float:
    """What L1 regularisation leaves of a gradient."""
    if g > l1:
        return g - l1
    return g + l1 if g < -l1 else 0.0


@kernel
def rate_label(g: float, h: float, l2: float) -> float:
    """Gain (Eq. 17) of a head for one label."""
    return 0.5 * g * g / (h + l2) if h + l2 > FLOOR else 0.0


@kernel
def bound_from_q(q: float, weight: float) -> float:
    """Lower bound of the gain for b = g; exact arithmetic keeps q below the weight, floating point may not."""
    return 0.5 * q * weight / max(weight - q, FLOOR * weight)


@kernel(error_model="numpy")
def bound_gain(layout: int, sums: Array, weight: float, l1: float, l2: float) -> float:
    """Lower bound of the gain of a multi-label head, see the module's docstring."""
    width = sums.shape[0] // (3 if layout == OUTER else 2)
    section = 2 * width if layout == OUTER else 0
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
    if layout != OUTER and l1 == 0.0:
        return bound_from_q(total(gg), weight)
    return combine_bound(total(gg), total(gb), total(bb), weight)


@kernel
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


@kernel(error_model="numpy")
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


@kernel
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


@njit(cache=True, nogil=True)
def solve_matrix_free(
    layout: int,
    statistics: Array,
    rows: Rows,
    weights: Array,
    weight: float,
    sums: Array,
    l1: float,
    l2: float,
    p: Array,
) -> float:
    """Solve Eq. 16 for an outer layout by preconditioned conjugate gradients, O(n K) a step; returns the gain.

    `sums` are those of the rows. The preconditioner is the matrix of the bound, so that the iteration
    starts from the bound's own solution; in exact arithmetic, n rows need at most n + 1 steps.
    """
    width = sums.shape[0] // (3 if layout == OUTER else 2)
    section = 2 * width if layout == OUTER else 0
    d = sums[width : 2 * width] + l2
    b = sums[section : section + width].copy()
    x, residual, z, product = np.zeros(width), np.zeros(width), np.empty(width), np.empty(width)
    bb = 0.0
    size = 0.0
    for k in range(width):
        if d[k] > FLOOR:
            bb += b[k] * b[k] / d[k]
            residual[k] = -shrink(sums[k], l1)
            size += residual[k] * residual[k]
    scale = 1.0 / max(weight - bb, FLOOR * weight)
    rz = _precondition(d, b, scale, residual, z)
    direction = z.copy()
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


@kernel
def rate_each_label(layout: int, sums: Array, weight: float, l1: float, l2: float, gains: Array) -> None:
    """The gain of each label on its own (Eq. 17); where only the bound is known of H, by its diagonal."""
    n_labels = gains.shape[0]
    width = pad(n_labels)
    section = 2 * width if layout == OUTER else 0
    position = width - 1
    for k in range(n_labels):
        position += k + 1  # of h_kk in the lower triangle
        h = sums[position if layout == DENSE else width + k]
        if layout != DENSE and layout != DIAGONAL:
            h -= sums[section + k] ** 2 / max(weight, FLOOR)
        gains[k] = rate_label(shrink(sums[k], l1), h, l2)


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


@njit(cache=True, nogil=True)
def fit_head(
    layout: int,
    statistics: Array,
    rows: Rows,
    weights: Array,
    l1: float,
    l2: float,
    single: bool,
    label: int,
    head: Array,
) -> tuple[float, int, float]:
    """Algorithm 2 for a finished body: find the head of the covered examples, always exactly.

    A single-label head keeps the `label` given; -1 asks for the best one. Returns gain, label and coverage.
    """
    n_labels = head.shape[0]
    width = pad(n_labels)
    sums = np.empty(statistics.shape[1])
    if single:
        if label < 0:
            sum_rows(statistics, 0, rows, weights, sums)
            gains, best = np.empty(n_labels), np.empty(1, dtype=np.int64)
            rate_each_label(layout, sums, 0.0, l1, l2, gains)
            choose_labels(gains, 1, 0.0, best)
            label = best[0]
        g, h, coverage = sum_label(statistics, label, rows, weights)
        for k in range(n_labels):
            head[k] = 0.0
        g = shrink(g, l1)
        head[label] = -g / (h + l2) if h + l2 > FLOOR else 0.0  # Eq. 17
        return rate_label(g, h, l2), label, coverage
    coverage = sum_rows(statistics, 0, rows, weights, sums)
    if layout == DIAGONAL:
        gain = 0.0
        for k in range(n_labels):
            g, h = shrink(sums[k], l1), sums[width + k] + l2
            head[k] = -g / h if h > FLOOR else 0.0  # Eq. 17
            gain += rate_label(g, sums[width + k], l2)
        return gain, label, coverage
    in_cache = rows.shape[0] * statistics.shape[1] < CACHE  # each step of conjugate gradients reads all statistics
    if layout != DENSE and n_labels >= (CONJUGATE_GRADIENTS_FROM if in_cache else 4 * CONJUGATE_GRADIENTS_FROM):
        gain = solve_matrix_free(layout, statistics, rows, weights, coverage, sums, l1, l2, head)
        return gain, label, coverage
    A, L = np.empty((n_labels, width)), np.empty((n_labels, width))
    if layout == DENSE:
        unpack(n_labels, sums, l1, A, head)
    else:
        sum_hessians(layout, 0, statistics, rows, weights, A)
        for k in range(n_labels):
            head[k] = -shrink(sums[k], l1)
    gain = eliminate(A, l2, head, L)  # Eq. 16
    substitute_back(L, head)
    return gain, label, coverage
