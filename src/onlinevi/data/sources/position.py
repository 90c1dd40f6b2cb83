"""How far a source has been read: the checksum of what was read, which grows with it, or what the source goes on from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from onlinevi.data.sources.refused import BadInput

FIRST_PREFIX = 4096
"""The shortest beginning with a sum of its own: shorter ones may be a header alone."""


class Sums(NamedTuple):
    """The sha256 of the first bytes of a source."""

    bytes: int = 0
    sha256: str = ""
    prefixes: tuple[tuple[int, str], ...] = ()
    """The sha256 of the first 2^k bytes, for each k: by these, sources read to different ends are known as one."""


class Mark(Protocol):
    """What a source goes on from behind each of the rows that were read last."""

    def behind(self, rows: int) -> Any:
        """What it goes on from behind so many rows of the stream: a value that JSON has a word for."""

    def place(self, row: int) -> Mapping[str, Any] | None:
        """What the source calls one of them, where it is known."""


class Kept(NamedTuple):
    """A mark that was kept in a checkpoint."""

    value: Any

    def behind(self, rows: int) -> Any:
        return self.value

    def place(self, row: int) -> None:
        return None


class Position(NamedTuple):
    """How far a stream has been read: rows delivered or refused, and the sha256 of the first ``bytes`` bytes of its source."""

    source: str
    rows: int
    bytes: int
    sha256: str
    prefixes: tuple[tuple[int, str], ...] = ()
    """The sha256 of the first 2^k bytes, for each k: by these, sources read to different ends are known as one."""
    mark: Mark | None = None
    """What the source goes on from, where it need not be read from its beginning again."""

    @property
    def place(self) -> Any:
        """What the source goes on from behind these rows; None where it is read again."""
        return None if self.mark is None else self.mark.behind(self.rows)

    def begins_like(self, other: Position) -> bool:
        """Whether both were read from one source, as far as sums tell: they agree on the longest beginning that both have.
        Of a broker there are no sums, but its name."""
        if self.mark is not None or other.mark is not None:
            return self.source == other.source
        sums, other_sums = (dict([*position.prefixes, (position.bytes, position.sha256)]) for position in (self, other))
        common = sums.keys() & other_sums.keys()
        return bool(common) and sums[max(common)] == other_sums[max(common)]

    def to_json(self) -> list[Any]:
        """The position as a checkpoint keeps it."""
        prefixes = [list(prefix) for prefix in self.prefixes]
        return [*self[:4], prefixes, *([] if self.mark is None else [self.place])]

    @staticmethod
    def from_json(saved: list[Any]) -> Position:
        """The position that ``to_json`` gave; before there were prefixes it had four parts."""
        source, rows, size, sha256, *more = saved
        prefixes = tuple((length, prefix) for part in more[:1] for length, prefix in part)
        return Position(source, rows, size, sha256, prefixes, Kept(more[1]) if more[1:] else None)


class Digest:
    """The sha256 of the bytes so far, as they are stored. ``expected`` is a position these bytes have to pass through."""

    def __init__(self, expected: Position | None = None) -> None:
        self.bytes = 0
        self.prefixes: tuple[tuple[int, str], ...] = ()
        self._sha = hashlib.sha256()
        self._expected = expected

    def add(self, data: bytes) -> None:
        """Take the next bytes in; the bytes up to the expected position are compared as soon as they are there."""
        if self._expected is not None and self.bytes + len(data) >= self._expected.bytes:
            before = self._expected.bytes - self.bytes
            self._take(data[:before])
            data = data[before:]
            self._check(self._expected)
        self._take(data)

    @property
    def sha256(self) -> str:
        return self._sha.hexdigest()

    @property
    def sums(self) -> Sums:
        return Sums(self.bytes, self.sha256, self.prefixes)

    def finish(self) -> None:
        """Refuse a source that has ended before the expected position."""
        if self._expected is not None:
            raise BadInput(f"the source ends after {self.bytes} bytes, {self._expected.bytes} were read before: it was cut")

    def _take(self, data: bytes) -> None:
        while self.bytes + len(data) >= (mark := FIRST_PREFIX << len(self.prefixes)):
            before, data = data[: mark - self.bytes], data[mark - self.bytes :]
            self._sha.update(before)
            self.bytes = mark
            self.prefixes += ((mark, self.sha256),)
        self._sha.update(data)
        self.bytes += len(data)

    def _check(self, expected: Position) -> None:
        if self.sha256 != expected.sha256:
            raise BadInput(
                f"the first {expected.bytes} bytes are not those read before (sha256 {self.sha256[:12]}…, then "
                f"{expected.sha256[:12]}…): resume from the same source, or start anew"
            )
        self._expected = None
