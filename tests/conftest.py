"""What the tests of the algorithm share: the engine and the reference behind one call each, and their comparison."""

import gc
import os

# Each process of a run has a core. Threads of BLAS and OpenMP would wait for each other, at work; and this has to be
# said before NumPy is imported.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import settings
from numpy.typing import NDArray

from pyboomer.columns.categories import encode, find_categories
from pyboomer.columns.sorted import sort_columns
from pyboomer.columns.sparse import sort_stored
from pyboomer.datasets import Dataset, load_dataset
from pyboomer.engine.choice import make_engine
from pyboomer.engine.cpu.engines import HostEngine
from pyboomer.engine.protocol import Settings, Task
from pyboomer.engine.sampling import NO_STRATA
from pyboomer.learning.training import collect_rules
from pyboomer.losses import example_wise_logistic, label_wise_logistic, squared_error
from pyboomer.reference import ReferenceRule, Setting, covers, learn_rules
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.operators import OPERATORS
from pyboomer.rules.schema import Schema

Array = NDArray[np.float64]

# The first call of a compiled function takes its time: no deadline. A run tells what a change broke and nothing else,
# so its cases are the same in every run; `pytest --hypothesis-profile=random` looks for others.
settings.register_profile("random", deadline=None)
settings.register_profile("same", deadline=None, derandomize=True)
settings.load_profile("same")
gc.set_threshold(1_000_000)  # compiling makes many objects that stay: to look for cycles among them takes its time

DEFAULTS: dict[str, Any] = {
    "loss": example_wise_logistic,
    "head": "multi",
    "rules_per_round": 1,
    "learning_rate": 0.3,
    "l1": 0.0,
    "l2": 1.0,
    "bootstrap": True,
    "n_samples": None,
    "n_drawn_labels": None,
    "n_drawn_features": None,
    "fixed_features": (),
    "max_conditions": None,
    "min_coverage": 0.0,
    "seed": 0,
}
VARIANTS = {
    f"{loss.name}, {head}": {"loss": loss, "head": head}
    for loss in (label_wise_logistic, example_wise_logistic)
    for head in ("single", "multi")
}

