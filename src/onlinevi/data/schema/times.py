"""Dates and times by their parts, in UTC: numbers that a linear model can use."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinevi.data.schema.spelling import instant_of
from onlinevi.data.values import arrow, is_missing, numbers, plain, texts
from onlinevi.engine import Vector

DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
TIME = re.compile(DATE.pattern + r"([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?")

DATE_PARTS = ("year", "month", "weekday", "year_sin", "year_cos")
TIME_PARTS = (*DATE_PARTS, "hour", "day_sin", "day_cos")
"""Month 1 to 12, weekday from Monday = 0, hour 0 to 23; sine and cosine of the share of the year and of the day gone by."""

DAYS_A_YEAR = 365.2425
MILLISECONDS = 1e11
"""Whoever counts seconds gets here in the year 5138: numbers beyond count milliseconds."""


def instants(values: Any, day_first: bool | None = None) -> tuple[NDArray[np.datetime64], NDArray[np.bool_]]:
    """The values to the microsecond, NaT where missing, and where they are no times although they are there.

    ``day_first`` tells that they are dates that end in their year, and begin with the day or with the month.
    """
    pa, types = arrow(), arrow().types
    values = plain(values)
    if types.is_date(values.type) or types.is_timestamp(values.type):
        cast = values.cast(pa.timestamp("us", getattr(values.type, "tz", None)), safe=False)
        stamps = np.asarray(cast.to_numpy(zero_copy_only=False), dtype="datetime64[us]")
        return stamps, np.zeros(len(stamps), dtype=bool)
    return _read(
        texts(values), is_missing(values), _instant if day_first is None else partial(instant_of, day_first=day_first)
    )


def seconds(values: Any) -> tuple[Vector, NDArray[np.bool_]]:
    """When things happened, in seconds: numbers as they are, or in milliseconds; dates and times since 1970, in UTC. NaN where
    missing; and where they are neither."""
    values = plain(values)
    types = arrow().types
    if types.is_date(values.type) or types.is_timestamp(values.type):
        stamps, bad = instants(values)
        return _since_1970(stamps), bad
    counted, bad = numbers(values)
    spelled = np.flatnonzero(bad)
    if len(spelled):
        stamps, still_bad = instants(texts(values).take(arrow().array(spelled)))
        counted[spelled], bad[spelled] = _since_1970(stamps), still_bad
    return np.where(np.abs(counted) >= MILLISECONDS, counted / 1000.0, counted), bad


def _since_1970(stamps: NDArray[np.datetime64]) -> Vector:
    return np.where(np.isnat(stamps), np.nan, stamps.astype("datetime64[us]").astype(np.int64) / 1e6)


def parts(stamps: NDArray[np.datetime64], names: tuple[str, ...]) -> list[Vector]:
    """Each part by name; NaN where missing."""
    missing = np.isnat(stamps)
    filled = np.where(missing, np.datetime64(0, "us"), stamps)
    year, month, day = (filled.astype(f"datetime64[{unit}]") for unit in "YMD")
    day_gone = (filled - day) / np.timedelta64(1, "D")
    year_gone = 2.0 * np.pi * ((day - year.astype("datetime64[D]")) / np.timedelta64(1, "D") + day_gone) / DAYS_A_YEAR
    of_day = 2.0 * np.pi * day_gone
    known = {
        "year": year.astype(int) + 1970.0,
        "month": month.astype(int) % 12 + 1.0,
        "weekday": (day.astype(int) + 3) % 7 + 0.0,  # 1970 began on a Thursday
        "year_sin": np.sin(year_gone),
        "year_cos": np.cos(year_gone),
        "hour": np.floor(24.0 * day_gone),
        "day_sin": np.sin(of_day),
        "day_cos": np.cos(of_day),
    }
    return [np.where(missing, np.nan, known[name]) for name in names]


def is_date(text: str) -> bool:
    """Whether a text is written as a date; it may be none of the calendar's."""
    return DATE.fullmatch(text) is not None


def is_time(text: str) -> bool:
    """Whether a text is written as a time, or as a date."""
    return TIME.fullmatch(text) is not None


def _read(
    values: Any, missing: NDArray[np.bool_], instant_of: Callable[[str], datetime | None]
) -> tuple[NDArray[np.datetime64], NDArray[np.bool_]]:
    stamps, bad = np.full(len(values), np.datetime64("NaT", "us")), np.zeros(len(values), dtype=bool)
    known: dict[str, datetime | None] = {}
    for i, text in enumerate(values.to_pylist()):
        if missing[i]:
            continue
        if text not in known:
            known[text] = instant_of(text.strip())
        instant = known[text]
        bad[i] = instant is None
        if instant is not None:
            stamps[i] = np.datetime64(instant, "us")
    return stamps, bad


def _instant(text: str) -> datetime | None:
    if not is_time(text):
        return None
    try:
        instant = datetime.fromisoformat(text)
        return instant.astimezone(UTC).replace(tzinfo=None) if instant.tzinfo else instant
    except (ValueError, OverflowError):
        return None
