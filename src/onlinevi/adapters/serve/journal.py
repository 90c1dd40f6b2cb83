"""The journal of a model: every event in order, on disk before it is acknowledged, and the rows that wait for their labels.

SQLite with a write-ahead log and ``synchronous=FULL``: a transaction that was committed is there after a loss of power. Each
event carries a sum of itself and of all before it, so that a journal that was changed or damaged is found where it was.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

FORMAT = 1
"""The version of the tables."""
NOTHING = b""
"""The sum before the first event."""
REPLAYED = 4096
"""Events that a replay reads at a time."""

TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    number INTEGER PRIMARY KEY, id TEXT, came REAL NOT NULL, row TEXT NOT NULL, sum BLOB NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS events_by_id ON events (id) WHERE id IS NOT NULL;
CREATE TABLE IF NOT EXISTS waiting (
    place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, came REAL NOT NULL, row TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS undone (
    rollback INTEGER NOT NULL, number INTEGER NOT NULL, id TEXT, came REAL NOT NULL, row TEXT NOT NULL,
    PRIMARY KEY (rollback, number)
) WITHOUT ROWID;
"""

Connect: TypeAlias = Callable[[Path], Any]


class DamagedJournal(ValueError):
    """A journal that cannot be trusted: what was read of it is wrong."""


class Event(NamedTuple):
    """A row with its label under the target's name, as a line of JSON, as it was acknowledged; ``number`` counts from 1."""

    number: int
    id: str | None
    line: str


def connect(path: Path) -> Any:
    """A connection whose transactions are told one by one, for one thread at a time."""
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False)


