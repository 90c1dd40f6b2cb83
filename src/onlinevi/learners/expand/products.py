"""Products of columns, one by one or hashed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onlinevi.engine import Vector, compose
from onlinevi.learners.expand.base import FeatureMap, Places, spread_shares, whole_number

MOST = 20_000
"""Products that have a feature each: with more, a row costs more than most streams are worth."""
MOST_HASHED = 1_000_000
"""Products of a dense row that are hashed."""


@dataclass(frozen=True)
class Products(FeatureMap):
    """Products of two columns, squares among them; of ``order`` 3, of two and three. They make polynomials of lines.

    With ``buckets`` products share so many features: each is added to one, or taken from it, by a hash of its columns and the
    ``seed`` (Weinberger et al., 2009; Vowpal Wabbit's ``-q``). Products that meet cannot be told apart, and the loss stays
    convex. Without, a column that joins brings its products with all that were there; with buckets, they go into these.
    Sparse rows cost the products of what they store, and need order 2.

    >>> import numpy as np, onlinevi as ovi
    >>> ovi.Products().features(np.array([[2.0, 3.0, 5.0]]), 3).tolist(), ovi.Products().names(["a", "b"], 2)
    ([[4.0, 6.0, 9.0, 10.0, 15.0, 25.0]], ['a²', 'a·b', 'b²'])
    """

    order: int = 2
    buckets: int | None = None
    seed: int = 0
    name: ClassVar[str] = "products"

    def __post_init__(self) -> None:
        whole_number(self.order, "order", 2, 2)
        whole_number(self.seed, "seed", 0, 0)
        if self.order > 3:
            raise ValueError(f"order={self.order!r}: needs 2 or 3; for bends of any kind use Fourier() or Splines()")
        if self.buckets is not None:
            whole_number(self.buckets, "buckets", 1, 256)

    def since(self, start: int, dim: int) -> Places:
        if self.buckets is not None:
            return np.zeros(self.buckets, dtype=np.int64)
        number = self._number(dim)
        if number > MOST:
            raise ValueError(
                f"{dim:,} columns have {number:,} products of order {self.order}: hash them, as Products(buckets=1024), or "
                "keep fewer columns"
            )
        return np.array([max(factors) + 1 for factors in _factors(self.order, dim)], dtype=np.int64)

    def _number(self, dim: int) -> int:
        """How many products so many columns have."""
        return dim * (dim + 1) // 2 + (dim * (dim + 1) * (dim + 2) // 6 if self.order == 3 else 0)

    def features(self, Z: Any, start: int) -> Any:
        if hasattr(Z, "tocsr"):
            return self._of_stored(Z)
        if self._number(Z.shape[1]) > MOST_HASHED:
            raise ValueError(
                f"dense rows of {Z.shape[1]:,} columns have {self._number(Z.shape[1]):,} products: give sparse rows, which "
                "cost those of what they store, or keep fewer columns"
            )
        factors = _columns_of(self.order, Z.shape[1])
        number = factors.shape[1] if self.buckets is None else self.buckets
        found = np.zeros((len(Z), number))
        multiplied(np.ascontiguousarray(Z), factors, *_dealing(self, Z.shape[1]), found)
        return found

    def _of_stored(self, Z: Any) -> Any:
        """Of each row the products of all pairs of stored values."""
        from scipy.sparse import csr_matrix

        if self.order != 2:
            raise ValueError(f"order={self.order}: sparse rows have products of order 2 alone; use Products(order=2)")
        starts, lengths = Z.indptr[:-1].astype(np.int64), np.diff(Z.indptr).astype(np.int64)
        row_start = np.repeat(starts, lengths)
        partners = np.arange(len(row_start)) - row_start + 1  # a value, and those before it in its row
        later = np.repeat(np.arange(len(row_start)), partners)
        earlier = np.repeat(row_start - (np.cumsum(partners) - partners), partners) + np.arange(len(later))
        values, pairs = Z.data[later] * Z.data[earlier], lengths * (lengths + 1) // 2
        low, high = Z.indices[earlier].astype(np.int64), Z.indices[later].astype(np.int64)
        places, width = high * (high + 1) // 2 + low, Z.shape[1] * (Z.shape[1] + 1) // 2
        if self.buckets is not None:
            places, signs = self._dealt(np.stack([low, high], axis=1))
            values, width = values * signs, self.buckets
        found = csr_matrix((values, places, np.concatenate([[0], np.cumsum(pairs)])), shape=(Z.shape[0], width))
        found.sum_duplicates()
        return found

    def _dealt(self, factors: NDArray[np.int64]) -> tuple[NDArray[np.int64], Vector]:
        """The bucket of each product, and the sign it has there; of columns in ascending order."""
        assert self.buckets is not None
        mixed = np.full(len(factors), _mixed(np.array([self.seed], dtype=np.uint64))[0])
        for column in factors.T:
            mixed = _mixed(mixed ^ column.astype(np.uint64))
        return (mixed >> np.uint64(1)).astype(np.int64) % self.buckets, np.where(mixed & np.uint64(1), 1.0, -1.0)

    def names(self, columns: Sequence[str], start: int) -> list[str]:
        if self.buckets is not None:
            return [f"bucket {k}" for k in range(self.buckets)]
        return [_name([columns[k] for k in factors]) for factors in _factors(self.order, len(columns))]

    def shares(self, start: int, dim: int) -> Any:
        from scipy.sparse import csr_matrix

        if self._number(dim) > MOST_HASHED:  # too many meet in each bucket to be told apart
            return spread_shares([], [], (int(self.buckets or 0), dim))
        factors = _factors(self.order, dim)
        rows = np.repeat(np.arange(len(factors)), [len(each) for each in factors])
        each = spread_shares(rows, [column for one in factors for column in one], (len(factors), dim))
        if self.buckets is None:
            return each
        places, _ = _dealing(self, dim)
        dealt = csr_matrix((np.ones(len(places)), (places, np.arange(len(places)))), shape=(self.buckets, len(places)))
        within = dealt @ each  # those that meet are each as large a part as the others
        number = np.maximum(np.asarray(dealt.sum(axis=1)), 1.0)
        return within.multiply(1.0 / number).tocsr()


@lru_cache(maxsize=32)
def _factors(order: int, dim: int) -> list[tuple[int, ...]]:
    """The columns of each product, by the last of them: those of the first columns stay where they are when others join."""
    found = [factors for size in range(2, order + 1) for factors in combinations_with_replacement(range(dim), size)]
    return sorted(found, key=lambda factors: (factors[-1], len(factors), factors))


@lru_cache(maxsize=32)
def _columns_of(order: int, dim: int) -> Places:
    """The same, a row a factor; a product of fewer factors has the column behind the last for the others."""
    padded = [(*factors, *[dim] * (order - len(factors))) for factors in _factors(order, dim)]
    return np.ascontiguousarray(np.array(padded, dtype=np.int64).reshape(-1, order).T)


@lru_cache(maxsize=32)
def _dealing(products: Products, dim: int) -> tuple[Places, Vector]:
    """Which feature each product is a part of, and with which sign."""
    factors = _factors(products.order, dim)
    places, signs = np.arange(len(factors)), np.ones(len(factors))
    for size in range(2, products.order + 1 if products.buckets is not None else 0):
        those = [k for k, each in enumerate(factors) if len(each) == size]
        if those:
            places[those], signs[those] = products._dealt(np.array([factors[k] for k in those]))
    return places, signs


def fill_products(Z: Any, factors: Any, places: Any, signs: Any, found: Any) -> None:
    """Adds to each row of ``found`` the products of the row of Z, one by one; a factor behind its columns is 1."""
    for i in range(len(Z)):
        for k in range(len(places)):
            product = signs[k]
            for f in range(len(factors)):
                j = np.uint64(factors[f, k])
                product *= Z[i, j] if j < np.uint64(Z.shape[1]) else 1.0
            found[i, np.uint64(places[k])] += product


multiplied = compose(fill_products, {})


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Steele, Lea and Flood's SplitMix64: each bit of a number changes half of those of the result."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _name(factors: Sequence[str]) -> str:
    powers = {name: factors.count(name) for name in dict.fromkeys(factors)}
    return "·".join(name + {1: "", 2: "²", 3: "³"}[power] for name, power in powers.items())
