"""An input is what users name as DATA: features and labels with their names, read from wherever they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
    copied: Mapping[str, Any] = field(default_factory=dict)  # columns that go with the predictions, by their names

    def __str__(self) -> str:
        from pyboomer.cli.reports import format_count, format_names
        from pyboomer.rules.text import show_line

        sizes = {"example": len(self.Y), "feature": len(self.feature_names), "label": len(self.label_names)}
        text = f"{show_line(self.name)}: {', '.join(format_count(size, noun) for noun, size in sizes.items())}"
        nominal = [self.feature_names[j] for j in self.nominal]
        if nominal:  # a column of numbers with a typing error in it is text, and shows up here
            text += f"; nominal: {format_names(nominal)}"
        unknown = int((self.Y != self.Y).sum())
        return f"{text}; {format_count(unknown, 'label')} unknown" if unknown else text

    def take(self, rows: np.ndarray) -> Input:
        """Select examples."""
        return replace(self, X=self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows], Y=self.Y[rows])


def read_input(
    data: str,
    xml: str | None,
    labels: Sequence[str],
    *,
    ignore: Sequence[str] = (),
    ordinal: Sequence[str] = (),
    sep: str | None = None,
    nominal: Sequence[str] | None = None,
    model: BoomerClassifier | None = None,
) -> Input:
    """Read features and labels: a data set by name, an ARFF file, or a table file.

    `ignore` names columns that are neither; `ordinal` names features with their levels, `nominal` those that are
    nominal although they hold numbers. If the examples are for a model, they are read as it needs them. Empty cells of
    labels are unknown labels.
    """
    from pyboomer.datasets.tables import is_table_file, load_table

    if not is_table_file(data):
        if labels or sep or ordinal:
            option = "--labels" if labels else "--sep" if sep else "--ordinal"
            raise click.UsageError(f"{data}: {option} goes with a CSV or Parquet file; an ARFF file takes --xml")
        examples = _wrap_dataset(read_dataset(data, xml), _list_text(model))
        return _declare_nominal(_drop_features(examples, ignore), nominal)
    if xml:
        raise click.UsageError("--xml goes with an ARFF file; name the columns of labels by --labels")
    from pyboomer.data.tables import list_nominal

    levels = dict(map(_read_levels, ordinal))
    frame = load_table(data, sep=sep, text=[*_list_text(model), *levels])
    columns = _list_columns(data, frame, ignore)
    frame = _order_levels(data, frame, levels)
    if not labels:
        from pyboomer.cli.reports import format_names

        raise click.UsageError(f"{data}: which columns are labels? Give --labels; there are {format_names(columns)}")
    label_names = match_names(labels, columns, f"{data}: --labels", "column")
    X = frame[[name for name in columns if name not in label_names]]
    Y = _read_label_columns(data, frame, label_names)
    found = tuple(map(list(X.columns).index, list_nominal(X)))
    return _declare_nominal(Input(Path(data).name, X, Y, tuple(X.columns), tuple(label_names), found), nominal)


def read_parts(data: str, sep: str | None) -> Any:
    """The files that a pattern stands for, which the workers of a cluster read, as a DataFrame of Dask's."""
    from pyboomer.dask.files import read_files
    from pyboomer.datasets.tables import SEPARATORS, find_kind, is_table_file

    if not is_table_file(data):
        raise click.UsageError(f"{data}: a cluster reads files that end in .parquet, .csv, .tsv, .csv.gz or .tsv.gz")
    return read_files(data, sep or SEPARATORS.get(find_kind(data)))


def read_on_cluster(
    data: str, labels: Sequence[str], ignore: Sequence[str], sep: str | None, nominal: Sequence[str] | None
) -> Input:
    """`read_input` for files in parts."""
    table = read_parts(data, sep)
    columns = _list_columns(data, table, ignore)
    if not labels:
        raise click.UsageError(f"{data}: which columns are labels? Give --labels")
    label_names = match_names(labels, columns, f"{data}: --labels", "column")
    features = [name for name in columns if name not in label_names]
    chosen = match_names(nominal or (), features, "--categorical-features", "feature")
    X = table[features].astype(dict.fromkeys(chosen, "category"))
    return Input(data, X, table[label_names], tuple(features), tuple(label_names))


def _read_levels(text: str) -> tuple[str, list[str]]:
    """The name of an ordinal feature, and its levels in order."""
    name, _, listed = text.rpartition("=")
    levels = [level.strip() for level in listed.split(",")]
    if not name or len(levels) < 2 or len(set(levels)) < len(levels) or not all(levels):
        raise click.UsageError(f"--ordinal must be as in size=small,medium,large, got {text!r}")
    return name, levels


