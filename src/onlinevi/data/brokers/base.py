"""What brokers have in common: their messages as rows, behind each of which a run can go on."""

from __future__ import annotations

import logging
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

import numpy as np

from onlinevi.data.brokers.address import SCHEMES, Address, Scheme
from onlinevi.data.brokers.merge import Lane, Message, take
from onlinevi.data.sources import BadInput, Piece, Position, Reader, ReadOptions

LOG = logging.getLogger("onlinevi.brokers")
"""Says on standard error, or where you send it, that a broker is away and that it is back."""
PATIENCE = 10.0
"""Seconds in which a broker has to answer for the first time."""
PAUSE = 1.0
"""Seconds from one word that nothing has come to the next."""
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0
"""Seconds from one try to reach a broker that is away to the next: twice as many each time."""

BROKERS: dict[str, type[Broker]] = {}
"""Those that have been imported, by how their addresses begin."""
Start: TypeAlias = Literal["earliest", "latest"] | datetime
T = TypeVar("T")


@dataclass(frozen=True)
class Follow:
    """How a broker is read: where a run begins that does not go on from a position, where it ends, and what is left out."""

    start: Start | str = "earliest"
    """Or a time, as 2026-08-01 or 2026-08-01T12:30:00+02:00; in UTC, where it names no zone."""
    until_end: bool = False
    """End behind what is there at the beginning, instead of waiting for more."""
    lost: Literal["stop", "skip"] = "stop"
    """What to do where the broker no longer has messages that were not read: skip goes on behind them, and says how many."""

    def __post_init__(self) -> None:
        if self.lost not in ("stop", "skip"):
            raise ValueError(f"lost={self.lost!r}: needs stop or skip")
        if isinstance(self.start, str) and self.start not in ("earliest", "latest"):
            try:
                moment = datetime.fromisoformat(self.start)
            except ValueError as error:
                raise ValueError(
                    f"start={self.start!r}: needs earliest, latest, or a time such as 2026-08-01T12:30:00"
                ) from error
            object.__setattr__(self, "start", moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))

    @property
    def milliseconds(self) -> int | None:
        """The time to start from, since 1970."""
        return round(self.start.timestamp() * 1000) if isinstance(self.start, datetime) else None


class Log(ABC):
    """Some topics or streams that are being read: their lanes, and where each is to go on."""

    kind: str
    """What marks in positions call it."""
    lanes: list[Lane]
    marks: list[Any]
    """Where each lane goes on behind what was taken of it."""

    @abstractmethod
    def fetch(self) -> None:
        """Put what has come into the lanes; wait a moment for it, if nothing has."""

    @abstractmethod
    def after(self, at: Any, nth: int) -> Any:
        """The mark of a lane behind a message."""

    @abstractmethod
    def place(self, lane: Lane, at: Any) -> Mapping[str, Any]:
        """What a message is called."""

    @abstractmethod
    def told(self, marks: Sequence[Any]) -> Any:
        """The marks of all lanes as a value that JSON has a word for."""

    @abstractmethod
    def piece(self, values: Sequence[Any], source: str, options: ReadOptions) -> Piece:
        """The rows of some messages."""

    @property
    def before(self) -> float:
        """Messages of several lanes are taken up to this time: none as old can come any more."""
        return float("inf")

    @abstractmethod
    def close(self) -> None:
        """Let go of the broker."""


class Sender(ABC):
    """Sends messages to one topic or stream."""

    def __init__(self, address: Address) -> None:
        self.address = address

    @abstractmethod
    def send(self, key: str, value: bytes) -> None:
        """A message; it may wait for others."""

    @abstractmethod
    def flush(self) -> None:
        """Wait for no others."""

    @abstractmethod
    def settle(self) -> None:
        """Return when the broker has all of them, or raise if it refuses one."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the broker, whatever it has not been given."""


