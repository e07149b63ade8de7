"""A reproduction computes Figure 1 or Table 1 of the paper and writes it down: what `boomer reproduce` does.

A folder holds, for each of the two, the outcomes of all tasks (`tasks`) and the reports of each budget. Whatever is in
it already is not computed again.
"""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pyboomer.datasets import load_dataset
from pyboomer.experiments.baselines import import_xgboost
from pyboomer.experiments.paper import figure1, table1
from pyboomer.experiments.paper.budgets import (
    DATA,
    SYNTHETIC,
    Budget,
    guess_seconds,
    list_cuts,
    plan_figure,
    plan_table,
    plan_unsampled,
)
from pyboomer.experiments.paper.claims import Claim, check_figure, check_table, format_claims
from pyboomer.experiments.paper.figure1 import Figure
from pyboomer.experiments.paper.table1 import Table, group_complete
from pyboomer.experiments.plots import import_pyplot, plot_figure1, plot_ranks, save_figure
from pyboomer.experiments.reports import (
    PAPER,
    figure_to_json,
    format_figure,
    list_cells,
    list_points,
    table_to_json,
    table_to_latex,
    table_to_markdown,
    to_csv,
)
from pyboomer.experiments.running import run_tasks
from pyboomer.experiments.store import Store
from pyboomer.experiments.tasks import RULES, SEED, Task
from pyboomer.files import write_file

PACKAGES = ("pyboomer", "numba", "numpy", "scipy", "scikit-learn", "xgboost")


class Reproduction(NamedTuple):
    """What was found, what it says about the paper's claims, how it was made, and the files it was written to."""

    result: Figure | Table
    claims: list[Claim]
    facts: dict[str, Any]
    files: list[Path]


def reproduce_figure1(
    budget: Budget,
    folder: Path,
    *,
    n_jobs: int | None = None,
    client: Any = None,
    progress: bool = False,
    compute: bool = True,
    data: Sequence[str] = SYNTHETIC,
) -> Reproduction:
    """Compute Figure 1 and write it: picture (SVG, PNG), points (CSV, JSON) and a page (Markdown).

    Parameters
    ----------
    budget : Budget
    folder : Path
        Where outcomes are kept and reports are written.
    n_jobs : int, optional
        Processes; None for one per core.
    client : dask.distributed.Client, optional
        Let the workers of its cluster do the tasks. Outcomes are kept in the folder, which is on this machine.
    progress : bool, default=False
        Whether to show how far it is and how much time is left.
    compute : bool, default=True
        Whether to compute what is missing; otherwise what is there is reported.
    data : sequence of str
        The synthetic data sets to use.
    """
    import_pyplot()  # better missed now than after an hour
    tasks, beside = plan_figure(budget, data), plan_unsampled(budget, data)
    store = _run(folder / "figure1", [*beside, *tasks], n_jobs, client, progress, compute)
    result, unsampled = figure1.summarise(tasks, store), figure1.summarise(beside, store)
    if not result.trajectories:
        raise ValueError(f"{store.folder} has no complete setting yet; run without --report-only first")
    complete = len(result.trajectories) == len(SYNTHETIC) * len(RULES)
    claims = check_figure(result, unsampled) if complete and unsampled.trajectories else []
    facts = describe_run(budget, [*beside, *tasks], store, "Figure 1", client)
    home = folder / "figure1" / budget.name
    home.mkdir(parents=True, exist_ok=True)
    texts = {
        "figure1.md": "\n\n".join(
            ["# Figure 1", format_facts(facts), "![Figure 1](figure1.svg)", format_figure(result), _page(claims)]
        ),
        "figure1.csv": to_csv(*list_points(result)),
        "figure1.json": figure_to_json(result, facts),
    }
    files = _write(home, texts) + save_figure(plot_figure1(result), home / "figure1")
    return Reproduction(result, claims, facts, files)


def reproduce_table1(
    budget: Budget,
    folder: Path,
    *,
    n_jobs: int | None = None,
    client: Any = None,
    progress: bool = False,
    compute: bool = True,
    data: Sequence[str] = DATA,
) -> Reproduction:
    """Compute Table 1 and write it: Markdown, CSV, LaTeX, JSON and critical-difference diagrams (SVG, PNG).

    See `reproduce_figure1` for the parameters.
    """
    import_pyplot()
    if compute:
        import_xgboost()
        for name in data:
            load_dataset(name)  # a data set that is missing is better told now
    tasks = plan_table(budget, data)
    store = _run(folder / "table1", tasks, n_jobs, client, progress, compute)
    result = table1.summarise(tasks, store)
    if not result.approaches:
        raise ValueError(f"{store.folder} has no complete setting yet; run without --report-only first")
    claims = check_table(result) if set(PAPER) <= set(result.approaches) and len(result.data) > 1 else []
    facts = describe_run(budget, tasks, store, "Table 1", client)
    home = folder / "table1" / budget.name
    home.mkdir(parents=True, exist_ok=True)
    notes = [format_facts(facts), "", "![Critical differences](table1-ranks.svg)"]
    texts = {
        "table1.md": table_to_markdown(result, notes) + "\n" + _page(claims),
        "table1.csv": to_csv(*list_cells(result)),
        "table1.tex": table_to_latex(result),
        "table1.json": table_to_json(result, facts),
    }
    files = _write(home, texts)
    ranked = [approach for approach in PAPER if approach in result.approaches]
    if len(ranked) > 1:
        files += save_figure(plot_ranks(result, ranked), home / "table1-ranks")
    return Reproduction(result, claims, facts, files)


