"""Sets of classes beside their probabilities, that hold the one that comes as often as asked, around any learner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners.base import Combinator, Learner, Wrapped, merge_inner
from onlinevi.learners.described import FOREIGN, CheckpointError, Described, Stored
from onlinevi.learners.live import Live
from onlinevi.learners.set_calibration import Covered, SetCalibration
from onlinevi.learners.trace import Events, Forecast


@dataclass(frozen=True, eq=False, repr=False)
class SetsState(Wrapped):
    """What was learned, and what the labels have told of the sets."""

    inner: Any
    covered: Covered

    @property
    def coverage(self) -> float:
        """The part of the classes that came that were in their sets."""
        return self.covered.coverage

    @property
    def size(self) -> float:
        """How many classes a set had, on average."""
        return self.covered.size

    def by_class(self) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self.inner.by_class()
        return found


@dataclass(frozen=True)
class Sets(Combinator[SetsState]):
    """Adds to a learner of classes the set that holds the next one as often as asked, on any stream (``SetCalibration``).

    ``forecast.set`` has a column of true and false for each class; of two, for −1 and +1.

    >>> import numpy as np, onlinevi as ovi
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 2))
    >>> learner = ovi.Sets(ovi.SetCalibration(0.9), ovi.Linear(ovi.Logistic(), ovi.Implicit()))
    >>> y = np.sign(X @ [1.0, -1.0] + rng.standard_normal(500))
    >>> state, trace = learner.update_many(learner.init(2), X, y)
    >>> abs(state.coverage - 0.9) < 0.02, learner.forecast(state, [[3.0, -3.0], [0.1, 0.0]]).set.tolist()
    (True, [[False, True], [True, True]])
    """

    calibration: SetCalibration
    inner: Learner[Any]

    def __post_init__(self) -> None:
        if self.loss.target != "classes":
            raise ValueError(f"{self.loss} predicts {self.loss.target}, which have intervals and no sets: use Calibrate")

    @property
    def coverage(self) -> float:
        """How often sets are to hold the class that comes."""
        return self.calibration.coverage

    def init(self, dim: int, horizon: int | None = None, *, sparse: bool = False) -> SetsState:
        return SetsState(self.inner.init(dim, horizon, sparse=sparse), self.calibration.init())

    def fitting(self, state: SetsState, dim: int) -> SetsState:
        inner = self.inner.fitting(state.inner, dim)
        return state if inner is state.inner else replace(state, inner=inner)

    def play(self, state: SetsState, X: Any, y: Vector, weights: Vector) -> tuple[SetsState, Events]:
        inner, events = self.inner.play(state.inner, X, y, weights)
        covered, events = self._told_by(state.covered, events, y)
        return SetsState(inner, covered), events

    def _told_by(self, before: Covered, events: Events, y: Vector) -> tuple[Covered, Events]:
        """What the labels of these events have told, and the events with their sets."""
        codes = y if self.several else np.asarray(y) > 0.0
        covered, sets = self.calibration.update_many(before, codes, *self._chances(events))
        return covered, replace(events, set=sets)

    def foresee(self, state: SetsState, X: Any) -> Events:
        return self._with_sets(state, self.inner.foresee(state.inner, X))

    def look(self, state: SetsState, X: Any, y: Vector) -> Events:
        return self._with_sets(state, self.inner.look(state.inner, X, y))

    def _with_sets(self, state: SetsState, events: Events) -> Events:
        """Events to come with their sets."""
        return replace(events, set=self.calibration.sets(state.covered, *self._chances(events)))

    def _chances(self, events: Events) -> tuple[Vector, Any]:
        """The probability of each class, and which of them are known."""
        said = self.inner.said(events)
        if said.probability is None:
            raise ValueError(f"{self.loss} says no probabilities of several classes, from which sets are made: use Logistic()")
        return said.of_classes, (said.prediction > -np.inf if said.several else None)

    def said(self, events: Events) -> Forecast:
        return self.inner.said(events)._replace(set=events.set)

    def live(self, state: SetsState) -> Live:
        return SetsLive(self, state) if type(self) is Sets else super().live(state)

    def widen(self, state: SetsState, dim: int) -> SetsState:
        return replace(state, inner=self.inner.widen(state.inner, dim))

    def merge(self, states: Sequence[SetsState], start: SetsState | None = None) -> SetsState:
        covered = self.calibration.merge([state.covered for state in states], None if start is None else start.covered)
        return SetsState(merge_inner(self.inner, states, start), covered)

    def describe(self, state: SetsState) -> Described:
        self._check(state)
        parts = {"inner": (self.inner, state.inner), "sets": (self.calibration, state.covered)}
        return Described({}, parts=parts)

    def restore(self, stored: Stored) -> SetsState:
        state = SetsState(stored.part("inner", self.inner), stored.part("sets", self.calibration))
        self._check(state)
        return state

    def _check(self, state: SetsState) -> None:
        if not np.array_equal(state.covered.settings, self.calibration.init().settings):
            raise CheckpointError(FOREIGN)


class SetsLive(Live):
    """The live state of the learner inside, and the threshold: short enough to be a new value each time."""

    def __init__(self, learner: Sets, state: SetsState) -> None:
        self._learner, self._state, self._inner = learner, state, learner.inner.live(state.inner)
        self._label = np.empty(1)

    @property
    def state(self) -> SetsState:
        return replace(self._state, inner=self._inner.state)

    def learn(self, row: Vector, label: float, again: bool = False) -> Events:
        said, self._label[0] = self._inner.learn(row, label, again), label
        covered, said = self._learner._told_by(self._state.covered, said, self._label)
        self._state = replace(self._state, covered=covered)
        return said

    def foresee(self, row: Vector, again: bool = False) -> Events:
        return self._learner._with_sets(self._state, self._inner.foresee(row, again))


def with_sets(learner: Learner[Any], coverage: float, state: Any = None) -> tuple[Learner[Any], Any]:
    """The learner with sets of this coverage, where it says probabilities of classes; and a state, whose sets begin there.

    >>> import onlinevi as ovi
    >>> with_sets(ovi.Auto(ovi.Logistic()), 0.9)[0].coverage, type(with_sets(ovi.Auto(ovi.Squared()), 0.9)[0]).__name__
    (0.9, 'Auto')
    """
    if isinstance(learner, Sets) or learner.loss.target != "classes" or learner.loss.odds is None:
        return learner, state
    calibration = SetCalibration(coverage)
    return Sets(calibration, learner), None if state is None else SetsState(state, calibration.init())
