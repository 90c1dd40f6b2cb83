"""How an event is computed: one loop with holes, filled by a loss, a family and a rule, and run compiled or interpreted.

``types`` are the values that pass between the layers, ``ns`` the functions that shared code may call, ``holes`` what the loop
asks of its parts, ``loop`` the loop itself, ``kernel`` what fills and runs it. docs/engine.md tells why it is built so.
"""

from onlinevi.engine import holes, layout, loop, ns, reading, small_steps
from onlinevi.engine.kernel import VARIABLE, Engine, Function, Kernel, compose, engine_in_use, use_engine, using_engine
from onlinevi.engine.loop import many_passes, one_pass
from onlinevi.engine.registry import look_up, named
from onlinevi.engine.schedules import BY_GRADIENTS, Schedule, adapted, rate_at, weigh
from onlinevi.engine.types import (
    Belief,
    Event,
    Expected,
    Frame,
    Gradient,
    Moments,
    Prior,
    Rates,
    Real,
    Slopes,
    Step,
    Totals,
    Turn,
    Vector,
)
from onlinevi.engine.version import __version__

__all__ = [
    "BY_GRADIENTS",
    "VARIABLE",
    "Belief",
    "Engine",
    "Event",
    "Expected",
    "Frame",
    "Function",
    "Gradient",
    "Kernel",
    "Moments",
    "Prior",
    "Rates",
    "Real",
    "Schedule",
    "Slopes",
    "Step",
    "Totals",
    "Turn",
    "Vector",
    "__version__",
    "adapted",
    "compose",
    "engine_in_use",
    "holes",
    "layout",
    "look_up",
    "loop",
    "many_passes",
    "named",
    "ns",
    "one_pass",
    "rate_at",
    "reading",
    "small_steps",
    "use_engine",
    "using_engine",
    "weigh",
]
