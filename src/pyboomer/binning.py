"""A bin is a range of values of a numeric feature; with many examples, one bin number stands for all values in it.

Each column becomes at most 255 bin numbers of one byte, and sums over examples become sums over bins. To learn from
binned features is to learn from their bin numbers: the rules are the same, with each threshold between two bin numbers
replaced by the value that separates the bins. Nominal features keep their category codes.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from pyboomer.features import ABOVE, MISSING, Array, Categories, Columns, Matrix
from pyboomer.rules import RuleEnsemble
from pyboomer.sweeping import midpoint

FROM = 50_000  # examples; with fewer, max_bins="auto" considers all values
LARGEST = 255  # bins of a feature: as many as a byte has values, but one for missing values
SAMPLE = 200_000  # values from which the quantiles of a feature are estimated


class Bins(NamedTuple):
    """The binned features, and for each the ascending values that separate its bins (none for a nominal one)."""

    columns: Columns
    edges: tuple[Array, ...]


def count_bins(max_bins: str | int | None, search: str, X: Matrix) -> int | None:
    """How many bins a feature may have; None for exact values."""
    if max_bins == "auto":
        return LARGEST if not sp.issparse(X) and X.shape[0] > FROM and search != "exact" else None
    if max_bins is not None and sp.issparse(X):
        raise ValueError(f'max_bins must be None or "auto" for a sparse X, got {max_bins!r}')
    return None if max_bins is None else int(max_bins)


def bin_columns(X: Array, categories: Categories, names: tuple[str, ...], max_bins: int, n_threads: int = 1) -> Bins:
    """Bin the columns of a dense X whose nominal features hold category codes."""
    n, n_features = X.shape
    codes = np.empty((n_features, n), dtype=np.uint8)

    def bin_column(f: int) -> Array:
        column = np.ascontiguousarray(X[:, f], dtype=np.float64)
        if f not in categories:
            edges = find_edges(column, max_bins)
            _number_bins(column, edges, codes[f])
            return edges
        if len(categories[f]) > LARGEST:
            raise ValueError(
                f"feature {names[f]!r} has {len(categories[f])} categories, but max_bins allows for {LARGEST}; "
                "set max_bins=None"
            )
        codes[f] = np.where(np.isnan(column), MISSING, column).astype(np.uint8)
        return np.empty(0)

    with ThreadPoolExecutor(n_threads) as pool:
        edges = tuple(pool.map(bin_column, range(n_features)))
    nominal = np.zeros(n_features, dtype=bool)
    nominal[list(categories)] = True
    nothing = np.empty(0, dtype=np.int32)
    columns = Columns(
        np.zeros(n_features + 1, dtype=np.int64),
        np.zeros(n_features, dtype=np.int64),
        nothing,
        np.empty(0),
        np.zeros(n_features),
        nominal,
        np.empty((n_features, 0), dtype=np.int32),
        codes,
    )
    return Bins(columns, edges)


def find_edges(column: Array, max_bins: int) -> Array:
    """The values between bins: midpoints of all distinct values if these are few enough, else of quantiles."""
    present = column[~np.isnan(column)]
    if len(present) > SAMPLE:
        present = present[:: len(present) // SAMPLE]
    values = np.unique(present)
    if len(values) > max_bins:
        values = np.unique(np.quantile(present, np.linspace(0, 1, max_bins), method="closest_observation"))
    return np.array([midpoint(a, b) for a, b in zip(values[:-1].tolist(), values[1:].tolist(), strict=True)])


@njit(cache=True, nogil=True)
def _number_bins(column: Array, edges: Array, codes: NDArray[np.uint8]) -> None:
    """The bin number of a value is the number of edges below it: a binary search without branches."""
    for n in range(column.shape[0]):
        x = column[n]
        below = 0
        length = edges.shape[0]
        while length > 0:
            half = (length + 1) // 2
            below += half if edges[below + half - 1] < x else 0
            length -= half
        codes[n] = below if x == x else MISSING


def separate_bins(rules: RuleEnsemble, bins: Bins) -> RuleEnsemble:
    """Replace the thresholds on bin numbers by the values that separate the bins."""
    values = rules.condition_values.copy()
    for c in np.flatnonzero(rules.condition_operators <= ABOVE):
        values[c] = bins.edges[rules.condition_features[c]][int(values[c])]
    return replace(rules, condition_values=values)
