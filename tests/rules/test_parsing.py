"""Rules survive being written and read, and what cannot be read is named with its place."""

import re
from math import inf, nextafter
from sys import float_info
from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyboomer.rules.ensemble import Condition, Rule
from pyboomer.rules.operators import OPERATORS
from pyboomer.rules.parsing import write_rule

BELOW_3 = 2.9999999999999996


def conditions_of(rule: Rule) -> list[tuple[str, str, Any]]:
    return [(c.name, c.operator, c.value) for c in rule.body]


def test_a_rule_is_read_as_people_write_it() -> None:
    rule = Rule.parse("IF 0.2 < x <= 0.7 AND weather == sunny AND y != 3 THEN beach +0.5, urban -0.4")
    assert conditions_of(rule) == [("x", ">", 0.2), ("x", "<=", 0.7), ("weather", "==", "sunny"), ("y", "!=", 3)]
    assert rule.head == {"beach": 0.5, "urban": -0.4}
    assert str(rule) == "IF 0.2 < x <= 0.7 AND weather == sunny AND y != 3 THEN beach +0.5, urban -0.4"


def test_what_must_be_absent_is_read_as_it_is_printed() -> None:
    rule = Rule.parse('IF cough > 0 AND none of: fever, "salt, pepper AND more", x-ray THEN flu +0.5')
    names = ["fever", "salt, pepper AND more", "x-ray"]
    assert conditions_of(rule) == [("cough", ">", 0.0), *((name, "<=", 0.0) for name in names)]
    assert rule.to_text() == 'IF cough > 0 AND none of: fever, "salt, pepper AND more", x-ray THEN flu +0.5'
    assert Rule.parse(rule.to_text()) == rule
    quoted = Rule.parse(r'IF none of: "\"w\"", "a, \\b" THEN y +1')
    assert [condition.name for condition in quoted.body] == ['"w"', "a, \\b"]
    assert Rule.parse(quoted.to_text()) == quoted
    assert Rule.parse(write_rule(rule)).body == rule.body
    assert conditions_of(Rule.parse("if None of:a then y +1")) == [("a", "<=", 0.0)]
    assert conditions_of(Rule.parse("IF none of <= 1 THEN y +1")) == [("none of", "<=", 1.0)]
    assert conditions_of(Rule.parse('IF "none of: a" <= 1 THEN y +1')) == [("none of: a", "<=", 1.0)]


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
        ("x < 3", [("x", "<=", BELOW_3)]),
        ("x >= 3", [("x", ">", BELOW_3)]),
        ("3 > x", [("x", "<=", BELOW_3)]),
        ("3 <= x", [("x", ">", BELOW_3)]),
        ("3 >= x", [("x", "<=", 3.0)]),
        ("1 <= x < 3", [("x", ">", 1 - 2**-53), ("x", "<=", BELOW_3)]),
        ("3 > x >= 1", [("x", "<=", BELOW_3), ("x", ">", 1 - 2**-53)]),
        ("x < 0", [("x", "<=", -5e-324)]),
        ('"3" <= small', [("3", "<=", "small")]),
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
        ("ifx <= 3 then y +1", "a rule starts with IF or DEFAULT", "ifx"),
        ("IFx <= 3 THEN y +1", "a rule starts with IF or DEFAULT", "IFx"),
        ("IF x <= 3 y +1", "THEN is missing,", ""),
        ("IF x <= 3 then y +1", "THEN is missing (in capitals, as IF is)", ""),
        ("IF THEN y +1", "a condition is missing", "THEN"),
        ("IF x <= 3 AND THEN y +1", "a condition is missing", "THEN"),
        ("IF x = 3 THEN y +1", "expected a condition", "x = 3"),
        ("IF a <= b > 3 THEN y +1", "a condition reads x <= 1, x > 1, 1 < x <= 2, x == a or x != a", "a <= b"),
        ("IF 1 < x == 3 THEN y +1", "a condition reads", "1 < x"),
        ("IF size < large THEN y +1", "levels are compared by <= and > alone", "large"),
        ("IF x < -1.7976931348623157e308 THEN y +1", "there is no number below", "-1.79"),
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
        ("IF x > 1 AND none of: a, b (+3 more) THEN y +1", "some conditions were left out here", "none"),
        ("IF x > 1 (+3 more) AND z > 1 THEN y +1", "some conditions were left out here", "x > 1"),
        ("IF none of: THEN y +1", "a feature is missing", "THEN"),
        ("IF none of: a,, b THEN y +1", "a feature is missing", ", b"),
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


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["<", "<=", ">", ">="]), st.data())
def test_each_operator_says_what_it_says_of_all_numbers(limit: float, operator: str, data: st.DataObject) -> None:
    if limit == -float_info.max:
        return
    with np.errstate(over="ignore"):
        narrow = float(np.float32(limit))
    near = [limit, nextafter(limit, -inf), nextafter(limit, inf), narrow]
    values = np.array([*near, data.draw(st.floats(allow_nan=False))])
    expected = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[operator](values, limit)
    (condition,) = Rule.parse(f"IF x {operator} {limit!r} THEN y +1").body
    np.testing.assert_array_equal(condition.covers(values), expected)
    (condition,) = Rule.parse(f"IF x {condition.operator} {condition.value_text()} THEN y +1").body  # as it is printed
    np.testing.assert_array_equal(condition.covers(values), expected)


