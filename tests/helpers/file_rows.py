"""CSV as people write it, and all that a stream delivers."""

from __future__ import annotations

import csv
import io
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
