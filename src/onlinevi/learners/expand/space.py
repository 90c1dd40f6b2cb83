"""The space that a map makes of rows: which features, in which order, of which columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from onlinevi.data import SparseRows, as_rows
from onlinevi.engine import Vector
from onlinevi.learners.base import BadRow
from onlinevi.learners.expand.base import FeatureMap, Places
from onlinevi.learners.sharing import shared

BLOCK_VALUES = 1 << 16
"""How many features are made at a time: few enough to stay in cache between one operation and the next."""


@dataclass(frozen=True)
class Space:
    """The features of rows of ``dim`` columns, ``start`` of which were there at the first row: what weights are weights of.

    The intercept is first, where there is one. Features come by the number of columns that they need, so that those of columns
    that join are behind all others; a column that is kept comes before the features that need it.
    """

    map: FeatureMap
    keep: bool
    intercept: bool
    start: int
    dim: int

    @property
    def columns(self) -> int:
        """How many columns are mapped: all but the intercept."""
        return self.dim - self.intercept

    @cached_property
    def _laid_out(self) -> tuple[Places, Places]:
        """Where each column that is kept lies, and where each feature does."""
        kept = np.arange(1, self.columns + 1) if self.keep else np.empty(0, dtype=np.int64)
        order = np.argsort(np.concatenate([kept, self.map.since(self.start, self.columns)]), kind="stable")
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order)) + self.intercept
        return places[: len(kept)], places[len(kept) :]

    @property
    def width(self) -> int:
        """How many features there are, the intercept and the columns that are kept among them."""
        kept, features = self._laid_out
        return len(kept) + len(features) + self.intercept

    def widened(self, dim: int) -> Space:
        """The space of rows with further columns at the end; the features that there were stay where they are."""
        if dim < self.dim:
            raise ValueError(f"dim={dim}: the state has {self.dim} columns already, and none can leave")
        return space(self.map, self.keep, self.intercept, self.start, dim)

    def of(self, X: Any, *, missing: bool = False) -> Any:
        """The features of rows, a row each; CSR where the rows are, or where most features are 0.

        A missing value is 0 to the features, its mean, or stays missing in those of a map that ``may_miss``; the column itself
        stays NaN where it is kept. Each row has the same bits in any block.
        """
        rows = as_rows(X)
        if rows.dim != self.dim:
            raise ValueError(f"X has {rows.dim} columns, the state {self.dim}: every block needs the same columns")
        if isinstance(rows, SparseRows):
            from scipy.sparse import csr_matrix

            Z = csr_matrix((rows.data.astype(np.float64, copy=False), rows.indices, rows.starts), shape=(rows.count, rows.dim))
            return self._of_sparse(Z, missing)
        Z = np.asarray(rows.block(0, rows.count), dtype=np.float64)
        return shared(Z, lambda: (self, missing), lambda: self._of_dense(Z, missing))

    @cached_property
    def _order(self) -> Places | None:
        """Behind each other, what is kept of a row and its features: where each feature of the space lies. None: in order."""
        order = np.argsort(np.concatenate([np.arange(int(self.intercept)), *self._laid_out]))
        return None if (np.diff(order) == 1).all() else order

    def fill(self, row: Vector, found: Vector, *, missing: bool = False) -> None:
        """The features of a block of one row of finite numbers, as ``of`` has them, into a row that is there."""
        if self.intercept and row[0, 0] != 1.0:
            self.of(row, missing=missing)  # which says what is wrong
        columns, order = row[:, int(self.intercept) :], self._order
        some_missing = missing and math.isnan(columns[0] @ columns[0])
        features = self.map.features(self._known(columns) if some_missing else columns, self.start)
        parts = row if self.keep else row[:, : int(self.intercept)], features
        if order is None:
            np.concatenate(parts, axis=1, out=found)
        else:
            np.concatenate(parts, axis=1).take(order, axis=1, out=found, mode="clip")

    def _known(self, columns: Vector) -> Vector:
        """Columns as the map sees them where values may be missing."""
        return columns if self.map.may_miss else np.where(columns == columns, columns, 0.0)

    def _of_dense(self, Z: Vector, missing: bool) -> Any:
        self._check(Z, np.arange(len(Z))[:, None], Z[:, 0] if self.intercept else None, missing)
        columns = Z[:, int(self.intercept) :]
        known = self._known(columns) if missing else columns
        size = max(1, BLOCK_VALUES // max(1, self.width))
        kept, places = (_run(part) for part in self._laid_out)
        found, sparse = np.empty((len(Z), self.width)), []
        for low in range(0, len(Z), size):
            rows = slice(low, low + size)
            features = self.map.features(np.ascontiguousarray(known[rows]), self.start)
            if hasattr(features, "tocsr"):
                sparse.append(features)
            else:
                found[rows, places] = features
        if sparse:
            from scipy.sparse import csr_matrix, vstack

            return self._joined(csr_matrix(Z), vstack(sparse, format="csr"))
        if self.keep:
            found[:, kept] = columns
        if self.intercept:
            found[:, 0] = 1.0
        return found

    def _of_sparse(self, Z: Any, missing: bool) -> Any:
        first = Z[:, 0].toarray()[:, 0] if self.intercept else None
        self._check(Z.data, np.repeat(np.arange(Z.shape[0]), np.diff(Z.indptr)), first, missing)
        known = Z[:, int(self.intercept) :]
        known.data = self._known(known.data)
        return self._joined(Z, self.map.features(known, self.start))

    def _joined(self, Z: Any, features: Any) -> Any:
        """The intercept and the kept columns of rows, and their features, in the order of the space."""
        from scipy.sparse import csr_matrix, hstack

        kept, places = self._laid_out
        own = Z if self.keep else Z[:, : int(self.intercept)]
        found = hstack([own, csr_matrix(features)], format="csr")
        places = np.concatenate([np.arange(int(self.intercept)), kept, places])
        found.indices = places[found.indices].astype(found.indices.dtype)
        found.has_sorted_indices = False
        found.sort_indices()
        return csr_matrix((found.data, found.indices, found.indptr), shape=(Z.shape[0], self.width))

    def _check(self, values: Vector, rows: Any, first: Vector | None, missing: bool) -> None:
        """Refuse a row with a value that no feature should be made of."""
        bad = ~np.isfinite(values)
        if missing:
            bad &= ~np.isnan(values)
        if bad.any():
            row = int(np.broadcast_to(rows, bad.shape)[bad][0])
            ways = "give Linear(missing=True), drop the row, or fill it in" if np.isnan(values[bad][0]) else "drop the row"
            raise BadRow(row, f"it holds {values[bad][0]}, and features are made of finite numbers: {ways}")
        if first is not None and not (first == 1.0).all():
            row = int(np.flatnonzero(first != 1.0)[0])
            raise BadRow(
                row,
                f"its first column is {first[row]}, not the 1 that Inputs puts there: write Prepare(Inputs(), Expand(…)), or "
                "Expand(…, intercept=False) where rows have no intercept",
            )

    def names(self, columns: Sequence[str] | None = None) -> list[str]:
        """A name for each feature, by those of the columns without the intercept.

        >>> import onlinevi as ovi
        >>> learner = ovi.Expand(ovi.Products(), ovi.Linear(ovi.Squared(), ovi.Implicit()))
        >>> learner.init(3).space.names(["size", "age"])
        ['intercept', 'size', 'size²', 'age', 'size·age', 'age²']
        """
        columns = [f"column {k}" for k in range(self.columns)] if columns is None else columns
        if len(columns) != self.columns:
            raise ValueError(f"{len(columns)} names for {self.columns} columns: needs one each, and none for the intercept")
        found = [""] * self.width
        found[: int(self.intercept)] = ["intercept"] * self.intercept
        for part, names in zip(self._laid_out, (columns, self.map.names(columns, self.start)), strict=True):
            for place, name in zip(part.tolist(), names, strict=bool(len(part))):
                found[place] = name
        return found

    def of_columns(self, made: Any, like: Any) -> Any:
        """What features add at each row as what columns do, by their shares: a matrix as that of the columns, with the
        intercept, where there is one, whose part is its own."""
        kept, places = self._laid_out
        found = made[:, places] @ self.map.shares(self.start, self.columns)
        if self.keep:
            found = found + made[:, kept]
        first = made[:, : int(self.intercept)]
        if hasattr(like, "tocsr"):
            from scipy.sparse import csr_matrix, hstack

            return hstack([csr_matrix(first), csr_matrix(found)], format="csr")
        first, found = (part.toarray() if hasattr(part, "tocsr") else np.asarray(part) for part in (first, found))
        return np.column_stack([first, found])

    def by_column(self, sizes: Any) -> Vector:
        """Sizes of features as sizes of columns: each feature's goes to the columns that it is made of, by their shares.

        Of weights, |mean| say, it tells how much columns matter: prepared columns and features have one scale. The intercept's
        is nobody's. A matrix has a row for each class.
        """
        sizes = np.asarray(sizes, dtype=float)
        if sizes.shape[-1:] != (self.width,):
            raise ValueError(f"sizes have shape {sizes.shape}: needs {self.width} values, one a feature")
        kept, places = self._laid_out
        found = sizes[..., places] @ self.map.shares(self.start, self.columns)
        return np.asarray(found + sizes[..., kept] if self.keep else found)

    def __str__(self) -> str:
        beside = " beside the columns" if self.keep else ""
        return f"{self.width} features ({self.map}{beside})"


@lru_cache(maxsize=64)
def space(of: FeatureMap, keep: bool, intercept: bool, start: int, dim: int) -> Space:
    """The space of these settings, laid out once."""
    return Space(of, keep, intercept, start, dim)


def _run(places: Places) -> Any:
    """Places as a slice where they lie side by side: numpy copies those at once."""
    if len(places) and places[-1] - places[0] == len(places) - 1 and (np.diff(places) == 1).all():
        return slice(int(places[0]), int(places[-1]) + 1)
    return places
