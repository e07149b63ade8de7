"""Data sets: labels are found as their files say, names lead to data, and what cannot be had is named."""

from __future__ import annotations

import os
import pickle
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from pyboomer.datasets import Dataset, list_datasets, load_dataset, load_meka, load_mulan, load_table, make_synthetic
from pyboomer.datasets.arff import ArffError
from pyboomer.datasets.dataset import category_codes
from pyboomer.datasets.mulan import read_label_names
from pyboomer.datasets.synthetic import KINDS

DATA = os.environ.get("PYBOOMER_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="PYBOOMER_DATA names no folder with benchmark data")

words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


def write(folder: Path, text: str, name: str = "file.arff") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def write_xml(folder: Path, *labels: str, name: str = "file.xml") -> Path:
    elements = "".join(f'<label name="{label}"/>' for label in labels)
    return write(folder, f'<labels xmlns="http://mulan.sourceforge.net/labels">{elements}</labels>', name)


# ---------------------------------------------------------------------------------------------- Mulan and MEKA

MULAN = (
    "@relation r\n@attribute y1 {0,1}\n@attribute size numeric\n@attribute 'it\\'s' {0,1}\n"
    "@attribute place {2,10,1}\n@attribute kind {red,green}\n@data\n"
)


def test_labels_follow_the_xml_and_features_the_arff(tmp_path: Path) -> None:
    arff = write(tmp_path, MULAN + "1,0.5,0,10,green\n0,?,1,?,red\n")
    data = load_mulan(arff, write_xml(tmp_path, "it's", "y1"))
    assert data.label_names == ("it's", "y1")
    assert data.feature_names == ("size", "place", "kind")
    np.testing.assert_array_equal(data.Y, [[0, 1], [1, 0]])
    np.testing.assert_array_equal(data.X, [[0.5, 10, 1], [np.nan, np.nan, 0]])
    assert data.Y.dtype == np.int8
    assert data.X.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert data.nominal_features == (1, 2)
    assert data.categories == {1: ("2", "10", "1"), 2: ("red", "green")}
    assert data.name == "file"
    assert repr(data) == "<Dataset 'file': 2 examples, 3 features, 2 labels>"


def test_sparse_numbers_stand_for_themselves_only_if_the_first_is_zero(tmp_path: Path) -> None:
    text = "@attribute a {0,5}\n@attribute b {3,5}\n@attribute y {0,1}\n@data\n{0 5,1 5}\n{0 ?}\n{1 3,2 1}\n"
    write_xml(tmp_path, "y")
    data = load_mulan(write(tmp_path, text))
    assert data.X.format == "csr"
    np.testing.assert_array_equal(data.X.toarray(), [[5, 1], [np.nan, 0], [0, 0]])
    frame = data.to_frame()
    assert frame["a"].astype(object).where(frame["a"].notna(), None).tolist() == [5, None, 0]
    assert frame["b"].tolist() == [5, 3, 3]


def test_an_absent_sparse_label_is_its_first_declared_value(tmp_path: Path) -> None:
    text = "@attribute a numeric\n@attribute y {1,0}\n@attribute z {0,1}\n@data\n{0 1}\n{1 0,2 1}\n{1 1}\n"
    write_xml(tmp_path, "y", "z")
    np.testing.assert_array_equal(load_mulan(write(tmp_path, text)).Y, [[1, 0], [0, 1], [1, 0]])


@pytest.mark.parametrize("declared", ["{0,1}", "{1,0}", "{0.0,1.0}", "numeric"])
def test_dense_labels_are_read_however_they_are_declared(declared: str, tmp_path: Path) -> None:
    write_xml(tmp_path, "y")
    text = f"@attribute a numeric\n@attribute y {declared}\n@data\n3,1\n4,0\n5,1.0\n"
    assert load_mulan(write(tmp_path, text)).Y[:, 0].tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("declared", "rows", "message"),
    [
        ("{0,1}", "1,1\n1,?\n", "file.arff, line 5: label 'y' is missing, but labels are 0 or 1"),
        ("numeric", "1,0.5\n", "file.arff, line 4: label 'y' is 0.5, but labels are 0 or 1"),
        ("numeric", "{1 ?}\n", "file.arff, line 4: label 'y' is missing"),
        ("{no,yes}", "1,no\n", "file.arff, line 2: label 'y' has the values {no, yes}, but labels are 0 or 1"),
        ("{0,1,2}", "1,0\n", "file.arff, line 2: label 'y' has the values {0, 1, 2}"),
    ],
)
def test_labels_other_than_0_and_1_are_named(declared: str, rows: str, message: str, tmp_path: Path) -> None:
    write_xml(tmp_path, "y")
    with pytest.raises(ArffError, match=re.escape(message)):
        load_mulan(write(tmp_path, f"@attribute a numeric\n@attribute y {declared}\n@data\n{rows}"))


