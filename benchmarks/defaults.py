"""Which settings should be the default? Three measures, the length of rules and time, over the paper's data sets.

Three-fold, once for each seed, out-of-fold predictions pooled. Each setting is one model per fold, which is decoded for
each measure. Every result is kept; a later run computes what is missing.

    python benchmarks/defaults.py --json defaults.jsonl --write docs/results/defaults.md
"""

import argparse
import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import LONG, REPEAT, describe_machine, describe_measures, format_table, publish
from scipy.stats import rankdata
from sklearn.model_selection import KFold

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset
from pyboomer.metrics import example_f1, hamming_loss, subset_zero_one_loss

DATA = ("emotions", "birds", "scene", "yeast", "medical", "slashdot", "enron", "llog")
MEASURES = {"hamming": hamming_loss, "subset": subset_zero_one_loss, "f1": example_f1}
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "any number of conditions": {"max_conditions": None},
    "at most 6 conditions": {"max_conditions": 6},
    "at most 3 conditions": {"max_conditions": 3},
    "1 condition": {"max_conditions": 1},
    "log2 features": {"max_features": "log2"},
    "square root of the features": {"max_features": "sqrt"},
    "all labels in each rule": {"max_labels": None},
    "2000 rules at 0.1": {"n_rules": 2000, "learning_rate": 0.1},
    "4000 rules at 0.05": {"n_rules": 4000, "learning_rate": 0.05},
    "half of the examples": {"max_samples": 0.5},
    "joint, long rules": {"loss": "joint-logistic", **LONG},
    "example-wise, long rules": {"loss": "example-wise-logistic", **LONG},
    "label-wise, long rules": {"loss": "label-wise-logistic", **LONG},
}


def measure(data: str, setting: dict[str, Any], seed: int) -> dict[str, float]:
    """Each measure in percent, by its own decoding; conditions per rule; CPU seconds per model."""
    ds = load_dataset(data)
    Y = np.asarray(ds.Y)
    predicted = {decode: np.zeros(Y.shape, dtype=np.uint8) for decode in MEASURES}
    made = BoomerClassifier(**setting, categorical_features=list(ds.nominal_features) or None, random_state=seed)
    BoomerClassifier(**{**made.get_params(), "n_rules": 3}).fit(ds.X, Y)  # from now on, everything is compiled
    seconds, conditions = [], []
    for train, test in KFold(3, shuffle=True, random_state=seed).split(Y):
        start = time.process_time()
        made.fit(ds.X[train], Y[train])
        seconds.append(time.process_time() - start)
        conditions.append(len(made.rules_.condition_values) / (len(made.rules_) - 1))
        for decode in MEASURES:
            predicted[decode][test] = made.predict(ds.X[test], decode=decode)
    figures = {decode: 100 * float(function(Y, predicted[decode])) for decode, function in MEASURES.items()}
    return figures | {"conditions": float(np.mean(conditions)), "seconds": float(np.mean(seconds))}


def rank(means: dict[tuple[str, str], dict[str, float]], names: list[str]) -> dict[str, list[float]]:
    """For each setting its average rank among all, on each measure and on average."""
    table = []
    for name in MEASURES:
        values = np.array([[means[data, setting][name] for setting in names] for data in DATA])
        table.append(rankdata((-values if name == "f1" else values).round(3), axis=1).mean(axis=0))
    return {
        setting: [*ranks, float(np.mean(ranks))] for setting, ranks in zip(names, zip(*table, strict=True), strict=True)
    }


def main() -> None:
    """Print the tables, and write them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True, help="where results are kept, a line for each")
    parser.add_argument("--settings", nargs="*", choices=SETTINGS, default=[*SETTINGS])
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    lines = options.json.read_text().splitlines() if options.json.exists() else []
    kept = {tuple(row["key"]): row for row in map(json.loads, lines)}
    for seed, data, name in product(options.seeds, DATA, options.settings):
        if (name, data, seed) not in kept:
            row = {"key": [name, data, seed], **measure(data, SETTINGS[name], seed)}
            kept[name, data, seed] = row
            with options.json.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(row, flush=True)
    rows = {
        (data, name): [kept[name, data, seed] for seed in options.seeds]
        for data, name in product(DATA, options.settings)
    }
    means = {
        key: {m: float(np.mean([row[m] for row in own])) for m in own[0] if m != "key"} for key, own in rows.items()
    }
    ranks = rank(means, options.settings)
    order = sorted(options.settings, key=lambda name: ranks[name][-1])
    summary = []
    for name in order:
        sizes = [np.mean([means[data, name][what] for data in DATA]) for what in ("conditions", "seconds")]
        summary.append([name, *(f"{r:.2f}" for r in ranks[name]), f"{sizes[0]:.1f}", f"{sizes[1]:.2f}"])
    columns = ["setting", "Hamming", "subset 0/1", "F1", "mean rank", "conditions per rule", "CPU seconds per model"]
    text = [
        "# The default",
        "",
        f"{REPEAT}`python benchmarks/defaults.py --json FILE`. One model per fold is decoded for each measure, in "
        f"three folds with seeds {', '.join(map(str, options.seeds))}. What a row does not name is as in the default.",
        "",
        "; ".join(f"{key} {value}" for key, value in describe_machine().items()),
        "",
        format_table(columns, summary),
        "",
        "A cell shows Hamming loss / subset 0/1 loss / F1 in percent (means over the seeds, ± their standard "
        "deviation), then conditions per rule:",
        "",
        format_table(["data", *order], [[data, *(describe(rows[data, name]) for name in order)] for data in DATA]),
    ]
    publish(text, options.write)


def describe(rows: list[dict[str, float]]) -> str:
    """The measures with their spread, and the conditions per rule."""
    return f"{describe_measures(rows)}; {np.mean([row['conditions'] for row in rows]):.1f}"


if __name__ == "__main__":
    main()
