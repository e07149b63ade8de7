"""A team of shards learns the rules of the local engine, and the same ones bit for bit however examples are divided."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pyboomer.columns.binned import bin_columns
from pyboomer.engine.choice import make_engine
from pyboomer.engine.cluster import learner as learner_module
from pyboomer.engine.cluster import steps as steps_module
from pyboomer.engine.cluster.fixed import choose_unit, fix_values
from pyboomer.engine.cluster.learner import (
    ClusterLearner,
    Course,
    Summary,
    assign,
    check_settings,
    learn_default_head,
    make_shard,
)
from pyboomer.engine.cluster.shard import Block, OddsShard, Shard
from pyboomer.engine.cluster.steps import Order
from pyboomer.engine.promise import Chunk, Settings, Task
from pyboomer.losses import Loss, example_wise_logistic, find_loss, label_wise_logistic, squared_error
from pyboomer.predicting.decoding import find_label_vectors

N, K = 1500, 5
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 10))
X[RNG.random(X.shape) < 0.05] = np.nan
X[:, 3] = RNG.integers(0, 5, N)
Y = np.nan_to_num(X[:, :K]) + 0.5 * RNG.normal(size=(N, K)) > 0.3
SIGNS = np.where(Y, np.int8(1), np.int8(-1))
BINS = bin_columns(X, {3: (0, 1, 2, 3, 4)}, 255)
DIVISIONS = ((0, N), (0, 700, N), (0, 100, 101, 800, N), (0, *RNG.choice(np.arange(1, N), 12, replace=False), N))


class LocalTeam:
    """Shards that are all here."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.shards = shards

    def ask(self, orders: Sequence[Order]) -> Callable[[], list[Any]]:
        answers = [shard.obey(orders) for shard in self.shards]
        return lambda: answers


def make_learner(task: Task, settings: Settings, division: Sequence[int], n_shards: int) -> ClusterLearner:
    weight, n_labels = task.weight, task.Y.shape[1]
    weighted = task.label_weight is not None and not np.isin(task.label_weight, (0, 1)).all()
    summary = Summary(N, float(weight.sum()), float(weight.max()), weighted)
    duty = assign(settings, summary, n_labels, task.columns.nominal)
    default = None
    if task.Y.dtype == np.int8:
        default = learn_default_head(task._replace(columns=None), settings)
        duty = duty._replace(head=default[0])
    edges, blocks = sorted(division), []
    for a, b in pairwise(edges):
        own = None if task.label_weight is None else task.label_weight[a:b]
        blocks.append(Block(int(a), task.columns.codes[:, a:b], task.Y[a:b], weight[a:b], own, None))
    shards = [make_shard(some, [], duty) for i in range(n_shards) if (some := blocks[i::n_shards])]
    course = Course(settings, duty, summary, n_labels, np.empty(0, dtype=np.int64), default, 0)
    return ClusterLearner(LocalTeam(shards), course)


def list_bits(chunks: Sequence[Chunk]) -> list[bytes]:
    return [array.tobytes() for chunk in chunks for array in chunk]


def joint() -> Loss:
    prepare = find_loss("joint-logistic").prepare
    assert prepare is not None
    return prepare(*find_label_vectors(Y.astype(np.uint8), np.ones(N)))


