"""One column of one batch, read by its kind."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinevi.data.files.extra import arrow
from onlinevi.data.schema.kinds import FLAGS, Kind
from onlinevi.data.schema.numbers import is_missing, numbers
from onlinevi.data.schema.texts import texts
from onlinevi.data.schema.times import DATE_PARTS, TIME_PARTS, instants, parts
from onlinevi.engine import Vector

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


class Cells(NamedTuple):
    """A column's cells, some of them missing or not of its kind."""

    missing: NDArray[np.bool_]
    bad: NDArray[np.bool_]
    parts: list[Vector]
    """A value a row for each of the kind's parts, NaN where missing."""
    names: Any = None
    """Of a category: its text, null where missing."""


def cells(kind: Kind, values: Any) -> Cells:
    """Read a column as what it is known to hold."""
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
    found, bad = _flags(values) if kind == "flag" else numbers(values)
    return Cells(np.isnan(found) & ~bad, bad, [found])


def _flags(values: Any) -> tuple[Vector, NDArray[np.bool_]]:
    missing = is_missing(values)
    there = (None if lacks else text for text, lacks in zip(texts(values).to_pylist(), missing.tolist(), strict=True))
    found = np.array([np.nan if text is None else FLAGS.get(text.strip().lower(), np.nan) for text in there], dtype=float)
    return found, np.isnan(found) & ~missing
