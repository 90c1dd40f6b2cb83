"""Rows as Parquet or Arrow, whose index is at the end: they wait in a stream beside the file, and become it as a whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from onlinevi.data import WRITTEN_AS, arrow
from onlinevi.learners import replace_file

BATCH = 8192
"""Rows of a record batch of the stream, but before a checkpoint."""
GROUP = 1 << 16
"""Rows of a group of the file."""


class ArrowTable:
    """Rows go to ``FILE.arrows``, an Arrow stream that can be read at any time; ``finish`` makes the file of it.

    Resumed from a ``place``, rows written since are cut off; of a finished file the stream is made again.
    """

    def __init__(self, path: Path, columns: Mapping[str, str], place: dict[str, Any] | None) -> None:
        """``columns`` has the names of the columns and of their Arrow types."""
        pa = arrow()
        self.path, self.spool = path, path.with_name(path.name + ".arrows")
        self._schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in columns.items()])
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
            self._flush()

    def place(self) -> dict[str, Any]:
        """Which file it is and how many rows it has, all of them on disk."""
        self._flush()
        self._file.flush()
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

    def _flush(self) -> None:
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
        found = 0
        try:
            with pa.memory_map(str(self.spool)) as stream:
                messages = ipc.MessageReader.open_stream(stream)
                schema = ipc.read_schema(messages.read_next_message())
                while found < self.rows:
                    found += ipc.read_record_batch(messages.read_next_message(), schema).num_rows
                end: int = stream.tell()
                return end
        except (StopIteration, pa.ArrowInvalid, OSError) as error:
            raise self._short(self.spool, found) from error

    def _spool_again(self) -> None:
        """The stream of a finished file, up to the checkpoint."""
        if not self.path.exists():
            raise self._short(self.path, 0)
        found = 0

        def write(file: BinaryIO) -> None:
            nonlocal found
            file.write(self._schema.serialize())
            for batch in self._finished():
                own = batch.slice(0, self.rows - found)
                found += own.num_rows
                if own.num_rows:
                    file.write(own.serialize())
            if found < self.rows:
                raise self._short(self.path, found)

        replace_file(self.spool, write)

    def _short(self, path: Path, found: int) -> ValueError:
        return ValueError(
            f"{path} has {found} rows, it had {self.rows} at the checkpoint: name another file for them, or start anew"
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
