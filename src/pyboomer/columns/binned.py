"""Binned columns are features by bins: with many examples, one bin number stands for all values of a range.

Each column becomes at most 255 bin numbers of one byte, and sums over examples become sums over bins. To learn from
binned features is to learn from their bin numbers: the rules are the same, with each threshold between two bin numbers
replaced by the value that separates the bins. Nominal features keep their category codes; if there are too many, the
commonest categories have a bin each, and the others share one that no condition is about.
"""

from contextlib import nullcontext
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pyboomer.arrays import Array, Matrix, Rows
from pyboomer.columns.categories import Categories, encode_values, mark_nominal
from pyboomer.columns.entries import START, Entries, collect, keep
from pyboomer.columns.sparse import meets
from pyboomer.compiling.kernel import kernel
from pyboomer.compiling.pool import start_pool
from pyboomer.compiling.simd import LANES, at_most, count_trailing_zeros, load, splat
from pyboomer.rules.precision import midpoint

FROM = 10_000  # examples; with fewer, max_bins="auto" considers all values
MISSING = 255  # the bin number of a missing value
LARGEST = 255  # bins of a feature: as many as a byte has values, but one for missing values
OTHER = 254  # the bin of all rarer categories, if there are more than a byte can tell apart
SHARED = 2  # the mark of a nominal feature whose rarer categories share a bin; others have 1
SAMPLE = 200_000  # rows from which the quantiles of features are estimated, about


class BinnedColumns(NamedTuple):
    """The features of a dense X, binned."""

    codes: NDArray[np.uint8]  # (L, N): bin numbers and category codes
    nominal: NDArray[np.int8]  # (L,): 0, 1, or SHARED


class Bins(NamedTuple):
    """The binned features, and for each the ascending values that separate its bins.

    A nominal feature has none or, if rarer categories share a bin, the category codes of the other bins.
    """

    columns: BinnedColumns
    edges: tuple[Array, ...]


def count_bins(max_bins: str | int | None, search: str, X: Matrix) -> int | None:
    """How many bins a feature may have; None for exact values."""
    if max_bins == "auto":
        return LARGEST if not sp.issparse(X) and X.shape[0] > FROM and search != "exact" else None
    if max_bins is not None and sp.issparse(X):
        raise ValueError(f'max_bins must be None or "auto" for a sparse X, got {max_bins!r}')
    return None if max_bins is None else int(max_bins)


def bin_columns(X: Array, categories: Categories, max_bins: int, n_threads: int = 1) -> Bins:
    """Bin the columns of a dense X whose nominal features hold category codes."""
    n, n_features = X.shape
    X = np.ascontiguousarray(X, dtype=np.float64)
    codes, sampled = np.empty((n_features, n), dtype=np.uint8), list_sampled(0, n, n)

    def bin_column(f: int, column: Array) -> Array:
        if f not in categories:
            edges = find_edges(column if len(sampled) == n else column[sampled], max_bins)
        else:
            edges = find_common(column, OTHER) if len(categories[f]) > LARGEST else np.empty(0)
        number_values(column, f in categories, edges, codes[f])
        return edges

    def bin_some(first: int) -> list[Array]:
        columns = np.empty((min(LANES, n_features - first), n))
        _copy_columns(X, first, columns)
        return [bin_column(first + i, column) for i, column in enumerate(columns)]

    parts = range(0, n_features, LANES)
    n_threads = min(n_threads, len(parts))
    with start_pool(n_threads) if n_threads > 1 else nullcontext() as pool:
        edges = tuple(chain.from_iterable((map if pool is None else pool.map)(bin_some, parts)))
    return Bins(BinnedColumns(codes, mark_bins(n_features, categories)), edges)


def mark_bins(n_features: int, categories: Categories) -> NDArray[np.int8]:
    """Which features are nominal, and of which rarer categories share a bin."""
    nominal = mark_nominal(n_features, list(categories)).astype(np.int8)
    nominal[[f for f in categories if len(categories[f]) > LARGEST]] = SHARED
    return nominal


def number_values(column: Array, nominal: bool, edges: Array, codes: NDArray[np.uint8]) -> None:
    """The bin numbers of a column, given what separates its bins, see `Bins`; those of categories are their codes."""
    if not nominal:
        _number_bins(column, _plant_tree(edges), codes)
        return
    if len(edges):
        column = encode_values(column, edges)  # what is not among them gets the next code: OTHER
    codes[:] = np.where(np.isnan(column), MISSING, column).astype(np.uint8)


