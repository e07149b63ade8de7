"""The engine of this process: a training state, and threads that learn the rules of a round side by side.

Rounds of one rule are learned by compiled code as a whole, many in a row (`boosting.learn_rules`); larger ones as their
training state does it (`rounds`).
"""

import numpy as np

from pyboomer.columns.binned import BinnedColumns
from pyboomer.compiling.simd import pad
from pyboomer.engine.cpu import groups
from pyboomer.engine.cpu.boosting import Examples, LabelGroup, learn_rules
from pyboomer.engine.cpu.default_rule import learn_default_rule
from pyboomer.engine.cpu.rounds import DenseState, HostOdds, make_buffers, suits_odds
from pyboomer.engine.cpu.state import ExampleState
from pyboomer.engine.cpu.threads import Threads
from pyboomer.engine.odds_state import OddsState
from pyboomer.engine.protocol import Chunk, Replay, Settings, Task
from pyboomer.engine.rounds import RoundLearner, TrainingState, find_round
from pyboomer.engine.search.plan import Single, is_single


class HostEngine:
    """See `protocol.Engine`.

    To go on after `n_rules` rules that there are already, `replay` adds their scores.
    """

    def __init__(self, task: Task, settings: Settings, replay: Replay | None = None, n_rules: int = 0) -> None:
        n_labels = task.Y.shape[1]
        single = is_single(settings.head, n_labels)
        self.task, self.settings = task, settings
        self.threads = Threads(settings.n_threads)
        self.state = state = ExampleState(task, settings.loss, single, self.threads, settings.rules_per_round > 1)
        self.chunks: list[Chunk] = []
        self.n_rules = n_rules
        self.grouped: groups.GroupedLabels | None = None
        self.rounds: RoundLearner | None = None
        self.by_odds = isinstance(task.columns, BinnedColumns) and suits_odds(state, settings)
        scores, before = state.scores, None
        if replay is None:
            rule = learn_default_rule(state, settings)
            self.chunks.append(rule)
            self.n_rules = 1
            if self.by_odds:  # the same for all examples
                scores = np.zeros((1, pad(n_labels)))
                scores[0, :n_labels] = rule.scores
            else:
                state.scores[:, :n_labels] += rule.scores
        else:
            before = self._replay(replay)
        if self.by_odds or settings.rules_per_round > 1:
            self._plan_rounds(scores, before)
        else:
            self._plan_rules()

    def _replay(self, replay: Replay) -> np.ndarray | None:
        """Add the scores of rules that there are; returns those at the beginning of the round, if it has begun."""
        first, _ = find_round(self.n_rules, self.settings.rules_per_round)
        scores, k, before = self.state.scores, self.state.n_labels, None
        for some in ((0, first), (first, self.n_rules)):
            if some[0] < some[1]:
                before = scores.copy() if some[0] == first else None
                replayed = scores[:, :k].copy()
                replay(replayed, *some)
                scores[:, :k] = replayed
        return before

    # --- Rounds of one rule -------------------------------------------------------------------------------------------

    def _plan_rules(self) -> None:
        """Prepare for rules that are learned one after another."""
        state = self.state
        self.plan, self.labels, self.heads, self.found = make_buffers(state, self.settings)
        self.grouped = groups.group_labels(state, self.labels, self.heads, self.plan.search.seed)
        if self.grouped is None:
            state.write()

    def _learn_rules(self, count: int) -> None:
        state, plan = self.state, self.plan
        most = 1 if isinstance(self.heads, Single) else self.heads.layout.n_labels
        while count > 0:
            examples, limit = self._show(count)
            chunk = _make_chunk(limit, plan.longest, most)
            learned, n_rows = learn_rules(
                self.task.columns, examples, self.labels, self.heads, plan, self.found, self.n_rules, chunk
            )
            if not state.is_compiled:
                state.write(plan.sampling.rows[:n_rows])
            self.chunks.append(_cut_chunk(chunk, learned))
            self.n_rules += learned
            count -= learned

    def _show(self, count: int) -> tuple[Examples | LabelGroup, int]:
        """The examples, and how many rules of so many may be learned before something else is to be done."""
        state = self.state
        if self.grouped is not None:
            group, left = self.grouped.show(self.n_rules)
            return group, min(count, left)
        examples = Examples(state.truth, state.scores, state.statistics, self.task.weight)
        return examples, count if state.is_compiled else 1

    # --- Larger rounds ------------------------------------------------------------------------------------------------

    def _plan_rounds(self, scores: np.ndarray, before: np.ndarray | None) -> None:
        """Prepare for rules that are learned in rounds."""
        state: TrainingState
        if self.by_odds:
            shard = HostOdds(self.state, self.settings, scores, before)
            state = OddsState(shard, self.state.n_labels, self.settings, shard.largest, shard.total)
        else:
            state = DenseState(self.state, self.settings, before)
        self.rounds = RoundLearner(state, self.settings)

    # --- The protocol -------------------------------------------------------------------------------------------------

    def learn(self, count: int) -> None:
        """Learn `count` more rules."""
        if self.rounds is None:
            self._learn_rules(count)
        else:
            self.chunks += self.rounds.learn(self.n_rules, count)
            self.n_rules += count

    def take_rules(self) -> list[Chunk]:
        """The rules learned since the last call."""
        chunks, self.chunks = self.chunks, []
        return chunks

    def training_loss(self) -> float:
        """The mean loss of the training examples."""
        if self.rounds is not None:
            self.rounds.apply()
            return self.rounds.state.mean_loss()
        if self.grouped is not None:
            self.grouped.scatter_groups()
        return self.state.mean_loss()

    def close(self) -> None:
        """End the threads."""
        self.threads.close()


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
