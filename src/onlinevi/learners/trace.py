"""What is said of events, and what a pass over a stream leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from onlinevi.data import Rows
from onlinevi.engine import RECORD, Vector
from onlinevi.learners.columns import checked, keeping
from onlinevi.learners.shown import as_frame, html_of, html_rows

Record: TypeAlias = Literal["all", "thinned", "none"]
THINNED = 4096


class Forecast(NamedTuple):
    """What is said of a label to come, at a row or at each row of a matrix."""

    prediction: Any
    """On the scale of the loss: log-odds, score, number, quantile, or the logarithm of a rate; of several classes, of each."""
    spread: Any
    """Its std: how unsure the model is; None for several classes."""
    mean: Any
    """Of the label: a number, a rate, or for two classes P(+1) − P(−1)."""
    std: Any
    """Of the label, noise included; None where no noise is learned."""
    probability: Any
    """P(+1), or of each of several classes; None for numbers, and where a loss of several classes has none."""
    lower: Any
    upper: Any
    """An interval that covers the label as often as asked; None without one."""
    set: Any = None
    """The classes that hold the label as often as asked, a column of true and false each; None without (``Sets``)."""

    @property
    def several(self) -> bool:
        """Whether it speaks of several classes, by their numbers 0, 1, 2, …, rather than of −1 and +1."""
        return np.ndim(self.prediction) == 2

    @property
    def guess(self) -> Any:
        """The number of the likeliest class, 0 or 1 for −1 and +1."""
        return self.prediction.argmax(axis=1) if self.several else np.asarray(self.probability >= 0.5).astype(int)

    @property
    def chance(self) -> Vector:
        """P(+1), or the probability of the guess among several classes; NaN where there are no probabilities."""
        if not self.several:
            return np.asarray(self.probability)
        if self.probability is None:
            return np.full(len(self.prediction), np.nan)
        return np.take_along_axis(self.probability, self.guess[:, None], 1)[:, 0]

    @property
    def of_classes(self) -> Vector:
        """The probability of each class, a column each; of two, those of −1 and +1."""
        return self.probability if self.several else np.column_stack([1.0 - self.chance, self.chance])

    def _columns(self) -> dict[str, Any]:
        """What there is, by its names; of several classes a column for each."""
        found: dict[str, Any] = {}
        for name, part in zip(self._fields, self, strict=True):
            if part is not None and np.ndim(part) == 2:
                found |= {f"{name}_{code}": values for code, values in enumerate(np.asarray(part).T)}
            elif part is not None:
                found[name] = np.atleast_1d(part)
        return found

    def to_frame(self, kind: str | None = None) -> Any:
        """A table with a row for each, of "pandas", "polars" or "pyarrow"; None takes the first that is installed.

        >>> import onlinevi as ovi
        >>> learner = ovi.Linear(ovi.Squared(), ovi.SVB())
        >>> learner.forecast(learner.init(1), [[1.0], [2.0]]).to_frame("pyarrow").column_names
        ['prediction', 'spread', 'mean']
        """
        return as_frame(self._columns(), kind)

    def _repr_html_(self) -> str:
        return html_of("Forecast", {}, html_rows(self._columns()))

    def row(self, number: int) -> Forecast:
        """What is said of one row, as plain numbers; of several classes, as vectors."""
        parts = (None if part is None else part[number] for part in self)
        return Forecast(*(float(part) if part is not None and np.ndim(part) == 0 else part for part in parts))

    @staticmethod
    def joined(parts: Sequence[Forecast]) -> Forecast:
        """What was said of rows that follow each other. Of classes that joined later nothing was said before."""
        if len(parts) == 1:
            return parts[0]
        pairs = zip(Forecast._fields, zip(*parts, strict=True), strict=True)
        return Forecast(*(None if values[0] is None else _joined(name, values) for name, values in pairs))


@dataclass(frozen=True, eq=False)
class Events:
    """What was said of events before their labels were seen, and what it cost: a row each."""

    prediction: Vector
    """As the loss takes it; of several classes, a column of scores for each."""
    spread: Any
    """The std of the prediction; None for several classes."""
    loss: Vector
    within: Any = None
    """Of a pool: the variance that its learners see themselves, in units of the noise."""
    between: Any = None
    """Of a pool: the variance of its learners' predictions."""
    first: Vector | None = None
    """Of a pool of probabilities whose first learner is one too: what that one says by itself."""
    label_std: Vector | None = None
    lower: Vector | None = None
    upper: Vector | None = None
    """Where residuals calibrate them: the std of the label, and an interval for it."""
    set: Any = None
    """Of classes with sets: which of them are in it."""
    coupled: Vector | None = None
    """Of several classes: the totals by which their scores become probabilities (``one_vs_rest/coupling.py``)."""

    def __len__(self) -> int:
        return len(self.loss)

    @property
    def table(self) -> Vector:
        """Prediction, spread and loss; of several classes the guess, which has no spread."""
        if self.prediction.ndim == 2:
            return np.column_stack([self.prediction.argmax(axis=1), np.full(len(self), np.nan), self.loss])
        return np.column_stack([self.prediction, self.spread, self.loss])

    def paying(self, loss: Vector) -> Events:
        """The same with what it cost."""
        return replace(self, loss=loss)

    @staticmethod
    def joined(parts: Sequence[Events]) -> Events:
        """Several blocks as one. Of classes that joined later nothing was said before: their score is −∞."""
        if len(parts) == 1:
            return parts[0]
        joined = {}
        for item in fields(Events):
            values = [getattr(part, item.name) for part in parts]
            if all(value is not None for value in values) and values:
                joined[item.name] = _joined(item.name, values)
        none = np.empty(0)
        return Events(**({"prediction": none, "spread": none, "loss": none} | joined))


