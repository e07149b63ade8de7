"""The command `boomer evaluate`: how well models predict, on a part of the data that they have not seen."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from pyboomer.cli.group import (
    boomer,
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
    make_model,
    match_names,
    pick_features,
    pick_labels,
    read_input,
)
from pyboomer.cli.options import PREDICTING, LearnerCommand, list_given

if TYPE_CHECKING:
    import numpy as np

    from pyboomer.classifier import BoomerClassifier


@boomer.command(cls=LearnerCommand)
@click.argument("data")
@xml_option
@labels_option
@ignore_option
@ordinal_option
@sep_option
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
@click.option(
    "--metric",
    "wanted",
    multiple=True,
    metavar="NAMES",
    help="Measures to print, comma separated or repeated; patterns such as '*_f1' are allowed, '*' means all. By "
    "default those of predicted labels; others are of the order that scores give to labels: average_precision, "
    "coverage_error, ranking_loss, one_error, micro_auc, macro_auc.",
)
@click.option(
    "--zero-division",
    type=click.IntRange(0, 1),
    default=1,
    metavar="0|1",
    show_default=True,
    help="What counts where a measure divides nothing by nothing, such as the F1 of a label that is neither true nor "
    "predicted anywhere: 1, nothing is wrong with it, or 0, as scikit-learn has it.",
)
@json_option
@quiet_option
@click.pass_context
def evaluate(
    ctx: click.Context,
    data: str,
    xml: str | None,
    labels: Sequence[str],
    ignore: Sequence[str],
    ordinal: Sequence[str],
    folds: int | None,
    test_size: float | None,
    seed: int,
    path: str | None,
    sep: str | None,
    wanted: Sequence[str],
    zero_division: int,
    as_json: bool,
    quiet: bool,
    **parameters: Any,
) -> None:
    """Measure how well models predict DATA.

    Trains on a part of DATA and tests on the rest: once, or in turn with --folds; or tests a saved --model. Labels that
    are not known, empty cells, are not counted. Unless --random-state is given, it is the --seed.

    \b
    Examples:
      boomer evaluate digits7 --n-rules 300
      boomer evaluate songs.csv --labels 'mood_*' --folds 10 --loss label-wise-logistic
      boomer evaluate new.csv --model model.json --metric hamming_loss,micro_f1,average_precision
    """
    import numpy as np

    from pyboomer.cli.reports import format_count, format_metrics
    from pyboomer.metrics import METRICS, RANKINGS

    known = METRICS | RANKINGS
    names = match_names(wanted, list(known), "--metric", "measure") if wanted else list(METRICS)
    if folds and test_size:
        raise click.UsageError("--folds and --test-size exclude each other")
    start = time.perf_counter()
    given = list_given(ctx, parameters)
    measured: Sequence[dict[str, float]]
    if path:
        if folds or test_size or ordinal or set(given) - set(PREDICTING):
            raise click.UsageError("--model evaluates a model as it is; leave out the options that train one")
        examples, measured = _evaluate_saved(path, data, xml, labels, ignore, sep, given, names, zero_division)
        how, protocol = f"Evaluated {path}", dict[str, Any](model=path)
    else:
        parameters["random_state"] = given.get("random_state", seed)
        examples = read_input(
            data, xml, labels, ignore=ignore, ordinal=ordinal, sep=sep, nominal=parameters["categorical_features"]
        )
        splits = _split(len(examples.Y), folds, test_size or 1 / 3, seed)
        evaluated = _evaluate_splits(examples, splits, parameters, shows_progress(quiet), names, zero_division)
        counts, measured = zip(*evaluated, strict=True)
        train_size, held_out = (len(rows) for rows in splits[0])
        how = f"{folds}-fold cross validation" if folds else f"Trained on {train_size:,}, tested on {held_out:,}"
        how += f", {'up to ' * (min(counts) < max(counts))}{format_count(max(counts), 'rule')}"
        protocol = {"folds": folds, "test_size": None if folds else held_out / len(examples.Y), "seed": seed}
    seconds = time.perf_counter() - start
    metrics = {}
    for name in names:
        values = [own[name] for own in measured]
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
        metrics[name] = {"mean": float(np.mean(values)), "std": spread, "values": values}
    if as_json:
        used = plain(given if path else parameters)
        content = {"data": examples.name, **protocol, "parameters": used, "zero_division": zero_division}
        print_json({**content, "metrics": metrics, "seconds": seconds})
    else:
        click.echo(f"{examples}\n{how}, {seconds:.1f} s\n")
        click.echo(format_metrics(metrics, {name: metric.larger_is_better for name, metric in known.items()}))
        if any(known[name].may_divide_by_zero for name in names):
            other = "--zero-division 0 counts it as 0, as scikit-learn does" if zero_division else "as in scikit-learn"
            click.echo(
                f"\nWhere there is nothing to find and nothing was found, 0/0 counts as {zero_division}; {other}."
            )


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
    names: Sequence[str],
    zero_division: int,
) -> Iterator[tuple[int, dict[str, float]]]:
    """How many rules each model has, and its measures."""
    from tqdm import tqdm

    is_single = len(splits) == 1
    for train_rows, test_rows in tqdm(splits, desc="Folds", unit=" folds", disable=not progress or is_single):
        model = make_model(examples, parameters, progress and is_single)
        fit_model(model, examples.take(train_rows))
        test = examples.take(test_rows)
        yield len(model.rules_), _measure(model, test.X, test.Y, names, zero_division)


def _evaluate_saved(
    path: str,
    data: str,
    xml: str | None,
    labels: Sequence[str],
    ignore: Sequence[str],
    sep: str | None,
    parameters: Mapping[str, Any],
    names: Sequence[str],
    zero_division: int,
) -> tuple[Input, list[dict[str, float]]]:
    from pyboomer.datasets.tables import is_table_file
    from pyboomer.loading import load_model

    model = load_model(path)
    if not hasattr(model, "classes_"):
        raise click.UsageError(f"{path} predicts numbers, not labels; the metrics are those of labels")
    model.set_params(**parameters)
    if model.get_fitted().label_format.classes is not None:
        raise click.UsageError(f"{path} predicts classes, not labels; the metrics are those of labels")
    named = labels or (model.label_names_ if is_table_file(data) else ())
    examples = read_input(data, xml, named, ignore=ignore, sep=sep, model=model)
    Y, X = pick_labels(model, examples), pick_features(model, examples)
    return examples, [_measure(model, X, Y, names, zero_division)]


def _measure(
    model: BoomerClassifier, X: Any, Y: np.ndarray, names: Sequence[str], zero_division: int
) -> dict[str, float]:
    """The measures of these names; those of rankings go by probabilities if they are calibrated, or else by scores."""
    from pyboomer.metrics import METRICS, RANKINGS

    values = {}
    if own := [name for name in names if name in METRICS]:
        predicted = model.predict(X)
        for name in own:
            options = {"zero_division": zero_division} if METRICS[name].may_divide_by_zero else {}
            values[name] = METRICS[name](Y, predicted, **options)
    if own := [name for name in names if name in RANKINGS]:
        scores = model.decision_function(X) if model.calibration_ is None else model.predict_proba(X)
        values |= {name: RANKINGS[name](Y, scores) for name in own}
    return values
