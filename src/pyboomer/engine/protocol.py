"""The protocol of an engine: what it is given, and what training needs of it.

There are engines for this process with its threads (`cpu`), for a GPU (`cuda`) and for a cluster (`cluster`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.engine.sampling import NO_STRATA, NOTHING, Strata
from pyboomer.losses import Loss


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
