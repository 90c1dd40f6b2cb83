"""Newton's method with a certificate: every visit to a point also gives a bound that no point of the set is below.

It serves ``hindsight`` and ``batch_vb``. Each of them goes through stand-ins of its problem, an easy one first: losses that
are smoothed less and less, rates that grow. One call here minimises one stand-in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from onlinevi.engine import Vector
from onlinevi.guarantees.comparator.feasible_set import FeasibleSet

SMALLEST_VALUE = 0.01
"""A tolerance is relative to the value, or to this where the value is smaller."""

RESOLUTION = 1e-13
"""A decrease below this share of the value is lost among the roundings of its sum."""

MOST_STEPS = 500
PATIENCE = 20
"""Steps without a gain before the gap counts as the best that floats allow."""


class Look(Protocol):
    """What one visit to a point shows."""

    @property
    def value(self) -> float:
        """Of the function to minimise."""

    @property
    def lower_bound(self) -> float:
        """No point of the set has a value below this."""

    @property
    def gradient(self) -> Vector:
        """Of the stand-in."""


L = TypeVar("L", bound=Look)


class Problem(Protocol[L]):
    """A convex function over a convex set, by a smooth stand-in for it."""

    @property
    def smooth(self) -> bool:
        """Whether the stand-in is the function itself."""

    def look(self, point: Vector) -> L: ...

    def reachable(self, point: Vector) -> FeasibleSet:
        """The part of the set that one step from here may reach."""

    def hessian(self, point: Vector, look: L) -> Vector:
        """Of the stand-in, such that floats can factor it."""

    def slope_along(self, point: Vector, step: Vector) -> Callable[[float], float]:
        """The stand-in's derivative in ``length`` at point + length·step."""

    def solved(self, best: Best[L], look: L) -> bool:
        """Whether the gap is small enough, or this stand-in has told all it can."""


class Best(NamedTuple, Generic[L]):
    """The lowest point seen, what was seen there, and the highest bound."""

    point: Vector
    look: L
    lower_bound: float

    def seeing(self, point: Vector, look: L) -> Best[L]:
        # A NaN compares as False: where an end of a window overflowed, what was known stays.
        lower_bound = look.lower_bound if look.lower_bound > self.lower_bound else self.lower_bound
        return Best(point, look, lower_bound) if look.value < self.value else Best(self.point, self.look, lower_bound)

    @property
    def value(self) -> float:
        return self.look.value

    @property
    def gap(self) -> float:
        return self.value - self.lower_bound


class Reached(NamedTuple, Generic[L]):
    """Where the method stopped, and the best of all that it saw."""

    point: Vector
    best: Best[L]
    stuck: bool
    """Whether it stopped because steps no longer gained."""


def minimise(problem: Problem[L], point: Vector, best: Best[L] | None = None) -> Reached[L]:
    """Minimise a stand-in from a point on. ``best`` is what others of the same function have seen."""
    look = problem.look(point)
    seen = (Best(point, look, -math.inf) if best is None else best).seeing(point, look)
    waited = 0 if best is None or seen.gap < 0.99 * best.gap else 1
    for _ in range(MOST_STEPS):
        if waited == PATIENCE or not math.isfinite(seen.value) or problem.solved(seen, look):
            break
        moved = next_point(problem, point, look)
        if moved is None:
            break
        point, look, before = moved, problem.look(moved), seen.gap
        seen = seen.seeing(point, look)
        waited = 0 if seen.gap < 0.99 * before else waited + 1
    return Reached(point, seen, waited == PATIENCE)


def next_point(problem: Problem[L], point: Vector, look: L) -> Vector | None:
    """The next point; None where the derivative along the step jumps over zero, or where floats show no gain."""
    reachable = problem.reachable(point)
    step = reachable.newton_step(point, look.gradient, problem.hessian(point, look))
    promised = float(look.gradient @ step)
    length: float | None
    if promised < -RESOLUTION * max(abs(look.value), SMALLEST_VALUE):
        length = flat_length(problem.slope_along(point, step), promised)
    else:  # below the resolution of the value only the gradient still tells: the full step is right for a smooth function
        length = 1.0 if problem.smooth else None
    return None if length is None else reachable.nearest(point + length * step)


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
