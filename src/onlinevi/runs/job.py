"""A run over a stream, batch by batch: rows in, predictions out, everything learned kept."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from onlinevi.data import BadInput, Batch, Encoded, Position, Refused, Schema, encode
from onlinevi.engine import Vector
from onlinevi.learners import BadRow, Forecast, InputState, Learner
from onlinevi.losses import Target
from onlinevi.runs.metrics import Metrics, Snapshots, Thinned
from onlinevi.runs.rejected import Rejected
from onlinevi.runs.settings import Settings

TIMES = 256
"""The most points of the clock."""


class OnRows(Protocol):
    """What is called with rows as they are predicted."""

    def __call__(self, rows: Any, y: Vector, forecast: Forecast, loss: Vector) -> None: ...


class Waiting(NamedTuple):
    """A row whose label comes later."""

    number: int
    X: Any
    y: Vector


class Origin(NamedTuple):
    """Which rows something was learned from: those of a source from ``first`` to those that the position has passed."""

    first: int
    position: Position

    def overlaps(self, other: Origin) -> bool:
        """Whether rows are in both, as far as the sums of the sources and the numbers of the rows tell."""
        ends = self.position.rows, other.position.rows
        return max(self.first, other.first) < min(ends) and self.position.begins_like(other.position)

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
        self.state: Any = None
        """None before the first row."""
        self.joins: list[list[int]] = []
        """How wide the rows were from which event on."""
        self.metrics, self.snapshots = Metrics(self.kind), Snapshots()
        self.clock = Thinned(TIMES, 2)
        """Events and seconds behind each batch."""
        self.rejected = rejected or Rejected()
        self.waiting: deque[Waiting] = deque()
        """Rows whose labels have not come yet."""
        self.position: Position | None = None
        """How far the source has been used."""
        self.on_rows = on_rows
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

    @property
    def seconds(self) -> float:
        """How long it has taken."""
        return float(self.clock.last[0, 1]) if self.clock.count else 0.0

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
        return self.merged or (*self.before, *own)

    @property
    def class_names(self) -> tuple[str, ...]:
        """In the order of their numbers; of more than two, the last ones may have yet to join."""
        return () if self.schema.task is None else self.schema.task.names

    def take_odd(self, odd: Literal["refuse", "missing"]) -> None:
        """Cells that are not of their column's kind make bad rows from now on, or are missing values."""
        self.schema, self.first_schema = self.schema.taking_odd(odd), self.first_schema.taking_odd(odd)

    def take(self, batch: Batch, position: Position) -> None:
        """Predict the rows of a batch and learn from them; ``position`` is that of the stream behind it."""
        before = self.schema
        try:
            schema, rows = encode(before, batch, self.rejected)
        except BadInput as stopped:
            if stopped.refused is not None:
                self._take_before(stopped.refused.row, batch, position)
            raise
        try:
            self.learn(batch.source, schema, rows, position)
        except BadInput:  # a refusal of the learner: names behind the row that it stopped at have not come yet
            if self.position is not None and self.prepared_by is None:
                good = int(np.searchsorted(batch.rows, self.position.rows))
                self.schema = encode(before, batch.slice(0, good), Rejected("skip"))[0] if good else before
            raise

    def learn(self, source: str, schema: Schema, rows: Encoded, position: Position) -> None:
        """The same for rows that have been encoded, with the schema that they brought."""
        if self.prepared_by is not None:  # what that run never met says nothing here either
            schema, width = replace(self.schema, task=schema.task), self.schema.width
            rows = rows._replace(X=rows.X[:, :width], widths=np.full(len(rows.rows), width))
        self.schema = schema
        self.settings.check_width(rows.X.shape[1])
        start = 0
        while start < len(rows.rows):
            self._join(int(rows.widths[start]))
            # Cut where a row brings a feature, and where a snapshot is due: any split gives the same bits.
            size = 1 if self.settings.delay else self.snapshots.until_next(self.metrics.count)
            stop = min(int(np.searchsorted(rows.widths, rows.widths[start], side="right")), start + size)
            self._learn(source, rows, start, stop, position)
            start = stop
        self.rejected.settle(position.rows)
        self.rejected.as_missing += rows.odd
        self.position = position

    def finish(self) -> None:
        """The stream has ended: bad rows behind its last good one count too."""
        behind = self.rejected.settle()
        if self.position is not None:
            self.position = self.position._replace(rows=max(self.position.rows, behind))

    def _take_before(self, row: int, batch: Batch, position: Position) -> None:
        """The rows before one that stops the run; it is the first that a resumed run reads."""
        good = int(np.searchsorted(batch.rows, row))
        if good:
            self.take(batch.slice(0, good), position._replace(rows=row))

    def _join(self, width: int) -> None:
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
        self.joins.append([self.metrics.count, width])

    def _learn(self, source: str, rows: Encoded, start: int, stop: int, position: Position) -> None:
        """Rows that the learner refuses go where other bad rows go, and the others are learned from."""
        assert rows.y is not None
        while start < stop:
            X, y, first = widened(rows.X[start:stop], self.state.inputs.dim), rows.y[start:stop], int(rows.rows[start])
            self.position = position._replace(rows=first)  # should a bad row stop the run here
            try:
                forecast, loss = self._late(source, first, X, y) if self.settings.delay else self._at_once(X, y)
            except BadRow as bad:
                good = start + bad.row
                if good > start:
                    self._learn(source, rows, start, good, position)
                number = int(rows.rows[good])
                self.position = position._replace(rows=number)
                self.rejected(Refused(source, number, None, bad.reason, ""))
                start = good + 1
                continue
            self.metrics.add(y, forecast, loss)
            self.snapshots.add(self.learner, self.state, self.metrics.count, certify=not self.settings.delay)
            if self.on_rows is not None:
                self.on_rows(rows.rows[start:stop], y, forecast, loss)
            return

    def _at_once(self, X: Any, y: Vector) -> tuple[Forecast, Vector]:
        """The forecasts of rows before their labels were used, and what they cost."""
        self.state, trace = self.learner.update_many(self.state, X, y)
        return trace.forecast, trace.loss

    def _late(self, source: str, number: int, X: Any, y: Vector) -> tuple[Forecast, Vector]:
        """One row, predicted by what was learned from rows more than the delay before it."""
        events = self.learner.look(as_wide(self.learner, self.state, X), X, y)
        if len(self.waiting) == self.settings.delay:
            due = self.waiting[0]
            try:
                self.state, _ = self.learner.update_many(self.state, widened(due.X, X.shape[1]), due.y)
            except BadRow as bad:
                self.rejected(Refused(source, due.number, None, bad.reason, ""))
            self.waiting.popleft()
        self.waiting.append(Waiting(number, X, y))
        return self.learner.said(events), events.loss


