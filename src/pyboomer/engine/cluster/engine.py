"""The engine of a cluster."""

from collections.abc import Sequence

import numpy as np

from pyboomer.arrays import Array
from pyboomer.engine.cluster.leader import Leader, Team
from pyboomer.engine.cluster.odds import ClusterOdds, ShardOfOdds
from pyboomer.engine.cluster.shard import Shard
from pyboomer.engine.cluster.statistics import ShardOfStatistics, StatisticsState
from pyboomer.engine.cluster.task import Block, ClusterTask
from pyboomer.engine.heads import Penalty
from pyboomer.engine.odds_state import OddsState, choose_loss_unit, make_rule
from pyboomer.engine.protocol import Chunk
from pyboomer.engine.rounds import RoundLearner
from pyboomer.losses.compiled import QUADRATIC


def make_shard(blocks: Sequence[Block], held_out: Sequence[Block], task: ClusterTask, n_threads: int = 1) -> Shard:
    """The shard of a worker: examples learned from, and examples held out."""
    return (ShardOfOdds if task.by_odds else ShardOfStatistics)(blocks, held_out, task, n_threads)


class ClusterEngine:
    """See `protocol.Engine`; it runs on the worker that leads."""

    def __init__(self, team: Team, task: ClusterTask) -> None:
        self.task, settings, leader = task, task.settings, Leader(team, task)
        self.n_rules, self.chunks = max(task.n_rules, 1), list[Chunk]()
        self.state: OddsState | StatisticsState
        if task.by_odds:
            self.odds = ClusterOdds(leader)
            self.state = OddsState(self.odds, task.n_labels, settings, task.summary.largest_weight, task.summary.weight)
        else:
            self.state = StatisticsState(leader, task)
        self.rounds = RoundLearner(self.state, settings)
        if task.n_rules == 0:
            head, gain = task.default or self._learn_default_head()
            self.chunks.append(make_rule(np.empty((0, 4)), np.arange(task.n_labels), head, task.summary.weight, gain))

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
        weight = self.task.summary.held_out_weight
        unit = choose_loss_unit(1.0, weight, self.task.n_labels)
        return float(self.odds.sum_losses(1 / unit, held_out=True) * unit) / weight

    def close(self) -> None:
        """There is nothing to give back: shards are closed by their workers."""
