"""The parameters are one table: signature, defaults, docstring and checks agree, and every fault is named."""

import inspect
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, make_scorer

from pyboomer import BoomerClassifier, BoomerRegressor
from pyboomer.losses import label_wise_logistic
from pyboomer.parameters import PARAMETERS, REGRESSOR_PARAMETERS, Parameter, describe_parameters

TABLE = {parameter.name: parameter for parameter in PARAMETERS}
X = np.arange(12.0).reshape(6, 2)
Y = np.array([[0, 1], [1, 0], [1, 1], [0, 0], [1, 0], [0, 1]])

NAN, INFINITY = float("nan"), float("inf")
REJECTED: dict[str, list[Any]] = {
    "loss": ["hamming", "label-wise", None, 3, ["label-wise-logistic"]],
    "head": ["multiple", "Single", None, 0, -1, 1.0, 1.5, NAN, True],
    "class_weight": ["even", 2.0, {}, {1: 0}, {1: -1.0}, {1: NAN}, [], ["balanced"], [{1: 2}, 3]],
    "default_rule": ["mean", "Newton", None, True, 1],
    "n_rules": [0, -1, 10.0, "10", None, True, NAN],
    "learning_rate": [0, -0.1, 1.5, 3.0, NAN, INFINITY, "0.1", None, True, 1j, 10**400],
    "l1": [-1, NAN, INFINITY, "1", None, False],
    "l2": [-1, -1e-300, NAN, INFINITY, "1", None, False, 10**400],
    "bootstrap": ["yes", 0, 1, None, 0.5],
    "sampling": ["bootstrap", None, True, "stratified"],
    "max_samples": [0, -1, 0.0, 1.5, "2/3", True, NAN, 2**33, 2**63],
    "max_features": ["SQRT", "LOG2", 0, -1, 0.0, 1.5, NAN, True, [3], np.array([1, 2])],
    "fixed_features": [3, {"a"}, 1.5, "from_dtype"],
    "max_labels": ["all", 0, -1, 0.0, 1.5, NAN, True],
    "max_conditions": [0, -1, 2.0, "3", True],
    "min_coverage": [0, 0.5, -1, NAN, INFINITY, "1", None, True],
    "max_bins": [0, 1, 256, 2.5, "many", True],
    "search": ["exakt", None, 1],
    "decode": ["f2", "Subset", None, 2, "top-0", [0.5, 1.5]],
    "known_vectors": ["no", 0, None],
    "calibration": ["platt", True, 5],
    "categorical_features": [3, {"a"}, 1.5, {"a": 1}],
    "early_stopping": ["auto", 1, None],
    "validation_fraction": [0, 1, 1.0, -0.1, NAN, "0.1", None, True],
    "n_iter_no_change": [0, -3, 1.5, None, True],
    "rules_per_round": [0, 33, 1.5, None, True, "all"],
    "scoring": ["hamming", "Loss", None, 3, ["accuracy"], accuracy_score, lambda *_: 1.0],
    "warm_start": ["yes", 1, None],
    "random_state": [-1, 2**32, 1.5, "1", True, np.random.default_rng(1)],
    "n_jobs": [0, 1.5, "2", True, 1025, 2**63],
    "device": ["gpu", "CUDA", None, 0, True],
    "verbose": [-1, 1.5, "yes", None],
    "callbacks": [3, "print", [print, None], {"a": print}],
}
ACCEPTED: dict[str, list[Any]] = {
    "loss": ["label-wise-logistic", label_wise_logistic],
    "head": ["single", 1, 5, 2**63, np.int64(2), 0.5, np.float32(0.1)],
    "class_weight": [None, "balanced", {1: 2}, {0: 0.5, 1: np.float32(2)}],
    "default_rule": ["minimum", "newton"],
    "n_rules": [1, np.int64(3), np.int32(3), np.uint8(3)],
    "learning_rate": [1, 1e-9, np.float32(0.5), Fraction(1, 3)],
    "l1": [0, 0.0, 1e300, np.int8(2)],
    "l2": [0, 0.0, 1e300, np.int8(2)],
    "bootstrap": [False, np.False_],
    "sampling": ["without-replacement", "stratified-label-wise", "stratified-example-wise"],
    "max_samples": [None, 1, 100, 0.5, 1.0, np.int64(3), Fraction(1, 2)],
    "max_features": [2**63, None, 1, 100, 1.0, 0.01, np.int16(1), np.float64(0.5)],
    "fixed_features": [None, [], [0], [-1], (1,), np.array([True, False])],
    "max_labels": [2**63, None, "round-robin", 1, 100, 0.5, 1.0, np.int64(3)],
    "max_conditions": [2**63, None, 1, np.int64(2)],
    "min_coverage": [1, 2.5, 1e9],
    "max_bins": [None, "auto", 2, 255, np.int64(16)],
    "search": ["exact"],
    "decode": ["hamming", "subset", "f1", "top-1", 0.3, [0.2, 0.8], np.array([0.5, 0.5])],
    "known_vectors": ["auto", False, np.False_],
    "calibration": ["isotonic"],
    "categorical_features": [None, [], [0], (1,), np.array([True, False]), "from_dtype"],
    "early_stopping": [True, np.True_],
    "validation_fraction": [0.5, 1e-9, np.float32(0.2), Fraction(1, 3)],
    "n_iter_no_change": [2**63, 1, np.int32(5)],
    "rules_per_round": ["auto", 1, 32, np.int64(4)],
    "scoring": ["loss", "accuracy", "f1_samples", make_scorer(accuracy_score)],
    "warm_start": [True, np.True_],
    "random_state": [None, 0, 2**32 - 1, np.int64(3), np.random.RandomState(1)],
    "n_jobs": ["auto", None, 1, -1, np.int64(2)],
    "device": ["cpu", "auto"],
    "verbose": [0, False, np.False_],
    "callbacks": [None, [], (), print, [print]],
}


