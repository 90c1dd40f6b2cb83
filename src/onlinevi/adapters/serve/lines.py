"""Events as lines of JSON, and what a job makes of them: numbers to learn from, and what is said of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from onlinevi.data import Encoded, Piece, Position, Reader, ReadOptions, Refused, Schema, array_of, encode, open_stream
from onlinevi.runs import Collected, Job, Rejected, Settings

_as_line = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True).encode


def as_line(row: Mapping[str, Any]) -> str:
    """A row as it is kept: the same row is the same line, in whatever order its columns came."""
    return _as_line(row)


class Lines(Reader):
    """Lines of JSON as a source, or what they say: rows that were looked at when they came, each a flat object."""

    name = "the journal"

    def __init__(self, lines: Sequence[str | Mapping[str, Any]]) -> None:
        self._lines = lines

    def open(self, options: ReadOptions, resume: Position | None = None) -> Reader:
        return self

    def __iter__(self) -> Iterator[Piece]:
        texts = iter(json.loads(f"[{','.join(line for line in self._lines if isinstance(line, str))}]"))
        rows = [next(texts) if isinstance(line, str) else line for line in self._lines]
        of_first = rows[0].keys() if rows else {}.keys()
        alike = all(row.keys() == of_first for row in rows)
        # In their order on the line.
        names = sorted(of_first) if alike else dict.fromkeys(name for row in rows for name in sorted(row))
        yield Piece(len(rows), {name: array_of([row.get(name) for row in rows]) for name in names})


class Noted(Rejected):
    """Rows that are skipped, each with its reason."""

    def __init__(self) -> None:
        super().__init__("skip")
        self.reasons_by_row: dict[int, Refused] = {}

    def __call__(self, refused: Refused) -> None:
        super().__call__(refused)
        self.reasons_by_row[refused.row] = refused


def plain_rows(said: Collected) -> dict[int, dict[str, Any]]:
    """What was said of each row by its number, as JSON has it: an interval without an end has null there."""
    return {
        row.pop("row"): {
            name: None if isinstance(value, float) and not isfinite(value) else value for name, value in row.items()
        }
        for row in said.rows()
    }


def first_job(settings: Settings, lines: Sequence[str | Mapping[str, Any]]) -> Job:
    """The job of a stream that begins with these lines."""
    with open_stream(Lines(lines), bad=Noted(), **settings.reading) as stream:
        return Job(settings, settings.schema(settings.first_rows(stream)))


def encode_lines(job: Job, lines: Sequence[str | Mapping[str, Any]], noted: Noted) -> list[tuple[Schema, Encoded]]:
    """Lines as numbers, with the schema behind each block of them; nothing is learned."""
    blocks, schema = [], job.schema
    with open_stream(Lines(lines), bad=noted, **job.settings.reading) as stream:
        stream.numbers |= schema.numbers
        for batch in stream:
            schema, rows = encode(schema, batch, noted)
            blocks.append((schema, rows))
    return blocks
