"""What the columns of a table add to the prediction of a row: through what was made of them, and up to the score itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from onlinevi.data import Schema
from onlinevi.engine import Vector
from onlinevi.learners import Forecast, Learner

HASHED, INDEX = "hashed names", "index {}"
"""What stands for columns where features are shared by all names, or have no columns."""


class Explained(NamedTuple):
    """Rows taken apart: ``base`` and what each column adds make the score, to rounding."""

    score: Vector
    """On the scale of the loss: log-odds, a number, the logarithm of a rate; of several classes the logarithm of the
    probability of the guess, by one-vs-rest its own log-odds."""
    base: Vector
    """The intercept, and what is no sum over columns: uncertainty, pooled probabilities, curves, past labels."""
    columns: tuple[str, ...]
    added: Vector
    """A row a row, a column a column."""

    def by_row(self, columns: Sequence[str]) -> Vector:
        """The score, the base and what these columns add; what others do is in the base."""
        places = [self.columns.index(name) if name in self.columns else -1 for name in columns]
        padded = np.column_stack([self.added, np.zeros(len(self.score))])[:, places]
        return np.column_stack([self.score, self.score - padded.sum(axis=1), padded])


def explained(learner: Learner[Any], state: Any, schema: Schema, X: Any, forecast: Forecast) -> Explained:
    """What the columns add to the forecasts of these encoded rows."""
    said = learner.contributions(state, X)
    score = np.asarray(forecast.prediction)
    if forecast.several:
        guess = forecast.guess
        score = score[np.arange(len(guess)), guess]
        each = np.stack([_by_column(schema, own)[1] for own in said])
        names, added = _by_column(schema, said[0])[0], each[guess, np.arange(len(guess))]
    else:
        names, added = _by_column(schema, said)
    return Explained(score, score - added.sum(axis=1), names, added)


def _by_column(schema: Schema, said: Any) -> tuple[tuple[str, ...], Vector]:
    """What features add as what the columns of the table do, whose names these are."""
    from scipy.sparse import csr_matrix

    whose = [_column(schema, place) for place in range(said.shape[1])]
    names = tuple(dict.fromkeys([*schema.kinds, *whose]))
    numbers = {name: place for place, name in enumerate(names)}
    places = np.array([numbers[name] for name in whose], dtype=np.int64)
    size = len(whose), len(names)
    to_columns = csr_matrix((np.ones(len(whose)), (np.arange(len(whose)), places)), shape=size)
    added = said @ to_columns
    return names, np.asarray(added.toarray() if hasattr(added, "tocsr") else added)


def _column(schema: Schema, place: int) -> str:
    """The column that a feature is made of."""
    if place < schema.hashed:
        return HASHED
    first = schema.hashed + schema.indices
    if place < first or not schema.features:
        return INDEX.format(schema.name(place))
    return schema.features[place - first][0]
