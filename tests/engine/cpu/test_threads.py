"""Threads divide the steps of learning by bins, and change nothing."""

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pyboomer import BoomerClassifier
from pyboomer.engine.cpu import threads
from pyboomer.engine.cpu.ledger import Ledger
from pyboomer.engine.cpu.threads import Threads, divide
from pyboomer.engine.heads import Penalty, make_room
from pyboomer.engine.promise import Task
from pyboomer.losses import Loss, dense_hessians, example_wise_logistic, label_wise_logistic

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
    monkeypatch.setattr(threads, "WAKING", 1)  # so that every step is divided
    X, Y = make_data(3000)
    one, *others = (
        BoomerClassifier(loss, n_rules=20, max_bins=16, n_jobs=n, random_state=2, **options).fit(X, Y).rules_
        for n in (None, 2, 4, 5)
    )
    assert all(rules == one for rules in others)


def test_small_steps_wake_few_threads() -> None:
    with closing(Threads(16)) as some:
        assert [some.count(numbers) for numbers in (0, 2**20, 2**21, 2**23, 2**25, 2**30)] == [1, 1, 2, 4, 8, 16]


def change_shape(shape: str) -> Loss:
    """The example-wise logistic loss as a user's own, of some shape."""

    def derivatives(Y: Array, F: Array) -> tuple[Array, ...]:
        g, *curvature = example_wise_logistic.derivatives(Y, F)
        return g, *((dense_hessians(example_wise_logistic.shape, tuple(curvature)),) if shape == "dense" else curvature)

    return Loss(shape, shape, example_wise_logistic.value, derivatives)


@pytest.mark.parametrize("n_labels", [5, 11, 20])  # of 20 labels, conjugate gradients solve the linear system
@pytest.mark.parametrize(
    "loss",
    [label_wise_logistic, example_wise_logistic, change_shape("diagonal-minus-outer"), change_shape("dense")],
    ids=lambda loss: loss.name,
)
def test_heads_and_statistics_are_the_same_to_the_last_bit(
    loss: Loss, n_labels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "WAKING", 1)
    rng = np.random.default_rng(0)
    n = 300
    task = Task(None, rng.choice([-1, 1], size=(n, n_labels)).astype(np.int8), rng.uniform(0.5, 2.0, size=n))
    rows, penalty = np.arange(0, n, 2, dtype=np.uint32), Penalty(0.01, 1.0)

    def learn(count: int) -> tuple[Array, ...]:
        pool = Threads(count)
        ledger = Ledger(task, loss, False, pool)
        ledger.write()
        head = np.full(n_labels, np.nan)
        room = make_room(ledger.layout)
        gain, coverage = pool.fit_head(ledger.layout, ledger.statistics, rows, task.weight, penalty, room, head)
        ledger.apply(rows, np.arange(n_labels), head)
        pool.close()
        return head, np.array([gain, coverage]), ledger.scores, ledger.statistics

    one = learn(1)
    assert (one[0] != 0).all()
    for count in (2, 3, 7):
        for part, expected in zip(learn(count), one, strict=True):
            np.testing.assert_array_equal(part, expected)


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
