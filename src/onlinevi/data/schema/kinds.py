"""What a column holds: numbers, true and false, names, dates or times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import numpy as np

from onlinevi.data.files.extra import arrow
from onlinevi.data.schema.numbers import is_missing, is_number
from onlinevi.data.schema.texts import is_text, plain
from onlinevi.data.schema.times import is_date, is_time

Kind: TypeAlias = Literal["number", "flag", "category", "date", "time"]
KINDS: tuple[Kind, ...] = ("number", "flag", "category", "date", "time")

FLAGS = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}


def kind_of(name: str, blocks: Iterable[Any]) -> Kind | None:
    """The narrowest kind that takes all values of a column; None while it has no value."""
    found = {kind for values in blocks if (kind := _kind(name, plain(values))) is not None}
    if found <= {"date", "time"} and "time" in found:
        return "time"
    return found.pop() if len(found) == 1 else "category" if found else None


def _kind(name: str, values: Any) -> Kind | None:
    types = arrow().types
    there = values.filter(arrow().array(~is_missing(values)))
    if not len(there):
        return None
    if is_text(values):
        return _kind_of_text([text.strip() for text in there.unique().to_pylist()])
    if types.is_boolean(values.type):
        return "flag"
    if types.is_integer(values.type) or types.is_floating(values.type) or types.is_decimal(values.type):
        return "number"
    if types.is_date(values.type) or types.is_timestamp(values.type):
        return "date" if types.is_date(values.type) else "time"
    raise TypeError(f"column {name!r} holds {values.type}: needs numbers, text, dates or booleans; drop it, or convert it")


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
