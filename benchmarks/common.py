"""What the benchmarks share: data, clocks, the official learner made comparable, tables, and a store of numbers."""

import argparse
import gc
import importlib.metadata
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset
from pyboomer.metrics import hamming_loss, subset_zero_one_loss

LOSSES = {"label-wise": "label-wise-logistic", "example-wise": "example-wise-logistic"}
OFFICIAL_LOSSES = {"label-wise": "logistic-decomposable", "example-wise": "logistic-non-decomposable"}
OFFICIAL_HEADS = {"single": "single", "multi": "complete"}
NETWORK_BLOCK = 10_000  # examples that are made at a time

# --- Running ----------------------------------------------------------------------------------------------------------


def make_parser(description: str | None, repeats: int) -> argparse.ArgumentParser:
    """The options that all benchmarks have."""
    parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    parser.add_argument("--repeats", type=int, default=repeats, help="measure this often, take the best (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="store every measured number, row by row")
    parser.add_argument(
        "--quick", action="store_true", help="small settings: does the script run? The numbers are void"
    )
    return parser


def is_installed(package: str) -> bool:
    """Whether a peer is there; if not, say so."""
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        print(f"*{package} is not installed: skipped.*\n")
        return False
    return True


def describe_machine(packages: Iterable[str] = ()) -> dict[str, str]:
    """What the numbers depend on: processor, Python and versions."""
    machine = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{_name_processor()}, {os.cpu_count()} cores",
        "python": f"{platform.python_version()}, {platform.system()}",
    }
    for package in ("pyboomer", "numba", "numpy", "scikit-learn", *packages):
        try:
            machine[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            machine[package] = getattr(sys.modules.get(package), "__version__", "not installed")
    return machine


def _name_processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


class Store:
    """Every measured number, written to a JSON file after each row, so that an interrupted run loses nothing."""

    def __init__(self, path: Path | None, machine: Mapping[str, str], settings: Mapping[str, Any]) -> None:
        self.path = path
        self.content: dict[str, Any] = {"machine": dict(machine), "settings": dict(settings), "rows": []}

    def add(self, **numbers: Any) -> None:
        self.content["rows"].append(numbers)
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            part = self.path.with_name(self.path.name + ".part")
            part.write_text(json.dumps(self.content, indent=1, default=_to_plain))
            part.replace(self.path)


def _to_plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def begin(title: str, args: argparse.Namespace, packages: Iterable[str] = ()) -> Store:
    """Hold the linear algebra to one thread, print the header, open the store."""
    threadpool_limits(1, user_api="blas")  # the official learner solves its systems with SciPy's LAPACK
    machine = describe_machine(packages)
    print(f"## {title}\n")
    print("; ".join(f"{name} {value}" for name, value in machine.items()) + "\n")
    if args.quick:
        print("**Quick settings: these numbers mean nothing.**\n")
    return Store(args.json, machine, {name: str(value) for name, value in vars(args).items()})


# --- Measuring --------------------------------------------------------------------------------------------------------


class Seconds(NamedTuple):
    """How long something took: on the wall, and on the processor."""

    wall: float
    cpu: float


def clock(call: Callable[[], Any]) -> tuple[Seconds, Any]:
    """Call once; the seconds and the result."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    return Seconds(time.perf_counter() - wall, time.process_time() - cpu), result


def race(calls: Mapping[str, Callable[[], Any]], repeats: int) -> tuple[dict[str, Seconds], dict[str, Any]]:
    """Call all in turn, several times, so that a busy machine disturbs all alike. Best seconds and last results."""
    best = {name: Seconds(math.inf, math.inf) for name in calls}
    results = {}
    for _ in range(repeats):
        for name, call in calls.items():
            seconds, results[name] = clock(call)
            best[name] = Seconds(*map(min, best[name], seconds))
    return best, results


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


# --- Data and learners ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """A data set in two parts, with the indices of its nominal features."""

    name: str
    X: Any
    Y: np.ndarray
    X_test: Any
    Y_test: np.ndarray
    nominal: list[int]

    def measure(self, labels: Any) -> dict[str, float]:
        """Test losses in percent."""
        return {
            "hamming": 100 * hamming_loss(self.Y_test, labels),
            "subset": 100 * subset_zero_one_loss(self.Y_test, labels),
        }


def load_split(name: str, seed: int) -> Split:
    """2/3 of the examples for training."""
    data = load_dataset(name)
    train, test = train_test_split(np.arange(data.X.shape[0]), train_size=2 / 3, random_state=seed)
    return Split(
        name, data.X[train], data.Y[train], data.X[test], data.Y[test], [int(i) for i in data.nominal_features]
    )


def make_network(n: int, seed: int, n_features: int = 50, n_labels: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Labels of a random network of two layers, from frequent to rare; half of the noise is shared by all labels.

    The network follows from the seed alone, not from n.
    """
    rng = np.random.default_rng(seed)
    n_hidden = 16
    hidden = rng.normal(size=(n_features, n_hidden)) * (rng.random((n_features, n_hidden)) < 0.15)
    output = rng.normal(size=(n_hidden, n_labels)) / np.sqrt(n_hidden)
    loads = rng.normal(size=(4, n_labels)) / 2
    shares = rng.permutation(np.linspace(0.05, 0.45, n_labels))
    X, Y = np.empty((n, n_features), dtype=np.float32), np.empty((n, n_labels), dtype=np.int8)
    edges = None
    for begin in range(0, n, NETWORK_BLOCK):
        size = min(NETWORK_BLOCK, n - begin)
        x = rng.standard_normal((size, n_features), dtype=np.float32)
        votes = np.tanh(x @ hidden) @ output
        votes += 0.2 * (rng.standard_normal((size, 4)) @ loads + rng.standard_normal((size, n_labels)))
        if edges is None:
            edges = np.quantile(votes, 1 - shares, axis=0).diagonal()
        X[begin : begin + size], Y[begin : begin + size] = x, votes > edges
    return X, Y


# rules of any length that score all labels, as the paper learns them, but in smaller steps
LONG: dict[str, Any] = {
    "n_rules": 2000,
    "learning_rate": 0.1,
    "max_features": "log2",
    "max_labels": None,
    "max_conditions": None,
}


def make_ours(loss: str, head: str, n_rules: int, *, nominal: Sequence[int] = (), **settings: Any) -> BoomerClassifier:
    """The settings of the comparisons: learning rate 0.3, l2 = 1, bootstrap, log2 features, any length, one thread."""
    defaults: dict[str, Any] = {**LONG, "learning_rate": 0.3, "n_rules": n_rules, "l2": 1.0, "random_state": 1}
    defaults |= {"n_jobs": 1, "max_samples": None}  # an earlier version has no others
    nominal = list(nominal) or None
    return BoomerClassifier(LOSSES[loss], head=head, categorical_features=nominal, **{**defaults, **settings})


def make_official(loss: str, head: str, n_rules: int, n_examples: int, *, binned: bool = False, seed: int = 1) -> Any:
    """mlrl-boomer with the same settings, and everything automatic that could differ pinned."""
    from mlrl.boosting import BoomerClassifier as OfficialClassifier

    return OfficialClassifier(
        loss=OFFICIAL_LOSSES[loss],
        head_type=OFFICIAL_HEADS[head],
        max_rules=n_rules,  # the default rule counted, as in pyboomer
        default_rule="true",
        shrinkage=0.3,
        l2_regularization_weight=1.0,
        # It draws 66 % of the examples unless told otherwise and accepts only shares below 1, but a least number too.
        instance_sampling=f"with-replacement{{min_samples={n_examples}}}",
        feature_sampling="without-replacement",  # floor(log2(L - 1) + 1) of them
        feature_binning="none",
        label_binning="auto" if binned else "none",
        holdout="none",
        global_pruning="none",
        rule_pruning="none",
        parallel_rule_refinement="false",
        parallel_statistic_update="false",
        parallel_prediction="false",
        random_state=seed,
    )


def for_our_fit(X: Any) -> Any:
    """X as pyboomer wants it for training: sparse data by columns."""
    return X.tocsc() if sp.issparse(X) else X


def for_official_fit(X: Any, form: str = "sparse") -> Any:
    """X as the official learner wants it for training: by columns, float32; `form` says how sparse data are given."""
    if sp.issparse(X) and form == "sparse":
        return X.tocsc().astype(np.float32)
    return np.asfortranarray(X.toarray() if sp.issparse(X) else X, dtype=np.float32)


def for_official_predict(X: Any, form: str = "sparse") -> Any:
    """X as the official learner wants it for prediction: by rows, float32."""
    if sp.issparse(X) and form == "sparse":
        return X.tocsr().astype(np.float32)
    return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=np.float32)


