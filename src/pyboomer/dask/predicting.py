"""Lazy predictions: those of a local estimator, block by block, when they are computed."""

from collections.abc import Mapping
from typing import Any

import dask
import dask.array as da
import numpy as np
from sklearn.utils.validation import check_is_fitted


def predict_lazily(model: Any, method: str, X: Any, options: Mapping[str, Any]) -> Any:
    """An array or, with the index of X, a DataFrame or a Series of what a method gives for each block."""
    check_is_fitted(model, "rules_")
    call = getattr(model, method)
    shared = dask.delayed(model, pure=False, traverse=False)
    if isinstance(X, da.Array):
        X = X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
        meta = call(np.zeros((1, X.shape[1])), **options)[:0]
        flat = meta.ndim == 1
        chunks = (X.chunks[0],) if flat else (X.chunks[0], (meta.shape[1],))
        return X.map_blocks(
            _call, shared, method, options, meta, chunks=chunks, drop_axis=[1] if flat else [], meta=meta
        )
    example = X._meta_nonempty.head(1)
    meta = _frame(model, method, call(example, **options), example.index)[:0]
    return X.map_partitions(_call_on_frame, shared, method, options, meta, meta=meta)


def _call(block: Any, model: Any, method: str, options: Mapping[str, Any], empty: Any) -> Any:
    return getattr(model, method)(block, **options) if block.shape[0] else empty


def _call_on_frame(block: Any, model: Any, method: str, options: Mapping[str, Any], empty: Any) -> Any:
    if len(block) == 0:
        return empty.set_axis(block.index, axis=0)
    return _frame(model, method, getattr(model, method)(block, **options), block.index)


def _frame(model: Any, method: str, result: Any, index: Any) -> Any:
    import pandas as pd

    if result.ndim == 1:
        return pd.Series(result, index=index)
    result = result.toarray() if hasattr(result, "toarray") else result
    of_classes = method == "predict_proba" and model._form.classes is not None
    names = list(model.classes_) if of_classes else list(model.label_names_)
    return pd.DataFrame(result, index=index, columns=names)
