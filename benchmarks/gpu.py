"""How fast are rules learned on a GPU, and are they those of the CPU?

Parts: agree (rules of both engines, on generated data and on real data), rules (milliseconds per rule, and where they
go), fit (seconds of `fit` as a user calls it).
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import publish
from scaling import make_data as make_million_data

from pyboomer import BoomerClassifier
from pyboomer.columns.binned import BinnedColumns, bin_columns
from pyboomer.compiling.device import Device, Launch, find_device, list_kernels, load_kernel
from pyboomer.datasets import load_dataset
from pyboomer.engine.cpu.engines import BinnedEngine
from pyboomer.engine.cuda.engine import CudaEngine
from pyboomer.engine.cuda.sources import read_program
from pyboomer.engine.protocol import Settings, Task
from pyboomer.losses import find_loss

# name: examples, features, labels, values of a feature
SHAPES = {
    "31,000 x 120, 101 labels": (31_000, 120, 101, 255),
    "161,000 x 128, 81 labels": (161_000, 128, 81, 255),
    "1,000,000 x 50, 20 labels": (1_000_000, 50, 20, 255),
    "10,000,000 x 50, 20 labels": (10_000_000, 50, 20, 255),
}
PARTS = ("rules", "delicious", "cpu", "agree", "fit", "threshold")
LIKE_DEFAULT = {"max_samples": 20_000, "max_features": "sqrt", "max_conditions": 4}
LIKE_PAPER = {"max_features": "log2"}
BANDWIDTH = 4.3e12  # bytes a second that a copy on an H200 moves, read and written


class TimedRecording:
    """Launches one by one, each with the time it takes."""

    def __init__(self, device: "TimedDevice", launches: Sequence[Launch], argument: Any) -> None:
        self.device, self.launches, self.argument = device, launches, argument

    def run(self) -> None:
        """Launch all."""
        cupy, stream = self.device.cupy, self.device.stream
        for launch in self.launches:
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            start.record(stream)
            self.device.launch(launch, self.argument)
            end.record(stream)
            self.device.events.append((launch.kernel, start, end))


class TimedDevice(Device):
    """A device that measures each kernel; launches are not recorded, which takes longer."""

    def __init__(self, cupy: Any) -> None:
        super().__init__(cupy, read_program())
        self.events: list[tuple[str, Any, Any]] = []

    def record(self, launches: Sequence[Launch], argument: Any) -> Any:
        """Launches, to be timed."""
        super().record(launches, argument)
        return TimedRecording(self, launches, argument)

    def take_times(self) -> dict[str, float]:
        """Microseconds of each kernel since the last call."""
        self.wait()
        times: dict[str, float] = defaultdict(float)
        for kernel, start, end in self.events:
            times[kernel] += 1000 * self.cupy.cuda.get_elapsed_time(start, end)
        self.events.clear()
        return times


def make_data(n: int, n_features: int, n_labels: int, n_values: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Bin numbers and labels: topics are conjunctions of two features, a label is a noisy vote of three topics."""
    import cupy

    host, rng = np.random.default_rng(seed), cupy.random.RandomState(seed)
    codes = cupy.empty((n_features, n), dtype=cupy.uint8)
    for feature in range(n_features):
        codes[feature] = rng.randint(0, n_values, n).astype(cupy.uint8)
    topics = cupy.empty((16, n), dtype=cupy.float32)
    for topic in topics:
        first, second = host.choice(n_features, 2, replace=False)
        a, b = (np.clip(host.normal(0.5, 0.19, 2), 0.1, 0.9) * n_values).astype(int).tolist()
        topic[:] = (codes[int(first)] > a) & (codes[int(second)] <= b)
    Y = np.empty((n, n_labels), dtype=np.int8)
    for label, share in enumerate(host.permutation(0.3 * np.linspace(1, 0.1, n_labels) ** 2 + 0.01).tolist()):
        votes = rng.standard_normal(n).astype(cupy.float32) * 0.4
        for topic in host.choice(16, 3, replace=False).tolist():
            votes += topics[topic] * np.float32(host.uniform(0.5, 1.5))
        edge = cupy.sort(votes[: 1 << 18])[int((1 - share) * (min(n, 1 << 18) - 1))]
        Y[:, label] = cupy.where(votes > edge, 1, -1).astype(cupy.int8).get()
    found = codes.get()
    del codes, topics, votes
    cupy.get_default_memory_pool().free_all_blocks()
    return found, Y


