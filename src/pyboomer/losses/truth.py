"""The truth is what compiled code knows of the examples: their labels, the weights of these, known label vectors.

Labels are padded to whole vectors. An unknown one makes all statistics 0, and so does the padding. Of targets, only
which are known: they are in the scores, see `compiled_squared`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows, Signs
from pyboomer.compiling.kernel import inner
from pyboomer.compiling.simd import LANES, pad, prefetch

AHEAD = 8  # examples between asking for what memory holds of one and needing it


class Ones(NamedTuple):
    """Where the ones of a table are, row by row; numbers without signs, so that no index is tested for one."""

    offsets: NDArray[np.uint64]  # where those of each row begin, and where the last end
    places: NDArray[np.uint32]


class Known(NamedTuple):
    """The known label vectors, for a loss that is about them, see `compiled_joint`."""

    factor: Array  # (V,): the exponentials of their scores before the labels have any
    limit: float  # scores of labels that are larger in size count as this large
    by_vector: Ones  # the labels of each vector
    by_label: Ones  # the vectors of each label, padding included
    own: NDArray[np.int64]  # (N,): which of them an example has, all of whose labels are known; or -1


class Scratch(NamedTuple):
    """Room for eight examples, whose numbers of the same kind lie side by side."""

    rows: Rows
    labels: Array
    vectors: Array
    own: Array  # of the vectors that may be an example's own
    block: Array  # of eight labels


class Truth(NamedTuple):
    """What a loss knows of the examples."""

    loss: int  # which of the twins it is, see `twins`
    diagonal: bool  # whether only the diagonal of the Hessian is wanted
    signs: Signs  # (N, width): -1 and +1, 0 for an unknown label; of targets, 1 for the known ones
    weight: Array  # (N, width), or (0, width) where all that is known has weight 1


class JointTruth(NamedTuple):
    """What a loss knows that is about known label vectors; the first three as in `Truth`."""

    diagonal: bool
    signs: Signs
    weight: Array
    known: Known
    scratch: Scratch  # of one thread


class JointGroup(NamedTuple):
    """The same for a group of labels, see `compiled_joint`: vectors are about these; their factors are in the base."""

    diagonal: bool
    signs: Signs
    weight: Array
    known: Known
    scratch: Scratch
    base: Array  # (N, V), padded


def list_ones(table: NDArray[np.uint8]) -> Ones:
    """Where the ones of a table are."""
    rows, places = np.nonzero(table)
    ends = np.cumsum(np.bincount(rows, minlength=len(table)))
    return Ones(np.append(0, ends).astype(np.uint64), places.astype(np.uint32))


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


@inner(error_model="numpy")
def fetch_soon(truth: Truth, scores: Array, statistics: Array, n: int, begin: int, end: int) -> None:
    """Ask memory for what an update will soon need of an example."""
    width, size = scores.shape[1], statistics.shape[1]
    prefetch(truth.signs, n * width + begin)
    for k in range(begin, end, LANES):
        prefetch(scores, n * width + k)
        prefetch(statistics, n * size + k)
        if size > width:
            prefetch(statistics, n * size + width + k)
