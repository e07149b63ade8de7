"""Threads share the heavy steps of learning a rule from binned features, where there are many examples.

The loops over rules and refinements are those of `boosting` and `refinement`, interpreted by Python, not compiled: what
they call is compiled and releases the interpreter lock, so that Python's own threads can divide it. Each thread works
on whole features or whole examples, and no sum is divided; hence the rules do not depend on the number of threads.
(Numba's own parallel loops are not used: two Python threads that fit at the same time may not both enter them.)
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import FunctionType
from typing import Any

import numpy as np

from pyboomer.boosting import learn_rules
from pyboomer.refinement import refine_rule
from pyboomer.statistics import add_scores_to_rows, update_statistics
from pyboomer.sweeping import sum_bins


def spread_learning(pool: ThreadPoolExecutor, n_threads: int) -> Callable[..., Any]:
    """`boosting.learn_rules` with its heavy steps divided among the threads of a pool."""

    def divide(size: int) -> list[slice]:
        edges = np.linspace(0, size, n_threads + 1).astype(int).tolist()
        return [slice(a, b) for a, b in pairwise(edges) if a < b]

    def over_features(codes: Any, features: Any, rows: Any, *rest: Any) -> None:
        *others, workspace = rest

        def work(part: slice) -> None:
            own = workspace._replace(bins=workspace.bins[part], bin_weight=workspace.bin_weight[part])
            sum_bins(codes, features[part], rows, *others, own)

        list(pool.map(work, divide(len(features))))

    def update(kind: int, layout: int, truth: Any, scores: Any, rows: Any, *rest: Any) -> None:
        list(
            pool.map(lambda part: update_statistics(kind, layout, truth, scores, rows[part], *rest), divide(len(rows)))
        )

    def add_scores(scores: Any, rows: Any, *rest: Any) -> None:
        list(pool.map(lambda part: add_scores_to_rows(scores, rows[part], *rest), divide(len(rows))))

    refine = _interpret(refine_rule, sum_bins=over_features)
    return _interpret(learn_rules, refine_rule=refine, update_statistics=update, add_scores_to_rows=add_scores)


def _interpret(compiled: Any, **replaced: Any) -> Callable[..., Any]:
    """The Python function that was compiled, with some of the functions it calls replaced."""
    function = compiled.py_func
    return FunctionType(function.__code__, {**function.__globals__, **replaced}, function.__name__)
