"""Boosting is the loop over rules: Algorithm 1.

The loop itself is compiled and learns a chunk of rules per call, without the interpreter lock; between two calls,
Python may report, stop or store. All its state is the scores of the training examples, the statistics that follow
from them, and the rules learned so far.
"""

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyboomer.features import Categories, Columns, cover_rows, is_sparse, narrow_rows
from pyboomer.heads import fit_head
from pyboomer.kernel import kernel
from pyboomer.losses import Loss
from pyboomer.rating import RATE_BOUND, RATE_DECOMPOSABLE, RATE_EXACT, RATE_SINGLE, Settings, make_workspace
from pyboomer.refinement import grow, refine_rule
from pyboomer.rules import RuleEnsemble
from pyboomer.sampling import NO_STRATA, Strata, draw_examples
from pyboomer.simd import LANES, make_zeros
from pyboomer.statistics import (
    OUTER,
    SQUARED,
    USER_DEFINED,
    Truth,
    add_scores_to_rows,
    choose_layout,
    choose_update,
    count_columns,
    pad,
    update_statistics,
    write_statistics,
)

Array = NDArray[np.float64]
LARGEST = np.iinfo(np.int64).max
BLOCK_NUMBERS = 2**17  # numbers in a temporary array: 1 MB
NO_TRUTH = Truth(np.zeros((0, LANES), dtype=np.int8), np.zeros((0, LANES)))


class Chunk(NamedTuple):
    """Rules in flat arrays: conditions, heads and facts, as in `rules.RuleEnsemble`."""

    n_conditions: NDArray[np.int64]
    conditions: Array  # feature, operator and value of each
    labels: NDArray[np.int32]  # of single-label heads; -1 for multi-label heads
    scores: Array  # (rules, K), or (rules, 1) for single-label heads
    coverage: Array
    gain: Array


def choose_rating(loss: Loss, single: bool, search: str) -> int:
    """How candidates are rated. The bound is for curvature of the outer shape; all else is searched exactly."""
    if single:
        return RATE_SINGLE
    if loss.decomposable:
        return RATE_DECOMPOSABLE
    return RATE_EXACT if search == "exact" or loss.shape == "dense" else RATE_BOUND


@kernel
def _draw_sample(
    settings: Settings, rule: int, sample_weight: Array, strata: Strata, weights: Array, rows: NDArray[np.int32]
) -> int:
    """Draw the weights that a rule is learned with, and put the examples sampled, of positive weight, first in `rows`.

    Returns how many these are; behind them follow the others.
    """
    if settings.n_samples > 0:
        draw_examples(settings.seed, rule, settings.n_samples, strata, weights)
    n_sampled = 0
    last = rows.shape[0] - 1
    for n in range(rows.shape[0]):
        weights[n] = weights[n] * sample_weight[n] if settings.n_samples > 0 else sample_weight[n]
        rows[n_sampled] = n
        rows[last - (n - n_sampled)] = n
        n_sampled += weights[n] > 0.0
    return n_sampled


@kernel
def _cover_all(
    columns: Columns, body: Array, rows: NDArray[np.int32], n_rows: int, n_sampled: int, scratch: NDArray[np.int32]
) -> int:
    """Put all examples that a body covers first in `rows`, sampled or not; returns how many there are.

    Before, the first `n_rows` of the `n_sampled` sampled examples are those covered (if X is not sparse).
    """
    if is_sparse(columns):
        return cover_rows(columns, body, rows, scratch)
    others = rows[n_sampled:]
    n_others = others.shape[0]
    for c in range(body.shape[0]):
        feature, operator = np.int64(body[c, 0]), np.int64(body[c, 1])
        n_others = narrow_rows(columns, feature, operator, body[c, 2], others[:n_others], scratch)
    for r in range(n_others):
        rows[n_rows + r] = others[r]
    return n_rows + n_others


