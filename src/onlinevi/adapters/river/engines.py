"""What learns behind an estimator: one learner a class, or the recommended default, changed in place as features join."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from onlinevi.adapters.river import event
from onlinevi.adapters.river.columns import NEW, Columns
from onlinevi.engine import SUM, Vector
from onlinevi.learners import Auto, AutoState, BadRow, Inputs, InputState, Linear, Plan, State, kernel, reason
from onlinevi.learners.inputs.passes import HEAD, KIND
from onlinevi.learners.inputs.state import CENTRED
from onlinevi.losses import Logistic, Poisson

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

    def probabilities(self, row: Columns) -> list[float]:
        """P(+1) of each learner."""

    def mean(self, row: Columns) -> float:
        """The first learner's mean of the label."""

    def learn(self, row: Columns, labels: Vector) -> None:
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
    """Learners of one kind, whose states lie on one desk that compiled code changes in place."""

    def __init__(self, learner: Linear, inputs: Inputs, dim: int) -> None:
        start, scales = learner.init(inputs.dim_out(dim)), np.array(InputState.start(dim).array)
        scales[KIND] = CENTRED
        self._inputs = inputs
        self._make_room(start.plan, scales, [start.array])

    def _make_room(self, plan: Plan, scales: Vector, states: Sequence[Vector]) -> None:
        """A desk with all that an event needs on it, and the compiled loops that work there."""
        self._plan, columns = plan, (len(scales) - HEAD) // 3
        self._desk = event.new_desk(columns, *plan.sizes[:2], len(states), len(states[0]))
        on = self._on = event.parts(self._desk)
        on.input_settings[:], on.settings[:], on.before[:] = self._inputs.settings, plan.settings, scales
        self._states, self._foreseen = on.states.reshape(len(states), -1), on.foreseen.reshape(len(states), -1)
        self._states[:], self._slopes = states, self._foreseen[:, event.SLOPE]
        self._foresee = kernel(*plan.kinds, plan.features, loop=event.foresee)
        self._learn = kernel(*plan.kinds, plan.features, loop=event.learn)

    @property
    def count(self) -> int:
        return int(self._states[0, SUM.count])

    @property
    def scales(self) -> InputState:
        return InputState(self._on.before.copy())

    @property
    def states(self) -> list[State]:
        return [State(array.copy(), self._plan) for array in self._states]

    def widen(self, added: Sequence[int], *, zeros: bool) -> None:
        scales = widened(self.scales, added, zeros=zeros)
        wide = [state.widened(self._inputs.dim_out(scales.dim)) for state in self.states]
        self._make_room(wide[0].plan, scales.array, [state.array for state in wide])

    def branch(self) -> None:
        self._make_room(self._plan, self._on.before, [*self._states, self._states[-1]])

    def probabilities(self, row: Columns) -> list[float]:
        self._predict(row)
        loss = self._plan.loss
        if isinstance(loss, Logistic):
            return self._slopes.tolist()  # type: ignore[no-any-return]
        return [float(loss.probability(prediction, spread)) for prediction, spread, _ in self._foreseen.tolist()]

    def mean(self, row: Columns) -> float:
        self._predict(row)
        prediction, spread, _ = self._foreseen[0].tolist()
        if isinstance(self._plan.loss, Poisson):
            return math.exp(min(prediction + 0.5 * spread * spread, LARGEST_EXPONENT))
        return float(prediction)

    def _predict(self, row: Columns) -> None:
        foreseen = self._foresee(row.said, self._desk, self._plan.parameters)
        if foreseen != len(self._states):
            raise self._refusal(row, "the prediction is not finite: the values are too large to square")

    def learn(self, row: Columns, labels: Vector) -> None:
        learned = self._learn(row.said, self._desk, labels, self._plan.prior_and_box, self._plan.parameters)
        if learned != len(labels):
            raise self._refusal(row, reason(self._plan, self._on.row[0], float(labels[learned]), 1.0))

    def _refusal(self, row: Columns, why: str) -> BadRow:
        return BadRow(self.count, row.refused(missing=self._inputs.missing) or why)

    def __getstate__(self) -> dict[str, Any]:  # room is made anew
        return {"inputs": self._inputs, "plan": self._plan, "scales": self._on.before, "states": list(self._states)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._inputs = state["inputs"]
        self._make_room(state["plan"], state["scales"], state["states"])


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
        return self.states[0].inputs  # type: ignore[no-any-return]

    def widen(self, added: Sequence[int], *, zeros: bool) -> None:
        scales = widened(self.scales, added, zeros=zeros)
        self.states = [self._learner.widen(state, scales.dim).with_inputs(scales) for state in self.states]

    def branch(self) -> None:
        self.states = [*self.states, self.states[-1]]

    def probabilities(self, row: Columns) -> list[float]:
        with self._naming(row):
            return [self._learner.forecast(state, row.values).probability for state in self.states]

    def mean(self, row: Columns) -> float:
        with self._naming(row):
            return float(self._learner.forecast(self.states[0], row.values).mean)

    def learn(self, row: Columns, labels: Vector) -> None:
        pairs = zip(self.states, labels.tolist(), strict=True)
        with self._naming(row):
            self.states = [self._learner.update(state, row.values, label)[0] for state, label in pairs]

    @contextmanager
    def _naming(self, row: Columns) -> Iterator[None]:
        """A refusal names the feature, and counts events."""
        try:
            yield
        except BadRow as bad:
            raise BadRow(self.count, row.refused(missing=self._learner.inputs.missing) or bad.reason) from None
