"""A kernel works on the arrays it is given."""

from pathlib import Path

import numpy as np
import pytest
from numba import config
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from pyboomer.compiling import store
from pyboomer.compiling.kernel import inner, kernel

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")


def test_a_kernel_makes_no_array_of_its_own() -> None:
    @kernel
    def make_array(n: int) -> NDArray[np.float64]:
        return np.zeros(n)

    with pytest.raises(NumbaError, match="zeros"):
        make_array(3)
    assert not make_array.entry.signatures


def test_a_function_is_compiled_once_for_numbers_that_callers_name_and_those_they_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "list_folders", lambda: [tmp_path])  # where an earlier run has left nothing

    @inner
    def add(x: int, y: int) -> int:
        return x + y

    @kernel
    def call(x: int) -> int:
        return add(x, 1) + add(1, x) + add(x, x)

    assert call(2) == 10
    assert len(add.compiled.nopython_signatures) == 1
