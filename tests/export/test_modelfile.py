"""A model file gives back exactly the model that was saved, and no file whatsoever does harm."""

import json
import os
import stat
import tempfile
from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from pyboomer import BoomerClassifier, Loss, load_model
from pyboomer.losses import label_wise_logistic

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(30, 4)), 1)
Y = (X[:, :3] + 0.3 * RNG.normal(size=(30, 3)) > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(kind=np.array(["Übel", 'quo"te', "x"])[Y[:, 0] + Y[:, 1]])
COLOURS = Enum("Colour", {"RED": "red", "GREEN": "green", "BLUE": "blue", "NONE": ""}, type=str)
OWN = Loss("own", "diagonal", label_wise_logistic.value, label_wise_logistic.derivatives)

MODELS: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "default": ({}, X, Y),
    "label-wise single": ({"loss": "label-wise-logistic", "head": "single"}, X, Y),
    "example-wise single": ({"head": "single"}, X, Y),
    "numeric nominal": ({"categorical_features": [0, 2]}, X, Y),
    "string nominal": ({"categorical_features": ["kind"]}, FRAME, Y),
    "boolean nominal": ({"categorical_features": [0]}, pd.DataFrame({"a": Y[:, 0] == 1, "b": X[:, 1]}), Y),
    "named": ({}, FRAME[["a", "b"]], pd.DataFrame(Y, columns=["beach", "urban", "über"])),
    "numbered columns": ({}, pd.DataFrame(X), Y),
    "sparse array": ({}, sp.csr_array(X), sp.csr_array(Y.astype(np.int8))),
    "sparse matrix": ({}, sp.csr_matrix(X), sp.csr_matrix(Y.astype(bool))),
    "boolean": ({}, X, Y == 1),
    "float": ({}, X, Y.astype(np.float32)),
    "one label": ({}, X, Y[:, :1]),
    "two classes": ({}, X, np.where(Y[:, 0] == 1, "yes", "no")),
    "three classes": ({}, X, Y.sum(axis=1) * 10),
    "classes of objects": ({}, X, pd.Series(np.array(["p", "q", "r", "s"])[Y.sum(axis=1)], dtype=object)),
    "classes of an enum": ({}, X, np.array([*COLOURS], dtype=object)[Y.sum(axis=1)]),
    "classes of long floats": ({}, X, np.array([0, 1, 2.0**70, 2.0**80], dtype=np.longdouble)[Y.sum(axis=1)]),
    "columns of a frame": ({"fixed_features": FRAME.columns[:2]}, FRAME, Y),
    "mask of a frame": ({"fixed_features": FRAME.columns.to_series() == "a"}, FRAME, Y),
    "boolean classes": ({}, X, Y[:, 0] == 1),
    "one class": ({}, X, np.full(30, 7, dtype=np.int16)),
    "own loss": ({"loss": OWN}, X, Y),
    "other decoding": ({"decode": "subset"}, X, Y),
    "NumPy's numbers": (
        {
            "n_rules": np.int32(9),
            "learning_rate": np.float32(0.25),
            "l2": np.int8(2),
            "bootstrap": np.False_,
            "max_features": np.int64(2),
            "max_conditions": np.uint8(3),
            "min_coverage": np.float64(2),
        },
        X,
        Y,
    ),
    "fractions": ({"learning_rate": Fraction(1, 3), "l2": Fraction(1, 7)}, X, Y),
    "default rule alone": ({"n_rules": 1}, X, Y),
}


def fit(options: dict[str, Any], table: Any, labels: Any) -> BoomerClassifier:
    return BoomerClassifier(**{"n_rules": 12, "random_state": 1, **options}).fit(table, labels)


