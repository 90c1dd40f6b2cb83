"""Sequential variational approximation (paper, 3.1): all gradients so far, against the prior."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from onlinevi.engine import Belief, Geometry, Gradient, Prior, Rates, Totals
from onlinevi.rules.base import RatedRule, shrink
from onlinevi.rules.rates import Constant, PerHorizon, Rate, explicit_sva_rate


@dataclass(frozen=True)
class SVA(RatedRule):
    """(6): argmin_q Σ⟨μ, gradients⟩ + KL(q‖prior)/rate. (9): mean = m₀ − rate·s²·Σg, std = s·h(½·rate·s·Σγ).

    On a box the problem is separable, so its argmin is the clip of this one. On a ball the means' part is the distance to this
    one, so its argmin is the radial projection; stds never outgrow the prior's, as Σγ ≥ 0 under a convex loss. The sums are
    kept, never the clipped belief.
    """

    rate: Rate | float = PerHorizon(1.0)
    name: ClassVar[str] = "sva"
    keeps_std_total: ClassVar[bool] = True
    uses_next_rate: ClassVar[bool] = True
    recursive: ClassVar[bool] = False
    geometry: ClassVar[Geometry | None] = Geometry.ENTRIES

    def check_ball_of_stds(self, *, convex: bool) -> None:
        if not convex:
            raise ValueError(
                "SVA in a Ball of stds: a loss that is not convex can widen them, and then the argmin over the ball is no "
                "radial projection; set Ball(std=None), or use a Box"
            )

    @property
    def moves_without_gradient(self) -> bool:
        return self.step_rate.varies

    def best_constant(self, prior: Prior, low: Belief, high: Belief) -> float:
        """c = √(α·KL), with the divergence of a belief as wide as the prior in the farthest corner of the means."""
        farthest = np.maximum(high.mean - prior.mean, prior.mean - low.mean) / prior.std
        return float(np.linalg.norm(farthest) / (math.sqrt(2.0) * np.max(prior.std)))

    def explicit_rate(self, lipschitz: float, dim: int, horizon: int | None, prior: Prior, low: Belief, high: Belief) -> Rate:
        """√(α·d·ln(T/d)/T)/L with α = 1/s², s the widest std of the prior."""
        if horizon is None:
            raise ValueError(f"Explicit({lipschitz}) of SVA needs the number of events T: give horizon=T")
        return Constant(explicit_sva_rate(horizon, dim, lipschitz, float(np.max(prior.std)) ** -2.0))

    @staticmethod
    def new_belief(belief: Belief, gradient: Gradient, totals: Totals, rates: Rates, prior: Prior) -> Belief:
        mean = prior.mean - rates.step * prior.std * prior.std * totals.mean
        return Belief(mean, prior.std * shrink(0.5 * rates.step * prior.std * totals.std))
