"""What the default knows at a moment, what it says of an event, and what a pass leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners.calibration import Calibrated
from onlinevi.learners.inputs.state import InputState
from onlinevi.learners.pool.mixer import AggregateState
from onlinevi.learners.trace import Trace
from onlinevi.losses import Logistic, Loss, Poisson


@dataclass(frozen=True, eq=False)
class AutoState:
    """The moments of the features, the learners and their weights, and for numbers what the residuals have told."""

    inputs: InputState
    pooled: AggregateState
    calibrated: Calibrated | None

    @property
    def count(self) -> int:
        """How many events it has learned from."""
        return self.pooled.count

    @property
    def loss(self) -> float:
        """Σ loss at the decisions."""
        return self.pooled.loss

    @property
    def average_loss(self) -> float:
        return self.pooled.average_loss

    @property
    def weights(self) -> Vector:
        """The weights of the learners in the next prediction."""
        return self.pooled.weights

    @property
    def mean(self) -> Vector:
        """The mean of the weights of the prepared features, the intercept first, over all learners."""
        return np.asarray(self.weights @ np.stack([state.mean for state in self.pooled.learners]))

    @property
    def std(self) -> Vector:
        """The std of these weights, over all learners."""
        means, stds = (np.stack([getattr(state, name) for state in self.pooled.learners]) for name in ("mean", "std"))
        return np.asarray(np.sqrt(self.weights @ (np.square(stds) * self.unit + np.square(means - self.mean))))

    @property
    def unit(self) -> float:
        """The unit of the learners' variances: for numbers that of the noise, else 1."""
        numbers = self.calibrated is not None and not isinstance(self.pooled.plan.loss, Poisson)
        return self.noise if numbers and self.count else 1.0

    @property
    def noise(self) -> float:
        """The variance of the noise in the labels, for numbers; for counts, beside that of Poisson's law."""
        return self._calibrated.noise

    @property
    def coverage(self) -> float:
        """The part of the labels that lay in their intervals."""
        return self._calibrated.coverage

    @property
    def _calibrated(self) -> Calibrated:
        if self.calibrated is None:
            raise ValueError("classes have no noise variance and no intervals: see the probabilities")
        return self.calibrated

    def __repr__(self) -> str:
        return f"AutoState(count={self.count}, average_loss={self.average_loss:.6g})"


class Forecast(NamedTuple):
    """What is said of a label to come, at a row or at each row of a matrix."""

    prediction: Any
    """On the scale of the loss: log-odds, score, number, quantile, or the logarithm of a rate."""
    spread: Any
    """Its std: how unsure the model is."""
    mean: Any
    """Of the label: a number, a rate, or for classes P(+1) − P(−1)."""
    std: Any
    """Of the label, noise included."""
    probability: Any
    """P(+1) for classes, else None."""
    lower: Any
    upper: Any
    """An interval that covers the label as often as asked; None for classes."""


def probability_of(loss: Loss, prediction: Any, spread: Any) -> Any:
    """P(+1). Log-odds pooled from probabilities have the spread in them already; scores are N(prediction, spread²)."""
    from scipy.special import expit

    return np.asarray(expit(prediction) if isinstance(loss, Logistic) else loss.probability(prediction, spread))


class AutoTrace(Trace):
    """A ``Trace`` with what was said of each label before it was seen.

    ``label_std``, ``lower`` and ``upper`` come with ``record="all"``, for numbers and counts; else they are empty.
    """

    state: AutoState  # type: ignore[assignment]

    def __init__(self, trace: Trace, loss: Loss, bands: Vector) -> None:
        super().__init__(trace.state, trace.steps, trace.prediction, trace.spread, trace.loss, trace.average_loss)
        self._loss = loss
        self.label_std, self.lower, self.upper = bands.T

    @property
    def probability(self) -> Any:
        """P(+1) before each label was seen, for classes."""
        return probability_of(self._loss, self.prediction, self.spread)

    @property
    def said(self) -> Forecast:
        """What was said of each label before it was seen, with ``record="all"``."""
        if self.state.calibrated is None:
            probability = self.probability
            mean = 2.0 * probability - 1.0
            return Forecast(self.prediction, self.spread, mean, np.sqrt(1.0 - mean * mean), probability, None, None)
        rates = np.exp(np.clip(self.prediction + 0.5 * np.square(self.spread), -300.0, 300.0))
        mean = rates if isinstance(self._loss, Poisson) else self.prediction
        return Forecast(self.prediction, self.spread, mean, self.label_std, None, self.lower, self.upper)

    @property
    def coverage(self) -> float:
        """The part of the labels of the stream so far that lay in their intervals."""
        return self.state.coverage

    @property
    def width(self) -> float:
        """The mean width of the recorded intervals, those without a bound left out."""
        widths = self.upper - self.lower
        return float(widths[np.isfinite(widths)].mean())
