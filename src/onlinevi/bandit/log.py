"""Decisions with what became of them: as values, and as rows of a file that anything can read."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from onlinevi.bandit.arms import Arm, is_name
from onlinevi.bandit.waiting import Id
from onlinevi.data import MISSING, Batch, open_stream, source_of
from onlinevi.engine import Vector, did_you_mean

NEEDED = "arm", "propensity", "reward"
"""The columns without which nothing can be told."""
OF_ARMS = "probabilities", "expected"
"""Columns of these begin with the word and a point, and end with the arm."""
CONTEXT = "context."
TRUTHS = {"true": 1.0, "false": 0.0}


class Decision(NamedTuple):
    """A choice with what became of it: a row of a log."""

    number: int
    """From 0, in the order of the choices."""
    id: Id
    arm: Arm
    propensity: float
    reward: float | None
    """None where none came, and none was to be taken for it."""
    told: bool
    """Whether the reward was told, or is the default after the wait."""
    arms: tuple[Arm, ...]
    """Those it was chosen from."""
    probabilities: Vector
    """By which each of them was chosen; empty where a file has none."""
    expected: Vector
    """The reward that was expected of each; empty where a file has none."""
    context: Any
    """A row: an array, or a mapping from the names of its columns; where arms have rows of their own, a mapping from arms."""

    def as_row(self) -> dict[str, Any]:
        """As JSON values, what belongs to arms and contexts by their names."""
        own: dict[str, Any] = {name: getattr(self, name) for name in self._fields[:6]}
        for name in OF_ARMS:
            own[name] = dict(zip(map(str, self.arms), map(_plain, getattr(self, name)), strict=False))
        return own | {"context": _as_json(self.context)}


def _plain(value: Any) -> Any:
    """A number as JSON has it: none for NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_json(context: Any) -> Any:
    if isinstance(context, Mapping):
        return {str(name): _as_json(value) for name, value in context.items()}
    if isinstance(context, np.ndarray) and context.ndim:
        return {str(place): _as_json(value) for place, value in enumerate(context)}
    return _plain(float(context)) if isinstance(context, np.generic | np.ndarray) else _plain(context)


