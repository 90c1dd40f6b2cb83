"""Learners as experts: weigh them by what they have cost so far, and pool their predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from onlinevi.data import as_events, as_rows
from onlinevi.engine import Vector
from onlinevi.learners.base import BadRow, Learner
from onlinevi.learners.described import (
    FOREIGN,
    CheckpointError,
    Described,
    Stored,
    check_finite,
    numbers_of,
    put_numbers,
    sizes_of,
    whole,
)
from onlinevi.learners.linear import Linear, forecast_of
from onlinevi.learners.live import Live
from onlinevi.learners.pool import mixing
from onlinevi.learners.pool.experts import Experts
from onlinevi.learners.pool.live import PoolLive
from onlinevi.learners.pool.mixer import Mixer, PoolState
from onlinevi.learners.pool.tempered import Weigh, normalised
from onlinevi.learners.pool.threads import running_threads
from onlinevi.learners.trace import Events, Forecast, Record, Recorder, Trace
from onlinevi.losses import Loss
from onlinevi.rules import Constant, PerHorizon, Rate

Pooling: TypeAlias = Literal["prediction", "probability", "quantile"]

SUMS = {"count": mixing.COUNT, "loss": mixing.LOSS, "gaps": mixing.GAP}
"""What a file calls the sums at the head of a state."""

BLOCK_VALUES = 1 << 16
"""How many values of rows a block holds: few enough to stay in cache while every learner passes over them."""


@dataclass(frozen=True)
class AdaHedge:
    """The rate ln N / Σ gaps, where a gap is what weighing cost beyond the rate's own price: no range of losses, no horizon.

    At any time the pool has lost at most twice the sum of gaps more than the best learner.
    """


@dataclass(frozen=True)
class Pool(Learner[PoolState]):
    """Exponential weights over learners that all run in one pass: leaves, and learners around others, such as ``Expand``.

    ``rate`` tempers the weights as in ``Experts``, or is ``AdaHedge()``. ``share`` deals out that part of all weight anew
    after each event, so that the best learner may change; it needs a constant rate. ``pool="prediction"`` predicts the
    weighted mean; ``"probability"``, for the logistic loss, the weighted mean of the learners' probabilities, which at rate
    1 is Bayes' rule: then no range of losses enters, and the loss exceeds the best learner's by at most ln N.
    ``"quantile"``, for the pinball and absolute losses, first shifts each prediction by the quantile of its learner's
    residuals, so that learners of the squared loss, which need no scale of the labels, can predict quantiles.

    For a convex loss in [0, B] at rate η: at most η·B²·T/8 + ln N/η. ``weighing="chi-square"`` is for losses without a bound:
    at most (1/prior − 1)/η + η/4·Σ (variance of the learners' losses under the prior), as ``state.regret_bound`` tells.
    ``loss=None`` takes the one the learners share. It is
    the loss of a prediction: a ridge is the learners' own affair. Leaves that differ in settings only run in one loop.

    >>> import onlinevi as ovi
    >>> from onlinevi.ewa import Pool
    >>> learners = [ovi.Linear(ovi.Absolute(), ovi.SVA(rate)) for rate in (1e-6, 0.5)]
    >>> played = Pool(learners, rate=0.1).run([[1.0]] * 200, [3.0] * 200)
    >>> played.state.weights.round(3).tolist()
    [0.0, 1.0]
    """

    learners: Sequence[Learner[Any]]
    rate: Rate | float | AdaHedge = PerHorizon(1.0)
    loss: Loss | None = None  # type: ignore[assignment]
    prior: Sequence[float] | None = None
    share: float = 0.0
    pool: Pooling = "prediction"
    weighing: Weigh = "exponential"

    def __post_init__(self) -> None:
        object.__setattr__(self, "learners", tuple(self.learners))
        if not self.learners or not all(isinstance(learner, Learner) for learner in self.learners):
            raise TypeError(f"learners={self.learners!r}: needs one learner or more, such as Linear(loss, rule)")
        if any(learner.several for learner in self.learners):
            raise ValueError("a pool weighs predictions that are one number: put OneVsRest around it, or use ClassPool")
        if any(learner.dtype != "float64" for learner in self.learners if isinstance(learner, Linear)):
            raise ValueError("some learner has dtype='float32', a pool needs double precision: leave dtype out")
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
            if self.weighing != "exponential":
                raise ValueError("AdaHedge weighs exponentially: give weighing='chi-square' a rate, such as PerSqrt(1.0)")
            if self.prior is not None:
                raise ValueError("AdaHedge weighs all learners alike at the start: leave prior out, or give a rate")
        else:
            experts = Experts(self.rate, self.prior, self.weighing)
            object.__setattr__(self, "prior", experts.prior)
            _ = experts.init(len(self.learners), horizon=1)  # refuse a bad setting now, not at the first event
            if experts.prior is not None and min(experts.prior) == 0.0:
                raise ValueError(f"prior={self.prior!r}: a learner of weight 0 would run and never count; leave it out")
        if not 0.0 <= self.share < 1.0:
            raise ValueError(f"share={self.share!r}: needs 0 ≤ share < 1; try 0.001")
        if self.share > 0.0 and self.weighing != "exponential":
            raise ValueError(f"share={self.share} deals out exponential weights: leave it out, or weighing")
        if self.share > 0.0 and not isinstance(self.rate, float | int | Constant):
            raise ValueError(f"share={self.share} needs a constant rate, not {self.rate}: try rate=1.0")
        if self.pool not in ("prediction", "probability", "quantile"):
            raise ValueError(f'pool={self.pool!r}: needs "prediction", "probability" or "quantile"')
        if self.pool == "quantile" and (self.share > 0.0 or self.shared_loss.level is None):
            raise ValueError(f"{self.shared_loss}, share={self.share}: quantiles need loss=Pinball(…) or Absolute(), no share")
        if self.pool == "probability" and self.shared_loss.odds is None:
            raise ValueError(f"{self.shared_loss} gives no probabilities to pool: use Logistic(), or pool='prediction'")

    @property
    def shared_loss(self) -> Loss:
        assert self.loss is not None
        return self.loss

    @property
    def pooled(self) -> bool:
        return True

    @property
    def settled(self) -> bool:
        """Whether a prediction is the score of a probability, in which its spread is already."""
        return self.pool == "probability"

    def as_widened(self, state: PoolState) -> Pool:
        return replace(self, learners=state.plan.learners)

    def init(self, dim: int, horizon: int | None = None, *, sparse: bool = False) -> PoolState:
        """Every learner's prior, and the prior weights; ``horizon`` is the number of events to come, where a rate needs it."""
        mixer = _mixer(self, dim, horizon)
        pairs = zip(self.learners, mixer.plans, strict=True)
        states = tuple(one.init(dim, horizon, sparse=sparse) if plan is None else plan.start() for one, plan in pairs)
        return PoolState(states, mixer.start(), mixer)

    def play(self, state: PoolState, X: Any, y: Vector, weights: Vector) -> tuple[PoolState, Events]:
        rows = as_rows(X, filled=state.plan.fills_rows)
        after, played, refused = state.plan.play(state, rows, y, weights, 0, len(y))
        if refused is not None:
            raise BadRow(refused.row, refused.why)
        return after, Events(*played.T)

    def foresee(self, state: PoolState, X: Any) -> Events:
        if type(X) is np.ndarray and X.dtype == np.float64 and X.shape == (1, state.dim):
            return PoolLive(self, state).foresee(np.ascontiguousarray(X))
        pooled = state.plan.pooled(state, X)
        spread = np.sqrt(pooled.within + pooled.between)
        return Events(pooled.decision, spread, np.full(len(spread), np.nan), *pooled[1:])

    def contributions(self, state: PoolState, X: Any) -> Any:
        said = [one.contributions(own, X) for one, own in zip(self.learners, state.learners, strict=True)]
        first, *others = [weight * one for weight, one in zip(state.weights.tolist(), said, strict=True)]
        return sum(others, first)

    def live(self, state: PoolState) -> Live:
        late = any(leaf.plan.lazy for leaf in state.leaves())
        return PoolLive(self, state) if type(self) is Pool and not late else super().live(state)

    def said(self, events: Events) -> Forecast:
        """The prediction of pooled probabilities is a score already."""
        return forecast_of(self.shared_loss, events, self.score(events))

    def score(self, events: Events) -> Any:
        return events.prediction if self.settled else self.shared_loss.score(events.prediction, events.spread)

    def widen(self, state: PoolState, dim: int) -> PoolState:
        """The state for rows with further columns at the end, ``dim`` in all: as if these had been 0 so far."""
        pairs = zip(self.learners, state.learners, strict=True)
        return replace(state.widened(dim), learners=tuple(learner.widen(own, dim) for learner, own in pairs))

    def merge(self, states: Sequence[PoolState], start: PoolState | None = None) -> PoolState:
        """Each learner's states merged, and what each has lost added up: weights are prior·Π (shard's weights / prior).

        With a constant rate these are the weights of all losses; each shard has begun anew, so that the price of learning is
        counted once a shard. AdaHedge's gaps add up too, and its rate is what their sum says, which depends on the cut.
        """
        plan = states[0].plan
        if any(state.plan != plan for state in states):
            raise ValueError("these states have not the same pool, priors and columns: their weights do not add up")
        learners = tuple(
            learner.merge([state.learners[k] for state in states], *(() if start is None else (start.learners[k],)))
            for k, learner in enumerate(self.learners)
        )
        before = plan.start() if start is None else start.array
        array = before + sum(state.array - before for state in states)
        weights = plan.parts["weights"]
        with np.errstate(divide="ignore"):  # of a learner that some shard has given up
            levels, start_levels = [np.log(state.array[weights]) for state in states], np.log(before[weights])
        if weights.stop > weights.start:
            array[weights] = normalised(start_levels + sum(level - start_levels for level in levels))
        events = [state.count - int(before[mixing.COUNT]) for state in states]
        for name in ("shifts", "residual_sizes"):
            if any(events):
                array[plan.parts[name]] = np.average([state.array[plan.parts[name]] for state in states], 0, events)
        return PoolState(learners, array, plan, sum(state.shards for state in states))

    def describe(self, state: PoolState) -> Described:
        dim, horizon = state.dim, state.plan.horizon
        if state.plan != self.init(dim, horizon).plan:
            raise CheckpointError(FOREIGN)
        check_finite(state.array, "weights")
        facts = {"dim": int(dim), "horizon": None if horizon is None else int(horizon)}
        facts |= {"shards": state.shards} if state.shards > 1 else {}
        arrays = {name: state.array[where] for name, where in state.plan.parts.items() if where.stop > where.start}
        pairs = enumerate(zip(self.learners, state.learners, strict=True))
        parts = {f"learners/{k}": pair for k, pair in pairs}
        return Described(facts | {"sums": numbers_of(state.array, SUMS)}, arrays, parts)

    def restore(self, stored: Stored) -> PoolState:
        states = tuple(stored.part(f"learners/{k}", one) for k, one in enumerate(self.learners))
        sizes = sizes_of(stored.facts)
        leaves = [leaf for own in states for leaf in own.leaves()]
        if any(own.width != sizes[0] for own in states) or any(leaf.plan.horizon != sizes[1] for leaf in leaves):
            raise CheckpointError("its learners have different numbers of features, or horizons")
        mixer = self.init(*sizes).plan
        array = mixer.start()
        put_numbers(array, stored.facts["sums"], SUMS)
        for name, where in mixer.parts.items():
            if name == "weights" and stored.length("log_weights"):  # a file from before weights were kept as they are
                stored.fill("log_weights", array[where])
                array[where] = normalised(array[where])
            else:
                stored.fill(name, array[where])
        check_finite(array, "weights")
        return PoolState(states, array, mixer, whole(stored.facts.get("shards", 1), "number of shards"))

    def update_many(
        self, state: PoolState, X: Any, y: Any, *, weights: Any = None, record: Record = "all", threads: int = 1
    ) -> tuple[PoolState, Trace]:
        """Learn from a block of rows, in order; the same bits as one event at a time, in however many threads."""
        hint, start = self.shared_loss.label_hint, state
        rows, labels, importance = as_events(X, y, weights, hint=hint, filled=state.plan.fills_rows)
        self.fitting(state, rows.dim)
        recorder = Recorder(record, state, rows, self)
        shown = np.empty((rows.count if record == "all" else 0, len(self.learners)))
        size = max(1, BLOCK_VALUES // max(1, int(rows.values_a_row)))
        try:
            with running_threads(threads) as each:
                for first in range(0, rows.count, size):
                    block, room = (first, min(first + size, rows.count)), shown[state.count - start.count :]
                    state, played, refused = state.plan.play(state, rows, labels, importance, *block, shown=room, threads=each)
                    recorder.add_events(Events(*played.T))
                    if refused is not None:
                        raise BadRow(refused.row, refused.why)
        except (BadRow, KeyboardInterrupt) as stopped:
            stopped.trace = _trace(recorder, state, shown)  # type: ignore[union-attr]
            raise
        return state, _trace(recorder, state, shown)

    def fitting(self, state: PoolState, dim: int) -> PoolState:
        if dim != state.dim:
            raise ValueError(f"X has {dim} features, the state {state.dim}: every block needs the same columns")
        self._check(state)
        return state

    def _check(self, state: PoolState) -> None:
        plan = state.plan
        if plan is not (own := _mixer(self, state.dim, plan.horizon)) and plan != own:
            raise ValueError("this state belongs to another pool: its learners, loss, rate, prior, share or pool differs")

    def run(self, X: Any, y: Any, *, weights: Any = None, horizon: int | None = None, threads: int = 1) -> Trace:
        """One pass over a stream. ``horizon`` is the number of rows unless given; ``threads`` share the learners."""
        rows = as_rows(X)
        if rows.count == 0:
            raise ValueError("the stream is empty: X has 0 rows, needs at least one")
        return self.update_many(self.init(rows.dim, horizon or rows.count), X, y, weights=weights, threads=threads)[1]


def _trace(recorder: Recorder, state: PoolState, shown: Vector) -> Trace:
    trace = recorder.finish(state)
    trace.weights = shown[: len(trace.loss)]
    return trace


@lru_cache(maxsize=64)
def _mixer(pool: Pool, dim: int, horizon: int | None) -> Mixer:
    adaptive, loss = isinstance(pool.rate, AdaHedge), pool.shared_loss
    experts = Experts(pool.rate if not isinstance(pool.rate, AdaHedge) else 1.0, pool.prior)
    begin = experts.init(len(pool.learners), horizon)
    level = loss.level if pool.pool == "quantile" and loss.level is not None else 0.0
    plans = tuple(learner.plan(dim, horizon) if isinstance(learner, Linear) else None for learner in pool.learners)
    # What a learner paid by itself is what its prediction costs here, unless it is another loss or has a ridge in it.
    paid = {(type(learner.loss), learner.loss.parameters, learner.loss.ridge) for learner in pool.learners}
    known = pool.pool == "prediction" and paid == {(type(loss), loss.parameters, 0.0)}
    by_chi_square = float(pool.weighing == "chi-square")
    settings = np.array([*begin.schedule, float(adaptive), pool.share, level, float(known), by_chi_square])
    # A copy may be written to, as one that was pickled may: one type of argument, one loop to compile.
    return Mixer(tuple(pool.learners), plans, horizon, loss, begin.log_prior.copy(), settings, pool.pool == "probability")


def over_rates(learner: Linear, low: float, high: float, count: int = 16) -> list[Linear]:
    """The learner at ``count`` rates from ``low`` to ``high``, each a fixed factor above the one before.

    A ``Pool`` of them runs in one compiled loop, and with ``AdaHedge()`` loses little to the best of them.

    >>> import onlinevi as ovi
    >>> from onlinevi.ewa import over_rates
    >>> [one.rule.rate for one in over_rates(ovi.Linear(ovi.Hinge(), ovi.SVA()), 0.01, 1.0, count=3)]
    [PerHorizon(c=0.01), PerHorizon(c=0.1), PerHorizon(c=1.0)]
    """
    if not 0.0 < low < high < np.inf or count < 2:
        raise ValueError(f"low={low!r}, high={high!r}, count={count!r}: needs 0 < low < high and at least 2 rates")
    return [replace(learner, rule=learner.rule.with_rate(float(c))) for c in np.geomspace(low, high, count)]
