"""A variation is another way to find the rules of Algorithm 1: pruned bodies, beam search, rules learned again.

It is the loop of `engine.boosting` with other steps in it, made of the package's own compiled parts, for multi-label
heads and features that are not binned. Without any variation the rules are those of the package, bit for bit;
`variations.py` checks that, and measures.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyboomer.columns.features import Columns, cover_rows, is_sparse, narrow_rows
from pyboomer.compiling.kernel import kernel

# The package's own steps, private as they are: others would sum in another order, and rules could not be compared.
from pyboomer.engine.boosting import Chunk, _cover_all, _draw_sample
from pyboomer.engine.heads import fit_head
from pyboomer.engine.rating import Settings, Workspace, make_workspace
from pyboomer.engine.refinement import _narrow_dense, _narrow_sparse, grow, refine_rule, sum_sampled, sum_weights
from pyboomer.engine.sampling import Strata, fill_with_draw
from pyboomer.engine.statistics import OUTER_GRADIENT, Truth, add_scores_to_rows, pad, update_statistics
from pyboomer.engine.sweeping import sweep_column
from pyboomer.rules.precision import NOISE, TIE

Array = NDArray[np.float64]
Rows = NDArray[np.int32]

LONGEST = 2048  # conditions of a partial rule in a beam; those of the benchmarks have a few hundred at most
NO_RULES = Chunk(
    np.empty(0, dtype=np.int64),
    np.empty((0, 3)),
    np.empty(0, dtype=np.int64),
    np.empty(0, dtype=np.int32),
    np.empty(0),
    np.empty(0),
    np.empty(0),
)

UNPRUNED, PRUNED_BY_LAST_HEAD, PRUNED_BY_OWN_HEADS = range(3)
RELEARN, REFIT, CORRECT = range(3)


class Variation(NamedTuple):
    """What is done differently; by default, nothing."""

    beam_width: int = 0  # partial rules that are kept at each step; 0: greedy search by the package's own function
    pruning: int = UNPRUNED  # the scores that tell how good a shorter body is: of the whole body, or refitted to it
    again: int = RELEARN  # what becomes of an old rule: another one, its body with another head, or a step added to it


class Beam(NamedTuple):
    """Partial rules, the best first: what they cover of the sample, and their conditions."""

    rows: Rows  # (width, N)
    weights: Array  # (width, N): those of the sample, 0 if not covered
    sums: Array  # (width, sums): of the statistics of what is covered
    bodies: Array  # (width, LONGEST, 3)
    n_rows: NDArray[np.int64]
    n_covered: NDArray[np.int64]
    weight: Array
    gain: Array


class Candidates(NamedTuple):
    """The best ways to extend the rules of a beam, the best first."""

    gain: Array
    entry: NDArray[np.int64]  # the partial rule that is extended
    feature: NDArray[np.int64]
    operator: NDArray[np.int64]
    value: Array


@njit(cache=True, nogil=True)
def make_beam(width: int, n: int, n_sums: int) -> Beam:
    """Room for the partial rules of a step."""
    return Beam(
        np.empty((width, n), dtype=np.int32),
        np.empty((width, n)),
        np.empty((width, n_sums)),
        np.empty((width, LONGEST, 3)),
        np.empty(width, dtype=np.int64),
        np.empty(width, dtype=np.int64),
        np.empty(width),
        np.empty(width),
    )


@njit(cache=True, nogil=True)
def make_candidates(width: int) -> Candidates:
    """Room for the candidates of a step."""
    return Candidates(
        np.empty(width),
        np.empty(width, dtype=np.int64),
        np.empty(width, dtype=np.int64),
        np.empty(width, dtype=np.int64),
        np.empty(width),
    )


# --- Beam search ------------------------------------------------------------------------------------------------------


@kernel
def _insert(
    candidates: Candidates, count: int, gain: float, entry: int, feature: int, operator: int, value: float
) -> int:
    """Put a candidate in its place; returns how many there are now.

    Of candidates of equal gain only the first is kept: most of them cover the same examples.
    """
    place = 0
    while place < count and gain <= candidates.gain[place] * (1 + TIE):
        if gain * (1 + TIE) >= candidates.gain[place]:
            return count
        place += 1
    if place == candidates.gain.shape[0]:
        return count
    count = min(count + 1, candidates.gain.shape[0])
    for c in range(count - 1, place, -1):
        candidates.gain[c] = candidates.gain[c - 1]
        candidates.entry[c] = candidates.entry[c - 1]
        candidates.feature[c] = candidates.feature[c - 1]
        candidates.operator[c] = candidates.operator[c - 1]
        candidates.value[c] = candidates.value[c - 1]
    candidates.gain[place] = gain
    candidates.entry[place] = entry
    candidates.feature[place] = feature
    candidates.operator[place] = operator
    candidates.value[place] = value
    return count


@njit(cache=True, nogil=True)
def _find_candidates(
    columns: Columns,
    statistics: Array,
    beam: Beam,
    n_entries: int,
    candidates: Candidates,
    settings: Settings,
    workspace: Workspace,
) -> int:
    """Find the best conditions on the drawn features, one per partial rule and feature, that improve a partial rule."""
    none = np.int64(-1)
    width = candidates.gain.shape[0]
    count = 0
    for entry in range(n_entries):
        workspace.whole[:] = beam.sums[entry]
        for i in range(workspace.drawn.shape[0]):
            feature = workspace.drawn[i]
            limit = beam.gain[entry]
            if count == width:
                limit = max(limit, candidates.gain[width - 1])
            gain, operator, value = sweep_column(
                columns,
                feature,
                statistics,
                beam.weights[entry],
                beam.rows[entry, : beam.n_rows[entry]],
                beam.n_covered[entry],
                beam.weight[entry],
                none,
                settings,
                workspace,
                limit,
            )
            if operator >= 0:
                count = _insert(candidates, count, gain, entry, feature, operator, value)
    return count


@njit(cache=True, nogil=True)
def _extend(
    columns: Columns,
    statistics: Array,
    beam: Beam,
    longer: Beam,
    n_conditions: int,
    candidates: Candidates,
    count: int,
    settings: Settings,
    workspace: Workspace,
) -> None:
    """Make the partial rules of the next step."""
    none = np.int64(-1)
    for c in range(count):
        entry, feature = candidates.entry[c], candidates.feature[c]
        operator, value = candidates.operator[c], candidates.value[c]
        n_rows = beam.n_rows[entry]
        longer.rows[c, :n_rows] = beam.rows[entry, :n_rows]
        longer.weights[c] = beam.weights[entry]
        longer.bodies[c, :n_conditions] = beam.bodies[entry, :n_conditions]
        body = longer.bodies[c]
        body[n_conditions, 0], body[n_conditions, 1], body[n_conditions, 2] = feature, operator, value
        workspace.whole[:] = beam.sums[entry]
        rows, weights = longer.rows[c, :n_rows], longer.weights[c]
        if is_sparse(columns):
            covered, before = beam.n_covered[entry], beam.weight[entry]
            n_covered, weight = _narrow_sparse(
                columns, feature, operator, value, statistics, weights, covered, before, none, settings, workspace
            )
        else:
            n_covered, weight = _narrow_dense(
                columns, feature, operator, value, statistics, rows, weights, none, settings, workspace
            )
            n_rows = n_covered
        longer.sums[c] = workspace.whole
        longer.n_rows[c], longer.n_covered[c] = n_rows, n_covered
        longer.weight[c], longer.gain[c] = weight, candidates.gain[c]


@njit(cache=True, nogil=True)
def search_beam(
    columns: Columns,
    statistics: Array,
    weights: Array,
    rows: Rows,
    body: Array,
    rule: int,
    settings: Settings,
    workspace: Workspace,
    beam: Beam,
    longer: Beam,
    candidates: Candidates,
) -> tuple[int, int, Array]:
    """`refine_rule` with a beam: at each step, the best extensions of all partial rules are kept; the best rule wins.

    A partial rule that no drawn feature improves leaves the beam, but may still be the best. Features are drawn once
    per step. Returns the numbers of covered rows and of conditions, and the body.
    """
    n_rows = rows.shape[0]
    beam.rows[0, :n_rows] = rows
    beam.weights[0] = weights
    beam.n_rows[0], beam.n_covered[0] = n_rows, n_rows
    beam.weight[0] = sum_weights(rows, weights)
    sum_sampled(statistics, rows, weights, np.int64(-1), settings, workspace, beam.sums[0])
    best = NOISE * beam.weight[0]
    beam.gain[0] = best
    n_entries, n_conditions, best_size = 1, 0, 0
    while n_conditions < min(settings.max_conditions, LONGEST):
        fill_with_draw(settings.seed, rule, n_conditions + 1, workspace.features, workspace.fixed, workspace.drawn)
        count = _find_candidates(columns, statistics, beam, n_entries, candidates, settings, workspace)
        if count == 0:
            break
        _extend(columns, statistics, beam, longer, n_conditions, candidates, count, settings, workspace)
        beam, longer = longer, beam
        n_entries = count
        n_conditions += 1
        if beam.gain[0] > best * (1 + TIE):
            best = beam.gain[0]
            best_size = n_conditions
            n_rows = beam.n_rows[0]
            rows[:n_rows] = beam.rows[0, :n_rows]
            while best_size > body.shape[0]:
                body = grow(body)
            body[:best_size] = beam.bodies[0, :best_size]
    return n_rows, best_size, body


# --- Pruning ----------------------------------------------------------------------------------------------------------


@kernel
def _cover(columns: Columns, body: Array, rows: Rows, scratch: Rows) -> int:
    """Put the examples that a body covers first in `rows`, in ascending order; returns how many there are."""
    if is_sparse(columns):
        return cover_rows(columns, body, rows, scratch)
    n_rows = rows.shape[0]
    for n in range(n_rows):
        rows[n] = n
    for c in range(body.shape[0]):
        feature, operator = np.int64(body[c, 0]), np.int64(body[c, 1])
        n_rows = narrow_rows(columns, feature, operator, body[c, 2], rows[:n_rows], scratch)
    return n_rows


@kernel
def rate_head(layout: int, statistics: Array, rows: Rows, weights: Array, l2: float, head: Array) -> float:
    """Minus the objective of Eq. 14 for a given head, on given examples."""
    width = pad(head.shape[0])
    objective = 0.0
    for r in range(rows.shape[0]):
        n = rows[r]
        slope, curvature = 0.0, 0.0
        for k in range(head.shape[0]):
            slope += statistics[n, k] * head[k]
            curvature += statistics[n, width + k] * head[k] * head[k]
        if layout == OUTER_GRADIENT:
            curvature -= slope * slope
        objective += weights[n] * (slope + 0.5 * curvature)
    for k in range(head.shape[0]):
        objective += 0.5 * l2 * head[k] * head[k]
    return -objective


@njit(cache=True, nogil=True)
def prune_body(
    columns: Columns,
    statistics: Array,
    sample_weight: Array,
    weights: Array,
    body: Array,
    own: bool,
    settings: Settings,
) -> int:
    """How many conditions of a body to keep: those from the end go if the examples that were not sampled do not mind.

    `weights` are those of the sample, 0 for the other examples. The head that these judge is the one that the sample
    gives to the whole body or, if `own`, to the shorter one. The first condition always stays.
    """
    n = weights.shape[0]
    rows, scratch = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    sampled, others = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    head = np.empty(settings.n_labels)
    kept = body.shape[0]
    best = 0.0
    for size in range(body.shape[0], 0, -1):
        n_sampled, n_others = 0, 0
        for r in range(_cover(columns, body[:size], rows, scratch)):
            sampled[n_sampled], others[n_others] = rows[r], rows[r]
            n_sampled += weights[rows[r]] > 0.0
            n_others += weights[rows[r]] == 0.0
        whole = size == body.shape[0]
        if whole or own:
            covered = sampled[:n_sampled]
            fit_head(settings.layout, statistics, covered, weights, 0.0, settings.l2, False, np.int64(-1), head)
        quality = rate_head(settings.layout, statistics, others[:n_others], sample_weight, settings.l2, head)
        if whole or quality >= best - TIE * abs(best):  # of equals, the shortest
            kept = size
            best = quality if whole else max(best, quality)
    return kept


# --- The loop ---------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def learn_varied_rules(
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
    old: Chunk,
    variation: Variation,
) -> tuple[Chunk, Rows]:
    """`engine.boosting.learn_rules` with variations; `old` rules, if there are any, are replaced one after another.

    An old rule is taken out: its head is subtracted from the scores of the examples it covers. Then a rule is learned
    in the context of all others and put in its place. `first` is the number that the draws for the first rule depend
    on.
    """
    n = sample_weight.shape[0]
    n_labels = settings.n_labels
    last = scores.shape[1]
    n_conditions = np.zeros(count, dtype=np.int64)
    conditions = np.empty((8 * count, 3))
    heads = np.empty((count, n_labels))
    coverage, gain = np.empty(count), np.empty(count)
    body = np.empty((8, 3))
    weights = np.empty(n)
    rows = np.empty(n, dtype=np.int32)
    head = np.zeros(last)
    workspace = make_workspace(n, columns.nominal.shape[0], fixed, False, settings)
    width = max(variation.beam_width, 1)
    beam_rows = n if variation.beam_width > 0 else 0
    beam = make_beam(width, beam_rows, statistics.shape[1])
    longer = make_beam(width, beam_rows, statistics.shape[1])
    candidates = make_candidates(width)
    again = old.gain.shape[0] > 0
    keeps_body = again and variation.again != RELEARN
    n_rows, used, start = n, 0, 0
    for t in range(count):
        size = 0
        if again:
            old_body = old.conditions[start : start + old.n_conditions[t]]
            start += old.n_conditions[t]
            n_rows = _cover(columns, old_body, rows, workspace.examples)
            if variation.again != CORRECT:
                for k in range(n_labels):
                    head[k] = -old.scores[t * n_labels + k]
                add_scores_to_rows(scores, rows[:n_rows], head, 0, last)
                update_statistics(settings.update, settings.layout, truth, scores, rows[:n_rows], statistics, 0, last)
            if keeps_body:
                size = old_body.shape[0]
                while size > body.shape[0]:
                    body = grow(body)
                body[:size] = old_body
        if not keeps_body:
            n_sampled = _draw_sample(settings, first + t, sample_weight, strata, weights, rows)
            sampled = rows[:n_sampled]
            if variation.beam_width > 0:
                n_rows, size, body = search_beam(
                    columns,
                    statistics,
                    weights,
                    sampled,
                    body,
                    first + t,
                    settings,
                    workspace,
                    beam,
                    longer,
                    candidates,
                )
            else:
                n_rows, size, _, _, body = refine_rule(
                    columns, statistics, weights, sampled, body, 0, 0.0, first + t, settings, workspace
                )
            if variation.pruning != UNPRUNED and size > 1:
                own = variation.pruning == PRUNED_BY_OWN_HEADS
                _draw_sample(settings, first + t, sample_weight, strata, weights, rows)
                size = prune_body(columns, statistics, sample_weight, weights, body[:size], own, settings)
                n_rows = _cover(columns, body[:size], rows, workspace.examples)
            else:
                n_rows = _cover_all(columns, body[:size], rows, n_rows, n_sampled, workspace.examples)
        covered = rows[:n_rows]
        gain[t], _, coverage[t] = fit_head(
            settings.layout, statistics, covered, sample_weight, 0.0, settings.l2, False, np.int64(-1), head[:n_labels]
        )
        for k in range(n_labels):
            head[k] *= settings.learning_rate
            heads[t, k] = head[k]
            if again and variation.again == CORRECT:
                heads[t, k] += old.scores[t * n_labels + k]
        add_scores_to_rows(scores, covered, head, 0, last)
        update_statistics(settings.update, settings.layout, truth, scores, covered, statistics, 0, last)

        while used + size > conditions.shape[0]:
            conditions = grow(conditions)
        conditions[used : used + size] = body[:size]
        n_conditions[t] = size
        used += size
    n_scores = np.full(count, n_labels)
    labels = np.empty(count * n_labels, dtype=np.int32)
    for i in range(labels.shape[0]):
        labels[i] = i % n_labels
    chunk = Chunk(n_conditions, conditions[:used], n_scores, labels, heads.ravel(), coverage, gain)
    return chunk, rows[:n_rows].copy()
