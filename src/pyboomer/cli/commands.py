"""A command is one thing that `boomer` does: it joins examples, a model and a report."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyboomer.cli.examples import (
    Examples,
    fit_model,
    is_table_file,
    make_model,
    match_names,
    needs_compiling,
    pick_features,
    pick_labels,
    read_dataset,
    read_examples,
    read_features,
)
from pyboomer.cli.options import PREDICTING, LearnerCommand, list_given

if TYPE_CHECKING:
    import numpy as np


def _show_version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:  # noqa: ARG001
    if wanted:
        from pyboomer import __version__

        click.echo(f"pyboomer {__version__}")
        ctx.exit()


class OrderedGroup(click.Group):
    """Commands in the order in which they are defined, which is that in which they are met."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """List the names of the commands."""
        return list(self.commands)


@click.group(
    cls=OrderedGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`boomer COMMAND --help` tells more and has examples.",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
@click.pass_context
def boomer(ctx: click.Context) -> None:
    """Learn gradient boosted multi-label rules, and read, evaluate and apply them.

    DATA is a data set by name (`boomer datasets`), an ARFF file with its labels in an XML file beside it or in its
    header (Mulan, MEKA), or a CSV or Parquet file whose label columns are given by --labels.

    \b
    Example:
      boomer demo
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@boomer.command()
@click.option("--quiet", is_flag=True, help="Show no note on what is under way.")
@click.option(
    "-o",
    "--output",
    default="boomer-demo.html",
    metavar="FILE",
    show_default=True,
    help="The page to write, for the browser.",
)
def demo(quiet: bool, output: str) -> None:
    """Learn rules from built-in data and show them, in a few seconds.

    Trains with both losses on handwritten digits, and writes a page of the rules for the browser; needs neither network
    nor data. The first run compiles, which takes some 20 seconds more.

    \b
    Example:
      boomer demo
    """
    check_writable(output)
    from pyboomer.cli.demo import show_demo

    show_demo(output, quiet)


