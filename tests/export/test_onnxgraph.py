"""A graph gives in ONNX Runtime, and by the definition of ONNX, what the model gives."""

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from pyboomer import BoomerClassifier, BoomerRegressor, Condition, Loss, Rule, RuleEnsemble
from pyboomer.datasets import Dataset
from pyboomer.losses import example_wise_logistic
from pyboomer.rules.schema import Schema

onnx = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

from onnx.reference import ReferenceEvaluator  # noqa: E402

from pyboomer.export.onnxgraph import build_graph  # noqa: E402

Array = NDArray[np.float64]

RNG = np.random.default_rng(0)
N = 200
NOMINAL = {3: (-2.5, 0.0, 1.0, 7.0), 4: (1.0, 2.0, 3.0)}  # features with numbers as categories
X = np.column_stack([RNG.normal(size=(N, 3)), *(RNG.choice(values, N) for values in NOMINAL.values())])
Y = (X[:, :4] + RNG.normal(size=(N, 4)) > 0.3).astype(int)
X_NEW = X.copy()
X_NEW[RNG.random(X.shape) < 0.2] = np.nan
X_NEW[::10, 3] = 5.0  # an unseen category
FRAME = pd.DataFrame(
    {
        "size": X[:, 0],
        "weather": RNG.choice(["sunny", "rain", "Schnee \u2744"], N),
        "rank": X[:, 4],
        "is_new": X[:, 1] > 0,
        "colour": np.where(X[:, 2] > 0, "red", "blue"),
    }
)
FRAME_Y = np.column_stack([FRAME["weather"] == "rain", FRAME["colour"] == "red", X[:, 0] > 0]).astype(int)


def classifier(**options: Any) -> BoomerClassifier:
    return BoomerClassifier(**{"n_rules": 40, "learning_rate": 0.3, "random_state": 1, **options})


