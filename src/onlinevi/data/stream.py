"""A source as a stream of batches: its rows numbered, bad ones reported, and never more in memory than a few blocks.

>>> import tempfile, pathlib
>>> from onlinevi.data import open_stream
>>> path = pathlib.Path(tempfile.mkdtemp()) / "prices.csv"
>>> _ = path.write_text("size,price\\n50,100\\n80,150\\n")
>>> with open_stream(path) as stream:
...     [(batch.rows.tolist(), batch.columns["price"].to_pylist()) for batch in stream], stream.position.rows
([([0, 1], ['100', '150'])], 2)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinevi.data.brokers import Follow, broker, is_address
from onlinevi.data.formats import Format
from onlinevi.data.sources import (
    AnySource,
    BadInput,
    Files,
    Piece,
    Policy,
    Position,
    Reader,
    ReadOptions,
    Source,
    Stop,
    Trail,
)
from onlinevi.data.stored import Stored

FIRST_LOOK = 1000
"""So many rows are looked at before the first is learned from, to tell what the columns hold."""
HOPELESS = 100_000
"""Where so many rows were refused and none was not, there is no use in looking for the first."""


@dataclass(frozen=True)
class Batch:
    """Rows that follow each other: pyarrow arrays by name, all of the length of ``rows``."""

    source: str
    """The file, for messages."""
    rows: NDArray[np.int64]
    """Each row's number in the stream, from 0; a refused row leaves a gap."""
    columns: Mapping[str, Any]
    matrix: Any = None
    """Of a sparse file: a CSR matrix, one column an index."""
    times: NDArray[np.float64] | None = None
    """When each row happened, in seconds since 1970, where the source says so beside its columns."""
    passed: int = 0
    """Of a batch without rows: the number of the row behind those that were refused, if any were."""

    @property
    def end(self) -> int:
        """The number of the row behind it."""
        return int(self.rows[-1]) + 1 if len(self.rows) else self.passed

    def __len__(self) -> int:
        return len(self.rows)

    def slice(self, start: int, stop: int) -> Batch:
        """The rows from start to stop, without a copy."""
        columns = {name: values.slice(start, stop - start) for name, values in self.columns.items()}
        matrix, times = (None if part is None else part[start:stop] for part in (self.matrix, self.times))
        return Batch(self.source, self.rows[start:stop], columns, matrix, times)


@dataclass(frozen=True)
class Reading:
    """Which rows of a source are delivered, and how: settings of ``open_stream``."""

    batch_rows: int
    bad: Policy
    skip_rows: int
    end_row: int | None

    def __post_init__(self) -> None:
        if self.batch_rows < 1:
            raise ValueError(f"batch_rows={self.batch_rows}: needs at least one")
        if self.skip_rows < 0:
            raise ValueError(f"skip_rows={self.skip_rows}: needs a number from 0")
        if self.end_row is not None and self.end_row < 0:
            raise ValueError(f"end_row={self.end_row}: needs a number from 0")


class Trails:
    """Where the rows lie that were read last, by their numbers in the stream, and what the source goes on from behind them."""

    def __init__(self, resume: Position | None) -> None:
        self._trails: deque[tuple[int, int, Trail]] = deque()
        """The number of the first row of each piece, how many there are, and where they lie."""
        self._before = None if resume is None else resume.place

    def __bool__(self) -> bool:
        """Whether there is anything to go on from: not where a source is read from its beginning again."""
        return bool(self._trails) or self._before is not None

    def copy(self) -> Trails:
        """The same as they are now, for who asks later."""
        same = Trails(None)
        same._trails, same._before = self._trails.copy(), self._before
        return same

    def add(self, first: int, piece: Piece) -> None:
        """A piece whose first row has this number."""
        if piece.trail is not None:
            self._trails.append((first, piece.count, piece.trail))

    def forget(self, rows: int) -> None:
        """Nobody will ask any more about the rows before this one."""
        while len(self._trails) > 1 and self._trails[1][0] <= rows:
            self._trails.popleft()

    def behind(self, rows: int) -> Any:
        """What the source goes on from behind so many rows."""
        if not self._trails:
            return self._before
        last = (each for each in reversed(self._trails) if each[0] < rows)
        first, count, trail = next(last, self._trails[0])
        return trail.behind(min(max(rows - first, 0), count))

    def place(self, row: int) -> Mapping[str, Any] | None:
        """What the source calls a row; None where it has no name for it, or it was too long ago."""
        places = (trail.place(row - first) for first, count, trail in self._trails if first <= row < first + count)
        return next(places, None)


