"""What a format is: its name, how a file of it is known, and how its rows are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from onlinevi.data.sources import BadInput, Content, Piece, ReadOptions
from onlinevi.data.values import arrow, stored

CHUNK = 1 << 20
"""How many bytes are asked for at once: memory stays at a few of these."""
LONGEST = 1 << 24
"""A record that takes more bytes is none of the format's."""
BOM = b"\xef\xbb\xbf"
NO_TEXT = {
    b"PK\x03\x04": "a zip file or a workbook of Excel: unpack it (unzip -p FILE | onlinevi run -), or save it as CSV",
    b"\xd0\xcf\x11\xe0": "a workbook of Excel: save it as CSV",
    b"\xfd7zXZ\x00": "an xz file: unpack it (xz -dc FILE | onlinevi run -)",
    b"7z\xbc\xaf\x27\x1c": "a 7z file: unpack it",
    b"%PDF-": "a PDF: save its table as CSV",
    b"\x89HDF": "an HDF5 file: save its table as CSV or Parquet",
    b"SQLite format 3": "a database of SQLite: write its table as CSV (sqlite3 -csv -header FILE 'select * from …')",
    b"\x93NUMPY": "an array of numpy: learn from it in Python, or save it as CSV",
    b"\xff\xfe": "UTF-16: convert it to UTF-8 (iconv -f utf-16 -t utf-8)",
    b"\xfe\xff": "UTF-16: convert it to UTF-8 (iconv -f utf-16 -t utf-8)",
}
"""How common files begin that are no text in UTF-8, and what to do with them."""


class Format:
    """A file format. A subclass is known by its name, and its files by theirs, from the moment that it is imported."""

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    """The endings of names that say this format."""
    written_suffixes: ClassVar[tuple[str, ...]] = ()
    """Those of them under which tables are written, too."""
    magic: ClassVar[tuple[bytes, ...]] = ()
    """The first bytes of every such file, of a format that is not text."""
    is_text: ClassVar[bool] = True
    """Whether rows are written as lines of text, one after the other; else as record batches."""
    same_columns: ClassVar[bool] = True
    """Whether all parts of a stream must have the same columns: not where any row may lack or bring some."""

    @classmethod
    def looks_like(cls, first_line: bytes) -> bool:
        """Whether a part whose name says nothing begins as this format does."""
        return first_line.startswith(cls.magic)

    def read(self, content: Content, options: ReadOptions) -> Iterator[Piece]:
        """The rows of a part in order, in pieces of a size that memory holds."""
        raise NotImplementedError(f"{type(self).__name__} reads nothing: give it a method read(content, options)")


def piece_of(content: Content, batch: Any, of: int | None = None) -> Piece:
    """A record batch as a piece, of a part of so many rows; a column of structs becomes a column for each field."""
    table = arrow().Table.from_batches([batch])
    while any(arrow().types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    if len(set(table.column_names)) < table.num_columns:
        raise BadInput(f"{content.name}: two of the columns {table.column_names} have one name: rename one")
    return Piece(table.num_rows, {name: stored(table[name].combine_chunks()) for name in table.column_names}, of=of)


Cut = Callable[[bytes, bool], int]
"""Where the last whole record of these bytes ends, 0 if none does; told whether the bytes are the last."""


def whole_lines(data: bytes, last: bool) -> int:
    """The cut of formats whose records are lines."""
    return len(data) if last else data.rfind(b"\n") + 1


def text_blocks(content: Content, cut: Cut = whole_lines) -> Iterator[bytes]:
    """Text in blocks of whole records, each as soon as it is there. Every block ends in a line end."""
    _refuse_other_files(content)
    rest = _without_bom(content)
    while chunk := content.read(CHUNK):
        rest += chunk
        while end := cut(rest, False):
            yield rest[:end]
            rest = rest[end:]
        if len(rest) > LONGEST:
            raise BadInput(f"{content.name}: no record ends within {LONGEST >> 20} MiB: is the format right?")
    if rest and not rest.endswith(b"\n"):
        rest += b"\n"
    while rest:
        end = cut(rest, True)
        yield rest[:end]
        rest = rest[end:]


def _refuse_other_files(content: Content) -> None:
    """Refuse what is no text before it is taken for rows that are all bad."""
    head = content.first_line(tuple(NO_TEXT))
    kind = next((kind for magic, kind in NO_TEXT.items() if head.startswith(magic)), None)
    if kind is not None:
        raise BadInput(f"{content.name}: it is {kind}")
    if b"\x00" in head:
        raise BadInput(f"{content.name}: its first line holds zero bytes: it is no text in UTF-8; iconv converts UTF-16")


def _without_bom(content: Content) -> bytes:
    head = b""
    while len(head) < len(BOM) and BOM.startswith(head) and (more := content.read(len(BOM) - len(head))):
        head += more
    return b"" if head == BOM else head
