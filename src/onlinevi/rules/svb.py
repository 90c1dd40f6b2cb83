"""Streaming variational Bayes: this event's gradient, against the last belief."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onlinevi import ns
from onlinevi.rules.base import RatedRule, shrink
from onlinevi.rules.rates import PaperSVB, Rate
from onlinevi.types import Belief, Gradient, Prior, Rates, Totals


@dataclass(frozen=True)
class SVB(RatedRule):
    """argmin_q ⟨μ, gradient⟩ + KL(q‖belief)/rate. mean' = mean − rate·std²·g, std' = std·h(½·rate·std·γ).

    Written in rate·std², which the paper's own rate makes free of the std: a std that underflows to 0 divides nothing.
    """

    rate: Rate | float = PaperSVB(1.0)
    divides_by_variance: ClassVar[bool] = True

    @staticmethod
    def new_belief(belief: Belief, gradient: Gradient, totals: Totals, rates: Rates, prior: Prior) -> Belief:
        size = rates.step * ns.where(rates.per_variance, 1.0, belief.std * belief.std)
        return Belief(belief.mean - size * gradient.mean, belief.std * shrink(0.5 * size * gradient.curvature))
