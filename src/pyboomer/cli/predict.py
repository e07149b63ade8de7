"""The command `boomer predict`: what a saved model says of new examples, as a table."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from pyboomer.cli.group import boomer, connect, dask_option, json_option, sep_option
from pyboomer.cli.inputs import list_files, match_names, pick_features, read_features, read_parts
from pyboomer.cli.options import PREDICTING, LearnerCommand, list_given
from pyboomer.files import check_output, write_file
from pyboomer.rules.text import show_line

FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # a cell that starts with one of these is run by spreadsheets


@boomer.command(cls=LearnerCommand, only=PREDICTING)
@click.argument("model", metavar="MODEL")
@click.argument("data")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="The file to write instead of the standard output: CSV, or what the ending says: .tsv, .parquet, .json; all "
    "but Parquet are compressed if .gz follows.",
)
@click.option("--proba", "kind", flag_value="proba", help="Write the probability of each label.")
@click.option("--scores", "kind", flag_value="scores", help="Write the score of each label.")
@click.option(
    "--id",
    "ids",
    multiple=True,
    metavar="NAMES",
    help="Columns of DATA to write in front of the predictions, comma separated or repeated; patterns are allowed.",
)
@sep_option
@dask_option
@json_option
@click.pass_context
def predict(
    ctx: click.Context,
    model: str,
    data: str,
    output: str | None,
    kind: str | None,
    ids: Sequence[str],
    sep: str | None,
    dask: str | None,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Predict the labels of DATA with a saved MODEL, as a table.

    Columns are found by name; labels and other columns may be among them and are ignored. In CSV, a name or a word that
    a spreadsheet would run as a formula gets an apostrophe in front.

    \b
    Examples:
      boomer predict model.json new.csv -o predictions.csv
      boomer predict model.json new.csv --id song -o predictions.parquet
      boomer predict model.json new.csv --proba --json
      boomer predict model.json 'part-*.parquet' -o predictions.parquet --dask tcp://host:8786

    A cluster writes a folder of Parquet files, one for each part.
    """
    import numpy as np

    from pyboomer.loading import load_model

    ending = _find_ending(output, as_json)
    if output is not None:
        check_output(output, [model, *list_files(data)])
    learned = load_model(model)
    given = list_given(ctx, parameters)
    is_regressor = not hasattr(learned, "classes_")
    if is_regressor and (kind or "decode" in given):
        raise click.UsageError(f"{model} predicts numbers: --proba, --scores and --decode do not apply")
    learned.set_params(**given)
    if dask is not None:
        if ending != ".parquet" or as_json:
            raise click.UsageError("a cluster writes a folder of Parquet files: name it by -o predictions.parquet")
        return _predict_on_cluster(dask, learned, kind, data, sep, ids, str(output))
    examples = read_features(data, learned, sep=sep, ids=ids)
    X, names = pick_features(learned, examples), list(learned.label_names_)
    if is_regressor:
        values = learned.predict(X)
        values = values.reshape(len(values), -1)
    else:
        functions = {"proba": learned.predict_proba, "scores": learned.decision_function}
        values = functions.get(kind or "", learned.predict)(X)
        values = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
        if values.ndim == 1:  # a model of one column of classes, learned in Python
            names, values = (["class"] if kind is None else names[:1]), values[:, None]
        elif values.shape[1] != len(names):
            names = [str(name) for name in learned.classes_]
        if kind is None and values.dtype.kind in "bf":
            values = values.astype(np.int8)
    content = {"kind": "numbers" if is_regressor else kind or "labels", "labels": names}
    if same := [name for name in examples.copied if name in names]:
        raise click.UsageError(f"{examples.name}: --id {same[0]!r} is the name of a prediction as well")
    columns = dict(zip(names, values.T, strict=True))
    if ending == ".parquet":
        return write_file(output or "", _pack_parquet({**examples.copied, **columns}))
    table = {name: _list_cells(column) for name, column in examples.copied.items()}
    if ending == ".json":
        listed = {"ids": table} if table else {}
        text = json.dumps({**content, **listed, "predictions": values.tolist()}, default=str) + "\n"
    else:
        text = _write_csv(table, columns, sep or ("\t" if ending == ".tsv" else ","))
    if output is None:
        # a file or a program gets the names as they are; a terminal would obey what is in them
        sys.stdout.write("\n".join(map(show_line, text.split("\n"))) if sys.stdout.isatty() else text)
    else:
        write_file(output, gzip.compress(text.encode(), mtime=0) if output.lower().endswith(".gz") else text)


def _predict_on_cluster(
    address: str, learned: Any, kind: str | None, data: str, sep: str | None, ids: Sequence[str], output: str
) -> None:
    from pyboomer.dask.files import write_predictions

    with connect(address):
        table = read_parts(data, sep)
        names = match_names(ids, [str(name) for name in table.columns], f"{data}: --id", "column")
        method = {"proba": "predict_proba", "scores": "decision_function"}.get(kind or "", "predict")
        write_predictions(learned, method, table, names, output)


def _find_ending(output: str | None, as_json: bool) -> str:
    """What to write, named by its usual ending."""
    from pyboomer.datasets.tables import find_kind

    ending = ".csv" if output is None else find_kind(output)
    if ending == ".parquet" and (as_json or (output or "").lower().endswith(".gz")):
        raise click.UsageError(f"{output}: Parquet {'is not JSON' if as_json else 'is compressed already'}")
    return ".json" if as_json else ending


def _list_cells(column: Any) -> list[Any]:
    """The values of a column, None for those that are missing; whole numbers are written as such."""
    from pyboomer.arrays import is_missing

    def read(value: Any) -> Any:
        is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
        return None if is_missing(value) else int(value) if is_whole else value

    return list(map(read, column.tolist()))


def _pack_parquet(columns: dict[str, Any]) -> bytes:
    from io import BytesIO

    from pyboomer.rules.frames import import_pandas

    buffer = BytesIO()
    import_pandas("a Parquet file").DataFrame(columns).to_parquet(buffer, index=False)
    return buffer.getvalue()


def _write_csv(copied: dict[str, list[Any]], predicted: dict[str, Any], sep: str) -> str:
    import csv
    import io

    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=sep, lineterminator="\n")
    writer.writerow(map(_defuse, [*copied, *predicted]))
    ids = [map(_defuse, column) for column in copied.values()]
    predictions = [map(_round, column.tolist()) for column in predicted.values()]
    writer.writerows(zip(*ids, *predictions, strict=True))
    return buffer.getvalue()


def _round(value: Any) -> Any:
    """What was predicted: numbers with six digits."""
    return f"{value:.6g}" if isinstance(value, float) else _defuse(value)


def _defuse(value: Any) -> Any:
    """A cell that is read as what it is, and is not run as a formula."""
    from pyboomer.datasets.dataset import NUMBER

    is_formula = isinstance(value, str) and value.startswith(FORMULA) and not NUMBER.fullmatch(value)
    return f"'{value}" if is_formula else value
