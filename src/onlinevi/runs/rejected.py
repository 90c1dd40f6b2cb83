"""Rows that were not learned from: counted, perhaps written down, and never twice, however often a run is resumed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Literal

from onlinevi.data import Policy, Refused, Stop
from onlinevi.runs.writers import ResumableFile

MISSING = "missing"
"""The policy that skips bad rows, but for those with a cell that is not of its column's kind: such a cell is missing."""
FILELESS = ("stop", "skip", MISSING)
"""Policies that are no files."""
FIRST = 20
"""So many are kept to be shown."""


class Rejected:
    """A policy for bad rows: "stop", "skip", "missing" or the file that they are written to, as lines of JSON; goes on from
    ``saved``.

    A reader looks ahead, so a row counts only when the run has come to it.
    """

    def __init__(self, policy: str = "stop", saved: dict[str, Any] | None = None) -> None:
        before = saved or {"count": 0, "reasons": {}, "first": [], "file": None}
        self._stop: Policy | None = Stop() if policy == "stop" else None
        self._file = None if policy in FILELESS else ResumableFile(Path(policy), before["file"])
        self._ahead: list[Refused] = []
        self.odd: Literal["refuse", "missing"] = "missing" if policy == MISSING else "refuse"
        """What becomes of cells that are not of their column's kind."""
        self.as_missing: int = before.get("as_missing", 0)
        """How many of them were taken as missing."""
        self.count: int = before["count"]
        self.reasons: Counter[str] = Counter(before["reasons"])
        self.first: list[dict[str, Any]] = before["first"]

    def __call__(self, refused: Refused) -> None:
        if self._stop is not None:
            self._stop(refused)
        self._ahead.append(refused)

    def go_on(self, earlier: Rejected) -> None:
        """Count on from the rows that another run left out."""
        self.count, self.reasons, self.first = earlier.count, earlier.reasons, earlier.first
        self.as_missing = earlier.as_missing

    def settle(self, rows: int | None = None) -> int:
        """Count the rows before this one, or all; the number behind the last of them, 0 if there was none."""
        due = [refused for refused in self._ahead if rows is None or refused.row < rows]
        self._ahead = [] if rows is None else [refused for refused in self._ahead if refused.row >= rows]
        for refused in due:
            self.count += 1
            self.reasons[refused.reason] += 1
            if len(self.first) < FIRST:
                self.first.append({"row": refused.row, "reason": refused.reason, "column": refused.column})
            if self._file is not None:
                self._file.write(json.dumps(refused._asdict(), ensure_ascii=False) + "\n")
        return max((refused.row + 1 for refused in due), default=0)

    def flush(self) -> None:
        """What was written down can be read."""
        if self._file is not None:
            self._file.flush()

    def to_json(self) -> dict[str, Any]:
        """The counts, and how far its file has been written."""
        place = None if self._file is None else self._file.place()
        left_out = {"count": self.count, "reasons": dict(self.reasons), "first": self.first, "file": place}
        return left_out | ({"as_missing": self.as_missing} if self.as_missing else {})

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
