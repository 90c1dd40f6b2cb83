"""Random partitions: in which cell of each a row lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinevi.engine import Vector
from onlinevi.learners.expand.base import FeatureMap, Places, spread_shares, whole_number


@dataclass(frozen=True)
class Trees(FeatureMap):
    """``count`` random trees of 2^``depth`` leaves: the leaf that a row falls into is 1, the others of its tree 0.

    Each node asks whether a random column lies above a random place in the cell that the nodes above have left, which begins
    as ±``reach`` in every column; no label is asked. A row has ``count`` features that are not 0: they are stored sparse.
    Columns that join are not asked for: keep them beside the leaves.

    >>> import numpy as np, onlinevi as ovi
    >>> leaves = ovi.Trees(count=3, depth=2).features(np.array([[-2.0], [2.0]]), 1)
    >>> leaves.shape, leaves.sum(axis=1).tolist()
    ((2, 12), [[3.0], [3.0]])
    """

    count: int = 20
    depth: int = 4
    seed: int = 0
    reach: float = 2.0
    name: ClassVar[str] = "trees"

    def __post_init__(self) -> None:
        whole_number(self.count, "count", 1, 20)
        whole_number(self.depth, "depth", 1, 4)
        whole_number(self.seed, "seed", 0, 0)
        if self.depth > 12:
            raise ValueError(f"depth={self.depth!r}: a tree has 2^depth leaves, and few rows for each; try 4")
        if not 1e-6 <= self.reach <= 1e6:
            raise ValueError(f"reach={self.reach!r}: needs a number from 1e-6 to 1e6; prepared columns lie within 2.0 mostly")

    @property
    def sparse(self) -> bool:
        return True

    def since(self, start: int, dim: int) -> Places:
        return np.zeros(self.count << self.depth, dtype=np.int64)

    def features(self, Z: Any, start: int) -> Any:
        from scipy.sparse import csr_matrix

        node = np.zeros((Z.shape[0], self.count), dtype=np.int64)
        if start:
            grown = _grown(self, start)
            asked = Z[:, grown.asked]
            values = asked.toarray() if hasattr(asked, "tocsr") else asked
            trees, rows = np.arange(self.count), np.arange(len(values))[:, None]
            for _ in range(self.depth):
                above = values[rows, grown.columns[trees, node]] > grown.places[trees, node]
                node = 2 * node + 1 + above
            node -= (1 << self.depth) - 1
        places = node + (np.arange(self.count) << self.depth)
        starts = np.arange(0, self.count * Z.shape[0] + 1, self.count)
        return csr_matrix((np.ones(places.size), places.ravel(), starts), shape=(Z.shape[0], self.count << self.depth))

    def names(self, columns: Sequence[str], start: int) -> list[str]:
        return [f"tree {tree}, leaf {leaf}" for tree in range(self.count) for leaf in range(1 << self.depth)]

    def shares(self, start: int, dim: int) -> Any:
        leaves = self.count << self.depth
        if not start:
            return spread_shares([], [], (leaves, dim))
        grown = _grown(self, start)
        tree, node = np.divmod(np.arange(leaves), 1 << self.depth)
        node += (1 << self.depth) - 1
        asked = []
        for _ in range(self.depth):
            node = (node - 1) // 2
            asked.append(grown.asked[grown.columns[tree, node]])
        return spread_shares(np.tile(np.arange(leaves), self.depth), asked, (leaves, dim))


class _Grown(NamedTuple):
    """The nodes of all trees, level by level."""

    asked: NDArray[np.int64]
    """The columns that some node asks for."""
    columns: NDArray[np.int64]
    """A tree each: the place, among these, of the column that each node asks for."""
    places: Vector


@lru_cache(maxsize=32)
def _grown(trees: Trees, start: int) -> _Grown:
    nodes = (1 << trees.depth) - 1
    columns, places = np.empty((trees.count, nodes), dtype=np.int64), np.empty((trees.count, nodes))
    for tree in range(trees.count):
        rng = np.random.default_rng([trees.seed, tree])
        cells: list[dict[int, tuple[float, float]]] = [{}]
        for node in range(nodes):
            cell, column = cells[node], int(rng.integers(start))
            low, high = cell.get(column, (-trees.reach, trees.reach))
            place = low + (high - low) * rng.random()
            columns[tree, node], places[tree, node] = column, place
            cells += [cell | {column: (low, place)}, cell | {column: (place, high)}]
    asked, among = np.unique(columns, return_inverse=True)
    return _Grown(asked, among.reshape(columns.shape), places)
