"""The logistic losses: one decomposes over the labels (Eq. 6), the other does not (Eq. 7)."""

import numpy as np
from scipy.special import expit

from pyboomer.arrays import Array
from pyboomer.losses.loss import Loss, Weight

# --- Label-wise logistic loss, Eq. 6 --------------------------------------------------------------------------------


def _label_wise_value(Y: Array, F: Array, weight: Weight = 1.0) -> Array:
    margin = Y * F
    return (weight * (np.log1p(np.exp(-np.abs(margin))) - np.minimum(margin, 0.0))).sum(axis=1)  # Eq. 6


def _label_wise_derivatives(Y: Array, F: Array, weight: Weight = 1.0) -> tuple[Array, Array]:
    p = expit(-Y * F)  # e / (1 + e) with e = exp(-y f)
    return -weight * Y * p, weight * p * expit(Y * F)


label_wise_logistic = Loss("label-wise-logistic", "diagonal", _label_wise_value, _label_wise_derivatives, weighted=True)


# --- Example-wise logistic loss, Eq. 7 ------------------------------------------------------------------------------


def _shifted_exponentials(Y: Array, F: Array, weight: Weight) -> tuple[Array, Array, Array]:
    """e = w exp(-y f - s) and S = exp(-s) + sum e, shifted by s, the row maximum (0 included), to avoid overflow."""
    exponents = -Y * F
    shift = np.maximum(exponents.max(axis=1, keepdims=True), 0.0)
    e = weight * np.exp(exponents - shift)
    return e, np.exp(-shift) + e.sum(axis=1, keepdims=True), shift


def _example_wise_value(Y: Array, F: Array, weight: Weight = 1.0) -> Array:
    e, S, shift = _shifted_exponentials(Y, F, weight)
    return np.where(shift > 0, shift + np.log(S), np.log1p(e.sum(axis=1, keepdims=True)))[:, 0]  # Eq. 7


def _example_wise_derivatives(Y: Array, F: Array, weight: Weight = 1.0) -> tuple[Array, Array, Array]:
    e, S, _ = _shifted_exponentials(Y, F, weight)
    p = e / S
    g = -Y * p
    return g, p, g  # H = diag(|g|) - g g^T


example_wise_logistic = Loss(
    "example-wise-logistic", "diagonal-minus-outer", _example_wise_value, _example_wise_derivatives, weighted=True
)
