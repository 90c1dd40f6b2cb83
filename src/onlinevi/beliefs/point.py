"""A single point: no spread, no posterior. The belief of plain online gradient descent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

import numpy as np

from onlinevi.beliefs import forgetting
from onlinevi.beliefs.base import Ball, Box, Family, PerCoordinate, frozen, named_rows
from onlinevi.engine import Belief, Event, Gradient, Moments, Prior, Real, StepInputs, Totals, Vector, ns
from onlinevi.engine.holes import is_missing, missing_variance, new_belief, position, setting_at, split_tail, value
from onlinevi.engine.reading import add_moments


@dataclass(frozen=True)
class Point(Family):
    """A point that starts at ``prior_mean`` and stays in the box or ball."""

    prior_mean: PerCoordinate = 0.0
    box: Box | Ball | None = field(default_factory=Box)
    name: ClassVar[str] = "point"
    gaussian: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior_mean", frozen(self.prior_mean))

    def belief_size(self, dim: int) -> int:
        return dim

    def init(self, dim: int) -> Belief:
        return Belief(np.full(dim, self.prior_mean), np.zeros(dim))

    def pack(self, belief: Belief) -> Vector:
        return np.asarray(belief.mean, dtype=float)

    def unpack(self, packed: Vector, dim: int) -> Belief:
        std = np.zeros_like(packed)
        std.setflags(write=False)
        return Belief(packed, std)

    def sample(self, belief: Belief, rng: np.random.Generator, count: int | None = None) -> Vector:
        """The point itself, ``count`` times over if asked."""
        return np.array(belief.mean if count is None else np.tile(belief.mean, (count, 1)))

    def kl(self, belief: Belief, other: Belief | None = None) -> NoReturn:
        _no_density("KL divergence")

    def natural(self, belief: Belief) -> NoReturn:
        _no_density("natural parameters")

    def expectation(self, belief: Belief) -> NoReturn:
        _no_density("expectation parameters")

    def merge(self, beliefs: Sequence[Belief], start: Belief | None = None) -> NoReturn:
        _no_density("merge")

    # --- parts of the compiled loop

    @staticmethod
    def views(belief: Any, totals: Any, dim: int) -> Any:
        return belief, totals

    @staticmethod
    def interleaved_views(table: Any) -> Any:
        return table[:, 0], table[:, 1]

    @staticmethod
    def moments(views: Any, rows: Any, event: Event) -> Moments:
        whole, rest = split_tail(event)
        if whole.stop > whole.start:
            return add_moments(_moments_of(views, rows, whole), _moments_of(views, rows, rest))
        return _moments_of(views, rows, rest)  # the next event waits for every sum: a short row is quicker without this one

    @staticmethod
    def prefetch_row(views: Any, rows: Any, event: Event) -> None:
        mean, totals = views
        for k in range(event.start, event.stop):
            ns.prefetch(mean, position(rows, k))
            ns.prefetch(totals, position(rows, k))

    @staticmethod
    def missing_variance(views: Any, rows: Any, event: Event) -> Real:
        mean, _ = views
        total = 0.0
        for k in range(event.start, event.stop):
            j = position(rows, k)
            total += mean[j] * mean[j] if is_missing(rows, event, k) else 0.0
        return total

    @staticmethod
    def variance_after(views: Any, rows: Any, event: Event, law: Moments, growth: Real) -> tuple[Real, Real]:
        return 0.0, 0.0

    @staticmethod
    def squares(views: Any) -> tuple[Real, Real]:
        mean, _ = views
        total = 0.0
        for j in range(len(mean)):
            total += mean[j] * mean[j]
        return total, 0.0

    @staticmethod
    def advance(views: Any, rows: Any, event: Event, inputs: StepInputs, prior_and_box: Any) -> None:
        ns.short_vectors()
        mean, totals = views
        _, seen, taken, ridge, rates, _, _ = inputs
        box = named_rows(prior_and_box)
        for k in range(event.start, event.stop):
            j, x = position(rows, k), value(rows, event, k)
            now = Belief(mean[j], 1.0)  # a rule that scales by the std takes plain steps
            gradient, total = Gradient(taken.slope * x, 0.0), Totals(totals[j] + seen.slope * x, 0.0)
            if ridge > 0.0:
                gradient, total = Gradient(gradient.mean + ridge * now.mean, ridge), Totals(total.mean + ridge * now.mean, 0.0)
            prior = Prior(setting_at(box.prior_mean, j), setting_at(box.prior_std, j))
            new = new_belief(now, gradient, total, rates, prior)
            totals[j] = total.mean
            mean[j] = ns.minimum(ns.maximum(new.mean, setting_at(box.mean_low, j)), setting_at(box.mean_high, j))

    forget = staticmethod(forgetting.point)


def _no_density(what: str) -> NoReturn:
    raise TypeError(f"a Point has no density, hence no {what}: use MeanField()")


def _moments_of(views: Any, rows: Any, part: Event) -> Moments:
    ns.short_vectors()  # the next event waits for these sums; what is left behind the last long vector is summed after it
    mean, _ = views
    prediction = row_square = 0.0
    for k in range(part.start, part.stop):
        j, x = position(rows, k), value(rows, part, k)
        prediction += mean[j] * x
        row_square += x * x
    return Moments(prediction, 0.0, row_square, row_square, 0.0, missing_variance(views, rows, part))