@njit(cache=True, nogil=True)
def learn_rules(
    columns: Columns,
    truth: Truth,
    sample_weight: Array,
    strata: Strata,
    scores: Array,
    statistics: Array,
    settings: Settings,
    first: int,
    count: int,
) -> tuple[Chunk, NDArray[np.int32]]:
    """Learn rules number `first` to `first + count - 1` (Alg. 1, lines 3 to 8); scores and statistics are updated.

    Also returns the examples that the last rule covers. The statistics of a user's own loss are left to the caller.
    """
    n = sample_weight.shape[0]
    n_labels = settings.n_labels
    single = settings.rating == RATE_SINGLE
    n_conditions = np.zeros(count, dtype=np.int64)
    conditions = np.empty((8 * count, 3))
    labels = np.full(count, -1, dtype=np.int32)
    heads = np.empty((count, 1 if single else n_labels))
    coverage = np.empty(count)
    gain = np.empty(count)
    body = np.empty((8, 3))
    weights = np.empty(n)
    rows = np.empty(n, dtype=np.int32)
    head = np.zeros(scores.shape[1])
    by_sums = settings.rating != RATE_EXACT and settings.layout != OUTER
    n_histograms = settings.n_drawn_features if columns.codes.shape[1] > 0 and by_sums else 0
    workspace = make_workspace(n, columns.nominal.shape[0], n_histograms, settings)
    n_rows = n
    used = 0
    for t in range(count):
        n_sampled = _draw_sample(settings, first + t, sample_weight, strata, weights, rows)  # line 5
        n_rows, size, label, body = refine_rule(  # line 6
            columns, statistics, weights, rows[:n_sampled], body, first + t, settings, workspace
        )
        n_rows = _cover_all(columns, body[:size], rows, n_rows, n_sampled, workspace.examples)
        covered = rows[:n_rows]
        gain[t], label, coverage[t] = fit_head(  # line 7
            settings.layout, statistics, covered, sample_weight, settings.l2, single, label, head[:n_labels]
        )
        for k in range(n_labels):
            head[k] *= settings.learning_rate  # line 8
        begin, end = 0, scores.shape[1]
        if single:
            labels[t] = label
            heads[t, 0] = head[label]
            begin = label // LANES * LANES
            end = begin + LANES
        else:
            for k in range(n_labels):
                heads[t, k] = head[k]
        add_scores_to_rows(scores, covered, head, begin, end)
        if settings.update != USER_DEFINED:  # line 4 of the next round
            update_statistics(settings.update, settings.layout, truth, scores, covered, statistics, begin, end)

        while used + size > conditions.shape[0]:
            conditions = grow(conditions)
        for c in range(size):
            for i in range(3):
                conditions[used + c, i] = body[c, i]
        n_conditions[t] = size
        used += size
    chunk = Chunk(n_conditions, conditions[:used], labels, heads, coverage, gain)
    return chunk, rows[:n_rows].copy()


