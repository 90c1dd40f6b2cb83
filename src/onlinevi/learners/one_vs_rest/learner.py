"""Several classes: a state for each of them, against the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners.base import BadRow, Learner, Wrapped
from onlinevi.learners.class_codes import class_codes, firsts
from onlinevi.learners.described import (
    FOREIGN,
    CheckpointError,
    Described,
    Stored,
    check_finite,
    numbers_of,
    put_numbers,
)
from onlinevi.learners.live import NO_WEIGHTS, Live
from onlinevi.learners.one_vs_rest import coupling
from onlinevi.learners.sharing import sharing
from onlinevi.learners.trace import Events, Forecast
from onlinevi.losses import Loss

OPINIONS = ("", " first", " both")
TOTALS = [f"{boldness}{whose}" for whose in OPINIONS for boldness in coupling.BOLDNESS]
"""What a file calls the totals of the coupling; there are seven where there is one opinion."""


@dataclass(frozen=True, eq=False, repr=False)
class OneVsRestState(Wrapped):
    """The state of each class against the rest, and what the labels have told of their coupling."""

    each: tuple[Any, ...]
    later: Any
    """What has learned "no" at every event: a class that joins starts as a copy of it. None where no class can join."""
    coupled: Vector
    """The total log-loss of each boldness, under each opinion (``coupling.py``)."""
    seen: tuple[bool, ...]
    """Which classes have come: only these have a part in the totals."""
    paid: float = 0.0
    """Σ −log of the probability said of each label; without probabilities, of the losses of all classes."""

    @property
    def inner(self) -> Any:
        """The state of one class, or of those to come: all see the same rows."""
        return self.all[0]

    @property
    def all(self) -> tuple[Any, ...]:
        """The states of all classes, and of those to come."""
        return self.each if self.later is None else (*self.each, self.later)

    @property
    def loss(self) -> float:
        return self.paid

    @property
    def average_loss(self) -> float:
        return self.loss / self.count if self.count else float("nan")

    @property
    def mean(self) -> Vector:
        """The mean of the weights of the prepared features, a row a class."""
        return np.stack([own.mean for own in self.each])

    def std_in(self, noise: float) -> Vector:
        return np.stack([own.std_in(noise) for own in self.each])

    def codes(self, y: Any) -> Any:
        """The numbers of these labels' classes, refused where there is no such class, and none can join."""
        return class_codes(y, len(self.each), grows=self.later is not None)

    @property
    def come(self) -> set[int]:
        """The numbers of the classes that have come."""
        return {code for code, seen in enumerate(self.seen) if seen}

    def joined_by(self, code: int) -> OneVsRestState:
        """The state when a row of this class comes: the class, and those of lower numbers, are known from now on."""
        if code < len(self.seen) and self.seen[code]:
            return self
        new = max(0, code + 1 - len(self.each))
        seen = [*self.seen, *[False] * new]
        seen[code] = True
        return replace(self, each=(*self.each, *[self.later] * new), seen=tuple(seen))

    def widened(self, dim: int) -> OneVsRestState:
        """For rows with further columns at the end: every class widened."""
        later = None if self.later is None else self.later.widened(dim)
        return replace(self, each=tuple(own.widened(dim) for own in self.each), later=later)

    def with_inputs(self, inputs: Any) -> OneVsRestState:
        each = tuple(own.with_inputs(inputs) for own in self.each)
        return replace(self, each=each, later=None if self.later is None else self.later.with_inputs(inputs))

    def by_class(self) -> tuple[Any, ...]:
        return self.each

    def deciders(self) -> tuple[Any, ...]:
        return tuple(decider for own in self.each for decider in own.deciders())

    def __repr__(self) -> str:
        return f"OneVsRestState(count={self.count}, classes={len(self.each)})"


