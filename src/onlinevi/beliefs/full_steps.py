"""A row and a rule's step on a full covariance Σ = CᵀC, in O(d²).

C lies packed row by row, its upper triangle only. With w = C·x the prediction's variance is ‖w‖² and Σx = Cᵀw. A step is
C' = R·C with R upper triangular; below its diagonal R is rank one, so that rows are built from the last one up with one
running sum S = Σ_{k>i} w_k·C_k, which ends as Σx. ``engine/triangle.py`` has both passes over C.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlinevi.beliefs.base import named_rows
from onlinevi.beliefs.correlated import conditioned
from onlinevi.engine import Belief, Event, Geometry, Gradient, Moments, Prior, Real, Slopes, StepInputs, Totals, ns
from onlinevi.engine.holes import is_missing, keeps_std_total, missing_variance, new_belief, setting_at, value
from onlinevi.engine.triangle import BELOW, ROW, SCALE, SHIFT, SUM, TIMES, new_room, padding


class Views(NamedTuple):
    """The vectors inside a packed belief and its gradient totals, and room beside them."""

    mean: Any
    factor: Any
    """C."""
    mean_total: Any
    """Σ gradient in the mean."""
    factor_total: Any
    """Σ gradient in C, for rules that keep it."""
    room: Any
    """What stands for the row and the step in both passes over C, a line each: ``TIMES`` is w, ``SUM`` is S."""


def views(belief: Any, totals: Any, dim: int) -> Views:
    return Views(belief[:dim], belief[dim:], totals[:dim], totals[dim:], new_room(dim))


def start_of(i: int, dim: int) -> Any:
    """C_ij lies at start_of(i) + j. The index is unsigned: there is no look for negative ones."""
    return np.uint64(i * (2 * dim - i - 1) // 2)


def moments(views: Views, rows: Any, event: Event) -> Moments:
    mean, room = views.mean, views.room
    dim = np.uint64(len(mean))
    first = padding(dim)
    prediction = row_square = spread_square = 0.0
    for j in range(dim):
        room[ROW, first + j] = value(rows, event, j)
    # Sums in a loop that writes nothing: one that does has two versions, chosen by where memory lies, with sums in two orders.
    for j in range(dim):
        x = room[ROW, first + j]
        prediction += mean[j] * x
        row_square += x * x
    ns.triangle_times(views.factor, room, dim, dim)
    variance = room[BELOW, first] + room[TIMES, first] * room[TIMES, first]
    for j in range(dim):
        x = room[ROW, first + j]
        spread_square += x * x * ns.maximum(variance - room[BELOW, first + j], 0.0)  # Σ_k w_k²·Σ_{j ≥ k} x_j²
    return Moments(prediction, variance, variance, row_square, spread_square, missing_variance(views, rows, event))


def variance_of_missing(views: Views, rows: Any, event: Event) -> Real:
    """mean_j² + Σ_jj for each missing j; Σ_jj is the squared length of C's column."""
    mean, factor = views.mean, views.factor
    dim, total = len(mean), 0.0
    for j in range(dim):
        if is_missing(rows, event, j):
            total += mean[j] * mean[j]
            for k in range(j + 1):
                entry = factor[start_of(k, dim) + np.uint64(j)]
                total += entry * entry
    return total


def squares(views: Views) -> tuple[Real, Real]:
    mean, factor = views.mean, views.factor
    means = factors = 0.0
    for j in range(len(mean)):
        means += mean[j] * mean[j]
    for k in range(len(factor)):
        factors += factor[k] * factor[k]
    return means, factors


def in_entries(views: Views, rows: Any, event: Event, inputs: StepInputs, prior_and_box: Any) -> None:
    """Each entry of C moves by itself: above the diagonal as a mean does, on it as a std does. ∂E/∂C_kj = e2·w_k·x_j."""
    mean, factor, mean_total, factor_total, room = views
    _, seen, taken, ridge, rates, wider, _ = inputs
    box = named_rows(prior_and_box)
    dim = len(mean)
    first = padding(dim)
    for j in range(dim):
        x, pull = value(rows, event, j), ridge * mean[j]
        gradient = taken.slope * x + pull
        mean_total[j] += seen.slope * x + pull
        prior = Prior(setting_at(box.prior_mean, j), setting_at(box.prior_std, j))
        new = new_belief(Belief(mean[j], 1.0), Gradient(gradient, 0.0), Totals(mean_total[j], 0.0), rates, prior)
        mean[j] = ns.minimum(ns.maximum(new.mean, setting_at(box.mean_low, j)), setting_at(box.mean_high, j))
    for k in range(dim):
        start, force = start_of(k, dim), taken.curvature * room[TIMES, first + k]
        total = 0.0
        for j in range(np.uint64(k), np.uint64(dim)):
            entry = factor[start + j]
            gradient = force * value(rows, event, j) + ridge * entry
            if keeps_std_total():
                total = factor_total[start + j] + gradient
                factor_total[start + j] = total
            prior = Prior(0.0, setting_at(box.prior_std, j))
            factor[start + j] = new_belief(Belief(entry, 1.0), Gradient(gradient, 0.0), Totals(total, 0.0), rates, prior).mean
        place = start + np.uint64(k)
        if keeps_std_total():
            prior = Prior(0.0, setting_at(box.prior_std, k))
            totals = Totals(0.0, factor_total[place])
            factor[place] = new_belief(Belief(0.0, 1.0), Gradient(0.0, 0.0), totals, rates, prior).std
        else:
            factor[place] = ns.maximum(factor[place], 0.0)  # a gradient step, back to where a factor is one
    for k in range(len(factor) if wider > 1.0 else 0):
        factor[k] *= wider


