"""Several classes by one posterior over the weights of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from onlinevi.beliefs import Family, FullCovariance
from onlinevi.data import Rows, as_rows, one_row
from onlinevi.engine import SUM, Vector
from onlinevi.learners.base import BadRow, Learner
from onlinevi.learners.class_codes import class_codes, firsts
from onlinevi.learners.described import FOREIGN, CheckpointError, Described, Stored, check_finite, numbers_of, put_numbers
from onlinevi.learners.live import Live
from onlinevi.learners.refusals import NOT_FINITE
from onlinevi.learners.softmax import loops
from onlinevi.learners.softmax.live import SoftmaxLive, hide
from onlinevi.learners.softmax.plan import PARTS, SoftmaxPlan
from onlinevi.learners.softmax.state import SoftmaxState, scale_of
from onlinevi.learners.trace import Events, Forecast
from onlinevi.losses import Logistic, Loss

SUMS = SUM._asdict()
MOST_STD = 1e100
"""A prior so wide squares to a number still."""


@dataclass(frozen=True)
class Softmax(Learner[SoftmaxState]):
    """Learns labels 0, 1, 2 … of ``known`` classes by one loss, log Σ_c e^(z_c) − z_y, of a linear score for each class.

    ``family`` is the belief over the weights of a class, ``FullCovariance(box=None)`` or ``MeanField(box=None)``, whose prior
    all classes have; ``shared``: one covariance serves all classes, so that an event costs O(d² + kd). The step is implicit,
    and never overshoots, however wide the prior. ``discount`` and ``missing`` are those of ``Linear``. Where it ``grows``,
    classes join as they come: one line of weights more learns "no" at every event, and a class that joins begins with them.

    ``certificate(state)`` bounds the regret of the log loss of what was said, of all classes together.

    >>> import numpy as np, onlinevi as ovi
    >>> X = np.random.default_rng(0).standard_normal((300, 3))
    >>> learner = ovi.Softmax(known=3)
    >>> state, trace = learner.update_many(learner.init(3), X, X.argmax(axis=1))
    >>> learner.forecast(state, np.eye(3)).guess.tolist(), bool(trace.loss[-100:].mean() < 0.3)
    ([0, 1, 2], True)
    """

    known: int
    family: Family = field(default_factory=lambda: FullCovariance(box=None))
    shared: bool = False
    discount: float = 1.0
    missing: bool = False
    grows: bool = True

    def __post_init__(self) -> None:
        if self.known < 2 and not (self.grows and self.known == 0):
            raise ValueError(f"known={self.known}: needs at least two classes, or none yet where it grows")
        if (type(self.family), self.shared) not in PARTS:
            takes = "FullCovariance(box=None)" if self.shared else "FullCovariance(box=None) or MeanField(box=None)"
            raise ValueError(f"family={self.family!r}, shared={self.shared!r}: needs {takes}")
        if self.family.box is not None:
            raise ValueError(
                f"family={self.family!r}: scores of classes have no box; write {type(self.family).__name__}(box=None)"
            )
        if not (np.asarray(self.family._prior_std) <= MOST_STD).all():
            raise ValueError(f"prior_std={self.family._prior_std!r}: needs numbers up to {MOST_STD:g}; try 1.0")
        if not 0.0 < self.discount <= 1.0:
            raise ValueError(
                f"discount={self.discount!r}: needs 0 < discount ≤ 1; 1 forgets nothing, 0.99 has a memory of 100 events"
            )

    @property
    def loss(self) -> Loss:  # type: ignore[override]
        """That of two classes: of more it is what the same formula says."""
        return Logistic()

    @property
    def several(self) -> bool:
        return True

    def plan(self, columns: int, known: int, horizon: int | None = None) -> SoftmaxPlan:
        """Everything fixed about a run over so many columns and classes."""
        return _plan(self, columns, known, horizon)

    def init(self, dim: int, horizon: int | None = None, *, sparse: bool = False) -> SoftmaxState:
        if dim < 1:
            raise ValueError(f"dim={dim}: needs at least one feature; for an intercept alone use a column of ones")
        plan = self.plan(dim, self.known, horizon)
        return SoftmaxState(plan.start(), plan)

    def fitting(self, state: SoftmaxState, dim: int) -> SoftmaxState:
        if dim != state.plan.columns:
            raise ValueError(f"X has {dim} features, the state {state.plan.columns}: every block needs the same columns")
        self._check(state)
        return state

    def _check(self, state: SoftmaxState) -> None:
        plan = state.plan
        if plan is not (own := self.plan(plan.columns, plan.known, plan.horizon)) and plan != own:
            raise ValueError("this state belongs to another learner: its family, shared, discount, missing or grows differs")

    def play(self, state: SoftmaxState, X: Any, y: Vector, weights: Vector) -> tuple[SoftmaxState, Events]:
        codes, rows, said = class_codes(y, state.known, grows=self.grows), self._rows(X), []
        for start, stop in pairwise([*firsts(codes, range(state.known)), len(codes)]):
            before = state.known
            state = state.against_classes(max(before, int(codes[start]) + 1)) if start < stop else state
            state, events = self._play(state, rows, y, weights, start, stop)
            if start < stop:
                hide(events.prediction[0], before)
            said.append(events)
        return state, Events.joined(said)

    def _play(
        self, state: SoftmaxState, rows: Rows, y: Vector, weights: Vector, start: int, stop: int
    ) -> tuple[SoftmaxState, Events]:
        """Rows of classes that are all known."""
        plan, array, block = state.plan, np.array(state.array), rows.block(start, stop)
        said, cost = np.empty((stop - start, plan.known)), np.empty(stop - start)
        labels, own = np.array(y[start:stop], dtype=float), np.array(weights[start:stop])
        kernel = plan.kernel(sparse=rows.sparse)
        used = kernel.run(block, labels, own, array, plan.sizes, plan.discount, plan.prior_law, said, cost)
        if used < stop - start:
            row = start + used
            raise BadRow(row, self._reason(one_row(rows, row), float(weights[row]) if len(weights) else 1.0))
        return SoftmaxState(array, plan), Events(said, None, cost)

    def _reason(self, row: Vector, weight: float) -> str:
        """Why the loop refused a row."""
        if not (np.isfinite(weight) and weight > 0.0):
            return f"weight {weight}: a weight must be ≥ 0 and finite"
        bad = np.flatnonzero(np.isinf(row) if self.missing else ~np.isfinite(row))
        if not len(bad):
            return f"{NOT_FINITE} (largest feature {np.nanmax(np.abs(row), initial=0.0):.3g}): scale the features down"
        way = (
            "set Softmax(missing=True), drop the row, or fill it in"
            if np.isnan(row[bad[0]])
            else "drop the row, or fill it in"
        )
        return f"feature {bad[0]} is {row[bad[0]]}: needs finite numbers; {way}"

    def foresee(self, state: SoftmaxState, X: Any) -> Events:
        return self._foreseen(state, X, state.known)

    def _foreseen(self, state: SoftmaxState, X: Any, known: int) -> Events:
        """What is said of rows among so many lines: the known ones, or with one more."""
        rows, plan = self._rows(X), state.plan
        said = np.empty((rows.count, known))
        if known:
            kernel = plan.kernel(loops.soft_look, sparse=rows.sparse)
            array = np.array(state.array)
            if kernel.run(rows.block(0, rows.count), rows.count, array, plan.sizes, known, said) < rows.count:
                raise ValueError(NOT_FINITE)
        return Events(said, None, np.full(rows.count, np.nan))

    def look(self, state: SoftmaxState, X: Any, y: Vector) -> Events:
        state = self.fitting(state, X.shape[-1])
        codes, events = class_codes(y, state.known, grows=self.grows), self.foresee(state, X)
        cost = -events.prediction[np.arange(len(codes)), np.minimum(codes, state.known - 1)] if state.known else np.empty(0)
        if (codes >= state.known).any():  # a class that has yet to join is the one behind those known
            with_next = self._foreseen(state, X, state.known + 1).prediction
            cost = np.where(codes < state.known, cost, -with_next[:, -1]) if state.known else -with_next[:, -1]
        return events.paying(cost)

    def said(self, events: Events) -> Forecast:
        return Forecast(events.prediction, None, None, None, np.exp(events.prediction), None, None)

    def live(self, state: SoftmaxState) -> Live:
        return SoftmaxLive(self, state)

    def contributions(self, state: SoftmaxState, X: Any) -> Any:
        """To the score of each class beside the mean of all: what all share tells none apart."""
        apart = state.mean - state.mean.mean(axis=0)
        if hasattr(X, "tocsr"):
            found = [X.multiply(mean).tocsr() for mean in apart]
            for added in found:
                added.data = np.nan_to_num(added.data)
            return found
        return [np.nan_to_num(np.asarray(X, dtype=float)) * mean for mean in apart]

    def widen(self, state: SoftmaxState, dim: int) -> SoftmaxState:
        self._check(state)
        wide = state.widened(dim)
        if wide.plan.prior != self.family:
            raise ValueError(f"{self.family} has one value a coordinate, none for the new ones: give one value for all")
        return wide

    def as_widened(self, state: SoftmaxState) -> Softmax:
        return replace(self, family=state.plan.prior)

    def merge(self, states: Sequence[SoftmaxState], start: SoftmaxState | None = None) -> SoftmaxState:
        """Class by class prior + Σ (shard − prior) in natural parameters; sums add up, and so do certificates."""
        if start is not None and self.discount < 1.0:
            raise ValueError(
                f"discount={self.discount}: each shard has forgotten a part of what all began with, and what is left of it "
                "cannot be told from what was learned; merge in one round"
            )
        known = max(state.known for state in states)
        shards = [state.against_classes(known) for state in states]
        plan = shards[0].plan
        begun = SoftmaxState(plan.start(), plan) if start is None else start.against_classes(known)
        if any(state.plan != plan for state in (*shards, begun)):
            raise ValueError("these states have not the same learner, prior and columns: their beliefs do not add up")
        first = None if start is None else begun
        merged = [self._merged(shards, first, line) for line in range(plan.lines)]
        scales = [scale_of(belief) for belief in merged[: 1 if plan.shared else None]]
        sums = begun.sums + sum(state.sums - begun.sums for state in shards)
        total = begun.vector("total") + sum(state.vector("total") - begun.vector("total") for state in shards)
        sums[SUM.largest_square] = max(state.sums[SUM.largest_square] for state in (begun, *shards))
        return SoftmaxState(plan.packed(sums, np.stack([one.mean for one in merged]), np.stack(scales), total), plan)

    def _merged(self, shards: Sequence[SoftmaxState], start: SoftmaxState | None, line: int) -> Any:
        """The belief of one class."""
        family, beliefs = self.family, [state.belief_of(line) for state in shards]
        if self.discount < 1.0:
            return family.merge_forgetful(beliefs)
        return family.merge(beliefs, *(() if start is None else (start.belief_of(line),)))

    def describe(self, state: SoftmaxState) -> Described:
        plan = state.plan
        if plan != self.plan(plan.columns, plan.known, plan.horizon):
            raise CheckpointError(FOREIGN)
        check_finite(state.array, "state")
        facts = {"columns": plan.columns, "classes": plan.known, "horizon": plan.horizon}
        arrays = {name: state.array[place] for name, place in plan.places.items()}
        return Described(facts | {"sums": numbers_of(state.array, SUMS)}, arrays)

    def restore(self, stored: Stored) -> SoftmaxState:
        columns, known, horizon = (stored.facts[name] for name in ("columns", "classes", "horizon"))
        right = type(columns) is type(known) is int and columns >= 1 and known >= 0
        right = right and (known >= self.known if self.grows else known == self.known)
        if not right or stored.length("mean") != columns * (known + self.grows):
            raise CheckpointError(f"it claims {columns!r} columns and {known!r} classes, which its means are not of")
        plan = self.plan(columns, known, horizon)
        array = np.zeros(len(SUM) + sum(stored.length(name) for name in plan.places))
        put_numbers(array, stored.facts["sums"], SUMS)
        for name, place in plan.places.items():
            stored.fill(name, array[place])
        check_finite(array, "state")
        return SoftmaxState(array, plan)

    def _rows(self, X: Any) -> Rows:
        return as_rows(X, filled=self.fills_rows)

    @property
    def fills_rows(self) -> bool:
        """Whether every coordinate moves at every event: then zeros left out gain nothing."""
        return self.family.correlated or self.discount < 1.0


@lru_cache(maxsize=256)
def _plan(learner: Softmax, columns: int, known: int, horizon: int | None) -> SoftmaxPlan:
    plan = SoftmaxPlan(
        learner.family, learner.shared, learner.discount, learner.missing, learner.grows, columns, known, horizon
    )
    _ = plan.prior_law  # refuse a bad setting now, not at the first event
    return plan
