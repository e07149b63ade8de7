"""Losses: what is minimised; each has its readable definition and, if it is built in, a compiled twin beside it."""

from pyboomer.losses.catalog import BUILT_IN, FOR_LABELS, FOR_NUMBERS, find_loss
from pyboomer.losses.joint import joint_logistic
from pyboomer.losses.logistic import example_wise_logistic, label_wise_logistic
from pyboomer.losses.loss import Loss, dense_hessians
from pyboomer.losses.robust import absolute_error, make_huber
from pyboomer.losses.squared import squared_error

__all__ = [
    "BUILT_IN",
    "FOR_LABELS",
    "FOR_NUMBERS",
    "Loss",
    "absolute_error",
    "dense_hessians",
    "example_wise_logistic",
    "find_loss",
    "joint_logistic",
    "label_wise_logistic",
    "make_huber",
    "squared_error",
]
