"""The page of a model, without a browser: what is in it, that no name can end it, and the commands that write it."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.exceptions import NotFittedError

import pyboomer
from pyboomer import BoomerClassifier, BoomerRegressor, Loss, RuleEnsemble
from pyboomer.cli import main
from pyboomer.datasets import Dataset
from pyboomer.editing import replace_rules
from pyboomer.explore.page.html import SCRIPTS, write_page
from pyboomer.explore.page.packing import pack
from pyboomer.explore.page.summary import draw_rows, find_image, summarise
from pyboomer.losses import BUILT_IN

ROOT = Path(__file__).parents[2]
ASSETS, DOCS = ROOT / "src" / "pyboomer" / "explore" / "page" / "assets", ROOT / "docs" / "how-to"


def unpack(packed: dict[str, str]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed["data"]), dtype=f"<{packed['type']}").astype(np.float64)


def read_summary(page: str) -> Any:
    found = re.findall(r'<script type="application/json" id="summary">(.*?)</script>', page, flags=re.DOTALL)
    assert len(found) == 1
    return json.loads(found[0])


def score_examples(summary: Any) -> np.ndarray:
    """The scores that follow from a summary alone: what the scripts of a page do, in a few lines of NumPy."""
    rules = {name: unpack(packed) for name, packed in summary["rules"].items()}
    columns = [unpack(packed) for packed in summary["examples"]["columns"]]
    scores = np.zeros((len(summary["examples"]["rows"]), len(summary["labels"]["names"])))
    bodies, heads = rules["condition_offsets"].astype(int), rules["head_offsets"].astype(int)
    meets: list[Callable[[np.ndarray, float], np.ndarray]] = [
        lambda x, v: x <= v,
        lambda x, v: x > v,
        lambda x, v: x == v,
        lambda x, v: (x != v) & (x == x),
    ]
    for t in range(len(rules["coverage"])):
        covered = np.ones(len(scores), dtype=bool)
        for c in range(bodies[t], bodies[t + 1]):
            operator, value = int(rules["condition_operators"][c]), rules["condition_values"][c]
            covered &= meets[operator](columns[int(rules["condition_features"][c])], value)
        own = slice(heads[t], heads[t + 1])
        scores[np.ix_(covered, rules["head_labels"][own].astype(int))] += rules["head_scores"][own]
    return scores


def make_data(n: int = 80) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Songs with numbers, words and missing values, and three labels."""
    rng = np.random.default_rng(1)
    songs = pd.DataFrame(
        {"tempo": rng.normal(120, 25, n), "style": rng.choice(["jazz", "rock", "folk"], n), "live": rng.random(n) < 0.3}
    )
    calm, raw = songs["tempo"] < 115, songs["live"] & (songs["style"] == "rock")
    moods = pd.DataFrame({"calm": calm, "party": ~calm & (songs["style"] != "folk"), "raw": raw}).astype(int)
    songs.loc[rng.random(n) < 0.2, "tempo"] = np.nan
    songs.loc[rng.random(n) < 0.2, "style"] = None
    return songs, moods


@pytest.fixture(scope="module")
def songs() -> tuple[pd.DataFrame, pd.DataFrame]:
    return make_data()


@pytest.fixture(scope="module")
def model(songs: tuple[pd.DataFrame, pd.DataFrame]) -> BoomerClassifier:
    return BoomerClassifier(n_rules=30, random_state=1).fit(*songs)


# --- Numbers ----------------------------------------------------------------------------------------------------------


@given(arrays.arrays(np.float64, st.integers(0, 20), elements=st.floats(width=64)))
def test_packed_numbers_are_the_numbers(numbers: np.ndarray) -> None:
    np.testing.assert_array_equal(unpack(pack(numbers)), numbers)


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [([0, 255], "u1"), ([-1, 5], "i1"), ([256], "u2"), ([70000], "u4"), ([0.5, np.nan], "f4"), ([0.1], "f8")],
)
def test_numbers_take_the_smallest_type_that_is_exact(numbers: list[float], kind: str) -> None:
    assert pack(np.array(numbers))["type"] == kind


