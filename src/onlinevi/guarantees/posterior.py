"""The variational posterior of a whole data set, with a certified gap: (5), which the paper starts from, in hindsight.

F(q) = Σ E_q[ℓ_t] + KL(q‖prior)/rate is convex in (mean, std), so Newton's method finds its least value over the box. Replacing
each expected loss by its tangent gives a function that is nowhere above F, whose minimiser is SVA's closed form: its least
value is the certified lower bound, at any point and however rough the solution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from onlinevi.beliefs import MeanField, edges
from onlinevi.engine import Belief, Expected, Vector
from onlinevi.guarantees.comparator import newton
from onlinevi.guarantees.comparator.feasible_set import Cuboid
from onlinevi.guarantees.comparator.in_memory import checked, in_memory
from onlinevi.guarantees.comparator.newton import SMALLEST_VALUE, Best
from onlinevi.guarantees.comparator.smoothed import ONE_THREAD
from onlinevi.losses import Loss
from onlinevi.rules import Rate, as_rate, shrink

SMALLEST_CHUNK, LARGEST_CHUNK = 64, 8192
"""Rows at a time: few enough for one thread and the processor's cache, enough to be worth a call."""

MOST_FEATURES = 2_000

WIDER = 1e-4
"""The relative change of a spread that shows how the loss bends in it."""

FURTHEST_MEAN, FURTHEST_STD = 1000.0, 5.0
"""A step moves a mean by at most 1000 stds and a std by at most a factor of 5: no quadratic tells what lies beyond."""

GENTLE, FASTER, ROUGHLY = 100.0, 10.0, 0.1
"""The first rate lets the data narrow the prior's variance 100 to 1000 times, the next ones ten times more each; a belief on
the way may be off by a tenth of a nat."""


@dataclass(frozen=True, eq=False)
class BatchVB:
    """The belief q that makes Σ E_q[ℓ_t] + KL(q‖prior)/rate least over the box, and how far from the least it can be."""

    mean: Vector
    std: Vector
    rate: float
    expected_loss: float
    """Σ E_q[ℓ_t], ridge included."""
    kl: float
    """KL(q‖prior)."""
    gap: float
    """value − lower_bound ≥ 0: the most that another belief could gain."""

    @property
    def value(self) -> float:
        return self.expected_loss + self.kl / self.rate

    @property
    def lower_bound(self) -> float:
        """No mean-field belief in the box has a value below this."""
        return self.value - self.gap

    @property
    def belief(self) -> Belief:
        return Belief(self.mean, self.std)

    def __repr__(self) -> str:
        return f"BatchVB(value={self.value:.6g}, gap={self.gap:.2g}, features={len(self.mean)})"


def batch_vb(
    X: Any, y: Any, *, loss: Loss, rate: Rate | float, family: MeanField | None = None, tolerance: float = 1e-6
) -> BatchVB:
    """argmin over mean-field q in the family's box of Σ E_q[ℓ_t] + KL(q‖prior)/rate, with gap ≤ tolerance·max(|value|, 0.01).

    ``PerHorizon`` rates take T from the rows. The gap says what was reached where floats do not allow the tolerance.

    >>> import onlinevi as ovi
    >>> from onlinevi import batch_vb
    >>> best = batch_vb([[1.0], [1.0]], [3.0, 3.0], loss=ovi.Squared(), rate=0.25)
    >>> best.mean.round(4).tolist(), round(float(best.std[0]) ** 2, 4), best.gap < 1e-6
    ([1.5], 0.5, True)
    """
    loss = checked(loss, tolerance, 1e-6)
    if not isinstance(family := family if family is not None else MeanField(), MeanField):
        raise TypeError(f"family={family!r}: needs MeanField()")
    rate = as_rate(rate)
    if rate.varies or rate.per_variance:
        raise ValueError(f"{rate}: one posterior has one rate; try Constant(1.0) or PerHorizon(1.0)")
    matrix, labels, _ = in_memory(X, y, loss, most_features=MOST_FEATURES, dense=True)
    return _minimise(FreeEnergy(loss, matrix, labels, rate.schedule(len(labels)).scale, family, tolerance))


class Look(NamedTuple):
    """What one visit to a belief shows."""

    expected_loss: float
    kl: float
    value: float
    gap: float
    gradient: Vector
    """Of F in (mean, std)."""
    prediction: Vector
    spread: Vector
    loss: Expected
    """Row by row."""

    @property
    def lower_bound(self) -> float:
        return self.value - self.gap


