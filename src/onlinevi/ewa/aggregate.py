"""Learners as experts: weigh them by what they have cost so far, and pool their predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from onlinevi.ewa import mixing
from onlinevi.ewa.experts import Experts
from onlinevi.ewa.members import Members, Refused
from onlinevi.ewa.played import Played, averages, running
from onlinevi.ewa.tempering import fixed, normalised
from onlinevi.learner import BadRow, Linear
from onlinevi.losses import Absolute, Logistic, Loss, Pinball
from onlinevi.rows import Rows, as_labels, as_rows, as_weights
from onlinevi.rules.rates import Constant, PerHorizon, Rate, rate_at
from onlinevi.state import State
from onlinevi.types import Step, Vector

Pool: TypeAlias = Literal["prediction", "probability", "quantile"]

BLOCK_VALUES = 1 << 15
"""How many values of rows a block holds: few enough to stay in cache while every learner passes over them."""


@dataclass(frozen=True)
class AdaHedge:
    """The rate ln N / Σ gaps, where a gap is what weighing cost beyond the rate's own price: no range of losses, no horizon.

    At any time the aggregate has lost at most twice the sum of gaps more than the best learner.
    """


@dataclass(frozen=True, eq=False)
class AggregateState:
    """The learners' states, and the weights over them."""

    learners: tuple[State, ...]
    array: Vector
    """Packed: count, loss, gaps, the learners' total losses, and log-weights where a share is dealt out."""
    plan: Mixer

    def __post_init__(self) -> None:
        fixed(self.array)

    @property
    def weights(self) -> Vector:
        """The weights of the next prediction: a probability vector."""
        return self.plan.weights(self.array)

    @property
    def count(self) -> int:
        return int(self.array[mixing.COUNT])

    @property
    def loss(self) -> float:
        """Σ loss at the pooled predictions."""
        return float(self.array[mixing.LOSS])

    @property
    def losses(self) -> Vector:
        """Σ loss of each learner by itself: at its prediction, or of its probability where these are pooled."""
        return self.array[mixing.HEAD : mixing.HEAD + len(self.learners)]

    @property
    def shifts(self) -> Vector:
        """What is added to each learner's prediction: with quantiles, that of its residuals; else 0."""
        number = len(self.learners)
        behind = self.array[mixing.HEAD + number :]
        return behind[:number] if self.plan.level > 0.0 else np.zeros(number)

    @property
    def average_loss(self) -> float:
        return self.loss / self.count if self.count else float("nan")

    @property
    def regret(self) -> float:
        """How much more it has lost than the best of its learners."""
        return self.loss - float(self.losses.min())

    @property
    def regret_bound(self) -> float:
        """What the regret cannot exceed, whatever the stream; NaN where a bound needs the range of losses."""
        return self.plan.regret_bound(self.array)

    def switching_bound(self, switches: int) -> float:
        """With a share, what cannot be exceeded against any sequence of learners that changes this many times."""
        return self.plan.switching_bound(self.count, switches)

    def __repr__(self) -> str:
        return f"AggregateState(count={self.count}, learners={len(self.learners)}, average_loss={self.average_loss:.6g})"


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
        return AggregateState(tuple(plan.start() for plan in mixer.members.plans), mixer.start(), mixer)

    def predict(self, state: AggregateState, x: Any) -> tuple[Any, Any]:
        """The pooled prediction at a row, or at each row of a matrix, and the std of the mixture. Changes nothing."""
        each = [learner.predict(own, x) for learner, own in zip(self.learners, state.learners, strict=True)]
        means, stds = (np.moveaxis(np.asarray(part), 0, -1) for part in zip(*each, strict=True))
        weights, means = state.weights, means + state.shifts
        centre = np.asarray((weights * means).sum(axis=-1))
        spread = np.sqrt((weights * (np.square(stds) + np.square(means - centre[..., None]))).sum(axis=-1))
        if self.pool == "probability":
            says = mixing.believed_at(self.shared_loss, means, stds)
            centre = np.asarray(mixing.log_odds((weights * says.support).sum(axis=-1), (weights * says.against).sum(axis=-1)))
        return (float(centre), float(spread)) if centre.ndim == 0 else (centre, spread)

    def update(self, state: AggregateState, x: Any, y: float) -> tuple[AggregateState, Step]:
        """Learn from one event. The state given is left as it is; the step says what was predicted before ``y`` was used."""
        state, played = self.update_many(state, np.asarray(x, dtype=float)[None, :], [y])
        return state, Step(float(played.prediction[0]), float(played.spread[0]), float(played.loss[0]))

    def update_many(self, state: AggregateState, X: Any, y: Any, *, weights: Any = None) -> tuple[AggregateState, Aggregated]:
        """Learn from a block of rows, in order; the same bits as one event at a time."""
        rows, labels = self.rows(X), as_labels(y, self.shared_loss.label_hint)
        if len(labels) != rows.count:
            raise ValueError(f"X has {rows.count} rows, y {len(labels)} labels: needs one label a row")
        importance = as_weights(weights, rows.count)
        start, played, shown = state, [np.empty((0, mixing.PLAYED))], [np.empty((0, len(self.learners)))]
        size = max(1, BLOCK_VALUES // max(1, int(rows.values_a_row)))
        refused: Refused | None = None
        for first in range(0, rows.count, size):
            state, events, shares, refused = self.play(
                state, rows, labels, importance, first, min(first + size, rows.count), show=True
            )
            played.append(events)
            shown.append(shares)
            if refused is not None:
                break
        prediction, spread, loss, _ = np.concatenate(played).T.copy()
        sums = running(start.loss, loss)
        result = Aggregated(state, prediction, spread, loss, averages(sums, start.count), np.concatenate(shown))
        if refused is not None:
            raise BadRow(refused.row, refused.why, result)
        return state, result

    def run(self, X: Any, y: Any, *, weights: Any = None, horizon: int | None = None) -> Aggregated:
        """One pass over a stream. ``horizon`` is the number of rows unless given."""
        rows = as_rows(X)
        if rows.count == 0:
            raise ValueError("the stream is empty: X has 0 rows, needs at least one")
        return self.update_many(self.init(rows.dim, horizon or rows.count), X, y, weights=weights)[1]

    def rows(self, X: Any) -> Rows:
        """X as all learners can read it."""
        return as_rows(X, filled=any(learner.fills_rows for learner in self.learners))

    def play(
        self, state: AggregateState, rows: Rows, labels: Vector, weights: Vector, start: int, stop: int, *, show: bool
    ) -> tuple[AggregateState, Vector, Vector, Refused | None]:
        """One block: the state after it, a record of the events, the weights shown, and why it stopped short, if it did."""
        mixer, refused = state.plan, None
        try:
            learners, said = mixer.members.advance(state.learners, rows, labels, weights, start, stop)
        except Refused as stopped:
            refused, stop = stopped, stopped.row
            learners, said = mixer.members.advance(state.learners, rows, labels, weights, start, stop)
        importance = weights[start:stop]
        events = stop - start if not len(importance) else int(np.count_nonzero(importance))
        array, played = state.array.copy(), np.empty((events, mixing.PLAYED))
        shown = np.empty((events if show else 0, len(self.learners)))
        mixer.mix(labels[start:stop], importance, said, array, played, shown)
        return AggregateState(tuple(learners), array, mixer), played, shown, refused


class Mixer:
    """What is fixed about the weighing of a run: the learners' plans, the prior and the settings of the compiled loop."""

    def __init__(self, aggregate: Aggregate, dim: int, horizon: int | None) -> None:
        self.members = Members([learner.plan(dim, horizon) for learner in aggregate.learners])
        number = len(aggregate.learners)
        adaptive = isinstance(aggregate.rate, AdaHedge)
        experts = Experts(1.0 if isinstance(aggregate.rate, AdaHedge) else aggregate.rate, aggregate.prior)
        begin = experts.init(number, horizon)
        self.log_prior, self.schedule, self.share = begin.log_prior, begin.schedule, aggregate.share
        loss = aggregate.shared_loss
        self.level = (loss.quantile if isinstance(loss, Pinball) else 0.5) if aggregate.pool == "quantile" else 0.0
        self.settings = np.array([*begin.schedule, float(adaptive), aggregate.share, self.level])
        self.adaptive, self.by_probability = adaptive, aggregate.pool == "probability"
        self.parameters = aggregate.shared_loss.parameters
        self.kernel = mixing.kernel(type(aggregate.shared_loss), self.by_probability)  # type: ignore[arg-type]

    def start(self) -> Vector:
        number, levels = len(self.log_prior), self.log_prior if self.share > 0.0 else self.log_prior[:0]
        return np.concatenate([np.zeros(mixing.HEAD + number), levels, np.zeros(2 * number if self.level > 0.0 else 0)])

    def mix(self, labels: Vector, importance: Vector, said: Vector, array: Vector, played: Vector, shown: Vector) -> None:
        self.kernel(labels, importance, said, array, self.log_prior, self.settings, self.parameters, played, shown)

    def weights(self, array: Vector) -> Vector:
        if self.share > 0.0:
            return normalised(array[mixing.HEAD + len(self.log_prior) :])
        levels = np.empty(len(self.log_prior))
        rate = rate_at(*self.schedule, array[mixing.COUNT] + 1.0)
        if self.adaptive:
            rate = mixing.hedge_rate(len(levels), float(array[mixing.GAP]))
        mixing.temper(levels, array[mixing.HEAD :][: len(levels)], self.log_prior, rate)
        return normalised(levels)

    def regret_bound(self, array: Vector) -> float:
        if self.adaptive:
            return 2.0 * float(array[mixing.GAP])
        if self.by_probability and self.schedule == (1.0, 0.0):
            return self.switching_bound(int(array[mixing.COUNT]), 0)
        return math.nan

    def switching_bound(self, count: int, switches: int) -> float:
        """−log of the least prior weight of a sequence of learners that changes ``switches`` times in ``count`` events."""
        if not (self.by_probability and self.schedule == (1.0, 0.0)):
            raise ValueError("a bound on switching needs probabilities pooled at rate 1: pool='probability', rate=1.0")
        if switches > 0 and self.share == 0.0:
            raise ValueError("without a share the best learner may not change: set share=0.001")
        rarest = math.exp(self.log_prior.min())
        stay, change = 1.0 - self.share + self.share * rarest, self.share * rarest
        if not 0 <= switches <= max(count - 1, 0):
            raise ValueError(f"switches={switches}: {count} events have at most {max(count - 1, 0)}")
        changed = switches * math.log(change) if switches else 0.0
        return -(math.log(rarest) + changed + (max(count - 1, 0) - switches) * math.log(stay))


@lru_cache(maxsize=64)
def _mixer(aggregate: Aggregate, dim: int, horizon: int | None) -> Mixer:
    return Mixer(aggregate, dim, horizon)
