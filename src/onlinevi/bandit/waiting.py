"""What was chosen and waits for its reward: in order, and never more than a wait says."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from onlinevi.bandit.arms import Arm, is_name
from onlinevi.data import Waiting as ByKey
from onlinevi.engine import Vector
from onlinevi.learners import Storable

Id: TypeAlias = str | int


@dataclass(frozen=True)
class Wait(Storable):
    """How long a reward is waited for, and what is taken for it where none comes.

    A decision waits until ``events`` further ones come, which bounds what has to be kept, or for ``seconds``. After that
    ``default`` is learned as its reward: 0.0 where no answer is one, such as a click that did not come; None learns nothing.
    """

    events: int = 10_000
    seconds: float = math.inf
    default: float | None = None

    def __post_init__(self) -> None:
        if type(self.events) is not int or self.events < 1:
            raise ValueError(f"events={self.events!r}: a reward is waited for at least 1 decision, a whole number; try 10_000")
        if not self.seconds > 0.0:
            raise ValueError(f"seconds={self.seconds!r}: needs a time > 0, or math.inf for no end")
        if self.default is not None and not math.isfinite(self.default):
            raise ValueError(f"default={self.default!r}: needs a finite reward, or None to learn nothing")


class Pending(NamedTuple):
    """A decision without a reward."""

    number: int
    id: Id
    arm: Arm
    time: float
    arms: tuple[Arm, ...]
    probabilities: Vector
    """By which each of these arms was chosen."""
    expected: Vector
    """What each was expected to bring."""
    rows: Vector
    """The context: a row for all arms, or one for each."""

    @property
    def row(self) -> Vector:
        """What the arm was chosen by: what its reward is learned with."""
        return np.asarray(self.rows[0 if len(self.rows) == 1 else self.arms.index(self.arm)])

    @property
    def propensity(self) -> float:
        """The probability by which the arm was chosen."""
        return float(self.probabilities[self.arms.index(self.arm)])


class Waiting:
    """Decisions by their ids, the oldest first."""

    def __init__(self, wait: Wait) -> None:
        self.wait = wait
        self._pending = ByKey[Id, Pending](sys.maxsize)  # those that are overdue go before another one comes
        self._settled = ByKey[Id, str](wait.events)

    def __len__(self) -> int:
        return len(self._pending)

    def __iter__(self) -> Iterator[Pending]:
        return (pending for _, pending in self._pending)

    @property
    def settled(self) -> list[tuple[Id, str]]:
        """Ids that wait no more, as many as may wait, and what became of them."""
        return list(self._settled)

    def check_new(self, id: Id) -> None:
        """Refuse an id that stands for another decision."""
        if not is_name(id):
            raise TypeError(f"id={id!r}: needs text, or a whole number")
        if id in self._pending:
            raise ValueError(f"id={id!r} waits for its reward already: give each decision an id of its own")
        if id in self._settled:
            became = self._settled.at(id)
            raise ValueError(f"id={id!r} was used by an earlier decision, which {became}: give an id of its own")

    def add(self, pending: Pending) -> None:
        self._pending.add(pending.id, pending)

    def at(self, id: Id) -> Pending:
        """The decision that this id stands for."""
        pending = self._pending.at(id) if is_name(id) else None
        if pending is not None:
            return pending
        became = self._settled.at(id) if is_name(id) else None
        why = "no decision has this id, or one from long ago" if became is None else f"its decision {became}"
        raise LookupError(f"id={id!r} waits for no reward: {why}; nothing was learned")

    def settle(self, id: Id, became: str) -> None:
        """It waits no more."""
        self._pending.take(id)
        self.remember(id, became)

    def remember(self, id: Id, became: str) -> None:
        """Keep what became of an id, and forget the oldest of those where there are more than may wait."""
        self._settled.add(id, became)

    def overdue(self, number: int, now: float) -> Iterator[Pending]:
        """Those that have waited long enough when decision ``number`` comes, at this time, the oldest first; settle each."""

        def over(pending: Pending) -> bool:
            return number - pending.number >= self.wait.events or now - pending.time >= self.wait.seconds

        return (pending for _, pending in self._pending.overdue(over))
