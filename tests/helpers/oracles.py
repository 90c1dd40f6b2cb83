"""Slow and certain ways to the same numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache

import mpmath as mp
import numpy as np

import onlinevi as ovi
from onlinevi.beliefs import PriorAndBox
from onlinevi.engine import rates_against_prior
from onlinevi.engine.holes import expected
from onlinevi.engine.kernel import compose
from onlinevi.engine.types import Belief, Expected, Gradient, Prior, Totals
from onlinevi.losses import quick_expected

DIGITS = 100


def definition(loss: ovi.Loss) -> tuple[Callable[[mp.mpf, mp.mpf], mp.mpf], Callable[[mp.mpf, mp.mpf], mp.mpf]]:
    """The loss at a point and its slope there, as a textbook defines them."""
    match loss:
        case ovi.Squared():
            return lambda y, z: (y - z) ** 2, lambda y, z: 2 * (z - y)
        case ovi.Hinge():
            return lambda y, z: max(mp.mpf(0), 1 - y * z), lambda y, z: -y if y * z < 1 else mp.mpf(0)
        case ovi.Logistic():
            return lambda y, z: mp.log1p(mp.exp(-y * z)), lambda y, z: -y / (1 + mp.exp(y * z))
        case ovi.Absolute():
            return lambda y, z: abs(y - z), lambda y, z: mp.sign(z - y)
        case ovi.Pinball(quantile=tau):
            return lambda y, z: max(tau * (y - z), (tau - 1) * (y - z)), lambda y, z: 1 - tau if z > y else -mp.mpf(tau)
        case ovi.Poisson():
            return lambda y, z: mp.exp(z) - y * z, lambda y, z: mp.exp(z) - y
    raise AssertionError(loss)


def kink(loss: ovi.Loss, y: float) -> float:
    """Where the loss bends, or bends most."""
    return {ovi.Hinge: y, ovi.Logistic: 0.0, ovi.Poisson: 0.0}.get(type(loss), y)


def expectation(loss: ovi.Loss, y: float, a: float, v: float, order: int = 20) -> tuple[float, float, float]:
    """(E, e1, e2) by Gauss–Legendre quadrature in 100 digits, with panels where a Gaussian times such a loss has mass.

    Differentiating the integral in a moves one derivative onto the loss, E[ℓ'], and a second onto the density,
    E[(ℓ'(z) − ℓ'(a))·ε/v]: subtracting the constant changes nothing, and leaves nothing to cancel.
    """
    with mp.workdps(DIGITS):
        ell, slope = definition(loss)
        label, centre, spread = mp.mpf(y), mp.mpf(a), mp.mpf(v)
        bend, middle_slope = (mp.mpf(kink(loss, y)) - centre) / spread, slope(label, centre)
        core = [mp.mpf(k) for k in range(-10, 11, 2)]
        ends = {*core, *(bend + side * k for k in (0, 0.5, 1, 2, 4, 8) for side in (-1, 1))}
        if isinstance(loss, ovi.Logistic | ovi.Poisson):  # an exponential shifts the mass by ±v
            ends |= {bend + side * k / spread for k in (2, 5, 10, 20, 40) for side in (-1, 1)}
            ends |= {e + side * spread for e in core for side in (-1, 1) if spread < 40}
        total = [mp.mpf(0)] * 3
        for e, mass in masses(tuple(sorted(e for e in ends if abs(e) <= 60)), order):
            z = centre + spread * e
            inclined = slope(label, z)
            total[0] += mass * ell(label, z)
            total[1] += mass * inclined
            total[2] += mass * (inclined - middle_slope) * e
        scale = mp.sqrt(2 * mp.pi)
        return float(total[0] / scale), float(total[1] / scale), float(total[2] / (scale * spread))


@cache
def masses(ends: tuple[mp.mpf, ...], order: int) -> list[tuple[mp.mpf, mp.mpf]]:
    """Nodes in the panels between these ends, and the normal density's mass at each: the same for losses that bend alike."""
    found = []
    for low, high in itertools.pairwise(ends):
        half = (high - low) / 2
        for x, weight in gauss(order):
            e = low + half * (1 + x)
            found.append((e, half * weight * mp.exp(-e * e / 2)))
    return found


@cache
def gauss(order: int) -> list[tuple[mp.mpf, mp.mpf]]:
    """Gauss–Legendre nodes and weights: numpy's, polished to 100 digits."""
    with mp.workdps(DIGITS + 6):
        rule = []
        for start in np.polynomial.legendre.leggauss(order)[0]:
            x = mp.findroot(lambda t: mp.legendre(order, t), mp.mpf(start))
            slope = order * (x * mp.legendre(order, x) - mp.legendre(order - 1, x)) / (x * x - 1)
            rule.append((x, 2 / ((1 - x * x) * slope**2)))
        return rule


def evaluate(loss: ovi.Loss, y: float, a: float, v: float) -> Expected:
    """The loss in numpy, however wild its arguments."""
    with np.errstate(all="ignore"):  # the branches not taken
        return Expected(*(float(part) for part in loss.expected(y, np.float64(a), np.float64(v), *loss.parameters)))


def _evaluate(y, a, v, parameters):  # type: ignore[no-untyped-def]
    return expected(y, a, v, *parameters)


def compiled(loss: ovi.Loss, *, quick: bool = False) -> Callable[[float, float, float], tuple[float, float, float]]:
    """The loss one event at a time, as it is written, or ``quick`` as the loop calls it."""
    function = compose(_evaluate, {expected: quick_expected(type(loss)) if quick else type(loss).expected})
    return lambda y, a, v: function(float(y), float(a), float(v), loss.parameters)


def play(learner: ovi.Linear, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None, asarray=np.asarray) -> dict:
    """The game of the paper from its definition, in arrays of any library: no packed state, no compiled code."""
    loss, rule, family = learner.loss, learner.rule, learner.belief_family
    box = PriorAndBox(*(asarray(np.broadcast_to(row, X.shape[1])) for row in family.prior_and_box(X.shape[1])))
    prior = Prior(box.prior_mean, box.prior_std)
    low, high = Belief(box.mean_low, box.std_low), Belief(box.mean_high, box.std_high)
    start = family.init(X.shape[1])
    belief, totals = Belief(asarray(start.mean), asarray(start.std)), Totals(0.0 * prior.mean, 0.0 * prior.mean)
    sums = {
        "loss": 0.0,
        "expected_loss": 0.0,
        "product": 0.0,
        "gradient_square": 0.0,
        "average_mean": 0.0,
        "weight": 0.0,
        "square": 0.0,
    }
    losses, t = [], 0
    for row, label, weight in zip(asarray(X), y, weights if weights is not None else np.ones(len(y)), strict=True):
        if weight == 0.0:
            continue
        t += 1
        a, v = row @ belief.mean, ((row * belief.std) ** 2).sum() ** 0.5
        with np.errstate(all="ignore"):
            value, slope, curvature = loss.expected(label, a, v, *loss.parameters)
            cost = loss.expected(label, a, 0.0 * a, *loss.parameters)[0]
        gradient = Gradient(
            weight * (slope * row + loss.ridge * belief.mean), weight * (curvature * row**2 + loss.ridge) + 0.0 * row
        )
        square = (belief.mean**2).sum(), (belief.std**2).sum()
        losses.append(weight * (cost + 0.5 * loss.ridge * square[0]))
        sums["loss"] += losses[-1]
        sums["expected_loss"] += weight * (value + 0.5 * loss.ridge * sum(square))
        sums["product"] += (gradient.mean * belief.mean).sum() + (gradient.curvature * belief.std**2).sum()
        sums["gradient_square"] += (gradient.mean**2).sum() + ((gradient.curvature * belief.std) ** 2).sum()
        sums["average_mean"] = sums["average_mean"] + belief.mean
        sums["weight"] += weight
        sums["square"] += sum(square) if loss.ridge else 0.0
        totals = Totals(totals.mean + gradient.mean, totals.std + gradient.curvature * belief.std)
        when = t + 1 if rule.uses_next_rate else t
        step = rule.step_rate.schedule(len(y))
        pull = rule.prior_rate.schedule(len(y)) if rule.prior_rate else (np.inf, 0.0)
        rates = rates_against_prior(step.scale / when**step.power, pull[0] / when ** pull[1], rule.step_rate.per_variance)
        new = rule.new_belief(belief, gradient, totals, rates, prior)
        std, mean = asarray(np.clip(np.asarray(new.std), np.maximum(low.std, rule.std_floor * prior.std), high.std)), new.mean
        if rule.std_floor > 0.0:
            mean = rule.with_kept_std(std, belief, gradient, rates, prior).mean
        belief = Belief(asarray(np.clip(np.asarray(mean), low.mean, high.mean)), std)
    sums["average_mean"] = sums["average_mean"] / t
    return {"mean": belief.mean, "std": belief.std, "gradient": totals.mean, "losses": np.asarray(losses), **sums}
