"""The beliefs over the weights of k classes, as parts of the loop: every weight by itself, or covariances between columns.

Classes are independent under a belief. Covariances are those of each class, or one that all classes share: then a class has
only its means to itself, and its precision grows by the mean of the classes' curvatures.

Of a covariance only what lies on and below the diagonal is read and written: it is half the work, and where beliefs forget,
what rounding made two entries differ by that should be the same would grow with every event. What an event makes of it waits
for the next row, to be done in the pass that multiplies by that (``engine/square.py``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlinevi.engine import Event, Real, ns
from onlinevi.engine.holes import is_missing, position, value
from onlinevi.engine.square import (
    AGAIN_ALONG,
    AGAIN_PART,
    ALONG,
    GROWTH,
    NUMBERS,
    PART,
    ROW,
    TIMES,
    WAITING,
    new_square_rooms,
)
from onlinevi.engine.triangle import padding
from onlinevi.learners.softmax.loops import Room, Views, unseen

LOG_HALF = -math.log(2.0)
MANY = 64
"""From so many events on it pays to lay out covariances anew."""


# --- every weight by itself


def apart_views(packed: Any, dim: int, lines: int, events: int) -> Views:
    size = dim * lines
    mean, variance = packed[:size].reshape((lines, dim)), packed[size : 2 * size].reshape((lines, dim))
    return Views(mean, variance, packed[2 * size : 3 * size].reshape((lines, dim)), np.empty((0, 0, 0)), variance, False)


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


def apart_settle(on: Views) -> None:
    """Nothing waits."""


def apart_forget(on: Views, prior: Any, discount: Real, count: Real) -> None:
    """P ← γP + (1 − γ)P₁, relative to the belief's own precision: a variance of 0 divides nothing."""
    for c in range(len(on.mean)):
        for j in range(on.mean.shape[1]):
            from_prior = (1.0 - discount) * on.scale[c, j] / prior[1, j]
            precision = discount + from_prior
            on.mean[c, j] += from_prior / precision * (prior[0, j] - on.mean[c, j])
            on.scale[c, j] /= precision


# --- covariances, of each class or shared


def each_views(packed: Any, dim: int, lines: int, events: int) -> Views:
    return covaried_views(packed, dim, lines, lines, events)


def shared_views(packed: Any, dim: int, lines: int, events: int) -> Views:
    return covaried_views(packed, dim, lines, 1, events)


def covaried_views(packed: Any, dim: int, lines: int, squares: int, events: int) -> Views:
    """Covariances of many events are laid out for these, in whole vectors; the numbers come out the same to the bit."""
    size, room = dim * lines, dim * dim * squares
    kept = packed[size : size + room].reshape((squares, dim, dim))
    laid_out, scale = events >= MANY, kept
    if laid_out:
        width = np.uint64(dim) + padding(np.uint64(dim))
        scale = np.zeros((squares, width, width))
        for s in range(squares):
            copy_square(kept[s], scale[s])
    mean, total = packed[:size].reshape((lines, dim)), packed[size + room :].reshape((lines, dim))
    return Views(mean, scale, total, new_square_rooms(squares, dim), kept, laid_out)


def copy_square(source: Any, target: Any) -> None:
    """What lies on and below the diagonal; of the wider of the two the last rows and columns."""
    dim = min(len(source), len(target))
    before, ahead = len(source) - dim, len(target) - dim
    for i in range(dim):
        for j in range(i + 1):
            target[ahead + i, ahead + j] = source[before + i, before + j]


def covaried_law(on: Views, rows: Any, event: Event, room: Room) -> Real:
    square, last, dim = 0.0, len(on.scale) - 1, np.uint64(on.mean.shape[1])
    first = padding(dim)
    for j in range(dim):
        on.rooms[0, ROW, first + j] = value(rows, event, j)
    for j in range(dim):
        x = on.rooms[0, ROW, first + j]
        square += x * x
    for s in range(len(on.scale)):
        for j in range(dim if s > 0 else np.uint64(0)):
            on.rooms[s, ROW, first + j] = on.rooms[0, ROW, first + j]
        ns.square_times(on.scale[s], on.rooms[s], np.uint64(on.scale.shape[1]))
        variance = 0.0
        for j in range(dim):
            variance += on.rooms[s, TIMES, first + j] * on.rooms[s, ROW, first + j]
        room.variance[s] = ns.maximum(variance, 0.0)  # rounding must not take it below
    for c in range(len(on.mean)):
        score = 0.0
        for j in range(dim):
            score += on.mean[c, j] * on.rooms[0, ROW, first + j]
        room.score[c], room.variance[c] = score, room.variance[min(c, last)]
        room.unseen[c] = unseen(on, rows, event, c)
    return square


