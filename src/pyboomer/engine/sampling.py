"""A draw is a random choice that depends on (seed, rule, step) alone.

There is no running stream of random numbers: each draw starts a short stream of its own, so that neither chunk sizes,
threads, callbacks nor an interruption can change what is learned. The reference draws the same in plain NumPy.

The generator is SplitMix64 (Steele, Lea and Flood, 2014): a counter in steps of the golden ratio, scrambled by a
64-bit mixing function. NumPy's generators would need a Python object per draw, which compiled code cannot make.
"""

import math
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.compiling.kernel import kernel, plain
from pyboomer.compiling.simd import count_trailing_zeros

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
LABELS_STEP = np.int64(2**40)  # the stream that labels are drawn from; no rule has as many conditions
MOST_IN_A_ROW, EPOCH = (
    64,
    256,
)  # rules in a row that are about the same group, at most, and about groups of the same epoch
GROWTH = 4  # of their number, from epoch to epoch
_S27, _S30, _S31, _S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(11)
_S6, _S63, _NONE, _ONE = np.uint64(6), np.uint64(63), np.uint64(0), np.uint64(1)


@kernel
def _mix(z: np.uint64) -> np.uint64:
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


@kernel
def _start_stream(seed: int, rule: int, step: int) -> np.uint64:
    z = _mix(np.uint64(seed) + _GOLDEN)
    z = _mix(z + np.uint64(rule) * _GOLDEN)
    return _mix(z + np.uint64(step) * _GOLDEN)


@kernel
def _below(z: np.uint64, n: int) -> int:
    """Turn 64 random bits into an integer from 0 to n - 1; numbers with a sign are made floats in one instruction."""
    return int(np.float64(np.int64(_mix(z) >> _S11)) * 2.0**-53 * n)


class Strata(NamedTuple):
    """Groups of examples that are sampled in proportion to their size: all examples, group by group."""

    examples: NDArray[np.uint32]
    ends: NDArray[np.int64]  # where each group ends


NO_STRATA = Strata(np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.int64))


@kernel
def draw_examples(seed: int, rule: int, size: int, strata: Strata, counts: NDArray[np.float64]) -> None:
    """Draw examples for a rule; `counts` receives how often each was drawn (Alg. 1, line 5).

    Without strata, `size` examples are drawn with replacement: the paper's bootstrap, if as many as there are. From
    strata, they are drawn without replacement.
    """
    n = counts.shape[0]
    counts[:] = 0.0
    z = _start_stream(seed, rule, 0)
    if strata.ends.shape[0] == 0:
        for _ in range(size):
            z += _GOLDEN
            counts[np.uint64(_below(z, n))] += 1.0
        return
    z += _GOLDEN
    shift = np.float64(_mix(z) >> _S11) * 2.0**-53  # so that no stratum is always rounded the same way
    begin = taken = 0
    for s in range(strata.ends.shape[0]):
        end = strata.ends[s]
        wanted = (size if end == n else int(size * (end / n) + shift)) - taken
        taken += wanted
        for i in range(begin, end):
            z += _GOLDEN
            if _below(z, end - i) < wanted:
                counts[strata.examples[i]] = 1.0
                wanted -= 1
        begin = end


@kernel
def draw_few(
    seed: int,
    rule: int,
    size: int,
    weight: NDArray[np.float64],
    counts: NDArray[np.uint8],
    bits: NDArray[np.uint64],
    rows: NDArray[np.uint32],
    weights: NDArray[np.float64],
) -> np.int64:
    """`draw_examples` with replacement, where few of many are drawn: no others are looked at.

    `rows` receives those of positive weight, in ascending order, and `weights` what each weighs, times how often it was
    drawn. `counts` and `bits`, a byte and a bit for each example, are 0 before and after. Returns how many there are.
    (If there are more examples than draws, none is ever drawn 256 times.)
    """
    n = weight.shape[0]
    z = _start_stream(seed, rule, 0)
    for _ in range(size):
        z += _GOLDEN
        i = np.uint64(_below(z, n))
        counts[i] += np.uint8(1)
        _mark(bits, i)
    n_drawn = np.uint64(0)
    for word in range(bits.shape[0]):
        left, bits[word] = bits[word], _NONE
        while left != _NONE:
            i = np.uint64(64 * word + count_trailing_zeros(left))
            rows[n_drawn], weights[n_drawn] = i, counts[i] * weight[i]
            n_drawn += np.uint64(weight[i] > 0.0)
            counts[i] = 0
            left &= left - _ONE
    return np.int64(n_drawn)


