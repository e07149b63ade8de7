"""Draw the pictures of *Understanding*, and write the live pages, when the site is built.

`make_all` makes what is missing or older than this file. `python docs/pictures.py FOLDER` makes it, too.
"""

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle
from scipy.special import expit
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from pyboomer import BoomerClassifier
from pyboomer.datasets import load_dataset
from pyboomer.losses import find_loss

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#B34700", "#009E73", "#999999"
SEGMENTS = {  # where the segments of a display are: x, y, width, height
    "a": (1, 9, 4, 1), "b": (5, 5.5, 1, 3.5), "c": (5, 1, 1, 3.5), "d": (1, 0, 4, 1),
    "e": (0, 1, 1, 3.5), "f": (0, 5.5, 1, 3.5), "g": (1, 4.5, 4, 1),
}  # fmt: skip


# --- Boosting ---------------------------------------------------------------------------------------------------------


def make_moons() -> tuple[np.ndarray, np.ndarray]:
    """Points of the plane with two labels: inside a ring, and to the right of a line."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(400, 2))
    Y = np.column_stack([np.abs(np.hypot(*X.T) - 0.55) < 0.28, X[:, 0] + 0.4 * X[:, 1] > 0.2])
    return X, (Y ^ (rng.random(Y.shape) < 0.03)).astype(int)


def draw_boosting() -> Any:
    """How scores add up: after 2, 10, 40 and 200 rules."""
    X, Y = make_moons()
    settings = {"learning_rate": 0.3, "max_features": None, "max_conditions": None, "random_state": 1}
    clf = BoomerClassifier("label-wise-logistic", n_rules=200, **settings).fit(X, Y)
    side = np.linspace(-1, 1, 90)
    grid = np.array([(x, y) for y in side for x in side])
    stages = (2, 10, 40, 200)
    figure, axes = plt.subplots(1, 4, figsize=(10, 2.9), layout="constrained", sharey=True)
    for ax, n, scores in zip(axes, stages, clf.staged_decision_function(grid, at=stages), strict=True):
        ax.imshow(scores[:, 0].reshape(90, 90), extent=(-1, 1, -1, 1), origin="lower", cmap="RdBu", vmin=-1.5, vmax=1.5)
        ax.scatter(*X.T, s=4, c=np.where(Y[:, 0] == 1, "#08306B", "#7F2704"), linewidths=0)
        draw_body(ax, clf.rules_[n - 1])
        ax.set(title=f"{n} rules", xlim=(-1, 1), ylim=(-1, 1), xticks=(), yticks=())
    return figure


def draw_body(ax: Any, rule: Any) -> None:
    """The part of the plane that a rule covers, as a frame."""
    low, high = [-0.99, -0.99], [0.99, 0.99]
    for condition in rule.body:
        if condition.operator == "<=":
            high[condition.feature] = min(high[condition.feature], condition.value)
        else:
            low[condition.feature] = max(low[condition.feature], condition.value)
    ax.add_patch(Rectangle(low, high[0] - low[0], high[1] - low[1], fill=False, linewidth=2, edgecolor="black"))


def draw_heads() -> Any:
    """The head of the same kind of rule with head="single", 3 and "multi"."""
    digits = load_dataset("digits7")
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.4), layout="constrained", sharey=True)
    for ax, head in zip(axes, ("single", 3, "multi"), strict=True):
        settings = {"n_rules": 30, "learning_rate": 0.3, "max_conditions": 2, "random_state": 1}
        clf = BoomerClassifier("label-wise-logistic", head=head, **settings).fit(digits.X, digits.Y)
        scores = clf.rules_[1:].by_gain().head_matrix()[0]
        ax.bar(list("abcdefg"), scores, color=np.where(scores > 0, BLUE, ORANGE))
        ax.axhline(0, color="black", linewidth=0.8)
        ax.set_title(f"head={head!r}")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("score of the rule")
    return figure


def draw_gain() -> Any:
    """The loss of the examples that a rule covers against its score, and the parabola that stands for it."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(40) < 0.75, 1, -1)
    f, l2 = rng.normal(-0.5, 0.6, 40), 1.0
    score = np.linspace(-0.8, 3.2, 200)
    loss = np.array([np.log1p(np.exp(-y * (f + s))).sum() + 0.5 * l2 * s**2 for s in score])
    p = expit(-y * f)
    g, h = float((-y * p).sum()), float((p * (1 - p)).sum())
    start = float(np.log1p(np.exp(-y * f)).sum())
    parabola = start + g * score + 0.5 * (h + l2) * score**2
    best, gain = -g / (h + l2), 0.5 * g**2 / (h + l2)
    figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    ax.plot(score, loss, color=BLUE, label="loss of the examples covered, with L2")
    ax.plot(score, parabola, "--", color=ORANGE, label="its parabola (Eq. 14)")
    ax.plot([0, best], [start, start], ":", color=GREY)
    ax.annotate("", (best, start - gain), (best, start), arrowprops={"arrowstyle": "->", "color": "black"})
    ax.text(best + 0.06, start - 0.2 * gain, "gain =\n½ g² / (h + l2)", va="center")
    ax.plot(0, start, "o", color="black")
    ax.text(0.05, start + 0.7, "before the rule")
    ax.plot(best, start - gain, "o", color=ORANGE)
    ax.text(best + 0.05, start - gain - 1.5, "best score = -g / (h + l2)", color=ORANGE)
    ax.set(xlabel="score that the rule adds", ylabel="loss", ylim=(start - gain - 3, start + 4))
    ax.legend(frameon=False, loc="upper center")
    ax.spines[["top", "right"]].set_visible(False)
    return figure


