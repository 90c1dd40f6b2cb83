"""States and rows of as many columns as have come: features join at the row that brings them."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinevi.data import Schema
from onlinevi.learners import InputState, Learner


def begin(learner: Learner[Any], width: int, moments: InputState | None = None, *, sparse: bool) -> Any:
    """The state before the first row of so many features; with the moments of another run, where they are given."""
    state = learner.init(width, sparse=sparse)
    return state if moments is None else state.with_inputs(moments)


def joined(moments: InputState, schema: Schema, width: int) -> InputState:
    """The moments for rows of more features: names and indices were 0 in all rows so far, of numbers nothing is known.

    Numbers are centred beside names, though these make rows sparse.
    """
    unknown = [place for place in range(moments.dim, width) if not schema.was_zero(place)]
    lag = np.zeros(width - moments.dim)
    lag[np.array(unknown, dtype=int) - moments.dim] = moments.count
    return moments.widened(width, lag, unknown if schema.sparse else ())


def as_wide(learner: Learner[Any], state: Any, X: Any) -> Any:
    """The state for rows of as many columns as it has, or more."""
    return state if X.shape[1] == state.inputs.dim else learner.widen(state, X.shape[1])


def widened(X: Any, dim: int) -> Any:
    """Rows of so many columns: those that joined later are 0, as the learner takes them to have been."""
    if X.shape[1] == dim:
        return X
    if hasattr(X, "tocsr"):
        from scipy.sparse import csr_matrix

        return csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], dim))
    return X[:, :dim] if dim < X.shape[1] else np.pad(X, ((0, 0), (0, dim - X.shape[1])))
