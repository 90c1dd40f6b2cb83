"""A model that is served: one thread writes, in groups that share a commit; whoever predicts reads what was last published."""

from __future__ import annotations

import copy
import queue
import sqlite3
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from onlinevi.adapters.serve.history import Answer, Asked, History, Status
from onlinevi.adapters.serve.journal import Connect, DamagedJournal, connect
from onlinevi.adapters.serve.lines import Lines, Noted, plain_rows
from onlinevi.adapters.serve.requests import Refused
from onlinevi.data import open_stream
from onlinevi.runs import Asked as Wanted
from onlinevi.runs import Collected, Job, Layout, absent_columns, predict_one, predict_stream

PURGE_EVERY = 5.0
"""Seconds between looks for rows that have waited too long."""
RECENT = 50
"""Events and refusals that a page shows."""
PACED = 5
"""Seconds over which events a second are told."""
GATHER, LONGEST = 0.002, 0.008
"""Seconds that a group is kept open for one more call, and in all, until there are as many as were open at once just before:
to write and learn a few events takes about as long as many."""
QUESTIONS = 100
"""Questions that may wait for the writer: each takes it some milliseconds."""
FULL = ("database or disk is full", "disk I/O error", "unable to open database file")


@dataclass(frozen=True)
class Limits:
    """What a model takes in at most. A row waits for its label ``wait_seconds`` at most, and at most ``waiting`` rows do."""

    group: int = 4096
    queued: int = 20_000
    waiting: int = 1_000_000
    wait_seconds: float = 30 * 24 * 3600.0
    snapshot_every: int = 10_000


class Overloaded(Exception):
    """More waits for the writer than there may."""


class DiskFull(Exception):
    """What was asked for could not be written; nothing of it was learned."""


class Unavailable(Exception):
    """The model cannot be served: its files are damaged, or it is closing."""


@dataclass
class Counts:
    """What has happened since the start, for Prometheus and the page."""

    statuses: Counter[str] = field(default_factory=Counter)
    predicted: int = 0
    """Calls to predict."""
    predicts_at_once: bool = False
    """Whether the last row by itself took next to no time."""
    purged: int = 0
    recent: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=RECENT))
    refused: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=RECENT))
    commits: int = 0
    commit_seconds: float = 0.0
    snapshot_at: float = 0.0
    predict_seconds: deque[float] = field(default_factory=lambda: deque(maxlen=1000))
    """Of the last calls."""
    learn_seconds: deque[float] = field(default_factory=lambda: deque(maxlen=1000))
    by_second: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=PACED + 1))
    """The last seconds in which events were learned, and how many."""

    def refuse(self, id: str | None, status: Status, place: str | None, reason: str) -> None:  # noqa: A002
        """Tell of an event that was not learned."""
        self.refused.append({"id": id, "at": time.time(), "status": status, "place": place, "reason": reason})

    @property
    def answered(self) -> int:
        """Events that were answered."""
        return sum(self.statuses.values())

    @property
    def events_a_second(self) -> float:
        """Over the last seconds that are full."""
        now = int(time.monotonic())
        return sum(count for second, count in tuple(self.by_second) if now - PACED <= second < now) / PACED

    def learned(self, count: int) -> None:
        """Count events that were learned just now."""
        now = int(time.monotonic())
        before = self.by_second.pop()[1] if self.by_second and self.by_second[-1][0] == now else 0
        self.by_second.append((now, before + count))


@dataclass(frozen=True)
class Published:
    """What is known behind an event. Whoever reads it may use the job's state, schema and settings, which are values; its
    metrics go on with the writer, and stand here as they were."""

    number: int
    job: Job | None
    """None before the first event."""
    count: int = 0
    """Of the events those that count: a row of weight 0 does not."""
    average_loss: float | None = None
    hit_rate: float | None = None

    @staticmethod
    def of(history: History) -> Published:
        """What a history knows now."""
        job = history.job
        if job is None or not job.metrics.count:
            return Published(history.number, copy.copy(job))
        metrics = job.metrics
        return Published(history.number, copy.copy(job), metrics.count, metrics.average_loss, metrics.hit_rate)


@dataclass
class _Order:
    """What is asked of the writer: events to learn, rows to keep, or anything else, which stands at the end of its group."""

    rows: int = 0
    asked: Sequence[Asked] = ()
    kept: Sequence[tuple[str, str]] = ()
    work: Callable[[History], Any] | None = None
    future: Future[Any] = field(default_factory=Future)


