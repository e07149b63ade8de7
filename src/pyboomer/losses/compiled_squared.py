"""The compiled twin of the squared error in regression, see `squared`.

Scores begin at -y, so that they are the residuals f - y wherever they stand: the gradient itself.
"""

from typing import Any

from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.compiling.kernel import inner
from pyboomer.compiling.simd import CACHE, LANES, load, pad, splat, store, total
from pyboomer.losses.truth import AHEAD, Truth, fetch_soon


def negate_targets(Y: NDArray[Any]) -> Array:
    """The scores before the first rule."""
    return -Y


@inner(error_model="numpy")
def update_squared(truth: Truth, scores: Array, rows: Rows, statistics: Array, first: int, last: int) -> None:
    """Update the statistics."""
    weighted = truth.weight.shape[0] > 0
    width, size = scores.shape[1], statistics.shape[1]
    far = statistics.shape[0] * size > CACHE
    begin, end = first // LANES * LANES, pad(last)
    for r in range(rows.shape[0]):
        n = rows[r]
        if far:
            fetch_soon(truth, scores, statistics, rows[min(r + AHEAD, rows.shape[0] - 1)], begin, end)
        for k in range(begin, end, LANES):
            w = load(truth.weight, n * width + k) if weighted else load(truth.signs, n * width + k)
            store(statistics, n * size + k, w * load(scores, n * width + k))
            store(statistics, n * size + width + k, w)


@inner(error_model="numpy")
def sum_squares(truth: Truth, scores: Array, weights: Array) -> float:
    """Sum the loss."""
    width = scores.shape[1]
    sums = 0.0
    for n in range(scores.shape[0]):
        squares = splat(0.0)
        for k in range(0, width, LANES):
            residual = load(truth.signs, n * width + k) * load(scores, n * width + k)
            squares = squares + residual * residual
        sums += weights[n] * (0.5 * total(squares))
    return sums
