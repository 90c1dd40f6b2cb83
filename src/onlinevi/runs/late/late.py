"""Rows that are learned from later than they come: so many rows later, or when their label comes by key.

What comes is handled in the order of its time, rows before labels of the same time, each source in its own order. A row first
lets go of those that have waited too long; it is predicted by what is known then, and waits.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlinevi.data import Encoded, Position, Waiting
from onlinevi.engine import Vector
from onlinevi.learners import BadRow, Forecast
from onlinevi.runs.explain import Explained
from onlinevi.runs.late.feed import Timed
from onlinevi.runs.late.kept import (
    KeptRow,
    Said,
    Settled,
    WaitingLabel,
    WaitingRow,
    facts_from_json,
    facts_to_json,
    rows_from_json,
    rows_to_json,
)
from onlinevi.runs.late.labels import Label, Labels
from onlinevi.runs.late.wait import Wait
from onlinevi.runs.widths import as_wide, widened

if TYPE_CHECKING:
    from onlinevi.runs.job import Job


@dataclass
class Counts:
    """What became of rows and labels."""

    labelled: int = 0
    """Rows that were learned with their label."""
    otherwise: int = 0
    """Rows that waited in vain, and were learned with the label that stands for none."""
    left_out: int = 0
    """Rows that waited in vain, and were not learned."""
    crowded: int = 0
    """Rows that were left out because too many waited."""
    repeated: int = 0
    """Rows under the key of one that waited still, and not learned."""
    early: int = 0
    """Labels that came before their row, and waited for it."""
    duplicates: int = 0
    """Labels of rows that had one, and not used."""
    too_late: int = 0
    """Labels of rows that waited no more."""
    orphans: int = 0
    """Labels whose row did not come while they waited."""
    out_of_order: int = 0
    """Rows and labels that happened before what came before them."""


class Arrivals(NamedTuple):
    """Rows as they come, and the labels that come between them."""

    timed: Timed
    labels: Labels

    def part(self, start: int, stop: int) -> Arrivals:
        """Some of the rows, with the same labels."""
        return Arrivals(self.timed.part(start, stop), self.labels)


class Measured(NamedTuple):
    """A row that has been learned from, and is to be counted."""

    X: Any
    label: float
    forecast: Forecast
    cost: float | None
    """What it cost, where there are several classes; else the loss tells, of many rows at once."""


class Late:
    """What waits in a run, and what it learns when. All of it is part of the checkpoint."""

    def __init__(self, delay: int, wait: Wait | None) -> None:
        self.wait = wait
        most = delay + 1 if wait is None else wait.most
        self.rows = Waiting[Hashable, WaitingRow](most)
        self.labels = Waiting[str, WaitingLabel](most)
        self.settled = Waiting[str, Settled](most)
        """Keys whose rows wait no more: what comes for them is told apart for as long as a row waits."""
        self.counts = Counts()
        self.position: Position | None = None
        """How far the labels have been used."""
        self.clock = self.latest_row = self.latest_label = -math.inf
        """The time, and how far either source has come."""
        self.came = 0
        """How many rows have come."""
        self._most_rows = delay if wait is None else wait.rows or math.inf
        self._seconds = math.inf if wait is None else wait.seconds or math.inf
        self._measured: list[Measured] = []
        self._told: list[tuple[int, Forecast, Explained | None]] = []

    @property
    def unmeasured(self) -> int:
        """Rows that were learned from, and are counted with those that follow."""
        return len(self._measured)

    # --- labels that come so many rows later

    def learn_later(self, job: Job, number: int, X: Any, y: Vector, weights: Vector | None) -> tuple[Forecast, Vector]:
        """One row whose label is known: predicted by what was learned from rows more than the delay before it, and paid."""
        events = job.learner.look(as_wide(job.learner, job.state, X), X, y)
        self._release_by_count(job)
        weight = None if weights is None else float(weights[0])
        self.rows.add(number, WaitingRow(number, self.came, math.nan, KeptRow.of(X), float(y[0]), weight))
        self.came += 1
        return job.learner.said(events), events.loss

    # --- labels that come by key

    def take(self, job: Job, rows: Encoded, position: Position, arrivals: Arrivals) -> None:
        """Rows in their order, each behind the labels that came before it."""
        places = np.searchsorted(arrivals.timed.batch.rows, rows.rows).tolist()
        try:
            for place, at in enumerate(places):
                time = float(arrivals.timed.times[at])
                job.position = position._replace(rows=int(rows.rows[place]))  # should a bad row or label stop the run here
                self._hear(job, arrivals.labels, time, rows)
                job.rejected.settle(int(rows.rows[place]))
                unordered = self._pass(job, time, back=bool(arrivals.timed.back[at]))
                self._row(job, rows, place, arrivals.timed.keys[at] or "")
                self.latest_row = time
                self.counts.out_of_order += unordered
        finally:
            self._tell(job, rows)
            self._measure(job)

    def hear(self, job: Job, labels: Labels, before: float) -> None:
        """The labels that came before a time, and before the next row."""
        try:
            self._hear(job, labels, before, None)
        finally:
            self._measure(job)

    def pass_over(self, job: Job, labels: Labels) -> None:
        """Labels that were all refused, behind those that have been used."""
        passed, labels.passed = labels.passed, None
        assert passed is not None
        if self.position is None or self.position.rows < passed.rows:
            self.position = passed
        job.rejected.beside.settle(passed.rows)

    def _hear(self, job: Job, labels: Labels, before: float, rows: Encoded | None) -> None:
        """The same; ``rows`` are those that are predicted meanwhile."""
        for label in labels.before(before):
            self.position = label.position
            job.rejected.beside.settle(label.position.rows)
            unordered = self._pass(job, label.time, back=label.back)
            if len(label.names) > len(job.class_names):
                self._tell(job, rows)  # what was said before is told by the names of then
                job.join_classes(label.names)
            if label.refused is not None:
                job.rejected.beside(label.refused)
                job.rejected.beside.settle(label.refused.row + 1)
            else:
                self._label(job, label)
            self.latest_label = label.time
            self.counts.out_of_order += unordered
            self.position = label.position._replace(rows=label.position.rows + 1)

    def _row(self, job: Job, rows: Encoded, place: int, key: str) -> None:
        """A row is predicted, and waits for its label, unless that is there."""
        job.join(int(rows.widths[place]))
        X = widened(rows.X[place : place + 1], job.state.inputs.dim)
        number, weight = int(rows.rows[place]), None if rows.weights is None else float(rows.weights[place])
        try:
            forecast = job.learner.forecast(job.state, X)
        except BadRow as bad:
            self._refuse(job, number, bad)
            return
        told = place, forecast, job.parts(job.state, X, forecast)
        if weight != 0.0:  # else it is only predicted
            self._release_by_count(job)
            self._await(job, X, forecast, key, number, weight)
            self.came += 1
        self._told.append(told)
        if job.explains:
            self._tell(job, rows)

    def _await(self, job: Job, X: Any, forecast: Forecast, key: str, number: int, weight: float | None) -> None:
        waiting = WaitingRow(number, self.came, self.clock, KeptRow.of(X), None, weight, self._said(job, X, forecast))
        early = self.labels.at(key)
        if key in self.rows:
            self.counts.repeated += 1
        elif early is not None:
            self._learn(job, waiting, early.label)
            self.labels.take(key)
            self.counts.early += 1
            self.counts.labelled += 1
            self._settle(key, labelled=True)
        else:
            gone = self.rows.add(key, waiting)
            if key in self.settled:
                self.settled.take(key)
            if gone is not None:
                self.counts.crowded += 1
                self._settle(str(gone[0]), labelled=False)

    def _label(self, job: Job, label: Label) -> None:
        """A label is learned with its row, or waits for it, unless it is known that none will come."""
        waiting, settled = self.rows.at(label.key), self.settled.at(label.key)
        if waiting is not None:
            self._learn(job, waiting, label.value)
            self.rows.take(label.key)
            self.counts.labelled += 1
            self._settle(label.key, labelled=True)
        elif label.key in self.labels or (settled is not None and settled.labelled):
            self.counts.duplicates += 1
        elif settled is not None:
            self.counts.too_late += 1
        elif self.labels.add(label.key, WaitingLabel(self.came, self.clock, label.value)) is not None:
            self.counts.orphans += 1

    def _said(self, job: Job, X: Any, forecast: Forecast) -> Said:
        """What was said, and of several classes what each will have cost."""
        if not job.learner.several:
            return Said.of(forecast, None)
        codes = np.arange(forecast.prediction.shape[1] + 1.0)
        return Said.of(forecast, job.learner.look(job.state, X[np.zeros(len(codes), dtype=int)], codes).loss)

    def _settle(self, key: str, *, labelled: bool) -> None:
        self.settled.add(key, Settled(self.came, self.clock, float(labelled)))

    # --- what has waited long enough

    def _pass(self, job: Job, time: float, *, back: bool) -> bool:
        """Let the time pass, and let go of what has waited too long by then; whether it should have passed before."""
        unordered = back or time < self.clock
        self.clock = max(self.clock, time)
        self._release(job, lambda waiting: self.clock > waiting.time + self._seconds)
        return unordered

    def _release_by_count(self, job: Job) -> None:
        """Let go of what has seen enough rows come, the present one included."""
        self._release(job, lambda waiting: self.came - waiting.came >= self._most_rows)

    def _release(self, job: Job, over: Any) -> None:
        for key, row in self.rows.overdue(over):
            label = row.label if self.wait is None else job.otherwise
            if label is not None:
                self._learn(job, row, label)
            if self.wait is not None:
                self.counts.otherwise += label is not None
                self.counts.left_out += label is None
                self._settle(str(key), labelled=False)
        self.counts.orphans += sum(1 for _ in self.labels.overdue(over))
        for _ in self.settled.overdue(over):
            pass

    # --- learning

    def _learn(self, job: Job, row: WaitingRow, label: float) -> None:
        """Learn from a row. One that the learner refuses is counted and done with, or stops the run and waits on."""
        X, y = widened(row.row.matrix, job.state.inputs.dim), np.array([label])
        own = None if row.weight is None else np.array([row.weight])
        class_weights, weights = (job.class_weights, own) if self.wait is None else job.weigh(y, own)
        counted = weights is None or weights[0] > 0.0
        try:
            if counted:
                job.state, _ = job.learner.update_many(job.state, X, y, weights=weights)
        except BadRow as bad:
            self._refuse(job, row.number, bad)
            return
        job.class_weights = class_weights
        if row.said is not None and counted:
            forecast, costs = row.said.parts
            self._measured.append(
                Measured(X, label, forecast, None if costs is None else costs[min(int(label), len(costs) - 1)])
            )
            job.snapshots.add(job.learner, job.state, job.events, certify=False)

    def _refuse(self, job: Job, number: int, bad: BadRow) -> None:
        """A row that the learner refuses counts at once: nobody will come to it again."""
        job.refuse(number, bad.reason)
        job.rejected.settle(number + 1)

    def _measure(self, job: Job) -> None:
        """Count what was learned: many rows cost little more than one."""
        start, rows = 0, self._measured
        while start < len(rows):
            width = rows[start].X.shape[1]
            stop = next((place for place in range(start, len(rows)) if rows[place].X.shape[1] != width), len(rows))
            part = rows[start:stop]
            y, forecast = np.array([one.label for one in part]), Forecast.joined([one.forecast for one in part])
            told = [one.cost for one in part if one.cost is not None]
            loss = np.array(told) if told else np.asarray(job.learner.loss(y, forecast.prediction).value)
            job.count(stacked([one.X for one in part]), y, forecast, loss)
            start = stop
        self._measured = []

    def _tell(self, job: Job, rows: Encoded | None) -> None:
        """Tell of the rows that were predicted since the last time, those that follow each other together."""
        told, self._told = self._told, []
        while told and rows is not None and job.on_rows is not None:
            first, _, parts = told[0]
            count = next((k for k, (place, *_) in enumerate(told) if place != first + k), len(told))
            forecast = Forecast.joined([one for _, one, _ in told[:count]])
            job.on_rows(rows.part(first, first + count), forecast, np.full(count, np.nan), parts)
            told = told[count:]

    # --- what is kept

    def to_json(self) -> dict[str, Any]:
        """All that waits, as a checkpoint keeps it."""
        if self.wait is None:
            return {"came": self.came, "rows": rows_to_json(self.rows)}
        return {
            "came": self.came,
            "rows": rows_to_json(self.rows),
            "labels": facts_to_json(self.labels, WaitingLabel),
            "settled": facts_to_json(self.settled, Settled),
            "counts": asdict(self.counts),
            "position": None if self.position is None else self.position.to_json(),
            "times": [time if math.isfinite(time) else None for time in (self.clock, self.latest_row, self.latest_label)],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``to_json`` gave."""
        self.came = saved["came"]
        for key, row in rows_from_json(saved["rows"]):
            self.rows.add(key, row)
        if self.wait is None:
            return
        for waiting, name, kind in ((self.labels, "labels", WaitingLabel), (self.settled, "settled", Settled)):
            for key, fact in facts_from_json(saved[name], kind):
                waiting.add(key, fact)
        self.counts = Counts(**saved["counts"])
        self.position = None if saved["position"] is None else Position.from_json(saved["position"])
        self.clock, self.latest_row, self.latest_label = (-math.inf if time is None else time for time in saved["times"])


def stacked(rows: list[Any]) -> Any:
    """Rows of one width as a matrix."""
    if hasattr(rows[0], "tocsr"):
        from scipy.sparse import vstack

        return vstack(rows, format="csr")
    return np.concatenate(rows)