CASES: dict[str, dict[str, Any]] = {
    "odds": {"loss": label_wise_logistic, "max_samples": 150},
    "odds and long bodies": {"loss": label_wise_logistic, "max_samples": 150, "max_conditions": None},
    "a small sample": {"loss": label_wise_logistic, "small": 2**15},
    "a sample that becomes small": {"loss": label_wise_logistic, "small": 600},
    "partial heads of drawn labels": {"loss": example_wise_logistic, "head": 2, "max_labels": 4, "small": 600},
    "weighted single heads": {"loss": label_wise_logistic, "head": "single", "small": 600, "weighted": True},
    "unknown labels": {"loss": example_wise_logistic, "unknown": True},
    "few labels": {"loss": example_wise_logistic, "n_labels": 3},  # sums are as long with and without Hessians
    "joint": {"loss": joint()},
    "targets": {"loss": squared_error, "default_l2": 0.0, "weighted": True, "max_conditions": None, "mean": 1e4},
    "no sampling": {"loss": label_wise_logistic, "bootstrap": False, "small": 600},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_rules_are_those_of_the_local_engine_however_examples_are_divided(
    case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = dict(case)
    small = case.pop("small", 2**15)
    monkeypatch.setattr(steps_module, "SMALL", small)
    monkeypatch.setattr(learner_module, "SMALL", small)
    rng = np.random.default_rng(1)
    weight = rng.random(N) + 0.1 if case.pop("weighted", False) else np.ones(N)
    known = (rng.random(Y.shape) < 0.9).astype(np.float64) if case.pop("unknown", False) else None
    n_labels = case.pop("n_labels", K)
    mean = case.pop("mean", 0.0)  # far from 0, statistics become small with the default rule
    values: NDArray[Any] = mean + np.nan_to_num(X[:, :2]) * 5 if mean else SIGNS[:, :n_labels]
    options = {"max_features": "sqrt", "max_conditions": 4, "max_bins": 255, "learning_rate": 0.3, "seed": 5} | case
    settings = Settings(n_rules=15, **options)
    task = Task(BINS.columns, values, weight, known)
    local = make_engine(task, settings)
    local.learn(14)
    expected = local.take_rules()

    bits = None
    for n_shards, division in zip((1, 2, 3, 7), DIVISIONS, strict=True):
        team = make_learner(task, settings, division, n_shards)
        team.learn(14)
        chunks = team.take_rules()
        bits = bits or [*list_bits(chunks), team.training_loss()]
        assert [*list_bits(chunks), team.training_loss()] == bits, f"{n_shards} shards"
    for t, (chunk, other) in enumerate(zip(chunks, expected, strict=True)):
        np.testing.assert_array_equal(chunk.conditions[:, :3], other.conditions[:, :3], err_msg=f"rule {t}")
        np.testing.assert_array_equal(chunk.labels, other.labels)
        np.testing.assert_allclose(chunk.scores, other.scores, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(chunk.coverage, other.coverage)
    np.testing.assert_allclose(team.training_loss(), local.training_loss())


def test_small_samples_and_a_label_wise_loss_make_odds() -> None:
    settings = Settings(loss=label_wise_logistic, max_samples=150, max_bins=255)
    task = Task(BINS.columns, SIGNS, np.ones(N))
    assert isinstance(make_learner(task, settings, (0, N), 1).steps.team.shards[0], OddsShard)  # type: ignore[attr-defined]


def test_sums_in_fixed_point_are_the_same_in_any_order_and_right() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=10_000) * 10.0 ** rng.integers(-8, 8, 10_000)
    largest = float(np.abs(values).max())
    unit = choose_unit(largest, largest * len(values))
    whole = fix_values(values, unit)
    assert whole.sum() == whole[rng.permutation(len(whole))].sum()
    assert whole.sum() * unit == pytest.approx(values.sum(), rel=1e-10, abs=len(values) * unit)
    assert abs(whole).max() <= 2**44
    assert choose_unit(0.0, 0.0) > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampling": "without-replacement"}, "sampling must be"),
        ({"loss": example_wise_logistic, "search": "exact"}, 'choose search="bound"'),
    ],
)
def test_what_takes_all_examples_in_one_place_is_refused_with_the_cure(options: dict[str, Any], message: str) -> None:
    settings = Settings(**{"loss": label_wise_logistic, "max_bins": "auto"} | options)
    with pytest.raises(ValueError, match=message):
        check_settings(settings, K)
    with pytest.raises(ValueError, match="at most 256 labels"):
        check_settings(Settings(loss=example_wise_logistic, max_bins=255), 1000)
