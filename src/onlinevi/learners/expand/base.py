"""The contract of feature maps, and one that puts several beside each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]


class FeatureMap(ABC):
    """Features of a row, fixed before any label is seen: a frozen dataclass, which its seed makes the same everywhere.

    A map sees rows of ``dim`` columns, ``start`` of which were there at the first row; others have joined since, and were 0
    till then. What it makes of a row depends on that row alone, to the last bit, and not on columns that are 0: so a stream
    may be split anywhere, and columns that join leave what was learned of the others as it is.
    """

    name: ClassVar[str]
    """What the command line and messages call it."""

    @property
    def sparse(self) -> bool:
        """Whether the features of dense rows come stored sparse, as most of them are 0."""
        return False

    @property
    def may_miss(self) -> bool:
        """Whether it takes missing values, NaN, and makes NaN of each: a feature of one column is missing where this is."""
        return False

    @abstractmethod
    def since(self, start: int, dim: int) -> Places:
        """For each feature of ``dim`` columns, how many columns there must be for it to exist; 0 for one that always does.

        With more columns, the features that there were come in the same order.
        """

    @abstractmethod
    def features(self, Z: Any, start: int) -> Any:
        """The features of rows, a row each: dense, or CSR where most are 0. Z is dense or CSR, and finite."""

    @abstractmethod
    def names(self, columns: Sequence[str], start: int) -> list[str]:
        """A name for each feature, by those of the columns."""

    @abstractmethod
    def shares(self, start: int, dim: int) -> Any:
        """How large a part of each feature each column is: a row a feature, which sums to 1; dense or CSR."""


@dataclass(frozen=True)
class Beside(FeatureMap):
    """The features of several maps, beside each other.

    >>> import onlinevi as ovi
    >>> ovi.Beside((ovi.Products(), ovi.Splines(knots=2, degree=1))).names(["a"], 1)
    ['a²', 'a~0', 'a~1']
    """

    maps: tuple[FeatureMap, ...]
    name: ClassVar[str] = "beside"

    def __post_init__(self) -> None:
        object.__setattr__(self, "maps", tuple(self.maps))
        if not self.maps or not all(isinstance(one, FeatureMap) for one in self.maps):
            raise TypeError(f"maps={self.maps!r}: needs one feature map or more, such as Splines(), Fourier()")

    @property
    def sparse(self) -> bool:
        return any(one.sparse for one in self.maps)

    def since(self, start: int, dim: int) -> Places:
        return np.concatenate([one.since(start, dim) for one in self.maps])

    def features(self, Z: Any, start: int) -> Any:
        found = [one.features(Z, start) for one in self.maps]
        if any(hasattr(part, "tocsr") for part in found):
            from scipy.sparse import csr_matrix, hstack

            return hstack([csr_matrix(part) for part in found], format="csr")
        return np.concatenate(found, axis=1)

    def names(self, columns: Sequence[str], start: int) -> list[str]:
        return [name for one in self.maps for name in one.names(columns, start)]

    def shares(self, start: int, dim: int) -> Any:
        from scipy.sparse import csr_matrix, vstack

        return vstack([csr_matrix(one.shares(start, dim)) for one in self.maps], format="csr")


def whole_number(value: Any, name: str, least: int, example: int) -> None:
    """Refuse a setting that is no whole number from ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}={value!r}: needs a whole number from {least}; try {example}")


def spread_shares(rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    """Shares where each row's features are made of as many columns each, alike; one column may be named twice."""
    from scipy.sparse import csr_matrix

    rows, columns = np.ravel(rows), np.ravel(columns)
    each = np.ones(len(rows)) / np.maximum(np.bincount(rows, minlength=shape[0]), 1)[rows]
    return csr_matrix((each, (rows, columns)), shape=shape)
