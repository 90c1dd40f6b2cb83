"""NDJSON: one object a line."""

from __future__ import annotations

from collections.abc import Iterator

from onlinevi.data.formats.base import Format, text_blocks
from onlinevi.data.formats.objects import objects_piece
from onlinevi.data.sources import Content, Piece, ReadOptions


class NDJSON(Format):
    """NDJSON is read block by block. A column that a block lacks is missing in all its rows."""

    name = "ndjson"
    suffixes = written_suffixes = (".ndjson", ".jsonl")
    same_columns = False

    @classmethod
    def looks_like(cls, first_line: bytes) -> bool:
        return first_line.lstrip(b"\xef\xbb\xbf \t").startswith(b"{")

    def read(self, content: Content, options: ReadOptions) -> Iterator[Piece]:
        before = 0
        for block in text_blocks(content):
            texts = block.split(b"\n")[:-1]
            lines = [line for line, text in enumerate(texts, before + 1) if text.strip()]
            if lines:
                yield objects_piece([texts[line - before - 1] for line in lines], content.name, options, lines)
            before += len(texts)