def _order_levels(data: str, frame: Any, levels: Mapping[str, Sequence[str]]) -> Any:
    """Let columns of a table be ordinal."""
    from pyboomer.rules.frames import import_pandas

    for name, own in levels.items():
        if name not in frame:
            raise click.UsageError(f"{data}: --ordinal: there is no column {name!r}")
        values = frame[name].astype(str).where(frame[name].notna())
        others = values[values.notna() & ~values.isin(list(own))]
        if len(others):
            raise click.UsageError(f"{data}: --ordinal: {others.iloc[0]!r} is no level of {name!r}")
        kind = import_pandas("--ordinal").CategoricalDtype(list(own), ordered=True)
        frame = frame.assign(**{name: values.astype(kind)})
    return frame


def _list_columns(data: str, table: Any, ignore: Sequence[str]) -> list[str]:
    """The columns of a table, less those to ignore."""
    columns = [str(name) for name in table.columns]
    ignored = match_names(ignore, columns, f"{data}: --ignore", "column")
    return [name for name in columns if name not in ignored]


def _drop_features(examples: Input, ignore: Sequence[str]) -> Input:
    """The same examples without some features."""
    names = examples.feature_names
    ignored = match_names(ignore, names, f"{examples.name}: --ignore", "feature")
    if not ignored:
        return examples
    kept = [j for j, name in enumerate(names) if name not in ignored]
    X = examples.X.iloc[:, kept] if hasattr(examples.X, "iloc") else examples.X[:, kept]
    nominal = tuple(kept.index(j) for j in examples.nominal if j in kept)
    return replace(examples, X=X, feature_names=tuple(names[j] for j in kept), nominal=nominal)


def _list_text(model: BoomerClassifier | None) -> list[str]:
    """The features that hold text for a model, even if it looks like numbers in new data."""
    schema = None if model is None else model.rules_.schema
    return [] if schema is None else [schema.names[j] for j in sorted(schema.with_text)]


def _declare_nominal(examples: Input, patterns: Sequence[str] | None) -> Input:
    """Let features be nominal that do not look it; in a DataFrame, by their types, so that the others keep theirs."""
    names = match_names(patterns or (), examples.feature_names, "--categorical-features", "feature")
    columns = sorted({*examples.nominal, *map(examples.feature_names.index, names)})
    X = examples.X
    if names and hasattr(X, "iloc"):
        X = X.astype(dict.fromkeys(names, object)).astype(dict.fromkeys(names, "category"))
    return replace(examples, X=X, nominal=tuple(columns))


def read_features(data: str, model: BoomerClassifier, *, sep: str | None = None, ids: Sequence[str] = ()) -> Input:
    """Read all columns of DATA as candidates for the features of a model; labels may be among them, or absent.

    Columns that are `ids` are copied as they are written, features of the model among them.
    """
    import numpy as np

    from pyboomer.datasets.tables import copy_columns, is_table_file, load_table

    text = _list_text(model)
    if is_table_file(data):
        frame = load_table(data, sep=sep, text=text)
        columns = tuple(map(str, frame.columns))
        copied = copy_columns(frame, match_names(ids, columns, f"{data}: --id", "column"), data, sep=sep)
        return Input(Path(data).name, frame, np.empty((len(frame), 0)), columns, (), copied=dict(copied.items()))
    if sep:
        raise click.UsageError(f"{data}: --sep goes with a CSV file")
    dataset = _read_attributes(data) if data.lower().endswith(".arff") else read_dataset(data, None)
    examples = _wrap_dataset(dataset, text)
    names = match_names(ids, examples.feature_names, f"{data}: --id", "column")
    return replace(examples, copied={name: _take_column(examples, name) for name in names})


def _read_attributes(data: str) -> Dataset:
    """All attributes of an ARFF file, as features."""
    import numpy as np

    from pyboomer.datasets.arff import read_arff
    from pyboomer.datasets.dataset import Dataset, write_codes

    table = read_arff(data)
    names = tuple(attribute.name for attribute in table.attributes)
    categories = {j: a.categories for j, a in enumerate(table.attributes) if a.categories is not None}
    write_codes(table.cells, categories)
    no_labels = np.empty((table.cells.shape[0], 0), dtype=np.int8)
    return Dataset(table.cells, no_labels, names, (), tuple(categories), categories, table.file)


def _take_column(examples: Input, name: str) -> Any:
    if hasattr(examples.X, "iloc"):
        return examples.X[name]
    column = examples.X[:, [examples.feature_names.index(name)]]
    return (column.toarray() if hasattr(column, "toarray") else column).ravel()


def list_files(data: str, xml: str | None = None) -> list[Path]:
    """The files that DATA may be read from: none of them is a place to write to."""
    from pyboomer.datasets.catalog import find_files

    found = find_files(data) if Path(data).name == data else []
    files = [Path(data), *found]
    return [*files, *(file.with_suffix(".xml") for file in files), *([Path(xml)] if xml else [])]


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


