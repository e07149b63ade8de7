"""How good is a model of one condition per rule, and how long does it take, beside an explainable boosting machine?

`BoomerClassifier(max_conditions=1)` is an additive model of all labels together. Beside it stands InterpretML's
`ExplainableBoostingClassifier(interactions=0)`, one per label, on one 2/3 split, all with one thread. Hamming loss and
subset 0/1 loss are decoded for each measure: for subset 0/1, both predict the most probable of the label vectors of the
training data. Results are kept; a later run computes what is missing, and draws the picture anew.

    python benchmarks/additive.py --json additive.json --images docs/images --write docs/results/additive.md
"""

import argparse
import json
import os
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from common import REPEAT, Split, describe_machine, format_table, is_installed, load_split, publish

from pyboomer import BoomerClassifier
from pyboomer.metrics import hamming_loss, subset_zero_one_loss

DATA = ("emotions", "birds", "yeast", "scene")
OURS = {
    f"{name}, {conditions} condition{'s' * (conditions > 1)}": (loss, conditions)
    for name, loss in (("joint", "joint-logistic"), ("example-wise", "example-wise-logistic"))
    for conditions in (1, 2)
}
PEER = "EBM per label"
EVERYTHING = (*OURS, PEER)
PICTURE, LABELS = "emotions", ("quiet-still", "angry-aggresive")


def measure_ours(name: str, data: Split, n_rules: int) -> dict[str, Any]:
    """Losses and seconds of one of our models."""
    loss, conditions = OURS[name]
    settings = {"max_conditions": conditions, "categorical_features": data.nominal or None, "random_state": 1}
    BoomerClassifier(loss, n_rules=5, n_jobs=1, **settings).fit(data.X, data.Y)  # from now on, everything is compiled
    model = BoomerClassifier(loss, n_rules=n_rules, n_jobs=1, **settings)
    seconds = clock(lambda: model.fit(data.X, data.Y))
    by_measure = {measure: model.predict(data.X_test, decode=measure) for measure in ("hamming", "subset")}
    return seconds | judge(data, by_measure["hamming"], by_measure["subset"])