# --- Losses -----------------------------------------------------------------------------------------------------------


def draw_losses() -> Any:
    """The loss of one example with two true labels, as a function of both scores."""
    side = np.linspace(-3, 3, 121)
    F = np.array([(x, y) for y in side for x in side])
    Y = np.ones_like(F)
    joint = find_loss("joint-logistic").prepare(np.array([[0, 0], [1, 0], [1, 1]], dtype=np.uint8), np.ones(3))
    losses = {
        "label-wise": find_loss("label-wise-logistic"),
        "example-wise": find_loss("example-wise-logistic"),
        "joint, if y₁ never\noccurs without y₀": joint,
    }
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained", sharey=True)
    for ax, (name, loss) in zip(axes, losses.items(), strict=True):
        values = loss.value(Y, F).reshape(121, 121)
        ax.contourf(side, side, values, levels=np.arange(0, 6.5, 0.5), cmap="Blues", extend="max")
        lines = ax.contour(side, side, values, levels=np.arange(0.5, 6.5, 0.5), colors="black", linewidths=0.5)
        ax.clabel(lines, fontsize="x-small")
        ax.set(title=name, xlabel="score of y₀", aspect="equal")
    axes[0].set_ylabel("score of y₁")
    return figure


def draw_bound() -> Any:
    """Exact gains of random candidates against their bounds, by the example-wise loss."""
    digits = load_dataset("digits7")
    clf = BoomerClassifier("example-wise-logistic", n_rules=100, random_state=1).fit(digits.X, digits.Y)
    Y, F = np.where(digits.Y == 1, 1.0, -1.0), clf.decision_function(digits.X)
    g = find_loss("example-wise-logistic").derivatives(Y, F)[0]
    rng = np.random.default_rng(1)
    exact, bound = [], []
    for _ in range(400):
        feature = rng.integers(digits.X.shape[1])
        covered = digits.X[:, feature] <= rng.choice(digits.X[:, feature])
        if not 20 < covered.sum() < len(Y):
            continue
        own = g[covered]
        total, D = own.sum(axis=0), np.abs(own).sum(axis=0) + 1.0
        exact.append(0.5 * total @ np.linalg.solve(np.diag(D) - own.T @ own, total))
        q = float(total @ (total / D))
        bound.append(0.5 * q / (1 - q / len(own)))
    figure, ax = plt.subplots(figsize=(4.6, 3.8), layout="constrained")
    ax.loglog(exact, bound, ".", color=BLUE, alpha=0.5)
    limits = np.array([max(min(bound), 1e-4), max(exact)])
    ax.plot(limits, limits, color="black", linewidth=0.8)
    ax.text(0.72, 0.8, "bound = gain", ha="right", transform=ax.transAxes)
    ax.set(xlabel="exact gain of a candidate", ylabel="lower bound of its gain", xlim=limits, ylim=limits)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


# --- Probabilities and decisions --------------------------------------------------------------------------------------


def draw_display(ax: Any, x: float, y: float, vector: Any, size: float = 0.03) -> None:
    """A seven-segment display that shows a label vector, in units of the axes."""
    figure = ax.figure.get_size_inches()
    shape = ax.get_position()
    ratio = figure[0] * shape.width / (figure[1] * shape.height)
    for on, (left, low, width, height) in zip(vector, SEGMENTS.values(), strict=True):
        place = (x + size * left / 10, y + size * ratio * low / 10)
        kind = {"facecolor": "black" if on else "#dddddd", "edgecolor": "none", "transform": ax.transAxes}
        ax.add_patch(Rectangle(place, size * width / 10, size * ratio * height / 10, clip_on=False, **kind))


@cache
def fit_digits() -> tuple[Any, np.ndarray]:
    """A model of the digits, and an example that it wavers about: decodings differ."""
    digits = load_dataset("digits7")
    X, X_test, Y, _ = train_test_split(digits.X, digits.Y, random_state=1)
    clf = BoomerClassifier("joint-logistic", n_rules=1000, random_state=1).fit(X, Y)
    differ = (clf.predict(X_test, decode="subset") != clf.predict(X_test, decode="hamming")).any(axis=1)
    best = np.where(differ, clf.predict_joint(X_test).max(axis=1), 1.0)
    return clf, X_test[[int(np.argmin(best))]]


