"""Tables in memory as a source: DataFrames, what speaks Arrow, columns by their names, and rows that are dicts.

They become the bytes of Arrow's format or of NDJSON as these are read, and from there on are what files are: their rows are
numbered, bad ones refused, and their sums known. What is said of them goes back in the caller's own kind.
"""

from __future__ import annotations

import io
import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from onlinevi.data.sources.base import AnySource, Part, is_source
from onlinevi.data.values import array_of, arrow

IN_MEMORY = "tables in memory"
"""What positions call them."""
ROWS = 8192
"""So many rows become bytes at once."""
NEEDS = (
    "needs a table (pandas, polars, pyarrow, DuckDB), a path, an open binary file, rows that are dicts, columns by their "
    "names, or an iterable of such tables or rows"
)


class Memory:
    """A table, rows that are dicts, or an iterable of either, which is read once and no faster than it is learned from.

    A row of a DataFrame, which is a Series, is a row as a dict is.
    """

    name = IN_MEMORY

    def __init__(self, given: Any) -> None:
        self._series = given if _is_series(given) else None
        given = given.to_dict() if _is_series(given) else given
        self._one_row = isinstance(given, Mapping) and not any(map(_is_column, given.values()))
        self._columns = isinstance(given, Mapping) and not self._one_row
        pieces = iter([given]) if isinstance(given, Mapping) or _is_table(given) else iter(given)
        first = next(pieces, None)
        self._pieces: Iterator[Any] = iter(()) if first is None else chain([first], pieces)
        self._first: Any = first
        self._indexes: list[Any] = []
        """Of the pandas tables that were read."""
        self.of_rows = isinstance(first, Mapping) and not self._columns
        """Whether rows are dicts, of which each may lack what others have."""
        if first is not None and not (isinstance(first, Mapping) or _is_table(first)):
            raise TypeError(f"{_shown(first)} is no table and no row: {NEEDS}")

    @property
    def format(self) -> str:
        """The format of its bytes."""
        return "ndjson" if self.of_rows else "arrow"

    def parts(self) -> Generator[Part]:
        if self.of_rows:
            while rows := list(islice(self._pieces, ROWS)):
                yield Part("the rows", io.BytesIO(b"".join(map(_line, rows))))
        for table in self._pieces:
            if _is_pandas(table):
                self._indexes.append(table.index)
            yield Part("the table", io.BufferedReader(_Lazy(_messages(_reader(table)))))

    def give_back(self, said: Any) -> Any:
        """A pyarrow table with a row for each that was read, as the caller has tables, with pandas' index."""
        if self._one_row:
            row = said.to_pylist()[0] if said.num_rows else {}
            return row if self._series is None else type(self._series)(row, name=self._series.name)
        if self.of_rows:
            return said.to_pylist()
        if self._columns:
            return said.to_pydict()
        if _is_pandas(self._first):
            frame = said.to_pandas()
            index = self._indexes[0].append(self._indexes[1:]) if len(self._indexes) > 1 else self._indexes[0]
            frame.index = index[: len(frame)]
            return frame
        if hasattr(self._first, "get_columns"):
            import polars

            return polars.from_arrow(said)
        return said


class Opened:
    """A file that the caller has opened, or the end of a pipe; it stays open."""

    name = "an open file"

    def __init__(self, file: Any) -> None:
        self._file = file

    def parts(self) -> Generator[Part]:
        if isinstance(self._file, io.TextIOBase):
            raise TypeError(f"{_shown(self._file)} gives text: open it as binary, open(path, 'rb')")
        yield Part(str(getattr(self._file, "name", self.name)), self._file, live=True)


