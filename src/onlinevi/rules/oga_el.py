"""Online gradient descent on the expected loss (paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from onlinevi.engine import Belief, Frame, Gradient, Prior, Rates, Totals, ns
from onlinevi.rules.adaptive import of_descent
from onlinevi.rules.base import RatedRule
from onlinevi.rules.rates import PerHorizon, Rate


@dataclass(frozen=True)
class OGAEL(RatedRule):
    """Gradient step on E_q[loss]. mean' = mean − rate·s²·g, std' = max(0, std − rate·s²·γ), with s the prior's std."""

    rate: Rate | float = PerHorizon(1.0)
    name: ClassVar[str] = "oga-el"
    frame: ClassVar[Frame | None] = Frame.ENTRIES
    gentle: ClassVar[float] = math.inf

    def best_constant(self, prior: Prior, low: Belief, high: Belief) -> float:
        return of_descent(prior, low, high)

    @staticmethod
    def new_belief(belief: Belief, gradient: Gradient, totals: Totals, rates: Rates, prior: Prior) -> Belief:
        size = rates.step * prior.std * prior.std
        std = belief.std - size * gradient.curvature * belief.std
        return Belief(belief.mean - size * gradient.mean, ns.maximum(std, 0.0))
