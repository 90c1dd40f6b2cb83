"""What was paid, and what was right: totals and curves in flat memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners import Forecast
from onlinevi.losses import Target
from onlinevi.runs.decisions import Decisions
from onlinevi.runs.metrics.classes import ClassScores
from onlinevi.runs.metrics.numbers import NumberScores
from onlinevi.runs.metrics.scores import WINDOW
from onlinevi.runs.metrics.thinned import Thinned

POINTS = 1024
"""The most points of a curve."""

# The columns of the curve: running totals at each event.
STEP, LOSS, HIT, WIDTH, BOUNDED = range(5)


class Metrics:
    """Totals over the events: loss, hits, widths; for classes, reliability.

    A hit is a right class, a number in its interval, or a number not above its quantile.
    """

    def __init__(
        self,
        kind: Target,
        *,
        level: float = 0.5,
        delay: int = 0,
        window: int = WINDOW,
        lead: str | None = None,
        decisions: Decisions | None = None,
    ) -> None:
        self._kind = kind
        self.totals = np.zeros(5)
        self.curve = Thinned(POINTS, 5)
        self.scores: ClassScores | NumberScores
        """What was predicted, in the metrics that people know."""
        if kind == "classes":
            self.scores = ClassScores(delay, window, decisions)
        else:
            self.scores = NumberScores(kind, delay, window, level, lead)

    @property
    def bins(self) -> Vector:
        """Of each bin of probabilities: their sum, how many events happened, how many there were."""
        self.scores.settle()
        return self.scores.bins

    def add(self, y: Vector, forecast: Forecast, loss: Vector) -> None:
        """Count events as they were predicted, and what that cost."""
        if self._kind == "classes":
            hits, widths = forecast.guess == (y if forecast.several else y > 0.0), np.zeros(len(y))
        elif self._kind == "quantile":
            hits, widths = y <= forecast.prediction, np.zeros(len(y))
        else:
            hits, widths = (forecast.lower <= y) & (y <= forecast.upper), forecast.upper - forecast.lower
        bounded = np.isfinite(widths)
        events = [np.ones(len(y)), loss, hits, np.where(bounded, widths, 0.0), bounded]
        table = np.cumsum(np.vstack([self.totals, np.column_stack(events)]), axis=0)[1:]
        self.totals = table[-1].copy() if len(table) else self.totals
        self.curve.add(table)
        self.scores.add(y, forecast, loss)

    def add_up(self, other: Metrics) -> None:
        """Add what was measured of other rows; curves of rows that were not one stream are not put together."""
        self.totals = self.totals + other.totals
        self.scores.add_up(other.scores)

    @property
    def count(self) -> int:
        return int(self.totals[STEP])

    @property
    def average_loss(self) -> float:
        return float(self.totals[LOSS] / self.totals[STEP]) if self.count else float("nan")

    @property
    def hit_rate(self) -> float:
        return float(self.totals[HIT] / self.totals[STEP]) if self.count else float("nan")

    @property
    def coverage(self) -> float:
        """How often the interval, or of classes the set, had what came; of a quantile, how often it was not below it."""
        return self.scores.coverage if isinstance(self.scores, ClassScores) else self.hit_rate

    def to_json(self) -> dict[str, Any]:
        known = {"totals": self.totals.tolist(), "bins": self.bins.tolist(), "curve": self.curve.to_json()}
        return known | {"scores": self.scores.to_json()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``to_json`` gave. Files of earlier versions have no scores: they begin here."""
        self.totals[:], self.bins[:] = saved["totals"], saved["bins"]
        self.curve.restore(saved["curve"])
        if "scores" in saved:
            self.scores.restore(saved["scores"])
        else:
            self.scores.since = self.count
