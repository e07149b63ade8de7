"""A command is one thing that `boomer` does: it joins examples, a model and a report."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import Any

import click

from pyboomer.cli.group import (
    boomer,
    connect,
    dask_option,
    ignore_option,
    json_option,
    labels_option,
    ordinal_option,
    plain,
    print_json,
    quiet_option,
    sep_option,
    shows_progress,
    xml_option,
)
from pyboomer.cli.inputs import (
    Input,
    fit_model,
    list_files,
    make_model,
    match_names,
    read_dataset,
    read_input,
    read_on_cluster,
)
from pyboomer.cli.options import LearnerCommand
from pyboomer.files import check_output


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
    nor data. The first run compiles, which takes about fifteen seconds more.

    \b
    Example:
      boomer demo
    """
    from pyboomer.cli.demo import show_demo

    check_output(output)
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
        from pyboomer.rules.text import show_line

        known = list_datasets()
        places = {known_name: "built in" if known_name in BUILT_IN else "local file" for known_name in known}
        places |= {remote: "OpenML, fetched when asked for" for remote in OPENML_IDS if remote not in places}
        if as_json:
            print_json([{"name": known_name, "place": place} for known_name, place in places.items()])
        else:
            shown = {show_line(known_name): place for known_name, place in places.items()}
            width = max(map(len, shown))
            click.echo("\n".join(f"{known_name:<{width}}  {place}" for known_name, place in shown.items()))
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
@ignore_option
@ordinal_option
@sep_option
@dask_option
@json_option
@quiet_option
def train(
    data: str,
    output: str,
    xml: str | None,
    labels: Sequence[str],
    ignore: Sequence[str],
    ordinal: Sequence[str],
    sep: str | None,
    dask: str | None,
    as_json: bool,
    quiet: bool,
    **parameters: Any,
) -> None:
    """Learn a model from DATA and save it.

    Empty cells are missing values; in a column of labels, labels that are not known. Ctrl-C and SIGTERM stop early; the
    rules learned so far are saved, but never over a file that is there already: then they go into a file beside it,
    such as model-interrupted.json.

    \b
    Examples:
      boomer train digits7 -o model.json --n-rules 500 --learning-rate 0.2
      boomer train emotions.arff --xml emotions.xml -o model.json
      boomer train songs.csv --labels 'mood_*' --ignore title -o model.json --random-state 1
      boomer train 'part-*.parquet' --labels 'mood_*' -o model.json --dask tcp://host:8786
    """
    check_output(output, list_files(data, xml))
    if dask is not None:
        if xml:
            raise click.UsageError("--xml goes with an ARFF file, which --dask does not read")
        if ordinal:
            raise click.UsageError("--ordinal does not go with --dask; ordered categories of Parquet files are ordinal")
        with connect(dask) as client:
            examples = read_on_cluster(data, labels, ignore, sep, parameters["categorical_features"])
            _train(data, examples, output, parameters, as_json, quiet, client)
        return
    examples = read_input(
        data, xml, labels, ignore=ignore, ordinal=ordinal, sep=sep, nominal=parameters["categorical_features"]
    )
    _train(data, examples, output, parameters, as_json, quiet)


def _train(
    data: str,
    examples: Input,
    output: str,
    parameters: Mapping[str, Any],
    as_json: bool,
    quiet: bool,
    client: Any = None,
) -> None:
    from pyboomer.cli.reports import format_count
    from pyboomer.learning.interrupt import DeferredInterrupt

    model = make_model(examples, parameters, shows_progress(quiet), client)
    start = time.perf_counter()
    try:
        fit_model(model, examples)
    except KeyboardInterrupt as interrupt:
        if not hasattr(model, "rules_"):
            raise
        raise type(interrupt)(_save_part(model, output)) from None
    except RuntimeError as error:  # such as a worker that was lost
        if client is None or not hasattr(model, "rules_"):
            raise
        raise click.ClickException(f"{str(error).partition('. ')[0]}; {_save_part(model, output)}") from error
    seconds = time.perf_counter() - start
    with DeferredInterrupt():
        model.save(output)
    if as_json:
        sizes = {"examples": model.training_facts_["examples"] if client else len(examples.Y)}
        sizes |= {"features": len(examples.feature_names)}
        content = {"data": examples.name, **sizes, "labels": list(examples.label_names), "rules": len(model.rules_)}
        print_json({**content, "parameters": plain(parameters), "seconds": seconds, "model": output})
    else:
        learned = format_count(len(model.rules_), "rule")
        click.echo(f"{data if client else examples}\nLearned {learned} in {seconds:.1f} s: {output}")


def _save_part(model: Any, output: str) -> str:
    """Save the rules learned so far, and say where."""
    from pyboomer.cli.reports import format_count

    place = _spare_old(output)
    model.save(place)
    kept = f"; {output} is as it was" if place != output else ""
    return f"the {format_count(len(model.rules_), 'rule')} learned so far are saved in {place}{kept}"


def _spare_old(output: str) -> str:
    """Where to save what was cut short: beside a model that is there already, which may be the better one."""
    path = Path(output)
    if not path.is_file() or path.stat().st_size == 0:
        return output
    numbers = chain([""], map("-{}".format, count(2)))
    places = (path.with_name(f"{path.stem}-interrupted{number}{path.suffix}") for number in numbers)
    return next(str(place) for place in places if not place.exists())


