"""The state of a pool, and what is fixed about its run."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from onlinevi.data import Rows
from onlinevi.engine import Kernel, Schedule, Vector, rate_at
from onlinevi.learners.columns import Named
from onlinevi.learners.linear import missing_means, prediction_law
from onlinevi.learners.pool import mixing
from onlinevi.learners.pool.experts import chi_square_price
from onlinevi.learners.pool.members import Members, Refused
from onlinevi.learners.pool.tempering import WEIGHTS, Weigh, fixed, normalised
from onlinevi.learners.pool.threads import ALONE, Threads
from onlinevi.learners.state import Plan, State
from onlinevi.losses import Loss


@dataclass(frozen=True, eq=False)
class PoolState(Named):
    """The learners' states, and the weights over them."""

    learners: tuple[State, ...]
    array: Vector
    """Packed: count, loss, gaps, the learners' total losses, and log-weights where a share is dealt out."""
    plan: Mixer
    shards: int = 1
    """How many runs its sums are of: more than one in a merge, and in what goes on from it."""

    def __post_init__(self) -> None:
        fixed(self.array)

    @property
    def weights(self) -> Vector:
        """The weights of the next prediction: a probability vector."""
        return self.plan.weights(self.array)

    @property
    def dim(self) -> int:
        return self.learners[0].plan.dim

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
        """The average loss so far."""
        return self.loss / self.count if self.count else float("nan")

    @property
    def mean(self) -> Vector:
        """The mean of the weights of the features, over all learners."""
        return np.asarray(self.weights @ np.stack([state.mean for state in self.learners]))

    @property
    def std(self) -> Vector:
        """The std of these weights, over all learners."""
        return self.std_in(1.0)

    def std_in(self, noise: float) -> Vector:
        """The same where the learners' own variances are in units of this noise."""
        means, stds = (np.stack([getattr(state, name) for state in self.learners]) for name in ("mean", "std"))
        return np.asarray(np.sqrt(self.weights @ (np.square(stds) * noise + np.square(means - self.mean))))

    @property
    def width(self) -> int:
        """How many columns its rows have."""
        return self.learners[0].width

    @property
    def space(self) -> None:
        """None: its weights are those of its rows' columns."""

    def deciders(self) -> tuple[PoolState, ...]:
        """Itself: the pool decides, not its learners."""
        return (self,)

    def by_class(self) -> tuple[PoolState, ...]:
        """Itself: a pool knows of two classes at most."""
        return (self,)

    def alone(self) -> None:
        """None: several learners have a part in its decisions."""

    def leaves(self) -> tuple[State, ...]:
        """The states of the learners."""
        return self.learners

    @property
    def regret(self) -> float:
        """How much more it has lost than the best of its learners."""
        return self.loss - float(self.losses.min())

    @property
    def regret_bound(self) -> float:
        """What the regret cannot exceed, whatever the stream; NaN where a bound needs the range of losses, and of a merge,
        whose shards each have a bound of their own."""
        if self.shards > 1:
            return math.nan
        if self.plan.adaptive:
            return 2.0 * float(self.array[mixing.GAP])
        if self.plan.weighing == "chi-square":
            best = float(self.plan.log_prior[int(self.losses.argmin())])
            return chi_square_price(best, self.plan.schedule, self.count) + float(self.array[mixing.GAP])
        return self.switching_bound(0) if self._bayesian else math.nan

    def switching_bound(self, switches: int) -> float:
        """What cannot be lost beyond any sequence of learners that changes this many times, at most."""
        if self.shards > 1:
            raise ValueError("the learners were weighed in shards, apart: each of them has a bound on switching of its own")
        if not self._bayesian:
            raise ValueError(
                "a bound on switching needs probabilities pooled at rate 1, and rows of weight 1: pool='probability', rate=1.0"
            )
        return self.plan.switching_bound(self.count, switches)

    @property
    def _bayesian(self) -> bool:
        """Whether the weights were those of Bayes' rule: a row that weighs more than 1 would be counted more than once."""
        return self.plan.bayesian and self.learners[0].unit_weights

    def widened(self, dim: int) -> PoolState:
        """For rows with further columns at the end: every learner widened, their weights as they are."""
        learners = tuple(own.widened(dim) for own in self.learners)
        plan = replace(self.plan, plans=tuple(own.plan for own in learners))
        return PoolState(learners, self.array, plan, self.shards)

    def __reduce__(self) -> tuple[Any, ...]:
        kept = {"columns": self.columns} if self.columns else None
        return PoolState, (self.learners, self.array, self.plan, self.shards), kept

    def __repr__(self) -> str:
        return f"PoolState(count={self.count}, learners={len(self.learners)}, average_loss={self.average_loss:.6g})"


