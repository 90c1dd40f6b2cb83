"""What a column holds, numbers, true and false, names, dates or times; and its cells, read as such."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from shlex import quote
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from onlinevi.data.schema.spelling import (
    amounts,
    bucket,
    day_and_month,
    has_clock,
    has_decimal_comma,
    is_amount,
    is_dotted,
    with_decimal_comma,
)
from onlinevi.data.schema.times import DATE_PARTS, TIME_PARTS, instants, is_date, is_time, parts
from onlinevi.data.sources import BadInput
from onlinevi.data.values import (
    arrow,
    came_as_numbers,
    is_missing,
    is_number,
    is_numeric,
    is_text,
    is_usable,
    numbers,
    plain,
    texts,
)
from onlinevi.engine import Vector

Kind: TypeAlias = Literal[
    "number",
    "amount",
    "decimal-comma",
    "flag",
    "category",
    "text",
    "date",
    "day-first",
    "month-first",
    "time",
    "day-first-time",
    "month-first-time",
    "id",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
NUMBERS: tuple[Kind, ...] = ("number", "amount", "decimal-comma")
"""The ways to write a number."""
TIMES: tuple[Kind, ...] = ("time", "day-first-time", "month-first-time")
"""The ways to write a date with its time."""
DATES: tuple[Kind, ...] = ("date", "day-first", "month-first", *TIMES)
"""The ways to write a date."""
DAY_FIRST: dict[Kind, bool] = {
    "day-first": True,
    "day-first-time": True,
    "month-first": False,
    "month-first-time": False,
}
"""Of dates that end in their year, whether they begin with the day."""

WORD = re.compile(r"\w+")
WORD_BUCKETS = 32
"""The words of a text are counted in so many features."""

FLAGS = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}

PARTS: dict[Kind, tuple[str, ...]] = {
    "number": ("",),
    "amount": ("",),
    "decimal-comma": ("",),
    "flag": ("",),
    "category": (),
    "text": tuple(f"~{k}" for k in range(WORD_BUCKETS)),
    "date": DATE_PARTS,
    "day-first": DATE_PARTS,
    "month-first": DATE_PARTS,
    "time": TIME_PARTS,
    "day-first-time": TIME_PARTS,
    "month-first-time": TIME_PARTS,
    "id": (),
}
"""The features a column has from the start, each under its name; a category's come as they are met."""

NEEDS: dict[Kind, str] = {
    "number": "a finite number",
    "amount": "a number such as $14,524.84 or 77%",
    "decimal-comma": "a number such as 14.524,84",
    "flag": "true or false",
    "category": "a name",
    "text": "words",
    "date": "a date such as 2024-02-29",
    "day-first": "a date such as 29.02.2024",
    "month-first": "a date such as 02/29/2024",
    "time": "a time such as 2024-02-29T12:00:00Z",
    "day-first-time": "a time such as 29.02.2024 12:00",
    "month-first-time": "a time such as 02/29/2024 12:00",
    "id": "anything",
}

ODD_IN = 50
"""One cell in so many may be odd in a column of numbers or dates."""
IDS = 0.9
"""More different names than this part of the values are no categories."""


def check_type(name: str, values: Any) -> None:
    """Refuse a column whose type has no kind."""
    if not is_usable(values):
        raise BadInput(
            f"column {name!r} holds {values.type}: needs numbers, text, dates or booleans; convert it, or --drop {quote(name)}"
        )


def kind_of(blocks: Iterable[Any], decimal: str | None = None) -> Kind | None:
    """The narrowest kind that takes all values of a column, or all but a few; None while it has no value.

    ``decimal`` tells whether numbers have a point or a comma; None finds out.
    """
    there = [present for values in blocks if len(present := _present(plain(values)))]
    typed = {_typed(values) for values in there}
    if not typed:
        return None
    if None not in typed and (len(typed) == 1 or typed <= {"date", "time"}):
        return typed.pop() if len(typed) == 1 else "time"
    spelled = Counter(text.strip() for values in there for text in texts(values).to_pylist())
    kind = _kind_of_text(spelled, decimal)
    if kind == "category" and (usual := _without_odd(spelled)):  # a few odd cells do not make names of numbers
        kind = _kind_of_text(usual, decimal)
    return kind


def told_kind(told: Kind, blocks: Iterable[Any], decimal: str | None = None) -> Kind:
    """The kind that a column was told to have, in the way in which its numbers or dates are written."""
    for ways in (NUMBERS, DATES, TIMES):
        if told == ways[0]:
            there = [values for values in map(plain, blocks) if is_text(values)]
            guess = kind_of(there, decimal)
            return guess if guess in ways else told
    return told


def is_id(blocks: Iterable[Any], most: int) -> bool:
    """Whether nearly every value of a column is one of its own, and there are more than ``most``: of a name that comes once
    nothing can be learned, and those that share a feature are alike in nothing.
    """
    there = [text.strip() for values in blocks for text in texts(_present(plain(values))).to_pylist()]
    different = len(set(there))
    return different > most and different > IDS * len(there)


def odd_cells(kind: Kind | None, blocks: Iterable[Any]) -> list[str]:
    """The texts of a column's cells that are not of its kind, in their order."""
    if kind in (None, "category", "id"):
        return []
    return [
        text for values in blocks for text in texts(values).filter(arrow().array(cells(kind, values).bad)).to_pylist() if text
    ]


