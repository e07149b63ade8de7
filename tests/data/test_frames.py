"""A DataFrame is read by the dtypes of its columns, and one of polars like the same one of pandas."""

import subprocess
import sys
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import pyboomer.data.tables
from pyboomer import BoomerClassifier, load_model
from pyboomer.data import tables
from pyboomer.data.tables import read_table, read_training_table
from pyboomer.rules.schema import Schema

N = 40
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, size=(N, 3))
NUMBERS = np.round(RNG.normal(size=N) + Y[:, 0], 1).tolist()
WHOLE = (RNG.integers(0, 9, size=N) + 3 * Y[:, 1]).tolist()
WORDS = np.array(["sun", "rain", "snow"])[Y[:, 0] + Y[:, 2]].tolist()
MISSING = RNG.random(N) < 0.2


def some(values: list[Any], missing: Any = None) -> list[Any]:
    return [missing if gone else value for value, gone in zip(values, MISSING, strict=True)]


def objects(values: list[Any]) -> pd.Series:
    return pd.Series(values, dtype=object)


def fit(table: Any, **options: Any) -> BoomerClassifier:
    return BoomerClassifier(**{"n_rules": 30, "random_state": 1, "max_features": None, **options}).fit(table, Y)


def read(table: Any, choice: Any = None) -> pyboomer.data.tables.Table:
    return read_training_table("BoomerClassifier", table, choice)


