"""The two scalars of an implicit step: where the prediction and its spread come to rest.

    prediction = start − pull·e1(prediction, spread),   growth = rate·e2(prediction, spread),   spread² = V(growth) + missing

They are the stationary point of a strictly convex function, so there is one solution. Newton's steps on a model of e2 that is
learned on the way find it in a few evaluations of the loss; where they do not settle, bracketing does, always.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import Event, Expected, Moments, Real, Slopes, ns
from onlinevi.engine.holes import cast, expected, in_float32, is_one_hyperbola, is_quadratic, variance_after

MODEL_STEPS = 16
BISECTIONS = 200
ROUNDING = 4e-16
SETTLED = 1e-11
"""A last quasi-Newton step this small, relatively, leaves an error of its size at most."""
FOUND = 1e-14
"""The same for Newton steps and for brackets, which only the slow way takes."""
LARGEST_LOG = 600.0
"""The precision grows by e^600 at most: far beyond what a float can tell from infinite."""
LONGEST = 2.0
"""A first step is no longer than this, in spreads and in log(1 + growth·most), and no later one in the latter."""
LENGTHENED = 3.0
"""A step that was good may be followed by one so many times as long."""
LEAST_CHANGE = 1e-2
"""How much a model holds on to what it was, beside what two evaluations say of it."""
STEEPEST, MOST_BENT = 6.0, 20.0
"""What a model learns of a long step is no more than this."""
STRAIGHT = 0.3
"""A prediction that changes log e2 by less than this leaves e1 a line."""
STRAIGHTEST = 1e-6
"""Within a last step this short e1 and growth are lines to rounding."""
NO_LOGARITHM = 0.1
"""2x/(2 + x) serves as log(1 + x) here: both are 0 at 0, as steep, and as bent."""
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


class Model(NamedTuple):
    """e2 around an evaluation: log e2 is linear in the prediction and in the logarithm of the squared spread.

    E is convex in prediction and spread together, so 1 + 2·bend ≥ (tilt·spread)², with equality at every spread for a loss
    made of two lines. So the steps that follow are downhill, and their determinant is at least ½.
    """

    tilt: Real
    """∂log e2/∂prediction."""
    bend: Real
    """∂log e2/∂log spread²."""


class Place(NamedTuple):
    """Where the loss was evaluated, and what is missing there."""

    prediction: Real
    growth: Real
    spread: Real
    slope: Real
    curvature: Real
    off: Real
    """prediction − start + pull·e1."""
    short: Real
    """log(1 + growth·most) − log(1 + rate·e2·most)."""


class Jacobian(NamedTuple):
    """The derivatives of ``off`` and ``short`` by the prediction and by log(1 + growth·most)."""

    pp: Real
    pg: Real
    gp: Real
    gg: Real


def balanced(problem: Problem, views: Any, rows: Any, event: Event, law: Moments, seen: Slopes, parameters: Any) -> Balance:
    """The solution by Newton's method in the prediction and log(1 + growth·most), from the belief before the step on.

    ∂e1/∂prediction is e2. The derivatives of e2 are not at hand: a model learns them from its differences, and from those of
    e1, for ∂e1/∂spread² = ½·∂e2/∂prediction.
    """
    spread = ns.sqrt(problem.most + problem.missing_variance)
    risen = problem.rate * seen.curvature * problem.most
    if ns.maximum(ns.absolute(problem.pull * seen.slope) / spread, risen) <= SETTLED:  # nothing moves so far as to change them
        here = Expected(0.0, seen.slope, seen.curvature)
        return Balance(problem.start, problem.rate * seen.curvature, true_slope(problem, problem.start, here, 0.0))
    place = Place(problem.start, 0.0, spread, seen.slope, seen.curvature, problem.pull * seen.slope, -risen / (1.0 + risen))
    tangent, model = Tangent(0.0, problem.most, problem.most), Model(0.0, 0.0)
    jacobian = Jacobian(1.0 + problem.pull * seen.curvature, 0.0, 0.0, 1.0)
    # The first step knows nothing of e2's changes: growth = rate·e2, without a logarithm where it is short.
    step, growth = -place.off / jacobian.pp, problem.rate * seen.curvature
    size = length = ns.maximum(ns.absolute(step) / spread, risen)
    if length > LONGEST and not is_quadratic():
        rise = ns.log1p(risen)
        size = ns.maximum(ns.absolute(step) / spread, rise)
        length = ns.minimum(size, LONGEST)
        step, growth = step * (length / size), (ns.exp(rise * (length / size)) - 1.0) / problem.most
    reach = LONGEST
    for _ in range(MODEL_STEPS):
        touched = tangent
        far = ns.absolute(growth - tangent.growth) * tangent.decay > TANGENT_HOLDS * coarseness()
        if far and not is_one_hyperbola():
            touched = touching(views, rows, event, law, growth)
        prediction, spread = place.prediction + step, spread_at(touched, problem, growth)
        loss = expected(problem.y, prediction, spread, *parameters)
        new = placed(problem, prediction, growth, spread, loss)
        grown = 1.0 + growth * problem.most
        step, rise = newton(jacobian, new)
        wide = ns.absolute(prediction) + spread
        left, last = ns.absolute(step) / place.spread, ns.absolute(step) / wide
        left, last = ns.maximum(left, ns.absolute(rise)), ns.maximum(last, ns.absolute(rise))
        # By the same derivatives the step before, ``size``, left ``left`` to go: of this one as large a part will be left.
        if last <= SETTLED or (last <= STRAIGHTEST and last * left <= 0.01 * SETTLED * size):
            # What was learned may be wrong, and a wrong step short: what is known must say so too.
            lack = ns.absolute(new.off) / (wide * (1.0 + problem.pull * loss.curvature))
            if ns.maximum(lack, ns.absolute(new.short)) <= 10.0 * ns.maximum(last, SETTLED):
                drift = jacobian.pg * rise / problem.pull
                growth += rise * grown / problem.most
                return Balance(prediction + step, growth, true_slope(problem, prediction, loss, drift))
        if not ns.isfinite(new.off + new.short):
            reach = 0.25 * length
        else:
            model = learned(model, place, new)
            if left < size:
                place, tangent, reach = new, touched, ns.maximum(reach, LENGTHENED * length)
            else:  # the step went too far: try a shorter one, by what it has shown
                reach = 0.5 * length
        jacobian = jacobian_at(problem, tangent, model, place)
        step, rise = newton(jacobian, place)
        size = ns.maximum(ns.absolute(step) / place.spread, ns.absolute(rise))
        if ns.absolute(model.tilt * step) > STRAIGHT:
            step = bowed(problem, model, place, jacobian.pg * rise, step)
        length = ns.maximum(ns.absolute(step) / place.spread, ns.absolute(rise))
        if length > reach or ns.absolute(rise) > LONGEST:
            shorter = ns.minimum(1.0, ns.minimum(reach / length, LONGEST / ns.absolute(rise)))
            step, rise, length = shorter * step, shorter * rise, shorter * length
        grown = 1.0 + place.growth * problem.most
        gain = rise * (1.0 + rise * (0.5 + rise / 6.0))
        if ns.absolute(rise) > NO_LOGARITHM:
            gain = ns.exp(rise) - 1.0
        growth = ns.maximum(place.growth + gain * grown / problem.most, 0.1 * place.growth)
    return bracketed(problem, views, rows, event, law, parameters)


def placed(problem: Problem, prediction: Real, growth: Real, spread: Real, loss: Expected) -> Place:
    off = prediction - problem.start + problem.pull * loss.slope
    risen = problem.rate * loss.curvature * problem.most
    lack = growth * problem.most - risen
    short = 2.0 * lack / (2.0 + risen + growth * problem.most)
    if ns.absolute(short) > NO_LOGARITHM:
        short = ns.log1p(lack / (1.0 + risen))
    return Place(prediction, growth, spread, loss.slope, loss.curvature, off, short)


def newton(jacobian: Jacobian, place: Place) -> tuple[Real, Real]:
    """The step in the prediction, and that in log(1 + growth·most)."""
    pp, pg, gp, gg = jacobian
    determinant = pp * gg - pg * gp
    return (pg * place.short - gg * place.off) / determinant, (gp * place.off - pp * place.short) / determinant


def jacobian_at(problem: Problem, tangent: Tangent, model: Model, place: Place) -> Jacobian:
    """The derivatives by the model."""
    scale = 1.0 + tangent.decay * (place.growth - tangent.growth)
    fall = tangent.variance * tangent.decay / (scale * scale) * (1.0 / problem.most + place.growth)
    risen, stiffness = problem.rate * place.curvature * problem.most, problem.pull * place.curvature
    share = risen / (1.0 + risen)
    pg, gg = -0.5 * stiffness * model.tilt * fall, 1.0 + share * model.bend * fall / (place.spread * place.spread)
    return Jacobian(1.0 + stiffness, pg, -share * model.tilt, gg)


def learned(model: Model, old: Place, new: Place) -> Model:
    """The model that says what was seen between two places, and else as little as can be:

    log e2 changes by tilt·Δprediction + bend·Δlog spread², e1 by e2·Δprediction + ½·e2·tilt·Δspread².
    """
    squares, curvature = 0.5 * (old.spread * old.spread + new.spread * new.spread), 0.5 * (old.curvature + new.curvature)
    if not curvature > 0.0:
        return model
    # In units of the spread. The logarithms are those of near numbers: of others they are at most 2, which is far enough.
    spread = ns.sqrt(squares)
    unit, relative = 1.0 / spread, 1.0 / curvature
    tilt, moved = model.tilt * spread, (new.prediction - old.prediction) * unit
    widened = (new.spread - old.spread) * (new.spread + old.spread) * (unit * unit)
    half = 0.5 * widened
    other = (new.curvature - old.curvature) * relative - moved * tilt - widened * model.bend
    error = (new.slope - old.slope) * (relative * unit) - moved - half * tilt
    least = LEAST_CHANGE * LEAST_CHANGE * (moved * moved + widened * widened)
    tt, tb, bb = half * half + moved * moved + least, moved * widened, widened * widened + least
    determinant = tt * bb - tb * tb
    if not determinant > 0.0:
        return model
    by_tilt, by_bend = half * error + moved * other, widened * other
    tilt += (bb * by_tilt - tb * by_bend) / determinant
    bend = model.bend + (tt * by_bend - tb * by_tilt) / determinant
    tilt = ns.minimum(ns.maximum(tilt, -STEEPEST), STEEPEST)
    return Model(tilt * unit, ns.maximum(ns.minimum(bend, MOST_BENT), 0.5 * tilt * tilt - 0.5))


def bowed(problem: Problem, model: Model, place: Place, widening: Real, step: Real) -> Real:
    """The step in the prediction with e2 an exponential on the way, where it is long: e1 grows by e2·(e^(tilt·step) − 1)/tilt.

    ``widening`` is what the change of the spread adds to ``off``.
    """
    stiffness, reach = problem.pull * place.curvature, 1.0 / ns.absolute(model.tilt)
    step = ns.where(model.tilt * step > 1.0, ns.where(step > 0.0, reach, -reach), step)
    for _ in range(3):
        power = ns.exp(model.tilt * step)
        off = place.off + widening + step + stiffness * (power - 1.0) / model.tilt
        step -= off / (1.0 + stiffness * power)
    return step


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
