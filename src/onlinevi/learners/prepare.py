"""Rows of any unit: features are brought to one scale as they come, then learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners.base import BadRow, Combinator, Learner, Wrapped, for_each_class, merge_inner
from onlinevi.learners.described import FOREIGN, CheckpointError, Described, Stored
from onlinevi.learners.inputs import CENTRED, UNCENTRED, Inputs, InputState, passes
from onlinevi.learners.live import Live
from onlinevi.learners.parts import Part, beside, first
from onlinevi.learners.sharing import shared
from onlinevi.learners.trace import Events


@dataclass(frozen=True, eq=False, repr=False)
class PrepareState(Wrapped):
    """The moments of the features, and what was learned of the prepared ones."""

    moments: InputState
    inner: Any
    how: Inputs
    """How rows are prepared."""

    @property
    def inputs(self) -> InputState:
        return self.moments

    @property
    def width(self) -> int:
        return self.moments.dim

    @property
    def begun(self) -> int:
        return int(self.inner.begun) - (int(self.inner.width) - self.width)

    def parts(self, noise: float = 1.0) -> tuple[Part, ...]:
        dim, intercept = self.width, int(self.how.intercept)

        def prepared(rows: Any) -> Any:
            return beside(self.how.apply(self.moments, first(rows, dim)), rows[:, dim:])

        found = self.inner.parts(noise)
        return tuple(
            part.behind(prepared, part.width - intercept, None if part.columns is None else part.columns - intercept)
            for part in found
        )

    def with_inputs(self, inputs: InputState) -> PrepareState:
        return replace(self, moments=inputs)


@dataclass(frozen=True)
class Prepare(Combinator[PrepareState]):
    """Puts rows through ``Inputs``, each by what was known when it came, and gives them to a learner.

    >>> import onlinevi as ovi
    >>> learner = ovi.Prepare(ovi.Inputs(), ovi.Linear(ovi.Squared(), ovi.Implicit()))
    >>> state, trace = learner.update_many(learner.init(1), [[1e6], [3e6], [2e6]], [1.0, 3.0, 2.0])
    >>> state.inputs.mean.tolist(), state.count
    ([2000000.0], 3)
    """

    inputs: Inputs = field()  # its own, and not what the learner inside has, which a combinator would ask
    inner: Learner[Any]

    def init(self, dim: int, horizon: int | None = None, *, sparse: bool = False) -> PrepareState:
        inner = self.inner.init(self.inputs.dim_out(dim), horizon, sparse=sparse)
        return PrepareState(InputState.start(dim), inner, self.inputs)  # of no column, where there is an intercept

    def play(self, state: PrepareState, X: Any, y: Vector, weights: Vector) -> tuple[PrepareState, Events]:
        moments, prepared = shared(X, lambda: self._key(state, "many"), lambda: self.inputs.update_many(state.moments, X))
        inner, events = self.inner.play(state.inner, prepared, y, weights)
        return PrepareState(moments, inner, self.inputs), events

    def foresee(self, state: PrepareState, X: Any) -> Events:
        return self.inner.foresee(state.inner, self._prepared(state, X))

    def look(self, state: PrepareState, X: Any, y: Vector) -> Events:
        return self.inner.look(state.inner, self._prepared(self._fitted(state, X), X), y)

    def _prepared(self, state: PrepareState, X: Any) -> Any:
        """Rows by what is known of their columns."""
        return shared(X, lambda: self._key(state, "each"), lambda: self.inputs.apply(state.moments, X))

    def _key(self, state: PrepareState, rows: str) -> tuple[Any, ...]:
        """What decides how rows are prepared."""
        moments = state.moments
        return self.inputs, rows, moments.array.tobytes(), moments.centred.tobytes(), moments.columns

    def contributions(self, state: PrepareState, X: Any) -> Any:
        found = self.inner.contributions(state.inner, self.inputs.apply(state.moments, X))
        return for_each_class(found, lambda added: added[:, int(self.inputs.intercept) :])

    def live(self, state: PrepareState) -> Live:
        in_place = type(self) is Prepare and not self.inputs.fixed and state.moments.kind != UNCENTRED
        return PrepareLive(self, state) if in_place else super().live(state)

    def widen(self, state: PrepareState, dim: int) -> PrepareState:
        inner = self.inner.widen(state.inner, self.inputs.dim_out(dim))
        return PrepareState(self.inputs.widen(state.moments, dim), inner, self.inputs)

    def merge(self, states: Sequence[PrepareState], start: PrepareState | None = None) -> PrepareState:
        if any(state.moments != states[0].moments for state in states):
            raise ValueError("these states have not prepared their columns by the same means and stds: fix them in Inputs")
        return PrepareState(states[0].moments, merge_inner(self.inner, states, start), self.inputs)

    def describe(self, state: PrepareState) -> Described:
        self._check(state)
        return Described({}, parts={"inputs": (self.inputs, state.moments), "inner": (self.inner, state.inner)})

    def restore(self, stored: Stored) -> PrepareState:
        state = PrepareState(stored.part("inputs", self.inputs), stored.part("inner", self.inner), self.inputs)
        self._check(state)
        return state

    def _check(self, state: PrepareState) -> None:
        width = self.inputs.dim_out(state.moments.dim)
        if state.inner.width != width or any(leaf.plan.missing != self.inputs.missing for leaf in state.inner.leaves()):
            raise CheckpointError(FOREIGN)


class PrepareLive(Live):
    """The moments with the event that was asked for last and without it, and the live state of the learner inside."""

    def __init__(self, learner: Prepare, state: PrepareState) -> None:
        self._inputs, self._inner, self._centred = learner.inputs, learner.inner.live(state.inner), state.moments.centred
        self._before, self._after = np.array(state.moments.array), np.array(state.moments.array)
        self._start = self._before[:]
        self._start.setflags(write=False)  # as a state's array: one type of argument, one pass to compile
        self._row = np.empty((1, self._inputs.dim_out(state.width)))
        self._prepared: bytes | None = None

    @property
    def state(self) -> PrepareState:
        return PrepareState(InputState(self._before.copy(), self._centred), self._inner.state, self._inputs)

    def _prepare(self, row: Vector, given: bytes) -> bool:
        """Put the row in the units of its columns; whether it lay there already."""
        if given == self._prepared:
            return True
        self._prepared = None
        if passes.compiled(False)(row, self._after, self._start, self._inputs.settings, self._row) != 1:
            raise BadRow(0, str(self._inputs.refusal(row[0])))
        return False

    def learn(self, row: Vector, label: float, again: bool = False) -> Events:
        again = self._prepare(row, row.tobytes())
        said = self._inner.learn(self._row, label, again)
        self._before[:], self._prepared = self._after, None
        self._before[passes.KIND] = CENTRED
        return said

    def foresee(self, row: Vector, again: bool = False) -> Events:
        given = row.tobytes()
        again = self._prepare(row, given)
        said = self._inner.foresee(self._row, again)
        self._prepared = given
        return said
