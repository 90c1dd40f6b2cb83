"""A text file that grows, and goes back to where it was at a checkpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


class Lines:
    """A new file; or, resumed from a ``place`` of it, what was written since is cut off."""

    def __init__(self, path: Path, place: dict[str, Any] | None = None) -> None:
        self.path = path
        kept = place["bytes"] if place is not None and place["path"] == str(path) else 0
        found = path.stat().st_size if path.exists() else 0
        if found < kept:
            raise ValueError(f"{path} has {found} bytes, it had {kept} at the checkpoint: name another file, or start anew")
        self._file = path.open("r+b" if kept else "wb")
        self._file.truncate(kept)
        self._file.seek(kept)

    def write(self, text: str) -> None:
        self._file.write(text.encode())

    def place(self) -> dict[str, Any]:
        """Which file it is and how many bytes it has, all of them on disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return {"path": str(self.path), "bytes": self._file.tell()}

    def close(self) -> None:
        self._file.close()
