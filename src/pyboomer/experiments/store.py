"""A store is a folder of finished tasks, one file each, that any number of runs may share.

A file appears at once and complete: it is written beside its place, flushed to the disk, and moved there. What a killed
run has finished is therefore never lost, and what it has not is never seen. Who works on a task holds a lock that the
operating system takes back when the process ends, however it ends; so two runs do not do the same work, and none waits
for the dead.
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from pyboomer.files import write_file
from pyboomer.rules.text import shorten

# what NumPy, zipfile and zlib raise when a file is not what it should be
FAULTS = (
    *(ValueError, TypeError, LookupError, EOFError, OverflowError, MemoryError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, struct.error, OSError),
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a task gave.

    Attributes
    ----------
    labels : array of shape (S, N, K), of bools, numbers or strings
        Predicted labels of the N test examples at each of S stages, such as numbers of rules.
    facts : dict
        Anything else worth keeping, as JSON can hold it: seconds, versions.
    """

    labels: np.ndarray
    facts: dict[str, Any]


@dataclass(frozen=True)
class Store:
    """A folder of outcomes; a key is a path in it without a suffix."""

    folder: Path

    def locate(self, key: str) -> Path:
        """The file of an outcome, which may not be there yet."""
        return self.folder / f"{key}.npz"

    def has(self, key: str) -> bool:
        """Whether the task is finished."""
        return self.locate(key).exists()

    def read(self, key: str) -> Outcome:
        """The outcome of a finished task."""
        path = self.locate(key)
        packed = BytesIO(path.read_bytes())
        try:
            with np.load(packed) as content:
                labels, facts = content["labels"], json.loads(str(content["facts"]))
                if "shape" in content:  # of bools, which lie there as bits
                    shape = content["shape"]
                    labels = np.unpackbits(labels, axis=-1, count=int(shape[-1])).astype(bool).reshape(shape)
                return Outcome(labels, facts)
        except FAULTS as error:
            fault = shorten(str(error), 600)
            raise ValueError(f"{path} is damaged ({fault}); delete it, and the next run will make it anew") from error

    def write(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome; a reader sees all of it or nothing."""
        packed, labels = BytesIO(), outcome.labels
        content: dict[str, Any] = {"labels": labels, "facts": np.array(json.dumps(outcome.facts))}
        if labels.dtype == bool:
            content |= {"labels": np.packbits(labels, axis=-1), "shape": np.array(labels.shape)}
        elif labels.dtype == object:  # would be pickled
            if not all(isinstance(label, str) for label in labels.flat):
                raise TypeError("a store keeps labels that are all strings, all numbers or all bools, not a mixture")
            content["labels"] = labels.astype(str)
        np.savez_compressed(packed, **content)
        path = self.locate(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, packed.getvalue())

    @contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        """Whether the task is ours to do: not finished, and nobody else is at it. Holds for the length of a `with`."""
        from filelock import FileLock, Timeout

        path = self.locate(key).with_suffix(".lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            yield False
            return
        try:
            yield not self.has(key)  # looked up while we hold the lock: nobody can finish it in between
        finally:
            if self.has(key):  # whoever still gets hold of this file will see that there is nothing to do
                with suppress(OSError):
                    path.unlink()
            lock.release()
