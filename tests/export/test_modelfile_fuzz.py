"""No model file does harm: it is a model that works, or an error, at little cost, that names the file and the fault.

Files are damaged in many ways, with `pytest -m slow` in tens of thousands: the same ones in every run, others with
`--hypothesis-profile=random`. Files and pickles of earlier versions still give the models that they were.
"""

import copy
import gzip
import json
import os
import pickle
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyboomer import BoomerClassifier, BoomerRegressor, Loss, RuleEnsemble, load_model

FOLDER = Path(__file__).parent

# --- The models whose files are damaged -------------------------------------------------------------------------------

RNG = np.random.default_rng(3)
X = np.round(RNG.normal(size=(24, 3)), 1)
Y = (X + 0.3 * RNG.normal(size=(24, 3)) > 0).astype(int)
WITH_GAPS = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
FRAME = pd.DataFrame({"a": X[:, 0], "kind": np.array(["Übel", 'quo"te', "x"])[Y[:, 0] + Y[:, 1]], "n": Y.sum(axis=1)})

MODELS: dict[str, tuple[type, dict[str, Any], Any, Any]] = {
    "numeric": (BoomerClassifier, {}, X, Y),
    "nominal": (BoomerClassifier, {"categorical_features": ["kind", "n"], "decode": "subset"}, FRAME, Y),
    "nominal numbers": (BoomerClassifier, {"categorical_features": [0, 2]}, X, Y == 1),
    "single heads": (BoomerClassifier, {"loss": "label-wise-logistic", "head": "single"}, X, Y.astype(np.float32)),
    "classes": (BoomerClassifier, {"categorical_features": ["kind"]}, FRAME, np.array([*"pqrs"])[Y.sum(axis=1)]),
    "two classes": (BoomerClassifier, {}, X, Y[:, 0] * 10),
    "sparse labels": (BoomerClassifier, {"decode": "hamming"}, X, sp.csr_array(Y.astype(np.int8))),
    "missing values": (BoomerClassifier, {"max_conditions": 2}, WITH_GAPS, pd.DataFrame(Y, columns=["u", "v", "ü"])),
    "regressor": (BoomerRegressor, {}, X, 3 * X[:, 0] + X[:, 1]),
    "several targets": (BoomerRegressor, {"categorical_features": ["kind"]}, FRAME, pd.DataFrame(X)),
}


def fit(name: str) -> Any:
    estimator, options, table, labels = MODELS[name]
    return estimator(**{"n_rules": 5, "random_state": 1, **options}).fit(table, labels)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of the models above, and one of version 1."""
    path = tmp_path_factory.mktemp("models") / "model.json"
    texts = {"version 1": (FOLDER / "model-v1.json").read_text(encoding="utf-8")}
    for name in MODELS:
        model = fit(name)
        model.training_facts_["seconds"] = 0.01  # else the damage would not be the same in every run
        model.save(path)
        texts[name] = path.read_text(encoding="utf-8")
    for text in texts.values():
        path.write_text(text, encoding="utf-8")
        use(load_model(path), path)  # what is compiled now takes no time later
    return texts


# --- The law ----------------------------------------------------------------------------------------------------------

SECONDS = 2.0
MEGABYTES = 50
LONGEST_MESSAGE = 500


def load_or_refuse(path: Path, content: str | bytes) -> str | None:
    """Load a file of that content: a model that works, or an error, whose message is returned."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    message = None
    tracemalloc.start()
    begin = time.process_time()
    try:
        try:
            model = load_model(path)
        except ValueError as error:
            message = str(error)
        else:
            use(model, path)
        assert time.process_time() - begin < SECONDS
        assert tracemalloc.get_traced_memory()[1] < MEGABYTES * 2**20
    finally:
        tracemalloc.stop()
    if message is not None:
        assert message.startswith(str(path))
        assert 10 < len(message) - len(str(path)) < LONGEST_MESSAGE
    return message


