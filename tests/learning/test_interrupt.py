"""A long fit can be watched, stopped and interrupted, and never holds up other threads."""

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from pyboomer import BoomerClassifier, Loss, Progress
from pyboomer.learning.interrupt import DeferredInterrupt
from pyboomer.losses import example_wise_logistic

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 10))
Y = (X[:, :4] + RNG.normal(size=(300, 4)) > 0).astype(int)


def learn(**options: Any) -> BoomerClassifier:
    return BoomerClassifier(**{"n_rules": 30, "random_state": 1, **options}).fit(X, Y)


# --- Callbacks --------------------------------------------------------------------------------------------------------


def test_a_callback_is_called_after_each_rule_with_number_loss_and_seconds() -> None:
    seen: list[Progress] = []
    losses: list[float] = []

    def watch(progress: Progress) -> None:
        seen.append(progress)
        losses.append(progress.loss)

    model = learn(loss="example-wise-logistic", callbacks=watch)
    assert [progress.n_rules for progress in seen] == list(range(1, 31))
    assert all(a.seconds <= b.seconds for a, b in pairwise(seen))
    stages = list(model.staged_decision_function(X))
    expected = [example_wise_logistic.value(2.0 * Y - 1, scores).mean() for scores in stages]
    np.testing.assert_allclose(losses, expected, rtol=1e-9)


def test_a_callback_changes_nothing_but_may_stop_training() -> None:
    everything = learn()
    assert learn(callbacks=lambda _: None).rules_ == everything.rules_
    assert learn(callbacks=lambda _: False).rules_ == everything.rules_
    stopped = learn(callbacks=[lambda _: None, lambda progress: progress.n_rules >= 7])
    assert stopped.rules_ == everything.rules_[:7]


def test_all_callbacks_are_called_even_if_one_stops() -> None:
    calls: list[str] = []
    learn(callbacks=[lambda _: calls.append("a") or True, lambda _: calls.append("b")])  # type: ignore[func-returns-value]
    assert calls == ["a", "b"]


def test_an_error_in_a_callback_is_raised() -> None:
    def fail(progress: Progress) -> None:
        raise RuntimeError(f"at rule {progress.n_rules}")

    with pytest.raises(RuntimeError, match="at rule 1"):
        learn(callbacks=fail)


def test_an_interrupt_in_a_callback_leaves_a_fitted_model() -> None:
    def interrupt(progress: Progress) -> None:
        if progress.n_rules == 5:
            raise KeyboardInterrupt

    model = BoomerClassifier(n_rules=30, random_state=1, callbacks=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.rules_ == learn().rules_[:5]
    assert model.predict(X).shape == Y.shape


# --- Progress ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verbose", [1, True])
def test_verbose_shows_a_bar_on_standard_error(verbose: Any, capsys: pytest.CaptureFixture[str]) -> None:
    learn(verbose=verbose)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Learning" in printed.err
    assert "30/30" in printed.err


def test_nothing_is_printed_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    learn().predict(X)
    printed = capsys.readouterr()
    assert printed.out == printed.err == ""


# --- Threads ----------------------------------------------------------------------------------------------------------


def test_fits_at_the_same_time_give_the_same_as_one_after_the_other() -> None:
    own = Loss("own", "diagonal-minus-outer", example_wise_logistic.value, example_wise_logistic.derivatives)
    tasks: list[dict[str, Any]] = [
        {"random_state": 1},
        {"random_state": 2},
        {"head": "single"},
        {"loss": "label-wise-logistic"},
        {"loss": own},
    ]
    alone = [learn(n_rules=150, **task).rules_ for task in tasks]
    with ThreadPoolExecutor(len(tasks)) as pool:
        together = list(pool.map(lambda task: learn(n_rules=150, **task).rules_, tasks))
    assert together == alone


def test_predictions_at_the_same_time_are_the_same() -> None:
    model = learn(n_jobs=2)
    expected = model.predict_proba(X)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: model.predict_proba(X), range(8)):
            np.testing.assert_array_equal(found, expected)


def test_the_number_of_threads_changes_nothing() -> None:
    models = [learn(n_jobs=n_jobs) for n_jobs in (None, 1, 2, -1)]
    for model in models[1:]:
        assert model.rules_ == models[0].rules_
        np.testing.assert_array_equal(model.predict_proba(X), models[0].predict_proba(X))


def test_another_thread_keeps_ticking_during_a_long_fit() -> None:
    learn()  # compiled, if it was not
    table = np.random.default_rng(1).normal(size=(60_000, 10))  # a rule is a single call of compiled code of 0.1 s
    labels = (table[:, :4] > 0).astype(int)
    n_ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal n_ticks
        while not done.wait(0.01):
            n_ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    BoomerClassifier(n_rules=10**6, callbacks=lambda p: p.seconds > 0.5).fit(X, Y)
    BoomerClassifier(n_rules=8, max_features=None).fit(table, labels)
    seconds = time.perf_counter() - start
    done.set()
    thread.join()
    assert n_ticks > seconds / 0.01 / 4  # of those due; tests may run beside others


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------


SCRIPT = """
import signal
import time
import numpy as np
from pyboomer import BoomerClassifier

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is started to ignore it

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 10))
Y = (X[:, :4] + rng.normal(size=(300, 4)) > 0).astype(int)
BoomerClassifier(n_rules=30).fit(X, Y).predict(X)
model = BoomerClassifier(n_rules=10**7, random_state=1)
print("ready", flush=True)
try:
    model.fit(X, Y)
except KeyboardInterrupt:
    print(len(model.rules_), model.predict(X).shape, flush=True)
    first = BoomerClassifier(n_rules=20, random_state=1).fit(X, Y).rules_
    print(model.rules_[:20] == first, flush=True)
    raise
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send to a process")
def test_ctrl_c_ends_a_long_fit_at_once_and_leaves_a_usable_model() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.7)
            process.send_signal(signal.SIGINT)
            sent = time.perf_counter()
            count, shape = process.stdout.readline().split(" ", 1)
            seconds = time.perf_counter() - sent
            same = process.stdout.readline()
            _, errors = process.communicate(timeout=20)
        finally:
            process.kill()
    assert seconds < 2.5  # about 0.1 s; tests may run beside others
    assert int(count) > 20
    assert shape == "(300, 4)\n"
    assert same == "True\n"
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert process.returncode != 0


def test_the_handler_of_ctrl_c_is_restored_after_success_and_failure() -> None:
    before = signal.getsignal(signal.SIGINT)
    learn()
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(ZeroDivisionError):
        learn(callbacks=lambda _: 1 / 0)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_that_is_not_pythons_own_is_left_alone() -> None:
    caught: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: caught.append(number))
    try:
        with DeferredInterrupt() as interrupt:
            signal.raise_signal(signal.SIGINT)
        assert caught == [signal.SIGINT]
        assert not interrupt.pending
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_is_noted_and_raised_where_it_can_do_no_harm() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        interrupt = DeferredInterrupt()
        with pytest.raises(KeyboardInterrupt), interrupt:
            signal.raise_signal(signal.SIGINT)
        assert interrupt.pending
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_at_the_last_rule_is_not_lost() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    model = BoomerClassifier(n_rules=5, random_state=1)
    model.callbacks = lambda p: signal.raise_signal(signal.SIGINT) if p.n_rules == 5 else None
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(model.rules_) == 5
