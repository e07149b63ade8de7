"""An outcome is the label vector that a model decides on, given scores, and what it is called."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array

if TYPE_CHECKING:
    from pyboomer.classifier import BoomerClassifier

Vector = NDArray[np.uint8]
Decide = Callable[[Array], Vector]  # from (N, K) scores to (N, K) labels

SHOWN_LABELS = 8


def make_decide(model: "BoomerClassifier", decode: Any) -> Decide:
    """How the model turns scores into labels; of several classes, exactly one is relevant."""
    if model._form.classes is None:
        return lambda scores: model._decode(scores, decode)
    if len(model._form.names) == 1:
        return lambda scores: (scores > 0).astype(np.uint8)
    return lambda scores: np.eye(scores.shape[1], dtype=np.uint8)[scores.argmax(axis=1)]


def name_classes(model: "BoomerClassifier") -> tuple[str, ...] | None:
    """What the two outcomes of a single score are called, if it stands for two classes."""
    classes = model._form.classes
    return tuple(map(str, classes)) if classes is not None and len(model._form.names) == 1 else None


def describe_outcome(vector: Sequence[int] | Vector, names: Sequence[str], classes: Sequence[str] | None) -> str:
    """The relevant labels by name, the first few of many; or the class."""
    if classes is not None:
        return classes[int(vector[0])]
    relevant = [name for name, y in zip(names, vector, strict=True) if y]
    hidden = len(relevant) - SHOWN_LABELS
    if hidden > 0:
        return f"{', '.join(relevant[:SHOWN_LABELS])} and {hidden} more"
    return ", ".join(relevant) or "no label"
