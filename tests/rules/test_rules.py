"""Rules are immutable values with a readable text, and survive slicing, pickling and JSON unchanged."""

import copy
import dataclasses
import json
import pickle
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.operators import OPERATORS
from pyboomer.rules.rule import Condition, Rule
from pyboomer.rules.schema import Schema
from pyboomer.rules.text import NO_DIGITS

FEATURES = ("at1", "at7", "weather")
WEATHER = ("sunny", "rain", "fog")
LABELS = ("beach", "urban")
SCHEMA = Schema(FEATURES, {2: WEATHER})


def at1(operator: str, value: float) -> Condition:
    return Condition(0, operator, value, "at1")


def at7(operator: str, value: float) -> Condition:
    return Condition(1, operator, value, "at7")


def weather(operator: str, value: str) -> Condition:
    return Condition(2, operator, value, "weather")


def rule(*body: Condition, head: dict[str, float] | None = None, coverage: float = 12.0, gain: float = 0.5) -> Rule:
    head = {"beach": 0.8, "urban": -0.4} if head is None else head
    labels = tuple(range(len(head)))
    return Rule(body, labels, tuple(head.values()), tuple(head), coverage, gain)


def small_ensemble() -> RuleEnsemble:
    rules = [
        rule(head={"beach": -1.2, "urban": -0.9}, coverage=150.0),
        rule(at1("<=", 0.3), at7(">", 1.2)),
        rule(weather("==", "sunny"), at1(">", 0.1), at1("<=", 0.7), head={"beach": 0.25}, coverage=7.0),
        Rule((weather("!=", "fog"),), (1,), (0.0,), ("urban",), 99.5, 0.0),
    ]
    return RuleEnsemble.from_rules(rules, SCHEMA, LABELS)


finite = st.floats(allow_nan=False, allow_infinity=False)
names = st.text(max_size=5)
category_lists = st.lists(
    st.one_of(st.text(max_size=3), st.integers(), finite, st.booleans()), unique_by=lambda v: v, max_size=4
)


@st.composite
def ensembles(draw: st.DrawFn) -> RuleEnsemble:
    feature_names = draw(st.lists(names, min_size=1, max_size=5))
    label_names = draw(st.lists(names, min_size=1, max_size=12))
    nominal = draw(st.sets(st.integers(0, len(feature_names) - 1)))
    categories = {feature: tuple(draw(category_lists)) for feature in nominal}
    testable = [f for f in range(len(feature_names)) if f not in nominal or categories[f]]
    rules = []
    for _ in range(draw(st.integers(0, 5))):
        body = []
        for feature in draw(st.lists(st.sampled_from(testable), max_size=4)) if testable else []:
            operator = draw(st.sampled_from(OPERATORS[2:] if feature in nominal else OPERATORS[:2]))
            value = draw(st.sampled_from(categories[feature]) if feature in nominal else finite)
            body.append(Condition(feature, operator, value, feature_names[feature]))
        labels = sorted(draw(st.sets(st.integers(0, len(label_names) - 1))))
        rules.append(
            Rule(
                tuple(body),
                tuple(labels),
                tuple(draw(finite) for _ in labels),
                tuple(label_names[label] for label in labels),
                draw(st.floats(0, 1e9)),
                draw(finite),
            )
        )
    return RuleEnsemble.from_rules(rules, Schema(feature_names, categories), label_names)


# --- text


def test_a_rule_reads_as_a_sentence() -> None:
    assert str(rule(at1("<=", 0.3), at7(">", 1.2))) == "IF at1 <= 0.3 AND at7 > 1.2 THEN beach +0.8, urban -0.4"
    assert str(rule(weather("==", "sunny"), head={"beach": 1.0})) == "IF weather == sunny THEN beach +1"


def test_a_rule_with_an_empty_body_is_a_default() -> None:
    assert str(rule(head={"beach": -1.2, "urban": -0.9})) == "DEFAULT beach -1.2, urban -0.9"


