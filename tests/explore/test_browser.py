"""The page in a real browser: Chromium without a window, driven by Selenium; skipped where there is none."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from pyboomer import BoomerClassifier, BoomerRegressor, load_model
from pyboomer.datasets import Dataset, load_dataset
from pyboomer.editing import replace_rules
from pyboomer.explore.dependence import label_dependence

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="no Chromium with chromedriver is installed (apt-get install chromium-driver)",
)
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"),
    *("--disable-component-update", "--disable-sync", "--no-first-run", "--disable-ipc-flooding-protection"),
)
VIEWS = ("overview", "rules", "label", "feature", "example")
WALK = """
return arguments[0].map((to) => {
    history.replaceState(null, '', `#${to}`);
    dispatchEvent(new HashChangeEvent('hashchange'));
    return (() => {%s})();
});
"""
LIST_RULES = """
const numbers = [];
while (true) {
    numbers.push(...[...document.querySelectorAll('#panel-rules [data-rule]')].map((e) => Number(e.dataset.rule)));
    const more = document.querySelector('#panel-rules .pager:not([hidden]) button:last-of-type');
    if (!more || more.disabled) return numbers;
    more.click();
}
"""
READ_LENGTH = """
const panel = document.getElementById(`panel-${location.hash.slice(1)}`);
return panel.checkVisibility({ opacityProperty: true, visibilityProperty: true }) ? panel.innerText.length : 0;
"""
READ_SCORES = """
return [...document.querySelectorAll('#panel-example button.score')].map((row) => [Number(row.dataset.label),
    row.querySelector('data').value, row.querySelector('.mark')?.dataset.relevant ?? null]);
"""


def arrange_scores(rows: list[Any], n_labels: int) -> tuple[np.ndarray, list[str | None]]:
    """Scores and predictions, label by label."""
    rows = sorted(rows)
    assert [k for k, _, _ in rows] == list(range(n_labels))
    return np.array([float(score) for _, score, _ in rows]), [relevant for _, _, relevant in rows]


class Browser:
    """A browser with a page in it, and the questions that tests ask."""

    def __init__(self, profile: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        self.resize(1280)

    def resize(self, width: int, scheme: str = "light") -> None:
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def go(self, address: str) -> None:
        """Follow a link to a part of the page; what it shows is there when this returns."""
        self.driver.execute_async_script(
            "const [to, done] = arguments; if (location.hash === '#' + to) done();"
            "else { addEventListener('hashchange', () => done(), { once: true }); location.hash = to; }",
            address,
        )

    def walk(self, addresses: Sequence[str], script: str = "") -> list[Any]:
        """Go to parts of the page, one after another; returns what a script reads in each.

        This takes one message to the browser, and nothing is painted on the way.
        """
        return self.run(WALK % script, addresses)

    def find(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        return self.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)

    def list_rules(self) -> list[int]:
        """The numbers of the rules in the list of all rules, on all its pages."""
        return self.run(LIST_RULES)

    def read_scores(self, n_labels: int) -> tuple[np.ndarray, list[str | None]]:
        """Scores and predictions that the view of an example shows."""
        if n_labels > 16 and "Show all" in self.texts("#panel-example .scores > button")[0]:
            self.find("#panel-example .scores > button").click()
        return arrange_scores(self.run(READ_SCORES), n_labels)

    def find_slips(self) -> list[str]:
        """Texts in the page that are what JavaScript makes of values that are not texts."""
        return self.run(
            "const walk = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT), slips = [];"
            "while (walk.nextNode()) slips.push(walk.currentNode.data);"
            "return slips.filter((text) => /^(false|true|null|undefined)$|NaN|Infinity|object /.test(text));"
        )

    def list_errors(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] != "INFO"]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.driver.quit()


Open = Callable[..., Browser]


@pytest.fixture
def show(chromium: Browser, tmp_path: Path) -> Iterator[Open]:
    """Open the page of a model; there must be no complaint in the console when the test ends."""

    def open_page(model: Any, X: Any = None, y: Any = None, **options: Any) -> Browser:
        path = tmp_path / "page.html"
        model.to_html(path, X=X, y=y, **options)
        chromium.driver.get(path.as_uri())
        return chromium

    chromium.list_errors()
    yield open_page
    chromium.resize(1280)
    assert chromium.list_errors() == []


def make_songs(n: int = 60) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Numbers, words and missing values; four labels, of which some examples have none."""
    rng = np.random.default_rng(1)
    songs = pd.DataFrame(
        {"tempo": rng.normal(120, 25, n), "style": rng.choice(["jazz", "rock", "folk"], n), "live": rng.random(n) < 0.3}
    )
    calm, rock = songs["tempo"] < 115, songs["style"] == "rock"
    moods = pd.DataFrame({"calm": calm, "party": ~calm & ~songs["live"], "raw": songs["live"] & rock, "loud": rock})
    songs.loc[rng.random(n) < 0.15, "tempo"] = np.nan
    songs.loc[rng.random(n) < 0.15, "style"] = None
    return songs, (moods != (rng.random(moods.shape) < 0.1)).astype(int)


