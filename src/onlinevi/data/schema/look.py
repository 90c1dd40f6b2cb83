"""What the first rows of a stream were taken for, column by column, and what is odd about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from onlinevi.data.schema.kinds import Kind, odd_cells
from onlinevi.data.schema.schema import Schema
from onlinevi.data.stream import Batch
from onlinevi.data.values import is_missing, texts


class Seen(NamedTuple):
    """A column of the first rows."""

    name: str
    kind: Kind | None
    """None where it has no value there."""
    missing: int
    distinct: int
    warnings: tuple[str, ...]
    """What its reader should know, each a sentence that begins with the column's name."""


def first_look(schema: Schema, seen: Sequence[Batch]) -> tuple[Seen, ...]:
    """Each column in use as it was taken; of a sparse file there are none."""
    return tuple(_seen(name, kind, seen) for name, kind in schema.kinds.items())


def _seen(name: str, kind: Kind | None, seen: Sequence[Batch]) -> Seen:
    rows = sum(map(len, seen))
    blocks = [batch.columns[name] for batch in seen if name in batch.columns]
    lacking = [is_missing(values) for values in blocks]
    missing = rows - sum(map(len, blocks)) + sum(int(np.count_nonzero(lacks)) for lacks in lacking)
    different = {
        text
        for values, lacks in zip(blocks, lacking, strict=True)
        for text, lacks_it in zip(texts(values).to_pylist(), lacks.tolist(), strict=True)
        if not lacks_it
    }
    return Seen(name, kind, missing, len(different), tuple(_warnings(name, kind, blocks, rows)))


def _warnings(name: str, kind: Kind | None, blocks: Sequence[object], rows: int) -> list[str]:
    odd = odd_cells(name, kind, blocks)
    if not odd:
        return []
    cells = f"{len(odd):,} of {rows:,} cells {'is' if len(odd) == 1 else 'are'} none, as {odd[0]!r}"
    return [f"{name} is taken for a {kind}, although {cells}: rows with such cells are bad rows (--bad-rows)"]
