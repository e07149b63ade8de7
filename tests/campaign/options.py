"""Options: what the command line trains is what the library fits, for every parameter, on the reloaded model."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from campaign.draw import choose
from campaign.files import command
from campaign.fits import assert_same, plain
from campaign.running import Plan, Tally, require
from pyboomer import BoomerClassifier, load_model
from pyboomer.cli.options import NOT_OPTIONS
from pyboomer.export.modelfile import SKIPPED
from pyboomer.parameters import PARAMETERS

VALUES: dict[str, tuple[Any, ...]] = {
    "loss": ("auto", "label-wise-logistic", "example-wise-logistic"),
    "head": ("multi", "single"),
    "n_rules": (1, 3, 8),
    "default_rule": ("minimum", "newton"),
    "learning_rate": ("auto", 0.1, 1.0, 0.37),
    "l1": (0, 0.5, 2.0),
    "l2": (0, 0.25, 4),
    "bootstrap": (True, False),
    "sampling": ("with-replacement", "without-replacement", "stratified-label-wise", "stratified-example-wise"),
    "max_samples": ("auto", None, 5, 0.5),
    "max_features": ("auto", "sqrt", "log2", None, 1, 0.5),
    "fixed_features": (None, ["tempo"], ["tempo", "size"]),
    "max_labels": ("auto", None, "round-robin", 1, 0.5),
    "max_conditions": (None, 1, 3),
    "min_coverage": (1, 3, 2.5),
    "search": ("bound", "exact"),
    "max_bins": ("auto", None, 255),
    "rules_per_round": ("auto", 1, 7, 32),
    "decode": ("loss", "hamming", "subset", "f1", "top-1", 0.4),
    "known_vectors": ("auto", True, False),
    "calibration": (None, "isotonic"),
    "class_weight": (None, "balanced"),
    "categorical_features": (None, ["size"]),
    "early_stopping": (False, True),
    "validation_fraction": (0.1, 0.4),
    "n_iter_no_change": (1, 100),
    "scoring": ("loss", "f1_micro"),
    "random_state": (0, 1, 2**32 - 1),
    "n_jobs": ("auto", None, 1, 2, -1),
    "device": ("cpu", "auto"),
}


def prepare(plan: Plan) -> None:  # noqa: ARG001
    """Every parameter that is an option has values to try."""
    warnings.simplefilter("ignore")
    names = {parameter.name for parameter in PARAMETERS} - set(NOT_OPTIONS)
    require(names == set(VALUES), f"parameters without values to try: {names ^ set(VALUES)}")


def run_case(case: int, rng: np.random.Generator, tally: Tally) -> None:
    """One parameter in turn with each of its values, and some others at random."""
    chosen = {"random_state": 1, "n_rules": 4}
    name = list(VALUES)[case % len(VALUES)]
    for each in (name, *rng.permutation(list(VALUES))[: int(rng.integers(4))]):
        chosen[str(each)] = choose(rng, *VALUES[str(each)])
    chosen[name] = VALUES[name][case // len(VALUES) % len(VALUES[name])]
    form = choose(rng, "csv", "parquet", "arff")
    tally.begin(f"--{name.replace('_', '-')}")
    tally.counts[f"from {form}"] += 1
    table, labels = draw_songs(rng)
    file = write_songs(table, labels, form)
    given = [] if form == "arff" else ["--labels", "is_*"]
    written = [text for each, value in chosen.items() for text in write_option(each, value)]
    message = command("train", file, *given, "-o", "model.json", *written)
    require(message == "", f"{written}: {message}")
    loaded = load_model("model.json")
    model = fit(table, labels, chosen, form)
    tally.counts["fits"] += 2
    compare(loaded, model, table, chosen)
    compare_predictions(model, table, file, rng)


def draw_songs(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Numbers, words and few numbers, some missing; two labels."""
    n = int(rng.integers(12, 40))
    tempo = rng.normal(size=n).round(2)
    table = pd.DataFrame(
        {"tempo": tempo, "style": rng.choice(["jazz", "rock", "a b"], n), "size": rng.integers(0, 4, n)}
    )
    labels = pd.DataFrame({"is_fast": (tempo > 0).astype(int), "is_rock": (table["style"] == "rock").astype(int)})
    labels[rng.random(labels.shape) < 0.1] = 1
    if rng.random() < 0.3:
        table.loc[1, "tempo"] = np.nan
    return table, labels


def write_songs(table: pd.DataFrame, labels: pd.DataFrame, form: str) -> str:
    both = pd.concat([table, labels], axis=1)
    if form == "csv":
        both.to_csv("songs.csv", index=False)
    elif form == "parquet":
        both.to_parquet("songs.parquet")
    else:
        kinds = ["numeric", "{'a b',jazz,rock}", "numeric", "{0,1}", "{0,1}"]
        lines = [
            "@relation 'songs: -C -2'",
            *(f"@attribute {n} {k}" for n, k in zip(both, kinds, strict=True)),
            "@data",
        ]
        for row in both.itertuples(index=False):
            lines.append(",".join("?" if x != x else f"'{x}'" if isinstance(x, str) else repr(x) for x in row))
        Path("songs.arff").write_text("\n".join(lines).replace("np.float64(", "").replace(")", ""))
    return f"songs.{form}"


def write_option(name: str, value: Any) -> list[str]:
    flag = "--" + name.replace("_", "-")
    if isinstance(VALUES[name][0], bool):  # a switch
        return [flag if value else f"--no-{flag[2:]}"]
    if name in ("fixed_features", "categorical_features"):
        return [flag, ",".join(value)] if value else []
    return [flag, "none" if value is None else str(value)]


def fit(table: pd.DataFrame, labels: pd.DataFrame, chosen: dict[str, Any], form: str) -> Any:
    """The same by the library; words are nominal, and what is chosen besides."""
    nominal = sorted({"style", *(chosen.get("categorical_features") or ())}, key=list(table).index)
    X = table.assign(style=pd.Categorical(table["style"], ["a b", "jazz", "rock"])) if form == "arff" else table
    return BoomerClassifier(**{**chosen, "categorical_features": nominal}).fit(X, labels)


def compare(loaded: Any, model: Any, table: pd.DataFrame, chosen: dict[str, Any]) -> None:
    """The rules, the parameters and all predictions."""
    assert_same(loaded.rules_, model.rules_)
    require(loaded.label_names_ == model.label_names_, f"{loaded.label_names_}, expected {model.label_names_}")
    for name, value in chosen.items():
        if name not in (*SKIPPED, "fixed_features"):
            require(getattr(loaded, name) == value, f"{name} is {getattr(loaded, name)!r}, expected {value!r}")
    np.testing.assert_array_equal(loaded.label_vectors_, model.label_vectors_, "label vectors")
    for function in ("decision_function", "predict_proba", "predict"):
        ours, theirs = (plain(getattr(each, function)(table)) for each in (loaded, model))
        require(np.array_equal(ours, theirs), f"{function}: {ours[0]}, expected {theirs[0]}, with {chosen}")


def compare_predictions(model: Any, table: pd.DataFrame, file: str, rng: np.random.Generator) -> None:
    """What `boomer predict` writes."""
    kind = choose(rng, "labels", "--proba", "--scores")
    message = command("predict", "model.json", file, "--json", "-o", "out.json", *([] if kind == "labels" else [kind]))
    require(message == "", message)
    found = json.loads(Path("out.json").read_text())["predictions"]
    functions = {"labels": model.predict, "--proba": model.predict_proba, "--scores": model.decision_function}
    np.testing.assert_allclose(found, plain(functions[kind](table)), rtol=1e-12)
