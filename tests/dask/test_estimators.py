"""On a cluster of real processes, rules are those of one machine, whoever has which examples."""

import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from contextvars import Context
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

pytest.importorskip("distributed")

import dask
import dask.array as da
import dask.dataframe as dd
from click.testing import CliRunner
from distributed import Client, LocalCluster, Status, Worker
from distributed.utils import get_mp_context

from pyboomer import BoomerClassifier, BoomerRegressor, load_model
from pyboomer.cli import boomer
from pyboomer.dask import DaskBoomerClassifier, DaskBoomerRegressor
from pyboomer.dask import fitting as fitting_module
from pyboomer.dask.blocks import profile_block
from pyboomer.dask.team import TeamEngine
from pyboomer.data.targets import read_targets
from pyboomer.learning import sizing

N = 1200
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 6))
Y = (X[:, :3] + 0.5 * RNG.normal(size=(N, 3)) > 0.3).astype(np.uint8)
OPTIONS: dict[str, Any] = {"loss": "label-wise-logistic", "n_rules": 12, "max_bins": 255, "random_state": 1}


@pytest.fixture(scope="module", autouse=True)
def forks() -> Iterator[None]:
    """Workers are forks of a process that has imported everything: each would take longer to import than to learn."""
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload(["dask.dataframe", "pyboomer.dask"])
        yield


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def teams(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the teams that have learned."""
    sizes: list[int] = []

    class Counted(TeamEngine):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            sizes.append(len(self.addresses))

    monkeypatch.setattr(fitting_module, "TeamEngine", Counted)
    return sizes


def divide(*sizes: int) -> tuple[da.Array, da.Array]:
    return da.from_array(X, chunks=(sizes, 4)), da.from_array(Y, chunks=(sizes, 3))


def assert_same(model: Any, local: Any, data: Any) -> None:
    assert str(model.rules_) == str(local.rules_)
    predict = "decision_function" if hasattr(local, "decision_function") else "predict"
    np.testing.assert_allclose(getattr(model, predict)(data), getattr(local, predict)(data), rtol=1e-9, atol=1e-11)
    assert model.training_facts_["loss"] == pytest.approx(local.training_facts_["loss"], rel=1e-9)


def test_rules_depend_neither_on_the_number_of_workers_nor_on_the_blocks(client: Client, teams: list[int]) -> None:
    workers = sorted(client.nthreads())
    options = OPTIONS | {"max_samples": 150, "n_rules": 250, "rules_per_round": 4}
    divisions = ((N,), (300, 0, 500, 400), (100,) * 12)
    bits = []
    for count, sizes in enumerate(divisions, start=1):
        with dask.annotate(workers=workers[:count], allow_other_workers=False):
            model = DaskBoomerClassifier(**options).fit(*divide(*sizes))
        bits.append((model.rules_.to_dict(), model.training_facts_["loss"]))
    assert teams[0] == 1
    assert max(teams) > 1
    assert bits[0] == bits[1] == bits[2]
    local = BoomerClassifier(**options).fit(X, Y)
    assert_same(model, local, X)
    np.testing.assert_array_equal(model.rules_.head_scores, local.rules_.head_scores)  # bit for bit
    np.testing.assert_array_equal(model.label_vectors_, local.label_vectors_)


@pytest.mark.parametrize(
    ("sizes", "has", "where"),
    [
        ([3, 3, 3, 3], "aaab", "baab"),  # one moves ...
        ([3, 3, 3], "aab", "aab"),  # ... but not if that only changes who has more
        ([2, 9, 1, 1], "abbb", "abaa"),
        ([5, 0, 5], "aba", "bba"),
        ([4, 4], ["ab", "ab"], "ab"),  # both have both
        ([7, 7, 7], "aaa", "aaa"),  # there is nobody else
    ],
)
def test_blocks_move_until_all_workers_have_about_as_much(sizes: list[int], has: Any, where: str) -> None:
    assert "".join(fitting_module.spread(sizes, [list(workers) for workers in has])) == where


def test_rules_are_the_same_wherever_blocks_move(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def count_threads() -> int:
        from pyboomer.dask.team import MEMBERS

        return sum(member.shard.threads.n_threads for member in MEMBERS.values())

    def set_status(status: Status, pause_at: float, dask_worker: Worker) -> None:
        dask_worker.memory_manager.memory_pause_fraction = pause_at
        dask_worker.status = status

    workers = sorted(client.nthreads())
    monkeypatch.setattr(fitting_module, "spread", lambda _, has: [workers[0], workers[0], *[own[0] for own in has[2:]]])
    client.run(set_status, Status.paused, False, workers=workers[:1])  # as if short of memory: Dask sends it nothing
    seen: list[dict[str, int]] = []
    model = DaskBoomerClassifier(
        **OPTIONS, client=client, n_jobs=2, callbacks=lambda _: seen.append(client.run(count_threads))
    ).fit(*divide(300, 500, 400))
    client.run(set_status, Status.running, 0.8, workers=workers[:1])
    assert seen[0][workers[0]] == 2
    assert_same(model, BoomerClassifier(**OPTIONS).fit(X, Y), X)


def test_a_sample_that_is_sent_is_not_larger_than_enough(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "ENOUGH", 100)
    monkeypatch.setattr(sizing, "SHARE", 8)  # on one machine, 150 examples
    model = DaskBoomerClassifier(**OPTIONS, client=client).fit(*divide(600, 600))
    assert_same(model, BoomerClassifier(**OPTIONS, max_samples=100).fit(X, Y), X)


def test_a_frame_with_categories_missing_values_unknown_labels_and_weights(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.DataFrame(X, columns=list("abcdef"), index=pd.Index(np.arange(N) * 3, name="id"))
    frame.loc[RNG.random(N) < 0.1, "b"] = np.nan
    frame["kind"] = pd.Categorical(RNG.choice(["u", "v", "w"], N))
    frame["word"] = np.where(np.arange(N) < 800, "early", "late")  # no block but one has both
    labels = pd.DataFrame(Y.astype(float), columns=["p", "q", "r"], index=frame.index)
    labels.loc[RNG.random(N) < 0.2, "q"] = np.nan
    labels.iloc[600:650] = np.nan
    weight = pd.Series(RNG.random(N) + 0.5, index=frame.index)
    weight.iloc[:30] = 0.0
    options = OPTIONS | {"loss": "example-wise-logistic", "class_weight": {1: 2.0}}
    local = BoomerClassifier(**options).fit(frame, labels, weight, eval_set=(frame[:600], labels[:600]))
    parts = [dd.from_pandas(data, npartitions=4) for data in (frame, labels, weight)]
    held_out = parts[0].partitions[:2], parts[1].partitions[:2]
    with monkeypatch.context() as alone:
        alone.setattr("distributed.client._global_clients", {})  # there is no client but the one that is passed
        model = Context().run(partial(DaskBoomerClassifier(**options, client=client).fit, *parts, eval_set=held_out))
    assert_same(model, local, frame)
    np.testing.assert_allclose(model.validation_curve_, local.validation_curve_)  # weights are not for what is held out
    np.testing.assert_array_equal(model.label_vectors_, local.label_vectors_)
    np.testing.assert_allclose(model.label_vector_counts_, local.label_vector_counts_)
    assert model.client_ is client

    lazy = model.predict(parts[0])
    assert list(lazy.columns) == ["p", "q", "r"]
    expected = pd.DataFrame(local.predict(frame), index=frame.index, columns=["p", "q", "r"])
    pd.testing.assert_frame_equal(lazy.compute(), expected)
    probabilities = model.predict_proba(parts[0]).compute()
    np.testing.assert_allclose(probabilities, local.predict_proba(frame), rtol=1e-9)
    assert probabilities.index.equals(frame.index)

    again = pickle.loads(pickle.dumps(model))
    assert again.client is None
    assert not hasattr(again, "client_")
    assert again.rules_ == model.rules_
    model.save(tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").rules_ == model.rules_
    assert type(model.to_local()) is BoomerClassifier
    np.testing.assert_array_equal(model.to_local().predict(frame), model.predict(frame))


def test_sparse_blocks_and_classes(client: Client) -> None:  # noqa: ARG001
    matrix = sp.csr_array(np.where(RNG.random(X.shape) < 0.7, 0.0, X))
    classes = np.array(["red", "green", "blue"])[(X[:, 0] > 0) * 1 + (X[:, 1] > 0.5)]
    options = {**OPTIONS, "loss": "auto", "class_weight": "balanced"}
    blocks = [
        da.from_delayed(dask.delayed(matrix[i : i + 300]), (300, 6), meta=sp.csr_array((0, 6)))
        for i in range(0, N, 300)
    ]
    lazy = da.concatenate(blocks)
    model = DaskBoomerClassifier(**options).fit(lazy, da.from_array(classes, chunks=300))
    local = BoomerClassifier(**options).fit(matrix.toarray(), classes)
    assert model.loss_.name == local.loss_.name == "joint-logistic"
    assert_same(model, local, matrix)
    predicted = model.predict(lazy)
    assert predicted.chunks == ((300,) * 4,)
    assert predicted.dtype == classes.dtype
    np.testing.assert_array_equal(predicted.compute(), local.predict(matrix))


@pytest.mark.parametrize("share", [0.4, 0.6])
def test_rules_are_about_some_of_many_labels_if_most_values_that_count_are_0(client: Client, share: float) -> None:  # noqa: ARG001
    rng = np.random.default_rng(0)
    table = X * (rng.random(X.shape) < share)
    labels = np.eye(40, dtype=np.uint8)[rng.integers(0, 40, N)]
    weight = np.ones(N)
    table[:300], weight[:300] = share < 0.5, 0  # these would turn the balance
    model = DaskBoomerClassifier(**OPTIONS)
    model.fit(*(da.from_array(values, chunks=(200, -1)[: values.ndim]) for values in (table, labels, weight)))
    local = BoomerClassifier(**OPTIONS).fit(table, labels, sample_weight=weight)
    assert {len(rule.scores) for rule in model.rules_[1:]} == {13 if share < 0.5 else 40}
    assert_same(model, local, table)


def test_targets_and_rules_to_go_on_with(client: Client) -> None:  # noqa: ARG001
    targets = X[:, :2] * [3, 100] + RNG.normal(size=(N, 2))
    options = {"n_rules": 12, "max_bins": 255, "random_state": 1, "warm_start": True}
    local = BoomerRegressor(**options).fit(X, targets)
    data = da.from_array(X, chunks=500), da.from_array(targets, chunks=500)
    model = DaskBoomerRegressor(**options | {"n_rules": 6}).fit(*data)
    assert len(model.rules_) == 6
    assert_same(model.set_params(n_rules=12).fit(*data), local, X)
    np.testing.assert_allclose(model.predict(data[0]).compute(), local.predict(X), rtol=1e-9, atol=1e-11)


def test_targets_far_from_0_have_the_spread_that_they_have_near_it() -> None:
    blocks = np.array_split(X[:, 0] + 1e9, 7)
    profiles = [profile_block("block", y, None, read_targets, 1.0, i)[0] for i, y in enumerate(blocks)]
    assert np.std(fitting_module.find_alike(profiles)) == pytest.approx(np.std(X[:, 0]))


def test_two_fits_at_once_stop_early_like_one(client: Client) -> None:
    options = OPTIONS | {"n_rules": 60, "early_stopping": True, "n_iter_no_change": 10, "learning_rate": 0.9}
    local = BoomerClassifier(**options).fit(X[:800], Y[:800], eval_set=(X[800:], Y[800:]))
    assert len(local.rules_) < 60
    models: list[Any] = [DaskBoomerClassifier(**options, client=client) for _ in range(2)]

    def fit(model: Any, size: int) -> None:
        data, labels = da.from_array(X[:800], chunks=size), da.from_array(Y[:800], chunks=size)
        model.fit(data, labels, eval_set=(da.from_array(X[800:], chunks=size), da.from_array(Y[800:], chunks=size)))

    threads = [threading.Thread(target=fit, args=(model, size)) for model, size in zip(models, (150, 400), strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert models[0].rules_.to_dict() == models[1].rules_.to_dict()
    assert models[0].validation_curve_ == models[1].validation_curve_
    assert_same(models[0], local, X)


def test_the_command_line_learns_and_predicts_on_a_cluster(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(song=np.arange(N))
    for k in range(3):
        frame[f"mood_{k}"] = Y[:, k]
    for i in range(3):
        frame[i * 400 : (i + 1) * 400].to_parquet(tmp_path / f"part-{i}.parquet")
    model, pattern = str(tmp_path / "model.json"), str(tmp_path / "part-*.parquet")
    options = ["--loss", "label-wise-logistic", "--n-rules", "12", "--max-bins", "255", "--random-state", "1"]
    on_cluster = ["--dask", client.scheduler.address]
    run = CliRunner().invoke(boomer, ["train", pattern, "--labels", "mood_*,song", "-o", model, *on_cluster])
    assert run.exit_code != 0
    assert "Y must hold only 0 and 1" in str(run.output) + str(run.exception)
    run = CliRunner().invoke(boomer, ["train", pattern, "--labels", "mood_*", "-o", model, *options, *on_cluster])
    assert run.exit_code == 0, run.output
    local = BoomerClassifier(**OPTIONS).fit(frame[[*"abcdef", "song"]], Y)
    learned = load_model(model)
    assert str(learned.rules_).replace("mood_", "y") == str(local.rules_)
    output = str(tmp_path / "predictions.parquet")
    run = CliRunner().invoke(boomer, ["predict", model, pattern, "--id", "song", "-o", output, *on_cluster])
    assert run.exit_code == 0, run.output
    predicted = pd.read_parquet(output).sort_values("song")
    assert list(predicted.columns) == ["song", "mood_0", "mood_1", "mood_2"]
    np.testing.assert_array_equal(predicted.iloc[:, 1:], local.predict(frame[[*"abcdef", "song"]]))
    for arguments, message in (
        ([pattern.replace("part", "gone")], "No such file"),
        ([pattern, "--id", "mood_1"], "'mood_1' is the name of a prediction as well"),
    ):
        run = CliRunner().invoke(boomer, ["predict", model, *arguments, "-o", f"{output}.parquet", *on_cluster])
        assert message in str(run.output) + str(run.exception)

    def lose(*_: Any) -> None:
        raise RuntimeError("training on the cluster ended: worker 7 was lost. More is said in Python")

    monkeypatch.setattr(TeamEngine, "learn", lose)
    run = CliRunner().invoke(boomer, ["train", pattern, "--labels", "mood_*", "-o", model, *options, *on_cluster])
    kept = str(tmp_path / "model-interrupted.json")
    assert f"worker 7 was lost; the 1 rule learned so far are saved in {kept}; {model} is as it was" in run.output
    assert len(load_model(kept).rules_) == 1


def test_what_a_cluster_does_not_do_is_refused_with_the_cure(client: Client) -> None:  # noqa: ARG001
    data = divide(600, 600)
    for options, message in (
        ({"early_stopping": True}, "eval_set"),
        ({"calibration": "isotonic"}, "calibration must be None"),
        ({"device": "cuda"}, "device must be"),
        ({"scoring": "accuracy"}, "scoring must be"),
        ({"max_bins": None}, "max_bins must be"),
        ({"rules_per_round": 4}, "rules_per_round must be 1 or 'auto'"),
    ):
        with pytest.raises(ValueError, match=message):
            DaskBoomerClassifier(**OPTIONS | options).fit(*data)
    with pytest.raises(TypeError, match=r"dask.array.from_array"):
        DaskBoomerClassifier().fit(X, Y)
    with pytest.raises(TypeError, match=r"X is a DataFrame of Dask: pass X.compute\(\)"):
        BoomerClassifier().fit(dd.from_pandas(pd.DataFrame(X), npartitions=2), Y)
    bad = da.from_array(np.where(Y == 1, 7, Y), chunks=600)
    with pytest.raises(ValueError, match=r"block \d: Y must hold only 0 and 1"):
        DaskBoomerClassifier(**OPTIONS).fit(data[0], bad)
    mixture = dd.from_delayed(
        [dask.delayed(pd.DataFrame)({"a": [value] * 600}) for value in ("x", 3)], meta={"a": object}, verify_meta=False
    )
    with pytest.raises(ValueError, match="block 1: feature 'a' is of numbers here and of text in other blocks"):
        DaskBoomerClassifier(**OPTIONS).fit(mixture, data[1])
    with pytest.raises(TypeError, match=r"client must be a distributed.Client, got 'tcp://host:8786'"):
        DaskBoomerClassifier(**OPTIONS, client="tcp://host:8786").fit(*data)
    weight = da.from_array(np.arange(N) - 0.5, chunks=600)
    with pytest.raises(ValueError, match="X has 1200 examples, but sample_weight has 600"):
        DaskBoomerClassifier(**OPTIONS).fit(*data, weight[:600])
    with pytest.raises(ValueError, match=r"block 0: sample_weight must not be negative, got -0\.5 for example 0"):
        DaskBoomerClassifier(**OPTIONS).fit(*data, weight)
    with pytest.raises(ValueError, match=r"eval_set: block \d: Y has 2 labels"):
        DaskBoomerClassifier(**OPTIONS).fit(*data, eval_set=(data[0], data[1].rechunk(600)[:, :2]))


def test_workers_may_share_a_process_and_unknown_labels_go_with_the_default_loss() -> None:
    labels = np.where(RNG.random(Y.shape) < 0.2, np.nan, Y)
    options = OPTIONS | {"loss": "auto"}
    local = BoomerClassifier(**options).fit(X, labels)
    assert local.loss_.name == "joint-logistic"
    data = da.from_array(X, chunks=(400, 6)), da.from_array(labels, chunks=(400, 3))
    with (
        LocalCluster(n_workers=3, threads_per_worker=1, processes=False, dashboard_address=":0") as threads,
        Client(threads) as client,
    ):
        model = DaskBoomerClassifier(**options, client=client).fit(*data)
    assert_same(model, local, X)
    np.testing.assert_array_equal(model.label_vectors_, local.label_vectors_)


@pytest.mark.parametrize("rounds", [{}, {"max_samples": 150, "rules_per_round": 32}], ids=["one rule", "rounds"])
def test_a_worker_that_dies_ends_training_and_its_rules_are_kept(rounds: dict[str, Any]) -> None:
    """With TLS, since a cluster of its own is made anyway."""
    from distributed import Security

    pytest.importorskip("cryptography")
    data = divide(400, 400, 400)
    options = OPTIONS | rounds
    model = DaskBoomerClassifier(**options | {"n_rules": 100_000, "warm_start": True})
    killed: list[float] = []

    def find_process() -> int:
        """The process of a worker that takes part in a fit; 0 if it does not, as it has no block."""
        from pyboomer.dask.team import MEMBERS

        return os.getpid() if MEMBERS else 0

    def kill(progress: Any) -> None:
        if progress.n_rules > (200 if rounds else 10) and not killed:
            processes = client.run(find_process)
            worker = max(address for address, process in processes.items() if process)  # the least address leads
            threading.Timer(0.1, os.kill, (processes[worker], signal.SIGKILL)).start()
            killed.append(time.perf_counter())

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", security=Security.temporary()
        ) as cluster,
        Client(cluster) as client,
    ):
        assert client.scheduler.address.startswith("tls://")
        model.set_params(callbacks=kill)
        with pytest.raises(RuntimeError, match=r"worker tls://.* was lost.*rules learned so far are kept"):
            model.fit(*data)
        assert time.perf_counter() - killed[0] < 30
        learned = len(model.rules_)
        assert learned > 10
        model.set_params(callbacks=None, n_rules=learned + 5).fit(*data)
        assert len(model.rules_) == learned + 5
    at_once = BoomerClassifier(**options | {"n_rules": learned + 5}).fit(X, Y)
    assert str(model.rules_) == str(at_once.rules_)


@pytest.mark.slow
@pytest.mark.parametrize("leads", [True, False])
def test_a_frozen_worker_ends_training_as_a_lost_one_does(monkeypatch: pytest.MonkeyPatch, leads: bool) -> None:
    monkeypatch.setattr("pyboomer.dask.team.SILENCE", 3)
    monkeypatch.setattr("pyboomer.dask.team.CHECKING", 0.5)
    stopped: list[int] = []

    def find_process() -> tuple[int, bool]:
        from pyboomer.dask.team import MEMBERS

        return os.getpid(), any(member.engine is not None for member in MEMBERS.values())

    def stop(progress: Any) -> None:
        if progress.n_rules > 10 and not stopped:
            stopped.extend(process for process, leading in client.run(find_process).values() if leading is leads)
            os.kill(stopped[0], signal.SIGSTOP)

    model = DaskBoomerClassifier(**OPTIONS | {"n_rules": 100_000, "callbacks": stop})
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        workers = sorted(client.nthreads())
        monkeypatch.setattr(fitting_module, "spread", lambda sizes, _: [workers[i % 2] for i in range(len(sizes))])
        try:
            with pytest.raises(RuntimeError, match=r"worker tcp://.* was lost.*rules learned so far are kept"):
                model.fit(*divide(400, 400, 400))
        finally:
            os.kill(stopped[0], signal.SIGCONT)
    assert len(model.rules_) > 10
