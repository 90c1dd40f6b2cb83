"""Drive a job through a source: open or resume, checkpoint, stop when told, and end with everything written."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from onlinevi.data import BadInput, Stream, open_stream
from onlinevi.engine import Vector
from onlinevi.learners import Forecast
from onlinevi.runs.arrow_table import ArrowTable
from onlinevi.runs.job import Job
from onlinevi.runs.left_out import LeftOut
from onlinevi.runs.predicting import absent_columns
from onlinevi.runs.predictions import Predictions, check_format, columns_of, open_table
from onlinevi.runs.saved import load_job, save_job
from onlinevi.runs.settings import Settings
from onlinevi.runs.stopper import Stopper
from onlinevi.runs.text_table import TextFile

Ended: TypeAlias = Literal["end", "interrupted", "bad row"]
SAME_COLUMNS = ("target", "task", "missing", "keep", "drop", "max_categories", "hash_bits")
"""The settings that make the columns of a run what they are."""

Watch: TypeAlias = Callable[[Job, Stream], None]


@dataclass(frozen=True)
class Places:
    """Where a run reads and writes. ``bad_rows`` is "stop", "skip" or a file."""

    source: str
    checkpoint: Path | None = None
    predictions: Path | None = None
    bad_rows: str = "stop"
    every: int = 100_000
    """Rows from one checkpoint to the next."""

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(f"every={self.every}: needs a number of rows from 1")
        if self.predictions is not None:
            check_format(self.predictions)


class Run:
    """A job, its stream and its files. Use it in a ``with``."""

    def __init__(self, settings: Settings, places: Places, *, resume: bool = False) -> None:
        self.places = places
        before = self._checkpointed(settings) if resume else None
        position = None if before is None else before.position
        bad = LeftOut(places.bad_rows) if before is None else before.left_out
        first = settings.first_row if position is None else 0
        self.stream = open_stream(places.source, bad=bad, skip_rows=first, end_row=settings.end_row, resume=position)
        self.job = before or self._started(settings, bad)
        self.stream.numbers |= self.job.schema.numbers
        self.resumed = before is not None
        self._table = self._open_predictions()
        self._saved_at = self.job.account.count

    def _started(self, settings: Settings, bad: LeftOut) -> Job:
        if settings.prepare_like is None:
            return Job(settings, settings.schema(self.stream.peek()), bad=bad)
        model = load_job(settings.prepare_like)
        for name in SAME_COLUMNS:
            was, now = getattr(model.settings, name), getattr(settings, name)
            if was != now:
                raise ValueError(f"{settings.prepare_like} was made with {name}={was!r}, not {now!r}: its columns are others")
        job = Job(settings, model.schema, bad=bad)
        job.prepared_by = model.state.inputs
        if absent := absent_columns(job, self.stream):
            raise ValueError(f"{self.places.source} lacks columns of {settings.prepare_like}: {', '.join(absent)}")
        return job

    def _checkpointed(self, settings: Settings) -> Job | None:
        """The job of the checkpoint; None before there is one, so that one call serves the first start and all others."""
        path = self.places.checkpoint
        if path is None:
            raise ValueError("nothing to resume from: name a checkpoint file, or the directory of an earlier run")
        if not path.exists():
            return None
        job = load_job(path, bad_rows=self.places.bad_rows)
        if job.merged:
            raise ValueError(f"{path} is a merge, which learns no more: run the new rows by themselves, and merge again")
        for one in fields(Settings):
            was, now = getattr(job.settings, one.name), getattr(settings, one.name)
            if was != now:
                raise ValueError(f"{path} was made with {one.name}={was!r}, not {now!r}: resume with the same, or start anew")
        return job

    def _open_predictions(self) -> TextFile | ArrowTable | None:
        path, job = self.places.predictions, self.job
        if path is None:
            return None
        table = open_table(path, columns_of(job.kind, labels=True), job.notes.get("predictions"))
        predictions = Predictions(job.kind, lambda: job.class_names, table)

        def hears(rows: Any, y: Vector, forecast: Forecast, loss: Vector) -> None:
            predictions.add(rows, forecast, y, loss)

        job.hears = hears
        return table

    def go(self, stopper: Stopper, watch: Watch | None = None) -> tuple[Ended, BadInput | None]:
        """To the end, to a bad row, or until stopped behind a batch; then the checkpoint is written."""
        ended, why, begun = "end", None, time.monotonic()
        spent, begun_with = self.job.seconds, self.job.account.count
        try:
            while (batch := stopper.next(self.stream)) is not None:
                self.job.take(batch, self.stream.position)
                self.job.clock.add(np.array([[self.job.account.count, spent + time.monotonic() - begun]]))
                if self.job.account.count - self._saved_at >= self.places.every:
                    self._save()
                if watch is not None:
                    watch(self.job, self.stream)
            ended = "interrupted" if stopper.code else "end"
        except BadInput as error:
            if error.refused is None and self.job.account.count == begun_with:  # not this source's rows: nothing has happened
                raise
            ended, why = "bad row", error
        if ended == "end":
            self.job.finish()
        if self.job.state is not None:
            self._save()
        if self._table is not None:
            self._table.finish()
        return ended, why  # type: ignore[return-value]

    def _save(self) -> None:
        """Files first: what a checkpoint says of them has to be on disk before it."""
        if self._table is not None:
            self.job.notes["predictions"] = self._table.place()
        if self.places.checkpoint is not None:
            save_job(self.places.checkpoint, self.job)
        self._saved_at = self.job.account.count

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()
        self.job.left_out.close()
        if self._table is not None:
            self._table.close()
