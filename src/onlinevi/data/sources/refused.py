"""Rows that cannot be read, and what becomes of them: stop, skip, or collect. None is dropped without a word."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

SHOWN = 80
"""How many characters of a bad row a message shows."""


class Refused(NamedTuple):
    """A row that was not delivered, and why. ``row`` counts the data rows of the whole stream from 0."""

    source: str
    row: int
    column: str | None
    reason: str
    text: str
    line: int | None = None
    """Its line in the file, from 1, where the format has lines."""
    place: Mapping[str, Any] | None = None
    """What its source calls it, where it has names for rows: a topic, a partition and an offset, a stream and an id."""

    def __str__(self) -> str:
        place = f"{self.source}, row {self.row}"
        place += f" (line {self.line})" if self.line is not None else ""
        place += "".join(f", {name} {value}" for name, value in (self.place or {}).items())
        place += f", column {self.column!r}" if self.column is not None else ""
        text = self.text if len(self.text) <= SHOWN else self.text[:SHOWN] + "…"
        return f"{place}: {self.reason}" + (f"; it reads {text!r}" if text else "")

    def to_json(self) -> dict[str, Any]:
        """As it is written down."""
        told = self._asdict()
        return told | (told.pop("place") or {})


class BadInput(ValueError):
    """A file that cannot be read on. ``refused`` is the row at fault, where it was one; ``learned`` what the rows before it
    have taught, where the caller would not have it otherwise."""

    def __init__(self, message: str, refused: Refused | None = None) -> None:
        super().__init__(message)
        self.refused, self.learned = refused, cast(Any, None)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.refused)


Policy: TypeAlias = Callable[[Refused], None]
"""Called with every refused row, in order; returns to go on without it, or raises."""


class Stop:
    """Raise ``BadInput`` at the first bad row; the rows before it have been delivered."""

    def __call__(self, refused: Refused) -> None:
        raise BadInput(f"{refused}. Mend the row, or choose a policy that skips or collects bad rows", refused)


class Skip:
    """Go on without the row; ``count`` says how many there were, ``first`` which came first."""

    def __init__(self) -> None:
        self.count = 0
        self.first: Refused | None = None

    def __call__(self, refused: Refused) -> None:
        self.count += 1
        self.first = self.first or refused


class Collect(Skip):
    """Append the row to a file as one line of JSON, and go on. Each line is written at once."""

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self.path = Path(path)

    def __call__(self, refused: Refused) -> None:
        super().__call__(refused)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(refused.to_json(), ensure_ascii=False) + "\n")
