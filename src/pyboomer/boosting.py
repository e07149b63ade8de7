"""Boosting is the loop over rules: Algorithm 1.

The loop itself is compiled and learns a chunk of rules per call, without the interpreter lock; between two calls,
Python may report, stop or store. All its state is the scores of the training examples, the statistics that follow
from them, and the rules learned so far.
"""

from collections.abc import Callable
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
from pyboomer.sampling import draw_bootstrap
from pyboomer.simd import LANES, make_zeros
from pyboomer.statistics import (
    OUTER,
    USER_DEFINED,
    Signs,
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
def _draw_sample(settings: Settings, rule: int, sample_weight: Array, weights: Array, rows: NDArray[np.int32]) -> int:
    """Draw the weights that a rule is learned with, and put the examples sampled, of positive weight, first in `rows`.

    Returns how many these are; behind them follow the others.
    """
    if settings.bootstrap:
        draw_bootstrap(settings.seed, rule, weights)
    n_sampled = 0
    last = rows.shape[0] - 1
    for n in range(rows.shape[0]):
        weights[n] = weights[n] * sample_weight[n] if settings.bootstrap else sample_weight[n]
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
    Y: Signs,
    sample_weight: Array,
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
        n_sampled = _draw_sample(settings, first + t, sample_weight, weights, rows)  # line 5
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
            update_statistics(settings.update, settings.layout, Y, scores, covered, statistics, begin, end)

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
        Labels, -1 and +1.
    sample_weight : array of shape (N,)
    loss : Loss
    head : {"multi", "single"}
    search : {"bound", "exact"}
    learning_rate, l2, bootstrap, n_drawn_features, max_conditions, min_coverage, seed
        See `Settings`; None for no limit.
    """

    def __init__(
        self,
        columns: Columns,
        Y: Signs,
        sample_weight: Array,
        *,
        loss: Loss,
        head: str,
        search: str,
        learning_rate: float,
        l2: float,
        bootstrap: bool,
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
        self.Y = np.zeros((n, width), dtype=np.int8)
        self.Y[:, :n_labels] = Y
        self.sample_weight = sample_weight
        self.scores = make_zeros((n, width))
        self.settings = Settings(
            n_labels=n_labels,
            update=choose_update(loss),
            layout=choose_layout(loss, single),
            rating=choose_rating(loss, single, search),
            learning_rate=float(learning_rate),
            l2=float(l2),
            bootstrap=bool(bootstrap),
            n_drawn_features=int(n_drawn_features),
            max_conditions=LARGEST if max_conditions is None else int(max_conditions),
            min_coverage=float(min_coverage),
            seed=int(seed),
        )
        # The default rule predicts for every label, whatever the other heads are (Alg. 1, line 2).
        layout = choose_layout(loss, single=False)
        everyone = np.arange(n, dtype=np.int32)
        statistics = make_zeros((n, count_columns(layout, n_labels)))
        write_statistics(loss, layout, self.Y, self.scores, everyone, statistics, n_labels)
        default = np.empty(n_labels)
        gain, _, coverage = fit_head(layout, statistics, everyone, sample_weight, float(l2), False, -1, default)
        self.scores[:, :n_labels] += default
        size = count_columns(self.settings.layout, n_labels)
        self.statistics = statistics if statistics.shape[1] == size else make_zeros((n, size))
        write_statistics(loss, self.settings.layout, self.Y, self.scores, everyone, self.statistics, n_labels)
        self.learn_rules: Callable[..., tuple[Chunk, NDArray[np.int32]]] = learn_rules
        self.chunks = [
            Chunk(
                n_conditions=np.zeros(1, dtype=np.int64),
                conditions=np.empty((0, 3)),
                labels=np.full(1, -1, dtype=np.int32),
                scores=default[None],
                coverage=np.array([coverage]),
                gain=np.array([gain]),
            )
        ]
        self.n_rules = 1

    def learn(self, count: int) -> None:
        """Learn `count` more rules."""
        user_defined = self.settings.update == USER_DEFINED
        for _ in range(count if user_defined else min(count, 1)):
            chunk, covered = self.learn_rules(
                self.columns,
                self.Y,
                self.sample_weight,
                self.scores,
                self.statistics,
                self.settings,
                self.n_rules,
                1 if user_defined else count,
            )
            self.chunks.append(chunk)
            self.n_rules += len(chunk.gain)
            if user_defined:
                layout, k = self.settings.layout, self.settings.n_labels
                write_statistics(self.loss, layout, self.Y, self.scores, covered, self.statistics, k)

    def collect_rules(
        self, feature_names: tuple[str, ...], label_names: tuple[str, ...], categories: Categories
    ) -> RuleEnsemble:
        """The rules learned so far."""
        n_labels = len(label_names)
        everyone = np.arange(n_labels, dtype=np.int32)
        lengths, labels = [], []
        for chunk in self.chunks:
            single = chunk.labels[0] >= 0
            lengths.append(np.full(len(chunk.gain), chunk.scores.shape[1]))
            labels.append(chunk.labels if single else np.tile(everyone, len(chunk.gain)))

        def join(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(chunk, name).ravel() for chunk in self.chunks])

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

    def training_loss(self) -> float:
        """The mean loss of the training examples."""
        k = self.settings.n_labels
        losses = self.loss.value(self.Y[:, :k].astype(np.float64), self.scores[:, :k])
        return float(np.average(losses, weights=self.sample_weight))
