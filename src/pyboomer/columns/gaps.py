"""A gap is where a threshold lies: between two adjacent values of its feature in the training data.

It says how few digits of the threshold can be printed; for the rest see `pyboomer.rules.digits`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Matrix
from pyboomer.columns.binned import MISSING, BinnedColumns
from pyboomer.columns.categories import count_below
from pyboomer.columns.device import DeviceMatrix, find_device_gaps
from pyboomer.columns.sorted import SortedColumns
from pyboomer.columns.sparse import SparseColumns
from pyboomer.compiling.kernel import inner, kernel
from pyboomer.compiling.kinds import by_kind
from pyboomer.rules.digits import count_all_digits, join_digits
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.operators import ABOVE
from pyboomer.rules.text import NO_DIGITS

BLOCK = 256  # examples that stay in the cache while all features are looked at


class Gaps(NamedTuple):
    """For each of some thresholds, the largest value up to it and the smallest above it; infinite if there is none."""

    below: Array
    above: Array


class Ends(NamedTuple):
    """The smallest and the largest value of each bin of each feature, shape (L, 256); NaN if there is none."""

    lowest: Array
    highest: Array


def round_thresholds(rules: RuleEnsemble, columns: Any, X: Matrix) -> RuleEnsemble:
    """Find the digits of all thresholds for the training data X and its columns; none has fewer than before."""
    numeric = np.flatnonzero(rules.condition_operators <= ABOVE)
    thresholds, features = rules.condition_values[numeric], rules.condition_features[numeric]
    if isinstance(X, DeviceMatrix):
        gaps = Gaps(*find_device_gaps(X, features, thresholds))
    elif isinstance(columns, BinnedColumns):
        return round_by_bins(rules, find_ends(X, columns.codes, np.unique(features)))
    else:
        gaps = Gaps(np.full(len(numeric), -np.inf), np.full(len(numeric), np.inf))
        _narrow_by_values(columns, X.shape[0], features, thresholds, gaps)
    enough = count_all_digits(thresholds, gaps.below, gaps.above)
    if isinstance(columns, SparseColumns):
        enough[(gaps.below == 0) & _find_never_negative(columns)[features]] = NO_DIGITS
    return _set_digits(rules, numeric, enough)


def round_by_bins(rules: RuleEnsemble, ends: Ends) -> RuleEnsemble:
    """The same for binned values: a threshold separates bins, so the ends of these are all that matters."""
    numeric = np.flatnonzero(rules.condition_operators <= ABOVE)
    thresholds, features = rules.condition_values[numeric], rules.condition_features[numeric]
    gaps = Gaps(np.full(len(numeric), -np.inf), np.full(len(numeric), np.inf))
    _narrow_by_bins(ends.lowest, ends.highest, features, thresholds, gaps)
    return _set_digits(rules, numeric, count_all_digits(thresholds, gaps.below, gaps.above))


def _set_digits(rules: RuleEnsemble, numeric: NDArray[np.int64], enough: NDArray[Any]) -> RuleEnsemble:
    digits = rules.condition_digits.copy()
    unknown = digits[numeric] == 0
    digits[numeric] = np.where(unknown, enough, join_digits(digits[numeric], enough))
    return rules.with_digits(digits)


def find_ends(X: Array, codes: NDArray[np.uint8], features: NDArray[np.int32]) -> Ends:
    """The ends of the bins of some features."""
    ends = Ends(*np.full((2, len(codes), MISSING + 1), np.nan))
    _find_ends(X, codes, features, ends.lowest, ends.highest)
    return ends


def _find_never_negative(columns: SparseColumns) -> NDArray[np.bool_]:
    """Which features have no value below zero; values are ascending."""
    has_values = columns.present > 0
    smallest = columns.value[np.where(has_values, columns.start[:-1], 0)] if len(columns.value) else columns.fill
    return ~has_values | (smallest >= 0)


@inner
def _narrow(value: float, threshold: float, i: int, gaps: Gaps) -> None:
    """Narrow a gap to a value of the feature."""
    if value <= threshold:
        gaps.below[i] = max(gaps.below[i], value)
    elif value > threshold:
        gaps.above[i] = min(gaps.above[i], value)


@inner
def _narrow_to_neighbours(values: Array, threshold: float, i: int, gaps: Gaps) -> None:
    """Narrow a gap to the nearest of some ascending values."""
    place = count_below(values, threshold, True)
    for e in range(max(place - 1, 0), min(place + 1, values.shape[0])):
        _narrow(values[e], threshold, i, gaps)


@by_kind
def _narrow_by_values(
    columns: Any, n_examples: int, features: NDArray[np.int32], thresholds: Array, gaps: Gaps
) -> None:
    """Find the gaps of thresholds on some features."""


@_narrow_by_values.of(SortedColumns, compile=kernel)
def _narrow_sorted(
    columns: SortedColumns, n_examples: int, features: NDArray[np.int32], thresholds: Array, gaps: Gaps
) -> None:
    for i in range(features.shape[0]):
        f = features[i]
        _narrow_to_neighbours(columns.value[f][: columns.present[f]], thresholds[i], i, gaps)


@_narrow_by_values.of(SparseColumns, compile=kernel)
def _narrow_sparse(
    columns: SparseColumns, n_examples: int, features: NDArray[np.int32], thresholds: Array, gaps: Gaps
) -> None:
    for i in range(features.shape[0]):
        f = features[i]
        start, end = columns.start[f], columns.start[f + 1]
        _narrow_to_neighbours(columns.value[start : start + columns.present[f]], thresholds[i], i, gaps)
        if end - start < n_examples:  # the others have the fill value
            _narrow(columns.fill[f], thresholds[i], i, gaps)


@kernel
def _narrow_by_bins(lowest: Array, highest: Array, features: NDArray[np.int32], thresholds: Array, gaps: Gaps) -> None:
    """Narrow gaps by the ends of all bins."""
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
