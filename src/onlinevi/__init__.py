"""Online Bayesian learning with guarantees: a Gaussian posterior updated in closed form at each event of a stream."""

from typing import TYPE_CHECKING, Any

from onlinevi import bounds, checkpoint, datasets, ewa
from onlinevi.beliefs import Ball, Box, Family, FullCovariance, LowRank, MeanField, Point
from onlinevi.engine import Belief, Step, __version__, ns
from onlinevi.guarantees import (
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
    Splines,
    State,
    Trace,
    Trees,
    auto,
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
    from onlinevi.runs import Fleet, learn_shards, plot

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
    "Ball",
    "BatchVB",
    "Belief",
    "Beside",
    "Box",
    "Calibrate",
    "Calibration",
    "Certificate",
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
    "Splines",
    "Squared",
    "State",
    "Step",
    "StronglyConvex",
    "Trace",
    "Trees",
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
    "learn_shards",
    "load",
    "ns",
    "pac_bayes",
    "plot",
    "risk_bound",
    "save",
]


_WHEN_ASKED = {
    "autodiff": "onlinevi.autodiff",
    "river": "onlinevi.river",
    "sklearn": "onlinevi.sklearn",
    "plot": "onlinevi.runs",
    "learn_shards": "onlinevi.runs",
    "Fleet": "onlinevi.runs",
}


def __getattr__(name: str) -> Any:
    """What needs JAX, River, scikit-learn or matplotlib, and runs over files, is imported when first asked for."""
    if name not in _WHEN_ASKED:
        raise AttributeError(f"module 'onlinevi' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(_WHEN_ASKED[name])
    return module if module.__name__ == f"onlinevi.{name}" else getattr(module, name)
