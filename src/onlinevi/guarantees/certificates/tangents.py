"""The sum of all tangents, as a function of the comparator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.guarantees.comparator.feasible_set import FeasibleSet
from onlinevi.learners import State

UNIT = 0.5 * float(np.finfo(float).eps)

FORMULA = 3e-11
"""The closed forms of the losses and of their slopes are this good, relative: the logistic curvature is the least exact."""


@dataclass(frozen=True, eq=False)
class Tangents:
    """regret(u) ≤ constant − ⟨gradient, u⟩ − curvature/2·‖u‖², for every point u."""

    constant: float
    gradient: Vector
    curvature: float
    """0, or where a ridge is part of the loss and its sums are known, the ridge times the number of events."""

    def against(self, points: Any) -> Any:
        """The bound at one point, or at each row of a matrix."""
        points = np.asarray(points, dtype=float)
        return self.constant - points @ self.gradient - 0.5 * self.curvature * np.sum(points * points, axis=-1)

    def most(self, feasible: FeasibleSet) -> float:
        """The bound against every point of the set: a closed form."""
        return float(self.against(feasible.least(self.gradient, self.curvature)))


def tangents(state: State, since: State | None, *, curved: bool) -> Tangents:
    """What the sums of a state say of its events, or of those after ``since``.

    ``curved`` uses the ridge's own term: it is quadratic, so its tangent lies ridge/2·‖u − decision‖² below it, and that
    sum is known from Σ ‖(mean, std)‖² and Σ mean where every row weighs 1.
    """

    def change(name: str) -> Any:
        now = getattr(state, name)
        return now if since is None else now - getattr(since, name)

    # Jensen's gap Σ (E_t − ℓ_t(mean)) ≥ 0 is what the decision, a mean, gains over its belief.
    constant = change("product") - (change("expected_loss") - change("loss"))
    if not curved:
        return Tangents(float(constant), np.array(change("gradient")), 0.0)
    ridge = state.plan.loss.ridge
    means = _sum_of_means(state) - (0.0 if since is None else _sum_of_means(since))
    return Tangents(
        float(constant - 0.5 * ridge * change("square")), change("gradient") - ridge * means, ridge * change("count")
    )


def _sum_of_means(state: State) -> Vector:
    return state.count * state.average_mean


def rounding(state: State, comparator: float, furthest: float, *, curved: bool) -> float:
    """How much rounding can change the bound at a comparator of this length, at most, for decisions up to ``furthest`` long.

    A sum of n terms errs by n·2⁻⁵³ of their sizes, in float32 by n·2⁻²⁴, and by Cauchy–Schwarz
    Σ ‖gradient_t‖ ≤ √(n·Σ ‖gradient_t‖²). What a prediction lost to rounding costs nothing: the tangent is taken at the
    prediction that was made.
    """
    unit = FORMULA + float(np.finfo(state.plan.dtype).eps) * (state.count + state.plan.dim + 8.0)
    steepness = np.sqrt(state.count * state.gradient_square)
    size = abs(state.expected_loss) + abs(state.loss) + (comparator + 2.0 * furthest) * steepness
    if state.plan.missing:  # Σ e2·missing_variance is at most Σ (e1·a + e2·v²) + Σ |e1·a|
        size += abs(state.product) + furthest * steepness
    if curved:  # the sum of means is kept as t·(new − old mean): each addition errs by up to t·2⁻⁵³ of a mean
        size += state.plan.loss.ridge * state.count * (comparator + furthest) ** 2
    return float(unit * size)
