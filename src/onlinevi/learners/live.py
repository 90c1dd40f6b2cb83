"""States that change in place, one event after another: the same bits as ``play`` gives, without a new value each time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners.trace import Events

if TYPE_CHECKING:
    from onlinevi.learners.base import Learner

NO_WEIGHTS = np.empty(0)


class Live(ABC):
    """What a learner has learned, as it goes on.

    Events come as blocks of one row. ``again`` says that the row is the one of the call before: what was made of it is used
    once more. What is said may lie in the same ``Events`` each time: it holds until the next call. An event that is refused
    may leave the state half changed: whoever holds it keeps what it needs to go back (``StateBuffer``).
    """

    @property
    @abstractmethod
    def state(self) -> Any:
        """What was learned so far, as a value."""

    @abstractmethod
    def learn(self, row: Vector, label: float, again: bool = False) -> Events:
        """Learn an event, as ``play`` does; returns what was said of it before its label was used."""

    @abstractmethod
    def foresee(self, row: Vector, again: bool = False) -> Events:
        """What would be said of it. Changes nothing."""


class AsValues(Live):
    """A learner of any kind: each event makes a new value."""

    def __init__(self, learner: Learner[Any], state: Any) -> None:
        self._learner, self._state, self._label = learner, state, np.empty(1)

    @property
    def state(self) -> Any:
        return self._state

    def learn(self, row: Vector, label: float, again: bool = False) -> Events:
        self._label[0] = label
        self._state, said = self._learner.play(self._state, row, self._label, NO_WEIGHTS)
        return said

    def foresee(self, row: Vector, again: bool = False) -> Events:
        return self._learner.foresee(self._state, row)
