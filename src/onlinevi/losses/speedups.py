"""Cheaper formulas for the expectation of some losses in loops over events, one event at a time, which give the same numbers.

They branch on the spread, as arrays cannot. ``losses`` know nothing of them, and tests hold each to the loss's own formula.
"""

from __future__ import annotations

import numpy as np

from onlinevi.engine import Expected, Function, Real, ns
from onlinevi.losses.base import Loss
from onlinevi.losses.logistic import SOFTPLUS, Logistic, with_exponentials, with_kink, with_tails
from onlinevi.losses.normal import INV_SQRT_2PI, POINT_MASS, bump

# The logistic loss is smooth on the scale of 1: a narrow normal law sees little of it, and a sum over a few nodes is exact.
# Where the spread is v, what is left out is (v/π)^32·16!/32 of the whole by Gauss–Hermite's nodes, and by equal steps h
# e^(−2π²/(hv) + π²/2v²); the nodes reach 7 stds beyond v, where the mass of e^u lies.
HERMITE = np.array(
    [
        [0.38676060450055735, 1.1638291005549648, 1.9519803457163335, 2.7602450476307016],
        [3.6008736241715483, 4.4929553025200112, 5.4722257059493431, 6.6308781983931285],
    ]
).ravel()
HERMITE_WEIGHTS = np.array(
    [
        [0.28656852123801212, 0.15833837275094962, 0.047284752354014029, 0.0072669376011847334],
        [0.00052598492657390924, 1.5300032162487272e-5, 1.3094732162868227e-7, 1.4978147231618397e-10],
    ]
).ravel()
NARROW = 0.5
"""The largest spread for these."""
_FEW = np.array([0.5390798113513751, 1.636519042435108, 2.8024858612875416, 4.1445471861258945])
_FEW_WEIGHTS = np.array([0.37301225767907736, 0.11723990766175905, 0.009635220120788258, 0.00011261453837536765])
FEW_HERMITE, FEW_HERMITE_WEIGHTS = np.concatenate([_FEW, -_FEW]), np.concatenate([_FEW_WEIGHTS, _FEW_WEIGHTS])
NARROWEST = 0.25
"""The largest spread for half as many: the same by 8 nodes."""
STEP = 0.52
STEPS = STEP * (np.arange(16) + 0.5)
STEP_WEIGHTS = STEP * INV_SQRT_2PI * np.exp(-0.5 * STEPS * STEPS)
MEDIUM = 0.9
"""The largest spread for those."""


def quick_logistic(y: Real, a: Real, v: Real) -> Expected:
    """The expectation of the logistic loss."""
    centre = -y * a
    if v > MEDIUM:
        height = bump(centre / v)
        rest = with_tails(centre, v, height)
        if ns.absolute(centre) > v * v:
            rest = with_exponentials(rest, centre, v)
        whole = with_kink(rest, centre, v, height)
        return Expected(whole.value, -y * whole.slope, whole.curvature)
    if v <= POINT_MASS:
        point = softplus(centre)
        return Expected(point.value, -y * point.slope, point.curvature)
    value = active = bell = 0.0
    if v <= NARROWEST:
        for k in range(8):
            node = softplus(centre + v * FEW_HERMITE[k])
            value += FEW_HERMITE_WEIGHTS[k] * node.value
            active += FEW_HERMITE_WEIGHTS[k] * node.slope
            bell += FEW_HERMITE_WEIGHTS[k] * node.curvature
    elif v <= NARROW:
        for k in range(8):
            above, below = softplus(centre + v * HERMITE[k]), softplus(centre - v * HERMITE[k])
            value += HERMITE_WEIGHTS[k] * (above.value + below.value)
            active += HERMITE_WEIGHTS[k] * (above.slope + below.slope)
            bell += HERMITE_WEIGHTS[k] * (above.curvature + below.curvature)
    else:
        for k in range(16):
            above, below = softplus(centre + v * STEPS[k]), softplus(centre - v * STEPS[k])
            value += STEP_WEIGHTS[k] * (above.value + below.value)
            active += STEP_WEIGHTS[k] * (above.slope + below.slope)
            bell += STEP_WEIGHTS[k] * (above.curvature + below.curvature)
    return Expected(value, -y * active, bell)


def softplus(u: Real) -> Expected:
    """log(1 + e^u) and its derivatives as ``at_point``, but with a polynomial for the logarithm, which vectorises."""
    t = ns.exp(-ns.absolute(u))
    t2 = t * t
    t4 = t2 * t2
    p0 = (SOFTPLUS[0] + SOFTPLUS[1] * t) + (SOFTPLUS[2] + SOFTPLUS[3] * t) * t2
    p4 = (SOFTPLUS[4] + SOFTPLUS[5] * t) + (SOFTPLUS[6] + SOFTPLUS[7] * t) * t2
    p8 = (SOFTPLUS[8] + SOFTPLUS[9] * t) + (SOFTPLUS[10] + SOFTPLUS[11] * t) * t2
    p12 = (SOFTPLUS[12] + SOFTPLUS[13] * t) + (SOFTPLUS[14] + SOFTPLUS[15] * t) * t2
    rest = t * ((p0 + p4 * t4) + (p8 + p12 * t4) * (t4 * t4))
    share = 1.0 / (1.0 + t)
    return Expected(ns.maximum(u, 0.0) + rest, ns.where(u > 0.0, share, t * share), t * share * share)


SPEEDUPS: dict[Function, Function] = {Logistic.expected: quick_logistic}
"""By the expectation that is sped up: a loss made from one of these that has an expectation of its own has no speed-up."""


def quick_expected(loss: type[Loss]) -> Function:
    """What fills the hole ``expected`` of a loop for this loss."""
    return SPEEDUPS.get(loss.expected, loss.expected)
