"""Parquet and Arrow: formats that know the types of their columns."""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

from onlinevi.data.files.batch import Piece
from onlinevi.data.files.extra import arrow
from onlinevi.data.files.refused import BadInput
from onlinevi.data.files.source import ARROW_FILE, Source

CHUNK = 1 << 20


def read_parquet(source: Source, batch_rows: int) -> Iterator[Piece]:
    """Parquet's index is at its end: a pipe or a compressed file is first copied to a temporary file, which is then read."""
    with tempfile.TemporaryFile() as copy:
        if source.path is None:
            shutil.copyfileobj(source, copy, CHUNK)
        else:
            while source.read(CHUNK):  # for the digest alone
                pass
        try:
            # Buffered ahead, all groups would stay in memory until the last was read.
            with arrow("parquet").ParquetFile(source.path or copy, pre_buffer=False) as file:
                for batch in file.iter_batches(batch_size=batch_rows):
                    yield _piece(source, batch)
        except (arrow().ArrowException, OSError) as error:
            raise BadInput(f"{source.name}: no readable Parquet ({error})") from error


def read_arrow(source: Source) -> Iterator[Piece]:
    """A stream of record batches; an Arrow file is one too, between a mark of 8 bytes and an index."""
    content = io.BufferedReader(source, CHUNK)
    if source.first_line().startswith(ARROW_FILE):
        content.read(8)
    try:
        for batch in arrow("ipc").open_stream(content):
            yield _piece(source, batch)
    except (arrow().ArrowException, OSError) as error:
        raise BadInput(f"{source.name}: no readable Arrow data ({error})") from error
    while content.read(CHUNK):  # the rest of the file, for the digest
        pass


def _piece(source: Source, batch: Any) -> Piece:
    table = arrow().Table.from_batches([batch])
    while any(arrow().types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    if len(set(table.column_names)) < table.num_columns:
        raise BadInput(f"{source.name}: two of the columns {table.column_names} have one name: rename one")
    return Piece(table.num_rows, {name: table[name].combine_chunks() for name in table.column_names})