def _present(values: Any) -> Any:
    return values.filter(arrow().array(~is_missing(values)))


def _typed(values: Any) -> Kind | None:
    """The kind that the type of an array tells; None for text."""
    types = arrow().types
    if is_text(values):
        return None
    if types.is_boolean(values.type):
        return "flag"
    if is_numeric(values):
        return "number"
    return "date" if types.is_date(values.type) else "time"


def _kind_of_text(values: Collection[str], decimal: str | None) -> Kind:
    if decimal == "," and all(map(has_decimal_comma, values)):
        return "decimal-comma"
    if all(map(is_number, values)):
        return "number"
    if {value.lower() for value in values} <= {"true", "false"}:
        return "flag"
    if all(map(is_time, values)):
        return "date" if all(map(is_date, values)) else "time"
    if all(map(is_amount, values)):
        return "amount"
    if decimal != "." and all(map(has_decimal_comma, values)):
        return "decimal-comma"
    return _order_of_dates(values) or "category"


def _order_of_dates(values: Collection[str]) -> Kind | None:
    """Whether days or months stand first, where all values are dates and it cannot be otherwise."""
    pairs = [day_and_month(value) for value in values]
    firsts, seconds = ([pair[k] for pair in pairs if pair is not None] for k in range(2))
    if not values or None in pairs or min(max(firsts), max(seconds)) > 12:
        return None
    timed = any(map(has_clock, values))
    if max(firsts) > 12 or all(map(is_dotted, values)):
        return None if max(seconds) > 12 else "day-first-time" if timed else "day-first"
    return None if max(seconds) <= 12 else "month-first-time" if timed else "month-first"


def _without_odd(spelled: Counter[str]) -> list[str]:
    """The values that are written as most are, if nearly all are: numbers, or dates and times."""
    for is_one in (is_number, is_time, is_amount, has_decimal_comma, lambda text: day_and_month(text) is not None):
        usual = [text for text in spelled if is_one(text)]
        odd = spelled.total() - sum(spelled[text] for text in usual)
        if odd * ODD_IN <= spelled.total():
            return usual
    return []


def first_value(values: Any) -> int | None:
    """Where a column has its first value, if it has one."""
    there = np.flatnonzero(~is_missing(values))
    return int(there[0]) if len(there) else None


class Cells(NamedTuple):
    """A column's cells, some of them missing or not of its kind."""

    missing: NDArray[np.bool_]
    bad: NDArray[np.bool_]
    parts: list[Vector]
    """A value a row for each of the kind's parts, NaN where missing."""
    names: Any = None
    """Of a category: its text, null where missing."""

    def without_bad(self) -> Cells:
        """The same with missing values in the place of those that are not of its kind."""
        nowhere = np.zeros(len(self.bad), dtype=bool)
        return Cells(self.missing | self.bad, nowhere, [np.where(self.bad, np.nan, part) for part in self.parts], self.names)


def cells(kind: Kind, values: Any) -> Cells:
    """Read a column of one batch as what it is known to hold."""
    if kind == "category":
        names = texts(values)
        compute, pa = arrow("compute"), arrow()
        empty = compute.equal(compute.utf8_trim_whitespace(names), "")
        names = compute.if_else(empty, pa.scalar(None, pa.string()), names)
        missing = names.is_null().to_numpy(zero_copy_only=False)
        return Cells(missing, np.zeros(len(missing), dtype=bool), [], names)
    if kind == "text":
        return _words(values)
    if kind == "id":
        nowhere = np.zeros(len(values), dtype=bool)
        return Cells(nowhere, nowhere, [])
    if kind in DATES:
        stamps, bad = instants(values, DAY_FIRST.get(kind))
        return Cells(np.isnat(stamps) & ~bad, bad, parts(stamps, PARTS[kind]))
    floats, bad = READERS.get(kind, numbers)(values) if is_text(plain(values)) or kind == "flag" else numbers(values)
    if kind in ("amount", "decimal-comma") and (came := came_as_numbers(values)) is not None:
        floats, bad = np.where(np.isfinite(came), came, floats), bad & ~np.isfinite(came)
    return Cells(np.isnan(floats) & ~bad, bad, [floats + 0.0])  # to text, and so to those beside it, −0 is 0


def _flags(values: Any) -> tuple[Vector, NDArray[np.bool_]]:
    missing = is_missing(values)
    there = (None if lacks else text for text, lacks in zip(texts(values).to_pylist(), missing.tolist(), strict=True))
    flags = np.array([np.nan if text is None else FLAGS.get(text.strip().lower(), np.nan) for text in there], dtype=float)
    return flags, np.isnan(flags) & ~missing


def _words(values: Any) -> Cells:
    """How many words of a text fall into each bucket; none where it is missing."""
    missing = is_missing(values)
    counts = np.zeros((WORD_BUCKETS, len(missing)))
    for i, text in enumerate(texts(values).to_pylist()):
        for word in [] if missing[i] else WORD.findall(text.lower()):
            counts[bucket(word, WORD_BUCKETS), i] += 1.0
    return Cells(missing, np.zeros(len(missing), dtype=bool), list(counts))


READERS: dict[Kind, Callable[[Any], tuple[Vector, NDArray[np.bool_]]]] = {
    "amount": amounts,
    "decimal-comma": with_decimal_comma,
    "flag": _flags,
}
