"""A problem is drawn at random: a small table, labels or numbers, weights, and parameters that suit them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyboomer import BoomerClassifier, BoomerRegressor

Array = NDArray[np.float64]

# Each pair of a loss and a head is compiled on its own, for each kind of columns.
LOSSES = (
    "example-wise-logistic",
    "label-wise-logistic",
    "label-wise-squared-error",
    "example-wise-squared-error",
    "label-wise-squared-hinge",
    "example-wise-squared-hinge",
)
FEW_LOSSES = LOSSES[:2]


@dataclass(frozen=True)
class Problem:
    """What is learned from, and how; `y` is as users have it, `Y` is a matrix of 0, 1 and NaN, or of numbers."""

    X: Array
    y: Any
    Y: Array
    weight: Array | None
    kind: str  # "labels", "classes" or "numbers"
    parameters: dict[str, Any]

    def make(self, **changed: Any) -> Any:
        """The estimator, not fitted."""
        estimator = BoomerRegressor if self.kind == "numbers" else BoomerClassifier
        return estimator(**{**self.parameters, **changed})

    @property
    def nominal(self) -> tuple[int, ...]:
        return tuple(self.parameters.get("categorical_features") or ())

    def get(self, name: str) -> Any:
        """The value of a parameter, be it the default."""
        return getattr(self.make(), name)


def choose(rng: np.random.Generator, *options: Any) -> Any:
    return options[int(rng.integers(len(options)))]


def draw_problem(rng: np.random.Generator, few: bool) -> Problem:
    """A problem of at most 40 examples."""
    n, n_features, n_labels = int(rng.integers(5, 41)), int(rng.integers(1, 7)), int(rng.integers(1, 6))
    X, nominal = draw_table(rng, n, n_features)
    kind = choose(rng, "labels", "labels", "labels", "labels", "classes", "numbers")
    parameters = draw_parameters(rng, kind, n_features, n_labels, few)
    if nominal:
        parameters["categorical_features"] = nominal
    if kind == "numbers":
        Y = draw_targets(rng, X, n_labels)
        y: Any = Y[:, 0] if n_labels == 1 and rng.random() < 0.5 else Y
    elif kind == "classes":
        Y, y = draw_classes(rng, X)
    else:
        Y = draw_labels(rng, X, n_labels)
        y = Y if np.isnan(Y).any() else Y.astype(choose(rng, int, np.int8, bool, float))
    return Problem(X, y, Y, draw_weight(rng, Y), kind, parameters)


def draw_table(rng: np.random.Generator, n: int, n_features: int) -> tuple[Array, list[int]]:
    """Columns of several kinds, and which of them are nominal."""
    X, nominal = np.empty((n, n_features)), []
    for f in range(n_features):
        kind = rng.integers(12)
        if kind < 4:
            X[:, f] = rng.normal(size=n).round(int(rng.integers(4)))
        elif kind < 6:
            X[:, f] = rng.normal(size=n) * (rng.random(n) < 0.4)  # mostly zeros
        elif kind < 7:
            X[:, f] = rng.integers(-2, 3, size=n)
        elif kind < 8:
            X[:, f] = rng.normal() if rng.random() < 0.5 else X[:, rng.integers(f + 1)] if f else 0.0
        elif kind < 9:
            X[:, f] = rng.normal(size=n) * 10.0 ** rng.integers(-300, 300)
        elif kind < 10:
            X[:, f] = np.nextafter(1.0, choose(rng, 0.0, 2.0)) if rng.random() < 0.1 else 1.0
            X[rng.random(n) < 0.5, f] = 1.0
        else:
            X[:, f] = rng.integers(0, rng.integers(1, 6), size=n) * choose(rng, 1.0, 1.0, -1.5, 100.0)
            nominal.append(f)
    if rng.random() < 0.3:
        X[rng.random(X.shape) < choose(rng, 0.05, 0.3)] = np.nan
    return X, nominal


def _signal(rng: np.random.Generator, X: Array, n_outputs: int) -> Array:
    """Numbers that depend on the table, with noise."""
    ranks = np.argsort(np.argsort(np.nan_to_num(X), axis=0), axis=0) / len(X) - 0.5
    return ranks @ rng.normal(size=(X.shape[1], n_outputs)) + choose(rng, 0.1, 1.0) * rng.normal(
        size=(len(X), n_outputs)
    )


def draw_labels(rng: np.random.Generator, X: Array, n_labels: int) -> Array:
    Y = (_signal(rng, X, n_labels) > choose(rng, 0.0, 0.0, 0.5, -0.5)).astype(float)
    if rng.random() < 0.15:
        Y[:, rng.integers(n_labels)] = choose(rng, 0.0, 1.0)  # the same for all examples
    if rng.random() < 0.2:
        Y[rng.random(Y.shape) < choose(rng, 0.1, 0.5)] = np.nan
        Y[0] = choose(rng, 0.0, 1.0)  # something must be known
    return Y


def draw_classes(rng: np.random.Generator, X: Array) -> tuple[Array, Any]:
    n_classes = int(rng.integers(1, 5))
    code = np.argmax(_signal(rng, X, n_classes), axis=1)
    names: Any = choose(
        rng, np.array(["a", "b b", "ü", '"'])[:n_classes], np.array([-3, 0, 7, 100])[:n_classes], np.arange(4.0)
    )
    present = np.unique(names[code])
    one_hot = (names[code][:, None] == present).astype(float)
    return one_hot[:, 1:] if len(present) == 2 else one_hot, names[code]


def draw_targets(rng: np.random.Generator, X: Array, n_targets: int) -> Array:
    Y = _signal(rng, X, n_targets) * 10.0 ** rng.integers(-3, 4) + choose(rng, 0.0, 0.0, 5.0)
    return Y.round(2) if rng.random() < 0.3 else Y


def draw_weight(rng: np.random.Generator, Y: Array) -> Array | None:
    kind, n = rng.integers(8), len(Y)
    if kind < 5:
        return None
    if kind == 5:
        weight = rng.integers(0, 4, size=n).astype(float)
    elif kind == 6:
        weight = rng.uniform(0.2, 3.0, size=n)
    else:
        weight = rng.choice([0.0, 0.5, 1.0, 2.0], size=Y.shape, p=[0.1, 0.2, 0.5, 0.2])
    weight[0] = 1.0
    return weight


def draw_parameters(rng: np.random.Generator, kind: str, n_features: int, n_labels: int, few: bool) -> dict[str, Any]:
    """Parameters, most of them left at their defaults."""
    drawn: dict[str, Any] = {
        "n_rules": int(rng.integers(1, 9)),
        "random_state": int(rng.integers(2**32)),
        "learning_rate": choose(rng, 0.1, 0.3, 1.0, round(float(rng.uniform(0.01, 1)), 2)),
        "head": choose(rng, "multi", "multi", "single")
        if few
        else choose(rng, "multi", "multi", "single", 2, 0.5, 1, 3),
        "bootstrap": bool(rng.random() < 0.6),
    }

    def sometimes(share: float, name: str, *values: Any) -> None:
        if rng.random() < share:
            drawn[name] = choose(rng, *values)

    sometimes(0.4, "l2", 0.0, 0.25, 4.0, 100.0)
    sometimes(0.2, "l1", 0.1, 1.0, 3.0)
    stratified = () if kind == "numbers" else ("stratified-label-wise", "stratified-example-wise")
    sometimes(0.3, "sampling", "without-replacement", *stratified)
    sometimes(0.2, "max_samples", None, 1, 3, 0.5, 1.0)
    sometimes(0.6, "max_features", "log2", None, 1, 2, 0.5, 1.0)
    sometimes(0.2, "fixed_features", [0], [n_features - 1], list(range(n_features)))
    sometimes(0.2, "max_labels", None, "round-robin", 1, n_labels, 0.5)
    sometimes(0.4, "max_conditions", None, 1, 2, 5)
    sometimes(0.2, "min_coverage", 2, 2.5, 10)
    sometimes(0.25, "max_bins", *((255,) if few else (2, 5, 255, None)))
    if kind == "numbers":
        drawn["l2"] = choose(rng, 0.0, drawn.get("l2", 1.0))
    else:
        drawn["loss"] = choose(rng, *(FEW_LOSSES if few else LOSSES + FEW_LOSSES * 2))
        drawn["search"] = choose(rng, "exact", "exact", "bound")
        if few:  # what other tests have compiled
            drawn["search"] = "bound" if "max_bins" in drawn else "exact"
        if kind == "labels":
            sometimes(0.3, "decode", "hamming", "subset", "f1", "top-1", "top-3", 0.3, [0.5] * n_labels)
            sometimes(0.15, "class_weight", {1: 3.0}, {0: 0.5, 1: 2}, "balanced")
        sometimes(0.3, "default_rule", "newton")
        sometimes(0.15, "known_vectors", False, True)
        sometimes(0.07, "calibration", "isotonic")
    if rng.random() < 0.1:
        drawn["early_stopping"] = True
        sometimes(0.5, "validation_fraction", 0.3, 0.5)
        sometimes(0.5, "n_iter_no_change", 1, 3)
    return drawn
