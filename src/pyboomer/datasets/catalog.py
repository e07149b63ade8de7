"""The catalog: data sets by name, from local folders, from the package itself, or from OpenML."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from functools import partial
from http.client import HTTPException
from pathlib import Path

from pyboomer.datasets.dataset import Dataset
from pyboomer.datasets.digits import load_digits7
from pyboomer.datasets.mulan import load_parts
from pyboomer.datasets.openml import OPENML_IDS, fetch_from_openml
from pyboomer.datasets.synthetic import KINDS, make_synthetic

BUILT_IN: dict[str, Callable[[], Dataset]] = {
    "digits7": load_digits7,
    **{f"synthetic-{kind}": partial(make_synthetic, kind) for kind in KINDS},
}


def load_dataset(name: str, data_home: str | Path | None = None) -> Dataset:
    """Load a data set by name.

    It is looked for in `data_home`, then in the folder that the environment variable `PYBOOMER_DATA` names, then in
    the user's cache (`$XDG_CACHE_HOME/pyboomer` or `~/.cache/pyboomer`): as `NAME.arff`, or else `NAME-train.arff` and
    `NAME-test.arff`, which are joined in this order; with the labels from `NAME.xml` or the name of the relation, see
    `load_mulan`. Then among those built in: `digits7` and the three of `make_synthetic`. Last, OpenML is asked, which
    has birds, emotions, enron, genbase, image, langlog, reuters, scene, slashdot and yeast; what it sends is kept in
    the cache.

    Parameters
    ----------
    name : str
        The name, such as "digits7" or "emotions".
    data_home : str or Path, optional
        A folder to look in first.

    Returns
    -------
    Dataset
        The data set of that name.

    Raises
    ------
    FileNotFoundError
        If the name is known, but neither a file nor OpenML is within reach.
    ValueError
        If the name is unknown, or the file is malformed.

    Examples
    --------
    >>> load_dataset("digits7")
    <Dataset 'digits7': 1797 examples, 64 features, 7 labels>
    """
    if not name or Path(name).name != name:
        raise ValueError(f"name must be the name of a data set, got {name!r}; load_mulan reads a file")
    if files := find_files(name, data_home):
        xml = files[0].with_name(f"{name}.xml")
        return load_parts(files, xml if xml.exists() else None, name)
    if name in BUILT_IN:
        return BUILT_IN[name]()

    tried = f"{name}.arff is not in {' or '.join(map(str, _list_folders(data_home)))}"
    cure = f"put {name}.arff and {name}.xml there, or name their folder by data_home= or $PYBOOMER_DATA"
    if name not in OPENML_IDS:
        near = difflib.get_close_matches(name.lower(), [*list_datasets(data_home), *OPENML_IDS])
        hint = f" Did you mean {' or '.join(map(repr, dict.fromkeys(near)))}?" if near else ""
        raise ValueError(f"there is no data set {name!r}: {tried}, and it is not on OpenML; {cure}.{hint}")
    try:
        return fetch_from_openml(name, _cache_folder())
    except (OSError, HTTPException) as error:
        raise FileNotFoundError(f"data set {name!r}: {tried}, and OpenML gave no answer ({error}); {cure}") from error


def list_datasets(data_home: str | Path | None = None) -> list[str]:
    """Return the names that `load_dataset` knows without a network: those built in and those in the local folders.

    Two files `NAME-train.arff` and `NAME-test.arff` are listed as one, although each can be loaded by its own name.

    Parameters
    ----------
    data_home : str or Path, optional
        A folder to look in besides the usual ones.

    Returns
    -------
    list of str
        The names, sorted.

    Examples
    --------
    >>> from pyboomer.datasets import list_datasets
    >>> "digits7" in list_datasets()
    True
    """
    names = set(BUILT_IN)
    for folder in _list_folders(data_home):
        stems = {path.stem for path in folder.glob("*.arff")}
        joined = {stem.removesuffix("-train") for stem in stems if stem.endswith("-train")}
        joined = {name for name in joined if f"{name}-test" in stems}
        names |= joined | stems - {f"{name}-{part}" for name in joined for part in ("train", "test")}
    return sorted(names)


def _list_folders(data_home: str | Path | None) -> list[Path]:
    folders = []
    if data_home is not None:
        folders.append(Path(data_home).expanduser())
        if not folders[0].is_dir():
            raise FileNotFoundError(f"data_home is not a folder: {data_home}")
    if os.environ.get("PYBOOMER_DATA"):
        folders.append(Path(os.environ["PYBOOMER_DATA"]).expanduser())
    return [*folders, _cache_folder()]


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyboomer"


def find_files(name: str, data_home: str | Path | None = None) -> list[Path]:
    """Return the ARFF files that a data set is read from, in the folder where it is found first; none if it is not."""
    for folder in _list_folders(data_home):
        for parts in ([name], [f"{name}-train", f"{name}-test"]):
            files = [folder / f"{part}.arff" for part in parts]
            if all(file.is_file() for file in files):
                return files
    return []
