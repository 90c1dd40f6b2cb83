"""LIBSVM: a line is ``label index:value index:value …``. Rows are a sparse matrix whose column i is index i."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from onlinevi.data.formats.base import Format, text_blocks
from onlinevi.data.sources import Content, Piece, ReadOptions, Refused
from onlinevi.data.values import arrow
from onlinevi.engine import Vector

LABEL = "label"
LARGEST_INDEX = 10**8 - 1
"""Of at most 8 digits: a weight for every index has to fit into memory."""

_NUMBER = rb"[+-]?+(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?+[0-9]++)?+"
_PAIR = rb"[0-9]{1,8}+:" + _NUMBER
_LINE = re.compile(rb"[ \t]*+" + _NUMBER + rb"(?:[ \t]++" + _PAIR + rb")*+[ \t]*+\r?+")
_FIRST_LINE = re.compile(_LINE.pattern.replace(rb")*+[ \t]*+\r?+", rb")++[ \t]*+(?:#.*)?+\r?+"))
"""What makes a file without a name look like LIBSVM: a label and at least one pair."""


class LIBSVM(Format):
    """LIBSVM is read block by block; the matrix is as wide as the largest index so far asks for. ``#`` starts a comment."""

    name = "libsvm"
    suffixes = (".libsvm", ".svm", ".svmlight")
    same_columns = False

    @classmethod
    def looks_like(cls, first_line: bytes) -> bool:
        return _FIRST_LINE.fullmatch(first_line) is not None

    def read(self, content: Content, options: ReadOptions) -> Iterator[Piece]:
        number, width = 0, 1
        for block in text_blocks(content):
            good: list[bytes] = []
            refused: list[Refused] = []
            for line in block.split(b"\n")[:-1]:
                number += 1
                row = line.partition(b"#")[0]
                if not row.strip():
                    continue
                if _LINE.fullmatch(row):
                    good.append(row)
                else:
                    place = len(good) + len(refused)
                    refused.append(Refused(content.name, place, None, _reason(row), line.decode(errors="replace"), number))
            if good or refused:
                labels, matrix = _parsed(good, width)
                width = matrix.shape[1]
                yield Piece(len(good) + len(refused), {LABEL: arrow().array(labels)}, matrix, refused)


def _parsed(rows: list[bytes], width: int) -> tuple[Vector, Any]:
    """The labels, and a CSR matrix of at least this width."""
    from scipy.sparse import csr_matrix

    pairs = np.array([row.count(b":") for row in rows], dtype=np.int64)
    values = np.fromstring(b" ".join(rows).replace(b":", b" "), sep=" ")
    starts = np.concatenate([[0], np.cumsum(pairs)])
    labels = 2 * starts[:-1] + np.arange(len(rows))
    entries = np.delete(values, labels).reshape(-1, 2)
    indices = entries[:, 0].astype(np.int64)
    width = max(width, int(indices.max(initial=0)) + 1)
    matrix = csr_matrix((entries[:, 1].copy(), indices, starts), shape=(len(rows), width))
    matrix.sum_duplicates()
    return values[labels], matrix


def _reason(row: bytes) -> str:
    label, *pairs = row.split()
    if not re.fullmatch(_NUMBER, label):
        return f"the label {label.decode(errors='replace')!r} is no number"
    bad = next((pair for pair in pairs if not re.fullmatch(_PAIR, pair)), b"")
    return f"{bad.decode(errors='replace')!r} is no index:value with a number and an index up to {LARGEST_INDEX}"
