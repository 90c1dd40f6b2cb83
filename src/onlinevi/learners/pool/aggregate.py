"""Learners as experts: weigh them by what they have cost so far, and pool their predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from onlinevi.data import as_labels, as_rows, as_weights
from onlinevi.engine import Step, Vector
from onlinevi.learners.linear import BadRow, Linear
from onlinevi.learners.pool import mixing
from onlinevi.learners.pool.crew import crew
from onlinevi.learners.pool.experts import Experts
from onlinevi.learners.pool.mixer import AggregateState, Mixer
from onlinevi.learners.pool.played import Played, averages, running
from onlinevi.losses import Absolute, Logistic, Loss, Pinball
from onlinevi.rules import Constant, PerHorizon, Rate

Pool: TypeAlias = Literal["prediction", "probability", "quantile"]

BLOCK_VALUES = 1 << 16
"""How many values of rows a block holds: few enough to stay in cache while every learner passes over them."""


@dataclass(frozen=True)
class AdaHedge:
    """The rate ln N / Σ gaps, where a gap is what weighing cost beyond the rate's own price: no range of losses, no horizon.

    At any time the aggregate has lost at most twice the sum of gaps more than the best learner.
    """


@dataclass(frozen=True, eq=False)
class Aggregated(Played[AggregateState]):
    """The events of one pass, and the state after it; ``spread`` is the std of the mixture of the learners' predictions."""

    weights: Vector
    """A row an event: the weights of the learners before its label was seen."""


