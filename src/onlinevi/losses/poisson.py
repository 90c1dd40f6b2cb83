"""The Poisson loss with a log link, in closed form under a Gaussian prediction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onlinevi.engine import Expected, Real, ns
from onlinevi.losses.base import LabelLaw, Loss, Target

LARGEST_EXPONENT = 700.0
"""e^700 is near the largest float; beyond it the loss is refused, not rounded to infinity."""


@dataclass(frozen=True)
class Poisson(Loss):
    """e^z − yz, the negative log-likelihood of a count y. E = e^(a + v²/2) − ya, e2 = e^(a + v²/2)."""

    name: ClassVar[str] = "poisson"
    target: ClassVar[Target] = "counts"
    nonnegative: ClassVar[bool] = False
    at_zero: ClassVar[float] = 1.0
    steepest_at_corners: ClassVar[bool] = True
    label_rule: ClassVar[str] = "a count ≥ 0"
    lowest_label: ClassVar[float] = 0.0
    label_hint: ClassVar[str] = "drop the row, or use Squared() for labels of both signs"
    overflow_hint: ClassVar[str] = (
        "the log rate a + v²/2 must stay ≤ 700: scale the features down, or use a smaller box or prior_std"
    )

    def label_law(self, prediction: Any, within: Any, between: Any) -> LabelLaw:
        """The rate e^(a + v²/2) is the mean and, in units of the noise, the variance: all of it is noise."""
        rate = np.exp(np.clip(prediction + 0.5 * (within + between), -300.0, 300.0))
        return LabelLaw(rate, rate, 0.0 * rate)

    @staticmethod
    def valid_label(y: Real, *parameters: Real) -> Real:
        return (y >= 0.0) & ns.isfinite(y)

    @staticmethod
    def expected(y: Real, a: Real, v: Real) -> Expected:
        exponent = a + 0.5 * v * v
        rate = ns.where(exponent <= LARGEST_EXPONENT, ns.exp(ns.minimum(exponent, LARGEST_EXPONENT)), math.inf)
        return Expected(rate - y * a, rate - y, rate)
