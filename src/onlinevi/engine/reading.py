"""How the loop reads dense or sparse rows, values that may be missing, settings, doubles or floats.

These functions fill the holes that no loss, family or rule fills.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import ns
from onlinevi.engine.holes import cast, in_float32, is_missing, position
from onlinevi.engine.types import Event, Moments


def missing_mean_squares(mean: Any, rows: Any, event: Event) -> Any:
    """Σ mean² over the missing values of a row."""
    total = 0.0
    for k in range(event.start, event.stop):
        j = position(rows, k)
        total += mean[j] * mean[j] if is_missing(rows, event, k) else 0.0
    return total


# Indices are unsigned: there is no look for negative ones, which count from the end.
def dense_event(rows: Any, i: int) -> Event:
    return Event(np.uint64(i), np.uint64(0), np.uint64(rows.shape[1]), False)


def dense_split_tail(event: Event) -> tuple[Event, Event]:
    row, start, stop, _ = event
    middle = stop & ~np.uint64(15 if in_float32() else 7)  # two vectors of 32 bytes: what compilers write at a time
    return Event(row, start, middle, False), Event(row, middle, stop, True)


def dense_prefetch_next(rows: Any, event: Event) -> None:
    """Does nothing: memory sees a dense row coming by itself."""


def dense_value(rows: Any, event: Event, k: int) -> Any:
    if event.one_by_one:
        ns.one_by_one()
    return cast(rows[event.number, k])  # float32 rows as doubles: squares of them would lose half the digits


def dense_position(rows: Any, k: int) -> int:
    return k


def sparse_event(rows: Any, i: int) -> Event:
    return Event(np.uint64(i), np.uint64(rows[2][i]), np.uint64(rows[2][i + 1]), False)


def sparse_split_tail(event: Event) -> tuple[Event, Event]:
    return event, Event(event.number, event.stop, event.stop, False)


def sparse_prefetch_next(rows: Any, event: Event) -> None:
    """Asks for as many values as this row has. Beyond the last row that is in vain: no prefetch fails."""
    values, places, _ = rows
    for k in range(event.stop, event.stop + event.stop - event.start, np.uint64(16)):  # a line of places, two of values
        ns.prefetch(values, k)
        ns.prefetch(values, k + np.uint64(8))
        ns.prefetch(places, k)


def sparse_value(rows: Any, event: Event, k: int) -> Any:
    return cast(rows[0][k])


def sparse_position(rows: Any, k: int) -> Any:
    return np.uint64(rows[1][k])


def dense_is_missing(rows: Any, event: Event, k: int) -> bool:
    return rows[event.number, k] != rows[event.number, k]  # type: ignore[no-any-return]


def dense_present(rows: Any, event: Event, k: int) -> Any:
    return 0.0 if dense_is_missing(rows, event, k) else dense_value(rows, event, k)


def sparse_is_missing(rows: Any, event: Event, k: int) -> bool:
    return rows[0][k] != rows[0][k]  # type: ignore[no-any-return]


def sparse_present(rows: Any, event: Event, k: int) -> Any:
    return 0.0 if sparse_is_missing(rows, event, k) else sparse_value(rows, event, k)


def add_moments(one: Moments, other: Moments) -> Moments:
    """The moments of a row, from those of its two parts (``split_tail``)."""
    return Moments(
        one.prediction + other.prediction,
        one.variance + other.variance,
        one.mean_gain + other.mean_gain,
        one.row_square + other.row_square,
        one.spread_square + other.spread_square,
        one.missing_variance + other.missing_variance,
    )


class Reading(NamedTuple):
    """The functions that read rows of one kind."""

    event: Callable[..., Any]
    prefetch_next: Callable[..., Any]
    split_tail: Callable[..., Any]
    value: Callable[..., Any]
    present: Callable[..., Any]
    """``value`` where some may be missing."""
    is_missing: Callable[..., Any]
    position: Callable[..., Any]


DENSE = Reading(
    dense_event, dense_prefetch_next, dense_split_tail, dense_value, dense_present, dense_is_missing, dense_position
)
SPARSE = Reading(
    sparse_event, sparse_prefetch_next, sparse_split_tail, sparse_value, sparse_present, sparse_is_missing, sparse_position
)


def none_missing(vectors: Any, rows: Any, event: Event) -> Any:
    return 0.0


def same_everywhere(setting: Any, j: int) -> Any:
    return cast(setting)


def one_each(setting: Any, j: int) -> Any:
    return cast(setting[j])


def doubles(state: Any) -> Any:
    return state


def floats(state: Any) -> Any:
    return state.view(np.float32)


def double(x: Any) -> Any:
    return np.float64(x)


def single(x: Any) -> Any:
    return np.float32(x)


def forget_nothing(views: Any, prior_and_box: Any, discount: Any, count: Any) -> None:
    """Does nothing: with a discount of 1 nothing is forgotten."""


def never_late(packed: Any, sizes: Any) -> Any:
    """Nothing: what is forgotten is forgotten at each event."""
    return packed, packed


def nothing_to_catch_up(views: Any, rows: Any, event: Any, late: Any, prior_and_box: Any, decay: Any, count: Any) -> None:
    """Does nothing: every coordinate is where it should be."""


def nothing_to_put_back(views: Any, rows: Any, event: Any, late: Any) -> None:
    """Does nothing: nothing has moved."""


def nowhere(views: Any, settings: Any) -> None:
    """Does nothing: without a ball nothing is scaled back."""


def never_flat(y: Any, a: Any, *parameters: Any) -> bool:
    return False


def even_odds(a: Any, v: Any, *parameters: Any) -> tuple[float, float]:
    """Of a loss that knows no probabilities."""
    return 0.5, 0.5


def yes() -> bool:
    return True


def no() -> bool:
    return False


def answer(is_so: bool) -> Callable[[], bool]:
    """A hole that asks a question is filled by a function that is known to say yes, or no: the rest is not compiled."""
    return yes if is_so else no
