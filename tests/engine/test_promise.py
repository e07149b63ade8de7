"""How many threads a fit has is what was asked for; by default, as many as are worth their while and free."""

import numpy as np
import pytest
from joblib import Parallel, delayed

from pyboomer import BoomerClassifier
from pyboomer.engine import promise
from pyboomer.engine.promise import MANY, count_threads


def count_all() -> list[int]:
    return [
        count_threads("auto", MANY),
        count_threads("auto", MANY + 1),
        count_threads(2, 1),
        count_threads(None, 10**9),
    ]


@pytest.mark.parametrize(("cores", "used"), [(1, 1), (4, 4), (64, 8)])
def test_many_examples_are_learned_by_all_cores_up_to_eight(
    cores: int, used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(promise, "effective_n_jobs", lambda n_jobs: cores if n_jobs == -1 else n_jobs or 1)
    assert count_all() == [1, used, 2, 1]


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_each_of_several_parallel_jobs_has_one_thread(backend: str) -> None:
    counts = Parallel(n_jobs=2, backend=backend)(delayed(count_all)() for _ in range(2))
    assert [own[1] for own in counts] == [1, 1]


def test_the_default_learns_and_predicts_the_same_with_any_number_of_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(MANY + 10, 6))
    Y = (X[:, :3] + rng.normal(size=(len(X), 3)) > 0).astype(int)
    seen = []

    def learn(cores: int) -> BoomerClassifier:
        monkeypatch.setattr(promise, "effective_n_jobs", lambda n_jobs: seen.append(n_jobs) or cores)  # type: ignore[func-returns-value]
        return BoomerClassifier(n_rules=20, random_state=1).fit(X, Y)

    one, three = learn(1), learn(3)
    assert one.rules_ == three.rules_
    np.testing.assert_array_equal(one.decision_function(X), three.decision_function(X))
    assert set(seen) == {-1}
