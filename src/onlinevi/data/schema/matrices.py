"""Matrices filled column by column: dense, or sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinevi.engine import Vector


class Dense:
    """Zeros until filled."""

    def __init__(self, count: int, width: int) -> None:
        self._matrix = np.zeros((count, width))

    def block(self, place: int, matrix: Any) -> None:
        self._matrix[:, place : place + matrix.shape[1]] = matrix.toarray()

    def column(self, place: int, values: Vector) -> None:
        self._matrix[:, place] = values

    def ones(self, rows: NDArray[np.int64], places: NDArray[np.int64]) -> None:
        self._matrix[rows, places] = 1.0

    def whole(self) -> Vector:
        return self._matrix


class Sparse:
    """Only what is filled in, as CSR; what meets in one place is added up."""

    def __init__(self, count: int, width: int) -> None:
        self._shape = count, width
        nowhere = np.empty(0, dtype=np.int64)
        self._entries: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = [(np.empty(0), nowhere, nowhere)]

    def block(self, place: int, matrix: Any) -> None:
        stored = matrix.tocoo()
        self._entries.append((stored.data, stored.row, stored.col + place))

    def column(self, place: int, values: Vector) -> None:
        rows = np.flatnonzero(values)
        self._entries.append((values[rows], rows, np.full(len(rows), place)))

    def ones(self, rows: NDArray[np.int64], places: NDArray[np.int64]) -> None:
        self._entries.append((np.ones(len(rows)), rows, places))

    def whole(self) -> Any:
        from scipy.sparse import csr_matrix

        values, rows, places = (np.concatenate(parts) for parts in zip(*self._entries, strict=True))
        return csr_matrix((values, (rows, places)), shape=self._shape)
