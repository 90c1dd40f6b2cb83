"""What every rule is: a config and one pure step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

from onlinevi.engine import Belief, Event, Geometry, Gradient, Moments, Prior, Rates, Real, Slopes, Totals, ns
from onlinevi.rules.rates import Adaptive, Explicit, Rate, as_rate


class Rule:
    """How an event changes a belief, one coordinate at a time; the same step serves scalars and arrays."""

    keeps_std_total: ClassVar[bool] = False
    """The rule reads ``totals.std``, so the state keeps it."""
    uses_next_rate: ClassVar[bool] = False
    """The step takes the rate of the next event, not of this one."""
    gaussian: ClassVar[bool] = True
    """The step changes a spread as well as a mean."""
    supports_points: ClassVar[bool] = False
    """The step makes sense for a belief without a spread."""
    recursive: ClassVar[bool] = True
    """The step starts from the belief that is there. One that is made anew from sums cannot be changed on the way."""
    geometry: ClassVar[Geometry | None] = None
    """The coordinates in which the step applies to a full covariance; None where it has no such step."""

    takes_any_unit: ClassVar[bool] = False
    """Never overshoots, so that labels of any unit are welcome, and no box is needed."""

    @staticmethod
    def new_belief(belief: Belief, gradient: Gradient, totals: Totals, rates: Rates, prior: Prior) -> Belief:
        """The step: one coordinate of the belief behind an event. CONTRIBUTING.md says what it is given."""
        raise TypeError("a rule needs a static method new_belief(belief, gradient, totals, rates, prior)")

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
        """The slopes that the step follows: an explicit one takes those seen before it."""
        return seen

    def best_constant(self, prior: Prior, low: Belief, high: Belief) -> float:
        """c of the rate Adaptive that makes the rule's bound least on the box from corner ``low`` to corner ``high``."""
        raise TypeError("a rule that takes Adaptive rates needs a best_constant")

    def explicit_rate(self, lipschitz: float, dim: int, horizon: int | None, prior: Prior, low: Belief, high: Belief) -> Rate:
        """What the rate Explicit(L) is in ``dim`` coordinates on the box from corner ``low`` to corner ``high``."""
        raise TypeError("a rule that takes Explicit rates needs an explicit_rate")

    def check_rate(self, rate: Rate) -> None:
        """Refuse a rate that this rule has no step for."""
        if isinstance(rate, Explicit) and type(self).explicit_rate is Rule.explicit_rate:
            raise ValueError(f"{type(self).__name__} takes no Explicit rate: SVA and SVB do; try PerSqrt(1)")
        if isinstance(rate, Adaptive) and type(self).best_constant is Rule.best_constant:
            raise ValueError(f"{type(self).__name__} takes no Adaptive rate: OGA, OGAEL, SVA and SVB do; try PerSqrt(1)")
        if rate.per_variance:
            only = "only SVB and the step of NGVI(parameters='scale') can do"
            raise ValueError(f"{rate} divides by the variance, which {only}; try PerSqrt({rate.c})")

    def with_covariance(self) -> Rule:
        """This rule as it acts on a full covariance, or a refusal that says why it cannot."""
        if self.geometry is None:
            raise ValueError(f"{self} has no step for a full covariance: use MeanField()")
        return self

    def check_ridge(self, correlated: bool) -> None:
        """Refuse a ridge where the step has no closed form with one."""
        if correlated and self.geometry is not Geometry.ENTRIES:
            raise ValueError(
                f"{type(self).__name__} with a covariance takes no ridge, which costs O(d³) an event: use a smaller prior_std"
            )

    def check_ball_of_stds(self, *, convex: bool) -> None:
        """Refuse a ball of stds where scaling them back is not what the rule's step asks for; ``convex`` is the loss."""
        if self.std_floor > 0.0:
            raise ValueError(
                f"{self} in a Ball of stds: scaled back, stds fall below the floor; set Ball(std=None), or use a Box"
            )

    @property
    def step_rate(self) -> Rate:
        """The rate that the step is given as ``rates.step``."""
        raise TypeError("a rule needs a step_rate")

    def with_rate(self, c: float) -> Self:
        """The same rule with another constant in its rate."""
        raise TypeError("a rule needs with_rate")

    @property
    def prior_rate(self) -> Rate | None:
        """The rate of the prior term, which gives ``rates.pull``; None where the rule has none."""
        return None

    @property
    def std_floor(self) -> float:
        """The least std, as a part of the prior's; where it is above 0 the rule needs ``with_kept_std``."""
        return 0.0

    @staticmethod
    def with_kept_std(std: Real, belief: Belief, gradient: Gradient, rates: Rates, prior: Prior) -> Belief:
        """The belief behind a step whose std is kept at ``std``, for rules with a floor, whose mean moves with that std."""
        raise TypeError("a rule with a floor needs a static method with_kept_std(std, belief, gradient, rates, prior)")

    @property
    def moves_without_gradient(self) -> bool:
        """Whether a coordinate can change when its gradient is zero: then sparse rows cost as much as dense ones."""
        return False


class RatedRule(Rule):
    """A rule with one rate, as its field ``rate``."""

    rate: Rate | float | None

    def __post_init__(self) -> None:
        self.check_rate(self.step_rate)

    def with_covariance(self) -> Rule:
        if self.step_rate.per_variance:
            raise ValueError(f"{self.rate} divides by the variance of each coordinate: with a full covariance use PerSqrt(1)")
        return super().with_covariance()

    @property
    def step_rate(self) -> Rate:
        assert self.rate is not None
        return as_rate(self.rate)

    def with_rate(self, c: float) -> Self:
        return replace(self, rate=replace(self.step_rate, c=c))  # type: ignore[type-var]


ROOT_IS_U = 1e8
"""From here on √(1 + u²) rounds to u; far beyond it u² would overflow."""


def shrink(u: Real) -> Real:
    """h(u) = √(1 + u²) − u of (9) and (10): as it stands where that loses no digits, elsewhere as 1/(√(1 + u²) + u)."""
    root = ns.where(u < ROOT_IS_U, ns.sqrt(1.0 + u * u), u)
    return ns.where(u < 0.5, root - u, 1.0 / (root + u))
