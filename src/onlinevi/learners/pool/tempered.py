"""What all tempered posteriors share: their rate, and weights from log-weights without under- or overflow."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from onlinevi.engine import Schedule, Vector, rate_at
from onlinevi.rules import Adaptive, Rate, as_rate

Weigh: TypeAlias = Literal["exponential", "chi-square"]
"""The divergence by which weights are kept near their prior: KL, or χ² for losses without a bound."""


def tempering(rate: Rate | float) -> Rate:
    """The rate, if it can temper a posterior: one number at each time."""
    rate = as_rate(rate)
    if isinstance(rate, Adaptive):
        raise ValueError(f"{rate} falls with gradients, which a tempered posterior does not take; try PerHorizon(1)")
    if rate.per_variance:
        raise ValueError(f"{rate} divides by the variance, which only SVB can do; try PerHorizon({rate.c})")
    return rate


def schedule(rate: Rate | float, horizon: int | None) -> Schedule:
    """The rate as a function of time, for a stream of ``horizon`` events."""
    if horizon is not None and horizon < 1:
        raise ValueError(f"horizon={horizon}: needs at least one event")
    return tempering(rate).schedule(horizon)


def next_rate(plan: Schedule, count: int) -> float:
    """The rate of the decision that follows ``count`` events."""
    return float(rate_at(plan.scale, plan.power, count + 1.0))


def normalised(log_weights: Vector) -> Vector:
    """Weights that sum to 1 along the last axis. Law: adding a number to all log-weights changes nothing."""
    weights = np.exp(log_weights - log_weights.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def exponential(log_prior: Vector, totals: Vector, rate: Any) -> Vector:
    """prior·e^(−rate·totals), normalised along the last axis."""
    lags = _behind(log_prior, totals)
    with np.errstate(over="ignore"):  # infinitely far behind: no weight
        return normalised(log_prior - rate * lags)


def chi_square(log_prior: Vector, totals: Vector, rate: Any) -> Vector:
    """prior·[level − rate/2·totals]₊ (Alquier, 2021): the p for which rate·⟨p, totals⟩ + χ²(p‖prior) is least.

    The level that makes the sum 1 is the root of a convex function that never falls. From where all count, which is not
    below it, each Newton step drops those who do not, until none does.
    """
    prior = np.exp(log_prior)
    with np.errstate(over="ignore"):
        costs = np.where(prior > 0.0, np.minimum(0.5 * rate * _behind(log_prior, totals), np.finfo(float).max), 0.0)
    level = np.full((*costs.shape[:-1], 1), np.inf)
    while True:
        counted = np.where(costs < level, prior, 0.0)
        with np.errstate(over="ignore"):
            nearer = (1.0 + (counted * costs).sum(axis=-1, keepdims=True)) / counted.sum(axis=-1, keepdims=True)
        if not (nearer < level).any():
            break
        level = np.minimum(nearer, level)
    weights = counted * np.maximum(level - costs, 0.0)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _behind(log_prior: Vector, totals: Vector) -> Vector:
    """How much more each has lost than the best that counts; 0 for those that do not. All exponents are ≤ 0 by it."""
    least = np.where(np.isfinite(log_prior), totals, np.inf).min(axis=-1, keepdims=True)
    return np.asarray(np.where(np.isfinite(log_prior), totals - least, 0.0))


WEIGHTS = {"exponential": exponential, "chi-square": chi_square}


def fixed(array: Vector) -> Vector:
    """The array, no longer to be written: part of a value."""
    array.setflags(write=False)
    return array
