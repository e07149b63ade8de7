"""Are predictions as good if several rules choose their conditions from the same statistics (rules_per_round)?

The default with rounds of at most 1, 8 and 32 rules: benchmark sets (the first of three folds) and labels of a random
network (`common.make_network`, 20,000 unseen examples), three seeds. Each measure is decoded for.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import REPEAT, describe_machine, format_table, make_network, make_parser, publish
from sklearn.model_selection import KFold

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset
from pyboomer.metrics import example_f1, hamming_loss, subset_zero_one_loss

SETS = (
    "emotions",
    "flags",
    "birds",
    "scene",
    "yeast",
    "medical",
    "genbase",
    "slashdot",
    "enron",
    "llog",
    "reuters-k500",
)
NETWORKS = (20_000, 50_000, 200_000)
ROUNDS = (1, 8, 32)
MEASURES = {"hamming": hamming_loss, "subset": subset_zero_one_loss, "f1": example_f1}
N_TEST = 20_000


def split(data: str | int, seed: int) -> tuple[Any, Any, Any, Any]:
    """Features and labels to learn from, and to test with."""
    if isinstance(data, int):
        X, Y = make_network(data + N_TEST, 3)
        return X[:data], Y[:data], X[data:], Y[data:]
    whole = load_dataset(data)
    train, test = next(iter(KFold(3, shuffle=True, random_state=seed).split(whole.Y)))
    return whole.X[train], whole.Y[train], whole.X[test], whole.Y[test]


def measure(data: str | int, rules_per_round: int, seed: int, settings: dict[str, Any]) -> list[float]:
    """Each measure in percent, and the seconds of the fit."""
    X, Y, X_test, Y_test = split(data, seed)
    begin = time.process_time()
    model = BoomerClassifier(rules_per_round=rules_per_round, random_state=seed, n_jobs=1, **settings).fit(X, Y)
    seconds = time.process_time() - begin
    return [*(100 * float(f(Y_test, model.set_params(decode=d).predict(X_test))) for d, f in MEASURES.items()), seconds]


def compare(data: str | int, seeds: range, settings: dict[str, Any]) -> Iterator[list[str]]:
    """The rows of a data set."""
    for rules_per_round in ROUNDS:
        found = np.array([measure(data, rules_per_round, seed, settings) for seed in seeds])
        cells = [f"{mean:.2f} ± {std:.2f}" for mean, std in zip(found.mean(axis=0), found.std(axis=0), strict=True)]
        yield [f"network, {data:,}" if isinstance(data, int) else data, str(rules_per_round), *cells[:-1]]


def main() -> None:
    """Print or publish the table."""
    parser = make_parser(__doc__, 1)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write a page of results")
    args = parser.parse_args()
    data: tuple[str | int, ...] = (*SETS, *NETWORKS)
    settings: dict[str, Any] = {}
    if args.quick:
        data, settings = (500,), {"n_rules": 60}
    rows = [row for name in data for row in compare(name, range(1, 2 if args.quick else 1 + args.seeds), settings)]
    columns = ("data", "rules per round", "Hamming loss %", "subset 0/1 loss %", "F1 %")
    machine = describe_machine()
    lines = [
        "# Rounds of rules",
        "",
        f"{REPEAT}`python benchmarks/rounds.py --write docs/results/rounds.md`. The default settings, with rounds of",
        "at most 1, 8 and 32 rules: the first of three folds of benchmark sets, and labels of a random network with",
        f"20,000 unseen examples. Means and standard deviations over {args.seeds} seeds. {machine['date']}.",
        "",
        format_table(columns, rows),
    ]
    publish(lines, args.write)


if __name__ == "__main__":
    main()
