"""Does the cost of learning grow linearly with labels and examples, and does large data fit into memory?

Parts: labels (time per rule, K = 64 to 1024, example-wise loss), examples (N = 10,000 to 160,000, both losses), memory
(what `fit` adds for N = 4000, K = 200), delicious (983 labels, 100 rules), million (1,000,000 x 50 with bins, one
thread and two). Multi-label heads throughout. Figures of memory come from processes of their own.
"""

import argparse
import gc
import inspect
import json
import platform
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import Seconds, begin, clock, make_ours, make_parser, print_head, print_row, race

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset

PARTS = ("labels", "examples", "memory", "delicious", "million")
STATUS = Path("/proc/self/status")


def make_data(n: int, n_features: int, n_labels: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Topics are conjunctions of two features; a label is a noisy vote of three topics, from frequent to rare."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_features))
    n_topics = 16
    topics = np.empty((n, n_topics), dtype=np.float32)
    for topic in range(n_topics):
        first, second = rng.choice(n_features, 2, replace=False)
        topics[:, topic] = (X[:, first] > rng.normal(0, 0.5)) & (X[:, second] <= rng.normal(0, 0.5))
    shares = 0.3 * np.linspace(1, 0.1, n_labels) ** 2 + 0.01
    Y = np.empty((n, n_labels), dtype=np.int8)
    for label, share in enumerate(rng.permutation(shares)):
        votes = topics[:, rng.choice(n_topics, 3, replace=False)] @ rng.uniform(0.5, 1.5, 3).astype(np.float32)
        votes += rng.standard_normal(n, dtype=np.float32) * 0.4
        Y[:, label] = votes > np.quantile(votes, 1 - share)
    return X, Y


# --- Time -------------------------------------------------------------------------------------------------------------


def time_rules(data: dict[int, tuple[Any, Any]], loss: str, n_rules: int, repeats: int) -> dict[int, Seconds]:
    """Seconds per rule for each size, measured in turn."""
    calls = {}
    for size, (X, Y) in data.items():
        make_ours(loss, "multi", 2).fit(X, Y)  # compiles
        calls[str(size)] = partial(make_ours(loss, "multi", n_rules).fit, X, Y)
    best, _ = race(calls, repeats)
    return {size: Seconds(best[str(size)].wall / n_rules, best[str(size)].cpu / n_rules) for size in data}


def report_growth(title: str, kind: str, seconds: dict[int, Seconds], store: Any) -> None:
    first, last = min(seconds), max(seconds)
    print_head((title, "ms per rule", "CPU ms per rule", f"over {first}"))
    for size, each in seconds.items():
        store.add(kind=kind, title=title, size=size, seconds_per_rule=each._asdict())
        ratio = each.wall / seconds[first].wall
        print_row(size, f"{1000 * each.wall:.3f}", f"{1000 * each.cpu:.3f}", f"{ratio:.1f}")
    wall, cpu = (after / before for after, before in zip(seconds[last], seconds[first], strict=True))
    store.add(kind=f"{kind} ratio", title=title, wall=wall, cpu=cpu)
    print(
        f"\n{last} over {first}: {wall:.1f} times the time ({cpu:.1f} CPU); linear is {last // first}, target <= 20.\n"
    )


def report_labels(args: argparse.Namespace, store: Any) -> None:
    n, counts, n_rules = (500, (64, 128), 5) if args.quick else (5000, (64, 128, 256, 512, 1024), 30)
    data = {count: make_data(n, 50, count) for count in counts}
    seconds = time_rules(data, "example-wise", n_rules, args.repeats)
    report_growth(f"labels (N = {n}, L = 50, example-wise)", "labels", seconds, store)


def report_examples(args: argparse.Namespace, store: Any) -> None:
    counts, n_rules = ((1000, 2000), 5) if args.quick else ((10_000, 20_000, 40_000, 80_000, 160_000), 30)
    data = {count: make_data(count, 50, 20) for count in counts}
    for loss in ("label-wise", "example-wise"):
        seconds = time_rules(data, loss, n_rules, args.repeats)
        report_growth(f"examples (L = 50, K = 20, {loss})", "examples", seconds, store)


# --- Memory, in processes of their own --------------------------------------------------------------------------------


def read_memory() -> dict[str, float]:
    """Megabytes: resident now, and the peak. Linux's own counters, since getrusage's peak survives fork and exec."""
    if STATUS.exists():
        fields = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
        return {"now": int(fields["VmRSS"].split()[0]) / 1024, "peak": int(fields["VmHWM"].split()[0]) / 1024}
    import resource  # not on Windows

    unit = 2**20 if platform.system() == "Darwin" else 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return {"now": peak, "peak": peak}


def forget_peak() -> None:
    """The peak becomes what is resident now, where Linux allows it."""
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        print("the peak could not be reset: it includes loading the data", file=sys.stderr)


def run_worker(task: dict[str, Any]) -> None:
    """Fit once and print seconds and memory. A first fit of a few examples compiles, and is not counted."""
    nominal: list[int] = []
    if task["data"] == "synthetic":
        X, Y = make_data(task["n"], task["n_features"], task["n_labels"])
    else:
        data = load_dataset(task["data"])
        X, Y, nominal = data.X, data.Y, [int(i) for i in data.nominal_features]
        del data
    settings = task.get("settings", {})
    few = min(300, len(Y))
    make_ours("example-wise", "multi", 3, nominal=nominal, **settings).fit(X[:few], Y[:few])
    forget_peak()
    before = read_memory()
    learner = make_ours("example-wise", "multi", task["n_rules"], nominal=nominal, **settings)
    seconds, _ = clock(partial(learner.fit, X, Y))
    after = read_memory()
    added = after["peak"] - before["now"]
    print(json.dumps({**seconds._asdict(), "before": before["now"], "peak": after["peak"], "added": added}))


def measure_apart(task: dict[str, Any], repeats: int) -> dict[str, float]:
    """Of several fresh processes the shortest time and the most memory."""
    runs = []
    for _ in range(repeats):
        command = [sys.executable, __file__, "--worker", json.dumps(task)]
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        runs.append(json.loads(answer.splitlines()[-1]))
    best = {key: min(run[key] for run in runs) for key in ("wall", "cpu")}
    return best | {key: max(run[key] for run in runs) for key in ("before", "peak", "added")}


def report_apart(title: str, task: dict[str, Any], repeats: int, target: str, store: Any) -> dict[str, float]:
    measured = measure_apart(task, repeats)
    store.add(kind="apart", title=title, task=task, **measured)
    print_row(
        title,
        f"{measured['wall']:.2f}",
        f"{measured['cpu']:.2f}",
        f"{measured['before']:.0f}",
        f"{measured['peak']:.0f}",
        f"{measured['added']:.1f}",
        target,
    )
    return measured


APART_COLUMNS = ("example-wise multi", "fit seconds", "CPU seconds", "MB before", "peak MB", "MB added", "target")


def report_memory(args: argparse.Namespace, store: Any) -> None:
    n, n_rules = (400, 5) if args.quick else (4000, 100)
    task = {"data": "synthetic", "n": n, "n_features": 50, "n_labels": 200, "n_rules": n_rules}
    print_head(APART_COLUMNS)
    report_apart(f"N = {n}, L = 50, K = 200, {n_rules} rules", task, args.repeats, "<= 40 MB added", store)
    print()


def report_delicious(args: argparse.Namespace, store: Any) -> None:
    n_rules = 3 if args.quick else 100
    print_head(APART_COLUMNS)
    task = {"data": "delicious", "n_rules": n_rules}
    report_apart(f"delicious, {n_rules} rules", task, 1, "< 90 s, < 2 GB", store)
    print()


def report_million(args: argparse.Namespace, store: Any) -> None:
    if "max_bins" not in inspect.signature(BoomerClassifier).parameters:
        print("*BoomerClassifier has no max_bins: a million examples skipped.*\n")
        return
    n, n_rules = (10_000, 5) if args.quick else (1_000_000, 100)
    print_head(APART_COLUMNS)
    walls = {}
    for n_jobs, target in ((1, ""), (2, "< 90 s, < 3 GB")):
        settings = {"max_bins": "auto", "n_jobs": n_jobs}
        task = {"data": "synthetic", "n": n, "n_features": 50, "n_labels": 20, "n_rules": n_rules, "settings": settings}
        title = f"{n:,} x 50, K = 20, {n_rules} rules, max_bins auto, {n_jobs} thread(s)"
        walls[n_jobs] = report_apart(title, task, min(2, args.repeats), target, store)["wall"]
    store.add(kind="threads", ratio=walls[1] / walls[2])
    print(f"\nTwo threads are {walls[1] / walls[2]:.2f} times as fast as one; target >= 1.5.\n")


def main() -> None:
    parser = make_parser(__doc__, repeats=3)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        run_worker(args.worker)
        return
    store = begin("Scaling", args)
    if args.quick:
        args.repeats = 1
    reports = (report_labels, report_examples, report_memory, report_delicious, report_million)
    for part, report in zip(PARTS, reports, strict=True):
        if part in args.parts:
            print(f"### {part}\n")
            report(args, store)


if __name__ == "__main__":
    main()
