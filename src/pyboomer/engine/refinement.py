"""A refinement adds the best condition to a rule's body: Algorithm 3.

Of the drawn features, in ascending order, the best condition is taken if it improves the rule; then the coverage is
narrowed to the examples that meet it, and the next refinement begins.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.columns.features import NONE, Columns, is_sparse, meets, narrow_rows
from pyboomer.compiling.kernel import kernel
from pyboomer.engine.rating import RATE_EXACT, RATE_SINGLE, Settings, Workspace, add_example, choose_head, is_partial
from pyboomer.engine.sampling import fill_with_draw
from pyboomer.engine.statistics import sum_rows
from pyboomer.engine.sweeping import sum_bins, sweep_bins, sweep_column
from pyboomer.rules.precision import NOISE

BINS_FROM = 512  # covered examples; fewer are swept one by one, as without bins


@kernel
def sum_weights(rows: NDArray[np.uint32], weights: Array) -> float:
    weight = 0.0
    for r in range(rows.shape[0]):
        weight += weights[rows[r]]
    return weight


@kernel
def _fix_label(statistics: Array, rows: NDArray[np.uint32], settings: Settings, workspace: Workspace) -> np.int64:
    """Choose the label of a single-label head; from now on, sums and statistics are about that label alone."""
    choose_head(settings, workspace.whole, 0.0, workspace)
    label = workspace.labels[0]
    width = statistics.shape[1] // 2
    for r in range(rows.shape[0]):
        n = rows[r]
        workspace.pair[n, 0] = statistics[n, label]
        workspace.pair[n, 1] = statistics[n, width + label]
    workspace.whole[0], workspace.whole[1] = workspace.whole[label], workspace.whole[width + label]
    return label


@kernel
def sum_sampled(
    statistics: Array,
    rows: NDArray[np.uint32],
    weights: Array,
    label: int,
    settings: Settings,
    workspace: Workspace,
    sums: Array,
) -> None:
    """Sum the statistics of some examples, as far as the rating of candidates needs them."""
    if label >= 0:
        g, h = 0.0, 0.0
        for r in range(rows.shape[0]):
            n = rows[r]
            g += weights[n] * workspace.pair[n, 0]
            h += weights[n] * workspace.pair[n, 1]
        sums[0], sums[1] = g, h
    elif settings.rating == RATE_EXACT:
        sums[:] = 0.0
        for r in range(rows.shape[0]):
            add_example(settings, statistics, rows[r], weights[rows[r]], sums)
    else:
        sum_rows(statistics, 0, rows, weights, sums)


@kernel
def _narrow_dense(
    columns: Columns,
    feature: int,
    operator: int,
    value: float,
    statistics: Array,
    rows: NDArray[np.uint32],
    weights: Array,
    label: int,
    settings: Settings,
    workspace: Workspace,
) -> tuple[int, float]:
    """Narrow the coverage by a condition and bring the sums in `workspace.whole` up to date.

    They are summed anew, or those of the dropped examples are subtracted, whichever are fewer; as long as bins are
    summed, nobody asks for them. Returns the number and the weight of the rows that are left.
    """
    n_rows = narrow_rows(columns, feature, operator, value, rows, workspace.examples)
    kept, dropped = rows[:n_rows], rows[n_rows:]
    whole = workspace.whole
    binned = workspace.bins.shape[0] > 0
    fixes_labels = label < 0 and (settings.rating == RATE_SINGLE or is_partial(settings))
    if not binned and dropped.shape[0] < n_rows:
        sum_sampled(statistics, dropped, weights, label, settings, workspace, workspace.sums)
        for s in range(2 if label >= 0 else whole.shape[0]):
            whole[s] -= workspace.sums[s]
    elif not binned or n_rows < BINS_FROM or fixes_labels:
        sum_sampled(statistics, kept, weights, label, settings, workspace, whole)
    for r in range(dropped.shape[0]):
        weights[dropped[r]] = 0.0
    return n_rows, sum_weights(kept, weights)


@kernel
def _narrow_sparse(
    columns: Columns,
    feature: int,
    operator: int,
    value: float,
    statistics: Array,
    weights: Array,
    n_covered: int,
    weight: float,
    label: int,
    settings: Settings,
    workspace: Workspace,
) -> tuple[np.int64, float]:
    """The same for a sparse feature: only its stored values are looked at, and `weights` says who is covered."""
    fill_meets = meets(columns.fill[feature], operator, value)
    changed = workspace.examples  # the covered examples that are dropped, or that are kept
    entry = columns.example[columns.start[feature] : columns.start[feature + 1]]
    stored = columns.value[columns.start[feature] : columns.start[feature + 1]]
    count = NONE
    for e in range(entry.shape[0]):
        n = entry[e]
        changed[count] = n
        count += np.uint64((weights[n] > 0.0) & (meets(stored[e], operator, value) != fill_meets))
    n_changed = np.int64(count)
    changed = changed[:n_changed]
    sum_sampled(statistics, changed, weights, label, settings, workspace, workspace.sums)
    changed_weight = 0.0
    for r in range(n_changed):
        changed_weight += weights[changed[r]]
    for s in range(2 if label >= 0 else workspace.whole.shape[0]):
        workspace.whole[s] = workspace.whole[s] - workspace.sums[s] if fill_meets else workspace.sums[s]
    if fill_meets:
        for r in range(n_changed):
            weights[changed[r]] = 0.0
        return n_covered - n_changed, weight - changed_weight
    for r in range(n_changed):
        workspace.values[r] = weights[changed[r]]
    for n in range(weights.shape[0]):
        weights[n] = 0.0
    for r in range(n_changed):
        weights[changed[r]] = workspace.values[r]
    return n_changed, changed_weight


@njit(cache=True, nogil=True)
def grow(conditions: Array) -> Array:
    """The same conditions with room for as many more."""
    larger = np.empty((2 * conditions.shape[0], 3))
    for c in range(conditions.shape[0]):
        for i in range(3):
            larger[c, i] = conditions[c, i]
    return larger


@njit(cache=True, nogil=True)
def refine_rule(
    columns: Columns,
    statistics: Array,
    weights: Array,
    rows: NDArray[np.uint32],
    body: Array,
    n_conditions: int,
    best: float,
    rule: int,
    settings: Settings,
    workspace: Workspace,
) -> tuple[int, int, float, np.int64, Array]:
    """Learn the body of a rule on a sample of the examples: the `rows` of positive weight.

    `body` receives a condition per row: feature, operator and value, behind the `n_conditions` that there are already,
    of gain `best`. If heads are partial, this ends with the first condition, which fixes the labels; the caller goes on
    with the statistics of these. If X is dense, the rows that the body covers are left in the first places. Returns the
    numbers of covered rows and of conditions, the gain, the label of a single-label head (-1 if the body is empty) and
    the body, grown if there was too little room.
    """
    none = np.int64(-1)  # a plain -1 would be a type of its own to Numba, and double what it compiles
    features = workspace.drawn
    sparse = is_sparse(columns)
    n_rows = rows.shape[0]
    n_covered = n_rows
    if sparse and n_conditions > 0:
        n_covered = 0
        for r in range(n_rows):
            n_covered += weights[rows[r]] > 0.0
    weight = sum_weights(rows, weights)
    if workspace.bins.shape[0] == 0 or n_rows < BINS_FROM:
        sum_sampled(statistics, rows, weights, none, settings, workspace, workspace.whole)
    label = none
    best = max(best, NOISE * weight)
    limit = 1 if is_partial(settings) else settings.max_conditions
    while n_conditions < limit:
        chosen, operator, value = none, none, 0.0
        fill_with_draw(settings.seed, rule, n_conditions + 1, workspace.features, workspace.fixed, features)
        binned = workspace.bins.shape[0] > 0 and n_covered >= BINS_FROM
        if binned:
            sum_bins(columns.codes, features, rows[:n_rows], statistics, 0, weights, label, workspace)
        for i in range(features.shape[0]):
            feature = features[i]
            if binned:
                best, found, found_value = sweep_bins(
                    columns.nominal[feature],
                    workspace.bins[i],
                    workspace.bin_weight[i],
                    label,
                    settings,
                    workspace,
                    best,
                )
            else:
                best, found, found_value = sweep_column(
                    columns,
                    feature,
                    statistics,
                    weights,
                    rows[:n_rows],
                    n_covered,
                    weight,
                    label,
                    settings,
                    workspace,
                    best,
                )
            if found >= 0:
                chosen, operator, value = feature, found, found_value
        if chosen < 0:
            break
        if sparse:
            n_covered, weight = _narrow_sparse(
                columns,
                chosen,
                operator,
                value,
                statistics,
                weights,
                n_covered,
                weight,
                label,
                settings,
                workspace,
            )
        else:
            n_covered, weight = _narrow_dense(
                columns, chosen, operator, value, statistics, rows[:n_rows], weights, label, settings, workspace
            )
            n_rows = n_covered
        if settings.rating == RATE_SINGLE and label < 0:  # the first condition fixes the label
            label = _fix_label(statistics, rows[:n_rows], settings, workspace)
        if n_conditions == body.shape[0]:
            body = grow(body)
        body[n_conditions, 0], body[n_conditions, 1], body[n_conditions, 2] = chosen, operator, value
        n_conditions += 1
    return n_rows, n_conditions, best, label, body
