"""What all tempered posteriors share: their rate, and weights from log-weights without under- or overflow."""

from __future__ import annotations

import numpy as np

from onlinevi.engine import Schedule, Vector, rate_at
from onlinevi.rules import Adaptive, Rate, as_rate


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


def fixed(array: Vector) -> Vector:
    """The array, no longer to be written: part of a value."""
    array.setflags(write=False)
    return array
