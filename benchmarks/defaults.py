"""Which configuration should be the default? Ranks on three measures over the paper's data sets, and other learners.

Ten-fold, out-of-fold predictions pooled. A configuration of pyboomer is one model per fold, decoded for each measure:
`decode="hamming"` for Hamming loss, `"subset"` for subset 0/1 loss, `"f1"` for F1. The others are scikit-learn's random
forest and XGBoost with early stopping, as `boomer reproduce table1` and `baselines.py` learned them: their predictions
are read from the results folders of these. Every result is kept; a later run computes only what is missing.

    boomer reproduce table1 --budget standard --results RESULTS
    python benchmarks/baselines.py --results BASELINES
    python benchmarks/defaults.py --results RESULTS --baselines BASELINES --keep KEPT --write docs/results/defaults.md
"""

import argparse
import time
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import describe_machine, publish
from scipy.stats import rankdata
from sklearn.model_selection import KFold

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset
from pyboomer.metrics import example_f1, hamming_loss, subset_zero_one_loss

DATA = ("emotions", "birds", "scene", "yeast", "medical", "slashdot", "enron", "llog")
MEASURES = {"hamming": hamming_loss, "subset": subset_zero_one_loss, "f1": example_f1}
STAGES = (300, 500, 1000, 2000)
OTHERS = ("random forest", *(f"XGBoost {kind}, early stopping" for kind in ("BR", "LP", "CC")))


class Learner(NamedTuple):
    """What a model is learned with; its rules are looked at after every stage, unless it is calibrated."""

    loss: str
    learning_rate: float
    calibration: str | None

    @property
    def stages(self) -> tuple[int, ...]:
        return STAGES if self.calibration is None else (1000,)

    def name(self, n_rules: int) -> str:
        calibrated = ", calibrated" if self.calibration else ""
        return f"{self.loss.removesuffix('-logistic')}, {n_rules} rules at {self.learning_rate}{calibrated}"


LEARNERS = (
    *(Learner(loss, 0.1, None) for loss in ("example-wise-logistic", "label-wise-logistic")),
    *(Learner(loss, 0.1, "isotonic") for loss in ("example-wise-logistic", "label-wise-logistic")),
)


def predict_folds(data: str, learner: Learner) -> dict[str, Any]:
    """The labels out of fold, by number of rules and measure, and the seconds of learning."""
    ds = load_dataset(data)
    Y = np.asarray(ds.Y)
    labels = {f"{n} {measure}": np.zeros(Y.shape, dtype=bool) for n, measure in product(learner.stages, MEASURES)}
    seconds = 0.0
    for fold, (train, test) in enumerate(KFold(10, shuffle=True, random_state=1).split(ds.X)):
        model = BoomerClassifier(
            learner.loss,
            n_rules=max(learner.stages),
            learning_rate=learner.learning_rate,
            calibration=learner.calibration,
            categorical_features=list(ds.nominal_features),
            random_state=fold,
        )
        start = time.process_time()
        model.fit(ds.X[train], Y[train])
        seconds += time.process_time() - start
        rules = model.rules_
        for n in learner.stages:
            model.rules_ = rules[:n]
            for measure in MEASURES:
                labels[f"{n} {measure}"][test] = model.predict(ds.X[test], decode=measure)
    return {**labels, "seconds": seconds}


def rate(data: str, predicted: dict[str, Any]) -> dict[str, float]:
    """The figures of each measure, in percent; one prediction for all measures is one under the name ""."""
    Y = np.asarray(load_dataset(data).Y)
    return {m: 100 * float(f(Y, predicted.get(m, predicted.get("")))) for m, f in MEASURES.items()}


def read_others(results: Path, baselines: Path | None) -> dict[tuple[str, str], dict[str, float]]:
    """The figures of the other learners by data set and name: of two runs, where there are two, the better one.

    One is that of Table 1, with the first setting it tries; the other that of `baselines.py`.
    """
    from pyboomer.experiments.paper.budgets import STANDARD, list_settings
    from pyboomer.experiments.store import Store
    from pyboomer.experiments.tasks import Task, split_folds

    store = Store(results)
    figures = {}
    for data, approach in product(DATA, OTHERS):
        setting = list_settings(STANDARD, approach)[0]
        labels = np.zeros(load_dataset(data).Y.shape, dtype=bool)
        for fold, (_, test) in enumerate(split_folds(len(labels), 10)):
            labels[test] = store.read(Task(data, approach, setting, fold).key).labels[0]
        name = approach.removesuffix(", early stopping")
        own = rate(data, {"": labels})
        path = None if baselines is None else baselines / f"{data} {name}.npz"
        if path is not None and path.exists():
            with np.load(path) as kept:
                second = rate(data, {"": kept["labels"]})
            own = {m: (max if m == "f1" else min)(own[m], second[m]) for m in MEASURES}
        figures[data, name] = own
    return figures


