"""The certificate of one learner of the compiled loop."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinevi.beliefs import edges, longest_mean, radii
from onlinevi.guarantees.certificates.squared_sums import SquaredSums
from onlinevi.guarantees.certificates.tangents import Tangents, rounding, tangents, unit_of
from onlinevi.guarantees.comparator.feasible_set import Ball, Cuboid, FeasibleSet
from onlinevi.learners import State, html_of


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is certain of the regret of the decisions, Σ ℓ_t(decision_t) − Σ ℓ_t(u), with row weights and ridge as in the loss.

    Of a merge, the decisions are those that its shards made, each by what it knew, and u is one point for all of them.
    Every bound includes ``rounding``, what floats can have changed in the sums that the state kept: it is certain as it is,
    and infinite where floats leave nothing certain.
    """

    count: int
    """The events it speaks of."""
    loss: float
    """Σ ℓ_t at the decisions."""
    form: str
    """Which inequality it uses, and why not a sharper one."""
    tangents: Tangents
    exact: SquaredSums | None
    box: Cuboid | Ball
    """The box or ball of means, infinite where the family has none."""
    state: State
    since: State | None = None
    space: str = ""
    """Of which features points u are weights, where a map makes them of columns; empty where they are those of the rows."""

    def _repr_html_(self) -> str:
        return as_html(self)

    @property
    def regret(self) -> float:
        """No fixed point of the box or ball of means beats the decisions by more than this, in total."""
        self._refuse_unbounded()
        return float(_certain(self._most(self.box) + self.rounding()))

    @property
    def lower_bound(self) -> float:
        """No fixed point of the box or ball has an average loss below this. Says nothing below the loss's own minimum."""
        return (self.loss - self.regret) / self.count

    def against(self, u: Any) -> Any:
        """The bound on the regret against one point u of any space, or against each row of a matrix."""
        points = np.asarray(u, dtype=float)
        if points.shape[-1:] != self.tangents.gradient.shape:
            raise ValueError(f"u has shape {points.shape}: needs {len(self.tangents.gradient)} values, one a feature")
        bound = self.tangents.against(points) if self.exact is None else self.loss - self.exact.total(points)
        with np.errstate(over="ignore", invalid="ignore"):
            bound = _certain(bound + self._rounding(np.linalg.norm(points, axis=-1)))
        return float(bound) if points.ndim == 1 else bound

    def within(self, radius: Any) -> Any:
        """The bound against every u with ‖u‖ ≤ radius, inside the box or not; radii may be an array."""
        radii = np.asarray(radius, dtype=float)
        if not ((radii >= 0.0) & np.isfinite(radii)).all():
            raise ValueError(f"radius={radius!r}: a radius must be ≥ 0 and finite; try 1.0")
        bounds = np.array([self._most(Ball(float(r))) for r in radii.ravel()]).reshape(radii.shape)
        bounds = _certain(bounds + self._rounding(radii))
        return float(bounds) if radii.ndim == 0 else bounds

    def rounding(self, radius: float | None = None) -> float:
        """How far floats can have moved ``regret``, or with a radius ``within(radius)``, at most; part of both."""
        if radius is None:
            self._refuse_unbounded()
            radius = self._reach
        return float(self._rounding(radius))

    def _rounding(self, lengths: Any) -> Any:
        states = [self.state] if self.since is None else [self.state, self.since]
        if self.exact is not None:  # of the learner's sums only the loss counts
            return sum(unit_of(state) * abs(state.loss) for state in states) + self.exact.rounding(lengths)
        return sum(rounding(state, lengths, curved=self.tangents.curvature > 0.0) for state in states)

    def _most(self, feasible: FeasibleSet) -> float:
        return self.tangents.most(feasible) if self.exact is None else self.loss - self.exact.least(feasible)

    @property
    def bounded(self) -> bool:
        """Whether the box or ball of means is finite: else no regret against all of it is."""
        return math.isfinite(self._reach)

    @property
    def _reach(self) -> float:
        return longest_mean(self.state.plan.family, self.state.plan.dim)

    def _refuse_unbounded(self) -> None:
        if not self.bounded:
            raise ValueError(
                "the means are unbounded, and against all of space no regret is finite: use .within(radius) or .against(u)"
            )

    def __repr__(self) -> str:
        regret = f"regret={self.regret:.6g}" if self.bounded else f"within(1)={self.within(1.0):.6g}"
        space = f", space={self.space!r}" if self.space else ""
        return f"Certificate(events={self.count}, loss={self.loss:.6g}, {regret}, form={self.form!r}{space})"


def of_leaf(state: State, since: State | None, exact: SquaredSums | None) -> Certificate:
    """The certificate of the events of a learner, or of those after ``since``."""
    plan = state.plan
    if not plan.loss.convex:
        raise ValueError(f"{plan.loss} is not convex: its tangents bound nothing, so no certificate exists")
    if since is not None and (since.plan != plan or since.count > state.count):
        raise ValueError(f"since={since!r} is no earlier state of this run: needs the same learner, and fewer events")
    count = state.count - (since.count if since is not None else 0)
    if count == 0:
        raise ValueError("no events yet: a certificate speaks of at least one")
    if state.without_sums:
        raise ValueError("it is a merge by an earlier version, which added up beliefs but no sums: merge the shards again")
    form, curved = _form(state, since)
    loss = state.loss - (since.loss if since is not None else 0.0)
    if exact is not None:
        _check_exact(exact, state, count)
        form = "exact"
    ball = radii(plan.family, plan.dim)
    box = Cuboid(*edges(plan.family, plan.dim)[:2]) if ball is None else Ball(ball.mean)
    return Certificate(count, loss, form, tangents(state, since, curved=curved), exact, box, state, since)


def _certain(bounds: Any) -> Any:
    """Where sums have overflowed, nothing is."""
    return np.where(np.isnan(bounds), np.inf, bounds)


def _form(state: State, since: State | None) -> tuple[str, bool]:
    """Which inequality the sums allow: its name, and whether it uses the ridge's curvature."""
    if state.plan.loss.ridge == 0.0:
        return "linear", False
    if not (state.unit_weights and (since is None or since.unit_weights)):
        return "linear: the ridge's curvature needs rows of weight 1", False
    if not state.plan.average:
        return "linear: the ridge's curvature needs average=True", False
    return "strongly convex", True


def _check_exact(exact: SquaredSums, state: State, count: int) -> None:
    loss = state.plan.loss
    if not loss.quadratic:
        raise ValueError(f"exact sums determine the squared loss, not {loss}: leave exact out")
    if exact.ridge != loss.ridge:
        raise ValueError(f"the exact sums have ridge {exact.ridge}, the loss {loss.ridge}: start them with SquaredSums.empty")
    if exact.count != count or len(exact.products) != state.plan.dim:
        raise ValueError(
            f"the exact sums hold {exact.count} rows of {len(exact.products)} features, the certificate speaks of {count} "
            f"of {state.plan.dim}: update them with the same rows"
        )


def as_html(live: Any) -> str:
    """A certificate in a notebook: what is certain of the regret against the whole box or ball, or why nothing is."""
    facts: dict[str, Any] = {"events": live.count, "average loss": live.loss / live.count}
    try:
        facts |= {"regret a row, at most": float(live.regret) / live.count}
        facts |= {"best average loss, at least": float(live.lower_bound)}
    except ValueError as error:
        facts["regret"] = str(error)
    return html_of("Certificate", facts | ({"features": live.space} if live.space else {}))
