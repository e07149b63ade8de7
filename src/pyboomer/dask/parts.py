"""Parts are blocks of X, y and weights that belong together, each of which a worker can read at once."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
from dask.delayed import Delayed


class Part(NamedTuple):
    """Blocks with the same rows."""

    name: str  # for users
    X: Delayed
    y: Delayed
    weight: Delayed | None


def is_collection(data: Any) -> bool:
    """Whether data are Dask's: an array, a DataFrame or a Series."""
    return isinstance(data, da.Array | dd.DataFrame | dd.Series)


def refuse_flat(X: Any, name: str = "") -> None:
    """Refuse an array that is no table."""
    if isinstance(X, da.Array) and X.ndim != 2:
        raise ValueError(f"{name}X must have two dimensions, got {X.ndim}")


def divide_parts(X: Any, y: Any, weight: Any = None, name: str = "") -> list[Part]:
    """Divide what users pass; it must be divided in the same way, or known where to divide it."""
    kinds = {"X": X, "y": y} | ({} if weight is None else {"sample_weight": weight})
    for what, data in kinds.items():
        if not is_collection(data):
            raise TypeError(
                f"{name}{what} must be a Dask array or DataFrame, got {type(data).__name__}: make it one with "
                "dask.array.from_array or dask.dataframe.from_pandas, or fit the estimator without Dask"
            )
    refuse_flat(X, name)
    rows = X.chunks[0] if isinstance(X, da.Array) else None
    counts = {what: data.shape[0] for what, data in kinds.items() if isinstance(data, da.Array)}
    for what, count in counts.items():
        if abs(count - counts.get("X", count)) > 0:  # not if one of them is NaN, for unknown
            raise ValueError(f"{name}X has {counts['X']} examples, but {what} has {count}")
    blocks = [_list_blocks(data, rows) for data in kinds.values()]
    if len({len(some) for some in blocks}) > 1:
        found = ", ".join(f"{what} in {len(some)}" for what, some in zip(kinds, blocks, strict=True))
        raise ValueError(f"{name}X and y must be divided alike, got {found} blocks: call repartition, or rechunk")
    rest = [None] * (3 - len(blocks))
    return [Part(f"{name}block {i}", *some, *rest) for i, some in enumerate(zip(*blocks, strict=True))]


def _list_blocks(data: Any, rows: tuple[float, ...] | None) -> list[Delayed]:
    if not isinstance(data, da.Array):
        # only what is needed is read, but parts stay as they are: to optimise further may join small ones
        return list(data.simplify().to_delayed(optimize_graph=False))
    if rows is not None and data.chunks[0] != rows and not np.isnan([*rows, *data.chunks[0]]).any():
        data = data.rechunk({0: rows})
    if data.ndim == 2 and len(data.chunks[1]) > 1:
        data = data.rechunk({1: -1})
    return list(data.to_delayed().ravel())


def compute(client: Any, tasks: Sequence[Delayed]) -> list[Any]:
    """The results of some tasks, here."""
    return list(client.gather(client.compute(list(tasks)))) if tasks else []


def share(value: Any) -> Delayed:
    """A value that many tasks need, as something that is sent to each worker once."""
    return dask.delayed(value, pure=False, traverse=False)
