"""Threads share work that takes long: bodies of a round, blocks of examples.

Compiled code releases the interpreter lock, so that Python's own threads can run it side by side. No result depends on
how the work is divided. (Numba's own parallel loops are not used: two Python threads that fit at the same time may not
both enter them.)
"""

from collections.abc import Callable, Sequence
from concurrent.futures import wait
from itertools import pairwise
from typing import Any

from pyboomer.arrays import Array, Rows
from pyboomer.compiling.pool import start_pool
from pyboomer.losses.compiled import update
from pyboomer.losses.compiled_joint import make_scratch
from pyboomer.losses.truth import JointTruth, Truth

ENOUGH = 2**22  # numbers that a part should have to read, at least: to divide the work and wake up a thread takes time
PARTS = 4  # for each thread, as threads do not run equally fast


class Threads:
    """Some threads, of which one is the one that calls."""

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self.pool = start_pool(n_threads - 1) if n_threads > 1 else None

    def close(self) -> None:
        """End the threads."""
        if self.pool is not None:
            self.pool.shutdown()

    def share(self, work: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        """Do all parts of some work; returns the results."""
        return self.share_buffers(lambda part, _: work(part), parts, [None] * self.n_threads)

    def share_buffers(self, work: Callable[[Any, Any], Any], parts: Sequence[Any], buffers: Sequence[Any]) -> list[Any]:
        """The same for work that takes memory of its own, which there is for each thread."""
        results: list[Any] = [None] * len(parts)
        tickets = iter(range(len(parts)))  # a thread that is done with a part takes the next

        def run(own: Any) -> None:
            for i in tickets:
                results[i] = work(parts[i], own)

        first, *others = buffers[: max(1, min(self.n_threads, len(parts)))]
        futures = [self.pool.submit(run, own) for own in others] if self.pool is not None else []
        try:
            run(first)
        finally:
            wait(futures)
        for future in futures:
            future.result()
        return results

    def divide(self, n: int, numbers: int, step: int = 1) -> list[slice]:
        """Parts of n examples of so many numbers each, as many as are worth their while."""
        if self.pool is None:
            return [slice(0, n)]
        return divide(n, max(1, min(PARTS * self.n_threads, n * numbers // ENOUGH)), step)

    def update(
        self, truth: Truth | JointTruth, scores: Array, rows: Rows, statistics: Array, first: int, last: int
    ) -> None:
        """`compiled.update`, divided by examples."""
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