def rank(figures: dict[tuple[str, str], dict[str, float]], names: list[str]) -> dict[str, np.ndarray]:
    """For each name its average rank on each measure among all names."""
    ranks = []
    for measure in MEASURES:
        values = np.array([[figures[data, name][measure] for name in names] for data in DATA])
        ranks.append(rankdata(-values if measure == "f1" else values, axis=1).mean(axis=0))
    return dict(zip(names, np.array(ranks).T, strict=True))


def main() -> None:
    """Print the tables, and write them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, help="the results folder of `boomer reproduce table1`")
    parser.add_argument("--baselines", type=Path, help="the results folder of `baselines.py`")
    parser.add_argument("--keep", type=Path, required=True, help="where predictions are kept")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    figures: dict[tuple[str, str], dict[str, float]] = {}
    seconds: dict[str, float] = {}
    for learner, data in product(LEARNERS, DATA):
        path = options.keep / f"{data}, {learner.name(max(learner.stages))}.npz"
        if not path.exists():
            np.savez_compressed(path, **predict_folds(data, learner))
        with np.load(path) as kept:
            for n in learner.stages:
                figures[data, learner.name(n)] = rate(data, {m: kept[f"{n} {m}"] for m in MEASURES})
            seconds[learner.name(max(learner.stages))] = seconds.get(learner.name(max(learner.stages)), 0.0) + float(
                kept["seconds"]
            )
        print(path.name, flush=True)
    ours = [learner.name(n) for learner in LEARNERS for n in learner.stages]
    if options.results is None:
        return
    figures |= read_others(options.results, options.baselines)
    others = [name.removesuffix(", early stopping") for name in OTHERS]
    runs = [f"{data} {name}" for data, name in product(DATA, others)]
    missing = [run for run in runs if options.baselines is None or not (options.baselines / f"{run}.npz").exists()]
    lines = [
        "# The default configuration",
        "",
        "Made by `python benchmarks/defaults.py`, after `boomer reproduce table1` and `baselines.py`. Ten-"
        "fold, `KFold(10, shuffle=True, random_state=1)`, predictions pooled; one model of pyboomer per fold, "
        "decoded for each measure. The forest and XGBoost have, for each measure, the better of two runs: "
        "XGBoost samples as in the paper and learns at a rate of 0.3, or sees all features at 0.1; the forest "
        "has 100 or 300 trees. XGBoost stops early, by a tenth of the training fold. "
        f"There is no second run of: {', '.join(missing) or 'none'}.",
        "",
        "; ".join(f"{key} {value}" for key, value in describe_machine().items()),
        "",
        "## Each configuration against the four other learners: average ranks (1 to 5) over the eight data sets",
        "",
        "| configuration | Hamming | subset 0/1 | F1 | mean |",
        "|---|---|---|---|---|",
    ]
    means = {name: rank(figures, [name, *others])[name] for name in ours}
    for name in sorted(ours, key=lambda name: float(means[name].mean())):
        lines.append(f"| {name} | " + " | ".join(f"{r:.2f}" for r in (*means[name], means[name].mean())) + " |")
    lines += ["", "## All configurations and learners together: average ranks", ""]
    lines += ["| configuration | Hamming | subset 0/1 | F1 | mean |", "|---|---|---|---|---|"]
    together = rank(figures, [*ours, *others])
    for name in sorted(together, key=lambda name: float(together[name].mean())):
        lines.append(f"| {name} | " + " | ".join(f"{r:.2f}" for r in (*together[name], together[name].mean())) + " |")
    lines += ["", "## Figures: Hamming / subset 0/1 / F1 in percent", ""]
    shown = [*sorted(ours, key=lambda name: float(means[name].mean()))[:6], *others]
    lines += ["| data | " + " | ".join(shown) + " |", "|---" * (len(shown) + 1) + "|"]
    for data in DATA:
        cells = [figures[data, name] for name in shown]
        lines.append(
            f"| {data} | " + " | ".join(f"{c['hamming']:.2f} / {c['subset']:.1f} / {c['f1']:.1f}" for c in cells) + " |"
        )
    lines += ["", "CPU seconds of learning all eighty models: "]
    lines[-1] += "; ".join(f"{name} {value:.0f}" for name, value in seconds.items()) + "."
    publish(lines, options.write)


if __name__ == "__main__":
    main()
