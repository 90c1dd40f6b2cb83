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
from onlinevi.engine import Belief, Event, Real, ns
from onlinevi.engine.holes import position, setting_at
from onlinevi.engine.triangle import BELOW, SUM, TIMES, padding

LOG_HALF = -math.log(2.0)
LEAST = -700.0
"""The logarithm of the least that is kept: there a std of 0 is infinite precision still."""
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
    for j in range(len(views[0])):
        mean_field_at(views, named_rows(prior_and_box), discount, j)


def mean_field_at(views: Any, box: Any, kept: Real, j: int) -> None:
    """One coordinate, of which this part of what was learned is kept."""
    mean, std = views[0], views[1]
    to_prior = std[j] / setting_at(box.prior_std, j)
    from_prior = (1.0 - kept) * to_prior * to_prior
    precision = kept + from_prior
    back = from_prior / precision * (setting_at(box.prior_mean, j) - mean[j])
    mean[j] = between(setting_at(box.mean_low, j), mean[j] + back, setting_at(box.mean_high, j))
    std[j] = between(setting_at(box.std_low, j), std[j] / ns.sqrt(precision), setting_at(box.std_high, j))


def catch_up(views: Any, rows: Any, event: Event, late: Any, prior_and_box: Any, decay: Real, count: Real) -> None:
    """To forget k times is to keep γ^k of what was learned: so a coordinate forgets when a row stores it, for all since."""
    mean, std, box, (forgot, before) = views[0], views[1], named_rows(prior_and_box), late
    for k in range(event.start, event.stop):
        j, i = position(rows, k), k - event.start
        before[0, i], before[1, i], before[2, i] = mean[j], std[j], forgot[j]
        if forgot[j] < count:
            mean_field_at(views, box, ns.exp(ns.maximum(decay * (count - forgot[j]), LEAST)), j)
            forgot[j] = count


def put_back(views: Any, rows: Any, event: Event, late: Any) -> None:
    """As they were."""
    mean, std, (forgot, before) = views[0], views[1], late
    for k in range(event.start, event.stop):
        j, i = position(rows, k), k - event.start
        mean[j], std[j], forgot[j] = before[0, i], before[1, i], before[2, i]


def caught_up(belief: Belief, rows: Any, discount: float, events: Any) -> Belief:
    """All coordinates as if they had forgotten by so many more events each."""
    box, kept = named_rows(rows), np.exp(np.maximum(math.log(discount) * events, LEAST))
    from_prior = (1.0 - kept) * np.square(belief.std / box.prior_std)
    precision = kept + from_prior
    mean = belief.mean + from_prior / precision * (box.prior_mean - belief.mean)
    std = belief.std / np.sqrt(precision)
    return Belief(np.clip(mean, box.mean_low, box.mean_high), np.clip(std, box.std_low, box.std_high))


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
    mean, factor, room = views.mean, views.factor, views.room
    box = named_rows(prior_and_box)
    dim, first = len(mean), int(padding(len(mean)))
    events, rest, period = int(count), 1, dim
    kept = power(discount, dim) if dim <= FEW else 0.0
    if kept < 0.5:
        decay = ns.log1p(discount - 1.0)
        longest = 1 + int(LOG_HALF / decay)
        rest = max(longest // dim, 1) if dim > FEW else 1  # how many events there are from one turn to the next
        if events % rest > 0:
            return
        period = min(dim, longest)
        kept = ns.exp(decay * min(events, period * rest))
    elif events < dim:
        kept = power(discount, events)
    lost = 1.0 - kept
    for j in range(events // rest % period, dim, period):
        # The row is e_j/prior_std: so no square of a std is formed.
        scale = 1.0 / setting_at(box.prior_std, j)
        total = 0.0
        for k in range(j, -1, -1):
            w = factor[start_of(k, dim) + np.uint64(j)] * scale
            room[TIMES, first + k], room[BELOW, first + k] = w, total
            total += w * w
        gap = (setting_at(box.prior_mean, j) - mean[j]) * scale
        shift = lost * gap / condition(views, lost, j + 1, 1.0)
        for k in range(dim):
            mean[k] = between(
                setting_at(box.mean_low, k), mean[k] + shift * room[SUM, first + k], setting_at(box.mean_high, k)
            )


def power(base: Real, exponent: int) -> Real:
    """By squaring: quicker than a logarithm, where exponents are small."""
    found = 1.0
    while exponent > 0:
        found = found * base if exponent % 2 == 1 else found
        base, exponent = base * base, exponent // 2
    return found


def between(low: Real, value: Real, high: Real) -> Real:
    """The value in the box: a mixture of correlated beliefs may leave it, and rounding may any."""
    return ns.minimum(ns.maximum(value, low), high)