@pytest.mark.parametrize(
    "text",
    [
        "if 1 < x <= 2 and weather == sunny then beach +1",
        "If 1 < x <= 2 AND weather == sunny Then beach +1",
        'iF 1 < "x" <= 2 And "weather" == "sunny" tHEN "beach" +1',
    ],
)
def test_keywords_may_be_in_any_case_if_the_first_is(text: str) -> None:
    assert str(Rule.parse(text)) == "IF 1 < x <= 2 AND weather == sunny THEN beach +1"
    assert str(Rule.parse("default beach +1")) == "DEFAULT beach +1"
    assert conditions_of(Rule.parse('if "rock and roll" <= 1 then y +1')) == [("rock and roll", "<=", 1.0)]


LONG = 30_000
SLOW = {
    "digits": f"DEFAULT y {'1' * LONG}x",
    "signed digits": f"DEFAULT y +{'1' * LONG}x",
    "spaces": f"DEFAULT y{' ' * LONG}",
    "signs": f"DEFAULT {'+ ' * LONG}",
    "numbers": f"DEFAULT {'+1 ' * LONG}x",
    "exponents": f"DEFAULT y {'1e' * LONG}",
    "quotes": f"IF {'=' + chr(34) * LONG} THEN y +1",
    "open quotes": f"IF {' AND '.join(['a == ' + chr(34) + 'a'] * LONG)} THEN y +1",
    "backslashes": f"IF {chr(34)}{chr(92) * LONG} <= 1 THEN y +1",
    "operators": f"IF {'<' * LONG} THEN y +1",
    "a category": f"IF x == {'9' * LONG} THEN y +1",
    "a threshold": f"IF x <= {'9' * LONG} THEN y +1",
    "remarks": f"DEFAULT {'(+1 more' * LONG}",
}


@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW)
def test_no_text_takes_long_and_no_fault_is_long(text: str) -> None:
    begin = process_time()
    try:
        Rule.parse(text)
    except ValueError as error:
        assert len(str(error)) < 500  # noqa: PT017
    assert process_time() - begin < 5  # what grows with the square takes minutes


def test_the_time_to_read_a_rule_grows_with_its_length() -> None:
    def measure(n: int) -> float:
        body, head = (f"{i} < x{i} <= {i + 1}" for i in range(n)), (f"y{i} +1" for i in range(n))
        text = f"IF {' AND '.join(body)} THEN {', '.join(head)}"
        begin = process_time()
        assert len(Rule.parse(text).body) == 2 * n
        return process_time() - begin

    assert min(measure(8000) for _ in range(2)) < 4 * 16 * max(measure(500) for _ in range(3))  # the square: 16 * 16


def test_a_fault_shows_nothing_that_a_terminal_obeys() -> None:
    with pytest.raises(ValueError, match="a number is missing") as error:
        Rule.parse("IF \x1b[2J\r\u202e <= THEN y +1")
    assert all(character.isprintable() or character == "\n" for character in str(error.value))


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
    text = rule.to_text(None, None)
    again = Rule.parse(text)
    assert again.to_text(None, None) == text
    assert again.head == pytest.approx({name: score for name, score in rule.head.items() if score}, rel=5e-3)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for start in ("", "IF ", "DEFAULT ", "IF x <= 1 THEN "):
        try:
            Rule.parse(start + text)
        except ValueError as error:
            assert re.search("at character [0-9]+ of\n", str(error))  # noqa: PT017
