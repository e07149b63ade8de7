"""A task of a cluster: how rules are learned, and what is known of all examples together."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.columns.binned import BinnedColumns
from pyboomer.engine.cpu.default_rule import find_default_head
from pyboomer.engine.cpu.state import ExampleState
from pyboomer.engine.cpu.threads import Threads
from pyboomer.engine.odds_state import are_samples_small
from pyboomer.engine.protocol import Settings, Task
from pyboomer.engine.sampling import count_examples
from pyboomer.engine.search.plan import is_single
from pyboomer.losses.logistic import label_wise_logistic

MOST_LABELS = 256  # whose Hessians are added up: so many times as many numbers for a rule
MOST_SAMPLES = 2**18  # examples of a sample, which is sent to the worker that learns from it


class Block(NamedTuple):
    """Examples that follow one another."""

    first: int  # the number of the first one
    codes: NDArray[np.uint8]  # (L, n)
    Y: NDArray[Any]  # (n, K), as in `protocol.Task`
    weight: Array | None  # (n,); None if all are 1
    label_weight: Array | None  # (n, K)
    scores: Array | None  # (n, K): of rules that there are already
    before: Array | None = None  # those at the beginning of the round, if some rules of the round are there


class Summary(NamedTuple):
    """What is known of all examples together."""

    n: int
    weight: float
    largest_weight: float
    label_weights: bool  # whether some labels have weights other than 0 and 1
    n_held_out: int = 0
    held_out_weight: float = 0.0


def suits_odds(settings: Settings, summary: Summary, n_labels: int) -> bool:
    """Whether the training state is that of odds, see `odds_state`."""
    of_labels = settings.loss == label_wise_logistic and not summary.label_weights
    return of_labels and are_samples_small(settings, summary.n, n_labels)


def check_settings(settings: Settings, summary: Summary, n_labels: int) -> None:
    """Refuse what takes all examples in one place."""
    loss, single = settings.loss, is_single(settings.head, n_labels)
    if settings.bootstrap and settings.sampling != "with-replacement":
        raise ValueError(f'sampling must be "with-replacement" on a cluster, got {settings.sampling!r}')
    if loss.shape != "diagonal" and not single:
        if settings.search == "exact" or loss.shape == "dense":
            raise ValueError(
                f'loss {loss.name!r} with search="exact" needs Hessians for each condition, which a cluster does not '
                'add up: choose search="bound", head="single", or a loss whose Hessian is diagonal'
            )
        if n_labels > MOST_LABELS:
            raise ValueError(
                f"loss {loss.name!r} adds up a Hessian of {n_labels} x {n_labels} numbers for each rule, too many to "
                f'send (at most {MOST_LABELS} labels): choose loss="label-wise-logistic" or head="single"'
            )
    size = count_examples(settings.max_samples, summary.n, True) if settings.bootstrap else summary.n
    if size > MOST_SAMPLES:
        raise ValueError(
            f"a sample of {size} examples is too large to send from worker to worker, rule by rule: set max_samples to "
            f"{MOST_SAMPLES} or less{'' if settings.bootstrap else ', and bootstrap=True'}"
        )
    if settings.rules_per_round > 1 and not suits_odds(settings, summary, n_labels):
        raise ValueError(
            f"rules_per_round must be 1 or 'auto' on a cluster, got {settings.rules_per_round}, unless the loss is "
            'label-wise logistic, labels have no weights, head="multi", max_labels=None, and samples have at most '
            "half of the examples"
        )


def learn_default_head(task: Task, settings: Settings) -> tuple[Array, float]:
    """The head of the default rule and its gain, given one example for all that have the same labels."""
    return find_default_head(ExampleState(task, settings.loss, False, Threads(1)), settings)


class ClusterTask(NamedTuple):
    """How rules are learned on a cluster, and from what."""

    settings: Settings
    summary: Summary
    n_labels: int
    nominal: NDArray[np.int8]
    fixed_features: NDArray[np.int64]
    default: tuple[Array, float] | None  # the head of the default rule and its gain, if they are known
    n_rules: int = 0  # that there are already

    @property
    def by_odds(self) -> bool:
        """Whether the training state is that of odds, see `odds_state`."""
        return suits_odds(self.settings, self.summary, self.n_labels)

    def count_sampled(self) -> int:
        """The size of a sample; 0 for no sampling."""
        return count_examples(self.settings.max_samples, self.summary.n, True) * self.settings.bootstrap

    def count_bytes(self) -> int:
        """The size of a sample in a message, about."""
        return (self.count_sampled() or self.summary.n) * (
            len(self.nominal) + (4 if self.by_odds else 24) * self.n_labels
        )

    def make_solver_buffers(self) -> Task:
        """A task of as many examples as a sample may have, for plans to be made from."""
        n = min(self.count_sampled() or self.summary.n, self.summary.n)
        columns = BinnedColumns(np.empty((len(self.nominal), 0), dtype=np.uint8), self.nominal)
        return Task(columns, np.empty((n, 0)), np.empty(0), fixed_features=self.fixed_features)
