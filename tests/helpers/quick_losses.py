"""The logistic loss as machine code inside interpreted loops: in Python its 32 tails an event take most of a test's time.

Where the compiled engine is asked for, and so wherever the two engines are compared, the interpreted one is all Python again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from onlinevi.engine import Function, compose, kernel
from onlinevi.engine.types import Expected
from onlinevi.losses import Logistic, quick_expected

logistic = quick_expected(Logistic)
wanted_now = False


def expected_of(y: float, a: float, v: float) -> Any:
    value, slope, curvature = logistic(y, a, v)
    return value, slope, curvature


compiled = compose(expected_of, {})
in_python = kernel.quick_loss


def quick_loss(plain: Function, careful: Function) -> Function:
    """``expected`` for an interpreted loop."""
    python = in_python(plain, careful)
    if plain.__qualname__ != logistic.__qualname__:
        return python

    def expected(y: float, a: float, v: float) -> Expected:
        if not wanted_now:
            return python(y, a, v)
        value, slope, curvature = compiled.on("compiled")(float(y), float(a), float(v))
        return Expected(np.float64(value), np.float64(slope), np.float64(curvature))

    return expected


kernel.quick_loss = quick_loss


@contextmanager
def of_tests(*, wanted: bool) -> Iterator[None]:
    """Whether losses are compiled, for as long as the block runs."""
    global wanted_now
    before, wanted_now = wanted_now, wanted
    try:
        yield
    finally:
        wanted_now = before
