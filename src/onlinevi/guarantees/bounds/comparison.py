"""A run beside a comparator, as the theorems see it: the numbers that they take, each refused where an assumption fails."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinevi.beliefs import FullBelief, FullCovariance, MeanField, edges, named_rows, radii
from onlinevi.engine import Belief, Vector
from onlinevi.guarantees.bounds.bound import non_negative, positive, whole
from onlinevi.guarantees.bounds.constants import kl_strong_convexity
from onlinevi.guarantees.bounds.domains import Domain, domain_of
from onlinevi.learners import Plan, State

ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Comparison:
    """A run and a comparator q_u; with ``lipschitz`` or ``gradient_squares`` what more is known of the gradients."""

    state: State
    comparator: Belief | FullBelief
    lipschitz: float | None = None
    gradient_squares: Any = None

    @property
    def plan(self) -> Plan:
        return self.state.plan

    @property
    def count(self) -> int:
        return self.state.count

    @property
    def belief(self) -> Any:
        """The comparator as the run's family writes beliefs: stds stand for a diagonal C."""
        dim, family = self.plan.dim, self.plan.family
        mean = np.broadcast_to(np.asarray(self.comparator.mean, dtype=float), (dim,))
        if isinstance(self.comparator, FullBelief):
            if not isinstance(family, FullCovariance):
                raise ValueError(f"the comparator has covariances, and {family} none: give a Belief(mean, std)")
            return FullBelief(mean, _triangular(self.comparator.factor, dim))
        std = np.broadcast_to(np.asarray(self.comparator.std, dtype=float), (dim,))
        return FullBelief(mean, np.diag(std)) if family.correlated else Belief(mean, std)

    @property
    def kl(self) -> float:
        """KL(q_u‖prior)."""
        divergence = _gaussian(self.plan).kl(self.belief)
        if not math.isfinite(divergence):
            raise ValueError("the comparator has a std of 0, infinitely far from the prior: give it a spread, such as 0.01")
        return divergence

    @property
    def strong_convexity(self) -> float:
        """α of KL(·‖prior)."""
        return kl_strong_convexity(_gaussian(self.plan), self.plan.dim)

    @property
    def rate(self) -> float:
        """η of a run whose rate does not change."""
        return self.plan.step_rate.schedule(self.plan.horizon).scale

    @property
    def domain(self) -> Domain:
        return domain_of(self.plan.family, self.plan.dim)

    @property
    def diameter(self) -> float:
        """D of the domain; infinite where the family has no box."""
        return self.domain.diameter if bounded(self.plan) else math.inf

    @property
    def apart(self) -> Vector:
        """u − μ₁, means and stds or C, a column a coordinate: what the run had to cover from the prior on."""
        prior = self.plan.family.init(self.plan.dim)
        return np.vstack([there - here for there, here in zip(self.belief, prior, strict=True)])

    def squares(self) -> Vector:
        """The squared gradients, one an event: those given, or with their sum the ones that weigh most in a falling rate."""
        state = self.state
        if self.gradient_squares is not None:
            squares = np.asarray(self.gradient_squares, dtype=float)
            if squares.shape != (state.count,) or not math.isclose(squares.sum(), state.gradient_square, rel_tol=1e-6):
                raise ValueError(
                    f"gradient_squares has {squares.size} values, sum {squares.sum():.6g}; this run has {state.count} "
                    f"events, sum {state.gradient_square:.6g}"
                )
            return squares
        if self.lipschitz is None:
            raise ValueError(
                f"{self.plan.rule}: its bound weighs early gradients more, of which a state keeps the plain sum; give "
                "lipschitz=bounds.lipschitz(X, y, loss=…, family=…), or gradient_squares, one an event"
            )
        return front_loaded(gradient_square=state.gradient_square, count=state.count, lipschitz=self.lipschitz)


def bounded(plan: Plan) -> bool:
    """Whether the box or the ball of (mean, std) has finite ends."""
    ends = radii(plan.family, plan.dim) or edges(plan.family, plan.dim)
    return bool(np.isfinite(ends).all())


def in_steps(plan: Plan, apart: Vector) -> tuple[float, float]:
    """The widest prior std s, to whose square the largest step is proportional, and a distance in the unit of that step.

    Coordinates with smaller steps count for more.
    """
    prior_std = np.broadcast_to(named_rows(plan.prior_and_box).prior_std, (plan.dim,))
    widest = float(prior_std.max())
    return widest, float(np.linalg.norm(apart * (widest / prior_std)))


def front_loaded(*, gradient_square: float, count: int, lipschitz: float) -> Vector:
    """Squared gradients with this sum, each at most L², that come as early as they can.

    Beside weights that never grow, no others with this sum weigh more: for a rate that falls, they give the most that the
    weighted sum of a theorem can be, and it is never above the bound without data.
    """
    whole(count)
    positive(lipschitz=lipschitz)
    non_negative(gradient_square=gradient_square)
    largest = lipschitz**2
    if gradient_square > largest * count * (1.0 + ROUNDING):
        raise ValueError(
            f"lipschitz={lipschitz!r}: the gradients of {count} events have squares that sum to {gradient_square:.6g}, more "
            "than it allows; bounds.lipschitz(X, y, loss=…, family=…) computes one"
        )
    return np.clip(gradient_square - largest * np.arange(count), 0.0, largest)


def _gaussian(plan: Plan) -> MeanField | FullCovariance:
    if not isinstance(plan.family, MeanField | FullCovariance):
        raise ValueError(f"{plan.family}: this bound is for MeanField() and FullCovariance() beliefs")
    return plan.family


def _triangular(given: Any, dim: int) -> Vector:
    """C of a comparator, refused where it is not the one that the theorems speak of."""
    factor: Vector = np.asarray(given, dtype=float)
    if factor.shape != (dim, dim) or np.tril(factor, -1).any() or not (np.diag(factor) >= 0.0).all():
        raise ValueError(
            f"the comparator's C has shape {factor.shape}: needs a {dim} × {dim} upper triangular matrix with a diagonal ≥ 0; "
            "FullCovariance().from_covariance(mean, covariance) makes one"
        )
    return factor