@dataclass(frozen=True)
class OneVsRest(Learner[OneVsRestState]):
    """Learns labels 0, 1, 2 … of ``known`` classes, each against the rest; where it ``grows``, others join as they come.

    A class that joins is as if it had been known from the start: one state more has learned "no" at every event, and the class
    begins as a copy of it. Its first event cannot have been guessed, and costs what it would if the name had been known.

    >>> import numpy as np, onlinevi as ovi
    >>> X = np.random.default_rng(0).standard_normal((300, 3))
    >>> learner = ovi.OneVsRest(ovi.Prepare(ovi.Inputs(), ovi.Linear(ovi.Logistic(), ovi.NGVI())), known=3)
    >>> state, trace = learner.update_many(learner.init(3), X, X.argmax(axis=1))
    >>> learner.forecast(state, np.eye(3)).guess.tolist(), bool(trace.loss[-100:].mean() < 0.5)
    ([0, 1, 2], True)
    """

    inner: Learner[Any]
    known: int
    grows: bool = True

    def __post_init__(self) -> None:
        if self.known < 2 and not (self.grows and self.known == 0):
            raise ValueError(f"known={self.known}: needs at least two classes, or none yet where it grows")
        if self.loss.target != "classes":
            raise ValueError(f"{self.loss} predicts {self.loss.target}, not classes: use Logistic() or Hinge()")

    @property
    def loss(self) -> Loss:  # type: ignore[override]
        """Of each class against the rest."""
        return self.inner.loss

    @property
    def inputs(self) -> Any:
        return self.inner.inputs

    @property
    def several(self) -> bool:
        return True

    @property
    def counts_once(self) -> bool:
        return self._has_odds

    @cached_property
    def _has_odds(self) -> bool:
        return self.loss.odds is not None

    def init(self, dim: int, horizon: int | None = None, *, sparse: bool = False) -> OneVsRestState:
        first = self.inner.init(dim, horizon, sparse=sparse)
        known, totals = self.known, coupling.start(_opinions(first))
        return OneVsRestState((first,) * known, first if self.grows else None, totals, (False,) * known)

    def widen(self, state: OneVsRestState, dim: int) -> OneVsRestState:
        later = None if state.later is None else self.inner.widen(state.later, dim)
        return replace(state, each=tuple(self.inner.widen(own, dim) for own in state.each), later=later)

    def as_widened(self, state: OneVsRestState) -> OneVsRest:
        return replace(self, inner=self.inner.as_widened(state.inner))

    def fitting(self, state: OneVsRestState, dim: int) -> OneVsRestState:
        fitting = tuple(self.inner.fitting(own, dim) for own in state.all)
        if all(new is old for new, old in zip(fitting, state.all, strict=True)):
            return state
        return replace(state, each=fitting[: len(state.each)], later=None if state.later is None else fitting[-1])

    def play(self, state: OneVsRestState, X: Any, y: Vector, weights: Vector) -> tuple[OneVsRestState, Events]:
        codes, blocks = state.codes(y), []
        for start, stop in pairwise([*firsts(codes, state.come), len(codes)]):
            rows = slice(start, stop)
            try:
                state, events = self._play(state, X[rows], codes[rows], weights[rows])
            except BadRow as bad:
                raise BadRow(start + bad.row, bad.reason) from None
            blocks.append(events)
        return state, Events.joined(blocks)

    def _play(self, state: OneVsRestState, X: Any, codes: Any, weights: Vector) -> tuple[OneVsRestState, Events]:
        """Rows of which only the first may be of a class that had not come before."""
        known = len(state.each)
        state = state.joined_by(int(codes[0])) if len(codes) else state
        signs, later = _signs(codes, len(state.each)), state.later
        with sharing():
            played = [self.inner.play(own, X, labels, weights) for own, labels in zip(state.each, signs, strict=True)]
            if later is not None:
                later, _ = self.inner.play(later, X, np.full(len(codes), -1.0), weights)
        after = replace(state, each=tuple(own for own, _ in played), later=later)
        return self._coupled(after, [events for _, events in played], codes, weights, known)

    def _coupled(
        self, state: OneVsRestState, said: Sequence[Events], codes: Any, weights: Vector, known: int
    ) -> tuple[OneVsRestState, Events]:
        """The state with what was paid, and what all said together, of whom so many were known before the first row."""
        scores, first = self._scores(said, len(codes), state)
        before, coupled = None, state.coupled
        if self._has_odds:
            told = coupling.opinions(scores, first)
            before, coupled, loss = coupling.weigh(coupled, told, codes, state.seen, weights if len(weights) else None)
        else:
            loss = sum((events.loss for events in said), np.zeros(len(codes)))
        paid = float(np.cumsum([state.paid, *loss])[-1])  # one addition an event: any split gives the same bits
        both = _hidden(scores, known), None if first is None else _hidden(first, known)
        return replace(state, coupled=coupled, paid=paid), self._events(*both, before, loss)

    def contributions(self, state: OneVsRestState, X: Any) -> Any:
        return [self.inner.contributions(own, X) for own in state.each]

    def foresee(self, state: OneVsRestState, X: Any) -> Events:
        with sharing():
            return self._foretold(state, [self.inner.foresee(own, X) for own in state.each], X.shape[0])

    def _foretold(self, state: OneVsRestState, said: Sequence[Events], count: int) -> Events:
        """What is said where the label of no row is known."""
        scores, first = self._scores(said, count, state)
        coupled = np.broadcast_to(state.coupled, (len(scores), len(state.coupled))) if self._has_odds else None
        return self._events(scores, first, coupled, np.full(len(scores), np.nan))

    def _events(self, scores: Vector, first: Vector | None, coupled: Vector | None, loss: Vector) -> Events:
        """Scores and how they are coupled; of several opinions what came of it: they may not agree on the likeliest class."""
        if first is None or coupled is None:
            return Events(scores, None, loss, coupled=coupled)
        return Events(coupling.decided(coupled, coupling.opinions(scores, first)), None, loss)

    def live(self, state: OneVsRestState) -> Live:
        return OneVsRestLive(self, state) if type(self) is OneVsRest else super().live(state)

    def said(self, events: Events) -> Forecast:
        probability = None
        if events.coupled is not None:
            probability = coupling.probabilities(events.coupled, events.prediction)
        elif self._has_odds and events.prediction.ndim == 2:
            with np.errstate(over="ignore"):  # of a class that is not known
                probability = 1.0 / (1.0 + np.exp(-events.prediction))
        return Forecast(events.prediction, None, None, None, probability, None, None)

    def look(self, state: OneVsRestState, X: Any, y: Vector) -> Events:
        state = self.fitting(state, X.shape[-1])
        codes, known, (scores, first) = state.codes(y), len(state.each), self._foreseen(state.all, X, state)
        blocks = []
        for row, code in enumerate(codes.tolist()):
            # A class that has yet to join is the one behind those known.
            place = min(code, known)
            part, places = (slice(row, row + 1), slice(max(known, place + 1))), np.array([place])
            own, other, coupled = scores[part], None if first is None else first[part], None
            if self._has_odds:
                told = coupling.opinions(own, other)
                coupled, _, loss = coupling.weigh(state.coupled, told, places, (True,) * own.shape[1])
            else:
                pairs = zip(_signs(places, own.shape[1]), own.T, strict=True)
                loss = sum((np.asarray(self.loss(signs, said).value) for signs, said in pairs), np.zeros(1))
            blocks.append(self._events(own[:, :known], None if other is None else other[:, :known], coupled, loss))
        return Events.joined(blocks)

    def merge(self, states: Sequence[OneVsRestState], start: OneVsRestState | None = None) -> OneVsRestState:
        most = max(len(state.each) for state in states)
        # A class that a shard has never met is what has learned "no" there.
        shards = [[*state.each, *[state.later] * (most + 1 - len(state.each))] for state in states]
        begun = () if start is None else ([*start.each, *[start.later] * (most + 1 - len(start.each))],)
        *each, later = (
            self.inner.merge(list(own), *(part[place] for part in begun)) if own[0] is not None else None
            for place, own in enumerate(zip(*shards, strict=True))
        )
        seen = tuple(any(place < len(state.seen) and state.seen[place] for state in states) for place in range(most))
        again = 0 if start is None else len(states) - 1
        paid = sum(state.paid for state in states) - (again * start.paid if start else 0.0)
        coupled = np.sum([state.coupled for state in states], axis=0) - (again * start.coupled if start else 0.0)
        return OneVsRestState(tuple(each), later, coupled, seen, paid)

    def describe(self, state: OneVsRestState) -> Described:
        self._check(state)
        check_finite(state.coupled, "coupling")
        parts = {f"classes/{k}": (self.inner, own) for k, own in enumerate(state.each)}
        if state.later is not None:
            parts["later"] = self.inner, state.later
        facts = {"classes": len(state.each), "seen": list(state.seen), "paid": state.paid}
        return Described(facts | {"coupled": numbers_of(state.coupled, _names(len(state.coupled)))}, parts=parts)

    def restore(self, stored: Stored) -> OneVsRestState:
        each = tuple(stored.part(f"classes/{k}", self.inner) for k in range(stored.facts["classes"]))
        later = stored.part("later", self.inner) if self.grows else None
        coupled = coupling.start(_opinions((*each, later)[0]))
        put_numbers(coupled, stored.facts["coupled"], _names(len(coupled)))
        seen, paid = tuple(bool(own) for own in stored.facts["seen"]), float(stored.facts["paid"])
        state = OneVsRestState(each, later, coupled, seen, paid)
        self._check(state)
        return state

    def _check(self, state: OneVsRestState) -> None:
        """All classes have seen the same rows, and there are as many as the learner may have."""
        number = len(state.each) >= self.known if self.grows else len(state.each) == self.known
        count = {own.count for own in state.all}
        if not (number and len(state.seen) == len(state.each) and (state.later is not None) == self.grows and len(count) == 1):
            raise CheckpointError(FOREIGN)

    def _foreseen(self, each: Sequence[Any], X: Any, state: OneVsRestState) -> tuple[Vector, Vector | None]:
        return self._scores([self.inner.foresee(own, X) for own in each], X.shape[0], state)

    def _scores(self, each: Sequence[Events], count: int, state: OneVsRestState) -> tuple[Vector, Vector | None]:
        """What is said of each class, a column each; and what the first learners of pools say by themselves."""
        scores = _columns([self.inner.score(events) for events in each], count)
        return scores, _columns([events.first for events in each], count) if _opinions(state.inner) > 1 else None