@dataclass(frozen=True, eq=False)
class FreeEnergy:
    """F as a function of the point (mean, std), its gradient, its curvature and the bound below it: what Newton minimises."""

    loss: Loss
    matrix: Vector
    labels: Vector
    rate: float
    family: MeanField
    tolerance: float
    enough: float = 0.0
    """A gap that will do, whatever the value."""
    prior: Belief = field(init=False)
    low: Belief = field(init=False)
    high: Belief = field(init=False)

    def __post_init__(self) -> None:
        dim = self.matrix.shape[1]
        mean_low, mean_high, std_low, std_high = edges(self.family, dim)
        object.__setattr__(self, "prior", self.family.init(dim))
        object.__setattr__(self, "low", Belief(mean_low, std_low))
        object.__setattr__(self, "high", Belief(mean_high, std_high))

    @property
    def smooth(self) -> bool:
        """Whether F is what is minimised, not a stand-in for it."""
        return True

    @property
    def pull(self) -> float:
        """The ridge of the sum."""
        return self.loss.ridge * len(self.labels)

    @property
    def stiffness(self) -> Vector:
        """The curvature that prior and ridge give to each mean: F is at least as strongly convex as the least of them."""
        return np.asarray(self.prior.std**-2.0 / self.rate + self.pull)

    @np.errstate(all="ignore")  # an overflow is seen by its value
    def look(self, point: Vector) -> Look:
        mean, std = belief = self.belief(point)
        prediction, spread, value, slope, curvature = np.empty((5, len(self.labels)))
        slope_sum, curvature_sum = np.zeros((2, len(mean)))
        for rows in self._chunks(len(mean)):
            part, square = self.matrix[rows], np.square(self.matrix[rows])
            prediction[rows], spread[rows] = part @ mean, np.sqrt(square @ np.square(std))
            value[rows], slope[rows], curvature[rows] = self._expected(rows, prediction[rows], spread[rows])
            slope_sum += slope[rows] @ part
            curvature_sum += curvature[rows] @ square
        along_std = curvature_sum * std
        size = float(mean @ mean + std @ std)
        expected_loss, kl = float(value.sum()) + 0.5 * self.pull * size, self.family.kl(belief)
        gradient = np.concatenate(self._gradient(belief, slope_sum, along_std))
        gap = self._gap(belief, slope_sum, along_std)
        row_losses = Expected(value, slope, curvature)
        return Look(expected_loss, kl, expected_loss + kl / self.rate, gap, gradient, prediction, spread, row_losses)

    def _gradient(self, belief: Belief, slope: Any, along_std: Any) -> tuple[Vector, Vector]:
        """Of F, from the part that the losses have in it: those of ridge and prior are added."""
        mean, std = belief
        by_mean = slope + self.pull * mean + (mean - self.prior.mean) / (self.rate * self.prior.std**2)
        return by_mean, along_std + self.stiffness * std - 1.0 / (self.rate * std)

    def _gap(self, belief: Belief, slope: Vector, along_std: Vector) -> float:
        """How far ⟨(slope, along_std), ·⟩ + ridge + KL/rate is above its least value over the box, which SVA's step finds."""
        mean, std = belief
        stiffness, towards = self.stiffness, self.prior.mean / (self.rate * self.prior.std**2)
        wide = 1.0 / np.sqrt(self.rate * stiffness)
        least_mean = np.clip((towards - slope) / stiffness, self.low.mean, self.high.mean)
        least_std = np.clip(wide * shrink(0.5 * self.rate * wide * along_std), self.low.std, self.high.std)
        # Differences of squares as products, so that nothing cancels.
        by_mean = (mean - least_mean) * (slope - towards + 0.5 * stiffness * (mean + least_mean))
        by_std = (std - least_std) * (along_std + 0.5 * stiffness * (std + least_std)) - np.log(std / least_std) / self.rate
        return max(float(by_mean.sum() + by_std.sum()), 0.0)

    def slope_along(self, point: Vector, step: Vector) -> Callable[[float], float]:
        """F's derivative in ``length`` at point + length·step. The variance of a prediction is quadratic in the length."""
        mean, std = self.belief(point)
        along_mean, along_std = self.belief(step)
        prediction, change, variance, cross, square = np.empty((5, len(self.labels)))
        for rows in self._chunks(len(mean)):
            part, squares = self.matrix[rows], np.square(self.matrix[rows])
            prediction[rows], change[rows] = part @ mean, part @ along_mean
            variance[rows], cross[rows] = squares @ np.square(std), squares @ (std * along_std)
            square[rows] = squares @ np.square(along_std)

        def slope_at(length: float) -> float:
            total = 0.0
            for rows in self._chunks(len(mean)):
                spread = np.sqrt(np.maximum(variance[rows] + length * (2.0 * cross[rows] + length * square[rows]), 0.0))
                _, slope, curvature = self._expected(rows, prediction[rows] + length * change[rows], spread)
                with np.errstate(all="ignore"):
                    total += float(slope @ change[rows] + curvature @ (cross[rows] + length * square[rows]))
            by_mean, by_std = self._gradient(self.belief(point + length * step), 0.0, 0.0)
            return total + float(by_mean @ along_mean + by_std @ along_std)

        return slope_at

    def hessian(self, point: Vector, look: Look) -> Vector:
        std = self.belief(point).std
        dim = len(std)
        mixed, bend = self._bends(look)
        curvature = look.loss.curvature
        means, across, stds = np.zeros((3, dim, dim))
        diagonal = np.zeros(dim)
        for rows in self._chunks(dim**2):
            part, square = self.matrix[rows], np.square(self.matrix[rows])
            spread = np.where(look.spread[rows] > 0.0, look.spread[rows], 1.0)
            spread_slope = square * std / spread[:, None]
            means += part.T @ (curvature[rows, None] * part)
            across += part.T @ (mixed[rows, None] * spread_slope)
            stds += spread_slope.T @ ((bend - curvature)[rows, None] * spread_slope)
            diagonal += curvature[rows] @ square
        hessian = np.block([[means, across], [across.T, stds]])
        hessian[np.diag_indices(2 * dim)] += np.concatenate(
            [self.stiffness, diagonal + self.stiffness + 1.0 / (self.rate * np.square(std))]
        )
        return hessian

    def _bends(self, look: Look) -> tuple[Vector, Vector]:
        """∂²E/∂a∂v and ∂²E/∂v² of each row: the difference of two looks at its slope and at ∂E/∂v = e2·v."""
        mixed, bend = np.empty((2, len(self.labels)))
        for rows in self._chunks(self.matrix.shape[1]):
            spread, curvature = look.spread[rows], look.loss.curvature[rows]
            wide = self._expected(rows, look.prediction[rows], (1.0 + WIDER) * spread)
            apart = np.where(spread > 0.0, WIDER * spread, np.inf)  # a row of zeros bends nothing
            curved = curvature > 0.0
            mixed[rows] = np.where(curved, (wide.slope - look.loss.slope[rows]) / apart, 0.0)
            bend[rows] = ((1.0 + WIDER) * wide.curvature - curvature) * spread / apart
            # A convex loss bends up in every direction; where rounding says otherwise it is mended.
            bend[rows] = np.maximum(bend[rows], np.square(mixed[rows]) / np.where(curved, curvature, 1.0))
        return mixed, bend

    def reachable(self, point: Vector) -> Cuboid:
        mean, std = self.belief(point)
        low = np.maximum(self.low.mean, mean - FURTHEST_MEAN * std), np.maximum(self.low.std, std / FURTHEST_STD)
        high = np.minimum(self.high.mean, mean + FURTHEST_MEAN * std), np.minimum(self.high.std, std * FURTHEST_STD)
        return Cuboid(np.concatenate(low), np.concatenate(high))

    def solved(self, best: Best[Look], look: Look) -> bool:
        return best.gap <= max(self.enough, self.tolerance * max(abs(best.value), SMALLEST_VALUE))

    def belief(self, point: Vector) -> Belief:
        """The point as (mean, std)."""
        return self.family.unpack(point, self.matrix.shape[1])

    def _chunks(self, products: int) -> list[slice]:
        """The rows in pieces, each of which takes this many multiplications a row."""
        size = min(max(ONE_THREAD // products, SMALLEST_CHUNK), LARGEST_CHUNK)
        return [slice(start, start + size) for start in range(0, len(self.labels), size)]

    def _expected(self, rows: slice, prediction: Vector, spread: Vector) -> Expected:
        """The loss, infinite where it overflows."""
        with np.errstate(all="ignore"):
            parts = self.loss.expected(self.labels[rows], prediction, spread, *self.loss.parameters)
        return Expected(*(np.broadcast_to(part, prediction.shape) for part in parts))


def _minimise(energy: FreeEnergy) -> BatchVB:
    """Newton's method from the prior, through smaller rates first: a std that shrinks before its mean is right blinds it."""
    point = np.concatenate(energy.prior)
    look = energy.look(point)
    if not np.isfinite(look.value):
        raise ValueError(f"{energy.loss}: the loss overflows under the prior; {energy.loss.overflow_hint}")
    *smaller, rate = _rates(energy, look)
    for one in smaller:
        point = newton.minimise(replace(energy, rate=one, enough=ROUGHLY / one), point).best.point
    best = newton.minimise(energy, point).best
    return BatchVB(*energy.belief(best.point), rate, best.look.expected_loss, best.look.kl, max(best.gap, 0.0))


def _rates(energy: FreeEnergy, start: Look) -> list[float]:
    """The rate, after smaller ones at which the data say little more than the prior."""
    rates = [energy.rate]
    told = float(np.max(start.loss.curvature @ np.square(energy.matrix) * np.square(energy.prior.std)))
    while rates[0] * told > GENTLE * FASTER:
        rates.insert(0, rates[0] / FASTER)
    return rates
