"""Rows as lines of CSV or NDJSON, written as they come."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from onlinevi.runs.lines import Lines


class TextTable:
    """Turns rows into text."""

    def __init__(self, names: Iterable[str], write: Callable[[str], Any], *, as_json: bool = False) -> None:
        self._names, self._write, self._json = tuple(names), write, as_json

    def head(self) -> None:
        """Before the first row."""
        if not self._json:
            self._write(",".join(self._names) + "\n")

    def add(self, columns: Sequence[Iterable[Any]]) -> None:
        table = zip(*columns, strict=True)
        if self._json:
            self._write("".join(json.dumps(dict(zip(self._names, map(_plain, row), strict=True))) + "\n" for row in table))
        else:
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows(table)
            self._write(text.getvalue())

    def finish(self) -> None:
        """Lines are all there as they are."""


class TextFile(TextTable):
    """The same in a file, which goes on from a ``place``."""

    def __init__(self, path: Path, names: Iterable[str], place: dict[str, Any] | None, *, as_json: bool) -> None:
        self._lines = Lines(path, place)
        super().__init__(names, self._lines.write, as_json=as_json)
        if not self.place()["bytes"]:
            self.head()

    def place(self) -> dict[str, Any]:
        return self._lines.place()

    def close(self) -> None:
        self._lines.close()


def _plain(value: Any) -> Any:
    """JSON has no infinity, which an interval has before the first label."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
