"""The data of a minimiser: all in memory as float64, and checked, for a loss whose tangents bound it from below."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlinevi.data import Rows, as_events, one_row
from onlinevi.engine import Vector
from onlinevi.learners import BadRow
from onlinevi.losses import Loss, as_loss


class InMemory(NamedTuple):
    """The rows that count, with their labels and weights."""

    matrix: Any
    """Rows × features: a float array, or a CSR matrix."""
    labels: Vector
    weights: Vector


def checked(loss: Loss, tolerance: float, usual: float) -> Loss:
    """The loss, refused where no bound from tangents holds; and the tolerance, where none can be reached."""
    loss = as_loss(loss)
    if not loss.convex:
        raise ValueError(f"{loss} is not convex: no bound from tangents holds, so no minimiser can be certified")
    if not tolerance > 0.0:
        raise ValueError(f"tolerance={tolerance!r}: a tolerance must be > 0; try {usual}")
    return loss


def in_memory(X: Any, y: Any, loss: Loss, *, weights: Any = None, most_features: int, dense: bool = False) -> InMemory:
    """Rows of weight 0 are left out, and none of the others may be refused. ``dense`` fills in the zeros of sparse rows."""
    rows, labels, factors = as_events(X, y, weights, hint=loss.label_hint, filled=dense)
    if rows.count == 0 or rows.dim == 0:
        raise ValueError(f"X has {rows.count} rows and {rows.dim} features: needs at least one of each")
    if rows.dim > most_features:
        raise ValueError(f"X has {rows.dim} features: the minimiser keeps their products, so at most {most_features}")
    factors = as_factors(factors, rows.count)
    used = np.flatnonzero(factors)
    if not len(used):
        raise ValueError("all weights are 0: needs at least one row")
    valid = np.asarray(loss.valid_label(labels[used], *loss.parameters))
    if not valid.all():
        refused = int(used[~valid][0])
        raise BadRow(refused, loss.refuse_label(labels[refused]))
    matrix = _matrix(rows)
    if len(used) < rows.count:
        matrix, labels, factors = matrix[used], labels[used], factors[used]
    if not np.isfinite(matrix.data if rows.sparse else matrix).all():
        for row in used.tolist():
            values = one_row(rows, row)
            if not np.isfinite(values).all():
                bad = values[~np.isfinite(values)][0]
                raise BadRow(row, f"a feature is {bad}: needs finite numbers; drop the row, or fill it in")
    return InMemory(matrix, labels, factors)


def as_factors(weights: Vector, count: int) -> Vector:
    """Weights as factors of the loss, one a row: none stands for ones."""
    factors = weights if len(weights) else np.ones(count)
    if not (np.isfinite(factors) & (factors >= 0.0)).all():
        raise ValueError("weights hold a negative or non-finite value: a weight must be ≥ 0 and finite")
    return factors


def _matrix(rows: Rows) -> Any:
    matrix = rows.block(0, rows.count)
    if rows.sparse:
        from scipy.sparse import csr_array

        matrix = csr_array(matrix, shape=(rows.count, rows.dim))
    return matrix if matrix.dtype == np.float64 else matrix.astype(np.float64)
