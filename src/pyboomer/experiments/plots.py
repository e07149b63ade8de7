"""A plot is a picture of a result, drawn by a display in the way of scikit-learn.

A display is made from a result (`from_figure`, `from_table`) or from an estimator (`from_estimator`), draws on given
axes or on new ones, and keeps what it drew (`ax_`, `figure_`) for further work in a notebook. Colours can be told apart
by the colour-blind (Okabe and Ito), and every approach also has a marker and a line style of its own, for print.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from pyboomer.experiments.measures import MEASURES, rate_hamming, rate_subset
from pyboomer.experiments.paper.budgets import MARKS
from pyboomer.experiments.paper.figure1 import BAYES, Figure
from pyboomer.experiments.paper.table1 import Table
from pyboomer.experiments.significance import Comparison
from pyboomer.experiments.tasks import RULES
from pyboomer.files import write_file


class Pen(NamedTuple):
    """How a line is drawn."""

    color: str
    marker: str
    linestyle: str


PENS = dict(
    zip(
        RULES,
        (
            Pen("#0072B2", "o", "-"),  # blue
            Pen("#56B4E9", "s", "--"),  # sky blue
            Pen("#D55E00", "^", "-"),  # vermilion
            Pen("#E69F00", "D", "--"),  # orange
        ),
        strict=True,
    )
)
OTHER_PENS = (Pen("#009E73", "v", "-."), Pen("#CC79A7", "P", ":"), Pen("#000000", "X", "-"))
TITLES = {
    "synthetic-marginal-independence": "Marginal independence",
    "synthetic-marginal-dependence": "Strong marginal dependence",
    "synthetic-conditional-dependence": "Strong conditional dependence",
}


def import_pyplot() -> Any:
    """matplotlib.pyplot, or an error that tells how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'pyboomer[experiments]'") from error
    return plt


