"""Steps of learning by bins, see `promise.Steps`: those about a sample, and local ones, where all examples are here."""

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.columns.binned import BinnedColumns
from pyboomer.columns.entries import keep
from pyboomer.compiling.simd import make_zeros
from pyboomer.engine.cpu.boosting import draw_rows, pack_pairs
from pyboomer.engine.cpu.ledger import Ledger
from pyboomer.engine.cpu.refinement import cover, refine_to_the_end
from pyboomer.engine.cpu.threads import Threads
from pyboomer.engine.heads import Penalty, make_room, solve_label
from pyboomer.engine.plan import Heads, Plan, Single
from pyboomer.engine.rating import Rating
from pyboomer.engine.statistics import (
    Layout,
    count_columns,
    resize,
    sum_label,
    sum_pairs,
    sum_rows,
    sum_weights,
    take_labels,
)
from pyboomer.engine.sweeping import BinSums, Sample, make_bin_sums


class SampleSteps:
    """The steps that are about the sample of a rule, whose columns, statistics and weights are in this process.

    `begin` sets what is sampled: `rows` and `weights`, `n_covered` and `weight`, `statistics` and `terms`.
    """

    n_covered: int
    weight: float
    statistics: Array  # of the labels that sums are about
    terms: Array  # these, or pairs
    label: int  # whose pairs they are; -1 for none

    def __init__(self, columns: BinnedColumns, layout: Layout, plan: Plan, heads: Heads, threads: Threads) -> None:
        self.columns, self.layout, self.plan, self.threads = columns, layout, plan, threads
        self.rows, self.weights = plan.sampling.rows, plan.sampling.weights
        self.pairs = heads.pairs if isinstance(heads, Single) else np.empty((0, 2))
        self.bins = make_bin_sums(len(plan.search.features.drawn), count_columns(layout))
        self.bins_of_pairs = make_bin_sums(len(plan.search.features.drawn), 2)

    def focus(self, labels: NDArray[np.int64]) -> None:
        """From now on, sums and heads are about these labels."""
        layout = resize(self.layout, len(labels))
        own = make_zeros((len(self.statistics), count_columns(layout)))
        take_labels(self.layout, self.statistics, labels, own)
        self.layout, self.statistics, self.terms = layout, own, own

    def pair(self, label: int) -> None:
        """From now on, they are about one label."""
        pack_pairs(self.statistics, label, self.rows[: self.n_covered], self.pairs)
        self.label, self.terms = label, self.pairs

    def _take_sample(self) -> Sample:
        return Sample(self.terms, self.weights, self.rows[: self.n_covered], self.n_covered, self.weight)

    def sum_bins(self, features: NDArray[np.int64]) -> tuple[BinSums, NDArray[np.int8]]:
        """Sums over the bins of some features, and which of these are nominal."""
        bins = self.bins_of_pairs if self.label >= 0 else self.bins
        width = self.terms.shape[1]
        if bins.sums.shape[2] > width:  # of fewer labels
            bins = make_bin_sums(len(features), width)
        self.threads.sum_bins(self.columns.codes, features, self._take_sample(), bins)
        return bins, self.columns.nominal[features]

    def narrow(self, feature: int, operator: int, value: float) -> None:
        """Narrow the coverage by a condition."""
        covered = self.rows[: self.n_covered]
        self.n_covered = keep(self.columns, feature, operator, value, covered, self.plan.search.runs.entries.examples)
        self.weights[covered[self.n_covered :]] = 0.0
        self.weight = sum_weights(covered[: self.n_covered], self.weights)

    def sum_sample(self, sums: Array) -> float:
        """Sums of what is covered, and its weight."""
        self._sum(self.rows[: self.n_covered], self.weights, sums)
        return self.weight

    def refine(self, rating: Rating, rule: int, body: Array, size: int, best: float) -> tuple[int, float]:
        """Refine a rule to the end, example by example."""
        self.n_covered, self.weight, size, best = refine_to_the_end(
            self.columns, self._take_sample(), rating, self.plan.search, rule, body, size, best
        )
        return size, best

    def _sum(self, rows: Rows, weights: Array, sums: Array) -> None:
        if self.label >= 0:
            sum_pairs(self.terms, rows, weights, sums)
        else:
            sum_rows(self.terms, 0, rows, weights, sums)


class LocalSteps(SampleSteps):
    """The steps that learn from a ledger."""

    def __init__(self, ledger: Ledger, plan: Plan, heads: Heads) -> None:
        super().__init__(ledger.task.columns, ledger.layout, plan, heads, ledger.threads)
        self.ledger, self.room = ledger, make_room(ledger.layout)

    def begin(self, rule: int) -> None:
        """Draw the sample of a rule."""
        ledger = self.ledger
        self.n_sampled = draw_rows(self.plan.sampling, self.plan.search.seed, rule, ledger.task.weight)
        self.n_covered = self.n_sampled
        self.layout, self.statistics, self.terms = ledger.layout, ledger.statistics, ledger.statistics
        self.label = -1
        self.weight = sum_weights(self.rows[: self.n_covered], self.weights)

    def cover(self, body: Array) -> None:
        """Cover all examples that meet the conditions of a body."""
        scratch = self.plan.search.runs.entries.examples
        self.covered = self.rows[: cover(self.columns, body, self.rows, self.n_covered, self.n_sampled, scratch)]

    def sum_covered(self, sums: Array) -> float:
        """Sums of all examples covered, and their weight."""
        weight = self.ledger.task.weight
        self._sum(self.covered, weight, sums)
        return float(sum_weights(self.covered, weight))

    def fit_head(self, penalty: Penalty) -> tuple[Array, float, float]:
        """The head of all examples covered, its gain and its coverage."""
        weight = self.ledger.task.weight
        if self.label >= 0:
            g, h, coverage = sum_label(self.statistics, self.label, self.covered, weight)
            gain, score = solve_label(g, h, penalty)
            return np.array([score]), gain, coverage
        head = np.empty(self.layout.n_labels)
        gain, coverage = self.threads.fit_head(
            self.layout, self.statistics, self.covered, weight, penalty, self.room, head
        )
        return head, gain, coverage

    def apply(self, labels: NDArray[np.int64], scores: Array) -> None:
        """Add scores to what is covered, and bring the statistics up to date."""
        self.ledger.apply(self.covered, labels, scores)

    def mean_loss(self) -> float:
        """The mean loss of the training examples."""
        return self.ledger.mean_loss()
