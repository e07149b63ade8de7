"""A class weight says how much the examples of a class count: of each label the relevant ones (1) and the others (0).

In a matrix of labels, it multiplies the weight of each label of each example; in one column of classes, that of each
example. This is what scikit-learn means by it. What is unknown stays so.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.data.examples import Examples

ClassWeight = str | Mapping[Any, float] | Sequence[Mapping[Any, float]]


def weigh_classes(examples: Examples, class_weight: ClassWeight | None, label_format: Any) -> Examples:
    """The examples, with weights multiplied by those of their classes."""
    if class_weight is None:
        return examples
    Y = examples.Y
    if label_format.classes is not None:
        if isinstance(class_weight, list | tuple):
            raise ValueError('class_weight must be "balanced" or a dict, as y is one column of classes; got a list')
        numbers = Y[:, 0] if Y.shape[1] == 1 else Y.argmax(axis=1)
        return examples._replace(
            weight=examples.weight * _find_weights(class_weight, numbers, label_format.classes, "y")
        )
    each = class_weight if isinstance(class_weight, list | tuple) else [class_weight] * Y.shape[1]
    if len(each) != Y.shape[1]:
        raise ValueError(f"class_weight must have a dict for each of the {Y.shape[1]} labels, got {len(each)}")
    label_weight = np.ones(Y.shape) if examples.label_weight is None else examples.label_weight.copy()
    for k, weights in enumerate(each):
        known = label_weight[:, k] > 0
        label_weight[known, k] *= _find_weights(weights, Y[known, k], np.arange(2), f"label {label_format.names[k]!r}")
    return examples._replace(label_weight=label_weight)


def _find_weights(weights: Any, numbers: NDArray[Any], classes: NDArray[Any], whose: str) -> Array:
    """The weight of each example, by the number of its class."""
    counts = np.bincount(numbers, minlength=len(classes))
    if isinstance(weights, str):  # balanced: those of each class count as much as those of any other
        present = max(np.count_nonzero(counts), 1)
        return np.asarray((len(numbers) / (present * np.maximum(counts, 1)))[numbers])
    named = {name_class(key): weight for key, weight in weights.items()}
    names = [name_class(value) for value in classes.tolist()]
    for key, name in zip(weights, named, strict=True):
        if name not in names:
            raise ValueError(f"class_weight has the class {key!r}, but {whose} has {', '.join(names)}")
    return np.array([named.get(name, 1.0) for name in names], dtype=np.float64)[numbers]


def name_class(value: Any) -> str:
    """How a class is called in a model file, whose keys are text: 1, 1.0, True and "1" are the same."""
    number = isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating)
    return str(int(value)) if number and float(value).is_integer() else str(value)
