"""Alarms of a run: when its losses have grown, and which columns have moved then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import Vector
from onlinevi.guarantees import Alarm, AlarmState, Rang
from onlinevi.runs.metrics.thinned import array_of, text_of

PARTS = 20
"""So many blocks are recent at most."""
WIDEST = 100
"""Of more columns it is not told which have moved."""
MOST_KEPT = 64
"""Of more alarms the last ones are told of."""
MOST_MOVED = 25
"""Features of which it is kept that they moved with an alarm: a date has eight, and is one column."""
LARGEST = 1e140
LEAST_STDS, CHANCE = 0.25, 3.5
"""A column has moved by a quarter of a std at least, and by more than chance does: so many stds of a mean of so many rows."""


class Moved(NamedTuple):
    """The means of a column before an alarm and of late, and their distance in stds of before."""

    place: int
    """The number of the column; of labels −1 − the number of one of several classes, else −1."""
    before: float
    after: float
    stds: float


class Moments:
    """Counts, sums and squares of the columns of rows, block by block: the last ones, and all before together."""

    def __init__(self, *, centred: bool) -> None:
        self._centred = centred
        self.centre = np.empty(0)
        """What is taken off each column before it is squared: its first value."""
        self.older, self.recent = np.zeros((3, 0)), np.zeros((0, 3, 0))
        self._begun = np.zeros((3, 0))
        self._rows = 0
        """Of the block that is not full yet."""

    def add(self, table: Vector) -> Vector:
        """Take rows: the sums of each block that they complete."""
        self._widen(table)
        rows = np.clip(np.pad(table, ((0, 0), (0, len(self.centre) - table.shape[1]))) - self.centre, -LARGEST, LARGEST)
        there = ~np.isnan(rows)
        rows = np.where(there, rows, 0.0)
        terms = np.stack([there.astype(float), rows, rows * rows], axis=1)
        first = min(Alarm.block - self._rows, len(terms))
        whole = first + (len(terms) - first) // Alarm.block * Alarm.block
        # One addition a row, in order: any split gives the same bits.
        self._begun = np.cumsum(np.concatenate([self._begun[None], terms[:first]]), axis=0)[-1]
        self._rows += first
        if self._rows < Alarm.block:
            return np.zeros((0, 3, len(self.centre)))
        done = np.cumsum(terms[first:whole].reshape((whole - first) // Alarm.block, Alarm.block, 3, len(self.centre)), axis=1)[
            :, -1
        ]
        done = np.concatenate([self._begun[None], done])
        self._rows = len(terms) - whole
        self._begun = np.cumsum(np.concatenate([np.zeros_like(done[:1]), terms[whole:]]), axis=0)[-1]
        return np.asarray(done)

    def _widen(self, table: Vector) -> None:
        known, more = len(self.centre), table.shape[1] - len(self.centre)
        if more > 0:
            new = np.nan_to_num(table[0, known:]) if self._centred else np.zeros(more)
            self.centre = np.concatenate([self.centre, new])
            self.older, self.recent, self._begun = (
                np.concatenate([part, self._before(part, more)], axis=-1) for part in (self.older, self.recent, self._begun)
            )

    def _before(self, part: Vector, more: int) -> Vector:
        """Columns that join: of features nothing is known before, while a class that had not come was none of those before."""
        joined = np.zeros((*part.shape[:-1], more))
        if not self._centred:
            joined[..., 0, :] = part[..., 0, :1] if part.shape[-1] else 0.0
        return joined

    def keep(self, blocks: Vector) -> None:
        """Put full blocks behind those that are kept."""
        for block in np.concatenate([self.recent, blocks])[:-PARTS]:
            self.older = self.older + block
        self.recent = np.concatenate([self.recent, blocks])[-PARTS:]

    def moved(self, recent: int) -> list[Moved]:
        """The columns that moved between the last so many blocks and those before."""
        recent = max(1, min(recent, len(self.recent)))
        before, after = self.older.copy(), np.zeros_like(self.older)
        for place, block in enumerate(self.recent):
            if place < len(self.recent) - recent:
                before += block
            else:
                after += block
        counts = np.minimum(before[0], after[0])
        means = [part[1] / np.maximum(part[0], 1.0) for part in (before, after)]
        variance = before[2] / np.maximum(before[0], 1.0) - np.square(means[0])
        # A column that was constant, up to rounding, is measured by what it is now.
        constant = variance <= 1e-12 * before[2] / np.maximum(before[0], 1.0)
        other = after[2] / np.maximum(after[0], 1.0) - np.square(means[1])
        std = np.sqrt(np.maximum(np.where(constant, other, variance), 0.0))
        stds = np.divide(means[1] - means[0], std, out=np.zeros(len(std)), where=std > 0.0)
        told = (np.abs(stds) >= np.maximum(LEAST_STDS, CHANCE / np.sqrt(np.maximum(counts, 1.0)))) & (counts >= 2.0)
        parts = np.column_stack([self.centre + means[0], self.centre + means[1], stds])
        return [Moved(place, *parts[place].tolist()) for place in np.flatnonzero(told).tolist()]

    def begin_anew(self) -> None:
        """Forget what came so far."""
        self.older, self.recent = np.zeros_like(self.older), self.recent[:0]

    def leave_out(self) -> None:
        """Keep nothing of any column."""
        self.centre, self.older, self.recent = np.empty(0), np.zeros((3, 0)), np.zeros((0, 3, 0))
        self._begun = np.zeros((3, 0))

    def to_json(self) -> dict[str, Any]:
        tables = {"centre": self.centre, "older": self.older, "recent": self.recent, "begun": self._begun}
        return {"width": len(self.centre), "rows": self._rows} | {name: text_of(part) for name, part in tables.items()}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what ``to_json`` gave."""
        width, self._rows = saved["width"], saved["rows"]
        if not width:
            return
        self.centre = array_of(saved["centre"], width)[0]
        self.older, self._begun = array_of(saved["older"], width), array_of(saved["begun"], width)
        self.recent = array_of(saved["recent"], 3 * width).reshape(-1, 3, width)


