"""Arrow's own format: record batches of typed columns, as a stream or as a file."""

from __future__ import annotations

import io
from collections.abc import Iterator

from onlinevi.data.formats.base import CHUNK, Format, piece_of
from onlinevi.data.sources import BadInput, Content, Piece, ReadOptions
from onlinevi.data.values import arrow

FILE, STREAM = b"ARROW1", b"\xff\xff\xff\xff"


class ArrowIPC(Format):
    """Arrow is read as a stream of record batches; an Arrow file is one too, between a mark of 8 bytes and an index."""

    name = "arrow"
    suffixes = (".arrow", ".arrows", ".feather")
    written_suffixes = (".arrow",)
    magic = (FILE, STREAM)
    is_text = False

    def read(self, content: Content, options: ReadOptions) -> Iterator[Piece]:
        stored = io.BufferedReader(content, CHUNK)
        if content.first_line(self.magic).startswith(FILE):
            stored.read(8)
        try:
            for batch in arrow("ipc").open_stream(stored):
                batch.validate(full=True)  # offsets that lead elsewhere would be followed
                yield piece_of(content, batch)
        except (arrow().ArrowException, OSError, MemoryError) as error:  # a damaged length asks for anything
            raise BadInput(f"{content.name}: no readable Arrow data ({error})") from error
        while stored.read(CHUNK):  # the rest of the file, for the digest
            pass
