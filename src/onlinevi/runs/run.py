"""A job driven through a source: opened or resumed, checkpointed, stopped when told, and ended with everything written."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from onlinevi.data import BadInput, Batch, Seen, Stream, first_look, open_stream
from onlinevi.engine import Vector
from onlinevi.learners import CheckpointError, Forecast
from onlinevi.runs.checkpoint import job_after, load_job, save_job
from onlinevi.runs.job import Job
from onlinevi.runs.places import Places
from onlinevi.runs.predictions import Predictions, absent_columns, columns_of
from onlinevi.runs.rejected import Rejected
from onlinevi.runs.settings import Settings
from onlinevi.runs.writers import ArrowTable, StandardOutput, TextFile, open_table

Ended: TypeAlias = Literal["end", "interrupted", "bad row"]
SAME_COLUMNS = ("target", "task", "missing", "keep", "drop", "max_categories", "hash_bits", "kinds", "decimal")
"""The settings that make the columns of a run what they are."""

Watch: TypeAlias = Callable[[Job, Stream], None]


class Stopped(BaseException):
    """A signal came while waiting for rows, which may never come."""


class Stopper:
    """Ctrl-C and SIGTERM: at once while waiting for rows, behind the batch while learning from it.

    ``code`` is the exit code once a signal has come: 130 or 143.
    """

    def __init__(self) -> None:
        self.code = 0
        self._waiting = False

    def __call__(self, number: int, frame: Any = None) -> None:
        """The handler. A second signal stops whatever goes on."""
        if self.code:
            raise KeyboardInterrupt
        self.code = 128 + number
        if self._waiting:
            raise Stopped

    def next(self, stream: Stream) -> Batch | None:
        """The next batch; None at the end, or when told to stop."""
        try:
            with self.waiting():
                return None if self.code else next(stream, None)
        except Stopped:
            return None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Where a signal raises ``Stopped``."""
        try:
            self._waiting = True
            yield
        finally:
            self._waiting = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Until the end of the ``with``; only the main thread hears of signals."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class Run:
    """A job, its stream and its files. Use it in a ``with``.

    With ``resume`` it goes on from its checkpoint, if there is one. With ``after`` it begins with what another run has
    learned, from other rows. A checkpoint of a run that did not come to its end is replaced only with ``overwrite``.
    """

    def __init__(
        self,
        settings: Settings,
        places: Places,
        *,
        resume: bool = False,
        overwrite: bool = False,
        after: Path | None = None,
    ) -> None:
        self.places = places
        self.columns: tuple[Seen, ...] = ()
        """What the first rows were taken for, where they were looked at."""
        before = self._checkpointed(settings) if resume else None
        if not resume and not overwrite:
            self._refuse_to_lose()
        position = None if before is None else before.position
        rejected = Rejected(places.bad_rows) if before is None else before.rejected
        first = settings.first_row if position is None else 0
        with ExitStack() as opened:
            opened.callback(rejected.close)
            self.stream = opened.enter_context(
                open_stream(
                    places.source,
                    bad=rejected,
                    skip_rows=first,
                    end_row=settings.end_row,
                    resume=position,
                    **settings.reading,
                )
            )
            if before is None and after is not None:
                self.job = job_after(after, settings, rejected)
            else:
                self.job = before or self._started(settings, rejected)
            self.job.take_odd(rejected.odd)
            self.begun_with = self.job.metrics.count
            """Events that came before this call."""
            self.stream.numbers |= self.job.schema.numbers
            self.resumed = before is not None
            self._table = self._open_predictions()
            opened.pop_all()  # from here on __exit__ closes them
        self._saved_at = self.job.metrics.count

    def _started(self, settings: Settings, rejected: Rejected) -> Job:
        if settings.prepare_like is None:
            seen = settings.first_rows(self.stream)
            job = Job(settings, settings.schema(seen).taking_odd(rejected.odd), rejected=rejected)
            self.columns = first_look(job.schema, seen)
            return job
        model = load_job(settings.prepare_like)
        for name in SAME_COLUMNS:
            was, now = getattr(model.settings, name), getattr(settings, name)
            if was != now:
                raise ValueError(f"{settings.prepare_like} was made with {name}={was!r}, not {now!r}: its columns are others")
        job = Job(settings, model.schema, rejected=rejected)
        job.prepared_by, job.begun_with = model.state.inputs, model.state.begun
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
            raise ValueError(f"{path} is a merge of shards, and no run that stopped: go on with new rows by --from {path}")
        for one in fields(Settings):
            was, now = getattr(job.settings, one.name), getattr(settings, one.name)
            if was != now:
                raise ValueError(f"{path} was made with {one.name}={was!r}, not {now!r}: resume with the same, or start anew")
        return job

    def _refuse_to_lose(self) -> None:
        """Refuse to put a new run in the place of one that can go on, or of something else."""
        path = self.places.checkpoint
        if path is None or not path.exists():
            return
        try:
            job = load_job(path)
        except CheckpointError as error:
            raise ValueError(
                f"{path} is there, and is no model of a run ({error}): name another file, or --overwrite it"
            ) from error
        if job.notes.get("ended", "end") != "end":
            raise ValueError(
                f"{path} holds a run that stopped behind {job.metrics.count:,} events: --resume goes on with it, --overwrite "
                "starts anew"
            )

    def _open_predictions(self) -> TextFile | ArrowTable | StandardOutput | None:
        path, job = self.places.predictions, self.job
        if path is None:
            return None
        table = open_table(path, columns_of(job.kind, labels=True), job.notes.get("predictions"))
        predictions = Predictions(job.kind, lambda: job.class_names, table)

        def on_rows(rows: Any, y: Vector, forecast: Forecast, loss: Vector) -> None:
            predictions.add(rows, forecast, y, loss)

        job.on_rows = on_rows
        return table

    def go(self, stopper: Stopper, watch: Watch | None = None) -> tuple[Ended, BadInput | None]:
        """To the end, to a bad row, or until stopped behind a batch; then the checkpoint is written."""
        ended, why, begun = "end", None, time.monotonic()
        spent, begun_with = self.job.seconds, self.job.metrics.count
        try:
            self.job.notes["ended"] = "interrupted"  # as far as a checkpoint on the way knows
            while (batch := stopper.next(self.stream)) is not None:
                self.job.take(batch, self.stream.position)
                if self.stream.live:  # whoever reads along must not wait for the next rows
                    self._flush()
                self.job.clock.add(np.array([[self.job.metrics.count, spent + time.monotonic() - begun]]))
                if self.job.metrics.count - self._saved_at >= self.places.every:
                    self._save()
                if watch is not None:
                    watch(self.job, self.stream)
            ended = "interrupted" if stopper.code else "end"
        except BadInput as error:
            if error.refused is None and self.job.metrics.count == begun_with:  # not this source's rows: nothing has happened
                raise
            ended, why = "bad row", error
        if ended == "end":
            self.job.finish()
        self.job.notes["ended"] = ended
        if self.job.state is not None:
            self._save()
        if self._table is not None:
            self._table.finish()
        return ended, why  # type: ignore[return-value]

    def _flush(self) -> None:
        self.job.rejected.flush()
        if self._table is not None:
            self._table.flush()

    def _save(self) -> None:
        """Files first: what a checkpoint says of them has to be on disk before it."""
        if self._table is not None:
            self.job.notes["predictions"] = self._table.place()
        if self.places.checkpoint is not None:
            save_job(self.places.checkpoint, self.job)
        self._saved_at = self.job.metrics.count

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()
        self.job.rejected.close()
        if self._table is not None:
            self._table.close()
