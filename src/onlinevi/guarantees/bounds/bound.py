"""A bound as a value: its terms, its name, whether it holds, and when it says more than nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinevi.engine import Vector

MOST_EVENTS = 1 << 60
"""A bound that says nothing before this many events never will."""


@dataclass(frozen=True)
class Bound:
    """The sum of its terms. On what it bounds, see the function that gave it."""

    name: str
    terms: Mapping[str, float]
    valid: bool = True
    """False for a statement as the paper prints it, where that does not hold."""
    note: str = ""
    trivial: float = math.inf
    """What any decisions keep to: B·T for losses in [0, B], L·D·T for L-Lipschitz ones on a domain of diameter D."""

    @property
    def value(self) -> float:
        return math.fsum(self.terms.values())

    @property
    def vacuous(self) -> bool:
        """Whether it says no more than what holds for any decisions."""
        return not self.value < self.trivial

    def __repr__(self) -> str:
        terms = " + ".join(f"{value:.6g} ({name})" for name, value in self.terms.items())
        return f"Bound({self.name}: {self.value:.6g} = {terms}{'' if self.valid else '; not valid: ' + self.note})"


def informative_from(bound_at: Callable[[int], Bound]) -> int | None:
    """The least number of events from which on the bound is below the trivial one; None if there is none.

    ``bound_at(T)`` must fall with T beside its trivial bound, as every bound here does at a fixed rate or at its best one.

    >>> from onlinevi import bounds
    >>> bounds.informative_from(lambda T: bounds.ewa(rate=0.5, count=T, loss_bound=1.0, kl=3.0))
    7
    """
    high = 1
    while bound_at(high).vacuous:
        high *= 2
        if high > MOST_EVENTS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if bound_at(middle).vacuous else (low, middle)
    return high


def most_regret(lipschitz: float, diameter: float, count: int) -> float:
    """L·D·T: the regret of any decisions in the domain, and 0 where the losses are all the same."""
    return lipschitz * diameter * count if lipschitz > 0.0 else 0.0


def positive(**settings: float) -> None:
    """Refuse what is not a finite number > 0."""
    for name, value in settings.items():
        if not (value > 0.0 and math.isfinite(value)):
            raise ValueError(f"{name}={value!r}: the theorem needs a finite number > 0")


def non_negative(**settings: float) -> None:
    """Refuse what is not a finite number ≥ 0."""
    for name, value in settings.items():
        if not (value >= 0.0 and math.isfinite(value)):
            raise ValueError(f"{name}={value!r}: the theorem needs a finite number ≥ 0")


def whole(count: int) -> None:
    """Refuse what is not a number of events."""
    if count < 1 or count != int(count):
        raise ValueError(f"count={count!r}: a bound is for a number of events, at least 1")


def more_events_than(dim: float, count: int) -> None:
    """Refuse a stream that is no longer than the dimension: the logarithm of T/d is to be > 0."""
    whole(count)
    positive(dim=dim)
    if not count > dim:
        raise ValueError(f"count={count}, dim={dim}: the theorem needs more events than dimensions")


def as_squares(gradient_squares: Any) -> Vector:
    """Squared gradients as floats; what cannot be the square of a gradient is refused."""
    squares = np.asarray(gradient_squares, dtype=float)
    if squares.ndim != 1 or not squares.size or not ((squares >= 0.0) & np.isfinite(squares)).all():
        raise ValueError("gradient_squares: needs one finite number ≥ 0 an event, at least one event")
    return squares
