"""Rounding says with how few digits a threshold can be printed and still divide the training examples as it does.

A threshold t lies between two adjacent values of its feature in the training data, a <= t < b. Any number of that gap
makes the same rule of these examples, so t is printed with the fewest digits, from `FEWEST_DIGITS` on, that stay in it.
What is printed is thus exact in effect: read again, it covers the same training examples. Predictions always use t.
"""

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyboomer.features import ABOVE, MISSING, Columns, Matrix
from pyboomer.rules import RuleEnsemble
from pyboomer.ruletext import FEWEST_DIGITS, format_threshold

Array = NDArray[np.float64]

MOST_DIGITS = 17  # enough for any float64


class Gaps(NamedTuple):
    """For each of some thresholds, the largest value up to it and the smallest above it; infinite if there is none."""

    below: Array
    above: Array


def round_thresholds(rules: RuleEnsemble, columns: Columns, X: Matrix) -> RuleEnsemble:
    """Find the digits of all thresholds for the training data X and its columns; none has fewer than before."""
    numeric = np.flatnonzero(rules.condition_operators <= ABOVE)
    numeric = numeric[np.argsort(rules.condition_features[numeric], kind="stable")]
    thresholds = rules.condition_values[numeric]
    features, starts = np.unique(rules.condition_features[numeric], return_index=True)
    below, above = np.empty(len(numeric)), np.empty(len(numeric))
    for f, (start, end) in zip(features.tolist(), pairwise([*starts, len(numeric)]), strict=True):
        if columns.codes.shape[1]:
            gaps = _find_binned_gaps(X[:, f], columns.codes[f], thresholds[start:end])
        else:
            gaps = _find_sorted_gaps(columns, f, thresholds[start:end], X.shape[0])
        below[start:end], above[start:end] = gaps
    digits = rules.condition_digits.copy()
    digits[numeric] = np.maximum(digits[numeric], _count_all_digits(thresholds, Gaps(below, above)))
    return replace(rules, condition_digits=digits)


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


def _find_sorted_gaps(columns: Columns, feature: int, thresholds: Array, n_examples: int) -> Gaps:
    start, end = columns.start[feature : feature + 2]
    values = columns.value[start : start + columns.present[feature]]
    if end - start < n_examples:  # the others have the fill value
        fill = columns.fill[feature]
        values = np.insert(values, np.searchsorted(values, fill), fill)
    return _look_up_gaps(values, thresholds)


def _look_up_gaps(values: Array, thresholds: Array) -> Gaps:
    """The gaps between ascending values."""
    bounded = np.concatenate([[-np.inf], values, [np.inf]])
    place = np.searchsorted(values, thresholds, side="right")
    return Gaps(bounded[place], bounded[place + 1])


def _find_binned_gaps(column: Array, codes: NDArray[np.uint8], thresholds: Array) -> Gaps:
    """The same for binned values: a threshold separates bins, so the ends of these are all that matters."""
    lowest, highest = np.full(MISSING + 1, np.nan), np.full(MISSING + 1, np.nan)
    _find_ends(column, codes, lowest, highest)
    ends = np.concatenate([lowest[:MISSING], highest[:MISSING]])
    return _look_up_gaps(np.sort(ends[~np.isnan(ends)]), thresholds)


@njit(cache=True, nogil=True)
def _find_ends(column: Array, codes: NDArray[np.uint8], lowest: Array, highest: Array) -> None:
    """The smallest and the largest value of each bin."""
    for n in range(column.shape[0]):
        x, b = column[n], codes[n]
        if not x >= lowest[b]:
            lowest[b] = x
        if not x <= highest[b]:
            highest[b] = x