def source_of(given: Any) -> AnySource:
    """What ``open_stream`` reads, from anything that may hold rows."""
    if isinstance(given, str | Path):
        return given
    if is_source(given):
        return given  # type: ignore[no-any-return]
    if hasattr(given, "read") and not hasattr(given, "__arrow_c_stream__"):
        return Opened(given)
    if isinstance(given, np.ndarray):
        raise TypeError(
            f"an array of shape {given.shape} has no column names: give pandas.DataFrame(X, columns=[…]); ovi.auto(X, y) "
            "learns from arrays"
        )
    if not (isinstance(given, Iterable) or _is_table(given)) or isinstance(given, bytes):
        # A lazy frame of polars, and a connection of DuckDB, which is what its execute() gives.
        call = next((name for name in ("collect", "to_arrow_table", "fetch_arrow_table") if hasattr(given, name)), None)
        hint = f": {NEEDS}" if call is None else f": call .{call}() first"
        raise TypeError(f"{_shown(given)} holds no rows that can be read{hint}")
    return Memory(given)


class _Lazy(io.RawIOBase):
    """Bytes that are made as they are read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def _messages(reader: Any) -> Iterator[bytes]:
    """Record batches as Arrow's stream, a few rows at a time."""
    sink = io.BytesIO()
    with arrow("ipc").new_stream(sink, reader.schema) as writer:
        for batch in reader:
            for start in range(0, batch.num_rows, ROWS):
                writer.write_batch(batch.slice(start, ROWS))
                yield sink.getvalue()
                sink.seek(0)
                sink.truncate()
    yield sink.getvalue()


def _reader(table: Any) -> Any:
    """The record batches of a table."""
    pa = arrow()
    try:
        if _is_pandas(table):
            return _of_columns({str(name): table.iloc[:, j] for j, name in enumerate(table.columns)}, table.columns)
        if isinstance(table, Mapping):
            return _of_columns(table, list(table))
        if hasattr(table, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(table)
        batch = pa.record_batch(table)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    except (pa.ArrowException, TypeError) as error:
        raise TypeError(f"{_shown(table)} cannot be read as a table ({error}): {NEEDS}") from error


def _of_columns(columns: Mapping[str, Any], names: Any) -> Any:
    """The same of columns, whose values may be of several types: those are text then, as they are in a file."""
    pa = arrow()
    if len(columns) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise TypeError(f"two columns are called {twice!r}: rename one")
    arrays = {str(name): _array(values) for name, values in columns.items()}
    lengths = {name: len(values) for name, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise TypeError(f"its columns are of different lengths, {lengths}")
    return pa.table(arrays).to_reader()


def _array(values: Any) -> Any:
    pa = arrow()
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return array_of([None if _is_missing(value) else value for value in values])


def _line(row: Any) -> bytes:
    """A row as a line of JSON."""
    if not isinstance(row, Mapping):
        raise TypeError(f"{_shown(row)} is no row: each needs to be a dict, as the first is")
    return json.dumps(dict(row), default=_plain, ensure_ascii=False).encode(errors="surrogatepass") + b"\n"


def _plain(value: Any) -> Any:
    """What JSON has no word for, as it has one for."""
    if _is_missing(value):
        return None
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    raise TypeError(f"a row holds {_shown(value)}: needs numbers, text, dates, true or false, or None")


def _is_missing(value: Any) -> bool:
    """Whether a value is none, by whatever name: None, NaN, pandas' NA or NaT."""
    return value is None or (not isinstance(value, str) and str(value) in ("nan", "NaT", "<NA>"))


def _is_table(given: Any) -> bool:
    return hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__") or _is_pandas(given)


def _is_pandas(given: Any) -> bool:
    return hasattr(given, "iloc") and hasattr(given, "columns")


def _is_series(given: Any) -> bool:
    """Whether it is a row of a pandas DataFrame, or a column, which is no row that a model knows."""
    return hasattr(given, "iloc") and hasattr(given, "to_dict") and not hasattr(given, "columns")


def _is_column(value: Any) -> bool:
    """Whether a value is many, which makes of names and values a table rather than a row."""
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping)


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return f"{text if len(text) <= 60 else text[:60] + '…'} ({type(value).__name__})"