class Places(NamedTuple):
    """Where examples are that have numbers among more than there are here: in ascending blocks."""

    firsts: NDArray[np.int64]  # the number of the first example of each block
    edges: NDArray[np.int64]  # where each block begins, here; and where the last one ends


@kernel
def _find_place(places: Places, number: int) -> int:
    """Where the example of a number is, or -1; without branches, which would be guessed wrong half of the time."""
    firsts, edges = places.firsts, places.edges
    block, left = 0, firsts.shape[0]
    while left > 1:
        half = left // 2
        block += half * (firsts[block + half] <= number)
        left -= half
    place = edges[block] + number - firsts[block]
    return place if (number >= firsts[block]) & (place < edges[block + 1]) else -1


@kernel
def draw_here(seed: int, rule: int, size: int, n: int, places: Places, drawn: NDArray[np.uint32]) -> int:
    """`draw_examples` with replacement, of n examples: `drawn` receives those that are here, as they come."""
    z = _start_stream(seed, rule, 0)
    n_drawn = 0
    for _ in range(size):
        z += _GOLDEN
        place = _find_place(places, _below(z, n))
        drawn[n_drawn] = max(place, 0)
        n_drawn += place >= 0
    return n_drawn


NOTHING = np.empty(0, dtype=np.int64)


class Draw(NamedTuple):
    """What to draw from, what need not be drawn, and room for both together; all are in ascending order."""

    choices: NDArray[np.int64]
    fixed: NDArray[np.int64]
    drawn: NDArray[np.int64]
    bits: NDArray[np.uint64]  # one for each number there is, 0 before and after a draw


