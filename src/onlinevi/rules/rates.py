"""How large a step is, as a function of time or of the gradients that came."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from onlinevi.engine import ADAPTIVE_POWER, Belief, Prior, Schedule


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


@dataclass(frozen=True)
class Adaptive(Rate):
    """η_t = c/√(Σ‖g‖²), g the gradients of the expected loss seen so far; with SVB, c/(std²·√(Σ‖g‖²)).

    It needs no horizon and no Lipschitz constant. ``c=None`` takes the constant that makes the rule's bound least for the box:
    on a bounded one there is nothing to tune. Losses times a number change no decision.
    """

    c: float | None = None  # type: ignore[assignment]

    power = ADAPTIVE_POWER

    def __post_init__(self) -> None:
        if self.c is not None:
            super().__post_init__()

    def fitted(self, best: float) -> Adaptive:
        """This rate with a constant: its own, or the best one for a box."""
        if self.c is not None:
            return self
        if not 0.0 < best < math.inf:
            raise ValueError(
                f"Adaptive() takes its constant from the box, which {'has no width' if best == 0.0 else 'is not bounded'}: "
                "give both sides, such as Box(), or the constant, such as Adaptive(1.0)"
            )
        return replace(self, c=best)


class AdaptiveSVB(Adaptive):
    """The rate ``Adaptive`` as SVB takes it, whose theorem has rates that divide by the variance."""

    per_variance = True


def best_for_descent(prior: Prior, low: Belief, high: Belief) -> float:
    """c of OGA and OGA-EL, which step by κ = c·s² = D/√2: D is the diameter, every coordinate in units of the widest s."""
    widest = np.max(prior.std)
    apart = np.hypot(high.mean - low.mean, high.std - low.std) / prior.std
    return float(np.linalg.norm(apart) / (math.sqrt(2.0) * widest))


def as_rate(rate: Rate | float) -> Rate:
    """A plain number means a constant rate."""
    return rate if isinstance(rate, Rate) else Constant(float(rate))
