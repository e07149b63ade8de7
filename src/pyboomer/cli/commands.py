"""A command is one thing that `boomer` does: it joins examples, a model and a report."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyboomer.cli.group import (
    boomer,
    check_writable,
    json_option,
    labels_option,
    plain,
    print_json,
    quiet_option,
    shows_progress,
    xml_option,
)
from pyboomer.cli.inputs import (
    fit_model,
    make_model,
    match_names,
    pick_features,
    read_dataset,
    read_features,
    read_input,
)
from pyboomer.cli.options import PREDICTING, LearnerCommand, list_given

if TYPE_CHECKING:
    import numpy as np


@boomer.command()
@quiet_option
@click.option(
    "-o",
    "--output",
    default="boomer-demo.html",
    metavar="FILE",
    show_default=True,
    help="The page to write, for the browser.",
)
def demo(quiet: bool, output: str) -> None:  # noqa: ARG001
    """Learn rules from built-in data and show them, in a few seconds.

    Trains with both losses on handwritten digits, and writes a page of the rules for the browser; needs neither network
    nor data. The first run compiles, which takes about half a minute more.

    \b
    Example:
      boomer demo
    """
    check_writable(output)
    from pyboomer.cli.demo import show_demo

    show_demo(output)


@boomer.command()
@click.argument("name", required=False)
@click.option("--xml", metavar="FILE", help="XML file that names the labels of an ARFF file.")
@json_option
def datasets(name: str | None, xml: str | None, as_json: bool) -> None:
    """List the data sets known by name, or describe one.

    NAME may also be an ARFF file.

    Besides those built in, they are looked for in the folder that the environment variable PYBOOMER_DATA names and in
    the user's cache, and then fetched from OpenML.

    \b
    Examples:
      boomer datasets
      boomer datasets digits7
    """
    from pyboomer.cli.reports import format_table

    if name is None:
        from pyboomer.datasets import list_datasets
        from pyboomer.datasets.catalog import BUILT_IN
        from pyboomer.datasets.openml import OPENML_IDS

        known = list_datasets()
        places = {known_name: "built in" if known_name in BUILT_IN else "local file" for known_name in known}
        places |= {remote: "OpenML, fetched when asked for" for remote in OPENML_IDS if remote not in places}
        if as_json:
            print_json([{"name": known_name, "place": place} for known_name, place in places.items()])
        else:
            width = max(map(len, places))
            click.echo("\n".join(f"{known_name:<{width}}  {place}" for known_name, place in places.items()))
        return
    ds = read_dataset(name, xml)
    figures, counts = ds.describe(), dict(zip(ds.label_names, ds.Y.sum(axis=0).tolist(), strict=True))
    if as_json:
        print_json(
            {"name": ds.name, **{key.replace(" ", "_"): v for key, v in figures.items()}, "label_counts": counts}
        )
        return
    rows = [[key, f"{value:,}" if isinstance(value, int) else f"{value:.3f}"] for key, value in figures.items()]
    click.echo(format_table([ds.name, ""], rows) + "\n")
    shares = [[label, f"{count:,}", f"{count / len(ds.Y):.1%}"] for label, count in counts.items()]
    click.echo(format_table(["label", "relevant", ""], shares))


@boomer.command(cls=LearnerCommand)
@click.argument("data")
@click.option("-o", "--output", required=True, metavar="FILE", help="The model file to write (JSON).")
@xml_option
@labels_option
@json_option
@quiet_option
def train(
    data: str, output: str, xml: str | None, labels: Sequence[str], as_json: bool, quiet: bool, **parameters: Any
) -> None:
    """Learn a model from DATA and save it.

    Empty cells are missing values; in a column of labels, labels that are not known. Ctrl-C stops early; the rules
    learned so far are saved.

    \b
    Examples:
      boomer train digits7 -o model.json --n-rules 500 --learning-rate 0.2
      boomer train emotions.arff --xml emotions.xml -o model.json
      boomer train songs.csv --labels 'mood_*' -o model.json --random-state 1
    """
    from pyboomer.cli.reports import format_count

    check_writable(output)
    examples = read_input(data, xml, labels, unknown=True)
    model = make_model(examples, parameters, shows_progress(quiet))
    start = time.perf_counter()
    try:
        fit_model(model, examples)
    except KeyboardInterrupt:
        if not hasattr(model, "rules_"):
            raise
        model.save(output)
        learned = format_count(len(model.rules_), "rule")
        raise KeyboardInterrupt(f"the {learned} learned so far are saved in {output}") from None
    seconds = time.perf_counter() - start
    model.save(output)
    if as_json:
        sizes = dict(zip(("examples", "features"), (len(examples.Y), len(examples.feature_names)), strict=True))
        content = {"data": examples.name, **sizes, "labels": list(examples.label_names), "rules": len(model.rules_)}
        print_json({**content, "parameters": plain(parameters), "seconds": seconds, "model": output})
    else:
        click.echo(f"{examples}\nLearned {format_count(len(model.rules_), 'rule')} in {seconds:.1f} s: {output}")


@boomer.command()
@click.argument("model", metavar="MODEL")
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="The N rules of largest gain, best first.")
@click.option(
    "--label", "labels", multiple=True, metavar="NAMES", help="Rules with scores for these labels, and those."
)
@click.option("--feature", "features", multiple=True, metavar="NAMES", help="Rules with conditions on these features.")
@json_option
def rules(model: str, top: int | None, labels: Sequence[str], features: Sequence[str], as_json: bool) -> None:
    """Print the rules of a saved MODEL, as they were learned.

    Names may be comma separated, repeated, or patterns.

    \b
    Examples:
      boomer rules model.json --top 10
      boomer rules model.json --label beach --feature 'at1*'
    """
    from pyboomer.cli.reports import keep_labels
    from pyboomer.loading import load_model
    from pyboomer.rules.text import list_rules

    ensemble = load_model(model).rules_
    kept = list(enumerate(ensemble))
    if labels:
        names = match_names(labels, ensemble.label_names, f"{model}: --label", "label")
        kept = [(t, keep_labels(rule, names)) for t, rule in kept]
        kept = [(t, rule) for t, rule in kept if any(rule.scores)]
    if features:
        tested = set(match_names(features, ensemble.feature_names, f"{model}: --feature", "feature"))
        kept = [(t, rule) for t, rule in kept if any(condition.name in tested for condition in rule.body)]
    if top:
        kept = sorted(kept, key=lambda numbered: -numbered[1].gain)[:top]
    if as_json:
        print_json(
            [
                {
                    "rule": t,
                    "conditions": [[c.name, c.operator, c.value_text() if c.levels else c.value] for c in rule.body],
                    "scores": rule.head,
                    "coverage": rule.coverage,
                    "gain": rule.gain,
                }
                for t, rule in kept
            ]
        )
    else:
        shares = ensemble.share.tolist()
        click.echo(list_rules((t, shares[t], rule) for t, rule in kept) if kept else "(no such rules)")


@boomer.command(cls=LearnerCommand, only=PREDICTING)
@click.argument("model", metavar="MODEL")
@click.argument("data")
@click.option("-o", "--output", metavar="FILE", help="The CSV file to write instead of the standard output.")
@click.option("--proba", "kind", flag_value="proba", help="Write the probability of each label.")
@click.option("--scores", "kind", flag_value="scores", help="Write the score of each label.")
@json_option
@click.pass_context
def predict(
    ctx: click.Context,
    model: str,
    data: str,
    output: str | None,
    kind: str | None,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Predict the labels of DATA with a saved MODEL, as CSV.

    Columns are found by name; labels and other columns may be among them and are ignored.

    \b
    Examples:
      boomer predict model.json new.csv -o predictions.csv
      boomer predict model.json new.csv --proba --json
    """
    import numpy as np

    from pyboomer.loading import load_model

    check_writable(output)
    learned = load_model(model)
    given = list_given(ctx, parameters)
    is_regressor = not hasattr(learned, "classes_")
    if is_regressor and (kind or "decode" in given):
        raise click.UsageError(f"{model} predicts numbers, which --proba, --scores and --decode are not for")
    learned.set_params(**given)
    X = pick_features(learned, read_features(data, learned))
    if is_regressor:
        values, names = learned.predict(X), list(learned.label_names_)
        return _write_predictions(output, as_json, "numbers", names, values.reshape(len(values), -1))
    function = {"proba": learned.predict_proba, "scores": learned.decision_function}.get(kind or "", learned.predict)
    values = function(X)
    values = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
    names = list(learned.label_names_)
    if values.ndim == 1:  # a model of one column of classes, learned in Python
        names, values = (["class"] if kind is None else names[:1]), values[:, None]
    elif values.shape[1] != len(names):
        names = [str(name) for name in learned.classes_]
    if kind is None and values.dtype.kind in "bf":
        values = values.astype(np.int8)
    _write_predictions(output, as_json, kind or "labels", names, values)