def make_sparse() -> tuple[Any, Any]:
    rng = np.random.default_rng(2)
    X = sp.random_array((50, 12), density=0.3, rng=rng, format="csr")
    X.data = np.ceil(X.data * 4)
    Y = ((X[:, [0, 1, 2]].toarray() > 1) | (X[:, [2, 3, 4]].toarray() == 2)).astype(int)
    return X, sp.csr_array(Y)


def make_unknown() -> tuple[pd.DataFrame, pd.DataFrame]:
    X, Y = make_songs()
    return X, Y.astype(float).mask(np.random.default_rng(3).random(Y.shape) < 0.2)


@pytest.fixture(scope="module")
def songs() -> tuple[pd.DataFrame, pd.DataFrame]:
    return make_songs()


@pytest.fixture(scope="module")
def model(songs: tuple[pd.DataFrame, pd.DataFrame]) -> BoomerClassifier:
    return BoomerClassifier(n_rules=60, random_state=1).fit(*songs)


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load_dataset("digits7")


@pytest.fixture(scope="module")
def reader(digits: Dataset) -> BoomerClassifier:
    X, Y = digits.to_frame(), digits.labels_frame()
    return BoomerClassifier(n_rules=150, max_conditions=3, random_state=1).fit(X[:600], Y[:600])


# --- Every model can be looked at, and its page says what the model says ----------------------------------------------

Y_OF = {"songs": make_songs, "sparse": make_sparse, "unknown": make_unknown}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "label-wise": ("songs", {"loss": "label-wise-logistic"}),
    "example-wise": ("songs", {"loss": "example-wise-logistic"}),
    "joint": ("songs", {}),
    "single-label heads": ("songs", {"head": "single"}),
    "squared error": ("songs", {"loss": "example-wise-squared-error"}),
    "squared hinge": ("songs", {"loss": "example-wise-squared-hinge"}),
    "subset": ("songs", {"decode": "subset"}),
    "top": ("songs", {"decode": "top-2"}),
    "thresholds": ("songs", {"decode": [0.2, 0.4, 0.6, 0.8]}),
    "hamming": ("songs", {"decode": "hamming"}),
    "F-measure": ("songs", {"decode": "f1"}),
    "example-wise, hamming": ("songs", {"loss": "example-wise-logistic", "decode": "hamming"}),
    "example-wise, thresholds": ("songs", {"loss": "example-wise-logistic", "decode": [0.2, 0.4, 0.6, 0.8]}),
    "sparse, nominal": ("sparse", {"categorical_features": [0, 3]}),
    "unknown labels": ("unknown", {}),
    "large scores": ("songs", {"learning_rate": 1.0, "l2": 0.0, "n_rules": 300}),
}


@pytest.mark.filterwarnings("ignore:the training loss has risen")  # large scores are wanted
@pytest.mark.parametrize("name", MODELS)
def test_scores_and_predictions_are_those_of_the_model(show: Open, name: str) -> None:
    kind, options = MODELS[name]
    X, Y = Y_OF[kind]()
    clf = BoomerClassifier(**{"n_rules": 60, "random_state": 1, **options}).fit(X, Y)
    page = show(clf, X, Y)
    scores, predicted = clf.decision_function(X), clf.predict(X)
    predicted = predicted.toarray() if sp.issparse(predicted) else predicted
    examples = range(0, X.shape[0], 3)
    for n, rows in zip(examples, page.walk([f"example/{n}" for n in examples], READ_SCORES), strict=True):
        shown, relevant = arrange_scores(rows, len(clf.label_names_))
        np.testing.assert_allclose(shown, scores[n], rtol=0, atol=1e-9)
        assert relevant == [str(int(value)) for value in predicted[n]]
    assert min(page.walk(VIEWS, READ_LENGTH)) > 100
    assert page.find_slips() == []


