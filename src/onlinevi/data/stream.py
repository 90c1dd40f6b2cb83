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
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinevi.data.formats import Format, Piece, ReadOptions, format_of
from onlinevi.data.sources import BadInput, Content, Digest, Files, Policy, Position, Source, Stop

FIRST_LOOK = 1000
"""So many rows are looked at before the first is learned from, to tell what the columns hold."""


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

    def __len__(self) -> int:
        return len(self.rows)

    def slice(self, start: int, stop: int) -> Batch:
        """The rows from start to stop, without a copy."""
        columns = {name: values.slice(start, stop - start) for name, values in self.columns.items()}
        return Batch(self.source, self.rows[start:stop], columns, None if self.matrix is None else self.matrix[start:stop])


@dataclass(frozen=True)
class Reading:
    """How a source is read: the settings of ``open_stream``."""

    format: str | Format | None
    batch_rows: int
    bad: Policy
    skip_rows: int
    end_row: int | None
    delimiter: str | None
    names: Sequence[str] | None
    encoding: str | None
    wants: Callable[[str], bool]

    def __post_init__(self) -> None:
        if self.batch_rows < 1:
            raise ValueError(f"batch_rows={self.batch_rows}: needs at least one")
        if self.skip_rows < 0:
            raise ValueError(f"skip_rows={self.skip_rows}: needs a number from 0")
        if self.end_row is not None and self.end_row < 0:
            raise ValueError(f"end_row={self.end_row}: needs a number from 0")
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise ValueError(f"delimiter={self.delimiter!r}: needs one character, no quote and no line end")


class Stream:
    """Batches in order, once. Close it, or use it in a ``with``; after Ctrl-C ``position`` says what was delivered."""

    def __init__(self, source: Source, reading: Reading, digest: Digest) -> None:
        self.source = source.name
        self.numbers: set[str] = set()
        """Columns of CSV to be read as floats from the next block on, where all their fields are numbers."""
        self.live = False
        """Whether rows come from a pipe, which may pause."""
        self._source, self._reading, self._digest = source, reading, digest
        self._rows = reading.skip_rows
        self._waiting: deque[Batch] = deque()
        self._failure: Exception | None = None
        """What ended the stream behind the rows that wait."""
        self._batches = self._read()

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        if self._failure is not None and not self._waiting:
            raise self._failure
        batch = self._waiting.popleft() if self._waiting else next(self._batches)
        self._rows = int(batch.rows[-1]) + 1
        return batch

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; standard input stays open."""
        self._batches.close()

    @property
    def position(self) -> Position:
        """How far the stream has been read, to resume from and for the record."""
        return Position(self.source, self._rows, self._digest.bytes, self._digest.sha256, self._digest.prefixes)

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
            self._waiting.append(batch)
        seen, left = [], rows
        for batch in self._waiting:
            seen.append(batch.slice(0, min(left, len(batch))))
            left -= len(seen[-1])
        return tuple(batch for batch in seen if len(batch))

    def _read(self) -> Generator[Batch]:
        first, columns, reading = 0, set[str](), self._reading
        with closing(self._source.parts()) as parts:
            for part in parts:
                self.live = part.live
                content = Content(part, self._digest)
                part_format = format_of(content, reading.format)
                options = ReadOptions(
                    self.numbers, reading.delimiter, reading.names, reading.encoding, reading.batch_rows, reading.wants
                )
                for piece in part_format.read(content, options):
                    if part_format.same_columns and piece.columns:
                        columns = columns or set(piece.columns)
                        _check_columns(part.name, columns, set(piece.columns))
                    yield from self._numbered(part.name, piece, first)
                    first += piece.count
                    if reading.end_row is not None and first >= reading.end_row:
                        return
        self._digest.finish()

    def _numbered(self, name: str, piece: Piece, first: int) -> Iterator[Batch]:
        """The piece's rows that are wanted, in batches; each bad row is reported before the batch it would be in."""
        rows, reading = first + piece.good, self._reading
        batch = Batch(name, rows, piece.columns, piece.matrix)
        end = first + piece.count if reading.end_row is None else reading.end_row
        moved = (bad._replace(row=first + bad.row) for bad in piece.refused)
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


def _check_columns(name: str, wanted: set[str], present: set[str]) -> None:
    if present != wanted:
        lacks, more = sorted(wanted - present), sorted(present - wanted)
        raise BadInput(f"{name}: its columns are not those of the parts before it: it lacks {lacks}, and has {more} more")


def open_stream(
    source: str | Path | Source,
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
) -> Stream:
    """Open a file, a folder of parts, ``-`` for standard input, or another source, as batches of at most ``batch_rows`` rows.

    ``format`` is csv, ndjson, parquet, arrow or libsvm, or a format of your own; None finds out. ``bad`` says what becomes of
    rows that cannot be read: ``Stop()`` (the default), ``Skip()``, ``Collect(path)``, or any function. ``skip_rows`` leaves
    out the first rows, ``end_row`` the row of this number, counted from 0, and all behind it; ``resume`` skips up to a
    position of an earlier stream, and refuses a source whose bytes up to there have changed. ``delimiter``, ``names``
    and ``encoding`` are for CSV: names for a file without a header, none of them for ``column_0``, ``column_1`` …, and the
    encoding of one that is not UTF-8. ``wants`` says which columns will be used: of others a list is no bad row.
    """
    if resume is not None and skip_rows:
        raise ValueError(f"skip_rows={skip_rows} beside resume: a position brings its own number of rows; give one of them")
    first = skip_rows if resume is None else resume.rows
    wanted = wants or (lambda name: True)
    reading = Reading(format, batch_rows, bad or Stop(), first, end_row, delimiter, names, encoding, wanted)
    return Stream(Files(source) if isinstance(source, str | Path) else source, reading, Digest(resume))
