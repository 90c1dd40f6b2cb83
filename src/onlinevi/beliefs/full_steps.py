"""A row and a rule's step on a full covariance Σ = CᵀC, in O(d²).

C lies packed row by row, its upper triangle only. With w = C·x the prediction's variance is ‖w‖² and Σx = Cᵀw. A step is
C' = R·C with R upper triangular; below its diagonal R is rank one, so that rows are built from the last one up with one
running sum S = Σ_{k>i} w_k·C_k, which ends as Σx.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinevi.beliefs.base import named_rows
from onlinevi.beliefs.correlated import conditioned
from onlinevi.engine import Belief, Event, Geometry, Gradient, Moments, Prior, Real, Slopes, StepInputs, Totals, ns
from onlinevi.engine.holes import is_missing, keeps_std_total, missing_variance, new_belief, setting_at, value


def views(belief: Any, totals: Any, dim: int) -> Any:
    """The vectors are the mean, C, Σ gradient in the mean, Σ gradient in C, and room for w and for S."""
    return belief[:dim], belief[dim:], totals[:dim], totals[dim:], np.empty(dim), np.empty(dim)


def start_of(i: int, dim: int) -> Any:
    """C_ij lies at start_of(i) + j. The index is unsigned: there is no look for negative ones."""
    return np.uint64(i * (2 * dim - i - 1) // 2)


def moments(views: Any, rows: Any, event: Event) -> Moments:
    mean, factor, _, _, w, _ = views
    dim = len(mean)
    prediction = variance = row_square = spread_square = 0.0
    for k in range(dim - 1, -1, -1):
        x, start = value(rows, event, k), start_of(k, dim)
        prediction += mean[k] * x
        row_square += x * x
        total = 0.0
        for j in range(np.uint64(k), np.uint64(dim)):
            total += factor[start + j] * value(rows, event, j)
        w[k] = total
        variance += total * total
        spread_square += total * total * row_square  # Σ_{j ≥ k} x_j², as rows come from the last one up
    return Moments(prediction, variance, variance, row_square, spread_square, missing_variance(views, rows, event))


def variance_of_missing(views: Any, rows: Any, event: Event) -> Real:
    """mean_j² + Σ_jj for each missing j; Σ_jj is the squared length of C's column."""
    mean, factor, _, _, _, _ = views
    dim, total = len(mean), 0.0
    for j in range(dim):
        if is_missing(rows, event, j):
            total += mean[j] * mean[j]
            for k in range(j + 1):
                entry = factor[start_of(k, dim) + np.uint64(j)]
                total += entry * entry
    return total


def squares(views: Any) -> tuple[Real, Real]:
    mean, factor, _, _, _, _ = views
    means = factors = 0.0
    for j in range(len(mean)):
        means += mean[j] * mean[j]
    for k in range(len(factor)):
        factors += factor[k] * factor[k]
    return means, factors


def in_entries(views: Any, rows: Any, event: Event, inputs: StepInputs, prior_and_box: Any) -> None:
    """Each entry of C moves by itself: above the diagonal as a mean does, on it as a std does. ∂E/∂C_kj = e2·w_k·x_j."""
    mean, factor, mean_total, factor_total, w, _ = views
    _, seen, taken, ridge, rates, wider, _ = inputs
    box = named_rows(prior_and_box)
    dim = len(mean)
    for j in range(dim):
        x, pull = value(rows, event, j), ridge * mean[j]
        gradient = taken.slope * x + pull
        mean_total[j] += seen.slope * x + pull
        prior = Prior(setting_at(box.prior_mean, j), setting_at(box.prior_std, j))
        new = new_belief(Belief(mean[j], 1.0), Gradient(gradient, 0.0), Totals(mean_total[j], 0.0), rates, prior)
        mean[j] = ns.minimum(ns.maximum(new.mean, setting_at(box.mean_low, j)), setting_at(box.mean_high, j))
    for k in range(dim):
        start, force = start_of(k, dim), taken.curvature * w[k]
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


def whitened(views: Any, rows: Any, event: Event, inputs: StepInputs, prior_and_box: Any) -> None:
    """R moves from the identity: entry (k, j) has the gradient e2·w_k·w_j, above the diagonal as a mean, on it as a std."""
    mean, _, _, _, w, _ = views
    taken, rates = inputs.taken, inputs.rates
    dim, still, none = len(mean), Belief(0.0, 1.0), Totals(0.0, 0.0)
    prior = Prior(0.0, 1.0)
    clear_sum(views)
    for k in range(dim - 1, -1, -1):
        force = taken.curvature * w[k]
        new = new_belief(still, Gradient(force, force * w[k]), none, rates, prior)
        fold_row(views, k, inputs.wider * new.std, inputs.wider * new.mean)
    shift = new_belief(still, Gradient(taken.slope, 0.0), none, rates, prior).mean
    move_mean(views, rows, event, inputs.seen, shift, prior_and_box)


def by_prediction(views: Any, rows: Any, event: Event, inputs: StepInputs, prior_and_box: Any) -> None:
    """P' = P + growth·xxᵀ: R is the factor of I − k·wwᵀ, written in the sums of w² from below, which only add."""
    growth, shift = conditioned(inputs)
    condition(views, growth, len(views[4]), inputs.wider)
    move_mean(views, rows, event, inputs.seen, shift, prior_and_box)


def condition(views: Any, growth: Real, count: int, wider: Real) -> Real:
    """The covariance given growth·xxᵀ more precision, for w = C·x that is 0 from ``count`` on; returns 1 + growth·v².

    The factor is made wider in the same pass, as forgetting will have it: a pass of its own would take as long as the step.
    """
    w = views[4]
    clear_sum(views)
    below = 1.0
    for k in range(count - 1, -1, -1):
        above = below + growth * w[k] * w[k]
        kept = ns.sqrt(below / above)
        fold_row(views, k, wider * kept, wider * (-growth * w[k] / below * kept))
        below = above
    return below


def clear_sum(views: Any) -> None:
    total = views[5]
    for j in range(len(total)):
        total[j] = 0.0


def fold_row(views: Any, k: int, scale: Real, shift: Real) -> None:
    """C_k becomes scale·C_k + shift·S; then S takes in w_k·C_k as it was."""
    mean, factor, _, _, w, total = views
    dim, weight = len(mean), w[k]
    start = start_of(k, dim)
    for j in range(np.uint64(k), np.uint64(dim)):
        entry, below = factor[start + j], total[j]
        factor[start + j] = scale * entry + shift * below
        total[j] = below + weight * entry


def move_mean(views: Any, rows: Any, event: Event, seen: Slopes, shift: Real, prior_and_box: Any) -> None:
    """The mean becomes mean + shift·Σx, in the box; S is Σx by now."""
    mean, _, mean_total, _, _, total = views
    box = named_rows(prior_and_box)
    for j in range(len(mean)):
        mean_total[j] += seen.slope * value(rows, event, j)
        mean[j] = ns.minimum(ns.maximum(mean[j] + shift * total[j], setting_at(box.mean_low, j)), setting_at(box.mean_high, j))


BY_GEOMETRY = {Geometry.ENTRIES: in_entries, Geometry.WHITENED: whitened, Geometry.PREDICTION: by_prediction}
