"""Lazy predictions: those of a local estimator, block by block, when they are computed."""

from collections.abc import Mapping
from copy import copy
from types import MappingProxyType
from typing import Any

import dask.array as da
import numpy as np

from pyboomer.dask.parts import refuse_flat, share

NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


def predict_lazily(model: Any, method: str, X: Any, options: Mapping[str, Any]) -> Any:
    """An array or, with the index of X, a DataFrame or a Series of what a method gives for each block."""
    call = getattr(model, method)
    shared = share(copy(model).set_params(n_jobs=None))  # blocks are predicted at once, by the threads that Dask has
    refuse_flat(X)
    if isinstance(X, da.Array):
        X = X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
        meta = call(np.zeros((1, X.shape[1])), **options)[:0]
        flat = meta.ndim == 1
        chunks = (X.chunks[0],) if flat else (X.chunks[0], (meta.shape[1],))
        return X.map_blocks(
            _call, shared, method, options, meta, chunks=chunks, drop_axis=[1] if flat else [], meta=meta
        )
    example = X._meta_nonempty.head(1)
    meta = predict_frame(model, method, example, options).iloc[:0]
    return X.map_partitions(_call_on_frame, shared, method, options, meta, meta=meta)


def predict_frame(model: Any, method: str, X: Any, options: Mapping[str, Any] = NO_OPTIONS) -> Any:
    """A DataFrame or a Series, with the index of X, of what a method gives."""
    import pandas as pd

    result = getattr(model, method)(X, **options)
    if result.ndim == 1:
        return pd.Series(result, index=X.index)
    result = result.toarray() if hasattr(result, "toarray") else result
    of_classes = method == "predict_proba" and model.get_fitted().label_format.classes is not None
    names = list(model.classes_) if of_classes else list(model.label_names_)
    return pd.DataFrame(result, index=X.index, columns=names)


def _call(block: Any, model: Any, method: str, options: Mapping[str, Any], empty: Any) -> Any:
    return getattr(model, method)(block, **options) if block.shape[0] else empty


def _call_on_frame(block: Any, model: Any, method: str, options: Mapping[str, Any], empty: Any) -> Any:
    return predict_frame(model, method, block, options) if len(block) else empty.set_axis(block.index, axis=0)
