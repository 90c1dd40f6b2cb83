"""How each family forgets: after an event λ becomes γλ + (1 − γ)λ₁ in natural parameters, λ₁ the prior's.

Plain γλ would let the spread of a weight that no row excites grow without end; towards the prior it never passes the prior's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlinevi.beliefs.base import named_rows
from onlinevi.beliefs.full_steps import condition, start_of
from onlinevi.beliefs.low_rank_steps import apply_covariance, decompose, gather
from onlinevi.engine import Real, ns
from onlinevi.engine.holes import setting_at

LOG_HALF = -math.log(2.0)
FEW = 32
"""Up to so many coordinates it is somebody's turn at every event."""


def point(views: Any, prior_and_box: Any, discount: Real, count: Real) -> None:
    """Gaussians of one covariance mix to the mixed mean: that is what is left of it without a spread."""
    mean, box = views[0], named_rows(prior_and_box)
    for j in range(len(mean)):
        mixed = discount * mean[j] + (1.0 - discount) * setting_at(box.prior_mean, j)
        mean[j] = between(setting_at(box.mean_low, j), mixed, setting_at(box.mean_high, j))


def mean_field(views: Any, prior_and_box: Any, discount: Real, count: Real) -> None:
    """Precisions are relative to the belief's, so that a std of 0 divides nothing: it is infinite precision, and stays."""
    mean, std, box = views[0], views[1], named_rows(prior_and_box)
    for j in range(len(mean)):
        to_prior = std[j] / setting_at(box.prior_std, j)
        from_prior = (1.0 - discount) * to_prior * to_prior
        precision = discount + from_prior
        back = from_prior / precision * (setting_at(box.prior_mean, j) - mean[j])
        mean[j] = between(setting_at(box.mean_low, j), mean[j] + back, setting_at(box.mean_high, j))
        std[j] = between(setting_at(box.std_low, j), std[j] / ns.sqrt(precision), setting_at(box.std_high, j))


def low_rank(views: Any, prior_and_box: Any, discount: Real, count: Real) -> None:
    """P' = γP + (1 − γ)P₁ has γu + (1 − γ)P₁ and √γ·W; mean' = mean + P'⁻¹(1 − γ)P₁(prior mean − mean), by Woodbury."""
    mean, diagonal, columns, row, root = views.mean, views.diagonal, views.columns, views.row, ns.sqrt(discount)
    box = named_rows(prior_and_box)
    for j in range(len(mean)):
        from_prior = (1.0 - discount) / (setting_at(box.prior_std, j) * setting_at(box.prior_std, j))
        diagonal[j] = discount * diagonal[j] + from_prior
        row[j] = from_prior * (setting_at(box.prior_mean, j) - mean[j])
    for k in range(len(columns)):
        columns[k] *= root
    gather(views, 0.0)
    decompose(views.lower)
    apply_covariance(views)
    for j in range(len(mean)):
        mean[j] = between(setting_at(box.mean_low, j), mean[j] + views.covariance_x[j], setting_at(box.mean_high, j))


def full(views: Any, prior_and_box: Any, discount: Real, count: Real) -> None:
    """P' = γP was done by the step; here the prior's share comes back to some coordinates: to all it would cost O(d³).

    A coordinate's turn comes every ``period`` events and gives back what the prior lost there since the last one, as an
    observation of its prior mean. After t events P = Σ_s γ^(t−s+1)·κ_s·x_s·x_sᵀ + diag(share/prior_std²), and the share,
    1 at a turn and times γ after it, is never below ½. Where there are many coordinates and a long memory, most events are
    nobody's turn.
    """
    mean, factor, _, _, w, covariance_x = views
    box = named_rows(prior_and_box)
    dim, events, decay = len(mean), int(count), ns.log1p(discount - 1.0)
    longest = 1 + int(LOG_HALF / decay)
    rest = max(longest // dim, 1) if dim > FEW else 1  # how many events there are from one turn to the next
    if events % rest > 0:
        return
    period = min(dim, longest)
    lost = 1.0 - ns.exp(decay * min(events, period * rest))
    for j in range(events // rest % period, dim, period):
        # The row is e_j/prior_std: so no square of a std is formed.
        scale = 1.0 / setting_at(box.prior_std, j)
        for k in range(j + 1):
            w[k] = factor[start_of(k, dim) + np.uint64(j)] * scale
        gap = (setting_at(box.prior_mean, j) - mean[j]) * scale
        shift = lost * gap / condition(views, lost, j + 1, 1.0)
        for k in range(dim):
            mean[k] = between(setting_at(box.mean_low, k), mean[k] + shift * covariance_x[k], setting_at(box.mean_high, k))


def between(low: Real, value: Real, high: Real) -> Real:
    """The value in the box: a mixture of correlated beliefs may leave it, and rounding may any."""
    return ns.minimum(ns.maximum(value, low), high)
