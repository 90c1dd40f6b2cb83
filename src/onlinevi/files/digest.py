"""What was read, as a checksum that grows with it."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from onlinevi.files.refused import BadInput


class Position(NamedTuple):
    """How far a stream has been read: rows delivered or refused, and the sha256 of the first ``bytes`` bytes of its source."""

    source: str
    rows: int
    bytes: int
    sha256: str


class Digest:
    """The sha256 of the bytes so far, as they are stored. ``expected`` is a position these bytes have to pass through."""

    def __init__(self, expected: Position | None = None) -> None:
        self.bytes = 0
        self._sha = hashlib.sha256()
        self._expected = expected

    def add(self, data: bytes) -> None:
        if self._expected is not None and self.bytes + len(data) >= self._expected.bytes:
            before = self._expected.bytes - self.bytes
            self._take(data[:before])
            data = data[before:]
            self._check(self._expected)
        self._take(data)

    @property
    def sha256(self) -> str:
        return self._sha.hexdigest()

    def finish(self) -> None:
        """At the end of the source: a position beyond it was never passed."""
        if self._expected is not None:
            raise BadInput(f"the source ends after {self.bytes} bytes, {self._expected.bytes} were read before: it was cut")

    def _take(self, data: bytes) -> None:
        self._sha.update(data)
        self.bytes += len(data)

    def _check(self, expected: Position) -> None:
        if self.sha256 != expected.sha256:
            raise BadInput(
                f"the first {expected.bytes} bytes are not those read before (sha256 {self.sha256[:12]}…, then "
                f"{expected.sha256[:12]}…): resume from the same source, or start anew"
            )
        self._expected = None
