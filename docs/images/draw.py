"""Draw the pictures of the documentation: `python docs/images/draw.py`.

It needs the extras `pandas`, `plot` and `test`, Chromium with its driver, and the font Liberation Sans.
The map of 174 labels needs the data set cal500, the tutorials emotions and bibtex, by $PYBOOMER_DATA or from OpenML.
"""

import io
import re
import runpy
import shutil
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.by import By
from sklearn.model_selection import train_test_split

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset
from pyboomer.explore.displays import (
    ExplanationDisplay,
    FeatureImportanceDisplay,
    FeatureLabelDisplay,
    LabelDependenceDisplay,
    ShapeDisplay,
    TrainingCurveDisplay,
)
from pyboomer.explore.importance import permutation_importance
from pyboomer.rules.ensemble import RuleEnsemble
from pyboomer.rules.text import render_rules

FOLDER = Path(__file__).parent
NINE = 107  # a 9 whose runner-up is a 5, in docs/how-to/looking-at-a-model.md
MISTAKE, OFF = (
    108,
    (119, 164, 207),
)  # a 9 read as a 5, and rules without which it is read as a 9, in docs/how-to/explore.md

NOTEBOOK = """
body { font: 13px sans-serif }
table { border-collapse: collapse }
th, td { padding: 2px 8px }
tr:nth-child(even) { background: #f5f5f5 }
"""


def save(name: str, image: Image.Image) -> None:
    """Write a picture of 256 colours, which keeps the file small."""
    reduced = image.convert("RGB").quantize(256, kmeans=1, dither=Image.Dither.NONE)
    reduced.save(FOLDER / f"{name}.png", optimize=True)


def save_figure(name: str, figure: Any, dpi: int = 80) -> None:
    """Write what matplotlib draws."""
    picture = io.BytesIO()
    figure.savefig(picture, dpi=dpi)
    save(name, Image.open(picture))


def save_display(name: str, display: Any) -> None:
    """Write what a display shows."""
    save_figure(name, display.figure_)


def draw_pages(folder: Path) -> None:
    """Run the tutorials, and write what a block of code draws where the picture below it says; and one example."""
    block = re.compile(
        r"^```python\n(.*?)^```\n(?:\n```\n.*?^```\n)?(?:\n!\[[^]]*\]\(\.\./images/(.*?)\.png\))?", re.M | re.S
    )
    for page in sorted((FOLDER.parent / "tutorials").glob("*.md")):
        names: dict[str, Any] = {}
        with chdir(folder):  # tables and models are saved
            for code, picture in block.findall(page.read_text(encoding="utf-8")):
                exec(compile(code, str(page), "exec"), names)
                if picture:
                    save_figure(picture, plt.gcf())
                plt.close("all")
    runpy.run_path(str(FOLDER.parent.parent / "examples" / "plot_rules_on_pixels.py"))
    save_figure("rules-on-pixels", plt.gcf(), dpi=90)


def open_browser() -> webdriver.Chrome:
    """Start Chromium without a window."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def photograph(browser: webdriver.Chrome, width: int, height: int, scheme: str = "light") -> Image.Image:
    """Take a picture of what the browser shows."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.execute_async_script("scrollTo(0, 0); setTimeout(arguments[0], 300)")
    return Image.open(io.BytesIO(browser.get_screenshot_as_png()))


def photograph_rules(browser: webdriver.Chrome, rules: RuleEnsemble, folder: Path) -> None:
    """Write a picture of rules as a notebook shows them."""
    page = folder / "rules.html"
    page.write_text(f"<!DOCTYPE html><style>{NOTEBOOK}</style>{render_rules(rules, max_rules=8)}", encoding="utf-8")
    browser.get(page.as_uri())
    save("rules", photograph(browser, 1080, 232))


