"""Does the decoding for a measure beat the paper's, on the paper's data sets? And are calibrated probabilities better?

Ten-fold, out-of-fold predictions pooled; one example-wise and one label-wise model per fold, decoded in every way.

    python benchmarks/decodings.py --write docs/results/decodings.md
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import REPEAT, describe_machine, publish
from scipy.special import expit
from sklearn.model_selection import KFold

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset
from pyboomer.metrics import example_f1, hamming_loss, subset_zero_one_loss

DATASETS = ("emotions", "birds", "scene", "yeast", "enron", "medical", "llog", "slashdot")
LOSSES = ("example-wise-logistic", "label-wise-logistic")
DECODINGS = ("loss", "hamming", "subset", "f1")
CALIBRATED = ("calibrated subset", "calibrated f1")


def predict_folds(name: str, loss: str, n_rules: int, learning_rate: float) -> tuple[Any, dict[str, Any]]:
    """The labels of a data set and, out of fold, all predictions and probabilities."""
    ds = load_dataset(name)
    Y = np.asarray(ds.Y)
    results: dict[str, Any] = {decode: np.zeros(Y.shape, dtype=np.uint8) for decode in DECODINGS + CALIBRATED}
    results |= {kind: np.zeros(Y.shape) for kind in ("plain", "calibrated")}
    for fold, (train, test) in enumerate(KFold(10, shuffle=True, random_state=1).split(ds.X)):
        model = BoomerClassifier.paper(
            loss=loss,
            n_rules=n_rules,
            default_rule="minimum",
            learning_rate=learning_rate,
            calibration="isotonic",
            categorical_features=list(ds.nominal_features),
            random_state=fold,
        ).fit(ds.X[train], Y[train])
        results["plain"][test] = expit(model.decision_function(ds.X[test]))
        results["calibrated"][test] = model.predict_proba(ds.X[test])
        for decode in CALIBRATED:
            results[decode][test] = model.predict(ds.X[test], decode=decode.removeprefix("calibrated "))
        model.calibration_ = None  # the decodings by plain probabilities
        for decode in DECODINGS:
            results[decode][test] = model.predict(ds.X[test], decode=decode)
    return Y, results


def log_loss(Y: Any, P: Any) -> float:
    """The mean negative logarithm of the probability of what is true."""
    return float(-np.log(np.where(Y == 1, P, 1 - P)).mean())


def calibration_error(Y: Any, P: Any, n_bins: int = 15) -> float:
    """The mean distance, weighted by size, of relevance from probability in bins of equal width."""
    bins = np.minimum((P * n_bins).astype(int), n_bins - 1).ravel()
    return float(np.abs(np.bincount(bins, weights=(P - Y).ravel(), minlength=n_bins)).sum() / P.size)


def compare(Y: Any, other: Any, default: Any) -> str:
    """The difference in Hamming loss, in points, and its standard error over the examples."""
    difference = 100 * ((other != Y).mean(axis=1) - (default != Y).mean(axis=1))
    return f"{difference.mean():+.2f} ± {difference.std() / np.sqrt(len(Y)):.2f}"


def main() -> None:
    """Print the tables, and write them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n-rules", type=int, default=1000)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--datasets", nargs="*", default=DATASETS)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    start = time.perf_counter()
    lines = [
        "# Decodings and calibration",
        "",
        f"{REPEAT}`python benchmarks/decodings.py --n-rules {options.n_rules} --learning-rate "
        f"{options.learning_rate}`. Predictions are pooled over ten folds, `KFold(10, shuffle=True, random_state=1)`.",
        "",
        "; ".join(f"{key} {value}" for key, value in describe_machine().items()),
    ]
    wins = {(loss, what): 0 for loss in LOSSES for what in ("f1", "subset", *CALIBRATED, "calibrated")}
    for loss in LOSSES:
        lines += [
            "",
            f"## {loss}, multi-label heads",
            "",
            "A cell shows Hamming loss / subset 0/1 loss / F1 in percent.",
            "",
            "| data | "
            + " | ".join(DECODINGS + CALIBRATED)
            + " | Hamming, `hamming` - `loss` | log-loss, plain -> calibrated "
            "| calibration error in %, plain -> calibrated |",
            "|---" * (len(DECODINGS + CALIBRATED) + 4) + "|",
        ]
        for name in options.datasets:
            Y, results = predict_folds(name, loss, options.n_rules, options.learning_rate)
            figures = {
                decode: (hamming_loss(Y, h), subset_zero_one_loss(Y, h), example_f1(Y, h))
                for decode, h in results.items()
                if decode in DECODINGS + CALIBRATED
            }
            cells = [f"{100 * h:.2f} / {100 * s:.1f} / {100 * f:.1f}" for h, s, f in figures.values()]
            losses = [log_loss(Y, results[kind]) for kind in ("plain", "calibrated")]
            errors = [calibration_error(Y, results[kind]) for kind in ("plain", "calibrated")]
            cells.append(compare(Y, results["hamming"], results["loss"]))
            cells.append(f"{losses[0]:.4f} -> {losses[1]:.4f}")
            cells.append(f"{100 * errors[0]:.2f} -> {100 * errors[1]:.2f}")
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
            wins[loss, "f1"] += figures["f1"][2] > figures["loss"][2]
            wins[loss, "subset"] += figures["subset"][1] < figures["loss"][1]
            wins[loss, "calibrated f1"] += figures["calibrated f1"][2] > figures["loss"][2]
            wins[loss, "calibrated subset"] += figures["calibrated subset"][1] < figures["loss"][1]
            wins[loss, "calibrated"] += losses[1] < losses[0] and errors[1] < errors[0]
    lines += [
        "",
        "## How often it pays",
        "",
        f"On so many of {len(options.datasets)} data sets, it is better than the default decoding or than plain "
        "probabilities:",
        "",
    ]
    for (loss, what), count in wins.items():
        meaning = {
            "f1": '`decode="f1"` on F1',
            "subset": '`decode="subset"` on subset 0/1 loss',
            "calibrated f1": '`decode="f1"` on F1, calibrated',
            "calibrated subset": '`decode="subset"` on subset 0/1 loss, calibrated',
            "calibrated": "calibrated probabilities on both log-loss and calibration error",
        }[what]
        lines.append(f"- {loss}, {meaning}: {count}")
    lines += ["", f"The run took {time.perf_counter() - start:.0f} seconds."]
    publish(lines, options.write)


if __name__ == "__main__":
    main()