# the same column in pandas and in polars
NUMERIC: dict[str, tuple[pd.Series, pl.Series]] = {
    **{
        f"{kind} numbers": (pd.Series(WHOLE, dtype=kind.lower()), pl.Series(WHOLE, dtype=getattr(pl, kind)))
        for kind in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64")
    },
    "128 bits": (pd.Series(WHOLE), pl.Series(WHOLE, dtype=pl.Int128)),
    "whole numbers with nulls": (pd.Series(some(WHOLE), dtype="Int64"), pl.Series(some(WHOLE))),
    "numbers with nulls": (pd.Series(some(NUMBERS), dtype="Float64"), pl.Series(some(NUMBERS))),
    "numbers with NaN": (pd.Series(some(NUMBERS, np.nan)), pl.Series(some(NUMBERS, np.nan), nan_to_null=False)),
    "numbers with nulls and NaN": (
        pd.Series([np.nan, None, *NUMBERS[2:]], dtype="Float64"),
        pl.Series([float("nan"), None, *NUMBERS[2:]], strict=False),
    ),
    "arrow numbers": (pd.Series(some(NUMBERS), dtype="double[pyarrow]"), pl.Series(some(NUMBERS))),
    "booleans": (pd.Series(Y[:, 0] == 1), pl.Series(Y[:, 0] == 1)),
    "booleans with nulls": (
        pd.Series(some((Y[:, 0] == 1).tolist()), dtype="boolean"),
        pl.Series(some((Y[:, 0] == 1).tolist())),
    ),
    "decimals": (
        pd.Series(some([Decimal(str(x)) for x in NUMBERS]), dtype=pd.ArrowDtype(pa.decimal128(9, 1))),
        pl.Series(some([Decimal(str(x)) for x in NUMBERS]), dtype=pl.Decimal(9, 1)),
    ),
    "nothing": (pd.Series([None] * N, dtype=pd.ArrowDtype(pa.null())), pl.Series([None] * N)),
}
NUMERIC_OBJECTS: dict[str, tuple[pd.Series, pl.Series]] = {
    "objects that are numbers": (objects(some(NUMBERS)), pl.Series(some(NUMBERS), dtype=pl.Object)),
    "objects of many kinds of numbers": (
        objects([True, np.int8(2), np.float32(0.5), Decimal("1.5"), None, np.nan, pd.NA, pd.NaT, *WHOLE[8:]]),
        pl.Series([True, np.int8(2), np.float32(0.5), Decimal("1.5"), *4 * [None], *WHOLE[8:]], dtype=pl.Object),
    ),
    "objects that are booleans": (
        objects(some((Y[:, 0] == 1).tolist())),
        pl.Series(some((Y[:, 0] == 1).tolist()), dtype=pl.Object),
    ),
    "objects that are missing": (objects([None] * N), pl.Series([None] * N, dtype=pl.Object)),
}
NOMINAL: dict[str, tuple[pd.Series, pl.Series]] = {
    "strings": (pd.Series(WORDS, dtype="str"), pl.Series(WORDS)),
    "strings with nulls": (pd.Series(some(WORDS), dtype="string"), pl.Series(some(WORDS))),
    "arrow strings": (pd.Series(some(WORDS), dtype=pd.ArrowDtype(pa.string())), pl.Series(some(WORDS))),
    "large arrow strings": (pd.Series(some(WORDS), dtype=pd.ArrowDtype(pa.large_string())), pl.Series(some(WORDS))),
    "arrow dictionary": (
        pd.Series(some(WORDS), dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
        pl.Series(some(WORDS)),
    ),
    "strings that look like numbers": (
        pd.Series(list(map(str, WHOLE)), dtype="string"),
        pl.Series(list(map(str, WHOLE))),
    ),
    "categories": (pd.Series(some(WORDS), dtype="category"), pl.Series(some(WORDS), dtype=pl.Categorical)),
    "declared categories": (
        pd.Series(pd.Categorical(some(WORDS), ["snow", "fog", "rain", "sun"])),
        pl.Series(some(WORDS), dtype=pl.Enum(["snow", "fog", "rain", "sun"])),
    ),
    "objects that are text": (objects(some(WORDS)), pl.Series(some(WORDS), dtype=pl.Object)),
    "one category": (pd.Series(["sun"] * N, dtype="category"), pl.Series(["sun"] * N, dtype=pl.Categorical)),
    "missing categories": (pd.Series([None] * N, dtype="category"), pl.Series([None] * N, dtype=pl.Categorical)),
    "missing strings": (pd.Series([None] * N, dtype="string"), pl.Series([None] * N, dtype=pl.String)),
    "empty strings": (pd.Series(some([""] * N), dtype="string"), pl.Series(some([""] * N))),
}
COLUMNS = {**NUMERIC, **NUMERIC_OBJECTS, **NOMINAL}


def pandas_frame() -> pd.DataFrame:
    return pd.DataFrame({name: column for name, (column, _) in COLUMNS.items()})


def polars_frame() -> pl.DataFrame:
    return pl.DataFrame({name: column for name, (_, column) in COLUMNS.items()})


def check_same(one: pyboomer.data.tables.Table, other: pyboomer.data.tables.Table) -> None:
    np.testing.assert_array_equal(one.matrix, other.matrix)
    assert one.schema.names == other.schema.names
    assert repr(one.schema.categories) == repr(other.schema.categories)


# --- What is numeric and what is nominal ------------------------------------------------------------------------------


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("choice", [None, "from_dtype", [0]], ids=repr)
def test_pandas_and_polars_are_read_alike(column: str, choice: Any) -> None:
    in_pandas, in_polars = COLUMNS[column]
    table = read(in_pandas.to_frame("a"), choice)
    check_same(table, read(in_polars.to_frame("a"), choice))
    is_nominal = column in NOMINAL or choice == [0] or (choice == "from_dtype" and column in NUMERIC_OBJECTS)
    assert list(table.schema.categories) == ([0] if is_nominal else [])


@pytest.mark.parametrize("column", [*NUMERIC, *NUMERIC_OBJECTS])
def test_numbers_keep_their_values_and_their_gaps(column: str) -> None:
    for series in COLUMNS[column]:
        expected = [np.nan if v is None or pd.isna(v) else float(v) for v in series.to_list()]
        np.testing.assert_array_equal(read(series.to_frame("a")).matrix[:, 0], expected)


@pytest.mark.parametrize("column", NOMINAL)
def test_codes_are_the_places_of_the_sorted_categories(column: str) -> None:
    for series in NOMINAL[column]:
        table = read(series.to_frame("a"))
        categories = table.schema.categories[0]
        assert list(categories) == sorted(categories)
        found = [None if np.isnan(code) else categories[int(code)] for code in table.matrix[:, 0]]
        assert found == [None if pd.isna(value) else value for value in series.to_list()]


def test_categories_that_are_numbers_are_nominal() -> None:
    table = read(pd.DataFrame({"a": pd.Series(some(WHOLE), dtype="category")}))
    assert table.schema.categories[0] == tuple(sorted(set(some(WHOLE)) - {None}))
    intervals = read(pd.DataFrame({"a": pd.cut(pd.Series(NUMBERS), [-9, 0, 9])}))
    assert intervals.schema.categories[0] == ("(-9, 0]", "(0, 9]")
    assert intervals.schema.ordinal == (0,)


DATES = {"a": [datetime(2020, 1, 1 + i % 3) for i in range(N)]}


def test_dates_that_are_named_have_their_texts_as_categories() -> None:
    tables = [read(make(DATES), ["a"]) for make in (pd.DataFrame, pl.DataFrame)]
    assert tables[0].schema.categories[0][0] == "2020-01-01 00:00:00"
    check_same(*tables)


@given(st.lists(st.none() | st.text(max_size=3), min_size=1, max_size=9))
def test_every_text_is_a_category(values: list[str | None]) -> None:
    table = read(pl.DataFrame({"a": pl.Series(values, dtype=pl.String)}))
    assert table.schema.categories[0] == tuple(sorted({value for value in values if value is not None}))
    check_same(table, read(pd.DataFrame({"a": pd.Series(values, dtype="string")})))


# --- Fit and predict --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", [None, "from_dtype"])
def test_a_model_fitted_on_either_predicts_on_both(choice: Any) -> None:
    models = [fit(frame, categorical_features=choice) for frame in (pandas_frame(), polars_frame())]
    assert models[0].rules_ == models[1].rules_
    assert {c.operator for rule in models[0].rules_ for c in rule.body} >= {"<=", ">", "=="}
    for model in models:
        assert model.feature_names_in_.tolist() == list(COLUMNS)
        scores = model.decision_function(pandas_frame())
        np.testing.assert_array_equal(model.decision_function(polars_frame()), scores)


def test_a_saved_model_of_a_polars_frame_predicts_the_same(tmp_path: Path) -> None:
    model = fit(polars_frame())
    model.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    for frame in (pandas_frame(), polars_frame()):
        np.testing.assert_array_equal(loaded.decision_function(frame), model.decision_function(frame))


def test_a_polars_frame_is_never_changed() -> None:
    frame, copy = polars_frame(), polars_frame().clone()
    fit(frame).predict(frame)
    for name in frame.columns:
        assert repr(frame[name].to_list()) == repr(copy[name].to_list())


MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.fixture(params=MAKERS.values(), ids=MAKERS)
def make(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return request.param


@pytest.fixture(params=MAKERS.values(), ids=[f"then {name}" for name in MAKERS])
def make_other(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return request.param


DATA = {"a": NUMBERS, "b": WORDS, "c": WHOLE}
OTHER_COLUMNS = {
    "reordered": ("bac", "must be in the same order as they were in fit"),
    "one less": ("ab", "yet now missing:\n- c"),
    "one more": ("abcd", "unseen at fit time:\n- d"),
    "another": ("abd", "unseen at fit time:\n- d\nFeature names seen at fit time, yet now missing:\n- c"),
}


@pytest.mark.parametrize(("columns", "message"), OTHER_COLUMNS.values(), ids=OTHER_COLUMNS)
def test_other_columns_than_those_of_the_training_data_are_refused(
    columns: str, message: str, make: Any, make_other: Any
) -> None:
    frame = make_other({name: {**DATA, "d": WHOLE}[name] for name in columns})
    with pytest.raises(ValueError, match=message):
        fit(make(DATA)).predict(frame)


def test_a_table_without_the_names_of_the_training_data_is_warned_about(make: Any) -> None:
    numbers = np.array([NUMBERS, WHOLE]).T
    frame = make({"a": NUMBERS, "c": WHOLE})
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        fit(frame).predict(numbers)
    with pytest.warns(UserWarning, match="X has feature names, but BoomerClassifier was fitted without"):
        fit(numbers).predict(frame)


# --- Unseen categories ------------------------------------------------------------------------------------------------


ASKED = ["fog", None, "sun"]
NEW_COLUMNS = {
    "polars strings": pl.Series(ASKED),
    "polars categories": pl.Series(ASKED, dtype=pl.Categorical),
    "polars enum": pl.Series(ASKED, dtype=pl.Enum(["fog", "sun"])),
    "polars enum of more": pl.Series(ASKED, dtype=pl.Enum(["sun", "hail", "snow", "fog"])),
    "polars objects": pl.Series(ASKED, dtype=pl.Object),
    "pandas strings": pd.Series(ASKED),
    "pandas categories": pd.Series(ASKED, dtype="category"),
    "pandas categories of more": pd.Series(pd.Categorical(ASKED, ["sun", "hail", "snow", "fog"])),
    "pandas objects": objects(ASKED),
}


@pytest.mark.parametrize("asked", NEW_COLUMNS.values(), ids=NEW_COLUMNS)
@pytest.mark.parametrize("column", ["strings", "categories", "declared categories", "objects that are text"])
def test_an_unseen_category_meets_unequal_and_no_equal_and_a_missing_one_neither(asked: Any, column: str) -> None:
    for series in NOMINAL[column]:
        model = fit(series.to_frame("a"))
        rules, heads = model.rules_, model.rules_.head_matrix()
        assert {c.operator for rule in rules for c in rule.body} == {"==", "!="}
        scores = model.decision_function(asked.to_frame("a"))
        unseen = [all(c.operator == "!=" for c in rule.body) for rule in rules]
        np.testing.assert_allclose(scores[0], heads[unseen].sum(axis=0))
        np.testing.assert_allclose(scores[1], heads[[not rule.body for rule in rules]].sum(axis=0))
        known = WORDS.index("sun") if column == "strings" else some(WORDS).index("sun")
        np.testing.assert_array_equal(scores[2], model.decision_function(series.to_frame("a"))[known])


def test_every_category_is_unseen_where_training_had_none(make: Any) -> None:
    table = read_training_table("BoomerClassifier", make({"a": ["x", None]}), ["a"])
    codes = read_table(make({"a": ["x", None]}), Schema(table.schema.names, {0: ()}), table.features)
    np.testing.assert_array_equal(codes[:, 0], [0, np.nan])
    assert read(NOMINAL["missing strings"][make is pl.DataFrame].to_frame("a")).schema.categories == {0: ()}


# --- What is refused --------------------------------------------------------------------------------------------------


def refuse(message: str, table: Any, **options: Any) -> None:
    with pytest.raises(ValueError, match=message):
        fit(table, **options)


NEITHER: dict[str, tuple[Any, str]] = {
    "polars dates": (pl.Series([date(2020, 1, 1)] * N), "dtype Date"),
    "polars times of day": (pl.Series([time(12)] * N), "dtype Time"),
    "polars moments": (pl.Series([datetime(2020, 1, 1)] * N), "dtype Datetime"),
    "polars durations": (pl.Series([timedelta(1)] * N), "dtype Duration"),
    "polars lists": (pl.Series([[1.0]] * N), "dtype List"),
    "polars records": (pl.Series([{"x": 1}] * N), "dtype Struct"),
    "polars bytes": (pl.Series([b"x"] * N), "dtype Binary"),
    "polars objects": (pl.Series([date(2020, 1, 1)] * N, dtype=pl.Object), r"it holds datetime.date\(2020, 1, 1\)"),
    "pandas moments": (pd.Series([datetime(2020, 1, 1)] * N), "dtype datetime64"),
    "pandas arrow dates": (pd.Series([date(2020, 1, 1)] * N, dtype=pd.ArrowDtype(pa.date32())), "dtype date32"),
    "pandas durations": (pd.Series([timedelta(1)] * N), "dtype timedelta64"),
    "pandas periods": (pd.Series(pd.period_range("2020-01", periods=N, freq="M")), "dtype period"),
    "pandas intervals": (pd.Series(pd.interval_range(0, N)), "dtype interval"),
    "pandas complex numbers": (pd.Series([1j] * N), "dtype complex128"),
    "pandas dates": (objects([date(2020, 1, 1)] * N), r"it holds datetime.date\(2020, 1, 1\)"),
    "pandas bytes": (objects([b"x"] * N), "it holds b'x'"),
}


@pytest.mark.parametrize(("column", "what"), NEITHER.values(), ids=NEITHER)
def test_what_is_neither_numeric_nor_nominal_is_refused_by_name(column: Any, what: str) -> None:
    cure = r".*\); name it in categorical_features, or turn it into numbers"
    refuse(rf"column 'day' of X is not numeric \({what}{cure}", column.to_frame("day"))
    was = r".*\), but was in training"
    with pytest.raises(ValueError, match=rf"column 'day' of X is not numeric \({what}{was}"):
        fit(pd.DataFrame({"day": NUMBERS})).predict(column.to_frame("day"))


@pytest.mark.parametrize("column", NOMINAL)
def test_text_is_refused_if_other_columns_are_chosen(column: str) -> None:
    for series in NOMINAL[column]:
        frame = series.to_frame("kind")
        if series.dtype in (object, pl.Object):
            what = "it holds '(sun|rain|snow)'"
        else:
            what = "dtype .*"
        refuse(rf"column 'kind' of X is not numeric \({what}\); name it in", frame, categorical_features=[])


@pytest.mark.parametrize("column", NOMINAL)
def test_text_is_refused_where_training_had_numbers(column: str, make: Any) -> None:
    model = fit(make({"a": NUMBERS}))
    for series in NOMINAL[column]:
        with pytest.raises(ValueError, match=r"column 'a' of X is not numeric \((dtype|it holds) .*, but was in tr"):
            model.predict(series.to_frame("a"))


@pytest.mark.parametrize("column", ["strings", "categories", "objects that are text"])
def test_text_is_refused_where_training_had_categories_that_are_numbers(column: str, make: Any) -> None:
    model = fit(make({"a": WHOLE}), categorical_features=["a"])
    for series in NOMINAL[column]:
        with pytest.raises(ValueError, match=r"column 'a' of X holds '(sun|rain|snow)', but only numbers in training"):
            model.predict(series.to_frame("a"))


def test_a_lazy_frame_is_refused_with_the_cure() -> None:
    frame = pl.DataFrame(DATA)
    model = fit(frame)
    for attempt in (fit, model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(TypeError, match=r"X is a LazyFrame, which has no values yet; call X.collect\(\)"):
            attempt(frame.lazy())


MIXED = [pd.Series([1, "x"] * 20, dtype=object), pl.Series([1, "x"] * 20, dtype=pl.Object)]


@pytest.mark.parametrize("column", MIXED, ids=["pandas", "polars"])
@pytest.mark.parametrize("choice", [None, "from_dtype", ["a"]], ids=repr)
def test_categories_that_are_numbers_and_text_are_refused(column: Any, choice: Any) -> None:
    message = "column 'a' of X mixes categories that cannot be ordered, .*; turn them all into strings"
    refuse(message, column.to_frame("a"), categorical_features=choice)


@pytest.mark.parametrize("values", [[[1]] * N, [{"x": 1}] * N], ids=["lists", "dicts"])
def test_values_that_are_no_categories_are_refused(values: list[Any], make: Any) -> None:
    message = "column 'a' of X holds values that are neither numbers nor text"
    refuse(message, make({"a": values}), categorical_features=["a"])
    refuse(message, pd.DataFrame({"a": values}))


INFINITE = {
    "polars": pl.Series([*NUMBERS[1:], -np.inf]),
    "polars objects": pl.Series([*NUMBERS[1:], np.inf], dtype=pl.Object),
    "pandas nullable": pd.Series([*NUMBERS[1:], np.inf], dtype="Float64"),
    "pandas objects": objects([*NUMBERS[1:], np.inf]),
    "a decimal": objects([*NUMBERS[1:], Decimal("Infinity")]),
    "larger than any float": objects([*NUMBERS[1:], -(10**400)]),
}


@pytest.mark.parametrize("column", INFINITE.values(), ids=INFINITE)
@pytest.mark.parametrize("choice", [None, ["b"]], ids=repr)
def test_infinity_is_refused_with_its_column_named(column: Any, choice: Any) -> None:
    make = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    frame = make({"a": NUMBERS, "b": column})
    refuse(r"X contains infinity in column 1 \('b'\)", frame, categorical_features=choice)
    with pytest.raises(ValueError, match=r"X contains infinity in column 1 \('b'\)"):
        fit(make({"a": NUMBERS, "b": NUMBERS}), categorical_features=choice).predict(frame)


BAD_FRAMES = {
    "no rows": (pl.DataFrame(DATA)[:0], r"Found array with 0 sample\(s\) \(shape=\(0, 3\)\)"),
    "nothing": (pl.DataFrame(), r"Found array with 0 sample\(s\) \(shape=\(0, 0\)\)"),
    "a series": (pl.Series(NUMBERS), "Expected 2D array, got 1D array"),
    "too few rows": (pl.DataFrame(DATA)[1:], "X has 39 examples, but Y has 40"),
    "a name twice": (
        pd.DataFrame(np.zeros((N, 3)), columns=["a", "b", "a"]),
        "columns of X must have distinct names, got 'a' twice",
    ),
}


@pytest.mark.parametrize(("table", "message"), BAD_FRAMES.values(), ids=BAD_FRAMES)
def test_a_frame_that_cannot_be_learned_from_is_refused(table: Any, message: str) -> None:
    refuse(message, table)


def test_text_outside_of_frames_is_refused() -> None:
    for words in (np.array([WORDS]).T, np.array([WORDS], dtype=object).T, [[word] for word in WORDS]):
        for choice in (None, [0]):
            refuse("X holds text, which only a DataFrame can have as categories", words, categorical_features=choice)


# --- Cost -------------------------------------------------------------------------------------------------------------


def test_each_category_is_looked_at_once_not_once_per_example(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[Any] = []
    plain = pyboomer.data.tables._plain
    monkeypatch.setattr(pyboomer.data.tables, "_plain", lambda value: looked_at.append(value) or plain(value))
    frame = make({"a": WORDS})
    table = read_training_table("BoomerClassifier", frame, None)
    read_table(frame, table.schema, table.features)
    assert sorted(looked_at) == sorted(3 * ["sun", "rain", "snow"])  # to find them, to encode them, to encode again


@pytest.mark.parametrize(("used", "other"), [("pandas", "polars"), ("polars", "pandas")])
def test_either_library_works_without_the_other(used: str, other: str) -> None:
    """And nobody asks for Polars who was not given it."""
    code = f"""
import sys
asked = []
class Absent:
    def find_spec(self, name, *_):
        if name == {other!r}:
            asked.append(name)
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import {used}
from pyboomer import BoomerClassifier
frame = {used}.DataFrame({{"a": ["x", "y", None], "b": [1.0, None, 2.5]}})
model = BoomerClassifier(n_rules=2).fit(frame, [[1, 0], [0, 1], [0, 0]])
assert model.rules_.categories == {{0: ("x", "y")}}
model.predict(frame)
BoomerClassifier(n_rules=1).fit([[1.0]], [[1, 0]])
assert "polars" not in asked
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_labels_may_be_a_frame_of_polars_with_unknown_ones() -> None:
    table = np.random.default_rng(1).normal(size=(40, 2))
    labels = [[1, 0], [None, 1], [0, 1], [1, 1]] * 10
    frame = pl.DataFrame(labels, schema=["a", "b"], orient="row")
    model = BoomerClassifier(n_rules=5, random_state=1).fit(table, frame)
    expected = BoomerClassifier(n_rules=5, random_state=1).fit(table, np.array(labels, dtype=float))
    assert model.label_names_ == ("a", "b")
    np.testing.assert_array_equal(model.decision_function(table), expected.decision_function(table))
    with pytest.raises(TypeError, match=r"y is a LazyFrame, which has no values yet; call y.collect\(\)"):
        BoomerClassifier(n_rules=5).fit(table, frame.lazy())


# --- Sparse columns ---------------------------------------------------------------------------------------------------


def sparse_frame() -> pd.DataFrame:
    dense = RNG.integers(0, 4, size=(N, 6)) * (RNG.random((N, 6)) < 0.2)
    frame = pd.DataFrame(dense, columns=list("abcdef")).astype(pd.SparseDtype(float, 0.0))
    frame["a"] = pd.arrays.SparseArray(dense[:, 0] > 0, fill_value=False)
    frame["b"] = pd.arrays.SparseArray(dense[:, 1], fill_value=0, kind="block")
    frame["c"] = pd.arrays.SparseArray(np.where(MISSING, np.nan, dense[:, 2]), fill_value=0.0)
    frame["d"] = dense[:, 3]
    frame["e"] = pd.arrays.SparseArray(np.where(dense[:, 4] == 0, np.nan, dense[:, 4]))  # what is left out is missing
    return frame


def test_sparse_columns_stay_sparse_and_mean_what_dense_ones_mean() -> None:
    frame = sparse_frame()
    dense = frame.astype(float)
    table = read(frame)
    assert table.matrix.format == "csc"
    np.testing.assert_array_equal(table.matrix.toarray(), dense)
    model = fit(frame)
    matrix = sp.csc_array(dense.to_numpy())
    of_matrix = BoomerClassifier(n_rules=30, random_state=1, max_features=None)
    assert model.rules_ == of_matrix.fit(matrix, Y, feature_names=list(dense)).rules_
    assert model.get_fitted().read_matrix(frame).format == "csr"
    plain = fit(dense)
    np.testing.assert_array_equal(model.rules_.condition_values, plain.rules_.condition_values)
    for table in (frame, dense):
        np.testing.assert_allclose(model.decision_function(table), plain.decision_function(table), atol=1e-12)
    nominal = fit(frame, categorical_features=["b", "f"])
    expected = fit(dense, categorical_features=["b", "f"])
    assert nominal.rules_.schema == expected.rules_.schema
    np.testing.assert_allclose(nominal.decision_function(frame), expected.decision_function(dense), atol=1e-12)


def test_columns_that_are_mostly_dense_or_hold_text_are_read_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = sparse_frame()
    assert isinstance(read(frame[["a", "d", "e"]]).matrix, np.ndarray)
    words = frame.assign(weather=WORDS)
    assert isinstance(read(words).matrix, np.ndarray)
    np.testing.assert_array_equal(fit(words).predict(words), fit(words.astype({"b": float})).predict(words))
    monkeypatch.setattr(tables, "MUCH", 8 * N * 6)
    with pytest.warns(UserWarning, match="column 'weather' of X has dtype .*, so the sparse columns are made dense"):
        fit(words)
    fit(frame[["a", "d", "e"]].assign(weather=WORDS))


def test_infinity_in_a_sparse_column_is_named() -> None:
    frame = sparse_frame()
    frame["b"] = pd.arrays.SparseArray([np.inf, *[0.0] * (N - 1)], fill_value=0.0)
    with pytest.raises(ValueError, match=r"X contains infinity in column 1 \('b'\)"):
        fit(frame)
    with pytest.raises(ValueError, match=r"X contains infinity in column 1 \('b'\)"):
        fit(sparse_frame()).predict(frame)