def load_delicious() -> tuple[np.ndarray, np.ndarray]:
    """Bin numbers and labels of delicious."""
    X, Y = load_dense("delicious")
    return bin_columns(X, {}, 255).columns.codes, np.where(Y > 0, 1, -1).astype(np.int8)


def make_settings(loss: str, options: dict[str, Any], n_threads: int = 1) -> Settings:
    """How rules are learned."""
    return Settings(loss=find_loss(f"{loss}-wise-logistic"), learning_rate=0.1, seed=1, n_threads=n_threads, **options)


def make_task(codes: np.ndarray, Y: np.ndarray) -> Task:
    """What rules are learned from."""
    return Task(BinnedColumns(codes, np.zeros(len(codes), dtype=np.int8)), Y, np.ones(len(Y)))


def time_rules(name: str, codes: np.ndarray, Y: np.ndarray, n_rules: int, store: Any) -> None:
    """Milliseconds per rule, by CUDA graphs, and microseconds of each kernel."""
    import cupy

    task = make_task(codes, Y)
    for loss in ("label", "example"):
        for kind, options in ("default", LIKE_DEFAULT), ("paper", LIKE_PAPER):
            options = dict(options)
            if options.get("max_samples", 0) >= len(Y):
                del options["max_samples"]
            settings = make_settings(loss, options)
            row: dict[str, Any] = {"data": name, "loss": loss, "settings": kind}
            begin = time.perf_counter()
            engine = CudaEngine(task, settings)
            engine.device.wait()
            row["preparation"] = time.perf_counter() - begin
            engine.learn(10)
            begin = time.perf_counter()
            engine.learn(n_rules)
            row["ms"] = 1000 * (time.perf_counter() - begin) / n_rules
            learned = engine.take_rules()[2:]
            row["conditions"] = round(float(np.mean(np.concatenate([c.n_conditions for c in learned]))), 2)
            row["coverage"] = round(float(np.mean(np.concatenate([c.coverage for c in learned]))))
            row["loss_after"] = engine.training_loss()
            engine.close()
            engine = CudaEngine(task, settings, device=TimedDevice(cupy))
            engine.learn(10)
            engine.device.take_times()
            some = min(n_rules, 100)
            engine.learn(some)
            row["us"] = {kernel: round(t / some, 1) for kernel, t in sorted(engine.device.take_times().items())}
            row["us_sum"] = round(sum(row["us"].values()), 1)
            engine.close()
            cupy.get_default_memory_pool().free_all_blocks()
            store(row)


# --- The same rules ---------------------------------------------------------------------------------------------------

DATA = ("birds", "cal500", "emotions", "enron", "llog", "medical", "scene", "slashdot", "yeast", "bibtex", "delicious")


