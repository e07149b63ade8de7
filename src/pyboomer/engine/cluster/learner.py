"""The learner leads: it keeps the promise of an engine (`promise.Engine`) for examples that a team of shards has."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.columns.binned import BinnedColumns
from pyboomer.engine import bins
from pyboomer.engine.cluster.shard import Block, Duty, OddsShard, Shard
from pyboomer.engine.cluster.steps import SMALL, ClusterSteps, Team
from pyboomer.engine.cpu.default_rule import find_default_head
from pyboomer.engine.cpu.ledger import Ledger, choose_layout
from pyboomer.engine.cpu.sampled import FEW
from pyboomer.engine.cpu.threads import Threads
from pyboomer.engine.heads import Penalty
from pyboomer.engine.plan import is_single, make_plan, plan_heads, plan_labels
from pyboomer.engine.promise import Chunk, Settings, Task
from pyboomer.engine.sampling import count_examples, count_labels
from pyboomer.engine.statistics import resize
from pyboomer.losses.logistic import label_wise_logistic
from pyboomer.losses.twins import QUADRATIC

MOST_LABELS = 256  # whose Hessians are added up: so many times as many numbers for a rule


class Summary(NamedTuple):
    """What is known of all examples together."""

    n: int
    weight: float
    largest_weight: float
    label_weights: bool  # whether some labels have weights other than 0 and 1
    n_held_out: int = 0
    held_out_weight: float = 0.0


class Course(NamedTuple):
    """How rules are learned by a team."""

    settings: Settings
    duty: Duty
    summary: Summary
    n_labels: int
    fixed_features: NDArray[np.int64]
    default: tuple[Array, float] | None  # the head of the default rule and its gain, if they are known
    n_rules: int  # that there are already


def check_settings(settings: Settings, n_labels: int) -> None:
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


def assign(settings: Settings, summary: Summary, n_labels: int, nominal: NDArray[np.int8]) -> Duty:
    """What shards are told before the default rule is known; see `cpu.sampled.suits` for when scores are odds."""
    size = count_examples(settings.max_samples, summary.n, True) if settings.bootstrap else 0
    complete = settings.head == "multi" and count_labels(settings.max_labels, n_labels) == n_labels
    by_odds = (
        0 < size * FEW <= summary.n
        and size <= SMALL
        and complete
        and settings.loss is label_wise_logistic
        and not summary.label_weights
    )
    single = is_single(settings.head, n_labels)
    return Duty(summary.n, size, int(settings.seed), nominal, settings.loss, single, by_odds, None)


def learn_default_head(task: Task, settings: Settings) -> tuple[Array, float]:
    """The head of the default rule and its gain, given one example for all that have the same labels."""
    threads = Threads(1)
    return find_default_head(Ledger(task, settings.loss, False, threads), settings)


def make_shard(blocks: Sequence[Block], held_out: Sequence[Block], duty: Duty, n_threads: int = 1) -> Shard:
    """The examples of one machine, those learned from and those held out."""
    kind = OddsShard if duty.by_odds else Shard
    others = kind(held_out, duty, n_threads) if held_out else None
    if not blocks:
        blocks = [_take_none(held_out[0])]
    return kind(blocks, duty, n_threads, others)


def _take_none(block: Block) -> Block:
    """No examples of a block."""
    _, codes, Y, weight, label_weight, scores = block
    none = [None if array is None else array[:0] for array in (weight, label_weight, scores)]
    return Block(0, codes[:, :0], Y[:0], *none)


class ClusterLearner:
    """The engine; it asks its team."""

    def __init__(self, team: Team, course: Course, n_threads: int = 1) -> None:
        settings, duty, summary, n_labels, fixed_features, default, n_rules = course
        self.summary, self.threads = summary, Threads(n_threads)
        layout = choose_layout(settings.loss, n_labels, duty.single)
        room = min(summary.n, SMALL)
        columns = BinnedColumns(np.empty((len(duty.nominal), 0), dtype=np.uint8), duty.nominal)
        task = Task(columns, np.empty((room, n_labels)), np.empty(0), fixed_features=fixed_features)
        self.plan = make_plan(task, settings, subtracts=False)
        self.labels = plan_labels(layout, room, settings)
        self.heads = plan_heads(resize(layout, len(self.labels.draw.drawn)), room, settings, duty.single)
        self.steps = ClusterSteps(team, duty, layout, self.plan, self.heads, self.threads, summary.largest_weight)
        self.chunks: list[Chunk] = []
        self.n_rules = n_rules
        if n_rules == 0:
            self._learn_default_rule(settings, n_labels, default)

    def _learn_default_rule(self, settings: Settings, n_labels: int, default: tuple[Array, float] | None) -> None:
        """Put down the default rule; if its head is not known yet, a step is all that it takes, but for rounding."""
        labels, steps = np.arange(n_labels), self.steps
        if default is None:
            assert settings.loss in QUADRATIC
            steps.labels, steps.label, steps.layout = None, -1, steps.all_labels
            head, gain = np.zeros(n_labels), 0.0
            for _ in range(3):  # further steps find what rounding leaves of targets far from 0
                steps.largest = max(steps.ask("tell_largest"))
                steps.cover(np.empty((0, 4)))
                step, gained, _ = steps.fit_head(Penalty(float(settings.l1), float(settings.default_l2)))
                steps.apply(labels, step)
                head, gain = head + step, gain + gained
        else:
            head, gain = default
        self.chunks.append(
            Chunk(
                n_conditions=np.zeros(1, dtype=np.int64),
                conditions=np.empty((0, 4)),
                n_scores=np.array([n_labels]),
                labels=labels.astype(np.int32),
                scores=head,
                coverage=np.array([self.summary.weight]),
                gain=np.array([gain]),
            )
        )
        self.n_rules = 1

    def learn(self, count: int) -> None:
        """Learn `count` more rules."""
        for _ in range(count):
            self.chunks.append(bins.learn_rule(self.steps, self.labels, self.heads, self.plan, self.n_rules))
            self.n_rules += 1

    def take_rules(self) -> list[Chunk]:
        """The rules learned since the last call."""
        chunks, self.chunks = self.chunks, []
        return chunks

    def training_loss(self) -> float:
        """The mean loss of the training examples."""
        return self.steps.sum_losses(False, self.summary.n) / self.summary.weight

    def held_out_loss(self) -> float:
        """The mean loss of the examples held out."""
        return self.steps.sum_losses(True, self.summary.n_held_out) / self.summary.held_out_weight

    def close(self) -> None:
        """Let the threads go."""
        self.threads.close()
