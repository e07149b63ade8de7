"""What does a cluster cost beside the threads of one machine, and how much faster are more workers?

By default: a million examples on one machine with two threads, and on a Dask cluster of two workers with a thread each;
two million on a cluster of one such worker, and of eight. Each measurement has processes of its own. Workers read
blocks from files when they are asked for, so that no process of a cluster ever has all of X. A row is stored as soon as
it is there, and not measured again. Other sizes and systems, such as XGBoost, are options.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import begin, is_installed, make_network, make_parser, print_head, print_row

BLOCK = 100_000
TARGETS = ((10**6, "threads-2", "cluster-2"), (2 * 10**6, "cluster-1", "cluster-8"))
COMPILES = 120  # rules that are learned before the clock runs; rounds have two rules by then


def make_data(folder: Path, n: int) -> None:
    """Write X and Y to files."""
    for name, values in zip("XY", make_network(n, seed=1), strict=True):
        np.save(folder / f"{name}-{n}.npy", values)


def load_block(folder: Path, name: str, n: int, number: int) -> np.ndarray:
    """Read a block."""
    return np.array(np.load(folder / f"{name}-{n}.npy", mmap_mode="r")[number * BLOCK : (number + 1) * BLOCK])


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
    """Let a worker count the messages it is answered by other workers, and their bytes."""
    import pickle

    from pyboomer.dask.team import Member

    ask_one = Member.ask_one
    Member.counted = [0, 0]

    async def counting(self: Any, address: str, *message: Any) -> Any:
        answer = await ask_one(self, address, *message)
        if address != self.worker.address:
            buffers: list[Any] = []
            size = len(pickle.dumps(answer, protocol=5, buffer_callback=buffers.append))
            Member.counted[0] += 1
            Member.counted[1] += size + sum(buffer.raw().nbytes for buffer in buffers)
        return answer

    Member.ask_one = counting


def tell_messages() -> tuple[int, int]:
    """What was counted."""
    from pyboomer.dask.team import Member

    return tuple(Member.counted)


def measure(system: str, n: int, n_rules: int, memory: str | None, folder: str) -> dict[str, Any]:
    """Fit twice, the second time for the clock; `rule` is the time of a rule in learning alone."""
    options = {"loss": "label-wise-logistic", "random_state": 1, "max_samples": min(20_000, n // 8)}
    name, count = system.split("-")
    if name == "threads":
        from pyboomer import BoomerClassifier
        from pyboomer.engine.cpu.engines import HostEngine

        X, Y = (np.load(Path(folder) / f"{name}-{n}.npy") for name in "XY")
        few = min(n, 2 * BLOCK)
        BoomerClassifier(n_rules=COMPILES, n_jobs=int(count), **options).fit(X[:few], Y[:few])
        spent = watch(HostEngine, lambda: {"all threads": time.process_time() / int(count)})
        begin = time.perf_counter()
        BoomerClassifier(n_rules=n_rules, n_jobs=int(count), **options).fit(X, Y)
        whole = time.perf_counter() - begin
        return {name: value / (n_rules - 1) for name, value in spent.items()} | {"fit": whole, "peak": read_peak()}

    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    load = dask.delayed(load_block, pure=True)

    def read(letter: str, width: int, dtype: Any) -> Any:
        counts = [min(BLOCK, n - begin) for begin in range(0, n, BLOCK)]
        blocks = [load(Path(folder), letter, n, number) for number in range(len(counts))]
        return da.concatenate(
            [da.from_delayed(b, (m, width), dtype=dtype) for b, m in zip(blocks, counts, strict=True)]
        )

    settings = {"memory_limit": memory} if memory else {}
    with (
        LocalCluster(n_workers=int(count), threads_per_worker=1, dashboard_address=":0", **settings) as cluster,
        Client(cluster) as client,
    ):
        X, Y = read("X", 50, np.float32), read("Y", 20, np.int8)
        found = (_measure_xgboost if name == "xgboost" else _measure_ours)(client, X, Y, n_rules, options)
        peaks = client.run(read_peak)
        return found | {"peak": max(peaks.values()), "client": read_peak()}


def _measure_ours(client: Any, X: Any, Y: Any, n_rules: int, options: dict[str, Any]) -> dict[str, Any]:
    from pyboomer.dask import DaskBoomerClassifier
    from pyboomer.dask.team import TeamEngine

    few = min(X.shape[0], 2 * BLOCK)
    DaskBoomerClassifier(n_rules=COMPILES, **options).fit(X[:few], Y[:few])
    client.run(count_messages)
    spent = watch(TeamEngine, lambda: client.run(time.process_time))
    begin = time.perf_counter()
    DaskBoomerClassifier(n_rules=n_rules, **options).fit(X, Y)
    whole = time.perf_counter() - begin
    counted = np.sum(list(client.run(tell_messages).values()), axis=0)
    return {name: value / (n_rules - 1) for name, value in spent.items()} | {
        "fit": whole,
        "messages": counted[0] / n_rules,
        "bytes": counted[1] / n_rules,
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
    pairs = [(n, system) for n, *systems in TARGETS for system in systems]
    if args.rows:
        pairs = [(n, system) for n in args.rows for system in args.systems]
    return [
        {"system": system, "n": n, "n_rules": max(2, args.rules // 100) if "xgboost" in system else args.rules}
        for _ in range(args.repeats)
        for n, system in pairs
    ]


def name_system(system: str) -> str:
    name, count = system.split("-")
    titles = {"threads": "one machine, {} threads", "cluster": "cluster, {} workers", "xgboost": "XGBoost, {} workers"}
    return titles[name].format(count).replace(" 1 workers", " one worker")


def main() -> None:
    parser = make_parser(__doc__, repeats=2)
    parser.add_argument("--rows", nargs="+", type=lambda text: int(float(text)), help="instead of the default")
    parser.add_argument(
        "--systems",
        nargs="+",
        default=["threads-2", "cluster-2"],
        metavar="NAME-COUNT",
        help="for --rows: also xgboost-2",
    )
    parser.add_argument("--rules", type=int, default=1000)
    parser.add_argument("--memory", help="memory limit of a worker, such as 1GB")
    parser.add_argument("--task", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.task:
        print(json.dumps(measure(**args.task)))
        return
    if args.quick:
        args.rows, args.rules, args.repeats = [200_000], 130, 1
    done: list[dict[str, Any]] = []
    if args.json and args.json.exists():
        done = json.loads(args.json.read_text())["rows"]
    store = begin("A cluster beside one machine", args, ("dask", "distributed", "xgboost"))
    for row in done:
        store.add(**row)
    if any("xgboost" in system for system in args.systems) and not is_installed("xgboost"):
        args.systems = [system for system in args.systems if "xgboost" not in system]
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
    best: dict[tuple[int, str], float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for task in list_tasks(args):
            task |= {"memory": args.memory}
            row = next((row for row in done if all(row.get(key) == value for key, value in task.items())), None)
            if row is None:
                if not (Path(folder) / f"X-{task['n']}.npy").exists():
                    make_data(Path(folder), task["n"])
                row = task | run_apart(task | {"folder": folder})
                store.add(**row)
            else:
                done.remove(row)
            key = row["n"], row["system"]
            best[key] = min(best.get(key, np.inf), row["rule"])
            print_row(
                f"{row['n']:,}",
                name_system(row["system"]),
                f"{1000 * row['rule']:.1f}",
                f"{1000 * row['cpu']:.1f}" if "cpu" in row else "",
                f"{row['fit']:.1f}",
                f"{row['peak']:.0f}",
                f"{row['client']:.0f}" if "client" in row else "",
                f"{row['messages']:.1f}" if "messages" in row else "",
                f"{row['bytes'] / 1000:.0f}" if "bytes" in row else "",
            )
    print()
    for n, one, other in TARGETS:
        if (n, one) in best and (n, other) in best:
            ratio = best[n, other] / best[n, one]
            print(f"{n:,} examples: {name_system(other)} take {ratio:.2f} times as long as {name_system(one)}.")


if __name__ == "__main__":
    main()
