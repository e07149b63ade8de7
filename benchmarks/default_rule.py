"""Is the default rule of least loss better than the paper's single step, for predictions and for those who read rules?

Two thirds of the examples are learned from, the others are predicted; the split and the learner have the same seed.

    python benchmarks/default_rule.py --write docs/results/default-rule.md
"""

import argparse
import time
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
from common import LOSSES, REPEAT, describe_machine, load_split, publish

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset
from pyboomer.explore.dependence import label_dependence
from pyboomer.metrics import hamming_loss, micro_f1, subset_zero_one_loss

DATASETS = ("emotions", "birds", "scene", "yeast", "enron", "medical", "llog", "slashdot")
TEXT = ("slashdot", "enron")
KINDS = ("newton", "minimum")
MEASURES = {"Hamming loss": hamming_loss, "subset 0/1 loss": subset_zero_one_loss, "micro F1": micro_f1}
CLEAR = 3.0  # standard errors by which a correlation of two labels differs from 0


def predict(name: str, kind: str, loss: str, head: str, n_rules: int, seed: int) -> tuple[Any, list[float]]:
    """Measures of a model on examples that it has not seen, in percent."""
    split = load_split(name, seed)
    model = BoomerClassifier.paper(
        loss=LOSSES[loss],
        head=head,
        n_rules=n_rules,
        learning_rate=0.1,
        default_rule=kind,
        categorical_features=list(split.nominal) or None,
        random_state=seed,
    ).fit(split.X, split.Y)
    predicted = model.predict(split.X_test)
    return model, [100 * measure(split.Y_test, predicted) for measure in MEASURES.values()]


def compare_predictions(loss: str, head: str, n_rules: int, options: argparse.Namespace) -> list[str]:
    """A table: a row per data set, the means over the seeds, and how often which is better."""
    lines = ["", f"## {n_rules} rules, {loss}, {head}-label heads", "", "| data | " + " | ".join(MEASURES) + " |"]
    lines.append("|---" * (len(MEASURES) + 1) + "|")
    figures = np.zeros((len(options.datasets), options.seeds, len(KINDS), len(MEASURES)))
    for d, name in enumerate(options.datasets):
        for seed in range(options.seeds):
            for i, kind in enumerate(KINDS):
                figures[d, seed, i] = predict(name, kind, loss, head, n_rules, seed)[1]
        cells = [" -> ".join(f"{figures[d, :, i, m].mean():.2f}" for i in (0, 1)) for m in range(len(MEASURES))]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    change = figures[:, :, 1] - figures[:, :, 0]
    error = change.mean(axis=1).std(axis=0) / np.sqrt(len(options.datasets))
    cells = [f"{change[..., m].mean():+.2f} ± {error[m]:.2f}" for m in range(len(MEASURES))]
    return [*lines, "| change, mean over the data sets | " + " | ".join(cells) + " |"]


def look_at(name: str, kind: str, n_rules: int, n_seeds: int) -> str:
    """How much of what is read off a model depends on the seed: a row of the table."""
    data = load_dataset(name)
    Y = np.asarray(data.Y)
    models = [
        BoomerClassifier.paper(n_rules=n_rules, learning_rate=0.1, default_rule=kind, random_state=seed).fit(data.X, Y)
        for seed in range(n_seeds)
    ]
    top = [set(np.argsort(-model.feature_importances_, kind="stable")[:5]) for model in models]
    overlap = np.mean([len(a & b) / 5 for a, b in combinations(top, 2)])
    j, k = np.triu_indices(Y.shape[1], 1)
    with np.errstate(invalid="ignore"):  # of a label that no example has
        correlation = np.nan_to_num(np.corrcoef(Y.T)[j, k])
    clear = np.abs(correlation) * np.sqrt(len(Y)) > CLEAR
    agree = [np.sign(label_dependence(model, data.X).matrix[j, k]) == np.sign(correlation) for model in models]
    first = np.mean([model.rules_.gain[1] / model.rules_.gain[1:].sum() for model in models])
    loss = BoomerClassifier.paper(n_rules=1, default_rule=kind).fit(data.X, Y).training_facts_["loss"]
    share = np.mean(agree, axis=0)[clear].mean()
    return f"| {name} | {kind} | {loss:.2f} | {first:.1%} | {overlap:.2f} | {share:.0%} of {clear.sum()} |"


def main() -> None:
    """Print the tables, and write them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n-rules", type=int, nargs="*", default=(300, 2000))
    parser.add_argument("--heads", nargs="*", default=("multi", "single"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--datasets", nargs="*", default=DATASETS)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--quick", action="store_true", help="small settings: does the script run?")
    options = parser.parse_args()
    n_read, seeds_read = 2000, 5
    if options.quick:
        options.n_rules, options.seeds, options.datasets, n_read, seeds_read = (20,), 1, ("emotions",), 20, 2
    start = time.perf_counter()
    lines = [
        "# The default rule",
        "",
        f"{REPEAT}`python benchmarks/default_rule.py`. Cells show `newton` -> `minimum` in percent: means over "
        f"{options.seeds} splits, two thirds to train and one third to test. The settings are those of "
        "`BoomerClassifier.paper()` at a learning rate of 0.1.",
        "",
        "; ".join(f"{key} {value}" for key, value in describe_machine().items()),
    ]
    for n_rules, head, loss in product(options.n_rules, options.heads, LOSSES):
        lines += compare_predictions(loss, head, n_rules, options)
    lines += [
        "",
        "## What people read off a model",
        "",
        f"{n_read} rules learn from all examples by the example-wise logistic loss, with {seeds_read} seeds.",
        "",
        "- **loss**: the training loss of the default rule alone",
        "- **rule 1**: the share of the first rule after it in the gain of all rules",
        "- **top five**: how many of their five most important features two seeds share",
        "- **signs**: how often the model's dependence of two labels has the sign of their correlation. Only "
        f"correlations of at least {CLEAR:g} standard errors count",
        "",
        "| data | default rule | loss | rule 1 | top five | signs |",
        "|---|---|---|---|---|---|",
    ]
    for name in TEXT:
        for kind in KINDS:
            lines.append(look_at(name, kind, n_read, seeds_read))
            print(lines[-1], flush=True)
    lines += ["", f"The run took {time.perf_counter() - start:.0f} seconds."]
    publish(lines, options.write)


if __name__ == "__main__":
    main()
