"""The tempered posterior of a Gaussian prior under squared loss: a Gaussian with full covariance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from onlinevi.beliefs import PerCoordinate, frozen
from onlinevi.data import as_events, as_rows
from onlinevi.engine import Belief, Schedule, Step, Vector
from onlinevi.learners import BadRow, Played, averages, fixed, next_rate, running, schedule, tempering
from onlinevi.losses import Squared
from onlinevi.rules import PerHorizon, Rate

SINGULAR = 1e-13
"""A pivot below this share of its diagonal entry is made of rounding: what is solved with it has less than three digits."""


@dataclass(frozen=True, eq=False)
class GaussianPosterior:
    """N(mean, precision⁻¹) after ``count`` events, as a prior and two sums over the events."""

    prior: Belief
    gram: Vector
    """Σ x xᵀ."""
    moment: Vector
    """Σ y·x."""
    schedule: Schedule
    count: int = 0
    loss: float = 0.0
    """Σ loss at the decisions."""

    def __post_init__(self) -> None:
        for array in (*self.prior, self.gram, self.moment):
            fixed(array)

    @cached_property
    def precision(self) -> Vector:
        """1/prior std² + 2·rate·Σ x xᵀ."""
        return fixed(np.diag(self.prior.std**-2.0) + 2.0 * next_rate(self.schedule, self.count) * self.gram)

    @cached_property
    def mean(self) -> Vector:
        """The decision: precision·mean = prior mean/prior std² + 2·rate·Σ y·x."""
        return fixed(self._solve(self._pull)[0])

    @cached_property
    def covariance(self) -> Vector:
        return fixed(self._solve(*np.eye(len(self.moment))))

    @property
    def std(self) -> Vector:
        """The std of each weight."""
        return np.sqrt(self.covariance.diagonal())

    @property
    def average_loss(self) -> float:
        return self.loss / self.count if self.count else float("nan")

    def kl_from(self, belief: Belief) -> float:
        """KL(belief‖this), the variational direction; infinite where the belief has a std of 0."""
        shift, variance = np.asarray(belief.mean) - self.mean, np.square(belief.std)
        distance = shift @ self.precision @ shift + self.precision.diagonal() @ variance
        with np.errstate(divide="ignore"):
            volumes = np.linalg.slogdet(self.precision).logabsdet + np.log(variance).sum()
        return float(0.5 * (distance - volumes - len(shift)))

    def predict(self, x: Vector) -> tuple[float, float]:
        """Mean and std of the prediction at a row."""
        mean, whitened = self._solve(self._pull, x)
        return float(x @ mean), float(np.sqrt(x @ whitened))

    @property
    def _pull(self) -> Vector:
        return np.asarray(self.prior.mean / self.prior.std**2 + 2.0 * next_rate(self.schedule, self.count) * self.moment)

    def _solve(self, *sides: Vector) -> Vector:
        """precision⁻¹·side for each side, as rows, by Cholesky."""
        from scipy.linalg.lapack import dposv

        factor, solution, failure = dposv(self.precision, np.column_stack(sides))
        if failure or not (np.square(factor.diagonal()) > SINGULAR * self.precision.diagonal()).all():
            raise ValueError(
                f"after {self.count} events the precision is singular: features too large beside the prior; scale them down"
            )
        return np.ascontiguousarray(solution.T)

    def __repr__(self) -> str:
        return f"GaussianPosterior(count={self.count}, dim={len(self.moment)}, average_loss={self.average_loss:.6g})"


@dataclass(frozen=True)
class TemperedGaussian:
    """Exact exponential weights for the squared loss of a linear prediction, prior N(prior_mean, prior_std²).

    precision = 1/prior_std² + 2·rate·Σ x xᵀ; precision·mean = prior_mean/prior_std² + 2·rate·Σ y·x. There is no box. A
    decision costs one Cholesky factor, d³/3. With rate = 1/(2·noise²) it is Bayesian linear regression.

    >>> from onlinevi.ewa import TemperedGaussian
    >>> model = TemperedGaussian(rate=0.5)
    >>> state, step = model.update(model.init(1), [1.0], 3.0)
    >>> step.loss, state.mean.round(6).tolist(), state.covariance.round(6).tolist()
    (9.0, [1.5], [[0.5]])
    """

    rate: Rate | float = PerHorizon(1.0)
    prior_std: PerCoordinate = 1.0
    prior_mean: PerCoordinate = 0.0

    def __post_init__(self) -> None:
        tempering(self.rate)
        object.__setattr__(self, "prior_mean", frozen(self.prior_mean))
        object.__setattr__(self, "prior_std", frozen(self.prior_std))
        std = np.asarray(self.prior_std)
        if not ((std > 0.0) & np.isfinite(std)).all():
            raise ValueError(f"prior_std={self.prior_std!r}: must be > 0 and finite; try 1.0")

    def init(self, dim: int, horizon: int | None = None) -> GaussianPosterior:
        """The prior over ``dim`` weights; ``horizon`` is the number of events to come, where the rate needs it."""
        if dim < 1:
            raise ValueError(f"dim={dim}: needs at least one feature; for an intercept alone use a column of ones")
        for name, setting in (("prior_mean", self.prior_mean), ("prior_std", self.prior_std)):
            if np.shape(setting) not in ((), (dim,)):
                raise ValueError(f"{name} has {np.size(setting)} values, the data {dim} features: give one value, or one each")
        prior = Belief(np.full(dim, self.prior_mean), np.full(dim, self.prior_std))
        return GaussianPosterior(prior, np.zeros((dim, dim)), np.zeros(dim), schedule(self.rate, horizon))

    def update(self, state: GaussianPosterior, x: Any, y: float) -> tuple[GaussianPosterior, Step]:
        """Learn from one event. The state given is left as it is; the step says what was predicted before ``y`` was used."""
        row, label = np.asarray(x, dtype=float), float(y)
        if row.shape != state.moment.shape:
            raise ValueError(f"x has shape {row.shape}: needs {state.moment.shape}, one value a feature")
        with np.errstate(over="ignore", invalid="ignore"):
            gram, moment = state.gram + np.outer(row, row), state.moment + label * row
        if not (np.isfinite(row).all() and np.isfinite(label)):
            raise BadRow(0, f"features {row}, label {label}: needs finite numbers; drop the row, or fill it in")
        if not (np.isfinite(gram).all() and np.isfinite(moment).all() and np.isfinite(label * label)):
            raise BadRow(0, f"the step would overflow (label {label}): {Squared.overflow_hint}")
        prediction, spread = state.predict(row)
        cost = (label - prediction) ** 2
        after = GaussianPosterior(state.prior, gram, moment, state.schedule, state.count + 1, state.loss + cost)
        return after, Step(prediction, spread, cost)

    def update_many(self, state: GaussianPosterior, X: Any, y: Any) -> tuple[GaussianPosterior, Played[GaussianPosterior]]:
        """Learn from a block of rows, in order."""
        rows, labels, _ = as_events(X, y, hint=Squared.label_hint, filled=True)
        before, record = state, np.empty((rows.count, 3))
        for i, (row, label) in enumerate(zip(rows.block(0, rows.count), labels, strict=True)):
            try:
                state, record[i] = self.update(state, row, label)
            except BadRow as bad:
                raise BadRow(i, bad.reason) from None
        prediction, spread, loss = record.T.copy()
        return state, Played(state, prediction, spread, loss, averages(running(before.loss, loss), before.count))

    def run(self, X: Any, y: Any, *, horizon: int | None = None) -> Played[GaussianPosterior]:
        """One pass over a stream. ``horizon`` is the number of rows unless given."""
        rows = as_rows(X)
        if rows.count == 0:
            raise ValueError("the stream is empty: X has 0 rows, needs at least one")
        return self.update_many(self.init(rows.dim, horizon or rows.count), X, y)[1]
