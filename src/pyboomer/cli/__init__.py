"""The command line: `boomer` and its sub-commands.

Modules that take long to import are imported where they are used, so that help appears at once.
"""

import os
import sys
import warnings
from collections.abc import Sequence

import click

from pyboomer.cli import commands, evaluate, explore, reproduce, warmup
from pyboomer.cli.group import boomer

COMMANDS = (commands, evaluate, explore, reproduce, warmup)  # importing them adds their commands to the group


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `boomer` and return its exit code: 0, 2 for an error, 130 for Ctrl-C, 1 for a closed pipe or a defect.

    Whatever goes wrong is told in one line.
    """
    warnings.showwarning = lambda message, *_: click.echo(f"boomer: warning: {message}", err=True)
    try:
        with boomer.make_context("boomer", list(sys.argv[1:] if arguments is None else arguments)) as context:
            boomer.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as request:
        return request.exit_code
    except KeyboardInterrupt as interrupt:
        return _complain(f"interrupted{f': {interrupt}' if str(interrupt) else ''}", 130)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough; nothing may be written at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except click.ClickException as error:
        return _complain(f"error: {error.format_message()}", 2)
    except OSError as error:
        named = error.filename is not None and error.strerror is not None
        return _complain(f"error: {error.filename}: {error.strerror}" if named else f"error: {error}", 2)
    except (ValueError, ImportError, MemoryError) as error:
        return _complain(f"error: {error or type(error).__name__}", 2)
    except Exception as error:
        return _complain(f"error: unexpected {type(error).__name__}: {error}; please report this", 1)
    return 0


def _complain(message: str, code: int) -> int:
    click.echo(f"boomer: {' '.join(message.split())}", err=True)
    return code
