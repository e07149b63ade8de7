"""A measure gives one number for each example: how well its labels are predicted.

The means over examples are metrics, those of `pyboomer.metrics`; a bootstrap needs the numbers one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Measure(NamedTuple):
    """A function of true and predicted labels, (N, K) each, that returns N numbers, with its title and its sense.

    A true label that is NaN is not known: the measures of `MEASURES` leave it out.

    Examples
    --------
    >>> import numpy as np
    >>> from pyboomer.experiments import MEASURES
    >>> MEASURES["subset"](np.array([[1, 0], [1, 1]]), np.array([[1, 0], [0, 1]]))
    array([0., 1.])
    """

    title: str
    function: Callable[[np.ndarray, np.ndarray], np.ndarray]
    larger_is_better: bool

    def __call__(self, true: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """The number of each example."""
        return self.function(true, predicted)

    def as_loss(self, values: np.ndarray) -> np.ndarray:
        """The numbers such that smaller is better."""
        return 1 - values if self.larger_is_better else values


def rate_hamming(true: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """The share of an example's known labels that are wrong."""
    known = find_known(true)
    return np.asarray(((true != predicted) & known).sum(axis=-1) / np.maximum(known.sum(axis=-1), 1))


def rate_subset(true: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """1 for an example with any known label wrong, else 0."""
    return np.asarray(((true != predicted) & find_known(true)).any(axis=-1).astype(np.float64))


def rate_f1(true: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """The F1 of an example's known labels; 1 if it has none and none is predicted."""
    known = find_known(true)
    relevant, found = (true != 0) & known, (predicted != 0) & known
    both, either = (relevant & found).sum(axis=-1), relevant.sum(axis=-1) + found.sum(axis=-1)
    return np.where(either == 0, 1.0, 2 * both / np.maximum(either, 1))


def find_known(true: np.ndarray) -> np.ndarray:
    """Which labels are known: those that are not NaN, which alone differs from itself."""
    return np.asarray(true == true)


MEASURES = {
    "subset": Measure("Subset 0/1 loss", rate_subset, larger_is_better=False),
    "hamming": Measure("Hamming loss", rate_hamming, larger_is_better=False),
    "f1": Measure("Example-based F1", rate_f1, larger_is_better=True),
}  # in the order of Table 1


def find_measure(measure: Any) -> Measure:
    """A measure by name; a function of true and predicted labels is taken as a loss."""
    if isinstance(measure, Measure):
        return measure
    if isinstance(measure, str) and measure in MEASURES:
        return MEASURES[measure]
    if callable(measure):
        return Measure(getattr(measure, "__name__", "loss"), measure, larger_is_better=False)
    names = ", ".join(map(repr, MEASURES))
    raise ValueError(
        f"measure must be {names}, a Measure, or a function that gives a loss per example, got {measure!r}"
    )
