"""What a reader hands on: some rows, column by column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinevi.data.files.refused import Refused


@dataclass(frozen=True)
class Batch:
    """Rows that follow each other: pyarrow arrays by name, all of the length of ``rows``."""

    source: str
    """The file, for messages."""
    rows: NDArray[np.int64]
    """Each row's number in the stream, from 0; a refused row leaves a gap."""
    columns: Mapping[str, Any]
    matrix: Any = None
    """Of a sparse file: a CSR matrix, one column an index."""

    def __len__(self) -> int:
        return len(self.rows)

    def slice(self, start: int, stop: int) -> Batch:
        """The rows from start to stop, without a copy."""
        columns = {name: values.slice(start, stop - start) for name, values in self.columns.items()}
        return Batch(self.source, self.rows[start:stop], columns, None if self.matrix is None else self.matrix[start:stop])


@dataclass(frozen=True)
class Piece:
    """What a format finds in a stretch of one file, its rows numbered within the stretch."""

    count: int
    """How many rows there were, good and bad."""
    columns: Mapping[str, Any]
    matrix: Any = None
    refused: list[Refused] = field(default_factory=list)

    @property
    def good(self) -> NDArray[np.int64]:
        """The numbers of the rows that can be read."""
        return np.delete(np.arange(self.count), [bad.row for bad in self.refused])
