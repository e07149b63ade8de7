"""Tables of every kind are read into the same numbers, and a fault is blamed on its column."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from pyboomer import BoomerClassifier, load_model
from pyboomer.data.tables import read_training_table

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(40, 4)), 1) * (RNG.random((40, 4)) < 0.7)
Y = (X[:, :3] + 0.3 * RNG.normal(size=(40, 3)) > 0.1).astype(int)
FRAME = pd.DataFrame(X, columns=list("abcd"))


def fit(table: Any, **options: Any) -> BoomerClassifier:
    return BoomerClassifier(**{"n_rules": 20, "random_state": 1, **options}).fit(table, Y)


@pytest.fixture(scope="module")
def expected() -> BoomerClassifier:
    return fit(X)


# --- Numbers ----------------------------------------------------------------------------------------------------------


def read_only(matrix: Any) -> Any:
    matrix = matrix.copy()
    matrix.flags.writeable = False
    return matrix


LAYOUTS = {
    "Fortran order": np.asfortranarray,
    "read-only": read_only,
    "every second row and column": lambda matrix: np.repeat(np.repeat(matrix, 2, axis=0), 2, axis=1)[::2, ::2],
    "reversed twice": lambda matrix: matrix[::-1].copy()[::-1],
    "big-endian": lambda matrix: matrix.astype(">f8"),
    "lists": lambda matrix: matrix.tolist(),
    "objects": lambda matrix: matrix.astype(object),
    "frame of numbered columns": pd.DataFrame,
    "frame of objects": lambda matrix: pd.DataFrame(matrix, dtype=object),
    "frame of nullable numbers": lambda matrix: pd.DataFrame(matrix).astype("Float64"),
    "frame of arrow numbers": lambda matrix: pd.DataFrame(matrix).astype("double[pyarrow]"),
    "frame of sparse numbers": lambda matrix: pd.DataFrame(matrix).astype(pd.SparseDtype(float, 0.0)),
    **{
        f"{form}_{kind}": getattr(sp, f"{form}_{kind}")
        for form in ("csr", "csc", "coo", "lil", "dok", "bsr")
        for kind in ("array", "matrix")
    },
}


@pytest.mark.parametrize("make", LAYOUTS.values(), ids=LAYOUTS)
def test_the_layout_of_a_table_changes_nothing(make: Any, expected: BoomerClassifier) -> None:
    table = make(X)
    model = fit(table)
    np.testing.assert_array_equal(model.rules_.condition_values, expected.rules_.condition_values)
    np.testing.assert_allclose(model.decision_function(table), expected.decision_function(X), rtol=1e-9)
    np.testing.assert_array_equal(model.decision_function(table), model.decision_function(make(X)))


@pytest.mark.parametrize("make", LAYOUTS.values(), ids=LAYOUTS)
def test_a_model_predicts_the_same_for_every_layout(make: Any, expected: BoomerClassifier) -> None:
    scores = expected.decision_function(make(X))
    np.testing.assert_array_equal(scores, expected.decision_function(X))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8", "int64", "uint64", "bool"])
def test_numbers_of_every_dtype_are_read_as_they_are(dtype: str) -> None:
    table = np.abs(np.round(2 * X)).astype(dtype)
    model = fit(table)
    np.testing.assert_array_equal(model.decision_function(table), fit(table.astype(float)).decision_function(table))
    for kind in (sp.csr_array, sp.csc_matrix):
        if dtype != "float16":  # scipy has no such sparse matrices
            np.testing.assert_array_equal(model.decision_function(kind(table)), model.decision_function(table))


def test_a_memory_mapped_table_is_read_and_left_alone(tmp_path: Path, expected: BoomerClassifier) -> None:
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert fit(mapped).rules_ == expected.rules_
    np.testing.assert_array_equal(expected.predict(mapped), expected.predict(X))


@pytest.mark.parametrize(
    "make", [np.copy, sp.csr_array, sp.csr_matrix, sp.csc_array, pd.DataFrame], ids=lambda f: f.__name__
)
def test_the_table_is_never_changed(make: Any) -> None:
    values = X.copy()
    values[0, 0] = np.nan
    table, copy = make(values), make(values)
    model = fit(table, categorical_features=[2])
    model.predict(table)
    if sp.issparse(table):
        np.testing.assert_array_equal(table.toarray(), copy.toarray())
    else:
        np.testing.assert_array_equal(table, copy)


def test_a_sparse_table_may_store_zeros_and_repeat_entries(expected: BoomerClassifier) -> None:
    rows, columns = np.indices(X.shape).reshape(2, -1)
    stored = sp.coo_array(
        (np.tile(X.ravel() / 2, 2), (np.tile(rows, 2), np.tile(columns, 2))), shape=X.shape
    )  # half of each value twice, zeros among them
    np.testing.assert_allclose(fit(stored).decision_function(stored), expected.decision_function(X), rtol=1e-9)


SCALES = {"1e308": 1e308, "1e300": 1e300, "1e-300": 1e-300, "denormal": 1e-323}


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_huge_and_tiny_values_are_told_apart(scale: float) -> None:
    table = np.where(X > 0, scale, -scale)
    model = fit(table, n_rules=50, max_features=None)
    np.testing.assert_array_equal(model.predict(table), fit(np.sign(table), n_rules=50, max_features=None).predict(X))
    np.testing.assert_array_equal(model.predict(table), model.predict(sp.csr_array(table)))


def test_the_gap_between_neighbouring_numbers_is_a_threshold() -> None:
    low = 1.0
    table = np.where(Y[:, :1] == 1, np.nextafter(low, 2), low)
    np.testing.assert_array_equal(fit(table, n_rules=50).predict(table)[:, 0], Y[:, 0])


@pytest.mark.parametrize("width", [1, 2, 3])
def test_few_features_do_not_break_the_formula_for_how_many_are_drawn(width: int) -> None:
    model = fit(X[:, :width])
    assert max(len(rule.body) for rule in model.rules_) > 0


def test_a_constant_feature_is_never_tested() -> None:
    table = X.copy()
    table[:, 1] = 3.0
    assert 1 not in fit(table).rules_.condition_features
    assert len(fit(np.ones((40, 2))).rules_.condition_features) == 0


def test_duplicate_examples_with_different_labels_are_learned_from() -> None:
    probabilities = fit(np.zeros((40, 3)), loss="label-wise-logistic", n_rules=300).predict_proba(np.zeros((1, 3)))
    np.testing.assert_allclose(probabilities[0], Y.mean(axis=0), atol=1e-3)


# --- Missing values ---------------------------------------------------------------------------------------------------


def test_missing_values_are_the_same_in_every_kind_of_table() -> None:
    table = X.copy()
    table[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    model = fit(table)
    frame = pd.DataFrame(table)
    for other in (frame, frame.astype("Float64"), frame.astype(object), sp.csr_array(table)):
        np.testing.assert_allclose(fit(other).decision_function(other), model.decision_function(table), rtol=1e-9)
        np.testing.assert_array_equal(model.decision_function(other), model.decision_function(table))


def test_a_column_may_be_missing_altogether() -> None:
    table = X.copy()
    table[:, 1] = np.nan
    for make in (np.copy, sp.csr_array, pd.DataFrame):
        for nominal in (None, [1]):
            model = fit(make(table), categorical_features=nominal)
            assert 1 not in model.rules_.condition_features
            assert model.predict(make(X)).shape == Y.shape


def test_missing_values_everywhere_leave_the_default_rule() -> None:
    table = np.full(X.shape, np.nan)
    assert fit(table).rules_.condition_features.size == 0


# --- Frames and nominal features --------------------------------------------------------------------------------------


def mixed_frame() -> pd.DataFrame:
    n = len(Y)
    kind = np.array(["x", "y", "z"])[(Y[:, 0] + 2 * Y[:, 1]) % 3]
    return pd.DataFrame(
        {
            "category": pd.Categorical(kind),
            "object": pd.Series(["u" if relevant else None for relevant in Y[:, 1]], dtype=object),
            "string": pd.Series(kind, dtype="string").mask(np.arange(n) % 7 == 0),
            "str": pd.Series(kind, dtype="str"),
            "arrow": pd.Series(kind, dtype="string[pyarrow]"),
            "bool": Y[:, 2] == 1,
            "boolean": pd.Series(Y[:, 2] == 1, dtype="boolean").mask(np.arange(n) % 5 == 0),
            "Int64": pd.Series(np.round(10 * X[:, 0]), dtype="Int64").mask(np.arange(n) % 6 == 0),
            "Float64": pd.Series(X[:, 1], dtype="Float64").mask(np.arange(n) % 4 == 0),
            "float": X[:, 2],
        }
    )


@pytest.mark.parametrize("choice", [None, "from_dtype"])
def test_columns_of_categories_and_text_are_nominal_by_their_dtype(choice: Any) -> None:
    model = fit(mixed_frame(), categorical_features=choice, n_rules=100, max_features=None)
    assert list(model.rules_.categories) == [0, 1, 2, 3, 4]
    assert model.rules_.categories[0] == ("x", "y", "z")
    assert model.rules_.categories[1] == ("u",)
    assert model.score(mixed_frame(), Y) > 0.8


@pytest.mark.parametrize("column", ["category", "object", "string", "str", "arrow"])
@pytest.mark.parametrize("choice", [["float"], [0], [True, False], []], ids=repr)
def test_a_column_of_text_must_be_chosen_if_columns_are(column: str, choice: Any) -> None:
    with pytest.raises(
        ValueError, match=rf"column '{column}' of X is not numeric \(.*\); name it in categorical_features, or turn it"
    ):
        fit(mixed_frame()[["float", column]], categorical_features=choice)


@pytest.mark.filterwarnings("ignore:feature 'day' is nominal")
def test_a_column_of_dates_is_refused_unless_it_is_named() -> None:
    frame = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=40)})
    for choice in (None, "from_dtype"):
        with pytest.raises(
            ValueError, match=r"column 'day' of X is not numeric \(dtype datetime64.*categorical_feature"
        ):
            fit(frame, categorical_features=choice)
    assert fit(frame, categorical_features=["day"]).rules_.categories[0][0] == "2020-01-01 00:00:00"


@pytest.mark.parametrize("column", ["bool", "boolean", "Int64", "Float64", "float"])
@pytest.mark.parametrize("nominal", [False, True])
def test_a_numeric_column_can_be_either(column: str, nominal: bool) -> None:
    frame = mixed_frame()[[column]]
    model = fit(frame, categorical_features=[column] if nominal else None)
    assert bool(model.rules_.categories) == nominal
    assert model.predict(frame).shape == Y.shape


CHOICES = {
    "indices": [0, 2],
    "tuple": (0, 2),
    "mask": [True, False, True, False],
    "array of indices": np.array([0, 2]),
    "array mask": np.array([True, False, True, False]),
    "names": ["a", "c"],
    "array of names": np.array(["a", "c"]),
}


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_nominal_features_are_chosen_by_index_mask_or_name(choice: Any) -> None:
    model = fit(FRAME, categorical_features=choice)
    assert list(model.rules_.categories) == [0, 2]
    other = fit(X, categorical_features=[0, 2])
    assert model.rules_.categories == other.rules_.categories
    np.testing.assert_array_equal(model.decision_function(FRAME), other.decision_function(X))


def test_nominal_features_of_dense_and_sparse_tables_are_the_same() -> None:
    dense, sparse = fit(X, categorical_features=[0, 2]), fit(sp.csr_array(X), categorical_features=[0, 2])
    assert dense.rules_.categories == sparse.rules_.categories
    np.testing.assert_allclose(sparse.decision_function(sp.csc_array(X)), dense.decision_function(X), rtol=1e-9)
    np.testing.assert_array_equal(dense.decision_function(sp.csc_array(X)), dense.decision_function(X))


def test_categories_are_plain_and_shown_as_people_write_them() -> None:
    kinds = [
        (pd.Series([1.0, np.nan, 2.5, 2.0] * 10), (1, 2, 2.5)),
        (pd.Series([3, pd.NA] * 20, dtype="Int64"), (3,)),
        (pd.Series([True, False] * 20), (False, True)),
        (pd.Series(pd.period_range("2020-01", periods=2, freq="M").repeat(20)), ("2020-01", "2020-02")),
        (pd.Series(pd.IntervalIndex.from_tuples([(0, 1), (1, 2)]).repeat(20)), ("(0, 1]", "(1, 2]")),
        (pd.Series(np.array([0.5, 1.5] * 20, dtype=np.float32), dtype="category"), (0.5, 1.5)),
    ]
    for column, categories in kinds:
        found = fit(pd.DataFrame({"a": column}), categorical_features=["a"]).rules_.categories[0]
        assert repr(found) == repr(categories)


def test_a_category_that_was_declared_but_not_seen_is_none() -> None:
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y"] * 20, categories=["w", "x", "y", "z"])})
    assert fit(frame, categorical_features="from_dtype").rules_.categories[0] == ("x", "y")


def test_categories_are_told_by_value_not_by_their_codes() -> None:
    frame = pd.DataFrame({"a": pd.Categorical(np.where(Y[:, 0] == 1, "x", "y"))})
    model = fit(frame, categorical_features="from_dtype")
    recoded = pd.DataFrame({"a": pd.Categorical(frame["a"].astype(str), categories=["y", "z", "x"])})
    for other in (recoded, frame.astype(object), frame.astype("string"), frame.astype("str")):
        np.testing.assert_array_equal(model.decision_function(other), model.decision_function(frame))


def test_an_unseen_category_meets_unequal_and_no_equal_and_a_missing_one_meets_neither() -> None:
    frame = pd.DataFrame({"a": np.array(["x", "y", "z"])[np.arange(40) % 3]})
    model = fit(frame, categorical_features="from_dtype", n_rules=30)
    rules = model.rules_
    assert {c.operator for rule in rules for c in rule.body} == {"==", "!="}
    asked = pd.DataFrame({"a": pd.Series(["unseen", None, "x"], dtype=object)})
    heads = rules.head_matrix()
    unseen = [all(c.operator == "!=" for c in rule.body) for rule in rules]
    missing = [not rule.body for rule in rules]
    scores = model.decision_function(asked)
    np.testing.assert_allclose(scores[0], heads[unseen].sum(axis=0))
    np.testing.assert_allclose(scores[1], heads[missing].sum(axis=0))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, pd.DataFrame], ids=["dense", "sparse", "frame"])
def test_unseen_numbers_of_a_nominal_feature_are_unseen_categories(make: Any) -> None:
    values = (np.arange(40) % 3 + 1.0)[:, None]
    model = fit(make(values), categorical_features=[0], n_rules=30)
    rules = model.rules_
    unseen = [all(c.operator == "!=" for c in rule.body) for rule in rules]
    scores = model.decision_function(make(np.array([[0.0], [1.5], [-7.0], [1e300]])))
    np.testing.assert_allclose(scores, np.tile(rules.head_matrix()[unseen].sum(axis=0), (4, 1)))


# --- Faults at fit ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [[np.inf], [-np.inf], [np.inf, -np.inf]], ids=repr)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csc_matrix, pd.DataFrame], ids=lambda f: f.__name__)
def test_infinity_is_refused_with_its_column_named(values: list[float], make: Any) -> None:
    table = X.copy()
    table[: len(values), 2] = values
    table[5, 1] = np.nan
    for attempt in (lambda: fit(make(table)), lambda: fit(make(X)).predict(make(table))):
        with pytest.raises(ValueError, match=r"X contains infinity in column 2 \('x?2'\)"):
            attempt()
    with pytest.raises(ValueError, match=r"column .*2.* contains infinity|contains infinity in column 2"):
        fit(make(table), categorical_features=[2])


EMPTY = {
    "no rows": (X[:0], Y[:0], r"0 sample\(s\)"),
    "no columns": (X[:, :0], Y, r"0 feature\(s\)"),
    "frame of no rows": (FRAME[:0], Y[:0], r"0 sample\(s\)"),
    "frame of no columns": (FRAME[[]], Y, r"0 feature\(s\)"),
    "sparse of no rows": (sp.csr_array(X[:0]), Y[:0], r"0 sample\(s\)"),
    "one dimension": (X[:, 0], Y, "Expected 2D array, got 1D array"),
    "three dimensions": (X[:, :, None], Y, "dim 3"),
    "a series": (FRAME["a"], Y, "Series"),
    "strings": ([["a", "b"]] * 40, Y, "could not convert string to float: 'a'"),
    "complex numbers": (X + 1j, Y, "Complex data not supported"),
    "columns of both kinds": (pd.DataFrame(X, columns=["a", 1, "b", 2]), Y, "Feature names are only supported if all"),
}


@pytest.mark.parametrize(("table", "labels", "message"), EMPTY.values(), ids=EMPTY)
def test_what_is_no_table_of_examples_is_refused(table: Any, labels: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        BoomerClassifier(n_rules=3).fit(table, labels)


BAD_CHOICES = {
    "index too large": ([0, 9], "categorical_features has index 9, but X has 4 features"),
    "index too small": ([-5], "categorical_features has index -5, but X has 4 features"),
    "unknown name": (["a", "zz"], "categorical_features has 'zz', which is not a column of X"),
    "mask too short": ([True], "categorical_features is a mask of length 1, but X has 4 features"),
    "mask too long": (np.ones(5, dtype=bool), "categorical_features is a mask of length 5, but X has 4 features"),
    "misspelt string": ("form_dtype", "categorical_features must be None, \"from_dtype\", .* got 'form_dtype'"),
    "two dimensions": ([[0]], "categorical_features must be one-dimensional, got 2 dimensions"),
    "floats": ([1.0], "categorical_features has 1.0, which is not a column of X"),
    "nothing named": ([None], "categorical_features has None, which is not a column of X"),
}


@pytest.mark.parametrize(("choice", "message"), BAD_CHOICES.values(), ids=BAD_CHOICES)
@pytest.mark.parametrize("table", [X, FRAME, sp.csr_array(X)], ids=["dense", "frame", "sparse"])
def test_a_bad_choice_of_nominal_features_is_refused(choice: Any, message: str, table: Any) -> None:
    if isinstance(choice, list) and choice[0] == "a" and table is not FRAME:
        message = "categorical_features has 'a', which is not a column of X"
    with pytest.raises(ValueError, match=message):
        fit(table, categorical_features=choice)


def test_categories_that_cannot_be_ordered_are_refused_with_their_column() -> None:
    with pytest.raises(ValueError, match="column 'a' of X mixes categories that cannot be ordered"):
        fit(pd.DataFrame({"a": pd.Series([1, "x"] * 20, dtype=object)}), categorical_features=["a"])


# --- Faults at predict ------------------------------------------------------------------------------------------------


OTHER_FRAMES = {
    "reordered": (FRAME[["b", "a", "c", "d"]], "must be in the same order as they were in fit"),
    "missing": (FRAME[["a", "b", "c"]], "yet now missing:\n- d"),
    "unseen": (FRAME.rename(columns={"a": "z"}), "unseen at fit time:\n- z"),
    "one more": (FRAME.assign(e=1.0), "unseen at fit time:\n- e"),
}


@pytest.mark.parametrize(("frame", "message"), OTHER_FRAMES.values(), ids=OTHER_FRAMES)
def test_a_frame_with_other_columns_is_refused(frame: Any, message: str) -> None:
    model = fit(FRAME)
    for method in (model.predict, model.predict_proba, model.decision_function, model.staged_predict):
        with pytest.raises(ValueError, match=message):
            method(frame)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, pd.DataFrame], ids=["dense", "sparse", "frame"])
@pytest.mark.parametrize("width", [3, 5])
def test_a_table_of_another_width_is_refused(make: Any, width: int) -> None:
    table = make(np.zeros((2, width)))
    with pytest.raises(ValueError, match=f"X has {width} features, but BoomerClassifier is expecting 4 features"):
        fit(make(X)).predict(table)


def test_a_table_without_the_names_of_the_training_data_is_warned_about() -> None:
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        fit(FRAME).predict(X)
    with pytest.warns(UserWarning, match="X has feature names, but BoomerClassifier was fitted without"):
        fit(X).predict(FRAME)


def test_string_categories_need_a_frame_to_predict() -> None:
    frame = pd.DataFrame({"a": ["x", "y"] * 20, "b": X[:, 0]})
    model = fit(frame, categorical_features=["a"])
    with pytest.raises(ValueError, match="X must be a DataFrame: feature 'a' has categories that are strings"):
        model.predict(X[:, :2])


def test_names_are_those_of_the_columns() -> None:
    model = fit(FRAME)
    assert model.rules_.feature_names == ("a", "b", "c", "d")
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    numbered = fit(pd.DataFrame(X))
    assert numbered.rules_.feature_names == ("0", "1", "2", "3")
    assert not hasattr(numbered, "feature_names_in_")
    assert fit(X).rules_.feature_names == ("x0", "x1", "x2", "x3")


# --- Properties -------------------------------------------------------------------------------------------------------


@given(
    st.lists(
        st.lists(st.one_of(st.floats(allow_infinity=False), st.sampled_from([0.0, 1.0])), min_size=2, max_size=2),
        min_size=1,
        max_size=8,
    )
)
def test_dense_sparse_and_framed_numbers_have_the_same_categories(rows: list[list[float]]) -> None:
    values = np.array(rows)
    tables = [
        read_training_table("BoomerClassifier", t, [0]) for t in (values, sp.csr_array(values), pd.DataFrame(rows))
    ]
    assert len({repr(table.schema.categories) for table in tables}) == 1
    np.testing.assert_array_equal(tables[0].matrix, tables[2].matrix)


@pytest.mark.parametrize("dtype", ["M8[D]", "m8[s]"])
def test_an_array_of_dates_is_refused(dtype: str) -> None:
    table = np.arange(12).reshape(6, 2).astype(dtype)
    with pytest.raises(ValueError, match="X holds dates or times"):
        BoomerClassifier(n_rules=3).fit(table, np.eye(6, 2))


def test_an_integer_that_is_no_float_is_refused() -> None:
    table = np.array([[10**400, 1], [2, 3]], dtype=object)
    with pytest.raises(ValueError, match="too large for a floating-point number"):
        BoomerClassifier(n_rules=3).fit(table, np.eye(2))


# --- Names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [np.array, sp.csr_array], ids=lambda f: f.__name__)
def test_features_may_be_named_beside_the_table(make: Any, expected: BoomerClassifier, tmp_path: Path) -> None:
    names = [f"word {i}" for i in range(4)]
    model = BoomerClassifier(n_rules=20, random_state=1).fit(make(X), Y, feature_names=np.array(names))
    assert model.feature_names_in_.tolist() == names
    assert model.rules_.feature_names == tuple(names)
    np.testing.assert_array_equal(model.rules_.condition_values, expected.rules_.condition_values)
    model.save(tmp_path / "model.json")
    for known in (model, load_model(tmp_path / "model.json")):  # no warning of scikit-learn that names are missing
        np.testing.assert_array_equal(known.predict(make(X)), expected.predict(X))
        np.testing.assert_array_equal(known.predict(pd.DataFrame(X, columns=names)), expected.predict(X))
        with pytest.raises(ValueError, match="X has 3 features, but BoomerClassifier is expecting 4 features"):
            known.predict(make(X)[:, :3])
        with pytest.raises(ValueError, match="feature names should match"):
            known.predict(FRAME)
    assert not hasattr(model.fit(make(X), Y), "feature_names_in_")
    model.fit(FRAME, Y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X)


def test_names_of_a_pipeline_are_asked_for_when_they_are_there() -> None:
    texts = ["red apple", "green apple", "red cherry", "green pear"]
    vectorizer = TfidfVectorizer()
    pipeline = make_pipeline(vectorizer, BoomerClassifier(n_rules=5, random_state=1))
    pipeline.fit(texts, np.eye(4, 2, dtype=int), boomerclassifier__feature_names=vectorizer.get_feature_names_out)
    assert pipeline[-1].rules_.feature_names == ("apple", "cherry", "green", "pear", "red")
    assert pipeline.predict(texts).shape == (4, 2)


@pytest.mark.parametrize(
    ("table", "names", "message"),
    [
        (X, list("abc"), "feature_names has 3 names, but X has 4 features"),
        (X, list("abca"), "feature_names must be distinct, got 'a' twice"),
        (X, ["a", "b", "c", 4], "feature_names must be text, got 4"),
        (X, "abcd", "feature_names must be a list of names, or a function that returns one, got 'abcd'"),
        (X, lambda: None, "feature_names must be a list of names, or a function that returns one, got None"),
        (FRAME, list("abce"), "feature_names has 'e' where the feature is called 'd' already"),
    ],
)
def test_names_that_do_not_fit_are_refused(table: Any, names: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BoomerClassifier(n_rules=2).fit(table, Y, feature_names=names)


def test_names_stay_the_same_while_rules_are_added() -> None:
    model = BoomerClassifier(n_rules=2, warm_start=True).fit(X, Y, feature_names=list("abcd"))
    model.set_params(n_rules=3).fit(X, Y)
    model.set_params(n_rules=4).fit(X, Y, feature_names=list("abcd"))
    assert model.rules_.feature_names == tuple("abcd")
    with pytest.raises(ValueError, match="feature_names has 'e' where the feature is called 'd' already"):
        model.set_params(n_rules=5).fit(X, Y, feature_names=list("abce"))