@pytest.fixture(params=MODELS.values(), ids=list(MODELS))
def saved(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[BoomerClassifier, BoomerClassifier, Any]:
    """A model, the one that was loaded from its file, and examples."""
    options, table, labels = request.param
    model = fit(options, table, labels)
    model.save(tmp_path / "model.json")
    loss = OWN if options.get("loss") is OWN else None
    return model, load_model(tmp_path / "model.json", loss=loss), table


# --- The way there and back -------------------------------------------------------------------------------------------


def test_scores_predictions_and_probabilities_come_back_exactly(saved: tuple[Any, Any, Any]) -> None:
    model, loaded, table = saved
    np.testing.assert_array_equal(loaded.decision_function(table), model.decision_function(table))
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))
    expected, predicted = model.predict(table), loaded.predict(table)
    assert type(predicted) is type(expected)
    assert predicted.dtype == expected.dtype
    if sp.issparse(expected):
        expected, predicted = expected.toarray(), predicted.toarray()
    np.testing.assert_array_equal(predicted, expected)


def test_all_that_was_learned_comes_back(saved: tuple[Any, Any, Any]) -> None:
    model, loaded, _ = saved
    assert loaded.rules_ == model.rules_
    assert loaded.label_names_ == model.label_names_
    assert loaded.n_features_in_ == model.n_features_in_
    np.testing.assert_array_equal(loaded.label_vectors_, model.label_vectors_)
    assert loaded.label_vectors_.dtype == model.label_vectors_.dtype
    assert len(loaded.classes_) == len(model.classes_)
    for one, other in zip(loaded.classes_, model.classes_, strict=True):
        np.testing.assert_array_equal(one, other)
    assert hasattr(loaded, "feature_names_in_") == hasattr(model, "feature_names_in_")
    if hasattr(model, "feature_names_in_"):
        np.testing.assert_array_equal(loaded.feature_names_in_, model.feature_names_in_)


def test_the_parameters_that_shape_a_model_come_back(saved: tuple[Any, Any, Any]) -> None:
    model, loaded, _ = saved
    for name in ("loss", "head", "n_rules", "learning_rate", "l2", "bootstrap", "max_features", "search", "decode"):
        assert getattr(loaded, name) == pytest.approx(getattr(model, name)) or getattr(loaded, name) == getattr(
            model, name
        )


def test_a_loaded_model_saves_the_same_file(saved: tuple[Any, Any, Any], tmp_path: Path) -> None:
    model, loaded, _ = saved
    model.save(tmp_path / "one.json")
    loaded.save(tmp_path / "two.json")
    assert (tmp_path / "one.json").read_text() == (tmp_path / "two.json").read_text()


def test_a_loaded_model_can_be_fitted_again(tmp_path: Path) -> None:
    fit({"n_rules": 5}, X, Y).save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json").set_params(random_state=1, n_rules=12)
    assert loaded.fit(X, Y).rules_ == fit({}, X, Y).rules_


def test_names_of_columns_are_still_checked_by_a_loaded_model(tmp_path: Path) -> None:
    fit({}, FRAME[["a", "b"]], Y).save(tmp_path / "model.json")
    with pytest.raises(ValueError, match="must be in the same order"):
        load_model(tmp_path / "model.json").predict(FRAME[["b", "a"]])


def test_the_file_is_plain_json_without_numbers_that_json_lacks(tmp_path: Path) -> None:
    fit({}, X, Y).save(str(tmp_path / "model.json"))
    text = (tmp_path / "model.json").read_text(encoding="ascii")
    assert json.loads(text)["format"] == "pyboomer model"
    assert "NaN" not in text
    assert "Infinity" not in text


def test_a_loss_of_ones_own_must_be_passed_again(tmp_path: Path) -> None:
    fit({"loss": OWN}, X, Y).save(tmp_path / "model.json")
    with pytest.raises(ValueError, match=r"model\.json: learned with the user's own loss 'own': pass it as load_model"):
        load_model(tmp_path / "model.json")
    with pytest.raises(ValueError, match="learned with loss 'own', got 'label-wise-logistic'"):
        load_model(tmp_path / "model.json", loss=label_wise_logistic)


# --- Saving -----------------------------------------------------------------------------------------------------------


def test_an_unfitted_model_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        BoomerClassifier().save(tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


def test_saving_where_nothing_can_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    model = fit({}, X, Y)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("in the way")
    for target in ("missing/model.json", "folder", "file/model.json"):
        with pytest.raises(OSError):
            model.save(tmp_path / target)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "folder"]


