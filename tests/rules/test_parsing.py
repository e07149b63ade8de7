"""Rules survive being written and read, and what cannot be read is named with its place."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyboomer.rules.ensemble import Condition, Rule
from pyboomer.rules.operators import OPERATORS
from pyboomer.rules.parsing import write_rule


def conditions_of(rule: Rule) -> list[tuple[str, str, Any]]:
    return [(c.name, c.operator, c.value) for c in rule.body]


def test_a_rule_is_read_as_people_write_it() -> None:
    rule = Rule.parse("IF 0.2 < x <= 0.7 AND weather == sunny AND y != 3 THEN beach +0.5, urban -0.4")
    assert conditions_of(rule) == [("x", ">", 0.2), ("x", "<=", 0.7), ("weather", "==", "sunny"), ("y", "!=", 3)]
    assert rule.head == {"beach": 0.5, "urban": -0.4}
    assert str(rule) == "IF 0.2 < x <= 0.7 AND weather == sunny AND y != 3 THEN beach +0.5, urban -0.4"


def test_a_default_rule_has_no_conditions() -> None:
    rule = Rule.parse("DEFAULT beach -1.2")
    assert rule.body == ()
    assert rule.head == {"beach": -1.2}
    assert Rule.parse("DEFAULT nothing").head == {}
    assert Rule.parse("DEFAULT nothing +1").head == {"nothing": 1.0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x<=3", [("x", "<=", 3.0)]),
        ("x>-.5e-3", [("x", ">", -0.0005)]),
        ("  long name  >  4. ", [("long name", ">", 4.0)]),
        ("1<x", [("x", ">", 1.0)]),
        ("1<x<=2", [("x", ">", 1.0), ("x", "<=", 2.0)]),
        ("3 <= 5", [("3", "<=", 5.0)]),
        ("color=red <= 0.5", [("color=red", "<=", 0.5)]),
        ("rock and roll, then <= 1", [("rock and roll, then", "<=", 1.0)]),
        ('5" pipe <= 1', [('5" pipe', "<=", 1.0)]),
        ('"a AND b"<=1', [("a AND b", "<=", 1.0)]),
        (r'1 <"x <= \"\\ THEN"<= 2', [('x <= "\\ THEN', ">", 1.0), ('x <= "\\ THEN', "<=", 2.0)]),
        ("income == <=50K", [("income", "==", "<=50K")]),
        ("income!=>50K", [("income", "!=", ">50K")]),
        ('a == ""', [("a", "==", "")]),
        ("a == 007 AND b == -1.5 AND c == nan", [("a", "==", "007"), ("b", "==", -1.5), ("c", "==", "nan")]),
        ('a == "3" AND b == True', [("a", "==", "3"), ("b", "==", "True")]),
    ],
)
def test_conditions_are_told_from_names(text: str, expected: list[tuple[str, str, Any]]) -> None:
    rule = Rule.parse(f"IF {text} THEN y +1")
    assert conditions_of(rule) == expected
    assert [type(c.value) for c in rule.body] == [type(value) for _, _, value in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("beach +0.5", {"beach": 0.5}),
        ("beach+0.5,urban-.4", {"beach": 0.5, "urban": -0.4}),
        ("beach 0.5, urban - 2", {"beach": 0.5, "urban": -2.0}),
        ("big city +1e+06, y 1 -1e-05", {"big city": 1e6, "y 1": -1e-5}),
        ("-1 +2, t-1 -2, x1e-5", {"-1": 2.0, "t-1": -2.0, "x1e": -5.0}),
        ('"a, b" +1, "+1"+2, "" 3', {"a, b": 1.0, "+1": 2.0, "": 3.0}),
        ("THEN AND x <= 3 +1", {"THEN AND x <= 3": 1.0}),
        ('a "b +1, c" +2', {'a "b': 1.0, 'c"': 2.0}),
    ],
)
def test_scores_are_told_from_labels(text: str, expected: dict[str, float]) -> None:
    assert Rule.parse(f"IF x <= 1 THEN {text}").head == expected
    assert Rule.parse(f"DEFAULT {text}").head == expected


@pytest.mark.parametrize(
    ("text", "fault", "place"),
    [
        ("", "a rule starts with IF or DEFAULT", ""),
        ("if x <= 3 THEN y +1", "a rule starts with IF or DEFAULT", "if x"),
        ("IFx <= 3 THEN y +1", "a rule starts with IF or DEFAULT", "IFx"),
        ("IF x <= 3 then y +1", "THEN is missing", ""),
        ("IF THEN y +1", "a condition is missing", "THEN"),
        ("IF x <= 3 AND THEN y +1", "a condition is missing", "THEN"),
        ("IF x = 3 THEN y +1", "expected a condition", "x = 3"),
        ("IF x < 3 THEN y +1", "a condition reads x <= 1, x > 1, 1 < x <= 2, x == a or x != a", "x < 3"),
        ("IF x >= 3 THEN y +1", "a condition reads", "x >= 3"),
        ("IF a <= b > 3 THEN y +1", "a condition reads", "a <= b"),
        ("IF x > THEN y +1", "a number is missing", "THEN"),
        ("IF x <= 1e999 THEN y +1", "the number is too large", "1e999"),
        ("IF <= 3 THEN y +1", "a feature is missing", "<= 3"),
        ("IF x == THEN y +1", "a category is missing", "THEN"),
        ('IF "x <= 3 THEN y +1', "the quotes of a feature must enclose all of it", '"x <='),
        ('IF "x" y <= 3 THEN y +1', "the quotes of a feature must enclose all of it", '"x" y'),
        ("IF x <= 3 THEN", "a label is missing", ""),
        ("IF x <= 3 THEN a +1,", "a label is missing", ""),
        ("IF x <= 3 THEN +1", "a label is missing", "+1"),
        ("IF x <= 3 THEN beach", "a score is missing behind the label", "beach"),
        ("IF x <= 3 THEN y05", "a score is missing behind the label", "y05"),
        ("DEFAULT a +1, b +inf", "a score is missing behind the label", "b +inf"),
        ("DEFAULT a +1, b -1, a +2", "label 'a' has a score already", "a +2"),
        ("DEFAULT a +1, b -1 (+3 more)", "some labels were left out here", "b -1"),
    ],
)
def test_a_fault_is_named_with_its_place(text: str, fault: str, place: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)) as error:
        Rule.parse(text)
    message, shown, caret = str(error.value).rsplit("\n", 2)
    assert shown == text
    assert text[len(caret) - 1 :].startswith(place)
    assert f"at character {len(caret)} of" in message
    if not place:
        assert len(caret) == len(text) + 1


def test_only_text_is_read() -> None:
    with pytest.raises(TypeError, match="a rule is read from text, got int"):
        Rule.parse(3)  # type: ignore[arg-type]


finite = st.floats(-1e300, 1e300)  # the largest of all are rounded up to infinity when printed
any_names = st.one_of(st.text(max_size=8), st.sampled_from(['"', "\\", "a AND b", "THEN", "x <= 3", "a, b", "1", "+1"]))
plain_names = st.from_regex(r"[a-z][\w-]{0,3}(?:=\w)?(?: [a-z]\w{0,3})?", fullmatch=True)


@st.composite
def rules_of(draw: st.DrawFn, names: st.SearchStrategy[str]) -> Rule:
    body = []
    features = draw(st.lists(names, max_size=4, unique=True))
    for feature in draw(st.lists(st.sampled_from(range(len(features))), max_size=5)) if features else []:
        operator = draw(st.sampled_from(OPERATORS[2:] if feature % 2 else OPERATORS[:2]))
        value = draw(st.one_of(names, st.integers(-(10**15), 10**15), finite) if feature % 2 else finite)
        body.append(Condition(feature, operator, value, features[feature]))
    labels = draw(st.lists(names, max_size=4, unique=True))
    scores = tuple(draw(finite) for _ in labels)
    return Rule(tuple(body), tuple(range(len(labels))), scores, tuple(labels))


@given(rules_of(any_names))
def test_any_rule_is_read_just_as_it_was_written(rule: Rule) -> None:
    again = Rule.parse(write_rule(rule))
    assert conditions_of(again) == conditions_of(rule)
    assert [type(c.value) for c in again.body] == [type(c.value) for c in rule.body]
    assert again.head == rule.head
    assert write_rule(again) == write_rule(rule)


@given(rules_of(plain_names))
def test_a_printed_rule_reads_as_it_was_printed(rule: Rule) -> None:
    text = rule.to_text(max_labels=None)
    again = Rule.parse(text)
    assert again.to_text(max_labels=None) == text
    assert again.head == pytest.approx({name: score for name, score in rule.head.items() if score}, rel=5e-3)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for start in ("", "IF ", "DEFAULT ", "IF x <= 1 THEN "):
        try:
            Rule.parse(start + text)
        except ValueError as error:
            assert re.search("at character [0-9]+ of\n", str(error))  # noqa: PT017
