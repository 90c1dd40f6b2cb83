"""The pinball loss, whose minimiser is a quantile, in closed form under a Gaussian prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onlinevi.engine import Expected, Real, ns
from onlinevi.losses.base import Loss, Target
from onlinevi.losses.normal import INV_SQRT_2PI, POINT_MASS, bump, cumulative


@dataclass(frozen=True)
class Pinball(Loss):
    """τ(y − z) for y above z, (1 − τ)(z − y) below.

    With r = (y − a)/v: E = (y − a)(τ − Φ(−r)) + vφ(r), e1 = Φ(−r) − τ, e2 = φ(r)/v.
    """

    quantile: float = 0.5

    name: ClassVar[str] = "pinball"
    target: ClassVar[Target] = "quantile"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.quantile < 1.0:
            raise ValueError(f"quantile={self.quantile!r}: a quantile lies strictly between 0 and 1; try 0.9")

    @property
    def level(self) -> float:
        return self.quantile

    @property
    def lipschitz(self) -> float:
        return max(self.quantile, 1.0 - self.quantile)

    @staticmethod
    def expected(y: Real, a: Real, v: Real, quantile: Real) -> Expected:  # type: ignore[override]
        gap = y - a
        point = ns.where(gap > 0.0, quantile * gap, (quantile - 1.0) * gap)
        spread_out = v > POINT_MASS
        spread = ns.where(spread_out, v, 1.0)
        r = gap / spread
        height = bump(r)
        above, density = cumulative(-gap, spread, height), INV_SQRT_2PI * height
        value = ns.where(spread_out, ns.maximum(gap * (quantile - above) + spread * density, point), point)
        side = ns.where(gap > 0.0, -quantile, ns.where(gap < 0.0, 1.0 - quantile, 0.0))
        return Expected(value, ns.where(spread_out, above - quantile, side), ns.where(spread_out, density / spread, 0.0))
