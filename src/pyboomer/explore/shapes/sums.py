"""The sum of rules on the same features is a shape: each step adds up the heads of the rules that cover it."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Matrix
from pyboomer.explore.shapes.functions import FeatureShape, PairShape, ShapeFunctions
from pyboomer.explore.shapes.steps import cover_steps, find_steps
from pyboomer.explore.shapes.variance import centre, find_cells, measure_parts, purify_pairs, purify_rest
from pyboomer.rules.ensemble import RuleEnsemble

if TYPE_CHECKING:
    from pyboomer.estimator import RuleEstimator


def shape_functions(model: "RuleEstimator", X: Any = None) -> ShapeFunctions:
    """What a fitted model says by single features and by pairs of them; see `RuleEstimator.shape_functions`."""
    fitted = model.get_fitted()
    return find_shapes(fitted.rules, None if X is None else fitted.read_matrix(X))


def find_shapes(rules: RuleEnsemble, matrix: Matrix | None = None) -> ShapeFunctions:
    """The shapes of rules, centred and purified by examples if there are any, which are given as rules read them."""
    n_tested = count_tested(rules)
    spread = _measure_spread(rules)
    # examples tell what longer rules say of each of their features
    concerned = rules[n_tested == 1] if matrix is None else rules
    features = list(_make_features(concerned, rules[n_tested == 1], spread[n_tested == 1]))
    pairs = list(_make_pairs(rules[n_tested == 2], spread[n_tested == 2]))
    intercept, rest = rules[n_tested == 0].head_matrix().sum(axis=0), rules[n_tested > 2]
    if matrix is None:
        shares = _share([spread[n_tested == 1].sum(), spread[n_tested == 2].sum(), spread[n_tested > 2].sum()])
    else:
        features, cells = find_cells(features, matrix, rules.schema)
        features, pairs = purify_pairs(features, pairs, cells)
        features, constant, rest = purify_rest(features, rest, cells)
        features, means = centre(features, cells)
        intercept = intercept + constant + means
        shares = _share(measure_parts(features, pairs, rest, matrix, cells))
    by = "coverage" if matrix is None else "examples"
    return ShapeFunctions(intercept, _sort(features), _sort(pairs), rest, shares, by, rules.label_names)


def count_tested(rules: RuleEnsemble) -> NDArray[np.int64]:
    """How many features each rule tests; several conditions on one are merged."""
    numbers = np.repeat(np.arange(len(rules)), np.diff(rules.condition_offsets))
    tested = np.unique(np.column_stack([numbers, rules.condition_features]), axis=0)
    return np.bincount(tested[:, 0], minlength=len(rules))


def _sort(shapes: list[Any]) -> tuple[Any, ...]:
    return tuple(sorted(shapes, key=lambda shape: -float(shape.importance.sum())))


def _measure_spread(rules: RuleEnsemble) -> Array:
    """The standard deviations, over the training examples, of what each rule adds to each label."""
    everything = max(float(rules.coverage.max(initial=0.0)), 1e-300)  # that of the default rule
    share = np.clip(rules.coverage / everything, 0.0, 1.0)
    return np.sqrt(share * (1 - share))[:, None] * np.abs(rules.head_matrix())


def _make_features(concerned: RuleEnsemble, alone: RuleEnsemble, spread: Array) -> Iterator[FeatureShape]:
    """A shape for each feature of the rules concerned: the sum of the rules that test no other."""
    own = alone.condition_features[alone.condition_offsets[:-1]]
    for steps in find_steps(concerned, np.unique(concerned.condition_features).tolist()):
        mine = own == steps.feature
        part = alone[mine]
        values = cover_steps(part, steps).T @ part.head_matrix()
        yield FeatureShape(steps, values, len(part), None, spread[mine].sum(axis=0), alone.label_names)


def _make_pairs(rules: RuleEnsemble, spread: Array) -> Iterator[PairShape]:
    """A shape for each pair of features that rules test, and no other."""
    starts = rules.condition_offsets[:-1]
    if len(rules) == 0:
        return
    first = np.minimum.reduceat(rules.condition_features, starts)
    second = np.maximum.reduceat(rules.condition_features, starts)
    found, pair_of = np.unique(np.column_stack([first, second]), axis=0, return_inverse=True)
    order = np.argsort(pair_of.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(pair_of.ravel()))
    for pair, own in zip(found.tolist(), np.split(order, ends[:-1]), strict=True):
        part = rules[own]
        one, two = find_steps(part, pair)
        heads = cover_steps(part, one)[:, :, None] * part.head_matrix()[:, None, :]
        values = np.tensordot(cover_steps(part, two), heads, axes=(0, 0)).swapaxes(0, 1)
        yield PairShape((one, two), values, len(part), None, spread[own].sum(axis=0), rules.label_names)


def _share(parts: Sequence[Any]) -> dict[str, float]:
    """The shares of parts of the scores; if these are the same for all examples, they are additive."""
    total = float(sum(parts))
    shares = [float(part) / total for part in parts] if total > 0 else [1.0, 0.0, 0.0]
    return dict(zip(("additive", "pairwise", "more"), shares, strict=True))