def cases(table: dict[str, list[Any]]) -> list[Any]:
    pairs = [(name, value) for name, values in table.items() for value in values]
    return [pytest.param(name, value, id=f"{name}={value!r:.30}".split(" at ")[0]) for name, value in pairs]


ESTIMATORS = {BoomerClassifier: PARAMETERS, BoomerRegressor: REGRESSOR_PARAMETERS}
each_estimator = pytest.mark.parametrize(("estimator", "table"), ESTIMATORS.items(), ids=["classifier", "regressor"])


@each_estimator
def test_the_signature_has_the_parameters_of_the_table_with_their_defaults(
    estimator: Any, table: tuple[Parameter, ...]
) -> None:
    signature = inspect.signature(estimator).parameters
    assert {name: p.default for name, p in signature.items()} == {p.name: p.default for p in table}
    assert list(signature) == [p.name for p in table]
    assert estimator().get_params() == {p.name: p.default for p in table}


@each_estimator
def test_all_parameters_but_the_first_are_passed_by_name(estimator: Any, table: tuple[Parameter, ...]) -> None:
    kinds = [p.kind for p in inspect.signature(estimator).parameters.values()]
    assert kinds == [inspect.Parameter.POSITIONAL_OR_KEYWORD] + [inspect.Parameter.KEYWORD_ONLY] * (len(table) - 1)


@each_estimator
def test_the_docstring_lists_name_allowed_values_default_and_meaning_of_every_parameter(
    estimator: Any, table: tuple[Parameter, ...]
) -> None:
    document = inspect.getdoc(estimator) or ""
    words = " ".join(document.split())
    for parameter in table:
        assert f"\n{parameter.name} : {parameter.allowed}, default={parameter.default!r}\n" in document
        assert " ".join(parameter.meaning.split()) in words
    assert all(len(line) <= 140 for line in describe_parameters(table).splitlines())


