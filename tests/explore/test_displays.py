"""Displays draw what their values say, for a few labels or many, and take any text for text."""

import sys
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from pyboomer import BoomerClassifier, BoomerRegressor
from pyboomer.datasets import load_dataset
from pyboomer.explore.curves import training_curve
from pyboomer.explore.dependence import LabelDependence, label_dependence
from pyboomer.explore.displays import (
    ExplanationDisplay,
    FeatureImportanceDisplay,
    FeatureLabelDisplay,
    LabelDependenceDisplay,
    ShapeDisplay,
    TrainingCurveDisplay,
)
from pyboomer.explore.importance import FeatureImportance, feature_importance
from pyboomer.explore.shapes.functions import FeatureShape, ShapeFunctions

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

DIGITS = load_dataset("digits7")
X, Y, X_TEST, Y_TEST = DIGITS.X[:300], DIGITS.Y[:300], DIGITS.X[300:400], DIGITS.Y[300:400]


@pytest.fixture(scope="module")
def clf() -> BoomerClassifier:
    return BoomerClassifier(n_rules=60, random_state=1).fit(X, Y)


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def texts(axis: Any) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


def draw(display: Any) -> None:
    """Everything is drawn: a name that is no name, or a number that is none, would fail here."""
    display.figure_.canvas.draw()


def test_bars_are_the_importances_of_the_first_features(clf: BoomerClassifier) -> None:
    importance = feature_importance(clf)
    display = FeatureImportanceDisplay.from_estimator(clf, top=5)
    draw(display)
    best = importance.rank()[:5]
    np.testing.assert_allclose([bar.get_width() for bar in display.ax_.patches], importance.overall[best])
    assert texts(display.ax_.yaxis) == [importance.feature_names[f] for f in best]
    assert "more features not shown" in display.ax_.get_title()
    of_label = FeatureImportanceDisplay.from_importance(importance, label="y6", top=3)
    assert of_label.ax_.patches[0].get_width() == importance.per_label[:, 6].max()
    assert of_label.ax_.get_title().startswith("Features for y6")


def test_permutation_shows_its_spread(clf: BoomerClassifier) -> None:
    display = FeatureImportanceDisplay.from_estimator(
        clf, X_TEST, Y_TEST, by="permutation", measure="hamming_loss", random_state=0, n_repeats=2
    )
    draw(display)
    assert display.ax_.get_xlabel() == "importance by permutation (hamming loss)"
    assert display.importance.spread is not None
    assert len(display.ax_.collections) + len(display.ax_.lines) > 0
    draw(FeatureLabelDisplay.from_importance(display.importance))


def test_the_map_has_features_and_labels(clf: BoomerClassifier) -> None:
    display = FeatureLabelDisplay.from_estimator(clf, by="coverage", top_features=4, top_labels=3)
    draw(display)
    assert display.ax_.images[0].get_array().shape == (4, 3)
    assert display.ax_.get_title() == "4 of 64 features, 3 of 7 labels"


def test_the_dependence_map_has_its_labels_in_the_order_of_their_clusters(clf: BoomerClassifier) -> None:
    dependence = label_dependence(clf)
    display = LabelDependenceDisplay.from_estimator(clf)
    draw(display)
    order = [dependence.label_names.index(name) for name in texts(display.ax_.yaxis)]
    assert sorted(order) == list(range(7))
    np.testing.assert_allclose(display.ax_.images[0].get_array(), dependence.matrix[np.ix_(order, order)])
    assert len(display.ax_.texts) == 42  # the numbers, but for the diagonal


def test_curves_have_a_panel_per_measure(clf: BoomerClassifier) -> None:
    display = TrainingCurveDisplay.from_estimator(clf, X, Y, X_TEST, Y_TEST, at=[1, 20, 60])
    draw(display)
    assert len(display.ax_) == 4
    curve = display.curve
    np.testing.assert_array_equal(display.ax_[1].lines[1].get_ydata(), curve.values["held out"]["hamming_loss"])
    best = curve.find_best("hamming_loss")
    assert f"with {best} rule" in display.ax_[1].get_title()
    one = TrainingCurveDisplay.from_estimator(clf, X, Y, measures=["loss"])
    assert one.ax_.get_ylabel() == "loss (lower is better)"
    with pytest.raises(ValueError, match="ax must be 4 axes, one for each measure, got 1"):
        TrainingCurveDisplay.from_curve(curve, ax=plt.figure().subplots())


