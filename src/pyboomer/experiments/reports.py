"""A report is a result as text: Markdown, LaTeX, CSV or JSON. Nothing here computes a result."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from io import StringIO
from typing import Any

import numpy as np

from pyboomer.experiments.measures import MEASURES
from pyboomer.experiments.paper import published
from pyboomer.experiments.paper.budgets import MARKS
from pyboomer.experiments.paper.figure1 import BAYES, Figure
from pyboomer.experiments.paper.table1 import Table
from pyboomer.experiments.significance import Comparison
from pyboomer.experiments.tasks import FIXED, FOREST, RULES, STOPPED

PAPER = (*RULES, *FIXED)  # the seven approaches of the paper
WITH_STOPPING = (*RULES, *STOPPED, *FOREST)  # the same with early stopping, and a random forest
ALPHAS = (0.1, 0.05)


def to_csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows as comma-separated values; numbers keep six digits."""
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([f"{value:.6g}" if isinstance(value, float) else value for value in row] for row in rows)
    return buffer.getvalue()


def to_markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows as a table of Markdown, the first column to the left and all others to the right."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, rule, *rows))


def round_digits(measure: str) -> int:
    """The digits after the point that a percentage is worth."""
    return 2 if measure == "hamming" else 1


# --- Table 1 ----------------------------------------------------------------------------------------------------------


def list_cells(table: Table) -> tuple[list[str], list[list[Any]]]:
    """Every figure of the table, in long form: a header and rows."""
    header = ["measure", "data", "approach", "estimate", "low", "high", "rank", "last_of_100", "published"]
    header += ["uncorrected", "best_setting", "n_settings"]
    ranks = {
        (measure, approaches): table.compare(measure, approaches).ranks
        for measure in MEASURES
        for approaches in (_present(table, PAPER), _present(table, WITH_STOPPING))
        if approaches
    }
    rows = []
    for (measure, name, approach), cell in table.cells.items():
        if name not in table.data or approach not in table.approaches:
            continue
        group = _present(table, PAPER if approach in PAPER else WITH_STOPPING)
        rank = float(ranks[measure, group][table.data.index(name), group.index(approach)])
        printed = published.find_value(measure, name, approach)
        figures = [cell.estimate, cell.low, cell.high, rank, cell.last, "" if printed is None else printed]
        rows.append([measure, name, approach, *figures, cell.uncorrected, cell.best, cell.n_settings])
    return header, rows


