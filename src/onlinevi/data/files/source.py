"""Where bytes come from: a file, a folder of parts, or standard input; compressed or not."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from onlinevi.data.files.digest import Digest
from onlinevi.data.files.extra import arrow
from onlinevi.data.files.refused import BadInput

STANDARD_INPUT = "-"
MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", **{b"BZh%d1AY&SY" % level: "bz2" for level in range(1, 10)}}
FIRST_LINE = 1 << 16
PARQUET, ARROW_FILE, ARROW_STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"


def parts(source: str | Path) -> list[str]:
    """The files of a source, in order: itself, or a folder's files by name, without hidden ones and ``_SUCCESS`` marks."""
    if str(source) == STANDARD_INPUT:
        return [STANDARD_INPUT]
    path = Path(source)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file or folder; '-' reads standard input")
    if not path.is_dir():
        return [str(path)]
    names = sorted(str(part) for part in path.iterdir() if part.is_file() and part.name[0] not in "._")
    if not names:
        raise FileNotFoundError(f"{path}: the folder holds no files")
    return names


class Source(io.RawIOBase):
    """One file's content, unpacked. A read returns what is there, so that a pipe's rows are delivered as they come."""

    def __init__(self, name: str, digest: Digest) -> None:
        self._closes = False
        self.name = "standard input" if name == STANDARD_INPUT else name
        self._opened: Any = sys.stdin.buffer if name == STANDARD_INPUT else io.FileIO(name)
        self._closes = name != STANDARD_INPUT
        self.live = not _is_regular(self._opened)
        stored = _Peekable(_Counted(self._opened, digest))
        packing = stored.peek(lambda head: not any(magic.startswith(head) for magic in MAGIC))
        self.packing = next((kind for magic, kind in MAGIC.items() if packing.startswith(magic)), None)
        self.path = Path(name) if self._closes and not self.packing and not self.live else None
        """Where it can be read at any place, if it can."""
        self._content = _Peekable(_unpacked(stored, self.packing))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return self._content.readinto(buffer)
        except (EOFError, OSError, ValueError, zlib.error) as error:
            if self.packing is None or isinstance(error, BadInput):
                raise
            raise BadInput(f"{self.name}: its {self.packing} data is damaged or cut ({error})") from error

    def first_line(self) -> bytes:
        """Up to the first line end, left to be read again. Of a format without lines, the first bytes."""

        def enough(head: bytes) -> bool:
            return b"\n" in head or len(head) >= FIRST_LINE or head.startswith((PARQUET, ARROW_FILE, ARROW_STREAM))

        return self._content.peek(enough).partition(b"\n")[0]

    def close(self) -> None:
        if self._closes and not self.closed:
            self._opened.close()
        super().close()


class _Counted(io.RawIOBase):
    """Bytes as stored, on their way into the digest."""

    def __init__(self, opened: Any, digest: Digest) -> None:
        self._read: Callable[[int], bytes] = getattr(opened, "read1", opened.read)
        self._digest = digest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._read(len(buffer))
        self._digest.add(data)
        buffer[: len(data)] = data
        return len(data)


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


def _unpacked(stored: _Peekable, packing: str | None) -> Any:
    if packing == "gzip":
        return gzip.GzipFile(fileobj=stored, mode="rb")
    if packing == "bz2":
        return bz2.BZ2File(stored, "rb")
    if packing == "zstd":
        return arrow().CompressedInputStream(io.BufferedReader(stored), "zstd")
    return stored


def _is_regular(opened: Any) -> bool:
    try:
        return stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
    except (OSError, ValueError):  # not of the operating system: it never waits
        return True
