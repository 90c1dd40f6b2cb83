"""Independent Gaussian coordinates: N(mean, diag std²)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onlinevi.beliefs import forgetting
from onlinevi.beliefs.ball_steps import both_into_ball
from onlinevi.beliefs.base import Ball, Box, Family, PerCoordinate, PriorAndBox, check_std, frozen, named_rows
from onlinevi.engine import Belief, Event, Gradient, Moments, Prior, Real, StepInputs, Totals, Vector, ns
from onlinevi.engine.holes import (
    is_missing,
    keeps_std_total,
    missing_variance,
    move_coordinate,
    new_belief,
    position,
    setting_at,
    small_step,
    split_tail,
    value,
    with_kept_std,
)
from onlinevi.engine.reading import add_moments


class Natural(NamedTuple):
    """λ = (mean/std², −1/(2std²))."""

    first: Vector
    second: Vector


class Expectation(NamedTuple):
    """μ = (E[θ], E[θ²])."""

    first: Vector
    second: Vector


@dataclass(frozen=True)
class MeanField(Family):
    """A Gaussian with independent coordinates, from the prior N(prior_mean, prior_std²) on, in the box or ball."""

    prior_mean: PerCoordinate = 0.0
    prior_std: PerCoordinate = 1.0
    box: Box | Ball | None = field(default_factory=Box)
    name: ClassVar[str] = "mean-field"
    gaussian: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior_mean", frozen(self.prior_mean))
        object.__setattr__(self, "prior_std", frozen(self.prior_std))
        check_std(self.prior_std)

    @property
    def _prior_std(self) -> PerCoordinate:
        return self.prior_std

    def belief_size(self, dim: int) -> int:
        return 2 * dim

    def init(self, dim: int) -> Belief:
        return Belief(np.full(dim, self.prior_mean), np.full(dim, self.prior_std))

    def pack(self, belief: Belief) -> Vector:
        return np.concatenate([belief.mean, belief.std])

    def unpack(self, packed: Vector, dim: int) -> Belief:
        return Belief(packed[:dim], packed[dim:])

    def kl(self, belief: Belief, other: Belief | None = None) -> float:
        """KL(belief‖other) (paper, section 4), by default to the prior; infinite where a std is 0 and the other's is not."""
        other = other or self.init(len(belief.mean))
        with np.errstate(divide="ignore"):
            ratio = np.asarray(belief.std) / other.std
            shift = (np.asarray(belief.mean) - other.mean) / other.std
            return float(0.5 * np.sum(shift**2 + ratio**2 - 1.0 - 2.0 * np.log(ratio)))

    def sample(self, belief: Belief, rng: np.random.Generator, count: int | None = None) -> Vector:
        """One draw of the weights, or ``count`` of them as rows."""
        shape = np.shape(belief.mean) if count is None else (count, *np.shape(belief.mean))
        return np.asarray(belief.mean + belief.std * rng.standard_normal(shape))

    def natural(self, belief: Belief) -> Natural:
        """λ of a belief with positive stds."""
        precision = _precision(belief)
        return Natural(belief.mean * precision, -0.5 * precision)

    def from_natural(self, natural: Natural) -> Belief:
        """The belief of λ; the second part must be negative."""
        if not (np.asarray(natural.second) < 0.0).all():
            raise ValueError("no Gaussian has these natural parameters: the second part is −1/(2·std²), below 0 everywhere")
        variance = -0.5 / natural.second
        return Belief(natural.first * variance, np.sqrt(variance))

    def expectation(self, belief: Belief) -> Expectation:
        """μ of a belief."""
        return Expectation(np.array(belief.mean), np.square(belief.mean) + np.square(belief.std))

    def from_expectation(self, expectation: Expectation) -> Belief:
        """The belief of μ. A std that is small beside its mean has lost digits in E[θ²]: (mean/std)²·1e-16 of it."""
        variance = expectation.second - np.square(expectation.first)
        if not (variance >= 0.0).all():
            raise ValueError("no Gaussian has these expectation parameters: E[θ²] is below E[θ]²")
        return Belief(np.array(expectation.first), np.sqrt(variance))

    def caught_up(self, belief: Belief, discount: float, events: Vector) -> Belief:
        return forgetting.caught_up(belief, self.prior_and_box(len(belief.mean)), discount, events)

    # --- parts of the compiled loop

    @staticmethod
    def views(belief: Any, totals: Any, dim: int) -> Any:
        return belief[:dim], belief[dim:], totals[:dim], totals[dim:]

    @staticmethod
    def interleaved_views(table: Any) -> Any:
        return table[:, 0], table[:, 1], table[:, 2], table[:, 3 if keeps_std_total() else 2]

    @staticmethod
    def moments(views: Any, rows: Any, event: Event) -> Moments:
        whole, rest = split_tail(event)
        return add_moments(_moments_of(views, rows, whole), _moments_of(views, rows, rest))

    @staticmethod
    def prefetch_row(views: Any, rows: Any, event: Event) -> None:
        mean, std, mean_total, std_total = views
        for k in range(event.start, event.stop):
            j = position(rows, k)
            ns.prefetch(mean, j)
            ns.prefetch(std, j)
            ns.prefetch(mean_total, j)
            if keeps_std_total():
                ns.prefetch(std_total, j)

    @staticmethod
    def missing_variance(views: Any, rows: Any, event: Event) -> Real:
        mean, std, _, _ = views
        total = 0.0
        for k in range(event.start, event.stop):
            j = position(rows, k)
            total += mean[j] * mean[j] + std[j] * std[j] if is_missing(rows, event, k) else 0.0
        return total

    @staticmethod
    def variance_after(views: Any, rows: Any, event: Event, law: Moments, growth: Real) -> tuple[Real, Real]:
        _, std, _, _ = views
        variance = decay = 0.0
        for k in range(event.start, event.stop):
            spread = std[position(rows, k)] * value(rows, event, k)
            part = spread * spread / (1.0 + growth * spread * spread)
            variance += part
            decay += part * part
        return variance, decay

    @staticmethod
    def squares(views: Any) -> tuple[Real, Real]:
        mean, std, _, _ = views
        means = stds = 0.0
        for j in range(len(mean)):
            means += mean[j] * mean[j]
            stds += std[j] * std[j]
        return means, stds

    @staticmethod
    def advance(views: Any, rows: Any, event: Event, inputs: StepInputs, prior_and_box: Any) -> None:
        mean, std, mean_total, std_total = views
        box = named_rows(prior_and_box)
        for k in range(event.start, event.stop):
            j = position(rows, k)
            totals = Totals(mean_total[j], std_total[j] if keeps_std_total() else 0.0)
            new, totals = move_coordinate(Belief(mean[j], std[j]), totals, value(rows, event, k), inputs, box, j)
            mean[j], std[j], mean_total[j] = new.mean, new.std, totals.mean
            if keeps_std_total():
                std_total[j] = totals.std

    @staticmethod
    def advance_vectorised(views: Any, rows: Any, event: Event, inputs: StepInputs, prior_and_box: Any) -> None:
        """The same for a sparse row: a few coordinates at a time are stepped as vectors, and then each is written home.

        A compiler that does not know the coordinates to differ would take them one by one.
        """
        mean, std, mean_total, _ = views
        box = named_rows(prior_and_box)
        means, stds, totals = ns.scratch(mean), ns.scratch(mean), ns.scratch(mean)
        first = event.start
        while first < event.stop:
            count = min(np.uint64(ns.SCRATCH), event.stop - first)
            for i in range(count):
                j = position(rows, first + i)
                now, total = Belief(mean[j], std[j]), Totals(mean_total[j], 0.0)
                new, total = move_coordinate(now, total, value(rows, event, first + i), inputs, box, j)
                means[i], stds[i], totals[i] = new.mean, new.std, total.mean
            for i in range(count):
                j = position(rows, first + i)
                mean[j], std[j], mean_total[j] = means[i], stds[i], totals[i]
            first += count

    forget = staticmethod(forgetting.mean_field)
    forgets_late: ClassVar[bool] = True
    catch_up = staticmethod(forgetting.catch_up)
    put_back = staticmethod(forgetting.put_back)
    into_ball = staticmethod(both_into_ball)

    @classmethod
    def coordinate_step(cls, *, floored: bool) -> Callable[..., Any]:
        return _stepped_above_floor if floored else _stepped


