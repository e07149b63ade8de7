"""A kind is a type that decides how something is done: columns may be sorted, sparse or binned, and so forth.

A function that depends on a kind is declared once, with `by_kind`, and written once for each kind of its first
argument. Compiled code then has the case at hand and no other: nothing else has to be compiled, and no loop has to
ask. Kinds are NamedTuples, the values that compiled code can hold.
"""

from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import models, register_model

from pyboomer.compiling.kernel import inner

Function = Callable[..., Any]


class ByKind:
    """A function with an implementation for each kind of its first argument."""

    def __init__(self, declaration: Function) -> None:
        self.implementations: dict[type, Any] = {}
        self.__doc__, self.__name__ = declaration.__doc__, declaration.__name__
        self._numba_type_ = _ByKindType(self)  # where Numba looks for the type of what compiled code calls

    def __call__(self, kind: Any, *arguments: Any) -> Any:
        return self.choose(type(kind))(kind, *arguments)

    def choose(self, kind: type) -> Any:
        """The implementation for a kind."""
        if kind not in self.implementations:
            known = ", ".join(known.__name__ for known in self.implementations)
            raise TypeError(f"{self.__name__} is not written for {kind.__name__}, but for {known}")
        return self.implementations[kind]

    def of(self, *kinds: type, compile: Function = inner, **options: Any) -> Callable[[Function], Any]:
        """Add the implementation for some kinds; with ``compile=kernel``, Python can call it, too."""

        def add(implementation: Function) -> Any:
            compiled = compile(implementation, **options)
            self.implementations.update(dict.fromkeys(kinds, compiled))
            return compiled

        return add


by_kind = ByKind  # the decorator; the declaration says what all implementations do, and its body is never run


class _ByKindType(types.Callable, types.Opaque):
    """Numba's type of such a function: a call of it is a call of the implementation."""

    def __init__(self, function: ByKind) -> None:
        self.function = function
        super().__init__(f"by_kind({function.__name__})")

    def _choose(self, kind: Any) -> Any:
        return self.function.choose(getattr(kind, "instance_class", type(kind)))._numba_type_

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        return self._choose(args[0]).get_call_type(context, args, kws)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        return [], True

    def get_impl_key(self, sig: Any) -> Any:
        return self._choose(sig.args[0]).get_impl_key(sig)


register_model(_ByKindType)(models.OpaqueModel)
