"""A display is a picture of a value, drawn by matplotlib in the way of scikit-learn's displays.

Each is made by a class method, `from_estimator` or one named after the value, and can be drawn again by `plot`, on axes
of your own if you like; `ax_` and `figure_` are what it was drawn on. With many labels or features, the most important
ones are shown. Blue is for and vermilion against, which all eyes can tell apart; what colours say can be read without
them, too. Names are untrusted: none of them is read as a formula.
"""

from dataclasses import replace
from typing import Any, Self

import numpy as np

from pyboomer.arrays import Array
from pyboomer.explore.curves import TEST, TRAIN, SizeCurve, TrainingCurve, training_curve
from pyboomer.explore.dependence import LabelDependence, label_dependence
from pyboomer.explore.drawing import MOST_TICKS, TOP_LABELS, check_top, get_axes, import_pyplot, set_ticks, shorten_name
from pyboomer.explore.explanation import Explanation
from pyboomer.explore.importance import FeatureImportance, feature_importance, permutation_importance
from pyboomer.explore.shapes.display import ShapeDisplay as ShapeDisplay  # in a module of its own, but one of these
from pyboomer.rules.names import find_all
from pyboomer.rules.text import AGAINST, FOR, format_count, format_score, show_line

TOP_FEATURES = 20
TOP_RULES = 12
ANNOTATED = 12  # labels up to which a map shows its numbers
LONGEST_BODY = 60


class FeatureImportanceDisplay:
    """A bar per feature, the most important ones on top.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.explore.displays import FeatureImportanceDisplay
    >>> digits = load_dataset("digits7")
    >>> X, Y = digits.to_frame(), digits.labels_frame()
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(X, Y)
    >>> display = FeatureImportanceDisplay.from_estimator(clf, label="b", top=10)
    >>> display.figure_.savefig("importance.png")
    """

    ax_: Any
    figure_: Any

    def __init__(self, importance: FeatureImportance, *, label: int | None = None, top: int = TOP_FEATURES) -> None:
        self.importance = importance
        self.label = label
        self.top = top

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        by: str = "gain",
        label: str | int | None = None,
        top: int = TOP_FEATURES,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the importance of the features of a fitted model.

        Parameters
        ----------
        estimator : fitted estimator
        X, y : examples, only if by="permutation"
        by : {"gain", "coverage", "permutation"}
        label : str or int, optional
            The importance for one label instead of overall.
        top : int, default=20
            How many features are shown.
        ax : matplotlib Axes, optional
        **options
            For `pyboomer.explore.importance.permutation_importance`.
        """
        return cls.from_importance(_find_importance(estimator, X, y, by, options), label=label, top=top, ax=ax)

    @classmethod
    def from_importance(
        cls, importance: FeatureImportance, *, label: str | int | None = None, top: int = TOP_FEATURES, ax: Any = None
    ) -> Self:
        """Draw a value of `feature_importance` or `permutation_importance`."""
        chosen = None if label is None else find_all("label", label, importance.label_names)[0]
        return cls(importance, label=chosen, top=check_top(top)).plot(ax)

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw it; `options` are those of `Axes.barh`."""
        importance, label = self.importance, self.label
        values = importance.overall if label is None else importance.per_label[:, label]
        shown = [f for f in importance.rank(label)[: self.top].tolist() if values[f] != 0] or [0]
        self.ax_, self.figure_ = get_axes(ax, (6.4, 0.6 + 0.26 * max(len(shown), 4)))
        spread = importance.spread[shown] if importance.spread is not None and label is None else None
        options = {"color": FOR, "height": 0.7, "xerr": spread, "ecolor": "black", "capsize": 2, **options}
        self.ax_.barh(np.arange(len(shown)), values[shown], **options)
        self.ax_.set_yticks(np.arange(len(shown)), [shorten_name(importance.feature_names[f]) for f in shown])
        self.ax_.invert_yaxis()
        self.ax_.spines[["top", "right"]].set_visible(False)
        self.ax_.set_xlabel(f"importance by {importance.by}")
        what = "" if label is None else f" for {shorten_name(importance.label_names[label])}"
        hidden = int(np.count_nonzero(values)) - len(shown)
        more = f" ({format_count(hidden, 'more feature')} not shown)" if hidden > 0 else ""
        self.ax_.set_title(f"Features{what}{more}", fontsize="medium")
        return self


