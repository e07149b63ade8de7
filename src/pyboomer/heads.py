"""A head is the vector of scores that a rule predicts; its gain is minus the objective of Eq. 14 at its minimum.

From the sums g and H of the gradients and Hessians over the covered examples (Algorithm 2):

- decomposable losses, and single-label heads: p_k = -g_k / (h_kk + l2), gain = 1/2 sum_k g_k^2 / (h_kk + l2)  (Eq. 17);
- in general: (H + l2 I) p = -g, gain = 1/2 g^T (H + l2 I)^-1 g  (Eq. 16).

**The bound.** Where H_n = diag(a_n) - b_n b_n^T, let a, b and W be the sums of a_n, b_n and the weights. By Cauchy and
Schwarz sum_n w_n b_n b_n^T >= b b^T / W (as matrices), hence with D = diag(a) + l2 I, by Sherman and Morrison,

    gain >= bound = 1/2 (g^T D^-1 g + (g^T D^-1 b)^2 / (W - b^T D^-1 b)),

which for b = g (the example-wise logistic loss) is 1/2 q / (1 - q / W) with q = g^T D^-1 g. It needs O(K) operations
instead of O(K^3).
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyboomer.statistics import DENSE, DIAGONAL, LANES, OUTER, REORDER, Rows, pad, sum_rows

Array = NDArray[np.float64]

TIE = 1e-10  # of two gains, one is larger only if it is by this relative margin
FLOOR = 1e-6  # a denominator or pivot not above it is degenerate: that label gets score 0 and gain 0
CONJUGATE_GRADIENTS_FROM = 64  # labels; below, the K x K system is solved by elimination
TOLERANCE = 1e-11  # of the residual of conjugate gradients, relative to the right-hand side


@njit(cache=True, nogil=True, fastmath=REORDER)
def rate_decomposable(sums: Array, total: Array, l2: float) -> tuple[float, float]:
    """Gain (Eq. 17) of the sums, and of what is left of the total without them."""
    width = sums.shape[0] // 2
    inside = 0.0
    outside = 0.0
    for start in range(0, width, LANES):
        for k in range(start, start + LANES):
            g = sums[k]
            h = sums[width + k] + l2
            inside += g * g / h if h > FLOOR else 0.0
            g = total[k] - sums[k]
            h = total[width + k] - sums[width + k] + l2
            outside += g * g / h if h > FLOOR else 0.0
    return 0.5 * inside, 0.5 * outside


@njit(cache=True, nogil=True)
def rate_label(g: float, h: float, l2: float) -> float:
    """Gain (Eq. 17) of a head for one label."""
    return 0.5 * g * g / (h + l2) if h + l2 > FLOOR else 0.0


@njit(cache=True, nogil=True, fastmath=REORDER)
def bound_gain(layout: int, sums: Array, weight: float, l2: float) -> float:
    """Lower bound of the gain of a multi-label head, see the module's docstring."""
    width = sums.shape[0] // (3 if layout == OUTER else 2)
    gg = 0.0
    if layout != OUTER:
        for start in range(0, width, LANES):
            for k in range(start, start + LANES):
                d = sums[width + k] + l2
                gg += sums[k] * sums[k] / d if d > FLOOR else 0.0
        # exact arithmetic keeps gg below the weight
        return 0.5 * gg * weight / max(weight - gg, FLOOR * weight)
    gb = 0.0
    bb = 0.0
    for start in range(0, width, LANES):
        for k in range(start, start + LANES):
            d = sums[width + k] + l2
            reciprocal = 1.0 / d if d > FLOOR else 0.0
            gg += sums[k] * sums[k] * reciprocal
            gb += sums[k] * sums[2 * width + k] * reciprocal
            bb += sums[2 * width + k] * sums[2 * width + k] * reciprocal
    return 0.5 * (gg + gb * gb / max(weight - bb, FLOOR * weight))


@njit(cache=True, nogil=True, fastmath=REORDER)
def eliminate(dense_sums: Array, l2: float, A: Array, z: Array) -> float:
    """Forward elimination of (H + l2 I) p = -g from dense sums; returns the gain.

    `A` is left with the factor L below its diagonal and the pivots on it, `z` with D^-1 L^-1 (-g). No rows need to be
    exchanged in a positive definite matrix; a label whose pivot is degenerate leaves the system.
    """
    n_labels = z.shape[0]
    position = pad(n_labels)
    for k in range(n_labels):
        z[k] = -dense_sums[k]
        for j in range(k + 1):
            A[k, j] = dense_sums[position + j]
        position += k + 1
        A[k, k] += l2
    gain = 0.0
    for j in range(n_labels):
        pivot = A[j, j]
        if pivot <= FLOOR:
            z[j] = 0.0
            for i in range(j + 1, n_labels):
                A[i, j] = 0.0
            continue
        gain += 0.5 * z[j] * z[j] / pivot
        for i in range(j + 1, n_labels):  # row j of the upper triangle keeps the column, contiguous
            A[j, i] = A[i, j]
        for i in range(j + 1, n_labels):
            factor = A[j, i] / pivot
            z[i] -= factor * z[j]
            for m in range(j + 1, i + 1):
                A[i, m] -= factor * A[j, m]
            A[i, j] = factor
        z[j] /= pivot
    return gain


