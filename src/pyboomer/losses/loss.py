"""A loss says how bad a vector of scores is for a vector of labels, and how that changes with the scores.

Losses here take `Y`, an (n, K) array of -1 and +1 (of targets, in regression), and `F`, an (n, K) array of scores, one
row per example. They are the readable definitions: the reference uses them as they are, and the compiled twins of the
built-in ones (`twins`) are tested against them.

Labels may have weights, an (n, K) array; an unknown label has weight 0, and its Y is 0. A decomposable loss is then the
weighted sum of its terms, sum_k w_k l(y_k, f_k); the example-wise logistic loss is log(1 + sum_k w_k exp(-y_k f_k)).

The Hessian of a loss has one of three shapes, and `derivatives` returns accordingly

- ``"diagonal"``: ``(g, h)`` with H_n = diag(h_n): the loss decomposes over the labels, or it is taken for good enough;
- ``"diagonal-minus-outer"``: ``(g, a, b)`` with H_n = diag(a_n) - b_n b_n^T: almost as fast;
- ``"dense"``: ``(g, H)`` with H of shape (n, K, K): any other twice differentiable loss.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyboomer.arrays import Array, Vectors

Weight = Array | float

SHAPES = ("diagonal", "diagonal-minus-outer", "dense")


def _identity(F: Array) -> Array:
    return F


@dataclass(frozen=True, eq=False)
class KnownVectors:
    """The known label vectors, and what each scores before its labels do, for a loss that is about them."""

    vectors: Vectors  # (V, K)
    bias: Array  # (V,)


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
        ``value(Y, F)`` returns the loss of each row, shape (n,). It is reported, and it decodes a loss whose Hessian is
        not diagonal.
    derivatives : callable
        ``derivatives(Y, F)`` returns ``(g, h)``, ``(g, a, b)`` or ``(g, H)``. It is called once per rule with the rows
        that the rule covers. It may be plain NumPy or compiled by Numba.
    log_odds : callable, optional
        ``log_odds(F)`` turns scores into log-odds of the labels, for probabilities. By default, scores are log-odds, as
        with the logistic losses.
    weighted : bool, default=False
        Whether `value` and `derivatives` take a third argument, the (n, K) weights of the labels. Only a loss that does
        not decompose needs it, and only to learn from unknown labels or from weights per label.
    prepare : callable, optional
        ``prepare(vectors, counts)`` makes the loss to minimise from the known label vectors, shape (V, K), and how
        often each occurs, shape (V,). Only a loss about label vectors needs it, such as
        `pyboomer.losses.joint_logistic`.
    known : KnownVectors, optional
        Set by `prepare` if scores are to be read as follows: exp(s_v), with s_v the sum of the scores of the labels of
        a known vector v and of its bias, is proportional to the vector's probability.

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
    prepare: Callable[[Vectors, Array], "Loss"] | None = None
    known: KnownVectors | None = None

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise ValueError(f"shape of loss {self.name!r} must be one of {', '.join(SHAPES)}, got {self.shape!r}")
        for field in ("value", "derivatives", "log_odds"):
            if not callable(getattr(self, field)):
                raise TypeError(f"{field} of loss {self.name!r} must be callable, got {getattr(self, field)!r}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"  # functions and arrays say nothing to people

    @property
    def decomposable(self) -> bool:
        """Whether the loss is a sum over the labels, so that each can be decided on its own."""
        return self.shape == "diagonal" and self.prepare is None

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


def dense_hessians(shape: str, curvature: tuple[Array, ...]) -> Array:
    """Return the (n, K, K) Hessians that the curvature of a loss stands for.

    Examples
    --------
    >>> import numpy as np
    >>> from pyboomer.losses import dense_hessians
    >>> a, b = np.array([[1.0, 2.0]]), np.array([[0.5, 1.0]])
    >>> dense_hessians("diagonal-minus-outer", (a, b))
    array([[[ 0.75, -0.5 ],
            [-0.5 ,  1.  ]]])
    """
    if shape == "dense":
        return curvature[0]
    H = curvature[0][:, :, None] * np.eye(curvature[0].shape[1])
    if shape == "diagonal-minus-outer":
        H = H - curvature[1][:, :, None] * curvature[1][:, None, :]
    return H
