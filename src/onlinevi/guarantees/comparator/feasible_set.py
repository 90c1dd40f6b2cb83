"""Where a comparator may lie: a box, or a ball. Each knows its least linear value and how a Newton step stays inside."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from onlinevi.engine import Vector

SUFFICIENT = 1e-4
"""A step along a bent path must give this share of the decrease that its slope promises."""

NEAR = 1e-2
"""A bound is near within this share of the box, and less as the step settles."""


class FeasibleSet(Protocol):
    """A closed, bounded, convex set of weights."""

    @property
    def extent(self) -> Any:
        """How far apart its points can be, coordinate by coordinate or for all; > 0."""

    def nearest(self, point: Vector) -> Vector:
        """The point of the set nearest to this one."""

    def least(self, gradient: Vector, pull: float) -> Vector:
        """argmin over u of ⟨gradient, u⟩ + pull/2·‖u‖²."""

    def newton_step(self, point: Vector, gradient: Vector, hessian: Vector) -> Vector:
        """A step d that lowers ⟨gradient, d⟩ + ½·dᵀHd about as far as point + d in the set allows."""


@dataclass(frozen=True)
class Cuboid:
    """low ≤ u ≤ high, coordinate by coordinate."""

    low: Vector
    high: Vector

    @property
    def extent(self) -> Vector:
        return np.where(self.high > self.low, self.high - self.low, 1.0)

    def nearest(self, point: Vector) -> Vector:
        return np.clip(point, self.low, self.high)

    def least(self, gradient: Vector, pull: float) -> Vector:
        if pull > 0.0:
            with np.errstate(over="ignore"):
                return self.nearest(-gradient / pull)
        return np.where(gradient > 0.0, self.low, self.high)

    def newton_step(self, point: Vector, gradient: Vector, hessian: Vector) -> Vector:
        """Projected Newton (Bertsekas, 1982): where a bound is near and the slope points at it, go there coordinate by
        coordinate; solve for the others; bend the path into the box, and shorten it until it goes down."""
        low, high, diagonal = self.low - point, self.high - point, hessian.diagonal()
        step, decrease = np.zeros_like(point), 0.0
        for _ in range(2 * len(point) + 20):
            slope = gradient + hessian @ step
            newton = -slope / diagonal
            reach = np.abs(np.clip(step + newton, low, high) - step) / self.extent
            near = self.extent * min(NEAR, reach.max())
            held = ((step - low <= near) & (slope >= 0.0)) | ((high - step <= near) & (slope <= 0.0))
            free = np.flatnonzero(~held)
            if len(free):
                newton[free] = -solved(hessian[np.ix_(free, free)], slope[free])
            length, move, change = 1.0, newton, math.inf
            while change > SUFFICIENT * (slope @ move) and length > 1e-9:
                move = np.clip(step + length * newton, low, high) - step
                change = float(slope @ move + 0.5 * move @ hessian @ move)
                length *= 0.5
            if change < 0.0:
                step, decrease = step + move, decrease - change
            if change >= -1e-9 * decrease:  # what is left is for the next step, which sees a fresh gradient
                break
        return step


NUMPY_UP_TO = 100
"""Of so many coordinates numpy solves in microseconds: of more, scipy's factors are worth the quarter of a second that their
import takes."""


def solved(hessian: Vector, slope: Vector) -> Vector:
    """The d with H·d = slope, refused where H is not positive definite."""
    if len(slope) <= NUMPY_UP_TO:
        np.linalg.cholesky(hessian)  # for the refusal alone
        return np.asarray(np.linalg.solve(hessian, slope))
    from scipy.linalg import cho_factor, cho_solve

    return np.asarray(cho_solve(cho_factor(hessian), slope))


@dataclass(frozen=True)
class Ball:
    """‖u‖ ≤ radius."""

    radius: float

    @property
    def extent(self) -> float:
        return 2.0 * self.radius

    def nearest(self, point: Vector) -> Vector:
        norm = float(np.linalg.norm(point))
        return point * (self.radius / norm) if norm > self.radius else point

    def least(self, gradient: Vector, pull: float) -> Vector:
        norm = float(np.linalg.norm(gradient))
        if norm == 0.0:
            return np.zeros_like(gradient)
        length = self.radius if norm >= pull * self.radius else norm / pull
        return gradient * (-length / norm)

    def newton_step(self, point: Vector, gradient: Vector, hessian: Vector) -> Vector:
        """(H + m)d = −gradient − m·point with the least multiplier m ≥ 0 that keeps point + d in the ball."""
        from scipy.optimize import brentq

        curvature, frame = np.linalg.eigh(hessian)
        curvature = np.maximum(curvature, 1e-13 * curvature[-1])
        at, towards = point @ frame, gradient @ frame

        def turned(multiplier: float) -> Any:
            return -(towards + multiplier * at) / (curvature + multiplier)

        def excess(multiplier: float) -> float:
            return float(np.linalg.norm(at + turned(multiplier))) - self.radius

        if excess(0.0) <= 0.0:
            return np.asarray(frame @ turned(0.0))
        # (H + m)(point + d) = H·point − gradient: at this m its right side is no longer than m·radius.
        enough = float(np.linalg.norm(curvature * at - towards)) / self.radius
        multiplier = brentq(excess, 0.0, 2.0 * enough, xtol=1e-300, rtol=1e-14)
        return self.nearest(point + frame @ turned(multiplier)) - point
