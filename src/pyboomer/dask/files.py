"""Files of a cluster: tables in many parts, read by the workers, and predictions written by them, part by part."""

from collections.abc import Sequence
from errno import ENOENT
from os import strerror
from typing import Any

import dask.dataframe as dd
import fsspec
import pandas as pd

from pyboomer.dask.parts import share
from pyboomer.dask.predicting import predict_frame


def read_files(data: str, sep: str | None) -> Any:
    """The tables that a pattern such as `part-*.parquet` stands for, as one DataFrame; without `sep`, Parquet."""
    files, _, paths = fsspec.get_fs_token_paths(data)
    if not any(map(files.exists, paths)):
        raise FileNotFoundError(ENOENT, strerror(ENOENT), data)
    if sep is None:
        return dd.read_parquet(data)
    size = {"blocksize": None} if data.lower().endswith(".gz") else {}  # what is compressed cannot be divided
    return dd.read_csv(data, sep=sep, **size)


def write_predictions(model: Any, method: str, table: Any, ids: Sequence[str], folder: str) -> None:
    """Predict for all parts of a table, and write as many Parquet files; columns that are `ids` come first."""
    names = list(model.rules_.feature_names)
    if missing := [name for name in names if name not in table.columns]:
        raise ValueError(f"the data do not fit the model: missing column {missing[0]!r}")
    columns = list(dict.fromkeys([*ids, *names]))
    empty = _predict_part(table._meta_nonempty.head(1), model, method, names, list(ids)).iloc[:0]
    if len(set(empty.columns)) < len(empty.columns):
        raise ValueError(f"{empty.columns[empty.columns.duplicated()][0]!r} is the name of a prediction as well")
    shared = share(model)
    predicted = table[columns].map_partitions(_predict_part, shared, method, names, list(ids), empty, meta=empty)
    predicted.to_parquet(folder, write_index=False)


def _predict_part(
    part: Any, model: Any, method: str, names: list[str], ids: list[str], empty: Any = None
) -> pd.DataFrame:
    if len(part) == 0:
        return empty
    X = (
        part[names]
        if hasattr(model, "feature_names_in_")
        else part[names].astype(float).set_axis(range(len(names)), axis=1)
    )
    result = predict_frame(model, method, X)
    result = result.to_frame("prediction") if isinstance(result, pd.Series) else result
    return pd.concat([part[ids], result.set_axis(map(str, result.columns), axis=1)], axis=1)
