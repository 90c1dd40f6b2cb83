"""The prior mass condition of Theorem 6, computed: how much of its mass a prior has near the best point.

A risk that is L-Lipschitz exceeds that of θ* by at most ε on the ball of radius ε/L around it. The prior restricted to that
ball has the divergence r = −ln prior(ball) from the prior, and Theorem 1 against it is Theorem 6 without its dimension d.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlinevi.beliefs import Box, MeanField, edges
from onlinevi.engine import Vector
from onlinevi.guarantees.bounds.bound import Bound, positive, whole

DEPTH = 200
"""Halvings of a bracket: beyond what floats tell apart."""
RADII = 64
"""Of how many balls, each √2 times as wide as the last, the best is taken."""


def ball_divergence(prior: MeanField | Box, point: Any, radius: float) -> float:
    """r = −ln prior{θ : ‖θ − point‖ ≤ radius}, from above: the KL from the prior to the prior on that ball.

    A ``Box`` stands for the uniform law on its means; a ``MeanField`` for its Gaussian prior, restricted to its box if it has
    one. Exact in one dimension, and for a box that holds the ball. Else the least of two that hold: the mass of the cube in
    the ball, cut by the box; and for one std of a Gaussian, whose box holds the ball, exp(−‖point − mean‖²/2s²) of the ball
    around the mean (Cameron and Martin).

    >>> from onlinevi import Box, bounds
    >>> round(bounds.ball_divergence(Box(mean=(-1.0, 1.0)), [0.0, 0.0], 0.5), 6) == round(-math.log(math.pi / 16), 6)
    True
    """
    positive(radius=radius)
    theta = np.atleast_1d(np.asarray(point, dtype=float))
    uniform = isinstance(prior, Box)
    law = MeanField(box=prior) if isinstance(prior, Box) else prior
    low, high, _, _ = edges(law, len(theta))
    if not ((low <= theta) & (theta <= high)).all():
        raise ValueError(f"point={theta}: the prior has no mass there, its box is [{low.min():.6g}, {high.max():.6g}]")
    if uniform and not np.isfinite([low, high]).all():
        raise ValueError(f"{prior}: a uniform prior needs a box with ends, such as Box(mean=(-20, 20))")
    half = radius / math.sqrt(len(theta))
    cube = np.maximum(theta - half, low), np.minimum(theta + half, high)
    holds = bool(((low <= theta - radius) & (theta + radius <= high)).all())
    if uniform:
        volume = float(np.log(high - low).sum())
        found = [volume - float(np.log(cube[1] - cube[0]).sum())]
        return min([*found, volume - _log_ball(len(theta), radius)] if holds else found)
    mean, std = law.init(len(theta))
    inside = float(np.sum(_log_between((low - mean) / std, (high - mean) / std)))
    found = [inside - float(np.sum(_log_between((cube[0] - mean) / std, (cube[1] - mean) / std)))]
    if holds and np.ptp(std) == 0.0:
        shift = float(np.sum(np.square((theta - mean) / std)))
        found.append(inside + 0.5 * shift - _log_chi_square(len(theta), radius / float(std[0])))
    return max(min(found), 0.0)


def prior_dimension(prior: MeanField | Box, point: Any, *, lipschitz: float, count: int) -> float:
    """The least d of Theorem 6 for T events: r(ε) ≤ d·ln(1/ε) at ε = d/T, where the theorem uses it.

    d·ln(T/d) grows up to d = T/e and r falls with d, so they cross once; there ``ewa_excess_risk`` holds with this d.
    """
    whole(count)
    positive(lipschitz=lipschitz)

    def lacks(dim: float) -> bool:
        return ball_divergence(prior, point, dim / (count * lipschitz)) > dim * math.log(count / dim)

    enough, short = count / math.e, 0.0
    if lacks(enough):
        raise ValueError(f"count={count}: too few events, the prior has too little mass near {point} for any d of Theorem 6")
    for _ in range(DEPTH):
        middle = 0.5 * (short + enough)
        if not short < middle < enough:
            break
        short, enough = (middle, enough) if lacks(middle) else (short, middle)
    return enough


def ewa_prior_risk(
    *,
    prior: MeanField | Box,
    point: Any,
    lipschitz: float,
    count: int,
    loss_bound: float,
    rate: float | None = None,
) -> Bound:
    """Theorem 6 without its d: E[risk(θ̄_T)] − risk(θ*) ≤ ε + η·B²/8 + r(ε)/(η·T), for the best ε tried.

    θ* is ``point``, r the divergence of the prior from itself on the ball of radius ε/L around it. Without ``rate`` at the
    best η for each ε, √(8·r/T)/B. The losses must be convex, L-Lipschitz and in [0, B] where the prior has mass.
    """
    whole(count)
    positive(lipschitz=lipschitz, loss_bound=loss_bound)
    if rate is not None:
        positive(rate=rate)

    def at(excess: float) -> dict[str, float]:
        divergence = ball_divergence(prior, point, excess / lipschitz)
        eta = rate if rate is not None else max(math.sqrt(8.0 * divergence / count), 1e-12) / loss_bound
        return {"prior mass": excess, "losses": eta * loss_bound**2 / 8.0, "divergence": divergence / (eta * count)}

    tried = [at(loss_bound * 2.0 ** (-0.5 * k)) for k in range(RADII)]
    return Bound(
        "EWA, computed prior mass, excess risk", min(tried, key=lambda terms: sum(terms.values())), trivial=loss_bound
    )


def _log_ball(dim: int, radius: float) -> float:
    """ln of the volume of a ball."""
    return 0.5 * dim * math.log(math.pi) - math.lgamma(0.5 * dim + 1.0) + dim * math.log(radius)


def _log_chi_square(dim: int, radius: float) -> float:
    """ln P{‖ε‖ ≤ radius} for ε ~ N(0, I), from below where it underflows: by the first term of its series."""
    from scipy.special import gammainc

    half, a = 0.5 * radius * radius, 0.5 * dim
    mass = float(gammainc(a, half))
    return math.log(mass) if mass > 1e-290 else a * math.log(half) - half - math.lgamma(a + 1.0)


def _log_between(low: Vector, high: Vector) -> Vector:
    """ln(Φ(high) − Φ(low)), in the tail where neither is near 1."""
    from scipy.special import log_ndtr

    flip = low > 0.0
    below, above = np.where(flip, -high, low), np.where(flip, -low, high)
    most = log_ndtr(above)
    return np.asarray(most + np.log(-np.expm1(log_ndtr(below) - most)))
