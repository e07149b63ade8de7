"""The store is where compiled code is kept on disk, so that later processes need not compile it again.

Numba has a store, too. It would refuse to be imported where no folder can be written to, run machine code whatever has
become of it on disk, and look at the file of a function alone, though code of other files is compiled into it. Here
the code of a function for arguments of certain types is one file, and its first bytes are a hash of the rest and of all
sources that compiled code can come from. A file that is damaged or outdated is therefore as good as absent, and is
written anew. Folders need not be writable to be read from; if none is, code lives as long as the process.
"""

import logging
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import llvmlite
import numba
from numba import config
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

from pyboomer.compiling.room import claim_room

PACKAGE = Path(__file__).parent.parent
SOURCES = ("arrays", "columns", "compiling", "engine", "losses", "metrics", "predicting", "rules")  # engine, and below
COMPILING = "pyboomer compiles code for such models, once; this takes up to 15 seconds (`boomer warmup` does it ahead)"
FOR_LOADING, FOR_COMPILING = 2**25, 2**27  # bytes, twice what LLVM was seen to want; without them it ends the process
DIGEST_SIZE = sha256().digest_size

_logger = logging.getLogger("pyboomer")


@cache
def stamp_sources() -> bytes:
    """A hash of all that compiled code is made from, and with."""
    digest = sha256(f"{sys.version}\0{numba.__version__}\0{llvmlite.__version__}\0".encode())
    paths = [path for name in SOURCES for path in (PACKAGE / f"{name}.py", *PACKAGE.glob(f"{name}/**/*.py"))]
    for path in sorted(path for path in paths if path.is_file()):
        digest.update(f"{path.relative_to(PACKAGE)}\0".encode() + path.read_bytes() + b"\0")
    return digest.digest()


def list_folders() -> Iterator[Path]:
    """Where code may be kept, the best place first; of several installations, each has a place of its own."""
    own = f"pyboomer_{sha256(str(PACKAGE).encode()).hexdigest()[:16]}"
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR, own)
    yield PACKAGE / "__pycache__"
    yield Path(AppDirs("numba", appauthor=False).user_cache_dir, own)


class Store(NullCache):
    """The compiled code of one function; Numba asks it before it compiles, and tells it afterwards."""

    def __init__(self, function: Callable[..., Any], makes_arrays: bool = True) -> None:
        code = function.__code__
        self.makes_arrays = makes_arrays
        self.name = "".join(letter for letter in f"{function.__module__}.{function.__qualname__}" if letter not in "<>")
        self.facts = f"{sys.implementation.cache_tag} {code.co_firstlineno} {code.co_code.hex()}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for arguments of some types, or None if there is none; then it will be compiled.

        Numba's store would have all of Numba imported first, which takes longer than all else. To compile takes that,
        and Numba sees to it; to load takes no more than the functions that machine code calls to make arrays.
        """
        if self.makes_arrays:
            rtsys.initialize(target_context)
        name = self._name_file(sig, target_context.codegen())
        for folder in list_folders():
            content = _read(folder / name)
            if content is not None:
                claim_room(FOR_LOADING, f"the compiled code of {self.name}")
                loaded = CompileResult._rebuild(target_context, *pickle.loads(content))
                if loaded.signature.args == sig:  # types of the same name may differ
                    return loaded
        _announce_compiling()
        claim_room(FOR_COMPILING, f"the compilation of {self.name}")
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep code that was compiled, in the first folder that takes it."""
        content = dumps(data._reduce())
        name = self._name_file(sig, data.codegen)
        if not any(_write(folder / name, content) for folder in list_folders()):
            _warn_of_no_folder()

    def _name_file(self, types: Any, codegen: Any) -> str:
        facts = f"{self.facts} {types} {codegen.magic_tuple()} {config.BOUNDSCHECK}"
        return f"{self.name}-{sha256(facts.encode()).hexdigest()[:16]}.nbc"


def _read(path: Path) -> memoryview | None:
    """The content of a file, if it is what was written, by the same sources."""
    try:
        content = memoryview(path.read_bytes())
    except OSError:
        return None
    return content[DIGEST_SIZE:] if content[:DIGEST_SIZE] == _sign(content[DIGEST_SIZE:]) else None


def _write(path: Path, content: bytes) -> bool:
    """Write a file that no process ever sees half written; returns whether it could be."""
    temporary = path.with_name(f"{path.name}.{uuid4().hex}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_bytes(_sign(content) + content)
            os.replace(temporary, path)
        except OSError:  # such as a full disk
            temporary.unlink(missing_ok=True)
            raise
    except OSError:
        return False
    return True


def _sign(content: bytes | memoryview) -> bytes:
    digest = sha256(stamp_sources())
    digest.update(content)
    return digest.digest()


@cache
def _announce_compiling() -> None:
    """Say, once, what one is waiting for: on stderr, unless the program has other plans for what is logged."""
    from tqdm import tqdm

    with tqdm.external_write_mode(file=sys.stderr):  # above a progress bar, not amid it
        _logger.warning(COMPILING)


@cache
def _warn_of_no_folder() -> None:
    places = ", ".join(str(folder) for folder in list_folders())
    warnings.warn(
        "compiled code cannot be kept, so that every process has to compile again: no permission to write, or no room, "
        f"in {places}. Set the environment variable NUMBA_CACHE_DIR to a folder that can be written to, or fill it "
        "beforehand with `boomer warmup`.",
        RuntimeWarning,
        stacklevel=2,
    )
