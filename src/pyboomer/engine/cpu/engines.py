"""Two engines of this machine: a ledger of the examples, and how rules are learned from it.

`ExampleEngine` learns example by example, from columns of any kind; its loops are compiled as a whole. `BinnedEngine`
learns from binned columns, by steps that threads can share.
"""

import numpy as np

from pyboomer.compiling.simd import make_zeros, pad
from pyboomer.engine import bins
from pyboomer.engine.cpu import dealing
from pyboomer.engine.cpu.boosting import Examples, Found, Hand, learn_rules
from pyboomer.engine.cpu.default_rule import learn_default_rule
from pyboomer.engine.cpu.ledger import Ledger
from pyboomer.engine.cpu.sampled import SampledSteps, suits
from pyboomer.engine.cpu.steps import LocalSteps
from pyboomer.engine.cpu.threads import Threads
from pyboomer.engine.plan import Single, is_single, make_plan, plan_heads, plan_labels
from pyboomer.engine.promise import Chunk, Replay, Settings, Task
from pyboomer.engine.statistics import resize


class Learner:
    """What both engines have: the ledger, the plan, and the rules learned so far."""

    def __init__(self, task: Task, settings: Settings, replay: Replay | None, n_rules: int, n_threads: int) -> None:
        n, n_labels = task.Y.shape
        single = is_single(settings.head, n_labels)
        self.task = task
        self.threads = Threads(n_threads)
        self.ledger = ledger = Ledger(task, settings.loss, single, self.threads)
        self.chunks: list[Chunk] = []
        self.n_rules = n_rules
        if replay is None:
            self.chunks.append(learn_default_rule(ledger, settings))
            self.n_rules = 1
        else:
            replayed = ledger.scores[:, :n_labels].copy()
            replay(replayed, 0, n_rules)
            ledger.scores[:, :n_labels] = replayed
        self.plan = make_plan(task, settings, subtracts=not isinstance(self, BinnedEngine))
        self.labels = plan_labels(ledger.layout, n, settings)
        layout = resize(ledger.layout, len(self.labels.draw.drawn))
        self.heads = plan_heads(layout, n, settings, single)

    def take_rules(self) -> list[Chunk]:
        """The rules learned since the last call."""
        chunks, self.chunks = self.chunks, []
        return chunks

    def training_loss(self) -> float:
        """The mean loss of the training examples."""
        return self.ledger.mean_loss()

    def close(self) -> None:
        """Let the threads go."""
        self.threads.close()


class ExampleEngine(Learner):
    """Learns example by example."""

    def __init__(self, task: Task, settings: Settings, replay: Replay | None = None, n_rules: int = 0) -> None:
        super().__init__(task, settings, replay, n_rules, n_threads=1)
        self.dealer = dealing.find_dealer(self.ledger, self.labels, self.heads, self.plan.search.seed)
        if self.dealer is None:
            self.ledger.write()
        k = self.heads.layout.n_labels
        self.found = Found(np.empty(k, dtype=np.int64), np.empty(k), make_zeros((1, pad(task.Y.shape[1])))[0])

    def learn(self, count: int) -> None:
        """Learn `count` more rules."""
        ledger, plan = self.ledger, self.plan
        most = 1 if isinstance(self.heads, Single) else self.heads.layout.n_labels
        while count > 0:
            examples, limit = self._show(count)
            chunk = _make_chunk(limit, plan.longest, most)
            learned, n_rows = learn_rules(
                self.task.columns, examples, self.labels, self.heads, plan, self.found, self.n_rules, chunk
            )
            if not ledger.has_twin:
                ledger.write(plan.sampling.rows[:n_rows])
            self.chunks.append(_cut_chunk(chunk, learned))
            self.n_rules += learned
            count -= learned

    def _show(self, count: int) -> tuple[Examples | Hand, int]:
        """The examples, and how many rules of so many may be learned before something else is to be done."""
        ledger = self.ledger
        if self.dealer is not None:
            hand, left = self.dealer.deal(self.n_rules)
            return hand, min(count, left)
        examples = Examples(ledger.truth, ledger.scores, ledger.statistics, self.task.weight)
        return examples, count if ledger.has_twin else 1

    def training_loss(self) -> float:
        """The mean loss of the training examples."""
        if self.dealer is not None:
            self.dealer.take_back()
        return super().training_loss()


class BinnedEngine(Learner):
    """Learns by bins, with several threads if there are any."""

    def __init__(self, task: Task, settings: Settings, replay: Replay | None = None, n_rules: int = 0) -> None:
        super().__init__(task, settings, replay, n_rules, settings.n_threads)
        if suits(self.ledger, self.labels, self.heads, self.plan):
            self.steps: LocalSteps = SampledSteps(self.ledger, self.plan, self.heads)
        else:
            self.ledger.write()
            self.steps = LocalSteps(self.ledger, self.plan, self.heads)

    def training_loss(self) -> float:
        """The mean loss of the training examples."""
        return self.steps.mean_loss()

    def learn(self, count: int) -> None:
        """Learn `count` more rules."""
        for _ in range(count):
            self.chunks.append(bins.learn_rule(self.steps, self.labels, self.heads, self.plan, self.n_rules))
            self.n_rules += 1


def _make_chunk(count: int, longest: int, most: int) -> Chunk:
    """Room for some rules, or for fewer with many conditions: memory is only taken where it is used."""
    numbers = np.empty((2, count), dtype=np.int64)
    conditions = np.empty((8 * count + 2 * longest, 4))
    labels, scores = np.empty(count * most, dtype=np.int32), np.empty(count * most)
    return Chunk(numbers[0], conditions, numbers[1], labels, scores, *np.empty((2, count)))


def _cut_chunk(chunk: Chunk, count: int) -> Chunk:
    """The first rules of a chunk."""
    n_conditions, n_scores = chunk.n_conditions[:count], chunk.n_scores[:count]
    conditions, used = chunk.conditions[: n_conditions.sum()], n_scores.sum()
    labels, scores = chunk.labels[:used], chunk.scores[:used]
    return Chunk(n_conditions, conditions, n_scores, labels, scores, chunk.coverage[:count], chunk.gain[:count])
