"""Compiled code is used again by later processes, as long as it and all sources that it can come from are unchanged."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from numba import config

import pyboomer
from pyboomer.compiling import store
from pyboomer.compiling.kernel import entry

compiled_only = pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")

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
import sys

from pyboomer.columns.called import add_some
from pyboomer.compiling.kernel import kernel
from pyboomer.losses.kind import Factor, change


@kernel
def compute(kind, x):
    return add_some(x) + 100 * change(kind, x)


print(compute(Factor(2), 3), *(sum(n.values()) for n in compute.entry.stats[1:]), int("numba.np.linalg" in sys.modules))
"""


class Outcome(NamedTuple):
    """What one process reports."""

    result: int
    loaded: int
    compiled: int
    all_of_numba: int  # whether it was imported: to compile takes it, to load does not
    told: str  # on stderr


class House:
    """A copy of the package with three more modules, and a place for compiled code."""

    def __init__(self, folder: Path) -> None:
        self.source, self.cache = folder / "source", folder / "cache"
        self.package = self.source / "pyboomer"
        shutil.copytree(Path(pyboomer.__file__).parent, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        (self.package / "__init__.py").write_text('"""Nothing that takes time to import."""\n')
        for name, text in {"columns/called": CALLED, "losses/kind": KIND, "engine/calling": CALLING}.items():
            (self.package / f"{name}.py").write_text(text)

    def run(self, **environment: str) -> Outcome:
        """Compute in a process of its own; Python keeps no code, as it, too, would look at size and time alone."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        environment = {"PYTHONPATH": str(self.source), "NUMBA_CACHE_DIR": str(self.cache)} | environment
        command = [sys.executable, "-B", "-c", "import pyboomer.engine.calling"]
        done = subprocess.run(command, env=kept | environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return Outcome(*map(int, done.stdout.split()), done.stderr)

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
    house, note = House(tmp_path), f"{store.COMPILING}\n"
    assert house.run() == Outcome(704, loaded=0, compiled=1, all_of_numba=1, told=note)
    assert house.run() == Outcome(704, loaded=1, compiled=0, all_of_numba=0, told="")
    house.edit("columns/called", "x + 1", "x + 5")
    assert house.run() == Outcome(708, loaded=0, compiled=1, all_of_numba=1, told=note)
    house.edit("losses/kind", "x + 1", "x + 2")
    assert house.run() == Outcome(808, loaded=0, compiled=1, all_of_numba=1, told=note)


def test_a_process_that_may_write_nowhere_compiles_and_names_the_cure(tmp_path: Path) -> None:
    house = House(tmp_path)
    (house.package / "__pycache__").write_text("no folder")
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"), str(house.package / "__init__.py"))
    outcome = house.run(**nowhere)
    assert outcome[:3] == (704, 0, 1)
    assert outcome.told.count("compiled code cannot be kept") == 1
    assert "NUMBA_CACHE_DIR" in outcome.told
    house.run()
    again = house.run(**nowhere | {"NUMBA_CACHE_DIR": str(house.cache)})
    assert again == Outcome(704, loaded=1, compiled=0, all_of_numba=0, told="")


def add(a: int, b: int) -> int:
    return a + b


def call_anew() -> str:
    """Call the function as a new process would; returns where its code came from."""
    compiled = entry(add)
    assert compiled(2, 3) == 5
    hits, misses = (sum(n.values()) for n in compiled.stats[1:])
    assert hits + misses == 1
    return "loaded" if hits else "compiled"


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    chosen = [tmp_path / "first", tmp_path / "second"]
    monkeypatch.setattr(store, "list_folders", lambda: iter(chosen))
    store._warn_of_no_folder.cache_clear()
    return chosen


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",  # noqa: ARG005
    "cut in the hash": lambda content: content[:20],
    "cut in half": lambda content: content[: len(content) // 2],
    "longer": lambda content: content + b"\0",
    "other bits in the hash": lambda content: bytes([content[0] ^ 1]) + content[1:],
    "other bits in the code": lambda content: content[:-900] + bytes([content[-900] ^ 16]) + content[-899:],
}


@compiled_only
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_file_is_written_anew(damage: Callable[[bytes], bytes], folders: list[Path]) -> None:
    assert call_anew() == "compiled"
    (path,) = folders[0].iterdir()
    sound = path.read_bytes()
    path.write_bytes(damage(sound))
    assert call_anew() == "compiled"
    assert call_anew() == "loaded"
    assert [*folders[0].iterdir()] == [path]


@compiled_only
def test_a_folder_that_cannot_be_written_to_is_read_from(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, content: bytes) -> None:  # noqa: ARG001
        raise OSError(errno.EROFS, "Read-only file system")

    folders[0].write_text("no folder")
    assert call_anew() == "compiled"
    assert [*folders[1].iterdir()]
    monkeypatch.setattr(Path, "write_bytes", refuse)
    assert call_anew() == "loaded"
    (path,) = folders[1].iterdir()
    path.unlink()
    with pytest.warns(RuntimeWarning, match="Set the environment variable NUMBA_CACHE_DIR"):
        assert call_anew() == "compiled"
    assert call_anew() == "compiled"  # once is enough: another warning would be an error


@compiled_only
def test_a_disk_that_is_full_leaves_nothing_behind(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    write_bytes = Path.write_bytes

    def write_half(path: Path, content: bytes) -> None:
        write_bytes(path, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write_half)
    with pytest.warns(RuntimeWarning, match="or no room"):
        assert call_anew() == "compiled"
    assert [path for folder in folders for path in folder.iterdir()] == []
