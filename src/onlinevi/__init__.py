"""Online Bayesian learning with guarantees: a Gaussian posterior updated in closed form at each event of a stream."""

from typing import Any

from onlinevi import bounds, checkpoint, datasets, ewa
from onlinevi.auto import Auto, Forecast, auto
from onlinevi.batch_vb import BatchVB, batch_vb
from onlinevi.certificate import Certificate, certificate
from onlinevi.checkpoint import load, save
from onlinevi.families import Box, Family, FullCovariance, LowRank, MeanField, Point
from onlinevi.hindsight import Hindsight, hindsight
from onlinevi.inputs import Inputs
from onlinevi.learner import BadRow, Linear, learn
from onlinevi.losses import Absolute, Hinge, Logistic, Loss, Pinball, Poisson, Squared
from onlinevi.plot import plot
from onlinevi.risk import risk_bound
from onlinevi.rules import (
    NGVI,
    OGA,
    OGAEL,
    SVA,
    SVB,
    Adaptive,
    Constant,
    Implicit,
    PaperSVB,
    PerHorizon,
    PerSqrt,
    PerStep,
    Rate,
    Rule,
    StronglyConvex,
)
from onlinevi.state import State
from onlinevi.trace import Trace
from onlinevi.types import Belief, Step
from onlinevi.uncertainty import Calibration
from onlinevi.version import __version__

__all__ = [
    "NGVI",
    "OGA",
    "OGAEL",
    "SVA",
    "SVB",
    "Absolute",
    "Adaptive",
    "Auto",
    "BadRow",
    "BatchVB",
    "Belief",
    "Box",
    "Calibration",
    "Certificate",
    "Constant",
    "Family",
    "Forecast",
    "FullCovariance",
    "Hindsight",
    "Hinge",
    "Implicit",
    "Inputs",
    "Linear",
    "Logistic",
    "Loss",
    "LowRank",
    "MeanField",
    "PaperSVB",
    "PerHorizon",
    "PerSqrt",
    "PerStep",
    "Pinball",
    "Point",
    "Poisson",
    "Rate",
    "Rule",
    "Squared",
    "State",
    "Step",
    "StronglyConvex",
    "Trace",
    "__version__",
    "auto",
    "batch_vb",
    "bounds",
    "certificate",
    "checkpoint",
    "datasets",
    "ewa",
    "hindsight",
    "learn",
    "load",
    "plot",
    "risk_bound",
    "save",
]


def __getattr__(name: str) -> Any:
    """``onlinevi.autodiff`` and ``onlinevi.sklearn`` are imported when first asked for: they need JAX and scikit-learn."""
    if name not in ("autodiff", "sklearn"):
        raise AttributeError(f"module 'onlinevi' has no attribute {name!r}")
    from importlib import import_module

    return import_module(f"onlinevi.{name}")
