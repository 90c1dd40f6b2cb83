"""Where a run reads and writes: no output may be an input, and no two outputs one file, whatever they are called."""

from __future__ import annotations

import math
import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from onlinevi.data import STANDARD_INPUT, Address, Follow, Source, address_of, is_address
from onlinevi.runs.predictions import NOTHING_ASKED, Asked
from onlinevi.runs.rejected import FILELESS
from onlinevi.runs.writers import STANDARD_OUTPUT, check_format, files_of

Where: TypeAlias = str | Path | Address | None


FOLLOWED = Follow()


@dataclass(frozen=True)
class Places:
    """Where a run reads and writes. ``bad_rows`` is a policy of ``Rejected``; predictions may go to ``-``, standard output, or
    to a broker. Sources of your own stand in the place of names."""

    source: str | Source
    checkpoint: Path | None = None
    predictions: Path | Address | None = None
    bad_rows: str = "stop"
    every: int = 100_000
    """Rows from one checkpoint to the next, at most."""
    asked: Asked = NOTHING_ASKED
    """What predictions are to have beside them."""
    follow: Follow = FOLLOWED
    """How a broker is read."""
    labels: str | Source | None = None
    """Where labels come from that come by key."""
    every_seconds: float = math.inf
    """Seconds from one checkpoint to the next, at most, as far as rows come."""

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(f"every={self.every}: needs a number of rows from 1")
        if not self.every_seconds > 0.0:
            raise ValueError(f"every_seconds={self.every_seconds}: needs a time > 0")
        if not isinstance(self.predictions, Address):
            check_format(self.predictions)
        if self.asked != NOTHING_ASKED and self.predictions is None:
            raise ValueError("--keep-columns and --explain are columns of predictions: say where these go, --predictions FILE")
        if self.checkpoint is not None:  # it is written behind the first rows: too late to hear that it cannot be
            if self.checkpoint.is_dir():
                raise ValueError(f"checkpoint={self.checkpoint}: a directory; name a file in it")
            if not self.checkpoint.parent.is_dir():
                raise ValueError(f"checkpoint={self.checkpoint}: {self.checkpoint.parent} is no directory; make it first")
        outputs = {"predictions": self.predictions, "checkpoint": self.checkpoint, "bad_rows": bad_rows_file(self.bad_rows)}
        named = {name: given for name, given in (("source", self.source), ("labels", self.labels)) if isinstance(given, str)}
        refuse_overwriting(named, outputs)
        if self.labels == self.source == STANDARD_INPUT:
            raise ValueError("rows and labels cannot both be standard input: give one of them as a file or a named pipe")


def bad_rows_file(policy: str) -> Path | Address | None:
    """Where bad rows are written to, if they are."""
    return None if policy in FILELESS else place_of(policy)


def place_of(text: str) -> Path | Address:
    """A file by its name, or topics or streams by their address."""
    return address_of(text) if is_address(text) else Path(text)


def refuse_overwriting(inputs: Mapping[str, Where], outputs: Mapping[str, Where]) -> None:
    """Refuse an output that is an input, lies in a folder that is read, or is another output too.

    Files are told by what they are, through links and in any spelling. The keys are what a message calls them.
    """
    places = [_place(given) for given in inputs.values() if given is not None]
    read = {itself: f"{place}, which is read" for place in places for itself in _identities(place)}
    folders = {_identity(path): path for path in places if isinstance(path, Path) and path.is_dir()}
    for folder in folders.values():
        read |= {_identity(Path(part.path)): f"{part.path}, which is read" for part in os.scandir(folder) if part.is_file()}
    taken: dict[object, str] = {}
    for name, given in outputs.items():
        if given is None or str(given) == STANDARD_OUTPUT:
            continue
        path, written = _place(given), set[object]()
        for own in (path,) if isinstance(path, Address) else files_of(path):
            written |= (themselves := _identities(own))
            if found := themselves & read.keys():
                does = "writes to" if isinstance(path, Address) else "would overwrite"
                raise ValueError(f"{name} {path} {does} {read[found.pop()]}: name another")
            if found := themselves & taken.keys():
                raise ValueError(f"{name} {path} is the file of {taken[found.pop()]} too: give each one of its own")
            if isinstance(own, Path) and _identity(own.parent) in folders:
                raise ValueError(f"{name} {path} lies in the folder that is read, as if it were data: name a file elsewhere")
        taken |= dict.fromkeys(written, name)


def _place(given: str | Path | Address) -> Path | Address:
    return place_of(given) if isinstance(given, str) else given


def _identities(place: Path | Address) -> set[object]:
    """The same for two names of one file, or of a topic or stream at one host."""
    if isinstance(place, Address):
        return set(place.identities)
    return {_identity(place)}


def _identity(path: Path) -> object:
    """The same for two names of one file. A file still to be made is its folder and its name; a device is never the same."""
    try:
        found = os.fstat(sys.stdin.fileno()) if str(path) == STANDARD_INPUT else Path(path).stat()
    except (OSError, ValueError, AttributeError):
        return os.path.normcase(os.path.realpath(path))
    if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
        return found.st_dev, found.st_ino
    return object()
