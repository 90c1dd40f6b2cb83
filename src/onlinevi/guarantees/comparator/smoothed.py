"""The average loss over the data, a smooth stand-in for it, a bound below it, and its minimiser.

All is made of the loss at three points a row. Averaged over the window [a − w, a + w], a convex loss is smooth, and two values
give its derivatives exactly:

    slope      (ℓ(a + w) − ℓ(a − w)) / 2w
    curvature  (ℓ'(a + w) − ℓ'(a − w)) / 2w

That slope lies between the slopes at the ends, so it is also the slope of a mixture of the tangents there. A tangent never
exceeds a convex loss: summed over the rows, the mixtures are a linear function of the weights that is nowhere above the
total loss. Its least value over the feasible set is the certified lower bound, whatever the window and however rough the
solution. Where the loss is smooth a window of width 0 serves: then it is the tangent at a. Where it is not, the window is
narrowed until the gap is small enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import Expected, Real, Vector
from onlinevi.guarantees.comparator import newton
from onlinevi.guarantees.comparator.feasible_set import FeasibleSet
from onlinevi.guarantees.comparator.newton import SMALLEST_VALUE, Best
from onlinevi.losses import Loss

CHUNK = 8192
"""Rows whose temporaries stay in the processor's cache."""

PIECE_VALUES = 1 << 23
"""Values of X copied at a time for a product: 64 MB."""

ONE_THREAD = 1 << 18
"""Multiplications up to which BLAS stays on one thread. Waiting for a second one took 100 times as long on a busy machine."""

SMOOTH_TOLERANCE = 1e-11
"""Newton's last steps double the digits: where the loss is smooth, exactness costs a step or two."""

NARROWER = 0.25

SINGULAR = 10.0 * np.finfo(float).eps
"""Times the number of features, relative to the diagonal: added to the Hessian, it lets floats factor it."""

DAMPING = 1e-3
"""Where nothing curves, a step goes at most 1/DAMPING times across the set; this vanishes as the minimiser nears."""


class Tangent(NamedTuple):
    """The mixture of tangents of some rows, and the curvature of the stand-in."""

    below: Real
    """Its value at the prediction: at most the loss there."""
    slope: Real
    curvature: Real


class Look(NamedTuple):
    """What one visit to a point shows."""

    value: float
    """The average loss here."""
    slack: float
    """How far the tangents lie below it here: the price of the window."""
    stationarity: float
    """How much further down they go elsewhere in the set: 0 at the stand-in's minimiser."""
    gradient: Vector
    """Of the stand-in."""
    curvature: Vector
    """Of the stand-in, row by row."""

    @property
    def lower_bound(self) -> float:
        return self.value - self.slack - self.stationarity


