"""What both estimators are: rows checked as scikit-learn does, then learned from once, block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from onlinevi.beliefs import Family
from onlinevi.data import BLOCK_VALUES, as_weights
from onlinevi.engine import Vector
from onlinevi.learners import BadRow, Effort, FeatureMap, Forecast, Inputs, Learner, RawWeights, choose, loss_of
from onlinevi.losses import Loss, Target
from onlinevi.rules import Rule


class OnlineVIEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """A learner and its state behind scikit-learn's methods."""

    loss: str | Loss
    rule: str | Rule
    family: Family | None
    inputs: Inputs | None
    expand: FeatureMap | None
    effort: Effort
    epochs: int
    coverage: float | None = None
    random_state: Any

    learner_: Learner[Any]
    state_: Any

    _targets: ClassVar[tuple[Target, ...]]
    """The tasks whose losses it takes."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from these rows alone, in their order. A row of weight 0 is as if it were absent."""
        X, y, weights, used = self._checked_rows(X, y, sample_weight, reset=True)
        if not len(used):
            raise ValueError("sample_weight: all weights are zero, which leaves no row; give at least one above 0")
        orders = self._orders(used)
        self._start(X, y[used], len(used) * len(orders))
        for order in orders:
            self._learn(X, y, weights, order)
        return self

    @abstractmethod
    def _start(self, X: Any, y: Any, horizon: int) -> None:
        """Before the first of these rows."""

    @abstractmethod
    def _labels(self, y: Any) -> Vector:
        """Labels as the learner takes them."""

    def _checked(self, X: Any, *, reset: bool, **labels: Any) -> Any:
        """X, and y where it is given, as arrays; refused where scikit-learn does."""
        finite = "allow-nan" if self._takes_missing else True
        return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite=finite, **labels)

    def _checked_rows(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, Any, Vector, Any]:
        """X, y, the weights, empty where none are given, and the numbers of the rows that are not of weight 0."""
        X, y = self._checked(X, reset=reset, y=y, y_numeric="classes" not in self._targets)
        weights = np.array(as_weights(sample_weight, X.shape[0]))
        return X, y, weights, np.flatnonzero(weights) if len(weights) else np.arange(X.shape[0])

    @property
    def _takes_missing(self) -> bool:
        return isinstance(self.inputs, Inputs) and self.inputs.missing

    @property
    def _loss(self) -> Loss:
        return loss_of(self.loss, *self._targets)

    def _begin(self, X: Any, horizon: int | None = None) -> None:
        """Forget everything: a new learner, and its state before the first row."""
        learner, sparse = self._learner(), hasattr(X, "tocsr")
        self.learner_, self.state_ = learner, learner.init(X.shape[1], horizon, sparse=sparse)
        self._sparse = sparse

    def _learner(self) -> Learner[Any]:
        coverage = None if "classes" in self._targets else self.coverage
        return choose(self._loss, self.rule, self.family, self.inputs, coverage, self.expand, self.effort)

    def _orders(self, used: Any) -> list[Any]:
        """The rows of each epoch: as they come, then shuffled."""
        if not (float(self.epochs).is_integer() and self.epochs >= 1):
            raise ValueError(f"epochs={self.epochs!r}: needs a whole number ≥ 1; 1 takes each row once")
        draw = check_random_state(self.random_state)
        return [used, *(draw.permutation(used) for _ in range(int(self.epochs) - 1))]

    def _learn(self, X: Any, y: Any, weights: Vector, order: Any) -> None:
        """One pass over the rows in this order. Any split gives the same bits; a row that is refused changes nothing."""
        X, state, labels = self._stored_alike(X), self.state_, self._labels(y)
        stored = X.nnz if self._sparse else X.size
        size = max(1, BLOCK_VALUES * X.shape[0] // max(1, stored))
        for start in range(0, len(order), size):
            numbers = order[start : start + size]
            own = weights[numbers] if len(weights) else None
            try:
                state, _ = self.learner_.update_many(state, X[numbers], labels[numbers], weights=own, record="none")
            except BadRow as bad:
                raise BadRow(int(numbers[bad.row]), bad.reason) from None
        self.state_ = state

    def _stored_alike(self, X: Any) -> Any:
        """X as the rows learned from were stored: the moments of sparse rows are others than those of dense ones."""
        from scipy.sparse import csr_matrix

        if hasattr(X, "tocsr") == self._sparse:
            return X
        return csr_matrix(X) if self._sparse else X.toarray()

    def _forecast(self, X: Any) -> Forecast:
        """What is known of the labels of these rows."""
        check_is_fitted(self)
        return self.learner_.forecast(self.state_, self._stored_alike(self._checked(X, reset=False)))

    def _raw_weights(self) -> list[RawWeights]:
        """Each state's weights in the units of the data."""
        check_is_fitted(self)
        inputs = self.learner_.inputs
        if inputs.unit_rows:
            raise AttributeError("unit_rows=True divides each row by its length: no weights of the data exist")
        if self.state_.space is not None:
            raise AttributeError(f"the weights are those of {self.state_.space}, state_.mean: there are none of the columns")
        return [inputs.raw_weights(state.inputs, state.mean, state.std) for state in self.state_.by_class()]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_missing
        return tags
