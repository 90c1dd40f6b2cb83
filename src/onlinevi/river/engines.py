"""What learns behind an estimator: one learner a class, or the recommended default, changed in place as features join."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onlinevi import linear
from onlinevi.auto import Auto, AutoState
from onlinevi.inputs import Inputs, InputState
from onlinevi.inputs.passes import HEAD
from onlinevi.learner import BadRow, Linear, reason
from onlinevi.losses import Logistic, Poisson
from onlinevi.river import event
from onlinevi.river.columns import NEW
from onlinevi.state import State
from onlinevi.types import Vector

LARGEST_EXPONENT = 700.0


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

    def probabilities(self, values: Vector, absent: NDArray[np.int64]) -> list[float]:
        """P(+1) of each learner."""

    def mean(self, values: Vector, absent: NDArray[np.int64]) -> float:
        """The first learner's mean of the label."""

    def learn(self, values: Vector, absent: NDArray[np.int64], labels: Vector) -> None:
        """Learn one event, a label a learner."""


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
        self._inputs, self._scales = inputs, np.array(InputState.start(dim).array)
        start = learner.init(inputs.dim_out(dim))
        self._plan, self._states = start.plan, np.array(start.array)[np.newaxis]
        self._compile()

    def _compile(self) -> None:
        plan, scaling = self._plan, self._inputs.settings
        self._foresee, self._learn = (
            linear.kernel(*plan.kinds, plan.features, loop=loop) for loop in (event.foresee, event.learn)
        )
        self._foreseen = np.empty((len(self._states), 3))
        self._before = self._scales, scaling, self._states, plan.sizes
        self._fixed = plan.settings, plan.frame, plan.parameters

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
        self._scales = np.array(widened(self.scales, added, zeros=zeros).array)
        dim = self._inputs.dim_out(len(self._scales[HEAD:]) // 3)
        wide = [state.widened(dim) for state in self.states]
        self._plan, self._states = wide[0].plan, np.stack([state.array for state in wide])
        self._compile()

    def branch(self) -> None:
        self._states = np.concatenate([self._states, self._states[-1:]])
        self._compile()

    def probabilities(self, values: Vector, absent: NDArray[np.int64]) -> list[float]:
        foreseen, loss = self._predict(values, absent), self._plan.loss
        if isinstance(loss, Logistic):
            return [rise for _, _, rise in foreseen]
        return [float(loss.probability(prediction, spread)) for prediction, spread, _ in foreseen]

    def mean(self, values: Vector, absent: NDArray[np.int64]) -> float:
        prediction, spread, _ = self._predict(values, absent)[0]
        if isinstance(self._plan.loss, Poisson):
            return math.exp(min(prediction + 0.5 * spread * spread, LARGEST_EXPONENT))
        return prediction

    def _predict(self, values: Vector, absent: NDArray[np.int64]) -> list[list[float]]:
        if not self._foresee(values, absent, *self._before, self._fixed[2], self._foreseen):
            raise BadRow(self.count, "its prediction is not finite: a value is infinite or too large to square")
        return self._foreseen.tolist()  # type: ignore[no-any-return]

    def learn(self, values: Vector, absent: NDArray[np.int64], labels: Vector) -> None:
        refused = self._learn(values, absent, labels, *self._before, *self._fixed)
        if refused:
            raise BadRow(self.count, self._why(values[0], labels, refused))

    def _why(self, row: Vector, labels: Vector, refused: int) -> str:
        if refused == event.REFUSED_BY_INPUTS:
            refused_label = 0
            _ = self._inputs.update(self.scales, row)  # says which column, and why
        return reason(self._plan, row, float(labels[refused - 1]), 1.0)

    def __getstate__(self) -> dict[str, Any]:  # compiled kernels are found anew
        return {name: getattr(self, name) for name in ("_inputs", "_plan", "_scales", "_states")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._compile()


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

    def probabilities(self, values: Vector, absent: NDArray[np.int64]) -> list[float]:
        return [self._learner.forecast(state, values[0]).probability for state in self.states]

    def mean(self, values: Vector, absent: NDArray[np.int64]) -> float:
        return float(self._learner.forecast(self.states[0], values[0]).mean)

    def learn(self, values: Vector, absent: NDArray[np.int64], labels: Vector) -> None:
        pairs = zip(self.states, labels.tolist(), strict=True)
        self.states = [self._learner.update(state, values[0], label)[0] for state, label in pairs]
