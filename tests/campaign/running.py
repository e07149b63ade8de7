"""A run does the cases of the parts in worker processes, so that one that crashes or hangs costs one case.

A worker takes every so manyth case, and says on its standard output how many of which checks it has made and what
failed. The number of the case under way is in a file: whoever dies has died of that one.
"""

import importlib
import json
import os
import platform
import queue
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

PARTS = ("fits", "options", "files", "kills", "places", "growth")
ALONE = ("places", "growth")  # they use several processes themselves, or look at the clock
PATIENCE = {"files": 60.0, "places": 1_800.0}  # seconds that a case may take before it is a hang ...
MOST_PATIENCE = 900.0  # ... elsewhere, and before the first case: some compile, and others may keep the machine busy
PROGRESS = "progress"  # the file with the number of the case under way, in the folder of a worker
FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent


@dataclass(frozen=True)
class Plan:
    """How cases are made and run."""

    seed: int
    seconds: float
    jobs: int
    few: bool
    bounds: bool
    log: Path


@dataclass
class Tally:
    """What has been checked, and what is being checked."""

    counts: Counter[str] = field(default_factory=Counter)
    doing: str = "start"

    def begin(self, check: str, times: int = 1) -> None:
        """Count a check that is about to be made."""
        self.doing = check
        self.counts[check] += times


def require(truth: bool, message: str) -> None:
    """Fail with a message unless it is so."""
    if not truth:
        raise AssertionError(message)


def draw_for(seed: int, case: int) -> np.random.Generator:
    """The numbers that a case is made of."""
    return np.random.default_rng([seed, case])


def write_command(part: str, plan: Plan, *further: str) -> list[str]:
    flags = ["--few"] * plan.few + ["--bounds"] * plan.bounds
    return ["tests/campaign", part, "--seed", str(plan.seed), *flags, *further]


# --- In a worker ------------------------------------------------------------------------------------------------------


def make_folder() -> str:
    """A folder for files that come and go, in memory if possible."""
    memory = "/dev/shm"
    return tempfile.mkdtemp(prefix="campaign-", dir=memory if os.access(memory, os.W_OK) else None)


def work(part: str, plan: Plan, count: int, first: int, step: int) -> int:
    """Do the cases first, first + step, ... below the count, and report as they come."""
    report = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is printed on the way is not for the one who counts
    os.chdir(os.environ["CAMPAIGN_FOLDER"])
    progress = os.open(PROGRESS, os.O_WRONLY)
    module = importlib.import_module(f"campaign.{part}")
    end = time.monotonic() + plan.seconds
    tally, cases, since = Tally(), 0, time.monotonic()

    def flush() -> None:
        nonlocal cases, since
        content = {"what": "batch", "cases": cases, "counts": tally.counts, "seconds": time.monotonic() - since}
        report.write(json.dumps(content) + "\n")
        tally.counts.clear()
        cases, since = 0, time.monotonic()

    module.prepare(plan)
    for case in range(first, count, step):
        if time.monotonic() > end:
            break
        os.pwrite(progress, b"%12d" % case, 0)
        try:
            module.run_case(case, draw_for(plan.seed, case), tally)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            report.write(json.dumps(describe_failure(case, tally.doing, error)) + "\n")
        cases += 1
        if time.monotonic() - since > 2:
            flush()
    flush()
    return 0


