"""Edited models: rules are inserted by their names, heads refitted, and scores survive being compacted."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from pyboomer import BoomerClassifier, BoomerRegressor, Loss, load_model
from pyboomer.editing import compact, drop_redundant_conditions, insert_rule, refit_heads, replace_rules
from pyboomer.losses import BUILT_IN, dense_hessians, find_loss
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.operators import OPERATORS
from pyboomer.rules.rule import Condition, Rule
from pyboomer.rules.schema import Schema

RNG = np.random.default_rng(8)
X = np.column_stack([RNG.normal(size=(200, 4)), RNG.integers(0, 4, size=(200, 2))])
X[RNG.random(X.shape) < 0.05] = np.nan
Y = (np.nan_to_num(X[:, [0, 1, 5]]) + RNG.normal(size=(200, 3)) > 0).astype(float)
OTHER_X, OTHER_Y = X[100:][::-1].copy(), 1 - Y[:100]
HOLES = np.where(RNG.random(Y.shape) < 0.2, np.nan, Y)
WEIGHT = RNG.integers(0, 4, size=200) * 0.5

BEACH = RuleEnsemble.from_rules(
    [Rule((), (0, 1), (-1.2, -0.9), ("beach", "urban"), 150.0)],
    Schema(("at1", "at7", "weather", "rooms"), {2: ("fog", "rain", "sunny"), 3: (1, 2, 3)}),
    label_names=("beach", "urban"),
)


# --- Inserting --------------------------------------------------------------------------------------------------------


def test_a_written_rule_is_resolved_by_names() -> None:
    rules = insert_rule(BEACH, Rule.parse("IF rooms != 2 AND weather == rain AND at7 > 1 THEN urban 0.5, beach -1"))
    inserted = rules[1]
    assert [(c.feature, c.operator, c.value) for c in inserted.body] == [(3, "!=", 2), (2, "==", "rain"), (1, ">", 1.0)]
    assert (inserted.labels, inserted.scores, inserted.label_names) == ((0, 1), (-1.0, 0.5), ("beach", "urban"))
    assert rules[:1] == BEACH
    assert len(BEACH) == 1


@pytest.mark.parametrize(("position", "index"), [(None, 2), (0, 0), (1, 1), (2, 2)])
def test_a_rule_is_inserted_where_it_is_wanted(position: int | None, index: int) -> None:
    two = BEACH[[0, 0]]
    rules = insert_rule(two, Rule.parse("IF at1 <= 3 THEN beach +0.5"), position)
    assert str(rules[index]) == "IF at1 <= 3 THEN beach +0.5"
    assert rules[[t for t in range(3) if t != index]] == two


@pytest.mark.parametrize("value", [2, 2.0, "2", "2.0", "+2"])
def test_a_number_is_the_same_category_however_it_is_written(value: Any) -> None:
    rule = Rule((Condition(-1, "==", value, "rooms"),), (), (), ())
    assert insert_rule(BEACH, rule)[1].body == (Condition(3, "==", 2, "rooms"),)


def test_of_equal_texts_the_category_of_the_same_type_is_meant() -> None:
    mixed = replace(BEACH, schema=replace(BEACH.schema, categories={2: (3, "3")}))
    for text, value in ('"3"', "3"), ("3", 3):
        category = insert_rule(mixed, Rule.parse(f"IF weather == {text} THEN nothing"))[1].body[0].value
        assert (category, type(category)) == (value, type(value))


def test_an_index_decides_between_equal_names() -> None:
    twins = replace(BEACH, schema=replace(BEACH.schema, names=("at", "at", "weather", "rooms")))
    rule = Rule((Condition(1, "<=", 3.0, "at"),), (), (), ())
    assert insert_rule(twins, rule)[1].body[0].feature == 1
    with pytest.raises(ValueError, match="there are several features named 'at'"):
        insert_rule(twins, Rule.parse("IF at <= 3 THEN nothing"))


def test_a_rule_of_another_model_is_found_by_name() -> None:
    rule = Rule((Condition(0, ">", 3.0, "at7"),), (0,), (1.0,), ("urban",))
    inserted = insert_rule(BEACH, rule)[1]
    assert (inserted.body[0].feature, inserted.labels) == (1, (1,))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("IF wether == rain THEN beach +1", "there is no feature 'wether'; did you mean 'weather'?"),
        ("IF zzz <= 1 THEN beach +1", "there is no feature 'zzz'; there are 'at1', 'at7', 'weather', 'rooms'"),
        ("IF at1 <= 1 THEN Urban +1", "there is no label 'Urban'; did you mean 'urban'?"),
        ("IF weather == suny THEN beach +1", "feature 'weather' has no category 'suny'; did you mean 'sunny'?"),
        ("IF rooms == 7 THEN beach +1", "feature 'rooms' has no category '7'; there are '1', '2', '3'"),
        ("IF weather <= 1 THEN beach +1", "weather <= 1: feature 'weather' is nominal and tested by == or !="),
        ("IF at1 == 1 THEN beach +1", "at1 == 1: feature 'at1' is numeric and tested by <= or >"),
    ],
)
def test_what_a_rule_names_must_be_there(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        insert_rule(BEACH, Rule.parse(text))


def test_a_position_or_a_head_that_is_wrong_is_refused() -> None:
    rule = Rule.parse("DEFAULT beach +1")
    with pytest.raises(ValueError, match="position must be from 0 to 1, the number of rules, got 2"):
        insert_rule(BEACH, rule, 2)
    twice = Rule((), (-1, -1), (1.0, 2.0), ("beach", "beach"))
    with pytest.raises(ValueError, match="a label may have one score only, got beach"):
        insert_rule(BEACH, twice)


# --- Models with other rules ------------------------------------------------------------------------------------------

VARIANTS: dict[str, Any] = {
    f"{name}, {head}": BoomerClassifier(name, head=head)
    for name in ("label-wise-logistic", "example-wise-logistic")
    for head in ("single", "multi")
} | {"regressor": BoomerRegressor(), "regressor, single": BoomerRegressor(head="single")}


def user_loss(shape: str) -> Loss:
    """The example-wise logistic loss in another shape; the label-wise one, if that is to be diagonal."""
    built_in = BUILT_IN["label-wise-logistic" if shape == "diagonal" else "example-wise-logistic"]

    def derivatives(*arguments: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        g, *curvature = built_in.derivatives(*arguments)
        return (g, dense_hessians(built_in.shape, tuple(curvature))) if shape == "dense" else (g, *curvature)

    return Loss(f"own, {shape}", shape, built_in.value, derivatives, weighted=True)


OWN: dict[str, Any] = {
    f"own {shape}, {head}": BoomerClassifier(user_loss(shape), head=head)
    for shape in ("diagonal", "diagonal-minus-outer", "dense")
    for head in ("single", "multi")
}
each_variant = pytest.mark.parametrize("estimator", VARIANTS.values(), ids=VARIANTS)
each_model = pytest.mark.parametrize("estimator", (VARIANTS | OWN).values(), ids=VARIANTS | OWN)


def fit(estimator: Any, X: Any = X, Y: Any = Y, sample_weight: Any = None, n_rules: int = 30, **options: Any) -> Any:
    # the very loss, rather than the copy that sklearn's clone would make of it
    options = {"categorical_features": [4, 5], "random_state": 1, "n_rules": n_rules, **options}
    model = type(estimator)(**estimator.get_params()).set_params(**options)
    return model.fit(X, Y, sample_weight)


def scores_of(model: Any, X: Any) -> NDArray[np.float64]:
    return np.asarray(model._last_scores(X))


@each_variant
def test_a_model_with_other_rules_leaves_the_first_one_alone(estimator: Any, tmp_path: Path) -> None:
    model = fit(estimator, n_rules=20)
    before, scores, facts = model.rules_, scores_of(model, X), dict(model.training_facts_)
    edited = replace_rules(model, model.rules_[[0, 5, 3]])
    assert [str(rule) for rule in edited.rules_] == [str(before[t]) for t in (0, 5, 3)]
    assert (model.rules_, model.training_facts_) == (before, facts)
    np.testing.assert_array_equal(scores_of(model, X), scores)

    assert type(edited) is type(model)
    assert edited.get_params() == model.get_params()
    assert edited.training_facts_ == facts | {"rules": 3, "loss": None, "edited": True}
    edited.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.rules_ == edited.rules_
    assert loaded.training_facts_ == edited.training_facts_
    np.testing.assert_array_equal(loaded.predict(X), edited.predict(X))


def test_an_inserted_rule_adds_its_scores() -> None:
    model = fit(BoomerClassifier())
    edited = replace_rules(model, insert_rule(model.rules_, Rule.parse("IF x0 <= 0 AND x4 == 2 THEN y1 +0.5"), 1))
    covered = (X[:, 0] <= 0) & (X[:, 4] == 2)
    assert covered.any()
    difference = edited.decision_function(X) - model.decision_function(X)
    np.testing.assert_allclose(difference, np.outer(covered, [0, 0.5, 0]), atol=1e-12)


def test_the_curve_of_other_rules_is_not_kept() -> None:
    model = BoomerClassifier(n_rules=20, early_stopping=True, random_state=1).fit(X, Y)
    assert hasattr(model, "validation_curve_")
    assert not hasattr(compact(model), "validation_curve_")


def test_a_calibration_stays_as_long_as_the_scores() -> None:
    model = fit(BoomerClassifier("label-wise-logistic"), calibration="isotonic", n_rules=10)
    assert model.calibration_ is not None
    np.testing.assert_allclose(compact(model).predict_proba(X), model.predict_proba(X))
    for edited in replace_rules(model, model.rules_[:5]), refit_heads(model, X, Y):
        assert edited.calibration_ is None
        np.testing.assert_allclose(edited.predict_proba(X), 1 / (1 + np.exp(-scores_of(edited, X))))
    assert model.calibration_ is not None


def test_rules_of_another_kind_are_refused() -> None:
    model = fit(BoomerClassifier())
    for rules, fault in (
        (model.rules_[:0], "a model must have at least one rule"),
        (
            replace(model.rules_, schema=replace(model.rules_.schema, names=tuple("abcdef"))),
            "the rules must have the feature_names of the model",
        ),
        (replace(model.rules_, label_names=tuple("abc")), "the rules must have the label_names of the model"),
        (fit(BoomerClassifier(), np.round(X)).rules_[:1], None),
    ):
        if fault is None:
            assert replace_rules(model, rules).rules_ == rules
        else:
            with pytest.raises(ValueError, match=fault):
                replace_rules(model, rules)
    renamed = {f: tuple(f"c{v}" for v in values) for f, values in model.rules_.categories.items()}
    with pytest.raises(ValueError, match="the rules must have the categories of the model"):
        replace_rules(model, replace(model.rules_, schema=replace(model.rules_.schema, categories=renamed)))
    with pytest.raises(TypeError, match="rules must be a RuleEnsemble, got list"):
        replace_rules(model, list(model.rules_))  # type: ignore[arg-type]
    with pytest.raises(NotFittedError):
        replace_rules(BoomerClassifier(), model.rules_)


# --- Refitting --------------------------------------------------------------------------------------------------------

LABEL_WEIGHT = RNG.integers(0, 3, size=Y.shape) * 0.75
DATA: dict[str, Any] = {
    "plain": (X, Y),
    "unknown labels": (X, HOLES),
    "weights": (X, Y, WEIGHT),
    "weights per label": (X, Y, LABEL_WEIGHT),
    "weights and unknown labels": (X, HOLES, WEIGHT),
    "sparse": pytest.param((sp.csr_array(np.where(np.abs(X) < 0.5, 0, X)), Y), marks=pytest.mark.slow),
}


def assert_same_facts(rules: RuleEnsemble, expected: RuleEnsemble, rtol: float = 1e-9) -> None:
    np.testing.assert_array_equal(rules.condition_values, expected.condition_values)
    np.testing.assert_allclose(rules.head_matrix(), expected.head_matrix(), rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(rules.gain, expected.gain, rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(rules.coverage, expected.coverage)


@each_model
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_refitting_on_the_training_data_gives_the_same_heads(estimator: Any, data: Any) -> None:
    model = fit(estimator, *data)
    edited = refit_heads(model, *data)
    assert_same_facts(edited.rules_, model.rules_)
    assert edited.training_facts_["loss"] == pytest.approx(model.training_facts_["loss"])
    assert edited.training_facts_["examples"] == model.training_facts_["examples"]
    np.testing.assert_allclose(edited.predict(X), model.predict(X), rtol=1e-9)


def test_refitting_with_bins_and_without_l2_gives_the_same_heads() -> None:
    for options in ({"max_bins": 8}, {"l2": 0.0, "learning_rate": 0.05}, {"bootstrap": False}):
        model = fit(BoomerClassifier(), **options)
        assert_same_facts(refit_heads(model, X, Y).rules_, model.rules_)


def test_refitting_weighs_classes_as_learning_did() -> None:
    model = fit(BoomerClassifier("label-wise-logistic"), class_weight={1: 3.0}, n_rules=10)
    assert_same_facts(refit_heads(model, X, Y).rules_, model.rules_)


def test_refitting_works_for_classes_text_and_one_target() -> None:
    frame = pd.DataFrame({"size": X[:, 0], "kind": np.array(list("abcd"))[np.nan_to_num(X[:, 4]).astype(int)]})
    for estimator, y in (
        (BoomerClassifier(), np.array(["no", "yes"])[Y[:, 0].astype(int)]),
        (BoomerClassifier(), np.nan_to_num(X[:, 5]).astype(int)),
        (BoomerRegressor(), Y[:, 0] * 1e6),
    ):
        model = fit(estimator, frame, y, categorical_features=None)
        edited = refit_heads(model, frame, y)
        assert_same_facts(edited.rules_, model.rules_)
        np.testing.assert_array_equal(edited.predict(frame[:9]).dtype, model.predict(frame[:9]).dtype)
        refit_heads(model, frame[:50], y[:50])


@each_model
def test_refitting_on_other_data_never_raises_the_loss(estimator: Any) -> None:
    model = fit(estimator, learning_rate=0.05)
    edited = refit_heads(model, OTHER_X, OTHER_Y)
    loss = find_loss(model.loss)
    truth = OTHER_Y if loss.name == "squared-error" else 2 * OTHER_Y - 1
    losses = [loss.value(truth, scores).mean() for scores in edited._staged_scores(OTHER_X, None)]
    assert all(b <= a + 1e-12 for a, b in pairwise(losses))
    assert losses[-1] < losses[0]
    assert losses[-1] < loss.value(truth, scores_of(model, OTHER_X)).mean()
    assert edited.training_facts_["loss"] == pytest.approx(losses[-1])
    np.testing.assert_array_equal(edited.rules_.head_labels, model.rules_.head_labels)
    assert edited.training_facts_["edited"] is True


def test_the_known_label_vectors_are_those_of_the_data() -> None:
    edited = refit_heads(fit(BoomerClassifier()), X[:3], Y[:3])
    assert {tuple(v) for v in edited.label_vectors_} == {tuple(y) for y in Y[:3]}


@pytest.mark.parametrize("shape", ["built-in", "diagonal", "diagonal-minus-outer", "dense"])
def test_a_head_of_some_labels_is_the_newton_step_for_them(shape: str) -> None:
    loss = BUILT_IN["example-wise-logistic"] if shape == "built-in" else user_loss(shape)
    model = fit(
        BoomerClassifier("example-wise-logistic" if shape == "built-in" else loss), n_rules=2, learning_rate=0.1
    )
    rules = insert_rule(model.rules_[:1], Rule.parse("IF x0 > 0 THEN y2 +9, y0 +9"))
    refitted = refit_heads(replace_rules(model, rules), X, Y, WEIGHT).rules_
    covered = X[:, 0] > 0
    F = np.tile(refitted.head_matrix()[0], (covered.sum(), 1))
    g, *curvature = loss.derivatives(2 * Y[covered] - 1, F)
    weight = WEIGHT[covered]
    A = np.einsum("n,nij->ij", weight, dense_hessians(loss.shape, tuple(curvature)))[np.ix_([0, 2], [0, 2])] + np.eye(2)
    step = np.linalg.solve(A, -(weight @ g)[[0, 2]])
    np.testing.assert_allclose(refitted[1].scores, model.learning_rate * step, rtol=1e-9)
    assert refitted.gain[1] == pytest.approx(-0.5 * step @ (weight @ g)[[0, 2]])
    assert refitted.coverage[1] == weight.sum()


def test_a_rule_that_covers_nothing_gets_no_scores() -> None:
    model = fit(BoomerClassifier())
    rules = insert_rule(model.rules_, Rule.parse("IF x0 > 1e9 THEN y1 +0.5"))
    last = refit_heads(replace_rules(model, rules), X, Y).rules_[-1]
    assert (last.scores, last.coverage, last.gain) == ((0.0,), 0.0, 0.0)


def test_data_of_another_form_is_refused() -> None:
    model = fit(BoomerClassifier())
    with pytest.raises(ValueError, match="X has 5 features"):
        refit_heads(model, X[:, :5], Y)
    with pytest.raises(ValueError, match="Y has 2 labels, but the model was learned from 3"):
        refit_heads(model, X, Y[:, :2])
    with pytest.raises(NotFittedError):
        refit_heads(BoomerClassifier(), X, Y)


# --- Compacting -------------------------------------------------------------------------------------------------------

THRESHOLDS = (-1.0, 0.0, 1.0)


@st.composite
def ensembles(draw: st.DrawFn) -> RuleEnsemble:
    """Rules about two numeric and one nominal feature, so few that bodies repeat."""
    rules = []
    for _ in range(draw(st.integers(1, 12))):
        body = []
        for feature in draw(st.lists(st.integers(0, 2), max_size=4)):
            operator = draw(st.sampled_from(OPERATORS[2:] if feature == 2 else OPERATORS[:2]))
            value = draw(st.sampled_from((0, 1, 5) if feature == 2 else THRESHOLDS))
            body.append(Condition(feature, operator, value, f"x{feature}"))
        labels = tuple(sorted(draw(st.sets(st.integers(0, 1)))))
        scores = tuple(draw(st.sampled_from((0.0, 0.1, -0.1, 1 / 3, 1e3))) for _ in labels)
        rules.append(Rule(tuple(body), labels, scores, tuple(f"y{k}" for k in labels), 3.0, 0.5))
    return RuleEnsemble.from_rules(rules, Schema(("x0", "x1", "x2"), {2: (0, 1, 5)}), ("y0", "y1"))


ANYWHERE = np.array([np.nan, *THRESHOLDS, *np.nextafter(THRESHOLDS, 9), -9, 9])
EVERYTHING = np.array(np.meshgrid(ANYWHERE, ANYWHERE, [0, 1, 5, 7, np.nan])).reshape(3, -1).T


@pytest.fixture(scope="module")
def small() -> BoomerClassifier:
    """A model whose rules are replaced; not made while tests are collected, which every process does."""
    model = BoomerClassifier(n_rules=1, categorical_features=[2])
    return model.fit([[0, 0, 0], [1, 1, 1], [2, 2, 5]], np.eye(3)[:, :2])


@given(rules=ensembles())
def test_a_compact_model_gives_the_same_scores(small: BoomerClassifier, rules: RuleEnsemble) -> None:
    model = replace_rules(small, rules)
    smaller = compact(model)
    np.testing.assert_allclose(smaller.decision_function(EVERYTHING), model.decision_function(EVERYTHING), atol=1e-9)
    assert len(smaller.rules_) <= len(rules)
    assert compact(smaller).rules_ == smaller.rules_
    bodies = [frozenset(rule.body) for rule in smaller.rules_]
    assert len(set(bodies)) == len(bodies)
    if len(bodies) > 1:
        assert all(any(rule.scores) for rule in smaller.rules_)
        assert all(scores_of(replace_rules(model, smaller.rules_[[t]]), EVERYTHING).any() for t in range(len(bodies)))


@each_variant
def test_a_learned_model_becomes_smaller(estimator: Any, tmp_path: Path) -> None:
    coarse = np.round(X)  # few thresholds, so that bodies repeat
    model = fit(estimator, coarse, n_rules=300, max_conditions=1)
    smaller = compact(model)
    assert len(smaller.rules_) < 150
    np.testing.assert_allclose(scores_of(smaller, coarse), scores_of(model, coarse), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(smaller.predict(coarse).shape, model.predict(coarse).shape)
    assert smaller.rules_.gain.sum() == pytest.approx(model.rules_.gain.sum())
    assert smaller.rules_.coverage[0] == model.rules_.coverage[0]
    assert smaller.training_facts_["loss"] == model.training_facts_["loss"]
    assert smaller.training_facts_["rules"] == len(smaller.rules_)
    smaller.save(tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").rules_ == smaller.rules_


def test_bodies_are_merged_by_what_they_mean(small: BoomerClassifier) -> None:
    texts = [
        "DEFAULT y0 -1, y1 +2",
        "IF x0 <= 1 AND x0 <= 0 AND x2 == 5 AND x2 != 1 THEN y0 +1",
        "IF x2 == 5 AND x0 <= 0 THEN y1 +2",
        "IF x1 <= 0 AND x1 > 0 THEN y0 +9",
        "IF x2 == 5 AND x2 == 1 THEN y0 +9",
        "IF x2 == 5 AND x2 != 5 THEN y0 +9",
        "IF x2 != 0 AND x2 != 1 AND x2 != 5 THEN y0 +3",
        "IF x1 > 0 THEN y0 +0, y1 -0",
        "IF x1 > 1 THEN y0 +1",
        "IF x1 > 1 THEN y0 -1",
        "DEFAULT y0 -1",
    ]
    rules = small.rules_[:0]
    for text in texts:
        rules = insert_rule(rules, Rule.parse(text))
    assert [str(rule) for rule in compact(replace_rules(small, rules)).rules_] == [
        "DEFAULT y0 -2, y1 +2",
        "IF x0 <= 0 AND x2 == 5 THEN y0 +1, y1 +2",
        "IF x2 != 0 AND x2 != 1 AND x2 != 5 THEN y0 +3",  # a category that is new meets it
    ]


@pytest.mark.parametrize(
    "texts", [["DEFAULT y0 +0"], ["DEFAULT y0 +1", "DEFAULT y0 -1"], ["IF x0 <= 0 AND x0 > 0 THEN y0 +1"]]
)
def test_a_model_without_effect_keeps_one_rule_without_effect(small: BoomerClassifier, texts: list[str]) -> None:
    rules = small.rules_[:0]
    for text in texts:
        rules = insert_rule(rules, Rule.parse(text))
    smaller = compact(replace_rules(small, rules))
    assert len(smaller.rules_) == 1
    assert not smaller.decision_function(EVERYTHING).any()


# --- Redundant conditions ---------------------------------------------------------------------------------------------

MIXED = np.column_stack([RNG.integers(0, 4, (150, 4)), RNG.integers(0, 3, 150)]).astype(float)
MIXED[RNG.random(MIXED.shape) < 0.1] = np.nan
MIXED_Y = (np.nan_to_num(MIXED[:, [0, 1]]) > 1).astype(int)


def draw_body(rng: np.random.Generator, categories: tuple[Any, ...]) -> tuple[Condition, ...]:
    """Conditions on four numeric features and a nominal one; many are redundant."""
    body = []
    for feature in rng.integers(0, 5, rng.integers(0, 7)).tolist():
        operator = OPERATORS[rng.integers(0, 2) + 2 * (feature == 4)]
        value = categories[rng.integers(0, 3)] if feature == 4 else rng.integers(0, 3) + 0.5
        body.append(Condition(feature, operator, value, f"x{feature}", share=rng.random()))
    return tuple(body)


def covered_by(conditions: Sequence[Condition], X: NDArray[Any]) -> NDArray[np.bool_]:
    return np.all([np.ones(len(X), dtype=bool), *(c.covers(X[:, c.feature]) for c in conditions)], axis=0)


def redraw_bodies(model: Any, seed: int) -> Any:
    """The same model, with other bodies."""
    rng, categories = np.random.default_rng(seed), model.rules_.categories[4]
    rules = [replace(rule, body=draw_body(rng, categories)) for rule in model.rules_]
    return replace_rules(model, RuleEnsemble.from_rules(rules, model.rules_.schema, model.rules_.label_names))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [5, 50, 150])
def test_the_conditions_dropped_are_the_redundant_ones(seed: int, n: int) -> None:
    model = BoomerClassifier(n_rules=100, categorical_features=[4], random_state=1).fit(MIXED, MIXED_Y)
    model, X = redraw_bodies(model, seed), MIXED[:n]
    shorter = drop_redundant_conditions(model, X)
    for rule, short in zip(model.rules_, shorter.rules_, strict=True):
        kept = list(rule.body)
        for c in rule.body:  # the definition
            others = [other for other in kept if other is not c]
            if others and (covered_by(others, X) == covered_by(kept, X)).all():
                kept = others
        assert list(short.body) == kept
        assert sum(c.share for c in short.body) == pytest.approx(sum(c.share for c in rule.body))
        assert replace(short, body=()) == replace(rule, body=())
    assert len(shorter.rules_.condition_features) < 0.8 * len(model.rules_.condition_features)
    assert drop_redundant_conditions(shorter, X).rules_ == shorter.rules_
    np.testing.assert_array_equal(shorter.decision_function(X), model.decision_function(X))


def test_the_share_of_a_redundant_condition_goes_to_the_first_that_makes_it_so(small: BoomerClassifier) -> None:
    def shorten(X: Any, *body: tuple[int, str, float, float]) -> list[tuple[str, float]]:
        conditions = tuple(Condition(f, operator, value, f"x{f}", share=share) for f, operator, value, share in body)
        rule = Rule(conditions, (0,), (1.0,), ("y0",))
        rules = RuleEnsemble.from_rules([rule], small.rules_.schema, small.rules_.label_names)
        (shortened,) = drop_redundant_conditions(replace_rules(small, rules), X).rules_
        return [(str(c), round(c.share, 9)) for c in shortened.body]

    X = np.array([[0, 0, 0], [2, 0, 0], [5, 0, 0], [9, 9, 0], [np.nan, 0, 0]])
    at_most = [(0, "<=", 5.0, 0.5), (0, "<=", 3.0, 0.3), (0, "<=", 1.0, 0.2)]
    assert shorten(X, *at_most) == [("x0 <= 1", 1.0)]  # share by share
    assert shorten(X, at_most[0], (1, "<=", 8.0, 0.1), at_most[1]) == [("x0 <= 3", 0.9)]
    assert shorten(X, (1, "<=", 8.0, 0.1), at_most[0]) == [("x0 <= 5", 0.6)]  # on another feature
    assert shorten(X, at_most[0], (1, "<=", 8.0, 0.1)) == [("x0 <= 5", 0.6)]  # a missing value meets no condition
    assert shorten(X[:4], at_most[0], (1, "<=", 8.0, 0.1)) == [("x1 <= 8", 0.6)]
    assert shorten(X[:1], *at_most) == [("x0 <= 1", 1.0)]  # one remains


@each_variant
def test_scores_of_the_training_data_stay_the_same_bit_for_bit(estimator: Any, tmp_path: Path) -> None:
    model = fit(estimator, n_rules=60, max_conditions=None, max_features=3)
    before = model.rules_
    shorter = drop_redundant_conditions(model, X)
    assert model.rules_ is before
    assert len(shorter.rules_.condition_features) < len(before.condition_features)
    np.testing.assert_array_equal(scores_of(shorter, X), scores_of(model, X))
    np.testing.assert_array_equal(shorter.rules_.coverage, before.coverage)
    np.testing.assert_array_equal(shorter.rules_.gain, before.gain)
    own = np.add.reduceat(shorter.rules_.condition_shares, shorter.rules_.condition_offsets[1:-1])
    np.testing.assert_allclose(own, 1.0)
    assert shorter.training_facts_ == model.training_facts_ | {"edited": True}
    shorter.save(tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").rules_ == shorter.rules_


@pytest.mark.parametrize("convert", [sp.csr_array, sp.csc_array, pd.DataFrame])
def test_the_container_of_the_data_does_not_matter(convert: Any) -> None:
    given: Any = convert(MIXED)
    if isinstance(given, pd.DataFrame):
        given = given.set_axis([f"x{f}" for f in range(5)], axis=1).astype({"x4": "category"})
    options: dict[str, Any] = {"n_rules": 60, "max_conditions": None, "random_state": 1}
    nominal: Any = {} if isinstance(given, pd.DataFrame) else {"categorical_features": [4]}
    model = redraw_bodies(BoomerClassifier(**options, **nominal).fit(given, MIXED_Y), 1)
    dense = redraw_bodies(BoomerClassifier(categorical_features=[4], **options).fit(MIXED, MIXED_Y), 1)
    shorter, expected = drop_redundant_conditions(model, given), drop_redundant_conditions(dense, MIXED)
    assert [rule.body for rule in shorter.rules_] == [rule.body for rule in expected.rules_]
    np.testing.assert_array_equal(shorter.decision_function(given), model.decision_function(given))


def test_a_calibration_stays_with_redundant_conditions_dropped() -> None:
    model = fit(BoomerClassifier("label-wise-logistic"), calibration="isotonic", n_rules=20, max_conditions=None)
    shorter = drop_redundant_conditions(model, X)
    np.testing.assert_array_equal(shorter.predict_proba(X), model.predict_proba(X))


def test_a_model_that_is_not_fitted_has_no_redundant_conditions() -> None:
    with pytest.raises(NotFittedError):
        drop_redundant_conditions(BoomerClassifier(), X)
