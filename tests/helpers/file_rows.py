"""A file of each format, CSV as people write it, and all that a stream delivers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

from onlinevi.data import Stream


def csv_text(names: list[str], rows: list[list[str]], **style: Any) -> bytes:
    file = io.StringIO()
    csv.writer(file, **style).writerows([names, *rows])
    return file.getvalue().encode()


def read(stream: Stream) -> tuple[list[int], dict[str, list[Any]]]:
    rows: list[int] = []
    columns: dict[str, list[Any]] = {}
    with stream:
        for batch in stream:
            assert all(len(values) == len(batch) for values in batch.columns.values())
            rows += batch.rows.tolist()
            for name, values in batch.columns.items():
                columns.setdefault(name, []).extend(values.to_pylist())
    return rows, columns


TABLE: dict[str, list[Any]] = {
    "x": [0.5, -1.0, 2e10, None],
    "n": [1, 2, 3, 4],
    "city": ["Paris", "Köln, Rh.", 'a "b"', "two\nlines"],
}
"""Four rows, with what makes formats stumble."""


def _rows() -> list[dict[str, Any]]:
    return [dict(zip(TABLE, values, strict=True)) for values in zip(*TABLE.values(), strict=True)]


def _csv() -> bytes:
    return csv_text(list(TABLE), [["" if value is None else str(value) for value in row.values()] for row in _rows()])


def _ndjson() -> bytes:
    return "".join(json.dumps(row) + "\n" for row in _rows()).encode()


def _parquet() -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(pa.table(TABLE), file, row_group_size=3)
    return file.getvalue()


def arrow_file(*, stream: bool = False) -> bytes:
    import pyarrow as pa

    table, file = pa.table(TABLE), io.BytesIO()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    return file.getvalue()


SAMPLES: dict[str, Callable[[], bytes]] = {
    "csv": _csv,
    "ndjson": _ndjson,
    "parquet": _parquet,
    "arrow": arrow_file,
    "libsvm": lambda: b"1 1:0.5 7:-1\n-1 2:2e10\n2.5\n0 7:1\n",
}
"""The one list of formats that tests draw from: a file of four rows in each."""
