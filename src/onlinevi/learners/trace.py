"""What a pass over a stream leaves behind."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from onlinevi.engine import Vector
from onlinevi.engine.loop import COST, PREDICTION, SPREAD
from onlinevi.learners.state import State

Record: TypeAlias = Literal["all", "thinned", "none"]
THINNED = 4096


class Trace:
    """The events of one pass, and the state after it.

    ``record="all"`` keeps every event. ``"thinned"`` keeps at most 4096 of them, evenly spaced, each with the mean loss of
    the events since the one before; ``"none"`` keeps none.
    """

    def __init__(
        self, state: Any, steps: Vector, prediction: Vector, spread: Vector, loss: Vector, average_loss: Vector
    ) -> None:
        self.state: State = state
        self.steps = steps
        """The number t of each event kept, from 1 at the start of the stream."""
        self.prediction = prediction
        self.spread = spread
        """Mean and std of the prediction made before the label was seen."""
        self.loss = loss
        """The loss at the decision; with weights, weighted."""
        self.average_loss = average_loss
        """The average loss A_t since the start of the stream."""

    @property
    def mean(self) -> Vector:
        """The mean of the weights after the pass."""
        return self.state.mean

    @property
    def std(self) -> Vector:
        """The std of the weights after the pass."""
        return self.state.std

    @property
    def average_mean(self) -> Vector:
        """The average of all decisions: what online-to-batch conversion predicts with."""
        return self.state.average_mean

    def __repr__(self) -> str:
        return f"Trace(events={self.state.count}, average_loss={self.state.average_loss:.6g})"


class Recorder:
    """Collects what a pass records, block by block; how the blocks are cut makes no difference."""

    def __init__(self, record: Record, start: Any, most: int) -> None:
        if record not in ("all", "thinned", "none"):
            raise ValueError(f'record={record!r}: needs "all", "thinned" or "none"')
        self._record = record
        self._start = (float(start.count), start.loss)
        self._events = np.empty((most if record == "all" else 0, 3))
        self._used = 0
        # Thinned: a row (t, prediction, spread, total loss) for every t that the stride divides, and one for the last.
        self._kept = np.empty((0, 4))
        self._last = self._kept
        self._stride = 1

    def buffer(self, size: int) -> Vector:
        """Where the next block's pass writes."""
        if self._record == "all":
            return self._events[self._used : self._used + size]
        return np.empty((size if self._record == "thinned" else 0, 3))

    def add(self, events: Vector) -> None:
        """What the pass wrote there."""
        self._used += len(events)
        if self._record == "thinned" and len(events):
            count, total = self._last[0, [0, 3]] if len(self._last) else self._start
            table = self._table(events, count, total)
            self._last = table[-1:]
            self._kept = np.concatenate([self._kept, table])
            self._kept = self._kept[self._kept[:, 0] % self._stride == 0]
            while len(self._kept) >= THINNED:
                self._stride *= 2
                self._kept = self._kept[self._kept[:, 0] % self._stride == 0]

    def _table(self, events: Vector, count: float, total: float) -> Vector:
        steps = count + np.arange(1.0, len(events) + 1.0)
        totals = np.cumsum(np.concatenate([[total], events[:, COST]]))[1:]
        return np.column_stack([steps, events[:, PREDICTION], events[:, SPREAD], totals])

    def finish(self, state: Any) -> Trace:
        if self._record == "all":
            events = self._events[: state.count - int(self._start[0])]
            steps, prediction, spread, totals = self._table(events, *self._start).T
            return Trace(state, steps, prediction, spread, events[:, COST].copy(), totals / steps)
        table = self._kept
        if len(self._last) and (not len(table) or table[-1, 0] < self._last[0, 0]):
            table = np.concatenate([table, self._last])
        steps, prediction, spread, totals = table.T
        before = np.concatenate([[self._start], table[:-1, [0, 3]]])[: len(table)]
        return Trace(state, steps, prediction, spread, (totals - before[:, 1]) / (steps - before[:, 0]), totals / steps)
