"""A table file: examples in a CSV, TSV or Parquet file, read as a DataFrame.

The command line reads tables by this, and fits the DataFrame as it is: what a column means is for `fit` to say, so that
a file gives the same model wherever it is read.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from errno import ENOENT
from gzip import BadGzipFile
from os import strerror
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyboomer.rules.frames import import_pandas

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {".csv": ",", ".tsv": "\t"}  # either may be compressed, and end in .gz


def find_kind(path: str | Path) -> str:
    """Return the ending that tells what is in a file, such as `.csv` for `songs.csv.gz`."""
    name = Path(path).name.lower()
    return Path(name.removesuffix(".gz")).suffix


def is_table_file(path: str | Path) -> bool:
    """Return whether a file is a table, by its name."""
    return find_kind(path) in SEPARATORS or Path(path).suffix.lower() == ".parquet"


def load_table(path: str | Path, *, sep: str | None = None, text: Sequence[str] = ()) -> pd.DataFrame:
    r"""Read a table; a file that ends in .gz is decompressed.

    Parameters
    ----------
    path : str or Path
        The file, .csv, .tsv or .parquet.
    sep : str, optional
        What stands between two columns; by default a comma, or a tab in a .tsv file.
    text : sequence of str
        Columns that hold text, even where it looks like numbers.

    Returns
    -------
    DataFrame
        With the types that pandas finds; all names of columns are text.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pyboomer.datasets import load_table
    >>> _ = Path("songs.csv").write_text("song,tempo,calm\n007,90,1\n008,,0\n")
    >>> load_table("songs.csv", text=["song"])
      song  tempo  calm
    0  007   90.0     1
    1  008    NaN     0
    """
    try:
        if find_kind(path) in SEPARATORS:
            return _read_csv(path, sep, dtype=dict.fromkeys(text, str), low_memory=False)
        if sep:
            raise ValueError("a Parquet file has no separators")
        frame = import_pandas("a Parquet file").read_parquet(path)
    except FileNotFoundError:  # readers of Parquet say no more than the name
        raise FileNotFoundError(ENOENT, strerror(ENOENT), str(path)) from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    except (LookupError, TypeError, AttributeError, RuntimeError) as error:  # of metadata that readers take for granted
        raise ValueError(f"{path} is damaged ({error!r})") from None
    frame.columns = [str(name) for name in frame.columns]
    return frame.astype({name: "str" for name in text if name in frame and frame[name].dtype.kind in "iuf"})


def copy_columns(
    frame: pd.DataFrame, names: Sequence[str], path: str | Path, *, sep: str | None = None
) -> pd.DataFrame:
    """Return columns of a table as they are written in its file, even where that usually is a missing value."""
    if find_kind(path) not in SEPARATORS or not names:
        return frame[list(names)]
    return _read_csv(path, sep, usecols=list(names), dtype=str, keep_default_na=False)[list(names)]


def _read_csv(path: str | Path, sep: str | None, **options: Any) -> pd.DataFrame:
    pandas = import_pandas("a CSV file")
    sep = sep or SEPARATORS[find_kind(path)]
    try:
        frame = pandas.read_csv(path, sep=sep, **options)
        header = pandas.read_csv(path, sep=sep, header=None, nrows=1, dtype=str, keep_default_na=False)
    except (EOFError, BadGzipFile, zlib.error) as error:
        raise ValueError(f"a damaged gzip file: {error}") from None
    if not isinstance(frame.index, pandas.RangeIndex):  # pandas took the first cells for names of rows
        raise ValueError("rows have more cells than the header has names, so which belongs to which is not certain")
    names = header.iloc[0]
    if names.duplicated().any():  # pandas would call the second one by another name
        raise ValueError(f"two columns have the same name, {names[names.duplicated()].iloc[0]!r}")
    return frame
