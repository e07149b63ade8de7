"""A stratified choice of examples keeps the share of each label: of those held out, and of those sampled for a rule.

With several labels no split can be exact. Iterative stratification (Sechidis et al., "On the Stratification of
Multi-label Data", 2011) deals out the examples of the rarest label first, since those of frequent labels can still
restore the balance later. It is written out here because the libraries that have it are no longer maintained.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.engine.sampling import Strata

Rows = NDArray[np.int64]


def hold_out(Y: NDArray[np.uint8], fraction: float, seed: int) -> tuple[Rows, Rows]:
    """The examples to learn from and those held out, both ascending; of either at least one."""
    n = len(Y)
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    shares = np.array([1 - fraction, fraction])
    sizes = np.clip(round(n * fraction), 1, n - 1)
    places = np.array([n - sizes, sizes])  # how many examples each side still takes
    labels = Y[order].astype(bool)
    left = labels.sum(axis=0)  # per label, examples not dealt out yet
    wanted = shares[:, None] * left  # per side and label
    held_out = np.zeros(n, dtype=bool)
    waiting = np.ones(n, dtype=bool)
    while left.any():
        rarest = np.where(left > 0, left, n + 1).argmin()
        for i in np.flatnonzero(waiting & labels[:, rarest]):
            side = _choose_side(wanted[:, rarest], places)
            held_out[i] = side == 1
            wanted[side] -= labels[i]
            places[side] -= 1
            left -= labels[i]
            waiting[i] = False
    rest = np.flatnonzero(waiting)  # without labels: they fill the places that remain
    held_out[rest[: max(0, places[1])]] = True
    return np.sort(order[~held_out]), np.sort(order[held_out])


def group_examples(Y: NDArray[Any], by: str) -> Strata:
    """Groups of examples to sample from: by "label-wise" the rarest relevant label, by "example-wise" the label vector.

    Otherwise all examples are one group.
    """
    n = len(Y)
    group = np.zeros(n, dtype=np.int64)
    if by == "example-wise":
        group = np.unique(Y, axis=0, return_inverse=True)[1].ravel()
    elif by == "label-wise":
        rarest_first = np.argsort(Y.sum(axis=0), kind="stable")
        relevant = np.hstack([Y[:, rarest_first], np.ones((n, 1), dtype=Y.dtype)])  # the last group: no label at all
        group = relevant.argmax(axis=1)
    order = np.argsort(group, kind="stable").astype(np.uint32)
    return Strata(order, np.append(np.flatnonzero(np.diff(group[order])) + 1, n))


def _choose_side(wanted: NDArray[np.float64], places: NDArray[np.int64]) -> int:
    """The side that wants the label most, of equals the one with more places; a full side takes no more."""
    if places.min() <= 0:
        return int(places.argmax())
    return int(wanted[1] > wanted[0] or (wanted[1] == wanted[0] and places[1] > places[0]))
