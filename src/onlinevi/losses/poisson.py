"""The Poisson loss with a log link, in closed form under a Gaussian prediction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from onlinevi.engine import Expected, Real, ns
from onlinevi.losses.base import Loss

LARGEST_EXPONENT = 700.0
"""e^700 is near the largest float; beyond it the loss is refused, not rounded to infinity."""


@dataclass(frozen=True)
class Poisson(Loss):
    """e^z − yz, the negative log-likelihood of a count y. E = e^(a + v²/2) − ya, e2 = e^(a + v²/2)."""

    label_rule: ClassVar[str] = "a count ≥ 0"
    label_hint: ClassVar[str] = "drop the row, or use Squared() for labels of both signs"
    overflow_hint: ClassVar[str] = (
        "the log rate a + v²/2 must stay ≤ 700: scale the features down, or use a smaller box or prior_std"
    )

    @staticmethod
    def valid_label(y: Real, *parameters: Real) -> Real:
        return (y >= 0.0) & ns.isfinite(y)

    @staticmethod
    def expected(y: Real, a: Real, v: Real) -> Expected:
        exponent = a + 0.5 * v * v
        rate = ns.where(exponent <= LARGEST_EXPONENT, ns.exp(ns.minimum(exponent, LARGEST_EXPONENT)), math.inf)
        return Expected(rate - y * a, rate - y, rate)
