"""Boundaries that bend: rows are mapped to features, and a learner learns of these as of any columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onlinevi.data import as_rows
from onlinevi.engine import Vector
from onlinevi.learners.base import BLOCK_VALUES, Combinator, Learner, Wrapped, for_each_class, merge_inner
from onlinevi.learners.described import FOREIGN, CheckpointError, Described, Stored, whole
from onlinevi.learners.expand.base import FeatureMap
from onlinevi.learners.expand.space import Space, space
from onlinevi.learners.live import Live
from onlinevi.learners.parts import Part, beside, first
from onlinevi.learners.trace import Events


@dataclass(frozen=True, eq=False, repr=False)
class ExpandState(Wrapped):
    """What was learned of the features, and which they are."""

    inner: Any
    features: Space

    @property
    def space(self) -> Space:
        return self.features

    @property
    def width(self) -> int:
        return self.features.dim

    @property
    def begun(self) -> int:
        return self.features.start + self.features.intercept

    def widened(self, dim: int) -> ExpandState:
        """For rows with further columns at the end: their features come last, and their weights are at the prior."""
        wide = self.space.widened(dim)
        return ExpandState(self.inner.widened(wide.width), wide)

    def parts(self, noise: float = 1.0) -> tuple[Part, ...]:
        dim = self.width

        def features(rows: Any) -> Any:
            return beside(self.space.of(first(rows, dim)), rows[:, dim:])

        return tuple(part.behind(features, dim + part.width - self.space.width, None) for part in self.inner.parts(noise))

    @property
    def missing(self) -> bool:
        """Whether NaN is a missing value to the learners inside."""
        return all(leaf.plan.missing for leaf in self.inner.leaves())


@dataclass(frozen=True)
class Expand(Combinator[ExpandState]):
    """Gives a learner the features that a map makes of rows; ``keep`` gives it the columns beside them.

    The map is fixed before any label is seen, so that the loss stays convex in the weights of the features: certificates and
    bounds hold as they are, against all weights of the features. It is made for prepared rows, which ``Inputs`` bounds, and
    computed once for all learners of a pool. ``intercept``: the first column is the 1 that ``Inputs`` puts there, and is not
    mapped; False where rows have none.

    >>> import numpy as np, onlinevi as ovi
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> y = np.sign((X * X).sum(axis=1) - 1.4)  # inside or outside of a ring
    >>> linear = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.FullCovariance(prior_std=2.0, box=None))
    >>> for learner in (linear, ovi.Expand(ovi.Products(), linear)):
    ...     prepared = ovi.Prepare(ovi.Inputs(), learner)
    ...     state, _ = prepared.update_many(prepared.init(2), X, y)
    ...     print(f"{state.average_loss:.2f}")
    0.72
    0.20
    """

    map: FeatureMap
    inner: Learner[Any]
    keep: bool = True
    intercept: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.map, FeatureMap):
            hint = f"; write {self.map.__name__}()" if isinstance(self.map, type) else ""
            raise TypeError(f"map={self.map!r}: needs a feature map, such as Fourier() or Splines(){hint}")
        if isinstance(self.inner, Expand):
            raise ValueError("Expand in Expand makes features of features: for several maps use Beside((…, …))")

    def space(self, start: int, dim: int) -> Space:
        """The features of rows of ``dim`` columns, the intercept among them, ``start`` of which were there at first."""
        if start < self.intercept:
            raise ValueError(f"dim={start}: the intercept is a column; give Expand(…, intercept=False) where there is none")
        return space(self.map, self.keep, self.intercept, start - self.intercept, dim)

    def init(self, dim: int, horizon: int | None = None, *, sparse: bool = False) -> ExpandState:
        own = self.space(dim, dim)
        return ExpandState(self.inner.init(own.width, horizon, sparse=sparse), own)

    def play(self, state: ExpandState, X: Any, y: Vector, weights: Vector) -> tuple[ExpandState, Events]:
        inner, events = self.inner.play(state.inner, state.space.of(X, missing=state.missing), y, weights)
        return replace(state, inner=inner), events

    def foresee(self, state: ExpandState, X: Any) -> Events:
        return Events.joined([self.inner.foresee(state.inner, features) for _, features in self._features(state, X)])

    def look(self, state: ExpandState, X: Any, y: Vector) -> Events:
        parts = self._features(self._fitted(state, X), X)
        return Events.joined([self.inner.look(state.inner, features, y[part]) for part, features in parts])

    def _features(self, state: ExpandState, X: Any) -> list[tuple[slice, Any]]:
        """Rows in parts that are not too large with their features."""
        size, rows = max(1, BLOCK_VALUES // state.space.width), as_rows(X)
        bounds = [slice(low, min(low + size, rows.count)) for low in range(0, max(rows.count, 1), size)]
        return [(part, state.space.of(rows.take(np.arange(part.start, part.stop)), missing=state.missing)) for part in bounds]

    def contributions(self, state: ExpandState, X: Any) -> Any:
        made = self.inner.contributions(state.inner, state.space.of(X, missing=state.missing))
        return for_each_class(made, lambda added: state.space.of_columns(added, like=X))

    def live(self, state: ExpandState) -> Live:
        # Where features are stored sparse, learners are given them so: few of many.
        in_place = type(self) is Expand and not self.map.sparse
        return ExpandLive(self, state) if in_place else super().live(state)

    def widen(self, state: ExpandState, dim: int) -> ExpandState:
        wide = state.space.widened(dim)
        return ExpandState(self.inner.widen(state.inner, wide.width), wide)

    def merge(self, states: Sequence[ExpandState], start: ExpandState | None = None) -> ExpandState:
        own = states[0].space
        if any(state.space != own for state in (*states, *(() if start is None else (start,)))):
            raise ValueError("these states have not the same features: their maps, or their columns at the first row, differ")
        return ExpandState(merge_inner(self.inner, states, start), own)

    def describe(self, state: ExpandState) -> Described:
        self._check(state)
        facts = {"first": state.space.start + self.intercept, "dim": state.space.dim}
        return Described(facts, parts={"inner": (self.inner, state.inner)})

    def restore(self, stored: Stored) -> ExpandState:
        first, dim = (whole(stored.facts[name], f"number of columns, {name!r},") for name in ("first", "dim"))
        inner = stored.part("inner", self.inner)
        # A number of columns that the weights cannot have is found before anything of that size is made.
        if first > dim or self.space(min(first, inner.width + 2), min(dim, inner.width + 2)).width > inner.width:
            raise CheckpointError(FOREIGN)
        state = ExpandState(inner, self.space(first, dim))
        self._check(state)
        return state

    def _check(self, state: ExpandState) -> None:
        own = state.space
        same = (own.map, own.keep, own.intercept) == (self.map, self.keep, self.intercept)
        if not same or state.inner.width != own.width or len({leaf.plan.missing for leaf in state.leaves()}) > 1:
            raise CheckpointError(FOREIGN)


class ExpandLive(Live):
    """The features of the event that was asked for last, and the live state of the learner inside."""

    def __init__(self, learner: Expand, state: ExpandState) -> None:
        self._given, self._inner, self._missing = state, learner.inner.live(state.inner), state.missing
        self._space, self._features = state.space, np.empty((1, state.space.width))

    @property
    def state(self) -> ExpandState:
        return replace(self._given, inner=self._inner.state)

    def _expand(self, row: Vector, again: bool) -> Vector:
        if not again:
            self._space.fill(row, self._features, missing=self._missing)
        return self._features

    def learn(self, row: Vector, label: float, again: bool = False) -> Events:
        return self._inner.learn(self._expand(row, again), label, again)

    def foresee(self, row: Vector, again: bool = False) -> Events:
        return self._inner.foresee(self._expand(row, again), again)