def _joined(name: str, parts: Sequence[Any]) -> Any:
    """One part of what was said of blocks that follow each other, as wide as the widest."""
    if parts[0].ndim == 1:
        return np.concatenate(parts)
    width, absent = max(part.shape[1] for part in parts), -np.inf if name == "prediction" else 0.0
    padded = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=absent) for part in parts]
    return np.concatenate(padded)


class Trace:
    """The events of one pass, and the state after it.

    ``record="all"`` keeps every event. ``"thinned"`` keeps at most 4096 of them, evenly spaced, each with the mean loss of
    the events since the one before; ``"none"`` keeps none.
    """

    def __init__(
        self,
        state: Any,
        steps: Vector,
        prediction: Vector,
        spread: Vector,
        loss: Vector,
        average_loss: Vector,
        learner: Any = None,
        events: Events | None = None,
    ) -> None:
        self.state: Any = state
        self.steps = steps
        """The number t of each event kept, from 1 at the start of the stream."""
        self.prediction = prediction
        self.spread = spread
        """Mean and std of the prediction made before the label was seen."""
        self.loss = loss
        """The loss at the decision; with weights, weighted."""
        self.average_loss = average_loss
        """The average loss A_t since the start of the stream."""
        self.learner = learner
        """Who learned."""
        self.classes: tuple[Any, Any] | None = None
        """The labels that were taken for −1 and +1, where two others were given."""
        self.weights: Vector | None = None
        """Of a pool: a row an event, the weights of its learners before the label was seen."""
        self._events = events

    @cached_property
    def forecast(self) -> Forecast:
        """What was said of each label before it was seen; intervals come with ``record="all"``."""
        events = self._events or Events(self.prediction, self.spread, self.loss)
        said: Forecast = self.learner.said(events)
        return said

    @property
    def probability(self) -> Any:
        """P(+1) before each label was seen, or of each of several classes."""
        return self.forecast.probability

    @property
    def label_std(self) -> Vector:
        """The std of each label before it was seen; empty where it was not recorded."""
        return _there(self.forecast.std)

    @property
    def lower(self) -> Vector:
        """The low end of each label's interval; empty where it was not recorded."""
        return _there(self.forecast.lower)

    @property
    def upper(self) -> Vector:
        """The high end of each label's interval; empty where it was not recorded."""
        return _there(self.forecast.upper)

    @property
    def coverage(self) -> float:
        """The part of the labels of the stream so far that lay in their intervals."""
        return float(self.state.coverage)

    @property
    def width(self) -> float:
        """The mean width of the recorded intervals, those without a bound left out."""
        widths = self.upper - self.lower
        return float(widths[np.isfinite(widths)].mean())

    @property
    def mean(self) -> Vector:
        """The mean of the weights after the pass."""
        return np.asarray(self.state.mean)

    @property
    def std(self) -> Vector:
        """The std of the weights after the pass."""
        return np.asarray(self.state.std)

    @property
    def average_mean(self) -> Vector:
        """The average of all decisions: what online-to-batch conversion predicts with."""
        return np.asarray(self.state.average_mean)

    def to_frame(self, kind: str | None = None) -> Any:
        """A table with a row for each event kept: its number, what was said, and what it cost.

        Of "pandas", "polars" or "pyarrow"; None takes the first that is installed.
        """
        count, said = len(self.steps), self.forecast._columns()
        parts = {name: values for name, values in said.items() if len(values) == count}
        return as_frame({"step": self.steps, **parts, "loss": self.loss, "average_loss": self.average_loss}, kind)

    def _repr_html_(self) -> str:
        facts = {"events": self.state.count, "average loss": self.state.average_loss}
        if self.classes is not None:
            facts["classes"] = "{!r} as −1 and {!r} as +1".format(*self.classes)
        kept = {"step": self.steps.astype(int), "prediction": self.prediction, "loss": self.loss}
        return html_of("Trace", facts, html_rows(kept))

    def __repr__(self) -> str:
        named = "" if self.classes is None else ", classes {!r} as −1 and {!r} as +1".format(*self.classes)
        return f"Trace(events={self.state.count}, average_loss={self.state.average_loss:.6g}{named})"


