"""Odds are scores of the label-wise logistic loss (Eq. 6) in the form exp(f), with the sign of the label.

To add to a score is to multiply odds, and gradients and curvatures follow from them without an exponential. In float32
an example of 20 labels takes 96 bytes. No statistics are kept: those of a sample are computed when it is drawn, and
those of the covered examples are computed, added up and forgotten, once for all rules of a round.

Sums over examples are sums of integers (`fixed`), so that they do not depend on how examples are divided among threads
or machines.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows, Signs
from pyboomer.compiling.kernel import inner, kernel
from pyboomer.compiling.simd import (
    LANES,
    add_bits,
    count_trailing_zeros,
    larger,
    load,
    pad,
    prefetch,
    product,
    splat,
    store,
    where_above,
)
from pyboomer.engine.fixed import BITS, MAGIC, Scales, Whole, fix
from pyboomer.engine.heads import Penalty, solve_diagonal
from pyboomer.engine.statistics import Diagonal, Terms
from pyboomer.rules.operators import ABOVE, AT_MOST, EQUAL

CHUNK = 4096  # examples that a temporary array is made for
BLOCK = 32  # examples that memory is asked for at once
ALL = 2**32 - 1
MINUS_BITS = float(np.int64(-BITS).view(np.float64))  # takes `MAGIC` off
MOST = 1e30  # odds; a float32 holds them, and a float64 the product of eight

Odds = NDArray[np.float32]  # (N, width): exp(f), negative for a label that is not relevant, 0 for an unknown one
Masks = NDArray[np.uint32]  # (N,): a bit for each rule of a round that covers the example


class Bodies(NamedTuple):
    """The bodies of a round."""

    conditions: Array  # feature, operator and value of each, one body behind the other
    offsets: NDArray[np.int64]


class RoundSums(NamedTuple):
    """Sums over the examples that R rules cover, in whole numbers.

    Pairs (r, s) with s < r are at r (r - 1) / 2 + s.
    """

    statistics: Whole  # (R, 2 width): gradients and curvatures
    pairs: Whole  # (R (R - 1) / 2, width): curvatures of the examples that both rules of a pair cover
    weight: Whole  # (R,)


def make_round_sums(n_rules: int, n_labels: int) -> RoundSums:
    """Sums of nothing."""
    width = pad(n_labels)
    shapes = (n_rules, 2 * width), (n_rules * (n_rules - 1) // 2, width), (n_rules,)
    return RoundSums(*(np.zeros(shape, dtype=np.int64) for shape in shapes))


def write_odds(signs: Signs, scores: Array, odds: Odds, part: slice) -> None:
    """Compute the odds of some examples from their scores, (N, width), or one row for all."""
    for begin in range(part.start, part.stop, CHUNK):
        some = slice(begin, min(begin + CHUNK, part.stop))
        sizes = np.clip(np.exp(np.clip(scores[some] if len(scores) > 1 else scores, -99, 99)), 1 / MOST, MOST)
        np.multiply(signs[some], sizes, out=odds[some], casting="same_kind")


@inner(error_model="numpy", forceinline=True)
def derive(odds: Odds, position: int) -> tuple[Array, Array]:
    """Gradient and curvature of eight labels; where the odds are 0, both are."""
    zero = splat(0.0)
    signed = load(odds, position)
    size = where_above(signed, zero, signed, zero - signed)
    q = 1.0 / (1.0 + size)
    p = size * q
    return where_above(signed, zero, zero - q, p), p * q


@inner(error_model="numpy")
def fetch_odds(odds: Odds, rows: Rows, begin: int) -> None:
    """Ask for a block of examples."""
    width = odds.shape[1]
    for r in range(begin, min(begin + BLOCK, rows.shape[0])):
        for k in range(0, width, 2 * LANES):  # a cache line has sixteen numbers; the last one need not begin in one
            prefetch(odds, rows[r] * width + k)
        prefetch(odds, rows[r] * width + width - 1)


# --- Samples ----------------------------------------------------------------------------------------------------------


@kernel(error_model="numpy")
def write_statistics(odds: Odds, rows: Rows, statistics: Array) -> None:
    """Compute the statistics of some examples, one after another."""
    width, size = odds.shape[1], statistics.shape[1]
    for begin in range(0, rows.shape[0], BLOCK):
        fetch_odds(odds, rows, begin + BLOCK)
        for r in range(begin, min(begin + BLOCK, rows.shape[0])):
            for k in range(0, width, LANES):
                g, h = derive(odds, rows[r] * width + k)
                store(statistics, r * size + k, g)
                store(statistics, r * size + width + k, h)


@kernel(error_model="numpy")
def write_terms(odds: Odds, rows: Rows, weights: Array, scale: float, terms: Terms) -> None:
    """The same times the weights, in whole numbers."""
    width, size, magic = odds.shape[1], terms.shape[1], splat(MAGIC)
    for begin in range(0, rows.shape[0], BLOCK):
        fetch_odds(odds, rows, begin + BLOCK)
        for r in range(begin, min(begin + BLOCK, rows.shape[0])):
            factor = scale * weights[r]
            for k in range(0, width, LANES):
                g, h = derive(odds, rows[r] * width + k)
                store(terms, r * size + k, factor * g + magic - magic)
                store(terms, r * size + width + k, factor * h + magic - magic)


# --- All examples: the heads of a round -------------------------------------------------------------------------------


@inner
def _mark(codes: NDArray[np.uint8], operator: int, value: float, marks: NDArray[np.uint8]) -> None:
    """Clear the marks of examples that do not meet a condition; a missing value, the largest code, never meets one."""
    edge, missing = np.uint8(value), np.uint8(255)
    for i in range(codes.shape[0]):
        if operator == AT_MOST:
            marks[i] &= codes[i] <= edge
        elif operator == ABOVE:
            marks[i] &= (codes[i] > edge) & (codes[i] != missing)
        elif operator == EQUAL:
            marks[i] &= codes[i] == edge
        else:
            marks[i] &= (codes[i] != edge) & (codes[i] != missing)


@inner
def _find_masks(codes: NDArray[np.uint8], bodies: Bodies, begin: int, marks: NDArray[np.uint8], masks: Masks) -> None:
    """Find the rules that cover each example of a chunk, which begins with example `begin`."""
    for i in range(masks.shape[0]):
        masks[i] = 0
    for r in range(bodies.offsets.shape[0] - 1):
        for i in range(marks.shape[0]):
            marks[i] = 1
        for c in range(bodies.offsets[r], bodies.offsets[r + 1]):
            feature, operator = np.int64(bodies.conditions[c, 0]), np.int64(bodies.conditions[c, 1])
            _mark(codes[feature][begin : begin + marks.shape[0]], operator, bodies.conditions[c, 2], marks)
        for i in range(marks.shape[0]):
            masks[i] |= np.uint32(marks[i]) << np.uint32(r)


class Scratch(NamedTuple):
    """Memory of one thread."""

    marks: NDArray[np.uint8]
    rows: Rows
    terms: Array  # the statistics of an example, in whole numbers


def make_scratch(n_labels: int) -> Scratch:
    """Memory for chunks of examples."""
    marks, rows = np.empty(CHUNK, dtype=np.uint8), np.empty(CHUNK, dtype=np.uint32)
    return Scratch(marks, rows, np.empty(2 * pad(n_labels)))


@kernel(error_model="numpy")
def sum_round(
    codes: NDArray[np.uint8],
    bodies: Bodies,
    odds: Odds,
    weight: Array,
    scales: Scales,
    changes: Array,
    masks: Masks,
    scratch: Scratch,
    first: int,
    last: int,
    sums: RoundSums,
) -> None:
    """Find what the rules of a round cover among examples `first` to `last` - 1, and add up statistics (Alg. 2).

    The statistics of an example are computed once for all rules that cover it. `changes` are scores that the examples
    got in the round before these rules, (N, width), or an empty array.
    """
    width, magic, minus = odds.shape[1], splat(MAGIC), splat(MINUS_BITS)
    terms, rows, one = scratch.terms, scratch.rows, np.uint64(1)
    totals, pairs = sums.statistics.view(np.float64), sums.pairs.view(np.float64)  # vectors are of doubles
    for begin in range(first, last, CHUNK):
        end = min(begin + CHUNK, last)
        _find_masks(codes, bodies, begin, scratch.marks[: end - begin], masks[begin:end])
        covered = rows[: _list_rows(masks, np.uint32(ALL), begin, end, rows)]
        fetch_odds(odds, covered, 0)
        for start in range(0, covered.shape[0], BLOCK):
            stop = min(start + BLOCK, covered.shape[0])
            fetch_odds(odds, covered, stop)
            for i in range(start, stop):
                n = covered[i]
                factor, mass = scales.statistics * weight[n], fix(scales.weight * weight[n])
                for k in range(0, width, LANES):
                    g, h = derive(odds, n * width + k)
                    if changes.shape[0] > 0:
                        g = g + h * load(changes, n * width + k)
                    store(terms, k, add_bits(factor * g + magic, minus))
                    store(terms, width + k, add_bits(factor * h + magic, minus))
                left = np.uint64(masks[n])
                while left != 0:
                    r = count_trailing_zeros(left)
                    left &= left - one
                    sums.weight[r] += mass
                    position = 2 * r * width
                    for k in range(0, 2 * width, LANES):
                        store(totals, position + k, add_bits(load(totals, position + k), load(terms, k)))
                    before = np.uint64(masks[n]) & ((one << np.uint64(r)) - one)
                    while before != 0:
                        position = (r * (r - 1) // 2 + count_trailing_zeros(before)) * width
                        before &= before - one
                        for k in range(0, width, LANES):
                            store(pairs, position + k, add_bits(load(pairs, position + k), load(terms, width + k)))


@inner
def _list_rows(masks: Masks, which: np.uint32, begin: int, end: int, rows: Rows) -> np.int64:
    """List the examples that some of the rules cover; returns how many there are."""
    count = np.uint64(0)
    for n in range(begin, end):
        rows[count] = n
        count += np.uint64((masks[n] & which) != 0)
    return np.int64(count)


class RoundHeads(NamedTuple):
    """The heads of R rules."""

    scores: Array  # (R, K): shrunken
    gain: Array
    coverage: Array


@kernel(error_model="numpy")
def solve_heads(
    layout: Diagonal,
    sums: RoundSums,
    scales: Scales,
    penalty: Penalty,
    learning_rate: float,
    buffer: Array,
    heads: RoundHeads,
) -> None:
    """Fit the heads of a round one after another (Alg. 1, lines 7 and 8).

    To first order, rule r sees the gradient g_r + sum_s h_rs p_s after the rules s before it.
    """
    width = buffer.shape[0] // 2
    for r in range(heads.gain.shape[0]):
        for s in range(2 * width):
            buffer[s] = sums.statistics[r, s] / scales.statistics
        for s in range(r):
            pair = sums.pairs[r * (r - 1) // 2 + s]
            for k in range(layout.n_labels):
                buffer[k] += pair[k] / scales.statistics * heads.scores[s, k]
        heads.gain[r] = solve_diagonal(layout, buffer, penalty, heads.scores[r])
        heads.coverage[r] = sums.weight[r] / scales.weight
        for k in range(layout.n_labels):
            heads.scores[r, k] *= learning_rate


def find_factors(width: int, scores: Array) -> Array:
    """The factors of odds that stand for the scores of some rules; finite, and not 0."""
    factors = np.ones((len(scores), width))
    factors[:, : scores.shape[1]] = np.exp(np.clip(scores, -99, 99))
    return factors


@inner(error_model="numpy", forceinline=True)
def _multiply(odds: Odds, position: int, factors: Array, k: int, mask: np.uint32) -> Array:
    """Eight odds times the factors of the rules in a mask, up to what they hold."""
    width, zero, most, least, one = factors.shape[1], splat(0.0), splat(MOST), splat(1 / MOST), np.uint64(1)
    old = load(odds, position)
    new, left = old, np.uint64(mask)
    while left != 0:
        new = new * load(factors, count_trailing_zeros(left) * width + k)
        left &= left - one
    size = larger(where_above(new, zero, new, zero - new), least)
    size = where_above(size, most, most, size)
    negative = where_above(zero, old, zero - size, zero)
    return where_above(old, zero, size, negative)


@kernel(error_model="numpy")
def multiply_odds(
    odds: Odds, masks: Masks, which: np.uint32, factors: Array, scratch: Scratch, first: int, last: int
) -> None:
    """Multiply the odds of examples `first` to `last` - 1 by the factors of some rules of a round that cover them."""
    width = odds.shape[1]
    for begin in range(first, last, CHUNK):
        rows = scratch.rows[: _list_rows(masks, which, begin, min(begin + CHUNK, last), scratch.rows)]
        fetch_odds(odds, rows, 0)
        for start in range(0, rows.shape[0], BLOCK):
            stop = min(start + BLOCK, rows.shape[0])
            fetch_odds(odds, rows, stop)
            for i in range(start, stop):
                n = rows[i]
                for k in range(0, width, LANES):
                    store(odds, n * width + k, _multiply(odds, n * width + k, factors, k, masks[n] & which))


@kernel(error_model="numpy")
def sum_losses(
    odds: Odds, masks: Masks, which: np.uint32, factors: Array, weight: Array, scale: float, first: int, last: int
) -> np.int64:
    """The sum of the loss (Eq. 6) in whole numbers: log(1 + 1 / odds) of relevant labels, log(1 + odds) of others.

    The odds are multiplied by the factors of some rules, but stay as they are.
    """
    width, zero, one = odds.shape[1], splat(0.0), splat(1.0)
    total = np.int64(0)
    for n in range(first, last):
        value = 0.0
        for k in range(0, width, LANES):
            signed = _multiply(odds, n * width + k, factors, k, masks[n] & which)
            value += np.log(product(1.0 + where_above(signed, zero, one / signed, zero - signed)))
        total += fix(scale * weight[n] * value)
    return total
