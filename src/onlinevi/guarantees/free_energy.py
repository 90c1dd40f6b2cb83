"""F(q) = Σ E_q[ℓ_t] + KL(q‖prior)/rate as what Newton's method minimises: in (mean, std), or in (mean, C) with Σ = CᵀC."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from onlinevi.beliefs import FullBelief, FullCovariance, edges
from onlinevi.engine import Belief, Expected, Vector
from onlinevi.guarantees.comparator.feasible_set import Cuboid
from onlinevi.guarantees.comparator.newton import SMALLEST_VALUE, Best
from onlinevi.guarantees.comparator.smoothed import ONE_THREAD
from onlinevi.losses import Loss
from onlinevi.rules import shrink

SMALLEST_CHUNK, LARGEST_CHUNK = 64, 8192
"""Rows at a time: few enough for one thread and the processor's cache, enough to be worth a call."""

WIDER = 1e-4
"""The relative change of a spread that shows how the loss bends in it."""

FURTHEST_MEAN, FURTHEST_STD = 1000.0, 5.0
"""A step moves a mean by at most 1000 stds and a std by at most a factor of 5: no quadratic tells what lies beyond."""


class Look(NamedTuple):
    """What one visit to a belief shows."""

    expected_loss: float
    kl: float
    value: float
    gap: float
    gradient: Vector
    """Of F in the point."""
    prediction: Vector
    spread: Vector
    loss: Expected
    """Row by row."""

    @property
    def lower_bound(self) -> float:
        return self.value - self.gap


