"""A report is a result as text for a terminal: a table, a list of rules, a drawing. Nothing here computes a result."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from pyboomer.rules.rule import Rule
from pyboomer.rules.text import show_line

INK = " .:oO@"  # from blank paper to full ink


def format_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Align the columns of a table: the first one to the left, all others to the right."""
    lines = [tuple(map(show_line, row)) for row in (header, *rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]).rstrip()
        for line in lines
    )


def format_count(number: int, noun: str) -> str:
    """Write a number and what it counts: `1 rule`, `1,000 rules`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def format_names(names: Sequence[str], most: int = 5) -> str:
    """List names in quotes, the first few of many."""
    shown = ", ".join(repr(name) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def format_metrics(metrics: Mapping[str, Mapping[str, Any]], larger_is_better: Mapping[str, bool]) -> str:
    """Tabulate the mean of each metric, and its standard deviation where there are several values."""
    has_spread = any(metric["std"] is not None for metric in metrics.values())
    rows = [
        [
            name.replace("_", " "),
            f"{metric['mean']:.4f}",
            *([f"{metric['std']:.4f}"] if has_spread else []),
            "higher" if larger_is_better[name] else "lower",
        ]
        for name, metric in metrics.items()
    ]
    return format_table(["metric", *(["mean", "std"] if has_spread else ["value"]), "better"], rows)


def spell_out_rule(number: int, rule: Rule) -> str:
    """Lay out a rule in two lines: its body, and below it the scores of its head in columns."""
    body = f"IF {rule.body_text()}" if rule.body else "ALWAYS"
    head = "  ".join(f"{name} {score:+.2f}" for name, score in rule.head.items())
    return f"{number:>3}  {show_line(body)}\n     -> {show_line(head)}"


def draw_pixels(pixels: Sequence[float], width: int = 8, most: float = 16) -> list[str]:
    """Draw a picture given row by row, two characters per pixel."""
    shades = [INK[min(int(ink / most * len(INK)), len(INK) - 1)] * 2 for ink in pixels]
    return ["".join(shades[start : start + width]) for start in range(0, len(shades), width)]


def draw_segments(lit: Sequence[int]) -> list[str]:
    """Draw a seven-segment display: a on top, then clockwise to f, and g in the middle.

    >>> print("\\n".join(draw_segments([1, 1, 0, 1, 1, 0, 1])))
     ___
        |
     ___|
    |
    |___
    """
    a, d, g = ("___" if lit[k] else "   " for k in (0, 3, 6))
    b, c, e, f = ("|" if lit[k] else " " for k in (1, 2, 4, 5))
    return [line.rstrip() for line in (f" {a}", f"{f}   {b}", f"{f}{g}{b}", f"{e}   {c}", f"{e}{d}{c}")]


def join_drawings(titled: Mapping[str, Sequence[str]], gap: int = 4) -> str:
    """Put drawings side by side, each below its title, all standing on one line."""
    tallest = max(len(lines) for lines in titled.values())
    blocks = [[title, "", *[""] * (tallest - len(lines)), *lines] for title, lines in titled.items()]
    widths = [max(len(line) for line in block) + gap for block in blocks]
    return "\n".join(
        "".join(line.ljust(width) for line, width in zip(lines, widths, strict=True)).rstrip()
        for lines in zip_longest(*blocks, fillvalue="")
    )
