"""What the first rows of a stream were taken for, column by column, and what is odd about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from onlinevi.data.schema.kinds import DAY_FIRST, IDS, Kind, odd_cells
from onlinevi.data.schema.schema import Schema
from onlinevi.data.schema.spelling import day_and_month
from onlinevi.data.stream import Batch
from onlinevi.data.values import arrow, is_missing, is_number, texts

FEW = 20
"""Of fewer values nothing is said."""
WORDY = 3.0
"""So many words on average are no name."""


class Seen(NamedTuple):
    """A column of the first rows."""

    name: str
    kind: str | None
    """None where it has no value there; of the target its task."""
    missing: int
    distinct: int
    rows: int
    """How many were looked at."""
    warnings: tuple[str, ...]
    """What its reader should know, each a sentence that begins with the column's name."""


def first_look(schema: Schema, seen: Sequence[Batch]) -> tuple[Seen, ...]:
    """Each column in use as it was taken, the target last; of a sparse file there are none."""
    refused = schema.how.odd == "refuse"
    columns = [_seen(name, kind, seen, odd_refused=refused) for name, kind in schema.kinds.items()]
    if schema.target is None or not schema.kinds:
        return tuple(columns)
    return (*columns, _target(schema, schema.target, seen))


def _seen(name: str, kind: Kind | None, seen: Sequence[Batch], *, odd_refused: bool = True) -> Seen:
    rows = sum(map(len, seen))
    blocks = [batch.columns[name] for batch in seen if name in batch.columns]
    values = _values(blocks)
    odd, different = odd_cells(kind, blocks), dict.fromkeys(values)
    warnings = tuple(_warnings(name, kind, values, odd, odd_refused))
    return Seen(name, kind, rows - len(values), len(different), rows, warnings)


def _target(schema: Schema, name: str, seen: Sequence[Batch]) -> Seen:
    """The labels, which had better not be sorted."""
    assert schema.task is not None
    classes = schema.task.kind == "classes"
    column = _seen(name, "category" if classes else schema.task.written, seen)._replace(kind=schema.task.kind)
    values = _values([batch.columns[name] for batch in seen if name in batch.columns])
    changes = sum(one != other for one, other in pairwise(values))
    in_runs = classes and len(values) >= FEW and changes < column.distinct and column.distinct < len(values) / 2
    warnings = [
        f"{name}: labels are sorted in the first rows, {changes + 1} runs of {column.distinct} classes: what is learned last "
        "counts most, so shuffle the file"
    ]
    return column._replace(warnings=tuple(warnings) if in_runs else ())


def _values(blocks: Sequence[Any]) -> list[str]:
    """The texts of the values that are there."""
    there = [texts(values).filter(arrow().array(~is_missing(values))) for values in blocks]
    return [text.strip() for values in there for text in values.to_pylist()]


def _warnings(name: str, kind: Kind | None, values: Sequence[str], odd: Sequence[str], odd_refused: bool) -> Iterator[str]:
    count, different = len(values), set(values)
    if odd:
        cells = f"{len(odd):,} of {count:,} cells {'is' if len(odd) == 1 else 'are'} none, as {odd[0]!r}"
        rows = "rows with such cells are bad rows; --bad-rows missing takes the cells as missing"
        yield f"{name} is taken for a {kind}, although {cells}: {rows if odd_refused else 'such cells are taken as missing'}"
    if kind == "amount":
        usual = next((text for text in values if "," in text), None)
        shown = usual or next(text for text in values if not is_number(text))
        way = "with commas between thousands" if usual else "in percent" if "%" in shown else "of a currency"
        yield f"{name} is read as numbers {way}: {shown!r}" + ("; --decimal , takes commas for decimals" if usual else "")
    if kind == "decimal-comma":
        usual = next((text for text in values if "," in text), values[0])
        yield f"{name} is read as numbers with a decimal comma: {usual!r}; --kinds {name}=category takes them for names"
    if kind in DAY_FIRST:
        yield f"{name} is read as dates, {'days' if DAY_FIRST[kind] else 'months'} first: {values[0]!r}"
    if count < FEW:
        return
    if len(different) == 1:
        yield f"{name} is {values[0]!r} in all rows seen, and tells nothing: --drop {name}"
    elif kind == "category" and all(day_and_month(text) for text in different):
        yield f"{name} may be dates, days or months first: --kinds {name}=day-first, or {name}=month-first, tells"
    elif kind in ("category", "id") and len(different) > IDS * count:
        words = sum(len(text.split()) for text in values) / count
        wordy = f"is text, {words:.0f} words on average" if words >= WORDY else ""
        what = wordy or "has a name of its own in nearly every row, as an id has"
        if kind == "id":
            yield f"{name} {what}, and is left out: --kinds {name}=text counts its words, {name}=category takes it for names"
        else:
            yield f"{name} {what}: " + (f"--kinds {name}=text counts its words, or " if wordy else "") + f"--drop {name}"
    elif kind == "number" and _counts_up(values):
        yield f"{name} goes up by 1 from row to row, as an id does: --drop {name}"


def _counts_up(values: Sequence[str]) -> bool:
    numbers = np.array([float(text) if is_number(text) else np.nan for text in values])
    return bool((np.isfinite(numbers[1:]) & (numbers[1:] == numbers[:-1] + 1.0)).all())