class Pooled(NamedTuple):
    """A prediction of all learners together."""

    decision: Any
    within: Any
    """The variance that the learners see themselves, averaged; it shrinks as they learn."""
    between: Any
    """The variance of their predictions, and what missing values add however well the weights are known."""


@dataclass(frozen=True, eq=False)
class Mixer:
    """The learners' plans, the prior weights, and the settings of the compiled loop that weighs them."""

    plans: tuple[Plan, ...]
    loss: Loss
    log_prior: Vector
    settings: Vector
    by_probability: bool

    @cached_property
    def members(self) -> Members:
        return Members(self.plans)

    @cached_property
    def fills_rows(self) -> bool:
        """Whether some learner moves every coordinate at every event: then zeros left out gain nothing."""
        return any(plan.fills_rows for plan in self.plans)

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Where the vectors of a packed state lie, one number for each learner."""
        number = len(self.log_prior)
        sizes = {"losses": number, "log_weights": number if self.share > 0.0 else 0}
        sizes |= dict.fromkeys(("shifts", "residual_sizes"), number if self.level > 0.0 else 0)
        ends = accumulate(sizes.values(), initial=mixing.HEAD)
        return {name: slice(*between) for name, between in zip(sizes, pairwise(ends), strict=True)}

    @cached_property
    def share(self) -> float:
        return float(self.settings[mixing.SHARE])

    @cached_property
    def level(self) -> float:
        return float(self.settings[mixing.LEVEL])

    @cached_property
    def adaptive(self) -> bool:
        return bool(self.settings[mixing.ADAPTIVE] > 0.0)

    @cached_property
    def weighing(self) -> Weigh:
        return "chi-square" if self.settings[mixing.CHI_SQUARE] > 0.0 else "exponential"

    @cached_property
    def schedule(self) -> Schedule:
        return Schedule(*self.settings[[mixing.SCALE, mixing.POWER]].tolist())

    @cached_property
    def _kernel(self) -> Kernel:
        return mixing.kernel(type(self.loss), self.by_probability, self.weighing == "chi-square")  # type: ignore[arg-type]

    def __getstate__(self) -> dict[str, Any]:  # compiled kernels are made anew
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mixer):
            return NotImplemented
        same = self.plans == other.plans and self.loss == other.loss
        same = same and self.by_probability == other.by_probability
        return same and np.array_equal(self.log_prior, other.log_prior) and np.array_equal(self.settings, other.settings)

    __hash__ = None  # type: ignore[assignment]

    def play(
        self,
        state: PoolState,
        rows: Rows,
        labels: Vector,
        weights: Vector,
        start: int,
        stop: int,
        *,
        shown: Vector | None = None,
        threads: Threads = ALONE,
    ) -> tuple[PoolState, Vector, Refused | None]:
        """One block: the state after it, a record of the events, and why it stopped short, if it did.

        ``shown``, where given, is filled with the weights, a row an event.
        """
        refused, shown = None, np.empty((0, len(self.plans))) if shown is None else shown
        while True:  # until a row that some learner, or the shared loss, refuses is the end of the block
            try:
                return *self._play(state, rows, labels, weights, start, stop, shown, threads), refused
            except Refused as earlier:
                refused, stop = earlier, earlier.row

    def _play(
        self,
        state: PoolState,
        rows: Rows,
        labels: Vector,
        weights: Vector,
        start: int,
        stop: int,
        shown: Vector,
        threads: Threads,
    ) -> tuple[PoolState, Vector]:
        learners, said = self.members.advance(state.learners, rows, labels, weights, start, stop, threads)
        importance = weights[start:stop]
        events = int(np.count_nonzero(importance)) if len(importance) else stop - start
        array, played = state.array.copy(), np.empty((events, mixing.PLAYED))
        block = labels[start:stop], importance, said, self.members.places, array
        row = start + self._kernel(*block, self.log_prior, self.settings, self.loss.parameters, played, shown)
        if row < stop:
            raise Refused(row, self._reason(float(labels[row])))
        return PoolState(tuple(learners), array, self, state.shards), played

    def _reason(self, label: float) -> str:
        if not self.loss.valid_label(np.float64(label), *self.loss.parameters):
            return self.loss.refuse_label(label)
        return f"the loss would overflow (label {label}): {self.loss.overflow_hint}, or lower the learners' rates"

    def pooled(self, state: PoolState, x: Any) -> Pooled:
        """What is predicted at a row, or at each row of a matrix."""
        means, variances, held = self._laws(state, x)
        weights, means = state.weights, means + state.shifts
        centre = np.asarray((weights * means).sum(axis=-1))
        within = np.asarray((weights * np.maximum(variances - held, 0.0)).sum(axis=-1))
        between = np.asarray((weights * (np.square(means - centre[..., None]) + held)).sum(axis=-1))
        if self.by_probability:
            says = mixing.believed_at(self.loss, means, np.sqrt(variances))
            centre = np.asarray(mixing.log_odds(*(weights * says).sum(axis=-1)))
        return Pooled(centre, within, between)

    def _laws(self, state: PoolState, x: Any) -> tuple[Vector, Vector, Vector]:
        """Of every learner's prediction, the mean, the variance, and what of it missing values add for good."""
        if is_plain_row(x, self.plans[0].dim):
            means, variances = self.members.predict_row(state.learners, x.reshape(-1))
            if np.isfinite(means + variances).all():
                shape = *x.shape[:-1], len(means)
                return means.reshape(shape), variances.reshape(shape), np.zeros(shape)
        each = [(*prediction_law(own, x), missing_means(own, x)) for own in state.learners]
        means, variances, held = (np.moveaxis(np.asarray(part), 0, -1) for part in zip(*each, strict=True))
        return means, variances, held

    def start(self) -> Vector:
        """The packed state before the first event."""
        number, levels = len(self.log_prior), self.log_prior if self.share > 0.0 else self.log_prior[:0]
        shifts_and_sizes = np.zeros(2 * number if self.level > 0.0 else 0)
        return np.concatenate([np.zeros(mixing.HEAD + number), levels, shifts_and_sizes])

    def weights(self, array: Vector) -> Vector:
        if self.share > 0.0:
            return normalised(array[mixing.HEAD + len(self.log_prior) :])
        totals = array[mixing.HEAD :][: len(self.log_prior)]
        rate = rate_at(*self.schedule, array[mixing.COUNT] + 1.0)
        if self.adaptive:
            rate = mixing.hedge_rate(len(totals), float(array[mixing.GAP]))
        return WEIGHTS[self.weighing](self.log_prior, totals, rate)

    @property
    def bayesian(self) -> bool:
        return self.by_probability and self.schedule == (1.0, 0.0)

    def switching_bound(self, count: int, switches: int) -> float:
        """−log of the least prior weight of a sequence of learners that changes ``switches`` times in ``count`` events."""
        if switches > 0 and self.share == 0.0:
            raise ValueError("without a share the best learner may not change: set share=0.001")
        most = max(count - 1, 0)
        if not 0 <= switches <= most:
            raise ValueError(f"switches={switches}: {count} events have at most {most}")
        rarest = math.exp(self.log_prior.min())
        changed = switches * math.log(self.share * rarest) if switches else 0.0
        return -(math.log(rarest) + changed + (most - switches) * math.log(1.0 - self.share + self.share * rarest))


def is_plain_row(x: Any, dim: int) -> bool:
    """Whether x is one row of doubles, be it in a matrix, none of them missing."""
    return type(x) is np.ndarray and x.dtype == np.float64 and x.shape in ((dim,), (1, dim)) and not np.isnan(x).any()
