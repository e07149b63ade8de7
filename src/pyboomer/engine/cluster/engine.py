"""The engine of a cluster (`protocol.Engine`), and what it can learn."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.engine.cluster.shard import ClusterTask
from pyboomer.engine.cluster.states import ClusterOdds, Leader, StatisticsState, Team
from pyboomer.engine.cpu.default_rule import find_default_head
from pyboomer.engine.cpu.ledger import Ledger
from pyboomer.engine.cpu.threads import Threads
from pyboomer.engine.heads import Penalty
from pyboomer.engine.odds_state import OddsState, are_samples_small, choose_loss_unit, make_rule
from pyboomer.engine.protocol import Chunk, Settings, Task
from pyboomer.engine.rounds import RoundLearner
from pyboomer.engine.sampling import count_examples
from pyboomer.engine.search.plan import is_single
from pyboomer.losses.logistic import label_wise_logistic
from pyboomer.losses.twins import QUADRATIC

MOST_LABELS = 256  # whose Hessians are added up: so many times as many numbers for a rule
MOST_SAMPLES = 2**18  # examples of a sample, which is sent to the worker that learns from it


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
    of_labels = settings.loss is label_wise_logistic and not summary.label_weights
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
            'label-wise logistic, labels have no weights, head="multi", max_labels=None, and samples have at most an '
            "eighth of the examples"
        )


def make_task(
    settings: Settings,
    summary: Summary,
    n_labels: int,
    nominal: NDArray[np.int8],
    fixed_features: NDArray[np.int64],
    default: tuple[Array, float] | None,
    n_rules: int = 0,
) -> ClusterTask:
    """What the leader and all shards are given."""
    n, weight, largest, _, n_held_out, held_out_weight = summary
    by_odds = suits_odds(settings, summary, n_labels)
    return ClusterTask(
        *(settings, n, weight, largest, n_labels, nominal, fixed_features, by_odds, default, n_rules),
        *(n_held_out, held_out_weight),
    )


def learn_default_head(task: Task, settings: Settings) -> tuple[Array, float]:
    """The head of the default rule and its gain, given one example for all that have the same labels."""
    return find_default_head(Ledger(task, settings.loss, False, Threads(1)), settings)


class ClusterEngine:
    """See `protocol.Engine`; it runs on the worker that leads."""

    def __init__(self, team: Team, task: ClusterTask) -> None:
        self.task, settings, leader = task, task.settings, Leader(team, task)
        self.n_rules, self.chunks = max(task.n_rules, 1), list[Chunk]()
        self.state: OddsState | StatisticsState
        if task.by_odds:
            self.odds = ClusterOdds(leader)
            self.state = OddsState(self.odds, task.n_labels, settings, task.largest_weight, task.weight)
        else:
            self.state = StatisticsState(leader, task)
        self.rounds = RoundLearner(self.state, settings)
        if task.n_rules == 0:
            head, gain = task.default or self._learn_default_head()
            self.chunks.append(make_rule(np.empty((0, 4)), np.arange(task.n_labels), head, task.weight, gain))

    def _learn_default_head(self) -> tuple[Array, float]:
        settings = self.task.settings
        assert settings.loss in QUADRATIC
        assert isinstance(self.state, StatisticsState)
        return self.state.fit_default_head(Penalty(float(settings.l1), float(settings.default_l2)))

    def learn(self, count: int) -> None:
        """Learn `count` more rules."""
        self.chunks += self.rounds.learn(self.n_rules, count)
        self.n_rules += count

    def take_rules(self) -> list[Chunk]:
        """The rules learned since the last call."""
        chunks, self.chunks = self.chunks, []
        return chunks

    def training_loss(self) -> float:
        """The mean loss of the training examples."""
        self.rounds.apply()
        return self.state.mean_loss()

    def held_out_loss(self) -> float:
        """The mean loss of the examples held out."""
        self.rounds.apply()
        if isinstance(self.state, StatisticsState):
            return self.state.mean_loss(held_out=True)
        weight = self.task.held_out_weight
        unit = choose_loss_unit(1.0, weight, self.task.n_labels)
        return float(self.odds.sum_losses(1 / unit, held_out=True) * unit) / weight

    def close(self) -> None:
        """There is nothing to give back: shards are closed by their workers."""
