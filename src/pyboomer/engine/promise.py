"""The promise: what an engine is told, what training needs of it, and what engines of any kind are made of.

Training knows an engine by `Engine` alone. To learn a rule from sums over bins takes no more than `Steps`: how it is
learned from them (`bins`), ratings, heads and draws are shared. The steps may be done by threads of this process
(`cpu.steps`), and just as well by a GPU or by the workers of a cluster.
"""

from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import parent_process
from threading import current_thread, main_thread
from typing import Any, NamedTuple, Protocol

import numpy as np
from joblib import effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.engine.heads import Penalty
from pyboomer.engine.rating import Rating
from pyboomer.engine.sampling import NO_STRATA, NOTHING, Strata
from pyboomer.engine.sweeping import BinSums
from pyboomer.losses import Loss

# examples that several threads learn from by default, and how many they are at most: measured on 2 and on 16 cores
MANY, MOST_THREADS = 400_000, 8


@dataclass(frozen=True)
class Settings:
    """How rules are learned; most mean what the estimator's parameters of the same names do."""

    loss: Loss
    head: str | int | float = "multi"
    n_rules: int = 100
    rules_per_round: int = 1
    learning_rate: float = 0.1
    l1: float = 0.0
    l2: float = 1.0
    bootstrap: bool = True
    sampling: str = "with-replacement"
    max_samples: int | float | None = None
    max_features: str | int | float | None = None
    max_labels: str | int | float | None = None
    max_conditions: int | None = None
    min_coverage: float = 0.0
    search: str = "bound"
    max_bins: str | int | None = None
    n_threads: int = 1
    device: str = "cpu"
    default_rule: str = "minimum"
    default_l2: float = 1.0  # of the default rule
    seed: int = 0


def count_threads(n_jobs: int | str | None, much: bool) -> int:
    """The threads of this process that `n_jobs` asks for, as joblib counts them.

    "auto" asks for one if there is not `much` to do, and in one of several parallel jobs: of joblib, of a process that
    another one has made, or of threads. Joblib's Dask backend counts the cores of the cluster instead, and every fit of
    a grid search would start as many.
    """
    backend, given = get_active_backend()
    on_dask = type(backend).__name__ == "DaskDistributedBackend"  # known by name, as to import it takes a second
    if n_jobs == "auto":
        is_a_job = backend.nesting_level or parent_process() is not None or current_thread() is not main_thread()
        if on_dask or is_a_job or not much:
            return 1
        return min(int(effective_n_jobs(-1 if given is None else given)), MOST_THREADS)
    if not on_dask:
        return int(effective_n_jobs(n_jobs))
    with parallel_config(backend="threading"):
        return int(effective_n_jobs(n_jobs))


class Task(NamedTuple):
    """What rules are learned from."""

    columns: Any  # one of the kinds in `pyboomer.columns`
    Y: NDArray[Any]  # (N, K): labels, -1 and +1 (int8), or the targets of a regression (float64)
    weight: Array  # (N,)
    label_weight: Array | None = None  # (N, K): 0 for an unknown label; None if all are known, of weight 1
    strata: Strata = NO_STRATA  # the groups that samples without replacement are drawn from
    fixed_features: NDArray[np.int64] = NOTHING  # those that need not be drawn, in ascending order


# adds the scores of rules that there are already, from one number up to another, in their order
Replay = Callable[[Array, int, int], None]


class Chunk(NamedTuple):
    """Rules in flat arrays, one after another."""

    n_conditions: NDArray[np.int64]
    conditions: Array  # feature, operator and value of each, and the gain that the body has with it, in the sample
    n_scores: NDArray[np.int64]
    labels: NDArray[np.int32]
    scores: Array
    coverage: Array
    gain: Array


class Engine(Protocol):
    """Who learns rules: Algorithm 1 under way. The default rule is there from the beginning."""

    n_rules: int  # learned so far

    def learn(self, count: int) -> None:
        """Learn `count` more rules."""

    def take_rules(self) -> list[Chunk]:
        """The rules learned since the last call."""

    def training_loss(self) -> float:
        """The mean loss of the training examples."""

    def close(self) -> None:
        """Give back threads, or whatever else it holds."""


class Steps(Protocol):
    """Who holds binned examples, all or some of them, and answers for them while a rule is learned."""

    n_covered: int  # examples of the sample that the rule covers so far ...
    weight: float  # ... and their weight

    def begin(self, rule: int) -> None:
        """Draw the sample of a rule (Alg. 1, line 5); sums are about all labels."""

    def focus(self, labels: NDArray[np.int64]) -> None:
        """From now on, sums and heads are about some of the labels they have been about, in ascending order."""

    def pair(self, label: int) -> None:
        """From now on, they are about one label, whose gradient and curvature are all that is summed."""

    def sum_bins(self, features: NDArray[np.int64]) -> tuple[BinSums, NDArray[np.int8]]:
        """Sums of statistics over the bins of some features, of what is covered; and which of these are nominal."""

    def narrow(self, feature: int, operator: int, value: float) -> None:
        """Narrow the coverage by a condition (Alg. 3, line 10)."""

    def sum_sample(self, sums: Array) -> float:
        """Sums of statistics, of what is covered; returns its weight."""

    def refine(self, rating: Rating, rule: int, body: Array, size: int, best: float) -> tuple[int, float]:
        """Refine a rule as far as `body` has room, example by example; `rating.whole` has the sums of the sample."""

    def cover(self, body: Array) -> None:
        """Cover all examples that meet the conditions of a body, sampled or not."""

    def sum_covered(self, sums: Array) -> float:
        """Sums of statistics of all examples covered, with their own weights; returns their weight."""

    def fit_head(self, penalty: Penalty) -> tuple[Array, float, float]:
        """The head of all examples covered (Alg. 1, line 7), its gain and its coverage."""

    def apply(self, labels: NDArray[np.int64], scores: Array) -> None:
        """Add scores to what is covered, and bring the statistics up to date (Alg. 1, line 4)."""
