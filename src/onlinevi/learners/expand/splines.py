"""Additive models: a curve for each column, as a sum of bumps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial import Polynomial

from onlinevi.engine import Real, Vector, compose, ns
from onlinevi.learners.expand.base import FeatureMap, Places, spread_shares, whole_number


@dataclass(frozen=True)
class Splines(FeatureMap):
    """B-splines of each column over ``knots`` even knots from −``reach`` to ``reach``, less what they are at 0, times √number.

    Of ``degree`` 3, curves have two continuous derivatives; of 1, they are polygons. Beyond the reach a curve stays where it
    is: keep the columns, and it goes on as a line. The splines of a column sum to a constant, and with the right weights to
    the column itself. They are 0 where it is: sparse rows stay sparse, and a column that joins brings splines of its own.

    >>> import numpy as np, onlinevi as ovi
    >>> ovi.Splines(knots=3, degree=1, reach=1.0).features(np.array([[0.0], [0.25], [2.0]]), 1).round(2).tolist()
    [[0.0, 0.0, 0.0], [0.0, -0.43, 0.43], [0.0, -1.73, 1.73]]
    """

    knots: int = 6
    degree: int = 3
    reach: float = 3.0
    name: ClassVar[str] = "splines"

    def __post_init__(self) -> None:
        whole_number(self.knots, "knots", 2, 6)
        whole_number(self.degree, "degree", 1, 3)
        if self.degree > 5:
            raise ValueError(
                f"degree={self.degree!r}: needs 1 to 5; cubic splines, of degree 3, are smooth enough for the eye"
            )
        if not 1e-6 <= self.reach <= 1e6:
            raise ValueError(
                f"reach={self.reach!r}: needs a number from 1e-6 to 1e6; Inputs(squash=3.0) bounds columns by 3.0"
            )

    @property
    def each(self) -> int:
        """How many features a column has."""
        return self.knots - 1 + self.degree

    @cached_property
    def _powers(self) -> Vector:
        """The splines that are not 0 in a cell, by the recursion of Cox and de Boor, as polynomials of the way along it: a row
        a power, the highest first."""
        local = [Polynomial([math.sqrt(self.each)])]
        for p in range(1, self.degree + 1):
            below = [Polynomial([0.0]), *local, Polynomial([0.0])]
            local = [
                (Polynomial([p - r, 1.0]) * below[r] + Polynomial([r + 1.0, -1.0]) * below[r + 1]) / p for r in range(p + 1)
            ]
        powers = [np.pad(part.coef, (0, self.degree + 1 - len(part.coef)))[::-1] for part in local]
        return np.ascontiguousarray(np.transpose(powers))

    @cached_property
    def _at_zero(self) -> Vector:
        return np.asarray(self._values(np.zeros(1), np.zeros(self.each))[0])

    def _values(self, values: Vector, at_zero: Vector) -> Vector:
        """The splines at each value, less what they are at 0, a row each."""
        found = np.empty((len(values), self.each))
        bumps(np.ascontiguousarray(values), self._powers, at_zero, self.reach, found)
        return found

    def since(self, start: int, dim: int) -> Places:
        return np.repeat(np.arange(1, dim + 1), self.each)

    def features(self, Z: Any, start: int) -> Any:
        if not hasattr(Z, "tocsr"):
            return self._values(np.ravel(Z), self._at_zero).reshape(len(Z), self.each * Z.shape[1])
        from scipy.sparse import csr_matrix

        values = self._values(Z.data, self._at_zero)
        places = self.each * Z.indices.astype(np.int64)[:, None] + np.arange(self.each)
        return csr_matrix(
            (values.ravel(), places.ravel(), self.each * Z.indptr.astype(np.int64)), shape=(Z.shape[0], self.each * Z.shape[1])
        )

    def names(self, columns: Sequence[str], start: int) -> list[str]:
        return [f"{column}~{k}" for column in columns for k in range(self.each)]

    def shares(self, start: int, dim: int) -> Any:
        features = np.arange(dim * self.each)
        return spread_shares(features, features // self.each, (len(features), dim))


def fill_bumps(values: Any, powers: Any, at_zero: Any, reach: Real, found: Any) -> None:
    """Fills ``found``, a row for each value, with the polynomials of the cell that it lies in, less ``at_zero``."""
    each, local = len(at_zero), len(powers)
    last = each - local
    for i in range(len(values)):
        along = (ns.minimum(reach, ns.maximum(-reach, values[i])) + reach) * ((last + 1.0) / (2.0 * reach))
        cell = min(int(along), last) if along > 0.0 else 0  # of what is not a number too, which stays none
        for k in range(each):
            found[i, k] = -at_zero[k]
        for r in range(local):
            value = powers[0, r]
            for p in range(1, local):
                value = value * (along - cell) + powers[p, r]
            found[i, cell + r] += value


bumps = compose(fill_bumps, {})
