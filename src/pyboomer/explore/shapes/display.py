"""The display of shapes draws a model as a sum: the steps of features, and grids of steps for pairs of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from pyboomer.arrays import Array
from pyboomer.explore.drawing import TOP_LABELS, check_top, import_pyplot, set_ticks, shorten_name
from pyboomer.explore.shapes.functions import FeatureShape, PairShape, ShapeFunctions
from pyboomer.explore.shapes.steps import UNSEEN, Steps
from pyboomer.explore.shapes.sums import shape_functions
from pyboomer.rules.names import find_all
from pyboomer.rules.text import AGAINST, FOR, format_count

TOP_SHAPES = 12
MOST_LINES = 8  # more labels are a map
# told apart by all eyes (Okabe and Ito), in an order in which neighbours differ most
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D1F")
LEAST_ROOM, MOST_ROOM = 0.04, 0.25  # beyond the first and the last threshold, of the distance between them


class ShapeDisplay:
    """What rules say by the values of features: blue for a label and vermilion against it, or a line per label.

    Of one feature, all labels are drawn, as lines or, if there are more than eight, as a map. Of one label, the
    features that are most important for it are drawn, small. A pair of features is a map for each label.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.explore.displays import ShapeDisplay
    >>> digits = load_dataset("digits7")
    >>> X, Y = digits.to_frame(), digits.labels_frame()
    >>> clf = BoomerClassifier(n_rules=50, max_conditions=1, random_state=1).fit(X, Y)
    >>> display = ShapeDisplay.from_estimator(clf, X, feature="pixel_2_5")
    >>> display.figure_.savefig("shape.png")
    """

    ax_: Any  # an array of axes, if there are several panels
    figure_: Any

    def __init__(
        self, shapes: ShapeFunctions, *, feature: Any = None, label: int | None = None, top: int = TOP_SHAPES
    ) -> None:
        self.shapes = shapes
        self.feature = feature
        self.label = label
        self.top = top

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        feature: Any = None,
        label: str | int | None = None,
        top: int = TOP_SHAPES,
        ax: Any = None,
    ) -> Self:
        """Draw shapes of a fitted model.

        Parameters
        ----------
        estimator : fitted estimator
        X : examples, optional
            How often values occur, see `BoomerClassifier.shape_functions`; then, shapes are 0 on average, and a strip
            below them shows where the examples are.
        feature : str or int, or a pair of them, optional
            The feature, or the two, to draw; by default the most important ones, for the label if there is one.
        label : str or int, optional
            The label to draw; by default all of them.
        top : int, default=12
            How many features are drawn at most; of a pair, how many labels.
        ax : matplotlib Axes, or as many as there are panels, optional
        """
        return cls.from_shapes(shape_functions(estimator, X), feature=feature, label=label, top=top, ax=ax)

    @classmethod
    def from_shapes(
        cls,
        shapes: ShapeFunctions,
        *,
        feature: Any = None,
        label: str | int | None = None,
        top: int = TOP_SHAPES,
        ax: Any = None,
    ) -> Self:
        """Draw a value of `shape_functions`."""
        chosen = None if label is None else find_all("label", label, shapes.label_names)[0]
        feature = tuple(feature) if isinstance(feature, list) else feature
        return cls(shapes, feature=feature, label=chosen, top=check_top(top)).plot(ax)

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw it; `options` are those of `Axes.stairs`, `Axes.bar` or `Axes.pcolormesh`, whichever draws the steps."""
        chosen = None if self.feature is None else self.shapes[self.feature]
        if isinstance(chosen, PairShape):
            return self._plot_pair(chosen, ax, options)
        shown = self._list_features() if chosen is None else [chosen]
        labels = np.arange(len(self.shapes.label_names)) if self.label is None else np.array([self.label])
        if not shown:
            raise ValueError("no rule is about one feature alone: there is no shape to draw")
        axes = self._make_axes(ax, len(shown), (6.4, 3.6), (2.9, 2.2) if len(shown) <= 6 else (2.5, 1.9))
        highest = max(float(np.abs(s.values[:-1][:, labels]).max(initial=0.0)) for s in shown) or 1.0
        for one, shape in zip(axes, shown, strict=True):
            self._draw(one, shape, labels, highest, len(shown) > 1, options)
        self._finish(axes, shown, labels)
        return self

    def _list_features(self) -> list[FeatureShape]:
        shapes = self.shapes.features if self.label is None else self.shapes.rank(self.label)
        return [s for s in shapes if isinstance(s, FeatureShape) and s.importance.any()][: self.top]

    def _make_axes(self, ax: Any, n: int, single: tuple[float, float], small: tuple[float, float]) -> Any:
        """As many axes as there are panels: those given, or new ones in rows of up to four."""
        if ax is None:
            columns = n if n <= 3 else 2 if n == 4 else 3 if n <= 6 or n == 9 else 4
            rows = -(-n // columns)
            size = single if n == 1 else (small[0] * columns + 0.5, small[1] * rows + 0.5)
            figure = import_pyplot().figure(figsize=size, layout="constrained")
            axes = figure.subplots(rows, columns, squeeze=False).ravel()
            for spare in axes[n:]:
                spare.remove()
        else:
            axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
            if len(axes) < n:
                raise ValueError(f"ax must be {format_count(n, 'axes').removesuffix('s')}, got {len(axes)}")
        axes = axes[:n]
        self.ax_, self.figure_ = axes[0] if n == 1 else axes, axes[0].figure
        return axes

    def _draw(
        self, ax: Any, shape: FeatureShape, labels: Any, highest: float, is_small: bool, options: dict[str, Any]
    ) -> None:
        places = _place(shape.steps, shape.n_examples)
        if self._is_map(shape, labels):
            # a row for each label, the one on top for which the feature is most important
            order = labels[np.argsort(-shape.importance[labels], kind="stable")[:TOP_LABELS]]
            style = {"cmap": "RdBu", "vmin": -highest, "vmax": highest, **options}
            for cells, bounds in places.runs:
                ax.pcolormesh(bounds, np.arange(len(order) + 1) - 0.5, shape.values[cells][:, order].T, **style)
            set_ticks(ax.yaxis, [shape.label_names[k] for k in order])
            ax.invert_yaxis()
        else:
            _draw_lines(ax, places, shape.values[:, labels], options)
            ax.margins(x=0.0)
            ax.set_ylim(-1.1 * highest, 1.1 * highest)
            if shape.n_examples is not None:
                _draw_strip(ax, places, shape.n_examples)
            ax.spines[["top", "right"]].set_visible(False)
        places.set_ticks(ax.xaxis, is_small)
        name = shorten_name(shape.name)
        if is_small:
            ax.set_title(name, fontsize="x-small")
            ax.tick_params(labelsize="x-small")
        else:
            ax.set_xlabel(name)

    def _is_map(self, shape: FeatureShape, labels: Any) -> bool:
        return len(labels) > MOST_LINES or (shape.steps.kind == "nominal" and len(labels) > 1)

    def _finish(self, axes: Any, shown: Sequence[FeatureShape], labels: Any) -> None:
        """What panels have in common: legend or colours, and a title."""
        names = self.shapes.label_names
        maps = [self._is_map(shape, labels) for shape in shown]
        if any(maps):
            image = axes[maps.index(True)].collections[0]
            self.figure_.colorbar(image, ax=list(axes), label="adds to the score", shrink=0.8)
        if not all(maps):
            _set_ylabels(axes, [not is_map for is_map in maps])
        if not all(maps) and len(labels) > 1:
            lines = [_make_line(COLORS[i], shorten_name(names[k])) for i, k in enumerate(labels.tolist())]
            where = {"loc": "outside right upper"} if self.figure_.get_layout_engine() is not None else {}
            self.figure_.legend(handles=lines, frameon=False, fontsize="small", **where)
        about = "" if self.label is None else f" for {shorten_name(names[self.label])}"
        if len(shown) == 1:
            axes[0].set_title(f"{format_count(shown[0].n_rules, 'rule')}{about}", fontsize="medium")
            return
        total = sum(bool(s.importance[labels].any()) for s in self.shapes.features)
        more = f"{len(shown)} of {total}" if total > len(shown) else str(total)
        additive = self.shapes.shares["additive"]
        part = "" if additive > 0.9995 else f" ({100 * additive:.2g} % of the scores are additive)"
        self.figure_.suptitle(f"{more} features{about}, the most important first{part}", fontsize="medium")

    def _plot_pair(self, pair: PairShape, ax: Any, options: dict[str, Any]) -> Self:
        """A map for each label, or for the one wanted."""
        ranked = np.argsort(-pair.importance, kind="stable")
        labels = np.sort(ranked[: self.top]) if self.label is None else np.array([self.label])
        axes = self._make_axes(ax, len(labels), (5.4, 4.2), (2.6, 2.3))
        counts = (None, None) if pair.n_examples is None else (pair.n_examples.sum(axis=1), pair.n_examples.sum(axis=0))
        across, down = (_place(steps, known) for steps, known in zip(pair.steps, counts, strict=True))
        highest = float(np.abs(pair.values[:, :, labels]).max(initial=0.0)) or 1.0
        style = {"cmap": "RdBu", "vmin": -highest, "vmax": highest, **options}
        for one, k in zip(axes, labels.tolist(), strict=True):
            for columns, x in across.runs:
                for rows, y in down.runs:
                    image = one.pcolormesh(x, y, pair.values[columns][:, rows][:, :, k].T, **style)
            across.set_ticks(one.xaxis, len(labels) > 1)
            down.set_ticks(one.yaxis, len(labels) > 1)
            one.set_title(shorten_name(pair.label_names[k]), fontsize="small" if len(labels) > 1 else "medium")
            if len(labels) > 1:
                one.tick_params(labelsize="x-small")
        names = [shorten_name(steps.name) for steps in pair.steps]
        if len(labels) == 1:
            axes[0].set(xlabel=names[0], ylabel=names[1])
        else:
            self.figure_.supxlabel(names[0], fontsize="medium")
            self.figure_.supylabel(names[1], fontsize="medium")
        self.figure_.colorbar(image, ax=list(axes), label="adds to the score", shrink=0.8)
        return self


# --- Where steps are drawn --------------------------------------------------------------------------------------------


class Places(NamedTuple):
    """Where the steps of a feature are on an axis: runs of steps next to each other, with their bounds, and ticks."""

    runs: list[tuple[slice, Array]]
    ticks: list[float]
    names: list[str]
    is_named: bool  # or numbers, which matplotlib marks well

    def set_ticks(self, axis: Any, is_small: bool) -> None:
        """Name categories and levels, and what is missing."""
        is_long = max(map(len, self.names), default=0) * len(self.names) > (16 if is_small else 60)
        if self.is_named:
            axis.set_ticks(self.ticks, self.names, **({"rotation": 90} if is_long and axis.axis_name == "x" else {}))
        elif self.ticks:
            first, last = self.runs[0][1][[0, -1]]
            numbers = [tick for tick in axis.get_ticklocs() if first <= tick <= last - 0.1 * (last - first)]
            axis.set_ticks([*numbers, *self.ticks], [*(f"{number:g}" for number in numbers), *self.names])


def _place(steps: Steps, n_examples: Array | None) -> Places:
    """Where steps are drawn; that of a missing value apart, and only if examples are known to have one."""
    m = len(steps.edges)
    texts = steps.describe()
    ticks: list[float] = []
    names: list[str] = []
    last = m + 1  # steps that are drawn side by side
    if steps.kind == "numeric":
        bounds = _bound(steps)
    elif steps.kind == "ordinal":
        bounds = np.concatenate([[-0.5], steps.edges + 0.5, [len(steps.categories) - 0.5]])
        ticks, names = list(map(float, range(len(steps.categories)))), list(map(str, steps.categories))
    else:
        if texts[m] == UNSEEN and (n_examples is None or n_examples[m] == 0):
            last = m
        bounds = np.arange(last + 1.0) - 0.5
        ticks, names = list(map(float, range(last))), list(texts[:last])
    runs = [(slice(0, last), bounds)]
    if n_examples is not None and n_examples[-1] > 0:
        width = (1.0 if ticks else (bounds[-1] - bounds[0]) * 0.07) or 1.0
        start = bounds[-1] + 0.5 * width
        runs.append((slice(m + 1, m + 2), np.array([start, start + width])))
        ticks, names = [*ticks, start + width / 2], [*names, texts[-1]]
    return Places(runs, ticks, [shorten_name(name) for name in names], steps.kind != "numeric")


def _bound(steps: Steps) -> Array:
    """The thresholds of a numeric feature, and where its first and last step end in a picture."""
    low, high = float(steps.edges[0]), float(steps.edges[-1])
    distance = (high / 2 - low / 2) * 2 if high > low else 4 * max(abs(low), 0.5)  # of one threshold: up to 0
    # as far as there are examples, but a few that are far away shall not make all else small
    ends = [edge if np.isnan(end) else end for edge, end in zip((low, high), steps.span, strict=True)]
    below, above = (
        min(max(room, LEAST_ROOM * distance), MOST_ROOM * distance) for room in (low - ends[0], ends[1] - high)
    )
    if low == high and np.isnan(steps.span[0]):
        below = above = MOST_ROOM * distance
    return np.concatenate([[low - below], steps.edges, [high + above]])


def _draw_lines(ax: Any, places: Places, values: Array, options: dict[str, Any]) -> None:
    """Steps: of one label filled, of several as lines."""
    ax.axhline(0.0, color="grey", linewidth=0.6)
    for cells, bounds in places.runs:
        if values.shape[1] == 1:
            for color, side in (FOR, np.maximum(values[cells, 0], 0.0)), (AGAINST, np.minimum(values[cells, 0], 0.0)):
                ax.stairs(side, bounds, **{"fill": True, "color": color, **options})
        else:
            for color, column in zip(COLORS, values[cells].T, strict=False):
                ax.stairs(column, bounds, **{"color": color, "linewidth": 1.5, "baseline": None, **options})


def _draw_strip(ax: Any, places: Places, n_examples: Array) -> None:
    """Where the examples are: the darker the strip at the bottom, the more there are in a step for its width."""
    bottom, top = ax.get_ylim()
    height = 0.05 * (top - bottom)
    densities = [n_examples[cells] / np.maximum(np.diff(bounds), 1e-300) for cells, bounds in places.runs]
    most = max(float(density.max(initial=0.0)) for density in densities[:1]) or 1.0
    for (_, bounds), density in zip(places.runs, densities, strict=True):
        shade = np.sqrt(np.minimum(density / most, 1.0))[None, :]
        ax.pcolormesh(bounds, [bottom, bottom + height], shade, cmap="Greys", vmin=0.0, vmax=1.2, zorder=0)


def _make_line(color: str, name: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=color, label=name)


def _set_ylabels(axes: Any, wanted: Sequence[bool]) -> None:
    """Say what the vertical axis is, where a row of panels begins."""
    for ax, is_wanted in zip(axes, wanted, strict=True):
        place = ax.get_subplotspec()
        if is_wanted and (place is None or place.is_first_col()):
            ax.set_ylabel("adds to the score", fontsize="small")
        elif is_wanted:
            ax.set_yticklabels([])
