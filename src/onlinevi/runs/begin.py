"""A job before its first row: anew, with the columns of another run, or behind what another has learned."""

from __future__ import annotations

from pathlib import Path

from onlinevi.data import Seen, Stream, first_look
from onlinevi.runs.checkpoint import load_job
from onlinevi.runs.job import Job
from onlinevi.runs.predictions import absent_columns
from onlinevi.runs.rejected import Rejected
from onlinevi.runs.settings import Settings

SAME_COLUMNS = ("target", "task", "missing", "keep", "drop", "max_categories", "hash_bits", "kinds", "decimal")
"""The settings that make the columns of a run what they are."""


def first_job(
    settings: Settings, stream: Stream, rejected: Rejected, labels: Stream | None = None
) -> tuple[Job, tuple[Seen, ...]]:
    """A job that has learned nothing, and what the first rows of its stream were taken for, where they were looked at."""
    if settings.wait is not None and labels is None:
        raise ValueError("labels by key have a source of their own: run with Places(…, labels=…), or leave wait out")
    if settings.prepare_like is None:
        seen = settings.first_rows(stream)
        of_labels = None if labels is None else settings.first_labels(labels)
        job = Job(settings, settings.schema(seen, of_labels).taking_odd(rejected.odd), rejected=rejected)
        columns = first_look(job.schema, seen)
        return job, columns if labels is None else tuple(one for one in columns if one.name != settings.target)
    model = load_job(settings.prepare_like)
    for name in SAME_COLUMNS:
        was, now = getattr(model.settings, name), getattr(settings, name)
        if was != now:
            raise ValueError(f"{settings.prepare_like} was made with {name}={was!r}, not {now!r}: its columns are others")
    job = Job(settings, model.schema, rejected=rejected)
    job.prepared_by, job.begun_with = model.state.inputs, model.state.begun
    if absent := absent_columns(job, stream):
        raise ValueError(f"{stream.source} lacks columns of {settings.prepare_like}: {', '.join(absent)}")
    return job, ()


def job_after(path: Path, settings: Settings, rejected: Rejected) -> Job:
    """A run that has learned what another one has, and goes on with the rows of another source; its sums go on too."""
    job = load_job(path)
    try:
        job.go_on(settings, rejected)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    job.notes = {}
    return job
