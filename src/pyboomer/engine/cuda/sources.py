"""Sources are the CUDA files of the kernels, put together to one program."""

from functools import cache

from pyboomer.compiling.device import read_files

PARTS = ("common.cuh", "sampling.cu", "narrowing.cu", "bins.cu", "rating.cu", "heads.cu", "update.cu")


@cache
def read_program() -> str:
    """The text of all files, one behind another."""
    return read_files(__package__, *PARTS)
