"""Labels come in many forms, and predictions go back in the same form; anything else is named and refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from pyboomer import BoomerClassifier
from pyboomer.data.labels import read_labels

X = np.random.default_rng(0).normal(size=(30, 3))
Y = (X > 0.2).astype(np.int64)


def fit(labels: Any, **options: Any) -> BoomerClassifier:
    return BoomerClassifier(n_rules=8, random_state=1, **options).fit(X, labels)


# --- Matrices of 0 and 1 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int64", "float32", "float64", "bool"])
def test_predictions_have_the_dtype_of_a_dense_matrix(dtype: str) -> None:
    predicted = fit(Y.astype(dtype)).predict(X)
    assert type(predicted) is np.ndarray
    assert predicted.dtype == dtype
    np.testing.assert_array_equal(predicted, fit(Y).predict(X))


@pytest.mark.parametrize("dtype", ["int8", "float64", "bool"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok"])
def test_predictions_are_sparse_if_the_labels_were(dtype: str, kind: str, form: str) -> None:
    given = getattr(sp, f"{form}_{kind}")(Y.astype(dtype))
    predicted = fit(given).predict(X)
    assert type(predicted) is (sp.csr_array if kind == "array" else sp.csr_matrix)
    assert predicted.dtype == dtype
    np.testing.assert_array_equal(predicted.toarray(), fit(Y).predict(X))


def test_a_sparse_matrix_may_store_zeros() -> None:
    stored = sp.csr_array((Y.ravel(), np.tile([0, 1, 2], 30), np.arange(0, 91, 3)), shape=Y.shape)
    assert stored.nnz == Y.size
    np.testing.assert_array_equal(read_labels(stored)[0], Y)


@pytest.mark.parametrize("dtype", ["int64", "Int64", "boolean", "bool", "Float64", "int8", object])
def test_labels_may_be_a_frame_whose_columns_name_them(dtype: Any) -> None:
    model = fit(pd.DataFrame(Y, columns=["beach", "urban", "field"]).astype(dtype))
    assert model.label_names_ == ("beach", "urban", "field")
    assert model.rules_.label_names == ("beach", "urban", "field")
    np.testing.assert_array_equal(model.predict(X), fit(Y).predict(X))


def test_a_frame_may_mix_dtypes_and_have_columns_that_are_not_strings() -> None:
    frame = pd.DataFrame({0: Y[:, 0].astype(bool), 1: Y[:, 1].astype(np.int8), 2: pd.Series(Y[:, 2], dtype="Int64")})
    model = fit(frame)
    assert model.label_names_ == ("0", "1", "2")
    np.testing.assert_array_equal(model.predict(X), fit(Y).predict(X))


def test_labels_may_be_lists() -> None:
    np.testing.assert_array_equal(fit(Y.tolist()).predict(X), fit(Y).predict(X))


def test_labels_without_names_are_numbered() -> None:
    assert fit(Y).label_names_ == ("y0", "y1", "y2")


def test_one_label_stays_a_matrix_of_one_column() -> None:
    model = fit(Y[:, :1])
    assert model.predict(X).shape == model.decision_function(X).shape == model.predict_proba(X).shape == (30, 1)


def test_classes_are_the_numbers_of_the_labels() -> None:
    assert fit(Y).classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("column", [np.zeros(30), np.ones(30)], ids=["never", "always"])
@pytest.mark.parametrize("loss", ["label-wise-logistic", "example-wise-logistic"])
def test_a_label_that_is_never_or_always_relevant_is_predicted_so(column: Any, loss: str) -> None:
    predicted = fit(np.column_stack([Y[:, 0], column]), loss=loss).predict(X)
    np.testing.assert_array_equal(predicted[:, 1], column)


@pytest.mark.parametrize("vector", [[0, 0, 0], [1, 1, 1], [1, 0, 1]], ids=str)
def test_labels_that_are_equal_for_all_examples_are_predicted_for_all(vector: list[int]) -> None:
    for loss in ("label-wise-logistic", "example-wise-logistic"):
        model = fit(np.tile(vector, (30, 1)), loss=loss)
        np.testing.assert_array_equal(model.predict(X), np.tile(vector, (30, 1)))
        np.testing.assert_array_equal(model.label_vectors_, [vector])


# --- One column of classes --------------------------------------------------------------------------------------------


CLASSES = {
    "two numbers": [3, 7],
    "signs": [-1, 1],
    "booleans": [False, True],
    "two strings": ["no", "yes"],
    "three strings": ["bird", "cat", "dog"],
    "four numbers": [0, 1, 2, 3],
    "whole floats": [0.0, 1.0, 2.0],
    "one number": [5],
    "one string": ["only"],
}


@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
def test_one_column_of_classes_gives_one_column_of_classes(classes: list[Any]) -> None:
    values = np.array(classes)
    y = values[np.arange(30) % len(values)]
    model = fit(y)
    predicted = model.predict(X)
    assert predicted.shape == (30,)
    assert predicted.dtype == y.dtype
    assert set(predicted) <= set(classes)
    np.testing.assert_array_equal(model.classes_, values)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (30, len(values))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], predicted)
    assert model.decision_function(X).shape == ((30,) if len(values) <= 2 else (30, len(values)))


@pytest.mark.parametrize(
    "dtype", ["object", "string", "str", "category", "string[pyarrow]"], ids=["object", "string", "str", "cat", "arrow"]
)
def test_classes_may_be_a_series_of_strings(dtype: str) -> None:
    y = pd.Series(["no", "yes", "maybe"] * 10, dtype=dtype)
    predicted = fit(y).predict(X)
    np.testing.assert_array_equal(predicted, fit(["no", "yes", "maybe"] * 10).predict(X))


def test_classes_may_be_a_column_that_is_not_binary() -> None:
    y = np.arange(30)[:, None] % 3
    np.testing.assert_array_equal(fit(y).predict(X), fit(y[:, 0]).predict(X))
    frame = pd.DataFrame({"kind": np.array(["a", "b"])[y[:, 0] % 2]})
    assert set(fit(frame).predict(X)) <= {"a", "b"}


def test_objects_that_are_numbers_are_classes_like_any_others() -> None:
    y = np.array([1, 2, 5] * 10, dtype=object)
    np.testing.assert_array_equal(fit(y).predict(X), fit(y.astype(int)).predict(X))


def test_two_classes_are_decided_by_the_sign_of_the_score() -> None:
    for loss in ("label-wise-logistic", "example-wise-logistic"):
        model = fit(np.where(X[:, 0] > 0, "yes", "no"), loss=loss)
        np.testing.assert_array_equal(model.predict(X) == "yes", model.decision_function(X) > 0)


# --- What is refused --------------------------------------------------------------------------------------------------


def spoilt(value: Any, dtype: Any = None) -> Any:
    labels = Y.astype(dtype or type(value))
    labels[4, 1] = value
    return labels


REFUSED = {
    "a two": (spoilt(2), r"Y must hold only 0 and 1, got 2 in column 1 \('y1'\)"),
    "a minus one": (spoilt(-1), r"Y must hold only 0 and 1, got -1 in column 1 \('y1'\)"),
    "a fraction": (spoilt(0.5), r"Y must hold only 0 and 1, got 0.5 in column 1 \('y1'\)"),
    "an infinity": (spoilt(np.inf), r"Y must hold only 0 and 1, got inf in column 1 \('y1'\)"),
    "a string among numbers": (spoilt("1", object), r"Y must hold only 0 and 1, got '1' in column 1 \('y1'\)"),
    "a huge number": (spoilt(2**70, object), r"Y must hold only 0 and 1, got 1180591620717411303424 in column 1"),
    "strings": (Y.astype(str), r"Y must hold only 0 and 1, got '[01]' in column 0 \('y0'\)"),
    "complex numbers": (Y.astype(complex), r"Y must hold only 0 and 1, got 0j in column 0"),
    "dates": (Y.astype("M8[D]"), "Y must hold only 0 and 1, got datetime.date"),
    "a frame with a two": (pd.DataFrame(spoilt(2), columns=list("abc")), r"got 2 in column 1 \('b'\)"),
    "a sparse two": (sp.csr_array(spoilt(2)), r"Y must hold only 0 and 1, got 2 in column 1 \('y1'\)"),
    "sparse complex": (sp.csr_array(Y.astype(complex)), r"Y must hold only 0 and 1, got \(1\+0j\) in column 0"),
    "sparse entries twice": (sp.coo_array(([1, 1], ([0, 0], [2, 2])), shape=(30, 3)), r"got 2 in column 2 \('y2'\)"),
    "a sparse vector": (sp.coo_array(Y[:, 0]), "Y must be 2-D if it is sparse"),
    "three dimensions": (Y[:, :, None], "Y must be a matrix of labels or one column of classes, got 3 dimensions"),
    "a number": (1, "Y must be a matrix of labels or one column of classes, got 0 dimensions"),
    "ragged lists": ([[0, 1], [1]] * 15, "Y must be a matrix of labels or one column of classes, got rows that differ"),
    "None": (None, "requires y to be passed, but the target y is None"),
    "no labels": (np.zeros((30, 0)), "Y has no labels"),
    "no sparse labels": (sp.csr_array((30, 0)), "Y has no labels"),
    "no examples": ([], "Y has no examples"),
    "no rows": (Y[:0], "Y has no examples"),
    "repeated names": (pd.DataFrame(Y, columns=["a", "b", "a"]), "labels must have distinct names, got 'a' twice"),
    "too few": (Y[:-1], r"X has 30 examples, but Y has 29"),
    "too many classes": (np.arange(31), r"X has 30 examples, but Y has 31"),
    "classes with NaN": (np.where(np.arange(30) == 3, np.nan, 1.0), "y contains NaN"),
    "classes with NA": (pd.Series(["a", pd.NA] * 15, dtype="string"), "got <NA> in y"),
    "classes with None": (np.array(["a", None] * 15, dtype=object), "got None in y"),
    "continuous values": (X[:, 0], "y holds continuous values; classes must be whole numbers"),
    "infinite classes": (np.where(np.arange(30) == 3, np.inf, 1.0), "y holds continuous values"),
    "huge numbers": (np.array([2**70, 1] * 15, dtype=object), "a class that is a number must fit 64 bits, got 11805"),
    "numbers and strings": (np.array(["a", 3] * 15, dtype=object), "classes must be all numbers, .*, got 3 in y"),
    "repeated entries": (sp.csr_array(([1, 1, 1], [0, 2, 2], [0, 1, *[3] * 29])), "got 2 in column 2"),
    "dates as classes": (pd.Series(pd.date_range("2020", periods=30)), "classes must be all numbers, .* got datetime"),
    "bytes": (np.array([b"a", b"b"] * 15), "classes must be all numbers, .* got b'a' in y"),
}


@pytest.mark.parametrize(("labels", "message"), REFUSED.values(), ids=REFUSED)
def test_other_labels_are_refused_with_the_culprit_named(labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(labels)


@given(st.integers(1, 6), st.integers(1, 5), st.sampled_from(["u1", "i8", "f4", "?"]), st.integers(0, 2**30 - 1))
def test_reading_and_restoring_labels_is_the_identity(n: int, k: int, dtype: str, bits: int) -> None:
    matrix = np.array([bits >> i & 1 for i in range(n * k)]).reshape(n, k).astype(dtype)
    forms: tuple[Any, ...] = (matrix, sp.csr_array(matrix), sp.csr_matrix(matrix))
    for given_form in forms:
        vectors, known, form = read_labels(given_form)
        assert known is None
        restored = form.restore(vectors)
        assert type(restored) is type(given_form)
        assert restored.dtype == matrix.dtype
        np.testing.assert_array_equal(restored.toarray() if sp.issparse(restored) else restored, matrix)


SETS = {
    "lists": [["a"], ["a", "b"], []],
    "lists of equal length": [["a", "b"], ["b", "c"], ["a", "c"]],
    "sets": [{"a"}, {"a", "b"}, set()],
    "a Series of lists": pd.Series([["a"], ["a", "b"], []]),
    "a Series of arrays": pd.Series([np.array(["a"]), np.array(["a", "b"]), np.array([])]),
    "numbers": [[0], [0, 3], []],
}


@pytest.mark.parametrize("Y", SETS.values(), ids=SETS)
def test_sets_of_labels_are_sent_to_the_binarizer(Y: Any) -> None:
    with pytest.raises(ValueError, match=r"Y must .* by sklearn.preprocessing.MultiLabelBinarizer\(\)"):
        read_labels(Y)
