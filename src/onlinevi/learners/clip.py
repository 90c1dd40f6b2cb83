"""Numbers that stay where labels have been: a bent boundary goes anywhere where no row has been."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners.base import Combinator, Deciding, Learner, merge_inner
from onlinevi.learners.described import CheckpointError, Described, Stored
from onlinevi.learners.live import NO_WEIGHTS, Live
from onlinevi.learners.trace import Events


@dataclass(frozen=True, eq=False, repr=False)
class ClipState(Deciding):
    """What was learned, what the clipped predictions cost, and between which labels."""

    inner: Any
    paid: float = 0.0
    low: float = math.inf
    high: float = -math.inf

    @property
    def loss(self) -> float:
        return self.paid

    @property
    def average_loss(self) -> float:
        return self.paid / self.count if self.count else math.nan


@dataclass(frozen=True)
class Clip(Combinator[ClipState]):
    """Keeps the predictions of a learner of numbers between the least and the largest label that it has seen.

    Where labels lie between those of before, no prediction costs more for it; a label beyond them may have been foretold,
    and is not any more. So it is made for learners in a pool, beside others that may say anything.

    >>> import numpy as np, onlinevi as ovi
    >>> leaf = ovi.Linear(ovi.Squared(), ovi.Implicit(), ovi.FullCovariance(prior_std=10.0, box=None))
    >>> learner = ovi.Clip(leaf)
    >>> state, _ = learner.update_many(learner.init(1), [[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0])
    >>> [round(one.predict(own, [9.0])[0], 1) for one, own in ((leaf, state.inner), (learner, state))]
    [9.0, 3.0]
    """

    inner: Learner[Any]

    def __post_init__(self) -> None:
        if self.loss.target not in ("numbers", "quantile"):
            raise ValueError(f"{self.loss} predicts {self.loss.target}: only numbers are clipped to the range of labels")

    def init(self, dim: int, horizon: int | None = None, *, sparse: bool = False) -> ClipState:
        return ClipState(self.inner.init(dim, horizon, sparse=sparse))

    def play(self, state: ClipState, X: Any, y: Vector, weights: Vector) -> tuple[ClipState, Events]:
        inner, events = self.inner.play(state.inner, X, y, weights)
        state, events = self._clipped(state, events, y, weights)
        return replace(state, inner=inner), events

    def _clipped(self, state: ClipState, events: Events, y: Vector, weights: Vector) -> tuple[ClipState, Events]:
        """What is said and paid instead, and the state after it but for what the learner inside has learned."""
        lows = np.minimum.accumulate(np.append(state.low, y))
        highs = np.maximum.accumulate(np.append(state.high, y))
        said = _between(events.prediction, lows[:-1], highs[:-1])
        cost = np.asarray(self.loss(y, said).value) * (weights if len(weights) else 1.0)
        loss = np.where(said != events.prediction, cost, events.loss)
        paid = float(np.cumsum([state.paid, *loss])[-1])  # one addition an event: any split gives the same bits
        after = ClipState(state.inner, paid, float(lows[-1]), float(highs[-1]))
        return after, replace(events, prediction=said, loss=loss)

    def foresee(self, state: ClipState, X: Any) -> Events:
        events = self.inner.foresee(state.inner, X)
        return replace(events, prediction=_between(events.prediction, state.low, state.high))

    def live(self, state: ClipState) -> Live:
        return ClipLive(self, state) if type(self) is Clip else super().live(state)

    def widen(self, state: ClipState, dim: int) -> ClipState:
        return replace(state, inner=self.inner.widen(state.inner, dim))

    def merge(self, states: Sequence[ClipState], start: ClipState | None = None) -> ClipState:
        """The range of all labels; what shards have paid adds up."""
        again = 0.0 if start is None else (len(states) - 1) * start.paid
        paid = sum(state.paid for state in states) - again
        low, high = min(state.low for state in states), max(state.high for state in states)
        return ClipState(merge_inner(self.inner, states, start), paid, low, high)

    def describe(self, state: ClipState) -> Described:
        ends = [state.low, state.high] if state.low <= state.high else None
        return Described({"paid": state.paid, "labels": ends}, parts={"inner": (self.inner, state.inner)})

    def restore(self, stored: Stored) -> ClipState:
        ends, paid = stored.facts["labels"], stored.facts["paid"]
        numbers = [paid, *(ends if isinstance(ends, list) else [])]
        if not all(isinstance(one, int | float) and math.isfinite(one) for one in numbers) or len(numbers) not in (1, 3):
            raise CheckpointError(f"its labels lie between {ends!r}, and {paid!r} was paid: needs two numbers, and one")
        return ClipState(stored.part("inner", self.inner), *map(float, numbers))


class ClipLive(Live):
    """The live state of the learner inside, and the range: short enough to be a new value each time."""

    def __init__(self, learner: Clip, state: ClipState) -> None:
        self._learner, self._state, self._inner = learner, state, learner.inner.live(state.inner)
        self._label = np.empty(1)

    @property
    def state(self) -> ClipState:
        return replace(self._state, inner=self._inner.state)

    def learn(self, row: Vector, label: float, again: bool = False) -> Events:
        said, self._label[0] = self._inner.learn(row, label, again), label
        self._state, said = self._learner._clipped(self._state, said, self._label, NO_WEIGHTS)
        return said

    def foresee(self, row: Vector, again: bool = False) -> Events:
        said = self._inner.foresee(row, again)
        return replace(said, prediction=_between(said.prediction, self._state.low, self._state.high))


def _between(prediction: Vector, low: Any, high: Any) -> Vector:
    """Where no label has come, low is +∞ and high −∞: nothing is clipped there."""
    return np.asarray(np.where(low <= high, np.clip(prediction, low, np.maximum(low, high)), prediction))
