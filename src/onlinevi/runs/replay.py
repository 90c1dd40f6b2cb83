"""The rows of a run once more, as its learner had them: a run keeps none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from onlinevi.data import Batch, Skip, Stream, encode, open_stream
from onlinevi.engine import Vector
from onlinevi.learners import BadRow, InputState
from onlinevi.runs.job import Job
from onlinevi.runs.run import Stopper
from onlinevi.runs.widths import joined, widened


class NotAgain(ValueError):
    """Why the rows cannot be had once more, as part of a sentence."""


def replay(job: Job, source: str, stopper: Stopper, most: int | None) -> tuple[Any, Vector]:
    """The prepared rows, missing values 0, and their labels. Refused where they are not bit by bit those that were learned
    from, or where they would be more than ``most`` values."""
    if not (Path(source).is_file() or Path(source).is_dir()):
        raise NotAgain("the rows came through a pipe, and cannot be read once more")
    assert job.position is not None
    pieces: list[Any] = []
    labels: list[Vector] = []
    kept, last = 0, None
    # From the first row on, and refused if the bytes are not those read before.
    start = job.position._replace(rows=job.settings.first_row)
    with open_stream(source, bad=Skip(), end_row=job.settings.end_row, resume=start, **job.settings.reading) as stream:
        for state, Z, y in _prepared(job, stream, stopper):
            last = state
            kept += Z.nnz if hasattr(Z, "tocsr") else Z.size
            if most is not None and kept > most:
                raise too_many(most)
            pieces.append(Z)
            labels.append(y)
    if stopper.code:
        raise NotAgain("the search for it was interrupted")
    inputs, learned, count = job.learner.inputs, job.state.inputs, sum(map(len, labels))
    if last != learned or count != job.state.count:
        raise NotAgain(f"read once more, the source gave other rows ({count:,}) than those learned from ({job.state.count:,})")
    return _joined(pieces, inputs.dim_out(learned.dim)), np.concatenate(labels)


def too_many(most: int) -> NotAgain:
    return NotAgain(f"the rows have more than {most:,} values; --hindsight looks for it all the same, in memory that grows")


def _prepared(job: Job, stream: Stream, stopper: Stopper) -> Iterator[tuple[InputState, Any, Vector]]:
    """Blocks of rows through the schema and the inputs; features join at the row that brought them, as they did in the run."""
    inputs, schema, end = job.learner.inputs, job.first_schema, job.position.rows if job.position else 0
    stream.numbers |= schema.numbers
    state = InputState.start(0) if job.prepared_by is None else job.prepared_by
    while (batch := stopper.next(stream)) is not None:
        batch = _before(batch, end)
        if not len(batch):
            continue
        schema, rows = encode(schema, batch, Skip())
        assert rows.y is not None
        start = 0
        while start < len(rows.rows):
            width, stop = int(rows.widths[start]), len(rows.rows)
            if job.prepared_by is None:
                state = joined(state, schema, max(width, state.dim))
                stop = int(np.searchsorted(rows.widths, width, side="right"))
            X = widened(rows.X[start:stop, : state.dim], state.dim)
            try:
                state, Z = inputs.update_many(state, X)
                used = stop - start
            except BadRow as bad:  # left out then, and now
                used = bad.row
                state, Z = inputs.update_many(state, X[:used])
                stop = start + used + 1
            yield state, _zeros_for_missing(Z), rows.y[start : start + used]
            start = stop


def _before(batch: Batch, end: int) -> Batch:
    """Its rows before this one: a file may have grown since."""
    return batch.slice(0, int(np.searchsorted(batch.rows, end)))


def _zeros_for_missing(Z: Any) -> Any:
    """Fixed weights read a missing value as 0, its mean; so do those that certificates speak of."""
    values = Z.data if hasattr(Z, "tocsr") else Z
    values[np.isnan(values)] = 0.0
    return Z


def _joined(pieces: list[Any], width: int) -> Any:
    if hasattr(pieces[0], "tocsr"):
        from scipy.sparse import vstack

        return vstack([widened(piece, width) for piece in pieces], format="csr")
    return np.concatenate([widened(piece, width) for piece in pieces])
