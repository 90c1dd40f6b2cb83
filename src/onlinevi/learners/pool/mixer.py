"""The state of a pool, and what is fixed about its run."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from onlinevi.data import Rows
from onlinevi.engine import RECORD, Function, Kernel, Schedule, Vector, rate_at
from onlinevi.learners.base import Learner
from onlinevi.learners.columns import Named
from onlinevi.learners.linear import missing_means, prediction_law
from onlinevi.learners.parts import Part
from onlinevi.learners.pool import mixing
from onlinevi.learners.pool.experts import chi_square_price
from onlinevi.learners.pool.members import Members, Refused, parts_of
from onlinevi.learners.pool.tempered import WEIGHTS, Weigh, fixed
from onlinevi.learners.pool.threads import ALONE, Threads
from onlinevi.learners.state import Plan, State
from onlinevi.losses import Loss


@dataclass(frozen=True, eq=False)
class PoolState(Named):
    """The learners' states, and the weights over them."""

    learners: tuple[Any, ...]
    array: Vector
    """Packed: count, loss, gaps, the learners' total losses, and their weights where a share is dealt out."""
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
        return int(self.learners[0].width)

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
        """The mean of the weights of ``space``, over the learners that have such weights."""
        shares, means, _ = self._beliefs(1.0)
        return np.asarray(shares @ means)

    @property
    def std(self) -> Vector:
        """The std of these weights, over all of those learners."""
        return self.std_in(1.0)

    def std_in(self, noise: float) -> Vector:
        """The same where the learners' own variances are in units of this noise."""
        shares, means, stds = self._beliefs(noise)
        return np.asarray(np.sqrt(shares @ (np.square(stds) + np.square(means - shares @ means))))

    def _beliefs(self, noise: float) -> tuple[Vector, Vector, Vector]:
        """The weights, means and stds of the learners whose weights are of ``space``."""
        alike = [k for k, state in enumerate(self.learners) if state.space == self.space]
        means = np.stack([self.learners[k].mean for k in alike])
        stds = np.stack([self._stds(self.learners[k], noise) for k in alike])
        shares = self.weights[alike]
        total = shares.sum()
        return shares / total if total > 0.0 else np.full(len(alike), 1.0 / len(alike)), means, stds

    def _stds(self, state: Any, noise: float) -> Vector:
        """Of a leaf they are in units of the noise; another learner knows what its own are in."""
        return np.asarray(state.std * math.sqrt(noise) if isinstance(state, State) else state.std_in(noise))

    @property
    def width(self) -> int:
        """How many columns its rows have."""
        return self.dim

    @property
    def begun(self) -> int:
        """How many columns its rows had at the first, as far as anything depends on it."""
        return min(int(own.begun) for own in self.learners)

    @property
    def space(self) -> Any:
        """What ``mean`` and ``std`` are of: the columns, None, or the features of a map, as the first learner's are.

        Where leaves on the columns come first, these tell what columns weigh, beside learners on features of them.
        """
        return self.learners[0].space

    @property
    def has_first(self) -> bool:
        """Whether its first learner is a pool of probabilities too, and is heard by itself."""
        return self.plan.has_first

    def up_to(self, later: Any) -> PoolState:
        """Itself, as an earlier state of the run of this one."""
        return self

    def deciders(self) -> tuple[PoolState, ...]:
        """Itself: the pool decides, not its learners."""
        return (self,)

    def by_class(self) -> tuple[PoolState, ...]:
        """Itself: a pool knows of two classes at most."""
        return (self,)

    def alone(self) -> None:
        """None: several learners have a part in its decisions."""

    def parts(self, noise: float = 1.0) -> tuple[Part, ...]:
        """Those of all its learners, by their weights."""
        pairs = list(zip(self.weights.tolist(), self.learners, strict=True))
        leaves = tuple((weight, own, math.sqrt(noise)) for weight, own in pairs if isinstance(own, State))
        together = [replace(part, leaves=leaves) for part in leaves[0][1].parts()] if leaves else []
        others = [(weight, own.parts(noise)) for weight, own in pairs if not isinstance(own, State)]
        return (*together, *(part.weighed(weight) for weight, parts in others for part in parts))

    def leaves(self) -> tuple[State, ...]:
        """The states of the compiled loop inside."""
        return tuple(leaf for state in self.learners for leaf in state.leaves())

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
        return self.plan.bayesian and self.leaves()[0].unit_weights

    def widened(self, dim: int) -> PoolState:
        """For rows with further columns at the end: every learner widened, their weights as they are."""
        states = tuple(own.widened(dim) for own in self.learners)
        learners = tuple(one.as_widened(own) for one, own in zip(self.plan.learners, states, strict=True))
        plans = tuple(own.plan if isinstance(own, State) else None for own in states)
        return PoolState(states, self.array, replace(self.plan, learners=learners, plans=plans), self.shards)

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
    first: Any
    """What the first learner says by itself, where it is heard."""