class OneVsRestLive(Live):
    """The live states of all classes, and of those to come; a class that joins has all of them begin anew."""

    def __init__(self, learner: OneVsRest, state: OneVsRestState) -> None:
        self._learner = learner
        self._put(state)

    def _put(self, state: OneVsRestState) -> None:
        inner = self._learner.inner
        self._state, self._each = state, [inner.live(own) for own in state.each]
        self._later = None if state.later is None else inner.live(state.later)

    @property
    def state(self) -> OneVsRestState:
        later = None if self._later is None else self._later.state
        return replace(self._state, each=tuple(live.state for live in self._each), later=later)

    def learn(self, row: Vector, label: float, again: bool = False) -> Events:
        codes, known = self._state.codes([label]), len(self._each)
        code = int(codes[0])
        if code >= known or not self._state.seen[code]:
            self._put(self.state.joined_by(code))
        said = [live.learn(row, 1.0 if own == code else -1.0, again) for own, live in enumerate(self._each)]
        if self._later is not None:
            self._later.learn(row, -1.0, again)
        self._state, events = self._learner._coupled(self._state, said, codes, NO_WEIGHTS, known)
        return events

    def foresee(self, row: Vector, again: bool = False) -> Events:
        return self._learner._foretold(self._state, [live.foresee(row, again) for live in self._each], 1)


def for_classes(learner: Learner[Any], number: int, *, grows: bool = True) -> Learner[Any]:
    """The learner that tells so many classes apart: itself, where there are two or it does so already, else one a class."""
    if number <= 2 or learner.several:
        return learner
    return OneVsRest(learner.among_many(), number, grows=grows)


def _opinions(state: Any) -> int:
    """How many opinions a state of one class has of each event."""
    return len(OPINIONS) if getattr(state, "has_first", False) else 1


def _names(totals: int) -> dict[str, int]:
    return {name: place for place, name in enumerate(TOTALS[:totals])}


def _columns(scores: Sequence[Any], count: int) -> Vector:
    """The scores of each class as a column; none where no class has come yet."""
    return np.column_stack(scores) if scores else np.empty((count, 0))


def _hidden(scores: Vector, known: int) -> Vector:
    """Scores as they could be said: of a class that joins at the first row nothing could, before that row."""
    if known == scores.shape[1]:
        return scores
    scores = scores.copy()
    scores[0, known:] = -np.inf
    return scores


def _signs(codes: Any, number: int) -> list[Vector]:
    """The labels of each class against the rest."""
    return [np.where(codes == own, 1.0, -1.0) for own in range(number)]