@njit(cache=True, nogil=True, fastmath=REORDER)
def substitute_back(A: Array, z: Array) -> None:
    """Turn what `eliminate` left into the solution, in `z`."""
    for j in range(z.shape[0] - 1, 0, -1):
        for i in range(j):
            z[i] -= A[j, i] * z[j]


@njit(cache=True, nogil=True, fastmath=REORDER)
def _multiply_hessian(
    statistics: Array, section: int, rows: Rows, weights: Array, d: Array, v: Array, result: Array
) -> None:
    """result = A v = D v - sum_n w_n b_n (b_n . v), without ever forming A."""
    width = v.shape[0]
    for k in range(width):
        result[k] = d[k] * v[k]
    for r in range(rows.shape[0]):
        n = rows[r]
        product = 0.0
        for k in range(width):
            product += statistics[n, section + k] * v[k]
        product *= weights[n]
        for k in range(width):
            result[k] -= product * statistics[n, section + k]


@njit(cache=True, nogil=True, fastmath=REORDER)
def _precondition(d: Array, b: Array, scale: float, v: Array, result: Array) -> None:
    """result = (D - b b^T / W)^-1 v, the matrix behind the bound; `scale` is 1 / (W - b^T D^-1 b)."""
    product = 0.0
    for k in range(v.shape[0]):
        result[k] = v[k] / d[k] if d[k] > FLOOR else 0.0
        product += b[k] * result[k]
    for k in range(v.shape[0]):
        if d[k] > FLOOR:
            result[k] += scale * product * b[k] / d[k]


@njit(cache=True, nogil=True, fastmath=REORDER)
def solve_matrix_free(
    layout: int, statistics: Array, rows: Rows, weights: Array, weight: float, sums: Array, l2: float, p: Array
) -> float:
    """Solve Eq. 16 for an outer layout by preconditioned conjugate gradients, O(n K) a step; returns the gain.

    `sums` are those of the rows, unexpanded. The preconditioner is the matrix of the bound, so that the
    iteration starts from the bound's own solution; at most n + 1 steps are needed for n rows.
    """
    width = sums.shape[0] // (3 if layout == OUTER else 2)
    section = 2 * width if layout == OUTER else 0
    d = sums[width : 2 * width] + l2
    b = sums[section : section + width].copy()
    bb = 0.0
    for k in range(width):
        bb += b[k] * b[k] / d[k] if d[k] > FLOOR else 0.0
    scale = 1.0 / max(weight - bb, FLOOR * weight)
    x = np.zeros(width)
    residual = np.zeros(width)
    size = 0.0
    for k in range(width):
        if d[k] > FLOOR:
            residual[k] = -sums[k]
            size += sums[k] * sums[k]
    z = np.empty(width)
    _precondition(d, b, scale, residual, z)
    direction = z.copy()
    product = np.empty(width)
    rz = 0.0
    for k in range(width):
        rz += residual[k] * z[k]
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
        _precondition(d, b, scale, residual, z)
        old = rz
        rz = 0.0
        for k in range(width):
            rz += residual[k] * z[k]
        for k in range(width):
            direction[k] = z[k] + rz / old * direction[k]
    gain = 0.0
    for k in range(p.shape[0]):
        p[k] = x[k]
        gain -= 0.5 * sums[k] * x[k]
    return gain


@njit(cache=True, nogil=True)
def fit_head(
    layout: int,
    statistics: Array,
    rows: Rows,
    weights: Array,
    l2: float,
    single: bool,
    label: int,
    head: Array,
) -> tuple[float, int, float]:
    """Algorithm 2 for a finished body: find the head of the covered examples, always exactly.

    A single-label head keeps the `label` given; -1 asks for the best one. Returns gain, label and coverage.
    """
    n_labels = head.shape[0]
    head[:] = 0.0
    if layout == DIAGONAL:
        sums = np.empty(statistics.shape[1])
        coverage = sum_rows(layout, False, n_labels, statistics, rows, weights, sums)
        width = pad(n_labels)
        gain = 0.0
        if single and label < 0:
            for k in range(n_labels):
                candidate = rate_label(sums[k], sums[width + k], l2)
                if label < 0 or candidate > gain * (1 + TIE):
                    gain, label = candidate, k
        gain = 0.0
        for k in range(n_labels):
            h = sums[width + k] + l2
            if h > FLOOR and (k == label or not single):
                head[k] = -sums[k] / h  # Eq. 17
                gain += rate_label(sums[k], sums[width + k], l2)
        return gain, label, coverage
    if layout != DENSE and n_labels >= CONJUGATE_GRADIENTS_FROM:
        sums = np.empty(statistics.shape[1])
        coverage = sum_rows(layout, False, n_labels, statistics, rows, weights, sums)
        gain = solve_matrix_free(layout, statistics, rows, weights, coverage, sums, l2, head)
        return gain, label, coverage
    sums = np.empty(pad(n_labels) + pad(n_labels * (n_labels + 1) // 2))
    coverage = sum_rows(layout, layout != DENSE, n_labels, statistics, rows, weights, sums)
    A = np.empty((n_labels, n_labels))
    gain = eliminate(sums, l2, A, head)  # Eq. 16
    substitute_back(A, head)
    return gain, label, coverage
