"""The best fixed weights in hindsight, with a certified gap: the infimum in (1), the line that regret is measured from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinevi.data import as_labels
from onlinevi.engine import Vector
from onlinevi.guarantees.comparator import newton
from onlinevi.guarantees.comparator.classes import MOST_WEIGHTS, ClassLoss, class_losses, codes_of
from onlinevi.guarantees.comparator.feasible_set import Ball, Cuboid, FeasibleSet
from onlinevi.guarantees.comparator.in_memory import checked, in_memory
from onlinevi.guarantees.comparator.smoothed import AverageLoss, minimise
from onlinevi.losses import Loss

MOST_FEATURES = 10_000


@dataclass(frozen=True, eq=False)
class Hindsight:
    """The minimiser of the average loss over a domain, and how far from the least value it can be at most."""

    mean: Vector
    """The minimiser; of several classes a row each."""
    value: float
    """Its average loss (1/T) Σ ℓ_t(mean), ridge and weights included."""
    lower_bound: float
    """No point of the domain has an average loss below this."""

    @property
    def gap(self) -> float:
        """value − lower_bound ≥ 0: the most that another point could gain."""
        return self.value - self.lower_bound

    def losses(self, X: Any, y: Any) -> Vector:
        """Of several classes, what it pays at each row."""
        codes = codes_of(as_labels(y, "number the classes from 0"), len(self.mean))
        return class_losses(X, codes, self.mean)[0]

    def __repr__(self) -> str:
        return f"Hindsight(value={self.value:.6g}, gap={self.gap:.2g}, features={len(self.mean)})"


def hindsight(
    X: Any,
    y: Any,
    *,
    loss: Loss,
    box: float | tuple[float | Sequence[float], float | Sequence[float]] | None = 20.0,
    radius: float | None = None,
    weights: Any = None,
    tolerance: float = 1e-4,
    classes: int | None = None,
) -> Hindsight:
    """Minimise the average of a convex loss over a box, or over a ball, with a bound that holds at every point of it.

    ``box=20.0`` means [−20, 20] for each weight; (low, high) may be one value each, or one a coordinate. ``box=None`` needs
    a ``radius``: then ‖θ‖ ≤ radius. The gap is at most tolerance·max(value, 0.01), and near 1e-11·max(value, 0.01) for a
    smooth loss; where floats do not allow that, it says what was reached. The bound uses the loss and its subgradient at
    points only, and is exact but for the rounding of sums: 1e-13 of their largest terms. ``weights`` multiply the loss, row
    by row; as in ``learn``, a row of weight 0 is absent, and the average is over the rows that are there.

    ``classes=k``, with ``Logistic()``: labels are 0 to k − 1, and the loss is log Σ_c e^⟨u_c, x⟩ − ⟨u_y, x⟩, that of
    ``Softmax``; ``mean`` has a row a class, and the box or the ball is that of all weights.

    >>> import onlinevi as ovi
    >>> from onlinevi.guarantees import hindsight
    >>> best = hindsight([[1.0], [1.0], [1.0]], [0.0, 1.0, 5.0], loss=ovi.Absolute())
    >>> round(best.value, 3), best.gap < 2e-4, best.mean.round(2).tolist()
    (1.667, True, [1.0])
    """
    loss = checked(loss, tolerance, 1e-4)
    if classes is not None:
        return _of_classes(X, y, loss, box, radius, weights, tolerance, classes)
    matrix, labels, factors = in_memory(X, y, loss, weights=weights, most_features=MOST_FEATURES)
    average = AverageLoss(loss, matrix, labels, factors / len(labels))
    best = minimise(average, _feasible_set(box, radius, matrix.shape[1]), tolerance)
    return Hindsight(best.point, best.value, min(best.lower_bound, best.value))


def _of_classes(
    X: Any, y: Any, loss: Loss, box: Any, radius: float | None, weights: Any, tolerance: float, classes: int
) -> Hindsight:
    if loss.odds is None or loss.ridge > 0.0:
        raise ValueError(
            f"loss={loss!r}: the loss of several classes is that of probabilities; use Logistic(), without a ridge"
        )
    if classes < 2:
        raise ValueError(f"classes={classes}: needs at least two")
    labels = as_labels(y, "number the classes from 0")
    signs = np.where(codes_of(labels, classes) == 0, -1.0, 1.0)  # which the loss takes; rows and weights are checked beside
    most = MOST_WEIGHTS // classes
    matrix, _, factors = in_memory(X, signs, loss, weights=weights, most_features=most)
    used = labels if weights is None else labels[np.asarray(weights, dtype=float) > 0.0]
    feasible = _feasible_set(box, radius, classes * matrix.shape[1])
    average = ClassLoss(matrix, codes_of(used, classes), factors / len(used), classes, feasible, tolerance)
    best = newton.minimise(average, feasible.nearest(np.zeros(classes * matrix.shape[1]))).best
    return Hindsight(best.point.reshape(classes, -1), best.value, min(best.lower_bound, best.value))


def _feasible_set(box: Any, radius: float | None, dim: int) -> FeasibleSet:
    if radius is not None:
        if box is not None:
            raise ValueError(f"radius={radius!r} and a box: give one domain; for the ball write box=None")
        if not (radius > 0.0 and math.isfinite(radius)):
            raise ValueError(f"radius={radius!r}: a radius must be > 0 and finite; try 20.0")
        return Ball(float(radius))
    if box is None:
        raise ValueError(
            "box=None without a radius: a bound for all of space does not exist; give a box or a radius, such as 20.0"
        )
    try:
        low, high = box if np.iterable(box) else (-box, box)
        bounds = [np.broadcast_to(np.asarray(bound, dtype=float), (dim,)) for bound in (low, high)]
    except (TypeError, ValueError):
        raise ValueError(f"box={box!r}: needs one number, or (low, high), each one number or {dim}, one a feature") from None
    if not (np.isfinite(bounds).all() and (bounds[0] <= bounds[1]).all()):
        raise ValueError(f"box={box!r}: needs low ≤ high, both finite; try 20.0")
    return Cuboid(*bounds)