def use(model: Any, path: Path) -> None:
    """Do all that one can do with a model that was loaded."""
    assert str(model.rules_)
    model.save(path)
    again = load_model(path)
    assert again.rules_ == model.rules_
    for table in examples_for(model):
        assert model.predict(table).shape[0] == table.shape[0]
        if isinstance(model, BoomerClassifier):
            assert model.predict_proba(table).min() >= 0
            np.testing.assert_array_equal(again.decision_function(table), model.decision_function(table))


def examples_for(model: Any) -> Iterator[Any]:
    """Examples that fit a model, of ordinary, missing, extreme and unseen values: a DataFrame, or arrays."""
    columns: dict[int, list[Any]] = {}
    for feature in range(model.n_features_in_):
        values = model.rules_.categories.get(feature, ())
        known = [values[0], values[-1]] if values else [0.0, 1.0]
        columns[feature] = [*known, None, "unseen"] if isinstance(known[0], str) else [*known, np.nan, 1e300]
    has_text = any(isinstance(column[0], str) for column in columns.values())
    if hasattr(model, "feature_names_in_"):
        yield pd.DataFrame(columns, dtype=object).set_axis(model.feature_names_in_, axis=1)
    elif has_text:
        yield pd.DataFrame(columns, dtype=object)
    else:
        matrix = np.array([*columns.values()], dtype=float).T
        yield matrix
        yield sp.csr_array(matrix)


# --- Damage -----------------------------------------------------------------------------------------------------------

STRANGE = (  # pieces of JSON, some of which no program would write
    *("null", "true", "false", "0", "1", "2", "-1", "-0.0", "0.5", "1e308", "-1e308", "5e-324", "1e999", "NaN"),
    *(str(number) for number in (2**31, 2**53 + 1, 2**63, 2**64, -(2**63), 10**18, 10**400)),
    *("9" * 5_000, "1" * 20_000 + ".0"),
    *('""', '"0"', '"\\u0000"', '"\\ud800"', '"<U999999"', '"<U999"', '"|V8"', '"O"', '"<f2"', '">i4"', '"object"'),
    *('"matrix"', '"regressor"', '"log2"', '"label-wise-logistic"', '"' + "x" * 20_000 + '"'),
    *("[]", "{}", "[0]", "[0, 0]", "[[]]", "[null]", '["a", "a"]', '{"": 0}', '{"0": [1, 2]}', '{"0": []}'),
    *("[" * depth + "]" * depth for depth in (100, 900, 2_000, 30_000)),
    *('{"a":' * depth + "0" + "}" * depth for depth in (100, 900, 30_000)),
    *("[" + "0, " * 5_000 + "0]", '["' + "01" * 5_000 + '"]', "[" + "[], " * 5_000 + "[]]"),
)
MARK = "a place for a piece of JSON"

Place = tuple[Any, ...]  # the keys that lead to a value


def list_places(value: Any, here: Place = (), every: bool = False) -> Iterator[Place]:
    """Where the values of a file are; of a list only the first and the last, unless every one is asked for."""
    if here:
        yield here
    keys: Iterable[Any] = value if isinstance(value, dict) else ()
    if isinstance(value, list):
        keys = range(len(value)) if every else sorted({0, len(value) - 1}) if value else ()
    for key in keys:
        yield from list_places(value[key], (*here, key), every)


def find(content: Any, place: Place) -> Any:
    for key in place:
        content = content[key]
    return content


def put(text: str, place: Place, piece: str) -> str:
    """Replace one value of a file by a piece of JSON."""
    content = json.loads(text)
    find(content, place[:-1])[place[-1]] = MARK
    return json.dumps(content).replace(f'"{MARK}"', piece)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


scraps = st.one_of(
    st.binary(max_size=4),
    st.sampled_from([b"", b",", b'"', b"[", b"}", b"0", b"-", b"e9", b".5", b"\\", b"\xff", b'"version": 1,']),
)


@st.composite
def damaged_bytes(draw: st.DrawFn, text: str) -> bytes:
    """A file of which a few bytes are flipped, replaced, put in, repeated or cut off."""
    data = text.encode()
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(["flip", "replace", "insert", "repeat", "cut off"])):
            case "flip":
                flipped = bytes(byte ^ 1 << draw(st.integers(0, 7)) for byte in data[at : at + 1])
                data = data[:at] + flipped + data[at + 1 :]
            case "replace":
                data = data[:at] + draw(scraps) + data[at + draw(st.integers(1, 30)) :]
            case "insert":
                data = data[:at] + draw(scraps) + data[at:]
            case "repeat":
                data = data[:at] + data[max(0, at - draw(st.integers(1, 60))) :]
            case "cut off":
                data = data[:at] + draw(st.sampled_from([b"", b"}", b"}}", b"]}}", b'"}']))
    return data