def _there(part: Vector | None) -> Vector:
    return np.empty(0) if part is None else part


class Recorder:
    """Collects what a pass records, block by block; how the blocks are cut makes no difference."""

    def __init__(self, record: Record, start: Any, rows: Rows, learner: Any = None) -> None:
        if record not in ("all", "thinned", "none"):
            raise ValueError(f'record={record!r}: needs "all", "thinned" or "none"')
        self._given, self._columns = start, checked(start, rows)
        self._record = record
        self._start = (float(start.count), start.loss)
        self._events = np.empty((rows.count if record == "all" else 0, 3))
        self._used = 0
        self._learner = learner
        self._said: list[Events] = []
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

    def add_events(self, events: Events) -> None:
        """What was said of a block of events."""
        buffer = self.buffer(len(events))
        if len(buffer):
            buffer[:] = events.table
        self.add(buffer)
        if self._record == "all":
            self._said.append(events)

    def _table(self, events: Vector, count: float, total: float) -> Vector:
        steps = count + np.arange(1.0, len(events) + 1.0)
        totals = np.cumsum(np.concatenate([[total], events[:, RECORD.loss]]))[1:]
        return np.column_stack([steps, events[:, RECORD.prediction], events[:, RECORD.spread], totals])

    def finish(self, state: Any) -> Trace:
        """The pass up to this state, which knows the names of the columns from now on."""
        if state is not self._given:
            keeping(state, self._columns)
        if self._record == "all":
            events = self._events[: state.count - int(self._start[0])]
            steps, prediction, spread, totals = self._table(events, *self._start).T
            parts = steps, prediction, spread, events[:, RECORD.loss].copy(), totals / steps
            return Trace(state, *parts, self._learner, Events.joined(self._said) if self._said else None)
        table = self._kept
        if len(self._last) and (not len(table) or table[-1, 0] < self._last[0, 0]):
            table = np.concatenate([table, self._last])
        steps, prediction, spread, totals = table.T
        before = np.concatenate([[self._start], table[:-1, [0, 3]]])[: len(table)]
        loss = (totals - before[:, 1]) / (steps - before[:, 0])
        return Trace(state, steps, prediction, spread, loss, totals / steps, self._learner)
