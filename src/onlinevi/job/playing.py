"""One block of rows: predicted, then learned from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from onlinevi.auto import Auto, Forecast
from onlinevi.inputs import InputState
from onlinevi.losses import Loss
from onlinevi.prepared import Learner, Prepared
from onlinevi.types import Vector


class Played(NamedTuple):
    """What was said of some rows before their labels were used, and what it cost."""

    said: Forecast
    loss: Vector


def loss_of(learner: Learner) -> Loss:
    return learner.loss if isinstance(learner, Auto) else learner.linear.loss


def begin(learner: Learner, X: Any, moments: InputState | None = None) -> Any:
    """The state before the first row of rows like these; with the moments of another run, where they are given."""
    state: Any = (
        learner.init(X.shape[1], sparse=hasattr(X, "tocsr")) if isinstance(learner, Auto) else learner.init(X.shape[1])
    )
    return state if moments is None else replace(state, inputs=moments)


def play(learner: Learner, state: Any, X: Any, y: Vector) -> tuple[Any, Played]:
    """The state after these rows, and what was said of each by the state before it; any split gives the same bits."""
    if isinstance(learner, Auto):
        state, trace = learner.update_many(state, X, y)
        return state, Played(trace.said, trace.loss)
    state, own = learner.update_many(state, X, y)
    return state, Played(learner.said(own), own.loss)


def predict(learner: Learner, state: Any, X: Any) -> Forecast:
    """What the state says of each row of a matrix, of as many columns as it has or more."""
    wide: Any = state if X.shape[1] == state.inputs.dim else learner.widen(state, X.shape[1])
    return learner.forecast(wide, X)


def look(learner: Learner, state: Any, X: Any, y: Vector) -> Played:
    """What is said of rows whose labels come later, and what it will have cost."""
    said = predict(learner, state, X)
    # A rule pays at the mean of its prediction; the log-odds that it says have the spread in them.
    paid_at = said.prediction
    if isinstance(learner, Prepared):
        paid_at, _ = learner.linear.predict(state.learned, learner.inputs.apply(state.inputs, X))
    return Played(said, np.array(loss_of(learner)(y, paid_at).value))


def widened(X: Any, dim: int) -> Any:
    """Rows as they would be if columns that joined later had been 0, as the learner takes them to have been."""
    if X.shape[1] == dim:
        return X
    if hasattr(X, "tocsr"):
        from scipy.sparse import csr_matrix

        return csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], dim))
    return np.pad(X, ((0, 0), (0, dim - X.shape[1])))
