"""What is known before any data: a handful of numbers, from which the calculator asks the theorems."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from onlinevi.beliefs import Ball, Box, MeanField
from onlinevi.guarantees.bounds.bound import Bound, most_regret
from onlinevi.guarantees.bounds.constants import narrow_kl
from onlinevi.guarantees.bounds.domains import Domain, domain_of
from onlinevi.learners import Plan
from onlinevi.losses import Loss
from onlinevi.rules import Rule

Candidate: TypeAlias = tuple[Callable[[int], Bound], str]
"""A bound as a function of the number of events, and the rate it is for."""


@dataclass(frozen=True)
class Setting:
    """What is known ahead: the stream's length and width, the longest row, the prior, the box, and how far u may be."""

    count: int
    dim: int
    loss: Loss
    row_norm: float = 1.0
    distance: float = 1.0
    """‖u − prior mean‖ of the weights to compete with."""
    prior_std: float = 1.0
    reach: float = 20.0
    """Means lie in [−reach, reach]."""
    radius: float | None = None
    """Where it is given: means lie in the ball of this radius instead, and stds in that of the prior."""

    def __post_init__(self) -> None:
        for name, what in (("count", "events"), ("dim", "features")):
            if not (isinstance(given := getattr(self, name), int) and given >= 1):
                raise ValueError(f"{name}={given!r}, the number of {what}: needs a whole number from 1")
        lengths = {name: getattr(self, name) for name in ("row_norm", "distance", "prior_std", "reach")}
        for name, given in (lengths if self.radius is None else lengths | {"radius": self.radius}).items():
            if not (math.isfinite(given) and (given > 0.0 or (given == 0.0 and name == "distance"))):
                needed = "≥ 0" if name == "distance" else "> 0"
                raise ValueError(f"{name}={given!r}: needs a finite number {needed}")

    @cached_property
    def domain(self) -> Domain:
        return domain_of(self.family, self.dim)

    @cached_property
    def family(self) -> MeanField:
        box = Box(mean=(-self.reach, self.reach)) if self.radius is None else Ball(mean=self.radius)
        return MeanField(prior_std=self.prior_std, box=box)

    @cached_property
    def lipschitz(self) -> float:
        """L of the loss in the weights, on rows of this length."""
        if not math.isfinite(self.loss.lipschitz):
            kind = type(self.loss).__name__
            raise ValueError(f"{kind} is Lipschitz on bounded data only: use bounds.lipschitz(X, y, loss=…) and the theorems")
        return self.loss.lipschitz * self.row_norm + self.loss.ridge * self.domain.radius

    @property
    def strong_convexity(self) -> float:
        return 1.0 / (self.prior_std * self.prior_std)

    def kl(self, count: int) -> float:
        """KL(q_u‖prior) of the comparator N(u, std²), std = prior_std/√count."""
        std = self.prior_std / math.sqrt(count)
        return narrow_kl(dim=self.dim, distance=self.distance, prior_std=self.prior_std, std=std)

    def paper_rate(self, rate: float | None) -> float:
        """The paper's rate for this stream, unless one is given."""
        return rate if rate is not None else 1.0 / math.sqrt(self.count)

    def constant(self, rule: Rule) -> float:
        """The one that a rule's Adaptive rate takes from the box."""
        return Plan(self.loss, self.family, rule, False, self.dim, None).step_rate.c

    def at(self, count: int) -> dict[str, Any]:
        """The numbers that most theorems share, for a stream of this length."""
        return {"count": count, "lipschitz": self.lipschitz, "diameter": self.domain.diameter}

    def by_gradients(self, bound: Callable[[int, float], Bound], rate: str) -> Candidate:
        """A bound of the rate Adaptive, with the most that the squared gradients of a stream sum to."""
        L = self.lipschitz
        return lambda n: replace(bound(n, L**2 * n), trivial=most_regret(L, self.domain.diameter, n)), rate
