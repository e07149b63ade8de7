"""Kills: INT, TERM or KILL at a random moment; each file is then the old one or the new one, and experiments go on.

A process that has everything loaded makes a copy of itself for each kill, so that many moments can be tried. As files
are written in no time, half of the kills wait until one is opened for writing.
"""

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from campaign.draw import choose
from campaign.files import command
from campaign.running import Plan, Tally, require
from pyboomer import load_model
from pyboomer.experiments.running import run_tasks
from pyboomer.experiments.store import Store
from pyboomer.experiments.tasks import Setting, Task

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
N_RULES = 1_500
TRAIN = ("train", "data.csv", "--labels", "y*", "--random-state", "1", "--quiet", "--n-rules")
TASKS = [Task("digits7", "l.w.-log. multi", Setting(5, 0.3, 1.0), fold, 10, (1, 5)) for fold in range(5)]

ACTIONS: dict[str, tuple[str, Callable[[], Any]]] = {  # the file that it writes, and how
    "train": ("model.json", lambda: command(*TRAIN, str(N_RULES), "-o", "out/model.json")),
    "save": ("model.json", lambda: LARGE[0].save("out/model.json")),
    "export ONNX": ("model.onnx", lambda: command("export", "large.json", "-o", "out/model.onnx")),
    "export Python": ("model.py", lambda: command("export", "large.json", "-o", "out/model.py")),
    "predict": ("out.csv", lambda: command("predict", "large.json", "data.csv", "-o", "out/out.csv")),
    "explore": ("page.html", lambda: command("explore", "large.json", "--data", "data.csv", "-o", "out/page.html")),
}
LARGE: list[Any] = []
OLD: dict[str, bytes] = {}
NEW: dict[str, bytes] = {}
SECONDS: dict[str, float] = {}
EXPECTED: dict[str, np.ndarray] = {}


def prepare(plan: Plan) -> None:  # noqa: ARG001
    """Do all actions once, to know what comes of them and how long they take."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(300, 6)).round(3), columns=[f"x{j}" for j in range(6)])
    table.assign(y1=(table["x0"] > 0).astype(int), y2=(table["x1"] + table["x2"] > 0.3).astype(int)).to_csv(
        "data.csv", index=False
    )
    Path("out").mkdir()
    require(command(*TRAIN, "3", "-o", "small.json") == "", "training failed")
    require(command(*TRAIN, str(N_RULES), "-o", "large.json") == "", "training failed")
    LARGE.append(load_model("large.json"))
    for name, (file, act) in ACTIONS.items():
        act()
        begin = time.perf_counter()
        act()
        SECONDS[name] = time.perf_counter() - begin
        NEW[name] = Path("out", file).read_bytes()
        OLD[name] = Path("small.json").read_bytes() if file == "model.json" else b"old"
    run_tasks(TASKS, Store(Path("expected")), n_jobs=1)
    begin = time.perf_counter()
    run_tasks(TASKS, Store(Path("timed")), n_jobs=1)
    SECONDS["experiments"] = time.perf_counter() - begin
    for task in TASKS:
        EXPECTED[task.key] = Store(Path("expected")).read(task.key).labels


def run_case(case: int, rng: np.random.Generator, tally: Tally) -> None:  # noqa: ARG001
    """Kill one action, and look at what is left."""
    if rng.random() < 0.1:
        check_experiments(rng, tally)
        return
    name, sent = choose(rng, *ACTIONS), choose(rng, *SIGNALS)
    tally.begin(f"{name}: {sent.name}")
    tally.counts["kills"] += 1
    file, act = ACTIONS[name]
    for path in Path("out").iterdir():
        path.unlink()
    target = Path("out", file)
    target.write_bytes(OLD[name])
    if rng.random() < 0.5:
        kill_during(act, sent, rng.uniform(0, 1.1) * SECONDS[name])
    else:
        kill_during(act, sent, 0.0, after_opening=rng.exponential(choose(rng, 1e-4, 1e-3)))
    require(target.exists(), "the file is gone")
    check_content(name, target, sent)
    others = [path for path in Path("out").iterdir() if path != target]
    if name == "train" and (kept := target.with_stem("model-interrupted")) in others:
        require(target.read_bytes() == OLD[name], "rules learned so far are kept twice")
        check_content(name, kept, sent)
        others.remove(kept)
    # Python itself dies of TERM at once; the commands see to it that they do not
    abrupt = sent is signal.SIGKILL or (sent is signal.SIGTERM and name == "save")
    require(abrupt or not others, f"{len(others)} files are left behind, such as {others[:1]}")


def kill_when_opened(sent: signal.Signals, seconds: float) -> None:
    """Kill this process a moment after it opens a file for writing, counted from the first one in `out`."""

    def notice(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and "out" in Path(str(arguments[0])).parts and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            threading.Timer(seconds, os.kill, (os.getpid(), sent)).start()

    sys.addaudithook(notice)


def kill_during(
    act: Callable[[], Any], sent: signal.Signals, seconds: float, after_opening: float | None = None
) -> int:
    """Run something in a copy of this process, and send it a signal after a while; how it ended."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        if after_opening is not None:
            kill_when_opened(sent, after_opening)
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    if after_opening is None:
        time.sleep(seconds)
        os.kill(child, sent)
    end = time.monotonic() + 30
    while (found := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError(f"still running 30 s after {sent.name}")
        time.sleep(0.002)
    return os.waitstatus_to_exitcode(found[1])


def check_content(name: str, target: Path, sent: signal.Signals) -> None:
    """The old content or the new one; an interrupted training may have kept the rules it had."""
    content = target.read_bytes()
    if content in (OLD[name], NEW[name]):
        return
    require(name == "train", f"{len(content)} bytes that are neither the old file nor the new one")
    rules, new = load_model(target).rules_, LARGE[0].rules_
    if len(rules) == len(new):
        require(rules == new, "other rules")  # only the seconds differ
        return
    require(sent is not signal.SIGKILL, f"{len(rules)} rules")
    require(rules == new[: len(rules)].renumber(), "rules learned so far are not the first of all")


def check_experiments(rng: np.random.Generator, tally: Tally) -> None:
    """Runs in one folder, killed twice, and one that is not: all outcomes are there, each as it must be."""
    tally.begin("experiments")
    store = Store(Path("tasks", str(rng.integers(2**60))))
    for _ in range(2):
        sent = choose(rng, *SIGNALS)
        tally.counts["kills"] += 1
        kill_during(lambda: run_tasks(TASKS, store, n_jobs=1), sent, rng.uniform(0, 0.7) * SECONDS["experiments"])
        for path in store.folder.rglob("*.npz"):
            store.read(str(path.relative_to(store.folder))[:-4])
    run_tasks(TASKS, store, n_jobs=1)
    for task in TASKS:
        np.testing.assert_array_equal(store.read(task.key).labels, EXPECTED[task.key])
    require(not list(store.folder.rglob("*.lock")), "locks are left behind")