xml_option = click.option("--xml", metavar="FILE", help="XML file that names the labels of an ARFF file.")
labels_option = click.option(
    "--labels",
    multiple=True,
    metavar="NAMES",
    help="Label columns of a CSV or Parquet file, comma separated or repeated; patterns such as 'label_*' are allowed.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
quiet_option = click.option("--quiet", is_flag=True, help="Show no progress bar.")


def _shows_progress(quiet: bool) -> bool:
    """Whether to show progress bars; if so, announce the compilation that would make the first one stand still."""
    progress = not quiet and sys.stderr.isatty()
    if progress and needs_compiling():
        click.echo("Compiling the learner, once; this takes half a minute at most ...", err=True)
    return progress


def check_writable(path: str | None) -> None:
    """Refuse a file that cannot be written before hours are spent on what belongs in it."""
    if path is None:
        return
    folder = Path(path).parent
    if Path(path).is_dir():
        raise click.UsageError(f"{path} is a folder, not a file to write")
    if not folder.is_dir():
        raise click.UsageError(f"{path} cannot be written: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise click.UsageError(f"{path} cannot be written: no permission to write in {folder}")


def _print_json(content: Any) -> None:
    click.echo(json.dumps(content, allow_nan=False))


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
            _print_json([{"name": known_name, "place": place} for known_name, place in places.items()])
        else:
            width = max(map(len, places))
            click.echo("\n".join(f"{known_name:<{width}}  {place}" for known_name, place in places.items()))
        return
    ds = read_dataset(name, xml)
    figures, counts = ds.describe(), dict(zip(ds.label_names, ds.Y.sum(axis=0).tolist(), strict=True))
    if as_json:
        _print_json(
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
    examples = read_examples(data, xml, labels, unknown=True)
    model = make_model(examples, parameters, _shows_progress(quiet))
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
        _print_json({**content, "parameters": _plain(parameters), "seconds": seconds, "model": output})
    else:
        click.echo(f"{examples}\nLearned {format_count(len(model.rules_), 'rule')} in {seconds:.1f} s: {output}")


def _plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in parameters.items()}


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
    from pyboomer.modelfile import load_model
    from pyboomer.ruletext import list_rules

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
        _print_json(
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

    from pyboomer.modelfile import load_model

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
    from pyboomer.modelfile import load_model

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


@boomer.command(cls=LearnerCommand)
@click.argument("data")
@xml_option
@labels_option
@click.option(
    "--folds", type=click.IntRange(min=2), metavar="K", help="Number of folds of a cross validation, shuffled."
)
@click.option(
    "--test-size",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="F",
    show_default="1/3",
    help="Share of the examples held out for testing.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, metavar="S", show_default=True, help="Seed of the split."
)
@click.option("--model", "path", metavar="MODEL", help="Evaluate this saved model on DATA, train nothing.")
@json_option
@quiet_option
@click.pass_context
def evaluate(
    ctx: click.Context,
    data: str,
    xml: str | None,
    labels: Sequence[str],
    folds: int | None,
    test_size: float | None,
    seed: int,
    path: str | None,
    as_json: bool,
    quiet: bool,
    **parameters: Any,
) -> None:
    """Measure how well models predict DATA.

    Trains on a part of DATA and tests on the rest: once, or in turn with --folds; or tests a saved --model. All labels
    must be known. Unless --random-state is given, it is the --seed.

    \b
    Examples:
      boomer evaluate digits7 --n-rules 300
      boomer evaluate songs.csv --labels 'mood_*' --folds 10 --loss label-wise-logistic
      boomer evaluate new.csv --model model.json
    """
    import numpy as np

    from pyboomer.cli.reports import format_count, format_metrics
    from pyboomer.metrics import METRICS

    if folds and test_size:
        raise click.UsageError("--folds and --test-size exclude each other")
    start = time.perf_counter()
    given = list_given(ctx, parameters)
    if path:
        if folds or test_size or set(given) - set(PREDICTING):
            raise click.UsageError("--model evaluates a model as it is; leave out the options that train one")
        examples, results = _evaluate_saved(path, data, xml, labels, given)
        how, protocol = f"Evaluated {path}", dict[str, Any](model=path)
    else:
        parameters["random_state"] = given.get("random_state", seed)
        examples = read_examples(data, xml, labels)
        splits = _split(len(examples.Y), folds, test_size or 1 / 3, seed)
        results = list(_evaluate_splits(examples, splits, parameters, _shows_progress(quiet)))
        train_size, held_out = (len(rows) for rows in splits[0])
        how = f"{folds}-fold cross validation" if folds else f"Trained on {train_size:,}, tested on {held_out:,}"
        protocol = {"folds": folds, "test_size": None if folds else held_out / len(examples.Y), "seed": seed}
    seconds = time.perf_counter() - start
    metrics = {}
    for name in METRICS:
        values = [result[name] for result in results]
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
        metrics[name] = {"mean": float(np.mean(values)), "std": spread, "values": values}
    if as_json:
        used = _plain(given if path else parameters)
        _print_json({"data": examples.name, **protocol, "parameters": used, "metrics": metrics, "seconds": seconds})
    else:
        rules = (
            "" if path else f", {'up to ' * parameters['early_stopping']}{format_count(parameters['n_rules'], 'rule')}"
        )
        click.echo(f"{examples}\n{how}{rules}, {seconds:.1f} s\n")
        click.echo(format_metrics(metrics, {name: metric.larger_is_better for name, metric in METRICS.items()}))


def _split(n: int, folds: int | None, test_size: float, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    import numpy as np
    from sklearn.model_selection import KFold, ShuffleSplit

    if folds:
        return list(KFold(folds, shuffle=True, random_state=seed).split(np.empty(n)))
    return list(ShuffleSplit(1, test_size=test_size, random_state=seed).split(np.empty(n)))


def _evaluate_splits(
    examples: Examples,
    splits: Sequence[tuple[np.ndarray, np.ndarray]],
    parameters: Mapping[str, Any],
    progress: bool,
) -> Iterator[dict[str, float]]:
    from tqdm import tqdm

    from pyboomer.metrics import evaluate as measure

    is_single = len(splits) == 1
    for train_rows, test_rows in tqdm(splits, desc="Folds", unit=" folds", disable=not progress or is_single):
        model = make_model(examples, parameters, progress and is_single)
        fit_model(model, examples.take(train_rows))
        test = examples.take(test_rows)
        yield measure(test.Y, model.predict(test.X))


def _evaluate_saved(
    path: str, data: str, xml: str | None, labels: Sequence[str], parameters: Mapping[str, Any]
) -> tuple[Examples, list[dict[str, float]]]:
    from pyboomer.metrics import evaluate as measure
    from pyboomer.modelfile import load_model

    model = load_model(path)
    if not hasattr(model, "classes_"):
        raise click.UsageError(f"{path} predicts numbers, not labels; the metrics are those of labels")
    model.set_params(**parameters)
    if model._form.classes is not None:
        raise click.UsageError(f"{path} predicts classes, not labels; the metrics are those of labels")
    examples = read_examples(data, xml, labels or (model.label_names_ if is_table_file(data) else ()))
    return examples, [measure(pick_labels(model, examples), model.predict(pick_features(model, examples)))]


@boomer.command()
@click.argument("what", type=click.Choice(["figure1", "table1"]))
@click.option(
    "--budget",
    type=click.Choice(["quick", "standard", "full"]),
    default="quick",
    show_default=True,
    help="How much of the paper's grid: minutes, two hours, or all of it.",
)
@click.option(
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    default="boomer-results",
    show_default=True,
    metavar="FOLDER",
    help="Where outcomes are kept and reports are written.",
)
@click.option("--data", multiple=True, metavar="NAME", help="Use this data set only; may be repeated.")
@click.option("--n-jobs", type=click.IntRange(min=1), metavar="N", help="Processes; one per core unless given.")
@click.option("--report-only", is_flag=True, help="Compute nothing: report what is there already.")
@json_option
@quiet_option
def reproduce(
    what: str,
    budget: str,
    results: Path,
    data: Sequence[str],
    n_jobs: int | None,
    report_only: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Reproduce Figure 1 or Table 1 of the paper, next to the published numbers.

    What is finished is kept, so that a run stopped in any way goes on where it was. Table 1 needs the benchmark data
    sets (`boomer datasets`), and both need the extra `experiments`.

    \b
    Examples:
      boomer reproduce figure1
      boomer reproduce table1 --budget standard --results results
    """
    from pyboomer.cli.reproduce import show_reproduction

    show_reproduction(
        what,
        budget,
        results,
        data=tuple(data),
        n_jobs=n_jobs,
        progress=_shows_progress(quiet),
        compute=not report_only,
        as_json=as_json,
    )
