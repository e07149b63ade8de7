"""What do heads of some labels cost, and what do they give? Loss, size and time on the paper's data sets.

Ten-fold, KFold(10, shuffle=True, random_state=1), default settings and decoding; the losses of each fold are compared
with those of multi-label heads, learned from the same draws. Results are kept; a later run computes what is missing.

    python benchmarks/partial_heads.py --json partial_heads.json --write docs/results/partial-heads.md
"""

import argparse
import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import REPEAT, describe_machine, publish
from sklearn.model_selection import KFold

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset
from pyboomer.metrics import example_f1, hamming_loss, subset_zero_one_loss

DATA = ("emotions", "birds", "scene", "yeast", "medical", "slashdot", "enron", "llog")
LOSSES = ("example-wise-logistic", "label-wise-logistic")
HEADS: tuple[Any, ...] = ("multi", "single", 2, 5, 0.1)
N_RULES = 500
MEASURES = {
    "hamming": hamming_loss,
    "subset": subset_zero_one_loss,
    "f1": lambda Y, labels: 1 - example_f1(Y, labels),
}


def measure_folds(data: str, loss: str, head: Any) -> dict[str, list[float]]:
    """For each fold the losses in percent, the scores of a head, the conditions of a body, and the CPU seconds."""
    ds = load_dataset(data)
    Y = np.asarray(ds.Y)
    found: dict[str, list[float]] = {name: [] for name in (*MEASURES, "scores", "conditions", "seconds")}
    for fold, (train, test) in enumerate(KFold(10, shuffle=True, random_state=1).split(ds.X)):
        model = BoomerClassifier.paper(
            loss=loss,
            head=head,
            n_rules=N_RULES,
            default_rule="minimum",
            learning_rate=0.1,
            categorical_features=list(ds.nominal_features),
            random_state=fold,
        )
        start = time.process_time()
        model.fit(ds.X[train], Y[train])
        found["seconds"].append(time.process_time() - start)
        labels = model.predict(ds.X[test])
        for name, function in MEASURES.items():
            found[name].append(100 * float(function(Y[test], labels)))
        found["scores"].append(len(model.rules_.head_scores) / len(model.rules_))
        found["conditions"].append(len(model.rules_.condition_values) / len(model.rules_))
    return found


def describe(own: dict[str, list[float]], multi: dict[str, list[float]]) -> list[str]:
    """The cells of a row; losses that differ from those of multi-label heads by two standard errors are marked."""
    cells = []
    for name in MEASURES:
        difference = np.array(own[name]) - multi[name]
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        sign = "" if abs(difference.mean()) <= 2 * error else " better" if difference.mean() < 0 else " worse"
        cells.append(f"{np.mean(own[name]):.2f} ({difference.mean():+.2f} ± {error:.2f}){sign}")
    return [*cells, *(f"{np.mean(own[name]):.1f}" for name in ("scores", "conditions")), f"{sum(own['seconds']):.1f}"]


def main() -> None:
    """Print the tables, and write them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    kept: dict[str, Any] = json.loads(options.json.read_text()) if options.json.exists() else {}
    for data, loss, head in product(DATA, LOSSES, HEADS):
        key = f"{data} {loss} {head}"
        if key not in kept:
            kept[key] = measure_folds(data, loss, head)
            options.json.write_text(json.dumps(kept))
            print(key, flush=True)
    lines = [
        "# Heads of some labels",
        "",
        f"{REPEAT}`python benchmarks/partial_heads.py --json FILE`.",
        "",
        f"- Models have {N_RULES} rules and the settings of `BoomerClassifier.paper()`, but a learning rate of 0.1 and "
        '`default_rule="minimum"`.',
        "- A head given as a whole number has so many labels. A head given as a fraction has the labels whose gain is "
        "at least that share of the largest.",
        "- Brackets show the difference to multi-label heads and its standard error over ten folds, "
        "`KFold(10, shuffle=True, random_state=1)`. Beyond two standard errors, the table says better or worse.",
        "",
        "; ".join(f"{name} {value}" for name, value in describe_machine().items()),
    ]
    for loss in LOSSES:
        lines += ["", f"## {loss}: means over the eight data sets", ""]
        lines += [
            "| head | Hamming | subset 0/1 | 1 - F1 | better / worse than `multi`, of 24 | scores per head | CPU s |"
        ]
        lines += ["|---|---|---|---|---|---|---|"]
        for head in HEADS:
            own = [kept[f"{data} {loss} {head}"] for data in DATA]
            multi = [kept[f"{data} {loss} multi"] for data in DATA]
            words = " ".join(" ".join(describe(a, b)) for a, b in zip(own, multi, strict=True))
            means = [f"{np.mean([np.mean(o[name]) for o in own]):.2f}" for name in MEASURES]
            scores = np.mean([np.mean(o["scores"]) for o in own])
            seconds = sum(sum(o["seconds"]) for o in own)
            counts = f"{words.count('better')} / {words.count('worse')}"
            lines.append(f"| {head} | " + " | ".join([*means, counts, f"{scores:.1f}", f"{seconds:.0f}"]) + " |")
        lines += ["", f"## {loss}", ""]
        lines += [
            "| data | head | Hamming | subset 0/1 | 1 - F1 | scores per head | conditions | CPU s |",
            "|---" * 8 + "|",
        ]
        for data, head in product(DATA, HEADS):
            cells = describe(kept[f"{data} {loss} {head}"], kept[f"{data} {loss} multi"])
            lines.append(f"| {data} | {head} | " + " | ".join(cells) + " |")
    publish(lines, options.write)


if __name__ == "__main__":
    main()
