"""The tempered posterior of any loss in one or two dimensions: weights on a grid over the box."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from onlinevi.beliefs import MeanField, edges
from onlinevi.data import as_events, as_rows
from onlinevi.engine import Belief, Schedule, Step, Vector
from onlinevi.guarantees.exact import sweep
from onlinevi.learners import BadRow, Played, averages, fixed, next_rate, normalised, running, schedule, tempering
from onlinevi.losses import Loss, as_loss
from onlinevi.rules import PerHorizon, Rate

NARROWEST = 0.5
"""Cells a std: from here on the sum over cells of a Gaussian is its integral to a hundredth; at 1 to eight digits."""

AT_ZERO = fixed(np.zeros(1))


@dataclass(frozen=True, eq=False)
class GridPosterior:
    """A density on the centres of equal cells, after ``count`` events: the prior and each point's total loss."""

    axes: tuple[Vector, ...]
    """The centres along each coordinate."""
    log_priors: tuple[Vector, ...]
    """The prior's log-density there, times the width of a cell: the prior is their outer sum."""
    totals: Vector
    """Σ losses at each point; its axes are the coordinates."""
    schedule: Schedule
    count: int = 0
    loss: float = 0.0
    """Σ loss at the decisions."""

    def __post_init__(self) -> None:
        for array in (*self.axes, *self.log_priors, self.totals):
            fixed(array)

    @property
    def dim(self) -> int:
        return len(self.axes)

    @property
    def rate(self) -> float:
        """The rate of the next decision."""
        return next_rate(self.schedule, self.count)

    @cached_property
    def log_evidence(self) -> float:
        """log ∫ prior·exp(−rate·Σ losses) over the box, as a sum over the cells."""
        peak = self._log_joint.max()
        return float(peak + np.log(np.exp(self._log_joint - peak).sum()))

    @cached_property
    def weights(self) -> Vector:
        """The mass of each cell: positive, or 0 where it underflows, with sum 1."""
        return fixed(normalised(self._log_joint.ravel()).reshape(self.totals.shape))

    @cached_property
    def mean(self) -> Vector:
        """The decision: the posterior mean."""
        return fixed(np.array([axis @ marginal for axis, marginal in zip(self.axes, self.marginals, strict=True)]))

    @cached_property
    def covariance(self) -> Vector:
        off = [axis - mean for axis, mean in zip(self.axes, self.mean, strict=True)]
        covariance = np.diag([np.square(o) @ marginal for o, marginal in zip(off, self.marginals, strict=True)])
        if self.dim == 2:
            covariance[0, 1] = covariance[1, 0] = off[0] @ self.weights @ off[1]
        return fixed(covariance)

    @property
    def std(self) -> Vector:
        """The std of each weight."""
        return np.sqrt(self.covariance.diagonal())

    @cached_property
    def marginals(self) -> tuple[Vector, ...]:
        """The law of each coordinate."""
        return (self.weights,) if self.dim == 1 else (fixed(self.weights.sum(axis=1)), fixed(self.weights.sum(axis=0)))

    @property
    def spacing(self) -> Vector:
        """The width of a cell along each coordinate. Beside a std below half of it, the grid is too coarse."""
        return np.array([axis[1] - axis[0] for axis in self.axes])

    @property
    def average_loss(self) -> float:
        return self.loss / self.count if self.count else float("nan")

    def kl_from(self, belief: Belief) -> float:
        """KL(belief‖this), the variational direction, between two laws on the same cells.

        The belief is made discrete as the prior was: its density at the centres, normalised. So it is 0 for the prior at the
        start, and never negative. A belief narrower than half a cell is refused; ``divergences`` takes it.
        """
        mean, std = np.asarray(belief.mean, dtype=float), np.asarray(belief.std, dtype=float)
        if mean.shape != (self.dim,) or std.shape != (self.dim,):
            raise ValueError(f"the belief has shape {mean.shape}, the grid {self.dim} coordinates: needs one value each")
        if not (std >= NARROWEST * self.spacing).all():
            raise ValueError(
                f"std {std} beside cells of width {self.spacing}: a grid does not resolve a belief below half a cell; "
                "use more points, a smaller box, or divergences()"
            )
        log_laws = [-0.5 * np.square((axis - m) / s) for axis, m, s in zip(self.axes, mean, std, strict=True)]
        laws = [normalised(log_law) for log_law in log_laws]
        law = laws[0] if self.dim == 1 else np.multiply.outer(*laws)
        present = law > 0.0
        divergence = law[present] @ (np.log(law[present]) - (self._log_joint - self.log_evidence)[present])
        return max(float(divergence), 0.0)  # a KL of 0 may round to −1e-17

    @cached_property
    def _log_joint(self) -> Vector:
        prior = self.log_priors[0] if self.dim == 1 else np.add.outer(*self.log_priors)
        return np.asarray(prior - self.rate * self.totals)

    def __repr__(self) -> str:
        return f"GridPosterior(count={self.count}, points={self.totals.shape}, average_loss={self.average_loss:.6g})"


