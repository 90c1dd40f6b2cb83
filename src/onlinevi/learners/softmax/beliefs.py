"""The beliefs over the weights of k classes, as parts of the loop: every weight by itself, or covariances between columns.

Classes are independent under a belief. Covariances are those of each class, or one that all classes share: then a class has
only its means to itself, and its precision grows by the mean of the classes' curvatures.

Of a covariance only what lies on and below the diagonal is read and written: it is half the work, and where beliefs forget,
what rounding made two entries differ by that should be the same would grow with every event.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlinevi.engine import Event, Real, ns
from onlinevi.engine.holes import is_missing, position, value
from onlinevi.learners.softmax.loops import Room, Views, unseen

LOG_HALF = -math.log(2.0)


# --- every weight by itself


def apart_views(packed: Any, dim: int, lines: int) -> Views:
    size = dim * lines
    mean, variance = packed[:size].reshape((lines, dim)), packed[size : 2 * size].reshape((lines, dim))
    return Views(mean, variance, packed[2 * size : 3 * size].reshape((lines, dim)), variance)


def apart_law(on: Views, rows: Any, event: Event, room: Room) -> Real:
    square = 0.0
    for k in range(event.start, event.stop):
        x = value(rows, event, k)
        square += x * x
    for c in range(len(on.mean)):
        score = variance = 0.0
        for k in range(event.start, event.stop):
            j, x = position(rows, k), value(rows, event, k)
            score += on.mean[c, j] * x
            variance += on.scale[c, j] * x * x
        room.score[c], room.variance[c] = score, variance
        room.unseen[c] = unseen(on, rows, event, c)
    return square


def apart_missing(on: Views, rows: Any, event: Event, c: int) -> Real:
    """What a missing value, N(0, 1), adds to the variance of a score: its weight's square, on average."""
    total = 0.0
    for k in range(event.start, event.stop):
        j = position(rows, k)
        total += on.mean[c, j] * on.mean[c, j] + on.scale[c, j] if is_missing(rows, event, k) else 0.0
    return total


def none_missing(on: Views, rows: Any, event: Event, c: int) -> Real:
    """Where no value may be missing, nothing is added."""
    return 0.0


def apart_learn(on: Views, rows: Any, event: Event, room: Room, weight: Real, known: int) -> None:
    for c in range(len(on.mean)):
        pull, curvature = room.pull[c], room.change[c]
        for k in range(event.start, event.stop):
            j, x = position(rows, k), value(rows, event, k)
            reach = on.scale[c, j] * x
            on.mean[c, j] -= pull * reach
            on.scale[c, j] = on.scale[c, j] / (1.0 + curvature * x * reach)
    add_slopes(on, rows, event, room, weight, known)


def apart_forget(on: Views, prior: Any, discount: Real, count: Real) -> None:
    """P ← γP + (1 − γ)P₁, relative to the belief's own precision: a variance of 0 divides nothing."""
    for c in range(len(on.mean)):
        for j in range(on.mean.shape[1]):
            from_prior = (1.0 - discount) * on.scale[c, j] / prior[1, j]
            precision = discount + from_prior
            on.mean[c, j] += from_prior / precision * (prior[0, j] - on.mean[c, j])
            on.scale[c, j] /= precision


# --- covariances, of each class or shared


def each_views(packed: Any, dim: int, lines: int) -> Views:
    size, room = dim * lines, dim * dim * lines
    mean, scale = packed[:size].reshape((lines, dim)), packed[size : size + room].reshape((lines, dim, dim))
    return Views(mean, scale, packed[size + room :].reshape((lines, dim)), np.empty((lines, dim)))


def shared_views(packed: Any, dim: int, lines: int) -> Views:
    size, room = dim * lines, dim * dim
    mean, scale = packed[:size].reshape((lines, dim)), packed[size : size + room].reshape((1, dim, dim))
    return Views(mean, scale, packed[size + room :].reshape((lines, dim)), np.empty((1, dim)))


