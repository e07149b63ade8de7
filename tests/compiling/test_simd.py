"""A vector is eight numbers that are handled as one."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numpy.typing import NDArray

from pyboomer.compiling.simd import LANES, gather_columns, largest, load, product, scatter_columns, total

Array = NDArray[np.float64]


@given(numbers=st.lists(st.floats(-1e6, 1e6), min_size=LANES, max_size=LANES))
def test_a_vector_is_reduced_to_one_number(numbers: list[float]) -> None:
    array = np.array(numbers)
    assert reduce_vector(array) == pytest.approx((array.sum(), array.max(), array.prod()), rel=1e-9, abs=1e-6)


@njit
def reduce_vector(array: Array) -> tuple[float, float, float]:
    vector = load(array, 0)
    return total(vector), largest(vector), product(vector)


@pytest.mark.parametrize("kind", [np.float64, np.int8])
def test_columns_of_eight_rows_are_gathered_and_written_back(kind: type) -> None:
    table = np.arange(12 * 24).reshape(12, 24).astype(kind)
    rows, block = np.array([3, 0, 11, 7, 7, 2, 5, 9], dtype=np.uint32), np.zeros((10, LANES))
    copy_columns(table, rows, 24, 16, block, LANES)
    np.testing.assert_array_equal(block[1:9], table[rows, 16:].T)
    assert not block[[0, 9]].any()
    written = np.zeros((12, 24))
    write_columns(written, rows, 24, 8, block, LANES)
    np.testing.assert_array_equal(written[rows, 8:16], table[rows, 16:])
    assert not written[:, [*range(8), *range(16, 24)]].any()


@njit
def copy_columns(table: Any, rows: Any, size: int, column: int, block: Array, position: int) -> None:
    gather_columns(table, rows, size, column, block, position)


@njit
def write_columns(table: Any, rows: Any, size: int, column: int, block: Array, position: int) -> None:
    scatter_columns(table, rows, size, column, block, position)
