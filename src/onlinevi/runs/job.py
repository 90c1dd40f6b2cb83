"""A run over a stream, batch by batch: rows in, predictions out, everything learned kept."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from onlinevi.data import IN_MEMORY, BadInput, Batch, Encoded, Position, Refused, Schema, Stream, encode
from onlinevi.engine import Vector
from onlinevi.learners import BadRow, Forecast, InputState, Learner
from onlinevi.losses import Target
from onlinevi.runs.alarms import Alarms
from onlinevi.runs.class_weights import ClassWeights
from onlinevi.runs.decisions import Decisions
from onlinevi.runs.explain import Explained, explained
from onlinevi.runs.late import Arrivals, Labels, Late, label_of
from onlinevi.runs.metrics import Metrics, Snapshots, Thinned
from onlinevi.runs.rejected import Rejected
from onlinevi.runs.settings import Settings
from onlinevi.runs.widths import as_wide, begin, joined, widened

OF_COLUMN = re.compile(r"column (\d+) is (\S+): (.+)")
"""The reason of a learner that refuses a value."""
TIMES = 256
"""The most points of the clock."""


class OnRows(Protocol):
    """What is called with rows as they are predicted."""

    def __call__(self, rows: Encoded, forecast: Forecast, loss: Vector, parts: Explained | None = None, /) -> None: ...


class Origin(NamedTuple):
    """Which rows something was learned from: those of a source from ``first`` to those that the position has passed."""

    first: int
    position: Position

    def overlaps(self, other: Origin) -> bool:
        """Whether rows are in both, as far as the sums of the sources and the numbers of the rows tell."""
        ends = self.position.rows, other.position.rows
        return max(self.first, other.first) < min(ends) and self.position.begins_like(other.position)

    def followed_by(self, other: Origin) -> tuple[Origin, ...]:
        """Both of them; as one, where both were in memory: small tables that come by the thousand are one stream."""
        before, after = self.position, other.position
        if not before.source == after.source == IN_MEMORY:
            return self, other
        digest = sha256(f"{before.sha256} {after.sha256}".encode()).hexdigest()
        counts = before.rows + after.rows, before.bytes + after.bytes
        return (Origin(self.first, Position(IN_MEMORY, *counts, digest, before.prefixes)),)

    def __str__(self) -> str:
        return f"rows {self.first} to {self.position.rows - 1} of {self.position.source}"

    def to_json(self) -> list[Any]:
        return [self.first, self.position.to_json()]

    @staticmethod
    def from_json(saved: list[Any]) -> Origin:
        return Origin(saved[0], Position.from_json(saved[1]))


class Job:
    """Takes batches in order. Predictions are those made before the label; with a delay, before it and the rows between.

    Columns, names and classes join at the row that brought them, so the same rows give the same bits, whatever the batches.
    """

    def __init__(
        self, settings: Settings, schema: Schema, *, rejected: Rejected | None = None, on_rows: OnRows | None = None
    ) -> None:
        assert schema.task is not None
        self.settings, self.schema = settings, schema
        self.first_schema = schema
        """Before the first row."""
        self.kind: Target = settings.kind(schema.task)
        self.learner: Learner[Any] = settings.learner(schema.task)
        self.why = schema.task.why
        """Why the task is what it is, in words."""
        self.decisions = Decisions.of(settings.cost, settings.abstain, schema.task.names)
        """How rows are decided, where more than the guess was asked for."""
        self.state: Any = None
        """None before the first row."""
        self.joins: list[list[int]] = []
        """How wide the rows were from which event on."""
        self.metrics = Metrics(
            self.kind,
            level=settings.level,
            delay=settings.delay,
            window=settings.window,
            lead=self.learner.loss.metric,
            decisions=self.decisions,
        )
        self.snapshots, self.alarms = Snapshots(), Alarms(settings.alarm)
        self.clock = Thinned(TIMES, 2)
        """Events and seconds behind each batch."""
        self.rejected = rejected or Rejected()
        self.late = Late(settings.delay, settings.wait) if settings.late else None
        """What waits for labels, where they come later."""
        self.otherwise = None if settings.wait is None else label_of(settings.wait, schema.task)
        """What is learned of a row whose label does not come."""
        self.position: Position | None = None
        """How far the source has been used."""
        self.on_rows = on_rows
        self.beside: tuple[str, ...] = ()
        """Columns that ``on_rows`` is given as they are."""
        self.explains = False
        """Whether it is told what columns add to each prediction, which takes one row at a time."""
        self.class_weights = ClassWeights(settings.class_weight)
        self.prepared_by: InputState | None = None
        """Moments of another run, which stay as they are."""
        self.begun_with: int | None = None
        """How many columns that run had at its first row: what maps make of columns may depend on it."""
        self.before: tuple[Origin, ...] = ()
        """What it had learned from when it began, where it went on from a model."""
        self.merged: tuple[Origin, ...] = ()
        """What others have learned from, where this is the sum of them."""
        self.notes: dict[str, Any] = {}
        """What the caller wants kept beside it: JSON values."""
        self._source = ""
        """What messages call where the present rows are from."""

    @property
    def seconds(self) -> float:
        """How long it has taken."""
        return float(self.clock.last[0, 1]) if self.clock.count else 0.0

    @property
    def events(self) -> int:
        """How many were learned from, those that are yet to be measured among them."""
        return self.metrics.count + (0 if self.late is None else self.late.unmeasured)

    @property
    def seen(self) -> int:
        """How far its sources have been used, in rows, bad ones too; where labels come by key, in rows and labels."""
        positions = (self.position, None if self.late is None else self.late.position)
        return sum(0 if position is None else position.rows for position in positions)

    @property
    def had_missing(self) -> bool:
        """Whether a value was missing in a column that had joined; with moments of another run, whether one may have been."""
        if self.settings.missing != "nan" or self.prepared_by is not None:
            return self.settings.missing == "nan"
        widths = [width for _, width in self.joins]
        joined = np.repeat([events for events, _ in self.joins], np.diff(widths, prepend=0))
        return bool((self.state.inputs.lag > joined).any())

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The rows that it has learned from."""
        own = () if self.position is None else (Origin(self.settings.first_row, self.position),)
        if self.merged or not (own and self.before):
            return self.merged or (*self.before, *own)
        return (*self.before[:-1], *self.before[-1].followed_by(*own))

    @property
    def class_names(self) -> tuple[str, ...]:
        """In the order of their numbers; of more than two, the last ones may have yet to join."""
        return () if self.schema.task is None else self.schema.task.names

    def take_odd(self, odd: Literal["refuse", "missing"]) -> None:
        """Cells that are not of their column's kind make bad rows from now on, or are missing values."""
        self.schema, self.first_schema = self.schema.taking_odd(odd), self.first_schema.taking_odd(odd)

    def go_on(self, settings: Settings, rejected: Rejected) -> None:
        """Go on with the rows of another source; all that is summed goes on too."""
        if self.state is not None and any(leaf.without_sums for leaf in self.state.leaves()):
            raise ValueError("it is a merge by an earlier version, which kept no sums to go on with: merge its shards again")
        self.before, self.merged, self.position = self.origins, (), None
        if self.late is not None:
            self.late.position = None
        self.settings = settings
        rejected.go_on(self.rejected)
        self.rejected = rejected

    def take_all(self, batches: Iterable[Batch], stream: Stream) -> Iterator[None]:
        """Take the batches of a stream; the time that each takes is counted."""
        return self.timed(partial(self.take, batch, stream.position) for batch in batches)

    def timed(self, turns: Iterable[Callable[[], None]]) -> Iterator[None]:
        """Do one after the other, and count the time that it takes."""
        spent, begun = self.seconds, time.monotonic()
        for turn in turns:
            turn()
            self.clock.add(np.array([[self.metrics.count, spent + time.monotonic() - begun]]))
            yield

    def take(self, batch: Batch, position: Position, arrivals: Arrivals | None = None) -> None:
        """Predict the rows of a batch and learn from them; ``position`` is that of the stream behind it.

        With ``arrivals`` their labels come by key, and rows wait for them.
        """
        if not len(batch):  # all before it were refused
            self.rejected.settle(position.rows)
            self.position = position
            return
        before, refused = self.schema, None if arrivals is None else arrivals.timed.refused
        try:
            schema, rows = self._encoded(before, batch, self.rejected, refused)
        except BadInput as stopped:
            if stopped.refused is not None:
                self._take_before(stopped.refused.row, batch, position, arrivals)
            raise
        try:
            self.learn(batch.source, schema, rows, position, arrivals)
        except BadInput:  # a refusal of the learner: names behind the row that it stopped at have not come yet
            if self.position is not None and self.prepared_by is None:
                good, task = int(np.searchsorted(batch.rows, self.position.rows)), self.schema.task
                self.schema = self._encoded(before, batch.slice(0, good), Rejected("skip"), refused)[0] if good else before
                if arrivals is not None:  # whose classes are those of the labels that have come
                    self.schema = replace(self.schema, task=task)
            raise

    def _encoded(
        self, schema: Schema, batch: Batch, bad: Rejected, refused: Mapping[int, tuple[str, str]] | None
    ) -> tuple[Schema, Encoded]:
        return encode(schema, batch, bad, labels=refused is None, beside=self.beside, refused=refused)

    def learn(self, source: str, schema: Schema, rows: Encoded, position: Position, arrivals: Arrivals | None = None) -> None:
        """The same for rows that have been encoded, with the schema that they brought."""
        self._source = source
        if self.prepared_by is not None:  # what that run never met says nothing here either
            schema, width = replace(self.schema, task=schema.task), self.schema.width
            rows = rows._replace(X=rows.X[:, :width], widths=np.full(len(rows.rows), width))
        self.schema = schema
        self.settings.check_width(rows.X.shape[1])
        if arrivals is not None and self.late is not None:
            self.late.take(self, rows, position, arrivals)
        else:
            self._learn_in_parts(rows, position)
        self.rejected.settle(position.rows)
        self.rejected.as_missing += rows.odd
        self.position = position

    def hear(self, labels: Labels, before: float) -> None:
        """Learn from rows that wait for labels that came before a time, and before the next row."""
        assert self.late is not None
        self.late.hear(self, labels, before)

    def _learn_in_parts(self, rows: Encoded, position: Position) -> None:
        start, alike = 0, self._alike(rows)
        while start < len(rows.rows):
            self.join(int(rows.widths[start]))
            # Cut where a row brings a feature, and where a snapshot is due: any split gives the same bits.
            size = 1 if self.settings.delay or self.explains else self.snapshots.until_next(self.metrics.count)
            stop = min(int(np.searchsorted(rows.widths, rows.widths[start], side="right")), start + size)
            stop = min(stop, int(alike[np.searchsorted(alike, start, side="right")]))
            self._learn(rows, start, stop, position)
            start = stop

    def finish(self) -> None:
        """The stream has ended: bad rows behind its last good one count too."""
        behind = self.rejected.settle()
        if self.late is not None and self.late.position is not None:
            last = max(self.late.position.rows, self.rejected.beside.settle())
            self.late.position = self.late.position._replace(rows=last)
        if self.position is not None:
            self.position = self.position._replace(rows=max(self.position.rows, behind))

    def _take_before(self, row: int, batch: Batch, position: Position, arrivals: Arrivals | None) -> None:
        """The rows before one that stops the run; it is the first that a resumed run reads."""
        good = int(np.searchsorted(batch.rows, row))
        if good:
            self.take(batch.slice(0, good), position._replace(rows=row), arrivals and arrivals.part(0, good))

    def join_classes(self, names: tuple[str, ...]) -> None:
        """Classes that have come, in the order of their numbers."""
        assert self.schema.task is not None
        self.schema = replace(self.schema, task=replace(self.schema.task, names=names))

    def join(self, width: int) -> None:
        """The learner, as wide as the next row."""
        if self.state is None:
            moments = joined(InputState.start(0), self.schema, width) if self.prepared_by is None else self.prepared_by
            first = width if self.begun_with is None else min(self.begun_with, width)
            begun = begin(self.learner, first, sparse=self.schema.sparse)
            self.state = (begun if first == width else self.learner.widen(begun, width)).with_inputs(moments)
        elif width > self.state.inputs.dim:
            moments = joined(self.state.inputs, self.schema, width)
            self.state = self.learner.widen(self.state, width).with_inputs(moments)
        else:
            return
        self.joins.append([self.events, width])

    def _learn(self, rows: Encoded, start: int, stop: int, position: Position) -> None:
        """Rows that the learner refuses go where other bad rows go, and the others are learned from."""
        assert rows.y is not None
        while start < stop:
            X, y, first = widened(rows.X[start:stop], self.state.inputs.dim), rows.y[start:stop], int(rows.rows[start])
            self.position = position._replace(rows=first)  # should a bad row stop the run here
            class_weights, weights = self._weighed(rows, start, stop)
            counted = weights is None or bool(weights[0] > 0.0)  # of one kind all, as they were cut
            state = self.state
            try:
                if self.late is not None and self.settings.delay and counted:
                    forecast, loss = self.late.learn_later(self, first, X, y, weights)
                else:
                    forecast, loss = self._at_once(X, y, weights) if counted else self._looked_at(X, y)
            except BadRow as bad:
                good = start + bad.row
                if good > start:
                    self._learn(rows, start, good, position)
                number = int(rows.rows[good])
                self.position = position._replace(rows=number)
                self.refuse(number, bad.reason)
                start = good + 1
                continue
            self.class_weights = class_weights
            if counted:
                self.count(X, y, forecast, loss)
                self.snapshots.add(self.learner, self.state, self.metrics.count, certify=self.late is None)
            if self.on_rows is not None:
                self.on_rows(rows.part(start, stop), forecast, loss, self.parts(state, X, forecast))
            return

    def count(self, X: Any, y: Vector, forecast: Forecast, loss: Vector) -> None:
        """Measure rows that are learned from, by what was said of them before."""
        self.metrics.add(y, forecast, loss)
        self.alarms.add(X, y, loss, classes=self.kind == "classes", several=self.learner.several)

    def refuse(self, number: int, reason: str) -> None:
        """A row that the learner refuses, of columns by their numbers; people know them by name."""
        found = OF_COLUMN.fullmatch(reason)
        column, text, why = (None, "", reason) if found is None else (self.schema.name(int(found[1])), found[2], found[3])
        self.rejected(Refused(self._source, number, column, why, text))

    def parts(self, state: Any, X: Any, forecast: Forecast) -> Explained | None:
        """What columns added to what was said by this state, where that is asked for."""
        if not self.explains:
            return None
        return explained(self.learner, as_wide(self.learner, state, X), self.schema, X, forecast)

    def _codes(self, y: Vector) -> Any:
        """The numbers of the classes of labels."""
        return y.astype(np.int64) if self.learner.several else (y > 0.0).astype(np.int64)

    def _weighed(self, rows: Encoded, start: int, stop: int) -> tuple[ClassWeights, Vector | None]:
        """How often some rows count, None where each does once, and what balances those behind them."""
        assert rows.y is not None
        return self.weigh(rows.y[start:stop], None if rows.weights is None else rows.weights[start:stop])

    def weigh(self, y: Vector, own: Vector | None) -> tuple[ClassWeights, Vector | None]:
        """The same of rows with these labels and weights of their own."""
        codes = self._codes(y) if self.settings.class_weight is not None else None
        return self.class_weights.weigh(codes, self.class_names, own)

    def _alike(self, rows: Encoded) -> Any:
        """Where rows that are learned from and those of weight 0, which are only predicted, meet; and the end."""
        _, weights = self._weighed(rows, 0, len(rows.rows))
        changes = np.empty(0) if weights is None else np.flatnonzero(np.diff(weights > 0.0)) + 1
        return np.array([*changes, len(rows.rows)], dtype=np.int64)

    def _at_once(self, X: Any, y: Vector, weights: Vector | None) -> tuple[Forecast, Vector]:
        """The forecasts of rows before their labels were used, and what they cost, each counted once."""
        self.state, trace = self.learner.update_many(self.state, X, y, weights=weights)
        return trace.forecast, trace.loss if weights is None or self.learner.counts_once else trace.loss / weights

    def _looked_at(self, X: Any, y: Vector) -> tuple[Forecast, Vector]:
        """The same of rows that are not learned from."""
        events = self.learner.look(self.state, X, y)
        return self.learner.said(events), events.loss
