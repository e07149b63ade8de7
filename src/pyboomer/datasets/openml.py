"""The OpenML mirror: ten multi-label data sets on openml.org, fetched through scikit-learn."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from pyboomer.datasets.dataset import Dataset, Matrix, is_sparse_matrix, write_codes

#: The number under which each set was published, in one series; a name alone would also find single-label versions.
OPENML_IDS = {
    "birds": 40588,
    "emotions": 40589,
    "enron": 40590,
    "genbase": 40591,
    "image": 40592,
    "langlog": 40593,
    "reuters": 40594,
    "scene": 40595,
    "slashdot": 40596,
    "yeast": 40597,
}

_TRUTH = {"true": 1, "1": 1, "1.0": 1, "false": 0, "0": 0, "0.0": 0}


def fetch_from_openml(name: str, cache: Path) -> Dataset:
    """Fetch a data set from OpenML, or from the cache if it has been fetched before.

    Parameters
    ----------
    name : str
        A key of `OPENML_IDS`.
    cache : Path
        The folder in which scikit-learn keeps what it fetches.

    Returns
    -------
    Dataset
        With the labels in the order that OpenML lists its targets in.
    """
    from sklearn.datasets import fetch_openml

    with warnings.catch_warnings():
        # A second try needs no announcement: if it fails as well, there is an error.
        warnings.filterwarnings("ignore", message="A network error occurred")
        # This parser needs no pandas, and is the one that reads sparse files.
        bunch = fetch_openml(data_id=OPENML_IDS[name], data_home=cache, as_frame=False, parser="liac-arff", n_retries=1)
    feature_names = tuple(bunch.feature_names)
    X: Matrix = bunch.data
    X = X.tocsr().astype(np.float64) if is_sparse_matrix(X) else np.array(X, dtype=np.float64, order="C")
    declared = bunch.categories or {}
    categories = {j: tuple(map(str, declared[f])) for j, f in enumerate(feature_names) if f in declared}
    write_codes(X, categories)  # nominal features arrive as positions
    return Dataset(
        X=X,
        Y=_read_targets(name, np.asarray(bunch.target), tuple(bunch.target_names)),
        feature_names=feature_names,
        label_names=tuple(bunch.target_names),
        nominal_features=tuple(categories),
        categories=categories,
        name=name,
    )


def _read_targets(name: str, targets: np.ndarray, label_names: tuple[str, ...]) -> np.ndarray:
    Y = np.empty((len(targets), len(label_names)), dtype=np.int8)
    for k, label in enumerate(label_names):
        words, inverse = np.unique(targets.reshape(len(targets), -1)[:, k].astype(str), return_inverse=True)
        unknown = [str(word) for word in words if word.lower() not in _TRUTH]
        if unknown:
            raise ValueError(f"{name} on OpenML: label {label!r} is {unknown[0]!r}, but labels are TRUE/FALSE or 0/1")
        Y[:, k] = np.array([_TRUTH[word.lower()] for word in words])[inverse]
    return Y