# What is compiled is kept on disk for all processes of a run. What compiles most comes first, what hardly compiles in
# the middle, where the second process begins: most of what it needs later on has been compiled by then.
TESTS = Path(__file__).parent
ORDER = (
    ("losses",),
    ("columns", "engine"),
    ("data", "datasets", "rules", "test_compat.py", "test_files.py", "test_house.py", "test_metrics.py"),
    (),  # all others
    ("cli", "dask", "editing", "experiments", "export"),
)
PLACES = {name: place for place, names in enumerate(ORDER) for name in names}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests in an order in which little is compiled twice."""
    items.sort(key=lambda item: PLACES.get(item.path.relative_to(TESTS).parts[0], ORDER.index(())))


def make_booster(
    X: Any, Y: Array, *, nominal: Sequence[int] = (), sample_weight: Array | None = None, **options: Any
) -> tuple[HostEngine, Schema]:
    """The engine, ready to learn, and what the features are; `search` is exact unless told."""
    options = {**DEFAULTS, "search": "exact", **options}
    weight = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    Y = Y if options["loss"] is squared_error else Y.astype(np.int8)
    mask = np.isin(np.arange(X.shape[1]), nominal)
    matrix = sp.csc_array(X) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    categories = find_categories(matrix, mask)
    columns = (
        sort_stored(matrix, categories) if sp.issparse(X) else sort_columns(encode(matrix, categories), categories)
    )
    strata, fixed = options.pop("strata", NO_STRATA), np.array(options.pop("fixed_features"), dtype=np.int64)
    task = Task(columns, Y, weight, options.pop("label_weight", None), strata, fixed)
    options["sampling"] = "with-replacement" if strata is NO_STRATA else "without-replacement"
    n_labels = options.pop("n_drawn_labels")
    options.setdefault("default_l2", options["l2"])
    renamed = {"max_samples": options.pop("n_samples"), "max_features": options.pop("n_drawn_features")}
    settings = Settings(**options, **renamed, max_labels="round-robin" if n_labels == 0 else n_labels)
    schema = Schema(tuple(f"x{i}" for i in range(X.shape[1])), categories)
    return cast(HostEngine, make_engine(task, settings)), schema


def name_rules(booster: HostEngine, schema: Schema) -> RuleEnsemble:
    Y = booster.task.Y
    names = tuple(f"y{k}" for k in range(Y.shape[1]))
    return collect_rules(booster.take_rules(), schema, names, None)


def as_reference_rules(rules: RuleEnsemble) -> list[ReferenceRule]:
    """The rules of an ensemble in the form of the reference; categories stay codes."""
    result = []
    for t in range(len(rules)):
        own = slice(rules.condition_offsets[t], rules.condition_offsets[t + 1])
        body = tuple(
            (int(feature), OPERATORS[operator], float(value))
            for feature, operator, value in zip(
                rules.condition_features[own], rules.condition_operators[own], rules.condition_values[own], strict=True
            )
        )
        head = np.zeros(len(rules.label_names))
        own = slice(rules.head_offsets[t], rules.head_offsets[t + 1])
        head[rules.head_labels[own]] = rules.head_scores[own]
        shares = rules.condition_shares[rules.condition_offsets[t] : rules.condition_offsets[t + 1]]
        result.append(ReferenceRule(body, head, float(rules.gain[t]), tuple(shares.tolist())))
    return result


@pytest.fixture(scope="session")
def booster_of() -> Callable[..., HostEngine]:
    """The engine with the default rule learned."""
    return lambda X, Y, **options: make_booster(X, Y, **options)[0]


@pytest.fixture(scope="session")
def learn() -> Callable[..., list[ReferenceRule]]:
    """Learn rules with the engine, `chunks` rules per call; Y holds -1 and +1."""

    def learn(
        X: Any, Y: Array, *, n_rules: int = 10, chunks: Sequence[int] | None = None, **options: Any
    ) -> list[ReferenceRule]:
        booster, schema = make_booster(X, Y, **options)
        for count in [n_rules - 1] * (n_rules > 1) if chunks is None else chunks:
            booster.learn(count)
        return as_reference_rules(name_rules(booster, schema))

    return learn


@pytest.fixture(scope="session")
def encode_nominal() -> Callable[..., Array]:
    """X as the reference takes it: dense, with the codes of the categories in the nominal columns."""

    def encode_nominal(X: Any, nominal: Sequence[int] = ()) -> Array:
        dense = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        return np.asarray(encode(dense, find_categories(dense, np.isin(np.arange(X.shape[1]), nominal))))

    return encode_nominal


@pytest.fixture(scope="session")
def assert_same_rules() -> Callable[..., None]:
    """Two lists of rules are the same, rule for rule: conditions exactly, heads and gains up to rounding."""

    def assert_same_rules(rules: list[ReferenceRule], expected: list[ReferenceRule], rtol: float = 1e-7) -> None:
        assert len(rules) == len(expected)
        for t, (a, b) in enumerate(zip(rules, expected, strict=True)):
            assert a.body == b.body, f"rule {t}"
            np.testing.assert_allclose(a.head, b.head, rtol=rtol, atol=1e-12, err_msg=f"head of rule {t}")
            np.testing.assert_allclose(a.gain, b.gain, rtol=rtol, atol=1e-12, err_msg=f"gain of rule {t}")
            np.testing.assert_allclose(a.shares, b.shares, rtol=1e-6, atol=1e-6, err_msg=f"shares of rule {t}")

    return assert_same_rules


@pytest.fixture(scope="session")
def check_oracle(
    encode_nominal: Callable[..., Array], assert_same_rules: Callable[..., None]
) -> Callable[..., list[ReferenceRule]]:
    """Learn with the engine, exactly, and with the reference; the rules must be the same. Returns them."""

    def check_oracle(
        X: Any,
        Y: Array,
        *,
        n_rules: int = 10,
        nominal: Sequence[int] = (),
        sample_weight: Array | None = None,
        label_weight: Array | None = None,
        **options: Any,
    ) -> list[ReferenceRule]:
        weights = {"sample_weight": sample_weight, "label_weight": label_weight}
        booster, schema = make_booster(X, Y, nominal=nominal, **weights, **options)
        booster.learn(n_rules - 1)
        learned = name_rules(booster, schema)
        rules = as_reference_rules(learned)
        dense = encode_nominal(X, nominal)
        setting = Setting(**{**DEFAULTS, **options}, n_rules=n_rules, nominal=tuple(nominal))
        assert_same_rules(rules, learn_rules(dense, Y.astype(np.float64), setting, **weights))
        weight = np.ones(len(dense)) if sample_weight is None else sample_weight
        np.testing.assert_allclose(learned.coverage, [weight[covers(rule.body, dense)].sum() for rule in rules])
        return rules

    return check_oracle


@pytest.fixture(scope="session", params=VARIANTS.values(), ids=VARIANTS)
def variant(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The loss and the kind of head: the four variants of the paper."""
    return dict(request.param)


@pytest.fixture(
    scope="session", params=[v for v in VARIANTS.values() if v["head"] == "multi"], ids=lambda v: v["loss"].name
)
def multi(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The two variants with multi-label heads."""
    return dict(request.param)


@pytest.fixture(scope="session")
def benchmark_data() -> Callable[[str], Dataset]:
    """A benchmark data set by name; the test is skipped where $PYBOOMER_DATA does not lead to it."""

    def benchmark_data(name: str) -> Dataset:
        folder = os.environ.get("PYBOOMER_DATA")
        if not folder:
            pytest.skip("PYBOOMER_DATA names no folder with benchmark data")
        return load_dataset(name, data_home=folder)

    return benchmark_data


@pytest.fixture(scope="session")
def hostile_names() -> list[str]:
    """Names that a page must show as text: some would run as scripts, others upset the reading of it."""
    return [
        "<script>window.ran = 1</script>",
        "</script><script>window.ran = 2</script>",
        "<!--<script>",
        '"><img src=x onerror="window.ran = 3">',
        "' onmouseover='window.ran = 4",
        "&lt;b&gt; &amp; ${window.ran = 5}",
        "🙂 emoji 👩‍🔬",
        "\u202eright to left\u2028next\u2029line",
        "שלום עולם",
        "javascript:window.ran=6",
        "\x00\x1b[31m control \t\n",
    ]
