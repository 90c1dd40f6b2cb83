"""What a source of bytes is: one method, which a new kind of source implements.

>>> import io
>>> from onlinevi.data import Part, open_stream
>>> class Memory:
...     name = "memory"
...     def parts(self):
...         yield Part("a table", io.BytesIO(b"size,price\\n50,100\\n80,150\\n"))
>>> with open_stream(Memory()) as stream:
...     [batch.columns["price"].to_pylist() for batch in stream], stream.position.bytes
([['100', '150']], 25)
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple, Protocol


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


class Source(Protocol):
    """Where bytes come from: a folder of files, a pipe, a topic of a broker.

    To resume, a stream reads the parts again from the first byte, and compares sums: a source gives the same bytes each time.
    """

    name: str
    """What positions and checkpoints call it."""

    def parts(self) -> Generator[Part]:
        """The parts in order, each read before the next is asked for; the source closes what it opened."""