class Booster:
    """The state of Algorithm 1 between two chunks of rules.

    Parameters
    ----------
    columns : Columns
        The features.
    Y : array of shape (N, K)
        Labels, -1 and +1 (int8), or the targets of a regression (float64).
    sample_weight : array of shape (N,)
    label_weight : array of shape (N, K), optional
        Weights of the labels; 0 for an unknown one.
    replay : callable, optional
        To go on after `n_rules` rules that there are already: adds their scores to an (N, K) array, in the order of the
        rules, so that nothing differs from having learned them now. Without it, the default rule is learned.
    loss : Loss
    default_l2 : float, optional
        The L2 regularisation of the default rule, if it is another than that of all rules.
    head : {"multi", "single"}
    search : {"bound", "exact"}
    n_samples, strata
        How many examples the sample of a rule has (0 for no sampling), and the groups they are drawn from.
    learning_rate, l2, n_drawn_features, max_conditions, min_coverage, seed
        See `Settings`; None for no limit.
    """

    def __init__(
        self,
        columns: Columns,
        Y: NDArray[Any],
        sample_weight: Array,
        *,
        label_weight: Array | None = None,
        replay: Callable[[Array], None] | None = None,
        n_rules: int = 0,
        default_l2: float | None = None,
        loss: Loss,
        head: str,
        search: str,
        learning_rate: float,
        l2: float,
        n_samples: int,
        strata: Strata = NO_STRATA,
        n_drawn_features: int,
        max_conditions: int | None,
        min_coverage: float,
        seed: int,
    ) -> None:
        single = head == "single"
        n, n_labels = Y.shape
        width = pad(n_labels)
        self.loss = loss
        self.columns = columns
        self.sample_weight = sample_weight
        self.strata = strata
        self.settings = Settings(
            n_labels=n_labels,
            update=choose_update(loss),
            layout=choose_layout(loss, single),
            rating=choose_rating(loss, single, search),
            learning_rate=float(learning_rate),
            l2=float(l2),
            n_samples=int(n_samples),
            n_drawn_features=int(n_drawn_features),
            max_conditions=LARGEST if max_conditions is None else int(max_conditions),
            min_coverage=float(min_coverage),
            seed=int(seed),
        )
        self.truth = make_truth(Y, label_weight, self.settings.update, width)
        self.scores = make_zeros((n, width))
        if self.settings.update == SQUARED:  # what is still missing: see `Truth`
            self.scores[:, :n_labels] = -Y
        self.learn_rules: Callable[..., tuple[Chunk, NDArray[np.int32]]] = learn_rules
        self.chunks: list[Chunk] = []
        self.n_rules = n_rules
        self.statistics = make_zeros((n, count_columns(self.settings.layout, n_labels)))
        if replay is None:
            self._learn_default_rule(self.settings.l2 if default_l2 is None else float(default_l2))
        else:
            replayed = self.scores[:, :n_labels].copy()
            replay(replayed)
            self.scores[:, :n_labels] = replayed
        self._write(self.settings.layout, self.statistics, np.arange(n, dtype=np.int32))

    def _learn_default_rule(self, l2: float) -> None:
        """It predicts for every label, whatever the other heads are (Alg. 1, line 2)."""
        n, n_labels = len(self.scores), self.settings.n_labels
        layout = choose_layout(self.loss, single=False)
        everyone = np.arange(n, dtype=np.int32)
        own = layout == self.settings.layout
        statistics = self.statistics if own else make_zeros((n, count_columns(layout, n_labels)))
        self._write(layout, statistics, everyone)
        head = np.empty(n_labels)
        gain, _, coverage = fit_head(layout, statistics, everyone, self.sample_weight, l2, False, -1, head)
        self.scores[:, :n_labels] += head
        nobody = np.full(1, -1, dtype=np.int32)
        no_conditions = np.zeros(1, dtype=np.int64), np.empty((0, 3))
        self.chunks.append(Chunk(*no_conditions, nobody, head[None], np.array([coverage]), np.array([gain])))
        self.n_rules = 1

    def _write(self, layout: int, statistics: Array, rows: NDArray[np.int32]) -> None:
        write_statistics(self.loss, layout, self.truth, self.scores, rows, statistics, self.settings.n_labels)

    def learn(self, count: int) -> None:
        """Learn `count` more rules."""
        user_defined = self.settings.update == USER_DEFINED
        # compiled code never looks at the labels of a user's own loss, which may be of another type
        truth = NO_TRUTH if user_defined else self.truth
        for _ in range(count if user_defined else min(count, 1)):
            chunk, covered = self.learn_rules(
                self.columns,
                truth,
                self.sample_weight,
                self.strata,
                self.scores,
                self.statistics,
                self.settings,
                self.n_rules,
                1 if user_defined else count,
            )
            self.chunks.append(chunk)
            self.n_rules += len(chunk.gain)
            if user_defined:
                self._write(self.settings.layout, self.statistics, covered)

    def take_rules(
        self, feature_names: tuple[str, ...], label_names: tuple[str, ...], categories: Categories
    ) -> RuleEnsemble:
        """The rules learned since the last call."""
        chunks, self.chunks = self.chunks, []
        return _collect_rules(chunks, feature_names, label_names, categories)

    def training_loss(self) -> float:
        """The mean loss of the training examples."""
        n, k = len(self.scores), self.settings.n_labels
        size = max(1, BLOCK_NUMBERS // k)  # examples at a time: temporary arrays stay small
        total = 0.0
        for start in range(0, n, size):
            rows = np.arange(start, min(start + size, n), dtype=np.int32)
            Y, weight = self.truth.take(rows, k)
            if self.settings.update == SQUARED:
                Y = np.zeros_like(Y)
            total += float(self.loss.weighted_value(Y, self.scores[rows, :k], weight) @ self.sample_weight[rows])
        return total / float(self.sample_weight.sum())


def make_truth(Y: NDArray[Any], label_weight: Array | None, update: int, width: int) -> Truth:
    """Labels and weights as the statistics want them; weights of 0 and 1 go without saying."""
    n, k = Y.shape
    weight = np.zeros((0, width))
    known = np.ones((n, k), dtype=bool) if label_weight is None else label_weight > 0
    regression = Y.dtype != np.int8 and update == USER_DEFINED
    if label_weight is not None and (regression or ((label_weight != 0) & (label_weight != 1)).any()):
        weight = np.zeros((n, width))
        weight[:, :k] = label_weight
    if regression:
        return Truth(Y, weight)
    signs = np.zeros((n, width), dtype=np.int8)
    signs[:, :k] = known if update == SQUARED else np.where(known, Y, 0)
    return Truth(signs, weight)


def _collect_rules(
    chunks: Sequence[Chunk], feature_names: tuple[str, ...], label_names: tuple[str, ...], categories: Categories
) -> RuleEnsemble:
    everyone = np.arange(len(label_names), dtype=np.int32)
    lengths, labels = [], []
    for chunk in chunks:
        single = chunk.labels[0] >= 0
        lengths.append(np.full(len(chunk.gain), chunk.scores.shape[1]))
        labels.append(chunk.labels if single else np.tile(everyone, len(chunk.gain)))

    def join(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(chunk, name).ravel() for chunk in chunks])

    features, operators, values = join("conditions").reshape(-1, 3).T
    return RuleEnsemble(
        condition_offsets=np.append(0, np.cumsum(join("n_conditions"))),
        condition_features=features.astype(np.int32),
        condition_operators=operators.astype(np.int8),
        condition_values=values,
        head_offsets=np.append(0, np.cumsum(np.concatenate(lengths))),
        head_labels=np.concatenate(labels),
        head_scores=join("scores"),
        coverage=join("coverage"),
        gain=join("gain"),
        feature_names=feature_names,
        label_names=label_names,
        categories=MappingProxyType(dict(categories)),
    )