def test_a_failure_while_saving_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = fit({}, X, Y)
    model.save(tmp_path / "model.json")
    old = (tmp_path / "model.json").read_text()

    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        fit({"n_rules": 3}, X, Y).save(tmp_path / "model.json")
    assert [p.name for p in tmp_path.iterdir()] == ["model.json"]
    assert (tmp_path / "model.json").read_text() == old


def test_a_saved_file_can_be_read_by_those_whom_the_umask_allows(tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        fit({}, X, Y).save(tmp_path / "model.json")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "model.json").stat().st_mode) == 0o644


# --- Files that are no models -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def content() -> dict[str, Any]:
    """The content of a valid file that has all there can be: names, categories and classes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        fit({"categorical_features": ["kind"], "n_rules": 6}, FRAME, Y.sum(axis=1)).save(path)
        return dict(json.loads(path.read_text()))


def changed(*keys: Any, to: Any) -> Callable[[dict[str, Any]], Any]:
    """A change of one value of a file, found by the keys that lead to it."""

    def change(content: dict[str, Any]) -> Any:
        if not keys:
            return to
        place: Any = content
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to
        return content

    return change


def without(*keys: Any) -> Callable[[dict[str, Any]], Any]:
    def change(content: dict[str, Any]) -> Any:
        place: Any = content
        for key in keys[:-1]:
            place = place[key]
        del place[keys[-1]]
        return content

    return change


DAMAGES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a list": (changed(to=[1, 2]), "not a pyboomer model"),
    "a number": (changed(to=3), "not a pyboomer model"),
    "another format": (changed("format", to="xgboost"), "not a pyboomer model"),
    "no format": (without("format"), "not a pyboomer model"),
    "a newer version": (changed("version", to=4), "written by a newer version of pyboomer"),
    "no version": (without("version"), "version must be a whole number, got None"),
    "a version of text": (changed("version", to="1"), "version must be a whole number, got '1'"),
    "version zero": (changed("version", to=0), "version must be a whole number, got 0"),
    "no rules": (without("rules"), "damaged model: 'rules' is missing"),
    "no labels": (without("labels"), "damaged model: 'labels' is missing"),
    "rules that are none": (changed("rules", to=None), "rules must be a dict"),
    "a rule array cut short": (changed("rules", "coverage", to=[1.0]), "coverage"),
    "a feature out of range": (changed("rules", "condition_features", 0, to=99), "condition_features must be below 5"),
    "an unknown operator": (changed("rules", "condition_operators", 0, to=7), "condition_operators must be below 4"),
    "a score of text": (changed("rules", "head_scores", 0, to="1"), "head_scores must hold"),
    "a huge number": (changed("rules", "head_scores", 0, to=10**400), "head_scores must hold numbers that fit"),
    "no parameters": (changed("parameters", to=[]), "damaged model: .parameters. must be names with values"),
    "a parameter out of range": (changed("parameters", "l2", to=-1), "l2 must be a number of at least 0, got -1"),
    "a huge parameter": (changed("parameters", "l2", to=10**400), "l2 must be a number of at least 0"),
    "an unknown loss": (changed("loss", "name", to="focal"), "damaged model: unknown loss 'focal'"),
    "a nameless loss": (changed("loss", to={}), "damaged model: 'loss' has no name"),
    "a strange dtype": (changed("labels", "dtype", to="<V8"), "damaged model: labels cannot have dtype '<V8'"),
    "a structured dtype": (changed("labels", "dtype", to="<i4,i4"), "labels cannot have dtype '<i4,i4'"),
    "a dtype that does not exist": (changed("labels", "dtype", to="<i3"), "model.json: .*<i3"),
    "strange sparsity": (changed("labels", "sparse", to="dense"), "damaged model: labels cannot be 'dense'"),
    "a class too few": (changed("labels", "classes", to=[1, 2]), "damaged model: 2 classes for 4 labels"),
    "classes of lists": (changed("labels", "classes", to=[[]] * 4), "'classes' must be a list of plain values"),
    "a vector too short": (changed("label_vectors", 0, to="01"), "a label vector must be 4 times 0 or 1, got '01'"),
    "a vector with a two": (
        changed("label_vectors", 0, to="0120"),
        "a label vector must be 4 times 0 or 1, got '0120'",
    ),
    "no vectors": (changed("label_vectors", to=[]), "'label_vectors' must be a list"),
    "other names": (changed("feature_names_in", 0, to="z"), "'feature_names_in' does not fit the rules"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_model_is_a_value_error_that_names_the_file_and_the_damage(
    damage: Callable[[dict[str, Any]], Any], message: str, content: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(damage(json.loads(json.dumps(content)))))
    with pytest.raises(ValueError, match=message) as caught:
        load_model(path)
    assert str(path) in str(caught.value)


FOREIGN = {
    "empty": b"",
    "text": b"hello",
    "half a model": b'{"format": "pyboomer model", "version": 1, "rules": {"cover',
    "a pickle": b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00K\x01.",
    "not UTF-8": b'{"format": "\xff\xfe"}',
    "UTF-16": '{"format": "pyboomer model"}'.encode("utf-16"),
    "NaN": b'{"format": "pyboomer model", "version": NaN}',
    "infinity": b'{"format": "pyboomer model", "version": -Infinity}',
    "nested deeply": b"[" * 100_000,
    "a number of many digits": b"1" * 10_000,
}


@pytest.mark.parametrize("data", FOREIGN.values(), ids=FOREIGN)
def test_a_file_that_is_no_model_is_a_value_error_that_names_it(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"other\.json is not a pyboomer model"):
        load_model(path)


def test_a_file_that_is_missing_or_a_folder_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing"):
        load_model(tmp_path / "missing.json")
    with pytest.raises(OSError, match=tmp_path.name):
        load_model(tmp_path)


# --- Fuzzing ----------------------------------------------------------------------------------------------------------


def load_or_refuse(path: Path, text: bytes) -> None:
    """Load a file; if it passes for a model, that model must work on examples that fit it."""
    path.write_bytes(text)
    try:
        model = load_model(path)
    except (ValueError, OSError):
        return
    table = pd.DataFrame(0.0, index=range(2), columns=range(model.n_features_in_))
    if hasattr(model, "feature_names_in_"):
        table.columns = model.feature_names_in_
    model.decision_function(table)
    model.predict(table)
    model.predict_proba(table)


FUZZ = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
scraps = st.one_of(st.binary(max_size=6), st.sampled_from([b"[]", b"{}", b"null", b"1e999", b"-1", b'"', b",", b"0.5"]))


@FUZZ
@given(data=st.data())
def test_a_file_with_some_bytes_cut_or_replaced_does_no_harm(
    content: dict[str, Any], tmp_path: Path, data: st.DataObject
) -> None:
    text = json.dumps(content).encode()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.one_of(st.just(len(text)), st.integers(start, min(start + 40, len(text)))))
    load_or_refuse(tmp_path / "model.json", text[:start] + data.draw(scraps) + text[end:])


plain_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 8),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(max_size=4),
        st.sampled_from(["object", "<U1", "|i1", "|b1", "<f8", "array", "matrix", "log2", "multi", "0110", 10**400]),
    ),
    lambda children: st.one_of(
        st.lists(children, max_size=4), st.dictionaries(st.text(max_size=3), children, max_size=3)
    ),
    max_leaves=5,
)


def list_places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The keys that lead to each value of a file, of long lists only the first and the last."""
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = [(i, value[i]) for i in sorted({0, len(value) - 1})] if value else []
    else:
        children = []
    return [path] * bool(path) + [place for key, child in children for place in list_places(child, (*path, key))]


@FUZZ
@given(data=st.data())
def test_a_file_with_some_values_replaced_or_removed_does_no_harm(
    content: dict[str, Any], tmp_path: Path, data: st.DataObject
) -> None:
    copy = json.loads(json.dumps(content))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(list_places(copy)))
        change = without(*place) if data.draw(st.integers(0, 3)) == 0 else changed(*place, to=data.draw(plain_values))
        copy = change(copy)
    load_or_refuse(tmp_path / "model.json", json.dumps(copy).encode())
