"""Learners that differ in settings only run in one compiled loop; others, in one loop a kind."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from onlinevi import linear
from onlinevi.learner import reason, run_block
from onlinevi.rows import Rows, one_row
from onlinevi.state import Plan, State
from onlinevi.types import Vector


class Refused(Exception):
    """Some learner cannot take a row, and why."""

    def __init__(self, row: int, why: str) -> None:
        super().__init__(row, why)
        self.row, self.why = row, why


class Members:
    """The learners of an aggregate, sorted by the kernel they share."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.plans = tuple(plans)

    @cached_property
    def kinds(self) -> list[Kind]:
        kinds: dict[Any, list[int]] = {}
        for number, plan in enumerate(self.plans):
            # Whether a learner forgets is data for a loop that can: one compilation serves both.
            features = plan.features._replace(forgets=False)
            key = plan.kinds, features, plan.parameters, plan.sizes, plan.parts["drift"].stop
            kinds.setdefault(key, []).append(number)
        return [Kind(numbers, [self.plans[k] for k in numbers]) for numbers in kinds.values()]

    def advance(
        self, states: Sequence[State], rows: Rows, labels: Vector, weights: Vector, start: int, stop: int
    ) -> tuple[list[State], Vector]:
        """Every learner's state after these rows, and what each recorded; raises ``Refused`` where one takes a row not."""
        after: list[State] = list(states)
        records = np.empty((len(states), stop - start, 3))
        block = rows.block(start, stop), labels[start:stop], weights[start:stop]
        for kind in self.kinds:
            arrays = np.stack([states[k].array for k in kind.numbers])
            said = np.empty((len(kind.numbers), stop - start, 3))
            used = kind.kernel(rows.sparse)(*block, arrays, *kind.settings, said)
            if used < stop - start:
                raise self._refusal(states, rows, labels, weights, start, stop)
            for place, number in enumerate(kind.numbers):
                after[number] = State(arrays[place], self.plans[number])
                records[number] = said[place]
        return after, records

    def _refusal(self, states: Sequence[State], rows: Rows, labels: Vector, weights: Vector, start: int, stop: int) -> Refused:
        """The first row that some learner refuses: found one learner at a time, as this happens once."""
        first, plan = stop, self.plans[0]
        for state in states:
            array = state.array.copy()
            used = run_block(state.plan, rows, labels, weights, start, stop, array, np.empty((0, 3)))
            if used < first:
                first, plan = used, state.plan
        weight = float(weights[first]) if len(weights) else 1.0
        return Refused(first, reason(plan, one_row(rows, first), float(labels[first]), weight))


class Kind:
    """Learners of one kernel: their numbers, and their settings side by side."""

    def __init__(self, numbers: Sequence[int], plans: Sequence[Plan]) -> None:
        self.numbers, self.first = numbers, plans[0]
        settings, frames = np.stack([plan.settings for plan in plans]), np.stack([plan.frame for plan in plans])
        self.settings = self.first.sizes, settings, frames, self.first.parameters

        self.features = self.first.features._replace(forgets=any(plan.features.forgets for plan in plans))

    def kernel(self, sparse: bool) -> Any:
        return linear.kernel(*self.first.kinds, self.features, sparse=sparse, loop=linear.many_passes)
