"""Classes, two or more, from one pass over the rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from onlinevi.adapters.sklearn.estimator import OnlineVIEstimator
from onlinevi.beliefs import Family
from onlinevi.engine import Vector
from onlinevi.learners import Effort, FeatureMap, Inputs, Learner, for_classes
from onlinevi.losses import Loss
from onlinevi.rules import Rule


def _has_probabilities(classifier: OnlineVIClassifier) -> bool:
    """Only the logistic loss knows probabilities: a hinge loss gives scores, which CalibratedClassifierCV can map."""
    if classifier._loss.odds is None:
        raise AttributeError(
            f"loss={classifier.loss!r} gives no probabilities: use loss='logistic', or CalibratedClassifierCV"
        )
    return True


class OnlineVIClassifier(ClassifierMixin, OnlineVIEstimator):  # type: ignore[misc]
    """A classifier that learns from each row once, in the order given; no scaling, no rate, no horizon to choose.

    ``loss`` is "logistic", "hinge", or a loss object. ``rule="auto"`` runs ``Auto``; else a rule object or one of "implicit",
    "ngvi", "svb", "sva", "oga-el", "oga", with its ``family`` of beliefs. ``inputs`` says how rows are prepared, ``expand``
    which features a rule is given beside their columns, as ``Fourier()``. ``epochs`` beyond one go over the rows again,
    shuffled by ``random_state``: every row then counts more than once, and beliefs are narrower than the data warrant. Of more
    than two classes each has a learner of its own, against the rest.

    >>> import numpy as np
    >>> from onlinevi.sklearn import OnlineVIClassifier
    >>> X = np.random.default_rng(0).standard_normal((300, 2))
    >>> model = OnlineVIClassifier(rule="ngvi").fit(X, np.where(X[:, 0] > X[:, 1], "above", "below"))
    >>> model.predict([[2.0, 0.0], [0.0, 2.0]]).tolist(), model.coef_.shape
    (['above', 'below'], (1, 2))
    """

    classes_: Any
    _targets = ("classes",)

    def __init__(
        self,
        loss: str | Loss = "logistic",
        *,
        rule: str | Rule = "auto",
        family: Family | None = None,
        inputs: Inputs | None = None,
        expand: FeatureMap | None = None,
        effort: Effort = "default",
        epochs: int = 1,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.rule = rule
        self.family = family
        self.inputs = inputs
        self.expand = expand
        self.effort = effort
        self.epochs = epochs
        self.random_state = random_state

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from further rows; the first call needs ``classes``, all that may come. Any batches give what ``fit`` does."""
        first = not hasattr(self, "state_")
        X, y, weights, used = self._checked_rows(X, y, sample_weight, reset=first)
        if first:
            if classes is None:
                raise ValueError("classes=None: the first call to partial_fit needs all classes that may come")
            self._begin_with(X, np.unique(classes))
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r}: the first call had {self.classes_.tolist()}; they cannot change")
        unknown = np.setdiff1d(y[used], self.classes_)
        if len(unknown):
            raise ValueError(f"y has {unknown.tolist()}, not among the classes {self.classes_.tolist()} of the first call")
        self._learn(X, y, weights, used)
        return self

    def decision_function(self, X: Any) -> Vector:
        """The log-odds of each class against the rest, of the second class where there are two; scores for a hinge loss."""
        return np.asarray(self._forecast(X).prediction)

    def predict(self, X: Any) -> Any:
        """The class of the highest score."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0.0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Vector:
        """The probability of each class; of more than two, coupled as the labels so far have taught ."""
        forecast = self._forecast(X)
        if forecast.several:
            return np.asarray(forecast.probability)
        return np.column_stack([self._loss.probability_of_score(sign * forecast.prediction, None) for sign in (-1.0, 1.0)])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Vector:
        """The logarithm of ``predict_proba``."""
        return np.asarray(np.log(self.predict_proba(X)))

    @property
    def coef_(self) -> Vector:
        """Weights in the units of the data, a row a score. Exact with ``Inputs(squash=None)``, else slopes at the mean."""
        return np.stack([raw.weights for raw in self._raw_weights()])

    @property
    def coef_std_(self) -> Vector:
        """The std of each weight."""
        return np.stack([np.asarray(raw.std) for raw in self._raw_weights()])

    @property
    def intercept_(self) -> Vector:
        return np.array([raw.intercept for raw in self._raw_weights()])

    def _checked_rows(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, Any, Vector, Any]:
        rows = super()._checked_rows(X, y, sample_weight, reset=reset)
        check_classification_targets(rows[1])
        return rows

    def _start(self, X: Any, y: Any, horizon: int) -> None:
        self._begin_with(X, np.unique(y), horizon)

    def _begin_with(self, X: Any, classes: Any, horizon: int | None = None) -> None:
        if len(classes) < 2:
            raise ValueError(f"there is one class only, {classes.tolist()}: needs at least two")
        self.classes_ = classes
        self._begin(X, horizon)

    def _learner(self) -> Learner[Any]:
        return for_classes(super()._learner(), len(self.classes_), grows=False)

    def _labels(self, y: Any) -> Vector:
        """−1 and +1, or of more than two classes their numbers; a row of weight 0 may have a label of no class."""
        if len(self.classes_) == 2:
            return np.where(y == self.classes_[1], 1.0, -1.0)
        return np.asarray(np.searchsorted(self.classes_, y), dtype=float)
