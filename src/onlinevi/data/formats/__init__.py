"""The formats of files: known by their names, by the endings of files, or by the first bytes."""

from __future__ import annotations

from pathlib import PurePath

from onlinevi.data.formats.base import Format
from onlinevi.data.sources import PACKED_SUFFIXES, Content, Piece, ReadOptions
from onlinevi.engine import look_up, named

# In the order in which messages name them.
# isort: off
from onlinevi.data.formats.csv import CSV
from onlinevi.data.formats.ndjson import NDJSON
from onlinevi.data.formats.parquet import Parquet
from onlinevi.data.formats.arrow_ipc import ArrowIPC
from onlinevi.data.formats.libsvm import LIBSVM
from onlinevi.data.formats.objects import objects_piece
# isort: on

__all__ = [
    "CSV",
    "LIBSVM",
    "NDJSON",
    "WRITTEN_AS",
    "ArrowIPC",
    "Format",
    "Parquet",
    "Piece",
    "ReadOptions",
    "format_of",
    "objects_piece",
]

WRITTEN_AS = {suffix: each for each in named(Format).values() for suffix in each.written_suffixes}
"""The formats in which tables are written, by the endings of their files."""


def format_of(content: Content, told: str | Format | None = None) -> Format:
    """The format to read a part in: the one that was told, that its name says, or that its first bytes look like."""
    if isinstance(told, Format):
        return told
    if told is not None:
        return look_up(Format, told, "format")()
    suffixes = [suffix.lower() for suffix in PurePath(content.name).suffixes]
    while suffixes and suffixes[-1] in PACKED_SUFFIXES:
        suffixes.pop()
    formats = named(Format).values()
    by_name = next((each for each in formats if suffixes and suffixes[-1] in each.suffixes), None)
    if by_name is not None:
        return by_name()
    first_line = content.first_line(tuple(magic for each in formats for magic in each.magic))
    return next((each for each in formats if each.looks_like(first_line)), CSV)()
