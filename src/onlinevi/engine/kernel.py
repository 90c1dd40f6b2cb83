"""A loop with its holes filled: two ways to run one source, compiled and interpreted.

Numba caches a function by its own file only, so an edit in a part that the loop calls would go unseen. Here the name under
which a kernel is cached carries a digest of every function it reaches, helpers and constants included: whatever is edited,
the name changes and the kernel is compiled anew.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Literal, TypeAlias, get_args
from weakref import WeakSet

import numpy as np

from onlinevi.engine import ns
from onlinevi.engine.holes import expected
from onlinevi.engine.interpreter import interpreted_kernel, interpreter_ns, quick_loss
from onlinevi.engine.machine import compiled_kernel, compiled_loop, translator_identity, without_collections

Function = Callable[..., Any]
Engine: TypeAlias = Literal["compiled", "interpreted"]

VARIABLE = "ONLINEVI_ENGINE"
"""The environment variable that names the engine to start with."""

NUMBA_OFF = "NUMBA_DISABLE_JIT"
"""Numba's own variable: with it set the engine is the interpreted one."""


class Kernel:
    """A loop and what fills its holes. ``run`` is the function that the engine in use makes of them, at its first call."""

    __slots__ = ("__weakref__", "_inner", "_loop", "_made", "_narrow", "_parts", "run")

    def __init__(self, loop: Function, parts: Mapping[Function, Function], narrow: Collection[Function]) -> None:
        self._loop, self._parts, self._narrow = loop, parts, narrow
        self._made: dict[Engine, Function] = {}
        self._inner: Any = None
        self.reset()
        _kernels.add(self)

    def __call__(self, *arguments: Any) -> Any:
        return self.run(*arguments)

    def reset(self) -> None:
        """Forget which engine runs the loop: the next call finds out."""
        self.run: Function = self._first_run

    def _first_run(self, *arguments: Any) -> Any:
        told = [watch(self) for watch in _watches]
        engine: Engine = "compiled" if "compiled" in told else _engine
        self.run = self.on(engine)
        with without_collections() if engine == "compiled" else nullcontext():
            return self.run(*arguments)

    @property
    def is_compiled(self) -> bool:
        """Whether machine code of it is in memory, or on disk from an earlier time."""
        function: Any = self.on("compiled")
        if function.signatures:
            return True
        folder = function.stats.cache_path
        return folder is not None and any(Path(folder).glob(f"*{function.py_func.__qualname__}*.nbi"))

    def on(self, engine: Engine) -> Function:
        """The function that this engine makes of the loop."""
        if engine not in self._made:
            filled = self._filled(engine)
            self._made[engine] = compiled_kernel(filled) if engine == "compiled" else interpreted_kernel(filled)
        return self._made[engine]

    def within(self, engine: Engine) -> Any:
        """The same for other loops to call."""
        if engine == "interpreted":
            return self.on(engine)
        if self._inner is None:
            self._inner = compiled_loop(self._filled(engine))
        return self._inner

    def _filled(self, engine: Engine) -> FunctionType:
        """The loop with its holes filled, under a name that tells what fills them, and what makes machine code of it."""
        filled, digest, _ = _Filler(engine, self._parts, self._narrow).fill(self._loop)
        filled.__qualname__ = f"{self._loop.__qualname__}_{hashlib.sha256(digest + translator_identity()).hexdigest()[:20]}"
        return filled


def compose(loop: Function, parts: Mapping[Function, Function | Kernel], narrow: Collection[Function] = ()) -> Kernel:
    """The loop with each hole filled by its part.

    The constants of the holes in ``narrow``, and of all they call, become float32: one double would widen all it meets.
    """
    return Kernel(loop, parts, narrow)


_kernels: WeakSet[Kernel] = WeakSet()
_watches: list[Callable[[Kernel], Engine | None]] = []


@contextmanager
def watching_kernels(watch: Callable[[Kernel], Engine | None]) -> Iterator[None]:
    """Call ``watch`` with each kernel that runs for the first time since an engine was chosen, before it does.

    Where it says "compiled", that kernel is, whatever the engine of others.
    """
    _watches.append(watch)
    try:
        yield
    finally:
        _watches.remove(watch)


def _checked(engine: str) -> Engine:
    if engine not in get_args(Engine):
        raise ValueError(f"engine {engine!r}: needs 'compiled' or 'interpreted', in the call or in {VARIABLE}")
    if engine == "compiled" and numba_is_off():
        raise ValueError(f"engine 'compiled': {NUMBA_OFF} is set, and nothing can be compiled; unset it, or use 'interpreted'")
    return engine  # type: ignore[return-value]


def numba_is_off() -> bool:
    """Whether numba was told, before it was imported, to compile nothing."""
    return os.environ.get(NUMBA_OFF, "0") not in ("", "0")


_engine: Engine = _checked(os.environ.get(VARIABLE) or ("interpreted" if numba_is_off() else "compiled"))


