"""The expected F-measure is what a label vector is worth if one is judged by F, and only probabilities are known.

F(y, h) = 2 |y and h| / (|y| + |h|), and 1 if both are empty. For a prediction h of r labels the expectation is the sum
over its labels of

    w_kr = sum_s P(y_k = 1, |y| = s) 2 / (s + r).

Of each length r the r labels with the largest w_kr are best, and the lengths are compared (Dembczynski et al., 2011).
Few lengths are ever looked at: others are excluded by a bound, so the answer is the one that all lengths would give.

The probabilities are those of known label vectors, or of independent labels. For the latter, with p_k their
probabilities and N the number of relevant ones,

    E[1 / (N + c)] = integral_0^1 t^(c - 1) E[t^N] dt,    E[t^N] = prod_k (1 - p_k + p_k t),

which turns the distribution of the number of labels, without each label in turn, into one integral:

    w_kr = 2 integral_0^1 t^r E[t^N] p_k / (1 - p_k + p_k t) dt.

It is that of a polynomial without negative coefficients, so that quadrature loses no digits: see `find_nodes`.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from pyboomer.arrays import Array, Vectors

ROUNDING = 1e-12  # a length is excluded only if its bound is below the best by more than this, relatively
GROUP = 8  # independent labels whose number is counted together, a power of 2


# --- Known label vectors ----------------------------------------------------------------------------------------------


class Shares(NamedTuple):
    """What the known label vectors say of n examples."""

    sizes: NDArray[np.int64]  # the numbers of labels that they have, ascending
    of_labels: Array  # P(y_k = 1, |y| = s), shape (n, sizes, K)
    of_sizes: Array  # P(|y| = s), shape (n, sizes)

    @property
    def of_none(self) -> Array:
        """P(y is empty)."""
        return np.asarray(self.of_sizes[:, self.sizes == 0].sum(axis=1))


def choose_of_known(shares: Shares) -> Vectors:
    """The label vectors of largest expected F-measure, given what the known ones say."""
    n, _, K = shares.of_labels.shape
    result = np.zeros((n, K), dtype=np.uint8)
    largest = shares.sizes[-1]
    if largest == 0:  # only the empty vector is known
        return result
    every = np.arange(1, K + 1)
    expected_length = np.rint(shares.of_labels.sum(axis=(1, 2)))
    best_length = np.clip(expected_length, 1, K).astype(np.int64)
    best = _sum_largest(shares, best_length)[np.arange(n), best_length - 1]
    rows, lengths = np.arange(n), np.ones(n, dtype=np.int64)
    while len(rows):
        sums = _sum_largest(shares if len(rows) == n else shares._replace(of_labels=shares.of_labels[rows]), lengths)
        expected = sums[np.arange(len(rows)), lengths - 1]
        better = (expected > best[rows]) | ((expected == best[rows]) & (lengths < best_length[rows]))
        best[rows[better]], best_length[rows[better]] = expected[better], lengths[better]
        # from one length to another, no w_k falls by less than if all vectors were of the largest size
        bound = sums * ((largest + lengths)[:, None] / (largest + every))
        possible = (bound >= best[rows, None] * (1 - ROUNDING)) & (every > lengths[:, None])
        left = possible.any(axis=1)
        rows, lengths = rows[left], possible[left].argmax(axis=1) + 1
    order = np.argsort(-_weigh(shares, best_length), axis=1, kind="stable")
    worthwhile = best > shares.of_none
    np.put_along_axis(result, order, (every <= best_length[:, None]) & worthwhile[:, None], axis=1)
    return result


def count_known(vectors: Vectors) -> int:
    """How many numbers `choose_of_known` takes for each example."""
    return vectors.shape[1] * (len(np.unique(vectors.sum(axis=1, dtype=np.int64))) + 4)


def weigh_known(shares: Shares, length: int) -> Array:
    """w_kr of each label, shape (n, K), for predictions of `length` labels."""
    return _weigh(shares, np.full(len(shares.of_labels), length))


def _sum_largest(shares: Shares, lengths: NDArray[np.int64]) -> Array:
    """The sums of the one, two, ... largest w_kr, where r is the length of each row."""
    return np.cumsum(-np.sort(-_weigh(shares, lengths), axis=1), axis=1)


def _weigh(shares: Shares, lengths: NDArray[np.int64]) -> Array:
    return np.asarray(np.matmul((2.0 / (shares.sizes + lengths[:, None]))[:, None], shares.of_labels)[:, 0])


# --- Independent labels -----------------------------------------------------------------------------------------------


def choose_of_independent(log_odds: Array) -> Vectors:
    """The label vectors of largest expected F-measure, given the log-odds of independent labels, shape (n, K)."""
    n, K = log_odds.shape
    order = np.argsort(-log_odds, axis=1, kind="stable")  # the more probable a label is, the larger is w_kr
    f = _fill_up(np.take_along_axis(log_odds, order, axis=1))
    t, weight, powers = find_nodes(f.shape[1])
    factors, ratios = _generate(f, t)
    height = 2 * weight * factors.prod(axis=1)  # (n, nodes)
    behind = np.cumsum(ratios, axis=1)  # the sum of p_k / (1 - p_k + p_k t) up to the last label of a group
    # of the lengths that end in a group, none is worth more than if it had all its labels and was the shortest
    bound, reached = np.moveaxis((behind * (height[:, None] * powers)) @ np.stack([t, t**GROUP], axis=1), 2, 0)
    row, group = np.nonzero(bound >= reached.max(axis=1, keepdims=True) * (1 - ROUNDING))
    expected = np.full((*bound.shape, GROUP), -1.0)
    height, sums = height[row] * powers[group], behind[row, group] - ratios[row, group]
    for i in range(GROUP):
        own = f[row, GROUP * group + i, None]
        sums += expit(own) / (expit(-own) + expit(own) * t)
        height *= t
        expected[row, group, i] = np.einsum("rt,rt->r", height, sums)
    expected = expected.reshape(n, -1)[:, :K]
    best = expected.argmax(axis=1)  # the length, less one
    worthwhile = expected[np.arange(n), best] > expit(-log_odds).prod(axis=1)
    result = np.zeros((n, K), dtype=np.uint8)
    np.put_along_axis(result, order, (np.arange(K) <= best[:, None]) & worthwhile[:, None], axis=1)
    return result


def count_independent(n_labels: int) -> int:
    """How many numbers `choose_of_independent` takes for each example."""
    return 3 * n_labels * int(n_labels**0.5) + 300  # groups x nodes, and more than one array of them


def weigh_independent(log_odds: Array, length: int) -> Array:
    """w_kr of each label, shape (n, K), for predictions of `length` labels."""
    f = _fill_up(log_odds)
    t, weight, _ = find_nodes(f.shape[1])
    factors, _ = _generate(f, t)
    p, q = expit(log_odds)[:, :, None], expit(-log_odds)[:, :, None]
    return np.asarray((p / (q + p * t)) @ (2 * weight * t**length * factors.prod(axis=1))[:, :, None])[:, :, 0]


def _fill_up(log_odds: Array) -> Array:
    """Add labels that are never relevant, so that all groups are complete."""
    missing = -log_odds.shape[1] % GROUP
    return np.pad(log_odds, ((0, 0), (0, missing)), constant_values=-np.inf)


def _generate(log_odds: Array, t: Array) -> tuple[Array, Array]:
    """E[t^N] of the labels of each group, and the sums of their p_k / (1 - p_k + p_k t); shape (n, groups, nodes).

    The latter is the derivative of the former's logarithm. Both are found from the distribution of N.
    """
    counts = np.stack([expit(-log_odds), expit(log_odds)], axis=2)  # of one label, then of two, four, eight
    while counts.shape[2] <= GROUP:
        a, b = counts[:, ::2], counts[:, 1::2]
        counts = np.zeros((*a.shape[:2], 2 * a.shape[2] - 1))
        for i in range(a.shape[2]):
            counts[:, :, i : i + b.shape[2]] += a[:, :, i, None] * b
    powers = t ** np.arange(GROUP + 1)[:, None]
    factors = counts @ powers
    slopes = (counts[:, :, 1:] * np.arange(1, GROUP + 1)) @ powers[:-1]
    return factors, slopes / factors


@lru_cache(maxsize=2)
def find_nodes(n_labels: int) -> tuple[Array, Array, Array]:
    """Nodes t and weights that integrate 1, t, ..., t^(2 n_labels) over [0, 1] to 14 digits each: Fejer's second rule.

    Some 6 sqrt(degree) nodes do, far fewer than would be exact: t^d is flat but for a width of 1 / d next to 1, and
    there the nodes are dense. A sum of powers with positive coefficients has the relative error of its worst power.
    With them come the powers of t that groups of labels begin with, shape (groups, nodes).
    """
    n = int(6 * (2 * n_labels) ** 0.5) + 10
    angle = np.arange(1, n) * (np.pi / n)
    odd = np.arange(1, n, 2)
    weights = 2 / n * np.sin(angle) * (np.sin(np.outer(angle, odd)) / odd).sum(axis=1)
    t = np.cos(angle / 2) ** 2
    return t, weights, t ** np.arange(0, n_labels, GROUP)[:, None]
