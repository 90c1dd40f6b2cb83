"""A job driven through a source: opened or resumed, checkpointed, stopped when told, and ended with everything written."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from onlinevi.data import Address, BadInput, Batch, Seen, Stream, open_stream
from onlinevi.learners import CheckpointError
from onlinevi.runs.begin import first_job, job_after
from onlinevi.runs.checkpoint import load_job, save_job
from onlinevi.runs.job import Job
from onlinevi.runs.late import Merge
from onlinevi.runs.places import Places
from onlinevi.runs.predictions import Layout, Predictions
from onlinevi.runs.rejected import Rejected
from onlinevi.runs.sent import PlaceOf, SentTable
from onlinevi.runs.settings import Settings
from onlinevi.runs.writers import ArrowTable, StandardOutput, TextFile, open_table

Ended: TypeAlias = Literal["end", "interrupted", "bad row"]
How: TypeAlias = Ended | Literal["running"]
"""How a run stands: ended, or going on."""
T = TypeVar("T")
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
            raise KeyboardInterrupt(128 + number)
        self.code = 128 + number
        if self._waiting:
            raise Stopped

    def next(self, stream: Stream) -> Batch | None:
        """The next step of a stream; None at the end, or when told to stop."""
        try:
            with self.waiting():
                return stream.step()
        except Stopped:
            return None

    def until_stopped(self, turns: Iterator[T]) -> Iterator[T]:
        """The same, up to where it is told to stop."""
        with suppress(Stopped):
            yield from turns

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Where a signal raises ``Stopped``, as one does that has come before."""
        try:
            self._waiting = True
            if self.code:
                raise Stopped
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
        if (settings.wait is None) != (places.labels is None):
            lacks = "a key by which they find their rows" if settings.wait is None else "a source of their own"
            raise ValueError(f"labels that come by key need {lacks}: give both, --labels and --key")
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
                    follow=places.follow,
                    **settings.reading,
                )
            )
            rejected.place_of = self.stream.place
            labels = self._open_labels(opened, settings, before, rejected)
            if before is None and after is not None:
                self.job = job_after(after, settings, rejected)
            else:
                self.job, self.columns = (
                    (before, ()) if before is not None else first_job(settings, self.stream, rejected, labels)
                )
            self.job.take_odd(rejected.odd)
            self.begun_with = self.job.metrics.count
            """Events that came before this call."""
            self.stream.numbers |= self.job.schema.numbers - {*places.asked.keep_columns}
            self.resumed = before is not None
            self._merge = None if labels is None else Merge(self.job, self.stream, labels, places.every)
            self._place_of: PlaceOf = self.stream.place
            if self._merge is not None:
                self._place_of = rejected.place_of = self._merge.rows.place
                rejected.beside.place_of = self._merge.labels.feed.place
            self._table = self._open_predictions()
            opened.pop_all()  # from here on __exit__ closes them
        self._saved_at, self._saved_when = max(self.job.seen, settings.first_row), time.monotonic()

    def _open_labels(self, opened: ExitStack, settings: Settings, before: Job | None, rejected: Rejected) -> Stream | None:
        """The source of labels, where they come by key; it goes on from where it was."""
        if self.places.labels is None:
            return None
        late = None if before is None else before.late
        stream = open_stream(
            self.places.labels,
            bad=rejected.beside,
            resume=None if late is None else late.position,
            follow=self.places.follow,
            **settings.reading | {"names": None, "wants": settings.wants_of_labels},
        )
        return opened.enter_context(stream)

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

    def _open_predictions(self) -> TextFile | ArrowTable | StandardOutput | SentTable | None:
        path, job = self.places.predictions, self.job
        if path is None:
            return None
        asked, wait, place = self.places.asked, job.settings.wait, job.notes.get("predictions")
        if wait is not None and wait.key[0] not in asked.keep_columns:  # by which predictions are told apart, as labels are
            asked = replace(asked, keep_columns=(wait.key[0], *asked.keep_columns))
        layout = Layout(job, asked, self.stream, labels=wait is None, beside=job.notes.get("beside"))
        job.notes["beside"] = dict(layout.beside)
        columns = self._columns(layout, place)
        table = SentTable(path, columns, self._place_of) if isinstance(path, Address) else open_table(path, columns, place)
        job.beside, job.explains = tuple(layout.beside), layout.asked.explain
        job.on_rows = Predictions(layout, table).add_learned
        return table

    def _columns(self, layout: Layout, place: Any) -> Mapping[str, str]:
        """The columns of the predictions: a file that goes on has those that it had, whatever classes have joined since."""
        job = self.job
        if place is not None:
            known: list[str] | None = job.notes.get("predicted")
            layout.as_begun(known or ())
            if known is not None and known != list(layout.columns):
                raise ValueError(
                    f"{self.places.predictions} has the columns {', '.join(known)}: resume with the same --keep-columns and "
                    "--explain, or name another file"
                )
        job.notes["predicted"] = list(layout.columns)
        return layout.columns

    def go(
        self, stopper: Stopper, watch: Watch | None = None, on_saved: Callable[[Job], object] | None = None
    ) -> tuple[Ended, BadInput | None]:
        """To the end, to a bad row, or until stopped behind a batch; then the checkpoint is written.

        ``watch`` is called behind each batch, ``on_saved`` behind each checkpoint on the way.
        """
        ended, why, begun_with = "end", None, self.job.metrics.count
        try:
            self.job.notes["ended"] = "interrupted"  # as far as a checkpoint on the way knows
            for _ in self._taken(stopper):
                if self._live:  # whoever reads along must not wait for the next rows
                    self._flush()
                if self._is_due() and self.job.state is not None:
                    self._save()
                    if on_saved is not None:
                        on_saved(self.job)
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

    def _taken(self, stopper: Stopper) -> Iterator[None]:
        """Batch by batch, what is learned."""
        if self._merge is None:
            batches = iter(partial(stopper.next, self.stream), None)
            return self.job.timed(turn for batch in batches for turn in self._parts(batch))
        return self.job.timed(stopper.until_stopped(self._merge.turns(stopper.waiting)))

    def _parts(self, batch: Batch) -> Iterator[Callable[[], None]]:
        """A batch in parts, of which none reaches beyond where a checkpoint is due."""
        start, position = 0, self.stream.position
        while (due := self._saved_at + self.places.every) < batch.end:
            stop = max(int(np.searchsorted(batch.rows, due)), start + 1)
            if stop >= len(batch):
                break
            yield partial(self.job.take, batch.slice(start, stop), position._replace(rows=int(batch.rows[stop])))
            start = stop
        yield partial(self.job.take, batch.slice(start, len(batch)), position)

    @property
    def _live(self) -> bool:
        """Whether what comes may pause."""
        return self.stream.live or (self._merge is not None and self._merge.labels.feed.stream.live)

    def _is_due(self) -> bool:
        """Whether there is to be a checkpoint."""
        rows, seconds = self.job.seen - self._saved_at, time.monotonic() - self._saved_when
        return rows >= self.places.every or (rows > 0 and seconds >= self.places.every_seconds)

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
        self._saved_at, self._saved_when = self.job.seen, time.monotonic()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        (self.stream if self._merge is None else self._merge).close()
        self.job.rejected.close()
        if self._table is not None:
            self._table.close()
