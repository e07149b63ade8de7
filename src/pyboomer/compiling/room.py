"""Room is memory that a library will ask for, and without which it ends the process instead of raising an error."""

import numpy as np


def claim_room(n_bytes: int, purpose: str) -> None:
    """Raise MemoryError if there is no such room; it is reserved for a moment and not touched, which costs nothing."""
    try:
        np.empty(n_bytes, dtype=np.uint8)
    except MemoryError:
        raise MemoryError(f"no memory is left for {purpose}") from None