def measure_peer(data: Split, label: int) -> dict[str, Any]:
    """The log-odds of a label by an EBM of its own, its seconds and, for the picture, its shapes."""
    from interpret.glassbox import ExplainableBoostingClassifier

    kinds = ["nominal" if f in data.nominal else "continuous" for f in range(data.X.shape[1])]
    model = ExplainableBoostingClassifier(interactions=0, n_jobs=1, random_state=1, feature_types=kinds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = clock(lambda: model.fit(data.X, data.Y[:, label]))
        odds = model.decision_function(data.X_test).tolist()
    shapes = {}
    if data.name == PICTURE:
        named = zip(model.term_features_, model.term_scores_, strict=True)
        shapes = {str(f): [model.bins_[f][0].tolist(), scores.tolist()] for (f,), scores in named}
    return seconds | {"odds": odds, "shapes": shapes, "version": version("interpret-core")}


def sum_up_peer(data: Split, labels: list[dict[str, Any]]) -> dict[str, float]:
    """Losses and seconds of the EBMs of all labels."""
    odds = np.column_stack([found["odds"] for found in labels])
    vectors, counts = np.unique(data.Y, axis=0, return_counts=True)
    vectors = vectors[np.argsort(-counts, kind="stable")]
    most_probable = vectors[np.argmax(odds @ vectors.T.astype(float), axis=1)]
    seconds = {name: sum(found[name] for found in labels) for name in ("wall", "cpu")}
    load = float(np.mean([found["load"] for found in labels]))
    return seconds | {"load": load} | judge(data, (odds > 0).astype(int), most_probable)


def clock(call: Any) -> dict[str, Any]:
    """Seconds on the wall and on the processor, and how many processes wanted to run meanwhile."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    return seconds | {"load": os.getloadavg()[0]}


def judge(data: Split, hamming: Any, subset: Any) -> dict[str, float]:
    """Both losses in percent, each of the prediction that is made for it."""
    return {
        "hamming": 100 * float(hamming_loss(data.Y_test, hamming)),
        "subset": 100 * float(subset_zero_one_loss(data.Y_test, subset)),
    }


def format_found(found: dict[str, float]) -> str:
    """Hamming loss / subset 0/1 loss, seconds."""
    return f"{found['hamming']:.2f} / {found['subset']:.1f}, {found['cpu']:.2g} s"


def draw_beside(data: Split, kept: dict[str, Any], n_rules: int, path: Path) -> None:
    """The four most important features of each of two labels: our shape filled, that of the EBM as a line."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from pyboomer.datasets import load_dataset
    from pyboomer.explore.displays import ShapeDisplay

    names = load_dataset(data.name)
    model = BoomerClassifier("joint-logistic", n_rules=n_rules, max_conditions=1, random_state=1, n_jobs=1)
    model.fit(data.X, data.Y, feature_names=names.feature_names)
    shapes = model.shape_functions(data.X)
    labels = [names.label_names.index(name) for name in LABELS]
    figure = plt.figure(figsize=(10.5, 4.6), layout="constrained")
    for row, k in zip(figure.subplots(2, 4), labels, strict=True):
        theirs = kept[f"{data.name} EBM {k}"]["shapes"]
        shown = [
            (ax, shape, theirs[str(shape.steps.feature)]) for ax, shape in zip(row, shapes.rank(k)[:4], strict=True)
        ]
        largest = max(np.abs([*scores, *shape.values[:, k]]).max() for _, shape, (_, scores) in shown)
        for ax, shape, (cuts, scores) in shown:
            ShapeDisplay.from_shapes(shapes, feature=shape.name, label=k, ax=ax)
            for strip in list(ax.collections):
                strip.remove()
            low, high = ax.get_xlim()
            bounds = [min(low, *cuts), *cuts, max(high, *cuts)]
            ax.stairs(scores[1:-1], bounds, baseline=None, color="black", linewidth=1)
            ax.set(title="", ylabel="", xlim=(low, high), ylim=(-1.1 * largest, 1.1 * largest))
            ax.tick_params(labelsize="x-small")
            ax.xaxis.label.set_size("x-small")
        row[0].set_ylabel(names.label_names[k], fontsize="small")
    figure.suptitle(f"{n_rules} rules of one condition (filled), and the EBM of the label (line)", fontsize="medium")
    figure.savefig(path / "additive-beside.png", dpi=80)


def main() -> None:
    """Print the table, and write it and the picture if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--datasets", nargs="*", default=DATA)
    parser.add_argument("--n-rules", type=int, default=2000)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--images", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    kept: dict[str, Any] = json.loads(options.json.read_text()) if options.json.exists() else {}
    has_peer = is_installed("interpret-core")
    rows, loads = [], []
    for name in options.datasets:
        data = load_split(name, 1)

        def keep(key: str, measure: Any, *args: Any) -> dict[str, Any]:
            if key not in kept:
                kept[key] = measure(*args)
                options.json.write_text(json.dumps(kept))
                print(key, {name: value for name, value in kept[key].items() if isinstance(value, float)}, flush=True)
            return kept[key]

        n_rules = options.n_rules
        found = [keep(f"{name} {model} {n_rules}", measure_ours, model, data, n_rules) for model in OURS]
        if has_peer or f"{name} {PEER}" in kept:
            labels = [keep(f"{name} EBM {k}", measure_peer, data, k) for k in range(data.Y.shape[1])]
            found.append(keep(f"{name} {PEER}", sum_up_peer, data, labels))
        rows.append([name, *map(format_found, found), *["-"] * (len(OURS) + 1 - len(found))])
        loads += [one["load"] for one in found]
        if name == PICTURE and options.images and len(found) > len(OURS):
            draw_beside(data, kept, options.n_rules, options.images)
    versions = ", ".join(sorted({found["version"] for found in kept.values() if "version" in found})) or "no version"
    lines = [
        "# One condition per rule, beside explainable boosting machines",
        "",
        f"{REPEAT}`python benchmarks/additive.py --json FILE --n-rules {options.n_rules}`.",
        "",
        "- A cell shows Hamming loss / subset 0/1 loss in percent, then the CPU seconds of training on one thread.",
        "- Each measure has its own decoding. Two thirds of the examples train, in one split.",
        "- *EBM* is one `ExplainableBoostingClassifier(interactions=0)` per label, from interpret-core "
        f"{versions}. A dash: not measured.",
        f"- The load of the machine was {min(loads):.0f} to {max(loads):.0f} meanwhile. CPU seconds suffer less from "
        "that than wall-clock seconds.",
        "",
        "; ".join(f"{key} {value}" for key, value in describe_machine().items()),
        "",
        format_table(["data", *EVERYTHING], rows),
    ]
    publish(lines, options.write)


if __name__ == "__main__":
    main()
