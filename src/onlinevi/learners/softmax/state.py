"""The state of ``Softmax``: one posterior over the weights of all classes, and the sums of one certificate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from onlinevi.engine import SUM, Belief, Vector
from onlinevi.learners.columns import Named
from onlinevi.learners.parts import OfClass, Part, first
from onlinevi.learners.softmax.plan import SoftmaxPlan


class SoftmaxState(Named):
    """The belief over the weights of every class, and what regret and certificates need, after ``count`` events."""

    __slots__ = ("array", "plan")

    without_sums = False
    space = None
    """Its weights are those of its rows' columns."""

    def __init__(self, array: Vector, plan: SoftmaxPlan) -> None:
        array.setflags(write=False)
        self.array, self.plan = array, plan

    def vector(self, name: str) -> Vector:
        """The means, the variances or covariances, or the totals of slopes: a line a class, and one for those to come."""
        return self.plan.view(self.array, name)

    @property
    def sums(self) -> Vector:
        """The numbers at the head of the array (``SUM``)."""
        return self.array[: len(SUM)]

    @property
    def known(self) -> int:
        """How many classes there are."""
        return self.plan.known

    @property
    def mean(self) -> Vector:
        """The mean of the weights, a row a class."""
        return self.vector("mean")[: self.known]

    @property
    def std(self) -> Vector:
        """The std of each weight, a row a class."""
        return self.std_in(1.0)

    def std_in(self, noise: float) -> Vector:
        """The stds as they are: scores have no unit."""
        return np.sqrt(np.stack([self.variance(line) for line in range(self.known)]) if self.known else self.mean)

    def scale(self, line: int) -> Vector:
        """The variances or the covariance of a line."""
        scales = self.vector("scale")
        own = np.asarray(scales[min(line, len(scales) - 1)])
        return own if own.ndim == 1 else np.tril(own) + np.tril(own, -1).T  # what is above the diagonal is not kept

    def variance(self, line: int) -> Vector:
        """The variance of each weight of a line."""
        scale = self.scale(line)
        return np.maximum(np.diagonal(scale) if scale.ndim == 2 else scale, 0.0)

    def belief_of(self, line: int) -> Any:
        """What is known of the weights of a line, as the family of beliefs has it."""
        mean, scale = self.vector("mean")[line], self.scale(line)
        if scale.ndim == 1:
            return Belief(mean, np.sqrt(scale))
        found: Any = self.plan.family.from_covariance(mean, scale)  # type: ignore[attr-defined]
        return found

    @property
    def count(self) -> int:
        """How many events it has learned from."""
        return int(self.array[SUM.count])

    @property
    def weight(self) -> float:
        """Σ row weights."""
        return float(self.array[SUM.weight])

    @property
    def weight_square(self) -> float:
        """Σ row weights²."""
        return float(self.array[SUM.weight_square])

    @property
    def unit_weights(self) -> bool:
        """Whether every row had the weight 1."""
        return bool(self.count == self.weight == self.array[SUM.weight_square])

    @property
    def loss(self) -> float:
        """Σ −log of the probability said of each label."""
        return float(self.array[SUM.loss])

    @property
    def average_loss(self) -> float:
        """The average loss so far."""
        return self.loss / self.count if self.count else float("nan")

    @property
    def expected_loss(self) -> float:
        """Σ of bounds on E_q[loss], what the belief would have paid: from above."""
        return float(self.array[SUM.expected])

    @property
    def product(self) -> float:
        """Σ of the bounds, less the losses where steps ended, and ⟨slope, score⟩ there."""
        return float(self.array[SUM.product])

    @property
    def magnitude(self) -> float:
        """Σ of the sizes of what cancels there, by which the rounding of ``product`` is known."""
        return float(self.array[SUM.magnitude])

    @property
    def gradient_square(self) -> float:
        """Σ ‖gradient of the loss in the weights‖², where steps ended."""
        return float(self.array[SUM.gradient_square])

    @property
    def gradient(self) -> Vector:
        """Σ of these gradients, class after class."""
        return self.vector("total")[: self.known].ravel()

    def up_to(self, later: SoftmaxState) -> SoftmaxState:
        """As an earlier state of a run in which classes have joined since."""
        return self.against_classes(max(self.known, later.known))

    def against_classes(self, known: int) -> SoftmaxState:
        """Beside so many classes: those that had not come are as what has learned "no" at every event, at no price."""
        if known == self.known:
            return self
        plan = self.plan.with_classes(known)
        places = np.minimum(np.arange(plan.lines), self.plan.lines - 1)
        start, parts = plan.start(), []
        for name in ("mean", "scale", "total"):
            own, wide = self.vector(name), plan.view(start, name)
            if name == "total":
                own = np.concatenate([own[: self.known], wide[self.known :]])
            elif len(wide) > len(own):
                own = own[places]
            parts.append(own)
        return SoftmaxState(plan.packed(self.sums, *parts), plan)

    def widened(self, dim: int) -> SoftmaxState:
        """For rows with further columns at the end, as if these had been 0 so far: their weights are at the prior."""
        old = self.plan
        if dim < old.columns:
            raise ValueError(f"dim={dim}: the state has {old.columns} columns already, and none can leave")
        plan = replace(old, prior=old.prior.widened(dim), columns=dim)
        array = plan.start()
        array[: len(SUM)] = self.array[: len(SUM)]
        for name, shape in old.shapes.items():
            plan.view(array, name)[tuple(map(slice, shape))] = self.vector(name)
        return SoftmaxState(array, plan)

    @property
    def width(self) -> int:
        """How many columns its rows have."""
        return self.plan.columns

    @property
    def begun(self) -> int:
        """As many: nothing depends on how many there were at first."""
        return self.plan.columns

    def deciders(self) -> tuple[SoftmaxState, ...]:
        """Itself: one belief decides among all classes."""
        return (self,)

    def alone(self) -> SoftmaxState:
        """Itself: no other has a part in its decisions."""
        return self

    def leaves(self) -> tuple[SoftmaxState, ...]:
        """Itself."""
        return (self,)

    def by_class(self) -> tuple[ClassState, ...]:
        """What it knows of the weights of each class."""
        return tuple(ClassState(self, line) for line in range(self.known))

    def __repr__(self) -> str:
        known, columns = self.known, self.width
        return f"SoftmaxState(count={self.count}, classes={known}, columns={columns}, average_loss={self.average_loss:.6g})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxState) and self.plan == other.plan and np.array_equal(self.array, other.array)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (np.array(self.array), self.plan), self.__dict__ or None


