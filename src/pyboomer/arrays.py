"""Arrays that travel between rooms: the few kinds there are, each with the reason for its dtype; and their gaps."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]  # scores, statistics, weights, thresholds: added and compared in double precision
Rows = NDArray[np.uint32]  # numbers of examples: half the memory of int64, and no test for negative ones
Signs = NDArray[np.int8]  # labels as losses take them: -1 and +1, 0 for an unknown one
Vectors = NDArray[np.uint8]  # label vectors as people read them: 0 and 1
Matrix = Any  # X: a dense array or one of scipy's sparse matrices, which have no types to name


def is_missing(value: Any) -> bool:
    """Tell NaN, None and pandas' NA: all that is not equal to itself, and None."""
    same = value == value
    return value is None or not isinstance(same, bool | np.bool_) or not same