def test_nested_labels_of_any_namespace_are_read_in_order(tmp_path: Path) -> None:
    inner = '<m:label name="a"><m:label name="b &amp; c"/></m:label><m:label name="d"/>'
    text = f'<m:labels xmlns:m="urn:x">{inner}</m:labels>'
    assert read_label_names(write(tmp_path, text, "l.xml")) == ["a", "b & c", "d"]


def test_labels_match_across_quotes_and_escapes(tmp_path: Path) -> None:
    text = (
        "@attribute f numeric\n@attribute TAG_musica {0,1}\n@attribute TAG_m\\'usica {0,1}\n"
        "@attribute TAG_dise\\~no {0,1}\n@attribute 'a b' {0,1}\n@data\n1,1,0,0,1\n"
    )
    write_xml(tmp_path, "TAG_m\\'usica", "TAG_musica", "TAG_dise\\~no", "'a b'")
    data = load_mulan(write(tmp_path, text))
    assert data.label_names == ("TAG_m'usica", "TAG_musica", "TAG_dise\\~no", "a b")
    assert data.Y.tolist() == [[0, 1, 0, 1]]


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        ('<labels><label name="z"/></labels>', "file.xml: label 'z' is not an attribute of file.arff"),
        ('<labels><label name="y1"/><label name="y1"/></labels>', "file.xml: label 'y1' is named twice"),
        ("<labels/>", "file.xml: there are no label elements in it"),
        ("<labels>\n<label/></labels>", "file.xml, line 2: a label has no name"),
        ('<labels>\n<label name="y1">', "file.xml, line 2: no element found"),
        ("", "file.xml, line 1: no element found"),
        (
            '<!DOCTYPE l [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n<labels><label name="&b;"/></labels>',
            "file.xml, line 1: document types are not allowed",
        ),
        (
            "<labels>" + "".join(f'<label name="{n}"/>' for n in ("y1", "size", "it's", "place", "kind")) + "</labels>",
            "file.arff: all 5 attributes are labels, no features are left",
        ),
    ],
)
def test_a_malformed_label_file_is_named(xml: str, message: str, tmp_path: Path) -> None:
    arff = write(tmp_path, MULAN + "1,0.5,0,10,green\n")
    with pytest.raises(ArffError, match=re.escape(message)):
        load_mulan(arff, write(tmp_path, xml, "file.xml"))


@pytest.mark.parametrize(("option", "labels"), [("-C 2", ("a", "b")), ("-C -1", ("c",)), ("-V x -C 1 -S", ("a",))])
def test_meka_counts_labels_from_either_end(option: str, labels: tuple[str, ...], tmp_path: Path) -> None:
    text = (
        f"@relation 'name: {option}'\n@attribute a {{0,1}}\n@attribute b {{0,1}}\n@attribute c {{0,1}}\n@data\n1,0,1\n"
    )
    for load in (load_meka, load_mulan):
        data = load(write(tmp_path, text), name="other")
        assert data.label_names == labels
        assert data.name == "other"


@pytest.mark.parametrize(
    ("relation", "message"),
    [
        ("plain", "file.arff: the name of the relation, 'plain', has no option -C"),
        ("'r: -C 4'", "file.arff: the relation says -C 4, but 2 attributes are declared"),
        ("'r: -C 0'", "file.arff: the relation says -C 0"),
        (f"'r: -C {'9' * 5000}'", "file.arff: the relation says -C 999"),
        ("'r: -C 2'", "file.arff: all 2 attributes are labels"),
        ("'r: -C 1-weka.filters.unsupervised.attribute.Reorder-R2,1'", "the attributes were reordered since"),
    ],
)
def test_a_relation_that_does_not_count_labels_is_named(relation: str, message: str, tmp_path: Path) -> None:
    text = f"@relation {relation}\n@attribute a {{0,1}}\n@attribute b {{0,1}}\n@data\n1,0\n"
    with pytest.raises(ArffError, match=re.escape(message)):
        load_meka(write(tmp_path, text))


