"""Natural-gradient variational inference, (8) in the paper: in expectation parameters, with a floor, in scale parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self, TypeAlias, get_args

from onlinevi.engine import Belief, Geometry, Gradient, Prior, Rates, Real, Totals, ns
from onlinevi.rules.base import Rule, shrink
from onlinevi.rules.rates import Adaptive, PerSqrt, Rate, as_rate

Parameters: TypeAlias = Literal["expectation", "scale"]
"""In which parameters μ of a belief the gradient is taken: (E[θ], E[θ²]), or (mean, std)."""


@dataclass(frozen=True, repr=False)
class NGVI(Rule):
    """(8): argmin over expectation parameters of ⟨μ, gradient⟩ + KL(q‖prior)/rate + KL(q‖belief)/step.

    With β = step/(step + rate), the precision P = 1/std² becomes (1 − β)P + β/s² + rate·β·γ/std, and the mean moves with
    the new std. ((15) prints 1/β = 1/step + 1/rate, which solves this problem at rate 1 only.) ``rate=None`` drops
    the prior term: P' = P + step·γ/std, mean' = mean − step·std'²·g, the natural-gradient step.

    On some streams its regret is linear (docs/ngvi.md). Two options have bounds: ``floor`` keeps stds at floor·s at least,
    s the prior's std, and moves the mean with the std that is kept; ``parameters="scale"`` solves the same problem over
    (mean, std), which makes a ``ScaleNGVI``.

    >>> NGVI(floor=0.1)
    NGVI(step=1.0, rate=None, floor=0.1)
    >>> NGVI(0.5, parameters="scale")
    NGVI(step=0.5, rate=None, parameters='scale')
    """

    step: Rate | float = 1.0
    rate: Rate | float | None = None
    floor: float | None = None
    parameters: Parameters = field(default="expectation", kw_only=True)
    name: ClassVar[str] = "ngvi"
    geometry: ClassVar[Geometry | None] = Geometry.PREDICTION

    def __new__(cls, *settings: Any, parameters: str = "expectation", **others: Any) -> Self:
        """An option that changes the step makes the class that has it, so that others compile nothing of it."""
        return super().__new__(ScaleNGVI if cls is NGVI and parameters == "scale" else cls)  # type: ignore[return-value]

    def __post_init__(self) -> None:
        if not isinstance(self.step, Rate) and not 0.0 < self.step < math.inf:
            raise ValueError(f"step={self.step!r}: a step must be > 0 and finite; try 1.0")
        if self.parameters not in get_args(Parameters) or (self.parameters == "scale") != isinstance(self, ScaleNGVI):
            raise ValueError(f'parameters={self.parameters!r}: needs "expectation" or "scale", as NGVI(parameters="scale")')
        if self.floor is not None and not 0.0 < self.floor <= 1.0:
            raise ValueError(f"floor={self.floor!r}: a floor is a part of the prior's std, > 0 and at most 1; try 0.1")
        self.check_rate(self.step_rate)
        if self.prior_rate is not None:
            Rule.check_rate(self, self.prior_rate)

    def __repr__(self) -> str:
        options = {"floor": self.floor, "parameters": None if self.parameters == "expectation" else self.parameters}
        shown = {"step": self.step, "rate": self.rate} | {name: value for name, value in options.items() if value is not None}
        return f"NGVI({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @property
    def step_rate(self) -> Rate:
        return as_rate(self.step)

    def with_rate(self, c: float) -> Self:
        return replace(self, step=replace(self.step_rate, c=c))

    @property
    def prior_rate(self) -> Rate | None:
        return None if self.rate is None else as_rate(self.rate)

    @property
    def std_floor(self) -> float:
        return 0.0 if self.floor is None else self.floor

    def with_covariance(self) -> Rule:
        if self.rate is not None:
            raise ValueError(
                f"{self}: with a full covariance the prior term costs O(d³) an event, so it is not offered; use rate=None"
            )
        if self.floor is not None:
            raise ValueError(
                f"{self}: a floor holds the std of each weight by itself, and a covariance is no set of these; use MeanField()"
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

    @staticmethod
    def with_kept_std(std: Real, belief: Belief, gradient: Gradient, rates: Rates, prior: Prior) -> Belief:
        """mean − std²·(β(mean − m₀)/s² + step·g) with the std that is kept."""
        per_prior = 1.0 / prior.std
        to_mean = ns.where(rates.pull > 0.0, rates.pull * per_prior * per_prior * (belief.mean - prior.mean), 0.0)
        return Belief(belief.mean - std * std * (to_mean + rates.step * gradient.mean), std)


@dataclass(frozen=True, repr=False)
class ScaleNGVI(NGVI):
    """``NGVI(parameters="scale")``: argmin over (mean, std) of ⟨μ, gradient⟩ + KL(q‖prior)/rate + KL(q‖belief)/step, (8).

    Section 4.3 of the paper leaves the parametrisation open; in this one the expected loss is convex, and there is a bound.
    With A = 1/(rate·s²) + 1/(step·std²) and B = 1/rate + 1/step, mean' = (mean/(step·std²) + m₀/(rate·s²) − g)/A and
    std' = √(B/A)·h(γ/(2√(AB))). Without the prior term it is ``SVB``, to the bit; the steps that divide by the variance,
    PaperSVB and StronglyConvex, are SVB's.
    """

    parameters: Parameters = field(default="scale", kw_only=True)
    geometry: ClassVar[Geometry | None] = Geometry.WHITENED

    def check_rate(self, rate: Rate) -> None:
        if self.floor is not None:
            raise ValueError(f'floor={self.floor!r}: parameters="scale" has a bound without one; leave either out')
        if isinstance(rate, Adaptive):
            super().check_rate(rate)

    def with_covariance(self) -> Rule:
        rule = super().with_covariance()
        if self.step_rate.per_variance:
            c = self.step_rate.schedule(None).scale
            raise ValueError(f"{self.step} divides by the variance of each coordinate: with covariances use {PerSqrt(c)}")
        return rule

    @staticmethod
    def new_belief(belief: Belief, gradient: Gradient, totals: Totals, rates: Rates, prior: Prior) -> Belief:
        # In units of rates.step = 1/B, with p = rates.pull: (1 − p) and p stand for 1/step and 1/rate.
        pulled, plain = rates.pull > 0.0, 1.0 - rates.pull
        to_prior = ns.where(rates.per_variance, 1.0, belief.std) / prior.std
        pull = ns.where(pulled, rates.pull * to_prior * to_prior, 0.0)
        stiffness = plain + pull
        root = ns.sqrt(stiffness)
        size = rates.step * ns.where(rates.per_variance, 1.0, belief.std * belief.std)
        to_mean = ns.where(pulled, pull * (belief.mean - prior.mean), 0.0)
        # A step that divides by the variance lets the prior widen a std, be it 0.
        wide = ns.where(pulled, ns.where(rates.per_variance, ns.sqrt(plain * belief.std * belief.std + rates.pull), 1.0), 1.0)
        start = ns.where(pulled, ns.where(rates.per_variance, wide, belief.std), belief.std)
        share = ns.where(pulled, ns.where(rates.per_variance, belief.std, 1.0), 1.0) / wide
        std = start / root * shrink(0.5 * size * gradient.curvature * share / root)
        return Belief(belief.mean - (size * gradient.mean + to_mean) / stiffness, std)
