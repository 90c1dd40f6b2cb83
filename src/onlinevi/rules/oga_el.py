"""Online gradient descent on the expected loss: the paper's Algorithm 3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onlinevi.engine import Belief, Geometry, Gradient, Prior, Rates, Totals, ns
from onlinevi.rules.base import RatedRule
from onlinevi.rules.rates import PerHorizon, Rate, best_for_descent


@dataclass(frozen=True)
class OGAEL(RatedRule):
    """A gradient step on E_q[loss]. mean' = mean − rate·s²·g, std' = max(0, std − rate·s²·γ), with s the prior's std."""

    rate: Rate | float = PerHorizon(1.0)
    name: ClassVar[str] = "oga-el"
    geometry: ClassVar[Geometry | None] = Geometry.ENTRIES

    def best_constant(self, prior: Prior, low: Belief, high: Belief) -> float:
        return best_for_descent(prior, low, high)

    @staticmethod
    def new_belief(belief: Belief, gradient: Gradient, totals: Totals, rates: Rates, prior: Prior) -> Belief:
        size = rates.step * prior.std * prior.std
        std = belief.std - size * gradient.curvature * belief.std
        return Belief(belief.mean - size * gradient.mean, ns.maximum(std, 0.0))
