"""For the squared loss the total at every point is known exactly, from O(d²) sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onlinevi.data import as_events, blocks
from onlinevi.engine import Vector
from onlinevi.guarantees.certificates.tangents import UNIT
from onlinevi.guarantees.comparator.feasible_set import FeasibleSet
from onlinevi.guarantees.comparator.in_memory import as_factors
from onlinevi.losses import Squared

MOST_STEPS = 60
CLOSE = 1e-12
"""A gap this small beside the total is below what the sums resolve."""


@dataclass(frozen=True, eq=False)
class SquaredSums:
    """Σ xxᵀ, Σ yx and Σ y² over the rows seen; ``update`` returns new ones. Rows of weight 0 are absent.

    >>> import numpy as np
    >>> sums = SquaredSums.empty(1).update(np.ones((3, 1)), [1.0, 2.0, 6.0])
    >>> sums.count, float(sums.total([3.0]))
    (3, 14.0)
    """

    count: int
    weight: float
    rows: Vector
    products: Vector
    labels: float
    ridge: float = 0.0

    @classmethod
    def empty(cls, dim: int, *, ridge: float = 0.0) -> SquaredSums:
        """Before the first row; with the ridge of the loss, if it has one."""
        return cls(0, 0.0, np.zeros((dim, dim)), np.zeros(dim), 0.0, ridge)

    def update(self, X: Any, y: Any, weights: Any = None) -> SquaredSums:
        """These sums with more rows."""
        rows, labels, factors = as_events(
            X, y, weights, hint=Squared.label_hint, dim=len(self.products), holder="sums", filled=True
        )
        factors = as_factors(factors, rows.count)
        squares, products = self.rows.copy(), self.products.copy()
        for start, stop in blocks(rows):
            used = factors[start:stop] > 0.0
            block = np.asarray(rows.block(start, stop)[used], dtype=float)
            weighted = block * factors[start:stop][used][:, None]
            squares += weighted.T @ block
            products += labels[start:stop][used] @ weighted
        present = factors > 0.0
        total = self.labels + float(factors[present] @ labels[present] ** 2)
        if not (np.isfinite(squares).all() and np.isfinite(products).all() and np.isfinite(total)):
            raise ValueError("a row or a label is not finite, or too large to square: drop the row, or fill it in")
        count, weight = self.count + int(present.sum()), self.weight + float(factors.sum())
        return SquaredSums(count, weight, squares, products, total, self.ridge)

    def __add__(self, other: SquaredSums) -> SquaredSums:
        """The sums of the rows of both, as of two shards.

        >>> one, two = (SquaredSums.empty(1).update([[x]], [1.0]) for x in (1.0, 2.0))
        >>> (one + two).rows.tolist(), (one + two).count
        ([[5.0]], 2)
        """
        if len(self.products) != len(other.products) or self.ridge != other.ridge:
            raise ValueError(
                f"sums of {len(self.products)} features with ridge {self.ridge}, and of {len(other.products)} with "
                f"{other.ridge}: only those of the same features and ridge add up"
            )
        names = ("count", "weight", "rows", "products", "labels")
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in names})

    def total(self, points: Any) -> Any:
        """Σ ℓ_t at one point, or at each row of a matrix."""
        points = np.asarray(points, dtype=float)
        squares = np.sum((points @ self._hessian) * points, axis=-1)
        return self.labels - 2.0 * points @ self.products + 0.5 * squares

    def least(self, feasible: FeasibleSet) -> float:
        """No point of the set has a total below this. Newton's method, then the tangent where it stopped."""
        hessian = self._hessian
        diagonal = np.diag_indices_from(hessian)
        firm = hessian.copy()  # floats can factor it even where the rows do not span the space
        firm[diagonal] += 10.0 * len(hessian) * np.finfo(float).eps * max(float(hessian[diagonal].max()), 1e-300)
        point = feasible.nearest(np.zeros(len(hessian)))
        best = -np.inf
        for _ in range(MOST_STEPS):
            gradient = hessian @ point - 2.0 * self.products
            gap = float(gradient @ (point - feasible.least(gradient, 0.0)))
            best = max(best, float(self.total(point)) - max(gap, 0.0))
            if gap <= CLOSE * self.labels:
                break
            point = feasible.nearest(point + feasible.newton_step(point, gradient, firm))
        return best

    def rounding(self, comparator: Any) -> Any:
        """How much rounding can change the total at points of these lengths, or the least in their ball, at most."""
        # Twice: a total, and the tangent there by which ``least`` goes below it.
        size = 2.0 * self.labels + np.square(comparator) * (2.0 * float(np.trace(self.rows)) + self.ridge * self.weight)
        return 4.0 * UNIT * (self.count + len(self.products) + 8.0) * size + CLOSE * self.labels

    @property
    def _hessian(self) -> Vector:
        return 2.0 * self.rows + self.ridge * self.weight * np.eye(len(self.products))
