"""How long does each system take to a given test loss?

Curves of Hamming and subset 0/1 loss on unseen examples against the seconds of fitting, on the wall and of all
processors, for pyboomer, XGBoost (a model per label, and trees with a vector in each leaf), LightGBM, CatBoost and
mlrl-boomer. Data are labels of a random network (`common.make_network`; "20000" is a size) or data sets by name. Each
system runs in a process of its own; compiling is done before. Seconds of a curve are those of a whole fit, divided by
rounds: a fit of one round is measured, too, and what it takes is there from the beginning. Every run is a line of
JSON; what is there already is not measured again. Systems that are given several rates have the best one shown.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import REPEAT, Split, describe_machine, format_table, load_split, make_network, publish

N_TEST = 50_000
TOLERANCE = 1.02
POINTS = 40  # of a curve: each takes a tenth longer than the one before
# of all rules that mlrl-boomer learns, each in a fit of its own
SHARES = (0.03, 0.04, 0.06, 0.08, 0.12, 0.17, 0.25, 0.35, 0.5, 0.7, 1)
SIZES = ("20000", "200000", "2000000")
REAL = ("scene", "yeast", "enron", "bibtex", "delicious")
PACKAGES = ("xgboost", "lightgbm", "catboost", "mlrl-boomer")
SYSTEMS = (
    "pyboomer",
    "pyboomer, label-wise loss",
    "XGBoost, a model per label",
    "XGBoost, vector leaves",
    "LightGBM, a model per label",
    "CatBoost MultiLogloss",
    "mlrl-boomer",
)
Stages = Iterator[tuple[int, Any]]  # rounds so far, and the labels predicted then
Fitted = tuple[int, Callable[[Sequence[int]], Stages]]  # how many rounds there are, and what they predict


# --- Systems: a fit of so many rounds, and predictions after some of them ---------------------------------------------


def fit_pyboomer(split: Split, rounds: int, rate: float, threads: int, setting: dict[str, Any]) -> Fitted:
    from pyboomer import BoomerClassifier

    own = {"n_rules": rounds or "auto", "n_jobs": threads, "random_state": 1, "decode": "hamming"}
    own |= {"learning_rate": rate} if rate else {}
    model = BoomerClassifier(**{**own, **setting}, categorical_features=split.nominal or None).fit(split.X, split.Y)
    return len(model.rules_), lambda at: zip(at, model.staged_predict(split.X_test, at), strict=True)


def fit_xgboost(split: Split, rounds: int, rate: float, threads: int, setting: dict[str, Any]) -> Fitted:
    import xgboost

    parameters = {"objective": "binary:logistic", "eta": rate, "nthread": threads, "seed": 1, **setting}
    train = xgboost.QuantileDMatrix(split.X, split.Y, nthread=threads)
    model = xgboost.train({"max_depth": 6, "tree_method": "hist", **parameters}, train, rounds)
    test = xgboost.DMatrix(split.X_test, nthread=threads)
    return rounds, lambda at: ((r, model.predict(test, iteration_range=(0, r)) > 0.5) for r in at)


def fit_lightgbm(split: Split, rounds: int, rate: float, threads: int, setting: dict[str, Any]) -> Fitted:
    import lightgbm

    parameters = {"objective": "binary", "learning_rate": rate, "num_threads": threads, "verbosity": -1, **setting}
    parameters = {"seed": 1, "feature_pre_filter": False, **parameters}
    data = lightgbm.Dataset(split.X, params=parameters, free_raw_data=False).construct()  # binned once for all labels
    models = []
    for label in split.Y.T:
        if label.min() == label.max():
            models.append(float(label[0]))
        else:
            models.append(lightgbm.train(parameters, data.set_label(label), rounds))

    def predict(model: Any, r: int) -> Any:
        if isinstance(model, float):
            return np.full(split.X_test.shape[0], model)
        return model.predict(split.X_test, num_iteration=r, num_threads=threads)

    return rounds, lambda at: ((r, np.column_stack([predict(model, r) for model in models]) > 0.5) for r in at)


def fit_catboost(split: Split, rounds: int, rate: float, threads: int, setting: dict[str, Any]) -> Fitted:
    from catboost import CatBoostClassifier

    model = CatBoostClassifier(
        iterations=rounds,
        learning_rate=rate,
        loss_function="MultiLogloss",
        thread_count=threads,
        random_seed=1,
        verbose=False,
        allow_writing_files=False,
        **setting,
    ).fit(split.X, split.Y)
    return rounds, lambda at: ((r, model.predict(split.X_test, ntree_end=r)) for r in at)


def fit_official(split: Split, rounds: int, rate: float, threads: int, setting: dict[str, Any]) -> Fitted:
    from common import for_official_fit, for_official_predict
    from mlrl.boosting import BoomerClassifier

    parallel = {"parallel_rule_refinement": "false", "parallel_statistic_update": "false"} if threads == 1 else {}
    X, X_test = for_official_fit(split.X), for_official_predict(split.X_test)

    def fit(n_rules: int) -> Any:
        learner = BoomerClassifier(
            loss="logistic-decomposable", max_rules=n_rules, shrinkage=rate, random_state=1, **parallel, **setting
        )
        return learner.fit(X, split.Y, nominal_feature_indices=list(split.nominal))

    model = fit(rounds)
    return rounds, lambda at: ((r, (model if r == rounds else fit(r)).predict(X_test)) for r in at)


FITS = dict(
    zip(
        SYSTEMS,
        (fit_pyboomer, fit_pyboomer, fit_xgboost, fit_xgboost, fit_lightgbm, fit_catboost, fit_official),
        strict=True,
    )
)
OPTIONS = {
    "pyboomer, label-wise loss": {"loss": "label-wise-logistic"},
    "XGBoost, vector leaves": {"multi_strategy": "multi_output_tree"},
}


# --- One run, in a process of its own ---------------------------------------------------------------------------------


def load_data(name: str, seed: int) -> Split:
    """A data set, or as many examples of a random network."""
    if not name.isdigit():
        return load_split(name, seed)
    n = int(name)
    X, Y = make_network(n + N_TEST, seed)
    return Split(name, X[:n], Y[:n], X[n:], Y[n:], [])


def read_clock() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def run_worker(task: dict[str, Any]) -> None:
    """Measure one system with one rate on one data set; print a line of JSON."""
    split = load_data(task["data"], task["seed"])
    fit, rounds, setting = FITS[task["system"]], task["rounds"], task["setting"]
    if task["system"].startswith("pyboomer"):
        fit(split, 3, task["rate"], task["threads"], setting)  # compiles
    seconds = []
    for count in (1, rounds):
        begin = read_clock()
        rounds, predict = fit(split, count, task["rate"], task["threads"], setting)
        seconds.append([after - before for before, after in zip(begin, read_clock(), strict=True)])
    at = sorted({max(1, round(rounds * share)) for share in np.geomspace(0.02, 1, POINTS)})
    if task["system"] == "mlrl-boomer":
        at = [rounds]  # there are no predictions by some of the rules
    curve = []
    for r, labels in predict(at):
        wall, cpu = (one + (all_ - one) * (r - 1) / max(rounds - 1, 1) for one, all_ in zip(*seconds, strict=True))
        curve.append({"rounds": r, "wall": wall, "cpu": cpu, **split.measure(np.asarray(labels).astype(np.int8))})
    print(json.dumps({"curve": curve}))


# --- All runs ---------------------------------------------------------------------------------------------------------


def list_tasks(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Smaller data first."""
    for data in args.data:
        for seed in args.seeds:
            for system in args.systems:
                ours = system.startswith("pyboomer")
                rates = [0.0] if ours else args.rates
                counts = {
                    "mlrl-boomer": [round(share * args.official_rules) for share in SHARES],
                }.get(system, [args.rules if ours else args.rounds])
                for rate in rates:
                    for rounds in counts:
                        setting = args.setting if system == "pyboomer" else OPTIONS.get(system, {})
                        yield {
                            "data": data,
                            "seed": seed,
                            "system": system,
                            "rate": rate,
                            "rounds": rounds,
                            "threads": args.threads,
                            "setting": setting,
                        }


