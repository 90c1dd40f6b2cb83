"""The implicit step: streaming variational Bayes without its linearisation, so that no step overshoots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from onlinevi.engine import Belief, Event, Geometry, Gradient, Moments, Prior, Rates, Real, Slopes, Totals, ns
from onlinevi.rules.balance import Problem, balanced, nearest
from onlinevi.rules.base import RatedRule
from onlinevi.rules.rates import Rate


@dataclass(frozen=True)
class Implicit(RatedRule):
    """argmin_q E_q[loss] + KL(q‖belief)/rate, exactly: each event a small Bayesian update, at rate 1 Bayes' own.

    The slopes e1, e2 of the expected loss are those at the belief that the step ends at. With them
    mean' = mean − rate·std²·e1·x and 1/std'² = 1/std² + rate·e2·x². At a point it is the proximal step.
    """

    rate: Rate | float = 1.0
    name: ClassVar[str] = "implicit"
    supports_points: ClassVar[bool] = True
    takes_any_unit: ClassVar[bool] = True
    geometry: ClassVar[Geometry | None] = Geometry.PREDICTION

    def check_ridge(self, correlated: bool) -> None:
        raise ValueError("Implicit takes no ridge: the prior is one already, so use a smaller prior_std")

    @staticmethod
    def new_belief(belief: Belief, gradient: Gradient, totals: Totals, rates: Rates, prior: Prior) -> Belief:
        size = rates.step * belief.std * belief.std
        growth = size * ns.maximum(gradient.curvature, 0.0)
        return Belief(belief.mean - size * gradient.mean, belief.std / ns.sqrt(1.0 + growth))

    @staticmethod
    def slopes_after_step(
        views: Any,
        rows: Any,
        event: Event,
        y: Real,
        law: Moments,
        seen: Slopes,
        weight: Real,
        rates: Rates,
        parameters: Any,
    ) -> Slopes:
        rate = rates.step * weight
        problem = Problem(y, law.prediction, rate, rate * law.mean_gain, law.variance, law.missing_variance)
        if law.variance == 0.0:
            return Slopes(weight * nearest(problem, ns.sqrt(law.missing_variance), parameters).slope, seen.curvature)
        here = Slopes(seen.slope / weight, seen.curvature / weight)
        balance = balanced(problem, views, rows, event, law, here, parameters)
        return Slopes(weight * balance.slope, balance.growth / rates.step)
