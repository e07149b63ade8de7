"""The classifier learns from whatever is valid, says what is wrong with the rest, and keeps a few laws."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pyboomer import BoomerClassifier, Loss, RuleEnsemble
from pyboomer.datasets import load_dataset
from pyboomer.losses import example_wise_logistic

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 4))
Y = (X[:, :3] + 0.5 * RNG.normal(size=(50, 3)) > 0).astype(int)
VARIANTS = list(product(["label-wise-logistic", "example-wise-logistic"], ["single", "multi"]))


def classifier(**options: Any) -> BoomerClassifier:
    return BoomerClassifier(**{"n_rules": 20, "random_state": 1, **options})


# --- What is learned --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "head"), VARIANTS)
def test_it_learns_a_real_problem(loss: str, head: str) -> None:
    digits = load_dataset("digits7")
    train, test = np.arange(0, 1797, 2), np.arange(1, 1797, 2)
    model = BoomerClassifier(loss, head=head, n_rules=300, learning_rate=0.3, random_state=1)
    model.fit(digits.X[train], digits.Y[train])
    assert model.score(digits.X[test], digits.Y[test]) > (0.9 if head == "multi" else 0.75)
    assert (model.predict(digits.X[test]) != digits.Y[test]).mean() < 0.07


def test_the_attributes_of_a_fitted_model_are_those_documented() -> None:
    model = classifier().fit(pd.DataFrame(X, columns=list("abcd")), pd.DataFrame(Y, columns=["u", "v", "w"]))
    assert isinstance(model.rules_, RuleEnsemble)
    assert len(model.rules_) == 20
    assert model.rules_[0].body == ()
    assert model.label_names_ == ("u", "v", "w")
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == list("abcd")
    assert {tuple(row) for row in model.label_vectors_.tolist()} == {tuple(row) for row in Y.tolist()}
    fitted = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    document = BoomerClassifier.__doc__ or ""
    assert all(f"\n    {name} : " in document for name in fitted)


@pytest.mark.parametrize(("loss", "head"), VARIANTS)
def test_so_many_rules_are_learned_as_were_asked_for(loss: str, head: str) -> None:
    for n_rules in (1, 2, 3, 10):
        model = classifier(loss=loss, head=head, n_rules=n_rules).fit(X, Y)
        assert len(model.rules_) == n_rules
        assert model.rules_ == classifier(loss=loss, head=head).fit(X, Y).rules_[:n_rules]


def test_ten_thousand_rules_are_no_problem() -> None:
    model = classifier(n_rules=10_000).fit(X, Y)
    assert len(model.rules_) == 10_000
    assert np.isfinite(model.decision_function(X)).all()
    np.testing.assert_array_equal(model.predict(X), Y)


@pytest.mark.parametrize(("loss", "head"), VARIANTS)
@pytest.mark.parametrize("search", ["bound", "exact"])
def test_without_regularisation_scores_stay_finite(loss: str, head: str, search: str) -> None:
    model = classifier(loss=loss, head=head, search=search, l2=0, learning_rate=1.0, n_rules=150).fit(X, Y)
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(model.predict_proba(X)).all()


def test_limits_on_rules_are_kept() -> None:
    model = classifier(max_conditions=2, n_rules=60).fit(X, Y)
    assert max(len(rule.body) for rule in model.rules_) == 2
    model = classifier(min_coverage=12, bootstrap=False, n_rules=60).fit(X, Y)
    assert model.rules_.coverage.min() >= 12
    assert classifier(head="single").fit(X, Y).rules_[1:].head_matrix().astype(bool).sum(axis=1).max() == 1


def test_the_search_by_bound_and_the_exact_one_learn_equally_well() -> None:
    losses = []
    for search in ("bound", "exact"):
        model = classifier(loss="example-wise-logistic", search=search, n_rules=100, learning_rate=0.3).fit(X, Y)
        losses.append(example_wise_logistic.value(2.0 * Y - 1, model.decision_function(X)).mean())
    assert losses[0] == pytest.approx(losses[1], rel=0.15)


@pytest.mark.parametrize("shape", ["diagonal-minus-outer", "dense"])
def test_a_loss_of_ones_own_is_learned_like_a_built_in_one(shape: str) -> None:
    def derivatives(F: Any, S: Any) -> Any:
        g, a, b = example_wise_logistic.derivatives(F, S)
        if shape == "diagonal-minus-outer":
            return g, a, b
        return g, a[:, :, None] * np.eye(a.shape[1]) - b[:, :, None] * b[:, None, :]

    own = Loss("own", shape, example_wise_logistic.value, derivatives)
    options: dict[str, Any] = {"search": "exact" if shape == "dense" else "bound"}
    model, expected = (
        classifier(loss=own, **options).fit(X, Y),
        classifier(loss="example-wise-logistic", **options).fit(X, Y),
    )
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


# --- Weights ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "head"), VARIANTS)
def test_an_example_of_weight_two_is_the_example_twice(loss: str, head: str) -> None:
    weight = np.random.default_rng(1).integers(0, 4, 50)
    options: dict[str, Any] = {"loss": loss, "head": head, "bootstrap": False}
    weighted = classifier(**options).fit(X, Y, sample_weight=weight)
    repeated = classifier(**options).fit(X.repeat(weight, axis=0), Y.repeat(weight, axis=0))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-6, atol=1e-9)
    assert {tuple(v) for v in weighted.label_vectors_.tolist()} == {tuple(v) for v in repeated.label_vectors_.tolist()}


@pytest.mark.parametrize("bootstrap", [False, True])
def test_an_example_of_weight_zero_counts_as_absent(bootstrap: bool) -> None:
    weight = np.ones(50)
    weight[::3] = 0
    present = weight > 0
    for make in (np.asarray, sp.csr_array, pd.DataFrame):
        weighted = classifier(bootstrap=bootstrap).fit(make(X), Y, sample_weight=weight)
        assert weighted.rules_ == classifier(bootstrap=bootstrap).fit(make(X[present]), Y[present]).rules_
        np.testing.assert_array_equal(weighted.label_vectors_, classifier().fit(X[present], Y[present]).label_vectors_)


@pytest.mark.parametrize("scale", [2.0**-20, 0.125, 1024.0])
def test_only_the_ratio_of_the_weights_to_the_regularisation_matters(scale: float) -> None:
    weight = np.random.default_rng(1).integers(1, 4, 50).astype(float)
    scaled = classifier(l2=scale).fit(X, Y, sample_weight=scale * weight)
    expected = classifier(l2=1.0).fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(scaled.decision_function(X), expected.decision_function(X), rtol=1e-6, atol=1e-9)


def test_weights_of_one_are_no_weights() -> None:
    expected = classifier().fit(X, Y).rules_
    for weight in (None, np.ones(50), [1] * 50, 1.0, pd.Series(np.ones(50)), np.ones(50, dtype=np.float32)):
        assert classifier().fit(X, Y, sample_weight=weight).rules_ == expected


BAD_WEIGHTS = {
    "negative": (np.where(np.arange(50) == 7, -2.0, 1.0), "sample_weight must not be negative, got -2.0 for example 7"),
    "all zero": (np.zeros(50), "(?i)sample.weight.* must .*at least one"),
    "too few": (np.ones(49), r"sample_weight.shape == \(49,\), expected \(50,\)"),
    "NaN": (np.full(50, np.nan), "sample_weight contains NaN"),
    "infinite": (np.full(50, np.inf), "sample_weight contains infinity"),
    "for other labels": (
        np.ones((50, 9)),
        r"must have shape \(50,\), .* or \(50, \d\), .*; got \(50, 9\)",
    ),
    "too large": (np.full(50, 1e307), r"sample_weight is too large to be added up, got 1e\+307 for example 0"),
}


@pytest.mark.parametrize(("weight", "message"), BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
def test_weights_that_make_no_sense_are_refused(weight: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        classifier().fit(X, Y, sample_weight=weight)


# --- Edges ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "head"), VARIANTS)
@pytest.mark.parametrize("search", ["bound", "exact"])
@pytest.mark.parametrize("l2", [0.0, 1.0])
def test_one_example_is_enough(loss: str, head: str, search: str, l2: float) -> None:
    model = classifier(loss=loss, head=head, search=search, l2=l2).fit([[1.0, np.nan]], [[1, 0, 1]])
    np.testing.assert_array_equal(model.predict([[5.0, 2.0]]), [[1, 0, 1]])
    assert np.isfinite(model.decision_function([[np.nan, np.nan]])).all()


@pytest.mark.parametrize(("loss", "head"), VARIANTS)
def test_one_label_is_enough(loss: str, head: str) -> None:
    model = classifier(loss=loss, head=head, n_rules=100).fit(X, Y[:, :1])
    assert (model.predict(X) == Y[:, :1]).mean() > 0.85


@pytest.mark.parametrize(("loss", "head"), VARIANTS)
def test_many_labels_and_few_examples_are_no_problem(loss: str, head: str) -> None:
    labels = np.random.default_rng(1).integers(0, 2, (6, 40))
    model = classifier(loss=loss, head=head, n_rules=300).fit(X[:6], labels)
    assert model.predict(X).shape == (50, 40)
    assert np.isfinite(model.decision_function(X)).all()


def test_a_failed_fit_of_a_new_model_leaves_it_unfitted() -> None:
    model = classifier()
    with pytest.raises(ValueError, match="Y must hold"):
        model.fit(X, Y * 2)
    assert not hasattr(model, "rules_")


# --- Properties -------------------------------------------------------------------------------------------------------


values = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 2.0, 1e300, -1e300, 1.7e308, -1.7e308, 5e-324, -1e-310, np.nan]),
    st.floats(allow_infinity=False),
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Any, Any, list[int]]:
    """Any valid table, as a user might pass it; the same as numbers; and a choice of nominal features."""
    n, width = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    dtype = draw(st.sampled_from([np.float64, np.float32, np.int8, np.int64, np.bool_]))
    if dtype in (np.float64, np.float32):
        with np.errstate(over="ignore"):
            numbers = draw(hnp.arrays(np.float64, (n, width), elements=values)).astype(dtype)
        numbers[np.isinf(numbers)] = 3.0
    else:
        numbers = draw(hnp.arrays(np.int8, (n, width), elements=st.integers(-2, 3))).astype(dtype)
    makes: list[Any] = [np.asarray, np.asfortranarray, np.ndarray.tolist, pd.DataFrame, sp.csr_array, sp.csc_matrix]
    nominal = draw(st.lists(st.integers(0, width - 1), max_size=2, unique=True))
    return draw(st.sampled_from(makes))(numbers), numbers, nominal


@st.composite
def problems(draw: st.DrawFn) -> tuple[Any, Any, Any, list[int]]:
    table, numbers, nominal = draw(tables())
    n, k = len(numbers), draw(st.integers(1, 5))
    dtype = draw(st.sampled_from([np.int8, np.uint8, np.int64, np.float64, np.bool_]))
    labels: Any = draw(hnp.arrays(np.int8, (n, k), elements=st.integers(0, 1))).astype(dtype)
    return table, numbers, draw(st.sampled_from([np.asarray, sp.csr_array, sp.csc_matrix]))(labels), nominal


OPTIONS = {
    "loss": st.sampled_from(["label-wise-logistic", "example-wise-logistic"]),
    "head": st.sampled_from(["single", "multi"]),
    "search": st.sampled_from(["bound", "exact"]),
    "decode": st.sampled_from(["loss", "hamming", "subset"]),
    "l2": st.sampled_from([0.0, 0.25, 1.0, 1e6]),
    "learning_rate": st.sampled_from([0.1, 1.0]),
    "bootstrap": st.booleans(),
    "max_features": st.sampled_from(["log2", None, 1, 0.5]),
    "max_conditions": st.sampled_from([None, 1]),
    "min_coverage": st.sampled_from([1, 2]),
    "n_rules": st.integers(1, 12),
    "random_state": st.integers(0, 3),
}


# steps of full length without regularisation may be too long, and then a warning says so
RISING = pytest.mark.filterwarnings("ignore:the training loss has risen")


@RISING
@pytest.mark.slow
@given(problems(), st.fixed_dictionaries(OPTIONS))
@settings(max_examples=150)
def test_any_valid_labels_and_features_are_learned_and_predicted(
    problem: tuple[Any, Any, Any, list[int]], options: dict[str, Any]
) -> None:
    table, numbers, labels, nominal = problem
    model = BoomerClassifier(categorical_features=nominal, **options).fit(table, labels)
    assert len(model.rules_) == options["n_rules"]
    predicted = model.predict(table)
    assert predicted.shape == labels.shape
    assert predicted.dtype == labels.dtype
    assert sp.issparse(predicted) == sp.issparse(labels)
    assert isinstance(predicted, sp.sparray) == isinstance(labels, sp.sparray)
    known = {tuple(row) for row in (labels.toarray() if sp.issparse(labels) else labels).tolist()}
    rows = {tuple(row) for row in (predicted.toarray() if sp.issparse(predicted) else predicted).tolist()}
    by_vectors = options["decode"] == "subset" or (
        options["decode"] == "loss" and options["loss"].startswith("example")
    )
    if by_vectors and len(model.label_vectors_) > 0:  # there are none if they hardly repeat
        assert rows <= known
    probabilities = model.predict_proba(table)
    assert probabilities.shape == labels.shape
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert np.isfinite(model.decision_function(table)).all()
    np.testing.assert_array_equal(model.decision_function(table), model.decision_function(numbers))


@RISING
@given(st.data(), tables(), st.fixed_dictionaries(OPTIONS))
@settings(max_examples=75)
def test_any_valid_classes_are_learned_and_predicted(data: st.DataObject, table: Any, options: dict[str, Any]) -> None:
    given_table, numbers, nominal = table
    kinds: list[list[Any]] = [[0, 1], [-1, 1], ["a", "b", "c"], [True, False], [2.0, 4.0, 8.0, 9.0]]
    classes = data.draw(st.sampled_from(kinds))
    y = np.array([data.draw(st.sampled_from(classes)) for _ in numbers])
    model = BoomerClassifier(categorical_features=nominal, **options).fit(given_table, y)
    predicted, probabilities = model.predict(given_table), model.predict_proba(given_table)
    assert predicted.shape == y.shape
    assert predicted.dtype == y.dtype
    assert set(predicted.tolist()) <= set(y.tolist())
    assert probabilities.shape == (len(y), len(np.unique(y)))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], predicted)


def test_a_failed_fit_leaves_the_model_that_was_there() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 6)), rng.integers(0, 2, size=(30, 2))
    model = BoomerClassifier(n_rules=5).fit(X, Y)
    scores = model.decision_function(X)
    with pytest.raises(ValueError, match="only 0 and 1"):
        model.fit(X[:, :2], 2 * Y)
    np.testing.assert_array_equal(model.decision_function(X), scores)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["birds", "emotions", "enron", "llog", "medical", "scene", "slashdot", "yeast"])
@pytest.mark.parametrize("head", ["single", "multi"])
@pytest.mark.parametrize("loss", ["label-wise-logistic", "example-wise-logistic"])
def test_training_loss_falls_and_scores_stay_finite_on_the_data_of_the_paper(
    benchmark_data: Any, name: str, head: str, loss: str
) -> None:
    data = benchmark_data(name)
    losses: list[float] = []
    model = BoomerClassifier(
        loss,
        head=head,
        n_rules=100,
        categorical_features=list(data.nominal_features),
        random_state=1,
        callbacks=lambda progress: losses.append(progress.loss),
    ).fit(data.X, data.Y)
    assert (np.diff(losses) <= 1e-12).all()
    assert losses[-1] < losses[0]
    model.set_params(l2=0.0, learning_rate=0.05, callbacks=None).fit(data.X, data.Y)
    assert np.isfinite(model.decision_function(data.X)).all()


def test_labels_may_lie_in_memory_in_any_order() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 4)), rng.integers(0, 2, size=(40, 9))
    expected = BoomerClassifier(n_rules=5, random_state=0).fit(X, Y)
    for same in (np.asfortranarray(Y), np.repeat(Y, 2, axis=1)[:, ::2], Y[::-1][::-1]):
        model = BoomerClassifier(n_rules=5, random_state=0).fit(X, same)
        np.testing.assert_array_equal(model.label_vectors_, expected.label_vectors_)
        assert model.rules_ == expected.rules_