def run(model: Any, inputs: Any) -> dict[str, NDArray[Any]]:
    """What ONNX Runtime computes; the inputs are an array X, or arrays by name."""
    graph = build_graph(model)
    onnx.checker.check_model(graph, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # the tests use all cores already
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    feed = inputs if isinstance(inputs, dict) else {"X": inputs}
    results = dict(zip(names, session.run(names, feed), strict=True))
    for output in session.get_outputs():
        assert len(output.shape) == results[output.name].ndim
        assert all(size in ("N", n) for size, n in zip(output.shape, results[output.name].shape, strict=True))
    return results


def feed_frame(frame: pd.DataFrame, missing: str = "") -> dict[str, NDArray[Any]]:
    """The columns of a DataFrame as inputs of a graph."""
    inputs = {}
    for name, column in frame.items():
        if pd.api.types.is_numeric_dtype(column.dtype):
            inputs[name] = column.to_numpy(dtype=np.float64, na_value=np.nan)[:, None]
        else:
            inputs[name] = column.fillna(missing).to_numpy(dtype=object)[:, None]
    return inputs


def check(model: Any, table: Any, inputs: Any) -> dict[str, NDArray[Any]]:
    """Compare all outputs with what the model says of the table."""
    results = run(model, inputs)
    scores = model.decision_function(table)
    np.testing.assert_allclose(results["scores"], scores.reshape(results["scores"].shape), rtol=1e-12, atol=1e-12)
    labels = model.predict(table)
    np.testing.assert_array_equal(results["labels"], labels.toarray() if sp.issparse(labels) else labels)
    np.testing.assert_allclose(results["probabilities"], model.predict_proba(table), rtol=1e-9, atol=1e-12)
    return results


def with_rules(rules: RuleEnsemble, **options: Any) -> BoomerClassifier:
    """A classifier that has the given rules, as if it had learned them."""
    n_labels = len(rules.label_names)
    Y = np.vstack([np.eye(n_labels), np.zeros((2, n_labels)), np.ones((1, n_labels))]).astype(int)
    model = classifier(n_rules=1, **options).fit(np.zeros((len(Y), len(rules.feature_names))), Y)
    model.rules_ = rules
    return model


def make_rules(seed: int, n_labels: int = 3) -> RuleEnsemble:
    """Rules with any conditions, also several on one feature, and heads of any number of labels, on features of X."""
    rng = np.random.default_rng(seed)
    rules = []
    for _ in range(30):
        body = []
        for _ in range(rng.integers(0, 6)):
            feature = int(rng.integers(0, X.shape[1]))
            if feature in NOMINAL:
                operator, value = rng.choice(["==", "!=", "!="]), rng.choice(NOMINAL[feature])
            else:
                operator, value = rng.choice(["<=", ">"]), rng.normal()
            body.append(Condition(feature, str(operator), float(value), f"x{feature}"))
        labels = np.flatnonzero(rng.random(n_labels) < 0.5).tolist()
        scores = rng.normal(size=len(labels)) * (rng.random(len(labels)) < 0.8)
        rules.append(Rule(tuple(body), tuple(labels), tuple(scores.tolist()), tuple(f"y{k}" for k in labels)))
    schema = Schema(tuple(f"x{f}" for f in range(X.shape[1])), NOMINAL)
    return RuleEnsemble.from_rules(rules, schema, tuple(f"y{k}" for k in range(n_labels)))


# --- Scores -----------------------------------------------------------------------------------------------------------


def test_all_outputs_are_those_of_the_model(variant: dict[str, Any]) -> None:
    model = classifier(categorical_features=list(NOMINAL), **variant).fit(X, Y)
    for table in (X, X_NEW):
        check(model, table, table)


@pytest.mark.parametrize("seed", range(20))
def test_rules_of_any_shape_keep_their_scores(seed: int) -> None:
    check(with_rules(make_rules(seed)), X_NEW, X_NEW)


@pytest.mark.parametrize("n", [1, 2, 60, 5000])
def test_the_number_of_examples_does_not_matter(n: int) -> None:
    table = np.resize(X_NEW, (n, X.shape[1]))
    check(with_rules(make_rules(0)), table, table)


def test_onnx_defines_the_same_scores_as_its_runtime_computes() -> None:
    model = with_rules(make_rules(1))
    graph = build_graph(model)
    results = ReferenceEvaluator(graph).run(None, {"X": X_NEW})
    np.testing.assert_allclose(results[0], model.decision_function(X_NEW), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(results[1], model.predict(X_NEW))


@pytest.mark.parametrize("operator", ["<=", ">", "==", "!="])
def test_a_missing_value_meets_no_condition_whichever_its_operator(operator: str) -> None:
    nominal = operator in ("==", "!=")
    rule = Rule((Condition(0, operator, 1, "x0"),), (0,), (1.0,), ("y0",))
    rules = RuleEnsemble.from_rules([rule], Schema(("x0",), {0: (0, 1, 2)} if nominal else {}), ["y0"])
    values = np.array([[0.0], [1.0], [2.0], [3.0], [np.nan]])
    expected = {"<=": [1, 1, 0, 0, 0], ">": [0, 0, 1, 1, 0], "==": [0, 1, 0, 0, 0], "!=": [1, 0, 1, 1, 0]}
    results = check(with_rules(rules), values, values)
    assert results["scores"][:, 0].tolist() == expected[operator]


def test_thresholds_are_compared_in_double_precision() -> None:
    values = np.array([[1.0], [np.nextafter(1.0, 2.0)], [1e300], [np.nextafter(1e300, np.inf)]])
    model = classifier(n_rules=50, max_features=None, l2=0.0).fit(values, np.array([[0, 1], [1, 0], [0, 1], [1, 0]]))
    results = check(model, values, values)
    np.testing.assert_array_equal(results["labels"], [[0, 1], [1, 0], [0, 1], [1, 0]])


def test_a_model_learned_from_sparse_data_takes_dense_data(variant: dict[str, Any]) -> None:
    table = sp.csr_array(np.where(RNG.random((N, 6)) < 0.3, np.round(RNG.normal(size=(N, 6)), 1), 0.0))
    labels = (table.toarray()[:, :3] > 0).astype(int)
    for nominal in (None, [1, 4]):
        model = classifier(categorical_features=nominal, **variant).fit(table, sp.csr_array(labels))
        check(model, table, table.toarray())


def test_a_model_of_the_default_rule_alone_has_a_row_for_each_example() -> None:
    model = classifier(n_rules=1).fit(X, Y)
    assert check(model, X_NEW, X_NEW)["scores"].shape == (N, 4)


def test_rules_that_score_one_label_take_no_room_for_the_others() -> None:
    sizes = []
    for n_labels in (10, 1000):
        body = (Condition(0, "<=", 0.5, "x0"),)
        rules = [Rule(body, (t % n_labels,), (1.0,), (f"y{t % n_labels}",)) for t in range(500)]
        names = [f"y{k}" for k in range(n_labels)]
        model = with_rules(RuleEnsemble.from_rules(rules, Schema(("x0",)), names), loss="label-wise-logistic")
        sizes.append(build_graph(model).ByteSize())
    assert sizes[1] - sizes[0] < 990 * 40  # a name and a score of the default rule, but no product


# --- Text -------------------------------------------------------------------------------------------------------------


def test_categories_that_are_text_are_inputs_of_their_own(variant: dict[str, Any]) -> None:
    model = classifier(categorical_features=["weather", "rank", "colour"], **variant).fit(FRAME, FRAME_Y)
    assert {"weather", "colour"} <= {condition.name for rule in model.rules_ for condition in rule.body}
    new = FRAME.copy()
    new.loc[::3, "weather"] = None
    new.loc[1::3, "weather"] = "fog"
    new.loc[::4, "rank"] = np.nan
    new.loc[1::4, "rank"] = 17.0
    new.loc[::5, "size"] = np.nan
    for frame in (FRAME, new):
        check(model, frame, feed_frame(frame))


def test_booleans_as_categories_are_the_numbers_0_and_1() -> None:
    frame = FRAME[["size", "is_new"]]
    model = classifier(categorical_features=["is_new"]).fit(frame, FRAME_Y)
    assert model.rules_.categories == {1: (False, True)}
    check(model, frame, frame.to_numpy(dtype=np.float64))


def test_the_empty_text_is_missing_unless_it_is_a_category() -> None:
    frame = FRAME[["weather"]].replace("rain", "")
    model = classifier().fit(frame, FRAME_Y)
    properties = {entry.key: entry.value for entry in build_graph(model).metadata_props}
    assert properties["missing_text"] == "<missing>"
    frame.loc[::3, "weather"] = None
    check(model, frame, feed_frame(frame, missing="<missing>"))


def test_any_names_of_features_make_a_graph() -> None:
    names = ["scores", "labels", "", "_scores", "pyboomer/Constant_0", 'a"b\n\\\0', "\U0001f327 Stra\u00dfe"]
    frame = pd.DataFrame(RNG.normal(size=(N, len(names))), columns=names)
    frame["labels"] = FRAME["weather"].to_numpy()
    model = classifier().fit(frame, FRAME_Y)
    graph = build_graph(model)
    inputs = [entry.name for entry in graph.graph.input]
    assert inputs == ["_scores", "_labels", "_", "__scores", "_pyboomer/Constant_0", *names[5:]]
    assert json.loads({e.key: e.value for e in graph.metadata_props}["feature_names"]) == names
    check(model, frame, dict(zip(inputs, feed_frame(frame).values(), strict=True)))


# --- Labels -----------------------------------------------------------------------------------------------------------


DECODES: list[Any] = ["loss", "hamming", "subset", "f1", "top-2", [0.2, 0.0, 1.0, 0.5]]


@pytest.mark.parametrize("decode", DECODES, ids=str)
def test_labels_are_decoded_as_the_model_does(decode: Any, multi: dict[str, Any]) -> None:
    model = classifier(**multi).fit(X, Y).set_params(decode=decode)
    for known_vectors in (True, False):
        check(model.set_params(known_vectors=known_vectors), X_NEW, X_NEW)


def test_probabilities_are_calibrated_as_the_model_does() -> None:
    model = classifier(calibration="isotonic").fit(X, Y)
    for decode in DECODES:
        check(model.set_params(decode=decode), X_NEW, X_NEW)
    for classes in (["a", "b"], ["a", "b", "c"]):
        y = np.array(classes)[np.clip(np.round(X[:, 0] + 1), 0, len(classes) - 1).astype(int)]
        check(classifier(calibration="isotonic").fit(X, y), X_NEW, X_NEW)


@pytest.mark.parametrize("size", [1e2, 1e3, 1e6, 1e300])
@pytest.mark.parametrize("decode", ["loss", "hamming", "subset", "f1", "top-2", 0.9])
def test_labels_are_right_for_scores_of_any_size(decode: Any, size: float) -> None:
    rules = make_rules(2)
    content = rules.to_dict()
    content["head_scores"] = [score * size * 10.0 ** -(t % 4) for t, score in enumerate(content["head_scores"])]
    for loss in ("joint-logistic", "example-wise-logistic"):
        model = with_rules(RuleEnsemble.from_dict(content), decode=decode, loss=loss)
        results = run(model, X_NEW)
        np.testing.assert_allclose(results["scores"], model.decision_function(X_NEW), rtol=1e-9, atol=1e-12 * size)
        np.testing.assert_array_equal(results["labels"], model.predict(X_NEW))
        np.testing.assert_allclose(results["probabilities"], model.predict_proba(X_NEW), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", ["joint-logistic", "example-wise-logistic"])
def test_of_equal_losses_the_vector_most_frequent_in_training_is_chosen(loss: str) -> None:
    model = with_rules(RuleEnsemble.from_rules([Rule((), (), (), ())], Schema(("x0",)), ("y0", "y1")), loss=loss)
    values = np.zeros((3, 1))
    model.label_vectors_, model.label_vector_counts_ = np.array([[0, 1], [1, 0], [1, 1]], dtype=np.uint8), np.ones(3)
    np.testing.assert_array_equal(check(model, values, values)["labels"], [[0, 1]] * 3)


@pytest.mark.filterwarnings("ignore:no example has all its labels known")
def test_without_known_label_vectors_labels_are_decoded_by_sign() -> None:
    unknown = Y.astype(float)
    unknown[np.arange(N), np.arange(N) % 4] = np.nan
    check(classifier().fit(X, unknown), X_NEW, X_NEW)


CLASSES = {
    "two strings": ["yes", "no"],
    "several strings": ["a", "b\n", "\u00e9"],
    "two integers": [3, 7],
    "several integers": [-1, 0, 2**40],
    "unsigned integers": np.array([1, 2**64 - 1], dtype=np.uint64),
    "booleans": [False, True],
    "floats": [1.0, 2.0, 3.0],
    "one class": ["only"],
}


@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
def test_the_labels_of_one_column_are_its_classes(classes: Any) -> None:
    y = np.array(classes)[np.clip(np.round(X[:, 0] + 1), 0, len(classes) - 1).astype(int)]
    for loss in ("label-wise-logistic", "example-wise-logistic"):
        results = check(classifier(loss=loss).fit(X, y), X_NEW, X_NEW)
        if y.dtype.kind == "i":
            assert results["labels"].dtype == np.int64


def test_a_regressor_has_scores_only() -> None:
    for y in (X[:, :2] * 100, X[:, 0]):
        model = BoomerRegressor(n_rules=40, random_state=1).fit(X, y)
        results = run(model, X_NEW)
        assert list(results) == ["scores"]
        np.testing.assert_allclose(results["scores"].reshape(N, -1), model.predict(X_NEW).reshape(N, -1), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:the ONNX graph has no")
def test_what_depends_on_a_loss_of_the_users_own_is_left_out() -> None:
    squared = {
        "name": "squared",
        "shape": "diagonal",
        "value": lambda Y, F: ((Y - F) ** 2).sum(axis=1),
        "derivatives": lambda Y, F: (2 * (F - Y), np.full(F.shape, 2.0)),
    }
    own = {
        "name": "own",
        "shape": example_wise_logistic.shape,
        "value": example_wise_logistic.value,
        "derivatives": example_wise_logistic.derivatives,
    }
    log_odds = {"log_odds": lambda F: 2 * F}

    def outputs(loss: Loss, **options: Any) -> list[str]:
        model = classifier(loss=loss, **options).fit(X, Y)
        results = run(model, X_NEW)
        if "labels" in results:
            np.testing.assert_array_equal(results["labels"], model.predict(X_NEW))
        return list(results)

    assert outputs(Loss(**squared)) == ["scores", "labels", "probabilities"]
    assert outputs(Loss(**squared, **log_odds)) == ["scores", "labels"]
    assert outputs(Loss(**own)) == ["scores", "probabilities"]
    assert outputs(Loss(**own), decode="subset") == ["scores", "labels", "probabilities"]
    assert outputs(Loss(**own, **log_odds), decode="subset") == ["scores"]


# --- The file ---------------------------------------------------------------------------------------------------------


def test_the_metadata_say_what_the_numbers_mean() -> None:
    graph = build_graph(classifier().fit(FRAME, pd.DataFrame(FRAME_Y, columns=["u", "v", "w"])))
    properties = {entry.key: entry.value for entry in graph.metadata_props}
    assert json.loads(properties["feature_names"]) == list(FRAME.columns)
    assert json.loads(properties["label_names"]) == ["u", "v", "w"]
    assert json.loads(properties["categories"])["colour"] == ["blue", "red"]
    assert properties["loss"] == "joint-logistic"
    assert graph.producer_name == "pyboomer"


def test_the_method_writes_a_file_that_the_runtime_reads(tmp_path: Path) -> None:
    model = classifier().fit(X, Y)
    graph = model.to_onnx(tmp_path / "model.onnx")
    assert onnx.load(tmp_path / "model.onnx") == graph
    assert onnxruntime.InferenceSession(tmp_path / "model.onnx").get_inputs()[0].name == "X"


def test_without_onnx_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier().fit(X, Y)
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.delitem(sys.modules, "pyboomer.export.onnxgraph")
    with pytest.raises(ImportError, match=r"pip install 'pyboomer\[onnx\]'"):
        import_module("pyboomer.export.onnxgraph")
    with pytest.raises(ImportError, match=r"pip install 'pyboomer\[onnx\]'"):
        model.to_onnx()


# --- Real data --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["emotions", "birds", pytest.param("enron", marks=pytest.mark.slow)])
def test_the_outputs_for_real_data_are_those_of_the_model(
    name: str, variant: dict[str, Any], benchmark_data: Callable[[str], Dataset]
) -> None:
    data = benchmark_data(name)
    dense = data.X.toarray() if sp.issparse(data.X) else np.array(data.X, dtype=np.float64)
    model = classifier(n_rules=100, categorical_features=data.nominal_features, **variant).fit(data.X, data.Y)
    missing = dense.copy()
    missing[np.random.default_rng(1).random(dense.shape) < 0.1] = np.nan
    for table in (dense, missing):
        check(model, table, table)
