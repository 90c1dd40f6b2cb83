"""The squared loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onlinevi.engine import Expected, Real
from onlinevi.losses.base import Loss


@dataclass(frozen=True)
class Squared(Loss):
    """(y − z)². E = (y − a)² + v²."""

    name: ClassVar[str] = "squared"
    quadratic: ClassVar[bool] = True
    steepest_at_corners: ClassVar[bool] = True

    @staticmethod
    def expected(y: Real, a: Real, v: Real) -> Expected:
        gap = y - a
        return Expected(gap * gap + v * v, -2.0 * gap, 2.0)
