"""One learner for several classes: a state a class, each against the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners.choice import Learner, begin
from onlinevi.learners.default.learner import Auto
from onlinevi.learners.inputs.inputs import Inputs
from onlinevi.learners.inputs.state import InputState
from onlinevi.learners.linear import BadRow
from onlinevi.learners.one_vs_rest import coupling
from onlinevi.learners.one_vs_rest.outcome import Block, ClassesState, ClassForecast, ClassTrace
from onlinevi.losses import Logistic, Loss


@dataclass(frozen=True)
class Classes:
    """Labels 0, 1, 2 … of ``known`` classes; where it ``grows``, others join at their first event.

    A class that joins is as if it had been known from the start: one state more has learned "no" at every event, and the class
    begins as a copy of it. Its first event cannot have been guessed, and costs what it would if the name had been known.

    >>> import numpy as np
    >>> from onlinevi.learners import Classes
    >>> from onlinevi.losses import Logistic
    >>> from onlinevi.learners import choose
    >>> X = np.random.default_rng(0).standard_normal((300, 3))
    >>> learner = Classes(choose(Logistic(), "ngvi", None, None), known=3)
    >>> state, trace = learner.update_many(learner.init(3), X, X.argmax(axis=1))
    >>> learner.forecast(state, np.eye(3)).guess.tolist(), bool(trace.loss[-100:].mean() < 0.5)
    ([0, 1, 2], True)
    """

    learner: Learner
    known: int
    grows: bool = True

    def __post_init__(self) -> None:
        if self.known < 2:
            raise ValueError(f"known={self.known}: needs at least two classes")

    @property
    def loss(self) -> Loss:
        """Of each class against the rest."""
        return self.learner.loss

    @property
    def inputs(self) -> Inputs:
        return self.learner.inputs

    def init(self, dim: int, *, sparse: bool = False, moments: InputState | None = None) -> ClassesState:
        """The state before the first event; ``moments`` are those of another run, for inputs that are fixed."""
        first = begin(self.learner, dim, sparse=sparse, moments=moments)
        return ClassesState((first,) * self.known, first if self.grows else None, coupling.start())

    def widen(self, state: ClassesState, dim: int) -> ClassesState:
        """The state for rows with further columns at the end, ``dim`` in all."""
        own: Any = self.learner
        later = None if state.later is None else own.widen(state.later, dim)
        return replace(state, each=tuple(own.widen(each, dim) for each in state.each), later=later)

    def update_many(
        self, state: ClassesState, X: Any, y: Any, *, weights: Vector | None = None
    ) -> tuple[ClassesState, ClassTrace]:
        """Learn from a block of rows, all of weights > 0, in order; the same bits as one event at a time."""
        codes = self._codes(state, y)
        highest = np.maximum.accumulate(np.concatenate([[len(state.each) - 1], codes]))
        joining = np.flatnonzero(np.diff(highest))
        blocks = []
        for start, stop in pairwise([0, *joining[joining > 0].tolist(), len(codes)]):
            rows, own = slice(start, stop), None if weights is None else weights[start:stop]
            try:
                state, block = self._play(state, X[rows], codes[rows], own)
            except BadRow as bad:
                raise BadRow(start + bad.row, bad.reason) from None
            blocks.append(block)
        return state, ClassTrace(blocks)

    def forecast(self, state: ClassesState, X: Any) -> ClassForecast:
        """What is known of the label at each row of a matrix. Changes nothing."""
        return ClassForecast.of(self._foreseen(state.each, X), state.coupled if self._has_odds else None)

    def look(self, state: ClassesState, X: Any, y: Any) -> ClassTrace:
        """What is said of rows whose labels come later, and what it will have cost. Changes nothing."""
        codes, known = self._codes(state, y), len(state.each)
        scores = self._foreseen(state.each if state.later is None else (*state.each, state.later), X)
        blocks = []
        for row, code in enumerate(codes.tolist()):
            # A class that has yet to join is the one behind those known.
            own, place = scores[row : row + 1, : max(known, min(code, known) + 1)], np.array([min(code, known)])
            weighed = self._weighed(state, own, place, None)
            pairs = zip(_signs(place, own.shape[1]), own.T, strict=True) if weighed is None else ()
            losses = [np.asarray(self.loss(signs, said).value) for signs, said in pairs]
            blocks.append(Block(known, own, weighed, losses))
        return ClassTrace(blocks)

    @property
    def _has_odds(self) -> bool:
        return isinstance(self.loss, Logistic)

    def _codes(self, state: ClassesState, y: Any) -> Any:
        labels = np.asarray(y, dtype=float)
        codes = labels.astype(np.int64)
        if not (codes == labels).all() or (codes < 0).any():
            raise ValueError("y has a label that is no class: needs their numbers, 0, 1, 2, …")
        if state.later is None and (codes >= len(state.each)).any():
            raise ValueError(f"y has class {codes.max()}: there are {len(state.each)}, and none can join; set grows=True")
        return codes

    def _play(self, state: ClassesState, X: Any, codes: Any, weights: Vector | None) -> tuple[ClassesState, Block]:
        """Rows of which only the first may be of a class that has yet to join."""
        known = len(state.each)
        joining = [state.later] * max(0, codes[0] + 1 - known) if len(codes) else []
        each, learner = (*state.each, *joining), self.learner
        played = [
            learner.update_many(own, X, signs, weights=weights, record="all")
            for own, signs in zip(each, _signs(codes, len(each)), strict=True)
        ]
        later: Any = state.later
        if later is not None:
            later, _ = learner.update_many(later, X, np.full(len(codes), -1.0), weights=weights, record="none")
        scores = np.column_stack([self._scores(trace) for _, trace in played])
        weighed = self._weighed(state, scores, codes, weights)
        coupled = state.coupled if weighed is None else weighed.after
        after = ClassesState(tuple(own for own, _ in played), later, coupled)
        return after, Block(known, scores, weighed, [trace.loss for _, trace in played])

    def _scores(self, trace: Any) -> Vector:
        """What was said of each row: the default's predictions are log-odds already."""
        own = self.learner
        scores: Vector = trace.prediction if isinstance(own, Auto) else own.scores(trace.prediction, trace.spread)
        return scores

    def _foreseen(self, each: Sequence[Any], X: Any) -> Vector:
        own: Any = self.learner
        return np.column_stack([own.forecast(state, X).prediction for state in each])

    def _weighed(self, state: ClassesState, scores: Vector, codes: Any, weights: Vector | None) -> coupling.Weighed | None:
        return coupling.weigh(state.coupled, scores, codes, weights) if self._has_odds else None


AnyLearner: TypeAlias = Learner | Classes
"""What a run of a file may be learned by."""


def _signs(codes: Any, number: int) -> list[Vector]:
    """The labels of each class against the rest."""
    return [np.where(codes == own, 1.0, -1.0) for own in range(number)]
