"""Files that a run writes row by row, and that go back to where they were at a checkpoint: lines of text, Parquet, Arrow."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from onlinevi.data import PACKED_SUFFIXES, WRITTEN_AS, arrow, replace_file

BATCH = 8192
"""Rows of a record batch of the stream, but before a checkpoint."""
GROUP = 1 << 16
"""Rows of a group of the file."""


class Table(Protocol):
    """What rows are added to, column by column."""

    def add(self, columns: Sequence[Iterable[Any]]) -> None: ...


STANDARD_OUTPUT = "-"
NAMES = "names"
"""The type of a column that has several names a row, such as a set of classes: a list, but in CSV one text."""
BETWEEN = "|"
"""What stands between the names of one cell."""


def arrow_type(kind: str) -> Any:
    """The Arrow type of a column."""
    pa = arrow()
    return pa.list_(pa.string()) if kind == NAMES else pa.type_for_alias(kind)


def joined_names(names: Iterable[str]) -> str:
    """Several names as one text: a bar stands between them, and within one behind a backslash.

    >>> joined_names(["no", "yes|maybe"])
    'no|yes\\\\|maybe'
    """
    return BETWEEN.join(name.replace("\\", "\\\\").replace(BETWEEN, f"\\{BETWEEN}") for name in names)


def check_format(path: Path | None) -> None:
    """Refuse a file whose name says no format that predictions are written in."""
    if path is None or str(path) == STANDARD_OUTPUT:
        return
    suffix = path.suffix.lower()
    if suffix in PACKED_SUFFIXES:
        raise ValueError(
            f"{path}: a packed file cannot be cut back to a checkpoint; name a .parquet file, which is packed inside, or pack "
            "it afterwards"
        )
    if suffix not in WRITTEN_AS:
        raise ValueError(f"{path}: predictions are written as {', '.join(WRITTEN_AS)}; name such a file")


def spool_of(path: Path) -> Path:
    """Where the rows of a Parquet or Arrow file lie until it is finished."""
    return path.with_name(path.name + ".arrows")


def files_of(path: Path) -> tuple[Path, ...]:
    """All that is written under this name."""
    written = WRITTEN_AS.get(path.suffix.lower())
    return (path,) if written is None or written.is_text else (path, spool_of(path))


def open_table(
    path: Path, columns: Mapping[str, str], place: dict[str, Any] | None = None
) -> TextFile | ArrowTable | StandardOutput:
    """A new file, or one that goes on from what ``place()`` said of it at a checkpoint; CSV to standard output for ``-``."""
    if str(path) == STANDARD_OUTPUT:
        return StandardOutput(columns)
    written = WRITTEN_AS[path.suffix.lower()]
    if written.is_text:
        return TextFile(path, columns, place, as_json=written.name == "ndjson")
    return ArrowTable(path, columns, place)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """A failure to write says which file it was, which the system does only where it opens one."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def print_rows(text: str) -> None:
    """Print rows to standard output in UTF-8, as files are, whatever the terminal's encoding."""
    if not hasattr(sys.stdout, "buffer") or sys.stdout.encoding.lower().replace("-", "") == "utf8":
        sys.stdout.write(text)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())


class ResumableFile:
    """A text file that grows: a new one; or, resumed from a ``place`` of it, what was written since is cut off."""

    def __init__(self, path: Path, place: dict[str, Any] | None = None) -> None:
        self.path = path
        kept = place["bytes"] if place is not None and place["path"] == str(path) else 0
        size = path.stat().st_size if path.exists() else 0
        if size < kept:
            raise ValueError(f"{path} has {size} bytes, it had {kept} at the checkpoint: name another file, or start anew")
        self._file = path.open("r+b" if kept else "wb")
        try:
            with naming(path):
                self._file.truncate(kept)
                self._file.seek(kept)
        except OSError:
            self._file.close()
            raise

    def write(self, text: str) -> None:
        with naming(self.path):
            self._file.write(text.encode())

    def flush(self) -> None:
        """What was written can be read, if not after the machine's failure."""
        with naming(self.path):
            self._file.flush()

    def place(self) -> dict[str, Any]:
        """Which file it is and how many bytes it has, all of them on disk."""
        self.flush()
        os.fsync(self._file.fileno())
        return {"path": str(self.path), "bytes": self._file.tell()}

    def close(self) -> None:
        self._file.close()