def test_classes_are_named(show: Open, songs: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    X, Y = songs
    for y in (X["style"].fillna("none").to_numpy(), np.where(Y["calm"], "yes", "no"), np.full(len(X), "ever")):
        clf = BoomerClassifier(n_rules=40, random_state=1).fit(X[["tempo", "live"]], y)
        page = show(clf, X[["tempo", "live"]], y)
        predicted = clf.predict(X[["tempo", "live"]])
        told = page.walk(
            [f"example/{n}" for n in range(0, len(X), 7)],
            "return document.getElementById('predicted-class').innerText",
        )
        assert told == predicted[::7].tolist()
        page.walk(VIEWS)
        assert page.find_slips() == []


def test_numbers_are_predicted_as_they_are(show: Open, songs: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    X, _ = songs
    targets = pd.DataFrame({"energy": X["live"] * 100.0 - 30, "length": (X["style"] == "jazz") * 3.5})
    for y in (targets, targets["energy"].to_numpy()):
        reg = BoomerRegressor(n_rules=50, random_state=1).fit(X, y)
        page = show(reg, X, y)
        predicted = reg.predict(X).reshape(len(X), -1)
        for n in (0, 17, 59):
            page.go(f"example/{n}")
            shown, relevant = page.read_scores(predicted.shape[1])
            np.testing.assert_allclose(shown, predicted[n], rtol=1e-12, atol=1e-9)
            assert set(relevant) == {None}
    page.walk(VIEWS)
    assert page.find_slips() == []
    assert page.texts("[role=tab]")[2] == "Targets"


def test_a_model_without_data_says_what_it_lacks(show: Open, model: BoomerClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "model.json")
    page = show(load_model(tmp_path / "model.json"))
    page.go("example")
    assert "data are needed" in page.find("#panel-example").text
    assert min(page.walk(VIEWS[:-1], READ_LENGTH)) > 100
    assert page.find_slips() == []


def test_a_model_that_is_only_a_default_rule_is_shown(show: Open, songs: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    page = show(BoomerClassifier(n_rules=1).fit(*songs), *songs)
    assert min(page.walk(VIEWS, READ_LENGTH)) > 0
    assert page.texts("#panel-rules .body") == ["always"]
    assert page.find_slips() == []


def test_numbers_of_any_size_are_drawn(show: Open) -> None:
    rng = np.random.default_rng(6)
    sign = rng.choice([-1.0, 1.0], 60)
    X = pd.DataFrame(
        {
            "huge": sign * 1.7e308,
            "tiny": (sign + 1) * 5e-324,
            "far": 1e17 + 16 * sign,
            "flat": np.where(sign > 0, 3.0, np.nan),
            "none": np.full(60, np.nan),
        }
    )
    clf = BoomerClassifier(n_rules=80, random_state=1).fit(X, np.stack([sign > 0, sign < 0], axis=1).astype(int))
    page = show(clf, X)
    used = sorted({c.feature for rule in clf.rules_ for c in rule.body})
    assert len(used) >= 3
    drawn = page.walk(
        [f"feature/{f}" for f in range(len(used))],
        "return document.querySelector('#panel-feature .histogram').checkVisibility()"
        "&& [...document.querySelectorAll('.histogram *')].map((e) => e.outerHTML).join()",
    )
    assert all(drawn)
    assert not any("NaN" in text for text in drawn)
    page.go("example/0")
    np.testing.assert_allclose(page.read_scores(2)[0], clf.decision_function(X[:1])[0], rtol=0, atol=1e-9)


# --- Switching rules off ----------------------------------------------------------------------------------------------


def test_switched_scores_are_those_of_the_edited_model(
    show: Open, model: BoomerClassifier, songs: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    X, Y = songs
    page = show(model, X, Y)
    off: list[int] = []
    for n in (4, 11, 30):
        page.go(f"example/{n}")
        boxes = page.driver.find_elements(By.CSS_SELECTOR, ".waterfall input:checked")
        rule = int(boxes[0 if n == 4 else 2].get_attribute("data-rule"))  # the first is the default rule
        page.find(f".waterfall input[data-rule='{rule}']").click()
        off.append(rule)
        edited = replace_rules(model, model.rules_[np.delete(np.arange(len(model.rules_)), off)])
        rows = n, 0, 59
        for row, told in zip(rows, page.walk([f"example/{row}" for row in rows], READ_SCORES), strict=True):
            shown, relevant = arrange_scores(told, 4)
            np.testing.assert_allclose(shown, edited.decision_function(X[row : row + 1])[0], rtol=0, atol=1e-9)
            assert relevant == [str(value) for value in edited.predict(X[row : row + 1])[0]]
    assert 0 in off
    assert page.find("#off-count").text == "3 rules off"
    page.go("rules")
    assert page.run("return [...document.querySelectorAll('.rule.off')].map((e) => Number(e.dataset.rule))") == [
        rule for rule in sorted(off) if rule < 20
    ]
    page.go("example/4")
    page.find("#all-on").click()
    np.testing.assert_allclose(page.read_scores(4)[0], model.decision_function(X[4:5])[0], rtol=0, atol=1e-9)


def test_the_steps_add_up_to_the_score_of_the_label_picked(
    show: Open, model: BoomerClassifier, songs: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    X, Y = songs
    page = show(model, X, Y)
    page.go("example/8")
    heads = model.rules_.head_matrix()
    covering = [
        t for t, rule in enumerate(model.rules_) if all(c.covers(X[c.name].to_numpy()[8:9])[0] for c in rule.body)
    ]
    for k in range(4):
        page.find(f"#panel-example button.score[data-label='{k}']").click()
        steps = [
            float(v) for v in page.run("return [...document.querySelectorAll('.waterfall data')].map((e) => e.value)")
        ]
        assert sum(steps[:-1]) == pytest.approx(steps[-1], abs=1e-9)
        assert steps[-1] == pytest.approx(model.decision_function(X[8:9])[0, k], abs=1e-9)
        page.find("#panel-example .steps > button").click()  # show all
        switches = page.run(
            "return [...document.querySelectorAll('.waterfall input')].map((e) => Number(e.dataset.rule))"
        )
        assert sorted(switches) == [t for t in covering if heads[t, k] != 0]
        assert list(np.abs(heads[switches[1:], k])) == sorted(np.abs(heads[switches[1:], k]), reverse=True)


def test_a_change_of_the_prediction_is_told(show: Open, reader: BoomerClassifier, digits: Dataset) -> None:
    X, Y = digits.to_frame()[600:640], digits.labels_frame()[600:640]
    page = show(reader, X, Y)
    page.go("example/0")
    before = page.read_scores(7)[1]
    page.find(".steps > button").click()  # show all
    for rule in page.run("return [...document.querySelectorAll('.waterfall input')].map((e) => e.dataset.rule)"):
        page.run(
            f"document.querySelector(\".waterfall input[data-rule='{rule}']\").click()"
        )  # wherever it is scrolled to
        if page.read_scores(7)[1] != before:
            break
    changed = [k for k, (a, b) in enumerate(zip(before, page.read_scores(7)[1], strict=True)) if a != b]
    told = page.find(".changed").text
    assert told.startswith("Now predicted: ")
    assert {name.removeprefix("not ") for name in told.removeprefix("Now predicted: ").split(", ")} == {
        "abcdefg"[k] for k in changed
    }
    assert "not that of the whole model" in page.find("#status").get_attribute("textContent")


def test_mistakes_are_found(show: Open, model: BoomerClassifier, songs: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    X, Y = songs
    page = show(model, X, Y)
    page.go("example/0")
    wrong = np.flatnonzero((model.predict(X) != Y.to_numpy()).any(axis=1)).tolist()
    found = []
    for _ in range(3):
        page.find("#next-mistake").click()
        page.driver.execute_async_script("setTimeout(arguments[0], 50)")
        found.append(int(page.run("return location.hash.split('/')[1]")))
    assert found == [n for n in wrong if n > 0][:3]
    right = BoomerClassifier(n_rules=2).fit(X, np.ones((len(X), 2), dtype=int))
    page = show(right, X, np.ones((len(X), 2), dtype=int))
    page.go("example/0")
    page.find("#next-mistake").click()
    assert page.find("#next-mistake").text == "No mistakes"


# --- Finding rules ----------------------------------------------------------------------------------------------------


def test_search_filters_and_order_do_what_they_say(
    show: Open, model: BoomerClassifier, songs: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    page = show(model, *songs)
    page.go("rules")
    rules, heads = model.rules_, model.rules_.head_matrix()
    everything = list(range(len(rules)))
    assert page.list_rules() == everything

    search = page.find("#rule-search")
    search.send_keys("STYLE rock")
    found = [t for t in everything if any(c.name == "style" and c.value == "rock" for c in rules[t].body)]
    assert 0 < len(found) < len(rules)
    assert page.list_rules() == found
    half = len(rules[found].top(0.5))
    told = f"{len(found)} of 60 rules; {half} of them {'has' if half == 1 else 'have'} half of their gain"
    assert page.find("#panel-rules .total").text == told
    search.clear()
    search.send_keys("no such words")
    assert page.list_rules() == []
    assert "No such rules" in page.find("#panel-rules .rules").text
    search.clear()
    search.send_keys(Keys.SPACE)

    feature, label = Select(page.find("#rule-feature")), Select(page.find("#rule-label"))
    feature.select_by_visible_text("tempo")
    tested = [t for t in everything if any(c.name == "tempo" for c in rules[t].body)]
    assert page.list_rules() == tested
    label.select_by_visible_text("raw")
    Select(page.find("#rule-side")).select_by_visible_text("against it")
    against = [t for t in tested if heads[t, 2] < 0]
    assert page.list_rules() == against
    assert page.texts("#panel-rules .rule .chip:first-child bdi")[:3] == ["raw"] * 3
    Select(page.find("#rule-order")).select_by_visible_text("largest score")
    assert page.list_rules() == sorted(against, key=lambda t: (heads[t, 2], t))
    Select(page.find("#rule-order")).select_by_visible_text("largest gain")
    about = rules[against].about("raw")
    assert page.list_rules() == about.by_gain().order.tolist()
    assert page.find("#panel-rules .total").text.endswith(
        f"{len(about.top(0.5))} of them have half of their gain for raw"
    )
    feature.select_by_index(0)
    label.select_by_index(0)
    for order, key in {
        "largest gain": lambda t: (-rules.gain[t], t),
        "most examples": lambda t: (-rules.coverage[t], t),
        "fewest conditions": lambda t: (len(rules[t].body), t),
        "as learned": lambda t: t,
    }.items():
        Select(page.find("#rule-order")).select_by_visible_text(order)
        assert page.list_rules() == sorted(everything, key=key)


def test_rules_read_as_they_are_printed(show: Open, model: BoomerClassifier, reader: BoomerClassifier) -> None:
    signs = {" AND ": " and ", "<=": "≤", "!=": "≠", "==": "=", "-": "−"}
    texts = BoomerClassifier(n_rules=20, random_state=1).fit(*make_sparse())
    assert any(c.is_absence for rule in texts.rules_ for c in rule.body)
    for clf in (model, reader, texts):
        page = show(clf)
        page.go("rules")
        page.run("for (const button of document.querySelectorAll('button.link')) button.click()")
        shown = page.texts("#panel-rules .rule .body")
        for text, rule in zip(shown, clf.rules_, strict=False):
            printed = f"if {rule.body_text(None)}" if rule.body else "always"
            for sign, replacement in signs.items():
                printed = printed.replace(sign, replacement)
            assert text.replace("\u00a0", " ") == printed


def test_labels_that_go_together_are_told(
    show: Open, model: BoomerClassifier, songs: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    page = show(model, *songs)
    dependence = label_dependence(model, songs[0]).matrix
    for k in range(4):
        page.go(f"label/{k}")
        told = page.run(
            "return [...document.querySelectorAll('.friends .chip')].map((e) =>"
            "[Number(e.hash.split('/')[1]), Number(e.querySelector('data').value)])"
        )
        assert {j for j, _ in told} == {j for j in range(4) if j != k and abs(dependence[k, j]) >= 0.05}
        for j, value in told:
            assert value == pytest.approx(dependence[k, j])


def test_a_label_has_rules_for_and_against_it(
    show: Open, model: BoomerClassifier, songs: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    page = show(model, *songs)
    page.go("label/1")
    column = model.rules_.head_matrix()[:, 1]
    assert page.find("#panel-label .picked").text == "party"
    for side, sign in (0, 1), (1, -1):
        effect = np.abs(column) * model.rules_.coverage
        expected = sorted(np.flatnonzero(sign * column > 0).tolist(), key=lambda t: (-effect[t], t))
        shown = page.run(
            "return [...document.querySelectorAll('.sides > div')[arguments[0]].querySelectorAll('.rule')]"
            ".map((e) => Number(e.dataset.rule))",
            side,
        )
        assert shown == expected[:20]
    assert f"{songs[1]['party'].sum()} examples" in page.find("#panel-label .pairs").text


def test_a_feature_has_a_histogram_and_its_thresholds(
    show: Open, model: BoomerClassifier, songs: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    X, Y = songs
    page = show(model, X, Y)
    page.go("feature")
    Select(page.find("#feature-pick")).select_by_visible_text("tempo")
    page.driver.execute_async_script("setTimeout(arguments[0], 50)")
    bars = page.texts(".histogram .data title")
    assert sum(int(text.split(": ")[1].split()[0]) for text in bars) == X["tempo"].notna().sum()
    marks = page.texts(".histogram .for title") + page.texts(".histogram .against title")
    conditions = [c for rule in model.rules_ for c in rule.body if c.name == "tempo"]
    assert sum(int(text.split(": ")[1].split()[0]) for text in marks) == len(conditions)
    assert f"missing for\n{X['tempo'].isna().sum()} examples" in page.find("#panel-feature .pairs").text
    Select(page.find("#feature-pick")).select_by_visible_text("style")
    page.driver.execute_async_script("setTimeout(arguments[0], 50)")
    cells = page.run(
        "return [...document.querySelectorAll('.categories tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    table = {row[0]: row[2:] for row in cells}
    for category in ("jazz", "rock", "folk"):
        expected = [(X["style"] == category).sum()] + [
            sum(c.operator == operator and c.value == category for rule in model.rules_ for c in rule.body)
            for operator in ("==", "!=")
        ]
        assert [int(cell.replace("·", "0")) for cell in table[category]] == expected


# --- Shapes -----------------------------------------------------------------------------------------------------------

READ_SHAPE = """
for (const details of document.querySelectorAll('details.numbers')) {
    details.open = true;
    details.dispatchEvent(new Event('toggle'));
}
const table = [...document.querySelectorAll('#panel-feature table.steps')].at(-1);
return [...table.tBodies[0].rows].map((row) =>
    [row.dataset.step, ...[...row.querySelectorAll('data')].map((e) => Number(e.value))]);
"""


@pytest.fixture(scope="module")
def additive(songs: tuple[pd.DataFrame, pd.DataFrame]) -> BoomerClassifier:
    X, Y = songs
    sizes = ["short", "middling", "long"]
    size = pd.Categorical(np.array(sizes)[np.arange(len(X)) * 7 % 3], sizes, ordered=True)
    return BoomerClassifier(n_rules=60, max_conditions=1, random_state=1).fit(X.assign(size=size), Y)


def test_the_shapes_of_a_page_add_up_to_the_scores(
    show: Open, additive: BoomerClassifier, songs: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    X = songs[0].assign(size=np.array(["short", "middling", "long"])[np.arange(60) * 7 % 3])
    page = show(additive, X, songs[1])
    shapes = additive.shape_functions()
    scores = np.tile(shapes.intercept, (len(X), 1))
    for f, name in enumerate(X.columns):
        page.go(f"feature/{f}")
        rows = {float(step): values for step, *values in page.run(READ_SHAPE)}
        steps, column = shapes[name].steps, shapes[name].steps.read(X[name])  # type: ignore[union-attr]
        if steps.kind == "numeric":
            assert list(rows)[:-2] == steps.edges.tolist()
            table = np.array(list(rows.values()))
            np.testing.assert_allclose(table, shapes[name].values, rtol=0, atol=1e-12)
            scores += table[steps.find(column)]
        else:
            assert [code for code in rows if code >= 0] == list(range(3))
            missing = list(rows.values())[-1]
            scores += [missing if np.isnan(code) else rows[code] for code in column]
    np.testing.assert_allclose(scores, additive.decision_function(X), rtol=0, atol=1e-9)
    assert page.find_slips() == []


def test_a_shape_is_drawn_as_lines_or_as_a_map(
    show: Open, additive: BoomerClassifier, songs: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    page = show(additive)
    page.go("feature/0")
    drawn = page.run("return [...document.querySelectorAll('.shape polyline')].map((e) => Number(e.dataset.label))")
    assert sorted(drawn) == [0, 1, 2, 3]
    steps = page.texts(".shape .touch title")
    assert len(steps) == len(additive.shape_functions()["tempo"].steps) - 1  # type: ignore[union-attr]
    assert all(" calm " in text for text in steps)
    assert sorted(page.texts(".legend a")) == ["calm", "loud", "party", "raw"]
    many = pd.concat([songs[1].add_suffix(str(i)) for i in range(3)], axis=1)
    clf = BoomerClassifier(n_rules=60, max_conditions=1, random_state=1).fit(songs[0], many)
    page = show(clf)
    page.go("feature/0")
    shape = clf.shape_functions()["tempo"]
    cells = page.run("return [...document.querySelectorAll('.shape rect')].map((e) => Number(e.dataset.score))")
    values = np.array(cells).reshape(12, -1)
    np.testing.assert_allclose(np.sort(values.max(axis=1)), np.sort(shape.values[:-1].max(axis=0)), atol=1e-12)
    assert page.find_slips() == []


def test_a_pair_of_features_is_a_map(show: Open, songs: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    clf = BoomerClassifier(n_rules=60, max_conditions=2, random_state=1).fit(*songs)
    page = show(clf, *songs)
    page.go("feature/0")
    Select(page.find("#pair-feature")).select_by_value("2")
    Select(page.find("#pair-label")).select_by_visible_text("party")
    cells = page.run("return [...document.querySelectorAll('.grid-map rect')].map((e) => Number(e.dataset.score))")
    pair = clf.shape_functions()["tempo", "live"]
    expected = pair.values[:-1, :-1, 1]  # type: ignore[index]
    np.testing.assert_allclose(np.reshape(cells, expected.shape[::-1]), expected.T, rtol=0, atol=1e-12)
    assert page.find_slips() == []


# --- Pictures ---------------------------------------------------------------------------------------------------------


def test_digits_are_drawn_on_their_pixels(show: Open, reader: BoomerClassifier, digits: Dataset) -> None:
    X, Y = digits.to_frame()[600:650], digits.labels_frame()[600:650]
    page = show(reader, X, Y)
    page.go("rules")
    for rule in (1, 5, 9):
        tested = {(int(c.name.split("_")[1]), int(c.name.split("_")[2])) for c in reader.rules_[rule].body}
        drawn = page.run(
            "return [...document.querySelectorAll(`#panel-rules [data-rule='${arguments[0]}'] .marks rect`)]"
            ".map((r) => [Math.floor(r.getAttribute('y')), Math.floor(r.getAttribute('x'))])",
            rule,
        )
        assert {tuple(place) for place in drawn} == tested
    predicted = reader.predict(X)
    for n in (0, 21, 49):
        page.go(f"example/{n}")
        ink = page.run("return document.querySelectorAll('.pictures.large .ink').length")
        assert ink == (X.iloc[n] > 0).sum()
        segments = page.run(
            "return [...document.querySelectorAll('.pictures.large .display')].map((d) =>"
            "[...d.children].map((s) => s.classList.contains('lit') ? 1 : 0))"
        )
        assert segments == [predicted[n].tolist(), Y.iloc[n].tolist()]
    # the pixels that a rule tests are marked while it has the focus
    switch = page.driver.find_elements(By.CSS_SELECTOR, ".waterfall input")[1]
    page.run("arguments[0].focus()", switch)
    body = reader.rules_[int(switch.get_attribute("data-rule"))].body
    assert page.run("return document.querySelectorAll('.pictures.large .marks rect').length") == len(body)


# --- Names from anywhere ----------------------------------------------------------------------------------------------


def test_names_are_shown_as_text_and_nothing_in_them_runs(show: Open, hostile_names: list[str]) -> None:
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.normal(size=(40, len(hostile_names))), columns=hostile_names)
    X["<b>kind</b>"] = rng.choice(hostile_names, 40)
    labels = [f"{name}!" for name in hostile_names]
    Y = pd.DataFrame(rng.integers(0, 2, size=(40, len(hostile_names))), columns=labels)
    clf = BoomerClassifier(n_rules=80, random_state=1).fit(X, Y)
    page = show(clf, X, Y, title="<b>title</b></title><script>window.ran = 7</script>")
    addresses = [
        *VIEWS,
        *(f"label/{k}" for k in range(3)),
        *(f"feature/{f}" for f in range(len(hostile_names) + 1)),
        "example/7",
    ]
    page.walk(addresses, "for (const details of document.querySelectorAll('details')) details.open = true")
    assert page.run("return window.ran ?? null") is None
    assert page.run("return document.scripts.length") == 2
    assert page.run("return document.images.length + document.querySelectorAll('main b, main script').length") == 0
    assert page.driver.title == "<b>title</b></title><script>window.ran = 7</script>"
    names = set(page.texts("bdi"))
    assert set(labels) <= names
    assert {*hostile_names, "<b>kind</b>"} & set(X.columns) >= {c.name for rule in clf.rules_ for c in rule.body}
    assert {c.name for rule in clf.rules_[:20] for c in rule.body} <= names
    assert page.texts("#rule-label option")[1:] == labels


def test_the_policy_lets_no_other_script_run(show: Open, chromium: Browser, model: BoomerClassifier) -> None:
    page = show(model)
    page.run(
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s);"
        "const i = document.createElement('img'); i.src = 'https://example.org/x.png'; document.body.append(i);"
        "document.body.insertAdjacentHTML('beforeend', '<p onclick=\"window.ran = 2\" id=\"bad\">x</p>');"
        "document.getElementById('bad').click();"
    )
    assert page.run("return window.ran ?? null") is None
    errors = chromium.list_errors()
    assert sum("Content Security Policy" in error for error in errors) >= 2


def test_nothing_is_fetched(show: Open, model: BoomerClassifier, songs: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    page = show(model, *songs)
    page.walk(VIEWS)
    fetched = page.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert [name for name in fetched if not name.startswith("data:")] == []


# --- Keyboard, widths, colours ----------------------------------------------------------------------------------------


def test_the_keyboard_is_enough(show: Open, model: BoomerClassifier, songs: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    page = show(model, *songs)

    def press(*keys: str) -> Any:
        page.driver.switch_to.active_element.send_keys(*keys)
        page.driver.execute_async_script("setTimeout(arguments[0], 30)")
        return page.driver.switch_to.active_element

    assert press(Keys.TAB).text == "Skip to content"
    assert press(Keys.ENTER).get_attribute("id") == "main"
    page.find("#tab-overview").send_keys(Keys.ARROW_RIGHT)
    assert page.find("#tab-rules").get_attribute("aria-selected") == "true"
    assert press(Keys.ARROW_LEFT).get_attribute("id") == "tab-overview"
    assert press(Keys.ARROW_LEFT).get_attribute("id") == "tab-example"
    assert page.find("#panel-example").is_displayed()
    assert press(Keys.HOME).get_attribute("id") == "tab-overview"
    assert press(Keys.END).get_attribute("id") == "tab-example"
    tab_stops = page.run("return [...document.querySelectorAll('[role=tab]')].map((tab) => tab.tabIndex)")
    assert tab_stops == [-1, -1, -1, -1, 0]
    # from the tab to the next example, a label and a switch, and back to where one was after each change
    reached = []
    for _ in range(40):
        focused = press(Keys.TAB)
        reached.append(
            focused.get_attribute("data-label") or focused.get_attribute("data-rule") or focused.get_attribute("id")
        )
        if focused.get_attribute("type") == "checkbox":
            break
    assert {"example-pick", "0", "3"} <= set(reached)
    before = page.read_scores(4)[0]
    switch = page.driver.switch_to.active_element
    rule = switch.get_attribute("data-rule")
    focused = press(Keys.SPACE)
    assert focused.get_attribute("data-rule") == rule
    assert not focused.is_selected()
    assert not np.array_equal(page.read_scores(4)[0], before)
    outline = page.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_tabs_and_panels_are_named_for_screen_readers(show: Open, model: BoomerClassifier) -> None:
    page = show(model)
    for tab in page.driver.find_elements(By.CSS_SELECTOR, "[role=tablist] [role=tab]"):
        panel = page.find(f"#{tab.get_attribute('aria-controls')}")
        assert panel.get_attribute("role") == "tabpanel"
        assert panel.get_attribute("aria-labelledby") == tab.get_attribute("id")
    page.walk(VIEWS)
    unnamed = page.run(
        "return [...document.querySelectorAll('input, select, button, [role=img]')]"
        ".filter((e) => !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length))"
        ".map((e) => e.outerHTML)"
    )
    assert unnamed == []


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_nothing_is_wider_than_the_window(show: Open, width: int, songs: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    X, Y = songs
    long = X.rename(columns={"tempo": "the_tempo_of_the_song_in_beats_per_minute_" * 3})
    clf = BoomerClassifier(n_rules=60, random_state=1).fit(long, Y.rename(columns={"calm": "calm" * 30}))
    page = show(clf, long, Y.rename(columns={"calm": "calm" * 30}))
    page.resize(width)
    assert max(page.walk(VIEWS, "return document.documentElement.scrollWidth")) <= width


def test_colours_follow_the_system_and_the_button(show: Open, model: BoomerClassifier) -> None:
    page = show(model)
    page.run("localStorage.clear()")
    page.driver.refresh()

    def lightness() -> float:
        colour = page.run("return getComputedStyle(document.body).backgroundColor")
        return float(np.mean([int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]))

    page.resize(1280, "light")
    assert lightness() > 200
    page.resize(1280, "dark")
    assert lightness() < 60
    page.find("#theme").click()
    assert lightness() > 200
    page.find("#theme").click()
    assert lightness() < 60
    page.run("localStorage.clear()")


# --- Speed ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_thousand_rules_on_cal500_open_and_filter_in_less_than_two_seconds(
    show: Open, benchmark_data: Callable[[str], Dataset], tmp_path: Path
) -> None:
    ds = benchmark_data("cal500")
    clf = BoomerClassifier(n_rules=1000, random_state=1).fit(ds.X, ds.labels_frame())
    page = show(clf, ds.X, ds.Y)
    assert os.path.getsize(tmp_path / "page.html") < 5e6
    opened = page.run("return performance.getEntriesByType('navigation')[0].loadEventEnd")
    seconds = {"open": opened / 1000}
    script = """
    const [id, value, done] = arguments, field = document.getElementById(id), start = performance.now();
    field.value = value;
    field.dispatchEvent(new Event(field.type === 'search' ? 'input' : 'change'));
    requestAnimationFrame(() => requestAnimationFrame(() => done((performance.now() - start) / 1000)));
    """
    start = time.perf_counter()
    page.go("rules")
    seconds["rules"] = time.perf_counter() - start
    for field, value in ("rule-label", "17"), ("rule-feature", "3"), ("rule-order", "score"), ("rule-search", "mfcc3"):
        seconds[field] = page.driver.execute_async_script(script, field, value)
    start = time.perf_counter()
    page.go("example")
    seconds["example"] = time.perf_counter() - start
    print(json.dumps(seconds))
    assert max(seconds.values()) < 2