def test_a_file_that_does_not_tell_its_labels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArffError, match=r"file.arff: which attributes are labels\? There is no file.xml beside it"):
        load_mulan(write(tmp_path, MULAN + "1,0.5,0,10,green\n"))


# ---------------------------------------------------------------------------------------------- the value


def test_frames_name_features_labels_and_categories(tmp_path: Path) -> None:
    write_xml(tmp_path, "it's", "y1")
    data = load_mulan(write(tmp_path, MULAN + "1,0.5,0,10,green\n0,?,1,?,red\n1,2,1,1,green\n"))
    frame = data.to_frame()
    assert list(frame.columns) == ["size", "place", "kind"]
    assert isinstance(frame["place"].dtype, pd.CategoricalDtype)
    assert list(frame["place"].cat.categories) == [2, 10, 1]
    assert frame["place"].cat.codes.tolist() == [1, -1, 2]
    assert frame["kind"].tolist() == ["green", "red", "green"]
    assert frame["size"].dtype == np.float64
    assert data.labels_frame().to_dict("list") == {"it's": [0, 1, 1], "y1": [1, 0, 1]}


def test_description_counts() -> None:
    X = np.array([[1.0, np.nan], [0.0, 2.0], [np.nan, 1.0], [0.0, 0.0]])
    Y = np.array([[1, 1], [0, 0], [1, 1], [1, 0]], dtype=np.int8)
    expected = {
        "examples": 4,
        "features": 2,
        "nominal features": 1,
        "labels": 2,
        "cardinality": 1.25,
        "density": 0.625,
        "distinct label vectors": 3,
        "missing values": 2,
    }
    for matrix in (X, sparse.csr_matrix(X)):
        assert Dataset(matrix, Y, ("a", "b"), ("y", "z"), (0,), {0: ("0", "1")}).describe() == expected


@given(names=st.lists(words | st.integers(-5, 5).map(str), min_size=1, unique=True), is_sparse=st.booleans())
def test_codes_of_categories_are_distinct_and_zero_is_the_first_if_sparse(names: list[str], is_sparse: bool) -> None:
    codes = category_codes(tuple(names), is_sparse=is_sparse)
    assert len(set(codes)) == len(names)
    assert not is_sparse or codes[0] == 0


def test_a_data_set_can_be_pickled() -> None:
    data = load_dataset("digits7")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(data)).X, data.X)


