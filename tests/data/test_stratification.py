"""A stratified split keeps the frequency of every label as near as whole examples allow."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyboomer.data.stratification import hold_out


@given(st.integers(2, 60), st.integers(1, 6), st.floats(0.01, 0.99), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_a_split_is_a_partition_of_the_asked_sizes(n: int, k: int, fraction: float, share: float, seed: int) -> None:
    Y = (np.random.default_rng(seed).random((n, k)) < share).astype(np.uint8)
    first, second = hold_out(Y, fraction, seed)
    assert sorted([*first, *second]) == list(range(n))
    assert len(second) == np.clip(round(n * fraction), 1, n - 1)
    assert (np.diff(first) > 0).all()
    assert (np.diff(second) > 0).all()


def test_labels_are_as_frequent_among_the_held_out_as_among_all() -> None:
    rng = np.random.default_rng(1)
    Y = (rng.random((1000, 8)) < [0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01]).astype(np.uint8)
    wanted = 0.2 * Y.sum(axis=0)

    def deviation(rows: Any) -> float:
        return float(np.abs(Y[rows].sum(axis=0) - wanted).sum())

    stratified = [deviation(hold_out(Y, 0.2, seed)[1]) for seed in range(10)]
    by_chance = [deviation(rng.permutation(1000)[:200]) for _ in range(10)]
    assert max(stratified) < 8  # one example per label
    assert max(stratified) < min(by_chance)


def test_classes_are_split_in_proportion() -> None:
    y = np.repeat([0, 1, 2], [60, 30, 10])
    Y = (y[:, None] == [0, 1, 2]).astype(np.uint8)
    _, held_out = hold_out(Y, 0.1, 3)
    assert np.bincount(y[held_out]).tolist() == [6, 3, 1]


def test_the_seed_decides_the_split() -> None:
    Y = (np.random.default_rng(1).random((50, 3)) < 0.4).astype(np.uint8)
    np.testing.assert_array_equal(hold_out(Y, 0.3, 5)[1], hold_out(Y, 0.3, 5)[1])
    assert any(not np.array_equal(hold_out(Y, 0.3, 5)[1], hold_out(Y, 0.3, seed)[1]) for seed in range(6, 9))


@pytest.mark.parametrize("value", [0, 1])
def test_labels_that_are_all_equal_can_be_split(value: int) -> None:
    first, second = hold_out(np.full((10, 2), value, dtype=np.uint8), 0.3, 1)
    assert (len(first), len(second)) == (7, 3)
