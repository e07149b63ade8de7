"""Targets come in many forms, and predictions go back in the same form; anything else is named and refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyboomer import BoomerRegressor
from pyboomer.data.targets import read_targets

X = np.random.default_rng(0).normal(size=(30, 3))
Y = X @ np.random.default_rng(1).normal(size=(3, 2)) + 3


def fit(targets: Any, **options: Any) -> BoomerRegressor:
    return BoomerRegressor(n_rules=8, random_state=1, **options).fit(X, targets)


FORMS = {
    "array": Y,
    "Fortran order": np.asfortranarray(Y),
    "lists": Y.tolist(),
    "frame": pd.DataFrame(Y),
    "nullable": pd.DataFrame(Y).astype("Float64"),
    "objects": Y.astype(object),
}


@pytest.mark.parametrize("targets", FORMS.values(), ids=FORMS)
def test_several_targets_may_be_written_in_many_ways(targets: Any) -> None:
    np.testing.assert_array_equal(fit(targets).predict(X), fit(Y).predict(X))


@pytest.mark.parametrize("y", [Y[:, 0], Y[:, 0].tolist(), pd.Series(Y[:, 0])], ids=type)
def test_one_column_gives_one_column(y: Any) -> None:
    predicted = fit(y).predict(X)
    assert predicted.shape == (30,)
    np.testing.assert_array_equal(predicted, fit(Y[:, :1]).predict(X)[:, 0])
    assert fit(Y[:, :1]).predict(X).shape == (30, 1)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "bool", "float32"])
def test_targets_may_be_numbers_of_any_type(dtype: str) -> None:
    targets = np.round(Y).astype(dtype)
    np.testing.assert_array_equal(fit(targets).predict(X), fit(targets.astype(float)).predict(X))


def test_columns_name_the_targets() -> None:
    model = fit(pd.DataFrame(Y, columns=["height", "weight"]))
    assert model.label_names_ == model.rules_.label_names == ("height", "weight")
    assert fit(Y).label_names_ == ("y0", "y1")


def test_missing_values_in_a_matrix_are_unknown_targets() -> None:
    masked = np.where(np.eye(30, 2, dtype=bool), np.nan, Y)
    values, known, _ = read_targets(masked)
    assert known is not None
    np.testing.assert_array_equal(known, ~np.isnan(masked))
    assert np.isfinite(values).all()
    nullable = pd.DataFrame(masked).astype("Float64")
    np.testing.assert_array_equal(fit(masked).predict(X), fit(nullable).predict(X))


def spoilt(value: Any, dtype: Any = float) -> Any:
    targets = Y.astype(dtype)
    targets[4, 1] = value
    return targets


REFUSED = {
    "text": (spoilt("a", object), "y must hold numbers only"),
    "strings": (Y.astype(str), "y must hold numbers only"),
    "dates": (pd.Series(pd.date_range("2020", periods=30)), "y must hold numbers only"),
    "complex": (Y.astype(complex), "y must hold numbers only"),
    "infinity": (spoilt(np.inf), r"y contains infinity in column 1 \('y1'\)"),
    "huge": (spoilt(1e200), r"y must not be larger than 1e\+100, got 1e\+200"),
    "one column with NaN": (spoilt(np.nan)[:, 1], "y contains NaN; only a matrix of several targets may have unknown"),
    "nothing known": (np.full(Y.shape, np.nan), "Y has no known label at all"),
    "three dimensions": (Y[:, :, None], "one column of targets or a matrix of them, got 3 dimensions"),
    "a number": (3.0, "one column of targets or a matrix of them, got 0 dimensions"),
    "ragged": ([[1.0, 2.0], [1.0]] * 15, "a matrix of them, got rows that differ"),
    "None": (None, "requires y to be passed, but the target y is None"),
    "no examples": ([], "y has no examples"),
    "no targets": (np.zeros((30, 0)), "y has no targets"),
    "too few": (Y[:-1], "X has 30 examples, but Y has 29"),
    "repeated names": (pd.DataFrame(Y, columns=["a", "a"]), "targets must have distinct names, got 'a' twice"),
}


@pytest.mark.parametrize(("targets", "message"), REFUSED.values(), ids=REFUSED)
def test_other_targets_are_refused_with_the_culprit_named(targets: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(targets)
