"""The contract that every learner keeps: ``Linear``, the leaf, and the combinators that wrap learners.

A learner is a config; what it has learned is a state, and a state is a value. A learner of one's own gives eight methods, each
about one block of rows; everything that people call, here and in the adapters, is made of these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Generic, Self, TypeVar

import numpy as np

from onlinevi.data import as_events, as_labels, as_row, as_weights
from onlinevi.engine import Step, Vector
from onlinevi.learners.columns import Named, checked, keeping, names_of
from onlinevi.learners.described import Described, Stored
from onlinevi.learners.live import NO_WEIGHTS, AsValues, Live
from onlinevi.learners.parts import Part
from onlinevi.learners.trace import Events, Forecast, Record, Recorder, Trace
from onlinevi.losses import Loss

S = TypeVar("S")

BLOCK_VALUES = 1 << 15
"""How many values of rows a block holds: few enough to stay in cache while every learner passes over them."""


class BadRow(ValueError):
    """A row that no learner should swallow. ``row`` is its number from 0; ``trace`` holds what was learned before it."""

    def __init__(self, row: int, reason: str, trace: Any = None) -> None:
        super().__init__(f"row {row}: {reason}")
        self.row, self.reason, self.trace = row, reason, trace

    def __reduce__(self) -> tuple[Any, ...]:  # an exception is made again of its message alone, which other processes cannot
        return type(self), (self.row, self.reason, self.trace)


class Learner(ABC, Generic[S]):
    """Learns from a stream of rows and labels, and says what it knows of the next label."""

    loss: Loss
    """What a prediction costs, and what a label and a prediction mean."""
    inputs: Any
    """How rows are prepared, where they are."""

    @property
    def pooled(self) -> bool:
        """Whether several learners have a part in a prediction: it is a decision then, whose variance comes in two parts."""
        return False

    @property
    def several(self) -> bool:
        """Whether it tells several classes apart, with a score for each."""
        return False

    @property
    def counts_once(self) -> bool:
        """Whether what rows cost is told as if each counted once, whatever their weights."""
        return False

    # --- what a learner gives

    @abstractmethod
    def init(self, dim: int, horizon: int | None = None, *, sparse: bool = False) -> S:
        """The state before the first event of ``dim`` features; ``horizon`` is the number of events to come, if known."""

    @abstractmethod
    def play(self, state: S, X: Any, y: Vector, weights: Vector) -> tuple[S, Events]:
        """The state after a block of rows of weights > 0, and what was said of each before its label was used.

        Any split of the rows gives the same bits. A row that is refused raises ``BadRow``, and nothing has changed.
        """

    @abstractmethod
    def foresee(self, state: S, X: Any) -> Events:
        """What would be said of each row of a matrix; the loss is NaN."""

    @abstractmethod
    def said(self, events: Events) -> Forecast:
        """What these events were told to mean for the label."""

    @abstractmethod
    def widen(self, state: S, dim: int) -> S:
        """The state for rows with further columns at the end, ``dim`` in all: as if these had been 0 so far."""

    @abstractmethod
    def merge(self, states: Sequence[S], start: S | None = None) -> S:
        """What shards have learned, each from the same prior, as one state; or a refusal that says why there is none.

        ``start`` is the state that all of them started from, where it was not the one before the first event.
        """

    @abstractmethod
    def describe(self, state: S) -> Described:
        """A state as facts, arrays, and the states of the learners inside: what files, services and shards carry."""

    @abstractmethod
    def restore(self, stored: Stored) -> S:
        """The state that was described."""

    def among_many(self) -> Learner[S]:
        """This learner as one of several that each tell a class from the rest: there are as many of it as classes."""
        return self

    # --- what is made of it

    def score(self, events: Events) -> Any:
        """Of what was said, what is compared among several classes: log-odds, where there are probabilities."""
        return self.said(events).prediction

    def live(self, state: S) -> Live:
        """The state as what goes on in place, event by event; combinators and leaves have ways of their own to be quick."""
        return AsValues(self, state)

    def as_widened(self, state: S) -> Learner[S]:
        """This learner as the one whose state it is behind columns that joined: some priors have a value a column."""
        return self

    def fitting(self, state: S, dim: int) -> S:
        """The state for rows of ``dim`` columns, if it is one of this learner's; a learner may widen it by itself."""
        return state

    def _fitted(self, state: S, X: Any) -> S:
        """The same for these rows, whose columns have the names that the state knows, if they have any."""
        checked(state, X)
        return self.fitting(state, X.shape[-1])

    def update_many(self, state: S, X: Any, y: Any, *, weights: Any = None, record: Record = "all") -> tuple[S, Trace]:
        """Learn from a block of rows, in order; the same bits as one event at a time."""
        rows, labels, importance = as_events(X, y, weights, hint=self.loss.label_hint)
        state = self.fitting(state, rows.dim)
        recorder = Recorder(record, state, rows, self)
        size = max(1, BLOCK_VALUES // max(1, int(rows.values_a_row)))
        try:
            for start in range(0, rows.count, size):
                stop = min(start + size, rows.count)
                # A row of weight 0 is as if absent, its features too.
                used = np.arange(start, stop) if not len(importance) else start + np.flatnonzero(importance[start:stop])
                own = importance[used] if len(importance) else importance
                state, events, refused = self._until_refused(state, rows.take(used), labels[used], own)
                recorder.add_events(events)
                if refused is not None:
                    raise BadRow(int(used[refused.row]), refused.reason)
        except (BadRow, KeyboardInterrupt) as stopped:
            stopped.trace = recorder.finish(state)  # type: ignore[union-attr]
            raise
        return state, recorder.finish(state)

    def _until_refused(self, state: S, X: Any, y: Vector, weights: Vector) -> tuple[S, Events, BadRow | None]:
        """Play rows up to the first that is refused: the state, what was said, and that row, if there is one."""
        try:
            return *self.play(state, X, y, weights), None
        except BadRow as bad:
            before = slice(0, bad.row)
            state, events, earlier = self._until_refused(state, X[before], y[before], weights[before])
            return state, events, earlier or bad

    def update(self, state: S, x: Any, y: float, weight: float = 1.0) -> tuple[S, Step]:
        """Learn from one event. The state given is left as it is; the step says what was predicted before ``y`` was used."""
        row = np.asarray(as_row(x), dtype=float)
        if row.ndim != 1:
            raise ValueError(f"x has shape {row.shape}: needs one value a feature; for a matrix use update_many")
        if weight == 0.0:
            said = self.foresee(self.fitting(state, len(row)), row[np.newaxis])
            return state, Step._make(said.paying(np.zeros(1)).table[0].tolist())
        weights = NO_WEIGHTS if weight == 1.0 else as_weights([weight], 1)
        label = as_labels([y], self.loss.label_hint)
        after, events = self.play(self.fitting(state, len(row)), row[np.newaxis], label, weights)
        return keeping(after, names_of(state)), Step._make(events.table[0].tolist())

    def predict(self, state: S, x: Any) -> tuple[Any, Any]:
        """Mean and std of the prediction at a row, or at each row of a matrix. Changes nothing."""
        x = x if hasattr(x, "shape") else np.asarray(as_row(x), dtype=float)
        if len(x.shape) == 1:
            mean, std = self.predict(state, np.asarray(as_row(x), dtype=float)[np.newaxis])
            return (float(mean[0]), float(std[0])) if mean.ndim == 1 else (mean[0], std)
        events = self.foresee(self._fitted(state, x), x)
        return events.prediction, events.spread

    def forecast(self, state: S, x: Any) -> Forecast:
        """What is known of the label at a row, or at each row of a matrix. Changes nothing."""
        x = x if hasattr(x, "shape") else np.asarray(as_row(x), dtype=float)
        if len(x.shape) == 1:
            return self.forecast(state, np.asarray(as_row(x), dtype=float)[np.newaxis]).row(0)
        return self.said(self.foresee(self._fitted(state, x), x))

    def look(self, state: S, X: Any, y: Vector) -> Events:
        """What is said of rows whose labels come later, and what it will have cost. Changes nothing."""
        events = self.foresee(self._fitted(state, X), X)
        return events.paying(np.array(self.loss(y, events.prediction).value))

    def contributions(self, state: S, X: Any) -> Any:
        """What each column adds to the prediction at each row of a matrix, a row a row; CSR where X is.

        Features share theirs among the columns that they are made of. What is left of the prediction is the intercept, and
        what is no sum: pooled probabilities, and curves. Of several classes a matrix for each.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what columns add: give it contributions(state, X)")


def for_each_class(found: Any, change: Callable[[Any], Any]) -> Any:
    """A table changed, or each of those that several classes have."""
    return [change(one) for one in found] if isinstance(found, list) else change(found)


class Combinator(Learner[S]):
    """A learner around another: what it does not say itself, it asks the one inside, and its state is a ``Wrapped`` one."""

    inner: Learner[Any]

    @property
    def loss(self) -> Loss:  # type: ignore[override]
        return self.inner.loss

    @cached_property  # and no property: a field of this name takes its place
    def inputs(self) -> Any:
        return self.inner.inputs

    @property
    def pooled(self) -> bool:
        return self.inner.pooled

    @property
    def several(self) -> bool:
        return self.inner.several

    @property
    def counts_once(self) -> bool:
        return self.inner.counts_once

    def as_widened(self, state: Any) -> Self:
        return replace(self, inner=self.inner.as_widened(state.inner))  # type: ignore[type-var]

    def said(self, events: Events) -> Forecast:
        return self.inner.said(events)

    def score(self, events: Events) -> Any:
        return self.inner.score(events)

    def contributions(self, state: S, X: Any) -> Any:
        return self.inner.contributions(state.inner, X)  # type: ignore[attr-defined]


def merge_inner(inner: Learner[Any], states: Sequence[Any], start: Any = None) -> Any:
    """One state of those inside the states of shards; a learner of one's own is told of a start only where there is one."""
    return inner.merge([state.inner for state in states], *(() if start is None else (start.inner,)))


class Wrapped(Named):
    """The state of a combinator: what is asked of any state, it asks the one inside."""

    inner: Any

    @property
    def count(self) -> int:
        """How many events it has learned from."""
        return int(self.inner.count)

    @property
    def loss(self) -> float:
        """Σ loss at the decisions."""
        return float(self.inner.loss)

    @property
    def average_loss(self) -> float:
        """The average loss so far."""
        return float(self.inner.average_loss)

    @property
    def mean(self) -> Vector:
        """The mean of the weights, of prepared features where rows are prepared."""
        return np.asarray(self.inner.mean)

    @property
    def std(self) -> Vector:
        """The std of these weights."""
        return self.std_in(1.0)

    def std_in(self, noise: float) -> Vector:
        """The same where variances are in units of this noise."""
        return np.asarray(self.inner.std_in(noise))

    @property
    def inputs(self) -> Any:
        """The moments of the features, where rows are prepared."""
        return self.inner.inputs

    @property
    def width(self) -> int:
        """How many columns the rows have that it is given."""
        return int(self.inner.width)

    def up_to(self, later: Any) -> Any:
        """As an earlier state of the run of this one: classes may have joined since."""
        inner = self.inner.up_to(later.inner)
        return self if inner is self.inner else replace(self, inner=inner)  # type: ignore[type-var]

    @property
    def space(self) -> Any:
        """The features that the weights are weights of, where a map makes them of columns (``Expand``); else None."""
        return self.inner.space

    @property
    def begun(self) -> int:
        """How many columns its rows had at the first, as far as anything depends on it: maps do, the others do not."""
        return int(self.inner.begun)

    @property
    def has_first(self) -> bool:
        """Whether it says of each event what the first learner of its pool says by itself."""
        return bool(getattr(self.inner, "has_first", False))

    def with_inputs(self, inputs: Any) -> Any:
        """The same state with the moments of another run."""
        return replace(self, inner=self.inner.with_inputs(inputs))  # type: ignore[type-var]

    def deciders(self) -> tuple[Any, ...]:
        """The states inside that decide, one a class: of the compiled loop, or of a pool of such."""
        found: tuple[Any, ...] = self.inner.deciders()
        return found

    def by_class(self) -> tuple[Any, ...]:
        """The state of each class, where there are more than two; else itself."""
        found = self.inner.by_class()
        return (self,) if len(found) == 1 else tuple(replace(self, inner=one) for one in found)  # type: ignore[type-var]

    def alone(self) -> Any:
        """The state of the compiled loop that decides, where one does; None where several do, or a pool."""
        deciders = self.deciders()
        return deciders[0].alone() if len(deciders) == 1 else None

    def parts(self, noise: float = 1.0) -> tuple[Part, ...]:
        """What its predictions are made of, where variances are in units of this noise."""
        found: tuple[Part, ...] = self.inner.parts(noise)
        return found

    def leaves(self) -> tuple[Any, ...]:
        """The states of the compiled loop inside: what certificates and snapshots are made of."""
        return tuple(leaf for decider in self.deciders() for leaf in decider.leaves())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(count={self.count}, average_loss={self.average_loss:.6g})"


class Deciding(Wrapped):
    """The state of a learner that says something else than the one inside, and so decides itself."""

    def widened(self, dim: int) -> Any:
        """For rows with further columns at the end."""
        return replace(self, inner=self.inner.widened(dim))  # type: ignore[type-var]

    def deciders(self) -> tuple[Any, ...]:
        """Itself."""
        return (self,)

    def leaves(self) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self.inner.leaves()
        return found

    def alone(self) -> None:
        """None: no belief decides by itself."""