@boomer.command()
@click.argument("model", metavar="MODEL")
@click.option(
    "--top",
    metavar="N",
    callback=lambda context, option, value: _read_top(value),  # noqa: ARG005
    help="The N rules of largest gain, best first, or as few as have a share of it: 50%.",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="NAMES",
    help="Rules with scores for these labels, those scores, and the gain for them.",
)
@click.option("--feature", "features", multiple=True, metavar="NAMES", help="Rules with conditions on these features.")
@json_option
def rules(model: str, top: int | float | None, labels: Sequence[str], features: Sequence[str], as_json: bool) -> None:
    """Print the rules of a saved MODEL, as they were learned.

    Names may be comma separated, repeated, or patterns.

    \b
    Examples:
      boomer rules model.json --top 10
      boomer rules model.json --label beach --top 50%
      boomer rules model.json --label beach --feature 'at1*'
    """
    from pyboomer.loading import load_model

    chosen = load_model(model).rules_
    if labels:
        names = match_names(labels, chosen.label_names, f"{model}: --label", "label")
        chosen = chosen.about([k for k, name in enumerate(chosen.label_names) if name in names])
    if features:
        tested = set(match_names(features, chosen.feature_names, f"{model}: --feature", "feature"))
        chosen = chosen.mentioning(feature=[f for f, name in enumerate(chosen.feature_names) if name in tested])
    if top is not None:
        chosen = chosen.by_gain()[:top] if isinstance(top, int) else chosen.top(top)
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
                for t, rule in zip(chosen.order.tolist(), chosen, strict=True)
            ]
        )
    else:
        click.echo(chosen.to_text() if len(chosen) else "(no such rules)")


def _read_top(text: str | None) -> int | float | None:
    """A number of rules, or a share of their gain."""
    if text is None:
        return None
    with suppress(ValueError):
        if text.endswith("%") and 0 < float(text[:-1]) <= 100:
            return float(text[:-1]) / 100
        if not text.endswith("%") and int(text) >= 1:
            return int(text)
    raise click.BadParameter(f"{text!r} is neither a number of rules, such as 10, nor a share of the gain, such as 50%")


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

    check_output(output, [model])
    kind = Path(output).suffix.lower()
    if kind not in (".onnx", ".py"):
        raise click.UsageError(f"{output}: what format should this be? The name must end in .onnx or .py")
    learned = load_model(model)
    if kind == ".onnx":
        learned.to_onnx(output)
    else:
        learned.to_python(output)
    click.echo(f"Wrote {output}")


@boomer.command()
@click.argument("model", metavar="MODEL")
@click.option("-o", "--output", required=True, metavar="FILE", help="The model file to write (JSON).")
@click.option("--n-rules", type=click.IntRange(min=1), metavar="N", help="Keep the first N rules only.")
@json_option
def compact(model: str, output: str, n_rules: int | None, as_json: bool) -> None:
    """Write a saved MODEL with fewer rules and conditions that say the same.

    Rules with the same body become one, and only the tightest conditions remain: no score changes. With --n-rules,
    rules are cut off first, and scores do change; `boomer distil` makes a better model of that size.

    \b
    Examples:
      boomer compact model.json -o small.json
      boomer compact model.json -o small.json --n-rules 100
    """
    from pyboomer.editing import compact as merge_rules
    from pyboomer.editing import replace_rules
    from pyboomer.loading import load_model

    check_output(output, [model])
    learned = load_model(model)
    cut = learned if n_rules is None else replace_rules(learned, learned.rules_[:n_rules])
    _save_smaller(merge_rules(cut), learned, output, as_json)


@boomer.command()
@click.argument("model", metavar="MODEL")
@click.argument("data")
@click.option("-o", "--output", required=True, metavar="FILE", help="The model file to write (JSON).")
@click.option("--n-rules", type=click.IntRange(min=1), metavar="N", help="How many rules there may be.")
@click.option(
    "--n-conditions", type=click.IntRange(min=1), metavar="N", help="How many conditions, of all rules together."
)
@xml_option
@labels_option
@sep_option
@json_option
def distil(
    model: str,
    data: str,
    output: str,
    n_rules: int | None,
    n_conditions: int | None,
    xml: str | None,
    labels: Sequence[str],
    sep: str | None,
    as_json: bool,
) -> None:
    """Make the best small model of a saved MODEL and the DATA it was learned from.

    The rules that matter most are chosen, and their scores learned anew, all together. Give either --n-rules or
    --n-conditions.

    \b
    Examples:
      boomer distil model.json emotions -o small.json --n-conditions 100
      boomer distil model.json songs.csv -o small.json --n-rules 20
    """
    from pyboomer.cli.explore import read_data
    from pyboomer.editing.distilling import distil as make_small
    from pyboomer.loading import load_model

    if (n_rules is None) == (n_conditions is None):
        raise click.UsageError("give either --n-rules or --n-conditions")
    check_output(output, [model, *list_files(data, xml)])
    learned = load_model(model)
    X, y = read_data(learned, data, xml, labels, sep)
    if y is None:
        raise click.UsageError(f"{data}: no labels to learn from; name their columns by --labels")
    small = make_small(learned, X, y, n_rules=n_rules, n_conditions=n_conditions)
    _save_smaller(small, learned, output, as_json)


def _save_smaller(small: Any, learned: Any, output: str, as_json: bool) -> None:
    from pyboomer.cli.reports import format_count

    small.save(output)
    sizes = [(len(model.rules_), len(model.rules_.condition_features)) for model in (learned, small)]
    if as_json:
        before, after = (dict(zip(("rules", "conditions"), size, strict=True)) for size in sizes)
        print_json({"before": before, "after": after, "model": output})
    else:
        texts = [f"{format_count(rules, 'rule')} of {format_count(n, 'condition')}" for rules, n in sizes]
        click.echo(f"{texts[0]} have become {texts[1]}: {output}")
