"""A kernel works on the arrays it is given."""

import numpy as np
import pytest
from numba import config
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from pyboomer.compiling.kernel import kernel


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_a_kernel_makes_no_array_of_its_own() -> None:
    @kernel
    def make_array(n: int) -> NDArray[np.float64]:
        return np.zeros(n)

    with pytest.raises(NumbaError, match="zeros"):
        make_array(3)
    assert not make_array.entry.signatures