class FeatureLabelDisplay:
    """A map of the importance of features (rows) for labels (columns).

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.explore.displays import FeatureLabelDisplay
    >>> digits = load_dataset("digits7")
    >>> X, Y = digits.to_frame(), digits.labels_frame()
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(X, Y)
    >>> display = FeatureLabelDisplay.from_estimator(clf, top_features=10)
    >>> display.figure_.savefig("features-and-labels.png")
    """

    ax_: Any
    figure_: Any

    def __init__(
        self, importance: FeatureImportance, *, top_features: int = TOP_FEATURES, top_labels: int = TOP_LABELS
    ) -> None:
        self.importance = importance
        self.top_features = top_features
        self.top_labels = top_labels

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        by: str = "gain",
        top_features: int = TOP_FEATURES,
        top_labels: int = TOP_LABELS,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw which features matter for which labels of a fitted model; see `FeatureImportanceDisplay`."""
        importance = _find_importance(estimator, X, y, by, options)
        return cls.from_importance(importance, top_features=top_features, top_labels=top_labels, ax=ax)

    @classmethod
    def from_importance(
        cls,
        importance: FeatureImportance,
        *,
        top_features: int = TOP_FEATURES,
        top_labels: int = TOP_LABELS,
        ax: Any = None,
    ) -> Self:
        """Draw a value of `feature_importance` or `permutation_importance`."""
        return cls(importance, top_features=check_top(top_features), top_labels=check_top(top_labels)).plot(ax)

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw it; `options` are those of `Axes.imshow`."""
        importance = self.importance
        features = importance.rank()[: self.top_features]
        totals = np.abs(importance.per_label[features]).sum(axis=0)
        labels = np.sort(np.argsort(-totals, kind="stable")[: self.top_labels])
        values = importance.per_label[np.ix_(features, labels)]
        size = (2.6 + 0.32 * max(len(labels), 5), 1.5 + 0.24 * max(len(features), 4))
        self.ax_, self.figure_ = get_axes(ax, size)
        lowest, highest = min(float(values.min()), 0.0), max(float(values.max()), 1e-12)
        if lowest < 0:  # by permutation: some features do harm
            highest = max(highest, -lowest)
            scale = {"cmap": "RdBu", "vmin": -highest, "vmax": highest}
        else:
            scale = {"cmap": "Blues", "vmin": 0.0, "vmax": highest}
        image = self.ax_.imshow(values, aspect="auto", **{**scale, **options})
        set_ticks(self.ax_.yaxis, [importance.feature_names[f] for f in features])
        set_ticks(self.ax_.xaxis, [importance.label_names[k] for k in labels])
        self.figure_.colorbar(image, ax=self.ax_, label=f"importance by {importance.by}")
        shown = f"{len(features)} of {format_count(len(importance.feature_names), 'feature')}"
        self.ax_.set_title(f"{shown}, {len(labels)} of {len(importance.label_names)} labels", fontsize="medium")
        return self


