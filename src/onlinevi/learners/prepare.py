"""A rule of one's choice behind prepared rows, with the methods of ``Auto``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners.calibration import Bands, Calibrated, Calibration
from onlinevi.learners.default.outcome import Forecast, probability_of
from onlinevi.learners.inputs.inputs import Inputs
from onlinevi.learners.inputs.state import InputState
from onlinevi.learners.linear import Linear
from onlinevi.learners.log_odds import predicted_log_odds
from onlinevi.learners.state import State
from onlinevi.learners.trace import Record, Trace
from onlinevi.losses import Logistic, Loss, Poisson


@dataclass(frozen=True, eq=False)
class PreparedState:
    """The moments of the features, the belief, and for numbers what the residuals have told."""

    inputs: InputState
    learned: State
    calibrated: Calibrated | None

    @property
    def mean(self) -> Vector:
        """The mean of the weights of the prepared features."""
        return self.learned.mean

    @property
    def std(self) -> Vector:
        return self.learned.std

    @property
    def count(self) -> int:
        """How many events it has learned from."""
        return self.learned.count


class PreparedTrace(Trace):
    """A ``Trace`` with the intervals of the labels before they were seen; None for classes."""

    def __init__(self, trace: Trace, bands: Bands | None) -> None:
        super().__init__(trace.state, trace.steps, trace.prediction, trace.spread, trace.loss, trace.average_loss)
        self.bands = bands


@dataclass(frozen=True)
class Prepared:
    """Rows through ``Inputs`` to ``Linear``; ``calibration`` is for numbers, None for classes."""

    inputs: Inputs
    linear: Linear
    calibration: Calibration | None

    @property
    def loss(self) -> Loss:
        return self.linear.loss

    def init(self, dim: int, horizon: int | None = None) -> PreparedState:
        """The state before the first event."""
        calibrated = None if self.calibration is None else self.calibration.init()
        return PreparedState(self.inputs.init(dim), self.linear.init(self.inputs.dim_out(dim), horizon), calibrated)

    def widen(self, state: PreparedState, dim: int) -> PreparedState:
        """The state for rows with further columns at the end, ``dim`` in all."""
        learned = self.linear.widen(state.learned, self.inputs.dim_out(dim))
        return PreparedState(self.inputs.widen(state.inputs, dim), learned, state.calibrated)

    def update_many(
        self, state: PreparedState, X: Any, y: Vector, *, weights: Vector | None = None, record: Record = "all"
    ) -> tuple[PreparedState, PreparedTrace]:
        """Learn from a block of rows, all of weights > 0, in order; the same bits as one event at a time."""
        inputs, prepared = self.inputs.update_many(state.inputs, X)
        kept: Record = record if self.calibration is None else "all"
        learned, trace = self.linear.update_many(state.learned, prepared, y, weights=weights, record=kept)
        if self.calibration is None or state.calibrated is None:
            return PreparedState(inputs, learned, None), PreparedTrace(trace, None)
        calibrated, bands = self.calibration.update_many(state.calibrated, y, *self._law(trace.prediction, trace.spread))
        return PreparedState(inputs, learned, calibrated), PreparedTrace(trace, bands)

    def scores(self, prediction: Vector, spread: Vector) -> Vector:
        """What a classifier compares: log-odds where the loss has probabilities, else the prediction."""
        return predicted_log_odds(prediction, spread) if isinstance(self.loss, Logistic) else prediction

    def forecast(self, state: PreparedState, X: Any) -> Forecast:
        """What is known of the label at each row of a matrix. Changes nothing."""
        prediction, spread = self.linear.predict(state.learned, self.inputs.apply(state.inputs, X))
        if self.calibration is None or state.calibrated is None:
            return self._said_of_classes(prediction, spread)
        law = self._law(prediction, spread)
        return self._said_of_numbers(prediction, spread, law[0], self.calibration.bands(state.calibrated, *law))

    def said(self, trace: PreparedTrace) -> Forecast:
        """What was said of each label of a trace before it was seen; for numbers, one with ``record="all"``."""
        if trace.bands is None:
            return self._said_of_classes(trace.prediction, trace.spread)
        centre = self._law(trace.prediction, trace.spread)[0]
        return self._said_of_numbers(trace.prediction, trace.spread, centre, trace.bands)

    def _said_of_classes(self, prediction: Vector, spread: Vector) -> Forecast:
        scores = self.scores(prediction, spread)
        probability = probability_of(self.loss, scores, spread)
        mean = 2.0 * probability - 1.0
        return Forecast(scores, spread, mean, np.sqrt(1.0 - mean * mean), probability, None, None)

    def _said_of_numbers(self, prediction: Vector, spread: Vector, centre: Vector, bands: Bands) -> Forecast:
        lower = np.maximum(bands.lower, 0.0) if isinstance(self.loss, Poisson) else bands.lower
        return Forecast(prediction, spread, centre, bands.std, None, lower, bands.upper)

    def _law(self, prediction: Any, spread: Any) -> tuple[Any, Any, Any]:
        """The label's mean, its variance in units of the noise, and the variance that is not noise."""
        if isinstance(self.loss, Poisson):
            rate = np.exp(np.minimum(prediction + 0.5 * np.square(spread), 300.0))
            return rate, rate, 0.0 * rate
        return prediction, np.ones_like(prediction), np.square(spread)
