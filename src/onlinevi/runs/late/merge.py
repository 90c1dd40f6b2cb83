"""Rows and their labels, each from a stream, in turns by the order of their times."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from onlinevi.data import Stream
from onlinevi.runs.late.feed import Feed, Timed
from onlinevi.runs.late.labels import PATIENCE, Labels
from onlinevi.runs.late.late import Arrivals
from onlinevi.runs.late.wait import label_of

if TYPE_CHECKING:
    from onlinevi.runs.job import Job

GLANCE = 0.05
"""Seconds from one look at two sources that pause to the next."""
Turn: TypeAlias = Callable[[], None]


def nothing() -> None:
    """The turn of two sources that pause, behind which others do what is due."""


class Merge:
    """What a job is to do next, so that any two splits of its sources into batches give the same bits.

    Of files that is settled by the times alone. Where one of two sources that may pause has brought nothing for a second, the
    other goes on without it: what comes then of an earlier time is taken as coming now. A turn has at most so many rows or
    labels, so that checkpoints come where they are due.
    """

    def __init__(self, job: Job, rows: Stream, labels: Stream, most: int = sys.maxsize) -> None:
        wait, late, task = job.settings.wait, job.late, job.schema.task
        assert wait is not None
        assert late is not None
        assert task is not None
        self._job, self._late, self._most = job, late, most
        self.rows = Feed(rows, wait.key_of(labels=False), wait.time_of(labels=False), late.latest_row)
        of_labels = Feed(labels, wait.key_of(labels=True), wait.time_of(labels=True), late.latest_label)
        self.labels = Labels(of_labels, job.settings.target, task, label_of(wait, task, "came"))

    def turns(self, waiting: Callable[[], Any]) -> Iterator[Turn]:
        """One after the other, each to be done before the next is asked for, which may have to be ``waiting``."""
        while True:
            with waiting():
                rows, label = self._next()
            if self.labels.passed is not None:
                yield partial(self._late.pass_over, self._job, self.labels)
            elif rows is not None and not rows.keys:
                yield partial(self._job.take, rows.batch, rows.position)
                self.rows.drop(0)
            elif rows is not None and (label is None or rows.times[0] <= label):
                stop, position = len(rows.keys), rows.position
                if stop > self._most:
                    stop, position = self._most, position._replace(rows=int(rows.batch.rows[self._most]))
                part = rows.part(0, stop)
                yield partial(self._job.take, part.batch, position, Arrivals(part, self.labels))
                self.rows.drop(stop)
            elif label is not None:
                # At most a batch is a turn, so that none lasts for long.
                last = math.nextafter(self.labels.latest(self._most), math.inf)
                yield partial(self._job.hear, self.labels, last if rows is None else min(float(rows.times[0]), last))
            elif self.rows.ended and self.labels.feed.ended:
                return
            else:
                yield nothing

    def _next(self) -> tuple[Timed | None, float | None]:
        """The next rows, and when the next label came; None of one that has ended, or pauses while the other goes on, and of
        both that pause."""
        begun, since = time.monotonic(), None
        while True:
            rows, label = self.rows.head(), self.labels.earliest()
            if self.labels.passed is not None:
                return rows, label
            lacking = [
                feed for feed, head in ((self.rows, rows), (self.labels.feed, label)) if head is None and not feed.ended
            ]
            if not lacking:
                return rows, label
            if rows is not None or label is not None:
                since = since or time.monotonic()
                if time.monotonic() - since >= PATIENCE:
                    return rows, label
            elif time.monotonic() - begun >= PATIENCE:
                return rows, label
            lacking[0].head(GLANCE)

    def close(self) -> None:
        """Let go of both."""
        self.rows.close()
        self.labels.feed.close()
