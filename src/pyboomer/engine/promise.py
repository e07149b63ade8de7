"""The protocol of an engine: what it is given, and what training needs of it.

There are engines for this process with its threads (`cpu`), for a GPU (`cuda`) and for a cluster (`cluster`).
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
from pyboomer.engine.sampling import NO_STRATA, NOTHING, Strata
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
