"""Cheaper formulas for the steps of some rules, which give the same numbers to rounding.

A step that changes a std by little needs no root and no division, which take half of an event's time: a series does it. Up to
the limits the terms left out are below half an ulp. ``learners.kernels`` says which rule has which speed-up; ``rules`` know
nothing of them, and tests hold each to the rule's own step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from onlinevi.engine import ns
from onlinevi.engine.types import Belief, Gradient, Prior, Rates, Real, Totals


class Speedup(NamedTuple):
    """What the loop may do faster for one rule."""

    limit: float = -1.0
    """A step with 0 ≤ rate·curvature·std² ≤ limit is small. None of them lets a std grow, or fall below 0."""
    small_step: Callable[..., Any] | None = None
    """The formula for such steps; None where the rule's own is as cheap."""
    vectorise_sparse: bool = False
    """A step is a root and a division: those of a sparse row are worth taking as vectors."""


SHRINKING = 1.0 / 40.0
"""The largest 2u for ``shrinkage``."""
ROOTED = 1.0 / 256.0
"""The largest w for ``root_shrinkage``."""


def shrinkage(u: Real) -> Real:
    """1 − h(u), with h(u) = √(1 + u²) − u. What is lost, not what is left: in float32 next to 1 that has few digits."""
    z = u * u
    return u - z * (0.5 - z * (0.125 - z * 0.0625))


def root_shrinkage(w: Real) -> Real:
    """1 − 1/√(1 + w)."""
    return w * (0.5 - w * (0.375 - w * (0.3125 - w * (0.2734375 - w * (0.24609375 - w * 0.2255859375)))))


def small_svb_step(belief: Belief, gradient: Gradient, totals: Totals, rates: Rates, prior: Prior) -> Belief:
    """The step of SVB."""
    size = rates.step * ns.where(rates.per_variance, 1.0, belief.std * belief.std)
    std = belief.std - belief.std * shrinkage(0.5 * size * gradient.curvature)
    return Belief(belief.mean - size * gradient.mean, std)


def small_ngvi_step(belief: Belief, gradient: Gradient, totals: Totals, rates: Rates, prior: Prior) -> Belief:
    """The step of NGVI without a prior term."""
    growth = rates.step * ns.maximum(gradient.curvature, 0.0) * belief.std * belief.std
    std = belief.std - belief.std * root_shrinkage(growth)
    return Belief(belief.mean - std * std * (rates.step * gradient.mean), std)


def small_implicit_step(belief: Belief, gradient: Gradient, totals: Totals, rates: Rates, prior: Prior) -> Belief:
    """The step of Implicit, whose slopes are those after it."""
    size = rates.step * belief.std * belief.std
    std = belief.std - belief.std * root_shrinkage(size * ns.maximum(gradient.curvature, 0.0))
    return Belief(belief.mean - size * gradient.mean, std)
