"""The command `boomer reproduce`: the evaluation of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import click

from pyboomer.cli.group import boomer, connect, dask_option, json_option, quiet_option, shows_progress


@boomer.command()
@click.argument("what", type=click.Choice(["figure1", "table1"]))
@click.option(
    "--budget",
    type=click.Choice(["quick", "standard", "full"]),
    default="quick",
    show_default=True,
    help="How much of the paper's grid: minutes, two hours, or all of it.",
)
@click.option(
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    default="boomer-results",
    show_default=True,
    metavar="FOLDER",
    help="Where outcomes are kept and reports are written.",
)
@click.option("--data", multiple=True, metavar="NAME", help="Use this data set only; may be repeated.")
@click.option("--n-jobs", type=click.IntRange(min=1), metavar="N", help="Processes; one per core unless given.")
@dask_option
@click.option("--report-only", is_flag=True, help="Compute nothing: report what is there already.")
@json_option
@quiet_option
def reproduce(
    what: str,
    budget: str,
    results: Path,
    data: Sequence[str],
    n_jobs: int | None,
    dask: str | None,
    report_only: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Reproduce Figure 1 or Table 1 of the paper, next to the published numbers.

    What is finished is kept, so that a run stopped in any way goes on where it was. Table 1 needs the benchmark data
    sets (`boomer datasets`), and both need the extra `experiments`.

    \b
    Examples:
      boomer reproduce figure1
      boomer reproduce table1 --budget standard --results results
      boomer reproduce table1 --budget full --dask tcp://host:8786
    """
    from pyboomer.cli.reproduction import show_reproduction

    with connect(dask, n_jobs) if dask and not report_only else nullcontext() as client:
        show_reproduction(
            what,
            budget,
            results,
            data=tuple(data),
            n_jobs=None if client else n_jobs,
            client=client,
            progress=shows_progress(quiet),
            compute=not report_only,
            as_json=as_json,
        )
