"""Training states of a cluster (`rounds.TrainingState`), as the worker has them that leads.

The leader sends few messages for a round: one to the workers that learn bodies, one with the bodies to all shards,
which answer with sums. Scores that are to be added to examples are sent with the next message, so that the leader need
not wait for it. They may be sent more than once, as workers gather samples from each other: updates have numbers.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.compiling.simd import make_zeros, pad
from pyboomer.engine.cluster.shard import ClusterTask, Covered, Learned
from pyboomer.engine.cpu.ledger import choose_layout
from pyboomer.engine.fixed import Scales, choose_unit
from pyboomer.engine.heads import Penalty, find_best_label, solve_diagonal, solve_label, solve_system, unpack
from pyboomer.engine.odds import Bodies, RoundSums
from pyboomer.engine.odds_state import add_sums, make_rule
from pyboomer.engine.protocol import Chunk
from pyboomer.engine.rounds import Body
from pyboomer.engine.sampling import fill_with_labels
from pyboomer.engine.search.gains import choose_head
from pyboomer.engine.search.plan import Partial, Single, is_single, plan_heads, plan_labels
from pyboomer.engine.statistics import Dense, Diagonal, Layout, Outer, count_columns, resize, take_labels

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


class ClusterOdds:
    """The odds of all shards, see `odds_state.Shards`."""

    def __init__(self, leader: Leader) -> None:
        self.leader = leader

    def learn_bodies(self, rules: range) -> list[Body]:
        """Learn the bodies of a round."""
        return self.leader.learn_bodies(rules)[0]

    def sum_round(self, bodies: Bodies, n_labels: int) -> RoundSums:
        """Sums over the examples that the bodies of a round cover."""
        return add_sums(self.leader.ask("sum_round", bodies, n_labels))

    def apply(self, which: int, factors: Array) -> None:
        """Add the scores of some rules of the round to the examples that they cover."""
        self.leader.update(which, factors)

    def sum_losses(self, scale: float, held_out: bool = False) -> int:
        """The sum of the loss, in whole numbers."""
        return sum(self.leader.ask("sum_losses", held_out, scale))


class StatisticsState:
    """Statistics of all examples, for any loss and any head; a round has one rule."""

    def __init__(self, leader: Leader, task: ClusterTask) -> None:
        self.leader, self.task, self.settings = leader, task, task.settings
        k, single = task.n_labels, is_single(task.settings.head, task.n_labels)
        self.layout = choose_layout(self.settings.loss, k, single)
        self.labels = plan_labels(self.layout, 0, self.settings)
        self.heads = plan_heads(
            resize(self.layout, len(self.labels.draw.drawn)), 0, self.settings, single, self.settings.loss
        )
        self.largest = 1.0  # statistic there has been

    def learn_bodies(self, rules: range) -> list[Body]:
        """Learn the body of a rule (Alg. 1, lines 4 to 6)."""
        bodies, self.largest = self.leader.learn_bodies(rules)
        return bodies

    def fit_heads(self, first: int, bodies: Sequence[Body]) -> list[Chunk]:
        """Fit its head (lines 7 and 8)."""
        (body,) = bodies
        about = self.labels.draw.choices
        if self.labels.some:
            fill_with_labels(self.settings.seed, first, self.labels.in_turn, self.labels.draw)
            about = self.labels.draw.drawn.copy()
        penalty = self.heads.penalty
        if len(body.labels) == 0:  # nothing was learned from the sample: the labels that suit all examples best
            chosen = self._choose_labels(body.conditions, about)
        else:
            chosen = body.labels
        labels = about[chosen]
        scores, gain, coverage = self.fit_head(body.conditions, labels, penalty)
        kept = (scores != 0) | (penalty.l1 == 0)  # L1 regularisation leaves labels out
        kept[-1] |= not kept.any()  # if none is left: the last one, as in `cpu.boosting`
        scores = float(self.settings.learning_rate) * scores[kept]
        return [make_rule(body.conditions, labels[kept], scores, coverage, gain)]

    def _choose_labels(self, conditions: Array, about: NDArray[np.int64]) -> NDArray[np.int64]:
        """The labels of a head, by all examples that a body covers."""
        heads = self.heads
        sums, weight = self._sum_covered(conditions, self.layout)
        own = self._take(self.layout, sums, about)
        if isinstance(heads, Single):
            return np.array([find_best_label(heads.layout, own, heads.penalty, heads.gains)])
        assert isinstance(heads, Partial)
        return heads.choosing.labels[: choose_head(heads.choosing, own, weight)].copy()

    def _sum_covered(self, conditions: Array, layout: Layout) -> tuple[Array, float]:
        """Sums over all examples that a body covers, and their weight."""
        written_out = isinstance(layout, Dense)
        most, total = self.task.largest_weight, self.task.n * self.task.largest_weight
        largest = max(1.0, 2 * self.largest) * self.largest if written_out else self.largest  # of a - b^2
        units = choose_unit(most * largest, total * largest), choose_unit(most, total)
        scales = Scales(*(1 / unit for unit in units))
        answers: list[Covered] = self.leader.ask("sum_covered", conditions, scales, written_out)
        sums = np.sum([covered.statistics for covered in answers], axis=0).astype(np.float64)
        return sums * units[0], sum(covered.weight for covered in answers) * units[1]

    def _take(self, layout: Layout, sums: Array, labels: NDArray[np.int64]) -> Array:
        """Sums of some of the labels."""
        taken = make_zeros((1, count_columns(resize(layout, len(labels)))))
        take_labels(layout, sums[None], np.zeros(1, dtype=np.uint32), labels, taken)
        return np.asarray(taken[0])

    def fit_head(self, conditions: Array, labels: NDArray[np.int64], penalty: Penalty) -> tuple[Array, float, float]:
        """The head of a body for some labels, its gain and its coverage."""
        m, k = len(labels), self.task.n_labels
        layout = Dense(k) if isinstance(self.layout, Outer) else self.layout
        sums, coverage = self._sum_covered(conditions, layout)
        if isinstance(self.heads, Single) and m == 1:
            gain, score = solve_label(sums[labels[0]], sums[pad(k) + labels[0]], penalty)
            return np.array([score]), gain, coverage
        own, head = self._take(layout, sums, labels), np.empty(m)
        if isinstance(layout, Diagonal):
            return head, solve_diagonal(Diagonal(m), own, penalty, head), coverage
        A, L = make_zeros((m, pad(m))), make_zeros((m, pad(m)))
        unpack(m, own, 0.0, A, head)
        return head, solve_system(own, penalty, A, L, head), coverage

    def apply(self, rules: Sequence[Chunk]) -> None:
        """Add the scores of a rule to the examples that it covers."""
        for rule in rules:
            self.leader.update(rule.labels.astype(np.int64), rule.scores)

    def fit_default_head(self, penalty: Penalty) -> tuple[Array, float]:
        """The head of the default rule of a quadratic loss, and its gain; it is applied."""
        labels, everything = np.arange(self.task.n_labels), np.empty((0, 4))
        head, gain = np.zeros(len(labels)), 0.0
        for _ in range(3):  # a step is enough; further ones find what rounding leaves of targets far from 0
            self.largest = max(self.leader.ask("find_largest"))
            step, gained, _ = self.fit_head(everything, labels, penalty)
            self.leader.update(labels, step)
            head, gain = head + step, gain + gained
        return head, gain

    def mean_loss(self, held_out: bool = False) -> float:
        """The mean loss of the training examples, or of those held out."""
        task = self.task
        n, weight = (task.n_held_out, task.held_out_weight) if held_out else (task.n, task.weight)
        largest = max(self.leader.ask("find_losses", held_out))
        unit = choose_unit(largest, n * largest)
        return float(sum(self.leader.ask("sum_losses", unit)) * unit) / weight
