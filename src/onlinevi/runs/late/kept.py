"""Rows that wait, in as few bytes as hold them: what they are learned by, and what was said of them when they came."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners import Forecast

NOTHING, ONE = -1, 0
"""Of a part of a forecast, that there is none, or that it is a number; else of how many it is."""
FLAGS = Forecast._fields.index("set")


class KeptRow(NamedTuple):
    """A row of features."""

    width: int
    values: bytes
    places: bytes | None
    """Of a sparse row, where its values are."""

    @staticmethod
    def of(X: Any) -> KeptRow:
        """A matrix of one row."""
        if hasattr(X, "tocsr"):
            return KeptRow(X.shape[1], X.data.astype(float).tobytes(), X.indices.astype(np.int64).tobytes())
        return KeptRow(X.shape[1], np.ascontiguousarray(X[0], dtype=float).tobytes(), None)

    @property
    def matrix(self) -> Any:
        """It again."""
        values = np.frombuffer(self.values).copy()
        if self.places is None:
            return values[np.newaxis]
        from scipy.sparse import csr_matrix

        return csr_matrix((values, np.frombuffer(self.places, np.int64), [0, len(values)]), shape=(1, self.width))


class Said(NamedTuple):
    """What was said of a row when it came, and of several classes what each would have cost."""

    layout: tuple[int, ...]
    values: bytes

    @staticmethod
    def of(forecast: Forecast, costs: Vector | None) -> Said:
        """A forecast of one row. ``costs`` are those of the classes known, and of one that has yet to join."""
        parts = [*forecast, None if costs is None else costs[np.newaxis]]
        layout = tuple(NOTHING if part is None else np.asarray(part).shape[1] if np.ndim(part) == 2 else ONE for part in parts)
        there = [np.ravel(part).astype(float) for part in parts if part is not None]
        return Said(layout, np.concatenate(there).tobytes())

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return sum(max(width, 1) for width in self.layout if width != NOTHING)

    @property
    def parts(self) -> tuple[Forecast, Vector | None]:
        """The forecast of one row, and the costs."""
        values, parts, start = np.frombuffer(self.values), list[Any](), 0
        for place, width in enumerate(self.layout):
            if width == NOTHING:
                parts.append(None)
                continue
            own = values[start : start + max(width, 1)]
            start += len(own)
            part: Any = own > 0.0 if place == FLAGS else own
            parts.append(part if width == ONE else part[np.newaxis])
        *forecast, costs = parts
        return Forecast(*forecast), None if costs is None else costs[0]


class WaitingRow(NamedTuple):
    """A row whose label comes later."""

    number: int
    came: int
    """How many rows had come before it."""
    time: float
    """When it came; NaN where only rows are counted."""
    row: KeptRow
    label: float | None = None
    """Where it is known, and only used later."""
    weight: float | None = None
    said: Said | None = None


class WaitingLabel(NamedTuple):
    """A label whose row has not come yet."""

    came: int
    time: float
    label: float


class Settled(NamedTuple):
    """What became of a row that waits no more."""

    came: int
    time: float
    labelled: float
    """1 where it had its label, 0 where it waited in vain."""


def rows_to_json(waiting: Iterable[tuple[Any, WaitingRow]]) -> dict[str, Any]:
    """Rows that wait, column by column: a tenth of what they are as lists of numbers."""
    pairs = list(waiting)
    rows = [row for _, row in pairs]
    layouts = list(dict.fromkeys(row.said.layout for row in rows if row.said is not None))
    numbers = {layout: number for number, layout in enumerate(layouts)}
    return {
        "keys": [key for key, _ in pairs],
        "sparse": any(row.row.places is not None for row in rows),
        "numbers": _text([row.number for row in rows], "<i8"),
        "came": _text([row.came for row in rows], "<i8"),
        "times": _text([row.time for row in rows]),
        "labels": _text([_or_nan(row.label) for row in rows]),
        "weights": _text([_or_nan(row.weight) for row in rows]),
        "widths": _text([row.row.width for row in rows], "<i8"),
        "sizes": _text([len(row.row.values) // 8 for row in rows], "<i8"),
        "values": _joined(row.row.values for row in rows),
        "places": _joined(row.row.places or b"" for row in rows),
        "layouts": [list(layout) for layout in layouts],
        "of": _text([-1 if row.said is None else numbers[row.said.layout] for row in rows], "<i8"),
        "said": _joined(b"" if row.said is None else row.said.values for row in rows),
    }


def rows_from_json(saved: dict[str, Any]) -> list[tuple[Any, WaitingRow]]:
    """The rows that ``rows_to_json`` was given; refused where they do not fit together."""
    keys, sparse = saved["keys"], saved["sparse"]
    number, came, width, size, of = (_array(saved[name], "<i8") for name in ("numbers", "came", "widths", "sizes", "of"))
    time, label, weight = (_array(saved[name]) for name in ("times", "labels", "weights"))
    layouts = [tuple(layout) for layout in saved["layouts"]]
    said = [None if place < 0 else Said(layouts[place], b"") for place in of.tolist()]
    values = _cut(saved["values"], size)
    places = _cut(saved["places"], size) if sparse else [None] * len(keys)
    told = _cut(saved["said"], np.array([0 if one is None else one.size for one in said], dtype=np.int64))
    if not sparse and (size != width).any():
        raise ValueError("a row that waits has not the columns that it says")
    infinite = any(np.isinf(np.frombuffer(own)).any() for own in values)
    if infinite or any(np.isnan(np.frombuffer(own)[:1]).any() for own in told):
        raise ValueError("a number of a row that waits is not finite")
    kept = [KeptRow(*one) for one in zip(width.tolist(), values, places, strict=True)]
    of_rows = [None if one is None else one._replace(values=part) for one, part in zip(said, told, strict=True)]
    known, weights = (list(map(_or_none, part.tolist())) for part in (label, weight))
    columns = (number.tolist(), came.tolist(), time.tolist(), kept, known, weights, of_rows)
    rows = [WaitingRow(*one) for one in zip(*columns, strict=True)]
    return list(zip(keys, rows, strict=True))


def facts_to_json(waiting: Iterable[tuple[str, NamedTuple]], kind: type[Any]) -> dict[str, Any]:
    """Labels that wait, or what became of rows, column by column."""
    pairs = list(waiting)
    columns = {name: _text([float(getattr(fact, name)) for _, fact in pairs]) for name in kind._fields}
    return {"keys": [key for key, _ in pairs], **columns}


def facts_from_json(saved: dict[str, Any], kind: type[Any]) -> list[tuple[str, Any]]:
    """The same again."""
    columns = [_array(saved[name]).tolist() for name in kind._fields]
    if not all(np.isfinite(columns).ravel()):
        raise ValueError("a number of what waits is not finite")
    facts = [kind(int(came), time, own) for came, time, own in zip(*columns, strict=True)]
    return list(zip(saved["keys"], facts, strict=True))


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value


def _or_none(value: float) -> float | None:
    return None if value != value else value


def _text(values: Sequence[Any], kind: str = "<f8") -> str:
    return b64encode(np.array(values, kind).tobytes()).decode("ascii")


def _array(text: str, kind: str = "<f8") -> Any:
    return np.frombuffer(b64decode(text, validate=True), kind)


def _joined(parts: Iterable[bytes]) -> str:
    return b64encode(b"".join(parts)).decode("ascii")


def _cut(text: str, sizes: Any) -> list[bytes]:
    """Bytes as parts of so many numbers each."""
    whole, ends = b64decode(text, validate=True), [0, *np.cumsum(8 * sizes).tolist()]
    if (sizes < 0).any() or ends[-1] != len(whole):
        raise ValueError("what waits is not as long as it says")
    return [whole[start:stop] for start, stop in pairwise(ends)]
