"""A kernel is a compiled function that works on the arrays it is given and makes none of its own.

It therefore needs no count of who holds an array: Numba keeps one, atomically, at every slice and every field of a
tuple, which took more time than a sweep over a few examples.

What Python calls is kept on disk when it has been compiled. Numba would use it again as long as the file of the
function stays the same; but code of other files is compiled into it. So here it is used again only if all that compiled
code can import is the same, byte for byte.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import config, njit, types

from pyboomer.compiling.inner import EntryCompiler, InnerCompiler

SOURCES = ("arrays", "columns", "compiling", "engine", "losses", "metrics", "predicting", "rules")  # engine, and below


@cache
def stamp_sources() -> str:
    """A hash of all source files from which compiled code is made."""
    folder = Path(__file__).parent.parent
    digest = sha256()
    paths = [path for name in SOURCES for path in (folder / f"{name}.py", *folder.glob(f"{name}/**/*.py"))]
    for path in sorted(path for path in paths if path.is_file()):
        digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def entry(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function that Python calls, and keep the compiled code on disk; it may make arrays."""
    if function is None:
        return partial(entry, **options)
    compiled = njit(cache=True, nogil=True, no_cfunc_wrapper=True, pipeline_class=EntryCompiler, **options)(function)
    if not config.DISABLE_JIT:
        compiled._cache._cache_file._source_stamp = stamp_sources()  # Numba has no public way to say it
    return compiled


class Compiled:
    """A function that other compiled code calls."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        no_entry = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True, "pipeline_class": InnerCompiler}
        self.compiled = njit(nogil=True, _nrt=False, **no_entry, **options)(function)
        self.py_func = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._numba_type_ = types.Dispatcher(self.compiled)  # what Numba sees of it


class Inner(Compiled):
    """A function that only compiled code calls."""

    def __call__(self, *arguments: Any) -> Any:  # noqa: ARG002
        raise TypeError(f"{self.__name__} is for compiled code; Python can run {self.__name__}.py_func")


class Plain(Compiled):
    """A function so small that Python had better run it itself."""

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)


class Kernel(Compiled):
    """A function that Python calls, too; each way is compiled if it is used."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        super().__init__(function, options)
        self.entry = entry(function, _nrt=False, **options)

    def __call__(self, *arguments: Any) -> Any:
        return self.entry(*arguments)


def _decorate(kind: type[Compiled], function: Callable[..., Any] | None = None, **options: Any) -> Any:
    if function is None:
        return partial(_decorate, kind, **options)
    return function if config.DISABLE_JIT else kind(function, options)


inner: Any = partial(_decorate, Inner)  # decorates a function that only compiled code calls
plain: Any = partial(_decorate, Plain)  # ... a small one, which Python runs as it is
kernel: Any = partial(_decorate, Kernel)  # ... one that both call


def is_compiled(function: Any) -> bool:
    """Whether there is compiled code of a kernel for Python to call, at least for arguments of some types."""
    if config.DISABLE_JIT:
        return True
    compiled = function.entry
    return bool(compiled.signatures or compiled._cache._cache_file._load_index())
