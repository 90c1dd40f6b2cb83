"""What both estimators are: rows checked as scikit-learn does, then learned from once, block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from onlinevi.beliefs import Family
from onlinevi.data import BLOCK_VALUES, as_weights
from onlinevi.engine import Vector
from onlinevi.learners import BadRow, Inputs, Learner, RawWeights, begin, choose, named
from onlinevi.losses import Loss
from onlinevi.rules import Rule


class OnlineVIEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """One learner and its states: one for numbers or two classes, else one a class."""

    loss: str | Loss
    rule: str | Rule
    family: Family | None
    inputs: Inputs | None
    epochs: int
    coverage: float | None = None
    random_state: Any

    learner_: Learner
    states_: tuple[Any, ...]

    _losses: ClassVar[Mapping[str, Loss]]
    _numbers: ClassVar[bool]
    """Whether labels are numbers, not classes."""

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
    def _labels(self, y: Any) -> Sequence[Vector]:
        """What each state is to learn of these labels."""

    def _checked(self, X: Any, *, reset: bool, **labels: Any) -> Any:
        """X, and y where it is given, as arrays; refused where scikit-learn does."""
        finite = "allow-nan" if self._takes_missing else True
        return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite=finite, **labels)

    def _checked_rows(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, Any, Vector, Any]:
        """X, y, the weights, empty where none are given, and the numbers of the rows that are not of weight 0."""
        X, y = self._checked(X, reset=reset, y=y, y_numeric=self._numbers)
        weights = np.array(as_weights(sample_weight, X.shape[0]))
        return X, y, weights, np.flatnonzero(weights) if len(weights) else np.arange(X.shape[0])

    @property
    def _takes_missing(self) -> bool:
        return isinstance(self.inputs, Inputs) and self.inputs.missing

    @property
    def _loss(self) -> Loss:
        return named("loss", self.loss, self._losses, Loss)

    def _begin(self, X: Any, number: int, horizon: int | None = None) -> None:
        """Forget everything: a new learner, and ``number`` states before the first row."""
        learner, sparse = choose(self._loss, self.rule, self.family, self.inputs, self.coverage), hasattr(X, "tocsr")
        first = begin(learner, X.shape[1], sparse=sparse, horizon=horizon)
        self.learner_, self.states_, self._sparse = learner, (first,) * number, sparse

    def _orders(self, used: Any) -> list[Any]:
        """The rows of each epoch: as they come, then shuffled."""
        if not (float(self.epochs).is_integer() and self.epochs >= 1):
            raise ValueError(f"epochs={self.epochs!r}: needs a whole number ≥ 1; 1 takes each row once")
        draw = check_random_state(self.random_state)
        return [used, *(draw.permutation(used) for _ in range(int(self.epochs) - 1))]

    def _learn(self, X: Any, y: Any, weights: Vector, order: Any) -> None:
        """One pass over the rows in this order. Any split gives the same bits; a row that is refused changes nothing."""
        states, X = self.states_, self._stored_alike(X)
        stored = X.nnz if self._sparse else X.size
        size = max(1, BLOCK_VALUES * X.shape[0] // max(1, stored))
        for start in range(0, len(order), size):
            numbers = order[start : start + size]
            rows, own = X[numbers], weights[numbers] if len(weights) else None
            try:
                states = self._play(states, rows, y[numbers], own)
            except BadRow as bad:
                raise BadRow(int(numbers[bad.row]), bad.reason) from None
        self.states_ = states

    def _play(self, states: tuple[Any, ...], rows: Any, y: Any, weights: Vector | None) -> tuple[Any, ...]:
        """The states after a block of rows, all of weights > 0."""
        return tuple(
            self.learner_.update_many(state, rows, labels, weights=weights, record="none")[0]
            for state, labels in zip(states, self._labels(y), strict=True)
        )

    def _stored_alike(self, X: Any) -> Any:
        """X as the rows learned from were stored: the moments of sparse rows are others than those of dense ones."""
        from scipy.sparse import csr_matrix

        if hasattr(X, "tocsr") == self._sparse:
            return X
        return csr_matrix(X) if self._sparse else X.toarray()

    def _forecasts(self, X: Any) -> list[Any]:
        """What each state says of the rows."""
        check_is_fitted(self)
        X = self._stored_alike(self._checked(X, reset=False))
        return [self.learner_.forecast(state, X) for state in self.states_]

    def _raw_weights(self) -> list[RawWeights]:
        """Each state's weights in the units of the data."""
        check_is_fitted(self)
        inputs = self.learner_.inputs
        if inputs.unit_rows:
            raise AttributeError("unit_rows=True divides each row by its length: no weights of the data exist")
        return [inputs.raw_weights(state.inputs, state.mean, state.std) for state in self.states_]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_missing
        return tags
