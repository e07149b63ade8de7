"""The group `boomer` holds the commands; here is also what several of them share."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import click


def _show_version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:  # noqa: ARG001
    if wanted:
        from pyboomer import __version__

        click.echo(f"pyboomer {__version__}")
        ctx.exit()


def _read_separator(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:  # noqa: ARG001
    sep = {"tab": "\t", "\\t": "\t"}.get(text or "", text)
    if sep is not None and (len(sep) != 1 or sep in '"\r\n'):
        raise click.UsageError(f"--sep must be one character or `tab`, got {text!r}")
    return sep


class OrderedGroup(click.Group):
    """Commands in the order in which they are defined, which is that in which they are met."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """List the names of the commands."""
        return list(self.commands)


@click.group(
    cls=OrderedGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`boomer COMMAND --help` tells more and has examples.",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
@click.pass_context
def boomer(ctx: click.Context) -> None:
    """Learn gradient boosted multi-label rules, and read, evaluate and apply them.

    DATA is a data set by name (`boomer datasets`), an ARFF file with its labels in an XML file beside it or in its
    header (Mulan, MEKA), or a table file whose label columns are given by --labels: CSV, TSV (both may be
    compressed and end in .gz) or Parquet.

    \b
    Example:
      boomer demo
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


xml_option = click.option("--xml", metavar="FILE", help="XML file that names the labels of an ARFF file.")
labels_option = click.option(
    "--labels",
    multiple=True,
    metavar="NAMES",
    help="Label columns of a CSV or Parquet file, comma separated or repeated; patterns such as 'label_*' are allowed.",
)
ignore_option = click.option(
    "--ignore",
    multiple=True,
    metavar="NAMES",
    help="Columns that are no features, such as numbers of patients, comma separated or repeated; patterns allowed.",
)
ordinal_option = click.option(
    "--ordinal",
    multiple=True,
    metavar="NAME=LEVELS",
    help="A column of a CSV or Parquet file whose values have an order, and these values: size=small,medium,large. May "
    "be repeated.",
)
sep_option = click.option(
    "--sep",
    metavar="CHARACTER",
    callback=_read_separator,
    help="What separates the columns of CSV files: a character or `tab`; by default a comma, in .tsv files a tab.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")


def _hush(ctx: click.Context, param: click.Parameter, quiet: bool) -> bool:  # noqa: ARG001
    if quiet:
        logger = logging.getLogger("pyboomer")
        ctx.call_on_close(partial(logger.setLevel, logger.level))
        logger.setLevel(logging.ERROR)
    return quiet


quiet_option = click.option(
    "--quiet", is_flag=True, callback=_hush, help="Show no progress bar, and no note on what is under way."
)


dask_option = click.option(
    "--dask",
    metavar="ADDRESS",
    help="Work on the Dask cluster of this scheduler, such as tcp://host:8786; `local` starts one on this machine.",
)
CONNECT_SECONDS = 5  # a scheduler that is there answers in a fraction of a second


@contextmanager
def connect(address: str, n_workers: int | None = None) -> Iterator[Any]:
    """A client of the Dask cluster at an address; of one for the length of a `with` if that is `local`."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ImportError("--dask needs Dask: pip install 'pyboomer[dask]'") from error
    if address == "local":
        cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address="127.0.0.1:0")
        with cluster, Client(cluster) as client:
            yield client
        return
    if n_workers is not None:
        raise click.UsageError("--n-jobs is about this machine; the cluster at --dask has the workers that it has")
    try:
        client = Client(address, timeout=CONNECT_SECONDS)
    except Exception as error:  # whatever comes of an address that is none, or of the answer of another service
        cure = "start one by `dask scheduler` and `dask worker`, or use --dask local"
        raise click.UsageError(f"no Dask scheduler answers at {address} ({error}); {cure}") from error
    with client:
        yield client


def shows_progress(quiet: bool) -> bool:
    """Whether to show progress bars."""
    return not quiet and sys.stderr.isatty()


def print_json(content: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(content, allow_nan=False))


def plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as JSON can hold them."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in parameters.items()}