def draw_joint() -> Any:
    """The probability of each label vector: before any rule is learned, and of one example after some."""
    clf, x = fit_digits()
    start = clf.label_vector_counts_**0.5
    stages = {"before any rule": start / start.sum(), f"after {len(clf.rules_)} rules": clf.predict_joint(x)[0]}
    figure, axes = plt.subplots(1, 2, figsize=(9, 2.8), sharey=True)
    figure.subplots_adjust(left=0.08, right=0.98, bottom=0.24, wspace=0.08)
    for ax, (title, values) in zip(axes, stages.items(), strict=True):
        ax.bar(range(10), values, color=BLUE, width=0.7)
        ax.set(title=title, xticks=(), xlim=(-0.6, 9.6))
        ax.spines[["top", "right"]].set_visible(False)
        for n, vector in enumerate(clf.label_vectors_):
            draw_display(ax, (n + 0.6) / 10.2 - 0.025, -0.24, vector, size=0.07)
    axes[0].set_ylabel("probability")
    return figure


def draw_decoding() -> Any:
    """One example, one model, four decodings."""
    clf, x = fit_digits()
    joint, marginals = clf.predict_joint(x)[0], clf.predict_proba(x)[0]
    best = np.argsort(-joint)[:5]
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3), width_ratios=(4, 5, 4))
    figure.subplots_adjust(left=0.06, right=0.99, bottom=0.24, wspace=0.2)
    left.imshow(x.reshape(8, 8), cmap="Greys")
    left.set(title="an example", xticks=(), yticks=())
    middle.bar(range(7), marginals, color=GREEN, width=0.6)
    middle.axhline(0.5, color=GREY, linewidth=0.8, linestyle="--")
    middle.set(title="probability of each label", xticks=range(7), xticklabels=list("abcdefg"), ylim=(0, 1))
    right.bar(range(5), joint[best], color=BLUE, width=0.6)
    right.set(title="of the likeliest label vectors", xticks=(), xlim=(-0.6, 4.6), ylim=(0, 1))
    for n, vector in enumerate(clf.label_vectors_[best]):
        draw_display(right, (n + 0.6) / 5.2 - 0.04, -0.24, vector, size=0.12)
    for ax in (middle, right):
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def draw_decisions() -> Any:
    """What is predicted for that example by each decoding."""
    clf, x = fit_digits()
    figure, axes = plt.subplots(1, 4, figsize=(6, 1.6))
    figure.subplots_adjust(left=0.02, right=0.98, top=0.8, bottom=0.02)
    for ax, decode in zip(axes, ("subset", "hamming", "f1", "top-3"), strict=True):
        ax.set_title(f'"{decode}"')
        ax.set_axis_off()
        draw_display(ax, 0.25, 0.1, clf.predict(x, decode=decode)[0], size=0.75)
    return figure


# --- Live pages -------------------------------------------------------------------------------------------------------


def write_digits(path: Path) -> None:
    """The page of a model of handwritten digits."""
    digits = load_dataset("digits7")
    X, X_test, Y, Y_test = train_test_split(digits.to_frame(), digits.labels_frame(), random_state=1)
    clf = BoomerClassifier(n_rules=500, learning_rate=0.1, max_conditions=3, random_state=1).fit(X, Y)
    clf.to_html(path, X=X_test, y=Y_test, title="Seven segments of a handwritten digit")


def write_tumours(path: Path) -> None:
    """The page of a model of breast tumours: real measurements, 569 patients (Wisconsin, 1995)."""
    data = load_breast_cancer(as_frame=True)
    y = np.where(data.target == 0, "malignant", "benign")
    X, X_test, y, y_test = train_test_split(data.data, y, random_state=1)
    clf = BoomerClassifier(n_rules=60, learning_rate=0.2, max_conditions=2, random_state=1).fit(X, y)
    clf.to_html(path, X=X_test, y=y_test, title="Is a breast tumour malignant?")


# --- All of them ------------------------------------------------------------------------------------------------------

PICTURES: dict[str, Callable[[], Any]] = {
    "boosting": draw_boosting,
    "heads": draw_heads,
    "gain": draw_gain,
    "losses": draw_losses,
    "bound": draw_bound,
    "joint": draw_joint,
    "decoding": draw_decoding,
    "decisions": draw_decisions,
}
PAGES: dict[str, Callable[[Path], None]] = {"live-digits": write_digits, "live-tumours": write_tumours}


def make_all(folder: Path) -> None:
    """Make what is missing in a folder, or older than this file."""
    (folder / "live").mkdir(parents=True, exist_ok=True)
    written = Path(__file__).stat().st_mtime

    def is_old(path: Path) -> bool:
        return not path.exists() or path.stat().st_mtime < written

    for name, draw in PICTURES.items():
        if is_old(path := folder / f"{name}.svg"):
            with plt.rc_context({"font.family": "sans-serif", "svg.hashsalt": "pyboomer"}):
                figure = draw()
                figure.savefig(path, facecolor="white", metadata={"Date": None})
                plt.close(figure)
    for name, write in PAGES.items():
        if is_old(path := folder / "live" / f"{name}.html"):
            write(path)


if __name__ == "__main__":
    make_all(Path(sys.argv[1]))
