"""What the default is made of: which learners, on which features, weighed how. docs/choosing.md says why."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from onlinevi.beliefs import Family, FullCovariance, MeanField
from onlinevi.learners.base import Learner
from onlinevi.learners.expand import Expand, FeatureMap, Fourier, Products, Relu, Splines
from onlinevi.learners.linear import Linear
from onlinevi.learners.pool import AdaHedge, Pool
from onlinevi.learners.recalibrate import Recalibrate
from onlinevi.losses import Loss, Squared
from onlinevi.rules import Implicit

Effort: TypeAlias = Literal["light", "default", "most"]
"""How much work an event may be: straight boundaries alone, bent ones too, or more of these."""


class Member(NamedTuple):
    """A learner: how large weights may be, in units of the noise, and how fast it forgets."""

    prior_std: float
    discount: float


CLASSES = (Member(1.0, 1.0), Member(4.0, 0.999), Member(20.0, 0.99), Member(20.0, 0.95))
NUMBERS = (
    Member(0.3, 1.0),
    Member(1.0, 1.0),
    Member(0.3, 0.99),
    Member(4.0, 0.99),
    Member(1.0, 0.95),
    Member(4.0, 0.7),
)
"""Learners on the columns: from memories of all events to those of three. Fewer lose more than a hundredth somewhere."""
COUNTS = tuple(Member(std, discount) for std in (0.5, 1.0, 2.0) for discount in (1.0, 0.999, 0.99, 0.95, 0.7))
"""The same for the logarithm of a rate as a whole: a wide prior there means rates without a bound."""
NARROWER = 0.1
"""Priors where there are many columns, beside those of few: together they must not predict anything at all."""
INTERCEPT_STD = 1000.0
"""Of numbers: where they lie is not to be guessed, and no learner is to be judged by its guess."""
FULL_UP_TO = 190
"""With more columns or features than this a covariance costs more than it is worth: coordinates are independent then."""
KEPT_AT_LEAST = 0.25
"""What a learner must keep of an event after as many events as there are columns to have covariances."""
SHARE = 1e-4
"""How much weight moves on at each event: once in some ten thousand the best learner may change for free."""
ROBUST = 7.0
"""A residual this many times the usual counts half as much as it pulls."""


class View(NamedTuple):
    """Features that some learners see beside the columns, where there are not more columns than these."""

    map: FeatureMap
    members: tuple[Member, ...]
    most_columns: int


WAVES = 1000
"""Waves and hinges are as many for any number of columns, and cheap."""
BENT_CLASSES = (
    View(Splines(), (Member(4.0, 0.99), Member(4.0, 0.999)), 100),
    View(Products(), (Member(4.0, 0.999), Member(1.0, 1.0)), 16),
    View(Relu(100), (Member(4.0, 0.999), Member(1.0, 1.0)), WAVES),
    View(Fourier(100), (Member(1.0, 0.999),), WAVES),
    View(Fourier(100, scale=3.0), (Member(4.0, 1.0),), WAVES),
)
BENT_NUMBERS = (
    View(Splines(), (Member(1.0, 1.0), Member(0.3, 0.999), Member(1.0, 0.99)), 100),
    View(Products(), (Member(0.3, 1.0), Member(0.3, 0.999)), 16),
    View(Relu(100), (Member(0.3, 1.0), Member(1.0, 0.99)), WAVES),
    View(Fourier(100, scale=3.0), (Member(4.0, 1.0),), WAVES),
)
HASHED_PRODUCTS = View(Products(buckets=256), (Member(0.3, 1.0), Member(0.3, 0.99)), 60)
"""Pairs of so many columns that there are hundreds of them."""


def core(loss: Loss, dim: int, *, effort: Effort, sparse: bool, missing: bool) -> Pool | Recalibrate:
    """What the default makes of prepared rows of ``dim`` columns, the intercept first: a pool, its probabilities set right."""
    pooled = pool(loss, dim, effort=effort, sparse=sparse, missing=missing)
    return Recalibrate(pooled) if pooled.settled and effort != "light" else pooled


@lru_cache(maxsize=64)
def pool(loss: Loss, dim: int, *, effort: Effort, sparse: bool, missing: bool) -> Pool:
    """The learners of the default, and how they are weighed."""
    kind = _Kind(loss, missing)
    learners: list[Learner[Any]] = [*kind.linear(dim, sparse=sparse)]
    if effort != "light" and not sparse and loss.target != "counts":
        learners += kind.bent(dim, effort)
    return kind.weighing(learners)


class _Kind:
    """Learners of one loss."""

    def __init__(self, loss: Loss, missing: bool) -> None:
        self.loss, self.missing = loss, missing
        self.numbers = loss.target in ("numbers", "quantile")
        # A number's unit is unknown. Under the squared loss it does not matter: means follow the labels, whatever the noise.
        self.own = Squared(robust=ROBUST) if self.numbers else loss

    def linear(self, dim: int, *, sparse: bool) -> list[Linear]:
        """Those on the columns.

        Sparse rows of many columns keep to learners that never forget: to forget is to move every coordinate at every event.
        """
        members = COUNTS if self.loss.target == "counts" else NUMBERS if self.numbers else CLASSES
        scale = 1.0 / math.sqrt(dim) if self.loss.target == "counts" else 1.0
        if dim > FULL_UP_TO:
            scale *= NARROWER
            if sparse:
                members = tuple(dict.fromkeys(Member(member.prior_std, 1.0) for member in members))
        return [self.learner(Member(scale * std, discount), dim) for std, discount in members]

    def bent(self, dim: int, effort: Effort) -> list[Learner[Any]]:
        """Those on features of the columns, each map with a pool of its own."""
        columns = dim - 1
        views = [*(BENT_NUMBERS if self.numbers else BENT_CLASSES), HASHED_PRODUCTS]
        if any(isinstance(view.map, Products) and columns <= view.most_columns for view in views[:-1]):
            views = views[:-1]
        found: list[Learner[Any]] = []
        for view in views:
            if columns <= view.most_columns:
                width = Expand(view.map, self.learner(view.members[0], dim)).space(dim, dim).width
                found.append(Expand(view.map, self.weighing([self.learner(member, width) for member in view.members])))
        return found

    def learner(self, member: Member, dim: int) -> Linear:
        rule = Implicit(rate=0.5 if self.numbers else 1.0)  # half the squared loss is the logarithm of a normal density
        family = self._family(member, dim)
        return Linear(self.own, rule, family, average=False, discount=member.discount, missing=self.missing)

    def _family(self, member: Member, dim: int) -> Family:
        """A prior of this std, or as wide as it may be for the intercept.

        Covariances of numbers are for learners that remember enough events to know them.
        """
        full = dim <= FULL_UP_TO and (not self.numbers or member.discount**dim >= KEPT_AT_LEAST)
        stds = (max(INTERCEPT_STD if self.numbers else 1.0, member.prior_std), *[member.prior_std] * (dim - 1))
        return FullCovariance(prior_std=stds, box=None) if full else MeanField(prior_std=stds, box=None)

    def weighing(self, learners: list[Any]) -> Pool:
        if self.loss.odds is not None:
            return Pool(learners, rate=1.0, share=SHARE, pool="probability")
        return Pool(learners, rate=AdaHedge(), loss=self.loss, pool="prediction" if self.loss.level is None else "quantile")
