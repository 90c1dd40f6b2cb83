"""Natural-gradient variational inference (paper, 3.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from onlinevi.engine import Belief, Geometry, Gradient, Prior, Rates, Totals, ns
from onlinevi.rules.base import Rule
from onlinevi.rules.rates import Rate, as_rate


@dataclass(frozen=True)
class NGVI(Rule):
    """(8): argmin over expectation parameters of ⟨μ, gradient⟩ + KL(q‖prior)/rate + KL(q‖belief)/step.

    With β = step/(step + rate), the precision P = 1/std² becomes (1 − β)P + β/s² + rate·β·γ/std, and the mean moves with
    the new std. ((15) prints 1/β = 1/step + 1/rate, which solves this problem at rate 1 only.) ``rate=None`` drops
    the prior term: P' = P + step·γ/std, mean' = mean − step·std'²·g, the natural-gradient step.
    """

    step: Rate | float = 1.0
    rate: Rate | float | None = None
    name: ClassVar[str] = "ngvi"
    geometry: ClassVar[Geometry | None] = Geometry.PREDICTION

    def __post_init__(self) -> None:
        if not isinstance(self.step, Rate) and not 0.0 < self.step < math.inf:
            raise ValueError(f"step={self.step!r}: a step must be > 0 and finite; try 1.0")
        for rate in (self.step_rate, self.prior_rate):
            if rate is not None:
                self.check_rate(rate)

    @property
    def step_rate(self) -> Rate:
        return as_rate(self.step)

    def with_rate(self, c: float) -> Self:
        return replace(self, step=replace(self.step_rate, c=c))

    @property
    def prior_rate(self) -> Rate | None:
        return None if self.rate is None else as_rate(self.rate)

    def with_covariance(self) -> Rule:
        if self.rate is not None:
            raise ValueError(
                f"{self}: with a full covariance the prior term costs O(d³) an event, so it is not offered; use rate=None"
            )
        return self

    @property
    def moves_without_gradient(self) -> bool:
        return self.rate is not None

    @staticmethod
    def new_belief(belief: Belief, gradient: Gradient, totals: Totals, rates: Rates, prior: Prior) -> Belief:
        # A convex loss never bends down. Where another does, the precision stays: it must not fall below 0.
        curvature = ns.maximum(gradient.curvature, 0.0)
        # Precisions relative to the belief's: a small std squares to nothing, but not a ratio of stds.
        per_prior = 1.0 / prior.std
        to_prior = belief.std * per_prior
        kept_precision = ns.where(rates.pull > 0.0, (1.0 - rates.pull) + rates.pull * to_prior * to_prior, 1.0)
        to_mean = ns.where(rates.pull > 0.0, rates.pull * per_prior * per_prior * (belief.mean - prior.mean), 0.0)
        # The mean need not wait for the root.
        growth = rates.step * curvature * belief.std * belief.std
        shrunk = 1.0 / (kept_precision + growth)
        std, variance = belief.std * ns.sqrt(shrunk), belief.std * belief.std * shrunk
        return Belief(belief.mean - variance * (to_mean + rates.step * gradient.mean), std)
