"""Inner code is compiled into other code and never runs by itself.

Numba would optimise each compiled function, turn it into machine code, and do so once more for every function that
calls it, and for those that call these. Here a function that only compiled code calls is left as LLVM's intermediate
code; it is optimised, once, with the function that Python calls. That more than halves the time of compiling. And LLVM
is told that nobody else calls it, so that it need not keep to conventions: arguments that are not used are not passed.

This takes parts of Numba that are not public: a pass of its compiler, and its library of code.
"""

from itertools import islice
from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

LARGE = 100  # instructions, at least: a call of such a function takes no time to speak of


class InnerLibrary(JITCodeLibrary):
    """Code to be linked with other code: not optimised as a whole, nor turned into machine code."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class EntryLibrary(JITCodeLibrary):
    """Code that Python calls, with all that was linked to it.

    LLVM would copy each function that is called from one place into its caller, and end with one of 15,000
    instructions. The time to optimise it grows faster than its size, so large functions are left where they are.
    """

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage.name == "linkonce_odr":  # of another library
                function.linkage = "internal"
                if not any(b"alwaysinline" in attribute for attribute in function.attributes) and _is_large(function):
                    function.add_function_attribute("noinline")
        super()._optimize_final_module()


def _is_large(function: Any) -> bool:
    instructions = (instruction for block in function.blocks for instruction in block.instructions)
    return next(islice(instructions, LARGE, None), None) is not None


@register_pass(mutates_CFG=True, analysis_only=False)
class EntryLowering(NativeLowering):
    """From Numba's intermediate code to machine code."""

    _name = "entry_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a function into a library of its own."""
        state.library = EntryLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class InnerLowering(NativeLowering):
    """From Numba's intermediate code to LLVM's, and no further."""

    _name = "inner_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a function, and make it known to those that call it."""
        state.library = InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.flags.no_compile = True
        super().run_pass(state)
        lowered, library = state["cr"], state.library
        name = lowered.fndesc.qualname.rsplit(".", 1)[-1]
        # what stands for the function: it has no address, so Python cannot call it
        stand_in = _dynfunc.make_function(
            lowered.fndesc.lookup_module(), name, "inner code", 0, lowered.env, (library,)
        )
        state.targetctx.insert_user_function(stand_in, lowered.fndesc, [library])
        state["cr"] = lowered._replace(cfunc=stand_in)
        return True


class QuickFlags(Flags):
    """The options of a compilation.

    Numba compares them with those of other compilations at every operator and every call that it resolves. It would ask
    for each option by name: more than a fifth of all function calls of a compilation did nothing else.
    """

    __slots__ = ()
    _hash = hash(Flags())  # the same for all, as it is that of their names

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flags) and self._values == other._values


class _Compiler(CompilerBase):
    """Numba's compiler, with one of these passes."""

    lowering: type

    def __init__(self, *arguments: Any) -> None:
        *others, flags, local_types = arguments
        super().__init__(*others, QuickFlags(flags), local_types)

    def define_pipelines(self) -> list[Any]:
        """The passes of the compiler."""
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes = pipeline.passes
        pipeline.passes = [(self.lowering if kind is NativeLowering else kind, text) for kind, text in passes]
        pipeline.finalize()
        return [pipeline]


class InnerCompiler(_Compiler):
    """Compiles inner code."""

    lowering = InnerLowering


class EntryCompiler(_Compiler):
    """Compiles what Python calls."""

    lowering = EntryLowering
