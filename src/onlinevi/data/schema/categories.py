"""Names as features: a column of its own for each, up to a number; then, or from the start, hashed into buckets."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ONE, BUCKET = "=", "~"
"""What a feature's name has between the column's and the category's, or the bucket's number."""


class Names(NamedTuple):
    """The different names of a block, and which of them each row has; −1 where missing."""

    different: list[str]
    rows: NDArray[np.int64]

    @staticmethod
    def of(texts: Any) -> Names:
        encoded = texts.dictionary_encode()
        rows = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return Names(encoded.dictionary.to_pylist(), rows.astype(np.int64))

    def met(self) -> Iterator[tuple[int, int]]:
        """The row in which each name is met first, and the name's number; in the order of rows."""
        numbers, first = np.unique(self.rows, return_index=True)
        for row, number in sorted(zip(first.tolist(), numbers.tolist(), strict=True)):
            if number >= 0:
                yield row, number


def bucket(text: str, buckets: int) -> int:
    """Which bucket a text falls into: the same on every machine and in every run."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") % buckets