def make_draw(n: int, size: int, fixed: NDArray[np.int64] = NOTHING) -> Draw:
    """What it takes to draw `size` of the numbers below n that are not fixed."""
    free = np.ones(n, dtype=bool)
    free[fixed] = False
    choices = np.flatnonzero(free)
    drawn = np.empty(min(size, len(choices)) + len(fixed), dtype=np.int64)
    return Draw(choices, fixed, drawn, np.zeros(n // 64 + 1, dtype=np.uint64))


@plain
def find_group(rule: int, n_labels: int, size: int) -> tuple[int, int, int]:
    """Find the epoch of a rule, its group of labels, and how many rules in a row are yet to be about this group.

    In each epoch, the labels are shuffled and divided into groups of the same size. Several rules in a row are about a
    group, so that less is computed anew for each rule: one in the first epoch, and four times as many from epoch to
    epoch, up to 64, or 256 for all groups. Labels that are left over wait for the next epoch. If there is only one
    group, it is shuffled for each rule. The default rule is number 0.
    """
    groups = n_labels // size
    turns, most = 1, max(min(MOST_IN_A_ROW, EPOCH // groups), 1) if groups > 1 else 1
    epoch, place = 0, rule - 1
    while turns < most and place >= groups * turns:
        place -= groups * turns
        epoch += 1
        turns = min(GROWTH * turns, most)
    epoch += place // (groups * turns)
    place %= groups * turns
    return epoch, place // turns, turns - place % turns


@kernel
def fill_with_labels(seed: int, rule: int, in_turn: bool, labels: Draw) -> None:
    """Take the group of labels that a rule may be about, or the next label in turn; the default rule is number 0."""
    n, size = labels.choices.shape[0], labels.drawn.shape[0]
    if in_turn:
        labels.drawn[0] = (rule - 1) % n
    else:
        epoch, group, _ = find_group(rule, n, size)
        fill_with_group(seed, epoch, group, labels)


@kernel
def fill_with_group(seed: int, epoch: int, group: int, labels: Draw) -> None:
    """Take a group of an epoch."""
    _fill(_start_stream(seed, epoch, LABELS_STEP), group * labels.drawn.shape[0], labels)


@kernel
def fill_with_draw(seed: int, rule: int, step: int, draw: Draw) -> None:
    """Draw features without replacement, and add what is fixed (Alg. 3, line 2).

    `step` counts the refinements of the rule from 1; step 0 is the sample of examples.
    """
    _fill(_start_stream(seed, rule, step), 0, draw)


@kernel
def fill_with_draws(seed: int, rule: int, step: int, draw: Draw, drawn: NDArray[np.int32]) -> None:
    """Draw the features of some refinements in a row, of some rules in a row: (steps, rules, features)."""
    for i in range(drawn.shape[0]):
        for j in range(drawn.shape[1]):
            fill_with_draw(seed, rule + j, step + i, draw)
            for f in range(drawn.shape[2]):
                drawn[i, j, f] = draw.drawn[f]


@kernel
def _fill(z: np.uint64, first: int, draw: Draw) -> None:
    """Fill what is to be drawn from the places of a Fisher-Yates shuffle, from `first` on, and from what is fixed."""
    choices, fixed, drawn, bits = draw.choices, draw.fixed, draw.drawn, draw.bits
    n, n_fixed = choices.shape[0], fixed.shape[0]
    last = first + drawn.shape[0] - n_fixed
    shuffles = last - first < n
    for i in range(n_fixed):
        _mark(bits, fixed[i])
    for i in range(last):
        z += _GOLDEN
        j = i + _below(z, n - i) if shuffles else i
        choices[i], choices[j] = choices[j], choices[i]
        if i >= first:
            _mark(bits, choices[i])
    for i in range(last - 1, -1, -1):  # all swaps undone, the last one first
        j = i + _below(z, n - i) if shuffles else i
        choices[i], choices[j] = choices[j], choices[i]
        z -= _GOLDEN
    _list_marked(bits, drawn)


@kernel
def _mark(bits: NDArray[np.uint64], number: int) -> None:
    i = np.uint64(number)
    bits[i >> _S6] |= _ONE << (i & _S63)


@kernel
def _list_marked(bits: NDArray[np.uint64], numbers: NDArray[np.int64]) -> None:
    """Which bits are set, in ascending order; none is afterwards."""
    count = 0
    for word in range(bits.shape[0]):
        left, bits[word] = bits[word], _NONE
        while left != _NONE:
            numbers[count] = 64 * word + count_trailing_zeros(left)
            left &= left - _ONE
            count += 1


def count_examples(max_samples: int | float | None, n: int, replace: bool) -> int:
    """How many of n examples a sample has; None for n with replacement, and two thirds of them without."""
    if max_samples is None:
        return n if replace else max(1, round(n * 2 / 3))
    if isinstance(max_samples, Integral):
        return int(max_samples) if replace else min(int(max_samples), n)
    return max(1, round(max_samples * n))


def count_labels(max_labels: str | int | float | None, n_labels: int) -> int:
    """How many labels a rule may be about; 0 for each in turn."""
    if max_labels is None:
        return n_labels
    if isinstance(max_labels, str):  # "round-robin"
        return 0
    if isinstance(max_labels, Integral):
        return min(int(max_labels), n_labels)
    return max(1, round(max_labels * n_labels))


def count_features(max_features: str | int | float | None, n_features: int) -> int:
    """How many features a refinement step draws: the paper's floor(log2(L - 1) + 1) for "log2" (Alg. 3, line 2)."""
    if max_features is None:
        return n_features
    if max_features == "sqrt":
        return max(1, math.ceil(math.sqrt(n_features)))
    if max_features == "log2":
        return max(1, int(np.log2(max(n_features - 1, 1)) + 1))
    if isinstance(max_features, Integral):
        return min(int(max_features), n_features)
    return max(1, int(max_features * n_features))