class Keeper:
    """A model in service. Every call may come from any thread."""

    def __init__(self, folder: Path, limits: Limits | None = None, connection: Connect = connect) -> None:
        self.folder, self.name, self.limits = folder, folder.name, limits or Limits()
        self.counts = Counts()
        self.failure: str | None = None
        """Why it cannot be served."""
        self.damaged: dict[str, str] = {}
        """Snapshots that could not be read at the start, and why."""
        self.published = Published(0, None)
        self.target = ""
        self._orders: queue.SimpleQueue[_Order | None] = queue.SimpleQueue()
        self._queued, self._questions, self._lock, self._closed = 0, 0, threading.Lock(), False
        self._open, self._most_open = 0, 0
        """Calls with rows that are not answered, and the most of them since the last group was closed."""
        ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(connection, ready), name=f"writer of {self.name}", daemon=True)
        self._thread.start()
        ready.result()

    # --- what is asked of it

    @property
    def queued(self) -> int:
        """Rows that wait to be written."""
        return self._queued

    def check_room(self, rows: int) -> None:
        """Refuse so many rows where there is no room for them; however many they are, there is where nothing waits."""
        if rows and self._queued + rows > max(self.limits.queued, rows):
            raise Overloaded(f"{self._queued:,} rows wait to be written: try again in a moment")

    def learn(self, asked: Sequence[Asked]) -> Future[list[Answer]]:
        """Learn events in order; the answer comes when they are on disk and learned."""
        return self._order(_Order(len(asked), asked=asked))

    def wait(self, rows: Sequence[tuple[str, str]]) -> Future[list[Answer]]:
        """Keep rows under their ids until labels come; the answer comes when they are on disk."""
        return self._order(_Order(len(rows), kept=rows))

    def ask(self, work: Callable[[History], Any]) -> Future[Any]:
        """Do something with the history between two groups."""
        return self._order(_Order(work=work))

    def predict(
        self, rows: Sequence[Mapping[str, Any]], explain: bool = False
    ) -> tuple[int, list[dict[str, Any]], dict[int, tuple[str, str | None]]]:
        """Behind which event, what is said of each row, in order, and of rows that cannot be used why, with the column.

        ``explain`` adds what each column adds to the score.
        """
        published = self.published
        if published.job is None:
            raise Refused(409, f"model {self.name!r} has learned nothing yet: send events to learn first")
        layout, noted = Layout(published.job, Wanted(explain=explain), labels=False), Noted()
        said = Collected(layout.columns)
        if len(rows) > 1 or not predict_one(published.job, rows[0], said, layout):
            with open_stream(Lines(rows), bad=noted, **published.job.settings.reading) as stream:
                absent_columns(published.job, stream)
                predict_stream(published.job, stream, said, noted, layout)
        refused = {row: (one.reason, one.column) for row, one in noted.reasons_by_row.items()}
        found = plain_rows(said)
        return published.number, [found.get(row, {}) for row in range(len(rows))], refused

    def close(self) -> None:
        """Write a snapshot, and stop behind what was asked for."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._orders.put(None)
        self._thread.join()

    # --- the one thread that writes

    def _order(self, order: _Order) -> Future[Any]:
        with self._lock:
            if self.failure is not None or self._closed:
                raise Unavailable(self.failure or f"model {self.name!r} is closing")
            self.check_room(order.rows)
            if order.work is not None and self._questions >= QUESTIONS:
                raise Overloaded(f"{self._questions} questions wait for the model: try again in a moment")
            self._queued += order.rows
            self._open += order.rows > 0
            self._most_open = max(self._most_open, self._open)
            self._questions += order.work is not None
            self._orders.put(order)  # in the lock: nothing comes behind the end
        return order.future

    def _run(self, connection: Connect, ready: Future[None]) -> None:
        try:
            history = History(self.folder, every=self.limits.snapshot_every, connection=connection)
            self.target, self.damaged = history.settings.target, history.damaged
            self._publish(history)
        except Exception as error:  # whatever it is: the other models are to be served
            self.failure = str(error) or repr(error)
            return
        finally:
            ready.set_result(None)
        purged_at, ended = time.monotonic(), False
        while not ended:
            group, ended = self._next_group()
            if group:
                self._serve(history, group)
            if time.monotonic() - purged_at > PURGE_EVERY:
                self._purge(history)
                purged_at = time.monotonic()
        with suppress(Exception):  # the journal has it all
            if self.failure is None and history.number not in history.snapshots:
                history.snapshot()
        history.close()

    def _next_group(self) -> tuple[list[_Order], bool]:
        """Orders that share a commit: those that are there, up to the limit; or one that stands for itself."""
        try:
            order = self._orders.get(timeout=PURGE_EVERY)
        except queue.Empty:
            return [], False
        group: list[_Order] = []
        rows, end = 0, time.monotonic() + LONGEST
        expected, self._most_open = self._most_open, self._open
        while order is not None:
            # From here on nobody can call it off; whoever has gone meanwhile is not told, and nothing is learned of it.
            if not order.future.set_running_or_notify_cancel():
                self._done([order])
            elif self.failure is not None:
                self._done([order])
                order.future.set_exception(Unavailable(self.failure))
            else:
                group.append(order)
                rows += order.rows
            if group and (group[-1].work is not None or rows >= self.limits.group):
                return group, False
            try:
                stays_open = group and len(group) < expected and time.monotonic() < end
                order = self._orders.get(timeout=GATHER) if stays_open else self._orders.get_nowait()
            except queue.Empty:
                return group, False
        return group, True

    def _serve(self, history: History, group: Sequence[_Order]) -> None:
        """Keep the rows of a group, learn its events, then do the work that stands at its end."""
        self._carry_out(history, [order for order in group if order.kept], self._keep)
        self._carry_out(history, [order for order in group if order.asked], self._learn)
        self._carry_out(history, [order for order in group if order.work is not None], _work)

    def _keep(self, history: History, orders: Sequence[_Order]) -> list[Sequence[Answer]]:
        return _by_order(orders, history.wait([one for order in orders for one in order.kept]))

    def _learn(self, history: History, orders: Sequence[_Order]) -> list[Sequence[Answer]]:
        asked = [one for order in orders for one in order.asked]
        began = time.monotonic()
        answers = history.take(asked)
        self._count(asked, answers, time.monotonic() - began)
        return _by_order(orders, answers)

    def _carry_out(
        self, history: History, orders: Sequence[_Order], work: Callable[[History, Sequence[_Order]], Sequence[Any]]
    ) -> None:
        """Do what orders ask for, publish what is known then, and answer. Of several of which one cannot be done, each is done
        by itself: nobody is refused for what another one sent."""
        if not orders:
            return
        try:
            results = work(history, orders)
            self._publish(history)
        except BaseException as error:
            told = self._failed(history, error)
            if len(orders) > 1 and not isinstance(told, DiskFull | Unavailable):
                for order in orders:
                    self._carry_out(history, [order], work)
                return
            self._done(orders)
            for order in orders:
                order.future.set_exception(told)
            return
        self._done(orders)
        for order, result in zip(orders, results, strict=True):
            order.future.set_result(result)

    def _done(self, orders: Sequence[_Order]) -> None:
        with self._lock:
            self._queued -= sum(order.rows for order in orders)
            self._open -= sum(order.rows > 0 for order in orders)
            self._questions -= sum(order.work is not None for order in orders)

    def _failed(self, history: History, error: BaseException) -> BaseException:
        """What to tell of an error; where memory may be ahead of what is on disk, or behind it, begin from disk."""
        if isinstance(error, DamagedJournal):
            self.failure = str(error)
        elif not history.whole:
            try:
                history.recover()
                self._publish(history)
            except BaseException as worse:
                self.failure = f"model {self.name!r} cannot go on: {error!r}, then {worse!r}"
        if self.failure is not None:
            return Unavailable(self.failure)
        if isinstance(error, OSError) or (isinstance(error, sqlite3.Error) and any(why in str(error) for why in FULL)):
            return DiskFull(f"nothing of it was learned, as it could not be written ({error}): make room on the disk")
        return error

    def _purge(self, history: History) -> None:
        try:
            self.counts.purged += history.purge(self.limits.waiting, self.limits.wait_seconds)
        except Exception as error:  # of a full disk: the next time
            self._failed(history, error)

    def _publish(self, history: History) -> None:
        self.published = Published.of(history)
        self.counts.snapshot_at = history.snapshot_at

    def _count(self, asked: Sequence[Asked], answers: Sequence[Answer], seconds: float) -> None:
        counts, now = self.counts, time.time()
        counts.statuses.update(answer.status for answer in answers)
        counts.learned(sum(answer.status == "learned" for answer in answers))
        counts.commits += 1
        counts.commit_seconds += seconds
        for one, answer in zip(asked[-RECENT:], answers[-RECENT:], strict=True):
            if answer.status == "learned":
                counts.recent.append({"number": answer.number, "id": one.id, "at": now, **(answer.said or {})})
            elif answer.status != "known":
                counts.refuse(one.id, answer.status, answer.column, answer.reason)


def _work(history: History, orders: Sequence[_Order]) -> list[Any]:
    return [order.work(history) for order in orders if order.work is not None]


def _by_order(orders: Sequence[_Order], answers: Sequence[Answer]) -> list[Sequence[Answer]]:
    """The answers to each."""
    ends = [0, *accumulate(order.rows for order in orders)]
    return [answers[start:stop] for start, stop in pairwise(ends)]
