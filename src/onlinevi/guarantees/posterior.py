"""The variational posterior of a whole data set, with a certified gap: the update that the paper starts from, in hindsight.

F(q) = Σ E_q[ℓ_t] + KL(q‖prior)/rate is convex in (mean, std), so Newton's method finds its least value over the box. Replacing
each expected loss by its tangent gives a function that is nowhere above F, whose minimiser is SVA's closed form: its least
value is the certified lower bound, at any point and however rough the solution.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from onlinevi.beliefs import MeanField, edges
from onlinevi.data import as_labels, as_rows
from onlinevi.engine import Belief, Expected, Vector
from onlinevi.guarantees.comparator.domain import Cuboid
from onlinevi.guarantees.comparator.objective import ONE_THREAD
from onlinevi.learners import BadRow
from onlinevi.losses import Loss
from onlinevi.rules import Rate, as_rate, shrink

SMALLEST_CHUNK, LARGEST_CHUNK = 64, 8192
"""Rows at a time: few enough for one thread and the processor's cache, enough to be worth a call."""

MOST_FEATURES = 2_000
MOST_STEPS = 200
SMALLEST_VALUE = 0.01
"""A tolerance is relative to the value, or to this where the value is smaller."""

WIDER = 1e-4
"""The relative change of a spread that shows how the loss bends in it."""

FURTHEST_MEAN, FURTHEST_STD = 1000.0, 5.0
"""A step moves a mean by at most 1000 stds and a std by at most a factor of 5: no quadratic tells what lies beyond."""

GENTLE, FASTER, ROUGHLY = 100.0, 10.0, 0.1
"""The first rate lets the data narrow the prior's variance 100 to 1000 times, the next ones ten times more each; a belief on
the way may be off by a tenth of a nat."""

SUFFICIENT, SHORTEST = 1e-4, 1e-10
RESOLUTION = 1e-13


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
    if not isinstance(loss, Loss):
        hint = f"; write {loss.__name__}()" if isinstance(loss, type) else ""
        raise TypeError(f"loss={loss!r}: needs a loss object{hint}")
    if not loss.convex:
        raise ValueError(f"{loss} is not convex: no bound from tangents holds, so no minimiser can be certified")
    if not isinstance(family := family if family is not None else MeanField(), MeanField):
        raise TypeError(f"family={family!r}: needs MeanField()")
    if not tolerance > 0.0:
        raise ValueError(f"tolerance={tolerance!r}: a tolerance must be > 0; try 1e-6")
    rate = as_rate(rate)
    if rate.varies or rate.per_variance:
        raise ValueError(f"{rate}: one posterior has one rate; try Constant(1.0) or PerHorizon(1.0)")
    matrix, labels = _data(X, y, loss)
    return _minimise(Objective(loss, matrix, labels, rate.schedule(len(labels)).scale, family), tolerance)


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


