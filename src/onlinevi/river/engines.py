"""What learns behind an estimator: one learner a class, or the recommended default, changed in place as features join."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from onlinevi import linear
from onlinevi.auto import Auto, AutoState
from onlinevi.inputs import Inputs, InputState
from onlinevi.inputs.passes import HEAD, KIND, compiled
from onlinevi.inputs.state import CENTRED
from onlinevi.learner import BadRow, Linear, reason
from onlinevi.losses import Logistic, Poisson
from onlinevi.river.columns import NEW, Columns
from onlinevi.river.foresight import foresee
from onlinevi.state import State
from onlinevi.types import Vector

LARGEST_EXPONENT = 700.0
NO_WEIGHTS = np.empty(0)
NOTHING = -1
"""In place of the number of a row that was read."""


class Engine(Protocol):
    """Several learners that see the same rows with labels of their own."""

    @property
    def count(self) -> int:
        """How many events it has learned from."""

    @property
    def scales(self) -> InputState:
        """The moments of the columns, as a value."""

    @property
    def states(self) -> list[Any]:
        """What the learners know, as values."""

    def widen(self, added: Sequence[int], *, zeros: bool) -> None:
        """Further columns at the end, each of a category whose older column is given, or of its own."""

    def branch(self) -> None:
        """One more learner at the end, who knows what the last one does."""

    def probabilities(self, row: Columns) -> list[float]:
        """P(+1) of each learner."""

    def mean(self, row: Columns) -> float:
        """The first learner's mean of the label."""

    def learn(self, row: Columns, labels: Sequence[Vector]) -> None:
        """Learn one event, a label a learner: all of them, or none."""


def widened(scales: InputState, added: Sequence[int], *, zeros: bool) -> InputState:
    """The moments with further columns: never seen, or 0 wherever their category was seen, or 0 at all times."""
    old = scales.dim
    array = np.array(scales.widened(old + len(added)).array)
    lag = array[HEAD : HEAD + old + len(added)]
    for place, like in enumerate(added, start=old):
        if zeros:
            lag[place] = 0.0
        elif like != NEW:
            lag[place] = lag[like]
    return InputState(array)


class LinearEngine:
    """Learners of one kind, whose states lie in one matrix that compiled code changes in place."""

    def __init__(self, learner: Linear, inputs: Inputs, dim: int) -> None:
        start = learner.init(inputs.dim_out(dim))
        self._inputs, self._plan = inputs, start.plan
        self._scales, self._states = np.array(InputState.start(dim).array), np.array(start.array)[np.newaxis]
        self._scales[KIND] = CENTRED
        self._make_room()

    def _make_room(self) -> None:
        """What an event needs at hand: compiled passes, views, and places to write to."""
        plan = self._plan
        self._prepare, self._play = compiled(False), plan.dense_kernel
        self._foresee = linear.kernel(*plan.kinds, plan.features, loop=foresee)
        self._rows, self._next_scales = list(self._states), np.empty_like(self._scales)
        self._prepared, self._foreseen = np.empty((1, plan.dim)), np.empty((len(self._states), 3))
        self._to_foresee = self._prepared, self._states, plan.sizes, plan.parameters, self._foreseen
        self._to_play = plan.sizes, plan.settings, plan.frame, plan.parameters, np.empty((0, 3))
        self._number = NOTHING

    @property
    def count(self) -> int:
        return int(self._states[0, linear.COUNT])

    @property
    def scales(self) -> InputState:
        return InputState(self._scales.copy())

    @property
    def states(self) -> list[State]:
        return [State(array.copy(), self._plan) for array in self._states]

    def widen(self, added: Sequence[int], *, zeros: bool) -> None:
        scales = widened(self.scales, added, zeros=zeros)
        wide = [state.widened(self._inputs.dim_out(scales.dim)) for state in self.states]
        self._plan, self._states = wide[0].plan, np.stack([state.array for state in wide])
        self._scales = np.array(scales.array)
        self._make_room()

    def branch(self) -> None:
        self._states = np.concatenate([self._states, self._states[-1:]])
        self._make_room()

    def probabilities(self, row: Columns) -> list[float]:
        foreseen, loss = self._predict(row), self._plan.loss
        if isinstance(loss, Logistic):
            return [slope for _, _, slope in foreseen]
        return [float(loss.probability(prediction, spread)) for prediction, spread, _ in foreseen]

    def mean(self, row: Columns) -> float:
        prediction, spread, _ = self._predict(row)[0]
        if isinstance(self._plan.loss, Poisson):
            return math.exp(min(prediction + 0.5 * spread * spread, LARGEST_EXPONENT))
        return prediction

    def _predict(self, row: Columns) -> list[list[float]]:
        if self._number != row.number:
            self._read(row)
        if not self._foresee(*self._to_foresee):
            raise BadRow(self.count, "the prediction is not finite: the values are too large to square")
        return self._foreseen.tolist()

    def _read(self, row: Columns) -> None:
        """Prepare the row; the scales after it lie beside those before it until it is learned."""
        self._number = NOTHING
        if self._prepare(row.values, self._next_scales, self._scales, self._inputs.settings, self._prepared) != 1:
            raise BadRow(self.count, "a value is infinite or too large to square")
        if len(row.absent):
            # Beside a mean of 0, what is absent adds nothing to the prediction and moves no weight.
            self._prepared[0, row.absent + int(self._inputs.intercept)] = 0.0
        self._number = row.number

    def learn(self, row: Columns, labels: Sequence[Vector]) -> None:
        if self._number != row.number:  # else it has just been predicted
            self._read(row)
        before = self._states.tobytes()
        for state, label in zip(self._rows, labels, strict=True):
            if self._play(self._prepared, label, NO_WEIGHTS, state, *self._to_play) != 1:
                self._states.flat[:] = np.frombuffer(before)
                raise BadRow(self.count, reason(self._plan, self._prepared[0], float(label[0]), 1.0))
        self._scales, self._next_scales = self._next_scales, self._scales
        self._number = NOTHING

    def __getstate__(self) -> dict[str, Any]:  # room is made anew
        return {name: getattr(self, name) for name in ("_inputs", "_plan", "_scales", "_states")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_room()


class AutoEngine:
    """The recommended default, once for each class: states are values here, and a pool of learners takes its time."""

    def __init__(self, learner: Auto, dim: int) -> None:
        self._learner = learner
        self.states: list[AutoState] = [learner.init(dim)]

    @property
    def count(self) -> int:
        return self.states[0].count

    @property
    def scales(self) -> InputState:
        return self.states[0].inputs

    def widen(self, added: Sequence[int], *, zeros: bool) -> None:
        scales = widened(self.scales, added, zeros=zeros)
        self.states = [replace(self._learner.widen(state, scales.dim), inputs=scales) for state in self.states]

    def branch(self) -> None:
        self.states = [*self.states, self.states[-1]]

    def probabilities(self, row: Columns) -> list[float]:
        return [self._learner.forecast(state, row.values[0]).probability for state in self.states]

    def mean(self, row: Columns) -> float:
        return float(self._learner.forecast(self.states[0], row.values[0]).mean)

    def learn(self, row: Columns, labels: Sequence[Vector]) -> None:
        pairs = zip(self.states, labels, strict=True)
        self.states = [self._learner.update(state, row.values[0], float(label[0]))[0] for state, label in pairs]