def photograph_page(browser: webdriver.Chrome, page: Path) -> None:
    """Write the pictures of docs/how-to/explore.md."""

    def show(address: str, width: int, height: int, scheme: str = "light") -> Image.Image:
        browser.execute_script("location.hash = arguments[0]", address)
        return photograph(browser, width, height, scheme)

    browser.get(page.as_uri())
    save("explore-overview", show("overview", 1280, 1180))
    save("explore-rules", show("rules", 1280, 800, "dark"))
    save("explore-label", show("label/1", 1280, 900))

    show(f"example/{MISTAKE}", 1280, 900)
    browser.find_element(By.CSS_SELECTOR, "#panel-example button.score[data-label='1']").click()
    for rule in OFF:
        browser.find_element(By.CSS_SELECTOR, f".waterfall input[data-rule='{rule}']").click()
    save("explore-example", photograph(browser, 1280, 900))

    views = [(f"example/{MISTAKE}", "light"), ("label/4", "dark"), ("rules", "light"), ("overview", "dark")]
    phone = Image.new("RGB", (4 * 360 + 3 * 24, 740), "#888888")
    for n, (address, scheme) in enumerate(views):
        phone.paste(show(address, 360, 740, scheme), (n * 384, 0))
    save("explore-phone", phone)


def draw_shapes(browser: webdriver.Chrome, X: Any, Y: Any, folder: Path) -> None:
    """Write the pictures of docs/how-to/additive-models.md."""
    clf = BoomerClassifier("joint-logistic", n_rules=1000, max_conditions=1, random_state=1).fit(X, Y)
    shapes = clf.shape_functions(X)
    save_display("shapes-feature", ShapeDisplay.from_shapes(shapes, feature=shapes.features[0].name))
    save_display("shapes-label", ShapeDisplay.from_shapes(shapes, label="g"))
    two = BoomerClassifier("joint-logistic", n_rules=1000, max_conditions=2, random_state=1).fit(X, Y)
    pairs = two.shape_functions(X)
    save_display("shapes-pair", ShapeDisplay.from_shapes(pairs, feature=[s.name for s in pairs.pairs[0].steps], top=6))
    page = folder / "shapes.html"
    clf.to_html(page, X=X, y=Y, title="Seven segments of a handwritten digit, one condition per rule")
    browser.get(page.as_uri())
    # the page numbers the features that rules test; here, pixels that they do not test are part of the picture
    browser.execute_script("location.hash = arguments[0]", f"feature/{shapes.features[0].steps.feature}")
    save("explore-shape", photograph(browser, 1280, 900))


def main() -> None:
    """Draw them all."""
    digits = load_dataset("digits7")
    X, X_test, Y, Y_test = train_test_split(digits.to_frame(), digits.labels_frame(), random_state=1)
    clf = BoomerClassifier(n_rules=1000, max_conditions=3, random_state=1).fit(X, Y)
    importance = permutation_importance(clf, X_test, Y_test, random_state=1)
    save_display("importance", FeatureImportanceDisplay.from_importance(importance, top=12))
    save_display("feature-label-map", FeatureLabelDisplay.from_estimator(clf, top_features=15))
    save_display("label-dependence", LabelDependenceDisplay.from_estimator(clf))
    save_display("training-curve", TrainingCurveDisplay.from_estimator(clf, X, Y, X_test, Y_test))
    save_display("explanation", ExplanationDisplay.from_estimator(clf, X_test, example=NINE, label="b", top=8))
    songs = load_dataset("cal500")
    many = BoomerClassifier(n_rules=500, max_conditions=4, random_state=1).fit(songs.to_frame(), songs.labels_frame())
    save_display("label-dependence-174", LabelDependenceDisplay.from_estimator(many, top=24))
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        draw_pages(Path(folder))
        photograph_rules(browser, clf.rules_, Path(folder))
        page = Path(folder) / "digits.html"
        clf.to_html(page, X=X_test, y=Y_test, title="Seven segments of a handwritten digit")
        photograph_page(browser, page)
        draw_shapes(browser, X, Y, Path(folder))


if __name__ == "__main__":
    main()
