"""Redis's streams, read and written by redis-py: behind ids that are ours, with a count by which no gap goes unseen."""

from __future__ import annotations

import json
import os
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from onlinevi.data.brokers.address import Address, Scheme
from onlinevi.data.brokers.base import LOG, PATIENCE, Broker, Follow, Log, Sender, lost, patiently
from onlinevi.data.brokers.merge import Lane, Message
from onlinevi.data.formats import objects_piece
from onlinevi.data.sources import BadInput, Piece, ReadOptions, Refused
from onlinevi.data.values import arrow

USER, PASSWORD, CERTIFICATES = "ONLINEVI_REDIS_USERNAME", "ONLINEVI_REDIS_PASSWORD", "ONLINEVI_REDIS_CA"
"""The variables of the environment with who asks, and with the certificates to trust of ``rediss://``."""
TLS_FILES = {
    "ssl_ca_certs": CERTIFICATES,
    "ssl_certfile": "ONLINEVI_REDIS_CERTIFICATE",
    "ssl_keyfile": "ONLINEVI_REDIS_KEY",
}
"""Those with files of ``rediss://``, the last two where the server wants to know who asks by a certificate."""
MOMENT = 1000
"""Milliseconds that are waited for an entry at a time."""
PAGE = 10_000
TOGETHER = 1000
"""Messages that wait to be sent at once."""
BEGIN = 0, 0
"""Before every id."""
JSON = b"json"
"""An entry with this field is a row as JSON; any other is one of text, its fields the columns."""


def server(address: Address) -> Any:
    """The module ``redis`` and a connection, which is made when it is first used."""
    try:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('Redis needs redis-py: pip install "onlinevi[redis]"') from error
    host, port = address.hosts[0]
    secure = (
        {"ssl": True} | {name: _file(variable) for name, variable in TLS_FILES.items()} if address.scheme == "rediss" else {}
    )
    who = {"username": os.environ.get(USER), "password": os.environ.get(PASSWORD)}
    own = redis.Redis(
        host, port, protocol=2, socket_timeout=10.0, socket_connect_timeout=5.0, retry=Retry(NoBackoff(), 0), **who, **secure
    )
    for command in ("XREAD", "XRANGE", "XINFO STREAM"):  # as they come: fields in their order, twice where they come twice
        own.set_response_callback(command, lambda answer, **_: answer)
    return redis, own


def _file(variable: str) -> str | None:
    """The file that the environment names."""
    path = os.environ.get(variable)
    if path is not None and not Path(path).is_file():
        raise ValueError(f"{variable}={path}: no such file")
    return path


def asked(address: Address, redis: Any, call: Callable[[], Any], patience: float = float("inf")) -> Any:
    """The server's answer; while it is away, or has no memory left, try again."""

    def ask() -> Any:
        try:
            return call()
        except redis.AuthenticationError as error:
            raise BadInput(f"{address.bare}: {error}; set {PASSWORD}, and {USER} where there are users") from error
        except redis.ConnectionError as error:
            if isinstance(error.__cause__ or error.__context__, ssl.SSLCertVerificationError):
                raise BadInput(f"{address.bare}: {error} To trust its certificate, set {CERTIFICATES}=FILE") from error
            raise

    away = (redis.ConnectionError, redis.TimeoutError, redis.OutOfMemoryError)  # busy loading is one of them
    try:
        return patiently(address.bare, ask, away, patience)
    except redis.RedisError as error:
        raise BadInput(f"{address.bare}: {error}") from error


class Redis(Broker):
    """Streams of Redis: each entry is a row, its fields the columns, or one field ``json``. Several are read in the order of
    their ids."""

    schemes: ClassVar = dict.fromkeys(("redis", "rediss"), Scheme(6379, "stream", PASSWORD))

    def connect(self, marks: Any, batch_rows: int) -> Log:
        return _RedisLog(self.address, self.follow, marks, batch_rows)

    @staticmethod
    def sender(address: Address) -> Sender:
        return _RedisSender(address)


