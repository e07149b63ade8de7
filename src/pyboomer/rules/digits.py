"""Digits are what is printed of a threshold: as few as divide the training examples just as the exact number does.

A threshold t lies between two adjacent values of its feature in the training data, a <= t < b. Any number of that gap
makes the same rule of these examples, so t is printed with the fewest digits, from `FEWEST_DIGITS` on, that stay in it:
rounded, or else rounded down. The middle of 20.2 and 20.4 is 20.299999999999997; if there also is 20.3, in an example
that a rule did not cover when the condition was learned, 20.29 says the same.
Where sparse data are never below zero, a gap that begins there needs no digits at all (`text.NO_DIGITS`): the rule asks
whether something is there, such as a word. What is printed is thus exact in effect: read again, it covers the same
training examples. Predictions always use t.
"""

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.rules.text import ROUNDED_DOWN, format_threshold

FEWEST_DIGITS = 4  # fewer would tell too little about examples that are not those of the training
MOST_DIGITS = 17  # enough for any float64


def count_digits(threshold: float, below: float, above: float) -> int:
    """The fewest digits with which a threshold stays between two values; `below` may be the threshold itself."""
    for digits in range(FEWEST_DIGITS, MOST_DIGITS):
        if below <= float(format_threshold(threshold, digits)) < above:
            return digits
        if below < float(format_threshold(threshold, digits + ROUNDED_DOWN)) < above:
            return digits + ROUNDED_DOWN
    return MOST_DIGITS


def add_digits(digits: int, extra: int) -> int:
    """More digits of a threshold, as far as there are any."""
    most = MOST_DIGITS + ROUNDED_DOWN if digits > ROUNDED_DOWN else MOST_DIGITS
    return min(digits + extra, most) if digits else 0


def join_digits(some: NDArray[np.int8], others: NDArray[np.int8]) -> NDArray[np.int8]:
    """The digits that are enough for thresholds in two gaps each."""
    down = np.where(np.maximum(some, others) > ROUNDED_DOWN, ROUNDED_DOWN, 0)
    enough = np.maximum(*(np.where(d > ROUNDED_DOWN, d - ROUNDED_DOWN, d) for d in (some, others)))
    return (enough + down).astype(np.int8)


def count_all_digits(thresholds: Array, below: Array, above: Array) -> NDArray[np.int8]:
    """The same for many thresholds; only those in narrow gaps are looked at one by one."""
    digits = np.full(len(thresholds), FEWEST_DIGITS, dtype=np.int8)
    size = np.abs(thresholds)
    # rounding moves a threshold by no more than half a unit of its last digit: most gaps are wider than that by far
    step = 0.51 * 10.0 ** (np.floor(np.log10(np.maximum(size, 1e-300))) + 1 - FEWEST_DIGITS)
    with np.errstate(over="ignore"):  # the largest thresholds: what is infinite is not in the gap
        narrow = (thresholds - step < below) | (thresholds + step >= above) | (size < 1e-290)
    for i in np.flatnonzero(narrow).tolist():
        digits[i] = count_digits(float(thresholds[i]), float(below[i]), float(above[i]))
    return digits
