"""A kernel is a compiled function that works on the arrays it is given and makes none of its own.

It therefore needs no count of who holds an array: Numba keeps one, atomically, at every slice and every field of a
tuple, which took more time than a sweep over a few examples.

Compiled code is kept on disk. Numba would use it again as long as the file of the function stays the same; but code of
other files is compiled into it. So here it is used again only if the whole package is the same, byte for byte.
"""

from collections.abc import Callable
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import config, njit


@cache
def stamp_sources() -> str:
    """A hash of all source files of the package."""
    folder = Path(__file__).parent.parent
    digest = sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _compile(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function by Numba when it is first called with arguments of some types."""
    if function is None:
        return partial(_compile, **options)
    compiled = njit(cache=True, nogil=True, no_cfunc_wrapper=True, **options)(function)
    if not config.DISABLE_JIT:
        compiled._cache._cache_file._source_stamp = stamp_sources()  # Numba has no public way to say it
    return compiled


# What Python calls: it may make arrays.
entry: Any = _compile
# What other compiled code calls: leaving out the way in from Python halves the time it takes to compile.
inner: Any = partial(_compile, no_cpython_wrapper=True, _nrt=False)
# What both may call.
kernel: Any = partial(_compile, _nrt=False)


def is_compiled(function: Any) -> bool:
    """Whether there is compiled code of a function, at least for arguments of some types."""
    return config.DISABLE_JIT or bool(function.signatures or function._cache._cache_file._load_index())
