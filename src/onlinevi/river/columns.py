"""Dicts of features as rows of numbers: which column a feature is in, and what stands where it is absent."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinevi.types import Vector

NONE_ABSENT = np.empty(0, dtype=np.int64)
NEW = -1
"""In place of an older column of the same category: there is none."""


class Columns:
    """The columns that features have been given so far, in the order in which they came.

    A number has a column; a string has one for each value seen, "name=value", 1 or 0. None and NaN are missing values.
    """

    def __init__(self, *, zeros: bool) -> None:
        self.zeros = zeros
        self.names: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._categories: dict[Any, dict[str, int]] = {}
        self._make_room()

    def _make_room(self) -> None:
        self.values = np.zeros((1, len(self.names)))
        # The common case, every feature a number and there, is one lookup and one copy in C.
        plain = len(self.names) > 1 and not self._categories
        self._get = itemgetter(*self.names) if plain else None
        self._pack = struct.Struct(f"{len(self.names)}d").pack_into
        self._packed: tuple[Any, ...] | None = None

    def read_plain(self, x: Mapping[Any, Any]) -> bool:
        """Put x in ``values`` if it has all features, no others, and all are numbers; else nothing is certain."""
        if self._get is None or len(x) != len(self.names):
            return False
        try:
            found = self._get(x)
            if found != self._packed:  # a row is learned soon after it was predicted
                self._packed = None
                self._pack(self.values, 0, *found)
                self._packed = found
        except (KeyError, struct.error):
            return False
        return True

    def read(self, x: Mapping[Any, Any]) -> NDArray[np.int64]:
        """Put the known features of x in ``values``; returns the columns that it says nothing of."""
        if self.read_plain(x):
            return NONE_ABSENT
        self._packed, row = None, self.values[0]
        row[:] = 0.0 if self.zeros else math.nan
        unsaid = np.full(len(row), not self.zeros)
        for name, value in x.items():
            if isinstance(value, str):
                places = self._categories.get(name, {})
                for place in places.values():
                    row[place], unsaid[place] = 0.0, False
                if value in places:
                    row[places[value]] = 1.0
            elif value is None:
                for place in (*self._categories.get(name, {}).values(), self._numbers.get(name, NEW)):
                    if place != NEW:
                        row[place], unsaid[place] = math.nan, False
            elif name in self._numbers:
                place = self._numbers[name]
                row[place], unsaid[place] = _number(name, value), False
        return np.flatnonzero(unsaid)

    def add(self, x: Mapping[Any, Any]) -> list[int]:
        """Give columns to new features; for each new one an older column of the same category, or ``NEW``."""
        for name, value in x.items():  # refuse before anything has changed
            if not isinstance(value, str) and value is not None:
                _number(name, value)
        added = []
        for name, value in x.items():
            if isinstance(value, str):
                places = self._categories.setdefault(name, {})
                if value not in places:
                    added.append(next(iter(places.values()), NEW))
                    places[value] = len(self.names)
                    self.names.append(f"{name}={value}")
            elif value is not None and name not in self._numbers:
                added.append(NEW)
                self._numbers[name] = len(self.names)
                self.names.append(name)
        if added:
            self._make_room()
        return added

    def __getstate__(self) -> dict[str, Any]:  # what was read last is nobody's business
        return {name: getattr(self, name) for name in ("zeros", "names", "_numbers", "_categories")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_room()


def _number(name: Any, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"feature {name!r} is {value!r}: needs a number, a bool, a string or None ({error})") from error