def find_common(column: Array, count: int) -> Array:
    """The category codes that occur most often, so many of them, ascending; of equals, the smaller ones."""
    return pick_common(*np.unique(column[~np.isnan(column)], return_counts=True), count)


def pick_common(found: Array, times: NDArray[np.int64], count: int) -> Array:
    """The same, of codes in ascending order that occur so many times."""
    return np.sort(found[np.argsort(-times, kind="stable")[:count]])


def list_sampled(first: int, count: int, n: int) -> NDArray[np.int64]:
    """Which of `count` rows, of numbers from `first` on among n, are in the sample that quantiles are estimated from.

    All are if there are few; of many, about `SAMPLE` are chosen at random. Every k-th row would not do, as rows may
    repeat with a period. The choice depends on the number of a row alone, so that rows may lie on several machines.
    """
    if n < 2 * SAMPLE:
        return np.arange(count)
    # SplitMix64 (Steele, Lea and Flood, 2014)
    z = np.arange(first, first + count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return np.flatnonzero((z >> np.uint64(11)).astype(np.float64) * 2.0**-53 < SAMPLE / n)


def find_edges(column: Array, max_bins: int) -> Array:
    """The values between bins: midpoints of all distinct values if these are few enough, else of quantiles."""
    present = column[~np.isnan(column)]
    present = np.sort(present)
    distinct = np.append(present[:1], present[1:][present[1:] != present[:-1]])
    if len(distinct) > max_bins:
        distinct = np.unique(np.quantile(present, np.linspace(0, 1, max_bins), method="closest_observation"))
    return np.array([midpoint(a, b) for a, b in pairwise(distinct.tolist())])


@kernel
def _copy_columns(X: Array, first: int, columns: Array) -> None:
    """Copy as many columns of X as there is room for; together, as they share cache lines."""
    for n in range(X.shape[0]):
        for i in range(columns.shape[0]):
            columns[i, n] = X[n, first + i]


def _plant_tree(edges: Array) -> Array:
    """The edges as a search tree of three levels: every 64th, every eighth, and all; infinity fills it up."""
    leaves = np.full(256, np.inf)
    leaves[: len(edges)] = edges
    return np.concatenate([leaves[63::64], np.full(4, np.inf), leaves[7::8], leaves])


@kernel
def _number_bins(column: Array, tree: Array, codes: NDArray[np.uint8]) -> None:
    """The bin number of a value is the number of edges below it: on each level, one comparison with eight of them."""
    for n in range(column.shape[0]):
        if column[n] != column[n]:
            codes[n] = MISSING
            continue
        x = splat(column[n])
        top = count_trailing_zeros(at_most(x, load(tree, 0)))
        middle = LANES * top + count_trailing_zeros(at_most(x, load(tree, LANES * (1 + top))))
        codes[n] = LANES * middle + count_trailing_zeros(at_most(x, load(tree, LANES * (5 + middle))))


@collect.of(BinnedColumns)
def _collect(
    columns: BinnedColumns,
    feature: int,
    rows: Rows,
    weights: Array,
    entries: Entries,
) -> tuple[np.int64, np.int64]:
    """Bin numbers are sorted by counting."""
    examples, values, starts = entries.examples, entries.values, entries.ends
    codes = columns.codes[feature]
    for b in range(257):
        starts[b] = 0
    for r in range(rows.shape[0]):
        starts[np.int64(codes[rows[r]]) + 1] += 1
    n_missing = np.int64(starts[MISSING + 1])
    for b in range(256):
        starts[b + 1] += starts[b]
    for r in range(rows.shape[0]):
        code = codes[rows[r]]
        examples[starts[code]] = rows[r]
        values[starts[code]] = code
        starts[code] += 1
    return rows.shape[0] - n_missing, n_missing


@keep.of(BinnedColumns, compile=kernel)
def _keep(columns: BinnedColumns, feature: int, operator: int, value: float, rows: Rows, dropped: Rows) -> np.int64:
    codes = columns.codes[feature]
    kept, n_dropped = START, START
    for r in range(rows.shape[0]):
        n = rows[r]
        code = codes[n]
        keep = meets(np.float64(code), operator, value) & (code != MISSING)
        rows[kept] = n
        dropped[n_dropped] = n
        kept += np.uint64(keep)
        n_dropped += np.uint64(not keep)
    behind = rows[kept:]
    for r in range(behind.shape[0]):
        behind[r] = dropped[r]
    return np.int64(kept)