def begin(learner: Learner[Any], width: int, moments: InputState | None = None, *, sparse: bool) -> Any:
    """The state before the first row of so many features; with the moments of another run, where they are given."""
    state = learner.init(width, sparse=sparse)
    return state if moments is None else state.with_inputs(moments)


def joined(moments: InputState, schema: Schema, width: int) -> InputState:
    """The moments for rows of more features: names and indices were 0 in all rows so far, of numbers nothing is known.

    Numbers are centred beside names, though these make rows sparse.
    """
    unknown = [place for place in range(moments.dim, width) if not schema.was_zero(place)]
    lag = np.zeros(width - moments.dim)
    lag[np.array(unknown, dtype=int) - moments.dim] = moments.count
    return moments.widened(width, lag, unknown if schema.sparse else ())


def as_wide(learner: Learner[Any], state: Any, X: Any) -> Any:
    """The state for rows of as many columns as it has, or more."""
    return state if X.shape[1] == state.inputs.dim else learner.widen(state, X.shape[1])


def widened(X: Any, dim: int) -> Any:
    """Rows of so many columns: those that joined later are 0, as the learner takes them to have been."""
    if X.shape[1] == dim:
        return X
    if hasattr(X, "tocsr"):
        from scipy.sparse import csr_matrix

        return csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], dim))
    return X[:, :dim] if dim < X.shape[1] else np.pad(X, ((0, 0), (0, dim - X.shape[1])))