def test_scores_follow_exactly_from_the_summary(songs: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    X, Y = songs
    for head in ("single", "multi"):
        clf = BoomerClassifier(n_rules=30, head=head, random_state=1).fit(X, Y)
        summary = summarise(clf, X, Y, max_examples=50)
        rows = summary["examples"]["rows"]
        np.testing.assert_array_equal(score_examples(summary), clf.decision_function(X.iloc[rows]))


def test_sparse_data_with_nominal_features_are_scored_alike() -> None:
    rng = np.random.default_rng(2)
    X = sp.random_array((60, 12), density=0.3, rng=rng, format="csr")
    X.data = np.ceil(X.data * 4) - 1  # some of the zeros are stored
    Y = np.asarray((X[:, [0, 1]].toarray() > 1) | (X[:, [2, 3]].toarray() == 2)).astype(int)
    clf = BoomerClassifier(n_rules=40, categorical_features=[0, 2, 5], random_state=1).fit(X, Y)
    summary = summarise(clf, X, Y)
    np.testing.assert_array_equal(score_examples(summary), clf.decision_function(X))
    dense = summarise(clf, X.toarray(), Y)
    assert dense["features"] == summary["features"]
    assert dense["examples"] == summary["examples"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["birds", "cal500", "emotions", "enron", "llog", "medical", "scene", "slashdot", "yeast"]
)
def test_scores_on_benchmark_data_follow_from_the_summary(benchmark_data: Callable[[str], Dataset], name: str) -> None:
    ds = benchmark_data(name)
    nominal = list(ds.nominal_features) or None
    clf = BoomerClassifier(n_rules=300, categorical_features=nominal, random_state=1).fit(ds.X, ds.Y)
    page = clf.to_html(X=ds.X, y=ds.Y)
    summary = read_summary(page)
    rows = summary["examples"]["rows"]
    assert 100 <= len(rows) <= 200  # those of slashdot take more room
    assert len(page) < 5e6
    np.testing.assert_array_equal(score_examples(summary), clf.decision_function(ds.X[rows]))


def test_histograms_count_all_examples(songs: tuple[pd.DataFrame, pd.DataFrame], model: BoomerClassifier) -> None:
    X, Y = songs
    features = summarise(model, X, Y, max_examples=5)["features"]
    for name, histogram in zip(features["names"], features["histograms"], strict=True):
        counts = histogram["counts"]
        present = sum(counts.values() if isinstance(counts, dict) else counts) + histogram.get("others", 0)
        assert histogram["missing"] == X[name].isna().sum()
        assert present + histogram["missing"] == len(X)
    style = features["names"].index("style")
    assert features["histograms"][style]["counts"][0] == (X["style"] == "folk").sum()
    assert features["categories"][style] == {0: "folk", 1: "jazz", 2: "rock"}


@pytest.mark.parametrize("value", [2.0**53, -(2.0**53), 2.0**60, 1e300])
def test_histograms_count_numbers_of_any_size(value: float) -> None:
    X = np.array([[0.0], [1.0], [value], [value]])
    model = BoomerClassifier(n_rules=5, random_state=1).fit(X, [[0, 1], [1, 0], [1, 1], [1, 1]])
    for table in (X, X[2:]):
        (histogram,) = summarise(model, table)["features"]["histograms"]
        assert sum(histogram["counts"]) == len(table)


@pytest.mark.filterwarnings("ignore:feature 'id' is nominal")
def test_categories_that_nothing_mentions_are_left_out() -> None:
    X = pd.DataFrame({"id": [f"item {i}" for i in range(500)], "x": np.arange(500.0)})
    clf = BoomerClassifier(n_rules=5, random_state=1).fit(X, (X[["x"]] > 250).astype(int).assign(z=1))
    summary = summarise(clf, X)
    for feature, kept in summary["features"]["categories"].items():
        assert summary["features"]["names"][feature] == "id"
        assert len(kept) <= 40


# --- What is shown ----------------------------------------------------------------------------------------------------


def test_rows_are_drawn_once_and_for_all() -> None:
    rows = draw_rows(1000, 30)
    assert len(set(rows.tolist())) == 30
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows, draw_rows(1000, 30))
    np.testing.assert_array_equal(draw_rows(4, 30), np.arange(4))


