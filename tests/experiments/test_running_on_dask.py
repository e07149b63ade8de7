"""Runs on a Dask cluster: the same outcomes in the same store, whatever happens to workers."""

import logging
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import effective_n_jobs, parallel_config
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from pyboomer import BoomerClassifier
from pyboomer.cli import main, reproduction
from pyboomer.datasets import load_dataset
from pyboomer.experiments import bbc_cv, running
from pyboomer.experiments.paper.budgets import BUDGETS, Budget
from pyboomer.experiments.running import Job, run_jobs, run_tasks
from pyboomer.experiments.store import Outcome, Store
from pyboomer.experiments.tasks import Setting, Task
from pyboomer.learning import fitted, sizing
from pyboomer.learning.parallel import count_threads

distributed = pytest.importorskip("distributed")

TASKS = [Task("digits7", "l.w.-log. multi", Setting(5, 0.3, 1.0), fold, 10, (1, 5)) for fold in range(4)]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A cluster of two workers that are threads of this process: quick to start."""
    kind = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**kind) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


def tell(task: int, data: Any = None) -> Outcome:  # noqa: ARG001
    return Outcome(np.full((1, 2, 3), task % 2 == 1), {"task": task, "at": time.time()})


def list_jobs(do: Any, count: int = 6) -> list[Job]:
    return [Job(f"some/{task}", do, task) for task in range(count)]


# --- Stores -----------------------------------------------------------------------------------------------------------


def test_outcomes_are_those_of_this_machine_and_no_worker_needs_the_data(
    tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    assert run_tasks(TASKS, here, n_jobs=1) == 4
    monkeypatch.delattr("pyboomer.experiments.tasks._load")  # how a task loads its data where it is done
    assert run_tasks(TASKS[:3], there, client=client) == 3
    assert run_tasks(TASKS, there, client=client) == 1  # goes on
    assert run_tasks(TASKS, there, client=client) == 0
    for task in TASKS:
        np.testing.assert_array_equal(here.read(task.key).labels, there.read(task.key).labels)
    assert not list(tmp_path.rglob("*.lock"))


def test_a_failure_names_its_task_and_loses_nothing_that_is_finished(tmp_path: Path, client: Any) -> None:
    def fail_sometimes(task: int) -> Outcome:
        if task == 4:
            raise ValueError("out of luck")
        return tell(task)

    store = Store(tmp_path)
    with pytest.raises(ValueError, match="out of luck") as caught:
        list(run_jobs(list_jobs(fail_sometimes), store, client=client))
    assert caught.value.__notes__ == ["This was some/4, on a worker of the cluster."]
    kept = {path.stem for path in tmp_path.rglob("*.npz")}
    assert "4" not in kept
    done = {job.task for job, outcome in run_jobs(list_jobs(tell), store, client=client) if outcome is not None}
    assert done == {task for task in range(6) if str(task) not in kept}
    assert not list(tmp_path.rglob("*.lock"))


def test_what_another_run_is_at_is_waited_for_and_not_done_again(
    tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    with store.claim("some/1") as is_ours:
        assert is_ours

        def finish_the_other(_: float) -> None:
            store.write("some/1", tell(1))

        monkeypatch.setattr(running.time, "sleep", finish_the_other)
        ours = {job.task: outcome is not None for job, outcome in run_jobs(list_jobs(tell, 3), store, client=client)}
    assert ours == {0: True, 1: False, 2: True}


def test_few_jobs_are_claimed_ahead_so_that_runs_can_share_a_store(
    tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "FEWEST", 1)
    jobs = run_jobs(list_jobs(partial(tell, data=np.zeros(2**21)), 20), Store(tmp_path), client=client)
    first, _ = next(jobs)
    assert len(list(tmp_path.rglob("*.lock"))) == 3  # two for each of two workers, and one is done
    jobs.close()
    assert len(list(tmp_path.rglob("*.npz"))) == 1
    with Store(tmp_path).claim("some/1" if first.task == 0 else "some/0") as is_ours:
        assert is_ours  # an abandoned run holds nothing back


def test_what_is_no_client_of_this_cluster_is_refused(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match=r"client must be a dask.distributed.Client .* got 'tcp://host:8786'"):
        list(run_jobs(list_jobs(tell), client="tcp://host:8786"))
    with pytest.raises(ValueError, match="give client or n_jobs, not both"):
        list(run_jobs(list_jobs(tell), client=client, n_jobs=2))
    monkeypatch.setattr(running, "_tell_version", lambda: "0.0.1")
    with pytest.raises(ImportError, match=r"the worker inproc://.* has pyboomer 0\.0\.1, and this is"):
        list(run_jobs(list_jobs(tell), client=client))
    monkeypatch.setattr(running, "_tell_version", lambda: 1 / 0)
    with pytest.raises(ImportError, match=r"cannot import pyboomer \(division by zero\); install it there"):
        list(run_jobs(list_jobs(tell), client=client))


def test_a_cluster_without_workers_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    class Empty:
        asynchronous = False
        submit = None

        def run(self, *_: Any, **__: Any) -> dict[str, str]:
            return {}

    with caplog.at_level(logging.WARNING, "pyboomer"):
        running._check_client(Empty(), None)
    assert "no workers yet" in caplog.text


def die_at_two(task: int, keeps: Path) -> Outcome:
    marks = list(keeps.iterdir())
    if task == 2 and len(marks) < 1 + 3 * (keeps.name == "forever"):
        (keeps / str(len(marks))).touch()
        os._exit(1)
    return tell(task)


@pytest.mark.slow
def test_the_task_of_a_worker_that_dies_is_repeated_and_given_up_after_four(tmp_path: Path) -> None:
    once, forever = tmp_path / "once", tmp_path / "forever"
    once.mkdir()
    forever.mkdir()
    store = Store(tmp_path / "store")
    kind = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "dashboard_address": "127.0.0.1:0",
        "silence_logs": logging.CRITICAL,
    }
    with distributed.LocalCluster(**kind) as cluster, distributed.Client(cluster) as client:
        found = dict(run_jobs(list_jobs(partial(die_at_two, keeps=once)), store, client=client))
        assert sorted(job.task for job in found) == list(range(6))
        assert len(list(once.iterdir())) == 1
        with pytest.raises(ConnectionError, match=r"some/2: 4 workers died .* more memory"):
            list(run_jobs(list_jobs(partial(die_at_two, keeps=forever)), client=client))
        rules = Store(tmp_path / "rules")
        assert run_tasks(TASKS, rules, client=client) == 4
    here = Store(tmp_path / "here")
    run_tasks(TASKS, here, n_jobs=1)
    for task in TASKS:
        np.testing.assert_array_equal(here.read(task.key).labels, rules.read(task.key).labels)


# --- BBC-CV -----------------------------------------------------------------------------------------------------------


def test_bbc_cv_finds_the_same_on_a_cluster_and_goes_on_without(tmp_path: Path, client: Any) -> None:
    data = load_dataset("digits7")
    X, Y = data.X[:120], data.Y[:120]
    model, grid = BoomerClassifier(random_state=1), {"n_rules": [3, 6, 9], "learning_rate": [0.2, 0.6]}
    options: dict[str, Any] = {"measure": "hamming", "cv": 3, "n_bootstraps": 20, "refit": False}
    here = bbc_cv(model, grid, X, Y, **options)
    there = bbc_cv(model, grid, X, Y, **options, client=client, folder=tmp_path)
    np.testing.assert_array_equal(here.correction.values, there.correction.values)
    np.testing.assert_array_equal(here.means, there.means)
    assert here.best_params_ == there.best_params_
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}
    assert len(kept) == 2 * 3
    again = bbc_cv(model, grid, X, Y, **options, folder=tmp_path)
    np.testing.assert_array_equal(here.correction.values, again.correction.values)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")} == kept


# --- The command ------------------------------------------------------------------------------------------------------


def test_the_command_gives_its_tasks_to_the_cluster(
    tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def reproduce(_: Budget, folder: Path, **options: Any) -> int:
        return run_tasks(TASKS[:2], Store(folder), n_jobs=options["n_jobs"], client=options["client"])

    monkeypatch.setitem(reproduction.REPRODUCTIONS, "table1", reproduce)
    monkeypatch.setattr(reproduction, "summarise", "{} done".format)
    arguments = ["reproduce", "table1", "--results", str(tmp_path), "--dask"]
    assert main([*arguments, client.scheduler.address]) == 0
    assert capsys.readouterr().out == "2 done\n"
    assert main([*arguments, client.scheduler.address, "--n-jobs", "2"]) == 2
    assert "--n-jobs is about this machine" in capsys.readouterr().err
    assert main([*arguments, "tcp://127.0.0.1:9", "--report-only"]) == 0  # takes no cluster
    assert capsys.readouterr().out == "0 done\n"


@pytest.mark.slow
def test_the_command_finds_on_a_cluster_of_processes_what_it_finds_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    pytest.importorskip("xgboost")
    tiny = Budget("quick", 3, ((0.5, 1.0),), 50, ((0.3, 1.0),), 2, 2, 2, 1, 2, ((0.5, 1.0),))
    monkeypatch.setitem(BUDGETS, "quick", tiny)
    for name, options in {"here": ["--n-jobs", "1"], "there": ["--dask", "local", "--n-jobs", "2"]}.items():
        assert main(["reproduce", "table1", "--data", "digits7", "--results", str(tmp_path / name), *options]) == 0
    files = [tmp_path / name / "table1" / "quick" / "table1.csv" for name in ("here", "there")]
    assert files[0].read_text() == files[1].read_text()


def test_a_scheduler_that_does_not_answer_and_dask_that_is_missing_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pyboomer.cli.group.CONNECT_SECONDS", 0.2)
    arguments = ["reproduce", "figure1", "--results", str(tmp_path / "r"), "--dask"]
    for address in ("tcp://127.0.0.1:9", "127.0.0.1", "nonsense://x"):
        assert main([*arguments, address]) == 2
        assert f"no Dask scheduler answers at {address}" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main([*arguments, "local"]) == 2
    assert "--dask needs Dask: pip install 'pyboomer[dask]'" in capsys.readouterr().err


# --- Grid search ------------------------------------------------------------------------------------------------------


def test_a_grid_search_finds_the_same_with_one_thread_for_each_fit(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = load_dataset("digits7")
    X, Y = data.X[:120], data.Y[:120]
    counts = []
    for module in (fitted, sizing):  # to predict, and to learn
        monkeypatch.setattr(module, "count_threads", lambda *asked: counts.append(count_threads(*asked)) or counts[-1])
    search = GridSearchCV(BoomerClassifier(random_state=1), {"n_rules": [3, 9]}, cv=3)
    here = clone(search).fit(X, Y)
    with parallel_config(backend="dask", client=client, scatter=[X, Y]):
        assert effective_n_jobs(-1) == 2  # what there is in the cluster, and joblib would give to each
        there = search.fit(X, Y)
        assert [count_threads(n_jobs, True) for n_jobs in ("auto", None, 1, 3)] == [1, 1, 1, 3]
    np.testing.assert_array_equal(here.cv_results_["mean_test_score"], there.cv_results_["mean_test_score"])
    assert set(counts) == {1}
