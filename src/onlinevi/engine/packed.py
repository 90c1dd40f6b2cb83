"""Packed arrays have named fields: what stands where in the arrays that a pass reads and writes.

A layout is a named tuple whose fields say what is held; ``positions`` makes of it the integers that index the array. Compiled
code reads them as constants, and the length of the tuple is the length of the array, or of its head.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

Layout = TypeVar("Layout", bound=NamedTuple)


def positions(layout: type[Layout]) -> Layout:
    """The position of every field, by its name.

    >>> SUM.count, SUM.weight, len(SUM)
    (0, 1, 12)
    """
    return layout._make(range(len(layout._fields)))


class Sums(NamedTuple):
    """The head of a packed state: sums over the events so far. Behind it lie the belief, the gradient totals and the drift."""

    count: int  # type: ignore[assignment]  # not the method of tuples
    weight: int
    weight_square: int
    loss: int
    """Σ loss at the decision, weighted."""
    expected: int
    """Σ E_q[loss]."""
    product: int
    """Σ ⟨gradient, (mean, std)⟩."""
    gradient_square: int
    """Σ ‖gradient‖²."""
    square: int
    """Σ ‖(mean, std)‖², with a ridge only."""
    largest_square: int
    """The largest ‖gradient‖²."""
    sloped: int
    """Σ weight where the loss has a slope at the decision, for robust losses."""
    slope_square: int
    """Σ weight·trust·slope² there."""
    magnitude: int
    """Σ |slope·prediction|: how large the summands of ``product`` that may cancel were."""


class Settings(NamedTuple):
    """What a pass reads as data, so that changing it compiles nothing."""

    step_scale: int
    step_power: int
    prior_scale: int
    prior_power: int
    per_variance: int
    """For JAX alone: the compiled loop has it as a part."""
    lead: int
    """1 where a step takes the rate of the next event."""
    moves_always: int
    ridge: int
    discount: int
    robust: int
    small_step: int
    """Up to which rate·curvature·std² a step is small."""
    widest: int
    """A row is refused whose prediction has a variance beyond this many Σ x²: the covariance has exploded."""
    mean_radius: int
    """Of the ball that means are scaled back to, infinite without one."""
    std_radius: int


class Recorded(NamedTuple):
    """A line of a record: what was predicted for an event, and what it cost."""

    prediction: int
    spread: int
    loss: int
    missing_mean_square: int
    """Where asked: the part of spread² that is the square of the means of missing values."""


SUM = positions(Sums)
SETTING = positions(Settings)
RECORD = positions(Recorded)
