"""Contexts as rows of numbers: arrays as they are, and what has names by its names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import Vector, did_you_mean

Names = tuple[str, ...]


class Context(NamedTuple):
    """A row, or one for each arm."""

    rows: Vector
    names: Names
    """Of the columns; empty where the context had none."""

    def shown(self, row: int) -> Any:
        """A row, by the names of its columns where they have some."""
        return dict(zip(self.names, self.rows[row].tolist(), strict=True)) if self.names else self.rows[row]


def row_of(given: Any, names: Names) -> Context:
    """One row: an array, a mapping from names to numbers, or a row of a table. ``names`` are those of the rows before."""
    named = _by_name(given)
    if named is None:
        return Context(numbers(given), names)
    own = tuple(map(str, named))
    names = names or own
    for name in own:
        if name not in names:
            raise ValueError(f"the context has {name!r}{did_you_mean(name, names)}, those before had {', '.join(names)}")
    for name in names:
        if name not in own:
            raise ValueError(f"the context has no {name!r}: needs {', '.join(names)}")
    by_text = dict(zip(own, named.values(), strict=True))
    for name, value in by_text.items():
        try:
            float(value)
        except (TypeError, ValueError):
            raise ValueError(f"the context has {value!r} for {name!r}: needs a number; give words a column each") from None
    return Context(np.array([float(by_text[name]) for name in names]), names)


def rows_of(given: Any, arms: Sequence[Any], names: Names) -> Context:
    """A row for each of these arms: a matrix or a table in their order, or a mapping from arms to rows."""
    if isinstance(given, Mapping):
        lacking = [arm for arm in arms if arm not in given]
        if lacking:
            raise ValueError(f"the context has no row for the arm {lacking[0]!r}: give one for each, or among=[…]")
        given = [given[arm] for arm in arms]
    elif _is_table(given):
        given = _rows_by_name(given)
    if isinstance(given, Sequence) and any(_by_name(row) is not None for row in given):
        rows = []
        for row in given:
            rows.append(row_of(row, names))
            names = rows[-1].names
        given = [row.rows for row in rows]
    return Context(numbers(given), names)


def numbers(context: Any) -> Vector:
    """A context as an array of doubles."""
    if hasattr(context, "tocsr"):
        context = context.toarray()
        context = context[0] if len(context) == 1 else context
    try:
        return np.array(context, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"the context is {context!r}: needs numbers, one a feature") from None


def _by_name(given: Any) -> Mapping[Any, Any] | None:
    """A row by its names, if it has some: a mapping, a row of a table, a table of one row."""
    if isinstance(given, Mapping):
        return given
    if _is_table(given):
        rows = _rows_by_name(given)
        return rows[0] if len(rows) == 1 else None
    if hasattr(given, "index") and hasattr(given, "to_dict"):  # a row of pandas
        return dict(given.to_dict())
    return None


def _is_table(given: Any) -> bool:
    return hasattr(given, "columns") and hasattr(given, "shape")


def _rows_by_name(table: Any) -> list[dict[Any, Any]]:
    if hasattr(table, "to_pylist"):
        return list(table.to_pylist())
    return list(table.to_dicts() if hasattr(table, "to_dicts") else table.to_dict(orient="records"))