def describe_failure(case: int, check: str, error: BaseException) -> dict[str, Any]:
    """What is logged of a failure; the signature is the same for failures that look the same."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/pyboomer/" in frame.filename or "/campaign/" in frame.filename]
    place = f"{Path(own[-1].filename).name}:{own[-1].name}" if own else ""
    message = str(error).strip()
    first = next((line for line in message.splitlines() if line.strip()), "")
    signature = f"{check}: {type(error).__name__} in {place}: {re.sub(r'[0-9]+', '#', first)[:100]}"
    return {"what": "failure", "case": case, "check": check, "signature": signature, "message": message[:1_000]}


def repeat_case(part: str, plan: Plan, case: int) -> int:
    """Run one case in this process; what goes wrong is not caught."""
    module = importlib.import_module(f"campaign.{part}")
    tally, folder, before = Tally(), make_folder(), Path.cwd()
    os.chdir(folder)
    try:
        module.prepare(plan)
        module.run_case(case, draw_for(plan.seed, case), tally)
    except BaseException:
        print(f"failed: {tally.doing}", file=sys.stderr)
        raise
    finally:
        os.chdir(before)
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(tally.counts))
    return 0


# --- Over the workers -------------------------------------------------------------------------------------------------


class Worker:
    """A worker process, and what is needed to begin again after the case that it died of."""

    def __init__(self, part: str, plan: Plan, count: int, first: int, step: int, lines: "queue.Queue[Any]") -> None:
        self.part, self.plan, self.count, self.step, self.lines = part, plan, count, step, lines
        self.end = time.monotonic() + plan.seconds
        self.given_up = False
        self.start(first)

    def start(self, first: int) -> None:
        self.folder = make_folder()
        Path(self.folder, PROGRESS).touch()
        left = max(0.0, self.end - time.monotonic())
        options = ["--count", str(self.count), "--seconds", str(left), "--worker", str(first), str(self.step)]
        command = [sys.executable, *write_command(self.part, self.plan, *options)]
        environment = {**os.environ, "CAMPAIGN_FOLDER": self.folder}
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**threads, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            start_new_session=True,  # so that all that it starts can be stopped with it
        )
        self.seen, self.since, self.tail = "", time.monotonic(), ""
        self.readers = [
            threading.Thread(target=self.read, daemon=True),
            threading.Thread(target=self.hear, daemon=True),
        ]
        for reader in self.readers:
            reader.start()

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def hear(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.tail = (self.tail + line)[-2_000:]

    def look(self) -> dict[str, Any] | None:
        """Begin again if the process has died or hangs: the failure that this is."""
        code = self.process.poll()
        if code == 0 or self.given_up:
            return None
        now = Path(self.folder, PROGRESS).read_text().strip()
        if now != self.seen:
            self.seen, self.since = now, time.monotonic()
        patience = PATIENCE.get(self.part, MOST_PATIENCE) if self.seen else MOST_PATIENCE
        stuck = code is None and time.monotonic() - self.since > patience
        if code is None and not stuck:
            return None
        self.stop()
        case = int(now) if now else -1
        died = f"no answer for {patience:.0f} s" if stuck else f"died with {name_code(code)}"
        failure = {"case": case, "check": "survive", "signature": f"survive: {died}", "message": f"{died}\n{self.tail}"}
        self.given_up = case < 0 or case + self.step >= self.count
        if not self.given_up:
            self.start(case + self.step)
        return {"what": "failure", **failure}

    def is_done(self) -> bool:
        return self.given_up or (self.process.poll() == 0 and not any(reader.is_alive() for reader in self.readers))

    def stop(self) -> None:
        """End the process and all that it has started, and read what is left of what it said."""
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for reader in self.readers:
            reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def name_code(code: int | None) -> str:
    return signal.Signals(-code).name if code is not None and code < 0 else f"code {code}"


def run_parts(counts: dict[str, int], plan: Plan) -> int:
    """Run parts one after another; 1 if anything failed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # workers must not outlive this process
    failed = 0
    for part, count in counts.items():
        if count:
            failed += run_part(part, count, plan)
    print(f"{failed} failures" if failed else "nothing failed")
    return int(failed > 0)


def run_part(part: str, count: int, plan: Plan) -> int:
    """Run the cases of a part; the number of failures."""
    lines: queue.Queue[Any] = queue.Queue()
    jobs = 1 if part in ALONE else min(plan.jobs, count)
    begin, totals, cases = time.monotonic(), Counter[str](), 0
    failures: Counter[str] = Counter()
    stamp = {"part": part, "seed": plan.seed, "few": plan.few, "bounds": plan.bounds}
    workers: list[Worker] = []
    with open(plan.log, "a", encoding="utf-8") as log:

        def write_down(content: dict[str, Any]) -> None:
            log.write(json.dumps({**stamp, **content}) + "\n")
            log.flush()

        write_down({"what": "run", **describe_place()})
        try:
            workers += [Worker(part, plan, count, first, jobs, lines) for first in range(jobs)]
            while not all(worker.is_done() for worker in workers) or not lines.empty():
                try:
                    content = lines.get(timeout=0.5)
                except queue.Empty:
                    content = None
                found = [content] if content else []
                found += [failure for worker in workers if (failure := worker.look()) is not None]
                for content in found:
                    write_down(content)
                    if content["what"] == "batch":
                        cases += content["cases"]
                        totals.update(content["counts"])
                        continue
                    failures[content["signature"]] += 1
                    if failures[content["signature"]] == 1:
                        show_failure(part, plan, content)
        except KeyboardInterrupt:
            print("stopped")
        finally:
            for worker in workers:
                worker.stop()
    seconds = time.monotonic() - begin
    checks = ", ".join(f"{number:,} {name}" for name, number in totals.most_common())
    print(f"{part}: seed {plan.seed}, {cases:,} cases in {seconds:.0f} s; {checks}")
    for signature, number in failures.items():
        print(f"  {number} x {signature}")
    return sum(failures.values())


def show_failure(part: str, plan: Plan, failure: dict[str, Any]) -> None:
    command = shlex.join(["python", *write_command(part, plan, "--case", str(failure["case"]))])
    print(f"FAILED {failure['signature']}\n{failure['message']}\n  again: {command}", flush=True)


def describe_place() -> dict[str, Any]:
    """When and where: so that a log says what it is about."""
    git = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return {
        "time": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "commit": git.stdout.strip(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
    }
