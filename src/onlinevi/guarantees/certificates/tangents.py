"""The sum of all tangents, as a function of the comparator: what (19) of the paper is in (a, v)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinevi.beliefs import longest_mean
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
        with np.errstate(over="ignore", invalid="ignore"):
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


def unit_of(state: State) -> float:
    """The share of the sizes of its summands by which a sum of a state can be off; infinite where floats say nothing.

    A sum of n terms errs by n·u/(1 − n·u) of their sizes, u = 2⁻⁵³ or in float32 2⁻²⁴, whatever the order.
    """
    share = FORMULA + float(np.finfo(state.plan.dtype).eps) * (state.count + state.plan.dim + 8.0)
    return share / (1.0 - share) if share < 1.0 else np.inf


def rounding(state: State, comparator: Any, *, curved: bool) -> Any:
    """How much rounding can change the bound at comparators of these lengths, at most; ``curved`` as in ``tangents``.

    It is ``unit_of`` the sizes of all summands, and these follow from the sums themselves: of Σ (e1·a + e2·v²) only e1·a
    can be below 0, and Σ |e1·a| is kept. By Cauchy–Schwarz Σ ‖gradient_t‖ ≤ √(n·Σ ‖gradient_t‖²). What a prediction lost to
    rounding costs nothing: the tangent is taken at the prediction that was made.
    """
    loss = state.plan.loss
    lengths = np.asarray(comparator, dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):
        products = abs(state.product) + 2.0 * state.magnitude
        above = 0.0 if loss.nonnegative else products + state.weight * loss.at_zero  # E_t ≤ ℓ_t(0) + its product
        expected = abs(state.expected_loss) + 2.0 * above
        pulled = loss.ridge * products  # at least Σ weight·ridge²·‖(mean, std)‖²: of a product all but e1·a is ≥ 0
        # With a ridge its part of the gradients may have cancelled the rest, and their squares in the sum too.
        steepness = np.sqrt(state.count * max(state.gradient_square, 0.0))
        if loss.ridge > 0.0:
            steepness = 2.0 * (steepness + np.sqrt(state.count * np.sqrt(state.weight_square) * pulled))
        sizes = expected + abs(state.loss) + 2.0 * above + products + lengths * (steepness + np.sqrt(state.weight * pulled))
        if curved:  # the sum of means is kept as t·(new − old mean): each addition errs by up to t·2⁻⁵³ of a mean
            sizes = sizes + loss.ridge * (state.square + state.count * np.square(lengths + _furthest(state)))
        changed = unit_of(state) * sizes
    return np.where(np.isnan(changed), np.inf, changed)


def _furthest(state: State) -> float:
    """How long a mean can have been: by the box or ball, or by Σ ‖(mean, std)‖², which is kept with a ridge."""
    seen = float(np.sqrt(state.square) + np.linalg.norm(state.mean))
    return min(longest_mean(state.plan.family, state.plan.dim), seen)
