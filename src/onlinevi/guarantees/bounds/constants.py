"""The constants of the theorems: L (Assumption 4.1) and B on given data, α (Assumption 4.3), and divergences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlinevi.beliefs import Family, FullBelief, FullCovariance, MeanField, edges, longest_mean, radii
from onlinevi.data import as_labels, as_rows
from onlinevi.engine import Vector
from onlinevi.guarantees.bounds.domains import domain_of
from onlinevi.losses import Loss


def lipschitz(X: Any, y: Any, *, loss: Loss, family: Family | None = None) -> float:
    """L: no expected loss of these rows has a gradient in (mean, std) longer than this, anywhere in the family's box or ball.

    A loss that is L'-Lipschitz in the weights has L = L' (Proposition 2 has 2L'): 1 and the coordinates of the noise are
    orthonormal, so by Bessel ‖∇_m‖² + ‖∇_std‖² ≤ E‖∇ℓ‖². Squared and Poisson losses are Lipschitz in no Gaussian's reach; of
    these the gradient itself is bounded over the box. A ridge adds ridge·sup‖(mean, std)‖.
    """
    require_convex(loss)
    family = family if family is not None else MeanField()
    rows = np.asarray(_dense(X), dtype=float)
    dim = rows.shape[1]
    pull = loss.ridge * domain_of(family, dim).radius if loss.ridge else 0.0
    norms = np.linalg.norm(rows, axis=1)
    if math.isfinite(loss.lipschitz):
        return loss.lipschitz * float(norms.max()) + pull
    if not loss.steepest_at_corners:
        raise ValueError(f"{loss} has no Lipschitz constant: give it a property lipschitz, or a bound of your own")
    domain_of(family, dim)  # refuse one without ends
    labels = as_labels(y, loss.label_hint)
    low, high = _predictions(rows, family)
    spread, along_std = _widest(rows, family)
    corners = [loss(labels, a, v) for a in (low, high) for v in (0.0, spread)]
    slope = np.max([np.abs(corner.slope) for corner in corners], axis=0)
    curvature = np.max([corner.curvature for corner in corners], axis=0)
    return float(np.hypot(slope * norms, curvature * along_std).max()) + pull


def largest_loss(X: Any, y: Any, *, loss: Loss, family: Family | None = None) -> float:
    """B: no row costs more at any weights in the family's box. A convex loss is largest at an end of the predictions."""
    require_convex(loss)
    if not loss.nonnegative:
        raise ValueError(f"{loss} can be below 0: the theorem needs losses in [0, B]")
    family = family if family is not None else MeanField()
    rows = np.asarray(_dense(X), dtype=float)
    reach = longest_mean(family, rows.shape[1])
    if not math.isfinite(reach):
        raise ValueError(f"{family}: the theorem needs weights in a bounded domain; try Box(mean=(-20, 20))")
    labels = as_labels(y, loss.label_hint)
    largest = max(float(loss(labels, end).value.max()) for end in _predictions(rows, family))
    return largest + 0.5 * loss.ridge * reach**2


def kl_strong_convexity(family: Family, dim: int) -> float:
    """α of KL(q‖prior) in (mean, std), Assumption 4.3.

    Its second derivatives are 1/s² and 1/s² + 1/std², hence 1/s² for the widest s. In (mean, C), Σ = CᵀC, they are 1/s² too,
    plus 1/C_ii² on the diagonal.
    """
    return 1.0 / float(np.max(family.init(dim).std)) ** 2


def narrow_kl(*, dim: int, distance: float, prior_std: float, std: float) -> float:
    """KL(N(u, std²)‖prior) = ½·[distance²/s² + d·(std²/s² − 1 − ln(std²/s²))], u at ``distance`` from the prior's mean."""
    ratio = (std / prior_std) ** 2
    return 0.5 * ((distance / prior_std) ** 2 + dim * (ratio - 1.0 - math.log(ratio)))


def gaussian_kl(mean: Any, scale: Any, other_mean: Any, other_scale: Any, *, printed: bool = False) -> float:
    """KL(N(m, CᵀC)‖N(m̄, C̄ᵀC̄)) of section 4, C and C̄ upper triangular: its mean term is (m − m̄)ᵀ(C̄ᵀC̄)⁻¹(m − m̄)/2.

    ``printed=True`` has C̄ᵀC̄ there without the inverse, as the paper does.

    >>> from onlinevi import bounds
    >>> [bounds.gaussian_kl([3.0], [[2.0]], [0.0], [[2.0]], printed=flag) for flag in (False, True)]
    [1.125, 18.0]
    """
    belief, other = (
        FullBelief(np.asarray(m, dtype=float), np.asarray(C, dtype=float))
        for m, C in ((mean, scale), (other_mean, other_scale))
    )
    if printed:
        shift = float(np.sum(np.square(other.factor @ (belief.mean - other.mean))))
        return FullCovariance().kl(belief._replace(mean=other.mean), other) + 0.5 * shift
    return FullCovariance().kl(belief, other)


def require_convex(loss: Loss) -> None:
    if not loss.convex:
        raise ValueError(f"{loss} is not convex: no theorem of the paper speaks of it")


def _predictions(rows: Vector, family: Family) -> tuple[Vector, Vector]:
    """The least and the largest prediction that weights in the box or ball make for each row."""
    ball = radii(family, rows.shape[1])
    if ball is not None:
        furthest = ball.mean * np.linalg.norm(rows, axis=1)
        return -furthest, furthest
    low, high, _, _ = edges(family, rows.shape[1])
    return np.minimum(rows * low, rows * high).sum(axis=1), np.maximum(rows * low, rows * high).sum(axis=1)


def _widest(rows: Vector, family: Family) -> tuple[Vector, Vector]:
    """sup √(Σ x²·std²) and sup ‖x²·std‖ over the stds of the box or ball, for each row: what scales ∂E/∂std."""
    ball = radii(family, rows.shape[1])
    if ball is not None:  # all of it along the largest value
        largest = np.abs(rows).max(axis=1)
        return ball.std * largest, ball.std * np.square(largest)
    wide = edges(family, rows.shape[1])[3]
    return np.sqrt(np.square(rows) @ np.square(wide)), np.linalg.norm(wide * np.square(rows), axis=1)


def _dense(X: Any) -> Any:
    rows = as_rows(X, filled=True)
    if rows.count == 0 or rows.dim == 0:
        raise ValueError(f"X has {rows.count} rows and {rows.dim} features: needs at least one of each")
    return rows.block(0, rows.count)
