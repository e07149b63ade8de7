"""The compiled twins of the logistic losses, see `logistic`."""

from typing import Any

import numpy as np

from pyboomer.arrays import Array, Rows
from pyboomer.compiling.kernel import inner
from pyboomer.compiling.simd import (
    CACHE,
    LANES,
    exp,
    gather,
    larger,
    largest,
    load,
    pad,
    product,
    scatter,
    splat,
    store,
    total,
    where_above,
)
from pyboomer.losses.truth import AHEAD, Truth, fetch_soon

PRODUCT = 512  # numbers up to 2 whose product is well within what a float64 can hold


# --- Label-wise, Eq. 6 ------------------------------------------------------------------------------------------------


@inner(error_model="numpy", forceinline=True)
def _derive(y: Any, weight: Any, score: Any) -> tuple[Any, Any]:
    """Gradient and curvature: vectors of labels, or of examples."""
    zero = splat(0.0)
    margin = y * score
    e = exp(where_above(margin, zero, zero - margin, margin))  # exp(-|y f|)
    p = 1.0 / (1.0 + e)  # logistic(|y f|)
    q = e * p
    return (zero - y) * weight * where_above(margin, zero, q, p), weight * p * q


@inner(error_model="numpy")
def update_label_wise(truth: Truth, scores: Array, rows: Rows, statistics: Array, first: int, last: int) -> None:
    """Update the statistics, or the gradients alone if there is room for no more."""
    signs, weight = truth.signs, truth.weight
    weighted = weight.shape[0] > 0
    width, size = scores.shape[1], statistics.shape[1]
    far = statistics.shape[0] * size > CACHE
    begin, end = first // LANES * LANES, pad(last)
    done = 0
    if last - first == 1 and not far and size > width:  # one label: eight examples at a time
        done = rows.shape[0] // LANES * LANES
        for r in range(0, done, LANES):
            y = gather(signs, rows, r, width, first)
            w = gather(weight, rows, r, width, first) if weighted else y * y
            g, h = _derive(y, w, gather(scores, rows, r, width, first))
            scatter(statistics, rows, r, size, first, g)
            scatter(statistics, rows, r, size, width + first, h)
    for r in range(done, rows.shape[0]):
        n = rows[r]
        if far:
            fetch_soon(truth, scores, statistics, rows[min(r + AHEAD, rows.shape[0] - 1)], begin, end)
        for k in range(begin, end, LANES):
            y = load(signs, n * width + k)
            w = load(weight, n * width + k) if weighted else y * y
            g, h = _derive(y, w, load(scores, n * width + k))
            store(statistics, n * size + k, g)
            if size > width:
                store(statistics, n * size + width + k, h)


@inner(error_model="numpy")
def sum_label_wise(truth: Truth, scores: Array, weights: Array) -> float:
    """Sum the loss; over the labels, log(1 + e) as the logarithm of a product, of no more than `PRODUCT` of them."""
    width = scores.shape[1]
    zero, one = splat(0.0), splat(1.0)
    sums = 0.0
    for n in range(scores.shape[0]):
        value = 0.0
        for begin in range(0, width, PRODUCT):
            factor, linear = one, zero
            for k in range(begin, min(begin + PRODUCT, width), LANES):
                y = load(truth.signs, n * width + k)
                margin = y * load(scores, n * width + k)
                factor = factor * (1.0 + y * y * exp(where_above(margin, zero, zero - margin, margin)))
                linear = linear + larger(zero - margin, zero)
            value += np.log(product(factor)) + total(linear)
        sums += weights[n] * value
    return sums


# --- Example-wise, Eq. 7 ----------------------------------------------------------------------------------------------


@inner(error_model="numpy")
def update_example_wise(truth: Truth, scores: Array, rows: Rows, statistics: Array) -> None:
    """Update the statistics; all labels of an example change with each of them."""
    signs, weight = truth.signs, truth.weight
    weighted = weight.shape[0] > 0
    width, size = scores.shape[1], statistics.shape[1]
    far = statistics.shape[0] * size > CACHE
    zero = splat(0.0)
    for r in range(rows.shape[0]):
        n = rows[r]
        if far:
            fetch_soon(truth, scores, statistics, rows[min(r + AHEAD, rows.shape[0] - 1)], 0, width)
        most = zero
        for k in range(0, width, LANES):
            exponent = zero - load(signs, n * width + k) * load(scores, n * width + k)
            store(statistics, n * size + k, exponent)
            most = larger(most, exponent)
        shift = largest(most)
        sums = zero
        for k in range(0, width, LANES):
            y = load(signs, n * width + k)
            w = load(weight, n * width + k) if weighted else y * y
            e = w * exp(load(statistics, n * size + k) - shift)
            store(statistics, n * size + k, e)
            sums = sums + e
        scale = 1.0 / (np.exp(-shift) + total(sums))
        for k in range(0, width, LANES):
            p = load(statistics, n * size + k) * scale
            g = (zero - load(signs, n * width + k)) * p
            store(statistics, n * size + k, g)
            if size > 2 * width:  # H = diag(|g|) - b b^T with b = g, to be kept while g changes to first order
                store(statistics, n * size + 2 * width + k, g)
            store(statistics, n * size + width + k, p * (1.0 - p) if truth.diagonal else p)


@inner(error_model="numpy")
def sum_example_wise(truth: Truth, scores: Array, weights: Array) -> float:
    """Sum the loss."""
    width = scores.shape[1]
    zero = splat(0.0)
    sums = 0.0
    for n in range(scores.shape[0]):
        most = zero
        for k in range(0, width, LANES):
            most = larger(most, zero - load(truth.signs, n * width + k) * load(scores, n * width + k))
        shift = largest(most)
        e = zero
        for k in range(0, width, LANES):
            y = load(truth.signs, n * width + k)
            e = e + y * y * exp(zero - y * load(scores, n * width + k) - shift)
        value = np.log1p(total(e)) if shift == 0.0 else shift + np.log(np.exp(-shift) + total(e))
        sums += weights[n] * value
    return sums
