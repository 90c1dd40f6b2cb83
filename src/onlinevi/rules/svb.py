"""Streaming variational Bayes: this event's gradient, against the last belief."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onlinevi.engine import Belief, Frame, Gradient, Prior, Rates, Totals, ns
from onlinevi.engine.small_steps import SHRINKING, shrinkage
from onlinevi.rules.adaptive import Adaptive, AdaptiveSVB, of_streaming
from onlinevi.rules.base import RatedRule, Rule, shrink
from onlinevi.rules.rates import PaperSVB, PerSqrt, Rate, as_rate


@dataclass(frozen=True)
class SVB(RatedRule):
    """argmin_q ⟨μ, gradient⟩ + KL(q‖belief)/rate. mean' = mean − rate·std²·g, std' = std·h(½·rate·std·γ).

    ``rate=None`` is the paper's PaperSVB(1), or PerSqrt(1) with a full covariance. Written in rate·std², which the paper's
    own rate makes free of the std: a std that underflows to 0 divides nothing.
    """

    rate: Rate | float | None = None
    name: ClassVar[str] = "svb"
    frame: ClassVar[Frame | None] = Frame.WHITENED
    gentle: ClassVar[float] = SHRINKING

    @property
    def step_rate(self) -> Rate:
        rate = PaperSVB(1.0) if self.rate is None else as_rate(self.rate)
        return AdaptiveSVB(rate.c) if isinstance(rate, Adaptive) else rate

    def check_rate(self, rate: Rate) -> None:
        """Its step has a closed form for every rate, those that divide by the variance too."""

    def with_covariance(self) -> Rule:
        return SVB(PerSqrt(1.0)) if self.rate is None else super().with_covariance()

    def best_constant(self, prior: Prior, low: Belief, high: Belief) -> float:
        return of_streaming(prior, low, high)

    @staticmethod
    def new_belief(belief: Belief, gradient: Gradient, totals: Totals, rates: Rates, prior: Prior) -> Belief:
        size = rates.step * ns.where(rates.per_variance, 1.0, belief.std * belief.std)
        u = 0.5 * size * gradient.curvature
        std = belief.std - belief.std * shrinkage(u) if rates.gentle else belief.std * shrink(u)
        return Belief(belief.mean - size * gradient.mean, std)
