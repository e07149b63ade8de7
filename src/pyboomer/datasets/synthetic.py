"""A synthetic data set: points in the unit disc, each label a half-plane, some labels flipped.

These are the data sets of Section 5.1 of the paper, after Dembczyński et al., "On label dependence and loss
minimization in multi-label classification", Machine Learning 88, 2012.
"""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np

from pyboomer.datasets.dataset import Dataset

KINDS = ("marginal-independence", "marginal-dependence", "conditional-dependence")


def make_synthetic(kind: str, n: int = 10000, seed: int = 1, *, m: int = 6, p: float = 0.1) -> Dataset:
    """Generate one of the three synthetic data sets of the paper.

    The point x is uniform in the unit disc, and label k is relevant where a_k . x >= 0, for a direction a_k. With
    probability `p` a label is flipped. The defaults give, bit for bit, the data that the paper used.

    Parameters
    ----------
    kind : {"marginal-independence", "marginal-dependence", "conditional-dependence"}
        - marginal independence: every label has two features, a direction and a noise of its own;
        - marginal dependence: all labels share features and direction, but not the noise;
        - conditional dependence: labels share the features, have their own directions, and are flipped together.
    n : int, default=10000
        The number of examples.
    seed : int, default=1
        The seed of the generator; for marginal independence label k uses seed + k, counted from 0.
    m : int, default=6
        The number of labels.
    p : float, default=0.1
        The probability of a flip, which is also the smallest Hamming loss that can be reached. The smallest subset
        0/1 loss is `p` if labels are flipped together and 1 - (1 - p)^m otherwise.

    Returns
    -------
    Dataset
        With features X0, X1, ... and labels y0, y1, ...

    Examples
    --------
    >>> from pyboomer.datasets import make_synthetic
    >>> make_synthetic("conditional-dependence", n=500)
    <Dataset 'synthetic-conditional-dependence': 500 examples, 2 features, 6 labels>
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
    for name, value, smallest in (("n", n, 1), ("m", m, 1), ("seed", seed, 0)):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < smallest:
            raise ValueError(f"{name} must be an integer of at least {smallest}, got {value!r}")
    if not isinstance(p, Real) or not 0 <= p <= 1:
        raise ValueError(f"p must be in [0, 1], got {p!r}")

    if kind == "marginal-independence":
        parts = [_draw(n, 1, p, seed + k, tau=1.0, together=False) for k in range(m)]
        X, Y = np.hstack([x for x, _ in parts]), np.hstack([y for _, y in parts])
    elif kind == "marginal-dependence":
        X, Y = _draw(n, m, p, seed, tau=0.0, together=False)
    else:
        X, Y = _draw(n, m, p, seed, tau=1.0, together=True)
    return Dataset(
        X=X,
        Y=Y,
        feature_names=tuple(f"X{j}" for j in range(X.shape[1])),
        label_names=tuple(f"y{k}" for k in range(m)),
        name=f"synthetic-{kind}",
    )


def _draw(n: int, m: int, p: float, seed: int, *, tau: float, together: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return points and labels; `tau` spreads the directions, `together` flips all labels of an example at once.

    The legacy generator and the order of its draws are what the published data was made with.
    """
    from scipy.stats import bernoulli  # slow to import

    random = np.random.RandomState(seed)
    radius = np.sqrt(random.uniform(0, 1, n))
    angle = random.uniform(0, 2 * np.pi, n)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    spread = random.uniform(0, 1, (m, 2))
    directions = np.column_stack([1 - tau * spread[:, 0], tau * spread[:, 1]])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    flips = np.asarray(bernoulli.rvs(p, size=n if together else n * m, random_state=random), dtype=bool)
    return X, ((X @ directions.T >= 0) ^ flips.reshape(n, -1)).astype(np.int8)