@pytest.mark.parametrize(
    ("conditions", "text"),
    [
        ([at1(">", 0.2), at1("<=", 0.7)], "0.2 < at1 <= 0.7"),
        ([at1("<=", 5), at1("<=", 3)], "at1 <= 3"),
        ([at1(">", 5), at1(">", 3)], "at1 > 5"),
        ([at1("<=", 5), at7(">", 0), at1(">", 1), at1("<=", 3)], "1 < at1 <= 3 AND at7 > 0"),
        (
            [weather("!=", "fog"), at1("<=", 1), weather("!=", "rain"), weather("!=", "fog")],
            "weather != fog AND weather != rain AND at1 <= 1",
        ),
        ([at1("<=", -0.0)], "at1 <= 0"),
        ([at1("<=", 1 / 3)], "at1 <= 0.3333333333333333"),
        ([Condition(0, "<=", 1 / 3, "at1", digits=4)], "at1 <= 0.3333"),
        ([Condition(0, ">", 1234567.25, "at1", digits=4)], "at1 > 1234567"),
        (
            [Condition(0, ">", 0.1, "at1", digits=4), Condition(0, "<=", 0.12345, "at1", digits=4)],
            "0.1 < at1 <= 0.1235",
        ),
        ([at1(">", 1234567.25), at1("<=", 1234567.5)], "1234567.25 < at1 <= 1234567.5"),
        ([Condition(0, "<=", 1.0, "a <= 'b c'")], "a <= 'b c' <= 1"),
    ],
)
def test_conditions_on_one_feature_are_merged_in_the_text_only(conditions: list[Condition], text: str) -> None:
    described = rule(*conditions)
    assert described.body_text() == text
    assert described.body == tuple(conditions)


grid = st.integers(-4, 4).map(lambda n: n / 4)
grid_conditions = st.one_of(
    st.builds(at1, st.sampled_from(OPERATORS[:2]), grid),
    st.builds(at7, st.sampled_from(OPERATORS[:2]), grid),
    st.builds(weather, st.sampled_from(OPERATORS[2:]), st.sampled_from(WEATHER)),
)


@settings(deadline=None)
@given(st.lists(grid_conditions, min_size=1, max_size=8))
def test_the_merged_text_says_the_same_as_the_conjunction(conditions: list[Condition]) -> None:
    expression = compile(rule(*conditions).body_text().replace("AND", "and"), "body", "eval")
    assert rule(*conditions).body_text().count("at1") <= 1
    words = {value: value for value in WEATHER}
    rng = np.random.default_rng(0)
    for x1, x7 in rng.integers(-5, 6, size=(40, 2)) / 4:
        for sky in WEATHER:
            example = (x1, x7, sky)
            met = all(condition.covers([example[condition.feature]])[0] for condition in conditions)
            assert met == eval(expression, words | dict(zip(FEATURES, example, strict=True)))


@pytest.mark.parametrize(
    ("score", "text"),
    [
        (0.8149, "+0.815"),
        (0.81, "+0.81"),
        (-0.0042, "-0.0042"),
        (-5e-324, "-4.94e-324"),
        (1234.5, "+1234"),
        (-999.7, "-1000"),
        (2e9, "+2e+09"),
    ],
)
def test_scores_have_a_sign_and_three_digits(score: float, text: str) -> None:
    assert rule(head={"beach": score}).head_text() == f"beach {text}"


def test_zeros_are_left_out_of_the_text() -> None:
    assert rule(head={"a": 0.0, "b": -0.0, "c": 2.0}).head_text() == "c +2"
    assert str(rule(at1(">", 1), head={"a": 0.0, "b": -0.0})) == "IF at1 > 1 THEN nothing"


