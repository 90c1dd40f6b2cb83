"""The compiled engine: numba's options, and the functions of ``ns`` as machine code has them."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from onlinevi.engine import ns

Function = Callable[..., Any]

OPTIONS: dict[str, Any] = {
    "nogil": True,
    # Division by zero gives inf, as in numpy: a check a division would halve the speed.
    "error_model": "numpy",
    # Sums may be reordered and fused. Not "nnan" or "ninf": a bad row is found by its NaN.
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}

IN_FLOAT32: dict[str, Any] = OPTIONS | {"fastmath": OPTIONS["fastmath"] - {"arcp"}}
"""With "arcp" x/√y becomes an estimate in float32 that errs to one side: over a million events a std shrinks by it."""


def compiled_part(function: Function, options: Mapping[str, Any] = OPTIONS) -> Function:
    """A function compiled for kernels alone: always inlined, and without the wrappers that Python would call it by."""
    import numba

    own = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": True, "pipeline_class": _part_compiler()}
    return numba.njit(**own, **options)(function)  # type: ignore[no-any-return]


@cache
def _part_compiler() -> type:
    """Numba's compiler, but for its last step: nobody calls the machine code of a part, as kernels have it inlined.

    That makes cold starts shorter. It overrides what numba keeps to itself: where a version has other insides, parts are
    compiled as all else is.
    """
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler

    insides = ("_ensure_finalized", "_finalize_final_module", "_finalize_dynamic_globals", "_verify_declare_only_symbols")
    if not all(hasattr(JITCodeLibrary, name) for name in insides):
        return Compiler  # type: ignore[no-any-return]

    class Codegen:
        """Without an environment, which is that of a function which can be called."""

        def __init__(self, own: Any) -> None:
            self._own = own

        def __getattr__(self, name: str) -> Any:
            return getattr(self._own, name)

        def set_env(self, name: str, environment: Any) -> None:
            """There is no place for it."""

    class Library(JITCodeLibrary):  # type: ignore[misc]
        """Optimised code to be linked into kernels."""

        @property
        def codegen(self) -> Codegen:
            return Codegen(self._codegen)

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._finalized = True

    class PartCompiler(Compiler):  # type: ignore[misc]
        def define_pipelines(self) -> Any:
            self.state.library = Library(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
            return super().define_pipelines()

    return PartCompiler


def compiled_kernel(function: Function) -> Function:
    """A function that Python calls, compiled at its first call and cached on disk where that is possible."""
    import numba

    try:
        dispatcher = numba.njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # neither the package's directory nor the user's cache can be written
        return numba.njit(**OPTIONS)(function)  # type: ignore[no-any-return]
    _forgive(dispatcher._cache)
    return dispatcher  # type: ignore[no-any-return]


@contextmanager
def without_collections() -> Iterator[None]:
    """Compiling makes objects by the million, and looking for garbage among them takes a tenth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _forgive(cache: Any) -> None:
    """A cache saves time and nothing else: what cannot be read is compiled, what cannot be written is not kept.

    A damaged file may fail in any way that a pickle can, and a full disk only in the middle of a file.
    """
    load, save = cache.load_overload, cache.save_overload

    def load_or_none(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except Exception:
            with suppress(Exception):
                cache.flush()  # an index that names nothing, in the place of what cannot be read
            return None

    def save_or_not(*arguments: Any) -> None:
        with suppress(Exception):
            save(*arguments)

    cache.load_overload, cache.save_overload = load_or_none, save_or_not


@cache
def machine_ns() -> ModuleType:
    """``ns`` for scalars, as a module that numba can look into."""

    def absolute(x: float) -> float:
        return abs(x)

    def maximum(x: float, y: float) -> float:
        return x if x > y else y

    def minimum(x: float, y: float) -> float:
        return x if x < y else y

    def isfinite(x: float) -> bool:
        # Not math.isfinite, which compares x − x with 0: sums that may be reordered cancel it to 0 whatever x is.
        return abs(x) < math.inf

    def where(condition: bool, x: float, y: float) -> float:
        return x if condition else y

    def exp(x: float) -> Any:
        """e^x to 4e-16, 0 below −708 and ∞ above 709. Unlike the C library's it needs no call, and vectorises.

        2^n·e^r with n the integer next to x/log 2, whose bits are written as those of a float, and Taylor's polynomial for
        e^r, summed as a tree. The last factor is what n·log 2 lacks for log 2 being a float.
        """
        least, most, log_2 = -708.0, 709.0, 0.6931471805599453
        inside = least if x < least else (most if x > most else x)
        n = np.int32(inside / log_2 + 1100.5) - np.int32(1100)
        r = inside - n * log_2
        r2 = r * r
        r4 = r2 * r2
        p0 = (1.0 + r) + (1.0 / 2.0 + 1.0 / 6.0 * r) * r2
        p4 = (1.0 / 24.0 + 1.0 / 120.0 * r) + (1.0 / 720.0 + 1.0 / 5040.0 * r) * r2
        p8 = (1.0 / 40320.0 + 1.0 / 362880.0 * r) + (1.0 / 3628800.0 + 1.0 / 39916800.0 * r) * r2
        power = np.int64((np.int64(n) + np.int64(1023)) << np.int64(52)).view(np.float64)
        series = p0 + (p4 + (p8 + 1.0 / 479001600.0 * r4) * r4) * r4
        whole = power * (series - series * (n * 2.3190468138462996e-17))
        return 0.0 if x < least else (math.inf if x > most else whole)

    module = ModuleType("onlinevi.ns")
    for function in (absolute, maximum, minimum, isfinite, where, exp):
        setattr(module, function.__name__, compiled_part(function))
    for name, made in INTRINSICS.items():
        setattr(module, name, made())
    module.SCRATCH = ns.SCRATCH  # type: ignore[attr-defined]
    for name in ("log", "log1p", "erf"):
        setattr(module, name, getattr(math, name))
    return module


def _square_root() -> Function:
    """The processor's instruction: ``math.sqrt`` calls the C library outside of loops it can vectorise."""
    from numba import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator]
    def sqrt(typing: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            function = builder.module.declare_intrinsic("llvm.sqrt", [arguments[0].type])
            return builder.call(function, arguments)

        number = x if x == types.float32 else types.float64
        return number(number), generate

    return sqrt  # type: ignore[no-any-return]


def _prefetch() -> Function:
    """Ask memory for vector[j], to be in the second cache soon, and do not wait for it."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator]
    def prefetch(typing: Any, vector: Any, j: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(vector)(context, builder, arguments[0])
            item = cgutils.get_item_pointer(context, builder, vector, array, [arguments[1]])
            place = builder.bitcast(item, cgutils.voidptr_t)
            word = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            builder.call(function, [place, word(0), word(2), word(1)])  # to read, second cache, data
            return context.get_dummy_value()

        return types.void(vector, j), generate

    return prefetch  # type: ignore[no-any-return]


def _one_by_one() -> Function:
    """An instruction of no length, which compilers may neither drop nor repeat for each part of a vector."""
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator]
    def one_by_one(typing: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], side_effect=True)
            return context.get_dummy_value()

        return types.void(), generate

    return one_by_one  # type: ignore[no-any-return]


def _scratch() -> Function:
    """Room for a few numbers of a vector's type, on the stack: a compiler knows that nothing else lies there."""
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator]
    def scratch(typing: Any, like: Any) -> Any:
        kind = types.Array(like.dtype, 1, "C")

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            item, index = context.get_data_type(like.dtype), context.get_value_type(types.intp)
            count, size = index(ns.SCRATCH), index(context.get_abi_sizeof(item))
            array = context.make_array(kind)(context, builder)
            room = cgutils.alloca_once(builder, item, size=count)
            context.populate_array(array, data=room, shape=[count], strides=[size], itemsize=size, meminfo=None)
            return array._getvalue()

        return kind(like), generate

    return scratch  # type: ignore[no-any-return]


def _short_vectors() -> Function:
    """To the compiler, of the function it is called in: vectors of 32 bytes, though the processor may have longer ones."""
    from numba import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator]
    def short_vectors(typing: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            # By the set itself: llvmlite's own way in knows attributes without a value only.
            set.add(builder.function.attributes, '"prefer-vector-width"="256"')
            return context.get_dummy_value()

        return types.void(), generate

    return short_vectors  # type: ignore[no-any-return]


INTRINSICS = {
    "sqrt": _square_root,
    "prefetch": _prefetch,
    "one_by_one": _one_by_one,
    "scratch": _scratch,
    "short_vectors": _short_vectors,
}


def machine_codes() -> list[Any]:
    """The sources of ``machine_ns``: what is edited there makes every kernel another."""
    return [part.__code__ for part in (machine_ns.__wrapped__, *INTRINSICS.values())]
