"""Threads share the steps that take long where there are many examples.

What they call is compiled and releases the interpreter lock, so that Python's own threads can divide it. Each works on
whole features, columns of the statistics or examples, and no sum is divided; hence the rules do not depend on the
number of threads. (Numba's own parallel loops are not used: two Python threads that fit at the same time may not both
enter them.)
"""

import math
from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.compiling.pool import start_pool
from pyboomer.compiling.simd import LANES
from pyboomer.engine.heads import (
    Penalty,
    Room,
    fit_head,
    is_matrix_free,
    shape_system,
    solve_diagonal,
    solve_matrix_free,
    solve_system,
)
from pyboomer.engine.statistics import Dense, Diagonal, Layout, add_scores_to_rows, sum_hessians, sum_rows, sum_weights
from pyboomer.engine.sweeping import BinSums, Sample, make_bin_sums, sum_bins, sum_bins_of_pairs
from pyboomer.losses.joint_twin import make_scratch
from pyboomer.losses.truth import JointTruth, Truth
from pyboomer.losses.twins import update

WAKING = 2**19  # numbers that a step could read while it divides the work and wakes another thread up; measured


class Threads:
    """Some threads, or just the one that calls."""

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self.pool = start_pool(n_threads) if n_threads > 1 else None

    def close(self) -> None:
        """Let the threads go."""
        if self.pool is not None:
            self.pool.shutdown()

    def count(self, numbers: int) -> int:
        """How many threads are worth their while for a step that reads so many numbers.

        With p threads a step takes numbers / p, and p times the waking of a thread: least if p is the root of their
        ratio.
        """
        return min(self.n_threads, max(1, math.isqrt(numbers // WAKING)))

    def share(self, work: Callable[[Any], Any], parts: list[Any]) -> None:
        """Do all parts of some work."""
        if self.pool is None or len(parts) == 1:
            for part in parts:
                work(part)
        else:
            list(self.pool.map(work, parts))

    def sum_bins(self, codes: NDArray[np.uint8], features: NDArray[np.int64], sample: Sample, bins: BinSums) -> None:
        """`sweeping.sum_bins`, divided by halves of the statistics and, with more than two threads, by features."""
        width = sample.statistics.shape[1]
        n_parts = self.count(len(sample.rows) * width * len(features))
        of_pairs = width < LANES
        n_halves = 2 if n_parts % 2 == 0 and not of_pairs else 1

        def work(part: tuple[slice, slice]) -> None:
            some, columns = part
            if n_parts == 1:
                own = bins
            else:  # arrays of its own: two threads that write to neighbouring cache lines would wait for each other
                own = make_bin_sums(some.stop - some.start, columns.stop - columns.start)
            if of_pairs:
                sum_bins_of_pairs(codes, features[some], sample, own)
            else:
                sum_bins(codes, features[some], sample, columns.start, own)
            if own is not bins:
                bins.sums[some, :, columns], bins.weight[some] = own.sums, own.weight

        columns = [slice(0, width)] if of_pairs else divide(width, n_halves, LANES)
        self.share(work, list(product(divide(len(features), n_parts // n_halves), columns)))

    def update(
        self, truth: Truth | JointTruth, scores: Array, rows: Rows, statistics: Array, first: int, last: int
    ) -> None:
        """`twins.update`, divided by examples."""
        n_vectors = len(truth.known.factor) if isinstance(truth, JointTruth) else 0
        parts = divide(len(rows), self.count(len(rows) * (scores.shape[1] + n_vectors)))

        def work(part: slice) -> None:
            own = truth
            if isinstance(truth, JointTruth) and len(parts) > 1:
                own = truth._replace(scratch=make_scratch(truth.known))
            update(own, scores, rows[part], statistics, first, last)

        self.share(work, parts)

    def add_scores(self, scores: Array, rows: Rows, head: Array, first: int, last: int) -> None:
        """`statistics.add_scores_to_rows`, divided by examples."""

        def work(part: slice) -> None:
            add_scores_to_rows(scores, rows[part], head, first, last)

        self.share(work, divide(len(rows), self.count(len(rows) * scores.shape[1])))

    def fit_head(
        self, layout: Layout, statistics: Array, rows: Rows, weights: Array, penalty: Penalty, room: Room, head: Array
    ) -> tuple[float, float]:
        """`heads.fit_head`; sums of statistics are divided by columns, sums of Hessians by labels."""
        size = statistics.shape[1]
        n_parts = self.count(len(rows) * size)
        if n_parts == 1 or isinstance(layout, Dense):
            return fit_head(layout, statistics, rows, weights, penalty, room, head)

        def sum_columns(part: slice) -> None:
            sum_rows(statistics, part.start, rows, weights, room.sums[part])

        self.share(sum_columns, divide(size, n_parts, LANES))
        coverage = sum_weights(rows, weights)
        if isinstance(layout, Diagonal):
            return solve_diagonal(layout, room.sums, penalty, head), coverage
        if is_matrix_free(layout, statistics, rows):
            return solve_matrix_free(layout, statistics, rows, weights, coverage, penalty, room, head), coverage
        k = layout.n_labels
        A, L = shape_system(k, room)

        def sum_labels(part: slice) -> None:
            sum_hessians(layout, part.start, statistics, rows, weights, A[part])

        self.share(sum_labels, divide(k, self.count(len(rows) * A.size), 2))
        return solve_system(room.sums, penalty, A, L, head), coverage


def divide(size: int, n_parts: int, step: int = 1) -> list[slice]:
    """About equal parts of `size` things, none of them empty, that begin at multiples of `step`."""
    n_steps = -(-size // step)
    edges = [min(size, n_steps * i // n_parts * step) for i in range(n_parts + 1)]
    return [slice(a, b) for a, b in pairwise(edges) if a < b]
