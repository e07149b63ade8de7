"""The command `boomer explore`: a saved model, and examples if there are any, as a page for the browser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from pyboomer.cli.group import boomer, labels_option, sep_option, xml_option
from pyboomer.cli.inputs import (
    list_files,
    match_names,
    pick_features,
    pick_labels,
    read_features,
    read_input,
)
from pyboomer.files import check_output


@boomer.command()
@click.argument("model", metavar="MODEL")
@click.option("-o", "--output", required=True, metavar="FILE", help="The page to write (HTML).")
@click.option("--data", metavar="DATA", help="Examples to show the rules on.")
@xml_option
@labels_option
@sep_option
@click.option(
    "--max-examples",
    type=click.IntRange(min=0),
    default=200,
    metavar="N",
    show_default=True,
    help="How many examples, drawn at random, are part of the page.",
)
def explore(
    model: str,
    output: str,
    data: str | None,
    xml: str | None,
    labels: Sequence[str],
    sep: str | None,
    max_examples: int,
) -> None:
    """Write a saved MODEL as a page for the browser.

    One HTML file, which needs no network: all rules, what they say of each label and feature and, with --data, how they
    add up to the scores of an example. Labels are found among the columns of DATA by name, or named by --labels; if
    there are none, examples are shown without the truth.

    \b
    Examples:
      boomer explore model.json -o page.html
      boomer explore model.json --data songs.csv -o page.html
    """
    from pyboomer.loading import load_model

    check_output(output, [model, *(list_files(data, xml) if data else [])])
    if data is None and (xml or labels or sep):
        raise click.UsageError("--xml, --labels and --sep say what is in --data, which is not given")
    learned = load_model(model)
    X, y = (None, None) if data is None else read_data(learned, data, xml, labels, sep)
    title = Path(model).name if data is None else f"{Path(model).name} on {Path(data).name}"
    text = learned.to_html(output, X=X, y=y, max_examples=max_examples, title=title)
    click.echo(f"Wrote {output} ({len(text) / 1e6:.1f} MB): open it in a browser")


def read_data(model: Any, data: str, xml: str | None, labels: Sequence[str], sep: str | None = None) -> tuple[Any, Any]:
    """The features of DATA and, where it has them, the labels, targets or classes."""
    from pyboomer.datasets.tables import is_table_file

    if not is_table_file(data):
        if not _predicts_labels(model):  # of an ARFF file, only 0/1 labels can be read
            return pick_features(model, read_features(data, model, sep=sep)), None
        examples = read_input(data, xml, labels, sep=sep, model=model)
        return pick_features(model, examples), pick_labels(model, examples)
    table = read_features(data, model, sep=sep)
    X = pick_features(model, table)
    if _predicts_labels(model):
        if not labels and not set(model.label_names_) <= set(table.feature_names):
            return X, None
        examples = read_input(data, xml, labels or model.label_names_, sep=sep)
        return X, pick_labels(model, examples)
    is_regressor = not hasattr(model, "classes_")
    named = match_names(labels, table.feature_names, f"{data}: --labels", "column") if labels else []
    columns = list(model.label_names_) if is_regressor and not named else named
    if not columns or not set(columns) <= set(table.feature_names):
        return X, None
    y = table.X[columns]
    return X, y if is_regressor and len(columns) > 1 else y.iloc[:, 0].to_numpy()


def _predicts_labels(model: Any) -> bool:
    return hasattr(model, "classes_") and model.get_fitted().label_format.classes is None