def test_a_waterfall_ends_at_the_score(clf: BoomerClassifier) -> None:
    explanation = clf.explain(X_TEST[:3], change=False)[2]
    for top in (1, 5, 100):
        display = ExplanationDisplay.from_estimator(clf, X_TEST, example=2, label=3, top=top)
        draw(display)
        last = display.ax_.patches[-1]
        assert last.get_x() + last.get_width() == pytest.approx(explanation.scores[3])
        assert sum(bar.get_width() for bar in display.ax_.patches) == pytest.approx(explanation.scores[3])
    assert display.ax_.get_title().startswith("Example 2: y3 ")
    assert ExplanationDisplay.from_explanation(explanation).label == explanation.scores.argmax()


def test_a_regressor_has_displays_too() -> None:
    reg = BoomerRegressor(n_rules=20, random_state=1).fit(X, X[:, 20])
    for display in (
        FeatureImportanceDisplay.from_estimator(reg),
        TrainingCurveDisplay.from_estimator(reg, X, X[:, 20]),
        ExplanationDisplay.from_estimator(reg, X),
    ):
        draw(display)


def test_displays_draw_on_axes_of_the_user(clf: BoomerClassifier) -> None:
    figure, axes = plt.subplots(2, 2)
    displays = [
        FeatureImportanceDisplay.from_estimator(clf, ax=axes[0, 0]),
        FeatureLabelDisplay.from_estimator(clf, ax=axes[0, 1]),
        LabelDependenceDisplay.from_estimator(clf, ax=axes[1, 0]),
        ExplanationDisplay.from_estimator(clf, X, ax=axes[1, 1]),
    ]
    assert all(display.figure_ is figure for display in displays)
    assert displays[0].ax_ is axes[0, 0]
    draw(displays[0])
    panels = plt.figure().subplots(2, 2)
    assert TrainingCurveDisplay.from_estimator(clf, X, Y, at=[60], ax=panels).figure_ is panels[0, 0].figure
    again = displays[0].plot(color="grey")
    assert again.figure_ is not figure


@pytest.mark.parametrize("n_labels", [1, 2, 6, pytest.param(600, marks=pytest.mark.slow)])
def test_maps_of_few_and_many_labels(n_labels: int) -> None:
    rng = np.random.default_rng(0)
    matrix = np.corrcoef(rng.standard_normal((n_labels, 5))) if n_labels > 1 else np.eye(1)
    names = tuple(f"a rather long name of a label, number {k}" for k in range(n_labels))
    display = LabelDependenceDisplay.from_dependence(LabelDependence(matrix, names))
    draw(display)
    assert len(display.ax_.images[0].get_array()) == min(n_labels, 30)
    assert len({name for name in texts(display.ax_.xaxis) if name}) == min(n_labels, 30)  # told apart though shortened
    draw(LabelDependenceDisplay.from_dependence(LabelDependence(matrix, names), top=n_labels))
    features = tuple(f"f{i}" for i in range(50))
    importance = FeatureImportance("gain", features, names, rng.random(50), rng.random((50, n_labels)))
    display = FeatureLabelDisplay.from_importance(importance, top_labels=600)
    draw(display)
    assert len(texts(display.ax_.xaxis)) <= 40


def test_names_are_not_read_as_formulas_and_are_valid_in_svg() -> None:
    pd = pytest.importorskip("pandas")
    names = ["$\\frac{$", "<script>", "a\nb", "nothing\0\x1b", "x_1^2", "\\alpha", "$x$"]
    frame = pd.DataFrame(X[:, 20:27], columns=names)
    labels = pd.DataFrame(Y[:, :6], columns=names[:6])
    clf = BoomerClassifier(n_rules=20, random_state=1).fit(frame, labels)
    for display in (
        FeatureImportanceDisplay.from_estimator(clf, label=0),
        FeatureLabelDisplay.from_estimator(clf),
        LabelDependenceDisplay.from_estimator(clf),
        ExplanationDisplay.from_estimator(clf, frame, label=0),
    ):
        draw(display)
        picture = BytesIO()
        display.figure_.savefig(picture, format="svg")
        ElementTree.fromstring(picture.getvalue())


def test_a_model_without_conditions_can_be_drawn() -> None:
    clf = BoomerClassifier(n_rules=1).fit(X, Y)
    draw(FeatureImportanceDisplay.from_estimator(clf))
    draw(FeatureLabelDisplay.from_estimator(clf))
    draw(LabelDependenceDisplay.from_estimator(clf))
    draw(TrainingCurveDisplay.from_curve(training_curve(clf, X, Y)))
    draw(ExplanationDisplay.from_estimator(clf, X))


