"""A table file: examples in a CSV, TSV or Parquet file, read as a DataFrame.

The command line reads tables by this, and fits the DataFrame as it is: what a column means is for `fit` to say, so that
a file gives the same model wherever it is read.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from gzip import BadGzipFile
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


def load_table(
    path: str | Path, *, sep: str | None = None, text: Sequence[str] = (), verbatim: Sequence[str] = ()
) -> pd.DataFrame:
    """Read a table; a file that ends in .gz is decompressed.

    Parameters
    ----------
    path : str or Path
        The file, .csv, .tsv or .parquet.
    sep : str, optional
        What stands between two columns; by default a comma, or a tab in a .tsv file.
    text : sequence of str
        Columns that hold text, even where it looks like numbers.
    verbatim : sequence of str
        Columns of a CSV file to be taken as they are written, even where that usually is a missing value.

    Returns
    -------
    DataFrame
        With the types that pandas finds; all names of columns are text.
    """
    try:
        if find_kind(path) in SEPARATORS:
            frame = _read_csv(path, sep, dtype=dict.fromkeys(text, str), low_memory=False)
            if verbatim:
                as_written = _read_csv(path, sep, usecols=list(verbatim), dtype=str, keep_default_na=False)
                frame[list(verbatim)] = as_written[list(verbatim)]
            return frame
        if sep:
            raise ValueError("a Parquet file has no separators")
        frame = import_pandas("a Parquet file").read_parquet(path)
    except (ValueError, UnicodeError) as error:
        raise ValueError(f"{path}: {error}") from None
    frame.columns = [str(name) for name in frame.columns]
    return frame.astype({name: "str" for name in text if name in frame and frame[name].dtype.kind in "iuf"})


def list_columns(path: str | Path, *, sep: str | None = None) -> list[str]:
    """Return the names of the columns of a table."""
    if find_kind(path) in SEPARATORS:
        try:
            return list(map(str, _read_csv(path, sep, nrows=0).columns))
        except (ValueError, UnicodeError) as error:
            raise ValueError(f"{path}: {error}") from None
    return list(load_table(path, sep=sep).columns)


def _read_csv(path: str | Path, sep: str | None, **options: Any) -> pd.DataFrame:
    try:
        return import_pandas("a CSV file").read_csv(path, sep=sep or SEPARATORS[find_kind(path)], **options)
    except (EOFError, BadGzipFile, zlib.error) as error:
        raise ValueError(f"a damaged gzip file: {error}") from None
