"""Compiled code is used again by later processes, as long as no source file that it can come from has changed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba import config
from numba.core.errors import NumbaError
from numpy.typing import NDArray

import pyboomer
from pyboomer.compiling.kernel import is_compiled, kernel

# A kernel that has the code of two other modules compiled into it, one called by name and one by kind.
CALLED = """
from pyboomer.compiling.kernel import inner


@inner
def add_some(x):
    return x + 1
"""
KIND = """
from typing import NamedTuple

from pyboomer.compiling.kinds import by_kind


class Factor(NamedTuple):
    factor: int


@by_kind
def change(kind, x):
    pass


@change.of(Factor)
def _multiply(kind, x):
    return kind.factor * x + 1
"""
CALLING = """
from pyboomer.columns.called import add_some
from pyboomer.compiling.kernel import is_compiled, kernel
from pyboomer.losses.kind import Factor, change


@kernel
def compute(kind, x):
    return add_some(x) + 100 * change(kind, x)


was_compiled = is_compiled(compute)
print(compute(Factor(2), 3), was_compiled, *(sum(n.values()) for n in compute.entry.stats[1:]))
"""


class Outcome(NamedTuple):
    """What one process reports."""

    result: int
    was_compiled: bool
    loaded: int
    compiled: int


class House:
    """A copy of the package with three more modules, and a place for compiled code."""

    def __init__(self, folder: Path) -> None:
        self.source, self.cache = folder / "source", folder / "cache"
        self.package = self.source / "pyboomer"
        shutil.copytree(Path(pyboomer.__file__).parent, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        (self.package / "__init__.py").write_text('"""Nothing that takes time to import."""\n')
        for name, text in {"columns/called": CALLED, "losses/kind": KIND, "engine/calling": CALLING}.items():
            (self.package / f"{name}.py").write_text(text)

    def run(self) -> Outcome:
        """Compute in a process of its own; Python keeps no code, as it, too, would look at size and time alone."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        environment |= {"PYTHONPATH": str(self.source), "NUMBA_CACHE_DIR": str(self.cache)}
        command = [sys.executable, "-B", "-c", "import pyboomer.engine.calling"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        result, was_compiled, loaded, compiled = done.stdout.split()
        return Outcome(int(result), was_compiled == "True", int(loaded), int(compiled))

    def edit(self, name: str, old: str, new: str) -> None:
        """Edit a module so that neither its size nor its time tells."""
        path = self.package / f"{name}.py"
        before, text = path.stat(), path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        after = path.stat()
        assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def test_code_is_compiled_once_and_again_after_any_change_of_its_sources(tmp_path: Path) -> None:
    house = House(tmp_path)
    assert house.run() == Outcome(704, was_compiled=False, loaded=0, compiled=1)
    assert house.run() == Outcome(704, was_compiled=True, loaded=1, compiled=0)
    house.edit("columns/called", "x + 1", "x + 5")
    assert house.run() == Outcome(708, was_compiled=False, loaded=0, compiled=1)
    house.edit("losses/kind", "x + 1", "x + 2")
    assert house.run() == Outcome(808, was_compiled=False, loaded=0, compiled=1)


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_a_kernel_makes_no_array_of_its_own() -> None:
    @kernel
    def make_array(n: int) -> NDArray[np.float64]:
        return np.zeros(n)

    with pytest.raises(NumbaError, match="zeros"):
        make_array(3)
    assert not is_compiled(make_array)
