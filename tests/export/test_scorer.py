"""A scorer, which imports nothing, gives exactly the scores of the model, and its predictions."""

import ast
import subprocess
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pyboomer import BoomerClassifier, BoomerRegressor, Condition, Loss, Rule, RuleEnsemble
from pyboomer.datasets import Dataset
from pyboomer.export.scorer import write_scorer
from pyboomer.losses import example_wise_logistic
from pyboomer.rules.schema import Schema

RNG = np.random.default_rng(0)
N = 100
NOMINAL = {3: (-2.5, 0, 1, 7), 4: (1, 2, 3)}  # features with numbers as categories
X = np.column_stack([RNG.normal(size=(N, 3)), *(RNG.choice(values, N) for values in NOMINAL.values())])
Y = (X[:, :4] + RNG.normal(size=(N, 4)) > 0.3).astype(int)
X_NEW = X.copy()
X_NEW[RNG.random(X.shape) < 0.2] = np.nan
X_NEW[::10, 3] = 5.0  # an unseen category
FRAME = pd.DataFrame(
    {
        "size": X[:, 0],
        "weather": RNG.choice(["sunny", "rain", "Schnee \u2744"], N),
        "rank": X[:, 4].astype(int),
        "is_new": X[:, 1] > 0,
    }
)
FRAME_Y = np.column_stack([FRAME["weather"] == "rain", X[:, 1] > 0, X[:, 0] > 0]).astype(int)
NASTY = [
    "'",
    '"',
    '"""',
    "'''",
    "\\",
    "\\'",
    "a\nimport os",
    "a\r# b",
    "\0",
    "\U0001f327",
    "{x}",
    "#",
    "\u2028",
    "\ud800",
    "'); import os; ('",
    "",
    " ",
    "\x1b\x0c",
    "\u202e",
]


def classifier(**options: Any) -> BoomerClassifier:
    return BoomerClassifier(**{"n_rules": 40, "learning_rate": 0.3, "random_state": 1, **options})


