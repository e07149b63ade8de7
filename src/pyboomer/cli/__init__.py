"""The command line: `boomer` and its sub-commands.

Modules that take long to import are imported where they are used, so that help appears at once.
"""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from pyboomer.cli import commands, evaluate, explore, predict, reproduce, warmup
from pyboomer.cli.group import boomer
from pyboomer.learning.interrupt import Terminated, raise_terminated
from pyboomer.rules.text import shorten, show_line

COMMANDS = (commands, evaluate, explore, predict, reproduce, warmup)  # importing them adds their commands to the group


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `boomer` and return its exit code.

    That is 0, 2 for an error, 130 for Ctrl-C, 143 for SIGTERM, 1 for a closed pipe or a defect. Whatever goes wrong is
    told in one line.
    """
    with _heed_sigterm(), warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: _say(f"warning: {message}")
        # commands find columns by name themselves: an array is safe to pass to a model that knows its features by name
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        return _run(arguments)


@contextmanager
def _heed_sigterm() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does, unless whoever calls has plans of its own for it."""
    is_ours = (
        threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if is_ours:
        signal.signal(signal.SIGTERM, raise_terminated)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        with boomer.make_context("boomer", list(sys.argv[1:] if arguments is None else arguments)) as context:
            boomer.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as request:
        return request.exit_code
    except KeyboardInterrupt as interrupt:
        what, code = ("terminated", 143) if isinstance(interrupt, Terminated) else ("interrupted", 130)
        return _complain(f"{what}{f': {interrupt}' if str(interrupt) else ''}", code)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough; nothing may be written at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except click.ClickException as error:
        return _complain(f"error: {error.format_message()}", 2)
    except OSError as error:
        named = error.filename is not None and error.strerror is not None
        return _complain(f"error: {error.filename}: {error.strerror}" if named else f"error: {error}", 2)
    except (ValueError, ImportError, MemoryError) as error:
        return _complain(" ".join([f"error: {error or type(error).__name__}", *getattr(error, "__notes__", ())]), 2)
    except Exception as error:
        return _complain(f"error: unexpected {type(error).__name__}: {error}; please report this", 1)
    return 0


def _complain(message: str, code: int) -> int:
    _say(message)
    return code


def _say(message: str) -> None:
    click.echo(f"boomer: {shorten(show_line(' '.join(message.split())))}", err=True)
