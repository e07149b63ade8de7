"""Heads about some of the labels: chosen by their gain, or drawn; and L1 regularisation, which leaves labels out."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pyboomer import BoomerClassifier, BoomerRegressor
from pyboomer.compiling.simd import pad
from pyboomer.editing import refit_heads
from pyboomer.engine.heads import choose_labels
from pyboomer.engine.statistics import Dense, Diagonal, Layout, Outer, count_columns, resize, take_labels
from pyboomer.losses import Loss, dense_hessians, example_wise_logistic, label_wise_logistic, squared_error
from pyboomer.reference import ReferenceRule
from pyboomer.rules.ensemble import RuleEnsemble

Array = NDArray[np.float64]
Check = Callable[..., list[ReferenceRule]]

RNG = np.random.default_rng(4)
N, L, K = 90, 6, 5
X = RNG.normal(size=(N, L)).round(1)
X[RNG.random(X.shape) < 0.05] = np.nan
X[:, 5] = RNG.integers(0, 3, N)
Y = np.where(np.nan_to_num(X) @ RNG.normal(size=(L, K)) + 0.5 * RNG.normal(size=(N, K)) > 0.3, 1.0, -1.0)
LABELS = (Y > 0).astype(np.int8)

dense_logistic = Loss(
    "dense logistic",
    "dense",
    example_wise_logistic.value,
    lambda Y, F: (
        example_wise_logistic.derivatives(Y, F)[0],
        dense_hessians("diagonal-minus-outer", example_wise_logistic.derivatives(Y, F)[1:]),
    ),
)
outer_logistic = Loss(
    "outer logistic", "diagonal-minus-outer", example_wise_logistic.value, example_wise_logistic.derivatives
)
LOSSES = [
    label_wise_logistic,
    example_wise_logistic,
    outer_logistic,
    pytest.param(dense_logistic, marks=pytest.mark.slow),
    squared_error,
]


def pair(losses: list[Loss], heads: list[Any], *marks: Any) -> list[Any]:
    """Each loss with each kind of head."""
    return [pytest.param(loss, head, marks=marks, id=f"{loss.name}, {head}") for loss in losses for head in heads]


def label_sets(rules: RuleEnsemble) -> list[list[int]]:
    """The labels of the heads of all rules but the default rule."""
    return [list(rule.labels) for rule in list(rules)[1:]]


# --- The engine learns what the reference learns ----------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("head", ["multi", "single", 2, 4, 9, 0.05, 0.5])
def test_partial_heads_are_those_of_the_reference(check_oracle: Check, loss: Loss, head: Any) -> None:
    check_oracle(X, Y, nominal=[5], loss=loss, head=head, n_drawn_features=3, n_rules=12)


@pytest.mark.parametrize(
    ("loss", "head"),
    [
        *pair([label_wise_logistic, example_wise_logistic, outer_logistic, squared_error], ["multi"]),
        *pair([example_wise_logistic, outer_logistic], [3, 0.2]),
        # the engine takes long to compile for these
        *pair([label_wise_logistic, squared_error], ["single", 3, 0.2], pytest.mark.slow),
        *pair([example_wise_logistic, outer_logistic], ["single"], pytest.mark.slow),
        *pair([dense_logistic], ["multi", "single", 3, 0.2], pytest.mark.slow),
    ],
)
def test_l1_regularised_heads_are_those_of_the_reference(check_oracle: Check, loss: Loss, head: Any) -> None:
    check_oracle(X, Y, nominal=[5], loss=loss, head=head, l1=0.7, l2=0.5, n_drawn_features=3, n_rules=12)


@pytest.mark.parametrize("head", ["multi", "single", 2, 0.3])
@pytest.mark.parametrize("size", [0, 1, 3, 5])
def test_drawn_labels_are_those_of_the_reference(
    check_oracle: Check, multi: dict[str, Any], head: Any, size: int
) -> None:
    check_oracle(X, Y, nominal=[5], **{**multi, "head": head}, n_drawn_labels=size, n_drawn_features=3)


@pytest.mark.parametrize("fixed", [(0,), (2, 5), (0, 1, 2, 3, 4, 5)])
def test_fixed_features_are_considered_as_in_the_reference(
    check_oracle: Check, variant: dict[str, Any], fixed: tuple[int, ...]
) -> None:
    check_oracle(X, Y, nominal=[5], **variant, n_drawn_features=1, fixed_features=fixed, n_rules=15)


@pytest.mark.parametrize(
    "options", [{"head": 3}, {"head": 0.9}, {"n_drawn_labels": 3}, {"head": 2, "n_drawn_labels": 3}], ids=str
)
def test_a_few_of_many_labels_are_those_of_the_reference(
    check_oracle: Check, multi: dict[str, Any], options: dict[str, Any]
) -> None:
    many = np.random.default_rng(0).permuted(np.tile(Y, (1, 14)), axis=0)
    many[:, :K] = Y
    check_oracle(X, many, nominal=[5], **{**multi, **options}, n_drawn_features=3, n_rules=4)


@pytest.mark.parametrize("head", [2, 0.3])
@pytest.mark.parametrize("options", [{"min_coverage": 8.0}, {"max_conditions": 1}, {"max_conditions": 2}], ids=str)
def test_limits_hold_for_partial_heads(check_oracle: Check, multi: dict[str, Any], head: Any, options: Any) -> None:
    check_oracle(X, Y, nominal=[5], **{**multi, "head": head}, **options, n_drawn_features=3)


@pytest.mark.parametrize("head", [2, 0.3])
def test_weights_and_unknown_labels_are_heeded(check_oracle: Check, multi: dict[str, Any], head: Any) -> None:
    rng = np.random.default_rng(0)
    weights = {"sample_weight": rng.integers(0, 3, N).astype(float), "label_weight": rng.integers(0, 2, Y.shape) * 1.0}
    check_oracle(X, Y, nominal=[5], **{**multi, "head": head}, **weights, n_drawn_features=3)


@pytest.mark.slow
@pytest.mark.parametrize("head", ["multi", "single", 2, 0.3])
def test_sparse_features_make_no_difference(check_oracle: Check, multi: dict[str, Any], head: Any) -> None:
    sparse = np.where(np.abs(np.nan_to_num(X)) < 1, 0.0, X)
    check_oracle(sp.csc_array(sparse), Y, **{**multi, "head": head}, l1=0.3, n_drawn_labels=4, n_drawn_features=3)


def test_examples_without_distinct_values_give_rules_without_conditions(check_oracle: Check) -> None:
    for loss in (label_wise_logistic, example_wise_logistic):
        rules = check_oracle(np.ones((N, 2)), Y, loss=loss, head=2, n_rules=4)
        assert all(rule.body == () for rule in rules)
        assert [np.count_nonzero(rule.head) for rule in rules[1:]] == [2, 2, 2]


# --- Laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["label-wise-logistic", "example-wise-logistic"])
def test_heads_have_the_labels_asked_for(loss: str) -> None:
    options: dict[str, Any] = {"loss": loss, "n_rules": 30, "random_state": 1}
    fixed = BoomerClassifier(head=2, **options).fit(X, LABELS)
    assert {len(labels) for labels in label_sets(fixed.rules_)} == {2}
    assert len(fixed.rules_[0].labels) == K, "the default rule is about all labels"
    sizes = [
        np.mean([len(labels) for labels in label_sets(BoomerClassifier(head=share, **options).fit(X, LABELS).rules_)])
        for share in (0.9, 0.5, 0.1, 1e-9)
    ]
    assert sizes == sorted(sizes)
    assert 1 <= sizes[0] < sizes[-1] == K


@pytest.mark.parametrize("loss", ["label-wise-logistic", "example-wise-logistic"])
def test_heads_of_one_label_and_of_all_labels_are_the_papers(loss: str) -> None:
    def fit(head: Any) -> RuleEnsemble:
        return BoomerClassifier(loss=loss, head=head, n_rules=20, random_state=1).fit(X, LABELS).rules_

    assert fit(1) == fit("single")
    assert fit(K) == fit(K + 3) == fit("multi")


@pytest.mark.parametrize("head", ["multi", "single", 2])
def test_each_rule_is_about_the_label_whose_turn_it_is(head: Any) -> None:
    model = BoomerClassifier(head=head, max_labels="round-robin", n_rules=12, random_state=1).fit(X, LABELS)
    assert label_sets(model.rules_) == [[t % K] for t in range(11)]


@pytest.mark.parametrize(("max_labels", "size"), [(2, 2), (0.6, 3), (1.0, K), (99, K), (None, K)])
def test_labels_are_drawn_for_each_rule(max_labels: Any, size: int) -> None:
    model = BoomerClassifier(max_labels=max_labels, n_rules=2500, random_state=1).fit(X, LABELS)
    sets = label_sets(model.rules_)
    assert {len(labels) for labels in sets} == {size}
    assert {k for labels in sets for k in labels} == set(range(K))
    assert len({tuple(labels) for labels in sets}) == (1 if size == K else 10), "all pairs, or all triples, of five"


@pytest.mark.parametrize(
    ("loss", "head"),
    [
        ("label-wise-logistic", "multi"),
        ("example-wise-logistic", "multi"),
        pytest.param("label-wise-logistic", 2, marks=pytest.mark.slow),
        pytest.param("label-wise-logistic", "single", marks=pytest.mark.slow),
        pytest.param("example-wise-logistic", "single", marks=pytest.mark.slow),
        pytest.param("example-wise-logistic", 2, marks=pytest.mark.slow),
    ],
)
def test_l1_regularisation_leaves_labels_out(loss: str, head: Any) -> None:
    def fit(l1: float) -> RuleEnsemble:
        return (
            BoomerClassifier(loss=loss, head=head, l1=l1, n_rules=40, learning_rate=0.1, random_state=1)
            .fit(X, LABELS)
            .rules_
        )

    sums = [np.abs(fit(l1).head_scores).sum() for l1 in (0.0, 1.0, 3.0)]
    with pytest.warns(UserWarning, match=r"l1=1000000000.0 makes every score zero"):
        sums.append(np.abs(fit(1e9).head_scores).sum())
    assert sums == sorted(sums, reverse=True)
    assert sums[-1] == 0
    rules = fit(3.0)
    assert all(len(rule.scores) == 1 or 0 not in rule.scores for rule in list(rules)[1:])
    if head == "multi":
        assert min(len(labels) for labels in label_sets(rules)) < K


def test_fixed_features_need_not_be_drawn() -> None:
    options: dict[str, Any] = {"loss": "example-wise-logistic", "max_features": 1, "max_conditions": None}
    options |= {"n_rules": 60, "learning_rate": 0.1, "random_state": 1}
    names = [f"x{i}" for i in range(L)]
    import pandas as pd

    frame = pd.DataFrame(X, columns=names)
    by_index = BoomerClassifier(fixed_features=[3], **options).fit(X, LABELS)
    for choice in (["x3"], np.arange(L) == 3, [-3]):
        model = BoomerClassifier(fixed_features=choice, **options).fit(frame, LABELS)
        assert model.rules_.to_dict()["condition_features"] == by_index.rules_.to_dict()["condition_features"]
    free = BoomerClassifier(**options).fit(X, LABELS)
    tests_it = [np.mean(model.rules_.condition_features == 3) for model in (by_index, free)]
    assert tests_it[0] > 1.5 * tests_it[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"head": 0}, "head must be"),
        ({"head": 1.0}, "head must be"),
        ({"head": True}, "head must be"),
        ({"head": "partial"}, "head must be"),
        ({"l1": -1}, "l1 must be a number of at least 0, got -1"),
        ({"max_labels": "all"}, "max_labels must be"),
        ({"max_labels": 0}, "max_labels must be"),
        ({"fixed_features": "x1"}, "fixed_features must be None, a mask, indices or names"),
        ({"fixed_features": [6]}, "fixed_features has index 6, but X has 6 features"),
        ({"fixed_features": ["x9"]}, "fixed_features has 'x9', which is not a column of X"),
        ({"fixed_features": [True]}, "fixed_features is a mask of length 1, but X has 6 features"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BoomerClassifier(**options).fit(X, LABELS)


@pytest.mark.parametrize(
    "options", [{"head": 2}, {"head": 0.4}, {"max_labels": 2}, {"l1": 0.5}, {"fixed_features": [1], "max_features": 1}]
)
@pytest.mark.parametrize("loss", ["label-wise-logistic", "example-wise-logistic"])
def test_binned_features_and_threads_learn_the_same_from_few_values(loss: str, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    coarse = rng.integers(0, 8, (1500, 4)).astype(float)
    labels = (coarse @ rng.normal(size=(4, 4)) + 2 * rng.normal(size=(1500, 4)) > 0).astype(int)
    settings: dict[str, Any] = {"loss": loss, "n_rules": 15, "random_state": 1, **options}
    exact = BoomerClassifier(**settings, max_bins=None).fit(coarse, labels)
    binned = BoomerClassifier(**settings, max_bins=16).fit(coarse, labels)
    threaded = BoomerClassifier(**settings, max_bins=16, n_jobs=2).fit(coarse, labels)
    assert binned.rules_ == threaded.rules_
    np.testing.assert_allclose(binned.decision_function(coarse), exact.decision_function(coarse), rtol=1e-7)


@pytest.mark.parametrize("options", [{"head": 3}, {"max_labels": 3}], ids=str)
@pytest.mark.parametrize("loss", ["label-wise-logistic", "example-wise-logistic"])
def test_a_few_of_many_labels_are_learned_from_bins(loss: str, options: dict[str, Any]) -> None:
    coarse = np.nan_to_num(X).round()
    labels = np.random.default_rng(0).permuted(np.tile(LABELS, (1, 14)), axis=0)
    labels[:, :K] = LABELS
    settings: dict[str, Any] = {"loss": loss, "n_rules": 5, "random_state": 1, **options}
    exact, binned = (BoomerClassifier(**settings, max_bins=bins).fit(coarse, labels) for bins in (None, 16))
    np.testing.assert_allclose(binned.decision_function(coarse), exact.decision_function(coarse), rtol=1e-7)


def test_a_regressor_takes_the_same_options() -> None:
    targets = np.nan_to_num(X[:, :4]) + 100
    for options in ({"head": 2}, {"head": 0.5}, {"max_labels": 1}, {"l1": 0.1}, {"fixed_features": [0]}):
        model = BoomerRegressor(n_rules=100, learning_rate=0.3, random_state=1, **options).fit(X, targets)
        assert model.score(X, targets) > 0.5


@pytest.mark.parametrize(
    "options",
    [
        {"head": 2, "loss": "example-wise-logistic"},
        {"head": 0.4, "loss": "label-wise-logistic"},
        {"l1": 0.5, "loss": "label-wise-logistic"},
        {"max_labels": 3},
        pytest.param({"head": 2}, marks=pytest.mark.slow),
        pytest.param({"head": 0.4}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_models_go_on_and_are_saved_and_refitted(options: dict[str, Any], tmp_path: Any) -> None:
    from pyboomer import load_model

    model = BoomerClassifier(n_rules=30, random_state=1, **options).fit(X, LABELS)
    parts = BoomerClassifier(n_rules=10, random_state=1, warm_start=True, **options).fit(X, LABELS)
    assert parts.set_params(n_rules=30).fit(X, LABELS).rules_ == model.rules_
    model.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.rules_ == model.rules_
    assert {name: getattr(loaded, name) for name in options} == options
    np.testing.assert_allclose(refit_heads(model, X, LABELS).rules_.head_scores, model.rules_.head_scores, atol=1e-9)


# --- The parts --------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 6), min_size=1, max_size=12), st.integers(1, 14), st.sampled_from([0.0, 0.2, 0.5, 0.99]))
def test_the_labels_of_the_largest_gains_are_chosen(gains: list[int], most: int, share: float) -> None:
    labels = np.empty(len(gains), dtype=np.int64)
    chosen = labels[: choose_labels(np.array(gains, dtype=float), min(most, len(gains)), share, labels)].tolist()
    order = sorted(range(len(gains)), key=lambda k: (-gains[k], k))[:most]
    assert chosen == sorted(k for i, k in enumerate(order) if i == 0 or gains[k] >= share * max(gains))


@pytest.mark.parametrize("layout", [Diagonal(11), Outer(11, 0), Outer(11, 2), Dense(11)], ids=str)
def test_statistics_of_some_labels_are_rows_and_columns_of_the_hessian(layout: Layout) -> None:
    rng = np.random.default_rng(0)
    k, labels = 11, np.array([1, 4, 9, 10])
    statistics = rng.normal(size=(3, count_columns(layout)))
    fewer = resize(layout, len(labels))
    assert repr(fewer) == repr(layout._replace(n_labels=len(labels)))
    taken = np.full((3, count_columns(fewer)), np.nan)
    take_labels(layout, statistics, np.arange(3, dtype=np.uint32), labels, taken)
    width, own = pad(k), pad(len(labels))
    np.testing.assert_array_equal(taken[:, : len(labels)], statistics[:, labels])
    if isinstance(layout, Dense):
        H, taken_H = np.zeros((2, 3, k, k))
        H[:, *np.tril_indices(k)] = statistics[:, width : width + k * (k + 1) // 2]
        i, j = np.tril_indices(len(labels))
        taken_H[:, labels[i], labels[j]] = taken[:, own : own + len(i)]
        np.testing.assert_array_equal(taken_H[:, labels[i], labels[j]], H[:, labels[i], labels[j]])
    else:
        for section in range(1, statistics.shape[1] // width):
            np.testing.assert_array_equal(
                taken[:, section * own : section * own + len(labels)], statistics[:, section * width + labels]
            )
    assert np.isfinite(taken).all()


def test_a_loaded_model_goes_on_with_the_same_fixed_features(tmp_path: Any) -> None:
    from pyboomer import load_model

    options: dict[str, Any] = {"fixed_features": [3], "max_features": 1, "random_state": 1, "warm_start": True}
    model = BoomerClassifier(n_rules=10, **options).fit(X, LABELS)
    model.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json").set_params(n_rules=20)
    assert loaded.fit(X, LABELS).rules_ == model.set_params(n_rules=20).fit(X, LABELS).rules_


def test_names_and_indices_are_not_mixed() -> None:
    with pytest.raises(ValueError, match="fixed_features must be all names or all indices"):
        BoomerClassifier(fixed_features=["x0", 1]).fit(X, LABELS)


@pytest.mark.filterwarnings("ignore:l1=")
@pytest.mark.parametrize("options", [{"n_rules": 1}, {"l1": 1e6, "n_rules": 5, "loss": "label-wise-logistic"}])
def test_models_without_conditions_are_explained(options: dict[str, Any]) -> None:
    model = BoomerClassifier(**options).fit(X, LABELS)
    explanation = model.explain(X[:1])[0]
    assert explanation.change is None
    np.testing.assert_allclose(explanation.scores, model.decision_function(X[:1])[0])