def _write_predictions(output: str | None, as_json: bool, kind: str, names: Sequence[str], values: np.ndarray) -> None:
    if as_json:
        text = json.dumps({"kind": kind, "labels": list(names), "predictions": values.tolist()}) + "\n"
    else:
        text = _write_csv(names, values.tolist())
    if output is None:
        click.echo(text, nl=False)
    else:
        Path(output).write_text(text, encoding="utf-8")


def _write_csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    import csv
    import io

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([f"{value:.6g}" if isinstance(value, float) else value for value in row] for row in rows)
    return buffer.getvalue()


@boomer.command()
@click.argument("model", metavar="MODEL")
@click.option("-o", "--output", required=True, metavar="FILE", help="The file to write, .onnx or .py.")
def export(model: str, output: str) -> None:
    """Write a saved MODEL as ONNX, or as a Python file that imports nothing.

    \b
    Examples:
      boomer export model.json -o model.onnx
      boomer export model.json -o model.py
    """
    from pyboomer.loading import load_model

    check_writable(output)
    kind = Path(output).suffix.lower()
    if kind not in (".onnx", ".py"):
        raise click.UsageError(f"{output}: what format should this be? The name must end in .onnx or .py")
    learned = load_model(model)
    if kind == ".onnx":
        learned.to_onnx(output)
    else:
        learned.to_python(output)
    click.echo(f"Wrote {output}")
