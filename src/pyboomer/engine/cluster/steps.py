"""Cluster steps are those of learning by bins where shards have the examples, see `promise.Steps`: those of the leader.

A sample that is small, or has become so, is handed over to the leader, who goes on as if it was all there is
(`cpu.steps.SampleSteps`): that is how most rules are learned from beginning to end. Of a large one, the leader combines
sums. Whether it is small depends on the number of examples alone, never on the number of shards.

Where shards keep odds, the leader asks for a sample one rule ahead: bin numbers never change, and odds change by what
the leader knows, who brings those of the sample up to date as the shards do theirs. So it need not wait for a sample,
which comes while it finds the conditions of the rule before.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.columns.binned import BinnedColumns
from pyboomer.compiling.simd import make_zeros, pad
from pyboomer.engine.cluster.fixed import Scales, choose_unit
from pyboomer.engine.cluster.shard import Duty, Found, Handed
from pyboomer.engine.cpu.sampled import find_factors, multiply_odds, write_statistics
from pyboomer.engine.cpu.steps import SampleSteps
from pyboomer.engine.cpu.threads import Threads, divide
from pyboomer.engine.heads import Penalty, solve_diagonal, solve_label, solve_system, unpack
from pyboomer.engine.plan import Heads, Plan
from pyboomer.engine.rating import Rating
from pyboomer.engine.sampling import fill_with_draw
from pyboomer.engine.statistics import Dense, Diagonal, Layout, count_columns, resize, sum_weights, take_labels
from pyboomer.engine.sweeping import BinSums, make_bin_sums

SMALL = 2**15  # examples of a sample that is handed over
AHEAD = 4  # conditions whose features are handed over at once
MOST_OFTEN = 64  # times the expected number: no example is ever drawn as often

Order = tuple[str, tuple[Any, ...]]


class Team(Protocol):
    """All shards."""

    def ask(self, orders: Sequence[Order]) -> Callable[[], list[Any]]:
        """Let every shard obey some orders, see `Shard.obey`; returns who waits for the answers.

        Shards answer in an order of their own, which is always the same.
        """


class ClusterSteps(SampleSteps):
    """The steps of the leader."""

    def __init__(
        self, team: Team, duty: Duty, layout: Layout, plan: Plan, heads: Heads, threads: Threads, largest_weight: float
    ) -> None:
        room = len(plan.sampling.rows)
        codes = np.empty((len(duty.nominal), room), dtype=np.uint8)
        super().__init__(BinnedColumns(codes, duty.nominal), layout, plan, heads, threads)
        self.team, self.duty, self.largest_weight = team, duty, largest_weight
        self.all_labels = layout
        self.room = make_zeros((room, count_columns(layout)))  # for the statistics of a sample
        self.odds = np.empty((room if duty.by_odds else 0, pad(layout.n_labels)), dtype=np.float32)
        self.numbers = np.empty(room, dtype=np.int64)
        self.places = np.arange(room, dtype=np.uint32)
        self.starts: list[int] = []  # of what each shard has handed over
        self.sampled = -1  # the rule whose sample is here ...
        self.take_next: Callable[[], None] | None = None  # ... and who waits for the next one
        self.handed = self.places[:0]  # what a rule covers of the next one
        self.has = np.zeros(len(duty.nominal), dtype=bool)  # features whose codes have been handed over
        self.waiting: list[Order] = []
        self.largest = 1.0  # statistic there has been
        self.is_small = min(duty.size or duty.n, duty.n) <= SMALL
        self.labels: NDArray[np.int64] | None = None  # that sums and heads are about; None for all

    def send(self, name: str, *arguments: Any) -> Callable[[], list[Any]]:
        """Who waits for what all shards answer; orders that nobody had to wait for are sent along."""
        orders, self.waiting = [*self.waiting, (name, arguments)], []
        return self.team.ask(orders)

    def ask(self, name: str, *arguments: Any) -> list[Any]:
        """What all shards answer."""
        return self.send(name, *arguments)()

    def _choose_units(self, often: int, count: int, factor: float = 1.0) -> tuple[float, float]:
        """The units of statistics and of weights, if an example counts `often` times at most, and all `count` times."""
        heaviest, total, largest = often * self.largest_weight, count * self.largest_weight, factor * self.largest
        return choose_unit(heaviest * largest, total * largest), choose_unit(heaviest, total)

    # --- The sample of a rule -----------------------------------------------------------------------------------------

    def begin(self, rule: int) -> None:
        """Draw the sample of a rule."""
        duty, size = self.duty, self.duty.size
        self.rule, self.layout, self.label, self.labels = rule, self.all_labels, -1, None
        self.gathered = self.is_small
        if self.is_small:
            if self.sampled != rule:
                self._order_sample(rule)()
            if duty.by_odds:
                self.take_next = self._order_sample(rule + 1)
                self._write_statistics()
            return
        answers = self.ask("draw", rule)
        self.n_covered, self.largest = sum(n for n, _ in answers), max(largest for _, largest in answers)
        often = MOST_OFTEN * (1 + size // duty.n) if size > 0 else 1
        self.units = self._choose_units(often, size or duty.n)
        self.scales = Scales(*(1 / unit for unit in self.units))
        self._weigh()

    def _order_sample(self, rule: int) -> Callable[[], None]:
        """Ask for the sample of a rule; returns who waits for it, and takes it over."""
        features = self._list_features(rule, 0, AHEAD)
        wait = self.send("sample", rule, features)

        def take_over() -> None:
            answers = wait()
            self.largest = max(largest for _, largest in answers)
            self._gather([handed for handed, _ in answers], features)
            self.sampled = rule

        return take_over

    def _write_statistics(self) -> None:
        """Compute the statistics of the sample from its odds."""

        def work(part: slice) -> None:
            write_statistics(self.odds, self.places[part], self.room[part])

        self.threads.share(work, divide(self.n_covered, self.threads.n_threads))

    def _list_features(self, rule: int, size: int, count: int) -> NDArray[np.int64]:
        """The features drawn for conditions `size` to `size + count` - 1 of a rule."""
        search = self.plan.search
        drawn = np.zeros(len(self.has), dtype=bool)
        for step in range(size, min(size + count, self.plan.longest)):
            fill_with_draw(search.seed, rule, step + 1, search.features)
            drawn[search.features.drawn] = True
        return np.flatnonzero(drawn)

    def _weigh(self) -> None:
        self.weight = sum(self.ask("weigh", self.units[1])) * self.units[1]

    def _gather(self, handed: Sequence[Handed], features: NDArray[np.int64]) -> None:
        """Take over what is covered: it lies as it comes, and is listed in the order of the examples."""
        numbers = np.concatenate([part.numbers for part in handed])
        n = len(numbers)
        self.numbers[:n], self.rows[:n] = numbers, np.argsort(numbers, kind="stable")
        self.starts = [0, *np.cumsum([len(part.numbers) for part in handed])]
        terms = self.odds if self.duty.by_odds else self.room
        for part, (begin, end) in zip(handed, pairwise(self.starts), strict=True):
            self.weights[begin:end], terms[begin:end] = part.weights, part.terms
            self.columns.codes[features, begin:end] = part.codes
        self.has[:] = False
        self.has[features] = True
        self.n_covered, self.weight = n, sum_weights(self.rows[:n], self.weights)
        self.statistics = self.terms = self.room
        self.gathered = True

    def _gather_rest(self) -> None:
        """Take over a large sample that has become a small one; sums stay about what they have been about."""
        features = self._list_features(self.rule, 0, self.plan.longest if self.plan.longest <= AHEAD else AHEAD)
        labels, label, self.layout, self.label = self.labels, self.label, self.all_labels, -1
        self._gather(self.ask("hand_over", features), features)
        if labels is not None:
            super().focus(labels)
        if label >= 0:
            super().pair(label)

    def _look_up(self, features: NDArray[np.int64]) -> None:
        """See to it that the bin numbers of some features are there for all that is covered."""
        features = features[~self.has[features]]
        if len(features):
            rows = self.rows[: self.n_covered]
            for places, codes in self.ask("look_up", self.numbers[rows], features):
                self.columns.codes[features[:, None], rows[places]] = codes
            self.has[features] = True

    def focus(self, labels: NDArray[np.int64]) -> None:
        """From now on, sums and heads are about these labels."""
        self.labels = labels if self.labels is None else self.labels[labels]
        if self.gathered:
            super().focus(labels)
            return
        self.layout = resize(self.layout, len(labels))
        row = 1.0 + np.arange(count_columns(self.all_labels))[None]
        taken = np.empty((1, count_columns(self.layout)))
        take_labels(self.all_labels, row, self.labels, taken)
        self.ask("take", taken[0].astype(np.int64) - 1)

    def pair(self, label: int) -> None:
        """From now on, they are about one label."""
        if self.gathered:
            super().pair(label)
            return
        self.label = label
        first = self._find_label()
        self.ask("take", np.array([first, first + pad(self.all_labels.n_labels)]))

    def _find_label(self) -> int:
        """The one label, among all."""
        return self.label if self.labels is None else int(self.labels[self.label])

    def sum_bins(self, features: NDArray[np.int64]) -> tuple[BinSums, NDArray[np.int8]]:
        """Sums over the bins of some features, and which of these are nominal."""
        if self.gathered:
            self._look_up(features)
            return super().sum_bins(features)
        answers = self.ask("sum_bins", features, self.scales)
        sums, weight = (sum(parts[1:], parts[0]) for parts in zip(*answers, strict=True))
        bins = make_bin_sums(len(features), sums.shape[2])
        bins.sums[:], bins.weight[:] = sums * self.units[0], weight * self.units[1]
        return bins, self.columns.nominal[features]

    def narrow(self, feature: int, operator: int, value: float) -> None:
        """Narrow the coverage by a condition."""
        if self.gathered:
            super().narrow(feature, operator, value)
            return
        self.n_covered = sum(self.ask("narrow", feature, operator, value))
        if self.n_covered <= SMALL:
            self._gather_rest()
        else:
            self._weigh()

    def sum_sample(self, sums: Array) -> float:
        """Sums of what is covered, and its weight."""
        if self.gathered:
            return super().sum_sample(sums)
        sums[:] = sum(self.ask("sum_sample", self.scales)) * self.units[0]
        return self.weight

    def refine(self, rating: Rating, rule: int, body: Array, size: int, best: float) -> tuple[int, float]:
        """Refine a rule to the end, example by example."""
        longest = len(body) - size
        everything = np.arange(len(self.has)) if longest > AHEAD else self._list_features(self.rule, size, longest)
        self._look_up(everything)
        return super().refine(rating, rule, body, size, best)

    # --- All examples -------------------------------------------------------------------------------------------------

    def cover(self, body: Array) -> None:
        """Cover all examples that meet the conditions of a body: they are found along with their sums."""
        self.body = body.copy()

    def _sum_all(self, layout: Layout) -> tuple[Array, float]:
        """Sums of all labels over what is covered, and its weight."""
        written_out = layout is not self.all_labels
        units = self._choose_units(1, self.duty.n, max(1.0, 2 * self.largest) if written_out else 1.0)  # of a - b^2
        wait = self.send("finish", self.body, Scales(*(1 / unit for unit in units)), written_out)
        if self.take_next is not None:  # the sample of this rule is no longer needed
            self.take_next()
        answers: list[Found] = wait()
        handed = [start + found.handed for start, found in zip(self.starts, answers, strict=False)]
        self.handed = np.concatenate([self.places[:0], *handed])
        sums = np.sum([found.sums for found in answers], axis=0).astype(np.float64) * units[0]
        return sums, float(sum(found.weight for found in answers) * units[1])

    def _pick(self, layout: Layout, sums: Array) -> Array:
        """Sums of the labels that a head is about."""
        if self.labels is None:
            return sums
        taken = make_zeros((1, count_columns(resize(layout, len(self.labels)))))
        take_labels(layout, sums[None], self.labels, taken)
        return np.asarray(taken[0])

    def sum_covered(self, sums: Array) -> float:
        """Sums of all examples covered, and their weight."""
        found, weight = self._sum_all(self.all_labels)
        sums[:] = self._pick(self.all_labels, found)
        return weight

    def fit_head(self, penalty: Penalty) -> tuple[Array, float, float]:
        """The head of all examples covered, its gain and its coverage."""
        k = self.all_labels.n_labels
        layout = self.all_labels if isinstance(self.all_labels, Diagonal) else Dense(k)
        found, coverage = self._sum_all(layout)
        if self.label >= 0:
            label = self._find_label()
            gain, score = solve_label(found[label], found[pad(k) + label], penalty)
            return np.array([score]), gain, coverage
        sums, m = self._pick(layout, found), self.layout.n_labels
        head = np.empty(m)
        if isinstance(layout, Diagonal):
            return head, solve_diagonal(Diagonal(m), sums, penalty, head), coverage
        A, L = make_zeros((m, pad(m))), make_zeros((m, pad(m)))
        unpack(m, sums, 0.0, A, head)
        return head, solve_system(sums, penalty, A, L, head), coverage

    def apply(self, labels: NDArray[np.int64], scores: Array) -> None:
        """Add scores to what is covered: of the next sample now; where all examples are, nobody has to wait for it."""
        self.waiting.append(("apply", (labels, scores)))
        if self.duty.by_odds:
            multiply_odds(self.odds, self.handed, find_factors(self.odds.shape[1], labels, scores))

    def sum_losses(self, held_out: bool, count: int) -> float:
        """The sum of the loss over all training examples, or over others, of which there are so many."""
        largest = max(self.ask("find_losses", held_out))
        unit = choose_unit(largest, count * largest)
        return float(sum(self.ask("sum_losses", unit)) * unit)
