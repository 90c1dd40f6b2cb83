"""The state of ``ClassPool``: those of its learners, and how much each counts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners.class_pool.mixing import COUNT, HEAD, LOSS, WEIGHT_SQUARE
from onlinevi.learners.columns import Named
from onlinevi.learners.parts import OfClass, Part


@dataclass(frozen=True, eq=False)
class ClassPoolState(Named):
    """The learners' states, and the weights over them."""

    learners: tuple[Any, ...]
    array: Vector
    """Packed: count, loss, the total losses of all opinions, and their weights."""
    plan: Any
    """The pool."""
    shards: int = 1

    def __post_init__(self) -> None:
        self.array.setflags(write=False)

    @property
    def count(self) -> int:
        """How many events it has learned from."""
        return int(self.array[COUNT])

    @property
    def loss(self) -> float:
        """Σ −log of the pooled probability of each label."""
        return float(self.array[LOSS])

    @property
    def average_loss(self) -> float:
        """The average loss so far."""
        return self.loss / self.count if self.count else float("nan")

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.learners), len(self.plan.boldness)

    @property
    def losses(self) -> Vector:
        """The same of each learner by itself, a row each, at each boldness."""
        return self.array[HEAD : HEAD + math.prod(self._shape)].reshape(self._shape)

    @property
    def opinions(self) -> Vector:
        """The weights of these in the next prediction."""
        return self.array[HEAD + math.prod(self._shape) :].reshape(self._shape)

    @property
    def weights(self) -> Vector:
        """The weight of each learner, however bold: a probability vector."""
        return np.asarray(self.opinions.sum(axis=1))

    @property
    def regret(self) -> float:
        """How much more it has lost than the best of its opinions."""
        return self.loss - float(self.losses.min())

    def switching_bound(self, switches: int = 0) -> float:
        """What cannot be lost beyond any sequence of opinions that changes this many times, whatever the stream.

        −log of the weight that such a sequence has before the first row. NaN of a merge, whose shards have bounds of their
        own, and where rows had weights other than 1.
        """
        number, share, most = math.prod(self._shape), self.plan.share, max(self.count - 1, 0)
        if switches and share == 0.0:
            raise ValueError("without a share the best opinion may not change: set share=0.001")
        if not 0 <= switches <= most:
            raise ValueError(f"switches={switches}: {self.count} events have at most {most}")
        if self.shards > 1 or self.array[WEIGHT_SQUARE] > 0.0:
            return math.nan
        changed = switches * math.log(share / number) if switches else 0.0
        return math.log(number) - changed - (most - switches) * math.log(1.0 - share + share / number)

    @property
    def mean(self) -> Vector:
        """The mean of the weights of ``space``, over the learners that have such weights, a row a class."""
        return np.stack([own.mean for own in self.by_class()])

    @property
    def std(self) -> Vector:
        """The std of these weights, over all of those learners."""
        return self.std_in(1.0)

    def std_in(self, noise: float) -> Vector:
        """The stds as they are: scores have no unit."""
        return np.stack([own.std for own in self.by_class()])

    @property
    def width(self) -> int:
        """How many columns its rows have."""
        return int(self.learners[0].width)

    @property
    def begun(self) -> int:
        """How many columns its rows had at the first, as far as anything depends on it."""
        return min(int(own.begun) for own in self.learners)

    @property
    def space(self) -> Any:
        """What ``mean`` and ``std`` are of: the columns, None, or the features of a map, as the first learner's are."""
        return self.learners[0].space

    def up_to(self, later: Any) -> ClassPoolState:
        """As an earlier state of a run in which classes have joined since."""
        pairs = zip(self.learners, later.learners, strict=True)
        return replace(self, learners=tuple(own.up_to(other) for own, other in pairs))

    def deciders(self) -> tuple[ClassPoolState, ...]:
        """Itself: the pool decides, not its learners."""
        return (self,)

    def alone(self) -> None:
        """None: several learners have a part in its decisions."""

    def leaves(self) -> tuple[Any, ...]:
        """The states of the compiled loops inside."""
        return tuple(leaf for own in self.learners for leaf in own.leaves())

    def by_class(self) -> tuple[PooledClass, ...]:
        """What all its learners know of each class."""
        each = [own.by_class() for own in self.learners]
        return tuple(PooledClass(self, own) for own in zip(*each, strict=True))

    def widened(self, dim: int) -> ClassPoolState:
        """For rows with further columns at the end: every learner widened, their weights as they are."""
        states = tuple(own.widened(dim) for own in self.learners)
        learners = tuple(one.as_widened(own) for one, own in zip(self.plan.learners, states, strict=True))
        return replace(self, learners=states, plan=replace(self.plan, learners=learners))

    def __repr__(self) -> str:
        return f"ClassPoolState(count={self.count}, learners={len(self.learners)}, average_loss={self.average_loss:.6g})"


@dataclass(frozen=True, eq=False)
class PooledClass(OfClass):
    """What the learners of a pool know of one class."""

    whole: ClassPoolState
    each: tuple[Any, ...]

    columns: tuple[str, ...] = ()

    @property
    def mean(self) -> Vector:
        """The mean of the weights of ``space``."""
        shares, means, _ = self._beliefs
        return np.asarray(shares @ means)

    def std_in(self, noise: float) -> Vector:
        """Over all learners that have these weights; scores have no unit."""
        shares, means, stds = self._beliefs
        return np.asarray(np.sqrt(shares @ (np.square(stds) + np.square(means - shares @ means))))

    @property
    def _beliefs(self) -> tuple[Vector, Vector, Vector]:
        """The weights, means and stds of the learners whose weights are of ``space``, of scores of all classes if any are."""
        alike = [k for k, own in enumerate(self.each) if own.space == self.space]
        alike = [k for k in alike if len(self.whole.learners[k].deciders()) == 1] or alike
        shares = self.whole.weights[alike]
        means, stds = (np.stack([getattr(self.each[k], name) for k in alike]) for name in ("mean", "std"))
        return shares / shares.sum(), means, stds

    def parts(self, noise: float = 1.0) -> tuple[Part, ...]:
        """Those of all learners, by their weights."""
        pairs = zip(self.whole.weights.tolist(), self.each, strict=True)
        return tuple(part.weighed(weight) for weight, own in pairs for part in own.parts(noise))

    def alone(self) -> None:
        """None: several learners have a part in it."""

    def leaves(self) -> tuple[Any, ...]:
        """Those of all learners."""
        return tuple(leaf for own in self.each for leaf in own.leaves())
