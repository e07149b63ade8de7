"""Runs: whatever happens to a process, nothing finished is lost, repeated or corrupted."""

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyboomer.experiments import running, tasks
from pyboomer.experiments.running import run_tasks
from pyboomer.experiments.store import Outcome, Store
from pyboomer.experiments.tasks import Setting, Task, do_task, split_folds

TASKS = [Task("digits7", "l.w.-log. multi", Setting(5, 0.3, 1.0), fold, 10, (1, 5)) for fold in range(10)]

# A run whose tasks take a while and leave a line in a journal when they begin and when they end.
RUN = """
import json, os, sys, time
from pathlib import Path
import numpy as np
from pyboomer.experiments import running
from pyboomer.experiments.store import Outcome, Store
from pyboomer.experiments.tasks import Setting, Task

folder, n_tasks, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])

def write_down(what, task):
    with (folder / "journal").open("a") as file:
        file.write(json.dumps([what, task.fold, os.getpid()]) + "\\n")

def do_slowly(task):
    write_down("begin", task)
    time.sleep(seconds)
    write_down("end", task)
    return Outcome(np.full((2, 3, 9), task.fold % 2 == 1), {"fold": task.fold, "cpu": seconds})

running.do_task = do_slowly
if __name__ == "__main__":
    tasks = [Task("some", "random forest", Setting(1), fold, n_tasks) for fold in range(n_tasks)]
    print("finished by this run:", running.run_tasks(tasks, Store(folder / "tasks"), n_jobs=1))
"""


