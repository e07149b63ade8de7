"""A kernel is a compiled function that works on the arrays it is given and makes none of its own.

It therefore needs no count of who holds an array: Numba keeps one, atomically, at every slice and every field of a
tuple, which took more time than a sweep over a few examples.

What Python calls is kept on disk when it has been compiled, see `store`.
"""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

from numba import config, njit, types
from numba.extending import models, register_model

from pyboomer.compiling.inner import EntryCompiler, InnerCompiler
from pyboomer.compiling.store import Store


def entry(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function that Python calls, and keep the compiled code on disk; it may make arrays."""
    if function is None:
        return partial(entry, **options)
    compiled = njit(nogil=True, no_cfunc_wrapper=True, pipeline_class=EntryCompiler, **options)(function)
    if not config.DISABLE_JIT:
        compiled._cache = Store(function, options.get("_nrt", True))  # Numba has no public way to say it
    return compiled


class _CompiledType(types.Dispatcher):
    """Numba's type of a function that other compiled code calls.

    A number that stands in the code of a caller would be a type of its own, and the function compiled once more for it.
    """

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        plain_kws = {name: types.unliteral(kind) for name, kind in kws.items()}
        return super().get_call_type(context, tuple(map(types.unliteral, args)), plain_kws)


register_model(_CompiledType)(models.OpaqueModel)


class Compiled:
    """A function that other compiled code calls."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self.py_func, self.options = function, options
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    @cached_property
    def compiled(self) -> Any:
        """Numba's function, made when other code is compiled: a process that finds all compiled on disk needs none."""
        no_entry = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True, "pipeline_class": InnerCompiler}
        return njit(nogil=True, _nrt=False, **no_entry, **self.options)(self.py_func)

    @property
    def _numba_type_(self) -> _CompiledType:
        return _CompiledType(self.compiled)  # what Numba sees of it


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

    @cached_property
    def entry(self) -> Any:
        """What Python calls, made when it does."""
        return entry(self.py_func, _nrt=False, **self.options)

    def __call__(self, *arguments: Any) -> Any:
        return self.entry(*arguments)


def _decorate(kind: type[Compiled], function: Callable[..., Any] | None = None, **options: Any) -> Any:
    if function is None:
        return partial(_decorate, kind, **options)
    return function if config.DISABLE_JIT else kind(function, options)


inner: Any = partial(_decorate, Inner)  # decorates a function that only compiled code calls
plain: Any = partial(_decorate, Plain)  # ... a small one, which Python runs as it is
kernel: Any = partial(_decorate, Kernel)  # ... one that both call