class Broker:
    """Topics or streams of a broker as a source of rows. Without ``until_end`` it has no end.

    A subclass is known by its addresses from the moment that it is imported.
    """

    schemes: ClassVar[Mapping[str, Scheme]]
    """How they begin, and what they have."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        SCHEMES.update(cls.schemes)
        BROKERS.update(dict.fromkeys(cls.schemes, cls))

    def __init__(self, address: Address, follow: Follow) -> None:
        self.name, self.address, self.follow = str(address), address, follow

    def connect(self, marks: Any, batch_rows: int) -> Log:
        """Begin, or go on from what ``told`` gave."""
        raise NotImplementedError(f"{type(self).__name__} reads nothing: give it a method connect(marks, batch_rows), or open")

    @staticmethod
    def sender(address: Address) -> Sender:
        """What sends to a topic or stream."""
        raise ValueError(f"{address}: is only read from; name another place to write to")

    def open(self, options: ReadOptions, resume: Position | None = None) -> Reader:
        marks, first_row = None, 0
        if resume is not None:
            if resume.mark is None:
                raise BadInput(
                    f"{resume.source} was read before, and not {self.name}: resume from the same source, or start anew"
                )
            marks, first_row = resume.place, resume.rows
        return _BrokerReader(self.name, self.connect(marks, options.batch_rows), options, first_row)


class _BrokerReader(Reader):
    live = True

    def __init__(self, name: str, log: Log, options: ReadOptions, first_row: int) -> None:
        self._name, self._log, self._options, self.first_row = name, log, options, first_row
        self._left = False

    def __iter__(self) -> Iterator[Piece]:
        log, told = self._log, time.monotonic()
        while not self._left:
            taken = take(log.lanes, self._options.batch_rows, log.before)
            if taken:
                yield self._piece(taken)
                told = time.monotonic()
            elif all(lane.closed and not lane.waiting for lane in log.lanes):
                return
            else:
                if time.monotonic() - told >= PAUSE:
                    yield Piece(0, {})
                    told = time.monotonic()
                log.fetch()

    def _piece(self, taken: list[tuple[int, Message]]) -> Piece:
        log = self._log
        trail = _BrokerTrail(log, taken)
        log.marks[:] = trail.marks(len(taken))
        read = log.piece([message.value for _, message in taken], self._name, self._options)
        times = np.array([message.time for _, message in taken])[read.good] / 1000.0
        return replace(read, source=self._name, trail=trail, times=times)

    def close(self) -> None:
        self._log.close()

    def leave(self) -> None:
        self._left = True


class _BrokerTrail:
    def __init__(self, log: Log, taken: list[tuple[int, Message]]) -> None:
        self._log, self._before = log, tuple(log.marks)
        # Lists of plain values, which cost the collector of garbage nothing.
        self._lanes = [number for number, _ in taken]
        self._ats = [message.at for _, message in taken]
        self._nths = [message.nth for _, message in taken]

    def marks(self, count: int) -> list[Any]:
        """Where each lane goes on behind the first so many messages."""
        marks = list(self._before)
        for number, last in {number: k for k, number in enumerate(self._lanes[:count])}.items():
            marks[number] = self._log.after(self._ats[last], self._nths[last])
        return marks

    def behind(self, count: int) -> Any:
        return self._log.told(self.marks(count))

    def place(self, row: int) -> Mapping[str, Any]:
        return self._log.place(self._log.lanes[self._lanes[row]], self._ats[row])


def lost(follow: Follow, what: str) -> None:
    """Messages are gone that were not read: an error, unless the run is to go on regardless."""
    if follow.lost == "skip":
        LOG.warning("%s: going on behind it", what)
    else:
        raise BadInput(f"{what}. Go on behind it with --lost skip")


def patiently(name: str, call: Callable[[], T], away: tuple[type[Exception], ...], patience: float = float("inf")) -> T:
    """What a call to a broker gives; while it is away, try again, ever more rarely, and say so once."""
    wait, since, told = FIRST_WAIT, time.monotonic(), False
    while True:
        try:
            result = call()
        except away as error:
            if time.monotonic() - since >= patience:
                raise BadInput(f"{name} cannot be reached: {error}") from error
            if not told:
                LOG.warning("%s is away (%s): waiting for it", name, error)
            told = True
            time.sleep(wait)
            wait = min(2.0 * wait, LONGEST_WAIT)
        else:
            if told:
                LOG.warning("%s is back", name)
            return result


def from_environment(prefix: str) -> dict[str, str]:
    """What the environment sets under names that begin so: the rest of each in lower case, with dots."""
    return {
        name[len(prefix) :].lower().replace("_", "."): value for name, value in os.environ.items() if name.startswith(prefix)
    }