@dataclass(frozen=True, eq=False)
class Mixer:
    """The learners and the plans of the leaves, the prior weights, and the settings of the compiled loop that weighs them."""

    learners: tuple[Learner[Any], ...]
    plans: tuple[Plan | None, ...]
    horizon: int | None
    loss: Loss
    log_prior: Vector
    settings: Vector
    by_probability: bool

    @cached_property
    def members(self) -> Members:
        return Members(self.learners, self.plans)

    @cached_property
    def fills_rows(self) -> bool:
        """Whether some learner moves every coordinate at every event: then zeros left out gain nothing."""
        return any(plan is not None and plan.fills_rows for plan in self.plans)

    @cached_property
    def has_first(self) -> bool:
        return self.by_probability and bool(getattr(self.learners[0], "settled", False))

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Where the vectors of a packed state lie, one number for each learner."""
        number = len(self.log_prior)
        sizes = {"losses": number, "weights": number if self.share > 0.0 else 0}
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

    def kernel(self, loop: Function = mixing.mix) -> Kernel:
        """A loop of ``mixing`` for these settings."""
        return mixing.kernel(type(self.loss), self.by_probability, self.weighing == "chi-square", loop)  # type: ignore[arg-type]

    @cached_property
    def _kernel(self) -> Kernel:
        return self.kernel()

    def __getstate__(self) -> dict[str, Any]:  # compiled kernels are made anew
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mixer):
            return NotImplemented
        same = (self.learners, self.plans, self.horizon) == (other.learners, other.plans, other.horizon)
        same = same and self.loss == other.loss
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
        block = labels[start:stop], importance, said, self.members.places, self.members.unsure, array
        row = start + self._kernel(*block, self.log_prior, self.settings, self.loss.parameters, played, shown)
        if row < stop:
            raise Refused(row, self.reason(float(labels[row])))
        if self.has_first:
            first = said[self.members.places[0], :events, RECORD.prediction]
            played = np.column_stack([played, first])
        return PoolState(tuple(learners), array, self, state.shards), played

    def reason(self, label: float) -> str:
        """Why a label was refused that all learners took."""
        if not self.loss.valid_label(np.float64(label), *self.loss.parameters):
            return self.loss.refuse_label(label)
        return f"the loss would overflow (label {label}): {self.loss.overflow_hint}, or lower the learners' rates"

    def pooled(self, state: PoolState, X: Any) -> Pooled:
        """What is predicted at each row of a matrix."""
        means, variances, held = self._laws(state, X)
        weights, means = state.weights, means + state.shifts
        centre = np.asarray((weights * means).sum(axis=-1))
        within = np.asarray((weights * np.maximum(variances - self.members.unsure * held, 0.0)).sum(axis=-1))
        between = np.asarray((weights * (np.square(means - centre[..., None]) + held)).sum(axis=-1))
        if self.by_probability:
            says = mixing.believed_at(self.loss, means, np.sqrt(variances) * self.members.unsure)
            centre = np.asarray(mixing.log_odds(*(weights * says).sum(axis=-1)))
        return Pooled(centre, within, between, means[:, 0] if self.has_first else None)

    def _laws(self, state: PoolState, X: Any) -> tuple[Vector, Vector, Vector]:
        """Of every learner's prediction, the mean, the variance, and what of it missing values add for good."""
        members = self.members
        means, variances, held = np.empty((3, X.shape[0], len(self.learners)))
        for k, own in enumerate(state.learners):
            if k in members.others:
                said = self.learners[k].foresee(own, X)
                means[:, k], (variances[:, k], held[:, k]) = said.prediction, parts_of(said)
            else:
                means[:, k], variances[:, k] = prediction_law(own, X)
                held[:, k] = missing_means(own, X)
        return means, variances, held

    def start(self) -> Vector:
        """The packed state before the first event."""
        number, shared = len(self.log_prior), np.exp(self.log_prior) if self.share > 0.0 else self.log_prior[:0]
        shifts_and_sizes = np.zeros(2 * number if self.level > 0.0 else 0)
        return np.concatenate([np.zeros(mixing.HEAD + number), shared, shifts_and_sizes])

    def weights(self, array: Vector) -> Vector:
        if self.share > 0.0:
            return array[mixing.HEAD + len(self.log_prior) :]
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
