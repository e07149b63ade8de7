"""What does a cluster cost beside the threads of one machine, and does data larger than a worker train?

For each number of examples: one machine with two threads, Dask clusters of one and of two workers with a thread each,
and XGBoost on a cluster of two. Blocks are made by the workers when they are asked for, so that no process ever has
all of X. Each measurement has processes of its own; a row is stored as soon as it is there, and not measured again.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import begin, is_installed, make_parser, print_head, print_row

L, K = 50, 20
BLOCK = 100_000
SYSTEMS = ("local", "cluster-1", "cluster-2", "xgboost-2")
TITLES = {
    "local": "one machine, two threads",
    "cluster-1": "cluster, one worker",
    "cluster-2": "cluster, two workers",
    "xgboost-2": "XGBoost, two workers",
}


def make_block(number: int, n: int) -> np.ndarray:
    """Features of a block, which depend on its number alone."""
    return np.random.default_rng([7, number]).normal(size=(n, L))


def make_labels(X: np.ndarray) -> np.ndarray:
    """Labels of a block: sums of a few features, some bent, above a limit."""
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(L, K)) * (rng.random((L, K)) < 0.1)
    return (X @ weights + 0.5 * np.sin(3 * X[:, :K]) > rng.uniform(0.3, 1.5, K)).astype(np.int8)


# --- One measurement, in a process of its own -------------------------------------------------------------------------


def read_peak() -> float:
    """The most memory that this process has had, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def watch(owner: Any, read_cpu: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Note how long an engine learns, on the wall and on the processor of each process; `cpu` is the busiest one."""
    spent = {"rule": 0.0, "cpu": 0.0}
    learn, busy = owner.learn, Counter[str]()

    def timed(self: Any, count: int) -> None:
        cpu, wall = read_cpu(), time.perf_counter()
        learn(self, count)
        spent["rule"] += time.perf_counter() - wall
        busy.update({name: now - cpu[name] for name, now in read_cpu().items()})
        spent["cpu"] = max(busy.values())

    owner.learn = timed
    return spent


def count_messages() -> None:
    """Let a worker count what it is answered, and how many bytes that is."""
    import pickle

    from pyboomer.dask.team import WorkerTeam

    ask = WorkerTeam.ask
    WorkerTeam.counted = [0, 0]

    def counting(self: Any, orders: Any) -> Callable[[], Any]:
        wait = ask(self, orders)

        def wait_and_count() -> Any:
            answers = wait()
            WorkerTeam.counted[0] += len(answers) - 1
            if WorkerTeam.counted[0] <= 40:  # to measure takes its time: the first are enough
                WorkerTeam.counted[1] += sum(len(pickle.dumps(answer)) for answer in answers[1:])
            return answers

        return wait_and_count

    WorkerTeam.ask = counting


def tell_messages() -> tuple[int, int]:
    """What was counted."""
    from pyboomer.dask.team import WorkerTeam

    return tuple(WorkerTeam.counted)


def measure(system: str, n: int, n_rules: int, max_samples: Any, memory: str | None) -> dict[str, Any]:
    """Fit twice, the second time for the clock; `seconds` of a rule are those of learning alone."""
    options = {"loss": "label-wise-logistic", "random_state": 1, "max_samples": max_samples}
    counts = [min(n, BLOCK)] * max(1, n // BLOCK)
    if system == "local":
        from pyboomer import BoomerClassifier
        from pyboomer.engine.cpu.engines import BinnedEngine

        X = np.empty((n, L))
        for number, size in enumerate(counts):
            X[number * BLOCK : number * BLOCK + size] = make_block(number, size)
        Y = np.concatenate([make_labels(X[i * BLOCK : i * BLOCK + size]) for i, size in enumerate(counts)])
        few = min(n, 20_001 * 8)
        BoomerClassifier(n_rules=3, n_jobs=2, **options).fit(X[:few], Y[:few])  # compiles
        spent = watch(BinnedEngine, lambda: {"both threads": time.process_time() / 2})
        begin = time.perf_counter()
        BoomerClassifier(n_rules=n_rules, n_jobs=2, **options).fit(X, Y)
        whole = time.perf_counter() - begin
        return {name: value / (n_rules - 1) for name, value in spent.items()} | {"fit": whole, "peak": read_peak()}

    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    n_workers = int(system[-1])
    settings = {"memory_limit": memory} if memory else {}
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", **settings) as cluster,
        Client(cluster) as client,
    ):
        blocks = [dask.delayed(make_block, pure=True)(number, size) for number, size in enumerate(counts)]
        X = da.concatenate([da.from_delayed(b, (m, L), dtype=np.float64) for b, m in zip(blocks, counts, strict=True)])
        labels = [dask.delayed(make_labels, pure=True)(block) for block in blocks]
        Y = da.concatenate([da.from_delayed(b, (m, K), dtype=np.int8) for b, m in zip(labels, counts, strict=True)])
        found = (_measure_xgboost if system.startswith("xgboost") else _measure_ours)(client, X, Y, n_rules, options)
        peaks = client.run(read_peak)
        return found | {"peak": max(peaks.values()), "client": read_peak()}


def _measure_ours(client: Any, X: Any, Y: Any, n_rules: int, options: dict[str, Any]) -> dict[str, Any]:
    from pyboomer.dask import DaskBoomerClassifier
    from pyboomer.dask.team import TeamEngine

    few = min(X.shape[0], 2 * BLOCK)
    DaskBoomerClassifier(n_rules=3, **options).fit(X[:few], Y[:few])  # compiles
    client.run(count_messages)
    spent = watch(TeamEngine, lambda: client.run(time.process_time))
    begin = time.perf_counter()
    DaskBoomerClassifier(n_rules=n_rules, **options).fit(X, Y)
    whole = time.perf_counter() - begin
    counted = max(client.run(tell_messages).values())
    size = counted[1] / max(min(counted[0], 40), 1)
    return {name: value / (n_rules - 1) for name, value in spent.items()} | {
        "fit": whole,
        "messages": counted[0] / n_rules,
        "bytes": size * counted[0] / n_rules,
    }


def _measure_xgboost(client: Any, X: Any, Y: Any, n_rounds: int, options: dict[str, Any]) -> dict[str, Any]:
    import xgboost.dask as xgb

    del options
    begin = time.perf_counter()
    data = xgb.DaskQuantileDMatrix(client, X, Y)
    loaded = time.perf_counter()
    xgb.train(client, {"objective": "binary:logistic", "tree_method": "hist", "max_depth": 4}, data, n_rounds)
    return {"rule": (time.perf_counter() - loaded) / n_rounds, "fit": time.perf_counter() - begin}


# --- All of them ------------------------------------------------------------------------------------------------------


def run_apart(task: dict[str, Any]) -> dict[str, Any]:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "--task", json.dumps(task)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(json.loads(answer.splitlines()[-1]))


def list_tasks(args: argparse.Namespace) -> list[dict[str, Any]]:
    tasks = []
    for n in args.rows:
        for system in args.systems:
            n_rules = max(5, min(args.rules, int(args.rules * 1e6 / n)))
            rounds = {"xgboost-2": max(2, n_rules // 10)}
            if not (system == "local" and n > args.largest_local):
                tasks.append({"system": system, "n": n, "n_rules": rounds.get(system, n_rules)})
    return tasks


def main() -> None:
    parser = make_parser(__doc__, repeats=1)
    parser.add_argument("--rows", nargs="+", type=lambda text: int(float(text)), default=[10**5, 10**6, 10**7])
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--rules", type=int, default=200, help="rules; fewer with more than a million examples")
    parser.add_argument(
        "--largest-local", type=float, default=10**6, help="examples that one machine can hold as float64"
    )
    parser.add_argument("--max-samples", default="20000", help="of examples, for each rule: a number, or none for all")
    parser.add_argument("--memory", help="memory limit of a worker, such as 1GB")
    parser.add_argument("--task", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args()
    max_samples = None if args.max_samples == "none" else int(args.max_samples)
    if args.task:
        print(json.dumps(measure(**args.task)))
        return
    if args.quick:
        args.rows, args.rules = [200_000], 10
    done: list[dict[str, Any]] = []
    if args.json and args.json.exists():
        done = json.loads(args.json.read_text())["rows"]
    store = begin("A cluster beside one machine", args, ("dask", "distributed", "xgboost"))
    for row in done:
        store.add(**row)
    if not is_installed("xgboost"):
        args.systems = [system for system in args.systems if not system.startswith("xgboost")]
    print_head(
        (
            "examples",
            "",
            "ms per rule (or round)",
            "ms of the busiest processor",
            "fit, s",
            "peak MB of a worker",
            "MB of the client",
            "messages per rule",
            "KB per rule",
        )
    )
    for task in list_tasks(args):
        task |= {"max_samples": max_samples, "memory": args.memory}
        row = next((row for row in done if all(row.get(key) == value for key, value in task.items())), None)
        if row is None:
            row = task | run_apart(task)
            store.add(**row)
        print_row(
            f"{row['n']:,}",
            TITLES[row["system"]],
            f"{1000 * row['rule']:.1f}",
            f"{1000 * row['cpu']:.1f}" if "cpu" in row else "",
            f"{row['fit']:.1f}",
            f"{row['peak']:.0f}",
            f"{row['client']:.0f}" if "client" in row else "",
            f"{row['messages']:.1f}" if "messages" in row else "",
            f"{row['bytes'] / 1000:.0f}" if "bytes" in row else "",
        )


if __name__ == "__main__":
    main()
