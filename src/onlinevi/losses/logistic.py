"""The logistic loss: its expectation to twelve digits at every spread, without quadrature."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from onlinevi.engine import Expected, Kernel, Real, compose, ns
from onlinevi.engine.holes import expected, odds
from onlinevi.losses.base import Loss, Target
from onlinevi.losses.normal import INV_SQRT_2PI, POINT_MASS, SQRT_HALF, bump, cumulative, scaled_tail

# With t = e^(−|u|) in [0, 1], to the last digit given in brackets, relative:
#   log(1 + t)   = Σ SOFTPLUS[k]·t^(k+1)   (1e-13)
#   t / (1 + t)  = Σ SIGMOID[k]·t^(k+1)    (2e-12)
#   t / (1 + t)² = Σ BELL[k]·t^(k+1)       (3e-11)
# Interpolated at Chebyshev points; tests/losses/test_losses.py computes them anew.
SOFTPLUS = np.array(
    [
        [0.99999999999991, -0.49999999995383904, 0.33333332937394794, -0.24999986473157787],
        [0.19999755281745146, -0.16663963182233768, 0.14265870900537939, -0.12397768315487705],
        [0.10727046208763887, -0.08917588954878489, 0.06748221397520829, -0.04348922883589689],
        [0.022157210914775124, -0.008167086476489189, 0.0019067930324987241, -0.0002097061231086089],
    ]
).ravel()
SIGMOID = np.array(
    [
        [0.9999999999988722, -0.9999999994214706, 0.9999999503423298, -0.9999983012831976],
        [0.999969207168507, -0.9996588699451417, 0.9974865093815845, -0.9869827879753738],
        [0.9507449491239466, -0.8597950790654627, 0.6922558447472031, -0.46596908670695636],
        [0.24460160601541056, -0.09202832701569903, 0.021796182714244505, -0.0024217980793605006],
    ]
).ravel()
BELL = np.array(
    [
        [0.9999999999861133, -1.9999999928750298, 2.999999387950267, -3.9999790322591444],
        [4.999619077095007, -5.995766882158609, 6.968675937369417, -7.836822683200376],
        [8.377583286926091, -8.208398048129325, 7.005163833656636, -4.910990502715944],
        [2.6511049610325683, -1.016963684711258, 0.24417385954021228, -0.027399517513285867],
    ]
).ravel()
ORDER = 16
LARGEST_EXPONENT = 700.0
LEAST_PROBABILITY = 1e-300


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + e^(−yz)), y = ±1.

    With u = −yz ~ N(s, v²) the loss is max(0, u) + log(1 + e^(−|u|)). The kink's expectation is closed form. The rest is a
    short polynomial in e^(−|u|), and each E[e^(−k|u|)] is closed form too, by the scaled normal tail.
    """

    name: ClassVar[str] = "logistic"
    target: ClassVar[Target] = "classes"
    label_rule: ClassVar[str] = "−1 or +1"
    label_hint: ClassVar[str] = "map 0/1 with 2*y − 1, names with np.where(y == name, 1, −1)"

    @property
    def lipschitz(self) -> float:
        return 1.0

    def probability(self, a: Any, v: Any = 0.0) -> Any:
        """E[1/(1 + e^(−z))]: the slope of the loss at the other label."""
        return self(-1.0, a, v).slope

    def score(self, a: Any, v: Any) -> Any:
        """The log-odds of E[1/(1 + e^(−z))], compiled: in numpy they cost more than the learning."""
        means, stds = np.broadcast_arrays(np.asarray(a, dtype=float), np.asarray(v, dtype=float))
        scores = np.empty(means.shape)
        _score_kernel()(means.ravel(), stds.ravel(), scores.reshape(-1))
        return scores

    def probability_of_score(self, score: Any, v: Any) -> Any:
        """The score has the spread in it already."""
        with np.errstate(over="ignore"):  # e^800 is infinite, and the probability 0
            return 1.0 / (1.0 + np.exp(-np.asarray(score, dtype=float)))

    @staticmethod
    def odds(a: Real, v: Real) -> tuple[Real, Real]:
        # The slope of the loss at a label is the probability of the other one. Of the lesser, at most ½, all digits
        # count, of the other those next to 1: so one expectation is enough. At 0 neither is lesser, by no last digit.
        lesser = ns.maximum(-expected(1.0, ns.absolute(a), v).slope, LEAST_PROBABILITY)
        lesser = ns.where(a == 0.0, 0.5, lesser)
        return ns.where(a > 0.0, 1.0 - lesser, lesser), ns.where(a > 0.0, lesser, 1.0 - lesser)

    @staticmethod
    def valid_label(y: Real, *parameters: Real) -> Real:
        return y * y == 1.0

    @staticmethod
    def expected(y: Real, a: Real, v: Real) -> Expected:
        centre = -y * a
        spread_out = v > POINT_MASS
        spread = ns.where(spread_out, v, 1.0)
        height = bump(centre / spread)
        rest = with_exponentials(with_tails(centre, spread, height), centre, spread)
        spread_law, point = with_kink(rest, centre, spread, height), at_point(centre)
        value = ns.where(spread_out, spread_law.value, point.value)
        slope = -y * ns.where(spread_out, spread_law.slope, point.slope)
        return Expected(value, slope, ns.where(spread_out, spread_law.curvature, point.curvature))


