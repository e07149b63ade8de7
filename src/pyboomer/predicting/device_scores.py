"""Scores on a GPU: the same sums as on the host, in the same order, so that no bit of them differs."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.columns.device import DeviceMatrix
from pyboomer.compiling.device import Device, Launch, find_device, pack_fit, read_files

PART = 2**28  # bytes of examples that are on the device at once
TILE = 32  # labels whose scores a block adds up
WARPS = 4  # of a block


@cache
def read_program() -> str:
    """The text of the kernels: read when a GPU is used, not whenever the package is imported."""
    return read_files(__package__, "scores.cu")


def add_scores_on_device(
    rules: Any, used: NDArray[np.int64], X: Any, scores: Array, device: Device | None = None
) -> None:
    """`scores.add_scores` for the rules in flat arrays, whose features are those `used`; X is dense."""
    device = find_device(read_program()) if device is None else device
    n, n_features = X.shape
    flat = {
        "used": device.put(used.astype(np.int32)),
        "offsets": device.put(rules.condition_offsets),
        "features": device.put(rules.condition_features),
        "operators": device.put(rules.condition_operators),
        "values": device.put(rules.condition_values),
        "head_offsets": device.put(rules.head_offsets),
        "head_labels": device.put(rules.head_labels),
        "head_scores": device.put(rules.head_scores),
    }
    n_labels = scores.shape[1]
    tile = min(TILE, n_labels)
    size = max(1024, PART // (8 * (n_features + len(used) + n_labels)))
    for start in range(0, n, size):
        rows = X[start : start + size]
        rows = rows.array if isinstance(rows, DeviceMatrix) else rows
        count = len(rows)
        arrays = flat | {
            "X": device.put(rows),
            "columns": device.zeros((max(len(used), 1), count), np.float64),
            "scores": device.put(scores[start : start + size]),
        }
        sizes = {
            "n": count,
            "L": n_features,
            "U": len(used),
            "T": len(rules.condition_offsets) - 1,
            "K": n_labels,
            "tile": tile,
            "bytes": arrays["X"].dtype.itemsize,
        }
        fit = device.put(pack_fit(read_program(), sizes | {name: device.address(a) for name, a in arrays.items()}))
        if len(used):
            blocks = min(-(-count // 256), 8 * device.n_processors)
            device.launch(Launch("take_columns", (blocks, len(used)), 256), fit)
        blocks = min(-(-count // (32 * WARPS)), 8 * device.n_processors)
        shared = 8 * WARPS * 32 * tile
        device.launch(Launch("add_heads", (blocks, -(-n_labels // tile)), 32 * WARPS, shared), fit)
        scores[start : start + size] = device.read(arrays["scores"])