class Stream:
    """Batches in order, once. Close it, or use it in a ``with``; after Ctrl-C ``position`` says what was delivered."""

    def __init__(self, name: str, reader: Reader, reading: Reading, numbers: set[str], trails: Trails) -> None:
        self.source = name
        self.numbers = numbers
        """Columns of CSV to be read as floats from the next block on, where all their fields are numbers."""
        self._reader, self._reading, self._trails = reader, reading, trails
        self._rows = reading.skip_rows
        self._waiting: deque[Batch] = deque()
        self._failure: Exception | None = None
        """What ended the stream behind the rows that wait."""
        self._batches = self._read()

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        return next(batch for batch in self.steps() if len(batch))

    def steps(self) -> Iterator[Batch]:
        """The batches, and some without rows: behind refused ones that no other has followed yet, and where a broker pauses.
        An endless stream may bring nothing else for long."""
        while (batch := self.step()) is not None:
            yield batch

    def step(self) -> Batch | None:
        """The next of them; None at the end."""
        if self._failure is not None and not self._waiting:
            raise self._failure
        batch = self._waiting.popleft() if self._waiting else next(self._batches, None)
        if batch is None:
            return None
        self._trails.forget(self._rows)
        self._rows = batch.end
        return batch

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the source; standard input stays open."""
        self._batches.close()
        self._reader.close()

    def leave(self) -> None:
        """Ask another thread that waits for the next batch to end; of a pipe it waits on."""
        self._reader.leave()

    @property
    def live(self) -> bool:
        """Whether rows come from a pipe or a broker, which may pause."""
        return self._reader.live

    @property
    def position(self) -> Position:
        """How far the stream has been read, to resume from and for the record."""
        return Position(self.source, self._rows, *self._reader.sums, self._trails.copy() if self._trails else None)

    def place(self, row: int) -> Mapping[str, Any] | None:
        """What the source calls a row that was read lately, such as a topic, its partition and an offset; None of files."""
        return self._trails.place(row)

    @property
    def delivered(self) -> float:
        """About how many of the source's bytes the delivered rows took up; more may have been read, which is ahead."""
        return self._reader.delivered(self._rows)

    def peek(self, rows: int = FIRST_LOOK) -> tuple[Batch, ...]:
        """The first rows still to come, which stay to come. A pipe is waited for until it has brought so many, or ends: what
        is seen does not depend on when it comes."""
        while sum(map(len, self._waiting)) < rows:
            try:
                batch = next(self._batches, None)
            except Exception as failure:
                if not self._waiting:
                    raise
                self._failure, batch = failure, None
            if batch is None:
                break
            if self._waiting and not len(self._waiting[-1]):
                self._waiting.pop()  # which says no more than the next one does
            self._waiting.append(batch)
            if batch.end - self._rows >= HOPELESS and not any(map(len, self._waiting)):
                raise BadInput(
                    f"{self.source}: none of its first {batch.end - self._rows:,} rows can be used; --bad-rows stop says why"
                )
        seen, left = [], rows
        for batch in self._waiting:
            seen.append(batch.slice(0, min(left, len(batch))))
            left -= len(seen[-1])
        return tuple(batch for batch in seen if len(batch))

    def _read(self) -> Generator[Batch]:
        first, end = self._reader.first_row, self._reading.end_row
        try:
            for piece in self._reader:
                self._trails.add(first, piece)
                yield from self._numbered(piece, first)
                first += piece.count
                if end is not None and first >= end:
                    return
        finally:
            self._reader.close()

    def _numbered(self, piece: Piece, first: int) -> Iterator[Batch]:
        """The piece's rows that are wanted, in batches; each bad row is reported before the batch it would be in."""
        rows, reading = first + piece.good, self._reading
        batch = Batch(piece.source or self.source, rows, piece.columns, piece.matrix, piece.times)
        end = first + piece.count if reading.end_row is None else reading.end_row
        trail = piece.trail
        moved = (
            bad._replace(row=first + bad.row, place=None if trail is None else trail.place(bad.row)) for bad in piece.refused
        )
        refused = deque(bad for bad in moved if reading.skip_rows <= bad.row < end)
        last = int(np.searchsorted(rows, end))
        for start in range(int(np.searchsorted(rows, reading.skip_rows)), last, reading.batch_rows):
            stop = min(start + reading.batch_rows, last)
            while refused and refused[0].row < rows[stop - 1]:
                bad = refused.popleft()
                try:
                    reading.bad(bad)
                except Exception:
                    before = int(np.searchsorted(rows, bad.row))
                    if before > start:
                        yield batch.slice(start, before)
                    raise
            yield batch.slice(start, stop)
        for bad in refused:
            reading.bad(bad)
        if refused or not piece.count:
            behind = refused[-1].row + 1 if refused else max(first, reading.skip_rows)
            yield replace(batch.slice(0, 0), passed=behind)


