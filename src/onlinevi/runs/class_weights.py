"""How often rows count: by a column, by their class, or so that classes weigh the same however rare they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from onlinevi.data import class_name
from onlinevi.engine import Vector, did_you_mean

ClassWeight: TypeAlias = "Literal['balanced'] | Mapping[str, float] | None"
BALANCED = "balanced"


def as_class_weight(given: Any) -> ClassWeight:
    """What was asked for: "balanced", a weight for some classes by their names, or nothing."""
    if given is None or given == BALANCED:
        return given  # type: ignore[no-any-return]
    if not isinstance(given, Mapping):
        raise ValueError(f'class_weight={given!r}: needs "{BALANCED}", or weights by the names of classes, as yes=5,no=1')
    weights = {str(class_name(_spelled(name))): weight for name, weight in given.items()}
    for name, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float | np.number) or not 0.0 <= weight < math.inf:
            raise ValueError(f"class_weight of {name!r} is {weight!r}: needs a number from 0")
    return {name: float(weight) for name, weight in weights.items()}


def _spelled(name: Any) -> str:
    return str(name).lower() if isinstance(name, bool | np.bool_) else str(name)


class ClassWeights:
    """The weights of rows by their classes. A value: ``weigh`` gives the next.

    Balanced, a row counts n/(K·n_k) times: of n rows so far, itself included, n_k were of its class, and there were K classes.
    So every class has weighed about the same at any time, as scikit-learn's "balanced" has it of all rows at once. Rows count
    here as often as their own weights say.
    """

    def __init__(self, asked: ClassWeight, totals: Sequence[float] | Vector = ()) -> None:
        self.asked = asked
        self.totals = np.array(totals, dtype=float)
        """How much has come of each class, by its number; where rows are balanced."""

    def with_those_of(self, other: ClassWeights) -> ClassWeights:
        """The same with what has come of each class elsewhere."""
        size = max(len(self.totals), len(other.totals))
        totals = [np.pad(one.totals, (0, size - len(one.totals))) for one in (self, other)]
        return ClassWeights(self.asked, totals[0] + totals[1])

    def check(self, classes: Sequence[str], *, more: bool) -> None:
        """Refuse weights of classes that are not there; where there may be ``more``, they may come."""
        if isinstance(self.asked, Mapping) and not more:
            for name in self.asked:
                if name not in classes:
                    meant = did_you_mean(name, classes)
                    raise ValueError(f"class_weight has {name!r}{meant}: the classes are {', '.join(map(repr, classes))}")

    def now(self, names: Sequence[str]) -> list[float | None]:
        """The weight of a row of each class; balanced, by what has come so far, and NaN of one of which nothing has."""
        if not isinstance(self.asked, str):
            return [None if self.asked is None else self.asked.get(name, 1.0) for name in names]
        totals = np.pad(self.totals, (0, max(0, len(names) - len(self.totals))))[: len(names)]
        there = (totals > 0.0).sum()
        return np.divide(totals.sum(), there * totals, out=np.full(len(totals), math.nan), where=totals > 0.0).tolist()  # type: ignore[no-any-return]

    def weigh(self, codes: Any, names: Sequence[str], own: Vector | None) -> tuple[ClassWeights, Vector | None]:
        """The weights of rows of these classes, by their numbers, whose own are given; the same bits in any split."""
        if self.asked is None:
            return self, own
        if isinstance(self.asked, Mapping):
            of_class = np.array([self.asked.get(name, 1.0) for name in names])[codes]
            return self, of_class if own is None else own * of_class
        counted = np.ones(len(codes)) if own is None else own
        size = max(len(self.totals), int(codes.max(initial=-1)) + 1)
        totals = np.pad(self.totals, (0, size - len(self.totals)))
        added = np.where(codes[:, None] == np.arange(size), counted[:, None], 0.0)
        running = np.cumsum(np.vstack([totals, added]), axis=0)[1:]  # one addition a row, in their order
        of_own = np.take_along_axis(running, codes[:, None], axis=1)[:, 0]
        whole = np.cumsum(running, axis=1)[:, -1] if size else of_own  # from the first class to the last
        scale = np.divide(whole, (running > 0.0).sum(axis=1) * of_own, out=np.zeros(len(codes)), where=of_own > 0.0)
        after = ClassWeights(self.asked, running[-1] if len(running) else totals)
        return after, counted * scale
