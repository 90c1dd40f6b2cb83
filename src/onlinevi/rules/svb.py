"""Streaming variational Bayes (paper, 3.2): this event's gradient, against the last belief."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from onlinevi.engine import Belief, Geometry, Gradient, Prior, Rates, Totals, ns
from onlinevi.rules.base import RatedRule, Rule, shrink
from onlinevi.rules.rates import Adaptive, AdaptiveSVB, Explicit, ExplicitSVB, PaperSVB, PerSqrt, Rate, as_rate


@dataclass(frozen=True)
class SVB(RatedRule):
    """(7): argmin_q ⟨μ, gradient⟩ + KL(q‖belief)/rate. (10): mean' = mean − rate·std²·g, std' = std·h(½·rate·std·γ).

    ``rate=None`` is the paper's PaperSVB(1), or PerSqrt(1) with a full covariance. Written in rate·std², which the paper's
    own rate makes free of the std: a std that underflows to 0 divides nothing.
    """

    rate: Rate | float | None = None
    name: ClassVar[str] = "svb"
    geometry: ClassVar[Geometry | None] = Geometry.WHITENED

    @property
    def step_rate(self) -> Rate:
        rate = PaperSVB(1.0) if self.rate is None else as_rate(self.rate)
        if isinstance(rate, Explicit):
            return ExplicitSVB(rate.c)
        return AdaptiveSVB(rate.c) if isinstance(rate, Adaptive) else rate

    def check_rate(self, rate: Rate) -> None:
        """Its step has a closed form for every rate, those that divide by the variance too."""

    def with_covariance(self) -> Rule:
        return SVB(PerSqrt(1.0)) if self.rate is None else super().with_covariance()

    def best_constant(self, prior: Prior, low: Belief, high: Belief) -> float:
        """c = D₁ = sup √(½‖m − m'‖² + ‖std‖²)."""
        return math.hypot(float(np.linalg.norm(high.mean - low.mean)) / math.sqrt(2.0), float(np.linalg.norm(high.std)))

    def explicit_rate(self, lipschitz: float, dim: int, horizon: int | None, prior: Prior, low: Belief, high: Belief) -> Rate:
        """(D₁/L)/(std²·√t)."""
        extent = self.best_constant(prior, low, high)
        if not 0.0 < extent < math.inf:
            raise ValueError(
                f"Explicit({lipschitz}) of SVB needs a box with ends, such as Box(); for another use PaperSVB(1.0)"
            )
        return PaperSVB(extent / lipschitz)

    @staticmethod
    def new_belief(belief: Belief, gradient: Gradient, totals: Totals, rates: Rates, prior: Prior) -> Belief:
        size = rates.step * ns.where(rates.per_variance, 1.0, belief.std * belief.std)
        return Belief(belief.mean - size * gradient.mean, belief.std * shrink(0.5 * size * gradient.curvature))