def read_dataset(data: str, xml: str | None) -> Dataset:
    """Read an ARFF file, or load a data set by name."""
    from pyboomer.datasets import load_dataset, load_mulan

    path = Path(data)
    if path.suffix.lower() == ".arff":
        return load_mulan(path, xml)
    if xml:
        raise click.UsageError(f"{data}: --xml goes with an ARFF file")
    if path.is_file():
        endings = ".arff, .csv, .tsv, .csv.gz, .tsv.gz or .parquet"
        raise click.UsageError(f"{data}: what format is this? Files are read that end in {endings}")
    if path.name != data:
        raise click.UsageError(f"{data}: there is no such file")
    return load_dataset(data)


def _wrap_dataset(ds: Dataset, text: Sequence[str] = ()) -> Input:
    """Keep arrays where they can say it all; categories that are words, or those of `text`, need a DataFrame."""
    from pyboomer.datasets.dataset import category_codes, category_numbers, is_sparse_matrix
    from pyboomer.rules.frames import import_pandas

    def is_plain(names: tuple[str, ...]) -> bool:
        numbers = category_numbers(names)
        return numbers is not None and list(numbers) == list(category_codes(names, is_sparse=is_sparse_matrix(ds.X)))

    X = ds.X
    words = {ds.feature_names[j]: names for j, names in ds.categories.items() if ds.feature_names[j] in text}
    if words or not all(is_plain(names) for names in set(ds.categories.values())):
        import_pandas(f"{ds.name}: a nominal feature with words for categories")
        X = ds.to_frame()
        for name, categories in words.items():
            X[name] = X[name].cat.rename_categories(list(categories))
    return Input(ds.name, X, ds.Y, ds.feature_names, ds.label_names, ds.nominal_features)


def _read_label_columns(data: str, frame: Any, names: Sequence[str]) -> np.ndarray:
    import numpy as np

    Y = np.full((len(frame), len(names)), np.nan)
    for k, name in enumerate(names):
        column = frame[name]
        known = column.notna().to_numpy()
        wrong = known & ~column.isin([0, 1]).to_numpy()
        if wrong.any():
            worse = wrong & ~column.isin(["0", "1"]).to_numpy()  # what has made text of the others
            row = int((worse if worse.any() else wrong).argmax())
            value = column.iloc[[row]].tolist()[0]
            raise ValueError(f"{data}: label {name!r} is {value!r} in row {row + 1}, but labels are 0 or 1")
        Y[known, k] = column[known].astype(float)
    return Y if np.isnan(Y).any() else Y.astype(np.int8)


# --- Inputs and models ------------------------------------------------------------------------------------------------


def make_model(examples: Input, parameters: Mapping[str, Any], progress: bool, client: Any = None) -> BoomerClassifier:
    """Construct the classifier for these examples; for those of a cluster, with its client."""
    from pyboomer.classifier import BoomerClassifier

    fixed = match_names(parameters["fixed_features"] or (), examples.feature_names, "--fixed-features", "feature")
    chosen = {
        "fixed_features": [examples.feature_names.index(name) for name in fixed] or None,
        # a DataFrame tells by its types which columns are nominal, and which are ordinal or refused
        "categorical_features": None if hasattr(examples.X, "iloc") else list(examples.nominal) or None,
    }
    if client is not None:
        from pyboomer.dask import DaskBoomerClassifier

        return DaskBoomerClassifier(**{**parameters, **chosen}, verbose=int(progress), client=client)
    return BoomerClassifier(**{**parameters, **chosen}, verbose=int(progress))


def fit_model(model: BoomerClassifier, examples: Input) -> BoomerClassifier:
    """Fit; the features and labels of arrays have names, too."""
    if hasattr(examples.Y, "columns"):  # of a cluster
        return model.fit(examples.X, examples.Y)
    return model.fit(examples.X, _name_columns(examples.Y, examples.label_names), feature_names=examples.feature_names)


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
    if not hasattr(X, "iloc"):
        return X if columns == list(range(X.shape[1])) else X[:, columns]
    X = X.iloc[:, columns]
    if hasattr(model, "feature_names_in_"):
        return X
    if text := [name for name, dtype in zip(wanted, X.dtypes, strict=True) if dtype.kind not in "buif"]:
        raise click.UsageError(f"{examples.name} does not fit the model: not numeric: {format_names(text)}")
    return X.to_numpy(dtype=float, na_value=float("nan"))


def pick_labels(model: BoomerClassifier, examples: Input) -> np.ndarray:
    """The labels of a model among those of the examples, found by name."""
    from pyboomer.cli.reports import format_names

    if missing := [name for name in model.label_names_ if name not in examples.label_names]:
        raise click.UsageError(f"{examples.name} does not fit the model: missing labels: {format_names(missing)}")
    return examples.Y[:, [examples.label_names.index(name) for name in model.label_names_]]