# ---------------------------------------------------------------------------------------------- the catalog


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has no data anywhere."""
    monkeypatch.delenv("PYBOOMER_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_digits7_shows_ten_label_vectors() -> None:
    data = load_dataset("digits7")
    assert data.X.shape == (1797, 64)
    assert data.label_names == tuple("abcdefg")
    assert data.feature_names[:9:8] == ("pixel_0_0", "pixel_1_0")
    assert data.describe()["distinct label vectors"] == 10
    assert data.Y[1].tolist() == [0, 1, 1, 0, 0, 0, 0]  # the second image shows a one


def test_folders_are_searched_in_order(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [empty_home / "given", empty_home / "named", empty_home / "cache" / "pyboomer"]
    for n, folder in enumerate(folders):
        folder.mkdir(parents=True)
        write(folder, f"@relation 'r: -C -1'\n@attribute a numeric\n@attribute y {{0,1}}\n@data\n{n},1\n", "toy.arff")
    monkeypatch.setenv("PYBOOMER_DATA", str(folders[1]))
    assert load_dataset("toy", data_home=folders[0]).X[0, 0] == 0
    assert load_dataset("toy").X[0, 0] == 1
    monkeypatch.delenv("PYBOOMER_DATA")
    assert load_dataset("toy").X[0, 0] == 2


def test_train_and_test_files_are_joined_in_this_order(empty_home: Path) -> None:
    head = "@attribute a numeric\n@attribute b {7,9}\n@attribute y {0,1}\n@data\n"
    write(empty_home, head + "1,9,1\n", "toy-train.arff")
    write(empty_home, head + "{0 2}\n", "toy-test.arff")
    write_xml(empty_home, "y", name="toy.xml")
    data = load_dataset("toy", data_home=empty_home)
    assert data.name == "toy"
    np.testing.assert_array_equal(data.X.toarray(), [[1, 1], [2, 0]])
    assert load_dataset("toy-train", data_home=empty_home).X.tolist() == [[1, 9]]
    assert "toy" in list_datasets(empty_home)
    assert "toy-train" not in list_datasets(empty_home)
    write(empty_home, head.replace("{7,9}", "numeric") + "1,2,0\n", "toy-test.arff")
    with pytest.raises(ArffError, match=r"toy-test.arff: the attributes are not those of toy-train.arff"):
        load_dataset("toy", data_home=empty_home)


@pytest.mark.usefixtures("empty_home")
def test_without_files_the_built_in_sets_are_listed() -> None:
    assert list_datasets() == ["digits7", *sorted(f"synthetic-{kind}" for kind in KINDS)]
    assert load_dataset("synthetic-marginal-dependence").X.shape == (10000, 2)


@pytest.mark.usefixtures("empty_home")
def test_an_unknown_name_suggests_a_known_one() -> None:
    with pytest.raises(ValueError, match=r"there is no data set 'Emotion': Emotion.arff is not in .*mean 'emotions'\?"):
        load_dataset("Emotion")
    with pytest.raises(ValueError, match=r"name must be the name of a data set, got '\.\./x'"):
        load_dataset("../x")


def test_a_data_home_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="data_home is not a folder"):
        load_dataset("emotions", data_home=tmp_path / "nowhere")


def test_without_a_network_the_error_says_what_was_tried(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(**_: Any) -> None:
        raise URLError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", unreachable)
    with pytest.raises(FileNotFoundError) as caught:
        load_dataset("emotions", data_home=empty_home)
    message = str(caught.value)
    assert f"emotions.arff is not in {empty_home} or {empty_home / 'cache' / 'pyboomer'}" in message
    assert "no network" in message
    assert "data_home= or $PYBOOMER_DATA" in message
    assert "\n" not in message


@pytest.mark.parametrize(("no", "yes"), [("FALSE", "TRUE"), ("0", "1"), (0.0, 1.0), (False, True)])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
def test_openml_targets_become_labels(
    no: Any, yes: Any, convert: Any, empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {}

    def fetch(**options: Any) -> SimpleNamespace:
        asked.update(options)
        return SimpleNamespace(
            data=convert(np.array([[0.5, 1.0], [0.0, 0.0]])),
            target=np.array([[yes, no], [no, no]], dtype=object),
            feature_names=["f", "g"],
            target_names=["y", "z"],
            categories={"g": ["0", "3"], "y": [no, yes]},
        )

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    data = load_dataset("emotions")
    assert asked["data_id"] == 40589
    assert Path(asked["data_home"]) == empty_home / "cache" / "pyboomer"
    assert data.Y.tolist() == [[1, 0], [0, 0]]
    assert data.label_names == ("y", "z")
    assert data.categories == {1: ("0", "3")}
    X = data.X.toarray() if sparse.issparse(data.X) else data.X
    assert X.tolist() == [[0.5, 3], [0, 0]]


@pytest.mark.usefixtures("empty_home")
def test_openml_targets_that_are_no_labels_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    bunch = SimpleNamespace(
        data=np.zeros((1, 1)), target=np.array([["maybe"]]), feature_names=["f"], target_names=["y"], categories=None
    )
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: bunch)
    with pytest.raises(ValueError, match="yeast on OpenML: label 'y' is 'maybe'"):
        load_dataset("yeast")


# ---------------------------------------------------------------------------------------------- synthetic data


@pytest.mark.parametrize("kind", KINDS)
def test_synthetic_data_has_the_noise_it_is_given(kind: str) -> None:
    noisy, clean = make_synthetic(kind, n=4000), make_synthetic(kind, n=4000, p=0)
    np.testing.assert_array_equal(noisy.X, clean.X)
    flipped = noisy.Y != clean.Y
    assert flipped.mean() == pytest.approx(0.1, abs=0.02)
    smallest_subset_loss = 0.1 if kind == "conditional-dependence" else 1 - 0.9**6
    assert flipped.any(axis=1).mean() == pytest.approx(smallest_subset_loss, abs=0.03)
    np.testing.assert_array_equal(make_synthetic(kind, n=50, p=1).Y, 1 - make_synthetic(kind, n=50, p=0).Y)


def test_labels_of_synthetic_data_share_what_their_kind_says() -> None:
    assert make_synthetic("marginal-independence", n=10, m=3).X.shape == (10, 6)
    shared = make_synthetic("marginal-dependence", n=200, p=0).Y
    assert (shared == shared[:, :1]).all()
    own = make_synthetic("conditional-dependence", n=200, p=0).Y
    assert not (own == own[:, :1]).all()


def test_synthetic_data_leaves_the_global_generator_alone() -> None:
    np.random.seed(3)
    expected = np.random.random()
    np.random.seed(3)
    make_synthetic("marginal-independence", n=10)
    assert np.random.random() == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "other"}, "kind must be one of 'marginal-independence', 'marginal-dependence', 'conditional-depend"),
        ({"n": 0}, "n must be an integer of at least 1, got 0"),
        ({"n": 2.5}, "n must be an integer of at least 1, got 2.5"),
        ({"m": 0}, "m must be an integer of at least 1, got 0"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"p": 1.5}, r"p must be in \[0, 1\], got 1.5"),
        ({"p": float("nan")}, r"p must be in \[0, 1\], got nan"),
    ],
)
def test_bad_parameters_of_synthetic_data_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_synthetic(**{"kind": "marginal-dependence", **options})


# ---------------------------------------------------------------------------------------------- the real files

SHAPES = {
    "birds": (645, 260, 19),
    "emotions": (593, 72, 6),
    "enron": (1702, 1001, 53),
    "llog": (1460, 1004, 75),
    "medical": (1954, 1909, 45),
    "scene": (2407, 294, 6),
    "slashdot": (3782, 3125, 20),
    "yeast": (2417, 103, 14),
    "cal500": (502, 68, 174),
    "bibtex": (7395, 1836, 159),
    "delicious": (16105, 500, 983),
    "synthetic-marginal-independence": (10000, 12, 6),
    "synthetic-marginal-dependence": (10000, 2, 6),
    "synthetic-conditional-dependence": (10000, 2, 6),
}


@needs_data
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (shape[2] > 100)) for name, shape in SHAPES.items()]
)
def test_benchmark_data_has_its_published_shape(name: str) -> None:
    if name not in list_datasets():
        pytest.skip(f"{name} is not in the folder that PYBOOMER_DATA names")
    start = time.process_time()  # not on the wall: others may be at work
    data = load_dataset(name)
    assert time.process_time() - start < 5
    assert (*data.X.shape, data.Y.shape[1]) == SHAPES[name]
    assert data.Y.shape[0] == data.X.shape[0]
    assert len(set(data.label_names)) == data.Y.shape[1]
    assert set(np.unique(data.Y)) == {0, 1}


@needs_data
def test_labels_of_yeast_follow_its_xml() -> None:
    if "yeast" not in list_datasets():
        pytest.skip("yeast is not in the folder that PYBOOMER_DATA names")
    assert load_dataset("yeast").label_names[2:5] == ("Class3", "Class6", "Class4")


@needs_data
@pytest.mark.parametrize("kind", KINDS)
def test_synthetic_data_equals_the_published_files_bit_for_bit(kind: str) -> None:
    path = Path(DATA or "") / f"synthetic-{kind}.arff"
    if not path.exists():
        pytest.skip(f"{path.name} is not in the folder that PYBOOMER_DATA names")
    published, made = load_meka(path), make_synthetic(kind)
    np.testing.assert_array_equal(made.X, published.X)
    np.testing.assert_array_equal(made.Y, published.Y)
    assert made.label_names == published.label_names


def test_a_parquet_file_with_damaged_metadata_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_parquet(path: Path) -> pd.DataFrame:  # noqa: ARG001
        raise KeyError("pandas_type")  # as the reader does, which looks for it in the metadata

    monkeypatch.setattr(pd, "read_parquet", read_parquet)
    with pytest.raises(ValueError, match=r"table\.parquet is damaged \(KeyError"):
        load_table(tmp_path / "table.parquet")
