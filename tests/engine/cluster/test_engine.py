"""A team of shards learns the rules of the local engine, and the same ones bit for bit however examples are divided."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pyboomer.arrays import Array
from pyboomer.columns.binned import bin_columns
from pyboomer.engine.choice import make_engine
from pyboomer.engine.cluster import leader
from pyboomer.engine.cluster.engine import ClusterEngine, make_shard
from pyboomer.engine.cluster.leader import Updates
from pyboomer.engine.cluster.odds import ShardOfOdds
from pyboomer.engine.cluster.shard import Learned, Shard
from pyboomer.engine.cluster.task import (
    MOST_SAMPLES,
    Block,
    ClusterTask,
    Summary,
    check_settings,
    learn_default_head,
)
from pyboomer.engine.fixed import choose_unit, fix_values
from pyboomer.engine.protocol import Chunk, Settings, Task
from pyboomer.engine.rounds import find_round
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
        self.shards, self.n_threads = shards, [shard.threads.n_threads for shard in shards]

    def ask(self, updates: Updates, name: str, arguments: Sequence[Any]) -> list[Any]:
        return [shard.answer(updates, name, arguments) for shard in self.shards]

    def learn_bodies(self, updates: Updates, shares: Mapping[int, Sequence[int]]) -> list[Learned]:
        learned = []
        for i, share in shares.items():
            shard, others = self.shards[i], [*self.shards[:i], *self.shards[i + 1 :]]
            gathered = [other.answer(updates, "gather", (share, str(i))) for other in others]
            shard.answer(updates, "update", ())
            learned.append(shard.learn_bodies(share, [*gathered, shard.draw(share)]))
        return learned


def make_cluster(
    task: Task,
    settings: Settings,
    division: Sequence[int],
    n_shards: int,
    past: tuple[Array | None, Array | None, int] = (None, None, 0),
) -> ClusterEngine:
    """The engine of a cluster; `past` are scores of rules that there are, those before the round, and their number."""
    weight, n_labels = task.weight, task.Y.shape[1]
    weighted = task.label_weight is not None and not np.isin(task.label_weight, (0, 1)).all()
    summary = Summary(N, float(weight.sum()), float(weight.max()), weighted)
    check_settings(settings, summary, n_labels)
    scores, before, n_rules = past
    default = None
    if task.Y.dtype == np.int8 and n_rules == 0:
        default = learn_default_head(task._replace(columns=None), settings)
    nothing = np.empty(0, dtype=np.int64)
    given = ClusterTask(settings, summary, n_labels, task.columns.nominal, nothing, default, n_rules)
    edges, blocks = sorted(division), []
    for a, b in pairwise(edges):
        own = [None if array is None else array[a:b] for array in (weight, task.label_weight, scores, before)]
        blocks.append(Block(int(a), task.columns.codes[:, a:b], task.Y[a:b], own[0], own[1], *own[2:]))
    n_threads = settings.n_threads
    shards = [make_shard(some, [], given, n_threads) for i in range(n_shards) if (some := blocks[i::n_shards])]
    return ClusterEngine(LocalTeam(shards), given)


def list_bits(chunks: Sequence[Chunk]) -> list[bytes]:
    return [array.tobytes() for chunk in chunks for array in chunk]


def joint() -> Loss:
    prepare = find_loss("joint-logistic").prepare
    assert prepare is not None
    return prepare(*find_label_vectors(Y.astype(np.uint8), np.ones(N)))


CASES: dict[str, dict[str, Any]] = {
    "odds": {"loss": label_wise_logistic, "max_samples": 150},
    "odds and long bodies": {"loss": label_wise_logistic, "max_samples": 150, "max_conditions": None},
    "a large sample": {"loss": label_wise_logistic},
    "partial heads of drawn labels": {"loss": example_wise_logistic, "head": 2, "max_labels": 4},
    "weighted single heads": {"loss": label_wise_logistic, "head": "single", "weighted": True},
    "unknown labels": {"loss": example_wise_logistic, "unknown": True},
    "few labels": {"loss": example_wise_logistic, "n_labels": 3},  # sums are as long with and without Hessians
    "joint": {"loss": joint()},
    "targets": {"loss": squared_error, "default_l2": 0.0, "weighted": True, "max_conditions": None, "mean": 1e4},
    "no sampling": {"loss": label_wise_logistic, "bootstrap": False},
    "labels in turn": {"loss": label_wise_logistic, "max_labels": "round-robin"},
    "no rule gains": {"loss": example_wise_logistic, "head": 2, "min_coverage": 2.0 * N},
    "no rule of one label gains": {"loss": example_wise_logistic, "head": "single", "min_coverage": 2.0 * N},
    "l1": {"loss": label_wise_logistic, "head": 3, "l1": 20.0},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_rules_are_those_of_the_local_engine_however_examples_are_divided(
    case: dict[str, Any],
) -> None:
    case = dict(case)
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
        team = make_cluster(task, settings, division, n_shards)
        team.learn(14)
        chunks = team.take_rules()
        bits = bits or [*list_bits(chunks), team.training_loss()]
        assert [*list_bits(chunks), team.training_loss()] == bits, f"{n_shards} shards"
    found, wanted = (Chunk(*map(np.concatenate, zip(*some, strict=True))) for some in (chunks, expected))
    np.testing.assert_array_equal(found.n_conditions, wanted.n_conditions)
    np.testing.assert_array_equal(found.conditions[:, :3], wanted.conditions[:, :3])
    np.testing.assert_array_equal(found.n_scores, wanted.n_scores)
    np.testing.assert_array_equal(found.labels, wanted.labels)
    np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.coverage, wanted.coverage)
    np.testing.assert_allclose(found.gain, wanted.gain, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(team.training_loss(), local.training_loss())


ROUNDS: dict[str, dict[str, Any]] = {
    "rounds of one rule": {"rules_per_round": 1},
    "rounds": {"rules_per_round": 3},
    "many conditions": {"max_conditions": None},
    "weights": {"weighted": True, "min_coverage": 3.0},
    "examples of weight 0": {"absent": True},
    "unknown labels": {"unknown": True},
    "l1": {"l1": 5.0},
}


@pytest.mark.parametrize("case", ROUNDS.values(), ids=ROUNDS)
def test_small_samples_and_a_label_wise_loss_give_the_rules_of_this_process_bit_for_bit(
    case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    monkeypatch.setattr(leader, "MOST_BYTES", 3 * 150 * 30)  # three samples
    case = {"rules_per_round": 8, "max_conditions": 4, "weighted": False, "absent": False, "unknown": False} | case
    weight = np.where(rng.random(N) < 0.3 * case.pop("absent"), 0.0, 1.0)
    weight = np.where(case.pop("weighted"), rng.random(N) + 0.1, weight)
    known = (rng.random(Y.shape) < 0.9).astype(np.float64) if case.pop("unknown") else None
    settings = Settings(
        label_wise_logistic, n_rules=430, max_samples=150, max_features="sqrt", max_bins=255, seed=5, **case
    )
    task = Task(BINS.columns, SIGNS, weight, known)
    local = make_engine(task, settings)
    local.learn(407)  # ends inside a round of eight
    first = local.take_rules()
    loss = local.training_loss()
    local.learn(24)
    expected = [*list_bits(first), loss, *list_bits(local.take_rules()), local.training_loss()]
    for n_shards, n_threads, division in zip((1, 2, 3, 7), (1, 2, 1, 3), DIVISIONS, strict=True):
        cluster = make_cluster(task, replace(settings, n_threads=n_threads), division, n_shards)
        assert all(isinstance(shard, ShardOfOdds) for shard in cluster.odds.leader.team.shards)  # type: ignore[attr-defined]
        found: list[Any] = []
        for counts in ((100, 7, 300), (1, 23)):
            for count in counts:
                cluster.learn(count)
            found += [*list_bits(cluster.take_rules()), cluster.training_loss()]
        assert found == expected, f"{n_shards} shards"


def test_rules_that_there_are_are_gone_on_with_in_the_middle_of_a_round() -> None:
    settings = Settings(label_wise_logistic, n_rules=430, rules_per_round=8, max_samples=150, max_conditions=4, seed=5)
    task, rng = Task(BINS.columns, SIGNS, np.ones(N)), np.random.default_rng(2)
    first, _ = find_round(407, 8)
    assert first < 407
    before, later = rng.normal(size=(2, N, K))

    def replay(scores: Array, begin: int, end: int) -> None:
        scores += before if end == first else later
        assert begin in (0, first)

    local = make_engine(task, settings, replay, 407)
    local.learn(20)
    expected = [*list_bits(local.take_rules()), local.training_loss()]
    for n_shards, division in zip((1, 3), DIVISIONS[::2], strict=True):
        cluster = make_cluster(task, settings, division, n_shards, (before + later, before, 407))
        cluster.learn(20)
        assert [*list_bits(cluster.take_rules()), cluster.training_loss()] == expected


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
        ({"max_samples": None, "n": MOST_SAMPLES + 1}, "set max_samples to 262144 or less$"),
        ({"bootstrap": False, "n": MOST_SAMPLES + 1}, "set max_samples to 262144 or less, and bootstrap=True"),
        ({"loss": example_wise_logistic, "rules_per_round": 2}, "rules_per_round must be 1 or 'auto' on a cluster"),
        ({"rules_per_round": 2, "max_samples": 0.6}, "rules_per_round must be 1 or 'auto' on a cluster"),
        ({"sampling": "without-replacement"}, "sampling must be"),
        ({"loss": example_wise_logistic, "search": "exact"}, 'choose search="bound"'),
    ],
)
def test_what_takes_all_examples_in_one_place_is_refused_with_the_cure(options: dict[str, Any], message: str) -> None:
    options = {"loss": label_wise_logistic, "max_bins": "auto", "n": N} | options
    n = options.pop("n")
    with pytest.raises(ValueError, match=message):
        check_settings(Settings(**options), Summary(n, n, 1.0, False), K)
    with pytest.raises(ValueError, match="at most 256 labels"):
        check_settings(Settings(loss=example_wise_logistic, max_bins=255), Summary(N, N, 1.0, False), 1000)
