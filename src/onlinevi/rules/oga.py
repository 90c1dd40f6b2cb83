"""Online gradient descent: the paper's point-estimate baseline (5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onlinevi.engine import Belief, Gradient, Prior, Rates, Totals
from onlinevi.rules.base import RatedRule
from onlinevi.rules.rates import PerHorizon, Rate, best_for_descent


@dataclass(frozen=True)
class OGA(RatedRule):
    """Gradient step on the loss at the point itself. mean' = mean − rate·g."""

    rate: Rate | float = PerHorizon(1.0)
    name: ClassVar[str] = "oga"
    gaussian: ClassVar[bool] = False
    supports_points: ClassVar[bool] = True

    def best_constant(self, prior: Prior, low: Belief, high: Belief) -> float:
        return best_for_descent(prior, low, high)

    @staticmethod
    def new_belief(belief: Belief, gradient: Gradient, totals: Totals, rates: Rates, prior: Prior) -> Belief:
        return Belief(belief.mean - rates.step * gradient.mean, belief.std)
