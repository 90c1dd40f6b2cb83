"""A stream whose records have times and keys, batch by batch; one that may pause is read ahead, so that none waits for it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinevi.data import BadInput, Batch, Position, Stream, arrow, is_usable, may_pause, seconds, texts
from onlinevi.engine import Vector, did_you_mean

AHEAD = 4
"""Batches that are read ahead of one that is used."""


class Timed(NamedTuple):
    """Records, and when and under which key each came; none, where those before the position were all refused."""

    batch: Batch
    position: Position
    """Of the stream behind them."""
    times: Vector
    """The latest time of the stream so far: it does not go back."""
    back: NDArray[np.bool_]
    """Which of them happened before one that came before them."""
    keys: list[str | None]
    refused: dict[int, tuple[str, str]]
    """Those without a time or a key, by their places: the column, and what is wrong with it."""

    def part(self, start: int, stop: int) -> Timed:
        """Some of them; the position is the same."""
        own = slice(start, stop)
        refused = {place - start: why for place, why in self.refused.items() if start <= place < stop}
        batch = self.batch.slice(start, stop)
        return Timed(batch, self.position, self.times[own], self.back[own], self.keys[own], refused)


class Feed:
    """The records of a stream in their order. ``key`` and ``time`` are columns; without ``time`` the source has to say it."""

    def __init__(self, stream: Stream, key: str, time: str | None, latest: float) -> None:
        self.stream, self.ended = stream, False
        self._key, self._time, self._latest = key, time, latest
        self._head: Timed | None = None
        self._queue: queue.Queue[Timed | BaseException | None] = queue.Queue(AHEAD)
        self._thread: threading.Thread | None = None
        self._begun = self._closed = False
        self._met = set[str]()
        """Columns that are there, if not in each batch."""
        self._goes_on = latest > -np.inf

    def head(self, patience: float = 0.0) -> Timed | None:
        """The next records; None at the end, and where a pipe or a broker has none and brings none for so many seconds."""
        if not self._begun:
            self._begin()
        if self._head is not None or self.ended:
            return self._head
        if self._thread is None:
            batch = self.stream.step()
            self._head, self.ended = (None, True) if batch is None else (self._timed(batch), False)
            return self._head
        try:
            found = self._queue.get(timeout=patience) if patience > 0.0 else self._queue.get_nowait()
        except queue.Empty:
            return None
        if isinstance(found, BaseException):
            raise found
        self._head, self.ended = found, found is None
        return found

    def place(self, row: int) -> Mapping[str, Any] | None:
        """What the source calls one of the next records, whatever has been read behind them."""
        mark = None if self._head is None else self._head.position.mark
        return None if mark is None else mark.place(row)

    def drop(self, count: int) -> None:
        """The first so many of the next records are used."""
        assert self._head is not None
        self._head = self._head.part(count, len(self._head.keys)) if count < len(self._head.keys) else None

    def close(self) -> None:
        """Read no further. A thread that waits for a broker ends soon; one that waits for a pipe ends with the process."""
        self._closed = True
        self.stream.leave()
        while self._thread is not None and not self._queue.empty():
            self._queue.get_nowait()
        if self._thread is None or not self._thread.is_alive():
            self.stream.close()

    def _begin(self) -> None:
        self._begun = True
        if self.stream.live or may_pause(self.stream.source):
            self._thread = threading.Thread(target=self._read, name=f"reads {self.stream.source}", daemon=True)
            self._thread.start()

    def _read(self) -> None:
        passed = self.stream.position.rows
        try:
            for batch in self.stream.steps():
                if batch.end > passed:  # else it only says that nothing comes
                    self._queue.put(self._timed(batch))
                    passed = batch.end
                if self._closed:
                    break
            found: BaseException | None = None
        except BaseException as error:  # it is raised where the records before it are used
            found = error
        if self._closed:
            self.stream.close()
        else:
            self._queue.put(found)

    def _timed(self, batch: Batch) -> Timed:
        """The records with their times and keys."""
        if not len(batch):
            return Timed(batch, self.stream.position, np.empty(0), np.empty(0, dtype=bool), [], {})
        refused: dict[int, tuple[str, str]] = {}
        times = self._times(batch, refused)
        so_far = np.fmax.accumulate(np.concatenate([[self._latest], times]))
        keys = self._keys(batch, refused)
        back = times < so_far[:-1]
        self._latest = float(so_far[-1])
        return Timed(batch, self.stream.position, so_far[1:], back, keys, refused)

    def _times(self, batch: Batch, refused: dict[int, tuple[str, str]]) -> Vector:
        if self._time is None:
            if batch.times is None:
                raise ValueError(
                    f"{self.stream.source} does not say when its rows happened: name the column that does, --time COL"
                )
            return batch.times
        times, bad = seconds(self.column(batch, self._time))
        for place in np.flatnonzero(bad | ~np.isfinite(times)).tolist():
            refused[place] = self._time, "needs a time" if bad[place] else "the time is missing"
        return np.where(bad | ~np.isfinite(times), np.nan, times)

    def _keys(self, batch: Batch, refused: dict[int, tuple[str, str]]) -> list[str | None]:
        keys: list[str | None] = texts(self.column(batch, self._key)).to_pylist()
        for place, key in enumerate(keys):
            if not key:
                refused.setdefault(place, (self._key, "the key is missing"))
        return keys

    def column(self, batch: Batch, name: str) -> Any:
        """A column of a batch; nothing but missing values where others have it."""
        self._met |= {name} & batch.columns.keys()
        if name not in self._met and not self._goes_on:
            meant = did_you_mean(name, batch.columns)
            raise ValueError(f"{self.stream.source}: no column is called {name!r}{meant}: it has {', '.join(batch.columns)}")
        values = batch.columns.get(name, arrow().nulls(len(batch), arrow().string()))
        if not is_usable(values):
            raise BadInput(f"{self.stream.source}: column {name!r} holds {values.type}: needs numbers, text or dates")
        return values