def compare_rules(name: str, seed: int, n_rules: int, loss: str) -> dict[str, Any]:
    """The rules of both, from the same bins, and what they miss on a third of the examples."""
    X, Y = load_dense(name)
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[len(X) // 3 :], order[: len(X) // 3]
    nominal = list(load_dataset(name).nominal_features)
    options: dict[str, Any] = {"loss": loss, "n_rules": n_rules, "max_bins": 255, "max_labels": None}
    options |= {"random_state": seed, "categorical_features": nominal}
    row: dict[str, Any] = {"agree": name, "seed": seed, "loss": loss, "rules": n_rules}
    models = {}
    for device in ("cpu", "cuda"):
        begin = time.perf_counter()
        model = BoomerClassifier(device=device, n_jobs=-1 if device == "cpu" else None, **options)
        models[device] = model.fit(X[train], Y[train])
        row[f"{device} seconds"] = round(time.perf_counter() - begin, 2)
        missed = model.predict(X[test]) != Y[test]
        row[f"{device} Hamming"] = round(float(missed.mean()), 6)
        row[f"{device} subset"] = round(float(missed.any(axis=1).mean()), 6)
    cpu, cuda = models["cpu"].rules_, models["cuda"].rules_
    same = 0  # how many rules, from the first on
    while same < n_rules and list_body(cpu, same) == list_body(cuda, same):
        same += 1
    end = cpu.head_offsets[same]
    row["same bodies"] = same
    scale = np.abs(cpu.head_scores[:end]).max()
    row["heads differ by"] = float(np.abs(cpu.head_scores[:end] - cuda.head_scores[:end]).max() / scale)
    return row


def list_body(rules: Any, t: int) -> list[Any]:
    """The conditions of a rule."""
    own = slice(rules.condition_offsets[t], rules.condition_offsets[t + 1])
    names = ("condition_features", "condition_operators", "condition_values")
    return [getattr(rules, name)[own].tolist() for name in names]


def load_dense(name: str) -> tuple[np.ndarray, np.ndarray]:
    """X and Y of a data set, as arrays; missing values and categories as their codes."""
    data = load_dataset(name)
    X, Y = (part.toarray() if hasattr(part, "toarray") else np.asarray(part) for part in (data.X, data.Y))
    return X.astype(np.float64), Y.astype(np.int8)


# --- Fit --------------------------------------------------------------------------------------------------------------


def find_threshold(n: int, n_labels: int, n_rules: int, store: Any) -> None:
    """The time of a fit and of predictions by the processor, with one thread and with all, and by the GPU."""
    X, Y = make_million_data(n, 50, n_labels)
    for device, n_jobs in ("cpu", 1), ("cpu", -1), ("cuda", 1):
        model = BoomerClassifier(n_rules=n_rules, max_labels=None, device=device, n_jobs=n_jobs, random_state=1)
        seconds, predicting = [], []
        for _ in range(2):  # the first time, something may have to be compiled or loaded
            begin = time.perf_counter()
            model.fit(X, Y)
            middle = time.perf_counter()
            model.decision_function(X)
            seconds.append(middle - begin)
            predicting.append(time.perf_counter() - middle)
        times = {"fit seconds": round(min(seconds), 4), "score seconds": round(min(predicting), 4)}
        store({"threshold": n, "labels": n_labels, "rules": n_rules, "device": device, "n_jobs": n_jobs} | times)


def time_fit(name: str, X: np.ndarray, Y: np.ndarray, counts: Sequence[int], store: Any) -> None:
    """Seconds of `fit`, and of scores."""
    for count in counts:
        for device in ("cuda",):
            begin = time.perf_counter()
            model = BoomerClassifier(n_rules=count, max_labels=None, device=device, random_state=1, n_jobs=-1)
            model.fit(X, Y)
            seconds = time.perf_counter() - begin
            store(
                {"fit": name, "device": device, "rules": count, "seconds": round(seconds, 3), "loss": model.loss_.name}
            )
    for device in ("cuda", "cpu"):
        model.set_params(device=device).decision_function(X[:5000])
        begin = time.perf_counter()
        model.decision_function(X)
        store({"scores": name, "device": device, "rules": counts[-1], "seconds": round(time.perf_counter() - begin, 3)})


# --- The report -------------------------------------------------------------------------------------------------------

SHOWN = (
    "sum_bins",
    "rate",
    "narrow",
    "sample",
    "cover",
    "sum_covered",
    "solve",
    "apply",
)  # kernels, by their beginnings


INTRODUCTION = """Repeat it with `python benchmarks/gpu.py rules delicious cpu agree fit threshold --json FILE`, then
the same with `--write docs/results/gpu.md`. The GPU is one {device}; the processor beside it has 16 cores.

- *Default*: samples of 20,000 examples, sqrt(L) features, at most 4 conditions.
- *Paper*: a bootstrap of all examples, log2(L) features, any number of conditions.
- Features have 255 bins. Heads cover all labels.

## Time per rule

Milliseconds per rule. The data are on the GPU already; CUDA graphs launch the kernels.
"""
ABOUT_THE_SIZE = """Seconds to learn 300 rules with the default settings from 50 features, and to score the training
examples. The processor uses one thread or sixteen, whichever is faster. Loading the kernels comes on top, once per
process (see above).
"""
ABOUT_THE_FLOOR = """The last column is the least time an update can take: it moves 25 bytes per covered example and
label, and a copy reaches {bandwidth} TB/s.

## `fit`, as a user calls it
"""
BESIDE_OTHERS = """## Beside others

SketchBoost of Py-Boost grows boosted trees on a GPU. Its authors publish 212 seconds of training on delicious, on a
V100. Both the learner and the card differ, so this tells you the order of magnitude, not which is faster.

An earlier prototype used one persistent kernel for many rules, with its own barriers between the steps. With the
example-wise loss and the paper's settings it took 0.41 ms per rule on 1,000,000 x 50 with 20 labels, and 0.92 ms on
delicious. It had no weights, no nominal features and no partial heads, and hardly anyone could read it. It was faster
mostly because its sums over bins had half as many numbers.
"""
ABOUT_AGREEMENT = """## The same rules

Both engines learn from two thirds of the examples, with 255 bins and three seeds. *Same* counts the rules with equal
conditions, from the first rule to the first difference, over all three runs. The heads of these rules are compared
relative to the largest score.
"""


def make_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """A table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows] + [""]


def report(rows: list[dict[str, Any]]) -> list[str]:
    """What was measured, as a page."""
    learned = [row for row in rows if "us" in row]
    device = next(row["device"] for row in rows if "device" in row)
    lines = ["# Learning on a GPU", "", INTRODUCTION.format(device=device)]
    names = list(dict.fromkeys(row["data"] for row in learned))
    kinds = [(loss, kind) for kind in ("default", "paper") for loss in ("label", "example")]
    found = {(row["data"], row["loss"], row["settings"]): row for row in learned}
    lines += make_table(
        ("data", *(f"{loss}-wise, {kind}" for loss, kind in kinds)),
        [(name, *(f"{found[name, *kind]['ms']:.2f}" for kind in kinds)) for name in names],
    )
    threads = {(row["data"], row["settings"], row["threads"]): row["ms"] for row in rows if "threads" in row}
    if threads:
        lines += ["The same on the processor, for the label-wise loss:", ""]
        sizes = [(name, kind) for name in names for kind in ("default", "paper") if (name, kind, 1) in threads]
        lines += make_table(
            ("data", "settings", "1 thread", "16 threads", "GPU"),
            [
                (*size, *(f"{threads[*size, n]:.1f}" for n in (1, 16)), f"{found[size[0], 'label', size[1]]['ms']:.2f}")
                for size in sizes
            ],
        )
    lines += [
        "## Where the time goes",
        "",
        "Microseconds per rule in each kernel, for the label-wise loss. Here, the kernels are launched one by one.",
        "",
    ]

    def add_up(row: dict[str, Any], kernel: str) -> float:
        return sum(
            us for name, us in row["us"].items() if name.startswith(kernel) and name[len(kernel) :][:1] in ("", "_")
        )

    chosen = [row for row in learned if row["loss"] == "label"]
    lines += make_table(
        ("data", "settings", "conditions", "covered", *SHOWN, "update / bandwidth"),
        [
            (
                row["data"],
                row["settings"],
                f"{row['conditions']:.1f}",
                f"{row['coverage']:,}",
                *(f"{add_up(row, kernel):.0f}" for kernel in SHOWN),
                f"{find_floor(row):.0f}",
            )
            for row in chosen
        ],
    )
    lines.append(ABOUT_THE_FLOOR.format(bandwidth=BANDWIDTH / 1e12))
    loads = [row["seconds to load the kernels"] for row in rows if "seconds to load the kernels" in row]
    lines += [
        f"Loading the kernels takes {max(loads)} s the first time, which compiles them, and {min(loads)} s later.",
        "",
    ]
    lines += make_table(
        ("data", "rules", "seconds"), [(row["fit"], row["rules"], row["seconds"]) for row in rows if "fit" in row]
    )
    lines += ["Scoring all training examples; the processor uses 16 threads:", ""]
    lines += make_table(
        ("data", "rules", "device", "seconds"),
        [(row["scores"], row["rules"], row["device"], row["seconds"]) for row in rows if "scores" in row],
    )
    lines += report_threshold([row for row in rows if "threshold" in row])
    lines.append(BESIDE_OTHERS)
    lines += report_agreement([row for row in rows if "agree" in row])
    return lines


def report_threshold(rows: list[dict[str, Any]]) -> list[str]:
    """Seconds on the processor, with one thread or with all, whichever is faster, and on the GPU."""
    found = {(row["threshold"], row["labels"], row["device"], row["n_jobs"]): row for row in rows}
    table = []
    for n, k in dict.fromkeys((n, k) for n, k, _, _ in found):
        if (n, k, "cuda", 1) in found:
            own = [row for key, row in found.items() if key[:3] == (n, k, "cpu")]
            gpu = found[n, k, "cuda", 1]
            seconds = [(min(row[what] for row in own), gpu[what]) for what in ("fit seconds", "score seconds")]
            table.append((f"{n:,}", k, *(f"{a:.3g} / {b:.3g}" for a, b in seconds)))
    head = ("examples", "labels", "fit: processor / GPU", "scores: processor / GPU")
    return ["## From which size on a GPU pays", "", ABOUT_THE_SIZE, *make_table(head, table)] if table else []


def find_floor(row: dict[str, Any]) -> float:
    """Microseconds that memory takes to update scores and statistics of what is covered."""
    n_labels = 983 if row["data"] == "delicious" else SHAPES[row["data"]][2]
    return float(row["coverage"] * n_labels * 25 / BANDWIDTH * 1e6)


def report_agreement(rows: list[dict[str, Any]]) -> list[str]:
    """How many rules are the same, and whether predictions are."""
    table = []
    for name, loss in dict.fromkeys((row["agree"], row["loss"]) for row in rows):
        own = [row for row in rows if (row["agree"], row["loss"]) == (name, loss)]

        def mean(key: str, own: list[dict[str, Any]] = own) -> str:
            return f"{100 * np.mean([row[key] for row in own]):.3f}"

        table.append(
            (
                name,
                loss.removesuffix("-logistic"),
                f"{sum(row['same bodies'] for row in own)} of {sum(row['rules'] for row in own)}",
                f"{max(row['heads differ by'] for row in own):.0e}",
                f"{mean('cpu Hamming')} / {mean('cuda Hamming')}",
                f"{mean('cpu subset')} / {mean('cuda subset')}",
            )
        )
    head = ("data", "loss", "same", "heads differ by", "Hamming loss, CPU / GPU (%)", "subset 0/1 loss, CPU / GPU (%)")
    return [ABOUT_AGREEMENT, *make_table(head, table)]


def main() -> None:
    """Measure, and print a line of JSON for each row; or write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--only", nargs="*", default=list(SHAPES))
    parser.add_argument("--data", nargs="*", default=list(DATA))
    parser.add_argument("--rules", type=int, default=300)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--write", type=Path, help="write the report of what is in the JSON file, and measure nothing")
    args = parser.parse_args()
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"there is no part {min(unknown)!r}")
    if args.write:
        publish(report([json.loads(line) for line in args.json.read_text().splitlines()]), args.write)
        return

    def store(row: dict[str, Any]) -> None:
        print(json.dumps(row), flush=True)
        if args.json:
            with args.json.open("a") as file:
                file.write(json.dumps(row) + "\n")

    begin = time.perf_counter()
    device = find_device(read_program())
    for kernel in list_kernels(read_program()):
        load_kernel(read_program(), kernel)
    store({"device": device.name, "seconds to load the kernels": round(time.perf_counter() - begin, 2)})
    if "agree" in args.parts:
        for name in args.data:
            for seed in (1, 2, 3):
                for loss in ("auto", "example-wise-logistic"):
                    store(compare_rules(name, seed, min(args.rules, 60) if name == "delicious" else args.rules, loss))
    if "delicious" in args.parts:
        time_rules("delicious", *load_delicious(), args.rules, store)
    if "rules" in args.parts:
        for name in args.only:
            codes, Y = make_data(*SHAPES[name])
            time_rules(name, codes, Y, args.rules, store)
            if "cpu" in args.parts:
                for n_threads in (1, 16):
                    for kind, options in ("default", LIKE_DEFAULT), ("paper", LIKE_PAPER):
                        engine = BinnedEngine(make_task(codes, Y), make_settings("label", options, n_threads))
                        engine.learn(2)
                        begin = time.perf_counter()
                        engine.learn(5)
                        ms = 200 * (time.perf_counter() - begin)
                        store({"data": name, "settings": kind, "loss": "label", "threads": n_threads, "ms": ms})
                        engine.close()
    if "threshold" in args.parts:
        for n in (3_000, 12_000, 30_000, 100_000, 300_000):
            for k in (5, 20, 100):
                find_threshold(n, k, args.rules, store)
    if "fit" in args.parts:
        time_fit("delicious", *load_dense("delicious"), (1000, 1000, 4000), store)
        time_fit("1,000,000 x 50, 20 labels", *make_million_data(1_000_000, 50, 20), (2, 1002), store)


if __name__ == "__main__":
    main()
