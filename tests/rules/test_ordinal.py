"""Ordinal features: ordered categories, compared by their position and shown by their names."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyboomer import BoomerClassifier, BoomerRegressor, load_model
from pyboomer.editing import compact, insert_rule, refit_heads, replace_rules
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.parsing import write_rule
from pyboomer.rules.rule import Rule

SIZES = ["tiny", "small", "medium", "large", "huge"]
RNG = np.random.default_rng(2)
N = 200
POSITIONS = RNG.integers(0, 5, N)
NUMBERS = RNG.normal(size=N).round(2)
Y = np.column_stack([POSITIONS >= 2, (POSITIONS <= 3) ^ (RNG.random(N) < 0.1), NUMBERS > 0]).astype(np.int8)


def make_frame(positions: Any = POSITIONS, numbers: Any = NUMBERS, levels: Any = SIZES) -> pd.DataFrame:
    sizes = pd.Categorical.from_codes(positions, categories=levels, ordered=True)
    return pd.DataFrame({"size": sizes, "number": numbers})


def fit(X: Any = None, y: Any = Y, **options: Any) -> BoomerClassifier:
    options = {"n_rules": 20, "random_state": 1, "learning_rate": 0.3, **options}
    return BoomerClassifier(**options).fit(make_frame() if X is None else X, y)


@pytest.fixture(scope="module")
def model() -> BoomerClassifier:
    return fit()


@pytest.mark.parametrize("options", [{}, {"max_bins": 8}, {"head": "single"}, {"loss": "label-wise-logistic"}])
def test_levels_are_learned_from_as_their_positions_are(options: dict[str, Any]) -> None:
    by_level, by_position = fit(**options), fit(make_frame().assign(size=POSITIONS), **options)
    np.testing.assert_array_equal(by_level.rules_.condition_features, by_position.rules_.condition_features)
    np.testing.assert_array_equal(by_level.rules_.condition_operators, by_position.rules_.condition_operators)
    np.testing.assert_array_equal(
        by_level.decision_function(make_frame()), by_position.decision_function(make_frame().assign(size=POSITIONS))
    )


def test_rules_name_levels(model: BoomerClassifier) -> None:
    assert model.rules_.ordinal == (0,)
    assert model.rules_.categories[0] == tuple(SIZES)
    conditions = [c for rule in model.rules_ for c in rule.body if c.name == "size"]
    assert conditions
    frame = make_frame()
    for condition in conditions:
        assert condition.value_text() in SIZES
        assert str(condition) == f"size {condition.operator} {condition.value_text()}"
        expected = SIZES.index(condition.value_text()) >= POSITIONS
        met = condition.covers(frame["size"])
        np.testing.assert_array_equal(met, expected if condition.operator == "<=" else ~expected)
    between = Rule.parse("IF tiny < size <= large THEN y +1")
    rules = insert_rule(model.rules_, Rule(between.body, (0,), (1.0,), model.rules_.label_names[:1]))
    assert rules[-1].body_text() == "tiny < size <= large"


def test_the_order_is_that_of_the_categories_not_of_the_alphabet() -> None:
    backwards = make_frame(4 - POSITIONS, levels=SIZES[::-1])
    np.testing.assert_allclose(fit(backwards).decision_function(backwards), fit().decision_function(make_frame()))


def test_a_level_is_found_by_its_name_whatever_the_dtype(model: BoomerClassifier) -> None:
    scores = model.decision_function(make_frame())
    for kind in (object, "string", pd.CategoricalDtype(sorted(SIZES)), pd.CategoricalDtype(SIZES[::-1], ordered=True)):
        frame = make_frame()
        frame["size"] = frame["size"].astype(str).astype(kind)
        np.testing.assert_array_equal(model.decision_function(frame), scores)


def test_what_is_missing_or_no_level_meets_no_condition(model: BoomerClassifier) -> None:
    frame = make_frame()
    frame["size"] = frame["size"].astype(object)
    missing, strange = frame.copy(), frame.copy()
    missing["size"], strange["size"] = None, "gigantic"
    np.testing.assert_array_equal(model.decision_function(missing), model.decision_function(strange))
    expected = replace_rules(model, model.rules_[[0 not in {c.feature for c in rule.body} for rule in model.rules_]])
    np.testing.assert_allclose(model.decision_function(missing), expected.decision_function(missing))


def test_levels_never_seen_in_training_have_their_place() -> None:
    some = POSITIONS != 2
    model = fit(make_frame()[some], Y[some])
    assert model.rules_.categories[0] == tuple(SIZES)
    assert np.isfinite(model.decision_function(make_frame())).all()


def test_ordered_numbers_are_numbers() -> None:
    frame = make_frame().assign(size=pd.Categorical(POSITIONS * 10, ordered=True))
    model = fit(frame)
    assert model.rules_.ordinal == ()
    assert model.rules_.categories == {}
    assert model.rules_ == fit(make_frame().assign(size=POSITIONS * 10)).rules_
    odd = make_frame().assign(size=pd.Categorical(POSITIONS, categories=[3, 1, 2, 0, 4], ordered=True))
    with pytest.raises(
        ValueError, match="column 'size' of X has ordered categories that are neither text nor ascending"
    ):
        fit(odd)


def test_an_ordered_column_is_nominal_if_it_is_named_as_such() -> None:
    model = fit(categorical_features=["size"])
    assert model.rules_.ordinal == ()
    assert {c.operator for rule in model.rules_ for c in rule.body if c.name == "size"} <= {"==", "!="}
    with pytest.raises(ValueError, match="column 'size' of X is not numeric"):
        fit(categorical_features=[])


# --- Editing, files and exports ---------------------------------------------------------------------------------------


def test_rules_about_levels_are_read_as_they_are_written(model: BoomerClassifier) -> None:
    empty = model.rules_[:1]
    for rule in list(model.rules_)[1:]:
        for text in (write_rule(rule), rule.to_text(None, None)):
            again = insert_rule(empty, Rule.parse(text))[-1]
            if text == write_rule(rule):
                assert again.body == rule.body  # a printed threshold is rounded
            levels = [[c.value_text() for c in one.body if c.levels] for one in (again, rule)]
            assert sorted(levels[0]) == sorted(levels[1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("IF size <= smal THEN y0 +1", "feature 'size' has no level 'smal'.*small"),
        ("IF size <= 3 THEN y0 +1", "feature 'size' has no level '3'"),
        ("IF size == small THEN y0 +1", "feature 'size' is ordinal and tested by <= or >"),
        ("IF number <= small THEN y0 +1", "feature 'number' is numeric and compared with numbers"),
    ],
)
def test_a_rule_that_does_not_fit_is_refused(model: BoomerClassifier, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        insert_rule(model.rules_, Rule.parse(text.replace("y0", model.rules_.label_names[0])))


def test_models_are_saved_compacted_and_refitted(model: BoomerClassifier, tmp_path: Any) -> None:
    model.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.rules_ == model.rules_
    np.testing.assert_array_equal(loaded.decision_function(make_frame()), model.decision_function(make_frame()))
    small = compact(model)
    np.testing.assert_allclose(small.decision_function(make_frame()), model.decision_function(make_frame()))
    assert refit_heads(model, make_frame(), Y).rules_.ordinal == (0,)
    more = fit(n_rules=10, warm_start=True).set_params(n_rules=20).fit(make_frame(), Y)
    assert more.rules_ == model.rules_


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ordinal": [1]}, "ordinal has feature 1"),
        ({"ordinal": ["0"]}, "ordinal must hold int only"),
        ({"ordinal": []}, "condition_operators must be == or != for nominal"),
        ({"categories": {"0": ["tiny"]}}, "positions in their categories"),
        ({"categories": {"0": [1, 2, 3, 4, 5]}}, "are not strings"),
    ],
)
def test_damaged_rules_are_refused(model: BoomerClassifier, change: dict[str, Any], message: str) -> None:
    data = json.loads(json.dumps(model.rules_.to_dict()))
    assert RuleEnsemble.from_dict(data) == model.rules_
    with pytest.raises(ValueError, match=message):
        RuleEnsemble.from_dict(data | change)


def test_exported_models_know_the_levels(model: BoomerClassifier, tmp_path: Any) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    frame = make_frame()
    frame["size"] = frame["size"].astype(object)
    frame.loc[:9, "size"], frame.loc[10:19, "size"] = None, "gigantic"
    expected = model.decision_function(frame)
    model.to_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession((tmp_path / "model.onnx").read_bytes())
    inputs = {
        "size": frame[["size"]].fillna("").to_numpy(dtype=object),
        "number": frame[["number"]].to_numpy(dtype=np.float64),
    }
    np.testing.assert_allclose(session.run(["scores"], inputs)[0], expected, rtol=1e-12)
    model.to_python(tmp_path / "model.py")
    scope: dict[str, Any] = {}
    exec((tmp_path / "model.py").read_text(), scope)
    for row, scores in list(zip(frame.to_dict("records"), expected.tolist(), strict=True))[::7]:
        assert list(scope["scores"](row).values()) == scores


def test_a_regressor_compares_levels() -> None:
    model = BoomerRegressor(n_rules=50, random_state=1, learning_rate=0.3).fit(make_frame(), POSITIONS * 2.0)
    assert model.rules_.ordinal == (0,)
    assert model.score(make_frame(), POSITIONS * 2.0) > 0.95


def test_a_change_of_a_level_is_told_by_its_name(model: BoomerClassifier) -> None:
    frame = make_frame()[:40]
    changes = [explanation.change for explanation in model.explain(frame)]
    assert any(change is not None and change.name == "size" for change in changes)
    for row, change in enumerate(changes):
        if change is not None and change.name == "size":
            assert change.value in SIZES
            assert change.current == frame["size"].iloc[row]
            changed = frame.iloc[[row]].assign(size=change.value)
            np.testing.assert_array_equal(model.predict(changed)[0], change.prediction)


def test_the_page_shows_levels(model: BoomerClassifier) -> None:
    from pyboomer.explore.page.summary import summarise

    features = summarise(model, X=make_frame(), y=Y)["features"]
    assert features["ordinal"] == [0]
    assert list(features["categories"][0].values()) == SIZES


def test_a_rule_about_levels_is_printed_and_written_before_it_is_inserted() -> None:
    rule = Rule.parse("IF small < size <= large AND number > 1 THEN y0 +0.5")
    assert str(rule) == "IF size > small AND size <= large AND number > 1 THEN y0 +0.5"
    assert Rule.parse(write_rule(rule)) == rule
