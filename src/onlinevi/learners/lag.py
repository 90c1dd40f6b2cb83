"""The last labels as columns: on streams in time order they often say more of the next one than its row does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from onlinevi.data import as_rows
from onlinevi.engine import Vector
from onlinevi.learners.base import Combinator, Learner, Wrapped
from onlinevi.learners.described import FOREIGN, CheckpointError, Described, Stored
from onlinevi.learners.inputs import Inputs, InputState
from onlinevi.learners.live import Live
from onlinevi.learners.parts import Part
from onlinevi.learners.trace import Events


@dataclass(frozen=True, eq=False, repr=False)
class LagState(Wrapped):
    """What was learned of the rows with their lags, the moments of these, and the last labels."""

    inner: Any
    moments: InputState
    last: tuple[float, ...]
    """The latest one first; NaN where there was none yet."""

    @property
    def width(self) -> int:
        return int(self.inner.width) - len(self.last)

    @property
    def begun(self) -> int:
        return int(self.inner.begun) - len(self.last)

    @property
    def space(self) -> str:
        """What weights are weights of, in words."""
        return f"the columns and the last {len(self.last)} labels"

    def parts(self, noise: float = 1.0) -> tuple[Part, ...]:
        """The lags stand behind the columns, until here."""
        lags, dim = len(self.last), self.width
        order = np.concatenate([[0], np.arange(dim, dim + lags), np.arange(1, dim)])

        def moved(rows: Any) -> Any:
            return np.concatenate([rows[:, order], rows[:, dim + lags :]], axis=1)

        found = self.inner.parts(noise)
        return tuple(part.behind(moved, part.width, None if part.columns is None else order[part.columns]) for part in found)

    def widened(self, dim: int) -> LagState:
        """For rows with further columns at the end."""
        return replace(self, inner=self.inner.widened(dim + len(self.last)))


@dataclass(frozen=True)
class Lag(Combinator[LagState]):
    """Gives a learner the last ``count`` labels as columns, behind the intercept, in units of their own mean and std.

    It needs each label before the next event. Rows are prepared ones: dense, with the intercept first.

    >>> import numpy as np, onlinevi as ovi
    >>> y = np.cumsum(np.random.default_rng(0).standard_normal(500))  # no column says anything of it
    >>> leaf = ovi.Linear(ovi.Squared(), ovi.Implicit(), ovi.FullCovariance(prior_std=10.0, box=None))
    >>> for learner in (leaf, ovi.Lag(leaf, 2)):
    ...     print(f"{learner.update_many(learner.init(1), np.ones((500, 1)), y)[0].average_loss:.0f}")
    74
    20
    """

    inner: Learner[Any]
    count: int = 2

    inputs_of_labels: ClassVar[Inputs] = Inputs(intercept=False, missing=True)

    def __post_init__(self) -> None:
        if type(self.count) is not int or self.count < 1:
            raise ValueError(f"count={self.count!r}: needs a number of labels from 1; try 2")

    def init(self, dim: int, horizon: int | None = None, *, sparse: bool = False) -> LagState:
        if sparse:
            raise ValueError("the last labels stand in every row, which sparse rows are not made for: leave lags out")
        inner = self.inner.init(dim + self.count, horizon)
        return LagState(inner, self.inputs_of_labels.init(self.count), (math.nan,) * self.count)

    def play(self, state: LagState, X: Any, y: Vector, weights: Vector) -> tuple[LagState, Events]:
        past = np.concatenate([state.last[::-1], y])  # the oldest first
        lags = np.lib.stride_tricks.sliding_window_view(past, self.count)[: len(y), ::-1]
        moments, prepared = self.inputs_of_labels.update_many(state.moments, lags)
        inner, events = self.inner.play(state.inner, self._with(X, prepared), y, weights)
        return LagState(inner, moments, tuple(past[: -self.count - 1 : -1].tolist())), events

    def foresee(self, state: LagState, X: Any) -> Events:
        """All rows as the next one: what their labels will be is not known."""
        prepared = self.inputs_of_labels.apply(state.moments, np.array([state.last]))
        return self.inner.foresee(state.inner, self._with(X, np.repeat(prepared, X.shape[0], axis=0)))

    def contributions(self, state: LagState, X: Any) -> Any:
        """Of the columns; what past labels add is left beside the intercept."""
        prepared = self.inputs_of_labels.apply(state.moments, np.array([state.last]))
        found = self.inner.contributions(state.inner, self._with(X, np.repeat(prepared, X.shape[0], axis=0)))
        return np.delete(found, np.arange(1, self.count + 1), axis=1)

    def _with(self, X: Any, lags: Vector) -> Vector:
        """Rows with these behind the intercept; where no label has come, its mean, 0, stands for it."""
        rows = as_rows(X)
        known = rows.block(0, rows.count)
        return np.column_stack([known[:, :1], np.nan_to_num(lags), known[:, 1:]])

    def live(self, state: LagState) -> Live:
        return LagLive(self, state) if type(self) is Lag else super().live(state)

    def widen(self, state: LagState, dim: int) -> LagState:
        return replace(state, inner=self.inner.widen(state.inner, dim + self.count))

    def merge(self, states: Sequence[LagState], start: LagState | None = None) -> LagState:
        raise ValueError("shards do not know each other's labels, so that the last ones are not: leave lags out")

    def describe(self, state: LagState) -> Described:
        last = [None if math.isnan(label) else label for label in state.last]
        parts = {"inner": (self.inner, state.inner), "labels": (self.inputs_of_labels, state.moments)}
        return Described({"last": last}, parts=parts)

    def restore(self, stored: Stored) -> LagState:
        last = stored.facts["last"]
        if not isinstance(last, list) or not all(label is None or type(label) is float for label in last):
            raise CheckpointError(f"its last labels are {last!r}: needs numbers")
        state = LagState(
            stored.part("inner", self.inner),
            stored.part("labels", self.inputs_of_labels),
            tuple(math.nan if label is None else label for label in last),
        )
        known = [label for label in last if label is not None]
        if not (len(last) == state.moments.dim == self.count and all(map(math.isfinite, known))):
            raise CheckpointError(FOREIGN)
        return state


class LagLive(Live):
    """The live state of the learner inside, and the last labels, which are few enough to be a new value each time."""

    def __init__(self, learner: Lag, state: LagState) -> None:
        self._learner, self._state, self._inner = learner, state, learner.inner.live(state.inner)

    @property
    def state(self) -> LagState:
        return replace(self._state, inner=self._inner.state)

    def learn(self, row: Vector, label: float, again: bool = False) -> Events:
        learner, state = self._learner, self._state
        moments, lags = learner.inputs_of_labels.update_many(state.moments, np.array([state.last]))
        said = self._inner.learn(learner._with(row, lags), label, again)
        self._state = replace(state, moments=moments, last=(label, *state.last[:-1]))
        return said

    def foresee(self, row: Vector, again: bool = False) -> Events:
        lags = self._learner.inputs_of_labels.apply(self._state.moments, np.array([self._state.last]))
        return self._inner.foresee(self._learner._with(row, lags), again)
