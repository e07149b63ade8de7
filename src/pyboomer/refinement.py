"""A refinement adds the best condition to a rule's body: Algorithm 3.

Candidates are visited in a fixed order: features ascending, thresholds or categories ascending, ``<=`` before ``>``
and ``==`` before ``!=``, labels ascending. One replaces the best so far only if its gain is larger by the relative
margin `heads.TIE`, so that rounding never decides between equals.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyboomer.features import AT_MOST, EQUAL, Columns, collect_column, narrow_rows
from pyboomer.heads import TIE, bound_gain, eliminate, rate_decomposable, rate_label
from pyboomer.sampling import draw_features
from pyboomer.statistics import DENSE, add_expanded_row, add_row, pad, sum_rows

Array = NDArray[np.float64]

# How candidates are rated: what Algorithm 2 comes down to for a loss, a kind of head and a kind of search.
RATE_DECOMPOSABLE, RATE_SINGLE, RATE_BOUND, RATE_EXACT = range(4)


@njit(cache=True, nogil=True)
def midpoint(a: float, b: float) -> float:
    """The threshold between two adjacent values a < b: at least a and below b, in floating point too."""
    middle = a / 2 + b / 2
    return middle if a <= middle < b else a


@njit(cache=True, nogil=True)
def _add(rating: int, layout: int, n_labels: int, label: int, row: Array, weight: float, sums: Array) -> None:
    """Add an example to the sums of a candidate, as far as its rating needs them."""
    if label >= 0:
        sums[0] += weight * row[label]
        sums[1] += weight * row[row.shape[0] // 2 + label]
    elif rating == RATE_EXACT and layout != DENSE:
        add_expanded_row(layout, n_labels, row, weight, sums)
    else:
        add_row(row, weight, sums)


@njit(cache=True, nogil=True)
def sweep_column(
    rating: int,
    layout: int,
    n_labels: int,
    label: int,
    nominal: bool,
    index: NDArray[np.int32],
    value: Array,
    statistics: Array,
    weights: Array,
    total: Array,
    total_weight: float,
    filled: Array,
    filled_weight: float,
    l2: float,
    min_coverage: float,
    best: float,
    scratch: tuple[Array, Array, Array, Array],
) -> tuple[float, int, float, int]:
    """Rate all conditions on a feature, given the entries of the covered, sampled examples in ascending order.

    `total` and `filled` are sums over all these examples, and over those that index -1 stands for. `label` is the
    label of a single-label head, or -1 while it is open. Returns gain, operator, value and label of the
    best condition that beats `best`; operator -1 if there is none.
    """
    sums, others, A, z = scratch
    sums[:] = 0.0
    weight = 0.0
    best_operator, best_value, best_label = -1, 0.0, label
    m = index.shape[0]
    if value[0] == value[m - 1]:
        return best, best_operator, best_value, best_label
    for j in range(m):
        n = index[j]
        if n >= 0:
            weight += weights[n]
            _add(rating, layout, n_labels, label, statistics[n], weights[n], sums)
        else:
            weight += filled_weight
            sums += filled
        if j + 1 < m and value[j + 1] == value[j]:
            continue
        if j + 1 == m and not nominal:
            break
        # The condition's examples are in `sums`; those of its negation are the rest of the total.
        gains = (0.0, 0.0)
        if rating == RATE_DECOMPOSABLE:
            gains = rate_decomposable(sums, total, l2)
        elif rating == RATE_SINGLE and label >= 0:
            gains = rate_label(sums[0], sums[1], l2), rate_label(total[0] - sums[0], total[1] - sums[1], l2)
        else:
            for s in range(sums.shape[0]):
                others[s] = total[s] - sums[s]
            if rating == RATE_BOUND:
                gains = bound_gain(layout, sums, weight, l2), bound_gain(layout, others, total_weight - weight, l2)
            elif rating == RATE_EXACT:
                gains = eliminate(sums, l2, A, z), eliminate(others, l2, A, z)
        for negated in range(2):
            if (total_weight - weight if negated else weight) < min_coverage:
                continue
            found = -1
            if rating == RATE_SINGLE and label < 0:
                candidate = others if negated else sums
                width = candidate.shape[0] // 2
                for k in range(n_labels):
                    gain = rate_label(candidate[k], candidate[width + k], l2)
                    if gain > best * (1 + TIE):
                        best = gain
                        found = k
            elif gains[negated] > best * (1 + TIE):
                best = gains[negated]
                found = max(label, 0)
            if found >= 0:
                best_operator = (EQUAL if nominal else AT_MOST) + negated
                best_value = value[j] if nominal else midpoint(value[j], value[j + 1])
                best_label = found
        if nominal:
            sums[:] = 0.0
            weight = 0.0
    return best, best_operator, best_value, best_label


@njit(cache=True, nogil=True)
def refine_rule(
    columns: Columns,
    statistics: Array,
    weights: Array,
    rows: NDArray[np.int32],
    body: tuple[NDArray[np.int32], NDArray[np.int8], Array],
    rating: int,
    layout: int,
    n_labels: int,
    l2: float,
    n_drawn_features: int,
    max_conditions: int,
    min_coverage: float,
    seed: int,
    rule: int,
) -> tuple[int, int, int, tuple[NDArray[np.int32], NDArray[np.int8], Array]]:
    """Learn the body of a rule on a sample of the examples: those of positive weight.

    `rows` must hold all examples and is narrowed to those that the body covers, sampled or not. Returns the numbers of
    covered rows and of conditions, the label of a single-label head (-1 if the body is empty) and the body, grown
    if there was too little room.
    """
    n_features = columns.nominal.shape[0]
    expand = rating == RATE_EXACT and layout != DENSE
    size = statistics.shape[1]
    if expand:
        size = pad(n_labels) + pad(n_labels * (n_labels + 1) // 2)
    k = n_labels if rating == RATE_EXACT else 0
    scratch = np.empty(size), np.empty(size), np.empty((k, k)), np.empty(k)
    whole, total, filled, missing = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    index = np.empty(weights.shape[0] + 1, dtype=np.int32)
    value = np.empty(weights.shape[0] + 1)
    marks = np.zeros(weights.shape[0], dtype=np.int8)
    n_rows = rows.shape[0]
    n_conditions = 0
    label = -1
    best = 0.0
    while n_conditions < max_conditions:
        covered = rows[:n_rows]
        whole_weight = sum_rows(layout, expand, n_labels, statistics, covered, weights, whole)
        n_sampled = 0
        for r in range(n_rows):
            n_sampled += weights[covered[r]] > 0.0
        if label >= 0:  # from now on only that label counts
            size = 2
            whole[0], whole[1] = whole[label], whole[statistics.shape[1] // 2 + label]
        chosen = -1
        operator, threshold, new_label = -1, 0.0, label
        for feature in draw_features(seed, rule, n_conditions + 1, n_features, n_drawn_features):
            m, n_missing = collect_column(columns, feature, weights, n_sampled, index, value)
            if m < 2 or value[0] == value[m - 1]:
                continue
            total[:size] = whole[:size]
            total_weight = whole_weight
            if n_missing > 0:
                missing[:size] = 0.0
                for j in range(m, m + n_missing):
                    n = index[j]
                    total_weight -= weights[n]
                    _add(rating, layout, n_labels, label, statistics[n], weights[n], missing[:size])
                total[:size] -= missing[:size]
            filled_weight = 0.0
            filled[:size] = 0.0
            for j in range(m):
                if index[j] < 0:
                    filled_weight = total_weight
                    for i in range(m):
                        n = index[i]
                        if n >= 0:
                            filled_weight -= weights[n]
                            _add(rating, layout, n_labels, label, statistics[n], weights[n], filled[:size])
                    filled[:size] = total[:size] - filled[:size]
                    break
            best, found_operator, found_threshold, found_label = sweep_column(
                rating,
                layout,
                n_labels,
                label,
                columns.nominal[feature],
                index[:m],
                value[:m],
                statistics,
                weights,
                total[:size],
                total_weight,
                filled[:size],
                filled_weight,
                l2,
                min_coverage,
                best,
                (scratch[0][:size], scratch[1][:size], scratch[2], scratch[3]),
            )
            if found_operator >= 0:
                chosen, operator, threshold, new_label = feature, found_operator, found_threshold, found_label
        if chosen < 0:
            break
        if rating == RATE_SINGLE:
            label = new_label
        if n_conditions == body[0].shape[0]:
            body = (
                np.append(body[0], np.empty_like(body[0])),
                np.append(body[1], np.empty_like(body[1])),
                np.append(body[2], np.empty_like(body[2])),
            )
        body[0][n_conditions] = chosen
        body[1][n_conditions] = operator
        body[2][n_conditions] = threshold
        n_conditions += 1
        n_rows = narrow_rows(columns, chosen, operator, threshold, covered, weights, marks)
    return n_rows, n_conditions, label, body
