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
    """η = c/√T, for a stream of known length T; 1/√T is the paper's for OGA, OGA-EL and SVA (section 5.2)."""

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
    """η_t = c/(std²·√t) in each coordinate: the paper's rate for SVB with a convex loss (Theorem 3, section 5.2)."""

    power = 0.5
    per_variance = True


class StronglyConvex(Rate):
    """η_t = 2/(H·t·std²) in each coordinate: the rate of SVB for H-strongly convex losses (Theorem 3). ``c`` is H."""

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


class Explicit(Rate):
    """The constants of the paper's theorems, for losses that are L-Lipschitz; ``c`` is L. SVA and SVB take it.

    With SVA, η = √(α·d·ln(T/d)/T)/L (section 4.1), which needs the number of events; with SVB, K/(std²·√t) with K = D₁/L, the
    step of Theorem 3 that makes what holds least (the paper prints √2·D/L). α, d and D₁ are those of the run.
    """

    def schedule(self, horizon: int | None) -> Schedule:
        raise ValueError(f"{self} takes its constants from a run of SVA or SVB; elsewhere give a number, or PerHorizon(1.0)")


class ExplicitSVB(Explicit):
    """The rate ``Explicit`` as SVB takes it, whose theorem has rates that divide by the variance."""

    power = 0.5
    per_variance = True


def explicit_sva_rate(count: int, dim: int, lipschitz: float, strong_convexity: float) -> float:
    """η = √(α·d·ln(T/d)/T)/L: the rate of SVA in the example of section 4.1."""
    if not count > dim:
        raise ValueError(f"count={count}, dim={dim}: the explicit rate of SVA needs more events than dimensions")
    return math.sqrt(strong_convexity * dim * math.log(count / dim) / count) / lipschitz


def best_for_descent(prior: Prior, low: Belief, high: Belief) -> float:
    """c of OGA and OGA-EL, which step by κ = c·s² = D/√2: D is the diameter, every coordinate in units of the widest s."""
    widest = np.max(prior.std)
    apart = np.hypot(high.mean - low.mean, high.std - low.std) / prior.std
    return float(np.linalg.norm(apart) / (math.sqrt(2.0) * widest))


def as_rate(rate: Rate | float) -> Rate:
    """A plain number means a constant rate."""
    return rate if isinstance(rate, Rate) else Constant(float(rate))
