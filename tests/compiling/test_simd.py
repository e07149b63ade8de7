"""A vector is eight numbers that are handled as one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numpy.typing import NDArray

from pyboomer.compiling.simd import LANES, largest, load, product, total

Array = NDArray[np.float64]


@given(numbers=st.lists(st.floats(-1e6, 1e6), min_size=LANES, max_size=LANES))
def test_a_vector_is_reduced_to_one_number(numbers: list[float]) -> None:
    array = np.array(numbers)
    assert reduce_vector(array) == pytest.approx((array.sum(), array.max(), array.prod()), rel=1e-9, abs=1e-6)


@njit
def reduce_vector(array: Array) -> tuple[float, float, float]:
    vector = load(array, 0)
    return total(vector), largest(vector), product(vector)
