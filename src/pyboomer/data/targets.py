"""Targets are the numbers that a regressor learns to predict, one or several per example, and the format they came in.

In a matrix of targets, a missing value (NaN, or what is masked) is a target that is not known.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.data.labels import check_names, default_names, narrow_objects
from pyboomer.data.soundness import unmask

LARGEST = 1e100  # in size: squares of it can still be added up


@dataclass(frozen=True)
class TargetFormat:
    """The format of the targets: their names, and whether they were one column without a second dimension."""

    names: tuple[str, ...]
    flat: bool

    def read(self, y: Any) -> "Targets":
        """Read further targets, which must be of this format."""
        return read_targets(y, self)

    def restore(self, predictions: Array) -> Array:
        """Give an (N, K) matrix of predictions the format of the training targets."""
        return predictions[:, 0] if self.flat else predictions


class Targets(NamedTuple):
    """Targets as they are learned from, and the format they came in."""

    values: Array  # (N, K); 0 where unknown
    known: NDArray[np.bool_] | None  # (N, K), or None if all are
    label_format: TargetFormat


def read_targets(y: Any, label_format: TargetFormat | None = None) -> Targets:
    """Turn what users pass as y into a matrix of numbers and its format, or say what is wrong with it.

    With `label_format`, that of the targets that a model was learned from, there must be as many, of the same names.
    """
    names = tuple(str(name) for name in y.columns) if hasattr(y, "columns") else None
    try:
        values = narrow_objects(np.asarray(unmask(y)))
    except ValueError:  # NumPy's word for a ragged list
        raise ValueError("y must be one column of targets or a matrix of them, got rows that differ") from None
    if values.dtype.kind not in "buif" and values.size:
        raise ValueError(f"y must hold numbers only, got {values.ravel()[0]!r:.50} among {values.dtype} values")
    values = values.astype(np.float64)
    if values.ndim not in (1, 2):
        raise ValueError(f"y must be one column of targets or a matrix of them, got {values.ndim} dimensions")
    flat = values.ndim == 1
    values = values[:, None] if flat else values
    if values.shape[0] == 0 or values.shape[1] == 0:
        raise ValueError("y has no examples" if values.shape[0] == 0 else "y has no targets")
    names = names or default_names(values.shape[1])
    if label_format is not None:
        check_names(names, label_format.names)
    known = ~np.isnan(values)
    if flat and not known.all():
        raise ValueError("Input y contains NaN; only a matrix of several targets may have unknown ones")
    for k in np.flatnonzero(np.isinf(values).any(axis=0)):
        raise ValueError(f"Input y contains infinity in column {k} ({names[k]!r})")
    if np.nanmax(np.abs(values), initial=0.0) > LARGEST:
        raise ValueError(f"y must not be larger than {LARGEST:g}, got {np.nanmax(np.abs(values))}")
    if len(set(names)) < len(names):
        raise ValueError(f"targets must have distinct names, got {max(names, key=names.count)!r} twice")
    return Targets(np.where(known, values, 0.0), None if known.all() else known, TargetFormat(names, flat))