def covaried_law(on: Views, rows: Any, event: Event, room: Room) -> Real:
    square, last = 0.0, len(on.scale) - 1
    for j in range(event.start, event.stop):
        x = value(rows, event, j)
        square += x * x
    for s in range(len(on.scale)):
        times_row(on.scale[s], rows, event, on.reach[s])
        variance = 0.0
        for i in range(event.start, event.stop):
            variance += on.reach[s, i] * value(rows, event, i)
        room.variance[s] = ns.maximum(variance, 0.0)  # rounding must not take it below
    for c in range(len(on.mean)):
        score = 0.0
        for j in range(event.start, event.stop):
            score += on.mean[c, j] * value(rows, event, j)
        room.score[c], room.variance[c] = score, room.variance[min(c, last)]
        room.unseen[c] = unseen(on, rows, event, c)
    return square


def covaried_missing(on: Views, rows: Any, event: Event, c: int) -> Real:
    """As ``apart_missing``."""
    s, total = min(c, len(on.scale) - 1), 0.0
    for j in range(event.start, event.stop):
        total += on.mean[c, j] * on.mean[c, j] + on.scale[s, j, j] if is_missing(rows, event, j) else 0.0
    return total


def covaried_learn(on: Views, rows: Any, event: Event, room: Room, weight: Real, known: int) -> None:
    """Σ ← Σ − κ/(1 + κv²)·(Σx)(Σx)ᵀ, κ the curvature; the means go by the old Σ."""
    last, mean_curvature = len(on.scale) - 1, 0.0
    for c in range(len(on.mean)):
        reach = on.reach[min(c, last)]
        mean_curvature += room.change[c] / len(on.mean)
        for j in range(on.mean.shape[1]):
            on.mean[c, j] -= room.pull[c] * reach[j]
    for s in range(len(on.scale)):
        curvature = room.change[s] if last > 0 else mean_curvature
        narrow(on.scale[s], on.reach[s], curvature / (1.0 + curvature * room.variance[s]))
    add_slopes(on, rows, event, room, weight, known)


def covaried_forget(on: Views, prior: Any, discount: Real, count: Real) -> None:
    """P ← γP, and some coordinates get back what the prior lost there since their last turn, as an observation of it.

    To all at once would cost O(d³). A turn comes before a coordinate has lost half of its prior.
    """
    dim, last = on.mean.shape[1], len(on.scale) - 1
    longest = 1 + int(LOG_HALF / ns.log1p(discount - 1.0))
    period, events = min(dim, longest), int(count)
    for s in range(len(on.scale)):
        for i in range(dim):
            for j in range(i + 1):
                on.scale[s, i, j] /= discount
    lost = 1.0 - ns.exp(ns.log1p(discount - 1.0) * min(events + 1, period))
    for turn in range(events % period, dim, period):
        for s in range(len(on.scale)):
            strength = lost / prior[1, turn]
            part = strength / (1.0 + strength * on.scale[s, turn, turn])
            for j in range(dim):
                on.reach[s, j] = on.scale[s, turn, j] if j < turn else on.scale[s, j, turn]
            for c in range(s, s + 1 if last > 0 else len(on.mean)):
                back = part * (prior[0, turn] - on.mean[c, turn])
                for j in range(dim):
                    on.mean[c, j] += back * on.reach[s, j]
            narrow(on.scale[s], on.reach[s], part)


def times_row(covariance: Any, rows: Any, event: Event, reach: Any) -> None:
    """Σx."""
    for i in range(event.start, event.stop):
        x, before = value(rows, event, i), 0.0
        for j in range(event.start, i):
            before += covariance[i, j] * value(rows, event, j)
            reach[j] += covariance[i, j] * x
        reach[i] = before + covariance[i, i] * x


def narrow(covariance: Any, reach: Any, part: Real) -> None:
    """Σ − part·reach·reachᵀ."""
    for i in range(len(reach)):
        share = part * reach[i]
        for j in range(i + 1):
            covariance[i, j] -= share * reach[j]


def add_slopes(on: Views, rows: Any, event: Event, room: Room, weight: Real, known: int) -> None:
    for c in range(known):
        slope = weight * room.slope[c]
        for k in range(event.start, event.stop):
            on.total[c, position(rows, k)] += slope * value(rows, event, k)
