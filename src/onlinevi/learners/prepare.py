"""Rows of any unit: features are brought to one scale as they come, then learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from onlinevi.engine import Vector
from onlinevi.learners.base import Learner, Wrapped, merge_inner
from onlinevi.learners.described import FOREIGN, CheckpointError, Described, Stored
from onlinevi.learners.inputs import Inputs, InputState
from onlinevi.learners.trace import Events, Forecast
from onlinevi.losses import Loss


@dataclass(frozen=True, eq=False, repr=False)
class PrepareState(Wrapped):
    """The moments of the features, and what was learned of the prepared ones."""

    moments: InputState
    inner: Any

    @property
    def inputs(self) -> InputState:
        return self.moments

    @property
    def width(self) -> int:
        return self.moments.dim

    @property
    def begun(self) -> int:
        return int(self.inner.begun) - (int(self.inner.width) - self.width)

    def with_inputs(self, inputs: InputState) -> PrepareState:
        return replace(self, moments=inputs)


@dataclass(frozen=True)
class Prepare(Learner[PrepareState]):
    """Puts rows through ``Inputs``, each by what was known when it came, and gives them to a learner.

    >>> import onlinevi as ovi
    >>> learner = ovi.Prepare(ovi.Inputs(), ovi.Linear(ovi.Squared(), ovi.Implicit()))
    >>> state, trace = learner.update_many(learner.init(1), [[1e6], [3e6], [2e6]], [1.0, 3.0, 2.0])
    >>> state.inputs.mean.tolist(), state.count
    ([2000000.0], 3)
    """

    inputs: Inputs
    inner: Learner[Any]

    @property
    def loss(self) -> Loss:  # type: ignore[override]
        return self.inner.loss

    @property
    def pooled(self) -> bool:
        return self.inner.pooled

    def as_widened(self, state: PrepareState) -> Prepare:
        return replace(self, inner=self.inner.as_widened(state.inner))

    def init(self, dim: int, horizon: int | None = None, *, sparse: bool = False) -> PrepareState:
        inner = self.inner.init(self.inputs.dim_out(dim), horizon, sparse=sparse)
        return PrepareState(InputState.start(dim), inner)  # of no column, where there is an intercept

    def play(self, state: PrepareState, X: Any, y: Vector, weights: Vector) -> tuple[PrepareState, Events]:
        moments, prepared = self.inputs.update_many(state.moments, X)
        inner, events = self.inner.play(state.inner, prepared, y, weights)
        return PrepareState(moments, inner), events

    def foresee(self, state: PrepareState, X: Any) -> Events:
        return self.inner.foresee(state.inner, self.inputs.apply(state.moments, X))

    def said(self, events: Events) -> Forecast:
        return self.inner.said(events)

    def widen(self, state: PrepareState, dim: int) -> PrepareState:
        inner = self.inner.widen(state.inner, self.inputs.dim_out(dim))
        return PrepareState(self.inputs.widen(state.moments, dim), inner)

    def merge(self, states: Sequence[PrepareState], start: PrepareState | None = None) -> PrepareState:
        if any(state.moments != states[0].moments for state in states):
            raise ValueError("these states have not prepared their columns by the same means and stds: fix them in Inputs")
        return PrepareState(states[0].moments, merge_inner(self.inner, states, start))

    def describe(self, state: PrepareState) -> Described:
        self._check(state)
        return Described({}, parts={"inputs": (self.inputs, state.moments), "inner": (self.inner, state.inner)})

    def restore(self, stored: Stored) -> PrepareState:
        state = PrepareState(stored.part("inputs", self.inputs), stored.part("inner", self.inner))
        self._check(state)
        return state

    def _check(self, state: PrepareState) -> None:
        width = self.inputs.dim_out(state.moments.dim)
        if state.inner.width != width or any(leaf.plan.missing != self.inputs.missing for leaf in state.inner.leaves()):
            raise CheckpointError(FOREIGN)