def test_long_heads_show_the_largest_scores_and_count_the_others() -> None:
    head = {f"y{k}": (-1) ** k * (k + 1) / 100 for k in range(174)}
    assert rule(head=head).head_text() == "y173 -1.74, y172 +1.73, y171 -1.72, y170 +1.71, y169 -1.7 (+169 more)"
    assert rule(head=head).head_text(max_labels=2) == "y173 -1.74, y172 +1.73 (+172 more)"
    assert rule(head=head).head_text(max_labels=0) == "(+174 more)"
    assert rule(head=head).head_text(max_labels=None).startswith("y0 +0.01, y1 -0.02, y2")
    eight = dict(list(head.items())[:8])
    assert "more" not in rule(head=eight).head_text()
    assert list(eight) == [part.split()[0] for part in rule(head=eight).head_text().split(", ")]


def test_long_heads_show_what_is_said_to_the_contrary() -> None:
    head = {f"y{k}": -1.0 - k for k in range(20)} | {"y20": 0.1, "y21": 0.3}
    assert rule(head=head).head_text() == "y19 -20, y18 -19, y17 -18, y16 -17, y21 +0.3 (+17 more)"


def word(name: str, operator: str = "<=", share: float = 1.0) -> Condition:
    return Condition(hash(name), operator, 0.37, name, digits=NO_DIGITS, share=share)


def test_what_must_be_absent_is_listed_behind_all_else() -> None:
    body = word("fever"), word("cough", ">"), word("x-ray"), at1("<=", 0.5)
    assert rule(*body).body_text() == "cough > 0 AND at1 <= 0.5 AND none of: fever, x-ray"
    many = [word(f"w{i}", share=i) for i in range(12)]
    assert rule(at7(">", 1), *many).body_text() == "at7 > 1 AND none of: w11, w10, w9, w8, w7 (+7 more)"
    assert rule(*many).body_text(max_conditions=0) == "none of: (+12 more)"
    assert rule(*many).body_text(max_conditions=None) == f"none of: {', '.join(f'w{i}' for i in range(12))}"
    assert rule(word("fever"), word("fever", ">")).body_text() == "0 < fever <= 0"


def test_long_bodies_show_the_conditions_that_brought_most_and_count_the_others() -> None:
    body = [Condition(i, ">", i, f"x{i}", share=i) for i in range(9)]
    assert rule(*body).body_text() == "x8 > 8 AND x7 > 7 AND x6 > 6 AND x5 > 5 AND x4 > 4 (+4 more)"
    assert rule(*body, Condition(0, "<=", 9, "x0", share=99)).body_text(2) == "0 < x0 <= 9 AND x8 > 8 (+7 more)"
    assert rule(*body).body_text(0) == "(+9 more)"
    assert rule(*body[:8]).body_text() == rule(*body[:8]).body_text(None)


def test_an_ensemble_prints_as_a_numbered_table() -> None:
    assert str(small_ensemble()).splitlines() == [
        "rule  covers    gain",
        "   0     150  33.33%  DEFAULT beach -1.2, urban -0.9",
        "   1      12  33.33%  IF at1 <= 0.3 AND at7 > 1.2 THEN beach +0.8, urban -0.4",
        "   2       7  33.33%  IF weather == sunny AND 0.1 < at1 <= 0.7 THEN beach +0.25",
        "   3    99.5   0.00%  IF weather != fog THEN nothing",
    ]
    assert repr(small_ensemble()) == "<RuleEnsemble: 4 rules, 2 labels, 3 features>"
    assert repr(small_ensemble()[:1]) == "<RuleEnsemble: 1 rule, 2 labels, 3 features>"


def test_a_long_ensemble_prints_its_first_twenty_rules() -> None:
    many = small_ensemble()[[0] + [1] * 999]
    lines = str(many).splitlines()
    assert len(lines) == 22
    assert lines[-1] == "... and 980 more rules"
    assert len(many.to_text().splitlines()) == 1001
    assert str(many[:21]).endswith("... and 1 more rule, 33.33% of the gain")
    assert str(small_ensemble()[1:]).endswith("together 66.67% of the gain")
    assert str(many[:0]) == "(no rules)"


# --- coverage of a condition


