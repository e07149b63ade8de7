"""Columns of a dense X are sorted without losing anything."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from pyboomer.columns.categories import encode, find_categories
from pyboomer.columns.sorted import SortedColumns, sort_columns

Array = NDArray[np.float64]


def random_matrix(rng: np.random.Generator, n: int, n_features: int, values: Any) -> Array:
    X = rng.choice(values, size=(n, n_features))
    X[rng.random(X.shape) >= 0.5] = 0.0
    return X


def rebuild(columns: SortedColumns) -> Array:
    """X again, from its sorted columns."""
    X = np.empty(columns.value.shape[::-1])
    for f in range(X.shape[1]):
        X[columns.example[f], f] = columns.value[f]
    return X


matrices = st.builds(
    lambda seed, n, n_features, values: random_matrix(np.random.default_rng(seed), n, n_features, values),
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.integers(1, 5),
    st.sampled_from([(1.0, 2.0), (-3.0, 0.5, np.nan), (np.nan,), tuple(np.linspace(-1, 1, 50)), (-0.0, 1e308, 5e-324)]),
)


@given(X=matrices)
def test_sorted_columns_hold_every_value_in_ascending_order(X: Array) -> None:
    columns = sort_columns(X, {})
    np.testing.assert_array_equal(rebuild(columns), X)
    for f in range(X.shape[1]):
        values = columns.value[f]
        present = values[: columns.present[f]]
        assert (np.diff(present) >= 0).all()
        assert not np.isnan(present).any()
        assert np.isnan(values[columns.present[f] :]).all()
        assert sorted(columns.example[f].tolist()) == list(range(len(X)))


@given(X=matrices)
def test_sorting_leaves_x_as_it_was(X: Array) -> None:
    before = X.copy()
    categories = find_categories(X, np.ones(X.shape[1], dtype=bool))
    sort_columns(encode(X, categories), categories)
    np.testing.assert_array_equal(X, before)
    sort_columns(X, {})  # not a copy of it
    np.testing.assert_array_equal(X, before)


@given(X=matrices, seed=st.integers(0, 1000))
def test_columns_of_categories_are_marked(X: Array, seed: int) -> None:
    nominal = np.random.default_rng(seed).random(X.shape[1]) < 0.5
    categories = find_categories(X, nominal)
    columns = sort_columns(encode(X, categories), categories)
    np.testing.assert_array_equal(columns.nominal, nominal)
    np.testing.assert_array_equal(rebuild(columns), encode(X, categories))


NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=False, width=64),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1.7e308, -1.7e308, float("nan")]),
    st.integers(-3, 3).map(float),
)


@given(st.integers(1, 40).flatmap(lambda n: hnp.arrays(np.float64, (n, 2), elements=NUMBERS)))
@settings(max_examples=200)
def test_columns_are_sorted_as_numpy_sorts_them(X: Any) -> None:
    n = len(X)
    columns = sort_columns(X, {})
    for f in range(2):
        order = np.argsort(X[:, f], kind="stable")
        np.testing.assert_array_equal(columns.example[f], order)
        np.testing.assert_array_equal(columns.value[f], X[order, f])
        np.testing.assert_array_equal(columns.position[f][order], np.arange(n))
        assert columns.present[f] == n - np.isnan(X[:, f]).sum()
