"""The launches of a round: kernels with their grids, in the order in which bodies and heads are learned."""

from pyboomer.compiling.device import Launch
from pyboomer.engine.cuda.plan import LABELS, PARTIAL, Plan

THREADS = 256
BIN_THREADS = 1024
BLOCKS = 8  # of a multiprocessor
PARTS = 4  # blocks of a multiprocessor that sum over bins, one after another


class Launches:
    """What is launched for a plan, on a GPU of so many multiprocessors."""

    def __init__(self, plan: Plan, n_processors: int) -> None:
        self.plan, self.n_processors = plan, n_processors
        self.row_blocks = self._divide(plan.n, THREADS)
        many = 64 * n_processors  # warps
        self.chunk = next(rows for rows in (32, 16, 8, 4, 2, 1) if rows * many <= plan.n or rows == 1)

    def _divide(self, n: int, each: int, n_others: int = 1) -> int:
        """The blocks that share n things, each so many at once, beside others."""
        return max(1, min(-(-n // each), BLOCKS * self.n_processors // n_others))

    def over_rows(self, kernel: str) -> Launch:
        """A kernel over all examples."""
        return Launch(kernel, (self.row_blocks,), THREADS)

    def _over_samples(self, kernel: str, count: int) -> Launch:
        return Launch(kernel, (self._divide(self.plan.n_sample, THREADS, count), 1, count), THREADS)

    def apply(self) -> Launch:
        """The update of scores and statistics, of some rows by each warp."""
        return Launch("apply", (self._divide(self.plan.n, self.chunk * THREADS // 32),), THREADS)

    def begin(self, count: int) -> list[Launch]:
        """The samples of so many bodies."""
        return [Launch("begin", (1, 1, count), THREADS), self._over_samples("sample", count)]

    def refine(self, count: int, first: bool) -> list[Launch]:
        """A refinement of so many bodies (Alg. 3)."""
        plan, tiling = self.plan, self.plan.tiling
        rate = Launch("rate", (plan.n_features, -(-plan.k // LABELS), count), THREADS)
        if first and plan.head == PARTIAL:
            rate = Launch("rate_some", (plan.n_features * plan.n_bins, 1, count), THREADS, 8 * plan.k)
        n_parts = max(1, -(-PARTS * self.n_processors // (tiling.n_tiles * tiling.n_groups * count)))
        grid = (n_parts, tiling.n_tiles, tiling.n_groups * count)
        sums = Launch(f"sum_bins_{tiling.tile}", grid, BIN_THREADS, tiling.shared)
        return [sums, rate, self._over_samples("narrow", count)]

    def fit_head(self) -> list[Launch]:
        """The sums of a head (Alg. 2), and what follows from them."""
        plan = self.plan
        tiles = -(-plan.k // LABELS)
        sums = Launch("sum_covered", (self._divide(plan.n, THREADS // plan.span, tiles), tiles), THREADS)
        if not plan.outer:
            return [sums]
        solve = [] if plan.iterates else [Launch("solve_system", (self._divide(plan.n, 64),), THREADS)]
        return [self.over_rows("project"), sums, *solve]

    def multiply(self) -> list[Launch]:
        """A step of conjugate gradients."""
        tiles = -(-self.plan.k // LABELS)
        columns = Launch("multiply_columns", (self._divide(self.plan.n, 64, tiles), tiles), THREADS)
        return [self.over_rows("multiply_rows"), columns]
