"""Numbers and dates as people write them: decimal commas, thousands, currencies, percent, days first or months first."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinevi.data.values import is_missing, texts
from onlinevi.engine import Vector

_CURRENCY = "[$€£¥]"
_FORM = r"([+-]?) ?(?:%s ?)?([+-]?)(%s) ?(?:%%|%s)?"
AMOUNT = re.compile(_FORM % (_CURRENCY, r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?", _CURRENCY))
"""14524.84, 14,524.84, $14,524.84, −3 €, 77%."""
COMMA = re.compile(_FORM % (_CURRENCY, r"(?:[1-9][0-9]{0,2}(?:[. '\u00a0\u202f][0-9]{3})+|[0-9]+)(?:,[0-9]+)?", _CURRENCY))
"""14524,84, 14.524,84, 14 524,84 €, 7,5 %."""
_CLOCK = r"(?:,? |T)([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?(?: ?([AaPp])[Mm])?"
DATE = re.compile(rf"([0-9]{{1,2}})([./-])([0-9]{{1,2}})\2([0-9]{{4}})(?:{_CLOCK})?")
"""31.01.2023, 1/31/2023, 31.01.2023 14:05, 01/31/2023 02:05:00 PM."""


def bucket(text: str, buckets: int) -> int:
    """Which bucket a text falls into: the same on every machine and in every run."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") % buckets


def is_amount(text: str) -> bool:
    """Whether a text is a number with a point, perhaps with commas between thousands, a currency or a percent sign."""
    return AMOUNT.fullmatch(text) is not None


def has_decimal_comma(text: str) -> bool:
    """Whether a text is a number with a comma in place of the point."""
    return COMMA.fullmatch(text) is not None


def amounts(values: Any) -> tuple[Vector, NDArray[np.bool_]]:
    """The values as floats, NaN where missing, and where they are no such numbers although they are there."""
    return _read(values, lambda text: _number(AMOUNT.fullmatch(text), {",": ""}))


def with_decimal_comma(values: Any) -> tuple[Vector, NDArray[np.bool_]]:
    """The same for numbers with a decimal comma."""
    return _read(values, lambda text: _number(COMMA.fullmatch(text), dict.fromkeys(". '\u00a0\u202f", "") | {",": "."}))


def day_and_month(text: str) -> tuple[int, int] | None:
    """The first two numbers of a date that ends in its year; None for other texts."""
    match = DATE.fullmatch(text)
    return None if match is None else (int(match[1]), int(match[3]))


def is_dotted(text: str) -> bool:
    """Whether points stand between the parts of a date: then the day is first."""
    match = DATE.fullmatch(text)
    return match is not None and match[2] == "."


def has_clock(text: str) -> bool:
    """Whether a date that ends in its year has a time of the day behind it."""
    match = DATE.fullmatch(text)
    return match is not None and match[5] is not None


def instant_of(text: str, day_first: bool) -> datetime | None:
    """The day that a text spells, and the time of it, if there is one."""
    match = DATE.fullmatch(text)
    if match is None:
        return None
    first, second, year = int(match[1]), int(match[3]), int(match[4])
    hour, minute, seconds = (int(match[k] or 0) for k in (5, 6, 7))
    if match[9] is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match[9] in "Pp" else 0)
    clock = hour, minute, seconds, int((match[8] or "")[:6].ljust(6, "0"))
    try:
        return datetime(year, second, first, *clock) if day_first else datetime(year, first, second, *clock)
    except ValueError:
        return None


def _number(match: re.Match[str] | None, spelled: Mapping[str, str]) -> float | None:
    if match is None or (match[1] and match[2]):
        return None
    return float(match[1] + match[2] + match[3].translate(str.maketrans(dict[str, str | int | None](spelled))))


def _read(values: Any, number: Callable[[str], float | None]) -> tuple[Vector, NDArray[np.bool_]]:
    missing = is_missing(values)
    known: dict[str | None, float | None] = {}
    floats, bad = np.full(len(missing), np.nan), np.zeros(len(missing), dtype=bool)
    for i, text in enumerate(texts(values).to_pylist()):
        if missing[i]:
            continue
        if text not in known:
            known[text] = number(text.strip())
        found = known[text]
        bad[i] = found is None
        floats[i] = np.nan if found is None else found
    return floats, bad