def test_a_missing_value_meets_no_condition() -> None:
    for operator in OPERATORS[:2]:
        assert not at1(operator, 0.0).covers([np.nan, None]).any()
    for operator in OPERATORS[2:]:
        assert not weather(operator, "sunny").covers([np.nan, None, float("nan")]).any()
        pandas = pytest.importorskip("pandas")
        assert not weather(operator, "sunny").covers(pandas.Series([pandas.NA, None], dtype="category")).any()
        assert not weather(operator, "sunny").covers([pandas.NA]).any()


def test_conditions_compare_values() -> None:
    assert at1("<=", 1.0).covers([0, 1, 2]).tolist() == [True, True, False]
    assert at1(">", 1.0).covers([0, 1, 2]).tolist() == [False, False, True]
    assert weather("==", "sunny").covers(["sunny", "rain", "unseen"]).tolist() == [True, False, False]
    assert weather("!=", "sunny").covers(np.array(["sunny", "rain", "unseen"])).tolist() == [False, True, True]
    assert Condition(0, "==", 2, "size").covers(np.array([[1.0, 2.0], [np.nan, 2.0]])).tolist() == [
        [False, True],
        [False, True],
    ]
    with pytest.raises(ValueError, match="operator must be one of <=, >, ==, !=, got '<'"):
        at1("<", 1.0)


# --- the ensemble as a sequence


@settings(deadline=None)
@given(ensembles(), st.data())
def test_selecting_keeps_rules(ensemble: RuleEnsemble, data: st.DataObject) -> None:
    rules = list(ensemble)
    cut = data.draw(st.slices(len(rules)))
    assert list(ensemble[cut]) == rules[cut]
    assert [ensemble[t] for t in range(-len(rules), len(rules))] == rules + rules
    if rules:
        chosen = data.draw(st.lists(st.integers(-len(rules), len(rules) - 1)))
        assert list(ensemble[chosen]) == [rules[t] for t in chosen]
        assert ensemble[np.array(chosen, dtype=int)] == ensemble[chosen]
    mask = np.array([r.coverage > 0 for r in rules], dtype=bool)
    assert list(ensemble[mask]) == [r for r in rules if r.coverage > 0]
    assert ensemble[:] == ensemble


def test_an_index_out_of_range_is_named() -> None:
    with pytest.raises(IndexError, match="rule 4 is out of range, the ensemble has 4 rules"):
        small_ensemble()[4]
    with pytest.raises(IndexError, match="one-dimensional"):
        small_ensemble()[np.zeros((2, 2), dtype=int)]


@settings(deadline=None)
@given(ensembles())
def test_single_rules_rebuild_the_ensemble(ensemble: RuleEnsemble) -> None:
    rebuilt = RuleEnsemble.from_rules(ensemble, ensemble.schema, ensemble.label_names)
    assert rebuilt == ensemble


@settings(deadline=None)
@given(ensembles())
def test_the_head_matrix_has_the_scores_of_every_rule(ensemble: RuleEnsemble) -> None:
    expected = np.zeros((len(ensemble), len(ensemble.label_names)))
    for t, r in enumerate(ensemble):
        expected[t, list(r.labels)] = r.scores
    np.testing.assert_array_equal(ensemble.head_matrix(), expected)


def test_the_frame_has_one_row_per_rule() -> None:
    pytest.importorskip("pandas")
    frame = small_ensemble().to_frame()
    assert list(frame.columns) == ["body", "head", "n_conditions", "n_labels", "coverage", "gain", "share", "order"]
    assert frame.index.name == "rule"
    assert frame["share"].sum() == pytest.approx(1)
    assert frame["n_conditions"].tolist() == [0, 2, 3, 1]
    assert frame["n_labels"].tolist() == [2, 2, 1, 0]
    assert frame.loc[1, "body"] == "at1 <= 0.3 AND at7 > 1.2"
    assert frame.loc[1, "head"] == "beach +0.8, urban -0.4"
    assert len(small_ensemble()[:0].to_frame()) == 0