class Id(NamedTuple):
    """The id of an entry; ids of a stream ascend."""

    time: int
    number: int

    def __str__(self) -> str:
        return f"{self.time}-{self.number}"

    @staticmethod
    def of(told: bytes | str) -> Id:
        time, _, number = (told if isinstance(told, str) else told.decode()).partition("-")
        return Id(int(time), int(number))


class Mark(NamedTuple):
    """Where a stream goes on: behind this entry, the nth that was ever added."""

    at: Id
    nth: int


class Info(NamedTuple):
    """What the server says of a stream."""

    length: int = 0
    added: int = 0
    last: Id = Id(*BEGIN)
    first: Id | None = None
    """Of the entries that are there."""

    @staticmethod
    def of(answer: Any, name: str) -> Info:
        if isinstance(answer, Exception):
            if "no such key" in str(answer):
                return Info()
            raise BadInput(f"{name}: {answer}")
        facts = dict(zip(answer[::2], answer[1::2], strict=True))
        if b"entries-added" not in facts:
            raise BadInput(f"{name}: its server does not count what is added: needs Redis 7 or later")
        first = facts[b"first-entry"]
        return Info(
            facts[b"length"],
            facts[b"entries-added"],
            Id.of(facts[b"last-generated-id"]),
            None if not first else Id.of(first[0]),
        )


