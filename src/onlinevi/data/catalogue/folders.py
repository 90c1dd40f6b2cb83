"""Where files are looked for, and how they are written."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, NamedTuple

VARIABLE = "ONLINEVI_DATA"
EXTRA = "pip install 'onlinevi[data]'"


class Folder(NamedTuple):
    """A place that may hold files; without a path, ``absent`` says why."""

    label: str
    path: Path | None
    absent: str


def searched() -> tuple[Folder, Folder]:
    """In the order of the search: the user's own folder, then the cache."""
    own = os.environ.get(VARIABLE)
    return (
        Folder(VARIABLE, Path(own).expanduser() if own else None, "not set"),
        Folder("the user's cache", user_cache(), f"unknown without platformdirs: {EXTRA}"),
    )


def user_cache() -> Path | None:
    """Where downloads and parsed files are kept; None without platformdirs, which knows it for every system."""
    try:
        platformdirs = importlib.import_module("platformdirs")
    except ModuleNotFoundError:
        return None
    return Path(platformdirs.user_cache_dir("onlinevi"))


def write_atomically(target: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Nothing appears under the target's name before it is whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, unfinished = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        Path(unfinished).replace(target)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