def engine_in_use() -> Engine:
    """The engine that runs every loop from now on."""
    return _engine


def use_engine(engine: Engine) -> None:
    """Run every loop on this engine from now on: "compiled", or "interpreted" for breakpoints in a loss of one's own.

    States are the same for both: learning may begin on one engine and go on with the other.

    >>> import onlinevi as ovi
    >>> from onlinevi.engine import engine_in_use, using_engine
    >>> learner = ovi.Linear(ovi.Squared(), ovi.NGVI())
    >>> with using_engine("interpreted"):
    ...     engine_in_use(), learner.update(learner.init(1), [1.0], 3.0)[1].loss
    ('interpreted', 9.0)
    """
    global _engine
    _engine = _checked(engine)
    for kernel in _kernels:
        kernel.reset()


@contextmanager
def using_engine(engine: Engine) -> Iterator[None]:
    """``use_engine`` for as long as the block runs."""
    before = _engine
    use_engine(engine)
    try:
        yield
    finally:
        use_engine(before)


Filled: TypeAlias = tuple[FunctionType, bytes, bool]
"""A function with its holes filled, a digest of all it reaches, and whether it reaches a hole."""

Numbers: TypeAlias = Engine | Literal["plain"]
"""What a function is filled for: an engine, or a loss in Python's own numbers on the interpreted one."""

_closed: dict[tuple[Numbers, Function, bool], Filled] = {}
"""Parts that reach no hole: the same in every kernel."""


class _Filler:
    """Fills the holes of one loop for one engine."""

    def __init__(self, engine: Numbers, parts: Mapping[Function, Any], narrow: Collection[Function] = ()) -> None:
        self.engine, self.parts, self.narrow = engine, parts, narrow

    def fill(self, function: Function, *, single: bool = False) -> Filled:
        """A copy of the function that calls this engine's parts. ``single``: its constants are float32.

        The copy keeps its file and line numbers, so that tracebacks name the source, and breakpoints hold in it.
        """
        assert isinstance(function, FunctionType)
        code, narrow = function.__code__, single and self.engine != "compiled"  # the translator does it by itself
        if narrow:
            code = code.replace(co_consts=tuple(map(_narrowed, code.co_consts)))
        digest, open_ended = _code_identity(code) + bytes([single]), False
        bound: dict[str, Any] = {"__builtins__": function.__globals__["__builtins__"], "__name__": function.__module__}
        for name in sorted(_global_names(code) & function.__globals__.keys()):
            value = function.__globals__[name]
            part = self.parts.get(value, value) if isinstance(value, FunctionType) else value
            if value is ns:
                bound[name], digest = self._ns(), digest + b"ns"
            elif isinstance(part, FunctionType):
                bound[name], inner, inner_open = self._part(part, single=single or value in self.narrow)
                digest, open_ended = digest + inner, open_ended or inner_open or part is not value
                if value is expected and self.engine == "interpreted":
                    bound[name] = quick_loss(_Filler("plain", self.parts)._part(part, single=False)[0], bound[name])
            elif isinstance(part, Kernel):
                bound[name] = part.within("interpreted" if self.engine == "plain" else self.engine)
                digest, open_ended = digest + bound[name].__qualname__.encode(), True
            else:
                value = _narrowed(value) if narrow else value
                if self.engine == "plain" and isinstance(value, np.ndarray) and value.ndim == 1:
                    value = tuple(value.tolist())  # an array's numbers are numpy's, and all they meet becomes so
                bound[name], digest = value, digest + f"{name}={_identity(value)};".encode()
        copy = FunctionType(code, bound, function.__name__, function.__defaults__)
        copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
        copy.single = single  # type: ignore[attr-defined]
        return copy, hashlib.sha256(digest).digest(), open_ended

    def _ns(self) -> ModuleType:
        return ns if self.engine == "compiled" else interpreter_ns(plain=self.engine == "plain")

    def _part(self, function: Function, *, single: bool) -> tuple[Function, bytes, bool]:
        known = self.engine, function, single
        if known in _closed:
            return _closed[known]
        copy, digest, open_ended = self.fill(function, single=single)
        if not open_ended:
            _closed[known] = copy, digest, open_ended
        return copy, digest, open_ended


def _narrowed(constant: Any) -> Any:
    return np.float32(constant) if type(constant) is float else constant


def _global_names(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_global_names(inner) for inner in code.co_consts if isinstance(inner, CodeType)), ())


def _code_identity(code: CodeType) -> bytes:
    constants = b"".join(_code_identity(c) if isinstance(c, CodeType) else repr(c).encode() for c in code.co_consts)
    return code.co_code + constants + repr((code.co_names, code.co_varnames)).encode()


def _identity(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return hashlib.sha256(value.tobytes()).hexdigest()
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, type):  # a named tuple: its fields are its meaning
        return f"{value.__qualname__}{getattr(value, '_fields', '')}"
    return repr(value)