def load(model: Any) -> dict[str, Any]:
    """What the file of a model defines."""
    text = write_scorer(model)
    assert not [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert "__import__" not in text
    scorer: dict[str, Any] = {}
    exec(compile(text, "model.py", "exec"), scorer)
    return scorer


def check(model: Any, table: Any, examples: Any = None) -> None:
    """Scores are exactly those of the model, and so are predictions; probabilities are, up to rounding."""
    scorer = load(model)
    examples = np.asarray(table).tolist() if examples is None else examples
    scores = np.array([list(scorer["scores"](example).values()) for example in examples])
    expected = model.decision_function(table)
    np.testing.assert_array_equal(scores, expected.reshape(scores.shape))
    assert list(scorer["scores"](examples[0])) == list(model.label_names_)
    labels = model.predict(table)
    labels = labels.toarray() if sp.issparse(labels) else labels
    predicted = [scorer["predict"](example) for example in examples]
    if labels.ndim == 1:
        assert predicted == labels.tolist()
        assert [type(label) for label in predicted] == [type(label) for label in labels.tolist()]
    else:
        assert [tuple(prediction) for prediction in predicted] == [model.label_names_] * len(examples)
        np.testing.assert_array_equal([list(prediction.values()) for prediction in predicted], labels)
    named = [scorer["probabilities"](example) for example in examples]
    assert list(named[0]) == list(model.label_names_ if labels.ndim > 1 else model.classes_)
    np.testing.assert_allclose([list(p.values()) for p in named], model.predict_proba(table), rtol=0, atol=1e-12)


def with_rules(rules: RuleEnsemble, **options: Any) -> BoomerClassifier:
    """A classifier that has the given rules, as if it had learned them."""
    n_labels = len(rules.label_names)
    Y = np.vstack([np.eye(n_labels), np.zeros((2, n_labels)), np.ones((1, n_labels))]).astype(int)
    model = classifier(n_rules=1, **options).fit(np.zeros((len(Y), len(rules.feature_names))), Y)
    model.rules_ = rules
    model.label_names_ = rules.label_names
    return model


def make_rules(seed: int, n_rules: int = 30, n_labels: int = 3) -> RuleEnsemble:
    """Rules with any conditions, also several on one feature, and heads of any number of labels, on features of X."""
    rng = np.random.default_rng(seed)
    rules = []
    for _ in range(n_rules):
        body = []
        for _ in range(rng.integers(0, 6)):
            feature = int(rng.integers(0, X.shape[1]))
            if feature in NOMINAL:
                operator, value = rng.choice(["==", "!=", "!="]), NOMINAL[feature][rng.integers(0, 3)]
            else:
                operator, value = rng.choice(["<=", ">"]), float(rng.normal())
            body.append(Condition(feature, str(operator), value, f"x{feature}"))
        labels = np.flatnonzero(rng.random(n_labels) < rng.random()).tolist()
        scores = rng.normal(size=len(labels)) * (rng.random(len(labels)) < 0.8)
        rules.append(Rule(tuple(body), tuple(labels), tuple(scores.tolist()), tuple(f"y{k}" for k in labels)))
    schema = Schema(tuple(f"x{f}" for f in range(X.shape[1])), NOMINAL)
    return RuleEnsemble.from_rules(rules, schema, tuple(f"y{k}" for k in range(n_labels)))


# --- Scores -----------------------------------------------------------------------------------------------------------


def test_scores_and_labels_are_those_of_the_model(variant: dict[str, Any]) -> None:
    model = classifier(categorical_features=list(NOMINAL), **variant).fit(X, Y)
    check(model, X)
    check(model, X_NEW)


@pytest.mark.parametrize("seed", range(10))
def test_rules_of_any_shape_keep_their_scores(seed: int) -> None:
    check(with_rules(make_rules(seed, n_labels=1 + seed)), X_NEW)


@pytest.mark.parametrize("operator", ["<=", ">", "==", "!="])
@pytest.mark.parametrize("missing", [{}, *({"x0": value} for value in (None, float("nan"), np.float32("nan"), pd.NA))])
def test_a_missing_value_meets_no_condition_whichever_its_operator(operator: str, missing: dict[str, Any]) -> None:
    nominal = operator in ("==", "!=")
    rule = Rule((Condition(0, operator, 1, "x0"),), (0,), (1.0,), ("y0",))
    scorer = load(
        with_rules(RuleEnsemble.from_rules([rule], Schema(("x0",), {0: (0, 1, 2)} if nominal else {}), ["y0"]))
    )
    assert scorer["scores"](missing) == {"y0": 0.0}
    expected = {"<=": [1, 1, 0, 0], ">": [0, 0, 1, 1], "==": [0, 1, 0, 0], "!=": [1, 0, 1, 1]}
    assert [scorer["scores"]([value])["y0"] for value in (0, 1, 2, 3)] == expected[operator]


def test_numbers_of_every_kind_are_compared_in_double_precision() -> None:
    values = np.array([0.1, float(np.float32(0.1))])  # of these, float32 knows only the second
    model = classifier(n_rules=50, max_features=None, l2=0.0).fit(values[:, None], [[0, 1], [1, 0]])
    scorer = load(model)
    wide, narrow = (model.decision_function([[value]])[0].tolist() for value in values)
    assert wide != narrow
    for value, expected in ((0.1, wide), (np.float64(0.1), wide), (np.float32(0.1), narrow)):
        assert list(scorer["scores"]([value]).values()) == expected


def test_a_model_learned_from_sparse_data_takes_all_values(variant: dict[str, Any]) -> None:
    table = sp.csr_array(np.where(RNG.random((N, 6)) < 0.3, np.round(RNG.normal(size=(N, 6)), 1), 0.0))
    labels = (table.toarray()[:, :3] > 0).astype(int)
    for nominal in (None, [1, 4]):
        model = classifier(categorical_features=nominal, **variant).fit(table, sp.csr_array(labels))
        check(model, table, table.toarray())


# --- Examples ---------------------------------------------------------------------------------------------------------


def rows(frame: pd.DataFrame) -> list[Mapping[str, Any]]:
    return [dict(row) for row in frame.to_dict(orient="records")]


def test_an_example_is_a_dict_or_a_sequence() -> None:
    model = classifier(categorical_features=list(NOMINAL)).fit(pd.DataFrame(X, columns=list("abcde")), Y)
    new = pd.DataFrame(X_NEW, columns=list("abcde"))
    for examples in (X_NEW, X_NEW.tolist(), [tuple(x) for x in X_NEW], rows(new), [new.iloc[n] for n in range(N)]):
        check(model, new, examples)
    present = [{name: value for name, value in row.items() if value == value} for row in rows(new)]
    check(model, new, present)


def test_categories_may_be_text_numbers_and_booleans(variant: dict[str, Any]) -> None:
    model = classifier(categorical_features=["weather", "rank", "is_new"], **variant).fit(FRAME, FRAME_Y)
    new = FRAME.astype({"rank": "Int64", "is_new": "boolean"})
    new.loc[::3, "weather"] = None
    new.loc[1::3, "weather"] = "fog"
    new.loc[::4, "rank"] = pd.NA
    new.loc[1::4, "rank"] = 17
    new.loc[::5, "is_new"] = pd.NA
    new.loc[::6, "size"] = np.nan
    for frame in (FRAME, new):
        check(model, frame, rows(frame))
        check(model, frame, [frame.iloc[n].tolist() for n in range(N)])


def test_dates_as_categories_are_compared_as_text() -> None:
    frame = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"] * 20)})
    model = classifier(categorical_features=["day"]).fit(frame, (frame == frame.iloc[0]).astype(int))
    check(model, frame, rows(frame))
    check(model, frame, [[str(day)] for day in frame["day"]])


def test_an_example_that_does_not_fit_is_refused() -> None:
    scorer = load(classifier().fit(X, Y))
    with pytest.raises(ValueError, match="an example has 5 features, got 4 values"):
        scorer["scores"](X[0, :4])
    with pytest.raises(ValueError, match="there is no feature 'x5'"):
        scorer["predict"]({"x0": 1.0, "x5": 1.0})
    with pytest.raises(ValueError, match="could not convert string to float"):
        scorer["scores"]({"x0": "red"})


# --- Predictions ------------------------------------------------------------------------------------------------------


DECODES: list[Any] = ["loss", "hamming", "subset", "f1", "top-2", [0.2, 0.0, 1.0, 0.5]]


@pytest.mark.parametrize("decode", DECODES, ids=str)
def test_labels_are_decoded_as_the_model_does(decode: Any, multi: dict[str, Any]) -> None:
    model = classifier(**multi).fit(X, Y).set_params(decode=decode)
    for known_vectors in (True, False):
        check(model.set_params(known_vectors=known_vectors), X_NEW)


def test_labels_are_those_of_calibrated_probabilities() -> None:
    model = classifier(calibration="isotonic").fit(X, Y)
    for decode in DECODES:
        check(model.set_params(decode=decode), X_NEW)


@pytest.mark.parametrize("size", [1e2, 1e3, 1e6, 1e300])
@pytest.mark.parametrize("decode", ["loss", "hamming", "subset", "f1", "top-2", 0.9])
def test_labels_are_right_for_scores_of_any_size(decode: Any, size: float) -> None:
    content = make_rules(2).to_dict()
    content["head_scores"] = [score * size * 10.0 ** -(t % 4) for t, score in enumerate(content["head_scores"])]
    for loss in ("joint-logistic", "example-wise-logistic"):
        check(with_rules(RuleEnsemble.from_dict(content), decode=decode, loss=loss), X_NEW)


@pytest.mark.filterwarnings("ignore:no example has all its labels known")
def test_without_known_label_vectors_labels_are_decoded_by_sign() -> None:
    unknown = Y.astype(float)
    unknown[np.arange(N), np.arange(N) % 4] = np.nan
    check(classifier().fit(X, unknown), X_NEW)


CLASSES = {
    "two strings": ["yes", "no"],
    "several strings": NASTY[:13],
    "two integers": [3, 7],
    "several integers": [-1, 0, 2**40],
    "booleans": [False, True],
    "floats": [1.0, 2.0, 3.0],
    "one class": ["only"],
}


@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
def test_the_prediction_for_one_column_is_a_class(classes: list[Any]) -> None:
    y = np.array(classes, dtype=object if isinstance(classes[0], str) else None)
    y = y[np.clip(np.round(2 * X[:, 0] + 2), 0, len(classes) - 1).astype(int)]
    for loss in ("label-wise-logistic", "example-wise-logistic"):
        check(classifier(loss=loss).fit(X, y), X_NEW)


class Loud(str):
    """Text with code of its own."""

    __slots__ = ()

    def __repr__(self) -> str:
        raise AssertionError("no code of a text is run")

    __str__ = __repr__


def test_text_of_any_class_is_written_as_the_text_that_it_is() -> None:
    for kind in (np.str_, Loud, Enum("Letter", {"A": "a", "B": "b", "C": "c"}, type=str)):
        letters = np.array([kind(letter) for letter in "abc"], dtype=object)
        y = letters[np.clip(np.round(X[:, 0] + 1), 0, 2).astype(int)]
        frame = pd.DataFrame({"letter": pd.Series(y, dtype=object), "x": X[:, 0]})
        scorer = load(classifier(categorical_features=["letter"]).fit(frame, y))
        assert scorer["CLASSES"] == ("a", "b", "c")
        assert {type(name) for name in (*scorer["CLASSES"], *scorer["LABELS"], *scorer["CATEGORIES"]["letter"])} == {
            str
        }
        assert scorer["predict"]({"letter": "a", "x": -1.0}) == "a"


def test_a_regressor_predicts_numbers() -> None:
    for y in (X[:, :2] * 100, X[:, 0]):
        model = BoomerRegressor(n_rules=40, random_state=1).fit(X, y)
        scorer = load(model)
        predicted = [scorer["predict"](x) for x in X_NEW.tolist()]
        if y.ndim == 1:
            np.testing.assert_array_equal(predicted, model.predict(X_NEW))
        else:
            np.testing.assert_array_equal([list(p.values()) for p in predicted], model.predict(X_NEW))
        assert "probabilities" not in scorer


def test_there_is_no_prediction_that_would_take_a_loss_of_the_users_own() -> None:
    own = Loss("own", example_wise_logistic.shape, example_wise_logistic.value, example_wise_logistic.derivatives)
    model = classifier(loss=own).fit(X, Y)
    with pytest.warns(
        UserWarning, match="the Python file has no function predict: labels depend on functions of the loss"
    ):
        scorer = load(model)
    assert "predict" not in scorer
    assert list(scorer["scores"](X[0]).values()) == model.decision_function(X[:1])[0].tolist()
    check(classifier(loss=own, decode="subset").fit(X, Y), X_NEW)


# --- The text ---------------------------------------------------------------------------------------------------------


def nasty_model(features: list[str], labels: list[str], categories: list[str]) -> BoomerClassifier:
    rng = np.random.default_rng(1)
    rules = [Rule((), tuple(range(len(labels))), tuple(rng.normal(size=len(labels))), tuple(labels))]
    for f, name in enumerate(features):
        for k, label in enumerate(labels):
            value = categories[(f + k) % len(categories)]
            body = (Condition(f, "==" if k % 2 else "!=", value, name),)
            rules.append(Rule(body, (k,), (float(rng.normal()),), (label,)))
    nominal = {f: tuple(categories) for f in range(len(features))}
    return with_rules(RuleEnsemble.from_rules(rules, Schema(tuple(features), nominal), labels), loss="joint-logistic")


DEFINED = {"FEATURES", "CATEGORIES", "LABELS", "VECTORS", "BIAS", "E", "CERTAIN", "__builtins__", "__doc__"}
DEFINED |= {"scores", "read", "read_category", "differs", "add", "score_vectors", "predict", "add_rules"}
DEFINED |= {"weigh_vectors", "log", "log_odds", "probabilities"}


def check_nasty(features: list[str], labels: list[str], categories: list[str]) -> None:
    model = nasty_model(features, labels, categories)
    scorer = load(model)
    assert set(scorer) == DEFINED  # nothing has been smuggled in
    assert scorer["FEATURES"] == tuple(features)
    assert scorer["LABELS"] == tuple(labels)
    for values in (categories[: len(features)], categories[-len(features) :]):
        example = dict(zip(features, values, strict=False))
        expected = dict.fromkeys(labels, 0.0)
        for rule in model.rules_:
            if all(c.name in example and c.covers([example[c.name]])[0] for c in rule.body):
                for label, score in rule.head.items():
                    expected[label] += score
        assert scorer["scores"](example) == expected


def test_no_name_or_category_breaks_out_of_its_string() -> None:
    check_nasty(NASTY, NASTY[::-1], NASTY[3:] + NASTY[:3])


names = st.lists(st.text(max_size=8), min_size=1, max_size=4, unique=True)


@given(names, names, names)
def test_names_and_categories_may_be_any_text(features: list[str], labels: list[str], categories: list[str]) -> None:
    check_nasty(features, labels, categories)


def test_names_must_be_distinct() -> None:
    rules = RuleEnsemble.from_rules([Rule((), (0,), (1.0,), ("y",))], Schema(("x", "x")), ["y"])
    with pytest.raises(ValueError, match="features must have distinct names, got 'x' twice"):
        write_scorer(with_rules(rules))


def test_a_rule_reads_as_an_if() -> None:
    body = Condition(0, "<=", 0.1, "size"), Condition(1, "!=", "rain", "weather"), Condition(0, ">", -1e-300, "size")
    rule = Rule(body, (1,), (-0.25,), ("beach",), coverage=12)
    text = write_scorer(
        with_rules(
            RuleEnsemble.from_rules([rule], Schema(("size", "weather"), {1: ("rain", "sun")}), ["city", "beach"])
        )
    )
    lines = [
        "    # rule 0, covers 12",
        "    if x['size'] <= 0.1 and differs(x['weather'], 'rain') and x['size'] > -1e-300:",
        "        total['beach'] += -0.25",
    ]
    assert "\n".join(lines) in text


def test_the_method_writes_a_file_that_runs_alone(tmp_path: Path) -> None:
    model = classifier().fit(X, Y)
    text = model.to_python(tmp_path / "model.py")
    assert (tmp_path / "model.py").read_text(encoding="utf-8") == text
    command = f"import model; print(list(model.scores({X[0].tolist()}).values()))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {command}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(model.decision_function(X[:1])[0].tolist())


@pytest.mark.slow
@pytest.mark.parametrize(("n_rules", "n_labels"), [(10_000, 3), (1000, 1000)])
def test_large_models_compile(n_rules: int, n_labels: int) -> None:
    model = with_rules(make_rules(0, n_rules, n_labels))
    scorer = load(model)
    assert list(scorer["scores"](X_NEW[0]).values()) == model.decision_function(X_NEW[:1])[0].tolist()


# --- Real data --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["emotions", "birds", pytest.param("enron", marks=pytest.mark.slow)])
def test_scores_for_real_data_are_exactly_those_of_the_model(
    name: str, variant: dict[str, Any], benchmark_data: Callable[[str], Dataset]
) -> None:
    data = benchmark_data(name)
    model = classifier(n_rules=100, categorical_features=data.nominal_features, **variant).fit(data.X, data.Y)
    dense: NDArray[np.float64] = data.X.toarray() if sp.issparse(data.X) else np.array(data.X, dtype=np.float64)
    missing = dense[::25].copy()
    missing[np.random.default_rng(1).random(missing.shape) < 0.1] = np.nan
    check(model, dense[::25])
    check(model, missing)
