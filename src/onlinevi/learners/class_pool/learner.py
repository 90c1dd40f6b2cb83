"""Learners of several classes, weighed by what they paid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners.base import BadRow, Learner
from onlinevi.learners.class_pool import mixing
from onlinevi.learners.class_pool.mixing import HEAD, LEAST
from onlinevi.learners.class_pool.state import ClassPoolState
from onlinevi.learners.described import FOREIGN, CheckpointError, Described, Stored, check_finite, whole
from onlinevi.learners.live import NO_WEIGHTS, Live
from onlinevi.learners.sharing import sharing
from onlinevi.learners.trace import Events, Forecast
from onlinevi.losses import Loss

BOLDNESS = (0.6, 1.0, 1.5, 2.2, 3.3)


@dataclass(frozen=True)
class ClassPool(Learner[ClassPoolState]):
    """Pools the probabilities of learners of several classes by Bayes' rule: at most ln N more log loss than the best of N.

    The learners are ``Softmax``, ``OneVsRest`` or anything around these, which know the same classes. Each is heard at several
    ``boldness``, P(c) ∝ p_c^β, as it may be too timid or too bold. N counts these too; (1.0,) hears it as it is.
    ``share`` deals out that part of all weight anew after each event, so that the best opinion may change
    (``state.switching_bound``).

    >>> import numpy as np, onlinevi as ovi
    >>> X = np.random.default_rng(0).standard_normal((300, 3))
    >>> leaves = [ovi.Softmax(3, ovi.MeanField(prior_std=std, box=None)) for std in (0.1, 1.0, 10.0)]
    >>> learner = ovi.ClassPool(leaves)
    >>> state, _ = learner.update_many(learner.init(3), X, X.argmax(axis=1))
    >>> bool(state.regret <= state.switching_bound(0)), state.weights.argmax().item()
    (True, 2)
    """

    learners: Sequence[Learner[Any]]
    share: float = 1e-4
    boldness: Sequence[float] = BOLDNESS

    def __post_init__(self) -> None:
        object.__setattr__(self, "learners", tuple(self.learners))
        object.__setattr__(self, "boldness", tuple(map(float, self.boldness)))
        if not self.learners or not all(getattr(learner, "several", False) for learner in self.learners):
            raise TypeError(f"learners={self.learners!r}: needs one learner of several classes or more, such as Softmax(3)")
        if any(learner.loss.odds is None for learner in self.learners):
            raise ValueError("some learner says no probabilities of classes, by which learners are pooled: use Logistic()")
        if not self.boldness or not all(0.0 < bold < math.inf for bold in self.boldness):
            raise ValueError(f"boldness={self.boldness!r}: needs numbers > 0, such as (0.5, 1.0, 2.0); (1.0,) changes nothing")
        if not 0.0 <= self.share < 1.0:
            raise ValueError(f"share={self.share!r}: needs 0 ≤ share < 1; try 0.001")

    @cached_property
    def _bold(self) -> Vector:
        return np.array(self.boldness)

    @property
    def loss(self) -> Loss:  # type: ignore[override]
        return self.learners[0].loss

    @property
    def inputs(self) -> Any:
        return self.learners[0].inputs

    @property
    def several(self) -> bool:
        return True

    @property
    def pooled(self) -> bool:
        return True

    def init(self, dim: int, horizon: int | None = None, *, sparse: bool = False) -> ClassPoolState:
        states = tuple(learner.init(dim, horizon, sparse=sparse) for learner in self.learners)
        return ClassPoolState(states, self._start(), self)

    def _start(self) -> Vector:
        """The packed numbers before the first event."""
        number = len(self.learners) * len(self.boldness)
        return np.concatenate([np.zeros(HEAD + number), np.full(number, 1.0 / number)])

    def fitting(self, state: ClassPoolState, dim: int) -> ClassPoolState:
        pairs = zip(self.learners, state.learners, strict=True)
        states = tuple(learner.fitting(own, dim) for learner, own in pairs)
        same = all(new is old for new, old in zip(states, state.learners, strict=True))
        return state if same else ClassPoolState(states, state.array, self, state.shards)

    def play(self, state: ClassPoolState, X: Any, y: Vector, weights: Vector) -> tuple[ClassPoolState, Events]:
        with sharing():
            played = [learner.play(own, X, y, weights) for learner, own in zip(self.learners, state.learners, strict=True)]
        array = np.array(state.array)
        events = self._mixed(array, [events for _, events in played], y, weights)
        return ClassPoolState(tuple(own for own, _ in played), array, self, state.shards), events

    def _mixed(self, array: Vector, told: Sequence[Events], y: Any, weights: Vector) -> Events:
        """What all said together, and the array with what it cost."""
        tables, costs = self._tables(told), np.array([events.loss for events in told])
        if len(weights):  # what each row costs once
            for learner, cost in zip(self.learners, costs, strict=True):
                cost /= 1.0 if learner.counts_once else weights
        said, paid = np.empty(tables.shape[1:]), np.empty(len(costs[0]))
        before = array[mixing.LOSS]
        room, codes = np.empty(len(self.learners) * len(self.boldness)), np.array(y, dtype=np.int64)
        mixing.mix_rows(tables, costs, codes, np.array(weights), self._bold, array, self.share, room, said, paid)
        if not math.isfinite(array[mixing.LOSS] - before):
            raise BadRow(int(np.argmin(np.isfinite(paid))), "no learner of the pool says what it costs: drop the row")
        return _as_events(said, told, paid * weights if len(weights) else paid)

    def _tables(self, told: Sequence[Events]) -> Vector:
        """The probabilities of all learners, of as many classes as any knows."""
        each = [learner.said(events).probability for learner, events in zip(self.learners, told, strict=True)]
        tables = np.zeros((len(each), len(each[0]), max(table.shape[1] for table in each)))
        for table, own in zip(tables, each, strict=True):
            table[:, : own.shape[1]] = own
        return tables

    def foresee(self, state: ClassPoolState, X: Any) -> Events:
        with sharing():
            told = [learner.foresee(own, X) for learner, own in zip(self.learners, state.learners, strict=True)]
        return self._foretold(state.array, told)

    def _foretold(self, array: Vector, told: Sequence[Events]) -> Events:
        tables = self._tables(told)
        said = np.empty(tables.shape[1:])
        mixing.look_rows(tables, self._bold, np.array(array), said)
        return _as_events(said, told, np.full(len(said), np.nan))

    def look(self, state: ClassPoolState, X: Any, y: Vector) -> Events:
        state = self.fitting(state, X.shape[-1])
        told = [learner.look(own, X, y) for learner, own in zip(self.learners, state.learners, strict=True)]
        tables, codes = self._tables(told), np.asarray(y, dtype=np.int64)
        tables = np.pad(tables, ((0, 0), (0, 0), (0, max(0, int(codes.max(initial=0)) + 1 - tables.shape[2]))))
        costs, paid = np.stack([events.loss for events in told]), np.empty(len(codes))
        room, said = np.empty(len(self.learners) * len(self.boldness)), np.empty(tables.shape[1:])
        for row in range(len(codes)):  # nothing is learned: each begins from the same weights
            one = slice(row, row + 1)
            arrays = tables[:, one], costs[:, one], codes[one], NO_WEIGHTS, self._bold, np.array(state.array), self.share
            mixing.mix_rows(*map(np.ascontiguousarray, arrays[:6]), arrays[6], room, said[one], paid[one])
        return self._foretold(state.array, told).paying(paid)

    def said(self, events: Events) -> Forecast:
        return Forecast(events.prediction, None, None, None, np.exp(events.prediction), None, None)

    def contributions(self, state: ClassPoolState, X: Any) -> Any:
        said = [one.contributions(own, X) for one, own in zip(self.learners, state.learners, strict=True)]
        found = []
        for each in zip(*said, strict=True):
            first, *others = [weight * one for weight, one in zip(state.weights.tolist(), each, strict=True)]
            found.append(sum(others, first))
        return found

    def live(self, state: ClassPoolState) -> Live:
        return ClassPoolLive(self, state)

    def widen(self, state: ClassPoolState, dim: int) -> ClassPoolState:
        pairs = zip(self.learners, state.learners, strict=True)
        return ClassPoolState(tuple(learner.widen(own, dim) for learner, own in pairs), state.array, self, state.shards)

    def as_widened(self, state: ClassPoolState) -> ClassPool:
        pairs = zip(self.learners, state.learners, strict=True)
        return replace(self, learners=tuple(learner.as_widened(own) for learner, own in pairs))

    def merge(self, states: Sequence[ClassPoolState], start: ClassPoolState | None = None) -> ClassPoolState:
        """Each learner's states merged, what each has lost added up: weights are prior·Π (shard's weights / prior)."""
        learners = tuple(
            learner.merge([state.learners[k] for state in states], *(() if start is None else (start.learners[k],)))
            for k, learner in enumerate(self.learners)
        )
        before, number = self._start() if start is None else start.array, len(self.learners) * len(self.boldness)
        array = before + sum(state.array - before for state in states)
        with np.errstate(divide="ignore"):  # of a learner that some shard has given up
            first, *logs = (np.log(one[HEAD + number :]) for one in (before, *(state.array for state in states)))
        gathered = first + sum(log - first for log in logs)
        weights = np.exp(gathered - gathered.max())
        array[HEAD + number :] = weights / weights.sum()
        return ClassPoolState(learners, array, self, sum(state.shards for state in states))

    def describe(self, state: ClassPoolState) -> Described:
        if state.plan != self:
            raise CheckpointError(FOREIGN)
        check_finite(state.array, "weights")
        parts = {f"learners/{k}": pair for k, pair in enumerate(zip(self.learners, state.learners, strict=True))}
        return Described({"shards": state.shards}, {"numbers": state.array}, parts)

    def restore(self, stored: Stored) -> ClassPoolState:
        states = tuple(stored.part(f"learners/{k}", one) for k, one in enumerate(self.learners))
        array = self._start()
        stored.fill("numbers", array)
        check_finite(array, "weights")
        weights = array[HEAD + len(states) * len(self.boldness) :]
        if len({own.count for own in states} | {int(array[0])}) > 1 or (weights < 0.0).any() or not weights.sum() > 0.0:
            raise CheckpointError("its learners have not seen the same rows, or its weights are none")
        return ClassPoolState(states, array, self, whole(stored.facts["shards"], "number of shards"))


class ClassPoolLive(Live):
    """The live states of all learners, and the numbers of the pool."""

    def __init__(self, learner: ClassPool, state: ClassPoolState) -> None:
        self._learner, self._given, self._array = learner, state, np.array(state.array)
        self._each = [one.live(own) for one, own in zip(learner.learners, state.learners, strict=True)]

    @property
    def state(self) -> ClassPoolState:
        states = tuple(live.state for live in self._each)
        return ClassPoolState(states, self._array.copy(), self._learner, self._given.shards)

    def learn(self, row: Vector, label: float, again: bool = False) -> Events:
        said = [live.learn(row, label, again) for live in self._each]
        return self._learner._mixed(self._array, said, [label], NO_WEIGHTS)

    def foresee(self, row: Vector, again: bool = False) -> Events:
        return self._learner._foretold(self._array, [live.foresee(row, again) for live in self._each])


def _as_events(said: Vector, told: Sequence[Events], loss: Vector) -> Events:
    """Pooled probabilities as log-probabilities, −∞ for a class that nobody knows yet."""
    # What is certain may round to more than 1.
    logs, unknown = np.log(np.clip(said, LEAST, 1.0)), said == 0.0
    if unknown.any():
        for events in told:
            unknown[:, : events.prediction.shape[1]] &= events.prediction == -np.inf
        logs[unknown] = -np.inf
    return Events(logs, None, loss)
