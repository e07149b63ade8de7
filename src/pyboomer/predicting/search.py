"""The search for the best of the known label vectors, most of which are never looked at closely.

What a label vector costs is a sum over labels, of what each costs if it is relevant, or if it is not; the loss is an
increasing function of it. The cheaper answer of each label may cost nothing, as all vectors pay for it: a vector then
pays for the labels that differ from it. And no label needs to cost more than the best vector found so far. All costs
are then alike in size, so that single precision says, within a margin, what the best of a block of vectors costs. Only
the blocks that may hold the best of all are looked at in double precision.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pyboomer.arrays import Array, Vectors

BLOCK = 1024  # vectors that are looked at together
ROWS = 2048  # examples that are searched for together: what single precision says of a block takes 8 MB
SPARSE = 0.03  # with a smaller share of ones, products of sparse matrices are faster
SINGLE = 2.0**-24  # what a number loses when it is rounded to single precision
DOUBLE = 1e-13  # what a sum of costs may lose in double precision, relatively

Evaluate = Callable[[NDArray[np.int64], slice], Array]
Limit = Callable[[Array], Array]


class Costs(NamedTuple):
    """What a label costs if it is relevant and if it is not, shape (n, K), and a vector besides its labels, (V,)."""

    relevant: Array
    irrelevant: Array
    extra: Array | None = None


def find_least(vectors: Vectors, n: int, costs: Costs | None, evaluate: Evaluate, limit: Limit) -> NDArray[np.int64]:
    """The number of the known vector of least cost, for each of n examples; of equals, the first.

    `evaluate` says what some examples would pay for a block of vectors, `limit` up to what cost others count as equal
    to the least. Without `costs`, it is not a sum over labels, and all vectors are looked at.
    """
    least, found = np.full(n, np.inf), np.zeros(n, dtype=np.int64)
    in_blocks = costs is not None and len(vectors) > BLOCK
    size = int(vectors.sum(axis=1).max()) if in_blocks else 0
    for start in range(0, n, ROWS):
        rows = np.arange(start, min(start + ROWS, n))
        _look_at(0, rows, evaluate, limit, least, found)  # the most frequent vectors
        if costs is None:
            for block in range(BLOCK, len(vectors), BLOCK):
                _look_at(block, rows, evaluate, limit, least, found)
        elif in_blocks:
            _search_blocks(vectors, size, rows, costs, evaluate, limit, least, found)
    return found


def _search_blocks(
    vectors: Vectors,
    size: int,
    rows: NDArray[np.int64],
    costs: Costs,
    evaluate: Evaluate,
    limit: Limit,
    least: Array,
    found: NDArray[np.int64],
) -> None:
    """Look at all blocks but the first that may hold the best vector; first at those that seem to hold it."""
    estimate, unit, base = _estimate_blocks(vectors, size, rows, costs, limit(least[rows]))
    estimate[:, 0] = np.inf
    nearest = estimate.argmin(axis=1)
    for chosen in (nearest[:, None] == np.arange(estimate.shape[1]), True):
        possible = (estimate <= ((limit(least[rows]) - base) / unit)[:, None]) & chosen
        for b in np.flatnonzero(possible.any(axis=0)).tolist():
            _look_at(b * BLOCK, rows[possible[:, b]], evaluate, limit, least, found)
        estimate[possible] = np.inf


def _look_at(
    start: int, rows: NDArray[np.int64], evaluate: Evaluate, limit: Limit, least: Array, found: NDArray[np.int64]
) -> None:
    """Compare the best vector found so far with a block of others."""
    cost = evaluate(rows, slice(start, start + BLOCK))
    smallest = cost.min(axis=1)
    first = start + np.argmax(cost <= limit(smallest)[:, None], axis=1)
    before, number = least[rows], found[rows]
    least[rows] = now = np.minimum(before, smallest)
    equal = (before <= limit(now)) & (smallest <= limit(now))
    found[rows] = np.where(equal, np.minimum(first, number), np.where(smallest < before, first, number))


def _estimate_blocks(
    vectors: Vectors, size: int, rows: NDArray[np.int64], costs: Costs, cap: Array
) -> tuple[Array, Array, Array]:
    """What the best of each block costs at least, shape (n, blocks): in units of each example, and beyond its base.

    `size` is the largest number of labels of a vector, `cap` the cost of one that is known.
    """
    relevant, irrelevant = costs.relevant[rows], costs.irrelevant[rows]
    base = np.minimum(relevant, irrelevant).sum(axis=1)
    rounding = DOUBLE * (relevant + irrelevant).sum(axis=1)
    unit = np.maximum(cap - base, rounding)
    unit[unit == 0] = 1.0  # all vectors cost the same
    terms = np.clip((relevant - irrelevant) / unit[:, None], -1.0, 1.0)
    margin = SINGLE * (size + 4) * (1 + np.abs(terms).sum(axis=1)) + rounding / unit
    least = np.maximum(-terms, 0).sum(axis=1) - margin
    terms_32: NDArray[np.float32] = np.ascontiguousarray(terms.T, dtype=np.float32)
    starts = range(0, len(vectors), BLOCK)
    estimate = np.empty((len(starts), len(rows)))
    for b, start in enumerate(starts):
        some = slice(start, start + BLOCK)
        sums = convert(vectors[some], np.float32) @ terms_32
        if costs.extra is not None:
            sums += np.multiply.outer(costs.extra[some], 1 / unit, dtype=np.float32, casting="same_kind")
        estimate[b] = sums.min(axis=0)
    return estimate.T + least[:, None], unit, base


def convert(vectors: NDArray[Any], dtype: Any) -> Any:
    """Label vectors as a factor of a product: sparse if they have few ones."""
    return sp.csr_array(vectors, dtype=dtype) if vectors.mean() < SPARSE else vectors.astype(dtype)
