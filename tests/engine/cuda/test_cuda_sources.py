"""Kernels are compiled here whether there is a GPU or not; the structs are those that the host packs."""

import re

import numpy as np
import pytest
from nvrtc import compile_program, find_nvrtc

from pyboomer.compiling.device import OPTIONS, find_fields, list_kernels, pack_fit
from pyboomer.engine.cuda.sources import read_program
from pyboomer.predicting import device_scores

OLDEST = "--gpu-architecture=compute_75"  # what CUDA 13 still compiles for


@pytest.mark.skipif(find_nvrtc() is None, reason="NVRTC is not installed: pip install nvidia-cuda-nvrtc")
@pytest.mark.parametrize("program", [read_program(), device_scores.read_program()], ids=["learning", "scores"])
def test_every_kernel_is_compiled_without_a_warning(program: str) -> None:
    ptx, log = compile_program(program, (*OPTIONS, OLDEST))
    assert log.strip("\0\n ") == ""
    assert {name.decode() for name in re.findall(rb"\.entry (\w+)\(", ptx)} == set(list_kernels(program))


def test_a_struct_has_a_place_for_every_field() -> None:
    fields = dict(find_fields(read_program(), "Fit"))
    assert fields["codes"] == fields["N"] == "i8"
    assert fields["l2"] == "f8"
    packed = pack_fit(read_program(), {name: i for i, name in enumerate(fields)})
    assert len(packed) == 8 * len(fields)
    assert packed.view(np.int64)[0] == 0
    assert packed.view(np.float64)[list(fields).index("l2")] == list(fields).index("l2")
    with pytest.raises(AssertionError, match="codes"):
        pack_fit(read_program(), {name: 0 for name in fields if name != "codes"})


@pytest.mark.parametrize("struct", ["State", "Round"])
def test_a_struct_begins_with_its_fields_of_eight_bytes(struct: str) -> None:
    kinds = [kind for _, kind in find_fields(read_program(), struct)]
    n_wide = len(kinds) - kinds.count("i4")
    assert kinds == [kind for kind in kinds[:n_wide] if kind != "i4"] + ["i4"] * kinds.count("i4")
    assert kinds.count("i4") % 2 == 0  # so that the compiler leaves no gap behind them
