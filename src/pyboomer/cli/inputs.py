"""An input is what users name as DATA: features and labels with their names, read from wherever they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyboomer.cli.options import NAMES_HELP

if TYPE_CHECKING:
    import numpy as np

    from pyboomer.classifier import BoomerClassifier
    from pyboomer.datasets import Dataset


@dataclass(frozen=True)
class Input:
    """What was read from DATA: features as an array, sparse matrix or DataFrame; labels; the names of both."""

    name: str
    X: Any
    Y: np.ndarray
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    nominal: tuple[int, ...] = ()

    def __str__(self) -> str:
        from pyboomer.cli.reports import format_count, format_names

        sizes = {"example": len(self.Y), "feature": len(self.feature_names), "label": len(self.label_names)}
        text = f"{self.name}: {', '.join(format_count(size, noun) for noun, size in sizes.items())}"
        nominal = [self.feature_names[j] for j in self.nominal]
        # a column of numbers with a typing error in it is text, and shows up here
        return f"{text}; nominal: {format_names(nominal)}" if nominal else text

    def take(self, rows: np.ndarray) -> Input:
        """Select examples."""
        return replace(self, X=self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows], Y=self.Y[rows])


def read_input(data: str, xml: str | None, labels: Sequence[str], unknown: bool = False) -> Input:
    """Read features and labels: a data set by name, an ARFF, CSV or Parquet file.

    Whether labels may be `unknown`, empty cells in a table, is for the command to say.
    """
    if is_table_file(data):
        if xml:
            raise click.UsageError("--xml goes with an ARFF file; name the columns of labels by --labels")
        frame = _read_frame(data)
        columns = [str(name) for name in frame.columns]
        if not labels:
            from pyboomer.cli.reports import format_names

            raise click.UsageError(
                f"{data}: which columns are labels? Give --labels; there are {format_names(columns)}"
            )
        label_names = match_names(labels, columns, f"{data}: --labels", "column")
        X = frame[[name for name in columns if name not in label_names]]
        text = tuple(j for j, dtype in enumerate(X.dtypes) if dtype.kind not in "buif")
        Y = _read_label_columns(data, frame, label_names, unknown)
        return Input(Path(data).name, X, Y, tuple(X.columns), tuple(label_names), text)
    if labels:
        raise click.UsageError(f"{data}: --labels goes with a CSV or Parquet file; an ARFF file takes --xml")
    return _wrap_dataset(read_dataset(data, xml))


def read_features(data: str, model: BoomerClassifier) -> Input:
    """Read all columns of DATA as candidates for the features of a model; labels may be among them, or absent."""
    import numpy as np

    if is_table_file(data):
        schema = model.rules_.schema
        frame = _read_frame(data, [schema.names[j] for j in sorted(schema.with_text)])
        return Input(Path(data).name, frame, np.empty((len(frame), 0)), tuple(map(str, frame.columns)), ())
    if not data.lower().endswith(".arff"):
        return _wrap_dataset(read_dataset(data, None))

    from pyboomer.datasets.arff import read_arff
    from pyboomer.datasets.dataset import Dataset, write_codes

    table = read_arff(data)
    names = tuple(attribute.name for attribute in table.attributes)
    categories = {j: a.categories for j, a in enumerate(table.attributes) if a.categories is not None}
    write_codes(table.cells, categories)
    no_labels = np.empty((table.cells.shape[0], 0), dtype=np.int8)
    return _wrap_dataset(Dataset(table.cells, no_labels, names, (), tuple(categories), categories, table.file))


def match_names(patterns: Sequence[str], names: Sequence[str], where: str, noun: str) -> list[str]:
    """Find the names that comma separated names or shell patterns such as `label_*` stand for."""
    found: dict[str, None] = {}
    for given in patterns:
        for pattern in [given] if given in names else [part.strip() for part in given.split(",")]:
            matches = [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]
            if not matches:
                raise click.UsageError(f"{where}: there is no {noun} {pattern!r}")
            found |= dict.fromkeys(matches)
    return list(found)


def is_table_file(data: str) -> bool:
    """Whether DATA is a file whose labels are columns to be named."""
    return Path(data).suffix.lower() in (".csv", ".parquet")


def read_dataset(data: str, xml: str | None) -> Dataset:
    """Read an ARFF file, or load a data set by name."""
    from pyboomer.datasets import load_dataset, load_mulan

    path = Path(data)
    if path.suffix.lower() == ".arff":
        return load_mulan(path, xml)
    if xml:
        raise click.UsageError(f"{data}: --xml goes with an ARFF file")
    if path.is_file():
        raise click.UsageError(f"{data}: what format is this? Files are read that end in .arff, .csv or .parquet")
    if path.name != data:
        raise click.UsageError(f"{data}: there is no such file")
    return load_dataset(data)


def _wrap_dataset(ds: Dataset) -> Input:
    """Keep arrays where they can say it all; categories that are words need a DataFrame."""
    from pyboomer.datasets.dataset import category_codes, category_numbers, is_sparse_matrix

    def is_plain(names: tuple[str, ...]) -> bool:
        numbers = category_numbers(names)
        return numbers is not None and list(numbers) == list(category_codes(names, is_sparse=is_sparse_matrix(ds.X)))

    X = ds.X
    if not all(is_plain(names) for names in set(ds.categories.values())):
        _import_pandas(f"{ds.name}: nominal features with words for categories")
        X = ds.to_frame()
    return Input(ds.name, X, ds.Y, ds.feature_names, ds.label_names, ds.nominal_features)


def _import_pandas(what: str) -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise click.UsageError(f"{what} need pandas: pip install 'pyboomer[pandas]'") from None
    return pd


def _read_frame(data: str, text_columns: Sequence[str] = ()) -> Any:
    pd = _import_pandas("CSV and Parquet files")
    is_csv = data.lower().endswith(".csv")
    try:
        if is_csv:
            return pd.read_csv(data, dtype=dict.fromkeys(text_columns, str), low_memory=False)
        frame = pd.read_parquet(data)
    except (ValueError, UnicodeError) as error:
        raise ValueError(f"{data}: {error}") from None
    frame.columns = [str(name) for name in frame.columns]
    return frame.astype({name: "str" for name in text_columns if name in frame and frame[name].dtype.kind in "iuf"})


def _read_label_columns(data: str, frame: Any, names: Sequence[str], unknown: bool) -> np.ndarray:
    import numpy as np

    has_unknown = unknown and bool(frame[list(names)].isna().any(axis=None))
    Y = np.full((len(frame), len(names)), np.nan) if has_unknown else np.zeros((len(frame), len(names)), dtype=np.int8)
    for k, name in enumerate(names):
        column = frame[name].dropna() if has_unknown else frame[name]
        wrong = column[~column.isin([0, 1])]
        if len(wrong):
            value = "missing" if wrong.isna().iloc[0] else repr(wrong.tolist()[0])
            raise ValueError(f"{data}: label {name!r} is {value} in row {wrong.index[0] + 1}, but labels are 0 or 1")
        Y[frame.index.get_indexer(column.index), k] = column.astype(np.int8)
    return Y


# --- Inputs and models ------------------------------------------------------------------------------------------------


def make_model(examples: Input, parameters: Mapping[str, Any], progress: bool) -> BoomerClassifier:
    """Construct the classifier for these examples."""
    from pyboomer.classifier import BoomerClassifier

    chosen = {}
    for name in NAMES_HELP:
        option = "--" + name.replace("_", "-")
        names = match_names(parameters[name] or (), examples.feature_names, option, "feature")
        chosen[name] = [examples.feature_names.index(feature) for feature in names]
    chosen["categorical_features"] = sorted({*examples.nominal, *chosen["categorical_features"]})
    choices = {name: features or None for name, features in chosen.items()}
    return BoomerClassifier(**{**parameters, **choices}, verbose=int(progress))


def fit_model(model: BoomerClassifier, examples: Input) -> BoomerClassifier:
    """Fit, and give features and labels their names, also if the fit is interrupted."""
    try:
        model.fit(examples.X, _name_columns(examples.Y, examples.label_names))
    finally:
        if hasattr(model, "rules_"):
            schema = replace(model.rules_.schema, names=examples.feature_names)
            rules = replace(model.rules_, schema=schema, label_names=examples.label_names)
            model._form = replace(model._form, names=examples.label_names)
            model._store(rules, model.training_facts_)
    return model


def _name_columns(Y: np.ndarray, names: tuple[str, ...]) -> Any:
    """An array whose columns have names, as those of a DataFrame have, so that warnings can name them."""
    import numpy as np

    class Named(np.ndarray):
        columns: tuple[str, ...] = ()

    named = np.asarray(Y).view(Named)
    named.columns = names
    return named


def pick_features(model: BoomerClassifier, examples: Input) -> Any:
    """The features of a model among the columns of the examples, found by name, in the form the model was given."""
    from pyboomer.cli.reports import format_names

    wanted = model.rules_.feature_names
    position = {name: j for j, name in enumerate(examples.feature_names)}
    if missing := [name for name in wanted if name not in position]:
        raise click.UsageError(f"{examples.name} does not fit the model: missing columns: {format_names(missing)}")
    X, columns = examples.X, [position[name] for name in wanted]
    if hasattr(model, "feature_names_in_"):
        if not hasattr(X, "iloc"):
            pd = _import_pandas("models with named columns")
            X = pd.DataFrame(X.toarray() if hasattr(X, "toarray") else X, columns=list(examples.feature_names))
        return X.iloc[:, columns]
    if not hasattr(X, "iloc"):
        return X if columns == list(range(X.shape[1])) else X[:, columns]
    X = X.iloc[:, columns]
    if text := [name for name, dtype in zip(wanted, X.dtypes, strict=True) if dtype.kind not in "buif"]:
        raise click.UsageError(f"{examples.name} does not fit the model: not numeric: {format_names(text)}")
    return X.to_numpy(dtype=float, na_value=float("nan"))


def pick_labels(model: BoomerClassifier, examples: Input) -> np.ndarray:
    """The labels of a model among those of the examples, found by name."""
    from pyboomer.cli.reports import format_names

    if missing := [name for name in model.label_names_ if name not in examples.label_names]:
        raise click.UsageError(f"{examples.name} does not fit the model: missing labels: {format_names(missing)}")
    return examples.Y[:, [examples.label_names.index(name) for name in model.label_names_]]
