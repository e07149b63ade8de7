"""A threshold is printed with as few digits as stay in its gap."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyboomer.rules.digits import add_digits, count_all_digits, count_digits, join_digits
from pyboomer.rules.text import format_threshold


@pytest.mark.parametrize(
    ("threshold", "below", "above", "text"),
    [
        (0.5, 0, 1, "0.5"),
        (15.5, 15, 16, "15.5"),
        (0.4170220047, 0.3, 0.5, "0.417"),
        (0.4170220047, 0.417021, 0.417023, "0.417022"),
        (1234567.25, 0, 2e6, "1234567"),
        (12345.5, 12345, 12346, "12345.5"),
        (1e-9, 0, 1, "1e-09"),
        (1.0, 1.0, np.nextafter(1.0, 2), "1"),
        (20.299999999999997, 20.2, 20.3, "20.29"),
        (-20.299999999999997, -20.3, -20.2, "-20.3"),
        (123456.99999999999, 123456, 123457, "123456.9"),
        (np.nextafter(1.0, 2), np.nextafter(1.0, 2), 2, "1.0000000000000002"),
    ],
)
def test_as_few_digits_as_stay_in_the_gap(threshold: float, below: float, above: float, text: str) -> None:
    assert format_threshold(threshold, count_digits(threshold, below, above)) == text


def test_digits_for_other_data_are_as_many_and_rounded_down_if_they_must_be() -> None:
    t = 20.299999999999997
    digits = np.array([4, 36, 6, -1, 36], dtype=np.int8), np.array([36, 4, 36, 4, 37], dtype=np.int8)
    assert [format_threshold(t, d) for d in join_digits(*digits).tolist()] == [
        "20.29",
        "20.29",
        "20.2999",
        "20.3",
        "20.299",
    ]
    assert [format_threshold(t, add_digits(d, 20)) for d in (0, 4, 36)] == [repr(t)] * 3


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=3, unique=True))
def test_any_threshold_can_be_printed(values: list[float]) -> None:
    below, *_, above = sorted(values)
    threshold = below / 2 + above / 2
    threshold = threshold if below <= threshold < above else below
    assert below <= float(format_threshold(threshold, count_digits(threshold, below, above))) < above


@given(st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2, unique=True)))
def test_many_thresholds_have_the_digits_of_each(gaps: list[list[float]]) -> None:
    below, above = np.array([sorted(gap) for gap in gaps]).reshape(-1, 2).T
    expected = [count_digits(*gap) for gap in zip(below, below, above, strict=True)]
    assert count_all_digits(below, below, above).tolist() == expected
