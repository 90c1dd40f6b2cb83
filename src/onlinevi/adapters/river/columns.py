"""Dicts of features as rows of numbers: which column a feature is in, and what stands where it is absent."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from onlinevi.learners import InputState

NEW = -1
"""In place of a column: there is none."""

NEVER = -1
"""In place of the number of features of a plain row: there are no plain rows."""

Feature: TypeAlias = tuple[Any, str | None]
"""The name of a number, or the name and the value of a category."""


class Columns:
    """The columns that features have been given so far, in the order in which they came; by name where they came together.

    A number has a column; a string has one for each value seen, "name=value", 1 or 0. None and NaN are missing values.
    ``event`` is what was read last: a row of values, and a row with 1 where nothing was said of a column.
    """

    def __init__(self, *, zeros: bool) -> None:
        self.zeros = zeros
        self.names: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._categories: dict[Any, dict[str, int]] = {}
        self._make_room()

    def _make_room(self) -> None:
        self.event = np.zeros((2, len(self.names)))
        self.values, self._absent = self.event
        # The common case, every feature a number and there, is one lookup and one copy in C.
        self._plain_width = len(self.names) if len(self.names) > 1 and not self._categories else NEVER
        self._get = itemgetter(*self.names or (None,))
        self._pack = partial(struct.Struct(f"{len(self.names)}d").pack_into, self.event.data, 0)
        self._all_there = True

    def read_plain(self, x: Mapping[Any, Any]) -> bool:
        """Read x if it has all features, no others, and all are numbers; False, and nothing of use read, if not."""
        if len(x) != self._plain_width:
            return False
        try:
            self._pack(*self._get(x))
        except (KeyError, struct.error):
            return False
        if not self._all_there:
            self._absent[:], self._all_there = 0.0, True
        return True

    def read(self, x: Mapping[Any, Any]) -> None:
        """Put the known features of x in ``event``, and mark the columns that it says nothing of."""
        row, absent = self.values, self._absent
        row[:], absent[:] = (0.0, 0.0) if self.zeros else (math.nan, 1.0)
        self._all_there = False
        for name, value in x.items():
            if isinstance(value, str):
                places = self._categories.get(name, {})
                for place in places.values():
                    row[place], absent[place] = 0.0, 0.0
                if value in places:
                    row[places[value]] = 1.0
            elif _is_missing(value):
                for place in (*self._categories.get(name, {}).values(), self._numbers.get(name, NEW)):
                    if place != NEW:
                        row[place], absent[place] = math.nan, 0.0
            elif name in self._numbers:
                place = self._numbers[name]
                row[place], absent[place] = _number(name, value), 0.0

    def unknown(self, x: Mapping[Any, Any]) -> list[Feature]:
        """The features of x that have no column yet, by name: a dict has no order that may matter."""
        found: list[Feature] = []
        for name, value in x.items():
            if isinstance(value, str):
                if value not in self._categories.get(name, {}):
                    found.append((name, value))
            elif not _is_missing(value):
                _number(name, value)
                if name not in self._numbers:
                    found.append((name, None))
        return _in_order(found)

    def widened(self, scales: InputState, joining: Sequence[Feature]) -> InputState:
        """The moments with columns for these: 0 at all times, or wherever their category was seen, or never seen."""
        lag = [0.0 if self.zeros else self._lag(scales, *feature) for feature in joining]
        return scales.widened(scales.dim + len(joining), lag)

    def _lag(self, scales: InputState, name: Any, value: str | None) -> float:
        alike = [] if value is None else list(self._categories.get(name, {}).values())
        return float(scales.lag[alike[0]]) if alike else scales.count

    def joined_by(self, features: Sequence[Feature]) -> Columns:
        """The same with columns for these at the end."""
        joined = Columns(zeros=self.zeros)
        joined.names, joined._numbers = list(self.names), dict(self._numbers)
        joined._categories = {name: dict(places) for name, places in self._categories.items()}
        for name, value in features:
            places, key = (joined._numbers, name) if value is None else (joined._categories.setdefault(name, {}), value)
            places[key] = len(joined.names)
            joined.names.append(name if value is None else f"{name}={value}")
        joined._make_room()
        return joined

    def __getstate__(self) -> dict[str, Any]:  # what was read last is nobody's business
        return {name: getattr(self, name) for name in ("zeros", "names", "_numbers", "_categories")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_room()


def _in_order(features: list[Feature]) -> list[Feature]:
    try:
        return sorted(features, key=lambda feature: (type(feature[0]).__name__, feature[0], feature[1] or ""))
    except TypeError:  # names without an order of their own
        return sorted(features, key=repr)


def _is_missing(value: Any) -> bool:
    return value is None or bool(value != value)


def _number(name: Any, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"feature {name!r} is {value!r}: needs a number, a bool, a string or None ({error})") from error