def covaried_missing(on: Views, rows: Any, event: Event, c: int) -> Real:
    """As ``apart_missing``."""
    s, total, ahead = min(c, len(on.scale) - 1), 0.0, on.scale.shape[1] - on.mean.shape[1]
    for j in range(event.start, event.stop):
        variance = on.scale[s, ahead + j, ahead + j]
        total += on.mean[c, j] * on.mean[c, j] + variance if is_missing(rows, event, j) else 0.0
    return total


def covaried_learn(on: Views, rows: Any, event: Event, room: Room, weight: Real, known: int) -> None:
    """Σ ← Σ − κ/(1 + κv²)·(Σx)(Σx)ᵀ, κ the curvature, which waits for the next row; the means go by the old Σ."""
    last, mean_curvature, dim = len(on.scale) - 1, 0.0, np.uint64(on.mean.shape[1])
    first = padding(dim)
    for c in range(len(on.mean)):
        s, pull, slope = min(c, last), room.pull[c], weight * room.slope[c] if c < known else 0.0
        mean_curvature += room.change[c] / len(on.mean)
        for j in range(dim):
            on.mean[c, j] -= pull * on.rooms[s, TIMES, first + j]
        for j in range(dim):
            on.total[c, j] += slope * on.rooms[s, ROW, first + j]
    for s in range(len(on.scale)):
        curvature = room.change[s] if last > 0 else mean_curvature
        part = curvature / (1.0 + curvature * room.variance[s])
        on.rooms[s, NUMBERS, WAITING] = 1.0
        for j in range(first, first + dim):
            on.rooms[s, ALONG, j], on.rooms[s, PART, j] = on.rooms[s, TIMES, j], -part * on.rooms[s, TIMES, j]


def covaried_forget(on: Views, prior: Any, discount: Real, count: Real) -> None:
    """P ← γP, and some coordinates get back what the prior lost there since their last turn, as an observation of it.

    To all at once would cost O(d³). A turn comes before a coordinate has lost half of its prior.
    """
    dim, last = on.mean.shape[1], len(on.scale) - 1
    longest = 1 + int(LOG_HALF / ns.log1p(discount - 1.0))
    period, events, first = min(dim, longest), int(count), padding(np.uint64(dim))
    lost = 1.0 - ns.exp(ns.log1p(discount - 1.0) * min(events + 1, period))
    for s in range(len(on.scale)):
        square, room = on.scale[s], on.rooms[s]
        room[NUMBERS, GROWTH] = 1.0 / discount
        for turn in range(events % period, dim, period):
            if room[NUMBERS, WAITING] > 1.0:
                do_what_waits(square, room)
                room[NUMBERS, GROWTH] = 1.0
            along, part_of = (AGAIN_ALONG, AGAIN_PART) if room[NUMBERS, WAITING] > 0.0 else (ALONG, PART)
            fill_column(square, room, dim, turn, along)
            strength = lost / prior[1, turn]
            part = strength / (1.0 + strength * room[along, first + np.uint64(turn)])
            room[NUMBERS, WAITING] += 1.0
            for j in range(first, first + np.uint64(dim)):
                room[part_of, j] = -part * room[along, j]
            for c in range(s, s + 1 if last > 0 else len(on.mean)):
                back = part * (prior[0, turn] - on.mean[c, turn])
                for j in range(np.uint64(dim)):
                    on.mean[c, j] += back * room[along, first + j]


def covaried_settle(on: Views) -> None:
    """What waits is done, as the next row would do it."""
    for s in range(len(on.scale)):
        if on.rooms[s, NUMBERS, WAITING] > 0.0:
            do_what_waits(on.scale[s], on.rooms[s])
        if on.laid_out:
            copy_square(on.scale[s], on.kept[s])


def do_what_waits(square: Any, room: Any) -> None:
    for j in range(room.shape[1]):
        room[ROW, j] = 0.0
    ns.square_times(square, room, np.uint64(len(square)))


def fill_column(square: Any, room: Any, dim: int, column: int, line: int) -> None:
    """A column of Σ as it is once what waits is done, which is one thing at most, and has grown by GROWTH then."""
    first, waits, growth = padding(np.uint64(dim)), room[NUMBERS, WAITING] > 0.0, room[NUMBERS, GROWTH]
    here, ahead = first + np.uint64(column), len(square) - dim
    for k in range(column):
        j, entry = first + np.uint64(k), square[ahead + column, ahead + k]
        room[line, j] = growth * (entry + room[PART, here] * room[ALONG, j]) if waits else entry
    for k in range(column, dim):
        j, entry = first + np.uint64(k), square[ahead + k, ahead + column]
        room[line, j] = growth * (entry + room[PART, j] * room[ALONG, here]) if waits else entry


def add_slopes(on: Views, rows: Any, event: Event, room: Room, weight: Real, known: int) -> None:
    for c in range(known):
        slope = weight * room.slope[c]
        for k in range(event.start, event.stop):
            on.total[c, position(rows, k)] += slope * value(rows, event, k)
