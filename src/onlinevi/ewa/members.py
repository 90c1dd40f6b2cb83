"""Learners that differ in settings only run in one compiled loop; others, in one loop a kind."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from onlinevi import linear
from onlinevi.learner import reason
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
            arrays, said, used = kind.run(states, block, sparse=rows.sparse)
            if used < stop - start:
                raise self._refusal(states, rows, labels, weights, start, stop)
            for place, number in enumerate(kind.numbers):
                after[number] = State(arrays[place], self.plans[number])
                records[number] = said[place]
        return after, records

    def _refusal(self, states: Sequence[State], rows: Rows, labels: Vector, weights: Vector, start: int, stop: int) -> Refused:
        """The first row that some learner refuses, found by halving: any split gives the same bits."""

        def refuses(kind: Kind, end: int) -> bool:
            block = rows.block(start, end), labels[start:end], weights[start:end]
            return kind.run(states, block, sparse=rows.sparse)[2] < end - start

        taken, end = start, stop
        while end - taken > 1:
            middle = (taken + end) // 2
            if any(refuses(kind, middle) for kind in self.kinds):
                end = middle
            else:
                taken = middle
        plan = next(kind.first for kind in self.kinds if refuses(kind, end))
        weight = float(weights[taken]) if len(weights) else 1.0
        return Refused(taken, reason(plan, one_row(rows, taken), float(labels[taken]), weight))


class Kind:
    """Learners of one kernel: their numbers, and their settings side by side."""

    def __init__(self, numbers: Sequence[int], plans: Sequence[Plan]) -> None:
        self.numbers, self.first = numbers, plans[0]
        settings, frames = np.stack([plan.settings for plan in plans]), np.stack([plan.frame for plan in plans])
        self.settings = self.first.sizes, settings, frames, self.first.parameters

        self.features = self.first.features._replace(forgets=any(plan.features.forgets for plan in plans))

    def run(self, states: Sequence[State], block: tuple[Any, Vector, Vector], *, sparse: bool) -> tuple[Vector, Vector, int]:
        """Their packed states after a block, what they recorded, and how many rows all of them used."""
        kernel = linear.kernel(*self.first.kinds, self.features, sparse=sparse, loop=linear.many_passes)
        arrays = np.stack([states[number].array for number in self.numbers])
        records = np.empty((len(arrays), len(block[1]), 3))
        used = kernel(*block, arrays, *self.settings, records)
        return arrays, records, used