@pytest.mark.parametrize(
    ("draw_wrongly", "message"),
    [
        (lambda clf: FeatureImportanceDisplay.from_estimator(clf, by="permutation"), "needs examples: X and y"),
        (lambda clf: FeatureImportanceDisplay.from_estimator(clf, n_repeats=3), "n_repeats: only by"),
        (lambda clf: FeatureImportanceDisplay.from_estimator(clf, top=0), "top must be a whole number of at least 1"),
        (lambda clf: FeatureImportanceDisplay.from_estimator(clf, label="z"), "there is no label 'z'"),
        (lambda clf: ExplanationDisplay.from_estimator(clf, X, example=300), "example must be from 0 to 299"),
    ],
)
def test_faults_are_named(clf: BoomerClassifier, draw_wrongly: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        draw_wrongly(clf)


def test_a_missing_matplotlib_is_named_with_its_cure(clf: BoomerClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'pyboomer\[plot\]'"):
        FeatureImportanceDisplay.from_estimator(clf)


# --- Shapes -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shapes() -> ShapeFunctions:
    return BoomerClassifier(n_rules=60, max_conditions=2, random_state=1).fit(X, Y).shape_functions(X)


def test_one_feature_is_drawn_as_a_line_per_label(shapes: ShapeFunctions) -> None:
    shape = shapes.features[0]
    display = ShapeDisplay.from_shapes(shapes, feature=shape.name)
    draw(display)
    lines = [patch for patch in display.ax_.patches if patch.get_fill() is False]
    assert len(lines) == 7
    for k, line in enumerate(lines):
        np.testing.assert_array_equal(line.get_data().values, shape.values[:-1, k])
        np.testing.assert_array_equal(line.get_data().edges[1:-1], shape.steps.edges)
    assert [text.get_text() for text in display.figure_.legends[0].get_texts()] == list(shapes.label_names)
    assert display.ax_.get_xlabel() == shape.name


def test_one_label_has_its_features_by_importance(shapes: ShapeFunctions) -> None:
    display = ShapeDisplay.from_shapes(shapes, label="y3", top=5)
    draw(display)
    wanted = [shape for shape in shapes.rank("y3") if isinstance(shape, FeatureShape)][:5]
    assert [ax.get_title() for ax in display.ax_] == [shape.name for shape in wanted]
    above, below = display.ax_[0].patches
    np.testing.assert_allclose(above.get_data().values + below.get_data().values, wanted[0].values[:-1, 3])
    assert "features for y3" in display.figure_.get_suptitle()
    assert "of the scores are additive" in display.figure_.get_suptitle()
    axes = plt.figure().subplots(1, 5)
    assert ShapeDisplay.from_shapes(shapes, label=3, top=5, ax=axes).ax_[4] is axes[4]
    with pytest.raises(ValueError, match="ax must be 5 axes, got 1"):
        ShapeDisplay.from_shapes(shapes, label=3, top=5, ax=axes[0])


def test_a_pair_is_a_map_for_each_label(shapes: ShapeFunctions) -> None:
    pair = shapes.pairs[0]
    names = [steps.name for steps in pair.steps]
    display = ShapeDisplay.from_shapes(shapes, feature=names)
    draw(display)
    assert [ax.get_title() for ax in display.ax_] == list(shapes.label_names)
    one = ShapeDisplay.from_shapes(shapes, feature=tuple(reversed(names)), label="y2")
    draw(one)
    np.testing.assert_array_equal(one.ax_.collections[0].get_array(), pair.values[:-1, :-1, 2])
    assert (one.ax_.get_ylabel(), one.ax_.get_xlabel()) == tuple(names)


@pytest.mark.filterwarnings("ignore:Glyph")  # no font has all of them
def test_many_labels_and_any_kind_of_feature_are_drawn(hostile_names: list[str]) -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    kinds = [f"$x_{{{name}" for name in hostile_names[:3]]
    data = pd.DataFrame({kinds[0]: rng.normal(size=60), kinds[1]: rng.choice(hostile_names[:4], 60)})
    data["$level"] = pd.Categorical(rng.choice(hostile_names[4:7], 60), hostile_names[4:7], ordered=True)
    data["$one"] = rng.random(60) < 0.5
    data.loc[::5, kinds] = None
    labels = pd.DataFrame(rng.integers(0, 2, (60, 9)), columns=[f"${k}" for k in range(9)])
    model = BoomerClassifier(n_rules=60, max_conditions=1, random_state=1).fit(data, labels)
    for given in (None, data):
        whole = ShapeDisplay.from_estimator(model, given)  # maps: there are nine labels
        draw(whole)
        assert len(whole.ax_[0].get_yticklabels()) == 9
        draw(ShapeDisplay.from_estimator(model, given, label="$3"))


def test_a_model_without_shapes_says_so() -> None:
    model = BoomerClassifier(n_rules=1).fit(X, Y)
    with pytest.raises(ValueError, match="there is no shape to draw"):
        ShapeDisplay.from_estimator(model)
