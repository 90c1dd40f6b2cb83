"""What ``Inputs`` has bent, straight again: where far values are no accidents but the point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners.expand.base import FeatureMap, Places, spread_shares


@dataclass(frozen=True)
class Unbent(FeatureMap):
    """Each column as it was before ``Inputs(squash=…)`` bent it, but not beyond ±``reach``: 0 stays 0.

    A flood, a price, a fall of rain: some labels follow extremes to the end, which bending hides.

    >>> import numpy as np, onlinevi as ovi
    >>> inputs = ovi.Inputs(intercept=False, standardise=False)
    >>> bent = inputs.update_many(inputs.init(1), np.array([[1.0], [-9.0], [70.0]]))[1]
    >>> bent.round(3).ravel().tolist(), ovi.Unbent().features(bent, 1).round(6).ravel().tolist()
    ([1.0, -2.99, 3.0], [1.0, -9.0, 30.0])
    """

    squash: float = 3.0
    reach: float = 30.0
    name: ClassVar[str] = "unbent"

    def __post_init__(self) -> None:
        if not 1e-6 <= self.squash <= 1e6:
            raise ValueError(f"squash={self.squash!r}: needs that of Inputs, from 1e-6 to 1e6; try 3.0")
        if not self.squash <= self.reach <= 1e3 * self.squash:  # farther out, the bent value has no digits left
            raise ValueError(f"reach={self.reach!r}: needs a number from squash to a thousand times squash; try 30.0")

    @property
    def may_miss(self) -> bool:
        return True

    def _values(self, values: Vector) -> Vector:
        sizes = np.abs(values)
        beyond = np.clip(3.0 * sizes / self.squash - 2.0, 0.0, 1.0 - 1e-9)
        straight = self.squash / 3.0 * (2.0 + beyond / np.sqrt((1.0 - beyond) * (1.0 + beyond)))
        return np.where(beyond > 0.0, np.copysign(np.minimum(straight, self.reach), values), values)

    def since(self, start: int, dim: int) -> Places:
        return np.arange(1, dim + 1)

    def features(self, Z: Any, start: int) -> Any:
        if not hasattr(Z, "tocsr"):
            return self._values(np.asarray(Z, dtype=float))
        from scipy.sparse import csr_matrix

        return csr_matrix((self._values(Z.data), Z.indices, Z.indptr), shape=Z.shape)

    def names(self, columns: Sequence[str], start: int) -> list[str]:
        return [f"{column} unbent" for column in columns]

    def shares(self, start: int, dim: int) -> Any:
        return spread_shares(np.arange(dim), np.arange(dim), (dim, dim))
