"""Intervals that cover labels as often as asked, around what any learner predicts of numbers and counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners.base import Combinator, Learner, Wrapped, merge_inner
from onlinevi.learners.calibration import Calibrated, Calibration
from onlinevi.learners.described import FOREIGN, CheckpointError, Described, Stored
from onlinevi.learners.live import Live
from onlinevi.learners.parts import Part
from onlinevi.learners.trace import Events, Forecast
from onlinevi.losses import LabelLaw


@dataclass(frozen=True, eq=False, repr=False)
class CalibrateState(Wrapped):
    """What was learned, and what the residuals have told."""

    inner: Any
    calibrated: Calibrated
    in_noise: bool = True
    """Whether the variances of a pool inside are in units of the noise; those of the logarithm of a rate are not."""

    @property
    def unit(self) -> float:
        """The unit of the variances of a pool: that of the noise, or 1."""
        return self.noise if self.in_noise and self.calibrated.count else 1.0

    @property
    def std(self) -> Vector:
        return self.std_in(self.unit)

    def parts(self, noise: float = 1.0) -> tuple[Part, ...]:
        found: tuple[Part, ...] = self.inner.parts(self.unit)
        return found

    @property
    def noise(self) -> float:
        """The variance of the noise in the labels; for counts, beside that of Poisson's law."""
        return self.calibrated.noise

    @property
    def coverage(self) -> float:
        """The part of the labels that lay in their intervals."""
        return self.calibrated.coverage


@dataclass(frozen=True)
class Calibrate(Combinator[CalibrateState]):
    """Adds to a learner of numbers or counts what its residuals tell: the noise of labels, and intervals (``Calibration``).

    >>> import numpy as np, onlinevi as ovi
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 2))
    >>> learner = ovi.Calibrate(ovi.Calibration(0.8), ovi.Linear(ovi.Squared(), ovi.Implicit()))
    >>> state, trace = learner.update_many(learner.init(2), X, X @ [1.0, -1.0] + rng.standard_normal(500))
    >>> abs(state.coverage - 0.8) < 0.03, learner.forecast(state, [1.0, 0.0]).lower < 1.0
    (True, True)
    """

    calibration: Calibration
    inner: Learner[Any]

    def __post_init__(self) -> None:
        if self.loss.target == "classes":
            raise ValueError(f"{self.loss} predicts classes, which have no intervals: leave Calibrate out")

    @property
    def coverage(self) -> float:
        """How often intervals are to cover their labels."""
        return self.calibration.coverage

    @property
    def _in_noise(self) -> bool:
        return self.loss.target != "counts"

    def init(self, dim: int, horizon: int | None = None, *, sparse: bool = False) -> CalibrateState:
        inner = self.inner.init(dim, horizon, sparse=sparse)
        return CalibrateState(inner, self.calibration.init(), self._in_noise)

    def play(self, state: CalibrateState, X: Any, y: Vector, weights: Vector) -> tuple[CalibrateState, Events]:
        inner, events = self.inner.play(state.inner, X, y, weights)
        calibrated, events = self._told_by(state.calibrated, events, y)
        return CalibrateState(inner, calibrated, self._in_noise), events

    def _told_by(self, before: Calibrated, events: Events, y: Vector) -> tuple[Calibrated, Events]:
        """What residuals have told behind these events, and the events with their intervals."""
        calibrated, bands = self.calibration.update_many(before, y, *self._law(events))
        if self._in_noise and events.within is not None:
            noise = np.where(np.isnan(bands.noise), 1.0, bands.noise)
            with np.errstate(over="ignore"):  # labels beyond 1e150: nothing is known of their spread
                events = replace(events, spread=np.sqrt(noise * events.within + events.between))
        return calibrated, replace(events, label_std=bands.std, lower=bands.lower, upper=bands.upper)

    def foresee(self, state: CalibrateState, X: Any) -> Events:
        return self._banded(state, self.inner.foresee(state.inner, X))

    def _banded(self, state: CalibrateState, events: Events) -> Events:
        """Events to come with their intervals."""
        if events.within is not None:
            events = replace(events, spread=np.sqrt(state.unit * events.within + events.between))
        bands = self.calibration.bands(state.calibrated, *self._law(events))
        return replace(events, label_std=bands.std, lower=bands.lower, upper=bands.upper)

    def live(self, state: CalibrateState) -> Live:
        return CalibrateLive(self, state) if type(self) is Calibrate else super().live(state)

    def said(self, events: Events) -> Forecast:
        lower = None if events.lower is None else np.maximum(events.lower, self.loss.lowest_label)
        centre = self._law(events).mean
        return Forecast(events.prediction, events.spread, centre, events.label_std, None, lower, events.upper)

    def _law(self, events: Events) -> LabelLaw:
        """A single belief's variance is all its own; of a pool's, a part is in units of the noise."""
        if events.within is None:
            return self.loss.label_law(events.prediction, 0.0, np.square(events.spread))
        return self.loss.label_law(events.prediction, events.within, events.between)

    def widen(self, state: CalibrateState, dim: int) -> CalibrateState:
        return replace(state, inner=self.inner.widen(state.inner, dim))

    def merge(self, states: Sequence[CalibrateState], start: CalibrateState | None = None) -> CalibrateState:
        told = self.calibration.merge([state.calibrated for state in states], None if start is None else start.calibrated)
        return CalibrateState(merge_inner(self.inner, states, start), told, self._in_noise)

    def describe(self, state: CalibrateState) -> Described:
        self._check(state)
        parts = {"inner": (self.inner, state.inner), "residuals": (self.calibration, state.calibrated)}
        return Described({}, parts=parts)

    def restore(self, stored: Stored) -> CalibrateState:
        inner = stored.part("inner", self.inner)
        state = CalibrateState(inner, stored.part("residuals", self.calibration), self._in_noise)
        self._check(state)
        return state

    def _check(self, state: CalibrateState) -> None:
        if not np.array_equal(state.calibrated.settings, self.calibration.init().settings):
            raise CheckpointError(FOREIGN)


class CalibrateLive(Live):
    """The live state of the learner inside, and what the residuals have told: short enough to be a new value each time."""

    def __init__(self, learner: Calibrate, state: CalibrateState) -> None:
        self._learner, self._state, self._inner = learner, state, learner.inner.live(state.inner)
        self._label = np.empty(1)

    @property
    def state(self) -> CalibrateState:
        return replace(self._state, inner=self._inner.state)

    def learn(self, row: Vector, label: float, again: bool = False) -> Events:
        said, self._label[0] = self._inner.learn(row, label, again), label
        told, said = self._learner._told_by(self._state.calibrated, said, self._label)
        self._state = replace(self._state, calibrated=told)
        return said

    def foresee(self, row: Vector, again: bool = False) -> Events:
        return self._learner._banded(self._state, self._inner.foresee(row, again))
