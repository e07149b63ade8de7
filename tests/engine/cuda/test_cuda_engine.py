"""The GPU engine learns the rules of the reference, and of the binned engine of this machine.

Where there is a GPU, on it (`pytest -m cuda`); everywhere, by the same kernels compiled for the host (`emulation`).
"""

from typing import Any

import numpy as np
import pytest
from emulation import COMPILER, EmulatedDevice

from pyboomer import reference
from pyboomer.columns.binned import MISSING, SHARED, BinnedColumns
from pyboomer.compiling.device import NoDevice, find_device
from pyboomer.engine import rounds
from pyboomer.engine.cpu.engines import HostEngine
from pyboomer.engine.cuda import engine as engine_module
from pyboomer.engine.cuda import plan as plan_module
from pyboomer.engine.cuda.engine import CudaEngine
from pyboomer.engine.cuda.sources import read_program
from pyboomer.engine.protocol import Chunk, Settings, Task
from pyboomer.engine.sampling import NO_STRATA, Strata
from pyboomer.losses import example_wise_logistic, joint_logistic, label_wise_logistic, squared_error
from pyboomer.reference import Setting, find_head, learn_rules, sum_statistics
from pyboomer.rules.operators import OPERATORS

N, L, K = 300, 9, 5


@pytest.fixture(scope="module", params=["emulated", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> Any:
    if request.param == "emulated":
        if COMPILER is None:
            pytest.skip("there is no C++ compiler to emulate a GPU with")
        return EmulatedDevice(read_program())
    try:
        return find_device(read_program())
    except NoDevice as error:
        pytest.skip(str(error))


def make_codes(n: int = N, n_bins: int = 20, seed: int = 0) -> tuple[BinnedColumns, np.ndarray]:
    """Bin numbers, of which some are missing, one feature is nominal, and one is almost always 0; and labels."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_bins, (L, n)).astype(np.uint8)
    codes[1] = rng.random(n) < 0.1
    codes[3] = rng.integers(0, 4, n)
    vote = (codes - codes.mean(axis=1, keepdims=True)) / codes.std(axis=1, keepdims=True)
    Y = np.where(vote.T @ rng.normal(size=(L, K)) + rng.normal(size=(n, K)) > 1, 1, -1).astype(np.int8)
    codes[rng.random(codes.shape) < 0.05] = MISSING
    return BinnedColumns(codes, (np.arange(L) == 3).astype(np.int8)), Y


def learn(engine: Any, n_rules: int) -> Chunk:
    """All rules in one chunk; they are learned in two goes."""
    engine.learn(n_rules // 2)
    engine.learn(n_rules - n_rules // 2)
    return join(engine.take_rules())


def join(chunks: list[Chunk]) -> Chunk:
    return Chunk(**{name: np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in Chunk._fields})


def make_settings(**options: Any) -> Settings:
    given = {"loss": label_wise_logistic, "learning_rate": 0.3, "max_features": 3, "max_conditions": 4, "seed": 3}
    return Settings(**given | options)


def assert_rules_of_the_reference(chunk: Chunk, task: Task, settings: Settings) -> None:
    X = task.columns.codes.T.astype(np.float64)
    X[X == MISSING] = np.nan
    n_samples = None if settings.max_samples is None else int(settings.max_samples)
    setting = Setting(
        loss=settings.loss,
        head=settings.head,
        n_rules=len(chunk.gain),
        rules_per_round=settings.rules_per_round,
        learning_rate=settings.learning_rate,
        l1=settings.l1,
        l2=settings.l2,
        bootstrap=settings.bootstrap,
        n_samples=n_samples,
        strata=(task.strata.examples, task.strata.ends),
        n_drawn_labels={"round-robin": 0}.get(settings.max_labels, settings.max_labels),  # type: ignore[call-overload]
        n_drawn_features=settings.max_features,  # type: ignore[arg-type]
        fixed_features=tuple(task.fixed_features.tolist()),
        nominal=tuple(np.flatnonzero(task.columns.nominal).tolist()),
        max_conditions=settings.max_conditions,
        min_coverage=settings.min_coverage,
        seed=settings.seed,
    )
    expected = learn_rules(X, task.Y.astype(np.float64), setting, task.weight, task.label_weight)
    conditions = iter(chunk.conditions.tolist())
    used = 0
    for t, rule in enumerate(expected):
        body = [next(conditions) for _ in range(chunk.n_conditions[t])]
        assert tuple((int(f), OPERATORS[int(o)], v) for f, o, v, _ in body) == rule.body, f"rule {t}"
        own = slice(used, used + chunk.n_scores[t])
        head = np.zeros(task.Y.shape[1])
        head[chunk.labels[own]] = chunk.scores[own]
        used = own.stop
        np.testing.assert_allclose(head, rule.head, rtol=1e-5, atol=1e-6 * np.abs(rule.head).max(), err_msg=f"rule {t}")
        np.testing.assert_allclose(chunk.gain[t], rule.gain, rtol=1e-5, atol=1e-9, err_msg=f"rule {t}")


def weigh(shape: Any, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.3], shape)


def make_joint(Y: np.ndarray) -> Any:
    vectors, counts = np.unique((Y > 0).astype(np.uint8), axis=0, return_counts=True)
    loss = joint_logistic()
    assert loss.prepare is not None
    return loss.prepare(vectors, counts.astype(np.float64))


def regress(columns: BinnedColumns, Y: np.ndarray) -> np.ndarray:
    return 0.1 * columns.codes[4:7].T + Y[:, :3] + np.array([0.0, 10.0, -3.0])


MANY = Strata(np.random.default_rng(0).permutation(N).astype(np.uint32), np.array([N // 3, N]))
CASES: dict[str, dict[str, Any]] = {
    "multi": {},
    "single": {"head": "single"},
    "single, example-wise": {"head": "single", "loss": example_wise_logistic},
    "some": {"head": 2},
    "a share": {"head": 0.5},
    "l1": {"l1": 1.5},
    "single, l1": {"l1": 1.5, "head": "single"},
    "without l2": {"l2": 0.0},
    "weights": {"weight": weigh(N)},
    "weights of labels": {"label_weight": weigh((N, K))},
    "unknown labels": {"label_weight": np.minimum(weigh((N, K)), 1).round()},
    "without replacement": {"strata": MANY, "max_samples": 100},
    "small samples": {"max_samples": 40},
    "no bootstrap": {"bootstrap": False},
    "fixed features": {"fixed": [0, 5]},
    "all features": {"max_features": L},
    "drawn labels": {"max_labels": 2},
    "labels in turn": {"max_labels": "round-robin"},
    "least coverage": {"min_coverage": 30.0},
    "any length": {"max_conditions": None},
    "nothing to learn": {"l1": 1e6},
    "nothing to learn, single": {"l1": 1e6, "head": "single"},
    "squared error": {"loss": squared_error, "max_conditions": None},
    "joint": {"loss": "joint"},
    "joint, unknown labels": {"loss": "joint", "label_weight": np.minimum(weigh((N, K)), 1).round()},
}


def make_case(case: dict[str, Any]) -> tuple[Task, Settings]:
    case = dict(case)
    columns, Y = make_codes()
    if case.get("loss") == "joint":
        case["loss"] = make_joint(Y[: N // 2])
    if case.get("loss") is squared_error:
        Y = regress(columns, Y)
    weight, label_weight = case.pop("weight", np.ones(N)), case.pop("label_weight", None)
    strata, fixed = case.pop("strata", NO_STRATA), np.array(case.pop("fixed", []), dtype=np.int64)
    case["sampling"] = "without-replacement" if len(strata.ends) else "with-replacement"
    case.setdefault("default_l2", case.get("l2", 1.0))
    return Task(columns, Y, weight, label_weight, strata, fixed), make_settings(**case)


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds grow at once: with at most 3 rules, they begin with rules 1, 2, 4, 7, 10, ..."""
    for module in (rounds, reference):
        monkeypatch.setattr(module, "GROWTH", 1)


@pytest.mark.parametrize("per_round", [1, 3])
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.slow] * (name == "a share"), id=name) for name, case in CASES.items()],
)
@pytest.mark.usefixtures("early")
def test_rules_are_those_of_the_reference(case: dict[str, Any], per_round: int, device: Any) -> None:
    task, settings = make_case({**case, "rules_per_round": per_round})
    engine = CudaEngine(task, settings, device=device)
    chunk = learn(engine, 5)
    assert_rules_of_the_reference(chunk, task, settings)
    Y, weight = task.Y.astype(np.float64), task.label_weight
    scores = device.read(engine.arrays["scores"]) + (task.Y if settings.loss is squared_error else 0)
    expected = settings.loss.mean_value(Y, scores, weight, task.weight)
    assert engine.training_loss() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("per_round", [1, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_conditions": None},
        pytest.param({"head": 2}, marks=pytest.mark.slow),  # the processor's engine takes long to compile for these
        pytest.param({"l1": 0.5}, marks=pytest.mark.slow),
    ],
    ids=str,
)
@pytest.mark.usefixtures("early")
def test_rules_by_the_bound_are_those_of_the_engine_of_this_process(
    options: dict[str, Any], per_round: int, device: Any
) -> None:
    task, settings = make_case({"loss": example_wise_logistic, "rules_per_round": per_round, **options})
    expected = learn(HostEngine(task, settings), 5)
    chunk = learn(CudaEngine(task, settings, device=device), 5)
    np.testing.assert_array_equal(chunk.n_conditions, expected.n_conditions)
    np.testing.assert_array_equal(chunk.conditions[:, :3], expected.conditions[:, :3])
    np.testing.assert_array_equal(chunk.labels, expected.labels)
    np.testing.assert_allclose(chunk.scores, expected.scores, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(chunk.gain, expected.gain, rtol=1e-5)
    np.testing.assert_allclose(chunk.coverage, expected.coverage)


def test_many_labels_and_bins_and_rarer_categories_that_share_one(device: Any) -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 255, (4, 600)).astype(np.uint8)
    codes[2] = np.where(rng.random(600) < 0.6, 254, rng.integers(0, 254, 600))
    Y = np.where(codes[:2].T @ rng.normal(size=(2, 40)) + 50 * rng.normal(size=(600, 40)) > 0, 1, -1).astype(np.int8)
    task = Task(BinnedColumns(codes, np.array([0, 0, SHARED, 0], dtype=np.int8)), Y, np.ones(600))
    settings = make_settings(max_features=None)
    expected = learn(HostEngine(task, settings), 4)
    chunk = learn(CudaEngine(task, settings, device=device), 4)
    np.testing.assert_array_equal(chunk.conditions[:, :3], expected.conditions[:, :3])
    np.testing.assert_allclose(chunk.scores, expected.scores, rtol=1e-5, atol=1e-7)


