"""The squared losses: the squared error of targets in regression, and squared errors and hinges of labels."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pyboomer.arrays import Array
from pyboomer.losses.loss import Loss, Weight

Residuals = Callable[[Array, Array], tuple[Array, Array]]

# --- Squared error, for regression ----------------------------------------------------------------------------------


def _squared_error_value(Y: Array, F: Array, weight: Weight = 1.0) -> Array:
    return 0.5 * (weight * (F - Y) ** 2).sum(axis=1)


def _squared_error_derivatives(Y: Array, F: Array, weight: Weight = 1.0) -> tuple[Array, Array]:
    return weight * (F - Y), weight * np.ones(F.shape)


squared_error = Loss("squared-error", "diagonal", _squared_error_value, _squared_error_derivatives, weighted=True)


# --- Squared losses of labels ---------------------------------------------------------------------------------------
#
# Residuals r_k = f_k - y_k, of the hinge only inside the margin: r_k = -y_k max(0, 1 - y_k f_k). The label-wise losses
# are sum_k r_k^2. The example-wise ones are its root, L = sqrt(sum_k r_k^2), whose Hessian, with 1 for the labels that
# have a residual, is diag(1) / L - r r^T / L^3.

CLOSEST = 0.9999  # an expectation of labels, -1 and +1, counts as no closer to them: log-odds are finite
NEAR = 1e-6  # a root closer to 0 than this is 0: there is nothing left to gain, and no derivative


def _residuals(Y: Array, F: Array) -> tuple[Array, Array]:
    return F - Y, np.ones(F.shape)


def _hinge_residuals(Y: Array, F: Array) -> tuple[Array, Array]:
    margin = np.maximum(0.0, 1 - Y * F)
    return -Y * margin, (margin > 0).astype(np.float64)


def _log_odds_of_mean(F: Array) -> Array:
    """Squared losses are least in expectation at f = 2 p - 1, so p = (1 + f) / 2, whose log-odds are 2 artanh(f)."""
    return 2 * np.arctanh(np.clip(F, -CLOSEST, CLOSEST))


def _sum_squares(residuals: Residuals, Y: Array, F: Array, weight: Weight = 1.0) -> Array:
    return (weight * residuals(Y, F)[0] ** 2).sum(axis=1)


def _derive_sum(residuals: Residuals, Y: Array, F: Array, weight: Weight = 1.0) -> tuple[Array, Array]:
    r, active = residuals(Y, F)
    return 2 * weight * r, 2 * weight * active


def _root_squares(residuals: Residuals, Y: Array, F: Array, weight: Weight = 1.0) -> Array:
    return np.sqrt(_sum_squares(residuals, Y, F, weight))


def _derive_root(residuals: Residuals, Y: Array, F: Array, weight: Weight = 1.0) -> tuple[Array, Array, Array]:
    r, active = residuals(Y, F)
    root = _root_squares(residuals, Y, F, weight)[:, None]
    inverse = np.where(root > NEAR, 1 / np.maximum(root, NEAR), 0.0)
    return weight * r * inverse, weight * active * inverse, weight * r * inverse**1.5


def _make_squared(name: str, residuals: Residuals) -> tuple[Loss, Loss]:
    """The label-wise and the example-wise loss of some residuals."""

    def make(kind: str, shape: str, value: Any, derivatives: Any) -> Loss:
        functions = partial(value, residuals), partial(derivatives, residuals)
        return Loss(f"{kind}-{name}", shape, *functions, _log_odds_of_mean, weighted=True)

    return (
        make("label-wise", "diagonal", _sum_squares, _derive_sum),
        make("example-wise", "diagonal-minus-outer", _root_squares, _derive_root),
    )


label_wise_squared_error, example_wise_squared_error = _make_squared("squared-error", _residuals)
label_wise_squared_hinge, example_wise_squared_hinge = _make_squared("squared-hinge", _hinge_residuals)
