"""The state of ``Softmax`` as it goes on in place: the loops of its blocks, on rows of one event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners.base import BadRow
from onlinevi.learners.class_codes import class_codes
from onlinevi.learners.live import NO_WEIGHTS, Live
from onlinevi.learners.refusals import NOT_FINITE
from onlinevi.learners.softmax import loops
from onlinevi.learners.softmax.state import SoftmaxState
from onlinevi.learners.trace import Events

if TYPE_CHECKING:
    from onlinevi.learners.softmax.learner import Softmax


class SoftmaxLive(Live):
    """One array that changes; a class that joins has it made anew."""

    def __init__(self, learner: Softmax, state: SoftmaxState) -> None:
        self._learner, self._label, self._cost = learner, np.empty(1), np.empty(1)
        self._put(state)

    def _put(self, state: SoftmaxState) -> None:
        plan = self._plan = state.plan
        self._array, self._said = np.array(state.array), np.empty((1, plan.known))
        self._events = Events(self._said, None, self._cost)
        self._learning, self._looking = plan.kernel(), plan.kernel(loops.soft_look)
        self._fixed = plan.sizes, plan.discount, plan.prior_law

    @property
    def state(self) -> SoftmaxState:
        return SoftmaxState(self._array.copy(), self._plan)

    def learn(self, row: Vector, label: float, again: bool = False) -> Events:
        self._label[0], before = label, self._plan.known
        if not (0.0 <= label < before and label == int(label)):
            code = int(class_codes(self._label, before, grows=self._learner.grows)[0])
            self._put(self.state.against_classes(code + 1))
        if self._learning.run(row, self._label, NO_WEIGHTS, self._array, *self._fixed, self._said, self._cost) != 1:
            raise BadRow(0, self._learner._reason(row[0], 1.0))
        hide(self._said[0], before)
        return self._events

    def foresee(self, row: Vector, again: bool = False) -> Events:
        known = self._plan.known
        if known and self._looking.run(row, 1, self._array, self._plan.sizes, known, self._said) != 1:
            raise ValueError(NOT_FINITE)
        self._cost[0] = np.nan
        return self._events


def hide(said: Vector, known: int) -> None:
    """What could be said of a row before the class of its label was known: log-probabilities of the others alone."""
    if known < len(said):
        said[known:] = -np.inf
    if 0 < known < len(said):
        said[:known] -= np.log(np.exp(said[:known]).sum())
