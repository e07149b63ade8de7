"""A pack is an array of numbers as text, without loss and as short as may be: a page has many of them."""

import base64
from typing import Any

import numpy as np

TYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8")  # the first that holds all numbers exactly is taken


def pack(numbers: Any) -> dict[str, str]:
    """Numbers as text: the bytes of the smallest type that holds all of them exactly, in base 64."""
    values = np.asarray(numbers)
    for code in TYPES:
        with np.errstate(invalid="ignore", over="ignore"):
            packed = values.astype(f"<{code}")
            exact = np.array_equal(packed.astype(np.float64), values, equal_nan=values.dtype.kind == "f")
        if exact:
            break
    return {"type": code, "data": base64.b64encode(packed.tobytes()).decode("ascii")}