@dataclass(frozen=True, eq=False)
class AverageLoss:
    """(1/T) Σ weight·(loss + ridge/2·‖θ‖²) over the rows, each row's weight/T being its share."""

    loss: Loss
    matrix: Any
    """Rows × features: a float array, or a CSR matrix."""
    labels: Vector
    shares: Vector

    @property
    def pull(self) -> float:
        """The ridge of the average."""
        return self.loss.ridge * float(self.shares.sum())

    def look(self, point: Vector, width: float, feasible: FeasibleSet) -> Look:
        predictions = self.matrix @ point
        losses, below, slope, curvature = np.empty((4, len(self.labels)))
        for rows in self._chunks():
            losses[rows] = self._point(rows, predictions).value
            below[rows], slope[rows], curvature[rows] = self._tangent(rows, predictions, width)
        with np.errstate(invalid="ignore"):  # an overflow is seen by its value
            linear = self.matrix.T @ (self.shares * slope)
            slack = float(self.shares @ (losses - below))
            lowest = feasible.least(linear, self.pull)
            # ⟨g, u⟩ + pull/2·‖u‖² at the point, less the same at its least: as one sum, so that nothing cancels.
            stationarity = float((point - lowest) @ (linear + 0.5 * self.pull * (point + lowest)))
        value = float(self.shares @ losses) + 0.5 * self.pull * float(point @ point)
        return Look(value, max(slack, 0.0), max(stationarity, 0.0), linear + self.pull * point, curvature)

    def smooth_at(self, point: Vector) -> bool:
        """Whether the loss says that it curves upwards at every row: one with a kink says 0 there."""
        predictions = self.matrix @ point
        return all(bool((self._point(rows, predictions).curvature > 0.0).all()) for rows in self._chunks())

    def slope_along(self, point: Vector, step: Vector, width: float) -> Callable[[float], float]:
        """The stand-in's derivative in ``length`` at point + length·step."""
        predictions, change = self.matrix @ point, self.matrix @ step

        def slope_at(length: float) -> float:
            moved, total = predictions + length * change, 0.0
            for rows in self._chunks():
                slope = self._tangent(rows, moved, width).slope
                with np.errstate(invalid="ignore"):
                    total += float((self.shares[rows] * slope) @ change[rows])
            return total + self.pull * float((point + length * step) @ step)

        return slope_at

    def hessian(self, curvature: Vector) -> Vector:
        """Xᵀ diag(share·curvature) X with the ridge, from the rows that curve."""
        weight, dim = self.shares * curvature, self.matrix.shape[1]
        curved, total = np.flatnonzero(weight), np.zeros((dim, dim))
        sparse, few = hasattr(self.matrix, "tocsr"), ONE_THREAD // dim**2
        size = few if few >= 16 and not sparse else max(1, PIECE_VALUES // dim)
        for start in range(0, len(curved), size):
            rows = curved[start : start + size]
            piece = self.matrix[rows]
            if sparse:
                total += (piece.T @ piece.multiply(weight[rows, None]).tocsr()).toarray()
            else:
                total += piece.T @ (piece * weight[rows, None])
        total[np.diag_indices_from(total)] += self.pull
        return total

    @cached_property
    def label_size(self) -> float:
        """Of the largest label, or 1 where they are smaller."""
        return max(1.0, float(np.abs(self.labels).max()))

    def _chunks(self) -> list[slice]:
        return [slice(start, start + CHUNK) for start in range(0, len(self.labels), CHUNK)]

    def _point(self, rows: slice, predictions: Vector) -> Expected:
        """The loss itself; infinite where it overflows."""
        labels, predictions = self.labels[rows], predictions[rows]
        with np.errstate(all="ignore"):
            parts = self.loss.expected(labels, predictions, np.zeros_like(predictions), *self.loss.parameters)
        return Expected(*(np.broadcast_to(part, labels.shape) for part in parts))

    def _tangent(self, rows: slice, predictions: Vector, width: float) -> Tangent:
        if width == 0.0:
            return Tangent(*self._point(rows, predictions))
        left, right = self._point(rows, predictions - width), self._point(rows, predictions + width)
        with np.errstate(all="ignore"):
            rise = right.slope - left.slope
            bent = rise > 0.0
            chord = (right.value - left.value) / (2.0 * width)
            share = np.where(bent, np.clip((right.slope - chord) / np.where(bent, rise, 1.0), 0.0, 1.0), 0.5)
            below = share * (left.value + width * left.slope) + (1.0 - share) * (right.value - width * right.slope)
            return Tangent(below, share * left.slope + (1.0 - share) * right.slope, np.where(bent, rise, 0.0) / (2.0 * width))


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The average loss over a feasible set, through windows of one width: what Newton's method minimises."""

    average: AverageLoss
    feasible: FeasibleSet
    width: float
    tolerance: float

    @property
    def smooth(self) -> bool:
        return self.width == 0.0

    def look(self, point: Vector) -> Look:
        return self.average.look(point, self.width, self.feasible)

    def reachable(self, point: Vector) -> FeasibleSet:
        return self.feasible

    def hessian(self, point: Vector, look: Look) -> Vector:
        hessian = self.average.hessian(look.curvature)
        diagonal = np.diag_indices_from(hessian)
        curved = hessian[diagonal]
        hessian[diagonal] += SINGULAR * len(point) * np.where(curved > 0.0, curved, curved.mean() or 1.0)
        hessian[diagonal] += DAMPING * look.stationarity / self.feasible.extent**2
        return hessian

    def slope_along(self, point: Vector, step: Vector) -> Callable[[float], float]:
        return self.average.slope_along(point, step, self.width)

    def solved(self, best: Best[Look], look: Look) -> bool:
        if self.smooth:
            return best.gap <= min(self.tolerance, SMOOTH_TOLERANCE) * max(best.value, SMALLEST_VALUE)
        return self.good_enough(best) or self.narrowest or look.stationarity <= look.slack

    def good_enough(self, best: Best[Look]) -> bool:
        """Whether the gap is what was asked for."""
        return best.gap <= self.tolerance * max(best.value, SMALLEST_VALUE)

    @property
    def narrowest(self) -> bool:
        """Whether a narrower window would show roundings."""
        return 0.0 < self.width < 1e-14 * self.average.label_size


def minimise(average: AverageLoss, feasible: FeasibleSet, tolerance: float) -> Best[Look]:
    """The minimiser over the set, with gap ≤ tolerance·max(value, 0.01) where floats allow it."""
    point = feasible.nearest(np.zeros(average.matrix.shape[1]))
    width = 0.0 if average.smooth_at(point) else first_width(average, feasible, point)
    best: Best[Look] | None = None
    while True:
        problem = Smoothed(average, feasible, width, tolerance)
        point, best, stuck = newton.minimise(problem, point, best)
        if not math.isfinite(best.value):
            raise ValueError(f"{average.loss}: the loss overflows at the point nearest to 0; {average.loss.overflow_hint}")
        if problem.smooth:
            # Else there is a kink that the curvature did not tell of.
            finished = problem.good_enough(best) if stuck else problem.solved(best, best.look)
        else:
            finished = problem.good_enough(best) or problem.narrowest or stuck
        if finished:
            return best
        width = first_width(average, feasible, point) if problem.smooth else width * NARROWER


def first_width(average: AverageLoss, feasible: FeasibleSet, point: Vector) -> float:
    """The widest window, from the size of the labels down, whose slack stays below half of the loss."""
    width = 2.0 * average.label_size
    while width > 1e-12:
        look = average.look(point, width, feasible)
        if look.slack <= 0.5 * max(abs(look.value), SMALLEST_VALUE):  # False for NaN: an end of the window overflowed
            break
        width *= 0.5
    return width
