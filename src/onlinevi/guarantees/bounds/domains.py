"""Where means and stds may lie, as the theorems see it: two diameters."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onlinevi.beliefs import Family, Radii, edges, radii
from onlinevi.engine import Belief, Vector
from onlinevi.guarantees.bounds.bound import non_negative

ROUNDING = 1e-12
"""A vector that was scaled to a ball's radius may be longer by this share."""


@dataclass(frozen=True)
class Domain:
    """A convex set of (mean, std), by its extents: sup‖m − m'‖, sup‖std − std'‖, sup‖std‖ and sup‖(m, std)‖."""

    mean_diameter: float
    std_diameter: float
    std_radius: float
    radius: float

    @property
    def diameter(self) -> float:
        """D = sup‖μ − μ'‖."""
        return math.hypot(self.mean_diameter, self.std_diameter)

    @property
    def theorem_diameter(self) -> float:
        """D of Theorem 3: sup √(‖m − m'‖² + ‖std‖²), two means and one std."""
        return math.hypot(self.mean_diameter, self.std_radius)

    @property
    def svb_diameter(self) -> float:
        """D₁ = sup √(½‖m − m'‖² + ‖std‖²): what the steps of SVB are measured by."""
        return math.hypot(self.mean_diameter / math.sqrt(2.0), self.std_radius)


def domain_of(family: Family, dim: int) -> Domain:
    """The family's box or ball in ``dim`` coordinates, refused where it has no bounds.

    >>> import onlinevi as ovi
    >>> from onlinevi import bounds
    >>> round(bounds.domain_of(ovi.MeanField(prior_std=0.1, box=ovi.Ball(mean=2.0)), dim=100).diameter ** 2, 9)
    18.0
    """
    ball = radii(family, dim)
    if ball is None:
        return box_domain(family, dim)
    if not np.isfinite(ball).all():
        raise ValueError(f"{family}: the theorem needs a bounded domain; give both radii of the ball, such as Ball()")
    return ball_domain(*ball, dim)


def box_domain(family: Family, dim: int) -> Domain:
    """The family's box in ``dim`` coordinates. For means in [−M, M] and stds in [0, S], D² = d·(4M² + S²).

    >>> import onlinevi as ovi
    >>> from onlinevi import bounds
    >>> bounds.box_domain(ovi.MeanField(box=ovi.Box(mean=(-2.0, 2.0))), dim=2).diameter ** 2
    34.0
    """
    mean_low, mean_high, std_low, std_high = edges(family, dim)
    if not np.isfinite([mean_low, mean_high, std_high]).all():
        raise ValueError(f"{family}: the theorem needs a bounded domain; give both sides of the box, such as Box()")
    outermost = np.maximum(np.abs(mean_low), np.abs(mean_high))
    std_radius = float(np.linalg.norm(std_high))
    return Domain(
        float(np.linalg.norm(mean_high - mean_low)),
        float(np.linalg.norm(std_high - std_low)),
        std_radius,
        math.hypot(float(np.linalg.norm(outermost)), std_radius),
    )


def ball_domain(mean_radius: float, std_radius: float, dim: int) -> Domain:
    """‖m‖ ≤ M and ‖std‖ ≤ S, stds ≥ 0, the balls of section 4.2: D² of Theorem 3 is 4M² + S² whatever the dimension.

    Two points are farther apart than that from two dimensions on, √(4M² + 2S²), for (S, 0) and (0, S) are both stds.

    >>> from onlinevi import bounds
    >>> [round(bounds.ball_domain(2.0, 1.0, dim).theorem_diameter ** 2, 9) for dim in (1, 2, 10_000)]
    [17.0, 17.0, 17.0]
    """
    non_negative(mean_radius=mean_radius, std_radius=std_radius)
    apart = std_radius * math.sqrt(min(dim, 2))
    return Domain(2.0 * mean_radius, apart, std_radius, math.hypot(mean_radius, std_radius))


def ball_diameter(mean_radius: float, std_radius: float, *, printed: bool = False) -> float:
    """D of Theorem 3 on balls, √(4M² + S²) in every dimension. ``printed=True``: D = 4M² + S², which lacks the root."""
    diameter = ball_domain(mean_radius, std_radius, 1).theorem_diameter
    return diameter**2 if printed else diameter


def require_inside(comparator: Belief, family: Family, dim: int) -> None:
    """Refuse a comparator outside of the domain: no theorem speaks of it."""
    mean, std = (np.broadcast_to(np.asarray(part, dtype=float), (dim,)) for part in comparator)
    ball = radii(family, dim)
    if ball is not None:
        _require_in_ball(mean, std, ball)
    mean_low, mean_high, std_low, std_high = edges(family, dim)
    inside = (mean_low <= mean) & (mean <= mean_high) & (std_low <= std) & (std <= std_high)
    if not inside.all():
        j = int(np.flatnonzero(~inside)[0])
        raise ValueError(
            f"the comparator lies outside of the domain: coordinate {j} has mean {mean[j]:.6g}, std {std[j]:.6g}, the box "
            f"[{mean_low[j]:.6g}, {mean_high[j]:.6g}] and [{std_low[j]:.6g}, {std_high[j]:.6g}]"
        )


def _require_in_ball(mean: Vector, std: Vector, ball: Radii) -> None:
    for name, vector, radius in (("mean", mean, ball.mean), ("std", std, ball.std)):
        length = float(np.linalg.norm(vector))
        if length > radius * (1.0 + ROUNDING):
            raise ValueError(
                f"the comparator lies outside of the domain: its {name} has length {length:.6g}, the ball radius {radius:.6g}"
            )
