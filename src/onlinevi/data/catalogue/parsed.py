"""Parsed tables kept in the user's cache, so that a large text is parsed once."""

from __future__ import annotations

import hashlib
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np

from onlinevi.data.catalogue import folders
from onlinevi.data.catalogue.content import verified
from onlinevi.data.catalogue.entry import StoredFile, Table

LAYOUT = 1
"""Raise it when a parser gives other arrays for the same content."""


def table(raw: bytes, file: StoredFile, place: str) -> Table:
    """The parsed table of a file's bytes: kept from an earlier time for the very same bytes, else verified and parsed.

    The packed bytes are hashed at every load, which takes a fraction of unpacking them: a file that was changed since is
    verified again, and refused if it is wrong.
    """
    kept = _path(raw, file) if file.keep_parsed else None
    if kept is not None:
        # An archive checks its own members: one that was cut short or damaged is parsed anew.
        with suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile), kept.open("rb") as f, np.load(f) as arrays:
            return Table(arrays["X"], arrays["y"])
    result = file.parse(verified(raw, file, place))
    if kept is not None:
        # A cache that cannot be written costs time at the next load, and nothing else.
        with suppress(OSError):
            _keep(result, kept)
    return result


def _keep(result: Table, path: Path) -> None:
    def write(file: IO[bytes]) -> None:
        np.savez(file, X=result.X, y=result.y)

    folders.write_atomically(path, write)


def _path(raw: bytes, file: StoredFile) -> Path | None:
    cache = folders.user_cache()
    packed = hashlib.sha256(raw).hexdigest()
    return cache and cache / "parsed" / f"{file.name}-{LAYOUT}-{file.sha256[:16]}-{packed[:16]}.npz"
