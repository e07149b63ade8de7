"""Threads share the heavy steps of learning a rule from binned features, where there are many examples.

The loops over rules and refinements are those of `boosting` and `refinement`, interpreted by Python, not compiled: what
they call is compiled and releases the interpreter lock, so that Python's own threads can divide it. Each thread works
on whole features, columns of the statistics or examples, and no sum is divided; hence the rules do not depend on the
number of threads. (Numba's own parallel loops are not used: two Python threads that fit at the same time may not both
enter them.)
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, product
from types import FunctionType
from typing import Any

import numpy as np

from pyboomer.compiling.simd import LANES, make_zeros
from pyboomer.engine.booster import Steps
from pyboomer.engine.boosting import learn_rules
from pyboomer.engine.heads import fit_head
from pyboomer.engine.refinement import refine_rule
from pyboomer.engine.statistics import add_scores_to_rows, sum_hessians, sum_rows, update_statistics
from pyboomer.engine.sweeping import sum_bins

WORTHWHILE = 2**16  # numbers; a step that reads fewer of them is done before another thread has woken up


def spread_steps(pool: ThreadPoolExecutor, n_threads: int) -> Steps:
    """The steps of `boosting`, divided among the threads of a pool."""

    def share(work: Callable[[Any], Any], parts: list[Any]) -> list[Any]:
        return list(pool.map(work, parts)) if len(parts) > 1 else [work(part) for part in parts]

    def count(numbers: int) -> int:
        return n_threads if numbers >= WORTHWHILE else 1

    def over_bins(
        codes: Any,
        features: Any,
        rows: Any,
        statistics: Any,
        first: int,
        weights: Any,
        label: int,
        workspace: Any,
    ) -> None:
        """Two threads read half of the statistics each; if there are more, these divide the features."""
        width = 2 if label >= 0 else statistics.shape[1]
        n_parts = count(len(rows) * width * len(features))
        n_halves = 2 if n_parts % 2 == 0 and label < 0 else 1

        def work(part: tuple[slice, slice]) -> None:
            some, columns = part
            bins, bin_weight = workspace.bins[some, :, columns], workspace.bin_weight[some]
            # arrays of its own: two threads that write to neighbouring cache lines would wait for each other
            sums = make_zeros((bins.shape[0] * 256, bins.shape[2])).reshape(bins.shape)
            own = workspace._replace(bins=sums, bin_weight=np.empty(bin_weight.shape))
            sum_bins(codes, features[some], rows, statistics, first + columns.start, weights, label, own)
            bins[:, :, :width], bin_weight[:] = own.bins[:, :, :width], own.bin_weight

        columns = divide(workspace.bins.shape[2], n_halves, LANES)
        share(work, list(product(divide(len(features), n_parts // n_halves), columns)))

    def over_columns(statistics: Any, first: int, rows: Any, weights: Any, sums: Any) -> float:
        def work(part: slice) -> float:
            return float(sum_rows(statistics, first + part.start, rows, weights, sums[part]))

        return share(work, divide(len(sums), count(len(rows) * len(sums)), LANES))[0]

    def over_labels(layout: int, first: int, statistics: Any, rows: Any, weights: Any, A: Any) -> None:
        def work(part: slice) -> None:
            sum_hessians(layout, first + part.start, statistics, rows, weights, A[part])

        share(work, divide(len(A), count(len(rows) * A.size), 2))

    def update(kind: int, layout: int, truth: Any, scores: Any, rows: Any, *rest: Any) -> None:
        def work(part: slice) -> None:
            update_statistics(kind, layout, truth, scores, rows[part], *rest)

        share(work, divide(len(rows), count(len(rows) * scores.shape[1])))

    def add_scores(scores: Any, rows: Any, *rest: Any) -> None:
        def work(part: slice) -> None:
            add_scores_to_rows(scores, rows[part], *rest)

        share(work, divide(len(rows), count(len(rows) * scores.shape[1])))

    refine = _interpret(refine_rule, sum_bins=over_bins)
    fit = _interpret(fit_head, sum_rows=over_columns, sum_hessians=over_labels)
    learn = _interpret(
        learn_rules, refine_rule=refine, fit_head=fit, update_statistics=update, add_scores_to_rows=add_scores
    )
    return Steps(learn, fit, update, add_scores)


def divide(size: int, n_parts: int, step: int = 1) -> list[slice]:
    """About equal parts of `size` things, none of them empty, that begin at multiples of `step`."""
    n_steps = -(-size // step)
    edges = [min(size, n_steps * i // n_parts * step) for i in range(n_parts + 1)]
    return [slice(a, b) for a, b in pairwise(edges) if a < b]


def _interpret(compiled: Any, **replaced: Any) -> Callable[..., Any]:
    """The Python function that was compiled, with some of the functions it calls replaced."""
    function = getattr(compiled, "py_func", compiled)  # it is not compiled with NUMBA_DISABLE_JIT=1
    return FunctionType(function.__code__, {**function.__globals__, **replaced}, function.__name__)
