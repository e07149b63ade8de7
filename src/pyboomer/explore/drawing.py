"""Drawing is what displays share: axes to draw on, names that can be drawn, the marks of a map."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyboomer.rules.text import show_line

TOP_LABELS = 30
MOST_TICKS = 40
LONGEST = 28  # characters of a name


def import_pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("displays need matplotlib: pip install 'pyboomer[plot]'") from error
    return plt


def get_axes(ax: Any, size: tuple[float, float]) -> tuple[Any, Any]:
    """The axes to draw on and their figure; new ones of this size, unless some are given."""
    if ax is None:
        figure = import_pyplot().figure(figsize=size, layout="constrained")
        ax = figure.subplots()
    return ax, ax.figure


def check_top(top: int) -> int:
    if not isinstance(top, int | np.integer) or top < 1:
        raise ValueError(f"top must be a whole number of at least 1, got {top!r}")
    return int(top)


def shorten_name(name: str) -> str:
    """A name as it can be drawn: not too long, on one line, and no formula."""
    plain = show_line(" ".join(name.split()))
    if len(plain) > LONGEST:  # beginnings are often the same
        plain = f"{plain[: LONGEST // 2]}\N{HORIZONTAL ELLIPSIS}{plain[len(plain) - (LONGEST - 1) // 2 :]}"
    return plain.replace("$", r"\$")


def set_ticks(axis: Any, names: Sequence[str]) -> None:
    """Name the rows or columns of a map; of very many, every second, third, ..."""
    step = -(-len(names) // MOST_TICKS)
    places = list(range(0, len(names), step))
    texts = [shorten_name(names[i]) for i in places]
    turned = {"rotation": 90} if axis.axis_name == "x" and max(map(len, texts), default=0) > 2 else {}
    axis.set_ticks(places, texts, fontsize="small" if len(names) <= TOP_LABELS else "x-small", **turned)
