"""A constant is a vector of scores that all examples have: the head of the default rule.

The best one minimises the loss over all examples and what is added to it to keep scores small, l1 sum_k |p_k| and
l2 / 2 sum_k p_k^2. A single step of Newton's method from 0, as the paper takes it (Alg. 1, line 2), is far from it
where labels are many or rare: it may even raise the loss.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array

Solve = Callable[[Array, NDArray[np.bool_]], Array]  # x of (H + l2 I) x = z, with x_k = 0 for all labels but some

STEPS = 50  # at most; the loss of a label that all examples have, or none, falls with each of them, and ever less
HALVES = 30  # how often a step is halved at most
ENOUGH = 1e-20  # a step that does not gain more, per unit of weight, changes no digit that counts
ROUNDING = 1e-12  # the share of a sum that may be rounding


def minimise_constant(
    n_labels: int,
    rate: Callable[[Array], float],
    derive: Callable[[Array], tuple[Array, Solve]],
    penalty: tuple[float, float],
    weight: float,
) -> tuple[Array, float]:
    """The best constant, and by how much it is better than 0: Newton's method, with steps that never raise the loss.

    With L1 regularisation no score changes its sign within a step, and a score of 0 stays if it is not worth leaving.

    Parameters
    ----------
    n_labels : int
    rate : callable
        ``rate(p)``, the sum of the loss over all examples.
    derive : callable
        ``derive(p)``, its gradient, and a function that solves linear systems with its Hessian.
    penalty : pair of float
        l1 and l2.
    weight : float
        That of all examples.
    """
    l1, l2 = penalty

    def rate_regularised(p: Array) -> float:
        return rate(p) + l1 * float(np.abs(p).sum()) + 0.5 * l2 * float(p @ p)

    p = np.zeros(n_labels)
    first = value = rate_regularised(p)
    for _ in range(STEPS):
        g, solve = derive(p)
        slope = g + l2 * p + l1 * np.sign(p)
        slope = np.where(p == 0, np.sign(g) * np.maximum(np.abs(g) - l1, 0.0), slope)
        step = solve(-slope, (p != 0) | (slope != 0))
        if not -slope @ step > 2 * ENOUGH * weight:
            break
        side = np.sign(np.where(p == 0, -slope, p)) if l1 > 0 else np.zeros(n_labels)
        tried = (_keep_side(p + 0.5**i * step, side) for i in range(HALVES))
        lower = next(((q, v) for q in tried if (v := rate_regularised(q)) <= value + ROUNDING * abs(value)), None)
        if lower is None:
            break
        p, value = lower
    return p, first - value


def _keep_side(p: Array, side: Array) -> Array:
    """Scores of 0 where they would be on the other side of it."""
    return np.where(p * side < 0, 0.0, p)
