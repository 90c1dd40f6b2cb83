"""The tempered posterior of any prior, any loss and any number of weights, by weighted particles.

Particles are drawn from the prior and weighed by e^(−rate·Σ losses). Where the weights crowd on few of them, the particles are
drawn anew by their weights and moved by Metropolis steps that leave the posterior as it is (Chopin, 2002; Del Moral, Doucet
and Jasra, 2006). An event that would leave too few of them at once is taken in parts: it is annealed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from onlinevi.data import as_events, as_rows
from onlinevi.engine import Step, Vector
from onlinevi.learners import BadRow, Played, averages, fixed, next_rate, normalised, running, schedule, tempering
from onlinevi.losses import Loss, as_loss
from onlinevi.rules import PerHorizon, Rate

HALVINGS = 40
SMALLEST_PART = 1e-9
"""Of an event, at a time: a loss so steep that less of it leaves one particle is refused."""
EDGE = 1e-10
"""What is added to the particles' own covariance, as a share of its trace, so that it can be factored."""


@dataclass(frozen=True, eq=False)
class ParticlePosterior:
    """Weighted particles after ``count`` events, and the rows: moving particles needs all of the past."""

    points: Vector
    """A row each."""
    log_weights: Vector
    """Since they were last drawn anew; not normalised."""
    totals: Vector
    """Σ losses of each."""
    rows: Vector
    labels: Vector
    rate: float
    drawn_anew: int = 0
    """How often particles were drawn anew and moved."""
    accepted: float = math.nan
    """The share of the last moves that were accepted."""
    log_evidence: float = 0.0
    """An estimate of log ∫ prior·exp(−rate·Σ losses), whose exponential is without bias."""
    loss: float = 0.0
    """Σ loss at the decisions."""

    def __post_init__(self) -> None:
        for array in (self.points, self.log_weights, self.totals, self.rows, self.labels):
            fixed(array)

    @property
    def count(self) -> int:
        return len(self.labels)

    @property
    def dim(self) -> int:
        return int(self.points.shape[1])

    @cached_property
    def weights(self) -> Vector:
        """A probability vector over the particles."""
        return fixed(normalised(self.log_weights))

    @property
    def effective(self) -> float:
        """The effective sample size, 1/Σ weights²: as many equal draws are worth as much."""
        return float(1.0 / np.square(self.weights).sum())

    @cached_property
    def mean(self) -> Vector:
        """The decision: the posterior mean."""
        return fixed(self.weights @ self.points)

    @cached_property
    def covariance(self) -> Vector:
        off = self.points - self.mean
        return fixed((self.weights[:, None] * off).T @ off)

    @property
    def std(self) -> Vector:
        """The std of each weight."""
        return np.sqrt(self.covariance.diagonal())

    @property
    def average_loss(self) -> float:
        return self.loss / self.count if self.count else float("nan")

    def __repr__(self) -> str:
        return (
            f"ParticlePosterior(count={self.count}, dim={self.dim}, effective={self.effective:.0f} of {len(self.points)}, "
            f"drawn_anew={self.drawn_anew}, average_loss={self.average_loss:.6g})"
        )


class _Cloud(NamedTuple):
    """Particles on the way through an event."""

    points: Vector
    log_weights: Vector
    totals: Vector
    current: Vector
    """Each one's loss at this event."""


