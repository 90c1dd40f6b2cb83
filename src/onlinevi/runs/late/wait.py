"""How long rows wait for labels that come by key, and what becomes of those whose label does not come."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from onlinevi.data import Task, arrow

MOST = 1_000_000
"""So many rows may wait."""


@dataclass(frozen=True)
class Wait:
    """How labels of another source find their rows, and how long these wait for them.

    ``key`` is the column that a row and its label have in common, ``time`` the one that says when each of them happened; two
    names where rows and labels call it otherwise. Without ``time`` the sources themselves have to say it, as brokers do. A row
    waits for so many ``seconds``, and until so many further ``rows`` have come, whichever ends first; a label that comes
    before its row waits as long. Then the row is learned with the label ``otherwise``; None leaves it out. Of more than
    ``most`` rows that wait the oldest is left out. Where a record of the other source has no label but is one by being there,
    as a click is, ``came`` is the label that it stands for.
    """

    key: tuple[str, ...]
    time: tuple[str, ...] = ()
    seconds: float | None = None
    rows: int | None = None
    otherwise: str | None = None
    most: int = MOST
    came: str | None = None

    def __post_init__(self) -> None:
        for name in ("key", "time"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not 1 <= len(self.key) <= 2:
            raise ValueError(
                f"key={','.join(self.key)!r}: needs the name of a column, or two: that of rows and that of labels"
            )
        if len(self.time) > 2:
            raise ValueError(
                f"time={','.join(self.time)!r}: needs the name of a column, or two: that of rows and that of labels"
            )
        if self.seconds is not None and not (self.seconds > 0.0 and math.isfinite(self.seconds)):
            raise ValueError(f"within={self.seconds!r}: needs a time > 0, such as 30m")
        if self.rows is not None and self.rows < 1:
            raise ValueError(f"within={self.rows!r}: needs a number of rows from 1, or a time such as 30m")
        if self.otherwise is not None and self.seconds is None and self.rows is None:
            raise ValueError(
                f"otherwise={self.otherwise!r}: says what is learned after how long? tell it, within 30m or so many rows"
            )
        if self.came is not None and self.otherwise in (None, self.came):
            raise ValueError(
                f"came={self.came!r} with otherwise={self.otherwise!r}: all rows would be learned with one label; say by "
                "otherwise what those have for which no record came"
            )
        if self.most < 1:
            raise ValueError(f"waiting={self.most!r}: needs room for at least one row")

    @staticmethod
    def asked(given: Wait | Mapping[str, Any] | None) -> Wait | None:
        """The same as a checkpoint keeps it, or as it is."""
        return Wait(**given) if isinstance(given, Mapping) else given

    @property
    def limit(self) -> str:
        """How long rows wait, in words."""
        rows = [] if self.rows is None else [f"{self.rows:,} rows"]
        return " or ".join([*([] if self.seconds is None else [spoken(self.seconds)]), *rows]) or f"{self.most:,} others"

    def __str__(self) -> str:
        otherwise = "left out" if self.otherwise is None else self.otherwise
        came = "" if self.came is None else f"{self.came} where one came "
        return f"by {' or '.join(dict.fromkeys(self.key))}, {came}within {self.limit}, otherwise {otherwise}"

    def key_of(self, *, labels: bool) -> str:
        """What the key is called among rows, or among labels."""
        return self.key[-1 if labels else 0]

    def time_of(self, *, labels: bool) -> str | None:
        """What the time is called there; None where the source itself says it."""
        return self.time[-1 if labels else 0] if self.time else None


def spoken(seconds: float) -> str:
    """A time in words.

    >>> spoken(1800), spoken(1), spoken(90_000), spoken(2.5)
    ('30 minutes', '1 second', '25 hours', '2.5 seconds')
    """
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= size and seconds % size == 0:
            return _several(seconds / size, unit)
    return _several(seconds, "second")


def _several(count: float, unit: str) -> str:
    return f"{count:g} {unit}{'' if count == 1 else 's'}"


def label_of(wait: Wait, task: Task, name: Literal["otherwise", "came"] = "otherwise") -> float | None:
    """The label that stands for none, or for a record without one, as a loss wants it."""
    given: str | None = getattr(wait, name)
    if given is None:
        return None
    grown, labels, reasons = task.encode(arrow().array([given]))
    if reasons or grown.names != task.names:
        why = reasons.get(0, f"it is none of the classes {', '.join(task.names)}")
        raise ValueError(f"{name}={given!r}: {why}")
    return float(labels[0])
