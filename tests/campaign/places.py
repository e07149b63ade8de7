"""Places: caches that are cold, shared, damaged or read-only; full disks; no HOME; many threads; a long life.

Each case is a scene of its own: commands in processes of their own, in a folder of their own.
"""

import ctypes
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from campaign.draw import choose
from campaign.running import Plan, Tally, require
from pyboomer import BoomerClassifier, load_model
from pyboomer.experiments.running import run_tasks
from pyboomer.experiments.store import Outcome, Store
from pyboomer.experiments.tasks import Setting, Task

PR_CAPBSET_DROP, DAC_OVERRIDE, DAC_READ_SEARCH = 24, 1, 2  # of Linux: what root may do beyond permissions
FIT = """
import numpy as np
from pyboomer import BoomerClassifier
rng = np.random.default_rng(1)
X = rng.normal(size=(40, 4)).round(2)
Y = (X[:, :3] > 0.2).astype(int)
model = BoomerClassifier(n_rules=20, random_state=1).fit(X, Y)
print(model.rules_.to_dict()["condition_values"], model.decision_function(X).tolist())
"""
EXPECTED: list[str] = []
MEGABYTES = 25  # by which a process may grow in thousands of fits


def prepare(plan: Plan) -> None:  # noqa: ARG001
    """Know what a fit must give; this process has a warm cache."""
    warnings.simplefilter("ignore")
    done = start().communicate(timeout=600)
    EXPECTED.append(digest(done[0]))
    require(len(done[0]) > 100, done[1])


def run_case(case: int, rng: np.random.Generator, tally: Tally) -> None:
    """One scene in turn, in an empty folder."""
    name = list(SCENES)[case % len(SCENES)]
    tally.begin(name)
    folder = Path(f"scene-{case}").absolute()
    folder.mkdir()
    try:
        SCENES[name](folder, rng, tally)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def start(script: str = FIT, limits: Callable[[], None] | None = None, **environment: str | None) -> Any:
    """Start Python on a script; a variable that is None is not set."""
    variables = {**os.environ, **environment}
    variables.pop("CAMPAIGN_FOLDER", None)
    return subprocess.Popen(
        [sys.executable, "-c", script],
        env={name: value for name, value in variables.items() if value is not None},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=limits,
    )


def finish(process: Any, what: str, silent: bool = True) -> None:
    """It ends well, with the same result as ever."""
    out, err = process.communicate(timeout=600)
    require(process.returncode == 0, f"{what}: code {process.returncode}: {err[-600:]}")
    require(digest(out) == EXPECTED[0], f"{what}: another result: {out[:200]}")
    told = [line for line in err.splitlines() if not line.startswith("pyboomer compiles ")]
    require(not silent or not told, f"{what}: it complained: {err[-600:]}")


def run_boomer(folder: Path, *arguments: str, limits: Callable[[], None] | None = None, **options: Any) -> Any:
    """Run the command in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "pyboomer", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        preexec_fn=limits,
        timeout=300,
        **options,
    )


# --- The compile cache ------------------------------------------------------------------------------------------------


def share_a_cold_cache(folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Two processes compile at once into one cache, and a third one uses it."""
    cache = str(folder / "cache")
    both = [start(NUMBA_CACHE_DIR=cache)]
    time.sleep(rng.uniform(0, 2))
    both.append(start(NUMBA_CACHE_DIR=cache))
    for process in both:
        finish(process, "cold cache")
    finish(start(NUMBA_CACHE_DIR=cache), "warm cache")
    tally.counts["processes"] += 3


