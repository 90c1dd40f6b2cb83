"""Online Bayesian learning with guarantees: a Gaussian posterior updated in closed form at each event of a stream."""

from typing import TYPE_CHECKING, Any

from onlinevi import bounds, checkpoint, datasets, ewa
from onlinevi.beliefs import Ball, Box, Family, FullCovariance, LowRank, MeanField, Point
from onlinevi.engine import Belief, Step, __version__, ns
from onlinevi.guarantees import (
    Alarm,
    BatchVB,
    Certificate,
    Hindsight,
    PacBayes,
    batch_vb,
    certificate,
    hindsight,
    pac_bayes,
    risk_bound,
)
from onlinevi.learners import (
    Auto,
    BadRow,
    Beside,
    Calibrate,
    Calibration,
    ClassPool,
    Clip,
    Expand,
    FeatureMap,
    Forecast,
    Fourier,
    Inputs,
    Lag,
    Learner,
    Linear,
    OneVsRest,
    Pool,
    Prepare,
    Products,
    Recalibrate,
    Relu,
    SetCalibration,
    Sets,
    Softmax,
    Splines,
    State,
    Trace,
    Trees,
    Unbent,
    auto,
    importance,
    learn,
    load,
    save,
)
from onlinevi.losses import Absolute, Hinge, Logistic, Loss, Pinball, Poisson, Squared
from onlinevi.rules import (
    NGVI,
    OGA,
    OGAEL,
    SVA,
    SVB,
    Adaptive,
    Constant,
    Explicit,
    Implicit,
    LazyOGAEL,
    PaperSVB,
    PerHorizon,
    PerSqrt,
    PerStep,
    Rate,
    Rule,
    StronglyConvex,
)

if TYPE_CHECKING:
    from onlinevi import bandit
    from onlinevi.runs import Fleet, Model, fit, learn_shards, plot
    from onlinevi.runs import open_model as open  # noqa: A004, F401

__all__ = [
    "NGVI",
    "OGA",
    "OGAEL",
    "SVA",
    "SVB",
    "Absolute",
    "Adaptive",
    "Alarm",
    "Auto",
    "BadRow",
    "Ball",
    "BatchVB",
    "Belief",
    "Beside",
    "Box",
    "Calibrate",
    "Calibration",
    "Certificate",
    "ClassPool",
    "Clip",
    "Constant",
    "Expand",
    "Explicit",
    "Family",
    "FeatureMap",
    "Fleet",
    "Forecast",
    "Fourier",
    "FullCovariance",
    "Hindsight",
    "Hinge",
    "Implicit",
    "Inputs",
    "Lag",
    "LazyOGAEL",
    "Learner",
    "Linear",
    "Logistic",
    "Loss",
    "LowRank",
    "MeanField",
    "Model",
    "OneVsRest",
    "PacBayes",
    "PaperSVB",
    "PerHorizon",
    "PerSqrt",
    "PerStep",
    "Pinball",
    "Point",
    "Poisson",
    "Pool",
    "Prepare",
    "Products",
    "Rate",
    "Recalibrate",
    "Relu",
    "Rule",
    "SetCalibration",
    "Sets",
    "Softmax",
    "Splines",
    "Squared",
    "State",
    "Step",
    "StronglyConvex",
    "Trace",
    "Trees",
    "Unbent",
    "__version__",
    "auto",
    "bandit",
    "batch_vb",
    "bounds",
    "certificate",
    "checkpoint",
    "datasets",
    "ewa",
    "fit",
    "hindsight",
    "importance",
    "learn",
    "learn_shards",
    "load",
    "ns",
    "pac_bayes",
    "plot",
    "risk_bound",
    "save",
]


# ``open`` is no part of ``__all__``: ``import *`` would hide Python's own.
_WHEN_ASKED = {
    "autodiff": "onlinevi.autodiff",
    "bandit": "onlinevi.bandit",
    "river": "onlinevi.river",
    "sklearn": "onlinevi.sklearn",
    "plot": "onlinevi.runs",
    "fit": "onlinevi.runs",
    "open": "onlinevi.runs",
    "Model": "onlinevi.runs",
    "learn_shards": "onlinevi.runs",
    "Fleet": "onlinevi.runs",
}
_CALLED = {"open": "open_model"}
"""What a package calls what is shorter here."""


def __getattr__(name: str) -> Any:
    """What needs JAX, River, scikit-learn or matplotlib, and runs over files, is imported when first asked for."""
    if name not in _WHEN_ASKED:
        raise AttributeError(f"module 'onlinevi' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(_WHEN_ASKED[name])
    return module if module.__name__ == f"onlinevi.{name}" else getattr(module, _CALLED.get(name, name))
