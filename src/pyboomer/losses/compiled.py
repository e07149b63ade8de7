"""The twins there are: which built-in losses are compiled.

Which one it is, is a number and not a kind: else the loop over rules would have to be compiled anew for each loss. The
joint logistic loss is a kind of its own: it knows more, and nobody else has to compile it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array, Rows, Signs
from pyboomer.compiling.kernel import kernel
from pyboomer.compiling.kinds import by_kind
from pyboomer.losses.compiled_joint import list_known, make_scratch, sum_joint, update_joint
from pyboomer.losses.compiled_logistic import (
    sum_example_wise,
    sum_label_wise,
    update_example_wise,
    update_label_wise,
)
from pyboomer.losses.compiled_squared import negate_targets, sum_squares, update_squared
from pyboomer.losses.joint import Preparation, refuse_weights
from pyboomer.losses.logistic import example_wise_logistic, label_wise_logistic
from pyboomer.losses.loss import Loss
from pyboomer.losses.squared import squared_error
from pyboomer.losses.truth import JointGroup, JointTruth, Truth

LABEL_WISE, EXAMPLE_WISE, SQUARED, NOT_COMPILED = range(4)
COMPILED: dict[Loss, int] = {
    label_wise_logistic: LABEL_WISE,
    example_wise_logistic: EXAMPLE_WISE,
    squared_error: SQUARED,
}
GRADIENT_IS_B = frozenset({example_wise_logistic})  # H = diag(a) - g g^T: b needs no section of its own
QUADRATIC = frozenset({squared_error})  # its second derivative is the same everywhere
# the scores before the first rule, if they are not 0
BEGIN: dict[Loss, Callable[[NDArray[Any]], Array]] = {squared_error: negate_targets}


def tell_truth(loss: Loss, diagonal: bool, signs: Signs, weight: Array) -> Truth | JointTruth:
    """What compiled code is told, if the loss has a twin."""
    if not isinstance(loss.prepare, Preparation):
        return Truth(COMPILED.get(loss, NOT_COMPILED), diagonal, signs, weight)
    if loss.known is None:
        return Truth(LABEL_WISE, diagonal, signs, weight)
    refuse_weights(weight)
    known = list_known(loss.known, signs)
    return JointTruth(diagonal, signs, weight, known, make_scratch(known))


@by_kind
def update(truth: Any, scores: Array, rows: Rows, statistics: Array, first: int, last: int) -> None:
    """Compute the statistics of some examples anew (Alg. 1, lines 1 and 4).

    Labels `first` to `last` - 1 are the ones whose scores have changed. Those of a loss without a twin are left as they
    are: they are computed between two rules.
    """


@update.of(Truth, compile=kernel)
def _update(truth: Truth, scores: Array, rows: Rows, statistics: Array, first: int, last: int) -> None:
    if truth.loss == LABEL_WISE:
        update_label_wise(truth, scores, rows, statistics, first, last)
    elif truth.loss == EXAMPLE_WISE:
        update_example_wise(truth, scores, rows, statistics)
    elif truth.loss == SQUARED:
        update_squared(truth, scores, rows, statistics, first, last)


@update.of(JointTruth, JointGroup, compile=kernel)
def _update_joint(truth: Any, scores: Array, rows: Rows, statistics: Array, first: int, last: int) -> None:
    update_joint(truth, scores, rows, statistics)


@by_kind
def sum_values(truth: Any, scores: Array, weights: Array) -> float:
    """The weighted sum of the loss over all examples; labels have no weights of their own."""


@sum_values.of(Truth, compile=kernel)
def _sum_values(truth: Truth, scores: Array, weights: Array) -> float:
    if truth.loss == LABEL_WISE:
        return sum_label_wise(truth, scores, weights)
    if truth.loss == EXAMPLE_WISE:
        return sum_example_wise(truth, scores, weights)
    if truth.loss == SQUARED:
        return sum_squares(truth, scores, weights)
    return np.nan


@sum_values.of(JointTruth, compile=kernel)
def _sum_joint(truth: JointTruth, scores: Array, weights: Array) -> float:
    return sum_joint(truth, scores, weights)
