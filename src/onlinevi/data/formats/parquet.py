"""Parquet: columns with types, in groups of rows, and an index at the end."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator

from onlinevi.data.formats.base import CHUNK, Format, piece_of
from onlinevi.data.sources import BadInput, Content, Piece, ReadOptions
from onlinevi.data.values import arrow


class Parquet(Format):
    """Parquet is read where it is; a pipe or a packed file is first copied to a temporary file, since the index comes last."""

    name = "parquet"
    suffixes = written_suffixes = (".parquet",)
    magic = (b"PAR1",)
    is_text = False

    def read(self, content: Content, options: ReadOptions) -> Iterator[Piece]:
        with tempfile.TemporaryFile() as copy:
            if content.path is None:
                shutil.copyfileobj(content, copy, CHUNK)
            else:
                while content.read(CHUNK):  # for the digest alone
                    pass
            try:
                # Buffered ahead, all groups would stay in memory until the last was read.
                with arrow("parquet").ParquetFile(content.path or copy, pre_buffer=False) as file:
                    for batch in file.iter_batches(batch_size=options.batch_rows):
                        yield piece_of(content, batch, file.metadata.num_rows)
            except (arrow().ArrowException, OSError, MemoryError) as error:  # a damaged length asks for anything
                raise BadInput(f"{content.name}: no readable Parquet ({error})") from error
