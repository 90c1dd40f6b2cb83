"""Predictions as a table, a row each: those of a run, and those of a source that a job predicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from onlinevi.data import Refused, Stream, encode
from onlinevi.engine import Vector
from onlinevi.learners import BadRow, Forecast
from onlinevi.losses import Target
from onlinevi.runs.job import Job, as_wide
from onlinevi.runs.rejected import Rejected
from onlinevi.runs.writers import Table

COLUMNS: dict[Target, tuple[str, ...]] = {
    "classes": ("prediction", "probability"),
    "numbers": ("prediction", "std", "lower", "upper"),
    "counts": ("prediction", "std", "lower", "upper"),
    "quantile": ("prediction",),
}
"""What is predicted of a label, by what it is."""


def columns_of(kind: Target, *, labels: bool) -> Mapping[str, str]:
    """The columns of a table of predictions, and their types."""
    label = "string" if kind == "classes" else "double"
    predicted = {name: label if name == "prediction" else "double" for name in COLUMNS[kind]}
    return {"row": "int64", **predicted, **({"label": label, "loss": "double"} if labels else {})}


class Predictions:
    """Puts predictions into a table; ``probability`` is that of the second class of two, of the one predicted of more.

    ``classes`` gives the names known at the moment.
    """

    def __init__(self, kind: Target, classes: Callable[[], Sequence[str]], table: Table) -> None:
        self._kind, self._classes, self._table = kind, classes, table

    def add(self, rows: Any, forecast: Forecast, y: Vector | None = None, loss: Vector | None = None) -> None:
        """Some rows, in order; with labels and losses where the table has them."""
        columns: list[Iterable[Any]] = [rows.tolist(), *self._columns(forecast)]
        if y is not None and loss is not None:
            columns += [self._labels(y), loss.tolist()]
        self._table.add(columns)

    def _columns(self, forecast: Forecast) -> list[Iterable[Any]]:
        if self._kind == "classes":
            names, guess = (*self._classes(), None), forecast.guess.tolist()  # the second of two may have yet to come
            chances = [None] * len(guess) if forecast.probability is None else forecast.chance.tolist()
            return [[names[code] for code in guess], chances]
        parts = {"prediction": forecast.mean, "std": forecast.std, "lower": forecast.lower, "upper": forecast.upper}
        return [parts[name].tolist() for name in COLUMNS[self._kind]]

    def _labels(self, y: Vector) -> Iterable[Any]:
        if self._kind != "classes":
            return list(y.tolist())
        names = self._classes()
        return [names[int(one) if len(names) > 2 else int(one > 0.0)] for one in y.tolist()]


def absent_columns(job: Job, stream: Stream) -> list[str]:
    """The columns in use that the first rows lack, of a pipe the first row; refused where they lack all."""
    seen = stream.peek(1)
    if not stream.live:
        seen = stream.peek()
    names = {name for batch in seen for name in batch.columns}
    wanted = (
        [] if any(batch.matrix is not None for batch in seen) else [name for name, kind in job.schema.kinds.items() if kind]
    )
    absent = [name for name in wanted if name not in names]
    if absent and len(absent) == len(wanted):
        raise ValueError(f"{stream.source} has none of the columns of the model: it needs {', '.join(wanted[:5])}, …")
    return absent


def predict_stream(job: Job, stream: Stream, table: Table, bad: Rejected) -> None:
    """A row for each. Names and columns that the job has never met say nothing, but make a prediction less sure."""
    predictions = Predictions(job.kind, lambda: job.class_names, table)
    learner = job.learner
    stream.numbers |= job.schema.numbers - {job.settings.target}
    for batch in stream:
        _, rows = encode(job.schema, batch, bad, labels=False)
        bad.as_missing += rows.odd
        X = _of_known(rows.X, job.schema.width)
        state, start = as_wide(learner, job.state, X), 0
        while start < len(rows.rows):
            try:
                predictions.add(rows.rows[start:], learner.forecast(state, X[start:]))
                break
            except BadRow as refused:
                stop = start + refused.row
                if stop > start:
                    predictions.add(rows.rows[start:stop], learner.forecast(state, X[start:stop]))
                bad(Refused(batch.source, int(rows.rows[stop]), None, refused.reason, ""))
                start = stop + 1


def _of_known(X: Any, known: int) -> Any:
    """Rows without what they lack of features that the job has never met: those are there only because another row of the
    batch has them. A dense row has a 0 for each once it is prepared, whatever its value, and needs none of them."""
    if not hasattr(X, "tocsr"):
        return np.ascontiguousarray(X[:, :known])
    X.data[np.isnan(X.data) & (X.indices >= known)] = 0.0
    return X
