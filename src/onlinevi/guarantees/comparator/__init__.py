"""The best fixed weights in hindsight, with a certified gap: the line that regret is measured from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinevi.data import as_labels, as_rows, as_weights, one_row
from onlinevi.engine import Vector
from onlinevi.guarantees.comparator.domain import Ball, Cuboid, Domain
from onlinevi.guarantees.comparator.newton import minimise
from onlinevi.guarantees.comparator.objective import Objective
from onlinevi.learners import BadRow
from onlinevi.losses import Loss

__all__ = ["Hindsight", "hindsight"]

MOST_FEATURES = 10_000


@dataclass(frozen=True, eq=False)
class Hindsight:
    """The minimiser of the average loss over a domain, and how far from the least value it can be at most."""

    mean: Vector
    """The minimiser."""
    value: float
    """Its average loss (1/T) Σ ℓ_t(mean), ridge and weights included."""
    lower_bound: float
    """No point of the domain has an average loss below this."""

    @property
    def gap(self) -> float:
        """value − lower_bound ≥ 0: the most that another point could gain."""
        return self.value - self.lower_bound

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
) -> Hindsight:
    """Minimise the average of a convex loss over a box, or over a ball, with a bound that holds at every point of it.

    ``box=20.0`` means [−20, 20] for each weight; (low, high) may be one value each, or one a coordinate. ``box=None`` needs
    a ``radius``: then ‖θ‖ ≤ radius. The gap is at most tolerance·max(value, 0.01), and near 1e-11·max(value, 0.01) for a
    smooth loss; where floats do not allow that, it says what was reached. The bound uses the loss and its subgradient at
    points only, and is exact but for the rounding of sums: 1e-13 of their largest terms. ``weights`` multiply the loss, row
    by row; as in ``learn``, a row of weight 0 is absent, and the average is over the rows that are there.

    >>> import onlinevi as ovi
    >>> from onlinevi.guarantees import hindsight
    >>> best = hindsight([[1.0], [1.0], [1.0]], [0.0, 1.0, 5.0], loss=ovi.Absolute())
    >>> round(best.value, 3), best.gap < 2e-4, best.mean.round(2).tolist()
    (1.667, True, [1.0])
    """
    if not isinstance(loss, Loss):
        hint = f"; write {loss.__name__}()" if isinstance(loss, type) else ""
        raise TypeError(f"loss={loss!r}: needs a loss object{hint}")
    if not loss.convex:
        raise ValueError(f"{loss} is not convex: no bound from tangents holds, so no minimiser can be certified")
    if not tolerance > 0.0:
        raise ValueError(f"tolerance={tolerance!r}: a tolerance must be > 0; try 1e-4")
    objective = _objective(X, y, loss, weights)
    best = minimise(objective, _domain(box, radius, objective.matrix.shape[1]), tolerance)
    return Hindsight(best.point, best.value, min(best.lower_bound, best.value))


def _domain(box: Any, radius: float | None, dim: int) -> Domain:
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
        low, high = (-box, box) if np.ndim(box) == 0 else box
        bounds = [np.broadcast_to(np.asarray(bound, dtype=float), (dim,)) for bound in (low, high)]
    except (TypeError, ValueError):
        raise ValueError(f"box={box!r}: needs one number, or (low, high), each one number or {dim}, one a feature") from None
    if not (np.isfinite(bounds).all() and (bounds[0] <= bounds[1]).all()):
        raise ValueError(f"box={box!r}: needs low ≤ high, both finite; try 20.0")
    return Cuboid(*bounds)


def _objective(X: Any, y: Any, loss: Loss, weights: Any) -> Objective:
    """The data as float64 in memory, checked; rows of weight 0 left out."""
    rows = as_rows(X)
    labels, factors = as_labels(y, loss.label_hint), as_weights(weights, rows.count)
    if rows.count == 0 or rows.dim == 0:
        raise ValueError(f"X has {rows.count} rows and {rows.dim} features: needs at least one of each")
    if rows.dim > MOST_FEATURES:
        raise ValueError(f"X has {rows.dim} features: the minimiser keeps their products, so at most {MOST_FEATURES}")
    if len(labels) != rows.count:
        raise ValueError(f"X has {rows.count} rows, y {len(labels)} labels: needs one label a row")
    factors = factors if len(factors) else np.ones(rows.count)
    if not (np.isfinite(factors) & (factors >= 0.0)).all():
        raise ValueError("weights hold a negative or non-finite value: a weight must be ≥ 0 and finite")
    used = np.flatnonzero(factors)
    if not len(used):
        raise ValueError("all weights are 0: needs at least one row")
    valid = np.asarray(loss.valid_label(labels[used], *loss.parameters))
    if not valid.all():
        refused = int(used[~valid][0])
        raise BadRow(refused, loss.refuse_label(labels[refused]))

    matrix = rows.block(0, rows.count)
    if rows.sparse:
        from scipy.sparse import csr_array

        matrix = csr_array(matrix, shape=(rows.count, rows.dim))
    matrix = matrix if matrix.dtype == np.float64 else matrix.astype(np.float64)
    if len(used) < rows.count:
        matrix, labels, factors = matrix[used], labels[used], factors[used]
    if not np.isfinite(matrix.data if rows.sparse else matrix).all():
        for row in used.tolist():
            values = one_row(rows, row)
            if not np.isfinite(values).all():
                bad = values[~np.isfinite(values)][0]
                raise BadRow(row, f"a feature is {bad}: needs finite numbers; drop the row, or fill it in")
    return Objective(loss, matrix, labels, factors / len(used))
