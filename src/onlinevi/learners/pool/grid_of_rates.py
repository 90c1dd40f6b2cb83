"""A grid of rates instead of one to tune."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onlinevi.learners.linear import Linear


def over_rates(learner: Linear, low: float, high: float, count: int = 16) -> list[Linear]:
    """The learner at ``count`` rates from ``low`` to ``high``, each a fixed factor above the one before.

    An ``Aggregate`` of them runs in one compiled loop, and with ``AdaHedge()`` loses little to the best of them.

    >>> import onlinevi as ovi
    >>> from onlinevi.ewa import over_rates
    >>> [one.rule.rate for one in over_rates(ovi.Linear(ovi.Hinge(), ovi.SVA()), 0.01, 1.0, count=3)]
    [PerHorizon(c=0.01), PerHorizon(c=0.1), PerHorizon(c=1.0)]
    """
    if not 0.0 < low < high < np.inf or count < 2:
        raise ValueError(f"low={low!r}, high={high!r}, count={count!r}: needs 0 < low < high and at least 2 rates")
    return [replace(learner, rule=learner.rule.with_rate(float(c))) for c in np.geomspace(low, high, count)]