def measure(task: dict[str, Any], limit: float) -> dict[str, Any]:
    """Run a worker; what it printed, or why it did not."""
    command = [sys.executable, __file__, "--worker", json.dumps(task)]
    threads = {name: str(task["threads"]) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, check=False, env={**os.environ, **threads}
        )
    except subprocess.TimeoutExpired:
        return {"error": f"more than {limit:.0f} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1][:200]}
    return json.loads(done.stdout.splitlines()[-1])


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# --- The answer -------------------------------------------------------------------------------------------------------


def find_seconds(curves: Sequence[Any], measure: str, goal: float, unit: str) -> float:
    """The least seconds to a loss; infinite if none gets there."""
    return min((p[unit] for curve in curves for p in curve if p[measure] <= goal), default=np.inf)


def report(rows: Sequence[dict[str, Any]], measure: str, unit: str, of: str = "") -> list[str]:
    """The table of one measure: a row for each data set, seconds for each system, to the best loss of some systems."""
    systems = [s for s in SYSTEMS if any(row["system"] == s for row in rows)]
    lines = []
    for data in dict.fromkeys(row["data"] for row in rows):
        own = [row for row in rows if row["data"] == data and "curve" in row]
        if not own:
            continue
        best = min((p[measure] for row in own if row["system"].startswith(of) for p in row["curve"]), default=np.nan)
        cells = []
        for system in systems:
            curves = [row["curve"] for row in own if row["system"] == system]
            seconds = find_seconds(curves, measure, TOLERANCE * best, unit)
            least = min((p[measure] for curve in curves for p in curve), default=np.nan)
            missed = next(
                (r["error"] for r in rows if r["data"] == data and r["system"] == system and "error" in r), "not run"
            )
            cells.append(f"{seconds:.3g}" if seconds < np.inf else f"({least:.2f})" if curves else f"({missed})")
        lines.append((data, f"{best:.2f}", *cells))
    return [format_table((f"data, {measure}", f"best loss{' of ' * bool(of)}{of}", *systems), lines), ""]


def draw(rows: Sequence[dict[str, Any]], data: str, unit: str, folder: Path) -> None:
    """A picture: loss against seconds, a line for each system at its best rate."""
    import matplotlib.pyplot as plt

    own = [row for row in rows if row["data"] == data and "curve" in row]
    if not own:
        return
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    for axis, loss in zip(axes, ("hamming", "subset"), strict=True):
        for i, system in enumerate(SYSTEMS):
            runs = [row for row in own if row["system"] == system]
            if not runs:
                continue
            best = min(runs, key=lambda row: min(p[loss] for p in row["curve"]))
            curve = sorted(
                (p for r in runs if (r["rate"], r["seed"]) == (best["rate"], best["seed"]) for p in r["curve"]),
                key=lambda p: p[unit],
            )
            axis.plot([p[unit] for p in curve], [p[loss] for p in curve], "o-", ms=3, label=system, color=f"C{i}")
        axis.set(xscale="log", xlabel=f"seconds of fit ({unit})", ylabel=f"{loss} loss, %")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    figure.suptitle(f"{data} examples of a random network, 50 features, 20 labels" if data.isdigit() else data)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"time-to-accuracy-{data}.png", dpi=90)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--results", type=Path, default=Path("time-to-accuracy.jsonl"), help="lines of JSON; what is there is kept"
    )
    parser.add_argument("--data", nargs="+", default=[*REAL, *SIZES], help="names of data sets, or sizes")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--rates", nargs="+", type=float, default=[0.1, 0.3], help="of the peers; the best one counts")
    parser.add_argument("--rounds", type=int, default=100, help="of boosted trees (%(default)s)")
    parser.add_argument("--rules", type=int, default=0, help="of pyboomer; 0 for as many as it chooses (%(default)s)")
    parser.add_argument("--official-rules", type=int, default=2000, help="of mlrl-boomer (%(default)s)")
    parser.add_argument(
        "--setting", type=json.loads, default={}, help="parameters of pyboomer, as JSON; {} for the defaults"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=float, default=3600, help="seconds for one run (%(default)s)")
    parser.add_argument(
        "--unit", choices=("wall", "cpu"), default="wall", help="what seconds are: cpu on a busy machine"
    )
    parser.add_argument("--pictures", type=Path, help="a folder for a picture of each data set")
    parser.add_argument("--write", type=Path, help="a file for the tables")
    parser.add_argument("--report", action="store_true", help="measure nothing, show what is there")
    parser.add_argument(
        "--quick", action="store_true", help="small settings: does the script run? The numbers are void"
    )
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        run_worker(args.worker)
        return
    if args.quick:
        args.data, args.rounds, args.rules, args.official_rules, args.rates = ["scene"], 5, 20, 20, [0.3]
    rows = read_rows(args.results)
    for task in () if args.report else list_tasks(args):
        if any(all(row.get(name) == value for name, value in task.items()) for row in rows):
            continue  # what failed or took too long stays so: delete its line to try again
        rows.append({**task, **measure(task, args.limit)})
        with args.results.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
        print(task["data"], task["system"], task["rate"], rows[-1].get("error") or rows[-1]["curve"][-1], flush=True)
    what = "seconds on the wall" if args.unit == "wall" else "seconds of all processors"
    lines = [
        "# Time to accuracy",
        "",
        f"{REPEAT}`python benchmarks/time_to_accuracy.py --results FILE --unit {args.unit}`.",
        "",
        f"- A cell shows the {what} that learning takes until the test loss is {TOLERANCE} times the best one.",
        "- Brackets show the best loss of a system that never gets there.",
        "- A number as a name is a size: a random network makes the labels of so many examples.",
        "",
        "; ".join(f"{k} {v}" for k, v in describe_machine(PACKAGES).items()),
        "",
        "## To the best loss of any system",
        "",
    ]
    for loss in ("hamming", "subset"):
        lines += report(rows, loss, args.unit)
    lines += ["## To the best loss of XGBoost with a model per label", ""]
    lines += report(rows, "hamming", args.unit, "XGBoost, a model per label")
    if args.pictures:
        for data in dict.fromkeys(row["data"] for row in rows):
            draw(rows, data, args.unit, args.pictures)
            lines += [f"![{data}](time-to-accuracy-{data}.png)"]
    publish(lines, args.write)


if __name__ == "__main__":
    main()