class _RedisLog(Log):
    kind = "redis"

    def __init__(self, address: Address, follow: Follow, marks: Any, batch_rows: int) -> None:
        self._address, self._follow, self._most = address, follow, batch_rows
        self._module, self._server = server(address)
        self.lanes = [Lane({"stream": name}) for name in address.names]
        self._clock = float("inf")
        infos, _, _ = self._look((), PATIENCE)
        self.marks = [self._begin(k, info) for k, info in enumerate(infos)] if marks is None else self._again(marks)
        self._fetched: list[Mark] = list(self.marks)
        """Behind what was fetched."""
        self._ends = [info.last for info in infos] if follow.until_end else None
        for number, info in enumerate(infos):
            self._fetched[number] = self._there(number, info)
            self._reached(number)
        self.marks = list(self._fetched)

    @property
    def before(self) -> float:
        return self._clock

    def fetch(self) -> None:
        due = [k for k, lane in enumerate(self.lanes) if not lane.closed and len(lane.waiting) < self._most]
        infos, clock, entries = self._look(due)
        for number in (k for k in range(len(self.lanes)) if k not in due):
            self.lanes[number].ended = False  # as of now, nobody knows
        for number, info in enumerate(infos):
            if number in due:
                self._fetched[number] = self._there(number, info)
                self._put(number, info, entries.get(self._address.names[number].encode(), []))
        self._clock = clock
        if not any(lane.waiting or lane.closed for lane in self.lanes):
            self._wait()
        elif len(self.lanes) > 1 and all(lane.known for lane in self.lanes):
            time.sleep(0.001)  # what is as young as the clock waits for the next tick

    def after(self, at: Any, nth: int) -> Any:
        return Mark(Id.of(at), nth)

    def place(self, lane: Lane, at: Any) -> Mapping[str, Any]:
        return {**lane.place, "id": at.decode()}

    def told(self, marks: Sequence[Any]) -> Any:
        names = self._address.names
        return {self.kind: {name: [str(mark.at), mark.nth] for name, mark in zip(names, marks, strict=True)}}

    def close(self) -> None:
        self._server.close()

    def _look(self, due: Sequence[int], patience: float = float("inf")) -> tuple[list[Info], int, dict[bytes, list[Any]]]:
        """What the server says of all streams, its clock, and the next entries of some, all at one moment."""
        names = self._address.names

        def look() -> Any:
            with self._server.pipeline(transaction=True) as at_once:
                at_once.time()
                for name in names:
                    at_once.execute_command("XINFO STREAM", name)
                if due:
                    behind = [str(self._fetched[number].at) for number in due]
                    at_once.execute_command("XREAD", "COUNT", self._most, "STREAMS", *(names[k] for k in due), *behind)
                return at_once.execute(raise_on_error=False)

        answer = asked(self._address, self._module, look, patience)
        for failure in (one for k, one in enumerate(answer) if isinstance(one, Exception) and not 0 < k <= len(names)):
            raise BadInput(f"{self._address.bare}: {failure}")
        (seconds, microseconds), *infos = answer[: len(names) + 1]
        told = [Info.of(info, f"{self._address.bare}, stream {name!r}") for info, name in zip(infos, names, strict=True)]
        return told, seconds * 1000 + microseconds // 1000, dict(answer[-1] or ()) if due else {}

    def _put(self, number: int, info: Info, entries: Sequence[Any]) -> None:
        """Entries that were fetched into their lane."""
        lane, behind = self.lanes[number], self._fetched[number]
        wanted = len(entries) if self._ends is None else sum(Id.of(name) <= self._ends[number] for name, _ in entries)
        lane.waiting.extend(
            Message(int(name.partition(b"-")[0]), name, nth, fields)
            for nth, (name, fields) in enumerate(entries[:wanted], behind.nth + 1)
        )
        if entries:
            behind = self._fetched[number] = Mark(Id.of(entries[-1][0]), behind.nth + len(entries))
        lane.ended = len(entries) < self._most
        if lane.ended and info.added > behind.nth:  # deleted one by one, not trimmed: as somebody wanted it
            deleted = f"{info.added - behind.nth:,} entries of {lane.place['stream']!r} were deleted before they were read"
            LOG.warning("%s: %s", self._address.bare, deleted)
            self._fetched[number] = behind._replace(nth=info.added)
        self._reached(number)

    def _wait(self) -> None:
        """Until there is something to read, or for a moment."""
        names, behind = self._address.names, [str(mark.at) for mark in self._fetched]
        self._ask("XREAD", "COUNT", 1, "BLOCK", MOMENT, "STREAMS", *names, *behind)

    def _ask(self, *command: Any) -> Any:
        return asked(self._address, self._module, lambda: self._server.execute_command(*command))

    def _begin(self, number: int, info: Info) -> Mark:
        """Where a run begins that goes on from nowhere."""
        if self._follow.start == "earliest":
            return Mark(Id(*BEGIN), info.added - info.length)
        moment = self._follow.milliseconds
        if moment is None:
            return Mark(info.last, info.added)
        at = min(Id(moment - 1, (1 << 64) - 1), info.last)
        return Mark(at, info.added - self._behind(self._address.names[number], moment))

    def _behind(self, name: str, moment: int) -> int:
        """How many entries a stream has from a time on."""
        count, low = 0, str(moment)
        while True:
            page = self._ask("XRANGE", name, low, "+", "COUNT", PAGE)
            count += len(page)
            if len(page) < PAGE:
                return count
            low = f"({page[-1][0].decode()}"

    def _again(self, marks: Any) -> list[Any]:
        streams = marks.get(self.kind) if isinstance(marks, dict) else None
        if not isinstance(streams, dict) or set(streams) != set(self._address.names):
            read = "other places" if not isinstance(streams, dict) else f"streams {', '.join(streams)}"
            raise BadInput(f"{read} were read before, and not {self._address}: resume from the same streams, or start anew")
        return [Mark(Id.of(streams[name][0]), streams[name][1]) for name in self._address.names]

    def _there(self, number: int, info: Info) -> Mark:
        """Where a stream goes on: behind what was fetched, if the server still has all that was added since."""
        mark, name = self._fetched[number], self._address.names[number]
        if info.last < mark.at or info.added < mark.nth:
            were = f"{info.added:,} entries were added up to {info.last}, and {mark.nth:,} up to {mark.at} before"
            why = "its server lost what it had not yet written to disk, or it is another stream"
            lost(self._follow, f"{self._address.bare}, stream {name!r}: {were}: {why}")
            return Mark(info.last, info.added) if info.last < mark.at else Mark(mark.at, info.added - info.length)
        gone = info.added - mark.nth - info.length
        if gone > 0 and (info.first is None or info.first > mark.at):
            upto = f"before {info.first}" if info.first is not None else f"up to {info.last}"
            where = f"{self._address.bare}, stream {name!r}, behind {mark.at} and {upto}"
            lost(self._follow, f"{where}: {gone:,} entries are gone that were not read")
            return mark._replace(nth=mark.nth + gone)
        return mark

    def _reached(self, number: int) -> None:
        """Close a stream behind what was there at the beginning, where that is its end."""
        lane = self.lanes[number]
        if self._ends is not None and (lane.ended or self._fetched[number].at >= self._ends[number]):
            lane.closed = True

    def piece(self, values: Sequence[Any], source: str, options: ReadOptions) -> Piece:
        alone = [fields[1] for fields in values if len(fields) == 2 and fields[0] == JSON]
        if len(alone) == len(values):
            return objects_piece(alone, source, options)
        if any(JSON in fields[::2] for fields in values):
            return objects_piece([_as_json(fields) for fields in values], source, options)
        alike = _alike(values)
        return alike if alike is not None else _one_by_one(values, source)