# E[e^(−k|u|)] is near + far: u on the side of its centre, and beyond 0. Each is ½·e^(−r²/2)·e^(x²)erfc(x) for some x; where
# x < 0, up to k = limit, the near side is e^(−k·distance + k²v²/2) less the same with −x, which stays finite.


def with_tails(centre: Real, spread: Real, height: Real) -> Expected:
    """What the tails add to the polynomials of the loss and of its derivatives; ``height`` is e^(−r²/2)."""
    distance = ns.absolute(centre)
    limit = distance / (spread * spread)
    offset, stride = SQRT_HALF * distance / spread, SQRT_HALF * spread
    softplus = sigmoid = bell = 0.0  # no += below: on arrays it would change all three at once
    for k in range(ORDER):
        x = (k + 1.0) * stride - offset
        near = ns.where(k + 1.0 < limit, -0.5, 0.5) * height * scaled_tail(ns.absolute(x), 1.0)
        far = 0.5 * height * scaled_tail((k + 1.0) * stride + offset, 1.0)
        softplus = softplus + SOFTPLUS[k] * (near + far)
        sigmoid = sigmoid + SIGMOID[k] * (near - far)
        bell = bell + BELL[k] * (near + far)
    return Expected(softplus, sigmoid, bell)


def with_exponentials(tails: Expected, centre: Real, spread: Real) -> Expected:
    """The same with those exponentials, of which there are none where distance ≤ v².

    Each comes from the one before: their exponents are quadratic in k. Where k·distance is large they are nothing, and their
    factors, which the compiler may multiply in another order, infinity times 0.
    """
    softplus, sigmoid, bell = tails
    distance, variance = ns.absolute(centre), spread * spread
    limit = ns.minimum(distance / variance, 2.0 * LARGEST_EXPONENT / (1.0 + distance))
    power = ns.exp(-distance + 0.5 * variance)
    ratio = ns.exp(-distance + 1.5 * variance)
    growth = ns.exp(ns.minimum(variance, LARGEST_EXPONENT))
    for k in range(ORDER):
        term = ns.where(k + 1.0 < limit, power, 0.0)
        softplus = softplus + SOFTPLUS[k] * term
        sigmoid = sigmoid + SIGMOID[k] * term
        bell = bell + BELL[k] * term
        power, ratio = power * ratio, ratio * growth
    return Expected(softplus, sigmoid, bell)


def with_kink(rest: Expected, centre: Real, spread: Real, height: Real) -> Expected:
    """The same with max(0, u)."""
    above = cumulative(centre, spread, height)
    kink = centre * above + spread * INV_SQRT_2PI * height
    active = above + ns.where(centre > 0.0, -rest.slope, rest.slope)
    return Expected(kink + rest.value, active, ns.maximum(rest.curvature, 0.0))


def at_point(u: Real) -> Expected:
    """log(1 + e^u) and its derivatives: the same functions of t = e^(−|u|), by division."""
    t = ns.exp(-ns.absolute(u))
    value = ns.maximum(u, 0.0) + ns.log1p(t)
    return Expected(value, ns.where(u > 0.0, 1.0, t) / (1.0 + t), t / ((1.0 + t) * (1.0 + t)))


def fill_scores(means: Any, stds: Any, scores: Any) -> None:
    """Log-odds, one by one."""
    for i in range(len(scores)):
        support, against = odds(means[i], stds[i])
        scores[i] = ns.log(support) - ns.log(against)


@cache
def _score_kernel() -> Kernel:
    from onlinevi.losses.speedups import quick_expected

    return compose(fill_scores, {expected: quick_expected(Logistic), odds: Logistic.odds})
