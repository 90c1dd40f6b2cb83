"""What a column holds, numbers, true and false, names, dates or times; and its cells, read as such."""

from __future__ import annotations

from collections.abc import Iterable
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


def check_type(name: str, values: Any) -> None:
    """Refuse a column whose type has no kind."""
    if not is_usable(values):
        raise BadInput(
            f"column {name!r} holds {values.type}: needs numbers, text, dates or booleans; convert it, or --drop {name}"
        )


def kind_of(blocks: Iterable[Any]) -> Kind | None:
    """The narrowest kind that takes all values of a column; None while it has no value."""
    kinds = {kind for values in blocks if (kind := _kind(plain(values))) is not None}
    if kinds <= {"date", "time"} and "time" in kinds:
        return "time"
    return kinds.pop() if len(kinds) == 1 else "category" if kinds else None


def _kind(values: Any) -> Kind | None:
    types = arrow().types
    there = values.filter(arrow().array(~is_missing(values)))
    if not len(there):
        return None
    if is_text(values):
        return _kind_of_text([text.strip() for text in there.unique().to_pylist()])
    if types.is_boolean(values.type):
        return "flag"
    if is_numeric(values):
        return "number"
    return "date" if types.is_date(values.type) else "time"


def _kind_of_text(values: list[str]) -> Kind:
    if all(map(is_number, values)):
        return "number"
    if {value.lower() for value in values} <= {"true", "false"}:
        return "flag"
    if all(map(is_time, values)):
        return "date" if all(map(is_date, values)) else "time"
    return "category"


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