@dataclass(frozen=True)
class Grid:
    """Exact exponential weights for any loss of a linear prediction in one or two dimensions, up to the width of a cell.

    The prior is the family's, restricted to its box, or with ``prior="uniform"`` the same all over the box, which is cut into
    ``points`` cells along each coordinate. The posterior narrows as events come: compare ``std`` with ``spacing``, and take
    more points or a smaller box where it nears a cell.

    >>> import onlinevi as ovi
    >>> from onlinevi.ewa import Grid
    >>> grid = Grid(ovi.Squared(), rate=0.5, family=ovi.MeanField(box=ovi.Box((-8.0, 8.0))))
    >>> state, step = grid.update(grid.init(1), [1.0], 3.0)
    >>> round(step.loss, 6), state.mean.round(6).tolist(), state.std.round(6).tolist()
    (9.0, [1.5], [0.707107])
    """

    loss: Loss
    rate: Rate | float = PerHorizon(1.0)
    family: MeanField = field(default_factory=MeanField)
    points: int = 201
    prior: Literal["family", "uniform"] = "family"

    def __post_init__(self) -> None:
        if self.prior not in ("family", "uniform"):
            raise ValueError(f'prior={self.prior!r}: needs "family" or "uniform"; for any other use Particles')
        as_loss(self.loss)
        if not isinstance(self.family, MeanField):
            raise TypeError(f"family={self.family!r}: needs a MeanField object; try MeanField()")
        if self.loss.robust is not None:
            raise ValueError(f"{self.loss}: the exact posterior counts every event as it is; set robust=None")
        tempering(self.rate)
        if self.points < 2:
            raise ValueError(f"points={self.points}: a grid needs at least 2 points along each coordinate; try 201")

    def init(self, dim: int, horizon: int | None = None) -> GridPosterior:
        """The prior on the grid; ``horizon`` is the number of events to come, where the rate needs it."""
        if dim not in (1, 2):
            raise ValueError(
                f"dim={dim}: a grid serves 1 or 2 features, here it would take {self.points}^{dim} points; "
                "for squared loss try TemperedGaussian(), else a rule such as SVA() or NGVI()"
            )
        ends = edges(self.family, dim)[:2]
        if not (np.isfinite(ends).all() and (ends[0] < ends[1]).all()):
            raise ValueError(f"box={self.family.box}: a grid needs finite ends, low < high; try Box(mean=(-20, 20))")
        prior = self.family.init(dim)
        axes, log_priors = [], []
        for low, high, mean, std in zip(*ends, prior.mean, prior.std, strict=True):
            axis = low + (high - low) * (np.arange(self.points) + 0.5) / self.points
            cell = (high - low) / (self.points * std * math.sqrt(2.0 * math.pi))
            axes.append(axis)
            uniform = np.full(self.points, -math.log(self.points))
            log_priors.append(uniform if self.prior == "uniform" else math.log(cell) - 0.5 * np.square((axis - mean) / std))
        return GridPosterior(tuple(axes), tuple(log_priors), np.zeros((self.points,) * dim), schedule(self.rate, horizon))

    def predict(self, state: GridPosterior, x: Any) -> tuple[float, float]:
        """Mean and std of the prediction at a row. Changes nothing."""
        row = _row(state, x)
        return float(row @ state.mean), math.sqrt(max(float(row @ state.covariance @ row), 0.0))

    def update(self, state: GridPosterior, x: Any, y: float) -> tuple[GridPosterior, Step]:
        """Learn from one event. The state given is left as it is; the step says what was predicted before ``y`` was used."""
        state, played = self.update_many(state, _row(state, x)[None, :], [y])
        return state, Step(float(played.prediction[0]), float(played.spread[0]), float(played.loss[0]))

    def update_many(self, state: GridPosterior, X: Any, y: Any) -> tuple[GridPosterior, Played[GridPosterior]]:
        """Learn from a block of rows, in order; the same bits as one event at a time."""
        rows, labels, _ = as_events(X, y, hint=self.loss.label_hint, dim=state.dim, filled=True)
        # One dimension is two, the first of them a single point at 0.
        absent = 2 - state.dim
        matrix = np.zeros((rows.count, 2))
        matrix[:, absent:] = rows.block(0, rows.count)
        axes, log_priors = ((AT_ZERO,) * absent + vectors for vectors in (state.axes, state.log_priors))
        totals, record = state.totals.copy(), np.empty((rows.count, 3))
        settings = np.array([*state.schedule, self.loss.ridge, state.count], dtype=float)
        table = totals.reshape(len(axes[0]), len(axes[1]))
        kind: Any = type(self.loss)
        used = sweep.kernel(kind)(matrix, labels, table, axes, log_priors, settings, self.loss.parameters, record)
        if used < rows.count:
            raise BadRow(used, self._reason(matrix[used, absent:], float(labels[used])))
        prediction, spread, loss = record.T.copy()
        sums = running(state.loss, loss)
        after = GridPosterior(state.axes, state.log_priors, totals, state.schedule, state.count + rows.count, float(sums[-1]))
        return after, Played(after, prediction, spread, loss, averages(sums, state.count))

    def run(self, X: Any, y: Any, *, horizon: int | None = None) -> Played[GridPosterior]:
        """One pass over a stream. ``horizon`` is the number of rows unless given."""
        rows = as_rows(X)
        if rows.count == 0:
            raise ValueError("the stream is empty: X has 0 rows, needs at least one")
        return self.update_many(self.init(rows.dim, horizon or rows.count), X, y)[1]

    def posteriors(self, X: Any, y: Any, steps: Sequence[int], *, horizon: int | None = None) -> Iterator[GridPosterior]:
        """The posterior after each of these numbers of events, in one pass; 0 is the prior."""
        rows, labels, _ = as_events(X, y, hint=self.loss.label_hint, filled=True)
        state = self.init(rows.dim, horizon or rows.count)
        for start, stop in cuts(steps, rows.count):
            state, _ = self.update_many(state, rows.block(start, stop), labels[start:stop])
            yield state

    def _reason(self, row: Vector, label: float) -> str:
        """Why the compiled loop refused a row."""
        if not np.isfinite(row).all():
            return f"features {row}: needs finite numbers; drop the row, or fill it in"
        if not self.loss.valid_label(np.float64(label), *self.loss.parameters):
            return self.loss.refuse_label(label)
        return f"the loss overflows, at the decision or all over the grid: {self.loss.overflow_hint}"


def cuts(steps: Sequence[int], count: int) -> Iterator[tuple[int, int]]:
    """The blocks that end after each of these numbers of events."""
    ends = np.asarray(steps)
    if ends.ndim != 1 or ends.dtype.kind not in "iu" or (np.diff(ends, prepend=0) < 0).any() or (ends > count).any():
        raise ValueError(f"steps={steps!r}: needs numbers of events in order, from 0 to {count}")
    return zip([0, *ends.tolist()], ends.tolist(), strict=False)


def _row(state: GridPosterior, x: Any) -> Vector:
    row = np.asarray(x, dtype=float)
    if row.shape != (state.dim,):
        raise ValueError(f"x has shape {row.shape}: needs ({state.dim},), one value a feature")
    return row
