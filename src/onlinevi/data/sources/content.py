"""The content of a part of a source: counted into the digest as it is stored, then unpacked, and its head looked at first."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from onlinevi.data.sources.base import Part
from onlinevi.data.sources.position import Digest
from onlinevi.data.sources.refused import BadInput
from onlinevi.data.values import arrow

FIRST_LINE = 1 << 16
"""So many bytes are looked at for a first line."""


class Packing(NamedTuple):
    """A way to compress bytes, known by the first ones."""

    name: str
    suffix: str
    magic: tuple[bytes, ...]
    unpack: Callable[[Any], Any]


PACKINGS = (
    Packing("gzip", ".gz", (b"\x1f\x8b",), lambda stored: gzip.GzipFile(fileobj=stored, mode="rb")),
    Packing(
        "zstd",
        ".zst",
        (b"\x28\xb5\x2f\xfd",),
        lambda stored: arrow().CompressedInputStream(io.BufferedReader(stored), "zstd"),
    ),
    Packing("bz2", ".bz2", tuple(b"BZh%d1AY&SY" % level for level in range(1, 10)), lambda stored: bz2.BZ2File(stored, "rb")),
)
PACKED_SUFFIXES = tuple(packing.suffix for packing in PACKINGS)


class Content(io.RawIOBase):
    """A part's content, unpacked. A read returns what is there, so that a pipe's rows are delivered as they come."""

    def __init__(self, part: Part, digest: Digest) -> None:
        self.name = part.name
        stored = _Peekable(_Counted(part.stored, digest))
        magics = [magic for packing in PACKINGS for magic in packing.magic]
        head = stored.peek(lambda head: not any(magic.startswith(head) for magic in magics))
        self._packing = next((packing for packing in PACKINGS if head.startswith(packing.magic)), None)
        self.path = None if self._packing else part.path
        """Where it can be read at any place, if it can."""
        self._unpacked = _Peekable(_Unpacked(self.name, self._packing, stored) if self._packing else stored)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._unpacked.readinto(buffer)

    def first_line(self, magic: tuple[bytes, ...] = ()) -> bytes:
        """Up to the first line end, left to be read again; where the content begins with a magic, the first bytes."""

        def enough(head: bytes) -> bool:
            return b"\n" in head or len(head) >= FIRST_LINE or head.startswith(magic)

        return self._unpacked.peek(enough).partition(b"\n")[0]


class Decoded(Content):
    """Content that is text in another encoding, as UTF-8."""

    def __init__(self, content: Content, encoding: str) -> None:
        self.name, self.path, self._packing = content.name, None, None
        self._unpacked = _Peekable(_Recoded(content, encoding))


class _Recoded:
    """Text in another encoding as UTF-8, as it comes."""

    def __init__(self, content: Content, encoding: str) -> None:
        try:
            self._decoder = codecs.getincrementaldecoder(encoding)()
        except LookupError as error:
            raise BadInput(f"encoding={encoding!r}: is none that is known; try latin-1, cp1252 or utf-16") from error
        self._content, self._encoding, self._rest = content, encoding, b""

    def read(self, size: int) -> bytes:
        """What is there, at least a byte; nothing at the end."""
        while not self._rest and (data := self._content.read(size)):
            self._rest = self._decoded(data)
        self._rest = self._rest or self._decoded(b"", last=True)
        data, self._rest = self._rest[:size], self._rest[size:]
        return data

    def _decoded(self, data: bytes, *, last: bool = False) -> bytes:
        try:
            return self._decoder.decode(data, last).encode()
        except UnicodeError as error:
            raise BadInput(f"{self._content.name}: is no {self._encoding} ({error}): tell another --encoding") from error


class _Counted(io.RawIOBase):
    """Bytes as stored, on their way into the digest."""

    def __init__(self, stored: Any, digest: Digest) -> None:
        self._read: Callable[[int], bytes] = getattr(stored, "read1", stored.read)
        self._digest = digest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._read(len(buffer))
        self._digest.add(data)
        buffer[: len(data)] = data
        return len(data)


class _Unpacked:
    """What packed bytes hold; damaged ones are refused."""

    def __init__(self, name: str, packing: Packing, stored: Any) -> None:
        self._name, self._packing = name, packing
        unpacking = packing.unpack(stored)
        self._read: Callable[[int], bytes] = getattr(unpacking, "read1", unpacking.read)

    def read(self, size: int) -> bytes:
        try:
            return self._read(size)
        except BadInput:
            raise
        except (EOFError, OSError, ValueError, zlib.error) as error:
            raise BadInput(f"{self._name}: its {self._packing.name} data is damaged or cut ({error})") from error


class _Peekable(io.RawIOBase):
    """A stream whose head can be looked at first."""

    def __init__(self, stream: Any) -> None:
        self._read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
        self._head = b""

    def readable(self) -> bool:
        return True

    def peek(self, enough: Callable[[bytes], bool]) -> bytes:
        """The head, read on until it is enough or the stream ends."""
        while not enough(self._head) and (more := self._read(FIRST_LINE)):
            self._head += more
        return self._head

    def readinto(self, buffer: Any) -> int:
        data = self._head[: len(buffer)] if self._head else self._read(len(buffer))
        self._head = self._head[len(data) :]
        buffer[: len(data)] = data
        return len(data)
