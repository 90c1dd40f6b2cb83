"""What is decided of a row of classes: the class of the least expected cost, or none where its set leaves the class open."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from onlinevi.data import class_name
from onlinevi.engine import Vector, did_you_mean
from onlinevi.learners import Forecast

Costs: TypeAlias = Mapping[str, Mapping[str, float]]
"""What each class that came, the outer name, costs with each that was decided, the inner one."""
LARGEST = 1e30
"""A cost beyond this is a mistake; sums of such must stay numbers."""
HEADER = "needs a header of class names behind its first cell, and a row for each class: its name, then what it costs"


def as_costs(given: Any) -> Costs | None:
    """Costs by the names of classes: a mapping of mappings, or a table of pandas whose index has the classes that come.

    >>> as_costs({"no": {"no": 0, "yes": 1}, "yes": {"yes": 0, "no": 5}})["yes"]
    {'no': 5.0, 'yes': 0.0}
    """
    if given is None:
        return None
    if hasattr(given, "to_dict") and hasattr(given, "index"):
        given = given.to_dict("index")
    if not isinstance(given, Mapping) or not all(isinstance(row, Mapping) for row in given.values()):
        raise ValueError(
            f"cost={str(given)[:60]!r}: needs what each class that comes costs by what is decided, as "
            "{'no': {'no': 0, 'yes': 1}, 'yes': {'no': 5, 'yes': 0}}, or a file of such a table by read_costs(path)"
        )
    table = {_name(was): {_name(said): value for said, value in row.items()} for was, row in given.items()}
    for was, row in table.items():
        if lacking := [name for name in table if name not in row]:
            raise ValueError(f"cost: where {was!r} comes, the cost of deciding {lacking[0]!r} is missing")
        if unknown := [name for name in row if name not in table]:
            meant = did_you_mean(unknown[0], table)
            raise ValueError(f"cost: {unknown[0]!r} can be decided, but has no row of its own{meant}")
        for said, value in row.items():
            if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not abs(float(value)) <= LARGEST:
                raise ValueError(
                    f"cost of deciding {said!r} where {was!r} comes is {value!r}: needs a number up to {LARGEST:g}"
                )
    if len(table) < 2 or len(table) < len(given):
        raise ValueError(f"cost: needs at least two classes with names of their own, and has {', '.join(map(repr, given))}")
    return {was: {said: float(row[said]) for said in table} for was, row in table.items()}


def _name(given: Any) -> str:
    return str(class_name(str(given).lower() if isinstance(given, bool | np.bool_) else str(given), (str(given).strip(),)))


def read_costs(path: str | Path) -> Costs:
    """The costs in a CSV file: its header has the classes that can be decided, its first column those that come."""
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        try:
            rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
        except (csv.Error, UnicodeError) as error:
            raise ValueError(f"{path}: is no CSV file in UTF-8 ({error})") from error
    if len(rows) < 2 or len(rows[0]) < 2:
        raise ValueError(f"{path}: {HEADER}")
    names = [_name(name) for name in rows[0][1:]]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{path}: class {min(twice)!r} stands twice in the header")
    table: dict[str, dict[str, float]] = {}
    for was, *cells in rows[1:]:
        if len(cells) != len(names):
            raise ValueError(f"{path}: the row of {was.strip()!r} has {len(cells)} costs for {len(names)} classes")
        if _name(was) in table:
            raise ValueError(f"{path}: class {was.strip()!r} has two rows")
        table[_name(was)] = {name: _number(path, was, name, cell) for name, cell in zip(names, cells, strict=True)}
    try:
        found = as_costs(table)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    assert found is not None
    return found


def _number(path: str | Path, was: str, said: str, cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f"{path}: the cost of {said!r} where {was.strip()!r} comes is {cell!r}: needs a number") from None


NOTHING = -1
"""The number of the class where nothing is decided."""


@dataclass(frozen=True, eq=False)
class Decisions:
    """How rows are decided: by ``costs``, a row for each class that comes and a column for each that is decided, in the order
    of their numbers; without, for the guess. With ``abstain`` only where the set has one class."""

    costs: Vector | None = None
    abstain: bool = False

    @staticmethod
    def of(costs: Costs | None, abstain: bool, names: Sequence[str]) -> Decisions | None:
        """For classes in this order; None where nothing but the guess was asked for."""
        if costs is None:
            return Decisions(None, abstain) if abstain else None
        return Decisions(np.array([[costs[was][said] for said in names] for was in names]), abstain)

    def made(self, forecast: Forecast) -> Any:
        """The numbers of the classes decided for, ``NOTHING`` where there is none."""
        codes = np.asarray(forecast.guess).astype(np.int64)
        if self.costs is not None:
            expected = self.expected(forecast)
            best = expected.argmin(axis=1)
            rows = np.arange(len(codes))
            codes = np.where(expected[rows, best] < expected[rows, codes], best, codes)  # of equal ones the guess
        return np.where(forecast.set.sum(axis=1) == 1, codes, NOTHING) if self.abstain else codes

    def expected(self, forecast: Forecast) -> Vector:
        """What each decision costs on average, by the probabilities that were said."""
        assert self.costs is not None
        return np.asarray(forecast.of_classes @ self.costs)

    def paid(self, codes: Any, decided: Any) -> Vector:
        """What decisions cost where these classes came; without costs 1 for a wrong one, and 0 where there was none."""
        there = decided != NOTHING
        if self.costs is None:
            return np.where(there, codes != decided, 0.0)
        return np.where(there, self.costs[codes, np.where(there, decided, 0)], 0.0)
