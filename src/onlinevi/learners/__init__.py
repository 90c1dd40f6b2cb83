"""Who learns: one contract (``base``), one learner of the compiled loop (``Linear``), and combinators that wrap learners."""

from typing import TYPE_CHECKING, Any

from onlinevi.learners import store
from onlinevi.learners.base import BadRow, Combinator, Learner, Wrapped
from onlinevi.learners.calibrate import Calibrate, CalibrateState
from onlinevi.learners.calibration import Bands, Calibrated, Calibration
from onlinevi.learners.choice import (
    ClassesBy,
    check_classes_by,
    check_of_auto,
    choose,
    choose_softmax,
    classes_by_of,
    family_of,
    in_ball,
    loss_of,
    losses_of,
    map_of,
    rule_of,
)
from onlinevi.learners.class_pool import ClassPool, ClassPoolState
from onlinevi.learners.clip import Clip, ClipState
from onlinevi.learners.column_importance import Cycle, Importance, importance
from onlinevi.learners.default import Auto, AutoState, Effort, auto
from onlinevi.learners.described import CheckpointError, Described, Storable, Stored
from onlinevi.learners.each import predict_each
from onlinevi.learners.event_buffer import EventBuffer, StateBuffer, buffer_for
from onlinevi.learners.expand import (
    Beside,
    Expand,
    ExpandState,
    FeatureMap,
    Fourier,
    Products,
    Relu,
    Space,
    Splines,
    Trees,
    Unbent,
)
from onlinevi.learners.inputs import CENTRED, UNCENTRED, Inputs, InputState, RawWeights, moments_of
from onlinevi.learners.kernels import kernel
from onlinevi.learners.lag import Lag, LagState
from onlinevi.learners.linear import Linear, learn
from onlinevi.learners.one_vs_rest import OneVsRest, OneVsRestState, for_classes
from onlinevi.learners.pool import (
    AdaHedge,
    Experts,
    ExpertState,
    ExpertStep,
    Played,
    Pool,
    PoolState,
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
from onlinevi.learners.prepare import Prepare, PrepareState
from onlinevi.learners.recalibrate import Recalibrate, RecalibrateState
from onlinevi.learners.refusals import reason
from onlinevi.learners.reliable import Reliability, reliability
from onlinevi.learners.set_calibration import Covered, SetCalibration
from onlinevi.learners.sets import Sets, SetsState, with_sets
from onlinevi.learners.shown import html_of, html_rows
from onlinevi.learners.softmax import Softmax, SoftmaxState
from onlinevi.learners.state import Plan, State
from onlinevi.learners.store import Saved, load, pack, register, save, unpack
from onlinevi.learners.trace import Events, Forecast, Record, Trace

if TYPE_CHECKING:
    from onlinevi.learners.differentiable import Differentiable, MonteCarlo, ReLUNetwork, flatten

__all__ = [
    "CENTRED",
    "UNCENTRED",
    "AdaHedge",
    "Auto",
    "AutoState",
    "BadRow",
    "Bands",
    "Beside",
    "Calibrate",
    "CalibrateState",
    "Calibrated",
    "Calibration",
    "CheckpointError",
    "ClassPool",
    "ClassPoolState",
    "ClassesBy",
    "Clip",
    "ClipState",
    "Combinator",
    "Covered",
    "Cycle",
    "Described",
    "Differentiable",
    "Effort",
    "EventBuffer",
    "Events",
    "Expand",
    "ExpandState",
    "ExpertState",
    "ExpertStep",
    "Experts",
    "FeatureMap",
    "Forecast",
    "Fourier",
    "Importance",
    "InputState",
    "Inputs",
    "Lag",
    "LagState",
    "Learner",
    "Linear",
    "MonteCarlo",
    "OneVsRest",
    "OneVsRestState",
    "Plan",
    "Played",
    "Pool",
    "PoolState",
    "Prepare",
    "PrepareState",
    "Products",
    "RawWeights",
    "ReLUNetwork",
    "Recalibrate",
    "RecalibrateState",
    "Record",
    "Reliability",
    "Relu",
    "Saved",
    "SetCalibration",
    "Sets",
    "SetsState",
    "Softmax",
    "SoftmaxState",
    "Space",
    "Splines",
    "State",
    "StateBuffer",
    "Storable",
    "Stored",
    "Trace",
    "Trees",
    "Unbent",
    "Weighing",
    "Wrapped",
    "auto",
    "averages",
    "buffer_for",
    "check_classes_by",
    "check_of_auto",
    "choose",
    "choose_softmax",
    "classes_by_of",
    "family_of",
    "fixed",
    "flatten",
    "for_classes",
    "html_of",
    "html_rows",
    "importance",
    "in_ball",
    "kernel",
    "learn",
    "load",
    "loss_of",
    "losses_of",
    "map_of",
    "moments_of",
    "next_rate",
    "normalised",
    "over_rates",
    "pack",
    "predict_each",
    "reason",
    "register",
    "reliability",
    "rule_of",
    "running",
    "save",
    "schedule",
    "store",
    "tempering",
    "unpack",
    "with_sets",
]


def __getattr__(name: str) -> Any:
    """Learners of any differentiable model are imported when first asked for: they need JAX."""
    if name not in ("Differentiable", "MonteCarlo", "ReLUNetwork", "differentiable", "flatten"):
        raise AttributeError(f"module 'onlinevi.learners' has no attribute {name!r}")
    from importlib import import_module

    package = import_module("onlinevi.learners.differentiable")
    return package if name == "differentiable" else getattr(package, name)
