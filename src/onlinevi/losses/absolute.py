"""The absolute loss, in closed form under a Gaussian prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onlinevi.engine import Expected, Real, ns
from onlinevi.losses.base import Loss
from onlinevi.losses.normal import INV_SQRT_2PI, POINT_MASS, SQRT_HALF, bump


@dataclass(frozen=True)
class Absolute(Loss):
    """|y − z|. With r = (a − y)/v: E = (a − y)(2Φ(r) − 1) + 2vφ(r), e1 = 2Φ(r) − 1, e2 = 2φ(r)/v."""

    name: ClassVar[str] = "absolute"
    metric: ClassVar[str | None] = "mae"

    @property
    def level(self) -> float:
        return 0.5

    @property
    def lipschitz(self) -> float:
        return 1.0

    @staticmethod
    def expected(y: Real, a: Real, v: Real) -> Expected:
        gap = a - y
        point = ns.absolute(gap)
        spread_out = v > POINT_MASS
        spread = ns.where(spread_out, v, 1.0)
        r = gap / spread
        # 2Φ(r) − 1 as erf: through Φ it loses four digits at r = 1e-12.
        tilt, density = ns.erf(SQRT_HALF * r), INV_SQRT_2PI * bump(r)
        value = ns.where(spread_out, ns.maximum(gap * tilt + 2.0 * spread * density, point), point)
        sign = ns.where(gap > 0.0, 1.0, ns.where(gap < 0.0, -1.0, 0.0))
        return Expected(value, ns.where(spread_out, tilt, sign), ns.where(spread_out, 2.0 * density / spread, 0.0))
