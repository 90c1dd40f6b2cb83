"""What a run keeps of its rows for reports, in flat memory: totals, thinned curves, and snapshots of the weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.guarantees import certificate
from onlinevi.learners import Forecast, Learner
from onlinevi.losses import Target

POINTS = 1024
"""The most points of a curve."""
BINS = 10
"""Bins of probabilities."""
MOST_SNAPSHOTS = 64
WIDEST = 200
"""More weights than this are not kept: they would be most of a checkpoint."""

# The columns of the curve: running totals at each event.
STEP, LOSS, HIT, WIDTH, BOUNDED = range(5)


class Thinned:
    """Of rows numbered 1, 2, 3, … those that a stride divides, and the last one; the stride doubles when ``most`` are kept."""

    def __init__(self, most: int, width: int) -> None:
        self.most, self.stride, self.count = most, 1, 0
        self.kept, self.last = np.empty((0, width)), np.empty((0, width))

    def add(self, rows: Vector) -> None:
        """Take the next rows."""
        numbers = self.count + np.arange(1, len(rows) + 1)
        chosen = rows[numbers % self.stride == 0]
        self.count += len(rows)
        self.last = rows[-1:].copy() if len(rows) else self.last
        self.kept = np.concatenate([self.kept, chosen])
        while len(self.kept) > self.most:
            self.stride *= 2
            self.kept = self.kept[1::2].copy()

    @property
    def table(self) -> Vector:
        """All rows kept, in order, the last one included."""
        ends = self.count % self.stride == 0
        return self.kept if ends else np.concatenate([self.kept, self.last])

    def to_json(self) -> dict[str, Any]:
        counts = {"stride": self.stride, "count": self.count}
        return counts | {"kept": self.kept.tolist(), "last": self.last.tolist()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``to_json`` gave."""
        self.stride, self.count = saved["stride"], saved["count"]
        width = self.kept.shape[1]
        self.kept, self.last = (np.array(saved[name], dtype=float).reshape(-1, width) for name in ("kept", "last"))


class Metrics:
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
                self._count_in_bins(forecast.chance, hits if forecast.several else codes)
        elif self._kind == "quantile":
            hits, widths = y <= forecast.prediction, np.zeros(len(y))
        else:
            hits, widths = (forecast.lower <= y) & (y <= forecast.upper), forecast.upper - forecast.lower
        bounded = np.isfinite(widths)
        events = [np.ones(len(y)), loss, hits, np.where(bounded, widths, 0.0), bounded]
        table = np.cumsum(np.vstack([self.totals, np.column_stack(events)]), axis=0)[1:]
        self.totals = table[-1].copy() if len(table) else self.totals
        self.curve.add(table)

    def _count_in_bins(self, probability: Vector, happened: Any) -> None:
        bins = np.minimum((probability * BINS).astype(int), BINS - 1)
        for row, values in enumerate((probability, happened, np.ones(len(bins)))):
            np.add.at(self.bins[row], bins, values)  # in order: any split gives the same bits

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

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``to_json`` gave."""
        self.totals[:], self.bins[:] = saved["totals"], saved["bins"]
        self.curve.restore(saved["curve"])


class Snapshots:
    """The weights, and what is certain of the regret, where the stride divides the number of events; the stride doubles when
    there are ``MOST_SNAPSHOTS``."""

    def __init__(self) -> None:
        self.stride = 1
        self.steps: list[int] = []
        self.weights: list[Any] = []
        """The mean and the std of the weight of each prepared feature, all of one scale; empty where there are too many.

        Of more than two classes, a list for each class.
        """
        self.certified: list[float | None] = []
        """Regret a row; None where nothing is certain."""

    def until_next(self, count: int) -> int:
        """How many events there are from this number of them to the next snapshot."""
        return self.stride - count % self.stride

    def add(self, learner: Learner[Any], state: Any, count: int, *, certify: bool) -> None:
        """Take the snapshot after this number of events, if one is due."""
        if count % self.stride:
            return
        self.steps.append(count)
        first, few = int(learner.inputs.intercept), state.space is None and state.inputs.dim * len(state.by_class()) <= WIDEST
        self.weights.append([state.mean[..., first:].tolist(), state.std[..., first:].tolist()] if few else [])
        self.certified.append(certified_regret(state) if certify else None)
        if len(self.steps) > MOST_SNAPSHOTS:
            self.stride *= 2
            self.steps, self.weights, self.certified = self.steps[1::2], self.weights[1::2], self.certified[1::2]

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``to_json`` gave."""
        self.stride, self.steps = saved["stride"], saved["steps"]
        self.weights, self.certified = saved["weights"], saved["certified"]


def certified_regret(state: Any) -> float | None:
    """A row, against every fixed point of the box; for a rule alone, whose box is bounded and whose loss is convex."""
    leaf = state.alone()
    if leaf is None or not leaf.plan.loss.convex:
        return None
    live = certificate(leaf)
    return live.regret / live.count if live.bounded else None
