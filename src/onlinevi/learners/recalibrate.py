"""Probabilities that turn out right: what a learner says of two classes is bent by what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from onlinevi.beliefs import FullCovariance
from onlinevi.engine import Vector
from onlinevi.learners.base import Combinator, Deciding, merge_inner
from onlinevi.learners.described import FOREIGN, CheckpointError, Described, Stored
from onlinevi.learners.expand import Splines
from onlinevi.learners.linear import Linear
from onlinevi.learners.live import Live
from onlinevi.learners.pool import Pool, PoolState
from onlinevi.learners.trace import Events
from onlinevi.losses import Loss
from onlinevi.rules import Implicit

STILL = 1e-9
"""The prior std of a learner that says the score as it is: it cannot move."""


@dataclass(frozen=True, eq=False, repr=False)
class RecalibrateState(Deciding):
    """What was learned of the rows, and of the scores that it led to."""

    inner: Any
    second: PoolState
    """Of the curve: two learners, the score as it is and the score bent."""

    @property
    def loss(self) -> float:
        return self.second.loss

    @property
    def average_loss(self) -> float:
        return self.second.average_loss

    @property
    def plan(self) -> Any:
        """What is fixed about the run of the pool inside."""
        return self.inner.plan

    @property
    def learners(self) -> tuple[Any, ...]:
        """The states of the learners of the pool inside: with ``loss``, what certificates are made of."""
        found: tuple[Any, ...] = self.inner.learners
        return found

    @property
    def weights(self) -> Vector:
        """Of the learners of the pool inside."""
        return np.asarray(self.inner.weights)


@dataclass(frozen=True)
class Recalibrate(Combinator[RecalibrateState]):
    """Bends the score of a pool of probabilities along a curve that is learned from what came of them.

    The curve is a spline, a logistic regression of its own, and starts as the score itself, from which weights of this
    ``prior_std`` may lead away. The score as it is stays beside it, and Bayes' rule weighs both: with a share of s, T events
    cost at most ln 2 − T·ln(1 − s/2) more than without.

    >>> import numpy as np, onlinevi as ovi
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((4000, 1))
    >>> y = np.where(rng.random(4000) < 0.5 + 0.4 * np.tanh(4.0 * X[:, 0]), 1.0, -1.0)  # never surer than 0.9
    >>> leaf = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.FullCovariance(box=None))
    >>> pool = ovi.Pool([leaf], rate=1.0, share=1e-4, pool="probability")
    >>> for learner in (pool, ovi.Recalibrate(pool)):
    ...     print(f"{learner.update_many(learner.init(1), X, y)[0].average_loss:.2f}")
    0.44
    0.41
    """

    inner: Pool
    prior_std: float = 0.3
    discount: float = 0.9995
    share: float = 1e-4

    map: ClassVar[Splines] = Splines(knots=6, reach=6.0)

    def __post_init__(self) -> None:
        if not getattr(self.inner, "settled", False):
            raise ValueError(f"{self.inner!r}: needs a pool of probabilities, Pool(…, pool='probability')")
        _ = self.second

    @cached_property
    def second(self) -> Pool:
        """The two learners on features of the score."""
        width = 2 + len(self.map.since(1, 1))
        means = (0.0, 1.0, *[0.0] * (width - 2))
        leaves = [
            Linear(self.loss, Implicit(), FullCovariance(means, std, box=None), average=False, discount=discount)
            for std, discount in ((STILL, 1.0), (self.prior_std, self.discount))
        ]
        return Pool(leaves, rate=1.0, share=self.share, pool="probability")

    @property
    def loss(self) -> Loss:  # type: ignore[override]
        return self.inner.shared_loss

    @property
    def pooled(self) -> bool:
        return True

    def init(self, dim: int, horizon: int | None = None, *, sparse: bool = False) -> RecalibrateState:
        second = self.second
        width = len(second.learners[0].belief_family.prior_mean)  # type: ignore[attr-defined]
        return RecalibrateState(self.inner.init(dim, horizon, sparse=sparse), second.init(width))

    def _features(self, scores: Vector) -> Vector:
        """The intercept, the score, and splines of it."""
        bumps = self.map.features(scores[:, None], 1)
        found = np.empty((len(scores), 2 + bumps.shape[1]))
        found[:, 0], found[:, 1], found[:, 2:] = 1.0, scores, bumps
        return found

    def play(self, state: RecalibrateState, X: Any, y: Vector, weights: Vector) -> tuple[RecalibrateState, Events]:
        inner, said = self.inner.play(state.inner, X, y, weights)
        second, bent = self.second.play(state.second, self._features(said.prediction), y, weights)
        return RecalibrateState(inner, second), replace(said, prediction=bent.prediction, loss=bent.loss)

    def foresee(self, state: RecalibrateState, X: Any) -> Events:
        said = self.inner.foresee(state.inner, X)
        bent = self.second.foresee(state.second, self._features(said.prediction))
        return replace(said, prediction=bent.prediction)

    def live(self, state: RecalibrateState) -> Live:
        return RecalibrateLive(self, state) if type(self) is Recalibrate else super().live(state)

    def widen(self, state: RecalibrateState, dim: int) -> RecalibrateState:
        return replace(state, inner=self.inner.widen(state.inner, dim))

    def merge(self, states: Sequence[RecalibrateState], start: RecalibrateState | None = None) -> RecalibrateState:
        seconds = [state.second for state in states]
        second = self.second.merge(seconds, *(() if start is None else (start.second,)))
        return RecalibrateState(merge_inner(self.inner, states, start), second)

    def describe(self, state: RecalibrateState) -> Described:
        return Described({}, parts={"inner": (self.inner, state.inner), "second": (self.second, state.second)})

    def restore(self, stored: Stored) -> RecalibrateState:
        state = RecalibrateState(stored.part("inner", self.inner), stored.part("second", self.second))
        if state.second.count != state.inner.count:
            raise CheckpointError(FOREIGN)
        return state


class RecalibrateLive(Live):
    """The live states of the pool inside and of the curve."""

    def __init__(self, learner: Recalibrate, state: RecalibrateState) -> None:
        self._learner, self._inner = learner, learner.inner.live(state.inner)
        self._second = learner.second.live(state.second)

    @property
    def state(self) -> RecalibrateState:
        return RecalibrateState(self._inner.state, self._second.state)

    def learn(self, row: Vector, label: float, again: bool = False) -> Events:
        said = self._inner.learn(row, label, again)
        bent = self._second.learn(self._learner._features(said.prediction), label)
        return replace(said, prediction=bent.prediction, loss=bent.loss)

    def foresee(self, row: Vector, again: bool = False) -> Events:
        said = self._inner.foresee(row, again)
        bent = self._second.foresee(self._learner._features(said.prediction))
        return replace(said, prediction=bent.prediction)