class Alarms:
    """Watches losses by ``onlinevi.Alarm``, and the means of columns and labels beside."""

    def __init__(self, delta: float | None) -> None:
        self.alarm = None if delta is None else Alarm(delta)
        self.state = AlarmState()
        self.since = 0
        """How many rows came before the first that was watched: earlier versions watched none."""
        self.count = 0
        """How often it has rung."""
        self.rang: list[tuple[Rang, list[Moved]]] = []
        """The last alarms, and what had moved."""
        self._columns, self._labels = Moments(centred=True), Moments(centred=False)

    def add(self, X: Any, y: Vector, loss: Vector, *, classes: bool, several: bool) -> None:
        """Take rows as they were learned from, and what they cost."""
        if self.alarm is None or not len(y):
            return
        if X.shape[1] > WIDEST:
            self._columns.leave_out()
        kept = self.state.count // Alarm.block
        columns, labels = self._columns.add(_dense(X)), self._labels.add(_columns_of(y, classes=classes, several=several))
        self.state, rang = self.alarm.update_many(self.state, np.minimum(loss, 1e300))
        done = 0
        for one in rang:
            stop = one.at // Alarm.block - kept
            self._columns.keep(columns[done:stop])
            self._labels.keep(labels[done:stop])
            self._ring(one)
            done = stop
        self._columns.keep(columns[done:])
        self._labels.keep(labels[done:])

    def _ring(self, rang: Rang) -> None:
        recent = (rang.at - rang.since) // Alarm.block
        moved = [*self._columns.moved(recent), *(one._replace(place=-1 - one.place) for one in self._labels.moved(recent))]
        moved = sorted(moved, key=lambda one: -abs(one.stds))[:MOST_MOVED]
        own = rang._replace(at=rang.at + self.since, since=rang.since + self.since)
        self.count += 1
        self.rang = [*self.rang, (own, moved)][-MOST_KEPT:]
        self._columns.begin_anew()
        self._labels.begin_anew()

    def to_json(self) -> dict[str, Any]:
        return {
            "state": self.state.to_json(),
            "since": self.since,
            "count": self.count,
            "rang": [[list(one), [list(each) for each in moved]] for one, moved in self.rang],
            "columns": self._columns.to_json(),
            "labels": self._labels.to_json(),
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what ``to_json`` gave."""
        self.state, self.since, self.count = AlarmState.from_json(saved["state"]), saved["since"], saved["count"]
        self.rang = [(Rang(*one), [Moved(*each) for each in moved]) for one, moved in saved["rang"]]
        self._columns.restore(saved["columns"])
        self._labels.restore(saved["labels"])


def _dense(X: Any) -> Vector:
    """Rows of few columns, none of those of many."""
    if X.shape[1] > WIDEST:
        return np.empty((X.shape[0], 0))
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)


def _columns_of(y: Vector, *, classes: bool, several: bool) -> Vector:
    """Labels as columns of numbers: of two classes whether the second came, of more whether each did."""
    if not classes:
        return y[:, None]
    codes = y.astype(np.int64) if several else (y > 0.0).astype(np.int64)
    known = np.arange(codes.max() + 1) if several else np.ones(1, dtype=np.int64)
    return np.asarray(codes[:, None] == known, dtype=float)