def open_stream(
    source: AnySource,
    *,
    format: str | Format | None = None,  # noqa: A002
    batch_rows: int = 8192,
    bad: Policy | None = None,
    skip_rows: int = 0,
    end_row: int | None = None,
    resume: Position | None = None,
    delimiter: str | None = None,
    names: Sequence[str] | None = None,
    encoding: str | None = None,
    wants: Callable[[str], bool] | None = None,
    follow: Follow | None = None,
) -> Stream:
    """Open a file, a folder of parts, ``-`` for standard input, or another source, as batches of at most ``batch_rows`` rows.

    ``format`` is csv, ndjson, parquet, arrow or libsvm, or a format of your own; None asks the source, or finds out. ``bad``
    says what becomes of rows that cannot be read: ``Stop()`` (the default), ``Skip()``, ``Collect(path)``, or any function.
    ``skip_rows`` leaves out the first rows, ``end_row`` the row of this number, counted from 0, and all behind it; ``resume``
    skips up to a position of an earlier stream, and refuses a source whose bytes up to there have changed. ``delimiter``,
    ``names`` and ``encoding`` are for CSV: names for a file without a header, none of them for ``column_0``, ``column_1`` …,
    and the encoding of one that is not UTF-8. ``wants`` says which columns will be used: of others a list is no bad row.
    ``follow`` says how a broker is read, whose address stands in the place of a file's name.
    """
    if resume is not None and skip_rows:
        raise ValueError(f"skip_rows={skip_rows} beside resume: a position brings its own number of rows; give one of them")
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f"delimiter={delimiter!r}: needs one character, no quote and no line end")
    reading = Reading(batch_rows, bad or Stop(), skip_rows if resume is None else resume.rows, end_row)
    numbers = set[str]()
    options = ReadOptions(numbers, delimiter, names, encoding, batch_rows, wants or (lambda name: True))
    opened = as_source(source, format, follow or Follow())
    return Stream(opened.name, opened.open(options, resume), reading, numbers, Trails(resume))


def as_source(given: AnySource, format: str | Format | None, follow: Follow) -> Source:  # noqa: A002
    """A file by its name, a broker by its address, bytes, or rows: as a source of rows."""
    if is_address(given):
        return broker(str(given), follow)
    if isinstance(given, str | Path):
        return Stored(Files(given), format)
    return Stored(given, format) if hasattr(given, "parts") else given  # type: ignore[arg-type]
