"""Sampled steps are local ones where a sample is a small part of the examples: what nobody looks at is not computed.

`LocalSteps` keeps the statistics of all examples up to date. Here the examples of a sample become a small data set of
their own, numbered anew: their statistics are written down once they are drawn, their bin numbers once a feature is
considered. The head of a rule needs the statistics of all examples covered: they are computed, added up and forgotten.

For that they have to be cheap, and memory has to be spared. So scores are kept as odds, exp(f), with the sign of the
label: to add to a score is to multiply then, and the label-wise logistic loss (Eq. 6) needs no exponential. In float32
an example of 20 labels is 96 bytes, which are read once for the head, and once more where its scores change.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows
from pyboomer.columns.binned import BinnedColumns
from pyboomer.compiling.kernel import inner, kernel
from pyboomer.compiling.simd import LANES, larger, load, make_zeros, prefetch, product, splat, store, where_above
from pyboomer.engine.cpu.boosting import draw_rows
from pyboomer.engine.cpu.ledger import Ledger
from pyboomer.engine.cpu.steps import LocalSteps
from pyboomer.engine.cpu.threads import divide
from pyboomer.engine.heads import Penalty, solve_diagonal
from pyboomer.engine.plan import Complete, Heads, Labels, Plan
from pyboomer.engine.rating import Rating
from pyboomer.engine.sampling import draw_few
from pyboomer.engine.statistics import Diagonal, count_columns, sum_weights
from pyboomer.engine.sweeping import BinSums
from pyboomer.losses.truth import Truth
from pyboomer.losses.twins import LABEL_WISE
from pyboomer.rules.operators import ABOVE, AT_MOST, EQUAL

FEW = 8  # a sample is small if the examples are as many times more
CHUNK = 4096  # examples whose sums are added up on their own: no sum is divided, whatever the number of threads
BLOCK = 32  # examples that memory is asked for at once
MOST = 1e30  # odds; a float32 holds them, and a float64 the product of eight

Odds = NDArray[np.float32]  # (N, width): exp(f), negative for a label that is not relevant, 0 for an unknown one


class Covered(NamedTuple):
    """The examples that a body covers, chunk by chunk, and sums over them."""

    rows: Rows  # (N,): those of a chunk, from where it begins
    counts: NDArray[np.int64]
    sums: Array  # (chunks, statistics)
    weight: Array


def find_odds(truth: Truth, scores: Array) -> Odds:
    """The odds that scores stand for."""
    odds = np.empty(scores.shape, dtype=np.float32)
    for begin in range(0, len(scores), CHUNK):
        some = slice(begin, begin + CHUNK)
        odds[some] = truth.signs[some] * np.clip(np.exp(np.clip(scores[some], -99, 99)), 1 / MOST, MOST)
    return odds


def find_factors(width: int, labels: NDArray[np.int64], scores: Array) -> Array:
    """What odds are multiplied by where scores are added for some labels."""
    factors = np.ones(width)
    factors[labels] = np.exp(scores)
    return factors


@inner(error_model="numpy", forceinline=True)
def derive(odds: Odds, position: int) -> tuple[Array, Array]:
    """Gradient and curvature of eight labels; where the odds are 0, both are."""
    zero = splat(0.0)
    signed = load(odds, position)
    size = where_above(signed, zero, signed, zero - signed)
    q = 1.0 / (1.0 + size)
    p = size * q
    return where_above(signed, zero, zero - q, p), p * q


@inner(error_model="numpy")
def fetch_odds(odds: Odds, rows: Rows, begin: int) -> None:
    """Ask for a block of examples."""
    width = odds.shape[1]
    for r in range(begin, min(begin + BLOCK, rows.shape[0])):
        for k in range(0, width, 2 * LANES):  # a cache line has sixteen numbers; the last one need not begin in one
            prefetch(odds, rows[r] * width + k)
        prefetch(odds, rows[r] * width + width - 1)


@kernel(error_model="numpy")
def write_statistics(odds: Odds, rows: Rows, statistics: Array) -> None:
    """Compute the statistics of some examples, one after another."""
    width, size = odds.shape[1], statistics.shape[1]
    for begin in range(0, rows.shape[0], BLOCK):
        fetch_odds(odds, rows, begin + BLOCK)
        for r in range(begin, min(begin + BLOCK, rows.shape[0])):
            for k in range(0, width, LANES):
                g, h = derive(odds, rows[r] * width + k)
                store(statistics, r * size + k, g)
                store(statistics, r * size + width + k, h)


@kernel
def copy_codes(
    codes: NDArray[np.uint8], features: NDArray[np.int64], examples: Rows, places: Rows, own: NDArray[np.uint8]
) -> None:
    """Copy the bin numbers of some features for the examples at some places of a sample."""
    for i in range(features.shape[0]):
        source, target = codes[features[i]], own[features[i]]
        for r in range(places.shape[0]):
            target[places[r]] = source[examples[places[r]]]


@inner
def mark(codes: NDArray[np.uint8], operator: int, value: float, marks: NDArray[np.uint8]) -> None:
    """Take the marks of examples that do not meet a condition; a missing value, the largest code, never meets one."""
    edge, missing = np.uint8(value), np.uint8(255)
    for i in range(codes.shape[0]):
        if operator == AT_MOST:
            marks[i] &= codes[i] <= edge
        elif operator == ABOVE:
            marks[i] &= (codes[i] > edge) & (codes[i] != missing)
        elif operator == EQUAL:
            marks[i] &= codes[i] == edge
        else:
            marks[i] &= (codes[i] != edge) & (codes[i] != missing)


@inner
def cover_chunk(codes: NDArray[np.uint8], body: Array, begin: int, marks: NDArray[np.uint8], rows: Rows) -> np.int64:
    """List the examples of a chunk that a body covers; returns how many there are."""
    for i in range(marks.shape[0]):
        marks[i] = 1
    for c in range(body.shape[0]):
        own = codes[np.int64(body[c, 0])][begin : begin + marks.shape[0]]
        mark(own, np.int64(body[c, 1]), body[c, 2], marks)
    n_covered = np.uint64(0)
    for i in range(marks.shape[0]):
        rows[n_covered] = begin + i
        n_covered += np.uint64(marks[i])
    return np.int64(n_covered)


@kernel(error_model="numpy")
def sum_chunks(
    codes: NDArray[np.uint8],
    body: Array,
    odds: Odds,
    weight: Array,
    marks: NDArray[np.uint8],
    covered: Covered,
    first: int,
    last: int,
) -> None:
    """Find who is covered in chunks `first` to `last` - 1, and sum their statistics (Alg. 2, line 1)."""
    width = odds.shape[1]
    for c in range(first, last):
        begin, end = c * CHUNK, min((c + 1) * CHUNK, weight.shape[0])
        count = cover_chunk(codes, body, begin, marks[: end - begin], covered.rows[begin:end])
        rows, sums = covered.rows[begin : begin + count], covered.sums[c]
        for s in range(sums.shape[0]):
            sums[s] = 0.0
        total = 0.0
        fetch_odds(odds, rows, 0)
        for start in range(0, count, BLOCK):
            stop = min(start + BLOCK, count)
            fetch_odds(odds, rows, stop)
            for k in range(0, width, LANES):
                one, two = load(sums, k), load(sums, width + k)
                for r in range(start, stop):
                    g, h = derive(odds, rows[r] * width + k)
                    one, two = one + weight[rows[r]] * g, two + weight[rows[r]] * h
                store(sums, k, one)
                store(sums, width + k, two)
            for r in range(start, stop):
                total += weight[rows[r]]
        covered.counts[c], covered.weight[c] = count, total


@kernel(error_model="numpy")
def multiply_odds(odds: Odds, rows: Rows, factors: Array) -> None:
    """Multiply the odds of some examples by the exponentials of a head, up to what they hold."""
    width, zero, most, least = odds.shape[1], splat(0.0), splat(MOST), splat(1 / MOST)
    fetch_odds(odds, rows, 0)
    for start in range(0, rows.shape[0], BLOCK):
        stop = min(start + BLOCK, rows.shape[0])
        fetch_odds(odds, rows, stop)
        for r in range(start, stop):
            for k in range(0, width, LANES):
                old = load(odds, rows[r] * width + k)
                new = old * load(factors, k)
                size = larger(where_above(new, zero, new, zero - new), least)
                size = where_above(size, most, most, size)
                negative = where_above(zero, old, zero - size, zero)
                store(odds, rows[r] * width + k, where_above(old, zero, size, negative))


@kernel(error_model="numpy")
def multiply_chunks(odds: Odds, covered: Covered, factors: Array, first: int, last: int) -> None:
    """Multiply the odds of the examples covered in some chunks."""
    for c in range(first, last):
        multiply_odds(odds, covered.rows[c * CHUNK : c * CHUNK + covered.counts[c]], factors)


@kernel(error_model="numpy")
def sum_loss(odds: Odds, weight: Array) -> float:
    """The weighted sum of the loss (Eq. 6): log(1 + 1 / odds) of relevant labels, log(1 + odds) of others."""
    width, zero, one = odds.shape[1], splat(0.0), splat(1.0)
    sums = 0.0
    for n in range(odds.shape[0]):
        value = 0.0
        for k in range(0, width, LANES):
            signed = load(odds, n * width + k)
            value += np.log(product(1.0 + where_above(signed, zero, one / signed, zero - signed)))
        sums += weight[n] * value
    return sums


def suits(ledger: Ledger, labels: Labels, heads: Heads, plan: Plan) -> bool:
    """Whether samples are small, heads about all labels, and odds enough to know."""
    truth = ledger.truth
    small = 0 < plan.sampling.size * FEW <= len(ledger.everyone)
    plain = isinstance(truth, Truth) and truth.loss == LABEL_WISE and len(truth.weight) == 0
    return small and plain and isinstance(heads, Complete) and not labels.some


class SampledSteps(LocalSteps):
    """The steps that learn from small samples; the ledger stays as it was at the beginning."""

    def __init__(self, ledger: Ledger, plan: Plan, heads: Heads) -> None:
        super().__init__(ledger, plan, heads)
        assert isinstance(ledger.truth, Truth)
        n, n_chunks, size = len(ledger.everyone), -(-len(ledger.everyone) // CHUNK), plan.sampling.size
        self.odds = find_odds(ledger.truth, ledger.scores)
        width = count_columns(ledger.layout)
        self.parts = divide(n_chunks, self.threads.count(n * width))
        counts, sums = np.zeros(n_chunks, dtype=np.int64), make_zeros((n_chunks, width))
        self.chunks = Covered(np.empty(n, dtype=np.uint32), counts, sums, np.zeros(n_chunks))
        # The sample: what is at which of its places. Sums, sweeps and narrowing know nothing else.
        self.codes, nominal = self.columns.codes, self.columns.nominal
        self.columns = BinnedColumns(np.empty((len(self.codes), size), dtype=np.uint8), nominal)
        self.examples, self.terms = np.empty(size, dtype=np.uint32), make_zeros((size, width))
        self.rows, self.weights = np.empty(size, dtype=np.uint32), np.empty(size)
        plan.sampling.weights[:] = 0.0

    def begin(self, rule: int) -> None:
        """Draw the sample of a rule, and write its statistics down."""
        sampling, search, ledger = self.plan.sampling, self.plan.search, self.ledger
        weight = ledger.task.weight
        if len(sampling.strata.ends):
            n_sampled = int(draw_rows(sampling, search.seed, rule, weight))
            self.examples[:n_sampled] = sampling.rows[:n_sampled]
            self.weights[:n_sampled] = sampling.weights[sampling.rows[:n_sampled]]
        else:
            bits, size = search.runs.entries.bits, sampling.size
            n_sampled = int(
                draw_few(search.seed, rule, size, weight, sampling.weights, bits, self.examples, self.weights)
            )
        self.n_covered, self.layout, self.label = n_sampled, ledger.layout, -1
        self.rows[:n_sampled] = ledger.everyone[:n_sampled]
        self.weight = sum_weights(self.rows[:n_sampled], self.weights)

        def work(part: slice) -> None:
            write_statistics(self.odds, self.examples[part], self.terms[part])

        self.threads.share(work, divide(n_sampled, self.threads.count(self.terms[:n_sampled].size)))

    def sum_bins(self, features: NDArray[np.int64]) -> tuple[BinSums, NDArray[np.int8]]:
        """Sums over the bins of some features, and which of these are nominal."""
        self._copy(features)
        return super().sum_bins(features)

    def refine(self, rating: Rating, rule: int, body: Array, size: int, best: float) -> tuple[int, float]:
        """Refine a rule to the end, example by example."""
        self._copy(np.arange(len(self.codes)))
        return super().refine(rating, rule, body, size, best)

    def _copy(self, features: NDArray[np.int64]) -> None:
        copy_codes(self.codes, features, self.examples, self.rows[: self.n_covered], self.columns.codes)

    def cover(self, body: Array) -> None:
        """Cover all examples that meet the conditions of a body: they are found along with their sums."""
        self.body = body

    def fit_head(self, penalty: Penalty) -> tuple[Array, float, float]:
        """The head of all examples covered, its gain and its coverage."""
        chunks, weight, layout = self.chunks, self.ledger.task.weight, self.layout
        assert isinstance(layout, Diagonal)

        def work(part: slice) -> None:
            marks = np.empty(CHUNK, dtype=np.uint8)
            sum_chunks(self.codes, self.body, self.odds, weight, marks, chunks, part.start, part.stop)

        self.threads.share(work, self.parts)
        head = np.empty(layout.n_labels)
        gain = solve_diagonal(layout, chunks.sums.sum(axis=0), penalty, head)
        return head, gain, float(chunks.weight.sum())

    def apply(self, labels: NDArray[np.int64], scores: Array) -> None:
        """Add scores to what is covered."""
        factors = find_factors(self.odds.shape[1], labels, scores)

        def work(part: slice) -> None:
            multiply_chunks(self.odds, self.chunks, factors, part.start, part.stop)

        self.threads.share(work, self.parts)

    def mean_loss(self) -> float:
        """The mean loss of the training examples."""
        weight = self.ledger.task.weight
        return float(sum_loss(self.odds, weight)) / float(weight.sum())
