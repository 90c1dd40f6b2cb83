"""Labels of a source of their own, in the order of their times."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from onlinevi.data import Position, Refused, Task, texts
from onlinevi.engine import Vector
from onlinevi.runs.late.feed import Feed, Timed

PATIENCE = 1.0
"""So many seconds rows and labels wait for what the other source may bring of the same time, where that one may pause."""


class Label(NamedTuple):
    """A label, and whose it is."""

    position: Position
    """Of the labels at it; it is the next to be read."""
    time: float
    back: bool
    """Whether it happened before one that came before it."""
    key: str
    value: float
    names: tuple[str, ...]
    """The classes that are known with it."""
    refused: Refused | None
    """Why it cannot be used."""


class Labels:
    """Takes labels from a feed; their column is read as ``task`` says, which takes in classes that join. Where a record is a
    label by being there, all of them are the label ``came``."""

    def __init__(self, feed: Feed, column: str, task: Task, came: float | None = None) -> None:
        self.feed, self._column, self._task, self._came = feed, column, task, came
        self._read: tuple[Timed, Vector, dict[int, tuple[str, str]]] | None = None
        self._place = 0
        self._waited_in_vain = False
        self.passed: Position | None = None
        """Behind labels that were all refused, until somebody takes note of it."""

    def before(self, time: float) -> Iterator[Label]:
        """Those that came before this time; each is used once the next is asked for."""
        while (timed := self._next()) is not None and timed.times[self._place] < time:
            yield self._label(*self._read)  # type: ignore[misc]
            self._place += 1
            if self._place == len(timed.keys):
                self.feed.drop(self._place)
                self._read, self._place = None, 0

    def earliest(self) -> float | None:
        """When the next label came; None where there is none, or none yet."""
        timed = self._next(0.0)
        return None if timed is None else float(timed.times[self._place])

    def latest(self, most: int) -> float:
        """When the last of the next so many came, as far as they are read already."""
        timed = self._next(0.0)
        return -math.inf if timed is None else float(timed.times[min(self._place + most, len(timed.times)) - 1])

    def _next(self, patience: float = PATIENCE) -> Timed | None:
        """What is read, with its labels; a source that paused is waited for only when it has brought something again."""
        while self._read is None:
            head = self.feed.head(0.0 if self._waited_in_vain else patience)
            if patience:
                self._waited_in_vain = head is None
            if head is None:
                return None
            if head.keys:
                self._read = head, *self._encoded(head)
            else:
                self.passed = head.position
                self.feed.drop(0)
        return self._read[0]

    def _encoded(self, timed: Timed) -> tuple[Vector, dict[int, tuple[str, str]]]:
        if self._came is not None:
            return np.full(len(timed.keys), self._came), timed.refused
        self._task, values, reasons = self._task.encode(self.feed.column(timed.batch, self._column))
        return values, {place: (self._column, why) for place, why in reasons.items()} | timed.refused

    def _label(self, timed: Timed, values: Vector, reasons: dict[int, tuple[str, str]]) -> Label:
        place, names = self._place, self._task.names
        number, value = int(timed.batch.rows[place]), float(values[place])
        refused = None
        if place in reasons:
            column, reason = reasons[place]
            cell = texts(timed.batch.columns[column].slice(place, 1))[0].as_py() if column in timed.batch.columns else ""
            refused = Refused(timed.batch.source, number, column, reason, cell or "")
        elif names:
            names = names[: max(int(value) if len(names) > 2 else int(value > 0.0), 0) + 1]
        return Label(
            timed.position._replace(rows=number),
            float(timed.times[place]),
            bool(timed.back[place]),
            timed.keys[place] or "",
            value,
            names,
            refused,
        )
