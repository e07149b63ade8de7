"""The examples run as they are, draw a picture, and show what they claim to show."""

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pandas")
matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("plot_*.py"))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Run an example in an empty folder; gives its variables."""
    monkeypatch.chdir(tmp_path)
    yield lambda name: runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    plt.close("all")


CLAIMS: dict[str, Callable[[dict[str, Any]], None]] = {}


def claim(function: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    CLAIMS[function.__name__] = function
    return function


@claim
def plot_quick_start(result: dict[str, Any]) -> None:
    assert result["accuracy"] > 0.9


@claim
def plot_reading_rules(result: dict[str, Any]) -> None:
    explanation, clf = result["explanation"], result["clf"]
    np.testing.assert_allclose(explanation.contributions.sum(axis=0), clf.decision_function(result["song"])[0])
    assert explanation.change is not None


@claim
def plot_two_losses(result: dict[str, Any]) -> None:
    final = result["final"]
    dependent, independent = result["data"]
    of_labels, of_examples = result["styles"]
    assert final[dependent, of_examples, "subset_zero_one_loss"] < final[dependent, of_labels, "subset_zero_one_loss"]
    assert final[independent, of_labels, "hamming_loss"] < final[independent, of_examples, "hamming_loss"]


@claim
def plot_label_dependence(result: dict[str, Any]) -> None:
    best = result["dependence"].list_pairs().head(5).set_index(["label", "other"])["dependence"]
    assert best.index[0] == ("a", "d")
    assert best["a", "d"] > 0.5
    assert best["b", "f"] < -0.4
    upper = np.triu_indices(7, 1)
    signs = np.sign(result["dependence"].matrix[upper]) == np.sign(result["correlation"][upper])
    assert signs.mean() > 0.9


@claim
def plot_additive_model(result: dict[str, Any]) -> None:
    shapes = result["shapes"]
    assert result["loss"] < result["guess"] - 0.1
    assert shapes.features[-1].name == "year"
    slow, right, fast = shapes["tempo"]([80, 125, 170])[:, 1]
    assert right > 0.5 > -0.5 > max(slow, fast)


@claim
def plot_number_of_rules(result: dict[str, Any]) -> None:
    whole, short = result["losses"]
    assert short < whole / 2
    assert result["losses"][short] < result["losses"][whole]


@claim
def plot_unknown_labels(result: dict[str, Any]) -> None:
    losses = result["losses"]
    assert losses["left unknown"][-1] < 0.1 < losses["taken for no"][-1]
    assert losses["left unknown"][2] < losses["example dropped"][2]


@claim
def plot_comparison(result: dict[str, Any]) -> None:
    subset = {name: values[1] for name, values in result["results"].items()}
    assert subset["CC"] < subset["BR"]
    assert subset["example-wise"] < subset["label-wise"] < subset["BR"]
    hamming = {name: values[0] for name, values in result["results"].items()}
    at_once = ("label-wise", "example-wise", "joint")
    assert max(hamming[name] for name in at_once) < min(hamming[name] for name in ("XGBoost", "BR", "CC"))
    assert max(subset[name] for name in ("LP", "joint")) < subset["example-wise"]


@claim
def plot_figure_1(result: dict[str, Any]) -> None:
    subset = {name: losses[0] for name, losses in result["final"].items()}
    kind = "conditional-dependence"
    for head in ("single", "multi"):
        assert subset[kind, "example-wise-logistic", head] < subset[kind, "label-wise-logistic", head]


@claim
def plot_rules_on_pixels(result: dict[str, Any]) -> None:
    assert all(rule.body for rule in result["best"])


@claim
def plot_distilled_model(result: dict[str, Any]) -> None:
    assert result["scores"]["distilled"] > result["scores"]["whole"]
    assert (result["curve"].losses["distilled"] < result["curve"].losses["cut"]).all()


@claim
def plot_calibration(result: dict[str, Any]) -> None:
    assert result["gaps"]["isotonic"] < result["gaps"]["as learned"] / 2
    assert result["f1"]["tuned"] > result["f1"]["1/2 for all"] + 0.03


@claim
def plot_sparse_text(result: dict[str, Any]) -> None:
    assert result["f1"]["f1"] > 0.7
    assert all(count >= 3 for count in result["found"].values())


@claim
def plot_early_stopping(result: dict[str, Any]) -> None:
    assert len(result["clf"].rules_) < 1000
    assert min(result["losses"]["test"]) < result["losses"]["test"][-1]


@claim
def plot_editing_with_an_expert(result: dict[str, Any]) -> None:
    before, after = result["losses"].values()
    assert after[0] == before[0]
    assert after[1] < 0.1 < 0.9 < before[1]


@claim
def plot_page(result: dict[str, Any]) -> None:
    assert result["accuracy"] > 0.9
    assert result["page"].startswith("<!DOCTYPE html>")


@claim
def plot_regression(result: dict[str, Any]) -> None:
    assert result["errors"]["absolute-error"] < result["errors"]["squared-error"] / 2


@claim
def plot_cluster(result: dict[str, Any]) -> None:
    assert result["same"]
    assert result["accuracy"] > 0.8


# `make -C docs html` runs every example; the claims of these, which show what others test, are for `pytest -m slow`.
SLOW = {
    *("plot_figure_1", "plot_rules_on_pixels", "plot_distilled_model", "plot_calibration", "plot_sparse_text"),
    *("plot_early_stopping", "plot_editing_with_an_expert", "plot_page", "plot_regression", "plot_cluster"),
    *("plot_comparison", "plot_number_of_rules"),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in EXAMPLES])
def test_an_example_runs_and_shows_what_it_claims(
    name: str, run: Callable[[str], dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(name)
    assert capsys.readouterr().out.strip()
    assert plt.get_fignums()
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()
    CLAIMS[name](result)


def test_the_gallery_is_complete() -> None:
    assert set(EXAMPLES) == set(CLAIMS)
    for name in EXAMPLES:
        text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
        title, line = text.splitlines()[1:3]
        assert text.startswith('"""\n')
        assert line == "=" * len(title)
