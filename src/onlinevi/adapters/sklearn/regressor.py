"""Numbers, quantiles and counts, with calibrated intervals, from one pass over the rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from onlinevi.adapters.sklearn.estimator import OnlineVIEstimator
from onlinevi.beliefs import Family
from onlinevi.engine import Vector
from onlinevi.learners import Effort, FeatureMap, Inputs
from onlinevi.losses import Loss
from onlinevi.rules import Rule


class OnlineVIRegressor(RegressorMixin, OnlineVIEstimator):  # type: ignore[misc]
    """A regressor that learns from each row once, in the order given; no scaling, no rate, no horizon to choose.

    ``loss`` is "squared", "absolute" for medians, "pinball" or ``Pinball(0.9)`` for quantiles, "poisson" for counts, or a loss
    object. ``coverage`` is that of the intervals. The others are those of ``OnlineVIClassifier``. The rules of the paper keep
    the weights of standardised features within ±20; "auto" and "implicit" take labels of any unit.

    >>> import numpy as np
    >>> from onlinevi.sklearn import OnlineVIRegressor
    >>> X = np.random.default_rng(0).standard_normal((500, 1))
    >>> model = OnlineVIRegressor(rule="implicit").fit(X, 1000.0 * X[:, 0] + 5000.0)
    >>> low, high = model.predict_interval([[1.0]])
    >>> bool(low[0] < 6000.0 < high[0])
    True
    """

    _targets = ("numbers", "quantile", "counts")

    def __init__(
        self,
        loss: str | Loss = "squared",
        *,
        rule: str | Rule = "auto",
        family: Family | None = None,
        inputs: Inputs | None = None,
        expand: FeatureMap | None = None,
        effort: Effort = "default",
        epochs: int = 1,
        coverage: float = 0.9,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.rule = rule
        self.family = family
        self.inputs = inputs
        self.expand = expand
        self.effort = effort
        self.epochs = epochs
        self.coverage = coverage
        self.random_state = random_state

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from further rows. Any batches give what ``fit`` does, to the bit."""
        first = not hasattr(self, "state_")
        X, y, weights, used = self._checked_rows(X, y, sample_weight, reset=first)
        if first:
            self._begin(X)
        self._learn(X, y, weights, used)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of the label, or the quantile asked for; with ``return_std`` also the label's std, noise included."""
        forecast = self._forecast(X)
        return (forecast.mean, forecast.std) if return_std else forecast.mean

    def predict_interval(self, X: Any) -> tuple[Vector, Vector]:
        """The ends of intervals that have covered the labels so far as often as ``coverage`` asks."""
        forecast = self._forecast(X)
        return forecast.lower, forecast.upper

    @property
    def coef_(self) -> Vector:
        """Weights in the units of the data. Exact with ``Inputs(squash=None)``, else slopes at the mean."""
        return self._raw_weights()[0].weights

    @property
    def coef_std_(self) -> Vector:
        """The std of each weight."""
        return np.asarray(self._raw_weights()[0].std)

    @property
    def intercept_(self) -> float:
        return self._raw_weights()[0].intercept

    def _start(self, X: Any, y: Any, horizon: int) -> None:
        self._begin(X, horizon)

    def _labels(self, y: Any) -> Vector:
        return np.asarray(y, dtype=float)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._loss.lowest_label == 0.0
        return tags