class LogFile:
    """Writes decisions to a file as they are settled, a line of JSON each: ``Bandit(…, log=LogFile("log.ndjson"))``.

    A file that is there goes on. Each line is given to the system before the next decision; what a crash cut off is taken
    away when the file is opened again.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file = self.path.open("a+b")
        _end_with_a_line(self._file)

    def __call__(self, decision: Decision) -> None:
        self._file.write(json.dumps(decision.as_row(), ensure_ascii=False, allow_nan=False).encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _end_with_a_line(file: Any, step: int = 1 << 16) -> None:
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - step)
        file.seek(start)
        place = file.read(end - start).rfind(b"\n")
        if place >= 0:
            file.truncate(start + place + 1)
            return
        end = start
    file.truncate(0)


def decisions_of(log: Any) -> Iterable[Decision]:
    """The decisions of a log of any kind."""
    if isinstance(log, str | Path) or not isinstance(log, Iterable):
        return read_log(log)
    if isinstance(log, Mapping) or hasattr(log, "__arrow_c_stream__") or hasattr(log, "columns") or hasattr(log, "read"):
        return read_log(log)
    rows = list(log)
    if all(isinstance(one, Decision) for one in rows):
        return rows
    odd = next(one for one in rows if not isinstance(one, Decision))
    if all(isinstance(one, Mapping) for one in rows):
        return read_log(rows)
    raise TypeError(f"the log holds {odd!r}: needs decisions, rows that are dicts, a table, or a file")


def read_log(source: Any) -> list[Decision]:
    """The decisions of a file (NDJSON, CSV, Parquet, Arrow) or a table: a row each.

    Columns: ``arm``, ``propensity``, ``reward``, empty where there is none; ``number``, without which rows are in their
    order; ``id``, ``told``; ``probabilities.ARM`` and ``expected.ARM`` for each arm, empty where it was not to be had. All
    others, and ``context.NAME``, are the context. Arms that are whole numbers, all of them, are taken for such.

    >>> columns = {"arm": ["red", "blue"], "propensity": [0.5, 0.5], "reward": [1, None], "age": [31, 7]}
    >>> [(one.arm, one.reward, one.context["age"]) for one in read_log(columns)]
    [('red', 1.0, 31), ('blue', None, 7)]
    """
    with open_stream(source_of(source)) as stream:
        rows = [pair for batch in stream for pair in _rows(batch)]
    if not rows:
        raise ValueError("the log is empty: needs at least one decision")
    names = dict.fromkeys(name for row, _ in rows for name in row)
    layout = _Layout.of(names, [row.get("arm") for row, _ in rows])
    return [layout.decision(names | row, number, where) for number, (row, where) in enumerate(rows)]


def _rows(batch: Batch) -> Iterator[tuple[dict[str, Any], str]]:
    """Rows by their columns, and what messages call them."""
    columns = {name: values.to_pylist() for name, values in batch.columns.items()}
    for place in range(len(batch)):
        yield {name: values[place] for name, values in columns.items()}, f"row {int(batch.rows[place])} of {batch.source}"


class _Layout(NamedTuple):
    """What the columns of a log mean."""

    whole: bool
    """Whether arms are whole numbers."""
    of_arms: dict[str, dict[str, str]]
    """Of what belongs to arms, the columns by arm."""
    context: dict[str, str]
    """Columns by the names of the context."""
    in_order: bool
    """Whether these are the places in a row of numbers."""

    @classmethod
    def of(cls, columns: Mapping[str, None], chosen: list[Any]) -> _Layout:
        for name in NEEDED:
            if name not in columns:
                raise ValueError(f"the log has no column {name!r}{did_you_mean(name, columns)}: it has {', '.join(columns)}")
        of_arms = {kind: {name[len(kind) + 1 :]: name for name in columns if name.startswith(f"{kind}.")} for kind in OF_ARMS}
        spoken = {*NEEDED, "number", "id", "told", *(name for of_kind in of_arms.values() for name in of_kind.values())}
        context = {name.removeprefix(CONTEXT): name for name in columns if name not in spoken}
        arms = [*of_arms["probabilities"]] or [value for value in chosen if value is not None]
        in_order = [*context] == [str(place) for place in range(len(context))]
        return cls(all(_is_whole(arm) for arm in arms), of_arms, context, in_order)

    def decision(self, row: Mapping[str, Any], place: int, where: str) -> Decision:
        arm = self.arm(row["arm"])
        if arm is None:
            raise ValueError(f"{where}: it has no arm")
        chances = {self.arm(one): _number(row[name], where, name) for one, name in self.of_arms["probabilities"].items()}
        had = {one: chance for one, chance in chances.items() if chance is not None}
        arms: tuple[Any, ...] = tuple(had) or (arm,)
        hoped = {self.arm(one): _number(row[name], where, name) for one, name in self.of_arms["expected"].items()}
        expected = [math.nan if (one := hoped.get(each)) is None else one for each in arms] if hoped else []
        number, propensity = _number(row.get("number"), where, "number"), _number(row["propensity"], where, "propensity")
        if number is not None and number % 1.0:
            raise ValueError(f"{where}: its number is {number}, needs a whole one")
        if propensity is None:
            raise ValueError(f"{where}: it has no propensity, the probability by which its arm was chosen")
        named = {name: _value(row[column]) for name, column in self.context.items()}
        reward, told = _number(row["reward"], where, "reward"), _number(row.get("told"), where, "told")
        return Decision(
            place if number is None else int(number),
            row.get("id") or place,
            arm,
            propensity,
            reward,
            reward is not None if told is None else bool(told),
            arms,
            np.array([*had.values()]),
            np.array(expected),
            np.array([*named.values()], dtype=float) if self.in_order else named,
        )

    def arm(self, given: Any) -> Any:
        """An arm, as it is called in Python."""
        if given is None or given == "":
            return None
        return int(given) if self.whole and _is_whole(given) else given if is_name(given) else str(given)


def _is_whole(arm: Any) -> bool:
    if isinstance(arm, str):
        return arm.removeprefix("-").isdecimal()
    return type(arm) is int or (isinstance(arm, float) and arm.is_integer())


def _number(given: Any, where: str, name: str) -> float | None:
    """A number of a row, None where it is empty."""
    if given is None or (isinstance(given, str) and given.strip() in MISSING) or given != given:
        return None
    try:
        return TRUTHS[given.strip().lower()] if isinstance(given, str) and given.strip().lower() in TRUTHS else float(given)
    except (TypeError, ValueError):
        raise ValueError(f"{where}: {name} is {given!r}, needs a number") from None


def _value(given: Any) -> Any:
    """What a context has: a number where it is one, by its text too, NaN where it is missing."""
    if given is None or (isinstance(given, str) and given.strip() in MISSING):
        return math.nan
    try:
        return float(given) if isinstance(given, str) else given
    except ValueError:
        return given
