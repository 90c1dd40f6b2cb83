"""Exponential weights over N experts: the paper's Algorithm 1 on a finite decision space (footnote 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from onlinevi.beliefs import frozen
from onlinevi.engine import Schedule, Vector, rate_at
from onlinevi.learners.pool.played import averages, running
from onlinevi.learners.pool.tempered import WEIGHTS, Weigh, fixed, next_rate, schedule, tempering
from onlinevi.rules import PerHorizon, Rate


class ExpertStep(NamedTuple):
    """The weights of one decision, and what it cost."""

    weights: Vector
    loss: float


@dataclass(frozen=True, eq=False)
class ExpertState:
    """Log-weights over the experts after ``count`` events, as a prior and the experts' total losses."""

    log_prior: Vector
    totals: Vector
    """Σ losses of each expert."""
    schedule: Schedule
    count: int = 0
    loss: float = 0.0
    """Σ weighted mean of the experts' losses."""
    weighing: Weigh = "exponential"
    price: float = 0.0
    """By χ²: Σ rate/4·(variance of the experts' losses under the prior)."""

    def __post_init__(self) -> None:
        fixed(self.log_prior)
        fixed(self.totals)

    @property
    def weights(self) -> Vector:
        """The weights of the next decision: a probability vector."""
        return WEIGHTS[self.weighing](self.log_prior, self.totals, next_rate(self.schedule, self.count))

    def regret_bound(self, expert: int) -> float:
        """Weighed by χ², what Σ weighted losses cannot exceed this expert's total by, whatever the losses."""
        if self.weighing != "chi-square":
            raise ValueError("exponential weights need the range of losses for a bound: see bounds.ewa")
        return chi_square_price(self.log_prior[expert], self.schedule, self.count) + self.price

    @property
    def average_loss(self) -> float:
        return self.loss / self.count if self.count else float("nan")

    def __repr__(self) -> str:
        return f"ExpertState(count={self.count}, experts={len(self.totals)}, average_loss={self.average_loss:.6g})"


@dataclass(frozen=True, eq=False)
class Weighing:
    """The events of one pass, and the state after it."""

    state: ExpertState
    weights: Vector
    """A row an event: the weights before its losses were seen."""
    loss: Vector
    """The weighted mean of the experts' losses."""
    average_loss: Vector
    """The average of it since the start of the stream."""


