"""The interpreted engine: the functions of ``ns`` for one number at a time, in plain Python.

It runs the same source as the compiled engine, slowly: for tests, breakpoints, and tracebacks that name a line of one's loss.
Numbers stay numpy's, so that a division by zero gives infinity here too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, wraps
from types import ModuleType
from typing import Any

import numpy as np

from onlinevi.engine import ns

Function = Callable[..., Any]


@cache
def interpreter_ns() -> ModuleType:
    """``ns`` as the compiled loop has it, number by number."""

    def maximum(x: float, y: float) -> float:
        return x if x > y else y

    def minimum(x: float, y: float) -> float:
        return x if x < y else y

    def where(condition: bool, x: float, y: float) -> float:
        return x if condition else y

    def erf(x: float) -> Any:
        return np.float64(math.erf(x))

    def exp(x: float) -> Any:
        """The ends of the compiled one: 0 below −708, infinity above 709."""
        return np.exp(np.float64(x)) if -708.0 <= x <= 709.0 or x != x else np.float64(0.0 if x < 0.0 else math.inf)

    def scratch(like: Any) -> Any:
        return np.empty(ns.SCRATCH, like.dtype)

    module = ModuleType("onlinevi.engine.ns")
    functions = (maximum, minimum, where, erf, exp, scratch, ns.prefetch, ns.one_by_one, ns.short_vectors)
    for function in (*functions, np.sqrt, np.log, np.log1p, np.absolute, np.isfinite):
        setattr(module, function.__name__, function)
    module.SCRATCH = ns.SCRATCH  # type: ignore[attr-defined]
    return module


def interpreted_kernel(function: Function) -> Function:
    """A function that Python calls: without numpy's warnings, as compiled code has none."""

    @wraps(function)
    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return run
