"""What a source is: rows in pieces, the place to go on from behind each of them, and an end.

A source of rows has one method, ``open``, and what it gives is read once:

>>> import pyarrow as pa
>>> from onlinevi.data import Piece, Reader, open_stream
>>> class Countdown(Reader):
...     name = "countdown"
...     def open(self, options, resume=None):
...         return self
...     def __iter__(self):
...         yield Piece(3, {"left": pa.array([3, 2, 1])})
>>> with open_stream(Countdown()) as stream:
...     [batch.columns["left"].to_pylist() for batch in stream], stream.position.rows
([[3, 2, 1]], 3)

A source of bytes, which formats read, has ``parts``; packed or not, it is then counted, read and resumed as a file is:

>>> import io
>>> from onlinevi.data import Part
>>> class Memory:
...     name = "memory"
...     def parts(self):
...         yield Part("a table", io.BytesIO(b"size,price\\n50,100\\n80,150\\n"))
>>> with open_stream(Memory()) as stream:
...     [batch.columns["price"].to_pylist() for batch in stream], stream.position.bytes
([['100', '150']], 25)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from onlinevi.data.sources.position import Position, Sums
from onlinevi.data.sources.refused import Refused


class ReadOptions(NamedTuple):
    """What a source is told of how to read; it takes what concerns it."""

    numbers: Set[str] = frozenset()
    """Columns of text to be read as floats; looked at before each block, since it may grow."""
    delimiter: str | None = None
    names: Sequence[str] | None = None
    """The columns of a file without a header; of one without names, their places are their names."""
    encoding: str | None = None
    """Of text that is not UTF-8."""
    batch_rows: int = 8192
    wants: Callable[[str], bool] = lambda name: True
    """Whether a column will be used; what cannot be read in others does not matter."""


class Trail(Protocol):
    """Where the rows of a piece lie in their source."""

    def behind(self, count: int) -> Any:
        """Where to go on behind the first ``count`` of them: a value that JSON has a word for, and the source alone reads."""

    def place(self, row: int) -> Mapping[str, Any]:
        """What the source calls a row of the piece, for messages and as a key: a stream and an id, a topic and an offset."""


@dataclass(frozen=True)
class Piece:
    """Rows that follow each other, numbered within the piece."""

    count: int
    """How many rows there were, good and bad; none where a source that pauses says so, that others may do what is due."""
    columns: Mapping[str, Any]
    """Of the good rows: pyarrow arrays by name."""
    matrix: Any = None
    """Of the good rows of a sparse format: a CSR matrix, one column an index."""
    refused: list[Refused] = field(default_factory=list)
    of: int | None = None
    """How many rows the whole part has, where it says so."""
    source: str = ""
    """What messages call where the rows are from, if not by the name of the source."""
    trail: Trail | None = None
    """Where its rows lie; None of a source that is read from its beginning again to go on."""
    times: NDArray[np.float64] | None = None
    """When each good row happened, in seconds since 1970, where the source says so."""

    @property
    def good(self) -> NDArray[np.int64]:
        """The numbers of the rows that can be read."""
        return np.delete(np.arange(self.count), [bad.row for bad in self.refused])


class Reader(ABC):
    """A source that has been opened: its pieces in order, each as soon as it is there."""

    live: bool = False
    """Whether the next piece may take its time, or never come."""
    first_row: int = 0
    """The number of its first row: how many were read before, where it goes on behind them."""

    @abstractmethod
    def __iter__(self) -> Iterator[Piece]:
        """The pieces, once."""

    def close(self) -> None:
        """Let go of what was opened; called at least once, at any time."""
        return

    def leave(self) -> None:
        """Bring no more pieces, to another thread that may be waiting for the next: it ends soon, where it can."""
        return

    @property
    def sums(self) -> Sums:
        """The checksum of the bytes so far, by which one that is read again from its beginning is known."""
        return Sums()

    def delivered(self, rows: int) -> float:
        """About how many of the bytes so many rows took up; 0 where nobody knows."""
        return 0.0


class Source(Protocol):
    """Where rows come from: files, pipes, tables, topics of a broker."""

    name: str
    """What positions and checkpoints call it."""

    def open(self, options: ReadOptions, resume: Position | None = None) -> Reader:
        """Begin to read, or go on from a position, whose ``mark`` is what a trail of this source told."""


class Part(NamedTuple):
    """Bytes that follow each other, as they are stored: a file, or what comes through a pipe."""

    name: str
    """What messages call it; its ending may say its format."""
    stored: Any
    """An open binary stream: ``read(size)`` gives what is there, at most ``size`` bytes, and nothing at the end."""
    live: bool = False
    """Whether a read may wait for bytes that are still to come."""
    path: Path | None = None
    """Where the same bytes can be read at any place, if they can."""


class ByteSource(Protocol):
    """Where bytes come from: a folder of files, a pipe.

    To resume, a stream reads the parts again from the first byte, and compares sums: a source gives the same bytes each time.
    """

    name: str
    """What positions and checkpoints call it."""

    def parts(self) -> Generator[Part]:
        """The parts in order, each read before the next is asked for; the source closes what it opened."""


AnySource: TypeAlias = str | Path | Source | ByteSource
"""What ``open_stream`` takes: the name of a file, an address, or a source."""


def is_source(given: Any) -> bool:
    """Whether it is a source of rows or of bytes, and no file that is open."""
    return hasattr(given, "name") and (hasattr(given, "parts") or (hasattr(given, "open") and not hasattr(given, "read")))
