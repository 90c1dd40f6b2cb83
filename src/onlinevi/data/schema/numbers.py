"""From a column to floats. NaN is a missing value; what is no number is marked."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinevi.data.files.extra import arrow
from onlinevi.data.files.values import MISSING
from onlinevi.data.schema.texts import is_text, plain, texts
from onlinevi.engine import Vector

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)


def numbers(values: Any) -> tuple[Vector, NDArray[np.bool_]]:
    """The values, and where they are no finite numbers although they are there."""
    pa, types = arrow(), arrow().types
    values = plain(values)
    if not (types.is_integer(values.type) or types.is_floating(values.type) or types.is_decimal(values.type)):
        values = texts(values)
    try:
        found = _floats(_without_missing(values) if is_text(values) else values)
    except pa.ArrowInvalid:
        found, bad = _one_by_one(values)
    else:
        bad = np.zeros(len(found), dtype=bool)
    return found, bad | np.isinf(found)


def is_number(text: str) -> bool:
    return NUMBER.fullmatch(text) is not None


def is_missing(values: Any) -> NDArray[np.bool_]:
    """Where a column has no value: null, NaN, or text that says so."""
    compute = arrow("compute")
    values = plain(values)
    if is_text(values):
        values = _without_missing(values)
    return np.asarray(compute.is_null(values, nan_is_null=True).to_numpy(zero_copy_only=False))


def _floats(values: Any) -> Vector:
    found = values.cast(arrow().float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(found, dtype=np.float64)


def _without_missing(values: Any) -> Any:
    pa, compute = arrow(), arrow("compute")
    values = compute.utf8_trim_whitespace(values)
    missing = compute.is_in(values, value_set=pa.array(sorted(MISSING)))
    return compute.if_else(missing, pa.scalar(None, pa.string()), values)


def _one_by_one(values: Any) -> tuple[Vector, NDArray[np.bool_]]:
    found, bad = np.full(len(values), np.nan), np.zeros(len(values), dtype=bool)
    for i, text in enumerate(_without_missing(values).to_pylist()):
        if text is not None:
            bad[i] = not is_number(text)
            found[i] = np.nan if bad[i] else float(text)
    return found, bad
