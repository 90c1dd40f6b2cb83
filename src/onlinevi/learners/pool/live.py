"""A pool whose learners and weights change in place: the compiled loops of its blocks, on rows and records that stay."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from onlinevi.engine import RECORD, Vector, foresee_many, many_passes
from onlinevi.learners.base import BadRow
from onlinevi.learners.kernels import kernel
from onlinevi.learners.live import NO_WEIGHTS, Live
from onlinevi.learners.pool import mixing
from onlinevi.learners.pool.members import Kind
from onlinevi.learners.pool.mixer import PoolState
from onlinevi.learners.refusals import NOT_FINITE, reason
from onlinevi.learners.state import State
from onlinevi.learners.trace import Events

if TYPE_CHECKING:
    from onlinevi.learners.pool.pool import Pool


class PoolLive(Live):
    """The leaves, kind by kind side by side; the other learners, live too; and the weights."""

    def __init__(self, pool: Pool, state: PoolState) -> None:
        self._given, self._mixer = state, state.plan
        members, number = state.plan.members, len(state.learners)
        self._records, self._played = np.empty((number, 1, members.columns)), np.full((1, mixing.PLAYED), np.nan)
        self._array, self._label, self._none_shown = np.array(state.array), np.empty(1), np.empty((0, number))
        alone = self._records[members.places[0], :, RECORD.prediction] if state.plan.has_first else None
        prediction, spread, loss, within, between = self._played.T
        self._events = Events(prediction, spread, loss, within, between, alone)
        self._kinds: list[LiveLeaves] = []
        first = 0  # records lie kind by kind, and behind them those of the other learners
        for kind in members.kinds:
            behind = first + len(kind.numbers)
            self._kinds.append(LiveLeaves(kind, state.learners, self._records[first:behind]))
            first = behind
        self._others = [
            (pool.learners[number].live(state.learners[number]), line[0])
            for number, line in zip(members.others, self._records[first:], strict=True)
        ]
        fixed = state.plan.log_prior, state.plan.settings, state.plan.loss.parameters
        heard = self._records, members.places, members.unsure, self._array
        self._mixing, self._foreseeing = self._mixer.kernel(), self._mixer.kernel(mixing.foresee)
        self._mix = self._label, NO_WEIGHTS, *heard, *fixed, self._played, self._none_shown
        self._foresee = *heard, *fixed, self._played

    @property
    def state(self) -> PoolState:
        found: list[Any] = [*self._given.learners]
        for kind in self._kinds:
            kind.put(found)
        for number, (live, _) in zip(self._mixer.members.others, self._others, strict=True):
            found[number] = live.state
        return PoolState(tuple(found), self._array.copy(), self._mixer, self._given.shards)

    def learn(self, row: Vector, label: float, again: bool = False) -> Events:
        self._label[0] = label
        for kind in self._kinds:
            kind.learn(row, self._label)
        for live, line in self._others:
            put(line, live.learn(row, label, again))
        if self._mixing.run(*self._mix) != 1:
            raise BadRow(0, self._mixer.reason(label))
        return self._events

    def foresee(self, row: Vector, again: bool = False) -> Events:
        for kind in self._kinds:
            kind.foresee(row)
        for live, line in self._others:
            put(line, live.foresee(row, again))
        self._foreseeing.run(*self._foresee)
        if not math.isfinite(self._played[0, mixing.WITHIN] + self._played[0, mixing.BETWEEN]):
            raise ValueError(NOT_FINITE)
        return self._events


def put(line: Vector, said: Events) -> None:
    """A learner's record of what it said."""
    line[RECORD.prediction], line[RECORD.loss] = said.prediction[0], said.loss[0]
    if said.within is None:
        line[RECORD.spread], line[RECORD.missing_mean_square] = said.spread[0], 0.0
    else:
        line[RECORD.spread], line[RECORD.missing_mean_square] = math.sqrt(said.within[0]), said.between[0]


class LiveLeaves:
    """The states of leaves of one kind, as rows of a matrix."""

    def __init__(self, kind: Kind, states: Any, records: Vector) -> None:
        self._kind, self._arrays, self._records = kind, kind.stacked(states), records
        self._learning = kernel(*kind.first.kinds, kind.features, loop=many_passes)
        self._foreseeing = kernel(*kind.first.kinds, kind.features, loop=foresee_many)
        self._fixed = kind.settings

    def put(self, found: list[Any]) -> None:
        """The states as values, each in its learner's place."""
        for number, plan, array in zip(self._kind.numbers, self._kind.plans, self._arrays, strict=True):
            found[number] = State(array.copy(), plan)

    def learn(self, row: Vector, label: Vector) -> None:
        """Let all learn an event, and record what they said."""
        used = self._learning.run(row, label, NO_WEIGHTS, self._arrays, *self._fixed, self._records)
        if used != 1:
            raise BadRow(0, reason(self._kind.first, row[0], float(label[0]), 1.0))

    def foresee(self, row: Vector) -> None:
        """Record what all say of a row."""
        self._foreseeing.run(row, self._arrays, self._fixed[0], self._records)
