"""The losses: one file an idea, each one method ``(y, a, v) → (E, e1, e2)``."""

from onlinevi.losses.absolute import Absolute
from onlinevi.losses.base import LabelLaw, Loss, Target, as_loss
from onlinevi.losses.hinge import Hinge
from onlinevi.losses.logistic import Logistic
from onlinevi.losses.normal import POINT_MASS, normal_cdf
from onlinevi.losses.pinball import Pinball
from onlinevi.losses.poisson import Poisson
from onlinevi.losses.speedups import quick_expected
from onlinevi.losses.squared import Squared

__all__ = [
    "POINT_MASS",
    "Absolute",
    "Hinge",
    "LabelLaw",
    "Logistic",
    "Loss",
    "Pinball",
    "Poisson",
    "Squared",
    "Target",
    "as_loss",
    "normal_cdf",
    "quick_expected",
]
