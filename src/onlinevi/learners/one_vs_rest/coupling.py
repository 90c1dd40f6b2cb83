"""Classes, each against the rest: how their log-odds become probabilities that sum to 1.

Divided by their sum, probabilities of several classes are too timid where classes are well apart, and a softmax of log-odds
too bold where they are not. P(k) ∝ p_k/(1 − p_k)^β has the one at β = 0 and the other at β = 1. Exponential weights at rate 1
over a few β, by the log-loss of what was said before each label: on any stream at most ln 7 more in all than the best β.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import Vector

BOLDNESS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


class Weighed(NamedTuple):
    """Some rows under every β: a column each."""

    before: Vector
    """The total log-loss of each β before each row."""
    after: Vector
    """The totals after all rows."""


def start() -> Vector:
    """The totals before the first row."""
    return np.zeros(len(BOLDNESS))


def log_shares(scores: Vector, boldness: float) -> Vector:
    """log P(class) at each row of one-vs-rest log-odds, for one β. All β agree on the order of the classes."""
    from scipy.special import log_expit, log_softmax

    return np.asarray(log_softmax(log_expit(scores) - boldness * log_expit(-scores), axis=1))


def weigh(totals: Vector, scores: Vector, classes: Any, seen: Sequence[bool], weights: Vector | None = None) -> Weighed:
    """Weigh every β by these rows, whose classes are given by number; any split gives the same bits.

    Only classes that have come take part, so that a class known from the start and one that joins weigh the same.
    """
    places = np.cumsum(seen) - 1
    paid = _paid(scores[:, list(seen)], places[classes])
    weighted = paid if weights is None else paid * weights
    along = np.ascontiguousarray(np.cumsum(np.column_stack([totals, weighted]), axis=1).T)
    return Weighed(along[:-1], along[-1])


def _paid(scores: Vector, classes: Any) -> Vector:
    """The log-loss of each β at each row: a row a β."""
    each = (np.take_along_axis(log_shares(scores, boldness), classes[:, None], 1)[:, 0] for boldness in BOLDNESS)
    return -np.stack(list(each))


def log_loss(totals: Vector, scores: Vector, classes: Any) -> Vector:
    """−log of the probability said of each row's class; finite where that is too small for a number."""
    from scipy.special import log_softmax

    return np.asarray(-np.logaddexp.reduce(log_softmax(-totals, axis=1) - _paid(scores, classes).T, axis=1))


def probabilities(totals: Vector, scores: Vector) -> Vector:
    """The weighted mean over all β: by the same totals for all rows, or by a row of totals for each."""
    from scipy.special import softmax

    each = zip(softmax(-np.atleast_2d(totals), axis=1).T, BOLDNESS, strict=True)
    return np.asarray(sum(weight[:, None] * np.exp(log_shares(scores, boldness)) for weight, boldness in each))
