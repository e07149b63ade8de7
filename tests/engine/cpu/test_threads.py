"""Threads divide the work of a round, and change nothing."""

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pyboomer import BoomerClassifier
from pyboomer.engine.cpu import rounds, threads
from pyboomer.engine.cpu.threads import Threads, divide

Array = NDArray[np.float64]


def make_data(n: int, seed: int = 0) -> tuple[Array, NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 1] = rng.integers(0, 6, size=n)  # few values
    X[:, 2] = rng.integers(0, 4, size=n)
    X[rng.random(X.shape) < 0.05] = np.nan
    scores = np.nan_to_num(np.column_stack([X[:, 0] - X[:, 3], X[:, 1] - 2.5, X[:, 2] - 1.5, X[:, 4] + X[:, 0]]))
    return X, (scores + rng.normal(scale=0.5, size=scores.shape) > 0).astype(int)


@pytest.mark.parametrize(
    "options",
    [{"head": "single"}, {"head": "multi"}, {"head": 2}, {"max_labels": 3}, {"head": 2, "max_labels": 3}],
    ids=str,
)
@pytest.mark.parametrize("loss", ["label-wise-logistic", "example-wise-logistic"])
def test_the_number_of_threads_changes_nothing(
    loss: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "ENOUGH", 1)  # so that every step is divided
    monkeypatch.setattr("pyboomer.engine.rounds.GROWTH", 1)
    X, Y = make_data(3000)
    one, *others = (
        BoomerClassifier(loss, n_rules=20, rules_per_round=6, max_bins=16, n_jobs=n, random_state=2, **options)
        .fit(X, Y)
        .rules_
        for n in (None, 2, 4, 5)
    )
    assert all(rules == one for rules in others)


@pytest.mark.parametrize("sampling", ["with-replacement", "without-replacement"])
def test_several_threads_learn_a_body_as_one_does(sampling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "ENOUGH", 1)
    monkeypatch.setattr(rounds, "LARGE", 1)
    monkeypatch.setattr("pyboomer.engine.rounds.GROWTH", 3)
    X, Y = make_data(20_000)
    together = []
    learn = rounds.learn_together
    monkeypatch.setattr(rounds, "learn_together", lambda *given: together.append(1) or learn(*given))
    one, *others = (
        BoomerClassifier(
            "label-wise-logistic",
            n_rules=40,
            rules_per_round=6,
            max_samples=2000,
            max_bins=64,
            n_jobs=n,
            sampling=sampling,
            random_state=2,
        )
        .fit(X, Y)
        .rules_
        for n in (1, 2, 4, 16)
    )
    assert len(together) > 20
    assert all(rules == one for rules in others)


def test_small_steps_are_divided_among_few_threads() -> None:
    with closing(Threads(16)) as some:
        assert [len(some.divide(2**16, numbers)) for numbers in (1, 64, 192, 640, 6400)] == [1, 1, 3, 10, 64]
    with closing(Threads(1)) as one:
        assert one.divide(2**16, 1600) == [slice(0, 2**16)]


@pytest.mark.parametrize("step", [1, 2, 8])
@pytest.mark.parametrize("n_parts", [1, 2, 3, 8])
@pytest.mark.parametrize("size", [1, 7, 8, 16, 100])
def test_parts_are_whole_and_about_equal(size: int, n_parts: int, step: int) -> None:
    parts = divide(size, n_parts, step)
    assert [i for part in parts for i in range(size)[part]] == list(range(size))
    assert all(part.start % step == 0 and part.start < part.stop for part in parts)
    assert len(parts) == min(n_parts, -(-size // step))
    assert max(part.stop - part.start for part in parts) <= -(-size // step // n_parts) * step + step


def test_no_part_is_made_of_nothing() -> None:
    assert divide(0, 3) == []