@dataclass(frozen=True)
class Experts:
    """weight_i ∝ prior_i·exp(−rate·Σ losses of i), O(N) a step; ``prior=None`` is uniform.

    For losses in [0, B]: Σ weighted losses ≤ Σ losses of expert i + rate·B²·T/8 + ln(1/prior_i)/rate, for every i. With
    ``weighing="chi-square"`` weight_i = prior_i·[level − rate/2·Σ losses of i]₊, and no range enters: the first is at most the
    second + (1/prior_i − 1)/rate + rate/4·Σ_t (variance of the losses under the prior), at rates that do not grow.

    >>> from onlinevi.ewa import Experts
    >>> hedge = Experts(rate=0.5)
    >>> state, step = hedge.update(hedge.init(2), [0.0, 1.0])
    >>> step.loss, state.weights.round(3).tolist()
    (0.5, [0.622, 0.378])
    """

    rate: Rate | float = PerHorizon(1.0)
    prior: Sequence[float] | None = None
    weighing: Weigh = "exponential"

    def __post_init__(self) -> None:
        tempering(self.rate)
        if self.weighing not in WEIGHTS:
            raise ValueError(f"weighing={self.weighing!r}: needs one of {', '.join(map(repr, WEIGHTS))}")
        if self.prior is not None:
            prior = np.asarray(self.prior, dtype=float)
            if prior.ndim != 1 or not (np.isfinite(prior) & (prior >= 0.0)).all() or not prior.sum() > 0.0:
                raise ValueError(f"prior={self.prior!r}: needs one weight ≥ 0 an expert, not all 0; None is uniform")
            object.__setattr__(self, "prior", frozen(prior.tolist()))

    def init(self, count: int, horizon: int | None = None) -> ExpertState:
        """The state before the first event; ``count`` experts, ``horizon`` events to come where the rate needs it."""
        if count < 1:
            raise ValueError(f"count={count}: needs at least one expert")
        if self.prior is not None and len(self.prior) != count:
            raise ValueError(f"prior has {len(self.prior)} weights for {count} experts: give one each, or None")
        prior = np.ones(count) if self.prior is None else np.asarray(self.prior)
        with np.errstate(divide="ignore"):  # an expert of weight 0 stays out
            log_prior = np.log(prior / prior.sum())
        return ExpertState(log_prior, np.zeros(count), schedule(self.rate, horizon), weighing=self.weighing)

    def update(self, state: ExpertState, losses: Any) -> tuple[ExpertState, ExpertStep]:
        """Learn from one event: a loss for each expert. The state given is left as it is."""
        row = np.asarray(losses, dtype=float)
        if row.ndim != 1:
            raise ValueError(f"losses have shape {row.shape}: needs ({len(state.totals)},), one an expert")
        state, weighing = self.update_many(state, row[None, :])
        return state, ExpertStep(weighing.weights[0], float(weighing.loss[0]))

    def update_many(self, state: ExpertState, losses: Any) -> tuple[ExpertState, Weighing]:
        """Learn from a block of events, a row each; the same bits as one event at a time."""
        table = np.ascontiguousarray(losses, dtype=float)
        if table.ndim != 2 or table.shape[1] != len(state.totals):
            raise ValueError(f"losses have shape {table.shape}: needs (events, {len(state.totals)}), a column an expert")
        with np.errstate(over="ignore", invalid="ignore"):
            totals = np.cumsum(np.concatenate([state.totals[None, :], table]), axis=0)
        if not np.isfinite(totals[-1]).all():  # what is not finite stays so in a sum
            bad = np.argwhere(~np.isfinite(totals[1:]))[0]
            raise ValueError(
                f"event {bad[0]}, expert {bad[1]}: loss {table[tuple(bad)]}: needs losses whose sum is finite; "
                "drop the event, or clip the losses"
            )
        times = state.count + np.arange(1.0, len(table) + 1.0)
        rates = rate_at(state.schedule.scale, state.schedule.power, times[:, None])
        weights = WEIGHTS[state.weighing](state.log_prior, totals[:-1], rates)
        paid = (weights * table).sum(axis=1)
        sums = running(state.loss, paid)
        price = state.price
        if state.weighing == "chi-square":
            price = float(running(price, 0.25 * rates[:, 0] * _variances(state.log_prior, table))[-1]) if len(table) else price
        after = replace(state, totals=totals[-1].copy(), count=state.count + len(table), loss=float(sums[-1]), price=price)
        return after, Weighing(after, weights, paid, averages(sums, state.count))

    def run(self, losses: Any, *, horizon: int | None = None) -> Weighing:
        """One pass over a table of losses, events × experts. ``horizon`` is the number of events unless given."""
        table = np.asarray(losses, dtype=float)
        if table.ndim != 2 or 0 in table.shape:
            raise ValueError(f"losses have shape {table.shape}: needs (events, experts), at least one of each")
        return self.update_many(self.init(table.shape[1], horizon or len(table)), table)[1]


def chi_square_price(log_prior: float, plan: Schedule, count: int) -> float:
    """χ²(one expert‖prior) divided by the rate of the last of ``count`` decisions: (1/prior − 1)/rate."""
    return math.expm1(-log_prior) / next_rate(plan, count - 1) if count else 0.0


def _variances(log_prior: Vector, losses: Vector) -> Vector:
    """Of the losses of each event, under the prior."""
    prior = np.exp(log_prior)
    with np.errstate(over="ignore"):  # then the bound is infinite
        return np.asarray(np.square(losses - (losses @ prior)[:, None]) @ prior)