REPRODUCTIONS: dict[str, Callable[..., Reproduction]] = {"figure1": reproduce_figure1, "table1": reproduce_table1}


def _run(folder: Path, tasks: Sequence[Task], n_jobs: int | None, client: Any, progress: bool, compute: bool) -> Store:
    store = Store(folder / "tasks")
    if compute:
        run_tasks(tasks, store, n_jobs=n_jobs, client=client, progress=progress, cost=guess_seconds)
    return store


def describe_run(budget: Budget, tasks: Sequence[Task], store: Store, part: str, client: Any = None) -> dict[str, Any]:
    """How a result was made: budget and cuts, seeds, versions, commit, machine or cluster, time."""
    finished = [task.key for task in tasks if store.has(task.key)]
    outcomes = [store.read(key).facts for key in finished]
    ends = np.array([store.locate(key).stat().st_mtime for key in finished])
    begins = ends - [facts["seconds"] for facts in outcomes]
    cuts = [cut for cut in list_cuts(budget) if cut.startswith(part) or not cut.startswith(("Table", "Figure"))]
    return {
        "budget": budget.name,
        "reduced": cuts,
        "tasks": f"{len(finished)} of {len(tasks)}",
        "settings": _count_settings(tasks, store),
        "seed": SEED,
        "folds": f"KFold({budget.n_folds}, shuffle=True, random_state={SEED})",
        "cpu_minutes": round(sum(facts["cpu"] for facts in outcomes) / 60, 1),
        "wall_minutes": round(measure_union(begins, ends) / 60, 1),
        "began": _tell_time(begins.min()),
        "ended": _tell_time(ends.max()),
        "commit": find_commit(),
        "versions": {"python": platform.python_version(), **{name: _find_version(name) for name in PACKAGES}},
        "cores": os.cpu_count() if client is None else sum(client.nthreads().values()),
    }


def measure_union(begins: np.ndarray, ends: np.ndarray) -> float:
    """How long at least one of some intervals lasted: the time of running, however often it was stopped."""
    order = np.argsort(begins)
    reached = np.maximum.accumulate(ends[order])
    gaps = np.maximum(begins[order][1:] - reached[:-1], 0)
    return float(reached[-1] - begins.min() - gaps.sum())


def _count_settings(tasks: Sequence[Task], store: Store) -> dict[str, str]:
    """For each approach how many of its settings are complete: on the data set that has the fewest, of all planned."""
    counts: dict[str, list[int]] = {}
    tasks = [task for task in tasks if task.bootstrap]  # what stands beside a figure is no choice of settings
    for name in dict.fromkeys(task.data for task in tasks):
        own = [task for task in tasks if task.data == name]
        complete = group_complete(own, store)
        for approach in dict.fromkeys(task.approach for task in own):
            counts.setdefault(approach, []).append(len(complete.get(approach, [])))
    planned = {a: len({task.setting for task in tasks if task.approach == a}) for a in counts}
    return {
        approach: f"{min(found)} of {planned[approach]}"
        if min(found) == max(found)
        else f"{min(found)} to {max(found)} of {planned[approach]}"
        for approach, found in counts.items()
    }


def format_facts(facts: dict[str, Any]) -> str:
    """The facts of a run as a list of Markdown."""
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items() if number)
    reduced = "; ".join(facts["reduced"]) or "nothing"
    return "\n".join(
        [
            f"- Budget `{facts['budget']}`: {facts['tasks']} tasks finished. Complete settings on each data set: "
            + ", ".join(f"{approach} {count}" for approach, count in facts["settings"].items())
            + ".",
            f"- Reduced from the paper's grid: {reduced}.",
            f"- {facts['folds']}, out-of-fold predictions pooled; seed {facts['seed']} for every learner.",
            f"- {facts['cpu_minutes']} minutes of CPU time in {facts['wall_minutes']} minutes of running on "
            f"{facts['cores']} cores, from {facts['began']} to {facts['ended']}.",
            f"- Commit {facts['commit'] or 'unknown'}; {versions}.",
        ]
    )


def find_commit() -> str | None:
    """The commit that the package is run from, if it is a checkout; `+` marks changes that are not committed."""
    try:
        told = subprocess.run(
            ["git", "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return told.stdout.strip() or None


def _find_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _tell_time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def _page(claims: Sequence[Claim]) -> str:
    return f"## Claims\n\n{format_claims(claims)}\n" if claims else ""


def _write(home: Path, texts: dict[str, str]) -> list[Path]:
    for name, text in texts.items():
        write_file(home / name, text)
    return [home / name for name in texts]
