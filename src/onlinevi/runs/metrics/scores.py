"""Predictions in the metrics that people know: over all rows and over the last ones, beside what needs no model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners import Forecast
from onlinevi.runs.metrics.thinned import Thinned, array_of, text_of

WINDOW = 1000
"""How many rows are recent."""
BINS = 10
"""Bins of probabilities."""
HELD_BACK = 512
"""So many rows are measured at once: one by one they would cost more than learning from them."""
POINTS = 256
"""The most points of the curve."""
LARGEST, LARGEST_RECENT = 1e140, 1e30
"""Errors beyond this count as this, so that no sum of their squares is infinite; those of the last rows are single floats."""
ABSENT = -1.0
"""What stands for what was not measured of a row."""
WHOSE = ("learner", "constant", "last_label")
"""Who is measured: the learner, who always says the best constant so far, and who says the same as last time."""


@dataclass(frozen=True)
class Measured:
    """Metrics by their names, the most telling first: of the learner, and of what needs none. NaN where one is not defined."""

    events: int
    """How many rows were predicted."""
    learner: dict[str, float]
    constant: dict[str, float] = field(default_factory=dict)
    """Of always saying the best constant so far: how often classes came, the mean, or the quantile of the labels before."""
    last_label: dict[str, float] = field(default_factory=dict)
    """Of saying the same as last time."""


class Scores(ABC):
    """Sums over rows, from which the metrics are made; any split of the rows gives the same bits.

    A kind of label is a subclass: what is kept of a row, what of it is added up, and what the sums mean.
    """

    said: ClassVar[tuple[str, ...]]
    """What is kept of each recent row."""
    summed: ClassVar[tuple[str, ...]]
    """What is added up of each predictor."""
    extras: ClassVar[tuple[str, ...]] = ()
    """What is added up beside."""
    said_at_first: int
    """How many of these files of earlier versions have, whose other sums are 0."""
    shown: tuple[str, ...]
    """The metrics that are told over time."""
    lead: str
    """The metric by which the learner is compared with what needs none."""

    def __init__(self, window: int = WINDOW) -> None:
        if window < 1:
            raise ValueError(f"window={window}: needs at least one row")
        self.window, self.since = window, 0
        """How many rows are recent; and how many came before the first that was measured: earlier versions measured none."""
        self.totals = np.zeros(1 + len(WHOSE) * len(self.summed) + len(self.extras))
        self.bins = np.zeros((3, BINS))
        """Of classes, and of each bin of probabilities: their sum, how many events happened, how many there were.

        Of two classes the event is the second one; of more it is that the guess is right.
        """
        self.curve = Thinned(POINTS, len(self.totals))
        self._recent: list[Any] = []
        self._held_back: list[tuple[Vector, Forecast, Vector]] = []
        self._behind = 0
        """How many rows are held back."""

    @property
    def count(self) -> int:
        """How many rows were measured so far."""
        return int(self.totals[0])

    def add(self, y: Vector, forecast: Forecast, loss: Vector) -> None:
        """Take rows as they were predicted before their labels were seen."""
        if len(y):
            self._held_back.append((y, forecast, loss))
            self._behind += len(y)
        if self._behind >= HELD_BACK:
            self.settle()

    def settle(self) -> None:
        """Measure the rows that were held back: whatever is read of the sums comes behind it."""
        held, self._held_back, self._behind = self._held_back, [], 0
        if not held:
            return
        y, loss = (np.concatenate([part[place] for part in held]) for place in (0, 2))
        said = np.clip(self._said(y, Forecast.joined([forecast for _, forecast, _ in held]), loss), -LARGEST, LARGEST)
        terms = [np.ones((len(y), 1)), self._terms(said), self._extras(said)]
        table = np.cumsum(np.vstack([self.totals, np.column_stack(terms)]), axis=0)[1:]
        self.totals = table[-1].copy()
        self.curve.add(table)
        self._recent.append(np.clip(said[-self.window :], -LARGEST_RECENT, LARGEST_RECENT).astype("<f4"))
        if sum(map(len, self._recent)) > 4 * self.window:
            self._recent = [self.recent]

    @property
    def recent(self) -> Any:
        """The last rows, a column for each of ``said``, in single floats."""
        joined = np.concatenate(self._recent) if self._recent else np.empty((0, len(self.said)), "<f4")
        return joined[-self.window :]

    def so_far(self) -> Measured:
        """Over all rows that were measured."""
        self.settle()
        return self._measured(self.count, self.totals[1:], None)

    def lately(self) -> Measured:
        """Over the last rows, as many as the window has."""
        self.settle()
        recent = self.recent.astype(float)
        return self._measured(len(recent), self._terms(recent).sum(axis=0), recent)

    def over_time(self, most: int) -> tuple[Vector, dict[str, Vector]]:
        """Steps, and between each and the one before the metrics that are told over time: a column for each predictor."""
        self.settle()
        table = self.curve.table
        ends = np.searchsorted(table[:, 0], np.linspace(0.0, self.count, min(most, len(table)) + 1)[1:] - 0.5)
        kept = table[np.unique(np.minimum(ends, len(table) - 1))] if len(table) else table
        sums = np.diff(kept, axis=0, prepend=np.zeros((1, len(self.totals))))
        return self.since + kept[:, 0], {name: self._shown(name, sums) for name in self.shown}

    def add_up(self, other: Any) -> None:
        """Add what was measured of other rows, with their own baselines; of curves and last rows there are none together."""
        self.settle()
        other.settle()
        self._add_extras(other)
        self.bins, self.totals = self.bins + other.bins, self.totals + other.totals
        self.since += other.since

    # --- what a kind of label gives

    @abstractmethod
    def _said(self, y: Vector, forecast: Forecast, loss: Vector) -> Vector:
        """What is kept of rows, as they come, and counted where it is no sum."""

    @abstractmethod
    def _terms(self, said: Vector) -> Vector:
        """What is added up of rows: of each of ``summed`` a column for each predictor."""

    def _extras(self, said: Vector) -> Vector:
        """What is added up beside, as rows come."""
        return np.empty((len(said), 0))

    @abstractmethod
    def _measured(self, events: int, sums: Vector, recent: Vector | None) -> Measured:
        """The metrics of these sums: of all rows, or of the last ones, which are given."""

    def _shown(self, name: str, sums: Vector) -> Vector:
        """A metric over time, of differences of totals: a mean of what is summed."""
        return np.asarray(sums[:, self._columns(name)] / sums[:, :1])

    @abstractmethod
    def _add_extras(self, other: Any) -> None:
        """Add what is no sum of ``totals``, before these are added."""

    # --- files

    def _columns(self, name: str) -> slice:
        """Where the sums of each predictor stand among the totals."""
        first = 1 + len(WHOSE) * self.summed.index(name)
        return slice(first, first + len(WHOSE))

    def to_json(self) -> dict[str, Any]:
        self.settle()
        kept = {"kept": text_of(self.curve.kept), "last": text_of(self.curve.last)}
        curve = {"stride": self.curve.stride, "count": self.curve.count} | kept
        known = {"window": self.window, "since": self.since, "totals": text_of(self.totals), "curve": curve}
        known |= {"said": len(self.said)}
        return known | {"recent": text_of(self.recent, "<f4"), "own": self._own()}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what ``to_json`` gave."""
        curve, totals = saved["curve"], array_of(saved["totals"], 1).ravel()
        width, more = len(totals), len(self.totals) - len(totals)
        self.window, self.since = saved["window"], saved["since"]
        self.totals = np.pad(totals, (0, more))
        self.curve.stride, self.curve.count = curve["stride"], curve["count"]
        self.curve.kept, self.curve.last = (
            np.pad(array_of(curve[part], width), ((0, 0), (0, more))) for part in ("kept", "last")
        )
        recent = array_of(saved["recent"], saved.get("said", self.said_at_first), "<f4")
        added = len(self.said) - recent.shape[1]
        self._recent = [np.pad(recent, ((0, 0), (0, added)), constant_values=ABSENT)]
        self._restore_own(saved["own"])

    @abstractmethod
    def _own(self) -> dict[str, Any]:
        """What a kind of label keeps beside, as JSON values."""

    @abstractmethod
    def _restore_own(self, saved: Mapping[str, Any]) -> None:
        """Go on from what ``_own`` gave."""


def mean(total: float, count: float) -> float:
    """A mean; NaN of nothing."""
    return float(total / count) if count else float("nan")
