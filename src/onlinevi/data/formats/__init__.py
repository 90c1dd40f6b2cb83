"""The formats of files, in one registry: by their names, by the endings of files, or by the first bytes."""

from __future__ import annotations

from pathlib import PurePath

from onlinevi.data.formats.arrow_ipc import ArrowIPC
from onlinevi.data.formats.base import Format, Piece, ReadOptions
from onlinevi.data.formats.csv import CSV
from onlinevi.data.formats.libsvm import LIBSVM
from onlinevi.data.formats.ndjson import NDJSON
from onlinevi.data.formats.parquet import Parquet
from onlinevi.data.sources import PACKED_SUFFIXES, Content

__all__ = ["FORMATS", "WRITTEN_AS", "Format", "Piece", "ReadOptions", "format_of"]

FORMATS: dict[str, Format] = {each.name: each for each in (CSV(), NDJSON(), Parquet(), ArrowIPC(), LIBSVM())}
WRITTEN_AS: dict[str, Format] = {suffix: each for each in FORMATS.values() for suffix in each.written_suffixes}
"""The formats in which tables are written, by the endings of their files."""

_BY_SUFFIX = {suffix: each for each in FORMATS.values() for suffix in each.suffixes}
_MAGIC = tuple(magic for each in FORMATS.values() for magic in each.magic)


def format_of(content: Content, told: str | Format | None = None) -> Format:
    """The format to read a part in: the one that was told, that its name says, or that its first bytes look like."""
    if isinstance(told, Format):
        return told
    if told is not None:
        if told not in FORMATS:
            raise ValueError(f"format={told!r}: needs one of {', '.join(FORMATS)}, or None to find out")
        return FORMATS[told]
    suffixes = [suffix.lower() for suffix in PurePath(content.name).suffixes]
    while suffixes and suffixes[-1] in PACKED_SUFFIXES:
        suffixes.pop()
    if suffixes and suffixes[-1] in _BY_SUFFIX:
        return _BY_SUFFIX[suffixes[-1]]
    first_line = content.first_line(_MAGIC)
    return next((each for each in FORMATS.values() if each.looks_like(first_line)), FORMATS["csv"])