def test_examples_of_very_many_features_are_fewer() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3000))
    Y = (X[:, :40] > 0).astype(int)
    clf = BoomerClassifier(n_rules=1200, random_state=1, max_conditions=4, learning_rate=1.0).fit(X, Y)
    summary = summarise(clf, X, Y)
    mentioned = len(summary["features"]["names"])
    assert mentioned > 1500
    assert 50 < len(summary["examples"]["rows"]) < 80
    assert sum(len(column["data"]) for column in summary["examples"]["columns"]) < 1.7e6


def test_unknown_labels_and_missing_values_are_told(songs: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    X, Y = songs
    known = Y.astype(float)
    known.iloc[::3, 0] = np.nan
    clf = BoomerClassifier(n_rules=20, random_state=1).fit(X, known)
    summary = summarise(clf, X, known)
    truth = unpack(summary["examples"]["truth"]).reshape(-1, 3)
    np.testing.assert_array_equal(truth == 2, known.isna())
    np.testing.assert_array_equal(truth[truth != 2], known.to_numpy()[known.notna()])
    assert summary["data"]["unknown_labels"] == known.isna().to_numpy().sum()
    assert summary["data"]["missing_values"] == X.isna().to_numpy().sum()


def test_curves_end_where_the_model_is(songs: tuple[pd.DataFrame, pd.DataFrame], model: BoomerClassifier) -> None:
    X, Y = songs
    curves = {curve["name"]: curve for curve in summarise(model, X, Y)["curves"]}
    wrong = model.predict(X) != Y.to_numpy()
    assert curves["Hamming loss"]["values"][-1] == pytest.approx(wrong.mean())
    assert curves["subset 0/1 loss"]["values"][-1] == pytest.approx(wrong.any(axis=1).mean())
    assert curves["mean loss"]["values"][-1] == pytest.approx(model.training_facts_["loss"])
    assert curves["mean loss"]["n_rules"][-1] == 30
    alone = summarise(model)["curves"]
    assert [curve["name"] for curve in alone] == ["share of the gain"]
    assert alone[0]["values"][-1] == pytest.approx(1)


def test_the_validation_curve_is_among_the_curves(songs: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    clf = BoomerClassifier(n_rules=60, early_stopping=True, random_state=1).fit(*songs)
    held_out = summarise(clf)["curves"][-1]
    assert held_out["name"] == "loss, held out in training"
    assert held_out["values"] == [-score for _, score in clf.validation_curve_]


def test_parameters_that_were_chosen_are_marked(model: BoomerClassifier) -> None:
    changed = {p["name"]: p["value"] for p in summarise(model)["parameters"] if p["changed"]}
    assert changed == {"n_rules": "30", "random_state": "1"}


def test_pictures_are_known_by_the_names_of_their_pixels() -> None:
    names = tuple(f"pixel_{r}_{c}" for r in range(3) for c in range(5))
    assert find_image(names) == {"height": 3, "width": 5}
    assert find_image(names[1:]) is None
    assert find_image((*names[1:], names[0])) is None
    assert find_image(("x0", "pixel_0_0")) is None


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, "sum"),
        ({"loss": "example-wise-logistic"}, "loss"),
        ({"loss": "label-wise-logistic"}, "sign"),
        ({"loss": "example-wise-squared-hinge"}, "loss"),
        ({"known_vectors": False}, "sign"),
        ({"decode": "subset"}, "sum"),
        ({"decode": "top-2"}, "rank"),
        ({"decode": 0.3}, "cuts"),
        ({"decode": [0.3, 0.5, 0.9]}, "cuts"),
        ({"decode": "hamming"}, "cuts"),
        ({"decode": "f1"}, "f1"),
        ({"loss": "example-wise-logistic", "decode": "hamming"}, "mean"),
        ({"loss": "label-wise-logistic", "decode": "hamming"}, "sign"),
    ],
)
def test_decodings_have_a_recipe(songs: tuple[pd.DataFrame, pd.DataFrame], options: dict[str, Any], kind: str) -> None:
    clf = BoomerClassifier(n_rules=5, random_state=1, **options).fit(*songs)
    decoding = summarise(clf)["decoding"]
    assert decoding["kind"] == kind
    assert decoding["note"] is None


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"decode": "f1", "known_vectors": False}, "sign"),
        ({"decode": "f1", "calibration": "isotonic"}, "sum"),
        ({"decode": "hamming", "calibration": "isotonic"}, "sum"),
        ({"decode": "subset", "calibration": "isotonic", "loss": "example-wise-logistic"}, "loss"),
    ],
)
def test_decodings_without_a_recipe_are_told(
    songs: tuple[pd.DataFrame, pd.DataFrame], options: dict[str, Any], kind: str
) -> None:
    clf = BoomerClassifier(n_rules=5, random_state=1, **options).fit(*songs)
    decoding = summarise(clf)["decoding"]
    assert decoding["kind"] == kind
    assert f"decode='{options['decode']}'" in decoding["note"]


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_page_says_what_a_built_in_loss_means(name: str) -> None:
    script = Path(pyboomer.__file__).parent / "explore" / "page" / "assets" / "overview.js"
    meanings = script.read_text(encoding="utf-8").split("const MEANINGS = {")[1].split("};")[0]
    assert re.search(rf'^  "?{name}"?:', meanings, flags=re.MULTILINE)


