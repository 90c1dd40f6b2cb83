"""Machine code inside interpreted tests, where Python would take most of their time and other tests compile the same anyway.

It is the logistic loss, whose expectation has 32 tails an event; the loops of the default's learners; and what prepares rows,
makes features and weighs learners. Where the compiled engine is asked for, and so wherever the two engines are compared, the
interpreted one is all Python again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from onlinevi import rules
from onlinevi.engine import Function, Kernel, compose, engine_in_use, holes, kernel, reading, use_engine
from onlinevi.engine.interpreter import interpreted_kernel
from onlinevi.engine.kernel import Engine
from onlinevi.engine.types import Expected
from onlinevi.learners.softmax import loops as softmax_loops
from onlinevi.losses import Logistic, Squared, quick_expected

logistic = quick_expected(Logistic)
wanted_now = False


def expected_of(y: float, a: float, v: float) -> Any:
    value, slope, curvature = logistic(y, a, v)
    return value, slope, curvature


compiled = compose(expected_of, {})
in_python = kernel.quick_loss
plain_on = Kernel.on


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


def is_shared(loop: Kernel) -> bool:
    """Whether the default runs this loop whatever it learns, or for its learners of classes and numbers on dense rows."""
    parts = {hole: getattr(part, "__qualname__", "") for hole, part in loop._parts.items()}
    loss = parts.get(holes.expected)
    if loss is None:
        return loop._loop.__module__ != softmax_loops.__name__
    if loss not in (logistic.__qualname__, Squared.expected.__qualname__):
        return False
    of_rows = holes.is_dense in parts
    return not of_rows or (
        parts[holes.slopes_after_step].startswith(rules.Implicit.__name__)
        and (parts[holes.is_dense], parts[holes.in_float32]) == ("yes", "no")
        and parts[holes.late_forgetting] == reading.never_late.__qualname__
    )


def on(self: Kernel, engine: Engine) -> Function:
    """As it is, but machine code where that is wanted, in the loop or in those that it calls."""
    if not (wanted_now and engine == "interpreted"):
        return plain_on(self, engine)
    made: dict[str, Function] = self._made  # type: ignore[assignment]
    if "quick" not in made:
        made["quick"] = plain_on(self, "compiled") if is_shared(self) else interpreted_kernel(self._filled("interpreted"))
    return made["quick"]


kernel.quick_loss = quick_loss
Kernel.on = on  # type: ignore[method-assign]


@contextmanager
def of_tests(*, wanted: bool) -> Iterator[None]:
    """Whether machine code is used, for as long as the block runs."""
    global wanted_now
    before, wanted_now = wanted_now, wanted
    use_engine(engine_in_use())  # each loop finds out anew
    try:
        yield
    finally:
        wanted_now = before
        use_engine(engine_in_use())
