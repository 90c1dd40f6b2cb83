"""A rate as the loop reads it is two numbers, so that changing a rate compiles nothing."""

from __future__ import annotations

import math
from typing import NamedTuple

from onlinevi.engine import ns
from onlinevi.engine.types import Rates, Real

ADAPTIVE_POWER = 2.0
"""Stands where a power does: the rate falls with the gradients seen, not with time."""


class Schedule(NamedTuple):
    """A rate made ready for the loop: scale / t^power, or scale / √(Σ‖g‖²)."""

    scale: float
    power: float


def rate_at(scale: Real, power: Real, t: Real) -> Real:
    """scale, scale/√t or scale/t: the three powers in use, without a call to pow."""
    return scale / ns.where(power == 0.0, 1.0, ns.where(power == 0.5, ns.sqrt(t), t))


def adaptive_rate(scale: Real, gradient_square: Real) -> Real:
    """scale/√(Σ‖g‖²), 0 before the first gradient: nothing has pulled the belief away from the prior yet."""
    return scale / ns.sqrt(ns.where(gradient_square > 0.0, gradient_square, math.inf))


def rates_against_prior(step: Real, prior: Real, per_variance: Real) -> Rates:
    """The rates of a step of size ``step`` against a prior term of rate ``prior``, which is infinite where there is none."""
    relative = step / prior
    return Rates(step / (1.0 + relative), relative / (1.0 + relative), per_variance)
