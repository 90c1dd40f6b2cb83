"""The two scalars of an implicit step: where the prediction and its spread come to rest.

    prediction = start − pull·e1(prediction, spread),   growth = rate·e2(prediction, spread),   spread² = V(growth)

They are the stationary point of a strictly convex function, so there is one solution. Quasi-Newton steps find it in a few
evaluations of the loss; where they do not settle, bracketing does, always.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from onlinevi import ns
from onlinevi.contract import expected, variance_after
from onlinevi.types import Expected, Real, Slopes

QUASI_NEWTON_STEPS = 12
BISECTIONS = 200
ROUNDING = 4e-16
SETTLED = 1e-9
"""A last step this small, relatively, leaves an error far below it."""
NEAR = 1e-3
"""From here on the tangent is moved along."""
TANGENT_HOLDS = 1e-8
"""A hyperbola that touches V is off by the square of the distance: below rounding within this."""


class Problem(NamedTuple):
    """What stays fixed while an event's step is sought."""

    y: Real
    start: Real
    rate: Real
    pull: Real
    """How far a unit slope moves the prediction."""
    most: Real
    """The variance before the step."""


class Tangent(NamedTuple):
    """V(growth) by the hyperbola V₀/(1 + decay·(growth − growth₀)) that touches it at growth₀."""

    growth: Real
    variance: Real
    decay: Real


class Balance(NamedTuple):
    """A solution, and the slope e1 there."""

    prediction: Real
    growth: Real
    slope: Real


def spread_at(tangent: Tangent, most: Real, growth: Real) -> Real:
    scale = 1.0 + tangent.decay * (growth - tangent.growth)
    return ns.sqrt(tangent.variance / scale) if tangent.variance < most * scale else ns.sqrt(most)


def touching(place: Any, growth: Real) -> Tangent:
    variance, decay = variance_after(*place, growth)
    return Tangent(growth, variance, decay / variance)


def balanced(problem: Problem, place: Any, seen: Slopes, parameters: Any) -> Balance:
    """The solution by Broyden's method, from the belief before the step on, whose slopes were seen already.

    The derivatives of e2 are not at hand: they are learned from its differences.
    """
    prediction, growth, spread = problem.start, 0.0, ns.sqrt(problem.most)
    loss = Expected(0.0, seen.slope, seen.curvature)
    tangent = touching(place, problem.rate * seen.curvature)
    off, missing = problem.pull * seen.slope, -problem.rate * seen.curvature
    pp, pg, gp, gg = 1.0 + problem.pull * seen.curvature, 0.0, 0.0, 1.0
    for _ in range(QUASI_NEWTON_STEPS):
        determinant = pp * gg - pg * gp
        step = (pg * missing - gg * off) / determinant
        rise = ns.maximum((gp * off - pp * missing) / determinant, -0.9 * growth)
        move = ns.maximum(ns.absolute(step) / (ns.absolute(prediction) + spread), ns.absolute(rise) * problem.most)
        if move <= SETTLED:
            return Balance(prediction + step, growth + rise, true_slope(problem, prediction, loss, pg * rise))
        prediction, growth = prediction + step, growth + rise
        if move <= NEAR and ns.absolute(growth - tangent.growth) * tangent.decay > TANGENT_HOLDS:
            tangent = touching(place, growth)
        spread = spread_at(tangent, problem.most, growth)
        loss = expected(problem.y, prediction, spread, *parameters)
        off_before, missing_before = off, missing
        off = prediction - problem.start + problem.pull * loss.slope
        missing = growth - problem.rate * loss.curvature
        if not ns.isfinite(off + missing):
            break
        # In units of the spread and of the decay, a step in either scalar counts alike.
        p, g = step / (spread * spread), rise * tangent.decay * tangent.decay
        size = step * p + rise * g
        error, other = off - off_before - (pp * step + pg * rise), missing - missing_before - (gp * step + gg * rise)
        pp, pg = pp + error * p / size, pg + error * g / size
        gp, gg = gp + other * p / size, gg + other * g / size
    return bracketed(problem, place, parameters)


def true_slope(problem: Problem, prediction: Real, loss: Expected, drift: Real) -> Real:
    """e1 at the root near ``prediction``, along the tangent of e1 and free of cancellation; ``drift`` is pull·(change of e1
    by the spread).
    """
    ahead = loss.slope + loss.curvature * (problem.start - prediction) + drift / problem.pull
    return ahead / (1.0 + problem.pull * loss.curvature)


def bracketed(problem: Problem, place: Any, parameters: Any) -> Balance:
    """The solution by halving an interval of growths: rate·e2 − growth changes its sign there only."""
    low, high = 0.0, 1.0 / problem.most
    found = nearest(problem, ns.sqrt(touching(place, high).variance), parameters)
    while problem.rate * found.growth > high:
        low, high = high, 4.0 * high
        found = nearest(problem, ns.sqrt(touching(place, high).variance), parameters)
    for _ in range(BISECTIONS):
        if high - low <= ROUNDING * high:
            break
        middle = 0.5 * (low + high) if high < 4.0 * low else ns.sqrt(ns.maximum(low, 1e-8 * high)) * ns.sqrt(high)
        found = nearest(problem, ns.sqrt(touching(place, middle).variance), parameters)
        if problem.rate * found.growth > middle:
            low = middle
        else:
            high = middle
    return Balance(found.prediction, high, found.slope)


def nearest(problem: Problem, spread: Real, parameters: Any) -> Balance:
    """The prediction alone, at a fixed spread: the root of an increasing function. ``growth`` is the curvature e2 there."""
    point, loss = problem.start, expected(problem.y, problem.start, spread, *parameters)
    low, high = point, point - problem.pull * loss.slope
    low_loss, high_loss = loss, expected(problem.y, high, spread, *parameters)
    if high_loss.slope == low_loss.slope:
        return Balance(high, high_loss.curvature, high_loss.slope)
    if high < low:
        low, low_loss, high, high_loss = high, high_loss, low, low_loss
    for _ in range(BISECTIONS):
        step = (point - problem.start + problem.pull * loss.slope) / (1.0 + problem.pull * loss.curvature)
        guess = point - step
        if ns.absolute(step) <= SETTLED * (ns.absolute(point) + spread):
            break
        if not low < guess < high:
            # Where the tangents at both ends meet; at a point, that is the kink of a loss made of two lines.
            meet = high_loss.value - low_loss.value + low_loss.slope * low - high_loss.slope * high
            guess = meet / (low_loss.slope - high_loss.slope)
            rounding = ROUNDING * (ns.absolute(low) + ns.absolute(high))
            if high - low <= rounding or (spread == 0.0 and (guess - low <= rounding or high - guess <= rounding)):
                # On a kink the slope is whatever holds the prediction there.
                return Balance(guess, loss.curvature, (problem.start - guess) / problem.pull)
            if not low < guess < high or (spread > 0.0 and (guess - low <= rounding or high - guess <= rounding)):
                guess = 0.5 * (low + high)
        point, loss = guess, expected(problem.y, guess, spread, *parameters)
        if point - problem.start + problem.pull * loss.slope < 0.0:
            low, low_loss = point, loss
        else:
            high, high_loss = point, loss
    return Balance(point, loss.curvature, true_slope(problem, point, loss, 0.0))
