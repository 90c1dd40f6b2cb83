"""Dicts of features as rows of numbers: which column a feature is in, and what stands where it is absent."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from onlinevi.adapters.river.event import UNSAID, VALUES
from onlinevi.engine import Vector
from onlinevi.learners.inputs.passes import LARGEST

NEW = -1
"""In place of an older column of the same category: there is none."""

NEVER = -1
"""In place of the number of features of a plain row: there are no plain rows."""

Feature: TypeAlias = tuple[Any, str | None]
"""The name of a number, or the name and the value of a category."""


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
        self.said = np.zeros((2, len(self.names)))
        # The common case, every feature a number and there, is one lookup and one copy in C.
        self._plain_width = len(self.names) if len(self.names) > 1 and not self._categories else NEVER
        self._get = itemgetter(*self.names or (None,))
        self._pack = partial(struct.Struct(f"{len(self.names)}d").pack_into, self.said.data, 0)
        self._all_said = True

    @property
    def values(self) -> Vector:
        """The row that was read last."""
        return self.said[VALUES]  # type: ignore[no-any-return]

    def read_plain(self, x: Mapping[Any, Any]) -> bool:
        """Read x if it has all features, no others, and all are numbers; False, and nothing of use read, if not."""
        if len(x) != self._plain_width:
            return False
        try:
            self._pack(*self._get(x))
        except (KeyError, struct.error):
            return False
        if not self._all_said:
            self.said[UNSAID], self._all_said = 0.0, True
        return True

    def read(self, x: Mapping[Any, Any]) -> None:
        """Put the known features of x in ``said``, and mark the columns that it says nothing of."""
        row, unsaid = self.said
        row[:], unsaid[:] = (0.0, 0.0) if self.zeros else (math.nan, 1.0)
        self._all_said = False
        for name, value in x.items():
            if isinstance(value, str):
                places = self._categories.get(name, {})
                for place in places.values():
                    row[place], unsaid[place] = 0.0, 0.0
                if value in places:
                    row[places[value]] = 1.0
            elif _is_missing(value):
                for place in (*self._categories.get(name, {}).values(), self._numbers.get(name, NEW)):
                    if place != NEW:
                        row[place], unsaid[place] = math.nan, 0.0
            elif name in self._numbers:
                place = self._numbers[name]
                row[place], unsaid[place] = _number(name, value), 0.0

    def unknown(self, x: Mapping[Any, Any]) -> list[Feature]:
        """The features of x that have no column yet."""
        found: list[Feature] = []
        for name, value in x.items():
            if isinstance(value, str):
                if value not in self._categories.get(name, {}):
                    found.append((name, value))
            elif not _is_missing(value):
                _number(name, value)
                if name not in self._numbers:
                    found.append((name, None))
        return found

    def alike(self, feature: Feature) -> int:
        """An older column of the same category, or ``NEW``."""
        name, value = feature
        return NEW if value is None else next(iter(self._categories.get(name, {}).values()), NEW)

    def add(self, features: Sequence[Feature]) -> None:
        """Give them columns, at the end."""
        for name, value in features:
            places, key = (self._numbers, name) if value is None else (self._categories.setdefault(name, {}), value)
            places[key] = len(self.names)
            self.names.append(name if value is None else f"{name}={value}")
        self._make_room()

    def refused(self, *, missing: bool) -> str | None:
        """What is wrong with the values read last, by name, if a value is."""
        for name, value in zip(self.names, self.values.tolist(), strict=True):
            if value != value and not missing:
                return f"feature {name!r} is missing: set inputs=Inputs(missing=True), or fill it in"
            if abs(value) > LARGEST:
                return f"feature {name!r} is {value}: needs a finite number, not beyond ±{LARGEST}; None if it is missing"
        return None

    def __getstate__(self) -> dict[str, Any]:  # what was read last is nobody's business
        return {name: getattr(self, name) for name in ("zeros", "names", "_numbers", "_categories")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_room()


def _is_missing(value: Any) -> bool:
    return value is None or bool(value != value)


def _number(name: Any, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"feature {name!r} is {value!r}: needs a number, a bool, a string or None ({error})") from error