def _precision(belief: Belief) -> Vector:
    zero = np.flatnonzero(np.asarray(belief.std) <= 0.0)
    if len(zero):
        raise ValueError(
            f"coordinate {zero[0]} has std 0: it has no natural parameters; use a rule that keeps std > 0 (SVA, NGVI)"
        )
    return np.asarray(1.0 / np.square(belief.std))


def _moments_of(views: Any, rows: Any, part: Event) -> Moments:
    mean, std, _, _ = views
    prediction = variance = row_square = spread_square = 0.0
    for k in range(part.start, part.stop):
        j, x = position(rows, k), value(rows, part, k)
        spread = std[j] * x
        prediction += mean[j] * x
        variance += spread * spread
        row_square += x * x
        spread_square += (spread * x) * (spread * x)
    return Moments(prediction, variance, variance, row_square, spread_square, missing_variance(views, rows, part))


def _stepped(now: Belief, totals: Totals, x: Real, inputs: StepInputs, box: PriorAndBox, j: int) -> tuple[Belief, Totals]:
    """One coordinate behind an event, and its sums with it."""
    _, seen, taken, ridge, rates, _, small = inputs
    gradient, slope = Gradient(taken.slope * x, taken.curvature * x * x), seen.slope * x
    if ridge > 0.0:
        gradient = Gradient(gradient.mean + ridge * now.mean, gradient.curvature + ridge)
        slope += ridge * now.mean
    totals = Totals(totals.mean + slope, totals.std + gradient.curvature * now.std if keeps_std_total() else totals.std)
    prior = Prior(setting_at(box.prior_mean, j), setting_at(box.prior_std, j))
    if small:  # no std can leave its box
        new = small_step(now, gradient, totals, rates, prior)
        std = new.std
    else:
        new = new_belief(now, gradient, totals, rates, prior)
        std = ns.minimum(ns.maximum(new.std, setting_at(box.std_low, j)), setting_at(box.std_high, j))
    mean = ns.minimum(ns.maximum(new.mean, setting_at(box.mean_low, j)), setting_at(box.mean_high, j))
    return Belief(mean, std), totals


def _stepped_above_floor(
    now: Belief, totals: Totals, x: Real, inputs: StepInputs, box: PriorAndBox, j: int
) -> tuple[Belief, Totals]:
    """The same where the mean moves with the std that the box has kept."""
    new, totals = _stepped(now, totals, x, inputs, box, j)
    taken, ridge = inputs.taken, inputs.ridge
    gradient = Gradient(taken.slope * x + ridge * now.mean, taken.curvature * x * x + ridge)
    kept = with_kept_std(
        new.std, now, gradient, inputs.rates, Prior(setting_at(box.prior_mean, j), setting_at(box.prior_std, j))
    )
    mean = ns.minimum(ns.maximum(kept.mean, setting_at(box.mean_low, j)), setting_at(box.mean_high, j))
    return Belief(mean, new.std), totals
