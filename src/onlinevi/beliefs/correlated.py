"""What families with covariances share: the prior, the box for their means, and steps taken through the prediction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from onlinevi.beliefs.base import Ball, Box, Family, PerCoordinate, check_std, frozen, named_rows
from onlinevi.engine import Belief, Event, Gradient, Moments, Prior, Real, StepInputs, Totals, ns
from onlinevi.engine.holes import new_belief


@dataclass(frozen=True)
class Correlated(Family):
    """Gaussians with covariances, from the prior N(prior_mean, prior_std²) on; the box or ball holds their means only."""

    prior_mean: PerCoordinate = 0.0
    prior_std: PerCoordinate = 1.0
    box: Box | Ball | None = field(default_factory=lambda: Box(std=None))
    gaussian: ClassVar[bool] = True
    correlated: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior_mean", frozen(self.prior_mean))
        object.__setattr__(self, "prior_std", frozen(self.prior_std))
        check_std(self.prior_std)
        if self.box is not None and self.box.std is not None:
            kind = type(self.box).__name__
            raise ValueError(f"{self.box}: with covariances there are bounds for means only; set {kind}(mean=…, std=None)")

    @property
    def _prior_std(self) -> PerCoordinate:
        return self.prior_std

    def project(self, belief: Any) -> Any:
        box = named_rows(self.prior_and_box(len(belief.mean)))
        return belief._replace(mean=self._inside(belief.mean, box))

    @staticmethod
    def variance_after(views: Any, rows: Any, event: Event, law: Moments, growth: Real) -> tuple[Real, Real]:
        variance = law.variance / (1.0 + growth * law.variance)
        return variance, variance * variance


class Conditioned(NamedTuple):
    """What an event adds to a belief: P' = P + growth·xxᵀ, mean' = mean + shift·Σx."""

    growth: Real
    shift: Real


def conditioned(inputs: StepInputs) -> Conditioned:
    """The rule moves the law of the prediction from N(a, v²) to N(a', v'²); given the prediction, all else stays as it was.

    Then 1 + growth·v² = (v/v')². A prediction without a spread moves nothing.
    """
    law, taken, rates = inputs.law, inputs.taken, inputs.rates
    spread = ns.sqrt(law.variance)
    if not spread > 0.0:
        return Conditioned(0.0, 0.0)
    new = new_belief(Belief(0.0, spread), Gradient(taken.slope, taken.curvature), Totals(0.0, 0.0), rates, Prior(0.0, 1.0))
    shrunk = new.std / spread
    growth = (1.0 - shrunk) * (1.0 + shrunk) / (shrunk * shrunk) / law.variance
    return Conditioned(growth, new.mean / law.variance)
