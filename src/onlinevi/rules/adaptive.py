"""Rates from the gradients that came: no horizon, no Lipschitz constant, and on a bounded box nothing to tune."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from onlinevi.engine import BY_GRADIENTS, Belief, Prior
from onlinevi.rules.rates import Rate


@dataclass(frozen=True)
class Adaptive(Rate):
    """η_t = c/√(Σ‖g‖²), g the gradients of the expected loss seen so far; with SVB, c/(std²·√(Σ‖g‖²)).

    ``c=None`` takes the constant that makes the rule's bound least for the box. Losses times a number change no decision.
    """

    c: float | None = None  # type: ignore[assignment]

    power = BY_GRADIENTS

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
    """What ``Adaptive`` is for SVB, whose theorem has rates that divide by the variance."""

    per_variance = True


def of_descent(prior: Prior, low: Belief, high: Belief) -> float:
    """OGA and OGA-EL step by κ = c·s²: κ = D/√2, the diameter D in units in which every coordinate has the widest s."""
    widest = np.max(prior.std)
    apart = np.hypot(high.mean - low.mean, high.std - low.std) / prior.std
    return float(np.linalg.norm(apart) / (math.sqrt(2.0) * widest))


def of_leader(prior: Prior, low: Belief, high: Belief) -> float:
    """SVA: c = √(α·KL), with the divergence of a belief as wide as the prior in the farthest corner of the means."""
    farthest = np.maximum(high.mean - prior.mean, prior.mean - low.mean) / prior.std
    return float(np.linalg.norm(farthest) / (math.sqrt(2.0) * np.max(prior.std)))


def of_streaming(prior: Prior, low: Belief, high: Belief) -> float:
    """SVB: c = D₁ = sup √(½‖m − m'‖² + ‖std‖²)."""
    return math.hypot(float(np.linalg.norm(high.mean - low.mean)) / math.sqrt(2.0), float(np.linalg.norm(high.std)))
