"""Examples are what rules are learned from: rows of features with labels or targets, and weights.

Weights are given per example, or per example and label. A label of weight 0 is as good as unknown; an example of weight
0, or of which no label is known, is as good as absent and is left out: it counts for nothing, not even in a bootstrap.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight

from pyboomer.arrays import Array, Matrix
from pyboomer.data.alerts import alert
from pyboomer.data.labels import Labels, check_names
from pyboomer.data.targets import Targets
from pyboomer.rules.schema import Categories

LARGEST = 1e100  # sum of weights: squares of it can still be added up


class Examples(NamedTuple):
    """The examples that count."""

    matrix: Matrix  # None if it is elsewhere
    Y: NDArray[Any]  # (N, K): 0 and 1, or targets
    weight: Array  # (N,)
    label_weight: Array | None  # (N, K); None if all labels are known and have weight 1
    merged: int | None = None  # how many examples there are, if each stands for all that have the same labels
    sparse: bool = False  # whether most values of X are 0, if it is elsewhere

    @property
    def size(self) -> int:
        """How many examples there are."""
        return len(self.Y) if self.merged is None else self.merged

    def are_sparse(self, categories: Categories) -> bool:
        """Whether most values of X are 0, however they are stored; a missing one is not, nor is a word."""
        if self.matrix is None:
            return self.sparse
        return 2 * count_nonzero(self.matrix, categories) < math.prod(self.matrix.shape)

    @property
    def signed(self) -> NDArray[Any]:
        """Labels as losses take them, -1 and +1; targets as they are."""
        return np.where(self.Y == 1, np.int8(1), np.int8(-1)) if self.hold_labels else self.Y

    @property
    def hold_labels(self) -> bool:
        """Whether Y holds labels rather than targets."""
        return self.Y.dtype == np.uint8

    def take(self, rows: NDArray[Any]) -> "Examples":
        """Some of the examples."""
        label_weight = None if self.label_weight is None else self.label_weight[rows]
        return Examples(self.matrix[rows], self.Y[rows], self.weight[rows], label_weight)

    def are_complete(self) -> NDArray[np.bool_]:
        """Of which examples all labels are known."""
        if self.label_weight is None:
            return np.ones(len(self.Y), dtype=bool)
        return np.asarray((self.label_weight > 0).all(axis=1))


def read_examples(matrix: Matrix, labels: Labels | Targets, sample_weight: Any) -> Examples:
    """Put features, labels and weights together, and leave out what does not count."""
    Y = labels.values
    if matrix.shape[0] != len(Y):
        raise ValueError(f"X has {matrix.shape[0]} examples, but Y has {len(Y)}")
    weight, label_weight = _read_weight(sample_weight, matrix, labels)
    if labels.known is not None:
        label_weight = labels.known.astype(np.float64) if label_weight is None else labels.known * label_weight
    examples = Examples(matrix, Y, weight, label_weight)
    present = weight > 0
    if label_weight is not None:
        present &= label_weight.any(axis=1)
        if not present.any():
            raise ValueError("Y has no known label at all (of positive weight)")
    return examples if present.all() else examples.take(np.flatnonzero(present))


def count_nonzero(X: Matrix, categories: Categories) -> int:
    """How many values are not 0, however they are stored; of categories, given as codes if X is dense, only 0 is."""
    if not isinstance(X, np.ndarray):
        return int(X.count_nonzero())
    count = np.count_nonzero(X)
    for feature, values in categories.items():
        code = values.index(0) if 0 in values else -1
        count += np.count_nonzero(X[:, feature] != code) - np.count_nonzero(X[:, feature])
    return int(count)


def warn_of_unknown(examples: Examples, names: tuple[str, ...]) -> None:
    """Warn of labels that are unknown for all examples."""
    if examples.label_weight is not None:
        unknown = np.flatnonzero(~examples.label_weight.any(axis=0))
        if len(unknown):
            listed = ", ".join(repr(names[k]) for k in unknown[:5]) + (", ..." if len(unknown) > 5 else "")
            alert(f"no example has a known value for {listed}: the score will be 0")


def _read_weight(sample_weight: Any, matrix: Matrix, labels: Labels | Targets) -> tuple[Array, Array | None]:
    """Weights per example and, if they were given so, per example and label."""
    Y = labels.values
    if isinstance(sample_weight, np.ma.MaskedArray) and np.ma.is_masked(sample_weight):
        n = int(np.argwhere(np.ma.getmaskarray(sample_weight))[0][0])
        raise ValueError(f"sample_weight must not be masked, as that of example {n} is; a weight of 0 leaves it out")
    try:
        if sample_weight is None or np.asarray(sample_weight).ndim < 2:
            weight = _check_sample_weight(sample_weight, matrix, dtype=np.float64, copy=True)
            _check_weight(weight)
            return weight, None
        weight = np.array(sample_weight, dtype=np.float64)
    except ValueError as error:
        if "could not convert" in str(error) or "inhomogeneous" in str(error):
            raise ValueError(f"sample_weight must be numbers, one or a row per example: {error}") from None
        raise
    if hasattr(sample_weight, "columns"):
        check_names(tuple(map(str, sample_weight.columns)), labels.label_format.names, "sample_weight")
    if weight.shape != Y.shape:
        raise ValueError(
            f"sample_weight must have shape ({len(Y)},), a weight per example, or {Y.shape}, one per example and "
            f"label; got {weight.shape}"
        )
    _check_weight(weight)
    return np.ones(len(Y)), weight


def _check_weight(weight: Array) -> None:
    if not np.isfinite(weight).all():
        where = np.argwhere(~np.isfinite(weight))[0]
        raise ValueError(f"sample_weight must be finite, got {weight[tuple(where)]} for example {where[0]}")
    n = int(weight.argmin()) // (weight.size // len(weight))
    if weight.min() < 0:
        raise ValueError(f"sample_weight must not be negative, got {weight.min()} for example {n}")
    if not weight.any():
        raise ValueError("sample_weight must be positive for at least one example")
    if weight.max() > LARGEST / len(weight):
        n = int(weight.argmax()) // (weight.size // len(weight))
        raise ValueError(f"sample_weight is too large to be added up, got {weight.max()} for example {n}")
