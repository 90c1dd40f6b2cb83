"""A rule of one's choice behind prepared rows, with the methods of ``Auto``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinevi.auto import Forecast
from onlinevi.inputs import Inputs, InputState
from onlinevi.learner import Linear
from onlinevi.losses import Logistic, Poisson
from onlinevi.sklearn.log_odds import predicted_log_odds
from onlinevi.state import State
from onlinevi.trace import Record, Trace
from onlinevi.types import Vector
from onlinevi.uncertainty import Calibrated, Calibration


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


@dataclass(frozen=True)
class Prepared:
    """Rows through ``Inputs`` to ``Linear``; ``calibration`` is for numbers, None for classes."""

    inputs: Inputs
    linear: Linear
    calibration: Calibration | None

    def init(self, dim: int, horizon: int | None = None) -> PreparedState:
        """The state before the first event."""
        calibrated = None if self.calibration is None else self.calibration.init()
        return PreparedState(self.inputs.init(dim), self.linear.init(self.inputs.dim_out(dim), horizon), calibrated)

    def update_many(
        self, state: PreparedState, X: Any, y: Vector, *, weights: Vector | None, record: Record
    ) -> tuple[PreparedState, Trace]:
        """Learn from a block of rows, all of weights > 0, in order; the same bits as one event at a time."""
        inputs, prepared = self.inputs.update_many(state.inputs, X)
        kept: Record = record if self.calibration is None else "all"
        learned, trace = self.linear.update_many(state.learned, prepared, y, weights=weights, record=kept)
        if self.calibration is None or state.calibrated is None:
            return PreparedState(inputs, learned, None), trace
        calibrated, _ = self.calibration.update_many(state.calibrated, y, *self._law(trace.prediction, trace.spread))
        return PreparedState(inputs, learned, calibrated), trace

    def scores(self, prediction: Vector, spread: Vector) -> Vector:
        """What a classifier compares: log-odds where the loss has probabilities, else the prediction."""
        return predicted_log_odds(prediction, spread) if isinstance(self.linear.loss, Logistic) else prediction

    def forecast(self, state: PreparedState, X: Any) -> Forecast:
        """What is known of the label at each row of a matrix. Changes nothing."""
        prediction, spread = self.linear.predict(state.learned, self.inputs.apply(state.inputs, X))
        if self.calibration is None or state.calibrated is None:
            return Forecast(self.scores(prediction, spread), spread, None, None, None, None, None)
        centre, unit, extra = self._law(prediction, spread)
        bands = self.calibration.bands(state.calibrated, centre, unit, extra)
        lower = np.maximum(bands.lower, 0.0) if isinstance(self.linear.loss, Poisson) else bands.lower
        return Forecast(prediction, spread, centre, bands.std, None, lower, bands.upper)

    def _law(self, prediction: Any, spread: Any) -> tuple[Any, Any, Any]:
        """The label's mean, its variance in units of the noise, and the variance that is not noise."""
        if isinstance(self.linear.loss, Poisson):
            rate = np.exp(np.minimum(prediction + 0.5 * np.square(spread), 300.0))
            return rate, rate, 0.0 * rate
        return prediction, np.ones_like(prediction), np.square(spread)
