"""How many threads a fit has is what was asked for; by default, as many as are worth their while and free."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config

from pyboomer import BoomerClassifier
from pyboomer.learning import fitted, parallel, sizing
from pyboomer.learning.parallel import count_threads


def count_all() -> list[int]:
    return [
        count_threads("auto", much=False),
        count_threads("auto", much=True),
        count_threads(2, False),
        count_threads(None, True),
    ]


@pytest.mark.parametrize(("cores", "used"), [(1, 1), (4, 4), (64, 64)])
def test_many_examples_are_learned_by_all_cores(cores: int, used: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "effective_n_jobs", lambda n_jobs: cores if n_jobs == -1 else n_jobs or 1)
    assert count_all() == [1, used, 2, 1]


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_each_of_several_parallel_jobs_has_one_thread(backend: str) -> None:
    counts = Parallel(n_jobs=2, backend=backend)(delayed(count_all)() for _ in range(2))
    assert [own[1] for own in counts] == [1, 1]


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_so_has_each_job_of_a_pool(pool: Any) -> None:
    with pool(1) as jobs:
        assert jobs.submit(count_all).result()[1] == 1


def test_no_more_threads_are_used_than_joblib_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "effective_n_jobs", lambda n_jobs: 6 if n_jobs == -1 else n_jobs)
    with parallel_config(backend="threading", n_jobs=3):
        assert count_threads("auto", much=True) == 3
    assert count_threads("auto", much=True) == 6


def test_the_default_learns_and_predicts_the_same_with_any_number_of_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "ENOUGH", 100)
    monkeypatch.setattr(fitted, "WORTHWHILE", 100)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(5000, 6))
    Y = (X[:, :3] + rng.normal(size=(len(X), 3)) > 0).astype(int)
    asked = []

    def learn(cores: int) -> BoomerClassifier:
        def count(n_jobs: int) -> int:
            asked.append(n_jobs)
            return cores

        monkeypatch.setattr(parallel, "effective_n_jobs", count)
        return BoomerClassifier(n_rules=20, max_bins=64, random_state=1).fit(X, Y)

    one, three = learn(1), learn(3)
    assert one.rules_ == three.rules_
    np.testing.assert_array_equal(one.decision_function(X), three.decision_function(X))
    assert asked == [-1] * 4  # to learn, and for scores
