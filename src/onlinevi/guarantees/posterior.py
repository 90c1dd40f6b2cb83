"""The variational posterior of a whole data set, with a certified gap: (5), which the paper starts from, in hindsight.

F(q) = Σ E_q[ℓ_t] + KL(q‖prior)/rate is convex in (mean, std), and for Σ = CᵀC in (mean, C), so Newton's method finds its least
value over the box. Replacing each expected loss by its tangent gives a function that is nowhere above F, whose minimiser is
SVA's closed form: its least value is the certified lower bound, at any point and however rough the solution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onlinevi.beliefs import Ball, FullBelief, FullCovariance, MeanField
from onlinevi.engine import Belief, Vector
from onlinevi.guarantees.comparator import newton
from onlinevi.guarantees.comparator.in_memory import checked, in_memory
from onlinevi.guarantees.free_energy import FreeEnergy, FullFreeEnergy, Look
from onlinevi.losses import Loss
from onlinevi.rules import Rate, as_rate

MOST_FEATURES, MOST_CORRELATED = 2_000, 80
"""Of independent weights, and of those with all covariances: Newton's method solves for some thousand numbers at a time."""

GENTLE, FASTER, ROUGHLY = 100.0, 10.0, 0.1
"""The first rate lets the data narrow the prior's variance 100 to 1000 times, the next ones ten times more each; a belief on
the way may be off by a tenth of a nat."""


@dataclass(frozen=True, eq=False)
class BatchVB:
    """The belief q that makes Σ E_q[ℓ_t] + KL(q‖prior)/rate least over the box, and how far from the least it can be."""

    mean: Vector
    std: Vector
    """Of each weight by itself."""
    rate: float
    expected_loss: float
    """Σ E_q[ℓ_t], ridge included."""
    kl: float
    """KL(q‖prior)."""
    gap: float
    """value − lower_bound ≥ 0: the most that another belief could gain."""
    factor: Vector | None = None
    """C of N(mean, CᵀC), where the family is ``FullCovariance``."""

    @property
    def value(self) -> float:
        return self.expected_loss + self.kl / self.rate

    @property
    def lower_bound(self) -> float:
        """No belief of the family in the box has a value below this."""
        return self.value - self.gap

    @property
    def belief(self) -> Belief | FullBelief:
        return Belief(self.mean, self.std) if self.factor is None else FullBelief(self.mean, self.factor)

    def __repr__(self) -> str:
        return f"BatchVB(value={self.value:.6g}, gap={self.gap:.2g}, features={len(self.mean)})"


def batch_vb(
    X: Any,
    y: Any,
    *,
    loss: Loss,
    rate: Rate | float,
    family: MeanField | FullCovariance | None = None,
    tolerance: float = 1e-6,
) -> BatchVB:
    """argmin over q of the family, in its box, of Σ E_q[ℓ_t] + KL(q‖prior)/rate, with gap ≤ tolerance·max(|value|, 0.01).

    It is the paper's (5); for the squared loss with ``FullCovariance`` the posterior ∝ prior·e^(−rate·Σ ℓ_t) itself.
    ``PerHorizon`` rates take T from the rows. The gap says what was reached where floats do not allow the tolerance.

    >>> import onlinevi as ovi
    >>> from onlinevi import batch_vb
    >>> best = batch_vb([[1.0], [1.0]], [3.0, 3.0], loss=ovi.Squared(), rate=0.25)
    >>> best.mean.round(4).tolist(), round(float(best.std[0]) ** 2, 4), best.gap < 1e-6
    ([1.5], 0.5, True)
    >>> best = batch_vb([[1.0, 1.0]], [3.0], loss=ovi.Squared(), rate=0.5, family=ovi.FullCovariance())
    >>> best.mean.round(4).tolist(), best.belief.covariance.round(4).tolist()
    ([1.0, 1.0], [[0.6667, -0.3333], [-0.3333, 0.6667]])
    """
    loss = checked(loss, tolerance, 1e-6)
    if not isinstance(family := family if family is not None else MeanField(), MeanField | FullCovariance):
        raise TypeError(f"family={family!r}: needs MeanField() or FullCovariance()")
    if isinstance(family.box, Ball):
        raise ValueError(f"{family.box}: the posterior is found in a box, or without bounds; use Box(), or box=None")
    rate = as_rate(rate)
    if rate.varies or rate.per_variance:
        raise ValueError(f"{rate}: one posterior has one rate; try Constant(1.0) or PerHorizon(1.0)")
    energy: type[FreeEnergy] = FullFreeEnergy if family.correlated else FreeEnergy
    most = MOST_CORRELATED if family.correlated else MOST_FEATURES
    matrix, labels, _ = in_memory(X, y, loss, most_features=most, dense=True)
    return _minimise(energy(loss, matrix, labels, rate.schedule(len(labels)).scale, family, tolerance))


def _minimise(energy: FreeEnergy) -> BatchVB:
    """Newton's method from the prior, through smaller rates first: a std that shrinks before its mean is right blinds it."""
    point = energy.family.pack(energy.prior)
    look = energy.look(point)
    if not np.isfinite(look.value):
        raise ValueError(f"{energy.loss}: the loss overflows under the prior; {energy.loss.overflow_hint}")
    *smaller, rate = _rates(energy, look)
    for one in smaller:
        point = newton.minimise(replace(energy, rate=one, enough=ROUGHLY / one), point).best.point
    best = newton.minimise(energy, point).best
    belief, look = energy.belief(best.point), best.look
    factor = belief.factor if isinstance(belief, FullBelief) else None
    return BatchVB(belief.mean, belief.std, rate, look.expected_loss, look.kl, max(best.gap, 0.0), factor)


def _rates(energy: FreeEnergy, start: Look) -> list[float]:
    """The rate, after smaller ones at which the data say little more than the prior."""
    rates = [energy.rate]
    told = float(np.max(start.loss.curvature @ np.square(energy.matrix) * np.square(energy.prior.std)))
    while rates[0] * told > GENTLE * FASTER:
        rates.insert(0, rates[0] / FASTER)
    return rates
