"""An interrupt (Ctrl-C) is noted while compiled code runs and raised where nothing can be lost."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Self


class DeferredInterrupt:
    """Context in which Ctrl-C is only noted, as `pending`; its end turns that into KeyboardInterrupt.

    Python would otherwise raise it at the first instruction after a compiled call, before the result is stored. Only
    the main thread ever sees it, and a handler that is not Python's own is left alone.
    """

    def __init__(self) -> None:
        self.pending = False
        self._active = False

    def __enter__(self) -> Self:
        in_main_thread = threading.current_thread() is threading.main_thread()
        if in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._active = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._active:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if kind is None and self.pending:
            raise KeyboardInterrupt

    def _note(self, signum: int, frame: FrameType | None) -> None:  # noqa: ARG002 (the signature of a handler)
        self.pending = True
