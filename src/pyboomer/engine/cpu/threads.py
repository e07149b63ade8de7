"""Threads share work that takes long: bodies of a round, blocks of examples.

Compiled code releases the interpreter lock, so that Python's own threads can run it side by side. No result depends on
how the work is divided. (Numba's own parallel loops are not used: two Python threads that fit at the same time may not
both enter them.)
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from pyboomer.arrays import Array, Rows
from pyboomer.compiling.pool import start_pool
from pyboomer.losses.joint_twin import make_scratch
from pyboomer.losses.truth import JointTruth, Truth
from pyboomer.losses.twins import update

ENOUGH = 2**20  # numbers that a part should have to read, at least: to divide the work and wake up a thread takes time
PARTS = 2  # for each thread, as threads do not run equally fast


class Threads:
    """Some threads, or just the one that calls."""

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self.pool = start_pool(n_threads) if n_threads > 1 else None

    def close(self) -> None:
        """End the threads."""
        if self.pool is not None:
            self.pool.shutdown()

    def share(self, work: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        """Do all parts of some work; returns the results."""
        if self.pool is None or len(parts) == 1:
            return [work(part) for part in parts]
        return list(self.pool.map(work, parts))

    def share_buffers(self, work: Callable[[Any, Any], Any], parts: Sequence[Any], buffers: deque[Any]) -> list[Any]:
        """The same for work that takes memory of its own, which there is for each thread."""

        def take(part: Any) -> Any:
            own = buffers.popleft()
            try:
                return work(part, own)
            finally:
                buffers.append(own)

        return self.share(take, parts)

    def divide(self, n: int, numbers: int, step: int = 1) -> list[slice]:
        """Parts of n examples of so many numbers each, as many as are worth their while."""
        if self.pool is None:
            return [slice(0, n)]
        return divide(n, max(1, min(PARTS * self.n_threads, n * numbers // ENOUGH)), step)

    def update(
        self, truth: Truth | JointTruth, scores: Array, rows: Rows, statistics: Array, first: int, last: int
    ) -> None:
        """`twins.update`, divided by examples."""
        n_vectors = len(truth.known.factor) if isinstance(truth, JointTruth) else 0
        parts = self.divide(len(rows), scores.shape[1] + n_vectors)

        def work(part: slice) -> None:
            own = truth
            if isinstance(truth, JointTruth) and len(parts) > 1:
                own = truth._replace(scratch=make_scratch(truth.known))
            update(own, scores, rows[part], statistics, first, last)

        self.share(work, parts)


def divide(size: int, n_parts: int, step: int = 1) -> list[slice]:
    """About equal parts of `size` things, none of them empty, that begin at multiples of `step`."""
    n_steps = -(-size // step)
    edges = [min(size, n_steps * i // n_parts * step) for i in range(n_parts + 1)]
    return [slice(a, b) for a, b in pairwise(edges) if a < b]