@dataclass(frozen=True)
class Aggregate:
    """Exponential weights over learners that all run in one pass.

    ``rate`` tempers the weights as in ``Experts``, or is ``AdaHedge()``. ``share`` deals out that part of all weight anew
    after each event, so that the best learner may change; it needs a constant rate. ``pool="prediction"`` predicts the
    weighted mean; ``"probability"``, for the logistic loss, the weighted mean of the learners' probabilities, which at rate
    1 is Bayes' rule: then no range of losses enters, and the loss exceeds the best learner's by at most ln N.
    ``"quantile"``, for the pinball and absolute losses, first shifts each prediction by the quantile of its learner's
    residuals, so that learners of the squared loss, which need no scale of the labels, can predict quantiles.

    For a convex loss in [0, B] at rate η: at most η·B²·T/8 + ln N/η. ``loss=None`` takes the one the learners share. It is
    the loss of a prediction: a ridge is the learners' own affair.

    >>> import onlinevi as ovi
    >>> from onlinevi.ewa import Aggregate
    >>> learners = [ovi.Linear(ovi.Absolute(), ovi.SVA(rate)) for rate in (1e-6, 0.5)]
    >>> played = Aggregate(learners, rate=0.1).run([[1.0]] * 200, [3.0] * 200)
    >>> played.state.weights.round(3).tolist()
    [0.0, 1.0]
    """

    learners: Sequence[Linear]
    rate: Rate | float | AdaHedge = PerHorizon(1.0)
    loss: Loss | None = None
    prior: Sequence[float] | None = None
    share: float = 0.0
    pool: Pool = "prediction"

    def __post_init__(self) -> None:
        object.__setattr__(self, "learners", tuple(self.learners))
        if not self.learners or not all(isinstance(learner, Linear) for learner in self.learners):
            raise TypeError(f"learners={self.learners!r}: needs one learner or more, such as Linear(loss, rule)")
        if any(learner.dtype != "float64" for learner in self.learners):
            raise ValueError("some learner has dtype='float32', an aggregate needs double precision: leave dtype out")
        if not isinstance(self.loss, Loss | None):
            hint = f"; write {self.loss.__name__}()" if isinstance(self.loss, type) else ""
            raise TypeError(f"loss={self.loss!r}: needs a loss object, or None{hint}")
        if self.loss is None:
            losses = {learner.loss for learner in self.learners}
            if len({(type(loss), loss.parameters) for loss in losses}) > 1:
                raise ValueError(f"the learners have different losses, {losses}: say which one to weigh them by, loss=…")
            object.__setattr__(self, "loss", self.learners[0].loss)
        if not self.shared_loss.convex:
            raise ValueError(f"{self.loss} is not convex: the mean of predictions may cost more than all of them")
        self._check_weighing()

    def _check_weighing(self) -> None:
        if isinstance(self.rate, AdaHedge):
            if self.prior is not None:
                raise ValueError("AdaHedge weighs all learners alike at the start: leave prior out, or give a rate")
        else:
            experts = Experts(self.rate, self.prior)
            object.__setattr__(self, "prior", experts.prior)
            _ = experts.init(len(self.learners), horizon=1)  # refuse a bad setting now, not at the first event
            if experts.prior is not None and min(experts.prior) == 0.0:
                raise ValueError(f"prior={self.prior!r}: a learner of weight 0 would run and never count; leave it out")
        if not 0.0 <= self.share < 1.0:
            raise ValueError(f"share={self.share!r}: needs 0 ≤ share < 1; try 0.001")
        if self.share > 0.0 and not isinstance(self.rate, float | int | Constant):
            raise ValueError(f"share={self.share} needs a constant rate, not {self.rate}: try rate=1.0")
        if self.pool not in ("prediction", "probability", "quantile"):
            raise ValueError(f'pool={self.pool!r}: needs "prediction", "probability" or "quantile"')
        if self.pool == "quantile" and (self.share > 0.0 or not isinstance(self.shared_loss, Pinball | Absolute)):
            raise ValueError(f"{self.shared_loss}, share={self.share}: quantiles need loss=Pinball(…) or Absolute(), no share")
        if self.pool == "probability" and not isinstance(self.shared_loss, Logistic):
            raise ValueError(f"{self.shared_loss} gives no probabilities to pool: use Logistic(), or pool='prediction'")

    @property
    def shared_loss(self) -> Loss:
        assert self.loss is not None
        return self.loss

    def init(self, dim: int, horizon: int | None = None) -> AggregateState:
        """Every learner's prior, and the prior weights; ``horizon`` is the number of events to come, where a rate needs it."""
        mixer = _mixer(self, dim, horizon)
        return AggregateState(tuple(plan.start() for plan in mixer.plans), mixer.start(), mixer)

    def predict(self, state: AggregateState, x: Any) -> tuple[Any, Any]:
        """The pooled prediction at a row, or at each row of a matrix, and the std of the mixture. Changes nothing."""
        pooled = state.plan.pooled(state, x)
        spread = np.sqrt(pooled.within + pooled.between)
        return (float(pooled.decision), float(spread)) if spread.ndim == 0 else (pooled.decision, spread)

    def widen(self, state: AggregateState, dim: int) -> AggregateState:
        """The state for rows with further columns at the end, ``dim`` in all: as if these had been 0 so far."""
        pairs = zip(self.learners, state.learners, strict=True)
        return replace(state.widened(dim), learners=tuple(learner.widen(own, dim) for learner, own in pairs))

    def update(self, state: AggregateState, x: Any, y: float, weight: float = 1.0) -> tuple[AggregateState, Step]:
        """Learn from one event. The state given is left as it is; the step says what was predicted before ``y`` was used."""
        row = np.asarray(x, dtype=float)
        if row.shape != (state.dim,):
            raise ValueError(f"x has shape {row.shape}: needs ({state.dim},), one value a feature")
        after, played = self.update_many(state, row[np.newaxis], [y], weights=None if weight == 1.0 else [weight])
        if after.count == state.count:
            return state, Step(*self.predict(state, row), 0.0)
        return after, Step(float(played.prediction[0]), float(played.spread[0]), float(played.loss[0]))

    def update_many(
        self, state: AggregateState, X: Any, y: Any, *, weights: Any = None, threads: int = 1
    ) -> tuple[AggregateState, Aggregated]:
        """Learn from a block of rows, in order; the same bits as one event at a time, in however many threads."""
        self._check(state)
        rows, labels = as_rows(X, filled=state.plan.fills_rows), as_labels(y, self.shared_loss.label_hint)
        if rows.dim != state.dim:
            raise ValueError(f"X has {rows.dim} features, the state {state.dim}: every block needs the same columns")
        if len(labels) != rows.count:
            raise ValueError(f"X has {rows.count} rows, y {len(labels)} labels: needs one label a row")
        importance = as_weights(weights, rows.count)
        start, played, shown = state, [np.empty((0, mixing.PLAYED))], np.empty((rows.count, len(self.learners)))
        size = max(1, BLOCK_VALUES // max(1, int(rows.values_a_row)))
        try:
            with crew(threads) as hands:
                for first in range(0, rows.count, size):
                    block, room = (first, min(first + size, rows.count)), shown[state.count - start.count :]
                    state, events, refused = state.plan.play(state, rows, labels, importance, *block, shown=room, crew=hands)
                    played.append(events)
                    if refused is not None:
                        raise BadRow(refused.row, refused.why)
        except (BadRow, KeyboardInterrupt) as stopped:
            stopped.trace = _aggregated(start, state, played, shown)  # type: ignore[union-attr]
            raise
        return state, _aggregated(start, state, played, shown)

    def _check(self, state: AggregateState) -> None:
        plan = state.plan
        if plan is not (own := _mixer(self, state.dim, plan.members.plans[0].horizon)) and plan != own:
            raise ValueError("this state belongs to another aggregate: its learners, loss, rate, prior, share or pool differs")

    def run(self, X: Any, y: Any, *, weights: Any = None, horizon: int | None = None, threads: int = 1) -> Aggregated:
        """One pass over a stream. ``horizon`` is the number of rows unless given; ``threads`` share the learners."""
        rows = as_rows(X)
        if rows.count == 0:
            raise ValueError("the stream is empty: X has 0 rows, needs at least one")
        return self.update_many(self.init(rows.dim, horizon or rows.count), X, y, weights=weights, threads=threads)[1]


def _aggregated(start: AggregateState, state: AggregateState, played: list[Vector], shown: Vector) -> Aggregated:
    prediction, spread, loss = np.concatenate(played)[:, :3].T.copy()
    sums = running(start.loss, loss)
    return Aggregated(state, prediction, spread, loss, averages(sums, start.count), shown[: len(loss)])


@lru_cache(maxsize=64)
def _mixer(aggregate: Aggregate, dim: int, horizon: int | None) -> Mixer:
    adaptive, loss = isinstance(aggregate.rate, AdaHedge), aggregate.shared_loss
    experts = Experts(aggregate.rate if not isinstance(aggregate.rate, AdaHedge) else 1.0, aggregate.prior)
    begin, level = experts.init(len(aggregate.learners), horizon), 0.0
    if aggregate.pool == "quantile":
        level = loss.quantile if isinstance(loss, Pinball) else 0.5
    plans = tuple(learner.plan(dim, horizon) for learner in aggregate.learners)
    # What a learner paid by itself is what its prediction costs here, unless it is another loss or has a ridge in it.
    paid = {(type(plan.loss), plan.parameters, plan.loss.ridge) for plan in plans}
    known = aggregate.pool == "prediction" and paid == {(type(loss), loss.parameters, 0.0)}
    settings = np.array([*begin.schedule, float(adaptive), aggregate.share, level, float(known)])
    # A copy may be written to, as one that was pickled may: one type of argument, one loop to compile.
    return Mixer(plans, loss, begin.log_prior.copy(), settings, aggregate.pool == "probability")
