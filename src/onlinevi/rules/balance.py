"""The two scalars of an implicit step: where the prediction and its spread come to rest.

    prediction = start − pull·e1(prediction, spread),   growth = rate·e2(prediction, spread),   spread² = V(growth) + missing

They are the stationary point of a strictly convex function, so there is one solution. Quasi-Newton steps find it in a few
evaluations of the loss; where they do not settle, bracketing does, always.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import Event, Expected, Moments, Real, Slopes, ns
from onlinevi.engine.holes import cast, expected, in_float32, variance_after

QUASI_NEWTON_STEPS = 12
BISECTIONS = 200
ROUNDING = 4e-16
SETTLED = 1e-11
"""A last quasi-Newton step this small, relatively, leaves an error of its size at most."""
FOUND = 1e-14
"""The same for Newton steps and for brackets, which only the slow way takes."""
LARGEST_LOG = 600.0
"""The precision grows by e^600 at most: far beyond what a float can tell from infinite."""
NEAR = 1e-3
"""From here on the tangent is moved along."""
TANGENT_HOLDS = 1e-8
"""A hyperbola that touches V is off by the square of the distance: below rounding within this."""
COARSENESS = math.sqrt(2.0**29)
"""Where V is summed in float32, it holds this many times as far: floats round 2²⁹ times as coarsely as doubles."""


class Problem(NamedTuple):
    """What stays fixed while an event's step is sought."""

    y: Real
    start: Real
    rate: Real
    pull: Real
    """How far a unit slope moves the prediction."""
    most: Real
    """The variance before the step."""
    missing_variance: Real
    """What missing values add to it, before the step and after."""


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


def coarseness() -> Real:
    return COARSENESS if in_float32() else 1.0


def spread_at(tangent: Tangent, problem: Problem, growth: Real) -> Real:
    scale = 1.0 + tangent.decay * (growth - tangent.growth)
    variance = tangent.variance / scale if tangent.variance < problem.most * scale else problem.most
    return ns.sqrt(variance + problem.missing_variance)


def touching(views: Any, rows: Any, event: Event, law: Moments, growth: Real) -> Tangent:
    variance, decay = variance_after(views, rows, event, law, cast(growth))
    return Tangent(growth, np.float64(variance), np.float64(decay / variance))


def balanced(problem: Problem, views: Any, rows: Any, event: Event, law: Moments, seen: Slopes, parameters: Any) -> Balance:
    """The solution by Broyden's method, from the belief before the step on, whose slopes were seen already.

    The derivatives of e2 are not at hand: they are learned from its differences.
    """
    prediction, growth, spread = problem.start, 0.0, ns.sqrt(problem.most + problem.missing_variance)
    loss = Expected(0.0, seen.slope, seen.curvature)
    rise = problem.rate * seen.curvature * problem.most
    if ns.maximum(ns.absolute(problem.pull * seen.slope) / spread, rise) <= SETTLED:  # nothing moves so far as to change them
        return Balance(prediction, problem.rate * seen.curvature, true_slope(problem, prediction, loss, 0.0))
    tangent = Tangent(0.0, problem.most, problem.most)  # near enough for small steps; on the way it is taken anew
    if rise > NEAR:
        tangent = touching(views, rows, event, law, problem.rate * seen.curvature)
    off, missing = problem.pull * seen.slope, -problem.rate * seen.curvature
    pp, pg, gp, gg = 1.0 + problem.pull * seen.curvature, 0.0, 0.0, 1.0
    for _ in range(QUASI_NEWTON_STEPS):
        determinant = pp * gg - pg * gp
        step, rise = (pg * missing - gg * off) / determinant, (gp * off - pp * missing) / determinant
        wide, tall = ns.absolute(prediction) + spread, 1.0 + growth * problem.most
        move = ns.maximum(ns.absolute(step) / wide, ns.absolute(rise) * problem.most / tall)
        if move <= SETTLED:
            # What was learned may be wrong, and a wrong step short: what is known must say so too, and the tangent hold.
            left = ns.absolute(off) / (wide * (1.0 + problem.pull * loss.curvature))
            shortfall = ns.absolute(missing) * problem.most / tall
            away = (growth - tangent.growth) * tangent.decay / coarseness()
            if ns.maximum(left, shortfall) > 10.0 * SETTLED:
                break
            if away * away <= 10.0 * SETTLED:
                drift = pg * rise / problem.pull
                return Balance(prediction + step, growth + rise, true_slope(problem, prediction, loss, drift))
        rise = ns.maximum(rise, -0.9 * growth)
        prediction, growth = prediction + step, growth + rise
        if move <= NEAR and ns.absolute(growth - tangent.growth) * tangent.decay > TANGENT_HOLDS * coarseness():
            tangent = touching(views, rows, event, law, growth)
        spread = spread_at(tangent, problem, growth)
        loss = expected(problem.y, prediction, spread, *parameters)
        off_before, missing_before = off, missing
        off = prediction - problem.start + problem.pull * loss.slope
        missing = growth - problem.rate * loss.curvature
        if not ns.isfinite(off + missing):
            break
        # In units of the spread and of the decay, a step in either scalar counts alike.
        p, g = step / (spread * spread), rise * tangent.decay * tangent.decay
        size = step * p + rise * g
        if move > SETTLED:  # else it is rounding that would be learned
            error, other = off - off_before - (pp * step + pg * rise), missing - missing_before - (gp * step + gg * rise)
            pp, pg = pp + error * p / size, pg + error * g / size
            gp, gg = gp + other * p / size, gg + other * g / size
    return bracketed(problem, views, rows, event, law, parameters)


