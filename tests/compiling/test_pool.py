"""Threads begin where there is room for them; near the limit of memory there is an error, and never an abort."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pyboomer.compiling import pool
from pyboomer.compiling.pool import start_pool

resource = pytest.importorskip("resource")  # there are no such limits elsewhere

# Limits ascend, so that each attempt has more memory than the one before.
NEAR_THE_LIMIT = """
import resource
import numpy as np
from pyboomer import BoomerClassifier

X = np.random.default_rng(0).random((20_000, 20))
Y = (X[:, :12] < 0.3).astype(int)
model = BoomerClassifier("label-wise-logistic", n_rules=3, max_bins=32)
model.fit(X[:50], Y[:50]).set_params(n_jobs=2)  # whatever Python has to import, it has now
np.ones((500, 500)) @ np.ones((500, 500))  # and NumPy's own library its memory: without it, it ends the process
size = int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmSize"))) * 1024
for extra in range(0, 900, 20):
    resource.setrlimit(resource.RLIMIT_AS, (size + extra * 2**20, resource.RLIM_INFINITY))
    try:
        model.fit(X, Y).predict(X)
        print("learned")
        break
    except MemoryError:
        print("MemoryError")
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the size of a process is read from /proc")
def test_a_process_near_its_limit_of_memory_raises_errors_until_there_is_enough() -> None:
    command = [sys.executable, "-c", NEAR_THE_LIMIT]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    *failed, last = done.stdout.split()
    assert set(failed) == {"MemoryError"}
    assert last == "learned"


def test_threads_that_cannot_begin_are_an_error_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    class Limited(ThreadPoolExecutor):
        def _adjust_thread_count(self) -> None:
            if len(self._threads) == 2:
                raise RuntimeError("can't start new thread")
            super()._adjust_thread_count()  # type: ignore[misc]

    with start_pool(3) as three:
        assert list(three.map(abs, [-1, -2, -3, -4])) == [1, 2, 3, 4]
    monkeypatch.setattr(pool, "ThreadPoolExecutor", Limited)
    with pytest.raises(MemoryError, match="no memory is left for 3 threads"):
        start_pool(3)


def test_an_interrupted_start_leaves_no_thread_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(ThreadPoolExecutor):
        def map(self, work: Any, parts: Any) -> Any:  # type: ignore[override]
            self.submit(work, next(iter(parts)))  # waits for the others, which never begin
            raise KeyboardInterrupt

    monkeypatch.setattr(pool, "ThreadPoolExecutor", Interrupted)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        start_pool(3)
    assert threading.active_count() == before
