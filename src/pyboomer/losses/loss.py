"""A loss says how bad a vector of scores is for a vector of labels, and how that changes with the scores.

Losses here take `Y`, an (n, K) array of -1 and +1 (of targets, in regression), and `F`, an (n, K) array of scores, one
row per example. They are the readable definitions: the reference uses them as they are, and the engine's compiled twins
of the built-in ones (in `statistics`) are tested against them.

Labels may have weights, an (n, K) array; an unknown label has weight 0, and its Y is 0. A decomposable loss is then the
weighted sum of its terms, sum_k w_k l(y_k, f_k); the example-wise logistic loss is log(1 + sum_k w_k exp(-y_k f_k)).

The Hessian of a loss has one of three shapes, and `derivatives` returns accordingly

- ``"diagonal"``: ``(g, h)`` with H_n = diag(h_n): the loss decomposes over the labels;
- ``"diagonal-minus-outer"``: ``(g, a, b)`` with H_n = diag(a_n) - b_n b_n^T: almost as fast;
- ``"dense"``: ``(g, H)`` with H of shape (n, K, K): any other twice differentiable loss.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from pyboomer.arrays import Array

Weight = Array | float
Residuals = Callable[[Array, Array], tuple[Array, Array]]

SHAPES = ("diagonal", "diagonal-minus-outer", "dense")


def _identity(F: Array) -> Array:
    return F


@dataclass(frozen=True)
class Loss:
    """A loss: two facts and two functions.

    Parameters
    ----------
    name : str
        How the loss is called in messages and model files.
    shape : {"diagonal", "diagonal-minus-outer", "dense"}
        Shape of the Hessian, see the module's docstring.
    value : callable
        ``value(Y, F)`` gives the loss of each row, shape (n,). Used to report, and to decode a loss whose Hessian is
        not diagonal.
    derivatives : callable
        ``derivatives(Y, F)`` gives ``(g, h)``, ``(g, a, b)`` or ``(g, H)``. Called once per rule with the rows
        that the rule covers; plain NumPy and functions compiled by Numba are equally welcome.
    log_odds : callable, optional
        ``log_odds(F)`` turns scores into log-odds of the labels, for probabilities. The scores themselves by default,
        as for the logistic losses.
    weighted : bool, default=False
        Whether `value` and `derivatives` take a third argument, the (n, K) weights of the labels. Only a loss that does
        not decompose needs it, and only to learn from unknown labels or from weights per label.

    Examples
    --------
    >>> import numpy as np
    >>> from pyboomer import BoomerClassifier, Loss
    >>> squared = Loss(
    ...     name="label-wise squared error",
    ...     shape="diagonal",
    ...     value=lambda Y, F: ((Y - F) ** 2).sum(axis=1),
    ...     derivatives=lambda Y, F: (2 * (F - Y), np.full(F.shape, 2.0)),
    ... )
    >>> clf = BoomerClassifier(loss=squared)
    """

    name: str
    shape: str
    value: Callable[..., Array]
    derivatives: Callable[..., tuple[Array, ...]]
    log_odds: Callable[[Array], Array] = _identity
    weighted: bool = False

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise ValueError(f"shape of loss {self.name!r} must be one of {', '.join(SHAPES)}, got {self.shape!r}")
        for field in ("value", "derivatives", "log_odds"):
            if not callable(getattr(self, field)):
                raise TypeError(f"{field} of loss {self.name!r} must be callable, got {getattr(self, field)!r}")

    @property
    def decomposable(self) -> bool:
        """Whether the loss is a sum over the labels."""
        return self.shape == "diagonal"

    def weighted_value(self, Y: Array, F: Array, weight: Array | None) -> Array:
        """The loss of each row, where labels may have weights."""
        if weight is None:
            return self._check_value(self.value(Y, F), len(F))
        if self.weighted:
            return self._check_value(self.value(Y, F, weight), len(F))
        self._check_weighable()
        Y = np.where(weight > 0, Y, 1.0)  # what is unknown must not disturb a loss that expects -1 and +1
        terms = [self._check_value(self.value(Y[:, [k]], F[:, [k]]), len(F)) for k in range(F.shape[1])]
        return (weight * np.stack(terms, axis=1)).sum(axis=1)

    def mean_value(self, Y: Array, F: Array, weight: Array | None, sample_weight: Array) -> float:
        """The mean loss of weighted examples, where labels may have weights, too."""
        return float(np.average(self.weighted_value(Y, F, weight), weights=sample_weight))

    def _check_value(self, result: Any, n: int) -> Array:
        values = np.asarray(result, dtype=np.float64)
        if values.shape != (n,):
            raise ValueError(f"value of loss {self.name!r} must have shape {(n,)}, got {values.shape}")
        return values

    def weighted_derivatives(self, Y: Array, F: Array, weight: Array | None) -> tuple[Array, ...]:
        """`derivatives`, where labels may have weights; an error names the loss if they are not as `shape` says."""
        if weight is None:
            return self._check_derivatives(self.derivatives(Y, F), F.shape)
        if self.weighted:
            return self._check_derivatives(self.derivatives(Y, F, weight), F.shape)
        self._check_weighable()
        g, h = self._check_derivatives(self.derivatives(np.where(weight > 0, Y, 1.0), F), F.shape)
        return weight * g, weight * h

    def _check_weighable(self) -> None:
        if not self.decomposable:
            raise ValueError(
                f"loss {self.name!r} can learn neither from unknown labels nor from weights per label: it does not "
                "decompose, and its functions take no weights (see the parameter `weighted` of pyboomer.Loss)"
            )

    def _check_derivatives(self, result: Any, size: tuple[int, ...]) -> tuple[Array, ...]:
        n, k = size
        expected: tuple[tuple[int, ...], ...] = {
            "diagonal": ((n, k), (n, k)),
            "diagonal-minus-outer": ((n, k), (n, k), (n, k)),
            "dense": ((n, k), (n, k, k)),
        }[self.shape]
        if not isinstance(result, tuple):
            raise TypeError(f"derivatives of loss {self.name!r} must return a tuple, got {type(result).__name__}")
        arrays = tuple(np.asarray(array, dtype=np.float64) for array in result)
        shapes = tuple(array.shape for array in arrays)
        if shapes != expected:
            raise ValueError(
                f"derivatives of loss {self.name!r} ({self.shape}) must have shapes {expected}, got {shapes}"
            )
        if not all(np.isfinite(array).all() for array in arrays):
            raise ValueError(f"derivatives of loss {self.name!r} are not finite")
        return arrays


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

NEAR = 1e-6  # a root closer to 0 than this is 0: there is nothing left to gain, and no derivative


def _residuals(Y: Array, F: Array) -> tuple[Array, Array]:
    return F - Y, np.ones(F.shape)


def _hinge_residuals(Y: Array, F: Array) -> tuple[Array, Array]:
    margin = np.maximum(0.0, 1 - Y * F)
    return -Y * margin, (margin > 0).astype(np.float64)


def _log_odds_of_mean(F: Array) -> Array:
    """Squared losses are least in expectation at f = 2 p - 1, so p = (1 + f) / 2, whose log-odds are 2 artanh(f)."""
    return 2 * np.arctanh(np.clip(F, -0.9999, 0.9999))


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

FOR_LABELS = {
    loss.name: loss
    for loss in (
        label_wise_logistic,
        example_wise_logistic,
        label_wise_squared_error,
        example_wise_squared_error,
        label_wise_squared_hinge,
        example_wise_squared_hinge,
    )
}
BUILT_IN = {**FOR_LABELS, squared_error.name: squared_error}


def find_loss(loss: Any) -> Loss:
    """The loss of that name, or the loss itself."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in BUILT_IN:
        return BUILT_IN[loss]
    names = ", ".join(repr(name) for name in BUILT_IN)
    raise ValueError(f"loss must be one of {names} or a pyboomer.Loss, got {loss!r}")


def dense_hessians(shape: str, curvature: tuple[Array, ...]) -> Array:
    """The (n, K, K) Hessians that a loss's curvature stands for."""
    if shape == "dense":
        return curvature[0]
    H = curvature[0][:, :, None] * np.eye(curvature[0].shape[1])
    if shape == "diagonal-minus-outer":
        H = H - curvature[1][:, :, None] * curvature[1][:, None, :]
    return H
