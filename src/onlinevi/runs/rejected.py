"""Rows that were not learned from: counted, perhaps written down, and never twice, however often a run is resumed."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from onlinevi.data import Policy, Refused, Stop, address_of, is_address
from onlinevi.runs.sent import PlaceOf, Sent, key_of
from onlinevi.runs.writers import ResumableFile

MISSING = "missing"
"""The policy that skips bad rows, but for those with a cell that is not of its column's kind: such a cell is missing."""
FILELESS = ("stop", "skip", MISSING)
"""Policies that are no files."""
FIRST = 20
"""So many are kept to be shown."""


class Ahead:
    """Rows of one source that cannot be used. A reader looks ahead, so a row counts only when the run has come to it."""

    def __init__(self, stop: Policy | None, count: Callable[[Refused], None]) -> None:
        self._stop, self._count = stop, count
        self._ahead: list[Refused] = []
        self._lock = threading.Lock()
        self.place_of: PlaceOf = lambda row: None
        """What the source calls a row."""

    def __call__(self, refused: Refused) -> None:
        if refused.place is None:
            refused = refused._replace(place=self.place_of(refused.row))
        if self._stop is not None:
            self._stop(refused)
        with self._lock:  # a source that may pause is read in a thread of its own
            self._ahead.append(refused)

    def settle(self, rows: int | None = None) -> int:
        """Count the rows before this one, or all; the number behind the last of them, 0 if there was none."""
        with self._lock:
            due = [refused for refused in self._ahead if rows is None or refused.row < rows]
            if due:
                self._ahead = [] if rows is None else [refused for refused in self._ahead if refused.row >= rows]
        for refused in due:
            self._count(refused)
        return max((refused.row + 1 for refused in due), default=0)


class Rejected(Ahead):
    """A policy for bad rows: "stop", "skip", "missing", or the file or the address that they are written to, as lines of JSON;
    goes on from ``saved``. Rows of a second source, whose numbers are their own, go to ``beside``, and are counted too.
    """

    def __init__(self, policy: str = "stop", saved: dict[str, Any] | None = None) -> None:
        before = saved or {"count": 0, "reasons": {}, "first": [], "file": None}
        super().__init__(Stop() if policy == "stop" else None, self._take)
        self.beside = Ahead(self._stop, self._take)
        self._file = None if policy in FILELESS or is_address(policy) else ResumableFile(Path(policy), before["file"])
        self._sent = Sent(address_of(policy)) if is_address(policy) else None
        self._place: dict[str, Any] | None = before["file"]
        """Of that file, once it is closed."""
        self.odd: Literal["refuse", "missing"] = "missing" if policy == MISSING else "refuse"
        """What becomes of cells that are not of their column's kind."""
        self.as_missing: int = before.get("as_missing", 0)
        """How many of them were taken as missing."""
        self.count: int = before["count"]
        self.reasons: Counter[str] = Counter(before["reasons"])
        self.first: list[dict[str, Any]] = before["first"]

    def go_on(self, earlier: Rejected) -> None:
        """Count on from the rows that another run left out."""
        self.count, self.reasons, self.first = earlier.count, earlier.reasons, earlier.first
        self.as_missing = earlier.as_missing

    def _take(self, refused: Refused) -> None:
        """Count a row to which the run has come."""
        self.count += 1
        self.reasons[refused.reason] += 1
        if len(self.first) < FIRST:
            self.first.append({"row": refused.row, "reason": refused.reason, "column": refused.column})
        text = json.dumps(refused.to_json(), ensure_ascii=False)
        if self._file is not None:
            self._file.write(text + "\n")
        if self._sent is not None:
            self._sent.write(key_of(refused.row, refused.place), text)

    def flush(self) -> None:
        """What was written down can be read."""
        for out in (self._file, self._sent):
            if out is not None:
                out.flush()

    def to_json(self) -> dict[str, Any]:
        """The counts, and how far its file has been written; what was sent to a broker has been delivered."""
        if self._sent is not None:
            self._sent.place()
        place = self._place if self._file is None else self._file.place()
        left_out = {"count": self.count, "reasons": dict(self.reasons), "first": self.first, "file": place}
        return left_out | ({"as_missing": self.as_missing} if self.as_missing else {})

    def close(self) -> None:
        if self._file is not None:
            self._place = self._file.place()
            self._file.close()
            self._file = None
        if self._sent is not None:
            sent, self._sent = self._sent, None
            with closing(sent):
                sent.place()