def format_table(table: Table, measure: str, approaches: Sequence[str], *, latex: bool = False) -> str:
    """One block of Table 1: figures with their ranks, the best in bold, and average ranks below."""
    comparison = table.compare(measure, approaches)
    values, digits = table.list_values(measure, approaches), round_digits(measure)
    bold: Callable[[str], str] = (lambda text: rf"\textbf{{{text}}}") if latex else (lambda text: f"**{text}**")
    rows = []
    for name, line, ranks in zip(table.data, values, comparison.ranks, strict=True):
        cells = []
        for value, rank in zip(line, ranks, strict=True):
            text = f"{value:.{digits}f}"
            text = bold(text) if rank == ranks.min() else text
            cells.append(rf"{text} {{\scriptsize {rank:g}}}" if latex else f"{text} <sub>{rank:g}</sub>")
        rows.append([name, *cells])
    average = comparison.average_ranks
    rows.append(["Avg. rank", *(bold(f"{rank:.2f}") if rank == average.min() else f"{rank:.2f}" for rank in average)])
    if not latex:
        return to_markdown([MEASURES[measure].title, *approaches], rows)
    body = [" & ".join(row) + r" \\" for row in rows]
    body.insert(-1, r"\midrule")
    return "\n".join(
        [
            rf"\begin{{tabular}}{{l{'r' * len(approaches)}}}",
            r"\toprule",
            " & ".join([MEASURES[measure].title, *approaches]) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def format_comparison(comparison: Comparison) -> str:
    """The tests in a sentence."""
    distances = " / ".join(f"{comparison.critical_distance(alpha):.2f}" for alpha in ALPHAS)
    levels = " / ".join(f"{alpha:g}" for alpha in ALPHAS)
    text = f"Friedman: p = {comparison.p_value:.2g}. Nemenyi: critical distances {distances} at α = {levels}"
    pairs = [
        f"{a} and {b}"
        for i, a in enumerate(comparison.names)
        for b in comparison.names[i + 1 :]
        if comparison.differ(a, b, ALPHAS[0])
    ]
    return text + (f"; at {ALPHAS[0]:g} these differ: {', '.join(pairs)}." if pairs else "; no two differ.")


def format_side_by_side(table: Table, measure: str) -> str:
    """Our figure of the published bootstrap, and the published figure."""
    digits = round_digits(measure)
    approaches = _present(table, PAPER)
    rows = []
    for name in table.data:
        cells = [
            f"{table.cells[measure, name, a].last:.{digits}f} / {_show(published.find_value(measure, name, a), digits)}"
            for a in approaches
        ]
        rows.append([name, *cells])
    ours = table.compare(measure, approaches, kind="last").average_ranks
    theirs = published.AVERAGE_RANKS[measure]
    rows.append(
        ["Avg. rank"]
        + [
            f"{rank:.2f} / {theirs[published.APPROACHES.index(a)]:.2f}"
            for a, rank in zip(approaches, ours, strict=True)
        ]
    )
    return to_markdown([f"{MEASURES[measure].title}: ours / published", *approaches], rows)


def format_intervals(table: Table, measure: str) -> str:
    """The 95 % intervals of all approaches."""
    digits = round_digits(measure)
    rows = []
    for name in table.data:
        cells = (table.cells[measure, name, approach] for approach in table.approaches)
        rows.append([name, *(f"{cell.low:.{digits}f} – {cell.high:.{digits}f}" for cell in cells)])
    return to_markdown([MEASURES[measure].title, *table.approaches], rows)


def table_to_markdown(table: Table, notes: Sequence[str]) -> str:
    """The whole of Table 1 as a page; the notes say how it was made."""
    paper, stopping = _present(table, PAPER), _present(table, WITH_STOPPING)
    parts = ["# Table 1", "\n".join(notes)]
    parts += [
        "## The approaches of the paper",
        "In percent: mean over 1000 bootstraps (BBC-CV), rank in small print, best in bold. XGBoost learns 100 rounds, "
        "as the public code of the paper does.",
    ]
    for measure in MEASURES:
        parts += [format_table(table, measure, paper), format_comparison(table.compare(measure, paper))]
    parts += [
        "## Side by side with the published figures",
        "The published figures are those of a single bootstrap, the last of a hundred; here is ours of the same one. "
        "Its examples are the same, the random draws in learning are not.",
    ]
    parts += [format_side_by_side(table, measure) for measure in MEASURES]
    if set(stopping) - set(RULES):
        parts += [
            "## With early stopping, and a random forest",
            "The paper says that XGBoost found its number of trees itself: here a tenth of the training examples says "
            "when to stop. The random forest is scikit-learn's, with all labels in each leaf; it was not tuned.",
        ]
        for measure in MEASURES:
            parts += [format_table(table, measure, stopping), format_comparison(table.compare(measure, stopping))]
    parts += ["## Intervals", "95 % of the bootstraps lie between:"]
    parts += [format_intervals(table, measure) for measure in MEASURES]
    return "\n\n".join(parts) + "\n"


def table_to_latex(table: Table) -> str:
    """The blocks of Table 1 for a paper; needs the package booktabs."""
    paper = _present(table, PAPER)
    return "\n\n".join(format_table(table, measure, paper, latex=True) for measure in MEASURES) + "\n"


def table_to_json(table: Table, facts: Mapping[str, Any]) -> str:
    """Every figure, the ranks and the tests, and the facts of the run."""
    header, rows = list_cells(table)
    content = {
        "facts": dict(facts),
        "cells": [dict(zip(header, row, strict=True)) for row in rows],
        "comparisons": [
            _describe(table.compare(measure, group, kind), measure, kind)
            for measure in MEASURES
            for group in (_present(table, PAPER), _present(table, WITH_STOPPING))
            for kind in ("estimate", "last")
            if group
        ],
    }
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def _describe(comparison: Comparison, measure: str, kind: str) -> dict[str, Any]:
    return {
        "measure": measure,
        "figures": kind,
        "approaches": list(comparison.names),
        "average_ranks": comparison.average_ranks.tolist(),
        "friedman_p": None if np.isnan(comparison.p_value) else comparison.p_value,
        "critical_distances": {f"{alpha:g}": comparison.critical_distance(alpha) for alpha in ALPHAS},
    }


def _present(table: Table, approaches: Sequence[str]) -> tuple[str, ...]:
    return tuple(approach for approach in approaches if approach in table.approaches)


def _show(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


# --- Figure 1 ---------------------------------------------------------------------------------------------------------


def list_points(figure: Figure) -> tuple[list[str], list[list[Any]]]:
    """Every point of every trajectory: a header and rows."""
    rows = [
        [name, approach, each.setting, int(count), float(hamming), float(subset)]
        for (name, approach), each in figure.trajectories.items()
        for count, hamming, subset in zip(each.n_rules, each.hamming, each.subset, strict=True)
    ]
    return ["data", "approach", "setting", "n_rules", "hamming", "subset"], rows


def format_figure(figure: Figure) -> str:
    """Both losses of every approach after some numbers of rules, as a table for each data set."""
    parts = []
    shown = (1, 2, 4, 8, 16, 64, 256, MARKS[-1])
    for name in figure.data:
        own = {a: each for (data, a), each in figure.trajectories.items() if data == name}
        rows = [
            [approach, *(f"{each.at(n)[0]:.1f} / {each.at(n)[1]:.1f}" for n in shown), each.setting]
            for approach, each in own.items()
        ]
        best = f"Bayes optimum: {BAYES[name][0]:.1f} / {BAYES[name][1]:.1f}" if name in BAYES else ""
        header = ["Hamming / subset 0/1 loss (%) after so many rules", *map(str, shown), "setting"]
        parts.append(f"### {name}\n\n{best}\n\n{to_markdown(header, rows)}")
    return "\n\n".join(parts) + "\n"


def figure_to_json(figure: Figure, facts: Mapping[str, Any]) -> str:
    """Every point, by fold too, and the facts of the run."""
    trajectories = [
        {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in asdict(each).items()}
        for each in figure.trajectories.values()
    ]
    return json.dumps({"facts": dict(facts), "bayes": BAYES, "trajectories": trajectories}, indent=1) + "\n"