class Journal:
    """The events of one model. One thread writes; what is not committed is as if it had not been said.

    ``connection`` opens the file; whatever has ``execute`` as SQLite's connections have it will do.
    """

    def __init__(self, path: Path, connection: Connect = connect) -> None:
        self.path = path
        self._on = connection(path)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=4000"):
            self._all(f"PRAGMA {pragma}")
        for statement in TABLES.split(";\n"):
            if statement.strip():
                self._all(statement)
        known = self.fact("format")
        if known is None:
            with self.writing():
                self.note("format", FORMAT)
        elif known != FORMAT:
            raise DamagedJournal(f"{path}: its format is {known}, this onlinevi knows {FORMAT}: upgrade it")
        self._find_end()

    def _find_end(self) -> None:
        last = self._one("SELECT number, sum FROM events ORDER BY number DESC LIMIT 1")
        self.count: int = 0 if last is None else last[0]
        """How many events it has, those of a transaction that goes on included."""
        self._sum = NOTHING if last is None else self._as_sum(last[1])
        self.waiting: int = self._one("SELECT count(*) FROM waiting")[0]
        """How many rows wait for their labels."""

    # --- writing

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction: on disk as a whole when the block ends, or not at all."""
        self._all("BEGIN IMMEDIATE")
        try:
            yield
            self._all("COMMIT")
        except BaseException:
            self._undo()
            raise

    def _undo(self) -> None:
        """Back to what is on disk. SQLite may have undone the transaction by itself, as it does when a disk is full."""
        try:
            self._all("ROLLBACK")
        except Exception as error:
            if "no transaction" not in str(error):
                raise
        finally:
            if hasattr(self, "count"):
                self._find_end()

    def add(self, id: str | None, line: str, came: float) -> int:  # noqa: A002
        """The next event, whose number is given back; a row that waited under this id waits no more."""
        number = self.count + 1
        chained = _chained(self._sum, number, id, line)
        self._all("INSERT INTO events VALUES (?, ?, ?, ?, ?)", (number, id, came, line, chained))
        if id is not None and self.waiting:
            self.waiting -= len(self._all("DELETE FROM waiting WHERE id = ? RETURNING 1", (id,)))
        self.count, self._sum = number, chained
        return number

    def wait(self, id: str, line: str, came: float) -> None:  # noqa: A002
        """Keep a row until its label comes."""
        self._all("INSERT INTO waiting (id, came, row) VALUES (?, ?, ?)", (id, came, line))
        self.waiting += 1

    def purge(self, most: int, since: float) -> int:
        """Let go of rows that have waited since before this time, and of the oldest beyond so many; how many these were."""
        fresh = self._one("SELECT place FROM waiting WHERE came >= ? ORDER BY place LIMIT 1", (since,))
        if fresh is None:
            gone = len(self._all("DELETE FROM waiting RETURNING 1"))
        else:
            gone = len(self._all("DELETE FROM waiting WHERE place < ? RETURNING 1", fresh))
        if (beyond := self.waiting - gone - most) > 0:
            oldest = "SELECT place FROM waiting ORDER BY place LIMIT ?"
            gone += len(self._all(f"DELETE FROM waiting WHERE place IN ({oldest}) RETURNING 1", (beyond,)))
        self.waiting -= gone
        return gone

    def note(self, name: str, value: Any) -> None:
        """Keep a fact: a JSON value under a name."""
        self._all("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value)))

    def undo_behind(self, number: int) -> int:
        """Take back all events behind this one, which are kept apart; how many these were."""
        lost = self.count - number
        rollback = 1 + (self._one("SELECT max(rollback) FROM undone")[0] or 0)
        self._all(
            "INSERT INTO undone SELECT ?, number, id, came, row FROM events WHERE number > ?",
            (rollback, number),
        )
        self._all("DELETE FROM events WHERE number > ?", (number,))
        self._find_end()
        return lost

    # --- reading

    def fact(self, name: str) -> Any:
        """A fact that was noted; None where there is none."""
        found = self._one("SELECT value FROM facts WHERE name = ?", (name,))
        try:
            return None if found is None else json.loads(found[0])
        except (TypeError, ValueError):
            raise DamagedJournal(f"{self.path}: its {name} cannot be read: put back a copy of the file") from None

    def event_of(self, id: str) -> Event | None:  # noqa: A002
        """The event of this id."""
        found = self._one("SELECT number, id, row FROM events WHERE id = ?", (id,))
        return None if found is None else Event(*found)

    def ids_behind(self, number: int, most: int) -> list[str]:
        """The ids of the first events behind this one that have any."""
        found = self._all("SELECT id FROM events WHERE number > ? AND id IS NOT NULL ORDER BY number LIMIT ?", (number, most))
        return [id_ for (id_,) in found]

    def waiting_line(self, id: str) -> str | None:  # noqa: A002
        """The row that waits under this id."""
        found = self._one("SELECT row FROM waiting WHERE id = ?", (id,))
        return None if found is None else str(found[0])

    def sum_behind(self, number: int) -> bytes | None:
        """The sum behind this event; None where there is no such."""
        if number == 0:
            return NOTHING
        found = self._one("SELECT sum FROM events WHERE number = ?", (number,))
        return None if found is None else self._as_sum(found[0])

    def _as_sum(self, value: Any) -> bytes:
        """A sum, where a damaged page has not something else in its place."""
        if not isinstance(value, bytes):
            raise DamagedJournal(f"{self.path}: the sum of an event cannot be read: put back a copy of the file")
        return value

    def events(self, behind: int = 0, until: int | None = None) -> Iterator[list[Event]]:
        """The events behind this one in order, some at a time; ``DamagedJournal`` where one is not what was acknowledged."""
        known = self.sum_behind(behind)
        if known is None:
            raise DamagedJournal(f"{self.path}: event {behind} is not there: put back a copy of the file")
        end = self.count if until is None else until
        while behind < end:
            found = self._all(
                "SELECT number, id, row, sum FROM events WHERE number > ? ORDER BY number LIMIT ?",
                (behind, min(REPLAYED, end - behind)),
            )
            block = []
            for number, id_, text, chained in found:
                known = _chained(known, behind + 1, id_, text)
                if number != behind + 1 or known != chained:
                    raise DamagedJournal(
                        f"{self.path}: event {behind + 1} is not what was acknowledged: put back a copy of the file"
                    )
                block.append(Event(number, id_, text))
                behind = number
            if not block:
                raise DamagedJournal(f"{self.path}: events {behind + 1} to {end} are not there: put back a copy of the file")
            yield block

    def took_back(self, number: int) -> bool:
        """Whether there was an event of this number that was taken back."""
        return self._one("SELECT 1 FROM undone WHERE number = ? LIMIT 1", (number,)) is not None

    def check(self) -> None:
        """Refuse a file whose pages are damaged, or one of whose events is not what was acknowledged."""
        found = self._all("PRAGMA quick_check(1)")
        if found[0][0] != "ok":
            raise DamagedJournal(f"{self.path}: the file is damaged ({found[0][0]}): put back a copy of it")
        for _ in self.events():
            pass

    def close(self) -> None:
        self._on.close()

    def _all(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            return list(self._on.execute(statement, values))
        except sqlite3.DatabaseError as error:
            # A full disk or a lock is an error of another kind: nothing is wrong with the file.
            if type(error) is not sqlite3.DatabaseError and "decode" not in str(error):
                raise
            raise DamagedJournal(f"{self.path}: the file is damaged ({error}): put back a copy of it") from error

    def _one(self, statement: str, values: Sequence[Any] = ()) -> Any:
        found = self._all(statement, values)
        return found[0] if found else None


def _chained(before: bytes, number: int, id: str | None, text: str) -> bytes:  # noqa: A002
    content = f"{number}\0{'' if id is None else '+' + id}\0{text}".encode(errors="surrogatepass")
    return blake2b(before + content, digest_size=16).digest()
