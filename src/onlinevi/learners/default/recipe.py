"""What the default is made of: which learners, over which grid, weighed how. docs/choosing.md says why."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

from onlinevi.beliefs import Family, FullCovariance, MeanField
from onlinevi.learners.linear import Linear
from onlinevi.learners.pool import AdaHedge, Pool
from onlinevi.losses import Loss, Squared
from onlinevi.rules import Implicit

PRIOR_STDS = (0.3, 1.0, 4.0, 20.0)
"""How large weights of standardised features may be, in units of the noise: from a strong prior to almost none."""
WIDE_STDS = (0.03, 0.1, 0.3, 1.0)
"""The same where there are many columns: together they must not predict anything at all."""
INTERCEPT_STD = 1000.0
"""Of numbers: where they lie is not to be guessed, and no learner is to be judged by its guess."""
LOG_RATE_STDS = (0.5, 1.0, 2.0)
"""The same for counts, of the logarithm of the rate as a whole: a wide prior there means rates without a bound."""
DISCOUNTS = (1.0, 0.999, 0.99, 0.95, 0.7)
"""How fast learners forget: never, or with a memory of about 1000, 100, 20 and 3 events."""
FULL_UP_TO = 150
"""With more columns than this a covariance costs more than it is worth: coordinates are independent then."""
KEPT_AT_LEAST = 0.25
"""What a learner must keep of an event after as many events as there are columns to have covariances."""
SHARE = 1e-4
"""How much weight moves on at each event: once in some ten thousand the best learner may change for free."""
ROBUST = 7.0
"""A residual this many times the usual counts half as much as it pulls."""


@lru_cache(maxsize=64)
def pool(loss: Loss, dim: int, *, sparse: bool, missing: bool) -> Pool:
    """The learners of the default for prepared rows of ``dim`` columns, the intercept first, and how they are weighed.

    Sparse rows of many columns keep to learners that never forget: to forget is to move every coordinate at every event.
    """
    discounts = DISCOUNTS if dim <= FULL_UP_TO or not sparse else DISCOUNTS[:1]
    numbers = loss.target in ("numbers", "quantile")
    # A number's unit is unknown. Under the squared loss it does not matter: means follow the labels, whatever the noise.
    own = Squared(robust=ROBUST) if numbers else loss
    stds: tuple[float, ...] = PRIOR_STDS if dim <= FULL_UP_TO else WIDE_STDS
    if loss.target == "counts":
        stds = tuple(std / math.sqrt(dim) for std in LOG_RATE_STDS)
    rule = Implicit(rate=0.5 if numbers else 1.0)  # half the squared loss is the logarithm of a normal density
    intercept = INTERCEPT_STD if numbers else 1.0
    learners = [
        Linear(own, rule, _family(dim, std, discount, intercept), average=False, discount=discount, missing=missing)
        for std, discount in itertools.product(stds, discounts)
    ]
    if loss.odds is not None:
        return Pool(learners, rate=1.0, share=SHARE, pool="probability")
    return Pool(learners, rate=AdaHedge(), loss=loss, pool="prediction" if loss.level is None else "quantile")


def _family(dim: int, std: float, discount: float, intercept: float) -> Family:
    """A prior of this std, or as wide as it may be for the intercept.

    Covariances are for learners that remember enough events to know them.
    """
    full = dim <= FULL_UP_TO and discount**dim >= KEPT_AT_LEAST
    stds = (max(intercept, std), *[std] * (dim - 1))
    return FullCovariance(prior_std=stds, box=None) if full else MeanField(prior_std=stds, box=None)
