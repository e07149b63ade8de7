"""The joint logistic loss is about whole label vectors: how probable an example's own is among those that are known.

The scores of its labels give every known vector v, of zeros and ones, a score, and these the vectors' probabilities:

    s_v = sum_k v_k f_k + b_v,   b_v = alpha log(n_v / N),   P_v = exp(s_v) / sum_u exp(s_u)

where v occurs n_v times in N examples. The loss is -log P_y. With p_k = sum_v P_v v_k, the probability of a label, its
gradient is p - y, for y of zeros and ones, and its Hessian the covariance of v, of which the diagonal p_k (1 - p_k) is
taken. If all 2^K vectors are known, and b = 0, this is the label-wise logistic loss; so it is before any are known.

Of an example whose labels are not all known, or whose vector is not a known one, the loss is minus the logarithm of the
probability of the vectors nearest to it: those that differ in fewest of its known labels. The gradient is p - q, where
q has the probabilities of the labels given that one of these vectors is right. The curvature is what it would be if it
was known which: that of the loss is smaller, and may be negative.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from numbers import Real

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from pyboomer.arrays import Array, Vectors
from pyboomer.losses.logistic import label_wise_logistic
from pyboomer.losses.loss import KnownVectors, Loss, Weight
from pyboomer.rules.precision import CERTAIN

NAME = "joint-logistic"
ALPHA = 0.5  # between 0, all known vectors alike, and 1: the safest on benchmark data
RAREST = 1e-200  # what is rarer, as weights may be of any size, counts as no rarer
SAFE = 600.0  # the exponential of a score of this size is well within what a float64 can hold
LEAST = 1e-300  # a probability that has a logarithm
BLOCK_NUMBERS = 2**20  # numbers in a temporary array: 8 MB


def joint_logistic(alpha: float = ALPHA) -> Loss:
    """Make a joint logistic loss, to pass as the parameter `loss`.

    Parameters
    ----------
    alpha : float, default=0.5
        How much the frequency of a label vector counts, beside its labels: from 0 to 1.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.losses import joint_logistic
    >>> clf = BoomerClassifier(loss=joint_logistic(alpha=1.0))
    >>> clf.loss.name
    'joint-logistic(alpha=1)'
    """
    if not isinstance(alpha, Real) or isinstance(alpha, bool) or not 0 <= alpha <= 1:
        raise ValueError(f"alpha must be a number from 0 to 1, got {alpha!r}")
    return Preparation(float(alpha))(np.empty((0, 0), dtype=np.uint8), np.empty(0))


@dataclass(frozen=True)
class Preparation:
    """Makes the loss, given the known label vectors and how often each occurs."""

    alpha: float

    def __call__(self, vectors: Vectors, counts: Array) -> Loss:
        name = NAME if self.alpha == ALPHA else f"{NAME}(alpha={self.alpha:g})"
        if len(vectors) == 0:
            value, derivatives = label_wise_logistic.value, label_wise_logistic.derivatives
            return Loss(name, "diagonal", value, derivatives, weighted=True, prepare=self)
        known = KnownVectors(vectors, self.alpha * np.log(np.maximum(counts / counts.sum(), RAREST)))
        return Loss(
            name,
            "diagonal",
            value=partial(_value, known),
            derivatives=partial(_derivatives, known),
            log_odds=partial(_log_odds, known),
            weighted=True,
            prepare=self,
            known=known,
        )


def _value(known: KnownVectors, Y: Array, F: Array, weight: Weight = 1.0) -> Array:
    Y, result = mask_labels(Y, weight), np.empty(len(F))
    for rows in split_rows(len(F), known):
        s = _score_vectors(known, F[rows], find_limit(known))
        result[rows] = logsumexp(s, axis=1) - logsumexp(np.where(find_nearest(known, Y[rows]), s, -np.inf), axis=1)
    return result


def _derivatives(known: KnownVectors, Y: Array, F: Array, weight: Weight = 1.0) -> tuple[Array, Array]:
    Y, g, h = mask_labels(Y, weight), np.empty(F.shape), np.empty(F.shape)
    for rows in split_rows(len(F), known):
        s = _score_vectors(known, F[rows], find_limit(known))
        p = softmax(s, axis=1) @ known.vectors
        q = softmax(np.where(find_nearest(known, Y[rows]), s, -np.inf), axis=1) @ known.vectors
        g[rows], h[rows] = p - q, np.maximum(p * (1 - p), 0.0)  # rounding may lead beyond 1
    return g, h


def _log_odds(known: KnownVectors, F: Array) -> Array:
    """The log-odds of the labels' probabilities; a label that all known vectors have, or none, is all but certain."""
    result = np.empty(F.shape)
    for rows in split_rows(len(F), known):
        P = softmax(_score_vectors(known, F[rows], CERTAIN), axis=1)
        for_it, against = P @ known.vectors, P @ (1.0 - known.vectors)
        result[rows] = np.log(np.maximum(for_it, LEAST)) - np.log(np.maximum(against, LEAST))
    return result


def _score_vectors(known: KnownVectors, F: Array, limit: float) -> Array:
    return np.clip(F, -limit, limit) @ known.vectors.T.astype(np.float64) + known.bias


def find_limit(known: KnownVectors) -> float:
    """Where scores of labels are cut off, so that vectors have scores of which no exponential is too large or small.

    The labels of the largest vector share what the bias leaves of 600: there, a probability is as good as 0 or 1.
    """
    return (SAFE - float(np.abs(known.bias).max())) / max(1, int(known.vectors.sum(axis=1).max()))


def find_nearest(known: KnownVectors, Y: Array) -> NDArray[np.bool_]:
    """Which known vectors, shape (n, V), differ in fewest labels: in as many as have the largest sum of signs."""
    agreement = Y @ known.vectors.T.astype(np.float64)
    return np.asarray(agreement == agreement.max(axis=1, keepdims=True))


def mask_labels(Y: Array, weight: Weight) -> Array:
    """Labels with 0 for unknown ones, those of weight 0."""
    if isinstance(weight, float):
        return Y
    refuse_weights(weight)
    return np.where(weight > 0, Y, 0.0)


def refuse_weights(label_weight: Array) -> None:
    """Refuse weights of labels that do more than leave some out: a label vector has one probability."""
    if ((label_weight != 0) & (label_weight != 1)).any():
        raise ValueError(
            f"loss {NAME!r} is about whole label vectors and cannot weigh their labels, only leave some out (weights 0 "
            "and 1): give weights per example, of shape (N,), or choose another loss"
        )


def split_rows(n: int, known: KnownVectors) -> Iterator[slice]:
    """Blocks of examples: what there is of them for each known vector takes little memory."""
    size = max(1, BLOCK_NUMBERS // len(known.bias))
    return (slice(start, start + size) for start in range(0, n, size))