def start_run(folder: Path, n_tasks: int, seconds: float) -> "subprocess.Popen[str]":
    script = folder / "run.py"
    script.write_text(RUN)
    command = [sys.executable, str(script), str(folder), str(n_tasks), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def read_journal(folder: Path) -> list[Any]:
    path = folder / "journal"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wait_until(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


@pytest.mark.slow
def test_a_run_killed_at_any_moment_goes_on_with_nothing_lost_or_repeated(tmp_path: Path) -> None:
    n_tasks = 12
    store = Store(tmp_path / "tasks")
    run = start_run(tmp_path, n_tasks, 0.1)
    wait_until(lambda: len(list(store.folder.rglob("*.npz"))) >= 3)
    run.kill()  # in the middle of a task
    run.communicate()
    kept = {path: path.stat().st_mtime_ns for path in store.folder.rglob("*.npz")}
    assert 3 <= len(kept) < n_tasks
    run = start_run(tmp_path, n_tasks, 0.1)
    output, _ = run.communicate(timeout=60)
    assert output == f"finished by this run: {n_tasks - len(kept)}\n"
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # what was there has not been touched
    ended = Counter(fold for what, fold, _ in read_journal(tmp_path) if what == "end")
    stored = {
        store.read(str(path.relative_to(store.folder))[:-4]).facts["fold"] for path in store.folder.rglob("*.npz")
    }
    assert stored == set(range(n_tasks))
    begun = Counter(fold for what, fold, _ in read_journal(tmp_path) if what == "begin")
    assert sum(begun.values()) <= n_tasks + 1  # only what was under way when the run was killed was begun again
    assert set(ended) == set(range(n_tasks))
    assert not list(store.folder.rglob("*.lock"))


@pytest.mark.slow
def test_two_runs_share_the_work_and_never_do_the_same(tmp_path: Path) -> None:
    n_tasks = 10
    runs = [start_run(tmp_path, n_tasks, 0.2) for _ in range(2)]
    outputs = [run.communicate(timeout=60)[0] for run in runs]
    shares = [int(output.split(":")[1]) for output in outputs]
    assert sum(shares) == n_tasks  # and both waited until all was done
    assert all(shares)
    begun = Counter(fold for what, fold, _ in read_journal(tmp_path) if what == "begin")
    assert begun == dict.fromkeys(range(n_tasks), 1)


def test_outcomes_do_not_depend_on_processes_or_order(tmp_path: Path) -> None:
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    assert run_tasks(TASKS[:4], one, n_jobs=1) == 4
    assert run_tasks(TASKS[3::-1], two, n_jobs=2) == 4
    for task in TASKS[:4]:
        np.testing.assert_array_equal(one.read(task.key).labels, two.read(task.key).labels)
    assert run_tasks(TASKS[:4], one, n_jobs=1) == 0


def test_a_task_predicts_its_test_fold_at_every_stage(tmp_path: Path) -> None:
    outcome = do_task(TASKS[0])
    (_, test), n_labels = split_folds(1797, 10)[0], 7
    assert outcome.labels.shape == (2, len(test), n_labels)
    assert outcome.facts["cpu"] > 0
    store = Store(tmp_path)
    store.write(TASKS[0].key, outcome)
    np.testing.assert_array_equal(store.read(TASKS[0].key).labels, outcome.labels)


def test_the_folds_are_a_partition() -> None:
    folds = split_folds(103, 10)
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(103))
    assert all(not set(train) & set(test) for train, test in folds)


def test_keys_tell_all_tasks_apart() -> None:
    setting = Setting(100, 0.3, 1.0)
    alike = Task("a", "XGBoost CC", setting, 0)
    others = [
        alike._replace(data="b"),
        alike._replace(approach="XGBoost BR"),
        alike._replace(fold=1),
        alike._replace(n_folds=3),
        alike._replace(bootstrap=False),
        *(
            alike._replace(setting=each)
            for each in (
                Setting(200, 0.3, 1.0),
                Setting(100, 0.1, 1.0),
                Setting(100, 0.3, 0.0),
                Setting(100, 0.3, 1.0, 0),
                Setting(100, 0.3, 1.0, 1),
            )
        ),
    ]
    assert len({task.key for task in [alike, *others]}) == len(others) + 1


def test_who_holds_a_claim_keeps_others_out_until_done(tmp_path: Path) -> None:
    store = Store(tmp_path)
    answers = []

    def ask() -> None:
        with Store(tmp_path).claim("a/b") as is_ours:
            answers.append(is_ours)

    with store.claim("a/b") as is_ours:
        assert is_ours
        other = threading.Thread(target=ask)
        other.start()
        other.join()
        store.write("a/b", Outcome(np.ones((1, 2, 3), dtype=bool), {}))
    ask()
    assert answers == [False, False]  # held by another, then finished


def test_a_failure_leaves_the_task_to_be_done_and_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Task) -> Outcome:
        raise ValueError("out of luck")

    monkeypatch.setattr(running, "do_task", fail)
    store = Store(tmp_path)
    with pytest.raises(ValueError, match="out of luck"):
        run_tasks(TASKS[:1], store, n_jobs=1)
    monkeypatch.undo()
    assert not store.has(TASKS[0].key)
    assert run_tasks(TASKS[:1], store, n_jobs=1) == 1


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (tmp_path / "bad.npz").write_bytes(b"not a zip file")
    with pytest.raises(ValueError, match=r"bad.npz is damaged .* delete it"):
        store.read("bad")


def test_a_file_damaged_anywhere_is_named_or_as_good_as_before(tmp_path: Path) -> None:
    store, rng = Store(tmp_path), np.random.default_rng(1)
    store.write("task", Outcome(rng.random((2, 50, 9)) < 0.5, {"seconds": 1.5}))
    content = store.locate("task").read_bytes()
    for place in range(0, len(content), 3):
        store.locate("task").write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            assert isinstance(store.read("task"), Outcome)
        except ValueError as error:
            assert "task.npz is damaged" in str(error)  # noqa: PT017


def test_progress_tells_the_time_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_tasks(TASKS[:2], Store(tmp_path), n_jobs=1, progress=True, cost=lambda task: 1.0 + task.fold)
    shown = capsys.readouterr().err
    assert "2 of 2 tasks" in shown
    assert "left" in shown


def test_a_rule_learner_without_its_parameters_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a learning rate and an L2 weight"):
        tasks.do_task(TASKS[0]._replace(setting=Setting(5)))
