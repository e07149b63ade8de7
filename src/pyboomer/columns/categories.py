"""A category is a value of a nominal feature; rules are learned from its code.

The code is the position of the category among the sorted categories of the training data. A value that was not seen
there gets a code of its own, which meets every ``!=`` and no ``==``.
"""

from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pyboomer.arrays import Array, Matrix
from pyboomer.compiling.kernel import kernel
from pyboomer.rules.schema import Categories


def find_categories(X: Matrix, nominal: NDArray[np.bool_]) -> dict[int, tuple[Any, ...]]:
    """The sorted categories of the nominal features of a numeric X (the zeros of a sparse one among them)."""
    categories: dict[int, tuple[Any, ...]] = {}
    if not nominal.any():
        return categories
    if sp.issparse(X):
        # Most sparse nominal features are indicators: one value besides 0, found for all columns at once.
        X = X.tocsc()
        counts = np.diff(X.indptr)
        smallest, largest = np.zeros(len(counts)), np.zeros(len(counts))
        if len(X.data):
            smallest[counts > 0] = np.minimum.reduceat(X.data, X.indptr[:-1][counts > 0])
            largest[counts > 0] = np.maximum.reduceat(X.data, X.indptr[:-1][counts > 0])
        indicator = nominal & (smallest == largest) & (counts < X.shape[0])
        pairs = {one: _list_values({0.0, one}) for one in set(smallest[indicator].tolist())}
        features = np.flatnonzero(indicator).tolist()
        categories.update(zip(features, map(pairs.__getitem__, smallest[indicator].tolist()), strict=True))
        nominal = nominal & ~indicator
    for feature in np.flatnonzero(nominal).tolist():
        if sp.issparse(X):
            values = set(X.data[X.indptr[feature] : X.indptr[feature + 1]].tolist())
            if X.indptr[feature + 1] - X.indptr[feature] < X.shape[0]:
                values.add(0.0)
        else:
            values = set(X[:, feature].tolist())
        categories[feature] = _list_values(values)
    return categories


def _list_values(values: set[float]) -> tuple[float | int, ...]:
    """The categories among some values, ascending, as people write them: 3, not 3.0."""
    return tuple(int(value) if value.is_integer() else value for value in sorted(v for v in values if v == v))


class Listed(NamedTuple):
    """Categories in flat arrays."""

    features: NDArray[np.int64]  # those that are nominal
    offsets: NDArray[np.int64]  # where the categories of each start, and where the last end
    values: Array


def list_categories(categories: Categories) -> Listed:
    """The categories of all nominal features."""
    features = np.fromiter(categories, np.int64, len(categories))
    offsets = np.zeros(len(categories) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, categories.values()), np.int64, len(categories)), out=offsets[1:])
    return Listed(features, offsets, np.fromiter(chain.from_iterable(categories.values()), np.float64))


def mark_nominal(n_features: int, nominal: list[int] | NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which features are nominal, given their indices."""
    marks = np.zeros(n_features, dtype=bool)
    marks[nominal] = True
    return marks


def encode(X: Matrix, categories: Categories) -> Matrix:
    """Replace the values of the nominal features of a numeric X, dense or CSC, by category codes.

    A value that was not seen in training gets a code of its own, which meets every ``!=`` and no ``==``.
    The zeros that a sparse X does not store keep standing for category 0, wherever that is among the codes.
    """
    if not categories:
        return X
    X = X.copy()
    if sp.issparse(X):
        X.data = encode_stored(X, list_categories(categories))
        return X
    features, offsets, values = list_categories(categories)
    for i, feature in enumerate(features):
        X[:, feature] = encode_values(X[:, feature], values[offsets[i] : offsets[i + 1]])
    return X


def encode_stored(X: Matrix, listed: Listed) -> Array:
    """What a CSC matrix stores, encoded."""
    stored = np.array(X.data, dtype=np.float64)
    if len(listed.features):
        _encode_entries(*listed, X.indptr.astype(np.int64), stored)
    return stored


def find_fill(n_features: int, listed: Listed) -> Array:
    """What the zeros that a sparse X does not store become: 0, or the code of category 0."""
    features, offsets, values = listed
    fill = np.zeros(n_features)
    if len(features):
        zeros = np.zeros(len(features))
        _encode_entries(np.arange(len(features)), offsets, values, np.arange(len(features) + 1), zeros)
        fill[features] = zeros
    return fill


def encode_values(column: Array, values: Array) -> Array:
    """The codes of a column's values: their positions among `values`, len(values) if unseen, NaN if missing."""
    codes = np.array(column, dtype=np.float64)
    _encode_entries(np.zeros(1, dtype=np.int64), np.array([0, len(values)]), values, np.array([0, len(codes)]), codes)
    return codes


@kernel
def _encode_entries(
    features: NDArray[np.int64], offsets: NDArray[np.int64], values: Array, indptr: NDArray[np.int64], data: Array
) -> None:
    """Replace the entries of some columns by their positions among the values of the column."""
    for i in range(features.shape[0]):
        own = values[offsets[i] : offsets[i + 1]]
        for e in range(indptr[features[i]], indptr[features[i] + 1]):
            if data[e] == data[e]:  # a missing value stays missing
                code = count_below(own, data[e], False)
                data[e] = code if code < own.shape[0] and own[code] == data[e] else own.shape[0]


@kernel
def count_below(ascending: Array, value: float, or_equal: bool) -> int:
    """How many of some ascending values are below a value, or at most equal to it."""
    low, high = 0, ascending.shape[0]
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < value or (or_equal and ascending[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low
