"""Files on this machine as a source: one file, a folder of parts, or standard input."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

from onlinevi.data.sources.base import Part
from onlinevi.data.sources.refused import BadInput
from onlinevi.engine import did_you_mean

STANDARD_INPUT = "-"


class Files:
    """A file, the files of a folder in the order of their names, or ``-`` for standard input, which stays open."""

    def __init__(self, path: str | Path) -> None:
        self.name = str(path)
        self._paths = [] if self.name == STANDARD_INPUT else _listed(Path(path))

    def parts(self) -> Generator[Part]:
        if self.name == STANDARD_INPUT:
            if sys.stdin is None:
                raise BadInput("standard input is closed: pipe rows into it, or name a file")
            yield Part("standard input", sys.stdin.buffer, live=not _is_regular(sys.stdin.buffer))
        for path in self._paths:
            with io.FileIO(path) as file:
                live = not _is_regular(file)
                yield Part(str(path), file, live, None if live else path)


def _listed(path: Path) -> list[Path]:
    """The file itself, or a folder's files, without hidden ones and ``_SUCCESS`` marks."""
    if not path.exists():
        beside = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
        raise FileNotFoundError(f"{path}: no such file or folder{did_you_mean(path.name, beside)}; '-' reads standard input")
    if not path.is_dir():
        return [path]
    paths = sorted((part for part in path.iterdir() if part.is_file() and part.name[0] not in "._"), key=str)
    if not paths:
        raise FileNotFoundError(f"{path}: the folder holds no files")
    return paths


def may_pause(source: str | Path) -> bool:
    """Whether a source is a pipe or the like, whose next rows may take their time."""
    if str(source) == STANDARD_INPUT:
        return sys.stdin is not None and not _is_regular(sys.stdin.buffer)
    path = Path(source)
    return path.exists() and not path.is_file() and not path.is_dir()


def _is_regular(opened: Any) -> bool:
    try:
        return stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
    except (OSError, ValueError):  # not of the operating system: it never waits
        return True