@dataclass(frozen=True)
class Particles:
    """Exponential weights (algorithm 1, posterior (2)) for any prior and dimension, up to the error of ``particles`` draws.

    ``prior`` is a frozen law of ``scipy.stats``: of one coordinate, then all have it independently, or of a vector; any object
    with its ``rvs`` and ``logpdf`` serves. Particles are drawn anew where fewer than ``least`` of them would count, and then
    moved ``moves`` times. The same seed gives the same bits, however a stream is cut into blocks. The rate may not change.

    >>> from scipy import stats
    >>> import onlinevi as ovi
    >>> from onlinevi.ewa import Particles
    >>> cloud = Particles(ovi.Absolute(), rate=1.0, prior=stats.laplace(), particles=2000)
    >>> state = cloud.run([[1.0]] * 30, [0.5] * 30).state
    >>> bool(abs(state.mean[0] - 0.5) < 0.02), state.effective > 900.0
    (True, True)
    """

    loss: Loss
    rate: Rate | float = PerHorizon(1.0)
    prior: Any = None
    particles: int = 1000
    least: float = 0.5
    moves: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        as_loss(self.loss)
        if self.loss.robust is not None:
            raise ValueError(f"{self.loss}: the exact posterior counts every event as it is; set robust=None")
        if tempering(self.rate).varies:
            raise ValueError(f"{self.rate}: particles keep one rate; try Constant(1.0) or PerHorizon(1.0)")
        if self.prior is None:
            from scipy import stats

            object.__setattr__(self, "prior", stats.norm())
        if not (hasattr(self.prior, "rvs") and hasattr(self.prior, "logpdf")):
            raise TypeError(f"prior={self.prior!r}: needs rvs and logpdf, such as scipy.stats.uniform(-1, 2)")
        if self.particles < 2 or self.moves < 1 or not 0.0 < self.least < 1.0:
            raise ValueError(
                f"particles={self.particles}, moves={self.moves}, least={self.least}: needs 2 or more, 1 or more, and a share "
                "between 0 and 1"
            )

    def init(self, dim: int, horizon: int | None = None) -> ParticlePosterior:
        """Draws from the prior; ``horizon`` is the number of events to come, where the rate needs it."""
        if dim < 1:
            raise ValueError(f"dim={dim}: needs at least one feature; for an intercept alone use a column of ones")
        size = (self.particles, dim) if self._by_coordinate else self.particles
        points = np.array(self.prior.rvs(size=size, random_state=np.random.default_rng(self.seed)), dtype=float)
        points = points.reshape(self.particles, -1)
        if points.shape[1] != dim:
            raise ValueError(f"the prior has {points.shape[1]} coordinates, the data {dim} features: give one law for each")
        nothing = np.zeros(self.particles)
        rate = next_rate(schedule(self.rate, horizon), 0)
        return ParticlePosterior(points, nothing, nothing.copy(), np.empty((0, dim)), np.empty(0), rate)

    def predict(self, state: ParticlePosterior, x: Any) -> tuple[float, float]:
        """Mean and std of the prediction at a row. Changes nothing."""
        with np.errstate(over="ignore", invalid="ignore"):  # a row too large is refused by what it costs
            said = state.points @ np.asarray(x, dtype=float)
            mean = float(state.weights @ said)
            return mean, math.sqrt(float(state.weights @ np.square(said - mean)))

    def update(self, state: ParticlePosterior, x: Any, y: float) -> tuple[ParticlePosterior, Step]:
        """Learn from one event. The state given is left as it is; the step says what was predicted before ``y`` was used."""
        state, played = self.update_many(state, np.asarray(x, dtype=float)[None, :], [y])
        return state, Step(float(played.prediction[0]), float(played.spread[0]), float(played.loss[0]))

    def update_many(self, state: ParticlePosterior, X: Any, y: Any) -> tuple[ParticlePosterior, Played[ParticlePosterior]]:
        """Learn from a block of rows, in order; the same bits as one event at a time."""
        rows, labels, _ = as_events(X, y, hint=self.loss.label_hint, dim=state.dim, filled=True)
        matrix, before, record = np.asarray(rows.block(0, rows.count), dtype=float), state, np.empty((rows.count, 3))
        past, seen = np.concatenate([state.rows, matrix]), np.concatenate([state.labels, labels])
        for i in range(rows.count):
            self._check(i, matrix[i], labels[i])
            said = self.predict(state, matrix[i])
            cost = float(self._losses(state.mean[None, :], matrix[i : i + 1], labels[i : i + 1])[0])
            record[i] = *said, cost
            behind = state.count + 1
            state = self._weighed(replace(state, rows=past[:behind], labels=seen[:behind], loss=state.loss + cost), i)
        prediction, spread, loss = record.T.copy()
        return state, Played(state, prediction, spread, loss, averages(running(before.loss, loss), before.count))

    def run(self, X: Any, y: Any, *, horizon: int | None = None) -> Played[ParticlePosterior]:
        """One pass over a stream. ``horizon`` is the number of rows unless given."""
        rows = as_rows(X)
        if rows.count == 0:
            raise ValueError("the stream is empty: X has 0 rows, needs at least one")
        return self.update_many(self.init(rows.dim, horizon or rows.count), X, y)[1]

    @property
    def _by_coordinate(self) -> bool:
        """Whether the prior is the law of one coordinate: a law of a vector has no quantiles."""
        return hasattr(self.prior, "ppf")

    def _log_prior(self, points: Vector) -> Vector:
        density = np.asarray(self.prior.logpdf(points), dtype=float)
        return density.sum(axis=1) if self._by_coordinate else density.reshape(len(points))

    def _losses(self, points: Vector, rows: Vector, labels: Vector) -> Vector:
        """Σ losses of each point over rows, ridge included."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = np.asarray(self.loss(labels, points @ rows.T).value).sum(axis=1)
        return np.asarray(found + 0.5 * self.loss.ridge * len(labels) * np.square(points).sum(axis=1))

    def _weighed(self, state: ParticlePosterior, row: int) -> ParticlePosterior:
        """The posterior with its last row taken into the weights, in as many parts as leave enough particles."""
        current = self._losses(state.points, state.rows[-1:], state.labels[-1:])
        cloud = _Cloud(state.points, state.log_weights, state.totals, current)
        done, evidence, times, accepted = 0.0, state.log_evidence, state.drawn_anew, state.accepted
        draws = self._draws(state.count)
        while True:
            part = self._part(cloud, state.rate, 1.0 - done)
            log_weights = cloud.log_weights - state.rate * part * cloud.current
            if not part >= min(SMALLEST_PART, 1.0 - done) or not np.isfinite(log_weights.max()):
                raise BadRow(row, f"the loss leaves less than one particle, or overflows: {self.loss.overflow_hint}")
            evidence += float(np.logaddexp.reduce(log_weights) - np.logaddexp.reduce(cloud.log_weights))
            cloud, done = cloud._replace(log_weights=log_weights), done + part
            if done >= 1.0 and _effective(log_weights) >= self.least * self.particles:
                break
            cloud, accepted = self._moved(cloud, state, done, next(draws))
            times += 1
            if done >= 1.0:
                break
        totals = cloud.totals + cloud.current
        return replace(
            state,
            points=cloud.points,
            log_weights=cloud.log_weights,
            totals=totals,
            drawn_anew=times,
            accepted=accepted,
            log_evidence=evidence,
        )

    def _part(self, cloud: _Cloud, rate: float, left: float) -> float:
        """The most of what is left of an event that leaves a share ``least`` of the particles, less a tenth, effective."""
        enough = 0.9 * self.least * self.particles

        def leaves(part: float) -> bool:
            return _effective(cloud.log_weights - rate * part * cloud.current) >= enough

        if leaves(left):
            return left
        low, high = 0.0, left
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if leaves(middle) else (low, middle)
        return low

    def _moved(self, cloud: _Cloud, state: ParticlePosterior, done: float, draw: np.random.Generator) -> tuple[_Cloud, float]:
        """Particles drawn anew by their weights, then moved under prior·exp(−rate·(Σ losses before + done·this one))."""
        weights = normalised(cloud.log_weights)
        off = cloud.points - weights @ cloud.points
        covariance = (weights[:, None] * off).T @ off
        dim, size = state.dim, float(np.trace(covariance))
        factor = np.linalg.cholesky(covariance + EDGE * max(size, np.finfo(float).tiny) * np.eye(dim)) * 2.38 / math.sqrt(dim)
        # Systematic: one uniform number, and steps of 1/N along the running sum of the weights.
        places = np.minimum(
            np.searchsorted(np.cumsum(weights), (draw.random() + np.arange(len(weights))) / len(weights)), len(weights) - 1
        )
        points, totals, current = cloud.points[places], cloud.totals[places], cloud.current[places]
        density, taken = self._log_prior(points) - state.rate * (totals + done * current), 0
        for _ in range(self.moves):
            proposed = points + draw.standard_normal(points.shape) @ factor.T
            prior = self._log_prior(proposed)
            sums = self._losses(proposed, state.rows[:-1], state.labels[:-1])
            last = self._losses(proposed, state.rows[-1:], state.labels[-1:])
            with np.errstate(invalid="ignore"):
                target = prior - state.rate * (sums + done * last)
                better = np.log(draw.random(len(points))) < target - density
            better &= np.isfinite(target)
            taken += int(better.sum())
            points = np.where(better[:, None], proposed, points)
            totals, current = np.where(better, sums, totals), np.where(better, last, current)
            density = np.where(better, target, density)
        moved = _Cloud(points, np.zeros(len(points)), totals, current)
        return moved, taken / (self.moves * len(points))

    def _draws(self, count: int) -> Iterator[np.random.Generator]:
        """Random numbers for each time that particles are drawn anew at an event: of the seed and the event alone."""
        stage = 0
        while True:
            yield np.random.default_rng([self.seed, count, stage])
            stage += 1

    def _check(self, row: int, x: Vector, label: float) -> None:
        if not np.isfinite(x).all():
            raise BadRow(row, f"features {x}: needs finite numbers; drop the row, or fill it in")
        if not self.loss.valid_label(np.float64(label), *self.loss.parameters):
            raise BadRow(row, self.loss.refuse_label(float(label)))


def _effective(log_weights: Vector) -> float:
    with np.errstate(invalid="ignore"):
        weights = normalised(log_weights)
    return float(1.0 / np.square(weights).sum()) if np.isfinite(weights).all() else 0.0
