"""Bytes as rows: the parts of a source, each unpacked and read in its format, and all of them counted into one checksum."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace

from onlinevi.data.formats import Format, format_of
from onlinevi.data.sources import BadInput, ByteSource, Content, Digest, Piece, Position, Reader, ReadOptions, Sums


class Stored:
    """A source of bytes as one of rows; ``format`` None asks the source, or finds out."""

    def __init__(self, source: ByteSource, told: str | Format | None = None) -> None:
        self.name = source.name
        self._source, self._format = source, told or getattr(source, "format", None)

    def open(self, options: ReadOptions, resume: Position | None = None) -> Reader:
        if resume is not None and resume.mark is not None:
            raise BadInput(f"{resume.source} was read before, and not {self.name}: resume from the same source, or start anew")
        return _StoredReader(self._source, self._format, options, Digest(resume))


class _StoredReader(Reader):
    def __init__(self, source: ByteSource, told: str | Format | None, options: ReadOptions, digest: Digest) -> None:
        self._source, self._format, self._options, self._digest = source, told, options, digest
        self._part = 0, 0, 0
        """Where the part that is read begins, in bytes and in rows, and how many of its rows its bytes so far have."""
        self._pieces = self._read()

    def __iter__(self) -> Iterator[Piece]:
        return self._pieces

    def close(self) -> None:
        self._pieces.close()

    @property
    def sums(self) -> Sums:
        return self._digest.sums

    def delivered(self, rows: int) -> float:
        begin, first, of = self._part
        return begin + (self._digest.bytes - begin) * min(max((rows - first) / of, 0.0), 1.0) if of else 0.0

    def _read(self) -> Generator[Piece]:
        first, columns = 0, set[str]()
        with closing(self._source.parts()) as parts:
            for part in parts:
                self.live, begin, first_of_part = part.live, self._digest.bytes, first
                content = Content(part, self._digest)
                part_format = format_of(content, self._format)
                for piece in part_format.read(content, self._options):
                    if part_format.same_columns and piece.columns:
                        columns = columns or set(piece.columns)
                        _check_columns(part.name, columns, set(piece.columns))
                    self._part = begin, first_of_part, piece.of or first - first_of_part + piece.count
                    yield replace(piece, source=part.name)
                    first += piece.count
        self._digest.finish()


def _check_columns(name: str, wanted: set[str], present: set[str]) -> None:
    if present != wanted:
        lacks, more = sorted(wanted - present), sorted(present - wanted)
        raise BadInput(f"{name}: its columns are not those of the parts before it: it lacks {lacks}, and has {more} more")
