"""The leader is the worker that asks all others while rules are learned.

It sends few messages for a round: one to the workers that learn bodies, one with the bodies to all shards, which answer
with sums. Scores that are to be added to examples are sent with the next message, so that the leader need not wait for
it. They may be sent more than once, as workers gather samples from each other: updates have numbers.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pyboomer.engine.cluster.shard import Learned
from pyboomer.engine.cluster.task import ClusterTask
from pyboomer.engine.rounds import Body

MOST_BYTES = 2**30  # of samples that are sent at once

Updates = list[tuple[int, Any]]


class Team(Protocol):
    """All shards, in an order that is always the same."""

    n_threads: Sequence[int]  # of each worker

    def ask(self, updates: Updates, name: str, arguments: Sequence[Any]) -> list[Any]:
        """What all shards answer, see `Shard.answer`."""

    def learn_bodies(self, updates: Updates, shares: Mapping[int, Sequence[int]]) -> list[Learned]:
        """Let workers learn the bodies of their shares of the rules.

        Each gathers samples from all shards (`Shard.gather`), which apply the updates first.
        """


class Leader:
    """Asks all shards."""

    def __init__(self, team: Team, task: ClusterTask) -> None:
        self.team, self.updates, self.n_updates = team, Updates(), 0
        most = max(team.n_threads)
        self.n_together = max(1, MOST_BYTES // task.count_bytes())  # rules whose samples are sent at once
        self.learners = [s for turn in range(most) for s, count in enumerate(team.n_threads) if turn < count]

    def update(self, *update: Any) -> None:
        """Let all shards add scores to examples, when they are asked something next."""
        self.updates.append((self.n_updates, update))
        self.n_updates += 1

    def ask(self, name: str, *arguments: Any) -> list[Any]:
        """What all shards answer."""
        answers = self.team.ask(self.updates, name, arguments)
        self.updates = []
        return answers

    def learn_bodies(self, rules: range) -> tuple[list[Body], float]:
        """Let workers learn the bodies of a round, a thread each; returns the size of the largest statistic, too."""
        bodies: dict[int, Body] = {}
        largest = 0.0
        for begin in range(rules.start, rules.stop, self.n_together):
            shares: dict[int, list[int]] = {}
            for i, rule in enumerate(range(begin, min(begin + self.n_together, rules.stop))):
                shares.setdefault(self.learners[i % len(self.learners)], []).append(rule)
            found = self.team.learn_bodies(self.updates, shares)
            for share, learned in zip(shares.values(), found, strict=True):
                bodies |= dict(zip(share, learned.bodies, strict=True))
            largest = max(largest, *(learned.largest for learned in found))
        return [bodies[rule] for rule in rules], largest
