"""Classes, each against the rest: how their log-odds become probabilities that sum to 1.

Divided by their sum, probabilities of several classes are too timid where classes are well apart, and a softmax of log-odds
too bold where they are not. P(k) ∝ p_k/(1 − p_k)^β has the one at β = 0 and the other at β = 1. Exponential weights at rate 1
over a few β, by the log-loss of what was said before each label: on any stream at most ln 7 more in all than the best β.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinevi.types import Vector

BOLDNESS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


def log_shares(scores: Vector, boldness: float) -> Vector:
    """log P(class) at each row of one-vs-rest log-odds, for one β. All β agree on the order of the classes."""
    from scipy.special import log_expit, log_softmax

    return np.asarray(log_softmax(log_expit(scores) - boldness * log_expit(-scores), axis=1))


def after_labels(totals: Vector, scores: Vector, classes: Any, weights: Vector | None) -> Vector:
    """The total log-loss of each β after these rows, whose classes are given by number; any split gives the same bits."""
    paid = np.stack([-np.take_along_axis(log_shares(scores, boldness), classes[:, None], 1)[:, 0] for boldness in BOLDNESS])
    weighted = paid if weights is None else paid * weights
    return np.asarray(np.cumsum(np.column_stack([totals, weighted]), axis=1)[:, -1])


def probabilities(totals: Vector, scores: Vector) -> Vector:
    """The weighted mean over all β."""
    from scipy.special import softmax

    each = zip(softmax(-totals), BOLDNESS, strict=True)
    return np.asarray(sum(weight * np.exp(log_shares(scores, boldness)) for weight, boldness in each))
