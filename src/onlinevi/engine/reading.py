"""How the compiled loop reads: dense or sparse rows, values that may be missing, settings, doubles or floats.

What fills the holes of ``contract.py`` that no loss, family or rule fills.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import ns
from onlinevi.engine.holes import in_floats, lacks, number, position
from onlinevi.engine.types import Event, Moments


def missing_means(mean: Any, rows: Any, event: Event) -> Any:
    """Σ mean² over the missing values: their part of the spread that does not shrink as more is known."""
    total = 0.0
    for k in range(event.start, event.stop):
        j = position(rows, k)
        total += mean[j] * mean[j] if lacks(rows, event, k) else 0.0
    return total


# Indices are unsigned: there is no look for negative ones, which count from the end.
def dense_event(rows: Any, i: int) -> Event:
    return Event(np.uint64(i), np.uint64(0), np.uint64(rows.shape[1]), False)


def dense_halves(event: Event) -> tuple[Event, Event]:
    number, start, stop, _ = event
    middle = stop & ~np.uint64(15 if in_floats() else 7)  # two vectors of 32 bytes: what compilers write at a time
    return Event(number, start, middle, False), Event(number, middle, stop, True)


def dense_ahead(rows: Any, event: Event) -> None:
    """Nothing: a dense row is long enough to be seen coming."""


def dense_value(rows: Any, event: Event, k: int) -> Any:
    if event.one_by_one:
        ns.one_by_one()
    return number(rows[event.number, k])  # float32 rows as doubles: squares of them would lose half the digits


def dense_position(rows: Any, k: int) -> int:
    return k


def sparse_event(rows: Any, i: int) -> Event:
    return Event(np.uint64(i), np.uint64(rows[2][i]), np.uint64(rows[2][i + 1]), False)


def sparse_halves(event: Event) -> tuple[Event, Event]:
    return event, Event(event.number, event.stop, event.stop, False)


def sparse_ahead(rows: Any, event: Event) -> None:
    """By itself memory brings what comes next while rows are read, and pauses while a step writes to places all over a state.

    Beyond the last row it is asked in vain: no prefetch fails.
    """
    values, places, _ = rows
    for k in range(event.stop, event.stop + event.stop - event.start, np.uint64(16)):  # a line of places, two of values
        ns.prefetch(values, k)
        ns.prefetch(values, k + np.uint64(8))
        ns.prefetch(places, k)


def sparse_value(rows: Any, event: Event, k: int) -> Any:
    return number(rows[0][k])


def sparse_position(rows: Any, k: int) -> Any:
    return np.uint64(rows[1][k])


def dense_lacks(rows: Any, event: Event, k: int) -> bool:
    return rows[event.number, k] != rows[event.number, k]  # type: ignore[no-any-return]


def dense_present(rows: Any, event: Event, k: int) -> Any:
    return 0.0 if dense_lacks(rows, event, k) else dense_value(rows, event, k)


def sparse_lacks(rows: Any, event: Event, k: int) -> bool:
    return rows[0][k] != rows[0][k]  # type: ignore[no-any-return]


def sparse_present(rows: Any, event: Event, k: int) -> Any:
    return 0.0 if sparse_lacks(rows, event, k) else sparse_value(rows, event, k)


def together(one: Moments, other: Moments) -> Moments:
    """What a row needs of a belief, from the two halves of the row: the values that fill vectors, and the few behind them.

    A step writes those few one by one. A read of several at once would have to wait until all of them are in the cache, and
    the next event for that read; so they are read one by one too, while the vectors are summed.
    """
    return Moments(
        one.prediction + other.prediction,
        one.variance + other.variance,
        one.reach + other.reach,
        one.row_square + other.row_square,
        one.spread_square + other.spread_square,
        one.blur + other.blur,
    )


class Reading(NamedTuple):
    """How rows of one kind are read."""

    event: Callable[..., Any]
    ahead: Callable[..., Any]
    halves: Callable[..., Any]
    value: Callable[..., Any]
    present: Callable[..., Any]
    """``value`` where some may be missing."""
    lacks: Callable[..., Any]
    position: Callable[..., Any]


DENSE = Reading(dense_event, dense_ahead, dense_halves, dense_value, dense_present, dense_lacks, dense_position)
SPARSE = Reading(sparse_event, sparse_ahead, sparse_halves, sparse_value, sparse_present, sparse_lacks, sparse_position)


def none_missing(vectors: Any, rows: Any, event: Event) -> Any:
    return 0.0


def same_everywhere(setting: Any, j: int) -> Any:
    return number(setting)


def one_each(setting: Any, j: int) -> Any:
    return number(setting[j])


def doubles(state: Any) -> Any:
    return state


def floats(state: Any) -> Any:
    return state.view(np.float32)


def double(x: Any) -> Any:
    return np.float64(x)


def single(x: Any) -> Any:
    return np.float32(x)


def forget_nothing(views: Any, frame: Any, discount: Any, count: Any) -> None:
    """With a discount of 1."""


def never_rests(y: Any, a: Any, *parameters: Any) -> bool:
    return False


def yes() -> bool:
    return True


def no() -> bool:
    return False