def true_slope(problem: Problem, prediction: Real, loss: Expected, drift: Real) -> Real:
    """e1 at the root near ``prediction``, along the tangent of e1 and free of cancellation; ``drift`` is e1's change by the
    spread.
    """
    root_slope = loss.slope + loss.curvature * (problem.start - prediction) + drift
    return root_slope / (1.0 + problem.pull * loss.curvature)


def bracketed(problem: Problem, views: Any, rows: Any, event: Event, law: Moments, parameters: Any) -> Balance:
    """The solution by a bracket around g = log(1 + growth·most): log(1 + rate·e2·most) − g changes its sign there only.

    In these logs it is close to a line, so secants through the ends get there soon; every fourth step halves the bracket.
    """
    low, low_gap, high, high_gap, rose, middle = 0.0, 0.0, LARGEST_LOG, 0.0, False, 0.0
    near = FOUND * coarseness() * coarseness()
    for k in range(BISECTIONS):
        variance = touching(views, rows, event, law, (ns.exp(middle) - 1.0) / problem.most).variance
        spread = ns.sqrt(variance + problem.missing_variance)
        found = nearest(problem, spread, parameters)
        gap = ns.log1p(problem.rate * found.growth * problem.most) - middle
        if not (ns.absolute(gap) > near * (1.0 + middle) and high - low > near * (1.0 + high)):
            break
        # An end that stays twice counts half, or secants would never move it.
        if gap > 0.0:
            low, low_gap, high_gap, rose = middle, gap, 0.5 * high_gap if rose else high_gap, True
        else:
            high, high_gap, low_gap, rose = middle, gap, low_gap if rose else 0.5 * low_gap, False
        if high_gap == 0.0:
            middle = ns.minimum(low + 2.0 * low_gap, high)  # no bracket yet
        else:
            middle = low + (high - low) * low_gap / (low_gap - high_gap)
            if k % 4 == 0 or not low < middle < high:
                middle = 0.5 * (low + high)
    return Balance(found.prediction, problem.rate * found.growth, found.slope)


def nearest(problem: Problem, spread: Real, parameters: Any) -> Balance:
    """The prediction alone, at a fixed spread: the root of an increasing function. ``growth`` is the curvature e2 there."""
    point = low = high = problem.start
    low_loss = high_loss = Expected(0.0, 0.0, 0.0)
    before = last = math.inf
    halve = True
    for k in range(BISECTIONS):
        loss = expected(problem.y, point, spread, *parameters)
        off, stiffness = point - problem.start + problem.pull * loss.slope, 1.0 + problem.pull * loss.curvature
        step = ns.absolute(off) / stiffness
        scale, halving = ns.absolute(point) + spread, step <= 0.5 * before
        # Steps that no longer halve, so close to the root, are rounding.
        near = step <= FOUND * scale + ROUNDING * ns.absolute(problem.start) / stiffness
        if near or (step <= SETTLED * scale and not halving) or not ns.absolute(off) >= 0.0:  # or it is not a number
            return Balance(point, loss.curvature, true_slope(problem, point, loss, 0.0))
        if k == 0:
            low_loss, high_loss = loss, loss
        elif off < 0.0:
            low, low_loss = point, loss
        else:
            high, high_loss = point, loss
        guess = point - off / stiffness
        if k == 0:
            guess = point - off  # the slope falls on the way, so the root lies between
        # Newton's steps are taken while they halve (down an exponential each would be 1), or else, in turn, two others.
        elif not (halving and (low < guess < high or (loss.curvature > 0.0 and low <= guess <= high))):
            rounding = ROUNDING * (ns.absolute(low) + ns.absolute(high))
            if high - low <= 32.0 * rounding:
                break
            # Where the tangents at both ends meet; at a point, that is the kink of a loss made of two lines.
            meet = high_loss.value - low_loss.value + low_loss.slope * low - high_loss.slope * high
            guess, halve = meet / (low_loss.slope - high_loss.slope), not halve
            if spread == 0.0 and ns.absolute(high - guess) <= rounding:
                guess = high - 8.0 * rounding  # a kink as far as can be told from here: bring the other end near
            elif spread == 0.0 and ns.absolute(guess - low) <= rounding:
                guess = low + 8.0 * rounding
            elif halve or not low < guess < high:
                guess = between(problem.start, low, high)
        before, last, point = last, ns.absolute(guess - point), guess
    # On a kink the slope is whatever holds the prediction there.
    point = 0.5 * (low + high)
    kink_slope = ns.minimum(ns.maximum((problem.start - point) / problem.pull, low_loss.slope), high_loss.slope)
    return Balance(point, loss.curvature, kink_slope)


def between(start: Real, low: Real, high: Real) -> Real:
    """The middle of an interval on one side of ``start``, in logs of the distance from there where it spans magnitudes."""
    far = ns.maximum(ns.absolute(low - start), ns.absolute(high - start))
    near = ns.maximum(far - (high - low), ROUNDING * far)
    middle = start + ns.sqrt(near) * ns.sqrt(far) if low + high > 2.0 * start else start - ns.sqrt(near) * ns.sqrt(far)
    return middle if far > 16.0 * near and low < middle < high else 0.5 * (low + high)