@each_estimator
def test_the_docstring_lists_no_other_parameters(estimator: Any, table: tuple[Parameter, ...]) -> None:
    document = inspect.getdoc(estimator) or ""
    section = document.split("Parameters\n----------\n")[1].split("\nAttributes\n")[0]
    named = [line.split(" : ")[0] for line in section.splitlines() if line and not line.startswith(" ")]
    assert named == [parameter.name for parameter in table]


def test_every_parameter_has_values_that_these_tests_accept_and_reject() -> None:
    assert set(ACCEPTED) == set(REJECTED) == set(TABLE)


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda p: p.name)
def test_the_default_is_an_allowed_value(parameter: Any) -> None:
    parameter.validate(parameter.default)


@pytest.mark.parametrize(("name", "value"), cases(REJECTED))
def test_fit_rejects_a_value_that_is_not_allowed_and_names_the_parameter_and_the_cure(name: str, value: Any) -> None:
    with pytest.raises(ValueError) as caught:
        BoomerClassifier(**{"n_rules": 3, name: value}).fit(X, Y)
    assert str(caught.value) == f"{name} must be {TABLE[name].allowed}, got {value!r}"


@pytest.mark.filterwarnings("ignore:l1=")
@pytest.mark.parametrize(("name", "value"), cases(ACCEPTED))
def test_fit_accepts_every_kind_of_value_that_is_allowed(name: str, value: Any) -> None:
    model = BoomerClassifier(**{"n_rules": 3, name: value}).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert model.get_params()[name] is value


@pytest.mark.parametrize(
    ("name", "value"),
    [*cases({p.name: REJECTED[p.name] for p in REGRESSOR_PARAMETERS}), ("loss", "label-wise-logistic")],
)
def test_the_regressor_rejects_the_same_values(name: str, value: Any) -> None:
    table = {parameter.name: parameter for parameter in REGRESSOR_PARAMETERS}
    with pytest.raises(ValueError) as caught:
        BoomerRegressor(**{"n_rules": 3, name: value}).fit(X, Y)
    assert str(caught.value) == f"{name} must be {table[name].allowed}, got {value!r}"


@pytest.mark.parametrize("half", [np.float32(0.5), Fraction(1, 2)], ids=repr)
def test_a_fraction_of_the_features_may_be_any_kind_of_number(half: Any) -> None:
    model = BoomerClassifier(n_rules=5, max_features=half, random_state=1).fit(X, Y)
    assert model.rules_ == BoomerClassifier(n_rules=5, max_features=0.5, random_state=1).fit(X, Y).rules_


def test_a_misspelt_parameter_is_a_type_error_that_names_it() -> None:
    with pytest.raises(TypeError, match="n_rulse"):
        BoomerClassifier(n_rulse=3)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="Invalid parameter 'n_rulse'"):
        BoomerClassifier().set_params(n_rulse=3)


def test_the_constructor_checks_nothing_so_that_clone_and_set_params_work() -> None:
    assert BoomerClassifier(n_rules="many").set_params(n_rules=2).fit(X, Y).n_rules == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "value"), [("decode", "subste"), ("n_jobs", 0)])
def test_predict_rejects_a_bad_value_that_was_set_after_fit(name: str, value: Any) -> None:
    model = BoomerClassifier(n_rules=3).fit(X, Y).set_params(**{name: value})
    with pytest.raises(ValueError, match=f"^{name} must be"):
        model.predict(X)


def test_a_numpy_number_of_rules_needs_no_compiled_version_of_its_own() -> None:
    from pyboomer.engine.cpu.boosting import learn_rules

    BoomerClassifier(n_rules=40).fit(X, Y)
    known = len(learn_rules.entry.signatures)
    for kind in (np.int8, np.uint16, np.int32, np.uint64):
        assert len(BoomerClassifier(n_rules=kind(40)).fit(X, Y).rules_) == 40  # type: ignore[arg-type]
    assert len(learn_rules.entry.signatures) == known