def test_a_missing_pandas_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'pyboomer\[pandas\]'"):
        small_ensemble().to_frame()


# --- selections


def test_what_is_selected_keeps_its_numbers_and_its_share_of_the_gain() -> None:
    ensemble = small_ensemble()
    chosen = ensemble[[2, 0]]
    assert chosen.order.tolist() == [2, 0]
    assert chosen.share.tolist() == pytest.approx([1 / 3, 1 / 3])
    assert [line.split()[0] for line in str(chosen).splitlines()] == ["rule", "2", "0", "together"]
    assert chosen.to_frame().index.tolist() == [2, 0]
    assert chosen[1:].order.tolist() == [0]
    for again in (pickle.loads(pickle.dumps(chosen)), copy.deepcopy(chosen)):
        assert again.order.tolist() == [2, 0]
        assert again == chosen
    changed = dataclasses.replace(chosen, gain=np.array([3.0, 1.0]))
    assert (changed.order.tolist(), changed.share.tolist()) == ([0, 1], [0.75, 0.25])


def test_gains_that_cannot_be_added_have_no_shares() -> None:
    for gain in (0.0, 1e308):
        assert not dataclasses.replace(small_ensemble(), gain=np.full(4, gain)).share.any()


def test_rules_are_found_by_the_features_and_labels_they_mention() -> None:
    ensemble = small_ensemble()
    assert ensemble.mentioning(feature="at1").order.tolist() == [1, 2]
    assert ensemble.mentioning(feature=2).order.tolist() == [2, 3]
    assert ensemble.mentioning(feature=["at7", -1]).order.tolist() == [1, 2, 3]
    assert ensemble.mentioning(label="urban").order.tolist() == [0, 1]  # rule 3 has a score of zero for it
    assert ensemble.mentioning(feature="at1", label="urban").order.tolist() == [1]
    assert ensemble.mentioning(feature=np.array([], dtype=int)).order.tolist() == []
    assert ensemble.mentioning() == ensemble
    assert ensemble.mentioning(feature="at1").mentioning(feature="at7").order.tolist() == [1]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"feature": "wether"}, "there is no feature 'wether'; did you mean 'weather'?"),
        ({"label": "zzz"}, "there is no label 'zzz'; there are 'beach', 'urban'"),
        ({"label": 2}, "there is no label 2; they are numbered from 0 to 1"),
        ({"feature": [0, 1.5]}, "a feature is given by its name or its number, got 1.5"),
        ({"label": 1.5}, "a label is given by its name or its number, got 1.5"),
        ({"feature": True}, "a feature is given by its name or its number, got True"),
    ],
)
def test_what_is_not_there_is_named(wanted: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        small_ensemble().mentioning(**wanted)


def test_rules_in_the_order_of_their_gain() -> None:
    ensemble = dataclasses.replace(small_ensemble(), gain=np.array([1.0, 3.0, 2.0, 3.0]))
    assert ensemble.by_gain().order.tolist() == [1, 3, 2, 0]
    assert str(ensemble.by_gain()[:1]).splitlines()[1].split()[:3] == ["1", "12", "33.33%"]


def test_rules_about_a_label_have_its_scores_and_its_part_of_the_gain() -> None:
    rules = dataclasses.replace(small_ensemble(), gain=np.array([2.1, 1.2, 3.0, 1.0]))
    about = rules.about("urban")
    assert about.order.tolist() == [0, 1]
    assert about.head_matrix().tolist() == [[0.0, -0.9], [0.0, -0.4]]
    np.testing.assert_allclose(about.gain, [2.1 * 0.9 / 2.1, 1.2 * 0.4 / 1.2])
    np.testing.assert_allclose(about.share, [0.9 / 1.3, 0.4 / 1.3])
    assert about[0].to_text() == "DEFAULT urban -0.9"
    np.testing.assert_allclose(sum(rules.about(k).gain.sum() for k in range(2)), rules[:3].gain.sum())
    assert rules.about(["beach", "urban"]).gain.tolist() == rules.gain[:3].tolist()
    assert RuleEnsemble.from_dict(about.to_dict()) == about


@pytest.mark.parametrize(("share", "expected"), [(0.01, [2]), (0.5, [2, 0]), (0.8, [2, 0, 3]), (1, [2, 0, 3, 1])])
def test_the_top_rules_are_as_few_as_have_a_share_of_the_gain(share: float, expected: list[int]) -> None:
    rules = dataclasses.replace(small_ensemble(), gain=np.array([3.0, 1.0, 4.0, 2.0]))
    assert rules.top(share).order.tolist() == expected


def test_there_is_no_top_without_a_share() -> None:
    with pytest.raises(ValueError, match="share must be above 0 and at most 1, got 50"):
        small_ensemble().top(50)
    assert len(small_ensemble()[:0].top()) == 0
    assert len(dataclasses.replace(small_ensemble(), gain=np.zeros(4)).top()) == 1


# --- HTML


def test_a_notebook_shows_a_table() -> None:
    html = small_ensemble()._repr_html_()
    assert html.count("<tr>") == 5
    assert "0.1 &lt; at1 &lt;= 0.7" in html
    assert "+0.25" in html
    assert "more rule" not in html
    assert small_ensemble()[[1] * 50]._repr_html_().endswith("<p>... and 30 more rules</p>")


def test_a_notebook_shows_a_rule_as_a_row() -> None:
    html = small_ensemble()[1]._repr_html_()
    assert html.count("<tr>") == 2
    assert ">12</td>" in html
    assert small_ensemble()[0]._repr_html_().count("<em>always</em>") == 1


EVIL = '<script>alert("x")</script>&\'😀'


def test_names_are_text_in_html() -> None:
    evil = Rule((Condition(0, "==", EVIL, EVIL),), (0,), (1.0,), (EVIL,))
    html = RuleEnsemble.from_rules([evil], Schema((EVIL,), {0: (EVIL,)}), [EVIL])._repr_html_()
    assert "<script" not in html + evil._repr_html_()
    assert html.count("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&amp;&#x27;😀") == 3


# --- immutability


def test_ensembles_cannot_be_changed() -> None:
    ensemble = small_ensemble()
    for restored in (ensemble, ensemble[1:], pickle.loads(pickle.dumps(ensemble)), copy.deepcopy(ensemble)):
        for field in dataclasses.fields(restored):
            value = getattr(restored, field.name)
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(restored, field.name, value)
            if isinstance(value, np.ndarray):
                with pytest.raises(ValueError, match="read-only"):
                    value[:] = 0
        with pytest.raises(TypeError):
            restored.categories[0] = ()  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        ensemble[0].gain = 1.0  # type: ignore[misc]


def test_an_ensemble_copies_the_arrays_it_is_given() -> None:
    ensemble = small_ensemble()
    arrays = {f.name: getattr(ensemble, f.name) for f in dataclasses.fields(ensemble) if f.init}
    scores = ensemble.head_scores.copy()
    copied = RuleEnsemble(**(arrays | {"head_scores": scores}))
    scores[:] = 0
    assert copied == ensemble


def test_equality_minds_values_names_and_the_types_of_categories() -> None:
    ensemble = small_ensemble()
    assert ensemble == small_ensemble()
    assert ensemble != ensemble[1:]
    assert ensemble != "rules"
    assert ensemble != dataclasses.replace(ensemble, gain=ensemble.gain + 1)
    assert ensemble != dataclasses.replace(ensemble, label_names=("a", "b"))
    as_int, as_bool = (
        dataclasses.replace(ensemble[:1], schema=Schema(FEATURES, {2: (kind(1),)})) for kind in (int, bool)
    )
    assert as_int != as_bool


def test_numpy_scalars_become_plain_values() -> None:
    ensemble = RuleEnsemble.from_rules([], Schema(np.array(["a"]), {0: np.array([1, 2])}), ["y"])  # type: ignore[arg-type, dict-item]
    assert type(ensemble.feature_names[0]) is str
    assert [type(value) for value in ensemble.categories[0]] == [int, int]
    json.dumps(ensemble.to_dict())


# --- JSON


@settings(deadline=None)
@given(ensembles())
def test_the_round_trip_through_json_is_exact(ensemble: RuleEnsemble) -> None:
    assert RuleEnsemble.from_dict(ensemble.to_dict()) == ensemble
    assert RuleEnsemble.from_dict(json.loads(json.dumps(ensemble.to_dict(), allow_nan=False))) == ensemble
    assert pickle.loads(pickle.dumps(ensemble)) == ensemble


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("condition_offsets", [0, 0, 2, 5], "condition_offsets must have one entry more than coverage, 5, got 4"),
        ("condition_offsets", [0, 0, 2, 1, 6], "condition_offsets must rise"),
        ("condition_offsets", [1, 1, 2, 5, 6], "condition_offsets must rise from 0"),
        ("condition_offsets", [0, 0, 2, 5, 7], "condition_offsets must rise"),
        ("condition_offsets", [0, 2**63 - 1, -(2**63), 5, 6], "condition_offsets must rise"),
        ("condition_offsets", [0, 0, 2, 5, 2**70], "condition_offsets"),
        ("condition_offsets", [0, 0.0, 2, 5, 6], "condition_offsets must hold numbers that fit int64, got float64"),
        ("condition_features", [0, 1, 2, 0, 0, 3], "condition_features must be below 3"),
        ("condition_features", [0, 1, 2, 0, 0, -1], "condition_features must be below 3 and not negative"),
        ("condition_features", [0, 1, 2, 0, 0, 2 + 2**32], "condition_features holds a number that is out of range"),
        ("condition_features", [0, 1, 0, 0, 0, 2], "condition_operators must be == or !="),
        ("condition_operators", [0, 1, 2, 1, 0, 4], "condition_operators must be below 4"),
        ("condition_operators", [0, 1, 2, 1, 0, 256], "condition_operators holds a number that is out of range"),
        ("condition_operators", [0, 1, 2, 1, 0], "condition_operators must have as many entries as condition_features"),
        ("condition_operators", [0, 1, 2, 1, 0, True], "condition_operators must hold float or int only, got bool"),
        (
            "condition_values",
            [0.3, 1.2, 3.0, 0.1, 0.7, 2.0],
            "condition_values of nominal and ordinal features",
        ),
        (
            "condition_values",
            [0.3, 1.2, 0.5, 0.1, 0.7, 2.0],
            "condition_values of nominal and ordinal features",
        ),
        ("condition_values", [0.3, float("nan"), 0.0, 0.1, 0.7, 2.0], "condition_values must be finite"),
        ("head_scores", [float("inf")] * 6, "head_scores must be finite"),
        ("head_scores", [10**400] * 6, "head_scores"),
        ("head_scores", [[1.0]] * 6, "head_scores must hold float or int only, got list"),
        ("head_scores", "123456", "head_scores must be a list, got str"),
        ("head_labels", [0, 1, 1, 0, 0, 1], "head_labels must be ascending within a rule"),
        ("coverage", [1.0, 1.0, 1.0, -1.0], "coverage must not be negative"),
        ("gain", [1.0, 1.0], "gain must have as many entries as coverage, 4, got 2"),
        ("feature_names", "abc", "feature_names must be a list, got str"),
        ("label_names", ["beach", 1], "label_names must hold str only, got int"),
        ("label_names", ["beach"], "head_labels must be below 1"),
        ("categories", [], "categories must be a dict, got list"),
        ("categories", {"2": "sunny"}, r"categories\[2\] must be a list"),
        ("categories", {"02": ["sunny"]}, "categories must have indices of features as keys, got '02'"),
        ("categories", {"2": ["a", "b", "a"]}, r"categories\[2\] must be distinct"),
        ("categories", {"2": ["a", "b", float("nan")]}, r"categories\[2\] must be .*finite"),
        ("categories", {"2": ["a", "b", None]}, r"categories\[2\] must hold .* only, got NoneType"),
        ("categories", {}, "condition_operators must be == or !="),
        ("extra", 1, r"unknown keys: \['extra'\]"),
    ],
)
def test_bad_data_is_refused_by_name(field: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RuleEnsemble.from_dict(small_ensemble().to_dict() | {field: value})


def test_missing_keys_are_named() -> None:
    data = small_ensemble().to_dict()
    del data["gain"], data["categories"]
    with pytest.raises(ValueError, match="rules lack gain, categories"):
        RuleEnsemble.from_dict(data)
    with pytest.raises(ValueError, match="rules must be a dict, got list"):
        RuleEnsemble.from_dict([])  # type: ignore[arg-type]


def test_a_category_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match="weather == snow: not one of the categories of feature 2"):
        RuleEnsemble.from_rules([rule(weather("==", "snow"))], SCHEMA, LABELS)


