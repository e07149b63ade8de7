"""The catalog lists the losses that have a name."""

from typing import Any

from pyboomer.losses.joint import joint_logistic
from pyboomer.losses.logistic import example_wise_logistic, label_wise_logistic
from pyboomer.losses.loss import Loss
from pyboomer.losses.robust import absolute_error, huber
from pyboomer.losses.squared import (
    example_wise_squared_error,
    example_wise_squared_hinge,
    label_wise_squared_error,
    label_wise_squared_hinge,
    squared_error,
)

FOR_LABELS = {
    loss.name: loss
    for loss in (
        label_wise_logistic,
        example_wise_logistic,
        joint_logistic(),
        label_wise_squared_error,
        example_wise_squared_error,
        label_wise_squared_hinge,
        example_wise_squared_hinge,
    )
}
FOR_NUMBERS = {loss.name: loss for loss in (squared_error, absolute_error, huber)}
BUILT_IN = {**FOR_LABELS, **FOR_NUMBERS}
# the power of the unit of the targets in which a loss grows with it, if it does: these can be learned in any unit
DEGREE = {squared_error: 2, absolute_error: 1}


def find_loss(loss: Any) -> Loss:
    """Return the built-in loss of that name; a loss is returned as it is.

    Examples
    --------
    >>> from pyboomer.losses import find_loss
    >>> loss = find_loss("label-wise-logistic")
    >>> loss.decomposable
    True
    >>> find_loss("example-wise-logistic").decomposable
    False
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in BUILT_IN:
        return BUILT_IN[loss]
    names = ", ".join(repr(name) for name in BUILT_IN)
    raise ValueError(f"loss must be one of {names} or a pyboomer.Loss, got {loss!r}")
