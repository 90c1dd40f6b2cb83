"""Who learns: one contract (``base``), one learner of the compiled loop (``Linear``), and combinators that wrap learners."""

from typing import TYPE_CHECKING, Any

from onlinevi.learners import one_vs_rest, store
from onlinevi.learners.calibration import Bands, Calibrated, Calibration
from onlinevi.learners.choice import CLASS_LOSSES, NUMBER_LOSSES, RULES, Learner, begin, choose, family_of, named
from onlinevi.learners.default import Auto, AutoState, AutoTrace, Forecast, auto
from onlinevi.learners.inputs import Inputs, InputState, RawWeights
from onlinevi.learners.inputs import passes as input_passes
from onlinevi.learners.kernels import kernel
from onlinevi.learners.linear import BadRow, Linear, learn, reason
from onlinevi.learners.one_vs_rest import AnyLearner, Classes, ClassesState, ClassForecast, ClassTrace
from onlinevi.learners.pool import (
    AdaHedge,
    Aggregate,
    Aggregated,
    AggregateState,
    Experts,
    ExpertState,
    ExpertStep,
    Played,
    Weighing,
    averages,
    fixed,
    next_rate,
    normalised,
    over_rates,
    running,
    schedule,
    tempering,
)
from onlinevi.learners.prepare import Prepared, PreparedState, PreparedTrace
from onlinevi.learners.reliable import Reliability, reliability
from onlinevi.learners.state import Plan, State
from onlinevi.learners.store import CheckpointError, Saved, load, register, save
from onlinevi.learners.store.atomic import replace_file
from onlinevi.learners.trace import Record, Trace

if TYPE_CHECKING:
    from onlinevi.learners.differentiable import Differentiable, MonteCarlo, ReLUNetwork, flatten

__all__ = [
    "CLASS_LOSSES",
    "NUMBER_LOSSES",
    "RULES",
    "AdaHedge",
    "Aggregate",
    "AggregateState",
    "Aggregated",
    "AnyLearner",
    "Auto",
    "AutoState",
    "AutoTrace",
    "BadRow",
    "Bands",
    "Calibrated",
    "Calibration",
    "CheckpointError",
    "ClassForecast",
    "ClassTrace",
    "Classes",
    "ClassesState",
    "Differentiable",
    "ExpertState",
    "ExpertStep",
    "Experts",
    "Forecast",
    "InputState",
    "Inputs",
    "Learner",
    "Linear",
    "MonteCarlo",
    "Plan",
    "Played",
    "Prepared",
    "PreparedState",
    "PreparedTrace",
    "RawWeights",
    "ReLUNetwork",
    "Record",
    "Reliability",
    "Saved",
    "State",
    "Trace",
    "Weighing",
    "auto",
    "averages",
    "begin",
    "choose",
    "family_of",
    "fixed",
    "flatten",
    "input_passes",
    "kernel",
    "learn",
    "load",
    "named",
    "next_rate",
    "normalised",
    "one_vs_rest",
    "over_rates",
    "reason",
    "register",
    "reliability",
    "replace_file",
    "running",
    "save",
    "schedule",
    "store",
    "tempering",
]


def __getattr__(name: str) -> Any:
    """Learners of any differentiable model are imported when first asked for: they need JAX."""
    if name not in ("Differentiable", "MonteCarlo", "ReLUNetwork", "differentiable", "flatten"):
        raise AttributeError(f"module 'onlinevi.learners' has no attribute {name!r}")
    from importlib import import_module

    package = import_module("onlinevi.learners.differentiable")
    return package if name == "differentiable" else getattr(package, name)
