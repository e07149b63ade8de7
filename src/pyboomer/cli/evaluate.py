"""The command `boomer evaluate`: how well models predict, on a part of the data that they have not seen."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from pyboomer.cli.group import (
    boomer,
    json_option,
    labels_option,
    plain,
    print_json,
    quiet_option,
    shows_progress,
    xml_option,
)
from pyboomer.cli.inputs import (
    Input,
    fit_model,
    is_table_file,
    make_model,
    pick_features,
    pick_labels,
    read_input,
)
from pyboomer.cli.options import PREDICTING, LearnerCommand, list_given

if TYPE_CHECKING:
    import numpy as np


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
        examples = read_input(data, xml, labels)
        splits = _split(len(examples.Y), folds, test_size or 1 / 3, seed)
        results = list(_evaluate_splits(examples, splits, parameters, shows_progress(quiet)))
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
        used = plain(given if path else parameters)
        print_json({"data": examples.name, **protocol, "parameters": used, "metrics": metrics, "seconds": seconds})
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
    examples: Input,
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
) -> tuple[Input, list[dict[str, float]]]:
    from pyboomer.loading import load_model
    from pyboomer.metrics import evaluate as measure

    model = load_model(path)
    if not hasattr(model, "classes_"):
        raise click.UsageError(f"{path} predicts numbers, not labels; the metrics are those of labels")
    model.set_params(**parameters)
    if model._form.classes is not None:
        raise click.UsageError(f"{path} predicts classes, not labels; the metrics are those of labels")
    examples = read_input(data, xml, labels or (model.label_names_ if is_table_file(data) else ()))
    return examples, [measure(pick_labels(model, examples), model.predict(pick_features(model, examples)))]