def test_a_rule_needs_a_name_and_a_score_for_each_label() -> None:
    with pytest.raises(ValueError, match="same length"):
        Rule((), (0, 1), (0.5,), ("a", "b"))


junk = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.sampled_from([-1, 2**31, 2**63, -(2**63), 2**64, 10**400]),
        st.floats(),
        st.text(max_size=3),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.text(max_size=2), st.sampled_from(["0", "1"]), st.integers()), inner, max_size=3),
    ),
    max_leaves=4,
)


def damage(data: Any, draw: Any) -> Any:
    """Replace, remove or repeat something somewhere inside nested dicts and lists."""
    if not isinstance(data, dict | list) or not data or draw(st.integers(0, 9)) == 0:
        return draw(junk)
    key = draw(st.sampled_from(sorted(data) if isinstance(data, dict) else range(len(data))))
    action = draw(st.sampled_from(["descend", "descend", "remove", "add"]))
    if action == "descend":
        data[key] = damage(data[key], draw)
    elif action == "remove":
        del data[key]
    elif isinstance(data, dict):
        data[draw(st.one_of(st.text(max_size=2), st.integers()))] = draw(junk)
    else:
        data.insert(key, draw(st.one_of(st.just(data[key]), junk)))
    return data


@settings(deadline=None)
@given(ensembles(), st.data())
def test_damaged_data_is_either_a_sound_ensemble_or_a_value_error(ensemble: RuleEnsemble, data: st.DataObject) -> None:
    damaged = damage(ensemble.to_dict(), data.draw)
    try:
        accepted = RuleEnsemble.from_dict(damaged)
    except ValueError:
        pass
    else:
        assert RuleEnsemble.from_dict(json.loads(json.dumps(accepted.to_dict(), allow_nan=False))) == accepted
        assert len(list(accepted)) == len(accepted.head_matrix()) == len(accepted)
        assert str(accepted)


def test_gains_that_cancel_have_no_shares() -> None:
    rules = RuleEnsemble.from_rules(
        [Rule((), (0,), (1.0,), ("y",), 1.0, gain) for gain in (1e308, -1e308, 1e-9)], Schema(()), ["y"]
    )
    np.testing.assert_array_equal(rules.share, [0.0, 0.0, 0.0])


# --- Dependencies


def test_rules_need_no_compiler_and_nothing_of_the_package_but_arrays() -> None:
    code = """
import pkgutil, sys
from importlib import import_module
import pyboomer.rules

for module in pkgutil.iter_modules(pyboomer.rules.__path__, "pyboomer.rules."):
    import_module(module.name)
ours = {name for name in sys.modules if name.startswith("pyboomer.") and not name.startswith("pyboomer.rules")}
assert ours == {"pyboomer.arrays"}, ours
assert not {"numba", "scipy", "sklearn", "pandas"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
