"""Batches as matrices. Row by row, whatever the batches: the same rows give the same features in the same order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinevi.data.files.batch import Batch
from onlinevi.data.files.extra import arrow
from onlinevi.data.files.refused import Policy, Stop
from onlinevi.data.schema.schema import Schema
from onlinevi.data.schema.sheet import Sheet
from onlinevi.engine import Vector


class Encoded(NamedTuple):
    """Rows for a learner."""

    X: Any
    """A dense matrix, or CSR: ``schema.width`` columns."""
    y: Vector | None
    """Labels, where the schema has a target and they were asked for."""
    rows: NDArray[np.int64]
    """Each row's number in the stream."""


def encode(schema: Schema, batch: Batch, bad: Policy | None = None, *, labels: bool = True) -> tuple[Schema, Encoded]:
    """The batch's rows as numbers, and the schema with what they brought. ``labels=False`` is for rows to be predicted.

    A row with a cell that is not of its column's kind, or with no usable label, goes to ``bad``. Where that raises, the rows
    before it can still be had: ``batch.slice`` up to the row that the exception names.
    """
    sheet = Sheet(schema, batch)
    task, y = schema.task, None
    reasons: dict[int, str] = {}
    if labels and schema.target is not None and task is not None:
        target = batch.columns.get(schema.target, arrow().nulls(len(batch), arrow().string()))
        task, y, reasons = task.encode(target)
    refused = sheet.refused(reasons)
    for row in refused:
        (bad or Stop())(row)
    kept = np.flatnonzero(~np.isin(batch.rows, [row.row for row in refused]))
    grown, X = sheet.matrix(kept)
    return replace(grown, task=task), Encoded(X, None if y is None else y[kept], batch.rows[kept])
