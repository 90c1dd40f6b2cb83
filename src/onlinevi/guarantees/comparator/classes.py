"""The best fixed weights of several classes: multinomial logistic regression by Newton's method, with a certified gap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.guarantees.comparator.feasible_set import FeasibleSet
from onlinevi.guarantees.comparator.newton import SMALLEST_VALUE, Best

MOST_WEIGHTS = 2_000
"""Of all classes together: Newton's method works with all pairs of them."""
FIRM, ROUNDED = 1e-10, 1e-13
"""To what is the same for all classes the loss does not react. Floats can factor its curvature by the first of these shares of
the largest there is, and the second of what there would be where nothing is known."""
TOGETHER = 1 << 18
"""Values that are multiplied at once: two megabytes, which stay near the processor."""
SHARP = 1e-9
"""The loss is smooth: a gap is made this small where floats allow it."""


@dataclass(frozen=True, eq=False)
class ClassLook:
    """What one visit to a point shows."""

    value: float
    gradient: Vector
    lower_bound: float
    chances: Vector


@dataclass(frozen=True, eq=False)
class ClassLoss:
    """The average of log Σ_c e^⟨u_c, x⟩ − ⟨u_y, x⟩ over rows, as a function of all weights, class after class."""

    matrix: Any
    codes: Any
    factors: Vector
    """Weights of the rows, divided by their number."""
    classes: int
    feasible: FeasibleSet
    tolerance: float

    smooth = True

    def losses(self, point: Vector) -> tuple[Vector, Vector]:
        """The loss of each row, and the probabilities of the classes."""
        return class_losses(self.matrix, self.codes, point.reshape(self.classes, -1))

    def look(self, point: Vector) -> ClassLook:
        losses, chances = self.losses(point)
        value, gradient = float(self.factors @ losses), self._gradient(chances)
        below = float(gradient @ (self.feasible.least(gradient, 0.0) - point))
        return ClassLook(value, gradient, value + min(below, 0.0), chances)

    def _gradient(self, chances: Vector) -> Vector:
        slopes = chances * self.factors[:, None]
        slopes[np.arange(len(slopes)), self.codes] -= self.factors
        return np.asarray(self.matrix.T @ slopes).T.ravel()

    def reachable(self, point: Vector) -> FeasibleSet:
        return self.feasible

    def hessian(self, point: Vector, look: ClassLook) -> Vector:
        dim = self.matrix.shape[1]
        dense = self.matrix.toarray() if hasattr(self.matrix, "toarray") else self.matrix
        hessian = np.zeros((self.classes * dim, self.classes * dim))
        rows, roots = max(1, TOGETHER // len(hessian)), look.chances * np.sqrt(self.factors)[:, None]
        for start in range(0, len(dense), rows):  # Σ (p ⊗ x)(p ⊗ x)ᵀ: a product of a matrix by itself is the quickest there is
            some = (roots[start : start + rows, :, None] * dense[start : start + rows, None, :]).reshape(-1, len(hessian))
            hessian -= some.T @ some
        for one in range(self.classes):  # p(1 − p) and not p less p², which is 0 for what is all but certain
            own = slice(one * dim, (one + 1) * dim)
            weight = look.chances[:, one] * (1.0 - look.chances[:, one]) * self.factors
            hessian[own, own] = dense.T @ (dense * weight[:, None])
        most = float((self.factors @ np.square(dense)).max())
        hessian[np.diag_indices_from(hessian)] += max(FIRM * hessian.diagonal().max(), ROUNDED * most, 1e-300)
        return hessian

    def slope_along(self, point: Vector, step: Vector) -> Callable[[float], float]:
        return lambda length: float(self._gradient(self.losses(point + length * step)[1]) @ step)

    def solved(self, best: Best[ClassLook], look: ClassLook) -> bool:
        return best.gap <= min(self.tolerance, SHARP) * max(best.value, SMALLEST_VALUE)


def class_losses(X: Any, codes: Any, weights: Vector) -> tuple[Vector, Vector]:
    """log Σ_c e^⟨u_c, x⟩ − ⟨u_y, x⟩ at each row, and the probabilities of the classes."""
    scores = np.asarray(X @ weights.T)
    scores -= scores.max(axis=1, keepdims=True)
    chances = np.exp(scores)
    total = chances.sum(axis=1, keepdims=True)
    return np.log(total[:, 0]) - scores[np.arange(len(scores)), codes], chances / total


def codes_of(labels: Vector, classes: int) -> Any:
    """Labels as numbers of classes."""
    codes = labels.astype(np.int64)
    if not ((codes == labels) & (codes >= 0) & (codes < classes)).all():
        odd = labels[(codes != labels) | (codes < 0) | (codes >= classes)][0]
        raise ValueError(f"label {odd:g}: with classes={classes} labels are their numbers, 0 to {classes - 1}")
    return codes
