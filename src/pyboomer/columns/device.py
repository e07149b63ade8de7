"""A device matrix is an X in the memory of a GPU, of CuPy, PyTorch or whoever speaks DLPack: it is learned from there.

What goes to the host is a sample of each feature, which bins are found from, and what rules are made of.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.columns.binned import LARGEST, MISSING, BinnedColumns, Bins, find_edges, list_sampled
from pyboomer.compiling.device import import_cupy

CUDA = 2  # what DLPack calls a CUDA device


class DeviceMatrix:
    """The features of examples, (N, L) numbers; rows can be taken, as of an array."""

    def __init__(self, array: Any) -> None:
        self.array = array  # of CuPy
        self.shape, self.ndim, self.dtype, self.nbytes = array.shape, array.ndim, array.dtype, array.nbytes

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: Any) -> "DeviceMatrix":
        rows = rows if isinstance(rows, slice) else import_cupy().asarray(rows)
        return DeviceMatrix(self.array[rows])

    def count_nonzero(self) -> int:
        """How many values are not 0."""
        return int(import_cupy().count_nonzero(self.array))

    def find_infinite(self) -> int | None:
        """The first column that contains infinity, if there is one."""
        cupy = import_cupy()
        bad = cupy.asnumpy(cupy.isinf(self.array).any(axis=0))
        return int(bad.argmax()) if bad.any() else None


def is_on_device(data: Any) -> bool:
    """Whether some data are in the memory of a GPU."""
    if hasattr(data, "__cuda_array_interface__"):
        return True
    asked = getattr(data, "__dlpack_device__", None)
    return asked is not None and not isinstance(data, np.ndarray) and int(asked()[0]) == CUDA


def take_from_device(data: Any) -> Any:
    """Some data of a GPU as an array of CuPy, without a copy."""
    cupy = import_cupy()
    return cupy.asarray(data) if hasattr(data, "__cuda_array_interface__") else cupy.from_dlpack(data)


def copy_to_host(data: Any) -> Any:
    """Some data of a GPU as an array of NumPy; others stay what they are."""
    return import_cupy().asnumpy(take_from_device(data)) if is_on_device(data) else data


def read_device_matrix(X: Any) -> DeviceMatrix:
    """X as rows of numbers."""
    cupy = import_cupy()
    array = take_from_device(X)
    if array.ndim != 2:
        raise ValueError(f"Expected 2D array, got {array.ndim}D array instead")
    if 0 in array.shape:
        raise ValueError(f"Found array with shape={array.shape} while at least a sample and a feature are required.")
    kept = array.dtype in (np.float32, np.float64)
    return DeviceMatrix(cupy.ascontiguousarray(array if kept else array.astype(np.float64)))


def bin_device_matrix(X: DeviceMatrix, max_bins: int) -> Bins:
    """`binned.bin_columns` on the device: the same bins."""
    cupy = import_cupy()
    n, n_features = X.shape
    codes, edges = cupy.empty((n_features, n), dtype=np.uint8), []
    sampled = cupy.asarray(list_sampled(0, n, n))
    for f in range(n_features):
        column = X.array[:, f].astype(np.float64)
        missing = cupy.isnan(column)
        own = find_edges(cupy.asnumpy(column[sampled]), max_bins)
        codes[f] = cupy.where(missing, MISSING, cupy.searchsorted(cupy.asarray(own), column, side="left"))
        edges.append(own)
    assert max_bins <= LARGEST
    return Bins(BinnedColumns(codes, np.zeros(n_features, dtype=np.int8)), tuple(edges))


def find_device_gaps(X: DeviceMatrix, features: NDArray[Any], thresholds: Array) -> tuple[Array, Array]:
    """For each threshold, the largest value of its feature up to it and the smallest above it; infinite if none is."""
    cupy = import_cupy()
    below, above = np.full(len(thresholds), -np.inf), np.full(len(thresholds), np.inf)
    for f in np.unique(features):
        own = np.flatnonzero(features == f)
        column = X.array[:, int(f)].astype(np.float64)
        values = cupy.sort(column[~cupy.isnan(column)])
        places = cupy.searchsorted(values, cupy.asarray(thresholds[own]), side="right")
        padded = cupy.concatenate([cupy.full(1, -np.inf), values, cupy.full(1, np.inf)])
        below[own], above[own] = cupy.asnumpy(padded[places]), cupy.asnumpy(padded[places + 1])
    return below, above
