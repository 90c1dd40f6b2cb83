"""Everything fixed about a run of ``Softmax``: its belief as parts of the loop, and where they lie in a packed state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from onlinevi.beliefs import Family, FullCovariance, MeanField
from onlinevi.engine import SUM, Function, Kernel, Vector, compose, holes, reading
from onlinevi.learners.softmax import beliefs, loops
from onlinevi.losses import Logistic, Loss


class Parts(NamedTuple):
    """What a belief puts into the holes of the loop, and how many numbers its variances or covariances are."""

    views: Function
    law: Function
    unseen: Function
    learn: Function
    forget: Function
    settle: Function
    scales: Callable[[int, int], int]


APART = Parts(
    beliefs.apart_views,
    beliefs.apart_law,
    beliefs.apart_missing,
    beliefs.apart_learn,
    beliefs.apart_forget,
    beliefs.apart_settle,
    lambda dim, lines: dim * lines,
)
EACH = Parts(
    beliefs.each_views,
    beliefs.covaried_law,
    beliefs.covaried_missing,
    beliefs.covaried_learn,
    beliefs.covaried_forget,
    beliefs.covaried_settle,
    lambda dim, lines: dim * dim * lines,
)
SHARED = EACH._replace(views=beliefs.shared_views, scales=lambda dim, lines: dim * dim)

PARTS: dict[tuple[type[Family], bool], Parts] = {
    (MeanField, False): APART,
    (FullCovariance, False): EACH,
    (FullCovariance, True): SHARED,
}
"""By the family of a class, and whether all share one."""


@dataclass(frozen=True)
class SoftmaxPlan:
    """What does not change while a run goes on, but for classes and columns that join."""

    prior: Family
    """The family of beliefs over the weights of a class, with the prior of all classes."""
    shared: bool
    discount: float
    missing: bool
    grows: bool
    columns: int
    known: int
    horizon: int | None = None
    grows_by: ClassVar[tuple[str, ...]] = ("known",)
    """What may differ between shards of one learner: the classes that each has met."""
    loss: ClassVar[Loss] = Logistic()
    """Of two classes it is this; of more, what it is for two of them."""
    dtype: ClassVar[str] = "float64"

    @property
    def dim(self) -> int:
        """How many weights there are, those of the known classes."""
        return self.columns * self.known

    @property
    def lines(self) -> int:
        """The known classes, and one for all that may come."""
        return self.known + self.grows

    @property
    def sizes(self) -> tuple[int, int, int]:
        return self.columns, self.known, self.lines

    @property
    def parts(self) -> Parts:
        return PARTS[type(self.prior), self.shared]

    @property
    def fills_rows(self) -> bool:
        """Whether every coordinate moves at every event, so that zeros left out of a row gain nothing."""
        return self.prior.correlated or self.discount < 1.0

    @cached_property
    def places(self) -> dict[str, slice]:
        """Where the vectors lie in a packed state."""
        mean = self.columns * self.lines
        ends = np.cumsum([len(SUM), mean, self.parts.scales(self.columns, self.lines), mean]).tolist()
        return {name: slice(*ends[k : k + 2]) for k, name in enumerate(("mean", "scale", "total"))}

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of these vectors: a line for each class."""
        lines = (self.lines, self.columns)
        covaried = (1 if self.shared else self.lines, self.columns, self.columns)
        return {"mean": lines, "scale": covaried if self.prior.correlated else lines, "total": lines}

    @cached_property
    def family(self) -> Family:
        """The kind of belief, over any number of weights."""
        return type(self.prior)(box=None)  # type: ignore[call-arg]

    @cached_property
    def prior_law(self) -> Vector:
        """The mean and the variance of each column's weights before the first event."""
        rows = np.atleast_2d(self.prior.prior_and_box(self.columns).T).T
        mean, std = (np.broadcast_to(row, (self.columns,)) for row in rows[:2])
        return np.array([mean, np.square(std)])

    def start(self) -> Vector:
        """The packed state before the first event."""
        mean, variance = self.prior_law
        scale = np.diag(variance) if self.prior.correlated else variance
        parts = np.broadcast_to(mean, self.shapes["mean"]), np.broadcast_to(scale, self.shapes["scale"])
        return self.packed(np.zeros(len(SUM)), *parts, np.zeros(self.shapes["total"]))

    def packed(self, sums: Vector, *vectors: Vector) -> Vector:
        return np.concatenate([sums, *(part.ravel() for part in vectors)])

    def view(self, array: Vector, name: str) -> Vector:
        """A vector of a packed state, in its shape."""
        return array[self.places[name]].reshape(self.shapes[name])

    def with_classes(self, known: int) -> SoftmaxPlan:
        return replace(self, known=known)

    def kernel(self, loop: Function = loops.soft_pass, *, sparse: bool = False) -> Kernel:
        return kernel(self.parts, loop, missing=self.missing, sparse=sparse)


@cache
def kernel(parts: Parts, loop: Function, *, missing: bool, sparse: bool) -> Kernel:
    """The loop with this belief, for these rows."""
    read = reading.SPARSE if sparse else reading.DENSE
    return compose(
        loop,
        {
            loops.views: parts.views,
            loops.law: parts.law,
            loops.unseen: parts.unseen if missing else beliefs.none_missing,
            loops.learn: parts.learn,
            loops.forget: parts.forget,
            loops.settle: parts.settle,
            holes.event_at: read.event,
            holes.position: read.position,
            holes.value: read.present if missing else read.value,
            holes.is_missing: read.is_missing,
            holes.cast: reading.double,
            holes.in_float32: reading.answer(False),
        },
    )