def kill_while_compiling(folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """A process is killed while it compiles; the next one works."""
    cache = str(folder / "cache")
    for _ in range(2):
        process = start(NUMBA_CACHE_DIR=cache)
        time.sleep(rng.uniform(1, 25))
        process.send_signal(choose(rng, signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
        process.communicate(timeout=600)
    finish(start(NUMBA_CACHE_DIR=cache), "after a kill")
    finish(start(NUMBA_CACHE_DIR=cache), "once more")
    tally.counts["processes"] += 4


def warm_cache(folder: Path) -> Path:
    """A cache that has what the fit needs."""
    cache = folder / "cache"
    finish(start(NUMBA_CACHE_DIR=str(cache)), "cold cache")
    return cache


def damage_a_cache(folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Files of the cache are cut off, emptied or overwritten; the fit works all the same."""
    cache = warm_cache(folder)
    files = sorted(path for path in cache.rglob("*") if path.is_file())
    kind = choose(rng, "cut", "empty", "noise", "one bit", "folder")
    for path in [files[i] for i in rng.permutation(len(files))[: max(1, len(files) // 3)]]:
        content = path.read_bytes()
        if kind == "cut":
            path.write_bytes(content[: len(content) // 2])
        elif kind == "empty":
            path.write_bytes(b"")
        elif kind == "noise":
            path.write_bytes(rng.bytes(len(content)))
        elif kind == "one bit":  # of the index: no machine code is executed that anybody wrote to
            if path.suffix == ".nbi":
                place = int(rng.integers(len(content)))
                path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        else:
            path.unlink()
            path.mkdir()
    tally.doing = f"damaged cache: {kind}"
    finish(start(NUMBA_CACHE_DIR=str(cache)), kind, silent=False)
    tally.counts["processes"] += 2


def obey_permissions() -> None:
    """Make root heed the permissions of files, like everybody else."""
    if os.getuid() == 0:
        libc = ctypes.CDLL(None)
        for right in DAC_OVERRIDE, DAC_READ_SEARCH:
            libc.prctl(PR_CAPBSET_DROP, right, 0, 0, 0)


def read_only_cache(folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """The cache can be read but not written; what is missing is compiled each time."""
    cache = warm_cache(folder)
    if rng.random() < 0.5:
        files = sorted(path for path in cache.rglob("*") if path.is_file())
        for path in files[: len(files) // 2]:
            path.unlink()
    everything = [folder, *folder.rglob("*")]
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        process = start(NUMBA_CACHE_DIR=str(cache), HOME=str(folder), limits=obey_permissions)
        finish(process, "read-only cache", silent=False)
    finally:
        for path in everything:
            path.chmod(0o755)
    tally.counts["processes"] += 2


def no_cache_possible(folder: Path, rng: np.random.Generator, tally: Tally) -> None:  # noqa: ARG001
    """The cache lies where no folder can be."""
    finish(start(NUMBA_CACHE_DIR="/dev/null/cache"), "no cache", silent=False)
    tally.counts["processes"] += 1


def no_home(folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Neither HOME nor a place for the cache is set, or HOME does not exist."""
    home = choose(rng, None, "/nonexistent", "")
    variables = {"HOME": home, "XDG_CACHE_HOME": None, "USERPROFILE": None, "TMPDIR": choose(rng, None, str(folder))}
    finish(start(**variables, limits=choose(rng, None, obey_permissions)), f"HOME={home}", silent=False)
    tally.counts["processes"] += 1


def full_cache(folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """No file may grow beyond a few bytes while code is compiled: as if the disk were full."""
    size = choose(rng, 0, 100, 4_096, 100_000)
    finish(start(NUMBA_CACHE_DIR=str(folder / "cache"), limits=lambda: limit_files(size)), "full disk", silent=False)
    finish(start(NUMBA_CACHE_DIR=str(folder / "cache")), "after it", silent=False)
    tally.counts["processes"] += 2


# --- Full disks -------------------------------------------------------------------------------------------------------


def limit_files(size: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def make_model(folder: Path) -> None:
    """A model and data to write from."""
    X = np.random.default_rng(1).normal(size=(60, 3)).round(2)
    rows = ["a,b,c,y", *(",".join(map(str, row)) + f",{int(row[0] > 0)}" for row in X.tolist())]
    (folder / "data.csv").write_text("\n".join(rows))
    done = run_boomer(folder, "train", "data.csv", "--labels", "y", "-o", "model.json", "--n-rules", "200")
    require(done.returncode == 0, done.stderr)


COMMANDS = {
    "model.json": ("train", "data.csv", "--labels", "y", "--n-rules", "200"),
    "model.onnx": ("export", "model.json"),
    "model.py": ("export", "model.json"),
    "page.html": ("explore", "model.json"),
    "out.csv": ("predict", "model.json", "data.csv", "--proba"),
}


def full_disk(folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """No room for what is written: one clear error, the old file stays, and nothing is left behind."""
    make_model(folder)
    for name, arguments in COMMANDS.items():
        target = folder / name
        if not target.exists():
            target.write_bytes(b"old")
        old, before = target.read_bytes(), sorted(os.listdir(folder))
        size = int(rng.integers(0, 300))
        done = run_boomer(folder, *arguments, "-o", name, limits=lambda size=size: limit_files(size))
        tally.doing = f"full disk: {name}"
        require(done.returncode == 2, f"code {done.returncode}: {done.stderr[-500:]}")
        require_one_line(done.stderr)
        require(
            target.read_bytes() == old, f"the old file is gone: {target.stat().st_size} bytes instead of {len(old)}"
        )
        require(sorted(os.listdir(folder)) == before, f"left behind: {set(os.listdir(folder)) - set(before)}")
        tally.counts["processes"] += 1
    try:
        with_room(
            100, lambda: Store(folder / "store").write("a", Outcome(np.zeros((3, 400, 50), bool), {"a": "b" * 999}))
        )
    except OSError:
        require(not list((folder / "store").rglob("*.npz")), "an outcome that is not whole")
    else:
        raise AssertionError("an outcome that has no room was written")


def with_room(size: int, act: Callable[[], Any]) -> None:
    """Do something in this process while files may not grow beyond a size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        act()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def require_one_line(text: str) -> None:
    lines = [line for line in text.splitlines() if not line.startswith(("boomer: warning: ", "pyboomer compiles "))]
    require(len(lines) == 1 and lines[0].startswith("boomer: "), f"not one line: {text[-600:]}")


def full_output(folder: Path, rng: np.random.Generator, tally: Tally) -> None:  # noqa: ARG001
    """The standard output takes nothing: one clear error."""
    make_model(folder)
    for arguments in (
        ("rules", "model.json"),
        ("predict", "model.json", "data.csv"),
        ("--help",),
        ("datasets", "--json"),
    ):
        tally.doing = f"full output: {' '.join(arguments)}"
        command = [sys.executable, "-m", "pyboomer", *arguments]
        with open("/dev/full", "w") as full:
            done = subprocess.run(command, cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
        require(done.returncode in (1, 2), f"code {done.returncode}: {done.stderr[-300:]}")
        require_one_line(done.stderr)
        tally.counts["processes"] += 1


def plain_terminal(folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """A terminal that knows ASCII only, and names that are not: it prints, or says why not, in one line."""
    (folder / "däta.csv").write_text("größe,y🙂\n" + "".join(f"{i},{i % 2}\n" for i in range(12)), encoding="utf-8")
    plain = {
        "LC_ALL": "C",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONUTF8": "0",
        "PYTHONIOENCODING": choose(rng, "ascii", "latin-1"),
    }
    train = ("train", "däta.csv", "--labels", "y*", "-o", "mödel.json", "--n-rules", "3")
    for arguments in (train, ("rules", "mödel.json"), ("explore", "mödel.json", "-o", "p.html")):
        done = run_boomer(folder, *arguments, env={**os.environ, **plain})
        tally.doing = f"plain terminal: {arguments[0]}"
        require(done.returncode in (0, 2), f"code {done.returncode}: {done.stderr[-300:]}")
        if done.returncode:
            require_one_line(done.stderr)
        tally.counts["processes"] += 1


# --- Threads, memory, shared folders ----------------------------------------------------------------------------------


def eight_threads(folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Eight threads fit, predict, save and load at once; each gets what it would get alone."""
    X = rng.normal(size=(60, 4)).round(1)
    Y = (X[:, :3] + rng.normal(size=(60, 3)) > 0).astype(int)
    settings = [{"max_bins": choose(rng, None, 16), "random_state": i, "n_jobs": choose(rng, 1, 2)} for i in range(8)]
    alone = [BoomerClassifier(n_rules=20, **each).fit(X, Y).rules_ for each in settings]
    faults: list[str] = []

    def work(i: int) -> None:
        try:
            for _ in range(10):
                model = BoomerClassifier(n_rules=20, **settings[i]).fit(X, Y)
                model.predict(X)
                model.save(folder / "shared.json")
                load_model(folder / "shared.json")
                if model.rules_ != alone[i]:
                    faults.append(f"thread {i} learned other rules")
        except Exception as error:
            faults.append(f"thread {i}: {error!r}")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tally.counts["fits"] += 88
    require(not faults, "; ".join(faults[:3]))
    require(os.listdir(folder) == ["shared.json"], f"left behind: {os.listdir(folder)}")


SOAK = """
import gc, json, resource, sys, tempfile, warnings
from pathlib import Path
import numpy as np
warnings.simplefilter("ignore")
from pyboomer import BoomerClassifier, load_model
limit = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + 2 * 2**30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
rng = np.random.default_rng(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
sizes = []
path = tempfile.mktemp()
for i in range(3001):
    X = rng.normal(size=(200, 5))
    Y = (X[:, :3] > 0).astype(int)
    model = BoomerClassifier(("label-wise-logistic", "example-wise-logistic")[i % 2], n_rules=10, random_state=i,
                             max_bins=(None, 16)[i % 3 == 0], n_jobs=2).fit(X, Y)
    model.predict_proba(X)
    model.save(path)
    load_model(path).predict(X)
    str(model.rules_)
    try:
        BoomerClassifier(l2=-1).fit(X, Y)
    except ValueError:
        pass
    if i % 500 == 0:
        gc.collect()
        sizes.append(int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 2**20)
Path(path).unlink()
print(json.dumps(sizes))
"""


def soak(folder: Path, rng: np.random.Generator, tally: Tally) -> None:  # noqa: ARG001
    """Thousands of fits in one process, which does not grow."""
    process = start(SOAK)
    out, err = process.communicate(timeout=900)
    require(process.returncode == 0, f"code {process.returncode}: {err[-500:]}")
    sizes = json.loads(out)
    tally.counts["fits"] += 3001
    require(sizes[-1] - sizes[1] < MEGABYTES, f"megabytes after every 500 fits: {sizes}")


def share_a_folder(folder: Path, rng: np.random.Generator, tally: Tally) -> None:  # noqa: ARG001
    """Two processes do the tasks of one folder; no task is done twice, and all outcomes are right."""
    script = f"""
from pathlib import Path
from pyboomer.experiments.running import run_tasks
from pyboomer.experiments.store import Store
from pyboomer.experiments.tasks import Setting, Task
tasks = [Task("digits7", "l.w.-log. multi", Setting(5, 0.3, 1.0), fold, 10, (1, 5)) for fold in range(8)]
print(run_tasks(tasks, Store(Path({str(folder)!r}) / "shared"), n_jobs=1))
"""
    both = [start(script) for _ in range(2)]
    done = [process.communicate(timeout=600) for process in both]
    require(all(process.returncode == 0 for process in both), str(done)[-500:])
    require(sum(int(out) for out, _ in done) == 8, f"done by each: {[out for out, _ in done]}")
    tasks = [Task("digits7", "l.w.-log. multi", Setting(5, 0.3, 1.0), fold, 10, (1, 5)) for fold in range(8)]
    shared, alone = Store(folder / "shared"), Store(folder / "alone")
    run_tasks(tasks, alone, n_jobs=1)
    for task in tasks:
        np.testing.assert_array_equal(shared.read(task.key).labels, alone.read(task.key).labels)
    tally.counts["processes"] += 2


SCENES: dict[str, Callable[[Path, np.random.Generator, Tally], None]] = {
    "full disk": full_disk,
    "full output": full_output,
    "eight threads": eight_threads,
    "plain terminal": plain_terminal,
    "shared experiment folder": share_a_folder,
    "no HOME": no_home,
    "soak": soak,
    "no cache possible": no_cache_possible,
    "full disk while compiling": full_cache,
    "shared cold cache": share_a_cold_cache,
    "killed while compiling": kill_while_compiling,
    "damaged cache": damage_a_cache,
    "read-only cache": read_only_cache,
}