def fit_official(learner: Any, X: Any, Y: np.ndarray, nominal: Sequence[int]) -> Any:
    return learner.fit(X, Y, nominal_feature_indices=list(nominal))


def count_official_conditions(learner: Any) -> float:
    """Conditions per rule, the default rule left out."""
    from mlrl.common.cython.rule_model import EmptyBody

    counts = [0 if isinstance(rule.body, EmptyBody) else sum(1 for _ in rule.body) for rule in learner.model_]
    return float(np.mean(counts[1:])) if len(counts) > 1 else 0.0


# --- Showing ----------------------------------------------------------------------------------------------------------


def describe_measures(rows: Sequence[Mapping[str, float]]) -> str:
    """Hamming / subset 0/1 / F1, the means over seeds and, of several, their standard deviations."""
    cells = []
    for name, digits in (("hamming", 2), ("subset", 1), ("f1", 1)):
        values = [row[name] for row in rows]
        spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
        cells.append(f"{np.mean(values):.{digits}f}{spread}")
    return " / ".join(cells)


def format_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(columns) + " |", "|---" + "|---:" * (len(columns) - 1) + "|"]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(lines)


REPEAT = "Repeat it with "  # begins the paragraph on a page from which on a script writes


def publish(lines: Sequence[str], path: Path | None) -> None:
    """Print a page, and write it if a file is given. What a person wrote above the command to repeat it stays."""
    text = "\n".join(lines).rstrip("\n") + "\n"
    print(text)
    if path is None:
        return
    written = path.read_text(encoding="utf-8") if path.exists() else ""
    if REPEAT in written and REPEAT in text:
        text = written.partition(REPEAT)[0] + REPEAT + text.partition(REPEAT)[2]
        print(f"Does the summary at the top of {path} still hold? It was written by hand.")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def print_head(columns: Sequence[str]) -> None:
    print(format_table(columns, []), flush=True)


def print_row(*cells: Any) -> None:
    """A row of a table, shown at once."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)
