"""The robust losses of regression: the absolute error and Huber's, which mind outliers less than the squared error.

Where a loss is a straight line, it has no curvature to tell how long a step should be. In its place stands that of the
parabola that touches the loss and is nowhere below it: with r = f - y it is 1 / |r| for the absolute error, and
min(1, d / |r|) for Huber's loss, which is r^2 / 2 up to |r| = d and d |r| - d^2 / 2 beyond. A step by it never raises
the loss of the examples covered.
"""

import math
from functools import partial

import numpy as np

from pyboomer.arrays import Array
from pyboomer.losses.loss import Loss, Weight

NEAR = 1e-2  # a residual closer to 0 counts as this large, or its curvature would outweigh that of all others


def _absolute_value(Y: Array, F: Array, weight: Weight = 1.0) -> Array:
    return (weight * np.abs(F - Y)).sum(axis=1)


def _absolute_derivatives(Y: Array, F: Array, weight: Weight = 1.0) -> tuple[Array, Array]:
    r = F - Y
    return weight * np.sign(r), weight / np.maximum(np.abs(r), NEAR)


absolute_error = Loss("absolute-error", "diagonal", _absolute_value, _absolute_derivatives, weighted=True)


def _huber_value(delta: float, Y: Array, F: Array, weight: Weight = 1.0) -> Array:
    size = np.abs(F - Y)
    near = np.minimum(size, delta)
    return (weight * (near * (size - near / 2))).sum(axis=1)


def _huber_derivatives(delta: float, Y: Array, F: Array, weight: Weight = 1.0) -> tuple[Array, Array]:
    r = F - Y
    return weight * np.clip(r, -delta, delta), weight * delta / np.maximum(np.abs(r), delta)


def make_huber(delta: float = 1.0) -> Loss:
    """Make Huber's loss: a parabola up to errors of `delta`, in the units of the targets, and a line beyond.

    Examples
    --------
    >>> from pyboomer import BoomerRegressor
    >>> from pyboomer.losses import make_huber
    >>> reg = BoomerRegressor(loss=make_huber(delta=5.0))
    >>> reg.loss.name
    'huber-5'
    """
    if not 0 < delta < math.inf:
        raise ValueError(f"delta must be a positive number, got {delta!r}")

    value, derivatives = partial(_huber_value, delta), partial(_huber_derivatives, delta)  # which can be pickled
    return Loss("huber" if delta == 1 else f"huber-{delta:g}", "diagonal", value, derivatives, weighted=True)


huber = make_huber()
