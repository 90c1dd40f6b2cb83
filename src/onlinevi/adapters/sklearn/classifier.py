"""Classes, two or more, from one pass over the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from onlinevi.adapters.sklearn.estimator import OnlineVIEstimator
from onlinevi.beliefs import Family
from onlinevi.engine import Vector
from onlinevi.learners import (
    ClassesBy,
    Effort,
    FeatureMap,
    Inputs,
    Learner,
    check_classes_by,
    choose_softmax,
    classes_by_of,
    for_classes,
    with_sets,
)
from onlinevi.losses import Loss
from onlinevi.rules import Rule


def _has_probabilities(classifier: OnlineVIClassifier) -> bool:
    """Only the logistic loss knows probabilities: a hinge loss gives scores, which CalibratedClassifierCV can map."""
    if classifier._loss.odds is None:
        raise AttributeError(
            f"loss={classifier.loss!r} gives no probabilities: use loss='logistic', or CalibratedClassifierCV"
        )
    return True


def _by_number(names: list[Any], row: Any) -> Any:
    """A row of costs by the numbers of the classes; what is none stays as it is, and is refused."""
    return {str(names.index(said)) if said in names else said: value for said, value in row.items()}


class OnlineVIClassifier(ClassifierMixin, OnlineVIEstimator):  # type: ignore[misc]
    """A classifier that learns from each row once, in the order given; no scaling, no rate, no horizon to choose.

    ``loss`` is "logistic", "hinge", or a loss object. ``rule="auto"`` runs ``Auto``; else a rule object or one of "implicit",
    "ngvi", "svb", "sva", "oga-el", "oga", with its ``family`` of beliefs. ``inputs`` says how rows are prepared, ``expand``
    which features a rule is given beside their columns, as ``Fourier()``. ``epochs`` beyond one go over the rows again,
    shuffled by ``random_state``: every row then counts more than once, and beliefs are narrower than the data warrant. More
    than two classes are told apart by one posterior over the weights of all where ``rule`` is "auto" and the loss has
    probabilities (``classes_by="softmax"``, which takes "implicit" too), else each by a learner of its own ("one-vs-rest").
    ``class_weight`` has weights by classes, or is "balanced": a row counts n/(K·n_k) times, by what has come of the K classes
    so far, in ``partial_fit`` as in ``fit``.

    ``predict_set`` has the classes that hold the label as often as ``coverage`` asks. ``cost`` says what each class that comes
    costs with each that is decided, as a mapping of mappings or a matrix in the order of the sorted classes: ``predict`` then
    gives the class of the least expected cost.

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
        classes_by: ClassesBy | None = None,
        class_weight: Any = None,
        coverage: float | None = 0.9,
        cost: Any = None,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.rule = rule
        self.family = family
        self.inputs = inputs
        self.expand = expand
        self.effort = effort
        self.epochs = epochs
        self.classes_by = classes_by
        self.class_weight = class_weight
        self.coverage = coverage
        self.cost = cost
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
        """The log-odds of each class against the rest, of the second class where there are two; scores for a hinge loss.

        With ``classes_by="softmax"`` the logarithms of probabilities.
        """
        return np.asarray(self._forecast(X).prediction)

    def predict(self, X: Any) -> Any:
        """The class of the highest score; with ``cost`` that of the least expected cost."""
        forecast = self._forecast(X)
        if self._decisions is not None:
            return self.classes_[self._decisions.made(forecast)]
        scores = np.asarray(forecast.prediction)
        return self.classes_[(scores > 0.0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_set(self, X: Any) -> Any:
        """Sets that have held the labels so far as often as ``coverage`` asks: a column of true and false for each class."""
        if self.coverage is None:
            raise ValueError("coverage=None: there are no sets; give coverage=0.9")
        return np.asarray(self._forecast(X).set)

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
        self._class_weights, self._decisions = self._asked_class_weights(), self._asked_decisions()
        self._begin(X, horizon)

    def _asked_class_weights(self) -> Any:
        """None, where every class counts alike; classes go by their numbers."""
        if self.class_weight is None:
            return None
        from onlinevi.runs import ClassWeights, as_class_weight

        if not isinstance(self.class_weight, Mapping):
            return ClassWeights(as_class_weight(self.class_weight))
        known = self.classes_.tolist()
        if unknown := [name for name in self.class_weight if name not in known]:
            raise ValueError(f"class_weight has {unknown[0]!r}: the classes are {', '.join(map(repr, known))}")
        return ClassWeights(as_class_weight({known.index(name): weight for name, weight in self.class_weight.items()}))

    def _asked_decisions(self) -> Any:
        """How rows are decided by what mistakes cost; None where they are not."""
        if self.cost is None:
            return None
        from onlinevi.runs import Decisions, as_costs

        if self._loss.odds is None:
            raise ValueError(f"cost: loss={self.loss!r} gives no probabilities; use loss='logistic'")
        names, given = self.classes_.tolist(), self.cost
        if hasattr(given, "to_dict"):
            given = given.to_dict("index")
        if not isinstance(given, Mapping):
            try:
                table = np.asarray(given, dtype=float)
            except (TypeError, ValueError) as error:
                raise ValueError(f"cost={str(given)[:60]!r}: needs numbers, a row and a column for each class") from error
            if table.shape != (len(names), len(names)):
                raise ValueError(f"cost has shape {table.shape}: needs a row and a column for each of {len(names)} classes")
            given = {was: dict(zip(names, row, strict=True)) for was, row in zip(names, table.tolist(), strict=True)}
        if other := [name for name in names if name not in given] + [name for name in given if name not in names]:
            raise ValueError(f"cost: {other[0]!r} is no class, or has no row; the classes are {', '.join(map(repr, names))}")
        numbers = {str(names.index(was)): _by_number(names, row) for was, row in given.items()}
        return Decisions.of(as_costs(numbers), abstain=False, names=[str(number) for number in range(len(names))])

    def _learn(self, X: Any, y: Any, weights: Vector, order: Any) -> None:
        if self._class_weights is None:
            super()._learn(X, y, weights, order)
            return
        names = [str(number) for number in range(len(self.classes_))]
        own = weights[order] if len(weights) else None
        after, weighed = self._class_weights.weigh(np.searchsorted(self.classes_, y[order]), names, own)
        by_row = np.zeros(len(y))
        by_row[order] = weighed
        super()._learn(X, y, by_row, order)
        self._class_weights = after

    def _learner(self) -> Learner[Any]:
        check_classes_by(self.classes_by, self.rule)
        known = len(self.classes_)
        if known > 2 and classes_by_of(self.classes_by, self._loss, self.rule) == "softmax":
            parts = self._loss, self.rule, self.family, self.inputs, self.expand, self.effort
            learner = choose_softmax(*parts, known, grows=True)  # none joins; as in runs, to the same probabilities
        else:
            learner = for_classes(super()._learner(), known, grows=False)
        return learner if self.coverage is None else with_sets(learner, self.coverage)[0]

    def _labels(self, y: Any) -> Vector:
        """−1 and +1, or of more than two classes their numbers; a row of weight 0 may have a label of no class."""
        if len(self.classes_) == 2:
            return np.where(y == self.classes_[1], 1.0, -1.0)
        return np.asarray(np.searchsorted(self.classes_, y), dtype=float)
