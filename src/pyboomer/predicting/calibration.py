"""Calibration turns scores into probabilities that are right on examples the rules were not learned from.

Each label has a curve, an isotonic regression of its relevance on its score. Few examples of a rare label would make a
ragged one; so it is drawn towards the curve of all labels taken together, which counts `PRIOR` times as much as the
label's own examples. Joint probabilities, computed from these, have a curve of their own, that of all known label
vectors together, and are scaled to add up to 1.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy.special import logit

from pyboomer.arrays import Array, Vectors
from pyboomer.predicting.decoding import joint_probabilities

FOLDS = 5  # of the cross-fitting
PRIOR = 2.0  # weight of all labels together: of 0.5, 1 and 2 the best on benchmark data, in log-loss and error alike
CANDIDATES = 50  # known label vectors per example, the most probable ones, that the joint curve is fitted on


@dataclass(frozen=True)
class Curve:
    """A rising line through some points; level beyond the first and the last."""

    x: tuple[float, ...]
    y: tuple[float, ...]

    def __call__(self, values: Array) -> Array:
        return np.interp(values, self.x, self.y)


@dataclass(frozen=True)
class Calibration:
    """The curves of a model: of each label, and of its known label vectors."""

    labels: tuple[Curve, ...]
    joint: Curve | None

    def log_odds(self, scores: Array) -> Array:
        """The log-odds of the labels."""
        return logit(np.column_stack([curve(scores[:, k]) for k, curve in enumerate(self.labels)]))

    def scale_joint(self, joint: Array) -> Array:
        """The probabilities of the known label vectors, given those that follow from independent labels."""
        if self.joint is None:
            return joint
        scaled = self.joint(joint)
        return scaled / scaled.sum(axis=1, keepdims=True)

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts and lists that JSON can hold."""
        return {
            "labels": [[list(curve.x), list(curve.y)] for curve in self.labels],
            "joint": None if self.joint is None else [list(self.joint.x), list(self.joint.y)],
        }

    @classmethod
    def from_dict(cls, data: Any, n_labels: int) -> Self:
        """Restore curves from `to_dict`, or from JSON of any origin: everything is checked."""
        if not isinstance(data, dict) or set(data) != {"labels", "joint"}:
            raise ValueError("calibration must have labels and joint")
        if not isinstance(data["labels"], list) or len(data["labels"]) != n_labels:
            raise ValueError(f"calibration must have a curve for each of {n_labels} labels")
        joint = None if data["joint"] is None else _read_curve(data["joint"])
        return cls(tuple(_read_curve(points) for points in data["labels"]), joint)


def calibrate(scores: Array, Y: Array, vectors: Vectors, joint: Array | None = None) -> Calibration:
    """Fit the curves to the scores of examples that the rules were not learned from; NaN in Y is an unknown label.

    `joint` are the probabilities of the known label vectors, if they do not follow from those of independent labels.
    """
    known = ~np.isnan(Y)
    pooled = _fit_curve(scores[known], Y[known])
    labels = []
    for k in range(Y.shape[1]):
        f, y = scores[known[:, k], k], Y[known[:, k], k]
        if len(y) == 0:
            labels.append(Curve((0.0, 1.0), (0.5, 0.5)))  # its scores are 0, and say nothing
            continue
        target = (y + PRIOR * pooled(f)) / (1 + PRIOR)
        labels.append(_fit_curve(f, target))
    calibration = Calibration(tuple(labels), None)
    complete = known.all(axis=1)
    if not complete.any() or len(vectors) < 2:
        return calibration
    if joint is None:
        joint = joint_probabilities(calibration.log_odds(scores[complete]), vectors)
    else:
        joint = joint[complete]
    best = np.argsort(-joint, axis=1, kind="stable")[:, :CANDIDATES]
    is_true = (vectors[best] == Y[complete][:, None, :]).all(axis=2)
    curve = _fit_curve(np.take_along_axis(joint, best, 1).ravel(), is_true.ravel().astype(float))
    return Calibration(calibration.labels, curve)


def _fit_curve(x: Array, y: Array) -> Curve:
    """An isotonic regression; half an example of the other kind at either end keeps it off 0 and 1."""
    from sklearn.isotonic import IsotonicRegression  # takes its time, and is rarely needed

    weight = np.append(np.ones(len(x)), [0.5, 0.5])
    regression = IsotonicRegression().fit(np.append(x, [x.min(), x.max()]), np.append(y, [1.0, 0.0]), weight)
    return Curve(tuple(regression.X_thresholds_.tolist()), tuple(regression.y_thresholds_.tolist()))


def _read_curve(points: Any) -> Curve:
    if not isinstance(points, list) or len(points) != 2:
        raise ValueError("a curve of calibration must be two lists")
    x, y = points
    for values in (x, y):
        if not isinstance(values, list) or not values or set(map(type, values)) - {int, float}:
            raise ValueError("a curve of calibration must be two lists of numbers")
    if len(x) != len(y) or any(a > b for a, b in pairwise(x)):
        raise ValueError("a curve of calibration must have ascending scores, and a probability for each")
    if not all(0 < value < 1 for value in y) or not all(abs(value) < 1e300 for value in x):
        raise ValueError("a curve of calibration must have finite scores and probabilities between 0 and 1")
    return Curve(tuple(map(float, x)), tuple(map(float, y)))
