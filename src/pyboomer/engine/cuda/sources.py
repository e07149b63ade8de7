"""Sources are the CUDA files of the kernels: one program, and the structs that it shares with the host."""

import re
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

PARTS = ("common.cuh", "sampling.cu", "narrowing.cu", "bins.cu", "rating.cu", "heads.cu", "update.cu")
OPTIONS = ("--std=c++17",)


@cache
def read_program() -> str:
    """The text of all files, one behind another."""
    folder = files(__package__) / "kernels"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in PARTS)


@cache
def list_kernels() -> tuple[str, ...]:
    """The names of all kernels."""
    return tuple(re.findall(r"^KERNEL (\w+)\(", read_program(), flags=re.MULTILINE))


@cache
def find_fields(struct: str) -> tuple[tuple[str, str], ...]:
    """The fields of a struct, in their order: name and kind, "f8" for a double, else "i8", or "i4" for an int."""
    found = re.search(rf"^struct {struct} {{\n(.*?)^}};", read_program(), flags=re.MULTILINE | re.DOTALL)
    assert found is not None
    fields = []
    for line in found[1].splitlines():
        kind, name = re.match(r"\s*(.*?)(\w+);", line).groups()  # type: ignore[union-attr]
        fields.append((name, "f8" if kind.strip() == "double" else "i4" if kind.strip() == "int" else "i8"))
    return tuple(fields)


def pack_struct(struct: str, values: dict[str, Any]) -> np.ndarray:
    """A struct as bytes; every field needs a value."""
    packed = np.zeros(1, dtype=list(find_fields(struct)))
    assert set(values) == set(packed.dtype.names or ()), set(values) ^ set(packed.dtype.names or ())
    for name, value in values.items():
        packed[name] = value
    return packed.view(np.uint8)
