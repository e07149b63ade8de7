"""An outcome is the label vector that a model decides on, given scores, and what it is called."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.predicting.decision import Decision

Vector = NDArray[np.uint8]
Decide = Callable[[Array], Vector]  # from (N, K) scores to (N, K) labels

SHOWN_LABELS = 8


def name_classes(decision: Decision) -> tuple[str, ...] | None:
    """What the two outcomes of a single score are called, if it stands for two classes."""
    classes = decision.classes
    return tuple(map(str, classes)) if classes is not None and len(classes) == 2 else None


def describe_outcome(vector: Sequence[int] | Vector, names: Sequence[str], classes: Sequence[str] | None) -> str:
    """The relevant labels by name, the first few of many; or the class."""
    if classes is not None:
        return classes[int(vector[0])]
    relevant = [name for name, y in zip(names, vector, strict=True) if y]
    hidden = len(relevant) - SHOWN_LABELS
    if hidden > 0:
        return f"{', '.join(relevant[:SHOWN_LABELS])} and {hidden} more"
    return ", ".join(relevant) or "no label"
