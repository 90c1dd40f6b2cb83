"""Lazy online gradient descent on the expected loss: Theorem 4 in its argmin form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onlinevi.engine import Belief, Geometry, Gradient, Prior, Rates, Totals, ns
from onlinevi.rules.base import RatedRule
from onlinevi.rules.rates import PerHorizon, Rate


@dataclass(frozen=True)
class LazyOGAEL(RatedRule):
    """argmin over the domain of Σ⟨μ, gradients⟩ + ‖μ − μ₁‖²/(2·rate·s²). mean = m₀ − rate·s²·Σg, std = max(0, s − rate·s²·Σγ).

    The problem is the distance to this point, so the argmin over a box or a ball is its projection: the sums are kept, never
    the projected belief. ``OGAEL`` projects at every event and goes on from there; at a constant rate and without a domain the
    two are one rule, but for stds at 0.
    """

    rate: Rate | float = PerHorizon(1.0)
    name: ClassVar[str] = "lazy-oga-el"
    keeps_std_total: ClassVar[bool] = True
    uses_next_rate: ClassVar[bool] = True
    supports_points: ClassVar[bool] = True
    recursive: ClassVar[bool] = False
    geometry: ClassVar[Geometry | None] = Geometry.ENTRIES

    @property
    def moves_without_gradient(self) -> bool:
        return self.step_rate.varies

    @staticmethod
    def new_belief(belief: Belief, gradient: Gradient, totals: Totals, rates: Rates, prior: Prior) -> Belief:
        size = rates.step * prior.std * prior.std
        return Belief(prior.mean - size * totals.mean, ns.maximum(prior.std - size * totals.std, 0.0))
