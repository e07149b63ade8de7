"""The compiled twin of the squared error in regression, see `squared`.

Scores begin at -y, so that they are what is still missing, f - y, wherever they stand: the gradient itself.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows, Signs
from pyboomer.compiling.kernel import kernel
from pyboomer.compiling.simd import LANES, load, pad, splat, store, total
from pyboomer.losses.logistic_twin import AHEAD, CACHE, fetch_soon
from pyboomer.losses.twin import Twin, sum_values, update


class SquaredError(NamedTuple):
    """What the squared error knows of the examples, besides the scores: which targets are known, by 1 and 0."""

    signs: Signs
    weight: Array


def _miss_targets(Y: NDArray[Any]) -> NDArray[np.float64]:
    return -Y


SQUARED = Twin(lambda signs, weight, diagonal: SquaredError(signs, weight), _miss_targets)  # noqa: ARG005


@update.of(SquaredError, compile=kernel, error_model="numpy")
def _update(truth: SquaredError, scores: Array, rows: Rows, statistics: Array, first: int, last: int) -> None:
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


@sum_values.of(SquaredError, compile=kernel, error_model="numpy")
def _sum(truth: SquaredError, scores: Array, weights: Array) -> float:
    width = scores.shape[1]
    sums = 0.0
    for n in range(scores.shape[0]):
        squares = splat(0.0)
        for k in range(0, width, LANES):
            missing = load(truth.signs, n * width + k) * load(scores, n * width + k)
            squares = squares + missing * missing
        sums += weights[n] * (0.5 * total(squares))
    return sums
