"""Categories are the distinct values of a feature, and codes their positions."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pyboomer import BoomerClassifier
from pyboomer.columns.categories import encode, encode_values, find_categories

Array = NDArray[np.float64]


def random_matrix(rng: np.random.Generator, n: int, n_features: int, values: Any) -> Array:
    X = rng.choice(values, size=(n, n_features))
    X[rng.random(X.shape) >= 0.5] = 0.0
    return X


matrices = st.builds(
    lambda seed, n, n_features, values: random_matrix(np.random.default_rng(seed), n, n_features, values),
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.integers(1, 5),
    st.sampled_from([(1.0, 2.0), (-3.0, 0.5, np.nan), (np.nan,), tuple(np.linspace(-1, 1, 50)), (-0.0, 1e308, 5e-324)]),
)


@given(X=matrices)
def test_categories_are_the_distinct_values_and_codes_their_positions(X: Array) -> None:
    nominal = np.ones(X.shape[1], dtype=bool)
    categories = find_categories(X, nominal)
    assert categories == find_categories(sp.csc_array(X), nominal)
    codes = encode(X, categories)
    for f, values in categories.items():
        assert list(values) == sorted(set(X[~np.isnan(X[:, f]), f].tolist()))
        for x, code in zip(X[:, f], codes[:, f], strict=True):
            assert np.isnan(code) if np.isnan(x) else values[int(code)] == x


def test_an_unseen_category_has_a_code_of_its_own_and_a_missing_one_none() -> None:
    codes = encode_values(np.array([2.0, 3.0, -1.0, np.nan, 9.0]), np.array([-1.0, 2.0]))
    np.testing.assert_array_equal(codes, [1.0, 2.0, 0.0, np.nan, 2.0])
    np.testing.assert_array_equal(encode_values(np.array([1.0, np.nan]), np.array([])), [0.0, np.nan])


def test_zeros_that_are_no_known_category_stay_unseen() -> None:
    # Every training example stores a value of the feature; a later zero is a category nobody has seen.
    full = sp.csc_array(np.array([[1.0], [2.0]]))
    assert find_categories(full, np.array([True])) == {0: (1, 2)}
    clf = BoomerClassifier(n_rules=3, categorical_features=[0], bootstrap=False)
    clf.fit(sp.csr_array(np.array([[1.0], [2.0]] * 5)), np.array([[1], [0]] * 5))
    zero = np.zeros((1, 1))
    np.testing.assert_array_equal(clf.decision_function(sp.csr_array(zero)), clf.decision_function(zero))