@dataclass(frozen=True, eq=False)
class ClassState(OfClass):
    """What a ``SoftmaxState`` knows of one class: the weights of its score."""

    whole: SoftmaxState
    line: int

    columns: tuple[str, ...] = ()

    @property
    def plan(self) -> SoftmaxPlan:
        """That of all classes."""
        return self.whole.plan

    @property
    def mean(self) -> Vector:
        """The mean of its weights."""
        return np.asarray(self.whole.vector("mean")[self.line])

    def std_in(self, noise: float) -> Vector:
        """The stds as they are: scores have no unit."""
        return np.sqrt(self.whole.variance(self.line))

    @property
    def belief(self) -> Any:
        """As its family has it."""
        return self.whole.belief_of(self.line)

    def alone(self) -> ClassState:
        """Itself."""
        return self

    def leaves(self) -> tuple[ClassState, ...]:
        """Itself."""
        return (self,)

    def parts(self, noise: float = 1.0) -> tuple[Part, ...]:
        """Its weights beside the mean of all classes, on the columns of its rows: what all share tells none apart.

        Stds are those of classes that are as sure as this one.
        """
        leaf = 1.0, Apart(self.whole, self.line), math.sqrt(1.0 - 1.0 / max(self.whole.known, 2))
        return (Part((leaf,), self.width, partial(first, count=self.width), np.arange(self.width)),)


class Apart(ClassState):
    """A class, by its weights less the mean of those of all classes."""

    @property
    def mean(self) -> Vector:
        means = np.asarray(self.whole.vector("mean"))[: self.whole.known]
        return np.asarray(means[self.line] - means.mean(axis=0))


def scale_of(belief: Any) -> Vector:
    """Its variances, or its covariance."""
    return np.asarray(belief.covariance if hasattr(belief, "factor") else np.square(belief.std))
