"""How each family forgets: after an event λ becomes γλ + (1 − γ)λ₁ in natural parameters, λ₁ the prior's.

Plain γλ would let the spread of a weight that no row excites grow without end; towards the prior it never passes the prior's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlinevi import ns
from onlinevi.contract import at
from onlinevi.families.base import MEAN_HIGH, MEAN_LOW, PRIOR_MEAN, PRIOR_STD, STD_HIGH, STD_LOW
from onlinevi.families.full_steps import condition, start_of
from onlinevi.families.low_rank_steps import decompose, gather, reach
from onlinevi.types import Real

LOG_HALF = -math.log(2.0)


def never(views: Any, frame: Any, discount: Real, count: Real) -> None:
    """With γ = 1."""


def point(views: Any, frame: Any, discount: Real, count: Real) -> None:
    """Gaussians of one covariance mix to the mixed mean: that is what is left of it without a spread."""
    mean = views[0]
    for j in range(len(mean)):
        mean[j] = boxed(discount * mean[j] + (1.0 - discount) * at(frame[PRIOR_MEAN], j), frame, j)


def mean_field(views: Any, frame: Any, discount: Real, count: Real) -> None:
    """Precisions relative to the belief's, so that a std of 0 divides nothing: it is infinite precision, and stays."""
    mean, std = views[0], views[1]
    for j in range(len(mean)):
        to_prior = std[j] / at(frame[PRIOR_STD], j)
        from_prior = (1.0 - discount) * to_prior * to_prior
        precision = discount + from_prior
        mean[j] = boxed(mean[j] + from_prior / precision * (at(frame[PRIOR_MEAN], j) - mean[j]), frame, j)
        wider = std[j] / ns.sqrt(precision)
        std[j] = ns.minimum(ns.maximum(wider, at(frame[STD_LOW], j)), at(frame[STD_HIGH], j))


def low_rank(views: Any, frame: Any, discount: Real, count: Real) -> None:
    """P' = γP + (1 − γ)P₁ has γu + (1 − γ)P₁ and √γ·W; mean' = mean + P'⁻¹(1 − γ)P₁(prior mean − mean), by Woodbury."""
    mean, diagonal, columns, row, root = views.mean, views.diagonal, views.columns, views.row, ns.sqrt(discount)
    for j in range(len(mean)):
        from_prior = (1.0 - discount) / (at(frame[PRIOR_STD], j) * at(frame[PRIOR_STD], j))
        diagonal[j] = discount * diagonal[j] + from_prior
        row[j] = from_prior * (at(frame[PRIOR_MEAN], j) - mean[j])
    for k in range(len(columns)):
        columns[k] *= root
    gather(views, 0.0)
    decompose(views.lower)
    reach(views)
    for j in range(len(mean)):
        mean[j] = boxed(mean[j] + views.reached[j], frame, j)


def full(views: Any, frame: Any, discount: Real, count: Real) -> None:
    """P' = γP, then the prior's share comes back to some coordinates: all at every event would cost O(d³).

    A coordinate's turn comes every ``period`` events and gives back what the prior lost there since the last one, as an
    observation of its prior mean. After t events P = Σ_s γ^(t−s+1)·κ_s·x_s·x_sᵀ + diag(share/prior_std²), and the share,
    1 at a turn and times γ after it, is never below ½.
    """
    mean, factor, _, _, w, reached = views
    dim, events, wider, decay = len(mean), int(count), 1.0 / ns.sqrt(discount), ns.log1p(discount - 1.0)
    for k in range(len(factor)):
        factor[k] *= wider
    period = min(dim, 1 + int(LOG_HALF / decay))
    lost = 1.0 - ns.exp(decay * min(events, period))
    for j in range(events % period, dim, period):
        # The row is e_j/prior_std: so no square of a std is formed.
        scale = 1.0 / at(frame[PRIOR_STD], j)
        for k in range(j + 1):
            w[k] = factor[start_of(k, dim) + np.uint64(j)] * scale
        gap = (at(frame[PRIOR_MEAN], j) - mean[j]) * scale
        shift = lost * gap / condition(views, lost, j + 1)
        for k in range(dim):
            mean[k] = boxed(mean[k] + shift * reached[k], frame, k)


def boxed(mean: Real, frame: Any, j: int) -> Real:
    return ns.minimum(ns.maximum(mean, at(frame[MEAN_LOW], j)), at(frame[MEAN_HIGH], j))
