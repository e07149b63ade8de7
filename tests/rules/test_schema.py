"""A schema says what the features are; it is checked once, cannot be changed, and survives pickling."""

import copy
import dataclasses
import pickle
from enum import Enum, IntEnum
from time import process_time
from typing import Any

import numpy as np
import pytest

from pyboomer.rules.schema import Schema

SCHEMA = Schema(("at1", "weather", "size"), {2: ("small", "large"), 1: ("fog", 3)}, (2,))


def test_features_are_numeric_nominal_or_ordinal() -> None:
    assert list(SCHEMA.categories) == [1, 2]
    assert SCHEMA.nominal == {1: ("fog", 3)}
    assert SCHEMA.get_levels(2) == ("small", "large")
    assert SCHEMA.get_levels(1) == SCHEMA.get_levels(0) == ()
    assert SCHEMA.n_categories.tolist() == [-1, 2, 2]
    assert SCHEMA.with_text == {1, 2}
    assert Schema(("a", "b"), {1: (0, 1)}).with_text == set()
    assert SCHEMA.without_levels == Schema(SCHEMA.names, {1: ("fog", 3)})


def test_features_are_found_by_name_or_number() -> None:
    assert SCHEMA.find("size") == 2
    assert SCHEMA.find_all(["size", -3]) == [2, 0]
    assert Schema(("a", "a")).find("a", 1) == 1
    with pytest.raises(ValueError, match=r"there is no feature 'weathr'; did you mean 'weather'\?"):
        SCHEMA.find("weathr")


def test_categories_of_some_features_go_by_their_positions_among_these() -> None:
    assert SCHEMA.pick_categories([2, 0, 1]) == {0: ("small", "large"), 2: ("fog", 3)}


def test_a_schema_cannot_be_changed() -> None:
    for schema in SCHEMA, pickle.loads(pickle.dumps(SCHEMA)), copy.deepcopy(SCHEMA), dataclasses.replace(SCHEMA):
        assert schema == SCHEMA
        with pytest.raises(dataclasses.FrozenInstanceError):
            schema.names = ()  # type: ignore[misc]
        for mapping in schema.categories, schema.nominal:
            with pytest.raises(TypeError):
                mapping[0] = ()  # type: ignore[index]


def test_equality_minds_the_types_of_categories() -> None:
    as_int, as_bool = (Schema(("a",), {0: (kind(1),)}) for kind in (int, bool))
    assert as_int == Schema(("a",), {0: (1,)})
    assert as_int != as_bool
    assert as_int != "a"
    assert Schema(("a",), {0: ("x",)}) != Schema(("a",), {0: ("x",)}, (0,))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((("a", 1),), "feature_names must be strings, got 1"),
        ((("a",), {1: ("x",)}), "categories has the key 1, which is not an index of 1 features"),
        ((("a",), {"0": ("x",)}), "categories has the key '0'"),
        ((("a",), {0: ("x", None)}), r"categories\[0\] must be strings, booleans or finite numbers"),
        ((("a",), {0: (1.0, np.inf)}), r"categories\[0\] must be strings, booleans or finite numbers"),
        ((("a", "b"), dict.fromkeys((0, 1), ("x", "x"))), r"categories\[0\] must be distinct"),
        ((("a",), {0: (1, 2)}, (0,)), r"ordinal has feature 0, but categories\[0\] are not strings"),
        ((("a",), {}, (0,)), "ordinal has feature 0"),
    ],
)
def test_what_is_no_schema_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Schema(*arguments)


def test_hostile_numbers_of_features_and_categories_take_little_time() -> None:
    many = range(30_000)
    begin = process_time()
    schema = Schema(tuple(map(str, many)), dict.fromkeys(many, ("r", "s")), tuple(many) * 2)
    assert schema.ordinal == tuple(many)
    assert len(schema.nominal) == 0
    assert all(schema.get_levels(feature) == ("r", "s") for feature in many)
    same_hash = tuple(k * (2**61 - 1) for k in many)
    assert Schema(("x",), {0: same_hash}).categories[0] == same_hash
    assert process_time() - begin < 3  # what grows with the square takes many times as long
    for twice in ((1, 2, 1.0), (0, False), ("a", 1, "a")):
        with pytest.raises(ValueError, match="must be distinct"):
            Schema(("x",), {0: twice})


def test_categories_are_of_plain_types() -> None:
    colour, size = Enum("Colour", {"RED": "red"}, type=str), IntEnum("Size", {"SMALL": 3})
    given = (colour.RED, size.SMALL, np.str_("a"), np.int8(5), np.float32(0.5), True)
    values = Schema(("x",), {0: given}).categories[0]
    assert values == ("red", 3, "a", 5, 0.5, True)
    assert [type(value) for value in values] == [str, int, str, int, float, bool]
    assert [type(name) for name in Schema((colour.RED,)).names] == [str]
    assert Schema((colour.RED,)).names == ("red",)