def test_a_loss_of_the_users_own_is_told(songs: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    from pyboomer.losses import example_wise_logistic

    own = Loss("<my> loss", "diagonal-minus-outer", example_wise_logistic.value, example_wise_logistic.derivatives)
    clf = BoomerClassifier(own, n_rules=5, random_state=1).fit(*songs)
    summary = summarise(clf, *songs)
    assert summary["decoding"]["kind"] == "sign"
    assert "<my> loss" in summary["decoding"]["note"]
    assert "<my>" not in write_page(summary)


# --- The page ---------------------------------------------------------------------------------------------------------


def make_large_model() -> tuple[BoomerClassifier, np.ndarray, np.ndarray]:
    """A thousand rules of fifty scores each, all with as many digits as a number can have."""
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(400, 100)), rng.integers(0, 2, size=(400, 50))
    clf = BoomerClassifier(n_rules=2, random_state=1).fit(X, Y)
    rules = clf.rules_
    n, conditions, labels = 1000, 5, 50
    large = RuleEnsemble(
        condition_offsets=np.arange(n + 1) * conditions,
        condition_features=rng.integers(0, 100, n * conditions),
        condition_operators=rng.integers(0, 2, n * conditions),
        condition_values=rng.normal(size=n * conditions),
        head_offsets=np.arange(n + 1) * labels,
        head_labels=np.tile(np.arange(labels), n),
        head_scores=rng.normal(size=n * labels),
        coverage=rng.integers(1, 400, n),
        gain=rng.random(n),
        schema=rules.schema,
        label_names=rules.label_names,
    )
    return replace_rules(clf, large), X, Y


def test_a_thousand_rules_about_fifty_labels_take_less_than_five_megabytes() -> None:
    clf, X, Y = make_large_model()
    page = clf.to_html(X=X, y=Y)
    assert len(page.encode("utf-8")) < 5e6
    assert len(read_summary(page)["examples"]["rows"]) == 200


