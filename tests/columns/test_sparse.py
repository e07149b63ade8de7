"""Columns of a sparse X are sorted without losing anything, and are learned from as those of its dense copy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pyboomer import BoomerClassifier
from pyboomer.columns.categories import encode, find_categories
from pyboomer.columns.sparse import SparseColumns, sort_stored

Array = NDArray[np.float64]

FORMATS = [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix]


def random_matrix(rng: np.random.Generator, n: int, n_features: int, values: Any, filled: float = 0.5) -> Array:
    X = rng.choice(values, size=(n, n_features))
    X[rng.random(X.shape) >= filled] = 0.0
    return X


def store_zeros(X: Array, rng: np.random.Generator) -> sp.csc_array:
    """A sparse copy of X that stores some of its zeros, as files often do."""
    stored = (X != 0) | (rng.random(X.shape) < 0.3)
    rows, columns = np.nonzero(stored)
    return sp.csc_array((X[rows, columns], (rows, columns)), shape=X.shape)


def rebuild(columns: SparseColumns, n: int) -> Array:
    """X again, from its sorted columns."""
    X = np.tile(columns.fill, (n, 1))
    for f in range(X.shape[1]):
        entries = slice(columns.start[f], columns.start[f + 1])
        X[columns.example[entries], f] = columns.value[entries]
    return X


matrices = st.builds(
    lambda seed, n, n_features, values: random_matrix(np.random.default_rng(seed), n, n_features, values),
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.integers(1, 5),
    st.sampled_from([(1.0, 2.0), (-3.0, 0.5, np.nan), (np.nan,), tuple(np.linspace(-1, 1, 50)), (-0.0, 1e308, 5e-324)]),
)


# --- Sorting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
@given(X=matrices)
def test_sparse_columns_hold_every_value_in_ascending_order(form: Any, X: Array) -> None:
    columns = sort_stored(form(X), {})
    np.testing.assert_array_equal(rebuild(columns, len(X)), X)
    for f in range(X.shape[1]):
        values = columns.value[columns.start[f] : columns.start[f + 1]]
        present = values[: columns.present[f]]
        assert (np.diff(present) >= 0).all()
        assert not np.isnan(present).any()
        assert np.isnan(values[columns.present[f] :]).all()
        below, above = (present < columns.fill[f]).sum(), (present > columns.fill[f]).sum()
        assert columns.outline[f].tolist() == [below, above, len(set(present)) > 1]


@given(X=matrices)
def test_sorting_leaves_what_is_stored_as_it_was(X: Array) -> None:
    sparse = sp.csc_array(X)
    stored, rows = sparse.data.copy(), sparse.indices.copy()
    categories = find_categories(X, np.ones(X.shape[1], dtype=bool))
    for known in (categories, {}):
        sort_stored(sparse, known)
        np.testing.assert_array_equal(sparse.data, stored)
        np.testing.assert_array_equal(sparse.indices, rows)


@given(X=matrices)
def test_columns_hold_the_codes_of_categories(X: Array) -> None:
    categories = find_categories(X, np.ones(X.shape[1], dtype=bool))
    columns = sort_stored(sp.csc_array(X), categories)
    np.testing.assert_array_equal(rebuild(columns, len(X)), encode(X, categories))
    assert columns.nominal.all()


@pytest.mark.parametrize("n", [10, 300])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_sparse_columns_are_sorted_as_numpy_sorts_them(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.choice([0.0, 0.0, 1.0, -1.0, 2.5, np.nan], size=(n, 3))
    columns = sort_stored(sp.csr_array(X), {})
    for f in range(3):
        own = slice(columns.start[f], columns.start[f + 1])
        stored = np.flatnonzero(X[:, f] != 0)
        order = stored[np.argsort(X[stored, f], kind="stable")]
        np.testing.assert_array_equal(columns.example[own], order)
        np.testing.assert_array_equal(columns.value[own], X[order, f])


# --- Learning ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", [pytest.param("exact", marks=pytest.mark.slow), "bound"])
@pytest.mark.parametrize(
    "values",
    [(1.0, 2.0, 5.0), (-2.0, -0.5, 1.0, 3.0), (-1.0, -2.0), (np.nan, 1.0, -1.0)],
    ids=["positive", "mixed signs", "negative", "missing"],
)
@pytest.mark.parametrize("nominal", [(), (0, 2, 3), tuple(range(6))], ids=["numeric", "mixed", "nominal"])
def test_rules_of_a_sparse_matrix_are_those_of_its_dense_copy(
    learn: Callable[..., Any],
    assert_same_rules: Callable[..., None],
    variant: dict[str, Any],
    nominal: tuple[int, ...],
    values: tuple[float, ...],
    search: str,
) -> None:
    rng = np.random.default_rng(1)
    X = random_matrix(rng, 80, 6, values, filled=0.35)
    X[:, 4] = rng.choice(values, size=80)  # a column without zeros
    X[:, 5] = 0.0  # and one without anything else
    signal = np.nan_to_num(X) @ rng.normal(size=(6, 3)) + rng.normal(size=(80, 3))
    Y = np.where(signal > 0.2, 1.0, -1.0)
    options = {"nominal": nominal, "search": search, **variant}
    expected = learn(X, Y, **options)
    assert_same_rules(learn(sp.csr_array(X), Y, **options), expected)
    assert_same_rules(learn(store_zeros(X, rng), Y, **options), expected)


@settings(max_examples=40)
@given(X=matrices, seed=st.integers(0, 1000))
def test_rules_of_any_small_sparse_matrix_are_those_of_its_dense_copy(
    learn: Callable[..., Any], assert_same_rules: Callable[..., None], variant: dict[str, Any], X: Array, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    # uneven weights keep gains from cancelling to zero, where rounding alone would decide
    Y, weight = rng.choice([-1.0, 1.0], size=(len(X), 3)), rng.uniform(0.5, 1.5, size=len(X))
    options = {
        "n_rules": 4,
        "sample_weight": weight,
        "nominal": np.flatnonzero(rng.random(X.shape[1]) < 0.5),
        **variant,
    }
    assert_same_rules(learn(store_zeros(X, rng), Y, **options), learn(X, Y, **options))


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.__name__)
def test_the_classifier_takes_every_sparse_format(form: Any) -> None:
    rng = np.random.default_rng(2)
    X = random_matrix(rng, 60, 5, (-1.0, 1.0, 2.0))
    Y = (X[:, :2] + rng.normal(size=(60, 2)) > 0).astype(int)
    options = {"n_rules": 10, "categorical_features": [1], "random_state": 1}
    dense = BoomerClassifier(**options).fit(X, Y)
    sparse = BoomerClassifier(**options).fit(form(X), Y)
    assert [str(rule) for rule in sparse.rules_] == [str(rule) for rule in dense.rules_]
    np.testing.assert_allclose(sparse.decision_function(form(X)), dense.decision_function(X), rtol=1e-9)
    np.testing.assert_array_equal(sparse.decision_function(X), sparse.decision_function(form(X)))
