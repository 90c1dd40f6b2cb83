"""The rows of a source, predicted by what a job has learned."""

from __future__ import annotations

from onlinevi.data import Policy, Refused, Stream, encode
from onlinevi.learners import BadRow
from onlinevi.runs.job import Job, as_wide
from onlinevi.runs.predictions import Predictions, Table


def absent_columns(job: Job, stream: Stream) -> list[str]:
    """The columns in use that the first rows lack; refused where they lack all."""
    seen = stream.peek()
    names = {name for batch in seen for name in batch.columns}
    wanted = (
        [] if any(batch.matrix is not None for batch in seen) else [name for name, kind in job.schema.kinds.items() if kind]
    )
    absent = [name for name in wanted if name not in names]
    if absent and len(absent) == len(wanted):
        raise ValueError(f"{stream.source} has none of the columns of the model: it needs {', '.join(wanted[:5])}, …")
    return absent


def predict_stream(job: Job, stream: Stream, table: Table, bad: Policy) -> None:
    """A row for each. Names and columns that the job has never met say nothing, but make a prediction less sure."""
    predictions = Predictions(job.kind, lambda: job.class_names, table)
    learner = job.learner
    stream.numbers |= job.schema.numbers - {job.settings.target}
    for batch in stream:
        _, rows = encode(job.schema, batch, bad, labels=False)
        state, start = as_wide(learner, job.state, rows.X), 0
        while start < len(rows.rows):
            try:
                predictions.add(rows.rows[start:], learner.forecast(state, rows.X[start:]))
                break
            except BadRow as refused:
                stop = start + refused.row
                if stop > start:
                    predictions.add(rows.rows[start:stop], learner.forecast(state, rows.X[start:stop]))
                bad(Refused(batch.source, int(rows.rows[stop]), None, refused.reason, ""))
                start = stop + 1
