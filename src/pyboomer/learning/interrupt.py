"""An interrupt (Ctrl-C) is noted while compiled code runs and raised where nothing can be lost."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Self


class Terminated(KeyboardInterrupt):
    """What `raise_terminated` makes of SIGTERM, by which batch systems, containers and `kill` end a process."""


def raise_terminated(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001 (the signature of a handler)
    """Handle SIGTERM as Python handles Ctrl-C, if a program chooses this handler."""
    raise Terminated


HANDLERS = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: raise_terminated}


class DeferredInterrupt:
    """Context in which an interrupt is only noted, as `pending`; its end turns that into KeyboardInterrupt.

    Python would otherwise raise it at the first instruction after a compiled call, before the result is stored. Only
    the main thread ever sees it, and handlers other than Python's own and `raise_terminated` are left alone.
    """

    def __init__(self) -> None:
        self.pending = False
        self._noted: int | None = None
        self._deferred: list[signal.Signals] = []

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._deferred = [signum for signum, handler in HANDLERS.items() if signal.getsignal(signum) is handler]
        for signum in self._deferred:
            signal.signal(signum, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for signum in self._deferred:
            signal.signal(signum, HANDLERS[signum])
        if kind is None and self.pending:
            raise Terminated if self._noted == signal.SIGTERM else KeyboardInterrupt

    def _note(self, signum: int, frame: FrameType | None) -> None:  # noqa: ARG002 (the signature of a handler)
        self.pending, self._noted = True, signum
