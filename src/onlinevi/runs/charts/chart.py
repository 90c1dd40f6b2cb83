"""A chart as data: its lines, points and axes, before anything draws it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from onlinevi.engine import Vector
from onlinevi.runs.charts.style import FAR, log_ticks, short

MARGIN = 0.06
"""The room around values, as a part of their range."""


Values: TypeAlias = Sequence[float] | Vector


@dataclass(frozen=True)
class Axis:
    """What an axis shows, from ``low`` to ``high``."""

    title: str
    low: float
    high: float
    log: bool = False
    names: tuple[str, ...] = ()
    """What stands at 0, 1, 2, … instead of numbers."""
    zero: bool = False
    """Whether a line marks 0."""

    @classmethod
    def around(cls, title: str, values: Any, *, log_if_positive: float | None = None, zero: bool = False) -> Axis:
        """An axis from the least to the largest of these values, with a margin.

        It is logarithmic, for those above 0, where these are at least the part ``log_if_positive`` of all and far apart.
        """
        finite = np.asarray(values, dtype=float)
        finite = finite[np.isfinite(finite)]
        above = finite[finite > 0.0]
        if log_if_positive is not None and len(above) and len(above) >= log_if_positive * len(finite):
            low, high = float(above.min()), float(above.max())
            if high > FAR * low:
                room = (high / low) ** MARGIN
                return cls(title, low / room, high * room, log=True)
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (1.0, 1.0)
        room = MARGIN * (high - low) or MARGIN * abs(high) or MARGIN
        return cls(title, low - room, high + room, zero=zero)

    @classmethod
    def rows(cls, first: float, last: float, *, log: bool = False, title: str = "row") -> Axis:
        """An axis of the rows of a stream, from edge to edge."""
        return cls(title, float(first), float(last) if last > first else first + 1.0, log)

    @property
    def ticks(self) -> dict[float, str]:
        """The text at each place; empty where numbers at even steps will do."""
        if self.log:
            return {tick: short(tick) for tick in log_ticks(self.low, self.high)}
        return {float(place): name for place, name in enumerate(self.names)}

    def place(self, value: float) -> float:
        """Where a value lies: 0 at the low end, 1 at the high end."""
        scale = math.log if self.log else float
        return (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))

    def shown(self, values: Any) -> Vector:
        """These values, with NaN for those that have no place: a line has a gap there."""
        numbers = np.array(values, dtype=float)
        numbers[~np.isfinite(numbers) | ((numbers <= 0.0) & self.log)] = np.nan
        return numbers


@dataclass(frozen=True, eq=False)
class Line:
    """A line, and the band around it if it has one; a dash makes it a reference. ``role`` names its colour."""

    name: str
    role: str
    steps: Values
    values: Values
    dash: Literal["solid", "dash", "dot"] = "solid"
    width: float = 2.0
    low: Values | None = None
    high: Values | None = None
    why: str = ""
    """Why it is among those that can be switched on and off."""

    @property
    def is_short(self) -> bool:
        """Whether it has so few points that each is marked, as those of a reference never are."""
        return len(self.steps) < 10 and self.role != "reference"


@dataclass(frozen=True, eq=False)
class Points:
    """Points, each with a bar to both sides (``across``) or up and down (``up``) if given."""

    name: str
    role: str
    x: Values
    y: Values
    count: Values | None = None
    """How many rows each stands for: its area says so."""
    across: Values | None = None
    up: Values | None = None
    dots: bool = True
    """Whether more than the bars is drawn."""
    size: float = 8.0
    """How wide a dot is, in pixels, where none counts for more rows than others."""


@dataclass(frozen=True, eq=False)
class Chart:
    """One chart. ``name`` is its place in a page, ``title`` stands above a figure."""

    name: str
    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...] = ()
    points: tuple[Points, ...] = ()
    question: str = ""
    """What a page has instead of the title."""
    caption: str = ""
    """What a page says of it, in sentences."""
    note: str = ""
    """What a figure says of it, in a small line below the title."""
    switched_on: int | None = None
    """How many of the lines are shown at first, where each can be switched on and off."""
