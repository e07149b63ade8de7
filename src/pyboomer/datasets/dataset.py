"""A data set: a feature matrix X, a label matrix Y, and the names of their columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse

from pyboomer.rules.frames import import_pandas

if TYPE_CHECKING:
    import pandas as pd

#: An ndarray or a csr_matrix; no annotation says in one word what the two share.
Matrix: TypeAlias = Any

NUMBER = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")


def is_sparse_matrix(X: Matrix) -> bool:
    """Return whether X is one of SciPy's sparse matrices or arrays."""
    return bool(sparse.issparse(X))


def category_numbers(names: tuple[str, ...]) -> np.ndarray | None:
    """Return the numbers that the names of the categories write down, or None unless all are finite and distinct."""
    if not all(NUMBER.fullmatch(name) for name in names):
        return None
    numbers = np.array([float(name) for name in names])
    return numbers if np.isfinite(numbers).all() and len(np.unique(numbers)) == len(numbers) else None


def category_codes(names: tuple[str, ...], *, is_sparse: bool) -> np.ndarray:
    """Return the value that stands in X for each of the categories.

    Categories that are numbers stand for themselves, so that a condition reads as the data was written; others are
    counted from 0. In a sparse matrix 0 must be the first category, because that is what an absent entry means.

    >>> category_codes(("2", "10", "1"), is_sparse=False).tolist()
    [2.0, 10.0, 1.0]
    >>> category_codes(("2", "10", "1"), is_sparse=True).tolist()
    [0.0, 1.0, 2.0]
    """
    numbers = category_numbers(names)
    if numbers is None or (is_sparse and numbers[0] != 0):
        return np.arange(len(names), dtype=np.float64)
    return numbers


def write_codes(X: Matrix, categories: Mapping[int, tuple[str, ...]]) -> None:
    """Replace, in place, the positions of categories in the columns of X by their codes."""
    is_sparse = is_sparse_matrix(X)
    kinds: dict[tuple[str, ...], list[int]] = {}
    for column, names in categories.items():
        kinds.setdefault(names, []).append(column)
    for names, columns in kinds.items():
        codes = np.append(category_codes(names, is_sparse=is_sparse), np.nan)  # position -1, of missing values
        if np.array_equal(codes[:-1], np.arange(len(names))):
            continue
        if is_sparse:
            is_member = np.zeros(X.shape[1], dtype=bool)
            is_member[columns] = True
            (cells,) = np.nonzero(is_member[X.indices])
            X.data[cells] = codes[np.nan_to_num(X.data[cells], nan=-1).astype(np.intp)]
        else:
            X[:, columns] = codes[np.nan_to_num(X[:, columns], nan=-1).astype(np.intp)]


@dataclass(frozen=True, eq=False)  # arrays have no single truth value to compare by
class Dataset:
    """Features and labels of the same examples.

    Attributes
    ----------
    X : ndarray or csr_matrix of shape (N, L), float64
        The features; missing values are NaN, nominal values are the codes of `category_codes`.
    Y : ndarray of shape (N, K), int8
        The labels, 1 where relevant and 0 elsewhere.
    feature_names, label_names : tuple of str
        The names of the columns of X and Y.
    nominal_features : tuple of int
        The columns of X that are nominal, as `categorical_features=` takes them.
    categories : mapping of int to tuple of str
        The names of the categories of each nominal column, in the order of their declaration.
    name : str
        What the data set is called.

    Examples
    --------
    >>> from pyboomer.datasets import load_dataset
    >>> digits = load_dataset("digits7")
    >>> digits.X.shape, digits.Y.shape
    ((1797, 64), (1797, 7))
    >>> digits.label_names
    ('a', 'b', 'c', 'd', 'e', 'f', 'g')
    >>> digits.describe()["distinct label vectors"]
    10
    """

    X: Matrix
    Y: np.ndarray
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    nominal_features: tuple[int, ...] = ()
    categories: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    name: str = "data"

    def __repr__(self) -> str:
        (n, features), labels = self.X.shape, self.Y.shape[1]
        return f"<Dataset {self.name!r}: {n} examples, {features} features, {labels} labels>"

    def to_frame(self) -> pd.DataFrame:
        """Return X as a DataFrame, nominal features with their categories: numbers where all of them are, else words.

        The numeric columns of a sparse X stay sparse.
        """
        pd = import_pandas("to_frame")
        is_sparse = is_sparse_matrix(self.X)
        by_column = self.X.tocsc() if is_sparse else self.X
        columns: dict[str, Any] = {}
        for j, name in enumerate(self.feature_names):
            values = by_column[:, [j]].toarray()[:, 0] if is_sparse else by_column[:, j]
            if j in self.categories:
                columns[name] = _name_categories(values, self.categories[j], is_sparse=is_sparse)
            elif is_sparse:
                columns[name] = pd.arrays.SparseArray(values, fill_value=0.0)
            else:
                columns[name] = values
        return pd.DataFrame(columns, index=pd.RangeIndex(self.X.shape[0]))

    def labels_frame(self) -> pd.DataFrame:
        """Return Y as a DataFrame with one column per label."""
        pd = import_pandas("labels_frame")
        return pd.DataFrame(self.Y, columns=list(self.label_names))

    def describe(self) -> dict[str, int | float]:
        """Return the figures by which multi-label data sets are compared.

        Cardinality is the mean number of relevant labels per example, density is cardinality divided by the number
        of labels.
        """
        n, k = self.Y.shape
        cardinality = float(self.Y.sum(dtype=np.int64)) / n
        stored = self.X.data if is_sparse_matrix(self.X) else self.X
        return {
            "examples": n,
            "features": self.X.shape[1],
            "nominal features": len(self.nominal_features),
            "labels": k,
            "cardinality": cardinality,
            "density": cardinality / k,
            "distinct label vectors": len(np.unique(self.Y, axis=0)),
            "missing values": int(np.isnan(stored).sum()),
        }


def _name_categories(values: np.ndarray, names: tuple[str, ...], *, is_sparse: bool) -> Any:
    import pandas as pd

    codes = category_codes(names, is_sparse=is_sparse)
    order = np.argsort(codes)
    positions = order[np.searchsorted(codes[order], np.where(np.isnan(values), codes[0], values))]
    categories = pd.Index(names) if category_numbers(names) is None else pd.to_numeric(pd.Index(names))
    return pd.Categorical.from_codes(np.where(np.isnan(values), -1, positions), categories=categories)
