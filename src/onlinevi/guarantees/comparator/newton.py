"""Newton's method on the smooth stand-in, its window narrowed until the certified gap is small enough."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from onlinevi.engine import Vector
from onlinevi.guarantees.comparator.domain import Domain
from onlinevi.guarantees.comparator.objective import Look, Objective

SMALLEST_VALUE = 0.01
"""A tolerance is relative to the value, or to this where the value is smaller."""

SMOOTH_TOLERANCE = 1e-11
"""Newton's last steps double the digits: where the loss is smooth, exactness costs a step or two."""

NARROWER = 0.25
MOST_STEPS = 500
PATIENCE = 20
"""Steps at one width without a gain before the gap counts as the best that floats allow."""

SINGULAR = 10.0 * np.finfo(float).eps
"""Times the number of features, relative to the diagonal: added to the Hessian, it lets floats factor it."""

DAMPING = 1e-3
"""Where nothing curves, a step goes at most 1/DAMPING times across the domain; this vanishes as the minimiser nears."""


class Best(NamedTuple):
    """The lowest point and the highest bound seen."""

    point: Vector
    value: float
    lower_bound: float

    def seeing(self, point: Vector, look: Look) -> Best:
        # A NaN compares as False: where an end of a window overflowed, what was known stays.
        value = look.value if look.value < self.value else self.value
        lower_bound = look.lower_bound if look.lower_bound > self.lower_bound else self.lower_bound
        return Best(point if look.value < self.value else self.point, value, lower_bound)

    @property
    def gap(self) -> float:
        return self.value - self.lower_bound


def minimise(objective: Objective, domain: Domain, tolerance: float) -> Best:
    """The minimiser over the domain, with gap ≤ tolerance·max(value, 0.01) where floats allow it."""
    point = domain.nearest(np.zeros(objective.matrix.shape[1]))
    smooth = objective.smooth_at(point)
    width = 0.0 if smooth else first_width(objective, domain, point)
    look = objective.look(point, width, domain)
    best = Best(point, math.inf, -math.inf).seeing(point, look)
    if not math.isfinite(best.value):
        raise ValueError(f"{objective.loss}: the loss overflows at the point nearest to 0; {objective.loss.overflow_hint}")
    waited, narrowest = 0, 1e-14 * label_size(objective)
    for _ in range(MOST_STEPS):
        allowed = tolerance * max(best.value, SMALLEST_VALUE)
        finest = allowed if width > 0.0 else min(allowed, SMOOTH_TOLERANCE * max(best.value, SMALLEST_VALUE))
        stuck = waited == PATIENCE
        if best.gap <= (allowed if stuck else finest) or 0.0 < width < narrowest or (stuck and width > 0.0):
            break
        settled = width > 0.0 and look.stationarity <= look.slack
        moved = None if settled or stuck else newton_step(objective, domain, point, look, width)
        if moved is not None:
            point = moved
        elif width > 0.0:
            width, waited = width * NARROWER, 0
        else:  # a kink that the curvature did not tell of
            width, waited = first_width(objective, domain, point), 0
        look = objective.look(point, width, domain)
        gap, best = best.gap, best.seeing(point, look)
        waited = 0 if best.gap < 0.99 * gap else waited + 1
    return best


def label_size(objective: Objective) -> float:
    return max(1.0, float(np.abs(objective.labels).max()))


def first_width(objective: Objective, domain: Domain, point: Vector) -> float:
    """The widest window, from the size of the labels down, whose slack stays below half of the loss."""
    width = 2.0 * label_size(objective)
    while width > 1e-12:
        look = objective.look(point, width, domain)
        if look.slack <= 0.5 * max(abs(look.value), SMALLEST_VALUE):  # False for NaN: an end of the window overflowed
            break
        width *= 0.5
    return width


def newton_step(objective: Objective, domain: Domain, point: Vector, look: Look, width: float) -> Vector | None:
    """The next point; None where the derivative along the step jumps over zero, or where floats show no gain at this width."""
    hessian = objective.hessian(look.curvature)
    diagonal = np.diag_indices_from(hessian)
    curved = hessian[diagonal]
    hessian[diagonal] += SINGULAR * len(point) * np.where(curved > 0.0, curved, curved.mean() or 1.0)
    hessian[diagonal] += DAMPING * look.stationarity / domain.extent**2
    step = domain.newton_step(point, look.gradient, hessian)
    promised = float(look.gradient @ step)
    length: float | None
    if promised < -1e-13 * max(abs(look.value), SMALLEST_VALUE):
        predictions, change = objective.matrix @ point, objective.matrix @ step
        length = flat_length(lambda t: objective.slope_along(point, step, predictions, change, width, t), promised)
    else:  # below the resolution of the value only the gradient still tells: the full step is right for a smooth loss
        length = 1.0 if width == 0.0 else None
    return None if length is None else domain.nearest(point + length * step)


def flat_length(slope: Callable[[float], float], start: float) -> float | None:
    """1, or a length before it where an increasing slope has come near zero from start < 0; None where it jumps over zero."""
    low, high, below, above = 0.0, 1.0, start, slope(1.0)
    if above <= 0.2 * abs(start):
        return 1.0
    for _ in range(60):
        cut = below / (below - above) if math.isfinite(above) else 0.5
        length = low + (high - low) * min(max(cut, 0.1), 0.9)
        here = slope(length)
        if abs(here) <= 0.2 * abs(start):
            return length
        if here < 0.0:
            low, below = length, here
        else:
            high, above = length, here
    return None
