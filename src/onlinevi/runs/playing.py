"""One block of rows: predicted, then learned from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners import AnyLearner, Auto, Classes, ClassesState, ClassForecast, Forecast, InputState, Prepared
from onlinevi.learners import begin as begin_one


class Played(NamedTuple):
    """What was said of some rows before their labels were used, and what it cost."""

    said: Forecast | ClassForecast
    loss: Vector


def states_of(state: Any) -> tuple[Any, ...]:
    """The state, or that of each class of more than two."""
    return state.each if isinstance(state, ClassesState) else (state,)


def begin(learner: AnyLearner, X: Any, moments: InputState | None = None) -> Any:
    """The state before the first row of rows like these; with the moments of another run, where they are given."""
    dim, sparse = X.shape[1], hasattr(X, "tocsr")
    if isinstance(learner, Classes):
        return learner.init(dim, sparse=sparse, moments=moments)
    return begin_one(learner, dim, sparse=sparse, moments=moments)


def play(learner: AnyLearner, state: Any, X: Any, y: Vector) -> tuple[Any, Played]:
    """The state after these rows, and what was said of each by the state before it; any split gives the same bits."""
    if isinstance(learner, Auto | Classes):
        state, trace = learner.update_many(state, X, y)
        return state, Played(trace.said, trace.loss)
    state, own = learner.update_many(state, X, y)
    return state, Played(learner.said(own), own.loss)


def predict(learner: AnyLearner, state: Any, X: Any) -> Forecast | ClassForecast:
    """What the state says of each row of a matrix, of as many columns as it has or more."""
    return learner.forecast(_as_wide(learner, state, X), X)


def look(learner: AnyLearner, state: Any, X: Any, y: Vector) -> Played:
    """What is said of rows whose labels come later, and what it will have cost."""
    state = _as_wide(learner, state, X)
    if isinstance(learner, Classes):
        trace = learner.look(state, X, y)
        return Played(trace.said, trace.loss)
    said = learner.forecast(state, X)
    # A rule pays at the mean of its prediction; the log-odds that it says have the spread in them.
    paid_at = said.prediction
    if isinstance(learner, Prepared):
        paid_at, _ = learner.linear.predict(state.learned, learner.inputs.apply(state.inputs, X))
    return Played(said, np.array(learner.loss(y, paid_at).value))


def _as_wide(learner: Any, state: Any, X: Any) -> Any:
    return state if X.shape[1] == state.inputs.dim else learner.widen(state, X.shape[1])


def widened(X: Any, dim: int) -> Any:
    """Rows as they would be if columns that joined later had been 0, as the learner takes them to have been."""
    if X.shape[1] == dim:
        return X
    if hasattr(X, "tocsr"):
        from scipy.sparse import csr_matrix

        return csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], dim))
    return np.pad(X, ((0, 0), (0, dim - X.shape[1])))