class LabelDependenceDisplay:
    """A map of labels that are predicted together (blue) or one instead of the other (red), similar ones in a row.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.explore.displays import LabelDependenceDisplay
    >>> digits = load_dataset("digits7")
    >>> X, Y = digits.to_frame(), digits.labels_frame()
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(X, Y)
    >>> display = LabelDependenceDisplay.from_estimator(clf, X)
    >>> display.figure_.savefig("dependence.png")
    """

    ax_: Any
    figure_: Any

    def __init__(self, dependence: LabelDependence, *, top: int = TOP_LABELS) -> None:
        self.dependence = dependence
        self.top = top

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, top: int = TOP_LABELS, ax: Any = None) -> Self:
        """Draw how the labels of a fitted model depend on each other; of many, those that do so most.

        In its predictions for the examples X or, without them, in the heads of its rules.
        """
        return cls.from_dependence(label_dependence(estimator, X), top=top, ax=ax)

    @classmethod
    def from_dependence(cls, dependence: LabelDependence, *, top: int = TOP_LABELS, ax: Any = None) -> Self:
        """Draw a value of `label_dependence`."""
        return cls(dependence, top=check_top(top)).plot(ax)

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw it; `options` are those of `Axes.imshow`."""
        whole = self.dependence
        shown = whole.take(whole.find_strongest(self.top))
        shown = shown.take(shown.cluster())
        n = len(shown.label_names)
        side = 2.2 + max(0.28 * min(n, MOST_TICKS), 2.4)
        self.ax_, self.figure_ = get_axes(ax, (side + 1.0, side))
        image = self.ax_.imshow(shown.matrix, **{"cmap": "RdBu", "vmin": -1.0, "vmax": 1.0, **options})
        set_ticks(self.ax_.yaxis, shown.label_names)
        set_ticks(self.ax_.xaxis, shown.label_names)
        self._annotate(shown.matrix)
        self.figure_.colorbar(image, ax=self.ax_, shrink=0.8, label="dependence")
        more = f", {n} of {len(whole.label_names)} labels" if n < len(whole.label_names) else ""
        self.ax_.set_title(f"Labels that are predicted together (+) or apart (\N{MINUS SIGN}){more}", fontsize="medium")
        return self

    def _annotate(self, matrix: Array) -> None:
        """Write numbers, or a minus where red could be taken for blue in print."""
        n = len(matrix)
        for j, k in np.ndindex(n, n) if n <= TOP_LABELS else ():
            value = matrix[j, k]
            text = (
                f"{value:.1f}".replace("-0.0", "0.0") if n <= ANNOTATED else "\N{MINUS SIGN}" if value < -0.25 else ""
            )
            if j != k and text:
                color = "white" if abs(value) > 0.6 else "black"
                self.ax_.text(k, j, text, ha="center", va="center", fontsize="x-small", color=color)


class TrainingCurveDisplay:
    """Measures against the number of rules, one panel each; the best number is marked.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.explore.displays import TrainingCurveDisplay
    >>> digits = load_dataset("digits7")
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(digits.X, digits.Y)
    >>> display = TrainingCurveDisplay.from_estimator(clf, digits.X, digits.Y)
    >>> display.figure_.savefig("training.png")
    """

    ax_: Any  # an array of axes, if there are several measures
    figure_: Any

    def __init__(self, curve: TrainingCurve) -> None:
        self.curve = curve

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, X_test: Any = None, y_test: Any = None, *, ax: Any = None, **options: Any
    ) -> Self:
        """Draw how a fitted model got better; `options` are those of `pyboomer.explore.curves.training_curve`."""
        return cls.from_curve(training_curve(estimator, X, y, X_test, y_test, **options), ax=ax)

    @classmethod
    def from_curve(cls, curve: TrainingCurve, *, ax: Any = None) -> Self:
        """Draw a value of `training_curve`."""
        return cls(curve).plot(ax)

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw it on one Axes per measure; `options` are those of `Axes.plot`."""
        names = list(self.curve.larger_is_better)
        if ax is None:
            columns = min(len(names), 2)
            rows = -(-len(names) // columns)
            figure = import_pyplot().figure(figsize=(4.2 * columns, 3.0 * rows), layout="constrained")
            axes = figure.subplots(rows, columns, squeeze=False).ravel()
            for spare in axes[len(names) :]:
                spare.remove()
        else:
            axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(axes) < len(names):
            raise ValueError(f"ax must be {len(names)} axes, one for each measure, got {len(axes)}")
        axes = axes[: len(names)]
        for one, name in zip(axes, names, strict=True):
            self._draw(one, name, options)
        axes[0].legend(frameon=False)
        self.ax_ = axes[0] if len(names) == 1 else axes
        self.figure_ = axes[0].figure
        return self

    def _draw(self, ax: Any, name: str, options: dict[str, Any]) -> None:
        curve = self.curve
        styles = {TRAIN: {"color": FOR, "linestyle": "--"}, TEST: {"color": AGAINST, "linestyle": "-"}}
        for data, measures in curve.values.items():
            ax.plot(curve.n_rules, measures[name], **{"label": data, **styles[data], **options})
        best, judged = curve.find_best(name), TEST if TEST in curve.values else TRAIN
        value = float(curve.values[judged][name][int(np.searchsorted(curve.n_rules, best))])
        ax.axvline(best, color="grey", linewidth=0.8, linestyle=":")
        ax.plot([best], [value], marker="o", color="black", markersize=4)
        ax.set_title(f"best {judged}: {value:.3g} with {format_count(best, 'rule')}", fontsize="small")
        if curve.n_rules[-1] > 50:
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter("{x:g}")
        ax.set_xlabel("number of rules")
        better = "higher" if curve.larger_is_better[name] else "lower"
        ax.set_ylabel(f"{name.replace('_', ' ')} ({better} is better)", fontsize="small")
        ax.spines[["top", "right"]].set_visible(False)
        ax.margins(y=0.12)


class SizeCurveDisplay:
    """The loss of small models against their conditions: cut, refitted and distilled ones.

    Examples
    --------
    >>> import numpy as np
    >>> from pyboomer.explore.curves import SizeCurve
    >>> from pyboomer.explore.displays import SizeCurveDisplay
    >>> losses = {"cut": np.array([1.9, 1.6]), "refitted": np.array([1.7, 1.4]), "distilled": np.array([1.2, 0.9])}
    >>> n_rules = {"cut": np.array([14, 27]), "refitted": np.array([14, 27]), "distilled": np.array([21, 43])}
    >>> curve = SizeCurve(np.array([50, 100]), losses, n_rules)  # or that of pyboomer.editing.size_curve
    >>> display = SizeCurveDisplay.from_curve(curve)
    >>> display.figure_.savefig("sizes.png")
    """

    ax_: Any
    figure_: Any

    def __init__(self, curve: SizeCurve) -> None:
        self.curve = curve

    @classmethod
    def from_curve(cls, curve: SizeCurve, *, ax: Any = None) -> Self:
        """Draw a value of `pyboomer.editing.size_curve`."""
        return cls(curve).plot(ax)

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw it; `options` are those of `Axes.plot`."""
        self.ax_, self.figure_ = get_axes(ax, (5.0, 3.4))
        sizes, styles = self.curve.n_conditions, (("grey", "s", ":"), (AGAINST, "^", "--"), (FOR, "o", "-"))
        for (way, losses), (color, marker, line) in zip(self.curve.losses.items(), styles, strict=True):
            style = {"label": way, "color": color, "marker": marker, "linestyle": line, "markersize": 4}
            self.ax_.plot(sizes, losses, **{**style, **options})
        if sizes[-1] > 10 * sizes[0]:
            self.ax_.set_xscale("log")
        self.ax_.set_xticks(sizes, [str(size) for size in sizes], minor=False)
        self.ax_.minorticks_off()
        self.ax_.set_xlabel("conditions of all rules together")
        self.ax_.set_ylabel("loss (lower is better)", fontsize="small")
        self.ax_.legend(frameon=False)
        self.ax_.spines[["top", "right"]].set_visible(False)
        return self


class ExplanationDisplay:
    """How the rules that cover an example add up to the score of a label, as a waterfall from 0.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.explore.displays import ExplanationDisplay
    >>> digits = load_dataset("digits7")
    >>> X, Y = digits.to_frame(), digits.labels_frame()
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(X, Y)
    >>> display = ExplanationDisplay.from_estimator(clf, X, example=3, label="b", top=5)
    >>> display.figure_.savefig("explanation.png")
    """

    ax_: Any
    figure_: Any

    def __init__(self, explanation: Explanation, *, label: int, top: int = TOP_RULES) -> None:
        self.explanation = explanation
        self.label = label
        self.top = top

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        example: int = 0,
        label: str | int | None = None,
        top: int = TOP_RULES,
        ax: Any = None,
    ) -> Self:
        """Draw why an example, a row of X, has the score that it has; by default the highest of its scores."""
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if not 0 <= example < n:
            raise ValueError(f"example must be from 0 to {n - 1}, the rows of X, got {example}")
        row = X.iloc[[example]] if hasattr(X, "iloc") else X[example : example + 1]
        options = {"change": False} if hasattr(estimator, "label_vectors_") else {}
        explained = estimator.explain(row, **options)[0]
        name = explained.name if hasattr(X, "iloc") else str(example)
        explained = replace(explained, example=example, name=name)
        return cls.from_explanation(explained, label=label, top=top, ax=ax)

    @classmethod
    def from_explanation(
        cls, explanation: Explanation, *, label: str | int | None = None, top: int = TOP_RULES, ax: Any = None
    ) -> Self:
        """Draw one of the values of `explain`."""
        highest = int(explanation.scores.argmax())
        chosen = highest if label is None else find_all("label", label, explanation.label_names)[0]
        return cls(explanation, label=chosen, top=check_top(top)).plot(ax)

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw it; `options` are those of `Axes.barh`."""
        explanation = self.explanation
        adds = explanation.contributions[:, self.label]
        most = np.sort(np.argsort(-np.abs(adds), kind="stable")[: self.top])
        most = most[adds[most] != 0]
        steps = adds[most].tolist()
        texts = [_cut(explanation.rules[int(i)].body_text() or "(always)") for i in most]
        names = [f"{text}  [{t}]" for text, t in zip(texts, explanation.rules.order[most].tolist(), strict=True)]
        hidden = int(np.count_nonzero(adds)) - len(most)
        if hidden:
            steps.append(float(explanation.scores[self.label]) - sum(steps))
            names.append(f"{format_count(hidden, 'more rule')}")
        ends = np.cumsum(steps)
        starts = np.concatenate([[0.0], ends])[: len(steps)]
        self.ax_, self.figure_ = get_axes(ax, (8.0, 1.0 + 0.28 * max(len(steps), 4)))
        colors = [FOR if step > 0 else AGAINST for step in steps]
        places = np.arange(len(steps))
        self.ax_.barh(places, steps, left=starts, **{"color": colors, "height": 0.7, **options})
        for place, step, end in zip(places.tolist(), steps, ends.tolist(), strict=True):
            side = "left" if step > 0 else "right"
            self.ax_.text(end, place, f" {format_score(step)} ", ha=side, va="center", fontsize="x-small")
        self.ax_.vlines(ends[:-1], places[:-1] - 0.35, places[:-1] + 1.35, color="grey", linewidth=0.5)
        self.ax_.axvline(0.0, color="black", linewidth=0.8)
        lowest, highest = min([0.0, *ends]), max([0.0, *ends])
        room = 0.15 * (highest - lowest)  # for the numbers
        self.ax_.set_xlim(lowest - (room if lowest < 0 else 0.0), highest + room)
        self.ax_.set_yticks(places, names, fontsize="small")
        self.ax_.invert_yaxis()
        self.ax_.spines[["top", "right"]].set_visible(False)
        name = shorten_name(explanation.label_names[self.label])
        self.ax_.set_xlabel(f"score of {name}")
        score = format_score(float(explanation.scores[self.label]))
        self.ax_.set_title(f"Example {explanation.name}: {name} {score}", fontsize="medium")
        return self


def _find_importance(estimator: Any, X: Any, y: Any, by: str, options: dict[str, Any]) -> FeatureImportance:
    if by == "permutation":
        if X is None or y is None:
            raise ValueError('by="permutation" needs examples: X and y')
        return permutation_importance(estimator, X, y, **options)
    if options:
        raise TypeError(f'{", ".join(options)}: only by="permutation" has such options')
    return feature_importance(estimator, by)


def _cut(body: str) -> str:
    """The beginning of a body, which is what was learned first."""
    plain = show_line(" ".join(body.split()))
    plain = plain if len(plain) <= LONGEST_BODY else plain[: LONGEST_BODY - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return plain.replace("$", r"\$")
