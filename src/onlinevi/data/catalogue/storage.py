"""Files of data sets on this machine: where they are looked for, how they are verified, parsed once and written."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import io
import os
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from onlinevi.data.atomic import replace_file
from onlinevi.data.catalogue.entry import StoredFile, Table, WrongContent

VARIABLE = "ONLINEVI_DATA"
EXTRA = "pip install 'onlinevi[data]'"
GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGIC = b"PK\x03\x04"
LARGEST = 1 << 28
"""Bytes of a file's content: more than any of the catalogue has. A few megabytes can be packed so as to fill any memory."""
LAYOUT = 1
"""Raise it when a parser gives other arrays for the same content: tables parsed before are then parsed anew."""


class Folder(NamedTuple):
    """A place that may hold files; without a path, ``absent`` says why."""

    label: str
    path: Path | None
    absent: str


def searched() -> tuple[Folder, Folder]:
    """The folders in the order of the search: the one that the user names, then the cache."""
    named = os.environ.get(VARIABLE)
    return (
        Folder(VARIABLE, Path(named).expanduser() if named else None, "not set"),
        Folder("the user's cache", user_cache(), f"unknown without platformdirs: {EXTRA}"),
    )


def user_cache() -> Path | None:
    """Where downloads and parsed files are kept; None without platformdirs, which knows it for every system."""
    try:
        platformdirs = importlib.import_module("platformdirs")
    except ModuleNotFoundError:
        return None
    return Path(platformdirs.user_cache_dir("onlinevi"))


def verified(raw: bytes, file: StoredFile, place: str) -> bytes:
    """The content of these bytes, refused unless it is the one that the catalogue knows."""
    try:
        content = unpacked(raw)
    except (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile) as error:
        raise WrongContent(f"{place}: refused, it cannot be unpacked ({error})") from error
    refuse_unless(hashlib.sha256(content).hexdigest(), file.sha256, place)
    return content


def unpacked(raw: bytes) -> bytes:
    """The content of a file. Gzip and one-file zip are known by their first bytes; all else is the content itself."""
    if raw.startswith(GZIP_MAGIC):
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as packed:
            return _up_to_largest(packed)
    if raw.startswith(ZIP_MAGIC):
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            (member,) = archive.namelist()
            with archive.open(member) as stream:
                return _up_to_largest(stream)
    return raw


def _up_to_largest(stream: IO[bytes] | gzip.GzipFile) -> bytes:
    """What a packed stream holds; one that claims to hold more than any file here is not unpacked to its end."""
    content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"it holds more than {LARGEST >> 20} MiB")
    return content


def values_sha256(table: Table) -> str:
    """The sum of the features and labels as little-endian doubles: it does not depend on how a package keeps them."""
    digest = hashlib.sha256()
    for part in table:
        digest.update(part.astype("<f8").tobytes())
    return digest.hexdigest()


def refuse_unless(came: str, expected: str, place: str) -> None:
    """Refuse content whose checksum is not the expected one."""
    if came != expected:
        raise WrongContent(f"{place}: refused, its content has sha256 {came}, expected {expected}")


def parsed_table(raw: bytes, file: StoredFile, place: str) -> Table:
    """The parsed table of a file's bytes: kept from an earlier time for the very same bytes, else verified and parsed.

    The packed bytes are hashed at every load, which takes a fraction of unpacking them: a file that was changed since is
    verified again, and refused if it is wrong.
    """
    kept = _kept_path(raw, file) if file.keep_parsed else None
    if kept is not None:
        # An archive checks its own members: one that was cut short or damaged is parsed anew.
        with suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile), kept.open("rb") as f, np.load(f) as arrays:
            return Table(arrays["X"], arrays["y"])
    table = file.parse(verified(raw, file, place))
    if kept is not None:
        # A cache that cannot be written costs time at the next load, and nothing else.
        with suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            replace_file(kept, lambda file: np.savez(file, X=table.X, y=table.y))
    return table


def _kept_path(raw: bytes, file: StoredFile) -> Path | None:
    cache = user_cache()
    packed = hashlib.sha256(raw).hexdigest()
    return cache and cache / "parsed" / f"{file.name}-{LAYOUT}-{file.sha256[:16]}-{packed[:16]}.npz"