@dataclass(frozen=True, eq=False)
class FreeEnergy:
    """F as a function of the point, its gradient, its curvature and the bound below it: what Newton minimises.

    Here the point is (mean, std). What spreads a belief, a std each or the factor C, is called its scale.
    """

    loss: Loss
    matrix: Vector
    labels: Vector
    rate: float
    family: Any
    tolerance: float
    enough: float = 0.0
    """A gap that will do, whatever the value."""
    prior: Any = field(init=False)
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
        mean, scale = belief = self.belief(point)
        prediction, spread, value, slope, curvature = np.empty((5, len(self.labels)))
        slope_sum, along_scale = np.zeros_like(mean), np.zeros_like(scale)
        for rows in self._chunks(scale.size):
            part = self.matrix[rows]
            prediction[rows], spread[rows] = part @ mean, np.sqrt(self._variances(part, scale, scale))
            value[rows], slope[rows], curvature[rows] = self._expected(rows, prediction[rows], spread[rows])
            slope_sum += slope[rows] @ part
            along_scale += self._along_scale(part, curvature[rows], scale)
        size = float(np.vdot(mean, mean) + np.vdot(scale, scale))
        expected_loss, kl = float(value.sum()) + 0.5 * self.pull * size, self.family.kl(belief)
        gradient = self._point(*self._gradient(belief, slope_sum, along_scale))
        gap = self._gap(belief, slope_sum, along_scale)
        row_losses = Expected(value, slope, curvature)
        return Look(expected_loss, kl, expected_loss + kl / self.rate, gap, gradient, prediction, spread, row_losses)

    def _gradient(self, belief: Any, slope: Any, along_scale: Any) -> tuple[Vector, Vector]:
        """Of F, from the part that the losses have in it: those of ridge and prior are added."""
        mean, scale = belief
        by_mean = slope + self.pull * mean + (mean - self.prior.mean) / (self.rate * self.prior.std**2)
        return by_mean, along_scale + self.stiffness * scale - self._per_std(scale) / self.rate

    # What a std each and a factor C differ in.

    def belief(self, point: Vector) -> Any:
        """The point as a belief (mean, scale)."""
        return self.family.unpack(point, self.matrix.shape[1])

    def _point(self, mean: Vector, scale: Vector) -> Vector:
        """The same the other way."""
        return np.concatenate([mean, scale])

    def _per_std(self, scale: Vector) -> Vector:
        """∂/∂scale of Σ ln std, the volume of the belief."""
        return np.asarray(1.0 / scale)

    def _variances(self, part: Vector, one: Vector, other: Vector) -> Vector:
        """Of the predictions of these rows, as the bilinear form that it is in the scale."""
        return np.asarray(np.square(part) @ (one * other))

    def _along_scale(self, part: Vector, curvature: Vector, scale: Vector) -> Vector:
        """Σ ∂E/∂scale over these rows."""
        return np.asarray(curvature @ np.square(part) * scale)

    def _spread_slope(self, part: Vector, spread: Vector, scale: Vector) -> Vector:
        """∂v/∂scale, a row each."""
        return np.asarray(np.square(part) * scale / spread[:, None])

    def _own_bend(self, curvature: Vector) -> Vector:
        """Σ e2·(v·∇²v + ∇v·∇vᵀ) in the scale, which follows from Σ e2·x·xᵀ."""
        return np.diag(curvature.diagonal())

    def _scale_stiffness(self, scale: Vector) -> Vector:
        """What prior and ridge add to the diagonal of the Hessian in the scale."""
        return np.asarray(self.stiffness + 1.0 / (self.rate * np.square(scale)))

    def _gap(self, belief: Any, slope: Vector, along_std: Vector) -> float:
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
        mean, scale = self.belief(point)
        along_mean, along_scale = self.belief(step)
        prediction, change, variance, cross, square = np.empty((5, len(self.labels)))
        for rows in self._chunks(scale.size):
            part = self.matrix[rows]
            prediction[rows], change[rows] = part @ mean, part @ along_mean
            variance[rows], cross[rows] = self._variances(part, scale, scale), self._variances(part, scale, along_scale)
            square[rows] = self._variances(part, along_scale, along_scale)

        def slope_at(length: float) -> float:
            total = 0.0
            for rows in self._chunks(scale.size):
                spread = np.sqrt(np.maximum(variance[rows] + length * (2.0 * cross[rows] + length * square[rows]), 0.0))
                _, slope, curvature = self._expected(rows, prediction[rows] + length * change[rows], spread)
                with np.errstate(all="ignore"):
                    total += float(slope @ change[rows] + curvature @ (cross[rows] + length * square[rows]))
            by_mean, by_scale = self._gradient(self.belief(point + length * step), 0.0, 0.0)
            return total + float(by_mean @ along_mean + np.vdot(by_scale, along_scale))

        return slope_at

    def hessian(self, point: Vector, look: Look) -> Vector:
        scale = self.belief(point)[1]
        dim, size = self.matrix.shape[1], len(point)
        mixed, bend = self._bends(look)
        curvature = look.loss.curvature
        means, across, scales = np.zeros((dim, dim)), np.zeros((dim, size - dim)), np.zeros((size - dim, size - dim))
        for rows in self._chunks((size - dim) ** 2):
            part, spread = self.matrix[rows], np.where(look.spread[rows] > 0.0, look.spread[rows], 1.0)
            spread_slope = self._spread_slope(part, spread, scale)
            means += part.T @ (curvature[rows, None] * part)
            across += part.T @ (mixed[rows, None] * spread_slope)
            scales += spread_slope.T @ ((bend - curvature)[rows, None] * spread_slope)
        hessian = np.block([[means, across], [across.T, scales + self._own_bend(means)]])
        hessian[np.diag_indices(size)] += np.concatenate([self.stiffness, self._scale_stiffness(scale)])
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

    def _chunks(self, products: int) -> list[slice]:
        """The rows in pieces, each of which takes this many multiplications a row."""
        size = min(max(ONE_THREAD // products, SMALLEST_CHUNK), LARGEST_CHUNK)
        return [slice(start, start + size) for start in range(0, len(self.labels), size)]

    def _expected(self, rows: slice, prediction: Vector, spread: Vector) -> Expected:
        """The loss, infinite where it overflows."""
        with np.errstate(all="ignore"):
            parts = self.loss.expected(self.labels[rows], prediction, spread, *self.loss.parameters)
        return Expected(*(np.broadcast_to(part, prediction.shape) for part in parts))


@dataclass(frozen=True, eq=False)
class FullFreeEnergy(FreeEnergy):
    """The same for N(mean, CᵀC), C upper triangular: v = ‖C·x‖ is convex in C, so F is. The point has C row by row."""

    family: FullCovariance

    def _point(self, mean: Vector, scale: Vector) -> Vector:
        return self.family.pack(FullBelief(mean, scale))

    def _per_std(self, scale: Vector) -> Vector:
        return np.diag(1.0 / scale.diagonal())

    def _variances(self, part: Vector, one: Vector, other: Vector) -> Vector:
        return np.asarray(np.sum((part @ one.T) * (part @ other.T), axis=1))

    def _along_scale(self, part: Vector, curvature: Vector, scale: Vector) -> Vector:
        return np.triu((part @ scale.T).T @ (curvature[:, None] * part))

    def _spread_slope(self, part: Vector, spread: Vector, scale: Vector) -> Vector:
        row, column = self._entries
        return np.asarray((part @ scale.T)[:, row] * part[:, column] / spread[:, None])

    def _own_bend(self, curvature: Vector) -> Vector:
        row, column = self._entries
        return np.where(row[:, None] == row, curvature[np.ix_(column, column)], 0.0)

    def _scale_stiffness(self, scale: Vector) -> Vector:
        row, column = self._entries
        return np.asarray(
            self.stiffness[column] + np.where(row == column, 1.0 / (self.rate * np.square(scale[row, row])), 0.0)
        )

    def _gap(self, belief: Any, slope: Vector, along_scale: Vector) -> float:
        """The diagonal of C is as stds are; each entry above it has a quadratic of its own."""
        row, column = np.triu_indices(len(slope), 1)
        entry, towards, stiffness = belief.factor[row, column], along_scale[row, column], self.stiffness[column]
        least = -towards / stiffness
        above = float(np.sum((entry - least) * (towards + 0.5 * stiffness * (entry + least))))
        return super()._gap((belief.mean, belief.factor.diagonal()), slope, along_scale.diagonal()) + max(above, 0.0)

    def reachable(self, point: Vector) -> Cuboid:
        mean, factor = belief = self.belief(point)
        row, column = self._entries
        entry, reach = factor[row, column], FURTHEST_STD * belief.std[column]
        on = row == column
        low = np.maximum(self.low.mean, mean - FURTHEST_MEAN * belief.std), np.where(on, entry / FURTHEST_STD, entry - reach)
        high = np.minimum(self.high.mean, mean + FURTHEST_MEAN * belief.std), np.where(on, entry * FURTHEST_STD, entry + reach)
        return Cuboid(np.concatenate(low), np.concatenate(high))

    @property
    def _entries(self) -> tuple[Any, Any]:
        """Row and column of each entry of C in the point."""
        return np.triu_indices(self.matrix.shape[1])
