"""NDJSON: one object a line. Objects within objects become columns such as ``user.age``; a list is refused, in a
column that is used."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from onlinevi.data.formats.base import Format, Piece, ReadOptions, text_blocks
from onlinevi.data.sources import Content, Refused
from onlinevi.data.values import EXACT, arrow, value_text


class NDJSON(Format):
    """NDJSON is read block by block. A column that a block lacks is missing in all its rows."""

    name = "ndjson"
    suffixes = written_suffixes = (".ndjson", ".jsonl")
    same_columns = False

    @classmethod
    def looks_like(cls, first_line: bytes) -> bool:
        return first_line.lstrip(b"\xef\xbb\xbf \t").startswith(b"{")

    def read(self, content: Content, options: ReadOptions) -> Iterator[Piece]:
        line = 0
        for block in text_blocks(content):
            rows: list[dict[str, Any]] = []
            refused: list[Refused] = []
            for text in block.split(b"\n")[:-1]:
                line += 1
                if not text.strip():
                    continue
                try:
                    rows.append(_row(text, options.wants))
                except _NotARow as error:
                    place, shown = len(rows) + len(refused), text.decode(errors="replace")
                    refused.append(Refused(content.name, place, error.column, error.reason, shown, line))
            if rows or refused:
                names = dict.fromkeys(name for row in rows for name in row)
                columns = {name: _column([row.get(name) for row in rows]) for name in names}
                yield Piece(len(rows) + len(refused), columns, refused=refused)


class _NotARow(Exception):
    def __init__(self, reason: str, column: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.column = reason, column


def _row(text: bytes, wants: Callable[[str], bool]) -> dict[str, Any]:
    try:
        row = json.loads(text, object_pairs_hook=_object)
        if not isinstance(row, dict):
            raise _NotARow(f"a JSON {type(row).__name__}, needs an object")
        if b"\\ud" in text.lower():
            json.dumps(row, ensure_ascii=False).encode()  # half a character is JSON, but no text
        return _object(list(_flat("", row, wants)))
    except (ValueError, RecursionError) as error:
        raise _NotARow(f"not JSON ({error})") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs by their names, which JSON does not keep from coming twice."""
    row = dict(pairs)
    if len(row) < len(pairs):
        seen = set[str]()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise _NotARow("the same name twice", twice)
    return row


def _flat(prefix: str, row: dict[str, Any], wants: Callable[[str], bool]) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{name}.", value, wants)
        elif isinstance(value, list):
            if wants(f"{prefix}{name}"):
                raise _NotARow("a list, needs one value; spread it over columns, or drop it", f"{prefix}{name}")
            yield f"{prefix}{name}", None
        else:
            yield f"{prefix}{name}", value


def _column(values: list[Any]) -> Any:
    """An array of one type; of text where types are mixed."""
    pa = arrow()
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float} and all(abs(value) <= EXACT for value in values if type(value) is int):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    if len(kinds) > 1 or (kinds == {int} and not all(-(2**63) <= value < 2**63 for value in values if value is not None)):
        return pa.array([value if value is None or isinstance(value, str) else value_text(value) for value in values])
    return pa.array(values)