plain_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 8), st.integers(), st.floats(), st.text(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=2), inner, max_size=3)),
    max_leaves=5,
)
numbers = st.one_of(st.integers(-3, 8), st.floats(allow_nan=False), st.sampled_from([2**31, 2**63, 10**18, 10**400]))


@st.composite
def damaged_values(draw: st.DrawFn, text: str) -> str:
    """A file of valid JSON with one to three values changed, removed, repeated, exchanged or misplaced."""
    content = json.loads(text)
    pieces: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        part = draw(st.sampled_from([*content, *["rules"] * len(content)]))  # half of the time the rules
        if part not in content:
            continue
        place = draw(st.sampled_from([*list_places(content[part], (part,), every=True)]))
        parent, key, value = find(content, place[:-1]), place[-1], find(content, place)
        match draw(st.sampled_from(["strange", "plain", "number", "all", "remove", "repeat", "exchange", "misplace"])):
            case "strange":
                parent[key] = f"{MARK} {len(pieces)}"
                pieces.append(draw(st.sampled_from(STRANGE)))
            case "plain":
                parent[key] = draw(plain_values)
            case "number":
                parent[key] = value + draw(st.sampled_from([-1, 1])) if is_number(value) else draw(numbers)
            case "all" if isinstance(value, list):
                parent[key] = [draw(numbers)] * len(value)
            case "repeat" if isinstance(value, list):
                value += value[: draw(st.integers(1, 3))]
            case "repeat" if isinstance(parent, list):
                parent.insert(key, value)
            case "exchange" if isinstance(parent, list):
                other = draw(st.integers(0, len(parent) - 1))
                parent[key], parent[other] = parent[other], parent[key]
            case "misplace":
                parent[key] = copy.deepcopy(find(content, draw(st.sampled_from([*list_places(content)]))))
            case _:
                del parent[key]
    damaged = json.dumps(content)
    for i, piece in enumerate(pieces):
        damaged = damaged.replace(f'"{MARK} {i}"', piece)
    return damaged


# --- Fuzzing ----------------------------------------------------------------------------------------------------------

every_model = pytest.mark.parametrize("name", ["version 1", *MODELS])


def few_or_many(few: int, many: int) -> Any:
    """So many cases for each model; the many take a minute or two in all."""
    return pytest.mark.parametrize(
        "cases", [pytest.param(few, id="few"), pytest.param(many, id="many", marks=pytest.mark.slow)]
    )


def fuzz(cases: int, damaged: st.SearchStrategy[Any], path: Path) -> None:
    @settings(max_examples=cases, suppress_health_check=list(HealthCheck))
    @given(damaged)
    def check(content: str | bytes) -> None:
        load_or_refuse(path, content)

    check()


@every_model
@few_or_many(8, 400)
def test_a_file_with_damaged_bytes_does_no_harm(name: str, cases: int, texts: dict[str, str], tmp_path: Path) -> None:
    fuzz(cases, damaged_bytes(texts[name]), tmp_path / "model.json")


@every_model
@few_or_many(16, 800)
def test_a_file_with_damaged_values_does_no_harm(name: str, cases: int, texts: dict[str, str], tmp_path: Path) -> None:
    fuzz(cases, damaged_values(texts[name]), tmp_path / "model.json")