def test_hostile_names_stay_within_the_json(tmp_path: Path, hostile_names: list[str]) -> None:
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.normal(size=(40, len(hostile_names))), columns=hostile_names)
    X["kind"] = rng.choice(hostile_names, 40)
    Y = pd.DataFrame(rng.integers(0, 2, size=(40, len(hostile_names))), columns=[name + "!" for name in hostile_names])
    clf = BoomerClassifier(n_rules=60, random_state=1).fit(X, Y)
    page = clf.to_html(tmp_path / "page.html", X=X, y=Y, title=hostile_names[1] + "\ud800")  # half a character
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    template = (ASSETS / "page.html").read_text(encoding="utf-8")
    for tag in ("<script", "</script", "<!--", "<img", "<style", "<meta"):
        assert page.lower().count(tag) == template.lower().count(tag)
    text = re.search(r'id="summary">(.*?)</script>', page, flags=re.DOTALL)
    assert text is not None
    assert not set("<>&\u2028\u2029") & set(text[1])
    summary = read_summary(page)
    assert set(summary["features"]["names"]) <= {*hostile_names, "kind"}
    assert summary["labels"]["names"] == [name + "!" for name in hostile_names]
    assert summary["title"] == hostile_names[1] + "\ud800"


def test_the_policy_allows_the_scripts_and_styles_of_the_page_only(model: BoomerClassifier) -> None:
    page = model.to_html()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    for tag, directive in ("script", "script-src"), ("style", "style-src"):
        (source,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(source.encode("utf-8")).digest()).decode("ascii")
        assert f"{directive} 'sha256-{digest}'" in policy[1]


