"""The compiled engine: how numba is asked for a loop, and how what it makes is kept on disk; and how many threads BLAS has."""

from __future__ import annotations

import gc
import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from onlinevi.engine import ns, square, triangle

Function = Callable[..., Any]


def compiled_kernel(function: FunctionType) -> Function:
    """A function that Python calls, compiled at its first call and cached on disk where that is possible."""
    import numba

    from onlinevi.engine.llvm import called_by_numba

    caller = called_by_numba(function)
    own: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}
    if _compiler() is not None:
        own["pipeline_class"] = _compiler()
    try:
        dispatcher = numba.njit(cache=True, **own)(caller)
    except RuntimeError:  # neither the package's directory nor the user's cache can be written
        return numba.njit(**own)(caller)  # type: ignore[no-any-return]
    _forgive(dispatcher._cache)
    return dispatcher  # type: ignore[no-any-return]


def compiled_loop(function: FunctionType) -> Any:
    """A loop for other loops to call: what it does is, to the bit, what it does by itself."""
    from onlinevi.engine.llvm import Loop

    return Loop(function)


@cache
def _compiler() -> Any:
    """Numba's compiler, but that loops are linked behind its own optimisation; None where numba has other insides.

    They have had theirs, and another would take as long again.
    """
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler

    from onlinevi.engine.llvm.natives import Translated

    if not all(hasattr(JITCodeLibrary, name) for name in ("_optimize_final_module", "add_linking_library")):
        return None

    class Library(JITCodeLibrary):  # type: ignore[misc]
        def __init__(self, codegen: Any, name: str) -> None:
            super().__init__(codegen, name)
            self._loops: dict[Translated, None] = {}  # in order

        def add_linking_library(self, library: Any) -> None:
            if isinstance(library, Translated):
                self._loops[library] = None
            else:
                super().add_linking_library(library)

        def _optimize_final_module(self) -> None:
            super()._optimize_final_module()
            for loop in self._loops:
                self._final_module.link_in(loop.module, preserve=True)

    class LinkingCompiler(Compiler):  # type: ignore[misc]
        def define_pipelines(self) -> Any:
            state = self.state
            state.library = Library(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
            return super().define_pipelines()

    return LinkingCompiler


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


@contextmanager
def one_thread_of_blas(*, of_scipy: bool = False) -> Iterator[None]:
    """One thread for products of matrices, where scikit-learn has brought along what says so.

    Threads of BLAS wait for each other by turning round: where something else has a processor, many products of some hundred
    columns take ten times as long with two as with one. ``of_scipy``: it will be used, and has a BLAS of its own; only those
    that are there are told.
    """
    if of_scipy:
        import scipy.linalg  # noqa: F401
    controller = _controller(has_scipy="scipy.linalg" in sys.modules)
    with nullcontext() if controller is None else controller.limit(limits=1, user_api="blas"):
        yield


@cache
def _controller(*, has_scipy: bool) -> Any:
    """What sets the threads of the libraries that are there: to look for them takes some milliseconds."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()


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


def translator_identity() -> bytes:
    """Of what makes machine code: what is edited there makes every kernel another."""
    return _of_files() + str(ns.SCRATCH).encode()


@cache
def _of_files() -> bytes:
    files = [Path(triangle.__file__), Path(square.__file__), *sorted((Path(__file__).parent / "llvm").glob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()
