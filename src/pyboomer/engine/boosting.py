"""Boosting is the loop over rules: Algorithm 1.

The loop is compiled and learns a chunk of rules per call, without the interpreter lock. What it leaves behind is the
scores of the training examples and the statistics that follow from them; `booster` keeps these between two calls.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import config, njit
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.columns.features import NONE, Columns, cover_rows, is_sparse, narrow_rows
from pyboomer.compiling.kernel import kernel
from pyboomer.engine.heads import fit_head
from pyboomer.engine.rating import RATE_SINGLE, Settings, Workspace, choose_head, is_partial, make_workspace
from pyboomer.engine.refinement import grow, refine_rule, sum_sampled, sum_weights
from pyboomer.engine.sampling import Strata, draw_examples, fill_with_labels
from pyboomer.engine.statistics import (
    USER_DEFINED,
    Truth,
    add_scores_to_rows,
    count_columns,
    take_labels,
    update_statistics,
)


class Chunk(NamedTuple):
    """Rules in flat arrays: conditions, heads and facts, as in `rules.RuleEnsemble`."""

    n_conditions: NDArray[np.int64]
    conditions: Array  # feature, operator and value of each
    n_scores: NDArray[np.int64]
    labels: NDArray[np.int32]
    scores: Array
    coverage: Array
    gain: Array


def needs_compiling() -> bool:
    """Whether learning will first have to compile: there is no compiled code, or it is older than its source."""
    if config.DISABLE_JIT:
        return False
    source = Path(__file__).stat().st_mtime
    compiled = Path(learn_rules.stats.cache_path).glob("boosting.learn_rules-*.nbi")
    return not learn_rules.signatures and not any(index.stat().st_mtime >= source for index in compiled)


@kernel
def _draw_sample(
    settings: Settings, rule: int, sample_weight: Array, strata: Strata, weights: Array, rows: NDArray[np.uint32]
) -> np.int64:
    """Draw the weights that a rule is learned with, and put the examples sampled, of positive weight, first in `rows`.

    Returns how many these are; behind them follow the others.
    """
    if settings.n_samples > 0:
        draw_examples(settings.seed, rule, settings.n_samples, strata, weights)
    n_sampled, last = NONE, np.uint64(rows.shape[0] - 1)
    for n in range(rows.shape[0]):
        weights[n] = weights[n] * sample_weight[n] if settings.n_samples > 0 else sample_weight[n]
        rows[n_sampled] = n
        rows[last] = n
        n_sampled += np.uint64(weights[n] > 0.0)
        last -= np.uint64(not weights[n] > 0.0)
    return np.int64(n_sampled)


@kernel
def _cover_all(
    columns: Columns, body: Array, rows: NDArray[np.uint32], n_rows: int, n_sampled: int, scratch: NDArray[np.uint32]
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
def _focus(
    columns: Columns,
    fixed: NDArray[np.int64],
    statistics: Array,
    labels: NDArray[np.int64],
    settings: Settings,
    head_size: int,
    head_share: float,
    room: Array,
) -> tuple[Array, Settings, Workspace]:
    """The statistics of some labels, laid into `room`, and what it takes to learn a rule about these alone."""
    n, m = statistics.shape[0], labels.shape[0]
    size = count_columns(settings.layout, m)
    own = room[: n * size].reshape((n, size))
    take_labels(settings.layout, settings.n_labels, statistics, labels, own)
    own_settings = Settings(
        m,
        settings.update,
        settings.layout,
        settings.rating,
        min(head_size, m),
        head_share,
        settings.learning_rate,
        settings.l1,
        settings.l2,
        settings.n_samples,
        settings.n_drawn_labels,
        settings.n_drawn_features,
        settings.max_conditions,
        settings.min_coverage,
        settings.seed,
    )
    workspace = make_workspace(n, columns.nominal.shape[0], fixed, columns.codes.shape[1] > 0, own_settings)
    return own, own_settings, workspace


@njit(cache=True, nogil=True)
def learn_rules(
    columns: Columns,
    fixed: NDArray[np.int64],
    truth: Truth,
    sample_weight: Array,
    strata: Strata,
    scores: Array,
    statistics: Array,
    settings: Settings,
    first: int,
    count: int,
) -> tuple[Chunk, NDArray[np.uint32]]:
    """Learn rules number `first` to `first + count - 1` (Alg. 1, lines 3 to 8); scores and statistics are updated.

    Also returns the examples that the last rule covers. The statistics of a user's own loss are left to the caller.
    """
    n = sample_weight.shape[0]
    n_labels = settings.n_labels
    single = settings.rating == RATE_SINGLE
    partial = is_partial(settings)
    draws_labels = settings.n_drawn_labels < n_labels
    n_conditions = np.zeros(count, dtype=np.int64)
    conditions = np.empty((8 * count, 3))
    n_scores = np.zeros(count, dtype=np.int64)
    most = min(settings.head_size, max(settings.n_drawn_labels, 1))
    labels = np.empty(count * most, dtype=np.int32)
    heads = np.empty(count * most)
    coverage = np.empty(count)
    gain = np.empty(count)
    body = np.empty((8, 3))
    weights = np.empty(n)
    rows = np.empty(n, dtype=np.uint32)
    head = np.zeros(scores.shape[1])
    everyone = np.arange(n_labels)
    drawn = np.empty(min(n_labels, max(settings.n_drawn_labels, 1)), dtype=np.int64)
    room = np.empty(n * count_columns(settings.layout, drawn.shape[0]) if draws_labels or partial else 0)
    whole_workspace = make_workspace(n, columns.nominal.shape[0], fixed, columns.codes.shape[1] > 0, settings)
    n_rows = n
    used = used_scores = 0
    for t in range(count):
        own, own_settings, workspace, about = statistics, settings, whole_workspace, everyone
        if draws_labels:
            fill_with_labels(settings.seed, first + t, everyone, settings.n_drawn_labels, drawn)
            about = drawn
            own, own_settings, workspace = _focus(
                columns, fixed, statistics, about, settings, settings.head_size, settings.head_share, room
            )
        n_rows = n_sampled = _draw_sample(settings, first + t, sample_weight, strata, weights, rows)  # line 5
        size, best = np.int64(0), 0.0  # a plain 0 would be a type of its own to Numba, and refining be compiled twice
        while True:
            n_rows, size, best, label, body = refine_rule(  # line 6
                columns, own, weights, rows[:n_rows], body, size, best, first + t, own_settings, workspace
            )
            if not is_partial(own_settings):
                break
            if size == 0:  # nothing to learn from the sample: the labels that suit all examples best
                sum_sampled(own, rows, sample_weight, np.int64(-1), own_settings, workspace, workspace.whole)
            weight = sum_weights(rows, sample_weight) if size == 0 else sum_weights(rows[:n_rows], weights)
            about = about[workspace.labels[: choose_head(own_settings, workspace.whole, weight, workspace)]]
            own, own_settings, workspace = _focus(
                columns, fixed, statistics, about, settings, about.shape[0], 0.0, room
            )
            if size == 0:
                break
        n_rows = _cover_all(columns, body[:size], rows, n_rows, n_sampled, workspace.examples)
        covered = rows[:n_rows]
        own_head = np.zeros(own_settings.n_labels)
        gain[t], label, coverage[t] = fit_head(  # line 7
            settings.layout, own, covered, sample_weight, settings.l1, settings.l2, single, label, own_head
        )
        head[:] = 0.0
        own_labels, own_scores = labels[used_scores:], heads[used_scores:]
        m = 0
        for i in range(label if single else 0, label + 1 if single else own_settings.n_labels):
            head[about[i]] = settings.learning_rate * own_head[i]  # line 8
            own_labels[m], own_scores[m] = about[i], head[about[i]]
            m += settings.l1 == 0.0 or own_head[i] != 0.0  # L1 regularisation leaves labels out
        n_scores[t] = max(m, 1)
        used_scores += n_scores[t]
        begin, end = np.int64(own_labels[0]), np.int64(own_labels[n_scores[t] - 1]) + 1
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
    chunk = Chunk(n_conditions, conditions[:used], n_scores, labels[:used_scores], heads[:used_scores], coverage, gain)
    return chunk, rows[:n_rows].copy()
