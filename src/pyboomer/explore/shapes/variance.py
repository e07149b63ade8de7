"""The analysis of variance tells, by examples, what rules on several features say of each of them alone.

How it does so is in `functions`. What it moves from one shape to another changes no sum.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Matrix
from pyboomer.explore.shapes.functions import FeatureShape, PairShape
from pyboomer.explore.shapes.steps import Steps, list_columns
from pyboomer.predicting.scores import add_scores
from pyboomer.rules.ensemble import RuleEnsemble, join_rules
from pyboomer.rules.rule import Rule
from pyboomer.rules.schema import Schema

Cells = dict[int, NDArray[np.intp]]  # the step of each example, by feature


def find_cells(features: Sequence[FeatureShape], matrix: Matrix, schema: Schema) -> tuple[list[FeatureShape], Cells]:
    """The steps of all examples; and the shapes, which know the span of the values now."""
    numbers = np.array([shape.steps.feature for shape in features], dtype=np.int64)
    known, cells = [], {}
    for shape, column in zip(features, list_columns(schema, numbers, matrix), strict=True):
        present = column[~np.isnan(column)]
        span = (float(present.min()), float(present.max())) if len(present) else (np.nan, np.nan)
        known.append(replace(shape, steps=replace(shape.steps, span=span)))
        cells[shape.steps.feature] = shape.steps.find(column)
    return known, cells


def _refine(coarse: Steps, fine: Steps) -> NDArray[np.intp]:
    """The step among a part of the edges that each step among all of them is in."""
    return coarse.find(np.append(fine.edges, [np.inf, np.nan]))


def purify_pairs(
    features: Sequence[FeatureShape], pairs: Sequence[PairShape], cells: Cells
) -> tuple[list[FeatureShape], list[PairShape]]:
    """Move what pairs say of single features to these."""
    fine = {shape.steps.feature: shape for shape in features}
    values = {feature: shape.values.copy() for feature, shape in fine.items()}
    n_rules = {feature: shape.n_rules for feature, shape in fine.items()}
    purified = []
    for pair in pairs:
        one, two = (replace(steps, span=fine[steps.feature].steps.span) for steps in pair.steps)
        to_one, to_two = (_refine(steps, fine[steps.feature].steps) for steps in (one, two))
        places = to_one[cells[one.feature]] * len(two) + to_two[cells[two.feature]]
        weights = np.bincount(places, minlength=len(one) * len(two)).reshape(len(one), len(two)).astype(np.float64)
        of_one, of_two, left = _purify(pair.values, weights)
        values[one.feature] += of_one[to_one]
        values[two.feature] += of_two[to_two]
        for steps in pair.steps:
            n_rules[steps.feature] += pair.n_rules
        importance = np.sqrt(np.tensordot(weights, left**2, axes=2) / weights.sum())
        purified.append(replace(pair, steps=(one, two), values=left, n_examples=weights, importance=importance))
    changed = [replace(shape, values=values[f], n_rules=n_rules[f]) for f, shape in fine.items()]
    return changed, purified


def _purify(values: Array, weights: Array) -> tuple[Array, Array, Array]:
    """What a grid says of its rows, of its columns, and what is left: the additive fit of least squares, taken off."""
    n_rows, n_columns, n_labels = values.shape
    of_rows, of_columns = np.zeros((n_rows, n_labels)), np.zeros((n_columns, n_labels))
    rows, columns = np.flatnonzero(weights.any(axis=1)), np.flatnonzero(weights.any(axis=0))
    seen, known = weights[np.ix_(rows, columns)], values[np.ix_(rows, columns)]
    normal = np.block([[np.diag(seen.sum(axis=1)), seen], [seen.T, np.diag(seen.sum(axis=0))]])
    weighted = seen[:, :, None] * known
    fit = np.linalg.lstsq(normal, np.concatenate([weighted.sum(axis=1), weighted.sum(axis=0)]), rcond=None)[0]
    of_rows[rows], of_columns[columns] = fit[: len(rows)], fit[len(rows) :]
    return of_rows, of_columns, values - of_rows[:, None, :] - of_columns[None, :, :]


def purify_rest(
    features: Sequence[FeatureShape], rest: RuleEnsemble, cells: Cells
) -> tuple[list[FeatureShape], Array, RuleEnsemble]:
    """Move what longer rules say of single features to these; the constants of that, and the rules that are left."""
    fine = {shape.steps.feature: shape for shape in features}
    values = {feature: shape.values.copy() for feature, shape in fine.items()}
    n_rules = {feature: shape.n_rules for feature, shape in fine.items()}
    heads, constant = rest.head_matrix(), np.zeros(len(rest.label_names))
    taken_off = []
    for t, rule in enumerate(rest):
        conditions = slice(*rest.condition_offsets[t : t + 2].tolist())
        tested = np.unique(rest.condition_features[conditions]).tolist()
        met = {f: np.ones(len(fine[f].steps), dtype=bool) for f in tested}
        own = (getattr(rest, f"condition_{name}")[conditions].tolist() for name in ("features", "operators", "values"))
        for feature, operator, value in zip(*own, strict=True):
            met[feature] &= fine[feature].steps.meet(operator, value)
        lets = np.column_stack([np.ones(len(cells[tested[0]])), *(met[f][cells[f]] for f in tested)])
        fit = np.linalg.lstsq(lets.T @ lets, lets.T @ lets.all(axis=1), rcond=None)[0]
        constant += fit[0] * heads[t]
        for feature, factor in zip(tested, fit[1:].tolist(), strict=True):
            values[feature][met[feature]] += factor * heads[t]
            n_rules[feature] += 1
            body = tuple(condition for condition in rule.body if condition.feature == feature)
            taken_off.append(replace(rule, body=body, scores=tuple(-factor * score for score in rule.scores)))
    changed = [replace(shape, values=values[f], n_rules=n_rules[f]) for f, shape in fine.items()]
    if not taken_off:
        return changed, constant, rest
    everywhere = Rule((), tuple(range(len(constant))), tuple((-constant).tolist()), rest.label_names)
    left = RuleEnsemble.from_rules([everywhere, *taken_off], rest.schema, rest.label_names)
    return changed, constant, join_rules([left, rest])


def centre(features: Sequence[FeatureShape], cells: Cells) -> tuple[list[FeatureShape], Array | float]:
    """Shapes that are 0 on average, and the sum of what they were before."""
    centred, total = [], 0.0
    for shape in features:
        counts = np.bincount(cells[shape.steps.feature], minlength=len(shape.steps)).astype(np.float64)
        mean = counts @ shape.values / counts.sum()
        values = shape.values - mean
        importance = np.sqrt(counts @ values**2 / counts.sum())
        centred.append(replace(shape, values=values, n_examples=counts, importance=importance))
        total = total + mean
    return centred, total


def measure_parts(
    features: Sequence[FeatureShape], pairs: Sequence[PairShape], rest: RuleEnsemble, matrix: Matrix, cells: Cells
) -> list[float]:
    """The covariances of the parts of the scores with the scores, summed over the labels."""
    parts = np.zeros((3, matrix.shape[0], len(rest.label_names)))
    fine = {shape.steps.feature: shape.steps for shape in features}
    for shape in features:
        parts[0] += shape.values[cells[shape.steps.feature]]
    for pair in pairs:
        one, two = (_refine(steps, fine[steps.feature])[cells[steps.feature]] for steps in pair.steps)
        parts[1] += pair.values[one, two]
    add_scores(rest, matrix, parts[2])
    scores = parts.sum(axis=0)
    scores -= scores.mean(axis=0)
    return [float((part * scores).sum()) for part in parts]
