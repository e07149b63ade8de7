"""The twins there are: which built-in losses are compiled."""

from pyboomer.losses.logistic import example_wise_logistic, label_wise_logistic
from pyboomer.losses.logistic_twin import EXAMPLE_WISE, LABEL_WISE
from pyboomer.losses.loss import Loss
from pyboomer.losses.squared import squared_error
from pyboomer.losses.squared_twin import SQUARED
from pyboomer.losses.twin import Twin

TWINS: dict[Loss, Twin] = {
    label_wise_logistic: LABEL_WISE,
    example_wise_logistic: EXAMPLE_WISE,
    squared_error: SQUARED,
}
