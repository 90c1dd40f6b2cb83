"""The hinge loss, in closed form under a Gaussian prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onlinevi.engine import Expected, Real, ns
from onlinevi.losses.base import Loss, Target
from onlinevi.losses.normal import INV_SQRT_2PI, POINT_MASS, bump, cumulative, normal_cdf


@dataclass(frozen=True)
class Hinge(Loss):
    """max(0, 1 − yz), y = ±1. With r = (1 − ya)/v: E = (1 − ya)Φ(r) + vφ(r), e1 = −yΦ(r), e2 = φ(r)/v."""

    name: ClassVar[str] = "hinge"
    target: ClassVar[Target] = "classes"
    label_rule: ClassVar[str] = "−1 or +1"
    label_hint: ClassVar[str] = "map 0/1 with 2*y − 1, names with np.where(y == name, 1, −1)"

    @property
    def lipschitz(self) -> float:
        return 1.0

    def probability(self, a: Any, v: Any = 0.0) -> Any:
        """Φ(a/v), the votes for +1: the hinge loss gives scores no other meaning. At v = 0 it is 0, ½ or 1."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.asarray(a, dtype=float) / v
        return normal_cdf(np.where(np.equal(a, 0.0), 0.0, ratio))

    @staticmethod
    def valid_label(y: Real, *parameters: Real) -> Real:
        return y * y == 1.0

    @staticmethod
    def is_flat(y: Real, a: Real, *parameters: Real) -> Real:
        return y * a >= 1.0

    @staticmethod
    def expected(y: Real, a: Real, v: Real) -> Expected:
        margin = 1.0 - y * a
        point = ns.maximum(margin, 0.0)
        spread_out = v > POINT_MASS
        spread = ns.where(spread_out, v, 1.0)
        r = margin / spread
        height = bump(r)
        active, density = cumulative(margin, spread, height), INV_SQRT_2PI * height
        # By Jensen E is never below the point loss: the maximum mends the last digits where both terms cancel.
        value = ns.where(spread_out, ns.maximum(margin * active + spread * density, point), point)
        slope = ns.where(spread_out, -y * active, ns.where(y * a >= 1.0, 0.0, -y))
        return Expected(value, slope, ns.where(spread_out, density / spread, 0.0))
