"""A file that is there as a whole, the old one or the new one, whenever the machine stops."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def replace_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Put what ``write`` writes in the place of ``path``: under another name first, on disk before it gets this one."""
    target = path.resolve()  # a link stays a link
    partial = target.with_name(f".{target.name}.{secrets.token_hex(8)}.partial")
    try:
        with os.fdopen(
            os.open(partial, NEW_FILE, 0o666), "w+b"
        ) as file:  # the umask takes away from 0o666, as for any new file
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            partial.chmod(stat.S_IMODE(target.stat().st_mode))
        partial.replace(target)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:  # the other name would say nothing
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    sync_directory(target.parent)


def replace_text(path: Path, text: str) -> None:
    """Put a text in the place of ``path``."""
    # A path may hold bytes that are no text: half a character, which is written as JSON and HTML's scripts do.
    replace_file(path, lambda file: file.write(text.encode(errors="backslashreplace")))


def replace_figure(path: Path, figure: Any, **settings: Any) -> None:
    """Put a matplotlib figure in the place of ``path``, in the format that its name says."""
    replace_file(path, lambda file: figure.savefig(file, format=path.suffix[1:], **settings))


def sync_directory(directory: Path) -> None:
    """The new name is on disk too."""
    if os.name == "nt":  # directories cannot be opened there
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
