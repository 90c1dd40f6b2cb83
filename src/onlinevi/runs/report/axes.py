"""Ranges and ticks that read well, linear or logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from onlinevi.runs.charts.ticks import log_ticks, short


@dataclass(frozen=True)
class Axis:
    """What an axis shows."""

    title: str
    low: float
    high: float
    log: bool = False

    @classmethod
    def around(cls, title: str, values: Iterable[float | None], *, log: bool = False) -> Axis:
        """From the least to the largest of these values, with a margin. A logarithmic axis is for those above 0."""
        shown = [v for v in values if v is not None and math.isfinite(v) and (v > 0.0 or not log)] or [1.0]
        low, high = min(shown), max(shown)
        if log:
            room = (high / low) ** 0.06 if high > low else 1.5
            return cls(title, low / room, high * room, log=True)
        room = 0.06 * (high - low) or 0.06 * abs(high) or 0.06
        return cls(title, low - room, high + room)

    @classmethod
    def rows(cls, first: float, last: float, *, log: bool = False) -> Axis:
        """The rows of a stream, from edge to edge."""
        return cls("row", first, last if last > first else first + 1.0, log)

    def place(self, value: float) -> float:
        """Where a value lies: 0 at the low end, 1 at the high end."""
        scale = math.log if self.log else float
        return (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))

    def plotly(self) -> dict[str, Any]:
        layout: dict[str, Any] = {"title": {"text": self.title}, "range": [self.low, self.high], "separatethousands": True}
        if self.log:
            ticks = log_ticks(self.low, self.high)
            layout |= {
                "type": "log",
                "range": [math.log10(self.low), math.log10(self.high)],
                "tickvals": ticks,
                "ticktext": [short(tick) for tick in ticks],
            }
        return layout
