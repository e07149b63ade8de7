"""Is the joint logistic loss better than the example-wise one, each decoded for the measure, and what does it cost?

Ten-fold, KFold(10, shuffle=True, random_state=1), default settings; out-of-fold predictions pooled. Results are kept; a
later run computes what is missing.

    python benchmarks/joint.py --json joint.json --seeds 1 2 3 --write docs/results/joint.md
"""

import argparse
import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import REPEAT, describe_machine, describe_measures, format_table, publish
from sklearn.model_selection import KFold

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset
from pyboomer.losses import joint_logistic
from pyboomer.metrics import example_f1, hamming_loss, subset_zero_one_loss

DATA = ("emotions", "birds", "scene", "yeast", "medical", "slashdot", "enron", "llog")
LOSSES = {
    "example-wise": "example-wise-logistic",
    "joint, alpha 0.5": "joint-logistic",
    "joint, Newton's default rule": "joint-logistic",
    "joint, alpha 1": joint_logistic(1.0),
}
MEASURES = {"hamming": hamming_loss, "subset": subset_zero_one_loss, "f1": example_f1}


def measure(data: str, loss: str, seed: int, n_rules: int) -> dict[str, float]:
    """Each measure in percent, by its own decoding; the CPU seconds of learning, and the known vectors of a fold."""
    ds = load_dataset(data)
    Y = np.asarray(ds.Y)
    predicted = {decode: np.zeros(Y.shape, dtype=np.uint8) for decode in MEASURES}
    seconds = 0.0
    BoomerClassifier.paper(loss=LOSSES[loss], n_rules=5).fit(ds.X, Y)  # from now on, everything is compiled
    for train, test in KFold(10, shuffle=True, random_state=1).split(ds.X):
        default_rule = "newton" if "Newton" in loss else "minimum"
        model = BoomerClassifier.paper(
            loss=LOSSES[loss], n_rules=n_rules, learning_rate=0.1, default_rule=default_rule, random_state=seed
        )
        start = time.process_time()
        model.fit(ds.X[train], Y[train])
        seconds += time.process_time() - start
        for decode in MEASURES:
            predicted[decode][test] = model.predict(ds.X[test], decode=decode)
    found = {decode: 100 * float(function(Y, predicted[decode])) for decode, function in MEASURES.items()}
    return found | {"seconds": seconds, "vectors": float(len(model.label_vectors_))}


def main() -> None:
    """Print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--datasets", nargs="*", default=DATA)
    parser.add_argument("--losses", nargs="*", choices=LOSSES, default=[*LOSSES][:3])
    parser.add_argument("--seeds", nargs="*", type=int, default=[1])
    parser.add_argument("--n-rules", type=int, default=2000)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    kept: dict[str, Any] = json.loads(options.json.read_text()) if options.json.exists() else {}
    for data, seed, loss in product(options.datasets, options.seeds, options.losses):
        key = f"{data} {loss} {seed} {options.n_rules}"
        if key not in kept:
            kept[key] = measure(data, loss, seed, options.n_rules)
            options.json.write_text(json.dumps(kept))
            print(key, kept[key], flush=True)
    rows, won = [], {name: [] for name in MEASURES}
    for data in options.datasets:
        found = {
            loss: [kept[f"{data} {loss} {seed} {options.n_rules}"] for seed in options.seeds] for loss in options.losses
        }
        seconds = {loss: sum(row["seconds"] for row in rows) / len(rows) / 10 for loss, rows in found.items()}
        rows.append([data, f"{found[options.losses[-1]][0]['vectors']:.0f}", *map(describe_measures, found.values())])
        rows[-1].append(" / ".join(f"{s:.2f}" for s in seconds.values()))
        for name, wins in won.items():
            sign = -1 if name == "f1" else 1
            means = {loss: sign * np.mean([row[name] for row in found[loss]]) for loss in options.losses}
            wins.append(min(means, key=lambda loss: means[loss]))
    seeds = " ".join(map(str, options.seeds))
    lines = [
        "# The joint logistic loss",
        "",
        f"{REPEAT}`python benchmarks/joint.py --json FILE --seeds {seeds} --n-rules {options.n_rules}`. A cell shows "
        "Hamming loss / subset 0/1 loss / F1 in percent; each measure has its own decoding. Predictions are pooled "
        "over ten folds, `KFold(10, shuffle=True, random_state=1)`.",
        "",
        "; ".join(f"{key} {value}" for key, value in describe_machine().items()),
        "",
        format_table(["data", "label vectors", *options.losses, "CPU seconds per model, in this order"], rows),
        "",
        "On so many data sets, each is the best:",
        "",
        format_table(["", *won], [[loss, *(wins.count(loss) for wins in won.values())] for loss in options.losses]),
    ]
    publish(lines, options.write)


if __name__ == "__main__":
    main()
