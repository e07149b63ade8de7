"""Rounding says with how few digits a threshold can be printed and still divide the training examples as it does.

A threshold t lies between two adjacent values of its feature in the training data, a <= t < b. Any number of that gap
makes the same rule of these examples, so t is printed with the fewest digits, from `FEWEST_DIGITS` on, that stay in it.
What is printed is thus exact in effect: read again, it covers the same training examples. Predictions always use t.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Matrix
from pyboomer.columns.categories import count_below
from pyboomer.columns.features import MISSING, Columns
from pyboomer.compiling.kernel import kernel
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.operators import ABOVE
from pyboomer.rules.text import FEWEST_DIGITS, format_threshold

MOST_DIGITS = 17  # enough for any float64
BLOCK = 256  # examples that stay in the cache while all features are looked at


class Gaps(NamedTuple):
    """For each of some thresholds, the largest value up to it and the smallest above it; infinite if there is none."""

    below: Array
    above: Array


def round_thresholds(rules: RuleEnsemble, columns: Columns, X: Matrix) -> RuleEnsemble:
    """Find the digits of all thresholds for the training data X and its columns; none has fewer than before."""
    numeric = np.flatnonzero(rules.condition_operators <= ABOVE)
    thresholds, features = rules.condition_values[numeric], rules.condition_features[numeric]
    gaps = Gaps(np.full(len(numeric), -np.inf), np.full(len(numeric), np.inf))
    if columns.codes.shape[1]:
        lowest, highest = np.full((2, X.shape[1], MISSING + 1), np.nan)
        _find_ends(X, columns.codes, np.unique(features), lowest, highest)
        _narrow_by_bins(lowest, highest, features, thresholds, gaps)
    else:
        _narrow_by_values(columns, X.shape[0], features, thresholds, gaps)
    digits = rules.condition_digits.copy()
    digits[numeric] = np.maximum(digits[numeric], _count_all_digits(thresholds, gaps))
    return rules.with_digits(digits)


def _count_all_digits(thresholds: Array, gaps: Gaps) -> NDArray[np.int8]:
    digits = np.full(len(thresholds), FEWEST_DIGITS, dtype=np.int8)
    size = np.abs(thresholds)
    # rounding moves a threshold by no more than half a unit of its last digit: most gaps are wider than that by far
    step = 0.51 * 10.0 ** (np.floor(np.log10(np.maximum(size, 1e-300))) + 1 - FEWEST_DIGITS)
    narrow = (thresholds - step < gaps.below) | (thresholds + step >= gaps.above) | (size < 1e-290)
    for i in np.flatnonzero(narrow).tolist():
        digits[i] = count_digits(float(thresholds[i]), float(gaps.below[i]), float(gaps.above[i]))
    return digits


def count_digits(threshold: float, below: float, above: float) -> int:
    """The fewest digits with which a threshold stays between two values; `below` may be the threshold itself."""
    for digits in range(FEWEST_DIGITS, MOST_DIGITS):
        if below <= float(format_threshold(threshold, digits)) < above:
            return digits
    return MOST_DIGITS


@kernel
def _narrow(value: float, threshold: float, i: int, gaps: Gaps) -> None:
    """Narrow a gap to a value of the feature."""
    if value <= threshold:
        gaps.below[i] = max(gaps.below[i], value)
    elif value > threshold:
        gaps.above[i] = min(gaps.above[i], value)


@kernel
def _narrow_by_values(
    columns: Columns, n_examples: int, features: NDArray[np.int32], thresholds: Array, gaps: Gaps
) -> None:
    for i in range(features.shape[0]):
        f = features[i]
        start, end = columns.start[f], columns.start[f + 1]
        values = columns.value[start : start + columns.present[f]]
        place = count_below(values, thresholds[i], True)
        for e in range(max(place - 1, 0), min(place + 1, values.shape[0])):
            _narrow(values[e], thresholds[i], i, gaps)
        if end - start < n_examples:  # the others have the fill value
            _narrow(columns.fill[f], thresholds[i], i, gaps)


@kernel
def _narrow_by_bins(lowest: Array, highest: Array, features: NDArray[np.int32], thresholds: Array, gaps: Gaps) -> None:
    """The same for binned values: a threshold separates bins, so the ends of these are all that matters."""
    for i in range(features.shape[0]):
        for b in range(MISSING):
            _narrow(lowest[features[i], b], thresholds[i], i, gaps)
            _narrow(highest[features[i], b], thresholds[i], i, gaps)


@kernel
def _find_ends(X: Array, codes: NDArray[np.uint8], features: NDArray[np.int32], lowest: Array, highest: Array) -> None:
    """The smallest and the largest value of each bin of some features; X is read once."""
    for begin in range(0, X.shape[0], BLOCK):
        for i in range(features.shape[0]):
            f = features[i]
            for n in range(begin, min(begin + BLOCK, X.shape[0])):
                x, b = X[n, f], codes[f, n]
                if not x >= lowest[f, b]:
                    lowest[f, b] = x
                if not x <= highest[f, b]:
                    highest[f, b] = x
