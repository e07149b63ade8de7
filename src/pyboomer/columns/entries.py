"""Entries are what a sweep sees of a feature: the values of the covered examples, in order, each with its example.

Dense columns, sorted or binned, answer two questions: which entries there are, and who meets a condition.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.compiling.kinds import by_kind

START = np.uint64(0)  # where to begin counting: an index that may be negative costs a comparison each time it is used


class Entries(NamedTuple):
    """Room for the entries of a feature, or for 256 bins."""

    examples: Rows
    values: Array
    ends: Rows  # of runs of equal values
    bits: NDArray[np.uint64]  # zeros, one per example


def make_entries(n: int) -> Entries:
    """Room for the entries of n examples."""
    size = max(n + 1, 256)
    ends, bits = np.empty(size + 1, dtype=np.uint32), np.zeros(n // 64 + 1, dtype=np.uint64)
    return Entries(np.empty(size, dtype=np.uint32), np.empty(size), ends, bits)


@by_kind
def collect(columns: Any, feature: int, rows: Rows, weights: Array, entries: Entries) -> tuple[np.int64, np.int64]:
    """Collect the entries of a feature for the covered examples, `rows`: ascending, then those that are missing.

    Examples that are not covered have weight 0. Returns how many values are present, and how many are missing.
    """


@by_kind
def keep(columns: Any, feature: int, operator: int, value: float, rows: Rows, dropped: Rows) -> np.int64:
    """Put the examples that meet a condition first in `rows`; returns how many do. Each part keeps its order.

    `dropped` is scratch with a place per example.
    """
