"""JSON objects as rows: the lines of NDJSON, the messages of a broker. Objects within objects become columns such as
``user.age``; a list is refused, in a column that is used.

Many flat objects at once are parsed by pyarrow, wherever that is sure to give what one at a time would.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from onlinevi.data.sources import Piece, ReadOptions, Refused
from onlinevi.data.values import EXACT, array_of, arrow

NAMES = {list: "list", str: "text", bool: "truth value", type(None): "null"}
"""What messages call JSON that is no object."""
MANY = 32
"""From so many objects on, pyarrow is the faster."""


def objects_piece(texts: Sequence[bytes], source: str, options: ReadOptions, lines: Sequence[int] | None = None) -> Piece:
    """The rows of a piece: one JSON object each; a column that none of them has is missing in all of them."""
    columns = _parsed(texts) if len(texts) >= MANY else None
    return _one_by_one(texts, source, options, lines) if columns is None else Piece(len(texts), columns)


def _one_by_one(texts: Sequence[bytes], source: str, options: ReadOptions, lines: Sequence[int] | None) -> Piece:
    rows: list[dict[str, Any]] = []
    refused: list[Refused] = []
    for place, text in enumerate(texts):
        try:
            rows.append(_row(text, options.wants))
        except _NotARow as error:
            line, shown = None if lines is None else lines[place], text.decode(errors="replace")
            refused.append(Refused(source, place, error.column, error.reason, shown, line))
    names = dict.fromkeys(name for row in rows for name in row)
    return Piece(len(texts), {name: array_of([row.get(name) for row in rows]) for name in names}, refused=refused)


def _parsed(texts: Sequence[bytes]) -> Mapping[str, Any] | None:
    """The columns by pyarrow; None where it might read something otherwise than one object at a time is read.

    Each text opens and closes a brace, and there are as many rows as texts: so each is one object, and none reaches into the
    next. pyarrow refuses what is no JSON, names that come twice, and types that do not fit each other.
    """
    stripped = [text.strip() for text in texts]
    if not all(text.startswith(b"{") and text.endswith(b"}") for text in stripped):
        return None
    joined = b"\n".join(stripped)
    pa = arrow()
    try:
        if not joined.isascii():
            joined.decode()
        table = _table(joined)
        if any(pa.types.is_timestamp(kind) for kind in table.schema.types):  # a text to us, whatever it looks like
            kinds = [pa.string() if pa.types.is_timestamp(kind) else kind for kind in table.schema.types]
            table = _table(joined, pa.schema(zip(table.column_names, kinds, strict=True)))
    except (UnicodeDecodeError, pa.ArrowInvalid):
        return None
    if table.num_rows != len(texts):
        return None
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    return columns if all(map(_same_either_way, columns.values())) else None


def _table(joined: bytes, schema: Any = None) -> Any:
    reader = arrow("json")
    return reader.read_json(
        io.BytesIO(joined),
        read_options=reader.ReadOptions(use_threads=False, block_size=len(joined) + 1),
        parse_options=reader.ParseOptions(explicit_schema=schema),
    )


def _same_either_way(values: Any) -> bool:
    """Whether a column has a type of its own, and no whole number that a float would round."""
    types = arrow().types
    if types.is_floating(values.type):
        most = arrow("compute").max(arrow("compute").abs(values)).as_py()
        return most is None or not most >= EXACT
    return any(is_one(values.type) for is_one in (types.is_null, types.is_boolean, types.is_integer, types.is_string))


class _NotARow(Exception):
    def __init__(self, reason: str, column: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.column = reason, column


def _row(text: bytes, wants: Callable[[str], bool]) -> dict[str, Any]:
    if not text.strip():
        raise _NotARow("nothing, needs a JSON object")
    try:
        row = json.loads(text, object_pairs_hook=_object)
        if not isinstance(row, dict):
            raise _NotARow(f"a JSON {NAMES.get(type(row), 'number')}, needs an object")
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
            yield f"{prefix}{name}", json.dumps(value, ensure_ascii=False)
        else:
            yield f"{prefix}{name}", value