def whitened(views: Views, rows: Any, event: Event, inputs: StepInputs, prior_and_box: Any) -> None:
    """R moves from the identity: entry (k, j) has the gradient e2·w_k·w_j, above the diagonal as a mean, on it as a std."""
    room, taken, rates = views.room, inputs.taken, inputs.rates
    dim, still, none = np.uint64(len(views.mean)), Belief(0.0, 1.0), Totals(0.0, 0.0)
    first, prior = padding(dim), Prior(0.0, 1.0)
    for k in range(first, first + dim):
        force = taken.curvature * room[TIMES, k]
        new = new_belief(still, Gradient(force, force * room[TIMES, k]), none, rates, prior)
        room[SCALE, k], room[SHIFT, k] = inputs.wider * new.std, inputs.wider * new.mean
    fold(views, dim)
    along = new_belief(still, Gradient(taken.slope, 0.0), none, rates, prior).mean
    move_mean(views, rows, event, inputs.seen, along, prior_and_box)


def by_prediction(views: Views, rows: Any, event: Event, inputs: StepInputs, prior_and_box: Any) -> None:
    """P' = P + growth·xxᵀ: R is the factor of I − k·wwᵀ, written in the sums of w² from below, which only add."""
    growth, shift = conditioned(inputs)
    condition(views, growth, len(views.mean), inputs.wider)
    move_mean(views, rows, event, inputs.seen, shift, prior_and_box)


def condition(views: Views, growth: Real, count: int, wider: Real) -> Real:
    """The covariance given growth·xxᵀ more precision, for w = C·x that is 0 from ``count`` on; returns 1 + growth·v².

    The factor is made wider in the same pass, as forgetting will have it: a pass of its own would take as long as the step.
    """
    room, first = views.room, padding(np.uint64(len(views.mean)))
    for k in range(first, first + np.uint64(count)):
        w, under = room[TIMES, k], 1.0 + growth * room[BELOW, k]
        kept = ns.sqrt(under / (under + growth * w * w))
        room[SCALE, k], room[SHIFT, k] = wider * kept, wider * (-growth * w / under * kept)
    fold(views, np.uint64(count))
    return 1.0 + growth * (room[BELOW, first] + room[TIMES, first] * room[TIMES, first])


def fold(views: Views, count: Any) -> None:
    """The first rows of C become scale_k·C_k + shift_k·S, where S = Σ_{i>k} w_i·C_i of rows as they were; the others stay."""
    room, dim = views.room, np.uint64(len(views.mean))
    behind = padding(dim) + count
    end = behind + padding(behind)
    for k in range(behind, end):
        room[SCALE, k], room[SHIFT, k], room[TIMES, k] = 1.0, 0.0, 0.0
    for j in range(end, np.uint64(room.shape[1])):
        room[SUM, j] = 0.0
    ns.fold_triangle(views.factor, room, dim, count)


def move_mean(views: Views, rows: Any, event: Event, seen: Slopes, shift: Real, prior_and_box: Any) -> None:
    """The mean becomes mean + shift·Σx, in the box; S is Σx by now."""
    mean, mean_total, room = views.mean, views.mean_total, views.room
    box, dim = named_rows(prior_and_box), np.uint64(len(mean))
    first = padding(dim)
    for j in range(dim):
        mean_total[j] += seen.slope * room[ROW, first + j]
        new = mean[j] + shift * room[SUM, first + j]
        mean[j] = ns.minimum(ns.maximum(new, setting_at(box.mean_low, j)), setting_at(box.mean_high, j))


BY_GEOMETRY = {Geometry.ENTRIES: in_entries, Geometry.WHITENED: whitened, Geometry.PREDICTION: by_prediction}