@every_model
@few_or_many(10, 500)
def test_a_file_that_was_cut_off_is_refused(name: str, cases: int, texts: dict[str, str], tmp_path: Path) -> None:
    data = texts[name].encode()
    for end in range(0, len(data), max(1, len(data) // cases)):
        assert load_or_refuse(tmp_path / "model.json", data[:end]) is not None, end


@every_model
@few_or_many(20, 800)
def test_a_strange_value_does_no_harm_anywhere(name: str, cases: int, texts: dict[str, str], tmp_path: Path) -> None:
    every = [(place, piece) for place in list_places(json.loads(texts[name])) for piece in STRANGE]
    for place, piece in every[:: max(1, len(every) // cases)]:
        try:
            load_or_refuse(tmp_path / "model.json", put(texts[name], place, piece))
        except BaseException as error:
            error.add_note(f"with {piece:.50} at {place}")
            raise


@pytest.mark.parametrize("place", [("kind",), ("parameters", "head"), ("labels", "sparse"), ("training", "seed")])
@few_or_many(10, 300)
def test_a_value_nested_however_deeply_is_refused(
    place: Place, cases: int, texts: dict[str, str], tmp_path: Path
) -> None:
    for depth in range(800, 1_100, 300 // cases):  # where Python's patience ends
        piece = "[" * depth + "]" * depth
        assert load_or_refuse(tmp_path / "model.json", put(texts["numeric"], place, piece)) is not None


MANY = [f"{i:04}" for i in range(1_000)]
VERY_MANY = [f"{i:05}" for i in range(20_000)]
ABSURD: dict[str, dict[Place, Any]] = {
    "text of a million characters": {("labels", "dtype"): "<U999999"},
    "a label vector too long": {("label_vectors",): ["01" * 50_000]},
    "offsets beyond the end": {("rules", "head_offsets"): [0, 10**18, 10**18, 10**18, 10**18, 10**18]},
    "offsets that go round": {("rules", "condition_offsets"): [0, 1, 0, 1, 0, 1]},
    "offsets below zero": {("rules", "condition_offsets"): [0, -(10**18), 0, 0, 0, 0]},
    "a feature of a huge number": {("rules", "condition_features", 0): 10**18},
    "a label of a huge number": {("rules", "head_labels", 0): 10**18},
    "a label twice": {("rules", "head_labels", 1): 0},
    "categories of a feature far away": {("rules", "categories"): {str(10**18): ["a"]}},
    "a host of facts": {("training",): dict.fromkeys(map(str, range(20_000)))},
    "a version of many digits": {("version",): 10**4_000},
    "classes of more text than there is": {
        ("labels", "dtype"): "<U999",
        ("labels", "classes"): VERY_MANY,
        ("rules", "label_names"): VERY_MANY,
        ("label_vectors",): ["0" * len(VERY_MANY)],
        ("label_vector_counts",): [1],
    },
}
LARGE: dict[str, dict[Place, Any]] = {
    "many classes of long text": {
        ("labels", "dtype"): "<U999",
        ("labels", "classes"): MANY,
        ("rules", "label_names"): MANY,
        ("label_vectors",): ["0" * len(MANY)],
        ("label_vector_counts",): [1],
    },
    "many features": {("rules", "feature_names"): ["a", "kind", "n", *MANY], ("feature_names_in",): None},
    "a number of rules of many digits": {("parameters", "n_rules"): 10**4_000},
    "a long name": {("rules", "feature_names", 0): "x" * 20_000, ("feature_names_in", 0): "x" * 20_000},
}


def change(text: str, changes: dict[Place, Any]) -> str:
    content = json.loads(text)
    for place, value in changes.items():
        find(content, place[:-1])[place[-1]] = value
    return json.dumps(content)


@pytest.mark.parametrize("changes", ABSURD.values(), ids=ABSURD)
def test_an_absurd_size_is_refused_at_little_cost(
    changes: dict[Place, Any], texts: dict[str, str], tmp_path: Path
) -> None:
    assert load_or_refuse(tmp_path / "model.json", change(texts["classes"], changes)) is not None


@pytest.mark.parametrize("changes", LARGE.values(), ids=LARGE)
def test_a_large_size_that_is_true_costs_little(
    changes: dict[Place, Any], texts: dict[str, str], tmp_path: Path
) -> None:
    assert load_or_refuse(tmp_path / "model.json", change(texts["classes"], changes)) is None


FOREIGN = {
    "nothing": b"",
    "a space": b" ",
    "text": "Grüße\n".encode() * 100,
    "latin-1": "Grüße".encode("latin-1"),
    "bytes": bytes(range(256)) * 100,
    "zeros": bytes(1_000_000),
    "a pickle": pickle.dumps({"format": "pyboomer model"}),
    "an object without format": b"{}",
    "a list": b'["pyboomer model"]',
    "an object after another": b'{"format": "pyboomer model"} {}',
    "a key twice": b'{"format": "pyboomer model", "version": 2, "version": 1}',
    "another model": b'{"learner": {"gradient_booster": {}}, "version": [2, 0, 3]}',
    "a million opening brackets": b"[" * 1_000_000,
    "a million opening braces": b'{"a":' * 1_000_000,
    "a million digits": b'{"format": ' + b"1" * 1_000_000 + b"}",
    "a million decimals": b'{"format": 1.' + b"1" * 1_000_000 + b"}",
}
ENCODED = {
    "compressed": lambda text: gzip.compress(text.encode()),
    "with a byte order mark": lambda text: text.encode("utf-8-sig"),
    "in UTF-16": lambda text: text.encode("utf-16"),
    "in UTF-16 without a mark": lambda text: text.encode("utf-16-le"),
    "in UTF-32": lambda text: text.encode("utf-32"),
    "reversed": lambda text: text[::-1].encode(),
}


@pytest.mark.parametrize("data", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_file_is_refused(data: bytes, tmp_path: Path) -> None:
    assert "not a pyboomer model" in (load_or_refuse(tmp_path / "model.json", data) or "")


@pytest.mark.parametrize("encode", ENCODED.values(), ids=ENCODED)
def test_a_model_in_another_encoding_is_refused(encode: Any, texts: dict[str, str], tmp_path: Path) -> None:
    assert "not a pyboomer model" in (load_or_refuse(tmp_path / "model.json", encode(texts["numeric"])) or "")


def test_of_a_file_of_another_kind_only_the_beginning_is_read(tmp_path: Path) -> None:
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(10**10)  # takes no room on disk
    with pytest.raises(ValueError, match="huge is not a pyboomer model"):
        load_model(tmp_path / "huge")


def test_a_folder_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=tmp_path.name):
        load_model(tmp_path)


def test_a_model_of_any_layout_and_order_is_read(texts: dict[str, str], tmp_path: Path) -> None:
    for name, text in texts.items():
        content = json.loads(text)
        pretty = json.dumps(dict(sorted(content.items(), reverse=True)), indent=2, ensure_ascii=False)
        assert load_or_refuse(tmp_path / "model.json", pretty) is None, name


# --- What is wrong is said --------------------------------------------------------------------------------------------

FAULTS: list[tuple[str, dict[Place, Any], str]] = [
    ("numeric", {("version",): 4}, r"written by a newer version of pyboomer \(file version 4, this one reads 3\)"),
    ("numeric", {("kind",): "ranker"}, "unknown kind of model 'ranker': written by a newer version of pyboomer?"),
    ("numeric", {("parameters", "hue"): 1}, "unknown parameter 'hue': written by a newer version of pyboomer?"),
    ("numeric", {("parameters", "head"): "x" * 10_000}, "head must be .*, got 'xxx"),
    ("numeric", {("parameters",): []}, "'parameters' must be names with values"),
    ("numeric", {("loss", "name"): "squared-error"}, "loss must be .*, got 'squared-error'"),
    ("regressor", {("loss", "name"): "label-wise-logistic"}, "loss must be .*, got 'label-wise-logistic'"),
    ("regressor", {("parameters", "decode"): "loss"}, "unknown parameter 'decode'"),
    ("several targets", {("targets", "flat"): True}, "'targets' must say whether the one target is flat"),
    ("several targets", {("targets",): None}, "'targets' must say"),
    ("numeric", {("training",): None}, "facts of training must be at most 100 names with values"),
    ("numeric", {("training",): dict.fromkeys(map(str, range(101)))}, "facts of training must be at most 100 names"),
    ("numeric", {("training", "seed"): [1]}, "fact of training 'seed' must be text, a finite number or None"),
    ("numeric", {("training", "loss"): 1e999}, "Infinity is not a number"),
    ("numeric", {("rules", "label_names", 1): "y0"}, "label_names must be distinct"),
    (
        "nominal",
        {("rules", "feature_names"): ["a", "a", "n"], ("feature_names_in",): ["a", "a", "n"]},
        "'feature_names_in' must be distinct",
    ),
    ("nominal", {("rules", "categories", "1", 0): 1}, r"categories\[1\] must be all text or all numbers, and ascend"),
    ("nominal", {("rules", "categories", "1", 0): "y"}, r"categories\[1\] must be all text or all numbers, and ascend"),
    ("nominal", {("rules", "categories", "2", 3): 10**400}, r"categories\[2\] must be all text or all numbers"),
    ("classes", {("labels", "classes", 1): "a"}, "'classes' must ascend, and be values of dtype <U1"),
    ("classes", {("labels", "classes", 3): "ss"}, "'classes' must ascend, and be values of dtype <U1"),
    ("classes", {("labels", "classes", 3): "t"}, "'classes' must have the names of the labels"),
    ("classes", {("labels", "classes", 3): 1}, "'classes' must be a list of plain values, str for dtype <U1"),
    ("two classes", {("labels", "classes", 1): 2**63}, "'classes' must be within the range of dtype int64"),
    ("two classes", {("labels", "sparse"): "array"}, "labels cannot be 'array'"),
    ("two classes", {("label_vectors",): []}, "'label_vectors' must be a list of at least 1"),
    ("sparse labels", {("labels", "dtype"): "<f2"}, "labels cannot have dtype float16: scipy.sparse does not support"),
    ("numeric", {("labels", "dtype"): "<U3"}, "labels cannot have dtype <U3: only classes may be text"),
]


@pytest.mark.parametrize(("name", "changes", "message"), FAULTS)
def test_the_message_says_what_is_wrong(
    name: str, changes: dict[Place, Any], message: str, texts: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "model.json").write_text(change(texts[name], changes))
    with pytest.raises(ValueError, match=rf"model\.json.*{message}"):
        load_model(tmp_path / "model.json")


@pytest.mark.parametrize("name", MODELS)
def test_every_entry_is_needed(name: str, texts: dict[str, str], tmp_path: Path) -> None:
    for key in json.loads(texts[name]).keys() - {"names_given"}:  # which older files have not got
        content = json.loads(texts[name])
        del content[key]
        (tmp_path / "model.json").write_text(json.dumps(content))
        with pytest.raises(ValueError, match=rf"{key}.* is missing|not a pyboomer model|version must be"):
            load_model(tmp_path / "model.json")


# --- What a file holds ------------------------------------------------------------------------------------------------


def test_a_parameter_that_a_file_lacks_has_its_default(texts: dict[str, str], tmp_path: Path) -> None:
    content = json.loads(texts["nominal"])
    del content["parameters"]["decode"], content["parameters"]["l2"]
    (tmp_path / "model.json").write_text(json.dumps(content))
    model = load_model(tmp_path / "model.json")
    assert (model.decode, model.l2) == (BoomerClassifier().decode, BoomerClassifier().l2)


@pytest.mark.parametrize("name", MODELS)
def test_the_kind_and_the_facts_of_the_training_come_back(name: str, tmp_path: Path) -> None:
    model = fit(name)
    facts = {"examples": 24, "seconds": 0.1, "name": "ü", "stopped": True, "nothing": None, "one": np.float32(1)}
    model.training_facts_ = facts | {"loss": float("nan")}
    model.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert type(loaded) is type(model)
    assert loaded.training_facts_ == facts | {"loss": None}  # a number that JSON lacks
    table = MODELS[name][2]
    np.testing.assert_array_equal(loaded.get_fitted().read_scores(table), model.get_fitted().read_scores(table))


def test_a_fact_that_is_not_plain_cannot_be_saved(tmp_path: Path) -> None:
    model = fit("numeric")
    model.training_facts_ = {"curve": [1, 2]}
    with pytest.raises(ValueError, match="fact of training 'curve' must be text, a finite number or None"):
        model.save(tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


def test_a_parameter_that_no_file_may_hold_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="l2 must be"):
        fit("numeric").set_params(l2=-1).save(tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


def test_classes_of_long_text_and_long_numbers_come_back(tmp_path: Path) -> None:
    for classes in (np.array(["a", "b" * 2_000, "c"]), np.array([1, 2, 3], dtype=np.longdouble)):
        y = classes[Y.sum(axis=1) % 3]
        model = BoomerClassifier(n_rules=3, random_state=1).fit(X, y)
        model.save(tmp_path / "model.json")
        np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict(X), model.predict(X))


def test_a_model_without_known_label_vectors_comes_back(tmp_path: Path) -> None:
    gaps = Y.astype(float)
    gaps[np.arange(len(Y)), np.arange(len(Y)) % 3] = np.nan
    model = BoomerClassifier("label-wise-logistic", n_rules=3, random_state=1).fit(X, gaps)
    assert len(model.label_vectors_) == 0
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict(X), model.predict(X))


def test_saving_does_not_touch_the_umask_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> int:
        raise AssertionError("other threads would create files with it")

    monkeypatch.setattr(os, "umask", refuse)
    fit("numeric").save(tmp_path / "model.json")
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path: Path) -> None:
    fit("numeric").save(tmp_path / ("m" * 250 + ".json"))
    load_model(tmp_path / ("m" * 250 + ".json"))


# --- Earlier versions -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """Examples, and what the model of version 0.1.0, kept as a file and as a pickle, made of them."""
    return dict(json.loads((FOLDER / "model-expected.json").read_text(encoding="utf-8")))


def assert_as_expected(model: Any, expected: dict[str, Any]) -> None:
    table = pd.DataFrame(expected["examples"])
    np.testing.assert_allclose(model.decision_function(table), expected["scores"], rtol=1e-14)
    np.testing.assert_array_equal(model.predict(table), expected["labels"])
    assert model.predict(table).dtype == np.int8
    assert model.label_names_ == ("beach", "sailing", "museum")
    assert list(model.feature_names_in_) == list(table.columns)
    assert len(model.rules_) == model.n_rules == 12


def test_a_file_of_version_1_is_still_read(expected: dict[str, Any], tmp_path: Path) -> None:
    model = load_model(FOLDER / "model-v1.json")
    assert type(model) is BoomerClassifier
    assert model.training_facts_ == {}
    before = {"default_rule": "newton", "max_samples": None, "max_labels": None, "known_vectors": True}
    assert model.get_params().items() >= before.items()  # it goes on as it was learned
    assert_as_expected(model, expected)
    model.save(tmp_path / "model.json")
    assert_as_expected(load_model(tmp_path / "model.json"), expected)


def test_pickled_rules_that_lack_a_later_field_get_its_default() -> None:
    rules = fit("numeric").rules_
    state = {name: value for name, value in rules.__getstate__().items() if name != "condition_digits"}
    again = object.__new__(RuleEnsemble)
    again.__setstate__(state)
    assert again == rules
    assert not again.condition_digits.any()


def test_the_state_of_a_model_is_plain_values_so_that_others_can_store_it() -> None:
    """Such as skops, which MLflow uses: it calls `__reduce__` and `__getstate__`, and knows no mapping proxy."""
    model = fit("nominal")
    seen, strange = [model.__getstate__()], []
    while seen:
        value = seen.pop()
        if isinstance(value, dict):
            seen += value.values()
        elif isinstance(value, list | tuple):
            seen += value
        elif type(value).__module__.startswith("pyboomer") and not isinstance(value, Loss):
            seen.append(value.__getstate__())
            assert value.__reduce__()[0] is not partial
        elif not isinstance(value, str | int | float | np.ndarray | np.dtype | Loss | None):
            strange.append(value)
    assert strange == []


def test_skops_stores_a_model() -> None:
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    for name in ("nominal", "classes", "regressor"):
        model, table = fit(name), MODELS[name][2]
        stored = skops.dumps(model)
        again = skops.loads(stored, trusted=skops.get_untrusted_types(data=stored))
        assert again.rules_ == model.rules_
        assert not again.rules_.gain.flags.writeable
        np.testing.assert_array_equal(again.predict(table), model.predict(table))
