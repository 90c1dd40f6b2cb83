"""Whether probabilities mean what they say: of the events given 0.8, do 80 % happen?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinevi.engine import Vector


@dataclass(frozen=True, eq=False)
class Reliability:
    """Events in bins of the probability they were given; empty bins are left out."""

    predicted: Vector
    """The mean probability in a bin."""
    observed: Vector
    """The part of its events that happened."""
    count: Vector
    """How many there are."""


def reliability(probability: Any, y: Any, bins: int = 10) -> Reliability:
    """Bin events by the probability of +1 that was said before their label ±1 was seen.

    >>> from onlinevi.learners import reliability
    >>> reliability([0.1, 0.1, 0.9, 0.7], [-1, 1, 1, 1], bins=2).observed.tolist()
    [0.5, 1.0]
    """
    said, labels = np.asarray(probability, dtype=float), np.asarray(y, dtype=float)
    if said.shape != labels.shape or said.ndim != 1:
        raise ValueError(f"{said.shape} probabilities, {labels.shape} labels: needs one label a probability")
    if not np.isin(labels, (-1.0, 1.0)).all():
        raise ValueError(f"label {labels[~np.isin(labels, (-1.0, 1.0))][0]}: needs classes −1 and +1")
    if not ((said >= 0.0) & (said <= 1.0)).all():
        raise ValueError("a probability is not in [0, 1]: give trace.probability, not trace.prediction")
    if bins < 1:
        raise ValueError(f"bins={bins}: needs at least one; try 10")
    own = np.minimum((said * bins).astype(int), bins - 1)
    count = np.bincount(own, minlength=bins)
    used = count > 0
    sums = (np.bincount(own, values, minlength=bins)[used] for values in (said, labels > 0.0))
    predicted, observed = (total / count[used] for total in sums)
    return Reliability(predicted, observed, count[used].astype(float))