def test_scripts_make_no_markup_of_text_and_fetch_nothing() -> None:
    assert {*SCRIPTS, "page.css", "page.html"} == {path.name for path in ASSETS.iterdir()}
    banned = (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
        "fetch(",
        "import(",
    )
    for name in SCRIPTS:
        source = (ASSETS / name).read_text(encoding="utf-8")
        assert not [word for word in (*banned, "</script", "<!--", "XMLHttpRequest") if word in source]
        # the one address in it is a name: that of SVG
        assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", source)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [[1, 0, 0]]}, "y is given without X"),
        ({"max_examples": -1}, "max_examples must be a whole number of at least 0, got -1"),
        ({"max_examples": True}, "max_examples must be"),
        ({"max_examples": 2.5}, "max_examples must be"),
    ],
)
def test_what_makes_no_page_is_refused(model: BoomerClassifier, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.to_html(**arguments)


def test_data_that_do_not_fit_are_refused(model: BoomerClassifier, songs: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    X, Y = songs
    with pytest.raises(ValueError, match="X has 80 examples, but y has 10"):
        model.to_html(X=X, y=Y[:10])
    with pytest.raises(ValueError, match="labels, but the model was learned from 3"):
        model.to_html(X=X, y=Y[["calm", "raw"]])
    with pytest.raises(NotFittedError):
        BoomerClassifier().to_html()


# --- Commands ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def explore(*arguments: str) -> Any:
    """Run `boomer explore model.json -o page.html` and read what is in the page."""
    assert main(["explore", "model.json", "-o", "page.html", *arguments]) == 0
    return read_summary(Path("page.html").read_text(encoding="utf-8"))


def test_explore_needs_no_data(folder: Path, model: BoomerClassifier, capsys: pytest.CaptureFixture[str]) -> None:
    model.save(folder / "model.json")
    summary = explore()
    assert summary["examples"] is None
    assert summary["title"] == "model.json"
    assert "Wrote page.html" in capsys.readouterr().out


def test_explore_finds_labels_in_a_table_by_name(
    folder: Path, model: BoomerClassifier, songs: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    X, Y = songs
    model.save(folder / "model.json")
    Y = Y.astype(float)
    Y.iloc[::2] = np.nan  # empty cells
    pd.concat([X, Y], axis=1).to_csv("songs.csv", index=False)
    summary = explore("--data", "songs.csv", "--max-examples", "30")
    assert summary["title"] == "model.json on songs.csv"
    assert len(summary["examples"]["rows"]) == 30
    assert summary["data"]["unknown_labels"] == 120
    np.testing.assert_array_equal(score_examples(summary), model.decision_function(X.iloc[summary["examples"]["rows"]]))
    X.to_csv("unlabelled.csv", index=False)
    assert explore("--data", "unlabelled.csv")["examples"]["truth"] is None


def test_explore_takes_what_evaluate_takes(folder: Path) -> None:
    assert main(["train", "digits7", "-o", "model.json", "--n-rules", "10", "--random-state", "1"]) == 0
    summary = explore("--data", "digits7")
    assert summary["segments"] is True
    assert summary["image"] == {"height": 8, "width": 8}
    assert len(summary["features"]["names"]) == 64
    header = "@relation songs\n@attribute tempo numeric\n@attribute fast {0,1}\n@data\n"
    rows = "\n".join(f"{i},{int(i > 20)}" for i in range(40))
    (folder / "songs.arff").write_text(header + rows, encoding="utf-8")
    (folder / "songs.xml").write_text('<labels><label name="fast"></label></labels>', encoding="utf-8")
    assert main(["train", "songs.arff", "-o", "model.json", "--n-rules", "5"]) == 0
    assert explore("--data", "songs.arff", "--xml", "songs.xml")["labels"]["relevant"] == [19]


@pytest.mark.usefixtures("folder")
def test_explore_shows_regressors_and_classes() -> None:
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(50, 3)), columns=["a", "b", "c"])
    targets = pd.DataFrame({"u": X["a"] * 2, "v": X["b"] - 1})
    pd.concat([X, targets], axis=1).to_csv("data.csv", index=False)
    BoomerRegressor(n_rules=20, random_state=1).fit(X, targets).save("model.json")
    summary = explore("--data", "data.csv")
    assert summary["kind"] == "numbers"
    np.testing.assert_allclose(unpack(summary["examples"]["truth"]).reshape(-1, 2), targets)
    animals = np.where(X["a"] > 0, "cat", "dog")
    X.assign(animal=animals).to_csv("data.csv", index=False)
    BoomerClassifier(n_rules=20, random_state=1).fit(X, animals).save("model.json")
    summary = explore("--data", "data.csv", "--labels", "animal")
    assert summary["kind"] == "classes"
    assert summary["decoding"]["classes"] == ["cat", "dog"]
    np.testing.assert_array_equal(unpack(summary["examples"]["truth"]), animals == "dog")
    assert explore("--data", "data.csv")["examples"]["truth"] is None


@pytest.mark.usefixtures("folder")
def test_the_code_of_the_documentation_runs() -> None:
    text = (DOCS / "explore.md").read_text(encoding="utf-8")
    namespace: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        exec(compile(block, "explore.md", "exec"), namespace)
    summary = read_summary(Path("digits.html").read_text(encoding="utf-8"))
    assert 108 in summary["examples"]["rows"]  # the example in the picture
    images = re.findall(r"\]\((\.\./images/.*?)\)", text)
    assert len(images) == 6
    assert all((DOCS / image).stat().st_size < 200_000 for image in images)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explore", "model.json"], "Missing option"),
        (["explore", "none.json", "-o", "page.html"], "none.json: No such file"),
        (["explore", "model.json", "-o", "no/page.html"], "there is no folder no"),
        (["explore", "model.json", "-o", "page.html", "--labels", "x"], "--data, which is not given"),
        (["explore", "model.json", "-o", "page.html", "--data", "digits7"], "missing columns"),
        (["demo", "-o", "no/page.html"], "there is no folder no"),
    ],
)
def test_what_cannot_be_explored_is_told_in_one_line(
    folder: Path, model: BoomerClassifier, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    model.save(folder / "model.json")
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_the_demo_ends_with_a_page_and_says_where_it_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--quiet"]) == 0
    page = folder / "boomer-demo.html"
    assert str(page) in capsys.readouterr().out
    summary = read_summary(page.read_text(encoding="utf-8"))
    assert summary["segments"] is True
    assert len(summary["examples"]["rows"]) == 200
    assert page.stat().st_size < 1e6
