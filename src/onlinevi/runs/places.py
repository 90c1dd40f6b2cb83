"""Where a run reads and writes: no output may be an input, and no two outputs one file, whatever they are called."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from onlinevi.data import STANDARD_INPUT
from onlinevi.runs.rejected import FILELESS
from onlinevi.runs.writers import STANDARD_OUTPUT, check_format, files_of

Where: TypeAlias = str | Path | None


@dataclass(frozen=True)
class Places:
    """Where a run reads and writes. ``bad_rows`` is a policy of ``Rejected``; predictions may go to ``-``, standard output."""

    source: str
    checkpoint: Path | None = None
    predictions: Path | None = None
    bad_rows: str = "stop"
    every: int = 100_000
    """Rows from one checkpoint to the next."""

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(f"every={self.every}: needs a number of rows from 1")
        check_format(self.predictions)
        if self.checkpoint is not None:  # it is written behind the first rows: too late to hear that it cannot be
            if self.checkpoint.is_dir():
                raise ValueError(f"checkpoint={self.checkpoint}: a directory; name a file in it")
            if not self.checkpoint.parent.is_dir():
                raise ValueError(f"checkpoint={self.checkpoint}: {self.checkpoint.parent} is no directory; make it first")
        outputs = {"predictions": self.predictions, "checkpoint": self.checkpoint, "bad_rows": bad_rows_file(self.bad_rows)}
        refuse_overwriting({"source": self.source}, outputs)


def bad_rows_file(policy: str) -> Path | None:
    """Where bad rows are written to, if they are."""
    return None if policy in FILELESS else Path(policy)


def refuse_overwriting(inputs: Mapping[str, Where], outputs: Mapping[str, Where]) -> None:
    """Refuse an output that is an input, lies in a folder that is read, or is another output too.

    Files are told by what they are, through links and in any spelling. The keys are what a message calls them.
    """
    read = {_identity(path): f"{path}, which is read" for path in inputs.values() if path is not None}
    folders = {_identity(path): path for path in inputs.values() if path is not None and Path(path).is_dir()}
    for folder in folders.values():
        read |= {_identity(part.path): f"{part.path}, which is read" for part in os.scandir(folder) if part.is_file()}
    taken: dict[object, str] = {}
    for name, path in outputs.items():
        if path is None or str(path) == STANDARD_OUTPUT:
            continue
        written = {_identity(own): own for own in files_of(Path(path))}
        for itself, own in written.items():
            if itself in read:
                raise ValueError(f"{name} {path} would overwrite {read[itself]}: name another file")
            if itself in taken:
                raise ValueError(f"{name} {path} is the file of {taken[itself]} too: give each one of its own")
            if _identity(own.parent) in folders:
                raise ValueError(f"{name} {path} lies in the folder that is read, as if it were data: name a file elsewhere")
        taken |= dict.fromkeys(written, name)


def _identity(path: str | Path) -> object:
    """The same for two names of one file. A file still to be made is its folder and its name; a device is never the same."""
    try:
        found = os.fstat(sys.stdin.fileno()) if str(path) == STANDARD_INPUT else Path(path).stat()
    except (OSError, ValueError, AttributeError):
        return os.path.normcase(os.path.realpath(path))
    if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
        return found.st_dev, found.st_ino
    return object()