def test_long_rules_are_learned_in_several_goes(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    task, settings = make_case({"max_conditions": None, "loss": example_wise_logistic, "max_features": L})
    whole = learn(CudaEngine(task, settings, device=device), 3)
    assert whole.n_conditions.max() > 4
    for name in ("AT_ONCE", "STEPS"):
        monkeypatch.setattr(engine_module, name, 2)
    monkeypatch.setattr(plan_module, "RULES", 2)
    assert_same_bits(learn(CudaEngine(task, settings, device=device), 3), whole)


def assert_same_bits(one: Chunk, two: Chunk) -> None:
    for name, a, b in zip(Chunk._fields, one, two, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.parametrize("options", [{}, {"loss": example_wise_logistic, "max_conditions": None}], ids=["label", "ex"])
def test_two_runs_have_the_same_bits(options: dict[str, Any], device: Any) -> None:
    task, settings = make_case(options)
    assert_same_bits(*(learn(CudaEngine(task, settings, device=device), 4) for _ in range(2)))


# what decides about the course of a round
COURSES: dict[str, dict[str, Any]] = {
    "label-wise": {},
    "example-wise": {"loss": example_wise_logistic},
    "example-wise, iterated": {"loss": example_wise_logistic, "n_labels": 50},
    "example-wise, some": {"loss": example_wise_logistic, "head": 2},
    "single": {"head": "single"},
    "drawn labels, example-wise": {"max_labels": 2, "loss": example_wise_logistic},
    "any length": {"max_conditions": None},
    "without replacement": {"strata": MANY, "max_samples": 100},
}


def make_course(course: dict[str, Any], per_round: int = 3) -> tuple[Task, Settings]:
    course = dict(course)
    n_labels = course.pop("n_labels", K)
    task, settings = make_case({**course, "rules_per_round": per_round})
    if n_labels > K:
        task = task._replace(Y=np.where(np.random.default_rng(2).random((N, n_labels)) < 0.2, 1, -1).astype(np.int8))
    return task, settings


def cover(chunk: Chunk, rule: int, task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Which examples a rule covers, and its head for all labels."""
    offsets = np.append(0, np.cumsum(chunk.n_conditions)), np.append(0, np.cumsum(chunk.n_scores))
    covered = task.weight > 0
    for f, o, value, _ in chunk.conditions[offsets[0][rule] : offsets[0][rule + 1]]:
        x = task.columns.codes[int(f)]
        met = {"<=": x <= value, ">": x > value, "==": x == value, "!=": x != value}[OPERATORS[int(o)]]
        covered = covered & met & (x != MISSING)
    head, own = np.zeros(task.Y.shape[1]), slice(offsets[1][rule], offsets[1][rule + 1])
    head[chunk.labels[own]] = chunk.scores[own]
    return covered, head


@pytest.mark.parametrize("course", COURSES.values(), ids=COURSES)
@pytest.mark.usefixtures("early")
def test_heads_of_a_round_follow_one_another_to_first_order(course: dict[str, Any], device: Any) -> None:
    task, settings = make_course(course, 4)
    chunk = learn(CudaEngine(task, settings, device=device), 9)
    setting = Setting(settings.loss, head=settings.head, l2=settings.l2)
    scores, t = np.zeros(task.Y.shape), 0
    while t < len(chunk.gain):
        g, *curvature = settings.loss.derivatives(task.Y.astype(np.float64), scores)
        H = reference.dense_hessians(settings.loss.shape, tuple(curvature))
        size = rounds.find_round(t, 4)[1] if t else 1
        for rule in range(t, min(t + size, len(chunk.gain))):
            covered, head = cover(chunk, rule, task)
            if rule:
                labels = chunk.labels[np.cumsum(chunk.n_scores)[rule - 1] :][: chunk.n_scores[rule]].astype(np.int64)
                own, gain = find_head(
                    *sum_statistics(task.weight[covered], g[covered], H[covered]), "multi", setting, labels
                )
                np.testing.assert_allclose(head, settings.learning_rate * own, rtol=1e-5, atol=1e-6 * np.abs(own).max())
                np.testing.assert_allclose(chunk.gain[rule], gain, rtol=1e-5)
            scores[covered] += head
            g[covered] += H[covered] @ head
        t += size


@pytest.mark.parametrize("course", COURSES.values(), ids=COURSES)
@pytest.mark.usefixtures("early")
def test_chunks_and_batches_change_no_bit(course: dict[str, Any], device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    task, settings = make_course(course)
    whole = CudaEngine(task, settings, device=device)
    whole.learn(8)
    expected = join(whole.take_rules())
    for batch, counts in ((1, (8,)), (2, (3, 5)), (3, (1,) * 8)):
        monkeypatch.setattr(engine_module, "count_bodies", lambda *_, batch=batch: batch)
        monkeypatch.setattr(plan_module, "RULES", batch)
        engine = CudaEngine(task, settings, device=device)
        for count in counts:
            engine.learn(count)
        assert_same_bits(join(engine.take_rules()), expected)
        assert engine.training_loss() == whole.training_loss()


@pytest.mark.parametrize("course", COURSES.values(), ids=COURSES)
@pytest.mark.usefixtures("early")
def test_rules_that_there_are_already_are_gone_on_with(course: dict[str, Any], device: Any) -> None:
    """Also in the middle of a round: of rules 4, 5 and 6, for instance."""
    task, settings = make_course(course)
    engine = CudaEngine(task, settings, device=device)
    engine.learn(8)
    whole = join(engine.take_rules())

    def replay(scores: np.ndarray, first: int, last: int) -> None:
        for rule in range(first, last):
            covered, head = cover(whole, rule, task)
            scores[covered] += head

    for n_rules in (4, 5, 6):
        later = CudaEngine(task, settings, replay, n_rules, device=device)
        later.learn(1)
        later.learn(8 - n_rules)
        assert_same_bits(join(later.take_rules()), take(whole, n_rules))
        assert later.training_loss() == engine.training_loss()


def take(chunk: Chunk, first: int) -> Chunk:
    """The rules from one on."""
    starts = {"conditions": chunk.n_conditions[:first].sum()}
    starts |= dict.fromkeys(("labels", "scores"), chunk.n_scores[:first].sum())
    return Chunk(**{name: getattr(chunk, name)[starts.get(name, first) :] for name in Chunk._fields})


@pytest.mark.usefixtures("early")
def test_rounds_may_have_more_rules_than_a_word_has_bits(device: Any) -> None:
    columns, Y = make_codes(60)
    task = Task(columns, Y[:, :2], np.ones(60))
    settings = make_settings(rules_per_round=40, max_conditions=2, max_samples=20)
    assert_rules_of_the_reference(learn(CudaEngine(task, settings, device=device), 103), task, settings)


def test_sums_that_do_not_fit_32_bits_are_right(device: Any) -> None:
    """All examples are in one bin, and none is usual: its sum is far beyond what a term may be."""
    codes = np.repeat([[0, 1, 2]], 700, axis=1).astype(np.uint8)
    Y = np.where(codes.T > 0, 1, -1).astype(np.int8)
    task = Task(BinnedColumns(codes, np.zeros(1, dtype=np.int8)), Y, np.full(2100, 1e9))
    settings = make_settings(max_features=None, bootstrap=False, l2=0.0, default_l2=0.0)
    assert_rules_of_the_reference(learn(CudaEngine(task, settings, device=device), 2), task, settings)


def test_too_little_memory_is_told_before_anything_is_learned(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    task, settings = make_case({})
    monkeypatch.setattr(device, "count_free", lambda: 1000)
    with pytest.raises(MemoryError, match="300 examples, 9 features and 5 labels need"):
        CudaEngine(task, settings, device=device)
