"""A twin is a built-in loss as compiled code sees it: what is known of the examples, and how statistics follow from it.

What is known, the *truth*, is a kind of its own for each loss: labels or targets, padded to whole vectors, and the
weights of these if some are neither 0 nor 1. An unknown label makes all statistics 0, and so does the padding.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows, Signs
from pyboomer.compiling.kinds import by_kind
from pyboomer.compiling.simd import pad


@by_kind
def update(truth: Any, scores: Array, rows: Rows, statistics: Array, first: int, last: int) -> None:
    """Compute the statistics of some examples anew (Alg. 1, lines 1 and 4).

    Labels `first` to `last` - 1 are the ones whose scores have changed.
    """


@by_kind
def sum_values(truth: Any, scores: Array, weights: Array) -> float:
    """The weighted sum of the loss over all examples; labels have no weights of their own."""


class Twin(NamedTuple):
    """What a loss brings along for compiled code.

    `tell` makes the truth of labels or targets, their signs (of unknown ones 0) and their weights, all padded; it is
    told whether only the diagonal of the Hessian is wanted. `begin` gives the scores before the first rule, unless they
    are 0.
    """

    tell: Callable[[Signs, Array, bool], Any]
    begin: Callable[[NDArray[Any]], Array] | None = None


def pad_signs(Y: NDArray[Any], known: NDArray[np.bool_] | None) -> Signs:
    """Labels, -1 and +1, with 0 for unknown ones and for the padding; of targets, 1 for the known ones."""
    signs = np.zeros((len(Y), pad(Y.shape[1])), dtype=np.int8)
    values = Y if Y.dtype == np.int8 else np.ones(Y.shape, dtype=np.int8)
    signs[:, : Y.shape[1]] = values if known is None else np.where(known, values, 0)
    return signs


def pad_weight(shape: tuple[int, int], label_weight: Array | None) -> Array:
    """Weights of labels; an empty array where all of them are 0 or 1, which goes without saying."""
    n, k = shape
    if label_weight is None or not ((label_weight != 0) & (label_weight != 1)).any():
        return np.zeros((0, pad(k)))
    weight = np.zeros((n, pad(k)))
    weight[:, :k] = label_weight
    return weight


class NoTwin(NamedTuple):
    """What compiled code knows of a user's own loss: nothing. Its statistics are computed between two rules."""

    nothing: int = 0


@update.of(NoTwin)
def _leave(truth: NoTwin, scores: Array, rows: Rows, statistics: Array, first: int, last: int) -> None:
    pass
