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

Sums of rows have the layout of a row. Where the Hessian itself has to be summed (exact search, and the head of a
finished rule), rows of the two outer layouts are *expanded* to ``DENSE`` while they are added.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyboomer.losses import Loss, example_wise_logistic, label_wise_logistic

Array = NDArray[np.float64]
Rows = NDArray[np.int32]
Signs = NDArray[np.int8]

LANES = 8  # float64 numbers in the widest vector register there is; sections are padded to a multiple of it

DIAGONAL, OUTER_GRADIENT, OUTER, DENSE = range(4)
LABEL_WISE, EXAMPLE_WISE, USER_DEFINED = range(3)  # which compiled update serves the loss

# Sums may be taken in any order and products fused; NaN and infinity keep their meaning.
REORDER = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True)
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


def count_columns(layout: int, n_labels: int) -> int:
    """The length of a row of statistics, or of sums of them."""
    if layout == DENSE:
        return pad(n_labels) + pad(n_labels * (n_labels + 1) // 2)
    return pad(n_labels) * (3 if layout == OUTER else 2)


def choose_update(loss: Loss) -> int:
    """Which compiled function keeps the statistics of a loss up to date."""
    if loss is label_wise_logistic:
        return LABEL_WISE
    return EXAMPLE_WISE if loss is example_wise_logistic else USER_DEFINED


def write_statistics(loss: Loss, layout: int, Y: Signs, scores: Array, rows: Rows, statistics: Array) -> None:
    """Compute the statistics of some examples anew (Alg. 1, lines 1 and 4)."""
    update = choose_update(loss)
    if update != USER_DEFINED:
        update_statistics(update, layout, Y, scores, rows, statistics)
        return
    g, *curvature = loss.checked_derivatives(Y[rows].astype(np.float64), scores[rows])
    k = Y.shape[1]
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


@njit(cache=True, nogil=True)
def update_statistics(update: int, layout: int, Y: Signs, scores: Array, rows: Rows, statistics: Array) -> None:
    """Compute the statistics of some examples anew, for the built-in losses."""
    k_labels = Y.shape[1]
    width = pad(k_labels)
    for r in range(rows.shape[0]):
        n = rows[r]
        if update == LABEL_WISE:
            for k in range(k_labels):
                y = Y[n, k]
                e = np.exp(-abs(scores[n, k]))
                p = 1.0 / (1.0 + e)  # logistic(|f|)
                q = e / (1.0 + e)
                statistics[n, k] = -y * (q if y * scores[n, k] > 0 else p)
                statistics[n, width + k] = p * q
        else:
            shift = 0.0
            for k in range(k_labels):
                shift = max(shift, -Y[n, k] * scores[n, k])
            total = np.exp(-shift)
            for k in range(k_labels):
                e = np.exp(-Y[n, k] * scores[n, k] - shift)
                statistics[n, k] = e
                total += e
            for k in range(k_labels):
                p = statistics[n, k] / total
                statistics[n, k] = -Y[n, k] * p
                statistics[n, width + k] = p * (1.0 - p) if layout == DIAGONAL else p


@njit(cache=True, nogil=True, fastmath=REORDER)
def add_row(row: Array, weight: float, sums: Array) -> None:
    """Add a weighted row of statistics to sums of the same layout."""
    for start in range(0, sums.shape[0], LANES):
        for s in range(start, start + LANES):
            sums[s] += weight * row[s]


@njit(cache=True, nogil=True, fastmath=REORDER)
def add_expanded_row(layout: int, n_labels: int, row: Array, weight: float, sums: Array) -> None:
    """Add a weighted row of one of the outer layouts to dense sums: H = diag(a) - b b^T."""
    width = pad(n_labels)
    b = row[2 * width :] if layout == OUTER else row
    position = width
    for k in range(n_labels):
        sums[k] += weight * row[k]
        scaled = weight * b[k]
        for j in range(k + 1):
            sums[position + j] -= scaled * b[j]
        position += k + 1
        sums[position - 1] += weight * row[width + k]


@njit(cache=True, nogil=True)
def sum_rows(
    layout: int, expand: bool, n_labels: int, statistics: Array, rows: Rows, weights: Array, sums: Array
) -> float:
    """Sum the statistics of the covered examples (Alg. 2, line 1); returns the sum of their weights."""
    sums[:] = 0.0
    total = 0.0
    for r in range(rows.shape[0]):
        n = rows[r]
        weight = weights[n]
        if weight > 0.0:
            total += weight
            if expand:
                add_expanded_row(layout, n_labels, statistics[n], weight, sums)
            else:
                add_row(statistics[n], weight, sums)
    return total
