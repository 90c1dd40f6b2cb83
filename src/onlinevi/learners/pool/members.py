"""Leaves that differ in settings only run in one compiled loop, others in one loop a kind; learners of any other kind play."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from onlinevi.data import Rows, one_row
from onlinevi.engine import RECORD, Function, Vector, many_passes
from onlinevi.learners.base import BadRow, Learner
from onlinevi.learners.kernels import kernel
from onlinevi.learners.pool.threads import ALONE, Threads
from onlinevi.learners.refusals import reason
from onlinevi.learners.state import Plan, State
from onlinevi.learners.trace import Events


class Refused(Exception):
    """Some learner cannot take a row, and why."""

    def __init__(self, row: int, why: str) -> None:
        super().__init__(row, why)
        self.row, self.why = row, why


class Members:
    """The learners of a pool: leaves, sorted by the kernel they share, and behind them those of any other kind."""

    def __init__(self, learners: Sequence[Learner[Any]], plans: Sequence[Plan | None]) -> None:
        self.learners, self.plans = tuple(learners), tuple(plans)

    @cached_property
    def kinds(self) -> list[Kind]:
        """The leaves."""
        kinds: dict[Any, list[int]] = {}
        for number, plan in enumerate(self.plans):
            if plan is None:
                continue
            # Whether a learner forgets is data for a loop that can: one compilation serves both.
            features = plan.features._replace(forgets=False)
            key = plan.kinds, features, plan.parameters, plan.sizes, plan.parts["drift"].stop
            kinds.setdefault(key, []).append(number)
        return [Kind(numbers, [cast(Plan, self.plans[k]) for k in numbers]) for numbers in kinds.values()]

    @cached_property
    def others(self) -> list[int]:
        """The numbers of the learners that play for themselves."""
        return [number for number, plan in enumerate(self.plans) if plan is None]

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Where each learner stands when they are put in order kind by kind."""
        return np.argsort([*(number for kind in self.kinds for number in kind.numbers), *self.others])

    @cached_property
    def unsure(self) -> Vector:
        """0 for a learner that is pooled itself, else 1."""
        return np.array([0.0 if learner.pooled else 1.0 for learner in self.learners])

    @cached_property
    def columns(self) -> int:
        """How many numbers a record needs."""
        most = max((kind.columns for kind in self.kinds), default=0)
        return max(most, RECORD.missing_mean_square + 1) if self.others else most

    def advance(
        self,
        states: Sequence[Any],
        rows: Rows,
        labels: Vector,
        weights: Vector,
        start: int,
        stop: int,
        threads: Threads = ALONE,
    ) -> tuple[list[Any], Vector]:
        """Every learner's state after these rows, and their records, kind by kind; ``Refused`` where one takes a row not."""
        records = np.empty((len(states), stop - start, self.columns))
        block, tasks, first = (rows.block(start, stop), labels[start:stop], weights[start:stop]), [], 0
        for kind in self.kinds:
            behind = first + len(kind.numbers)
            tasks += kind.tasks(states, block, records[first:behind], sparse=rows.sparse, parts=threads.number)
            first = behind
        if tasks and min(threads.each(run, tasks)) < stop - start:
            raise self._refusal(states, rows, labels, weights, start, stop)
        after = [array for task in tasks for array in task.states]
        found = [
            None if plan is None else State(after[place], plan) for place, plan in zip(self.places, self.plans, strict=True)
        ]
        if self.others:
            self._play_others(found, states, rows, labels, weights, start, stop, records[first:])
        return found, records

    def _play_others(
        self,
        found: list[Any],
        states: Sequence[Any],
        rows: Rows,
        labels: Vector,
        weights: Vector,
        start: int,
        stop: int,
        records: Vector,
    ) -> None:
        """Put the states of the other learners after these rows where they belong, and what they said into records."""
        used = start + (np.flatnonzero(weights[start:stop]) if len(weights) else np.arange(stop - start))
        X, y, importance = rows.take(used), labels[used], weights[used] if len(weights) else weights
        for number, record in zip(self.others, records, strict=True):
            try:
                found[number], said = self.learners[number].play(states[number], X, y, importance)
            except BadRow as bad:
                raise Refused(int(used[bad.row]), bad.reason) from None
            lines, (variance, held) = record[: len(used)], parts_of(said)
            lines[:, RECORD.prediction], lines[:, RECORD.spread] = said.prediction, np.sqrt(variance)
            lines[:, RECORD.loss], lines[:, RECORD.missing_mean_square] = said.loss, held

    def _refusal(self, states: Sequence[State], rows: Rows, labels: Vector, weights: Vector, start: int, stop: int) -> Refused:
        """The first row that some learner refuses, found by halving: any split gives the same bits."""

        def refuses(kind: Kind, end: int) -> bool:
            block = rows.block(start, end), labels[start:end], weights[start:end]
            room = np.empty((len(kind.numbers), end - start, kind.columns))
            return min(map(run, kind.tasks(states, block, room, sparse=rows.sparse, parts=1))) < end - start

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


def parts_of(said: Events) -> tuple[Any, Any]:
    """Of predictions the variance, and what does not shrink: of pooled ones beside it, as their difference has no digits."""
    return (np.square(said.spread), 0.0) if said.within is None else (said.within, said.between)


class Task(NamedTuple):
    """A call of a kernel."""

    kernel: Function
    arguments: tuple[Any, ...]

    @property
    def states(self) -> Vector:
        """Those of its learners; after it has run, as they are then."""
        return self.arguments[3]  # type: ignore[no-any-return]


def run(task: Task) -> int:
    """How many rows all of its learners used."""
    return int(task.kernel(*task.arguments))


class Kind:
    """Learners of one kernel: their numbers, and their settings side by side."""

    def __init__(self, numbers: Sequence[int], plans: Sequence[Plan]) -> None:
        self.numbers, self.plans, self.first = numbers, plans, plans[0]
        settings, boxes = np.stack([plan.settings for plan in plans]), np.stack([plan.prior_and_box for plan in plans])
        self.settings = self.first.sizes, settings, boxes, self.first.parameters
        self.columns = RECORD.missing_mean_square + 1 if self.first.missing else RECORD.missing_mean_square
        # A loop over covariances takes seconds to compile: one, which can forget, serves all pools.
        forgets = self.first.family.correlated or any(plan.features.forgets for plan in plans)
        self.features = self.first.features._replace(forgets=forgets)

    def stacked(self, states: Sequence[State]) -> Vector:
        """A copy of their states, side by side."""
        return np.stack([states[number].array for number in self.numbers])

    def tasks(
        self, states: Sequence[State], block: tuple[Any, Vector, Vector], records: Vector, *, sparse: bool, parts: int
    ) -> list[Task]:
        """The calls that take them over a block, each with a part of the learners; what they say goes to ``records``."""
        run_many = kernel(*self.first.kinds, self.features, sparse=sparse, loop=many_passes).run
        sizes, settings, boxes, parameters = self.settings
        arrays = self.stacked(states)
        size = -(-len(arrays) // parts)
        cuts = [slice(first, first + size) for first in range(0, len(arrays), size)]
        return [
            Task(run_many, (*block, arrays[cut], sizes, settings[cut], boxes[cut], parameters, records[cut])) for cut in cuts
        ]