def save_figure(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as SVG and as PNG; the same figure gives the same files."""
    plt = import_pyplot()
    paths = [stem.with_suffix(".svg"), stem.with_suffix(".png")]
    with plt.rc_context({"svg.hashsalt": "pyboomer", "svg.fonttype": "none"}):
        for path in paths:
            content, kind = BytesIO(), path.suffix[1:]
            metadata = {"Date": None} if kind == "svg" else None
            figure.savefig(content, format=kind, dpi=200, metadata=metadata, bbox_inches="tight")
            write_file(path, content.getvalue())
    return paths


class Line(NamedTuple):
    """Losses in percent after some numbers of rules."""

    n_rules: np.ndarray
    hamming: np.ndarray
    subset: np.ndarray


class TrajectoryDisplay:
    """Hamming against subset 0/1 loss as rules are added, from the top right downwards.

    Parameters
    ----------
    lines : mapping of str to Line
        The losses of each approach, by name.
    bayes : pair of float, optional
        The smallest possible Hamming and subset 0/1 loss, in percent.
    title : str

    Attributes
    ----------
    ax_, figure_ :
        What `plot` drew on.

    Examples
    --------
    >>> from pyboomer import BoomerClassifier
    >>> from pyboomer.datasets import load_dataset
    >>> from pyboomer.experiments.plots import TrajectoryDisplay
    >>> digits = load_dataset("digits7")
    >>> clf = BoomerClassifier(n_rules=50, random_state=1).fit(digits.X, digits.Y)
    >>> display = TrajectoryDisplay.from_estimator(clf, digits.X, digits.Y)
    >>> display.figure_.savefig("trajectory.png")
    """

    ax_: Any
    figure_: Any

    def __init__(self, lines: Mapping[str, Line], *, bayes: tuple[float, float] | None = None, title: str = "") -> None:
        self.lines = dict(lines)
        self.bayes = bayes
        self.title = title

    @classmethod
    def from_figure(cls, figure: Figure, data: str, *, ax: Any = None) -> Self:
        """Draw one panel of Figure 1."""
        lines = {
            approach: Line(each.n_rules, each.hamming, each.subset)
            for (name, approach), each in figure.trajectories.items()
            if name == data
        }
        return cls(lines, bayes=BAYES.get(data), title=TITLES.get(data, data)).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, at: Iterable[int] | None = None, name: str | None = None, ax: Any = None
    ) -> Self:
        """Draw how a fitted classifier does on examples, after 1, 2, 4, ... rules or those in `at`."""
        total = len(estimator.rules_)
        counts = [*(1 << i for i in range(total.bit_length()) if 1 << i < total), total] if at is None else list(at)
        true = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
        predictions = [np.asarray(each) for each in estimator.staged_predict(X, at=counts)]
        hamming, subset = (
            np.array([100 * rate(true, predicted).mean() for predicted in predictions])
            for rate in (rate_hamming, rate_subset)
        )
        return cls({name or type(estimator).__name__: Line(np.array(counts), hamming, subset)}).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw on the axes given, or on new ones."""
        plt = import_pyplot()
        if ax is None:
            _, ax = plt.subplots(figsize=(4.2, 4.0), layout="constrained")
        spare = iter(OTHER_PENS * (1 + len(self.lines)))
        for name, line in self.lines.items():
            pen = PENS.get(name) or next(spare)
            shown = [i for i, count in enumerate(line.n_rules) if count in MARKS or i == len(line.n_rules) - 1]
            ax.plot(
                line.hamming,
                line.subset,
                color=pen.color,
                linestyle=pen.linestyle,
                marker=pen.marker,
                markevery=shown,
                markersize=5.5,
                markerfacecolor="white",
                markeredgewidth=1.2,
                linewidth=1.3,
                label=name,
            )
        if self.bayes is not None:
            ax.plot(*self.bayes, color="black", marker="*", markersize=12, linestyle="none", label="Bayes optimum")
        self._draw_isometrics(ax)
        ax.set(xlabel="Hamming loss (%)", ylabel="Subset 0/1 loss (%)", title=self.title)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_isometrics(self, ax: Any) -> None:
        """Lines along which both losses fall by the same number of points."""
        (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
        for start in np.linspace(bottom - (right - left), top, 16):
            ax.axline((left, start), slope=1, color="0.85", linewidth=0.6, zorder=0)
        ax.set(xlim=(left, right), ylim=(bottom, top))


def plot_figure1(figure: Figure) -> Any:
    """Figure 1 of the paper: a panel for each of the three data sets, and a legend."""
    plt = import_pyplot()
    drawing, axes = plt.subplots(1, len(figure.data), figsize=(4.1 * len(figure.data), 4.4), layout="constrained")
    for ax, name in zip(np.atleast_1d(axes), figure.data, strict=True):
        TrajectoryDisplay.from_figure(figure, name, ax=ax)
    handles, labels = np.atleast_1d(axes)[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return drawing


class CriticalDifferenceDisplay:
    """Average ranks on an axis; bars join approaches that do not differ by the Nemenyi test.

    Parameters
    ----------
    comparison : Comparison
    alpha : float, default=0.05
    title : str

    Attributes
    ----------
    ax_, figure_ :
        What `plot` drew on.

    Examples
    --------
    >>> from pyboomer.experiments import compare
    >>> from pyboomer.experiments.plots import CriticalDifferenceDisplay
    >>> losses = [[0.20, 0.25, 0.30], [0.11, 0.15, 0.12], [0.31, 0.35, 0.38], [0.22, 0.21, 0.29]]
    >>> display = CriticalDifferenceDisplay(compare(losses, ("ours", "theirs", "guess"))).plot()
    >>> display.figure_.savefig("ranks.png")
    """

    ax_: Any
    figure_: Any

    def __init__(self, comparison: Comparison, *, alpha: float = 0.05, title: str = "") -> None:
        self.comparison = comparison
        self.alpha = alpha
        self.title = title

    @classmethod
    def from_table(
        cls, table: Table, measure: str, approaches: Sequence[str] | None = None, *, alpha: float = 0.05, ax: Any = None
    ) -> Self:
        """Draw the ranks of a table by one measure."""
        comparison = table.compare(measure, approaches)
        return cls(comparison, alpha=alpha, title=MEASURES[measure].title).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw on the axes given, or on new ones."""
        plt = import_pyplot()
        names, average = self.comparison.names, self.comparison.average_ranks
        order = np.argsort(average, kind="stable")
        n, distance = len(names), self.comparison.critical_distance(self.alpha)
        cliques = self.comparison.list_cliques(self.alpha)
        half = (n + 1) // 2
        depth = 0.35 * len(cliques) + 0.35  # of the first name below the axis
        if ax is None:
            _, ax = plt.subplots(figsize=(7.0, 0.32 * (half + 4) + 0.2 * len(cliques)), layout="constrained")
        ax.set(xlim=(0.2, n + 0.8), ylim=(-(depth + 0.6 * half), 1.5))
        ax.axis("off")
        ax.hlines(0, 1, n, color="black", linewidth=1)
        for rank in range(1, n + 1):
            ax.vlines(rank, 0, 0.15, color="black", linewidth=1)
            ax.text(rank, 0.22, str(rank), ha="center", va="bottom", fontsize=9)
        for position, i in enumerate(order):
            on_left = position < half
            row = position if on_left else n - 1 - position
            y = -(depth + 0.6 * row)
            edge = 0.85 if on_left else n + 0.15
            ax.plot([average[i], average[i], edge], [0, y, y], color="black", linewidth=0.8)
            text = f"{names[i]}  {average[i]:.2f}" if on_left else f"{average[i]:.2f}  {names[i]}"
            ax.text(
                edge + (-0.05 if on_left else 0.05), y, text, ha="right" if on_left else "left", va="center", fontsize=9
            )
        rank_of = dict(zip(names, average, strict=True))
        for level, clique in enumerate(cliques):
            ends = [rank_of[name] for name in clique]
            y = -(0.25 + 0.35 * level)
            ax.hlines(y, min(ends) - 0.04, max(ends) + 0.04, color="#0072B2", linewidth=4)
        ax.errorbar(1 + distance / 2, 0.95, xerr=distance / 2, color="black", capsize=3, linewidth=1)
        ax.text(
            1 + distance + 0.1, 0.95, f"CD = {distance:.2f} (α = {self.alpha:g})", ha="left", va="center", fontsize=9
        )
        ax.set_title(self.title, loc="right", fontsize=10)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def plot_ranks(table: Table, approaches: Sequence[str] | None = None, *, alpha: float = 0.05) -> Any:
    """Critical-difference diagrams of all measures, one below the other."""
    plt = import_pyplot()
    drawing, axes = plt.subplots(len(MEASURES), 1, figsize=(8.5, 2.6 * len(MEASURES)), layout="constrained")
    for ax, measure in zip(axes, MEASURES, strict=True):
        CriticalDifferenceDisplay.from_table(table, measure, approaches, alpha=alpha, ax=ax)
    return drawing
