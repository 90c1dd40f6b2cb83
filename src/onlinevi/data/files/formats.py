"""Which format a file has: told, by its name, or by its first bytes."""

from __future__ import annotations

from pathlib import PurePath
from typing import Literal, get_args

from onlinevi.data.files.libsvm import FIRST_LINE
from onlinevi.data.files.source import ARROW_FILE, ARROW_STREAM, PARQUET, Source

Format = Literal["csv", "ndjson", "parquet", "arrow", "libsvm"]
SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".svmlight": "libsvm",
}
PACKED = {".gz", ".zst", ".bz2"}


def format_of(source: Source, told: str | None) -> Format:
    """The format to read a source in."""
    if told is not None:
        found = next((known for known in get_args(Format) if known == told), None)
        if found is None:
            raise ValueError(f"format={told!r}: needs one of {', '.join(get_args(Format))}, or None to find out")
        return found  # type: ignore[no-any-return]
    suffixes = [suffix.lower() for suffix in PurePath(source.name).suffixes]
    while suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1] if suffixes else "") or _by_content(source.first_line())


def _by_content(line: bytes) -> Format:
    if line.startswith(PARQUET):
        return "parquet"
    if line.startswith((ARROW_FILE, ARROW_STREAM)):
        return "arrow"
    if line.lstrip(b"\xef\xbb\xbf \t").startswith(b"{"):
        return "ndjson"
    return "libsvm" if FIRST_LINE.fullmatch(line) else "csv"
