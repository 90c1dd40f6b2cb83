"""How an event is computed: one loop with holes, filled by a loss, a family and a rule, and run compiled or interpreted.

``types`` are the values that pass between the layers, ``ns`` the functions that shared code may call, ``holes`` what the loop
asks of its parts, ``packed`` what stands where in its arrays, ``loop`` the loop itself, ``kernel`` what fills and runs it.
docs/engine.md tells why it is built so.
"""

from onlinevi.engine import holes, layout, loop, ns, reading, speedups, square, triangle
from onlinevi.engine.kernel import (
    VARIABLE,
    Engine,
    Function,
    Kernel,
    compose,
    engine_in_use,
    use_engine,
    using_engine,
    watching_kernels,
)
from onlinevi.engine.loop import foresee_many, many_passes, one_pass
from onlinevi.engine.machine import one_thread_of_blas
from onlinevi.engine.packed import RECORD, SETTING, SUM, positions
from onlinevi.engine.registry import did_you_mean, look_up, named
from onlinevi.engine.schedules import ADAPTIVE_POWER, Schedule, adaptive_rate, rate_at, rates_against_prior
from onlinevi.engine.types import (
    Belief,
    Event,
    Expected,
    Geometry,
    Gradient,
    Moments,
    Prior,
    Rates,
    Real,
    Slopes,
    Step,
    StepInputs,
    Totals,
    Vector,
)
from onlinevi.engine.version import __version__

__all__ = [
    "ADAPTIVE_POWER",
    "RECORD",
    "SETTING",
    "SUM",
    "VARIABLE",
    "Belief",
    "Engine",
    "Event",
    "Expected",
    "Function",
    "Geometry",
    "Gradient",
    "Kernel",
    "Moments",
    "Prior",
    "Rates",
    "Real",
    "Schedule",
    "Slopes",
    "Step",
    "StepInputs",
    "Totals",
    "Vector",
    "__version__",
    "adaptive_rate",
    "compose",
    "did_you_mean",
    "engine_in_use",
    "foresee_many",
    "holes",
    "layout",
    "look_up",
    "loop",
    "many_passes",
    "named",
    "ns",
    "one_pass",
    "one_thread_of_blas",
    "positions",
    "rate_at",
    "rates_against_prior",
    "reading",
    "speedups",
    "square",
    "triangle",
    "use_engine",
    "using_engine",
    "watching_kernels",
]
