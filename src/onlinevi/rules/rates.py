"""How large a step is, as a function of time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from onlinevi.engine import Schedule


@dataclass(frozen=True)
class Rate:
    """A rate η_t; its subclasses are the ones to use."""

    c: float

    power: ClassVar[float] = 0.0
    per_variance: ClassVar[bool] = False
    """Divides by the belief's variance, coordinate by coordinate: SVB only."""

    def __post_init__(self) -> None:
        if not (self.c > 0.0 and math.isfinite(self.c)):
            raise ValueError(f"rate={self.c!r}: a rate must be > 0 and finite; try PerHorizon(1.0)")

    @property
    def varies(self) -> bool:
        """Whether it changes from one event to the next."""
        return self.power > 0.0

    def schedule(self, horizon: int | None) -> Schedule:
        return Schedule(self.c, self.power)


class Constant(Rate):
    """η = c."""


class PerHorizon(Rate):
    """η = c/√T, for a stream of known length T."""

    def schedule(self, horizon: int | None) -> Schedule:
        if horizon is None:
            raise ValueError(
                f"{self} needs the number of events T: give horizon=T, or use a rate without it such as PerSqrt({self.c})"
            )
        return Schedule(self.c / math.sqrt(horizon), 0.0)


class PerSqrt(Rate):
    """η_t = c/√t."""

    power = 0.5


class PerStep(Rate):
    """η_t = c/t."""

    power = 1.0


class PaperSVB(Rate):
    """η_t = c/(std²·√t) in each coordinate: the paper's rate for SVB with a convex loss."""

    power = 0.5
    per_variance = True


class StronglyConvex(Rate):
    """η_t = 2/(H·t·std²) in each coordinate: the paper's rate for SVB with an H-strongly convex loss. ``c`` is H."""

    power = 1.0
    per_variance = True

    def schedule(self, horizon: int | None) -> Schedule:
        return Schedule(2.0 / self.c, self.power)


def as_rate(rate: Rate | float) -> Rate:
    """A plain number means a constant rate."""
    return rate if isinstance(rate, Rate) else Constant(float(rate))