def _as_json(fields: list[bytes]) -> bytes:
    """The row of an entry as JSON, which it may be already; what cannot be one stays what it is."""
    row = dict(zip(fields[::2], fields[1::2], strict=True))
    if JSON in row:
        return row[JSON]
    try:
        if 2 * len(row) == len(fields):
            return json.dumps({name.decode(): value.decode() for name, value in row.items()}).encode()
    except UnicodeDecodeError:
        pass
    return b" ".join(fields)


def _alike(values: Sequence[Any]) -> Piece | None:
    """The rows of entries that all have the same fields in one order; None of others."""
    names, pa = values[0][::2], arrow()
    if len(set(names)) < len(names) or any(fields[::2] != names for fields in values):
        return None
    try:
        columns = {
            name.decode(): pa.array([fields[2 * k + 1] for fields in values], pa.binary()).cast(pa.string())
            for k, name in enumerate(names)
        }
    except (UnicodeDecodeError, pa.ArrowInvalid):
        return None
    return Piece(len(values), columns)


def _one_by_one(values: Sequence[Any], source: str) -> Piece:
    """Rows of any fields; a column that an entry lacks is missing in it."""
    pa, rows, refused = arrow(), list[dict[str, str]](), list[Refused]()
    for place, fields in enumerate(values):
        try:
            row = dict(zip([name.decode() for name in fields[::2]], [value.decode() for value in fields[1::2]], strict=True))
            reason = "" if 2 * len(row) == len(fields) else "the same field twice"
        except UnicodeDecodeError:
            reason = "no text in UTF-8"
        if reason:
            shown = " ".join(field.decode(errors="replace") for field in fields)
            refused.append(Refused(source, place, None, reason, shown))
        else:
            rows.append(row)
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: pa.array([row.get(name) for row in rows], pa.string()) for name in names}
    return Piece(len(values), columns, refused=refused)


class _RedisSender(Sender):
    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._module, self._server = server(address)
        (self._stream,) = address.names
        self._waiting: list[tuple[str, bytes]] = []

    def send(self, key: str, value: bytes) -> None:
        self._waiting.append((key, value))
        if len(self._waiting) >= TOGETHER:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            asked(self.address, self._module, self._add)
            self._waiting.clear()

    settle = flush

    def close(self) -> None:
        self._server.close()

    def _add(self) -> None:
        """All at once, or none; tried again, they may come twice."""
        with self._server.pipeline(transaction=True) as at_once:
            for key, value in self._waiting:
                at_once.execute_command("XADD", self._stream, "*", "key", key, JSON, value)
            at_once.execute()