class TextTable:
    """Turns rows into text."""

    def __init__(self, names: Iterable[str], write: Callable[[str], Any], *, as_json: bool = False) -> None:
        self._names, self._write, self._json = tuple(names), write, as_json

    def head(self) -> None:
        """Before the first row."""
        if not self._json:
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerow(self._names)
            self._write(text.getvalue())

    def add(self, columns: Sequence[Iterable[Any]]) -> None:
        if self._json:
            self._write("".join(line + "\n" for line in json_rows(self._names, columns)))
        else:
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows(zip(*map(_as_cells, columns), strict=True))
            self._write(text.getvalue())

    def finish(self) -> None:
        """Lines are all there as they are."""


class JSONRows(TextTable):
    """The rows as the list in one JSON document, which ``finish`` ends with further facts."""

    def __init__(self, names: Iterable[str], write: Callable[[str], Any]) -> None:
        super().__init__(names, write, as_json=True)
        self._any = False
        write('{"predictions": [')

    def add(self, columns: Sequence[Iterable[Any]]) -> None:
        texts = list(json_rows(self._names, columns))
        self._write((", " if self._any and texts else "") + ", ".join(texts))
        self._any = self._any or bool(texts)

    def end(self, **facts: Any) -> None:
        """Behind the last row."""
        self._write("], " + json.dumps(facts)[1:] + "\n")


class TextFile(TextTable):
    """The same in a file, which goes on from a ``place``."""

    def __init__(self, path: Path, names: Iterable[str], place: dict[str, Any] | None, *, as_json: bool) -> None:
        self._file = ResumableFile(path, place)
        super().__init__(names, self._file.write, as_json=as_json)
        if not self.place()["bytes"]:
            self.head()

    def flush(self) -> None:
        self._file.flush()

    def place(self) -> dict[str, Any]:
        return self._file.place()

    def close(self) -> None:
        self._file.close()


class StandardOutput(TextTable):
    """The same to standard output, which cannot be cut: resumed, rows behind the checkpoint are printed again."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(names, print_rows)
        self.head()

    def flush(self) -> None:
        sys.stdout.flush()

    def place(self) -> dict[str, Any]:
        self.flush()
        return {"path": STANDARD_OUTPUT}

    def close(self) -> None:
        self.flush()


def json_rows(names: Sequence[str], columns: Sequence[Iterable[Any]]) -> Iterator[str]:
    """Each row as a JSON object."""
    return (json.dumps(dict(zip(names, map(_plain, row), strict=True))) for row in zip(*columns, strict=True))


def _plain(value: Any) -> Any:
    """JSON has no infinity, which an interval has before the first label."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_cells(values: Iterable[Any]) -> Iterable[Any]:
    """A column as CSV has it: several names as one text."""
    several = isinstance(values, list) and values and isinstance(values[0], list)
    return map(joined_names, values) if several else values


