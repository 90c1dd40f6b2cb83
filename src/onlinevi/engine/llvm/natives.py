"""Loops as machine code: translated, optimised by LLVM, and behind a function of numba's, which takes arguments apart.

numba compiles that function alone: it knows the types of what it is given, calls the loop, keeps both on disk, and lets other
threads run meanwhile.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache, cached_property
from types import FunctionType
from typing import Any

from onlinevi.engine.llvm.translator import Translator
from onlinevi.engine.llvm.values import BOOL, KINDS, Form, NotTranslated, number_form, types_of


class Loop:
    """A loop for other loops to call: what it does is, to the bit, what it does by itself."""

    def __init__(self, function: FunctionType) -> None:
        self.function, self.__qualname__ = function, function.__qualname__

    def translated(self, forms: tuple[Form, ...]) -> Translated:
        """For arguments of these forms."""
        return translated(self.function, forms)


@dataclass(eq=False)
class Translated:
    """A loop in LLVM's code."""

    symbol: str
    text: str
    returned: str
    """What it returns, in LLVM's words."""
    form: Form | None
    """The form of it; None where that is nothing."""
    within: tuple[Translated, ...]
    """The loops that it calls."""

    @cached_property
    def module(self) -> Any:
        """The code as LLVM has optimised it."""
        return optimised(self.text)

    @property
    def all(self) -> tuple[Translated, ...]:
        """Itself, and all loops that are called within."""
        return tuple(dict.fromkeys([*(one for own in self.within for one in own.all), self]))

    # What numba asks of a library, where it has other insides than ``machine`` knows: it optimises the code once more.
    _reload_init = ()

    def _ensure_finalized(self) -> None:
        """It is."""

    def _get_module_for_linking(self) -> Any:
        return self.module


_made: dict[tuple[str, tuple[Form, ...]], Translated] = {}


def translated(function: FunctionType, forms: tuple[Form, ...]) -> Translated:
    """The loop for arguments of these forms: once a process."""
    key = function.__qualname__, forms
    if key not in _made:
        translator = Translator()
        symbol = f"onlinevi_{function.__name__}_{hashlib.sha256(repr(key).encode()).hexdigest()[:20]}"
        text, returned, form = translator.written(function, symbol, forms)
        _made[key] = Translated(symbol, text, returned, form, tuple(translator.within))
    return _made[key]


def optimised(text: str) -> Any:
    """A module of LLVM's, for this processor."""
    import llvmlite.binding as llvm

    module, target = llvm.parse_assembly(text), processor()
    module.triple, module.data_layout = target.triple, str(target.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization, options.slp_vectorization = True, False
    builder = llvm.create_pass_builder(target, options)
    # Loops that ask at their end are found by passes before those that would turn them round.
    first = llvm.create_new_module_pass_manager()
    first.add_loop_rotate_pass()
    first.add_instruction_combine_pass()
    first.add_jump_threading_pass()
    for passes in (first, builder.getModulePassManager()):
        passes.run(module, builder)
    return module


@cache
def processor() -> Any:
    """The one that numba compiles for."""
    import llvmlite.binding as llvm
    from numba.core.registry import cpu_target

    triple, name, features = cpu_target.target_context.codegen().magic_tuple()
    return llvm.Target.from_triple(triple).create_target_machine(cpu=name, features=features, opt=3)


# --- behind a function of numba's


def called_by_numba(function: FunctionType) -> FunctionType:
    """For numba to compile: a function of the same name and file that calls the loop."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator]
    def native(typing: Any, given: Any) -> Any:
        loop = translated(function, tuple(map(form_of_type, given)))
        returned = types.none if loop.form is None else type_of_form(loop.form)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            word = ir.IntType(64)
            lacking = cgutils.alloca_once_value(builder, word(0))
            parts = [*parts_of(context, builder, signature.args[0], arguments[0]), lacking]
            kind = ir.FunctionType(ir_type(loop), [part.type for part in parts])
            found = builder.call(cgutils.get_or_insert_function(builder.module, kind, loop.symbol), parts)
            for one in loop.all:
                context.active_code_library.add_linking_library(one)
            with cgutils.if_unlikely(builder, builder.icmp_unsigned("!=", builder.load(lacking), word(0))):
                context.call_conv.return_user_exc(builder, MemoryError, ("a loop found no memory to work in",))
            if loop.form is None:
                return context.get_dummy_value()
            if loop.form.what == "number":
                return found
            items = [builder.extract_value(found, k) for k in range(len(loop.form.parts))]
            return context.make_tuple(builder, returned, items)

        return returned(given), generate

    code, scope = function.__code__, {"native": native}
    names = ", ".join(code.co_varnames[: code.co_argcount])
    exec(f"def run({names}):\n    return native(({names},))", scope)
    run = scope["run"]
    run.__code__ = run.__code__.replace(
        co_filename=code.co_filename,
        co_name=code.co_name,
        co_qualname=function.__qualname__,
        co_firstlineno=code.co_firstlineno,
    )
    run.__name__, run.__qualname__, run.__module__ = function.__name__, function.__qualname__, function.__module__
    return run  # type: ignore[no-any-return]


def ir_type(loop: Translated) -> Any:
    """What a loop returns, as llvmlite has it."""
    from llvmlite import ir

    if loop.form is None:
        return ir.VoidType()
    kinds = {"double": ir.DoubleType(), "float": ir.FloatType()}
    found = [kinds.get(name) or ir.IntType(int(name[1:])) for name in types_of(loop.form)]
    return found[0] if loop.form.what == "number" else ir.LiteralStructType(found)


def parts_of(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    """As ``values.parts_of``, of what numba has."""
    from numba import types
    from numba.core import cgutils

    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        vectors = [array.shape] if kind.layout == "C" else [array.shape, array.strides]
        return [array.data, *(one for vector in vectors for one in cgutils.unpack_tuple(builder, vector, kind.ndim))]
    if isinstance(kind, types.BaseTuple):
        values = cgutils.unpack_tuple(builder, value)
        return [part for one, item in zip(kind, values, strict=True) for part in parts_of(context, builder, one, item)]
    return [value]


def form_of_type(kind: Any) -> Form:
    """The form of the values of a type of numba's."""
    from numba import types
    from numba.np.numpy_support import as_dtype

    if isinstance(kind, types.Array) and as_dtype(kind.dtype) in KINDS:
        return Form("array", KINDS[as_dtype(kind.dtype)], axes=kind.ndim, packed=kind.layout == "C", writable=kind.mutable)
    if isinstance(kind, types.BaseTuple):
        return Form("items", parts=tuple(map(form_of_type, kind)), made_of=getattr(kind, "instance_class", tuple))
    if isinstance(kind, types.Boolean):
        return number_form(BOOL)
    if isinstance(kind, types.Number) and as_dtype(kind) in KINDS:
        return number_form(KINDS[as_dtype(kind)])
    raise NotTranslated(f"a loop takes numbers, arrays of them, and tuples: not {kind}")


def type_of_form(form: Form) -> Any:
    """The type that numba has for what a loop returns: a number, or several."""
    from numba import types
    from numba.np.numpy_support import from_dtype

    if form.what == "number":
        dtype = next((dtype for dtype, kind in KINDS.items() if kind == form.kind), None)
        return types.boolean if dtype is None else from_dtype(dtype)
    if any(part.what != "number" for part in form.parts) or form.what == "array":
        raise NotTranslated("a loop returns a number, or several: no array, and no tuple of tuples")
    parts = [type_of_form(part) for part in form.parts]
    return types.NamedTuple(parts, form.made_of) if hasattr(form.made_of, "_fields") else types.Tuple(parts)
