"""Alerts are warnings that name the user's own line, however deep in the package their cause is found."""

import sys
import warnings


def alert(message: str) -> None:
    """Warn of something odd in what the user passed: the warning points to the first line outside the package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("pyboomer."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)
