"""What `boomer reproduce` prints: a summary of a reproduced figure or table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from pyboomer.cli.reports import format_table
from pyboomer.experiments.measures import MEASURES
from pyboomer.experiments.paper.budgets import (
    BUDGETS,
    DATA,
    SYNTHETIC,
    Budget,
    guess_seconds,
    plan_figure,
    plan_table,
    plan_unsampled,
)
from pyboomer.experiments.paper.figure1 import BAYES, Figure
from pyboomer.experiments.paper.reproduction import REPRODUCTIONS, Reproduction
from pyboomer.experiments.paper.table1 import Table
from pyboomer.experiments.reports import PAPER, WITH_STOPPING, round_digits

SHOWN = (1, 2, 4, 8, 16, 64, 256, 1000)  # numbers of rules


def show_reproduction(
    what: str,
    budget_name: str,
    folder: Path,
    *,
    data: tuple[str, ...],
    n_jobs: int | None,
    client: Any = None,
    progress: bool,
    compute: bool,
    as_json: bool,
) -> None:
    """Reproduce a figure or table, and print what came of it."""
    budget = BUDGETS[budget_name]
    if compute and not as_json:
        click.echo(announce(what, budget, folder, data), err=True)
    chosen = {"data": data} if data else {}
    found = REPRODUCTIONS[what](
        budget, folder, n_jobs=n_jobs, client=client, progress=progress, compute=compute, **chosen
    )
    click.echo(summarise_json(found) if as_json else summarise(found))


def announce(what: str, budget: Budget, folder: Path, data: tuple[str, ...]) -> str:
    """What is about to be done, and how long it may take."""
    if what == "table1":
        tasks = plan_table(budget, data or DATA)
    else:
        tasks = plan_figure(budget, data or SYNTHETIC) + plan_unsampled(budget, data or SYNTHETIC)
    minutes = sum(map(guess_seconds, tasks)) / 60
    return (
        f"Budget {budget.name}: {len(tasks):,} tasks, about {minutes:,.0f} minutes of CPU time. Outcomes are kept in "
        f"{folder}; stop it at any time, and the same command goes on."
    )


def summarise(found: Reproduction) -> str:
    """The result as text for a terminal."""
    parts = [summarise_figure(found.result) if isinstance(found.result, Figure) else summarise_table(found.result)]
    if found.claims:
        lines = [f"  {'yes' if claim.holds else 'NO '}  {claim.text}" for claim in found.claims]
        parts.append("\n".join(["Claims of the paper that hold here:", *lines]))
    facts = found.facts
    cuts = facts["reduced"]
    parts.append(f"Tasks finished: {facts['tasks']}, {facts['cpu_minutes']} minutes of CPU time")
    parts.append(
        "\n".join([f"Reduced from the paper's grid (budget {facts['budget']}):", *(f"  {cut}" for cut in cuts)])
    )
    if not cuts:
        parts[-1] = "The paper's whole grid."
    parts.append("\n".join(["Written:", *(f"  {path}" for path in found.files)]))
    return "\n\n".join(parts)


def summarise_figure(figure: Figure) -> str:
    """Both losses after some numbers of rules."""
    blocks = []
    for name in figure.data:
        own = {approach: each for (data, approach), each in figure.trajectories.items() if data == name}
        rows = [[a, *("{:.1f}/{:.1f}".format(*each.at(n)) for n in SHOWN)] for a, each in own.items()]
        optimum = "{:.1f}/{:.1f}".format(*BAYES[name])
        title = f"{name}: Hamming/subset 0/1 loss in percent after so many rules (Bayes optimum {optimum})"
        blocks.append(f"{title}\n{format_table(['', *map(str, SHOWN)], rows)}")
    return "\n\n".join(blocks)


def summarise_table(table: Table) -> str:
    """The figures with their ranks; an asterisk marks the best."""
    blocks: list[str] = []
    titles = {
        PAPER: "The approaches of the paper; XGBoost learns 100 rounds, as the public code does",
        WITH_STOPPING: "XGBoost with early stopping, as the paper says, and a random forest",
    }
    for group, title in titles.items():
        approaches = [approach for approach in group if approach in table.approaches]
        if len(approaches) < 2 or (blocks and set(approaches) <= set(PAPER)):
            continue  # nothing to compare, or nothing that has not been said
        blocks.append(title.upper())
        for measure in MEASURES:
            comparison, digits = table.compare(measure, approaches), round_digits(measure)
            rows = [
                [
                    name,
                    *(
                        f"{'*' if r == ranks.min() else ''}{v:.{digits}f} ({r:g})"
                        for v, r in zip(line, ranks, strict=True)
                    ),
                ]
                for name, line, ranks in zip(
                    table.data, table.list_values(measure, approaches), comparison.ranks, strict=True
                )
            ]
            rows.append(["average rank", *(f"{rank:.2f}" for rank in comparison.average_ranks)])
            test = (
                f"Friedman p = {comparison.p_value:.2g}, critical distance {comparison.critical_distance():.2f} at 0.05"
            )
            header = [f"{MEASURES[measure].title} (%)", *approaches]
            blocks.append(f"{format_table(header, rows)}\n{test}")
    return "\n\n".join(blocks)


def summarise_json(found: Reproduction) -> str:
    """What was written, the claims and the facts, as one JSON document."""
    content = {
        "facts": found.facts,
        "claims": [claim._asdict() for claim in found.claims],
        "files": [str(path) for path in found.files],
    }
    return json.dumps(content)
