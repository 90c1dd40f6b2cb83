"""What the default is made of: which learners, on which features, weighed how. docs/choosing.md says why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from onlinevi.beliefs import Family, FullCovariance, MeanField
from onlinevi.learners.base import Learner
from onlinevi.learners.clip import Clip
from onlinevi.learners.expand import Beside, Expand, FeatureMap, Fourier, Products, Relu, Splines, Unbent
from onlinevi.learners.expand.space import space
from onlinevi.learners.lag import Lag
from onlinevi.learners.linear import Linear
from onlinevi.learners.pool import AdaHedge, Pool
from onlinevi.learners.pool.pool import Pooling
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
NARROW, NARROW_FROM = Member(0.3, 1.0), 31
"""One more for classes, where there are so many columns or more: most of them may tell nothing."""
MEMORIES = (1.0, 0.999, 0.99, 0.95, 0.7)
"""Discounts: of all events, and of about 1000, 100, 20 and 3."""
NUMBERS = tuple(Member(std, discount) for std in (0.3, 1.0, 4.0, 20.0) for discount in MEMORIES)
"""Learners on the columns. Of classes four do what twenty did; of numbers fewer lose a tenth on some stream, and are cheap."""
COUNTS = tuple(Member(std, discount) for std in (0.5, 1.0, 2.0) for discount in MEMORIES)
"""The same for the logarithm of a rate as a whole: a wide prior there means rates without a bound."""
NARROWER = 0.1
"""Priors where there are many columns, beside those of few: together they must not predict anything at all."""
WIDE_SPARSE = tuple(Member(std, 1.0) for std in (0.03, 0.1, 0.3, 1.0))
LAZY = Member(0.1, 0.9995), Member(0.3, 0.995)
"""Beside these: a weight forgets when a row stores it, for all events since, so that a row costs what it stores."""
INTERCEPT = 1000.0
"""Of numbers, as many times as wide as all other weights together: where they lie is not to be guessed, no learner is to be
judged by its guess, and the first label is not to be laid to features."""
FULL_UP_TO: dict[Effort, int] = {"light": 190, "default": 190, "most": 400}
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
BENT_ONE_OF_MANY = (
    View(Splines(), (Member(4.0, 0.999),), 100),
    View(Products(), (Member(4.0, 0.999),), 16),
    View(Relu(100), (Member(4.0, 0.999),), WAVES),
    View(Fourier(100), (Member(1.0, 0.999),), WAVES),
)
"""Where there are as many of these pools as classes."""
BENT_NUMBERS = (
    View(Splines(), (Member(1.0, 1.0), Member(0.3, 0.999), Member(1.0, 0.99)), 100),
    View(Products(), (Member(0.3, 1.0), Member(0.3, 0.999)), 16),
    View(Relu(100), (Member(0.3, 1.0), Member(1.0, 0.99)), WAVES),
    View(Fourier(100, scale=3.0), (Member(4.0, 1.0),), WAVES),
)
STRAIGHT = (Member(1.0, 1.0), Member(1.0, 0.99), Member(4.0, 0.95))
"""Learners of numbers on the columns before these were bent: some labels follow extremes to the end. What they
say is clipped like that of the others: unclipped they made the loss on a stream of prices with spikes a twelfth larger."""
REACH = 10.0
"""How far columns are unbent, in the unit of ``squash``."""
HASHED_PRODUCTS = View(Products(buckets=128), (Member(0.3, 1.0),), 60)
"""Pairs of so many columns that there are hundreds of them."""
MORE_CLASSES = (
    View(Relu(250, seed=1), (Member(4.0, 0.999), Member(1.0, 1.0), Member(4.0, 0.99)), WAVES),
    View(Beside((Products(), Relu(100, seed=2))), (Member(4.0, 0.999), Member(1.0, 1.0)), 16),
    View(Fourier(200, scale=(0.5, 1.0), seed=1), (Member(1.0, 1.0), Member(1.0, 0.999)), WAVES),
)
MORE_NUMBERS = (
    View(Relu(250, seed=1), (Member(0.3, 1.0), Member(1.0, 0.99)), WAVES),
    View(Beside((Products(), Relu(100, seed=2))), (Member(1.0, 1.0), Member(0.3, 0.999)), 16),
    View(Fourier(200, scale=(1.0, 3.0), seed=1), (Member(1.0, 1.0), Member(0.3, 0.99)), WAVES),
)
"""What most is beside the default."""


@dataclass(frozen=True)
class Chosen:
    """What is known before the first row, but for the number of columns."""

    loss: Loss
    effort: Effort
    lags: int = 0
    one_of_many: bool = False
    sparse: bool = False
    missing: bool = False
    squash: float | None = 3.0

    @property
    def numbers(self) -> bool:
        """Whether labels are amounts, whose unit is unknown."""
        return self.loss.target in ("numbers", "quantile")

    @property
    def counts(self) -> bool:
        """Whether labels are counts."""
        return self.loss.target == "counts"


def core(chosen: Chosen, dim: int) -> Pool | Recalibrate:
    """What the default makes of prepared rows of ``dim`` columns, the intercept first: a pool, its probabilities set right."""
    pooled = pool(chosen, dim)
    # Of several classes the coupling sets probabilities right.
    bends = pooled.settled and chosen.effort != "light" and not chosen.one_of_many
    return Recalibrate(pooled) if bends else pooled


@lru_cache(maxsize=64)
def pool(chosen: Chosen, dim: int) -> Pool:
    """The learners of the default, and how they are weighed."""
    learners: list[Learner[Any]] = [*linear(chosen, dim)]
    # To make features of sparse rows is to store more than they do; and rates that bend may have no bound.
    if not (chosen.effort == "light" or chosen.sparse or chosen.counts):
        if chosen.one_of_many and chosen.loss.odds is not None:
            learners = [weighed(chosen, learners)]  # heard by itself where classes are coupled
        learners += bent(chosen, dim)
    if chosen.lags:
        learners.append(Lag(weighed(chosen, linear(chosen, dim + chosen.lags)), chosen.lags))
    return weighed(chosen, learners)


def linear(chosen: Chosen, dim: int, classes: tuple[Member, ...] = CLASSES) -> list[Linear]:
    """Learners on the columns, of classes those given."""
    is_wide, scale = dim > FULL_UP_TO[chosen.effort], 1.0
    members: tuple[Member, ...] = NUMBERS if chosen.numbers else classes
    if chosen.counts:
        members, scale = COUNTS, 1.0 / math.sqrt(dim)
    elif is_wide:
        # Rows that store little tell little of each weight: these keep to narrow priors, of a grid of their own.
        members, scale = ((*WIDE_SPARSE, *LAZY), 1.0) if chosen.sparse else (members, NARROWER)
    elif not chosen.numbers and dim > NARROW_FROM:
        members = (NARROW, *members)
    wide_sparse = is_wide and chosen.sparse
    if wide_sparse and chosen.counts:  # fifteen would cost five times as much
        members = tuple(member for member in members if member.discount == 1.0)
    learners = [leaf(chosen, Member(scale * std, discount), dim) for std, discount in members]
    return [replace(learner, lazy=learner.discount < 1.0) for learner in learners] if wide_sparse else learners


def bent(chosen: Chosen, dim: int) -> list[Learner[Any]]:
    """Learners on features of the columns, each map with a pool of its own.

    Those of numbers stay between the labels so far. A label beyond them is for the learners on the columns to foretell.
    """
    views = [*(BENT_NUMBERS if chosen.numbers else BENT_ONE_OF_MANY if chosen.one_of_many else BENT_CLASSES)]
    if chosen.effort == "most":
        views += MORE_NUMBERS if chosen.numbers else MORE_CLASSES
    fitting = [view for view in views if dim - 1 <= view.most_columns]
    if dim - 1 <= HASHED_PRODUCTS.most_columns and not any(isinstance(view.map, Products) for view in fitting):
        fitting.append(HASHED_PRODUCTS)
    found: list[Learner[Any]] = []
    for view in fitting:
        width = space(view.map, True, True, dim - 1, dim).width
        pooled = weighed(chosen, [leaf(chosen, member, width) for member in view.members])
        found.append(Expand(view.map, Clip(pooled) if chosen.numbers else pooled))
    if chosen.numbers and chosen.squash is not None:
        straight = weighed(chosen, [leaf(chosen, member, dim) for member in STRAIGHT])
        found.append(Expand(Unbent(chosen.squash, REACH * chosen.squash), Clip(straight), keep=False))
    return found


def leaf(chosen: Chosen, member: Member, dim: int) -> Linear:
    """A learner of this many columns or features."""
    # A number's unit is unknown. Under the squared loss it does not matter: means follow the labels, whatever the noise.
    own = Squared(robust=ROBUST) if chosen.numbers else chosen.loss
    rule = Implicit(rate=0.5 if chosen.numbers else 1.0)  # half the squared loss is the logarithm of a normal density
    # Covariances of numbers are for learners that remember enough events to know them.
    full = dim <= FULL_UP_TO[chosen.effort] and (not chosen.numbers or member.discount**dim >= KEPT_AT_LEAST)
    rest = member.prior_std * math.sqrt(dim)  # what all weights together may predict
    intercept = INTERCEPT * max(rest, 1.0) if chosen.numbers else max(1.0, member.prior_std)
    stds = (intercept, *[member.prior_std] * (dim - 1))
    family: Family = FullCovariance(prior_std=stds, box=None) if full else MeanField(prior_std=stds, box=None)
    return Linear(own, rule, family, average=False, discount=member.discount, missing=chosen.missing)


def weighed(chosen: Chosen, learners: Sequence[Learner[Any]]) -> Pool:
    """The learners in a pool."""
    if chosen.loss.odds is not None:
        return Pool(learners, rate=1.0, share=SHARE, pool="probability")
    pooling: Pooling = "prediction" if chosen.loss.level is None else "quantile"
    return Pool(learners, rate=AdaHedge(), loss=chosen.loss, pool=pooling)