class ArrowTable:
    """Rows as Parquet or Arrow, whose index is at the end: they go to ``FILE.arrows``, an Arrow stream that can be
    read at any time, and ``finish`` makes the file of it.

    Resumed from a ``place``, rows written since are cut off; of a finished file the stream is made again.
    """

    def __init__(self, path: Path, columns: Mapping[str, str], place: dict[str, Any] | None) -> None:
        """``columns`` has the names of the columns and of their Arrow types."""
        pa = arrow()
        self.path, self.spool = path, spool_of(path)
        self._schema = pa.schema([(name, arrow_type(kind)) for name, kind in columns.items()])
        self._waiting: list[list[Any]] = [[] for _ in columns]
        self.rows = place["rows"] if place is not None and place["path"] == str(path) else 0
        if self.rows and not self.spool.exists():
            self._spool_again()
        end = self._end() if self.rows else 0
        self._file = self.spool.open("r+b" if end else "wb")
        self._file.truncate(end)
        self._file.seek(end)
        if not end:
            self.path.unlink(missing_ok=True)  # of an earlier run, and not to be taken for this one's
            self._file.write(self._schema.serialize())

    def add(self, columns: Sequence[Iterable[Any]]) -> None:
        for waiting, values in zip(self._waiting, columns, strict=True):
            waiting.extend(values)
        if len(self._waiting[0]) >= BATCH:
            with naming(self.spool):
                self._write_batch()

    def flush(self) -> None:
        """What was added can be read, in the stream beside the file."""
        with naming(self.spool):
            self._write_batch()
            self._file.flush()

    def place(self) -> dict[str, Any]:
        """Which file it is and how many rows it has, all of them on disk."""
        self.flush()
        os.fsync(self._file.fileno())
        return {"path": str(self.path), "rows": self.rows}

    def finish(self) -> None:
        """Write the file; nothing can be added then."""
        self.place()
        self._file.close()
        replace_file(self.path, self._write)
        self.spool.unlink()

    def close(self) -> None:
        self._file.close()

    def _write_batch(self) -> None:
        pa = arrow()
        count = len(self._waiting[0])
        if count:
            columns = [pa.array(values, kind) for values, kind in zip(self._waiting, self._schema.types, strict=True)]
            self._file.write(pa.record_batch(columns, schema=self._schema).serialize())
            self._waiting = [[] for _ in self._waiting]
            self.rows += count

    def _end(self) -> int:
        """Where the rows of the checkpoint end in the stream: always behind a batch."""
        pa, ipc = arrow(), arrow("ipc")
        rows = 0
        try:
            with pa.memory_map(str(self.spool)) as stream:
                messages = ipc.MessageReader.open_stream(stream)
                schema = ipc.read_schema(messages.read_next_message())
                while rows < self.rows:
                    rows += ipc.read_record_batch(messages.read_next_message(), schema).num_rows
                end: int = stream.tell()
                return end
        except (StopIteration, pa.ArrowInvalid, OSError) as error:
            raise self._short(self.spool, rows) from error

    def _spool_again(self) -> None:
        """The stream of a finished file, up to the checkpoint."""
        if not self.path.exists():
            raise self._short(self.path, 0)
        rows = 0

        def write(file: BinaryIO) -> None:
            nonlocal rows
            file.write(self._schema.serialize())
            for batch in self._finished():
                piece = batch.slice(0, self.rows - rows)
                rows += piece.num_rows
                if piece.num_rows:
                    file.write(piece.serialize())
            if rows < self.rows:
                raise self._short(self.path, rows)

        replace_file(self.spool, write)

    def _short(self, path: Path, rows: int) -> ValueError:
        return ValueError(
            f"{path} has {rows} rows, it had {self.rows} at the checkpoint: name another file for them, or start anew"
        )

    def _finished(self) -> Iterator[Any]:
        if WRITTEN_AS[self.path.suffix.lower()].name == "parquet":
            with arrow("parquet").ParquetFile(self.path) as file:
                yield from file.iter_batches(batch_size=BATCH)
        else:
            with arrow("ipc").open_file(str(self.path)) as file:
                for k in range(file.num_record_batches):
                    yield file.get_batch(k)

    def _write(self, file: BinaryIO) -> None:
        parquet = WRITTEN_AS[self.path.suffix.lower()].name == "parquet"
        kind = arrow("parquet").ParquetWriter if parquet else arrow("ipc").new_file
        with kind(file, self._schema) as writer, arrow("ipc").open_stream(str(self.spool)) as stream:
            for group in _groups(stream):
                writer.write_table(group)


def _groups(batches: Iterable[Any]) -> Iterator[Any]:
    """The same rows in groups of one size, wherever the batches were cut."""
    pa, waiting, count = arrow(), list[Any](), 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= GROUP:
            table = pa.Table.from_batches(waiting).combine_chunks()
            yield table.slice(0, GROUP)
            waiting, count = table.slice(GROUP).to_batches(), count - GROUP
    if waiting:
        yield pa.Table.from_batches(waiting).combine_chunks()
