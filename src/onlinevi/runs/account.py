"""What a run keeps of its rows for the report: a few sums and thinned curves."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners import Forecast
from onlinevi.losses import Target
from onlinevi.runs.thinned import Thinned

POINTS = 1024
BINS = 10

# The columns of the curve: running totals at each event.
STEP, LOSS, HIT, WIDTH, BOUNDED = range(5)


class Account:
    """Totals over the events: loss, hits, widths; for classes, reliability.

    A hit is a right class, a number in its interval, or a number not above its quantile.
    """

    def __init__(self, kind: Target) -> None:
        self._kind = kind
        self.totals = np.zeros(5)
        self.bins = np.zeros((3, BINS))
        """Of each bin of probabilities: their sum, how many events happened, how many there were.

        Of two classes the event is the second one; of more it is that the guess is right.
        """
        self.curve = Thinned(POINTS, 5)

    def add(self, y: Vector, forecast: Forecast, loss: Vector) -> None:
        """Count events as they were predicted, and what that cost."""
        if self._kind == "classes":
            codes = y if forecast.several else y > 0.0
            hits, widths = forecast.guess == codes, np.zeros(len(y))
            if forecast.probability is not None:
                self._sort(forecast.chance, hits if forecast.several else codes)
        elif self._kind == "quantile":
            hits, widths = y <= forecast.prediction, np.zeros(len(y))
        else:
            hits, widths = (forecast.lower <= y) & (y <= forecast.upper), forecast.upper - forecast.lower
        bounded = np.isfinite(widths)
        events = [np.ones(len(y)), loss, hits, np.where(bounded, widths, 0.0), bounded]
        table = np.cumsum(np.vstack([self.totals, np.column_stack(events)]), axis=0)[1:]
        self.totals = table[-1].copy() if len(table) else self.totals
        self.curve.add(table)

    def _sort(self, probability: Vector, happened: Any) -> None:
        """Into the bins."""
        own = np.minimum((probability * BINS).astype(int), BINS - 1)
        for row, values in enumerate((probability, happened, np.ones(len(own)))):
            np.add.at(self.bins[row], own, values)  # in order: any split gives the same bits

    @property
    def count(self) -> int:
        return int(self.totals[STEP])

    @property
    def average_loss(self) -> float:
        return float(self.totals[LOSS] / self.totals[STEP]) if self.count else float("nan")

    @property
    def hit_rate(self) -> float:
        return float(self.totals[HIT] / self.totals[STEP]) if self.count else float("nan")

    def to_json(self) -> dict[str, Any]:
        return {"totals": self.totals.tolist(), "bins": self.bins.tolist(), "curve": self.curve.to_json()}

    def put(self, saved: dict[str, Any]) -> None:
        """Go on from what ``to_json`` gave."""
        self.totals, self.bins = np.array(saved["totals"]), np.array(saved["bins"])
        self.curve.put(saved["curve"])
