"""How an arm is chosen: each policy makes probabilities of what is believed of the arms, and the arm is drawn from these.

So the propensity that is logged is the probability by which the arm was chosen, never an estimate of it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from onlinevi.bandit.chances import Law, chance_of_best, share_of_best, shared_by_ties
from onlinevi.engine import Vector
from onlinevi.learners import Storable


@dataclass(frozen=True)
class Policy(Storable, ABC):
    """Makes probabilities of the law of the arms' scores.

    ``explore`` is the part of the decisions that is made at random, all arms alike: every arm then has a propensity of at
    least explore/K, without which no log can tell what another policy would have earned.
    """

    explore: float = field(default=0.0, kw_only=True)
    name: ClassVar[str]

    def __post_init__(self) -> None:
        if not 0.0 <= self.explore <= 1.0:
            raise ValueError(f"explore={self.explore!r}: a part of the decisions lies between 0 and 1; try 0.05")

    def probabilities(self, law: Law, rng: np.random.Generator) -> Vector:
        """Of each arm; they add up to 1."""
        preferred = self.preferred(law, rng)
        return np.asarray((1.0 - self.explore) * preferred + self.explore / len(preferred))

    @abstractmethod
    def preferred(self, law: Law, rng: np.random.Generator) -> Vector:
        """The same without what is explored at random."""


@dataclass(frozen=True)
class Thompson(Policy):
    """Thompson sampling: each arm as often as it is the best, by the belief.

    Arms with weights of their own have independent scores, and the probabilities are computed (``chance_of_best``). Arms that
    share weights have none in closed form: they are the shares of ``draws`` joint draws in which each was the best, and the
    arm is drawn from these shares; over the draws it is the same law, and the propensity is exact given the draws.

    ``widen`` multiplies the stds: 1 is the rule of the textbooks. By default it is 1/√columns, of the rows that the learner is
    given: a prior that leaves each weight open leaves a score open by so much more, and where columns are many contexts
    explore by themselves.
    """

    widen: float | None = None
    draws: int = 100
    name: ClassVar[str] = "thompson"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.widen is not None and not (self.widen >= 0.0 and math.isfinite(self.widen)):
            raise ValueError(f"widen={self.widen!r}: stds are multiplied by a finite number ≥ 0; try 1.0, or leave it out")
        if self.draws < 1:
            raise ValueError(f"draws={self.draws!r}: needs at least one; try 100")

    def preferred(self, law: Law, rng: np.random.Generator) -> Vector:
        wide = law.widened(1.0 / math.sqrt(max(1, law.columns)) if self.widen is None else self.widen)
        return chance_of_best(wide.mean, wide.std) if wide.root is None else share_of_best(wide.draws(rng, self.draws))


@dataclass(frozen=True)
class UpperBound(Policy):
    """The arm whose mean + width·std is the largest (LinUCB's rule); ties share."""

    width: float = 1.0
    name: ClassVar[str] = "ucb"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.width >= 0.0 and math.isfinite(self.width)):
            raise ValueError(f"width={self.width!r}: needs a finite number of stds ≥ 0; try 1.0")

    def preferred(self, law: Law, rng: np.random.Generator) -> Vector:
        bound = law.mean + self.width * law.std
        return shared_by_ties(bound == bound.max())


@dataclass(frozen=True)
class Greedy(Policy):
    """The arm of the largest mean, but for what is explored at random: epsilon-greedy."""

    explore: float = field(default=0.05, kw_only=True)
    name: ClassVar[str] = "greedy"

    def preferred(self, law: Law, rng: np.random.Generator) -> Vector:
        return shared_by_ties(law.mean == law.mean.max())


@dataclass(frozen=True)
class Uniform(Policy):
    """Every arm alike, whatever is believed: what a log for any later question is made by."""

    name: ClassVar[str] = "uniform"

    def preferred(self, law: Law, rng: np.random.Generator) -> Vector:
        return np.full(len(law.mean), 1.0 / len(law.mean))
