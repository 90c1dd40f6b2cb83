"""What a column holds, numbers, true and false, names, dates or times; and its cells, read as such."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from onlinevi.data.schema.times import DATE_PARTS, TIME_PARTS, instants, is_date, is_time, parts
from onlinevi.data.sources import BadInput
from onlinevi.data.values import arrow, is_missing, is_number, is_numeric, is_text, is_usable, numbers, plain, texts
from onlinevi.engine import Vector

Kind: TypeAlias = Literal["number", "flag", "category", "date", "time"]
KINDS: tuple[Kind, ...] = ("number", "flag", "category", "date", "time")

FLAGS = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}

PARTS: dict[Kind, tuple[str, ...]] = {
    "number": ("",),
    "flag": ("",),
    "category": (),
    "date": DATE_PARTS,
    "time": TIME_PARTS,
}
"""The features a column has from the start, each under its name; a category's come as they are met."""

NEEDS: dict[Kind, str] = {
    "number": "a finite number",
    "flag": "true or false",
    "category": "a name",
    "date": "a date such as 2024-02-29",
    "time": "a time such as 2024-02-29T12:00:00Z",
}

ODD_IN = 50
"""One cell in so many may be odd in a column of numbers or dates."""


def check_type(name: str, values: Any) -> None:
    """Refuse a column whose type has no kind."""
    if not is_usable(values):
        raise BadInput(
            f"column {name!r} holds {values.type}: needs numbers, text, dates or booleans; convert it, or --drop {name}"
        )


def kind_of(blocks: Iterable[Any]) -> Kind | None:
    """The narrowest kind that takes all values of a column, or all but a few; None while it has no value."""
    there = [present for values in blocks if len(present := _present(plain(values)))]
    typed = {_typed(values) for values in there}
    if not typed:
        return None
    if None not in typed and (len(typed) == 1 or typed <= {"date", "time"}):
        return typed.pop() if len(typed) == 1 else "time"
    spelled = Counter(text.strip() for values in there for text in texts(values).to_pylist())
    kind = _kind_of_text(spelled)
    if kind == "category":  # a few odd cells do not make names of numbers
        kind = _kind_of_text(_without_odd(spelled)) if _without_odd(spelled) else kind
    return kind


def odd_cells(name: str, kind: Kind | None, blocks: Iterable[Any]) -> list[str]:
    """The texts of a column's cells that are not of its kind, in their order."""
    if kind in (None, "category"):
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


def _kind_of_text(values: Collection[str]) -> Kind:
    if all(map(is_number, values)):
        return "number"
    if {value.lower() for value in values} <= {"true", "false"}:
        return "flag"
    if all(map(is_time, values)):
        return "date" if all(map(is_date, values)) else "time"
    return "category"


def _without_odd(spelled: Counter[str]) -> list[str]:
    """The values that are written as most are, if nearly all are: numbers, or dates and times."""
    for is_one in (is_number, is_time):
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


def cells(kind: Kind, values: Any) -> Cells:
    """Read a column of one batch as what it is known to hold."""
    if kind == "category":
        names = texts(values)
        compute, pa = arrow("compute"), arrow()
        empty = compute.equal(compute.utf8_trim_whitespace(names), "")
        names = compute.if_else(empty, pa.scalar(None, pa.string()), names)
        missing = names.is_null().to_numpy(zero_copy_only=False)
        return Cells(missing, np.zeros(len(missing), dtype=bool), [], names)
    if kind in ("date", "time"):
        stamps, bad = instants(values)
        return Cells(np.isnat(stamps) & ~bad, bad, parts(stamps, PARTS[kind]))
    floats, bad = _flags(values) if kind == "flag" else numbers(values)
    return Cells(np.isnan(floats) & ~bad, bad, [floats])


def _flags(values: Any) -> tuple[Vector, NDArray[np.bool_]]:
    missing = is_missing(values)
    there = (None if lacks else text for text, lacks in zip(texts(values).to_pylist(), missing.tolist(), strict=True))
    flags = np.array([np.nan if text is None else FLAGS.get(text.strip().lower(), np.nan) for text in there], dtype=float)
    return flags, np.isnan(flags) & ~missing
