"""The interpreted engine: the functions of ``ns`` for one number at a time, in plain Python.

It runs the same source as the compiled engine, slowly: for tests, breakpoints, and tracebacks that name a line of one's loss.
Numbers are numpy's, so that a division by zero gives infinity here too. Those of a loss are Python's, which are four times as
quick, until it divides by zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, wraps
from types import ModuleType
from typing import Any

import numpy as np

from onlinevi.engine import ns
from onlinevi.engine.types import Expected

Function = Callable[..., Any]


@cache
def interpreter_ns(*, plain: bool = False) -> ModuleType:
    """``ns`` as the compiled loop has it, number by number: of numpy's numbers, or ``plain`` ones of Python."""

    def maximum(x: float, y: float) -> float:
        return x if x > y else y

    def minimum(x: float, y: float) -> float:
        return x if x < y else y

    def where(condition: bool, x: float, y: float) -> float:
        return x if condition else y

    def exp(x: float) -> float:
        """The ends of the compiled one: 0 below −708, infinity above 709."""
        return math.exp(x) if -708.0 <= x <= 709.0 else (math.inf if x > 0.0 else 0.0 if x < 0.0 else math.nan)

    def sqrt(x: float) -> float:
        return math.sqrt(x) if x >= 0.0 else math.nan

    def log(x: float) -> float:
        return math.log(x) if x > 0.0 else (-math.inf if x == 0.0 else math.nan)

    def log1p(x: float) -> float:
        return math.log1p(x) if x > -1.0 else (-math.inf if x == -1.0 else math.nan)

    def scratch(like: Any) -> Any:
        return np.empty(ns.SCRATCH, like.dtype)

    plain_functions = {"exp": exp, "erf": math.erf, "sqrt": sqrt, "log": log, "log1p": log1p, "absolute": abs}
    numpy_functions = {
        "exp": lambda x: np.float64(exp(x)),
        "erf": lambda x: np.float64(math.erf(x)),
        "sqrt": np.sqrt,
        "log": np.log,
        "log1p": np.log1p,
        "absolute": np.absolute,
    }
    module = ModuleType("onlinevi.engine.ns")
    constants = {"LANES": ns.LANES, "SCRATCH": ns.SCRATCH, "isfinite": math.isfinite}
    module.__dict__.update(plain_functions if plain else numpy_functions, **constants)
    passes = ns.triangle_times, ns.fold_triangle, ns.square_times
    shared = ns.prefetch, ns.one_by_one, ns.one_vector, ns.short_vectors, *passes
    for function in (maximum, minimum, where, scratch, *shared):
        setattr(module, function.__name__, function)
    return module


def interpreted_kernel(function: Function) -> Function:
    """A function that Python calls: without numpy's warnings, as compiled code has none."""

    @wraps(function)
    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return run


def quick_loss(plain: Function, careful: Function) -> Function:
    """``expected`` of a loss, in Python's numbers where they can do it: they refuse to divide by zero, numpy's do not."""

    def expected(*arguments: Any) -> Expected:
        try:
            value, slope, curvature = plain(*map(float, arguments))
        except ZeroDivisionError:
            value, slope, curvature = careful(*map(np.float64, arguments))
        return Expected(np.float64(value), np.float64(slope), np.float64(curvature))

    return expected
