"""Soundness is what compiled code takes for granted: a sparse matrix that points nowhere else, an array without a mask.

SciPy believes what a sparse matrix says of itself, and reads or writes beyond its arrays if it is wrong. NumPy forgets
the mask of an array as soon as it becomes a plain one.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_sparse(name: str, matrix: Any) -> Any:
    """A sparse matrix, if it is sound: compressed, if it was so, else as coordinates."""
    if matrix.ndim != 2:
        raise ValueError(f"{name} must be 2-D if it is sparse, got {matrix.ndim} dimensions")
    if matrix.format == "lil" and [*map(len, matrix.rows)] != [*map(len, matrix.data)]:
        raise ValueError(f"{name} is a damaged sparse matrix: some rows have more values than indices, or fewer")
    if matrix.format == "dia" and len(matrix.offsets) != len(matrix.data):
        raise ValueError(
            f"{name} is a damaged sparse matrix: it has {len(matrix.data)} diagonals, but {len(matrix.offsets)} offsets"
        )
    if matrix.format == "bsr" and (matrix.data.ndim != 3 or 0 in matrix.blocksize):
        raise ValueError(f"{name} is a damaged sparse matrix: its blocks have the shape {matrix.data.shape[1:]}")
    if matrix.format not in ("csr", "csc", "bsr"):
        try:
            matrix = matrix.tocoo()
        except ValueError as error:  # SciPy has noticed by itself
            raise ValueError(f"{name} is a damaged sparse matrix: {error}") from None
        if not len(matrix.row) == len(matrix.col) == len(matrix.data):
            raise ValueError(
                f"{name} is a damaged sparse matrix: it has {len(matrix.row)} row and {len(matrix.col)} column indices "
                f"of {len(matrix.data)} values"
            )
        if matrix.row.dtype.kind not in "iu" or matrix.col.dtype.kind not in "iu":
            raise ValueError(
                f"{name} is a damaged sparse matrix: its indices must be integers, got {matrix.row.dtype} and "
                f"{matrix.col.dtype}"
            )
        _check_indices(name, "row", matrix.row, matrix.shape[0])
        _check_indices(name, "column", matrix.col, matrix.shape[1])
        return matrix
    sizes = [size // block for size, block in zip(matrix.shape, getattr(matrix, "blocksize", (1, 1)), strict=True)]
    outer, size = sizes[::-1] if matrix.format == "csc" else sizes
    indptr, indices = matrix.indptr, matrix.indices
    if indptr.dtype != indices.dtype or indices.dtype not in (np.int32, np.int64):  # SciPy's own are no others
        raise ValueError(
            f"{name} is a damaged sparse matrix: its indptr and indices must both be int32 or int64, got "
            f"{indptr.dtype} and {indices.dtype}"
        )
    stored = min(len(indices), len(matrix.data))
    if len(indptr) != outer + 1 or indptr[0] != 0 or indptr[-1] > stored or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(
            f"{name} is a damaged sparse matrix: its indptr must be {outer + 1} numbers that ascend from 0 to at most "
            f"{stored}, the number of values stored"
        )
    _check_indices(name, "row" if matrix.format == "csc" else "column", indices[: indptr[-1]], size)
    return matrix


def _check_indices(name: str, kind: str, indices: NDArray[Any], size: int) -> None:
    if indices.size and not 0 <= indices.min() <= indices.max() < size:
        raise ValueError(
            f"{name} is a damaged sparse matrix: its {kind} indices go from {indices.min()} to {indices.max()}, and "
            f"must be from 0 to {size - 1}"
        )


def unmask(data: Any) -> Any:
    """What is masked becomes missing: NaN among numbers, None among others; all else stays as it is."""
    if isinstance(data, list | tuple) and any(isinstance(row, np.ma.MaskedArray) for row in data):
        data = np.ma.stack(data)
    if not isinstance(data, np.ma.MaskedArray):
        return data
    if not np.ma.is_masked(data):
        return data.data
    is_number = data.dtype.kind in "buif"
    return np.ma.filled(data.astype(float), np.nan) if is_number else np.ma.filled(data.astype(object), None)