@dataclass(frozen=True, eq=False)
class Objective:
    """F, its gradient, its curvature and the bound below it."""

    loss: Loss
    matrix: Vector
    labels: Vector
    rate: float
    family: MeanField
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
    def pull(self) -> float:
        """The ridge of the sum."""
        return self.loss.ridge * len(self.labels)

    @property
    def stiffness(self) -> Vector:
        """The curvature that prior and ridge give to each mean: F is at least as strongly convex as the least of them."""
        return np.asarray(self.prior.std**-2.0 / self.rate + self.pull)

    @np.errstate(all="ignore")  # an overflow is seen by its value
    def look(self, belief: Belief) -> Look:
        mean, std = belief
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
        gradient = np.concatenate(
            [
                slope_sum + self.pull * mean + (mean - self.prior.mean) / (self.rate * self.prior.std**2),
                along_std + self.stiffness * std - 1.0 / (self.rate * std),
            ]
        )
        gap = self._gap(belief, slope_sum, along_std)
        row_losses = Expected(value, slope, curvature)
        return Look(expected_loss, kl, expected_loss + kl / self.rate, gap, gradient, prediction, spread, row_losses)

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

    def hessian(self, belief: Belief, look: Look) -> Vector:
        """Of F in (mean, std)."""
        std, dim = belief.std, len(belief.std)
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

    def around(self, belief: Belief) -> Cuboid:
        """The part of the box that one step may reach."""
        mean, std = belief
        low = np.maximum(self.low.mean, mean - FURTHEST_MEAN * std), np.maximum(self.low.std, std / FURTHEST_STD)
        high = np.minimum(self.high.mean, mean + FURTHEST_MEAN * std), np.minimum(self.high.std, std * FURTHEST_STD)
        return Cuboid(np.concatenate(low), np.concatenate(high))

    def _chunks(self, products: int) -> list[slice]:
        """The rows in pieces, each of which takes this many multiplications a row."""
        size = min(max(ONE_THREAD // products, SMALLEST_CHUNK), LARGEST_CHUNK)
        return [slice(start, start + size) for start in range(0, len(self.labels), size)]

    def _expected(self, rows: slice, prediction: Vector, spread: Vector) -> Expected:
        """The loss, infinite where it overflows."""
        with np.errstate(all="ignore"):
            parts = self.loss.expected(self.labels[rows], prediction, spread, *self.loss.parameters)
        return Expected(*(np.broadcast_to(part, prediction.shape) for part in parts))


def _minimise(objective: Objective, tolerance: float) -> BatchVB:
    """Newton's method from the prior, through smaller rates first: a std that shrinks before its mean is right blinds it."""
    belief = objective.prior
    look = objective.look(belief)
    if not np.isfinite(look.value):
        raise ValueError(f"{objective.loss}: the loss overflows under the prior; {objective.loss.overflow_hint}")
    for rate in _rates(objective, look):
        enough = 0.0 if rate == objective.rate else ROUGHLY / rate
        belief, look, bound = _newton(replace(objective, rate=rate), belief, enough, tolerance)
    return BatchVB(*belief, objective.rate, look.expected_loss, look.kl, max(look.value - bound, 0.0))


def _rates(objective: Objective, start: Look) -> list[float]:
    """The rate, after smaller ones at which the data say little more than the prior."""
    rates = [objective.rate]
    told = float(np.max(start.loss.curvature @ np.square(objective.matrix) * np.square(objective.prior.std)))
    while rates[0] * told > GENTLE * FASTER:
        rates.insert(0, rates[0] / FASTER)
    return rates


def _newton(objective: Objective, belief: Belief, enough: float, tolerance: float) -> tuple[Belief, Look, float]:
    """Steps kept in the box and shortened until F goes down. Returns the last belief and the highest bound seen."""
    look = objective.look(belief)
    bound = look.value - look.gap
    for _ in range(MOST_STEPS):
        if look.value - bound <= max(enough, tolerance * max(abs(look.value), SMALLEST_VALUE)):
            break
        box, point = objective.around(belief), np.concatenate(belief)
        step = box.newton_step(point, look.gradient, objective.hessian(belief, look))
        promised, length = float(look.gradient @ step), 1.0
        moved, ahead = belief, look
        while length > SHORTEST:
            moved = objective.family.unpack(box.nearest(point + length * step), len(objective.prior.mean))
            ahead = objective.look(moved)
            if ahead.value <= look.value + SUFFICIENT * length * promised + RESOLUTION * abs(look.value):
                break
            length *= 0.5
        if length <= SHORTEST or not promised < 0.0:
            break  # as near as floats come
        belief, look = moved, ahead
        bound = max(bound, look.value - look.gap)
    return belief, look, bound


def _data(X: Any, y: Any, loss: Loss) -> tuple[Vector, Vector]:
    """The data as float64 in memory, checked."""
    rows, labels = as_rows(X, filled=True), as_labels(y, loss.label_hint)
    if rows.count == 0 or rows.dim == 0:
        raise ValueError(f"X has {rows.count} rows and {rows.dim} features: needs at least one of each")
    if rows.dim > MOST_FEATURES:
        raise ValueError(f"X has {rows.dim} features: the minimiser keeps their products, so at most {MOST_FEATURES}")
    if len(labels) != rows.count:
        raise ValueError(f"X has {rows.count} rows, y {len(labels)} labels: needs one label a row")
    valid = np.asarray(loss.valid_label(labels, *loss.parameters))
    if not valid.all():
        refused = int(np.flatnonzero(~valid)[0])
        raise BadRow(refused, loss.refuse_label(labels[refused]))
    matrix = np.asarray(rows.block(0, rows.count), dtype=np.float64)
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        refused = int(np.flatnonzero(~finite)[0])
        bad = matrix[refused][~np.isfinite(matrix[refused])][0]
        raise BadRow(refused, f"a feature is {bad}: needs finite numbers; drop the row, or fill it in")
    return matrix, labels
