"""The loop over a stream for k scores at once: what is said of each row, what it costs, and the step in the k scores.

What is said is paid for, −log of the probability of the class that comes. In k scores the loss log Σ e^z − z_y is convex, so
that a tangent of it at any scores certifies the regret, whatever the belief: it is taken where the step ends. The belief would
pay E[log Σ e^z − z_y] for scores z_c ~ N(a_c, v_c²), which has no closed form; kept is the bound of Knowles and Minka,
F = ½ Σ α_c²v_c² + log Σ exp(a_c + (½ − α_c)v_c²) − a_y, with what was said for α. docs/softmax.md proves both.

The step is implicit: the means go where the slopes *after* it say, argmin over z of the loss + Σ (z_c − a_c)²/(2v_c²), by
Newton's method in k scores. Covariances between classes, which the loss would make, are left out.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, NoReturn

import numpy as np

from onlinevi.engine import SUM, Event, Real, ns
from onlinevi.engine.holes import event_at

TEMPER = math.pi / 16.0
"""By which the variance of two scores tempers their difference. A logistic curve is nearly that of a normal law, at π/8; and
half of what independent classes know of a difference is a shift of both, which nothing tells and nobody needs."""
CLOSE = 1e-5
"""The scores of a step are found when the last correction spread by less: the next would be its square."""
WHOLE = 1.79
"""A correction that spreads by no more is taken whole: the objective falls."""
MOST_STEPS = 100
"""More than any row has been seen to take."""


LOWEST = -1.7e308


class Views(NamedTuple):
    """Views into a packed state: a line for each class, and behind those known one for all that may come."""

    mean: Any
    scale: Any
    """Variances; or covariances, one for each line, or one for all."""
    total: Any
    """Σ slope·x, where each step ended."""
    rooms: Any
    """Beside each covariance: the row, the covariance times it, and what an event has left to be done (engine/square.py)."""
    kept: Any
    """The scale as it lies in the state."""
    laid_out: bool
    """Whether ``scale`` is another, for as long as the pass."""


class Lanes(NamedTuple):
    """Numbers of one event: one for each line, and behind these as many as make whole vectors, of classes that cannot be."""

    score: Any
    variance: Any
    unseen: Any
    """What missing values add to the variance of what is said."""
    chance: Any
    slope: Any
    """Of the loss among known classes, where the step ends."""
    moved: Any
    """The scores there."""
    pull: Any
    """What moves the means: the slope there, those to come among the classes, times the weight."""
    change: Any
    """The curvature there, by which precisions grow."""


class Room(NamedTuple):
    """The same, of the lines alone, and whole."""

    score: Any
    variance: Any
    unseen: Any
    chance: Any
    slope: Any
    moved: Any
    pull: Any
    change: Any
    whole: Lanes


def views(packed: Any, dim: int, lines: int, events: int) -> Views:
    """The belief says where its parts lie, for a pass over so many events."""
    _hole("views")


def law(on: Views, rows: Any, event: Event, room: Room) -> Real:
    """The belief fills in the law of each score; returns Σ x²."""
    _hole("law")


def unseen(on: Views, rows: Any, event: Event, c: int) -> Real:
    """The belief says what missing values, each N(0, 1), add to the variance of a score."""
    _hole("unseen")


def learn(on: Views, rows: Any, event: Event, room: Room, weight: Real, known: int) -> None:
    """The belief steps by ``room.pull`` and ``room.change``, and sums ``room.slope``."""
    _hole("learn")


def forget(on: Views, prior: Any, discount: Real, count: Real) -> None:
    """The belief moves towards its prior, the rows of which are means and variances."""
    _hole("forget")


def settle(on: Views) -> None:
    """What the belief has left to be done when the next row comes is done, and the state has all of it."""
    _hole("settle")


def _hole(name: str) -> NoReturn:
    raise TypeError(f"{name} is a hole of the loop: compose a kernel first")


def soft_pass(
    rows: Any, labels: Any, weights: Any, state: Any, sizes: Any, discount: Real, prior: Any, said: Any, cost: Any
) -> int:
    """Say, pay and step, row by row. Changes ``state``; fills ``said``, log-probabilities of known classes, and ``cost``.

    Returns how many rows were used: fewer than all where the next is refused, and the state is as that row found it.
    """
    dim, known, lines = sizes
    on, room, used = views(state[len(SUM) :], dim, lines, len(labels)), new_room(lines), len(labels)
    for i in range(len(labels)):
        own, weight = int(labels[i]), weights[i] if len(weights) > 0 else 1.0
        event = event_at(rows, i)
        square = law(on, rows, event, room)
        if not (are_finite(room, square) and weight > 0.0 and ns.isfinite(weight)):
            used = i
            break
        speak(room, known, said[i])
        paid, expected = -said[i, own], bound(room, known, said[i]) - room.score[own]
        step(room, lines, own, weight)
        product, size, slopes = tangent(room, known, own)
        gradient = weight * weight * square * slopes
        if not ns.isfinite(weight * (expected + paid + size) + gradient):
            used = i
            break
        learn(on, rows, event, room, weight, known)
        if discount < 1.0:
            forget(on, prior, discount, state[SUM.count])
        cost[i] = weight * paid
        state[SUM.count] += 1.0
        state[SUM.weight] += weight
        state[SUM.weight_square] += weight * weight
        state[SUM.loss] += cost[i]
        state[SUM.expected] += weight * expected
        state[SUM.product] += weight * (expected + product)
        state[SUM.magnitude] += weight * size
        state[SUM.gradient_square] += gradient
        state[SUM.largest_square] = ns.maximum(state[SUM.largest_square], gradient)
    settle(on)
    return used


def soft_look(rows: Any, count: int, state: Any, sizes: Any, known: int, said: Any) -> int:
    """What is said of rows among so many lines. Returns how many are finite before the first that is not."""
    dim, _, lines = sizes
    on, room = views(state[len(SUM) :], dim, lines, 1), new_room(lines)
    for i in range(count):
        if not are_finite(room, law(on, rows, event_at(rows, i), room)):
            return i
        speak(room, known, said[i])
    return count


def new_room(lines: int) -> Room:
    """Behind the last line stand classes whose scores are as low as can be, and stay there."""
    width = lines + (ns.LANES - lines % ns.LANES) % ns.LANES
    score = np.empty(width)
    for c in range(width):
        score[c] = LOWEST
    whole = Lanes(
        score,
        np.zeros(width),
        np.zeros(width),
        np.zeros(width),
        np.zeros(width),
        np.zeros(width),
        np.zeros(width),
        np.zeros(width),
    )
    return Room(
        whole.score[:lines],
        whole.variance[:lines],
        whole.unseen[:lines],
        whole.chance[:lines],
        whole.slope[:lines],
        whole.moved[:lines],
        whole.pull[:lines],
        whole.change[:lines],
        whole,
    )


def are_finite(room: Room, square: Real) -> bool:
    """Whether the row and what is predicted of it are: no product of them overflows later."""
    total = square
    for c in range(len(room.score)):
        total += ns.absolute(room.score[c]) + 2.0 * room.variance[c] + room.unseen[c]
    return ns.isfinite(total)  # type: ignore[no-any-return]


def speak(room: Room, known: int, line: Any) -> None:
    """Fills in the log-probabilities of the known classes: scores beside the highest one, tempered by both their variances.

    Of two classes it is what the logistic loss says, but for the approximation of its integral.
    """
    on = room.whole
    for start in range(0, len(on.score), ns.LANES):
        for k in range(ns.LANES):
            ns.one_vector()
            c = start + k
            on.slope[c] = ns.where(c < known, on.score[c], LOWEST)
    top, own, total = largest(on.slope), 0.0, 0.0
    for c in range(known - 1, -1, -1):  # of the first of the highest
        own = on.variance[c] + on.unseen[c] if on.score[c] == top else own
    for start in range(0, len(on.score), ns.LANES):
        for k in range(ns.LANES):
            ns.one_vector()
            c = start + k
            gap = (on.score[c] - top) / ns.sqrt(1.0 + TEMPER * (on.variance[c] + on.unseen[c] + own))
            on.slope[c] = ns.where(c < known, gap, LOWEST)
    for start in range(0, len(on.score), ns.LANES):
        for k in range(ns.LANES):
            ns.one_vector()
            c = start + k
            chance = ns.exp(on.slope[c])
            on.chance[c] = chance
            total += chance
    whole, part = ns.log(total), 1.0 / total
    for c in range(known):
        line[c] = on.slope[c] - whole
    for start in range(0, len(on.chance), ns.LANES):
        for k in range(ns.LANES):
            ns.one_vector()
            c = start + k
            on.chance[c] *= part


def bound(room: Room, known: int, _line: Any) -> Real:
    """The bound on E[log Σ e^z] at α = what was said, which ``speak`` leaves in ``room.chance``."""
    on = room.whole
    quadratic, total = 0.0, 0.0
    for start in range(0, len(on.score), ns.LANES):
        for k in range(ns.LANES):
            ns.one_vector()
            c = start + k
            share = on.chance[c]
            quadratic += 0.5 * share * share * on.variance[c]
            on.chance[c] = ns.where(c < known, on.score[c] + (0.5 - share) * on.variance[c], LOWEST)
    top = largest(on.chance)
    for start in range(0, len(on.score), ns.LANES):
        for k in range(ns.LANES):
            ns.one_vector()
            c = start + k
            total += ns.exp(on.chance[c] - top)
    return quadratic + top + ns.log(total)


def tangent(room: Room, known: int, own: int) -> tuple[Real, Real, Real]:
    """(⟨slope, z⟩ − loss, Σ |summands|, Σ slope²) at the scores z where the step ends, among known classes."""
    on = room.whole
    for start in range(0, len(on.slope), ns.LANES):
        for k in range(ns.LANES):
            ns.one_vector()
            c = start + k
            on.slope[c] = ns.where(c < known, on.moved[c], LOWEST)
    top, total = softmax(on.slope, on.slope)
    lost = ns.log(total) - (on.moved[own] - top)
    product, size, slopes = -lost, lost, 0.0
    for start in range(0, len(on.slope), ns.LANES):
        for k in range(ns.LANES):
            ns.one_vector()
            c = start + k
            slope = on.slope[c] - ns.where(c == own, 1.0, 0.0)
            part = slope * (ns.where(c < known, on.moved[c], top) - top)  # slopes sum to 0: a shift of all changes nothing
            product += part
            size += ns.absolute(part)
            slopes += slope * slope
            on.slope[c] = slope
    return product, size, slopes


def step(room: Room, lines: int, own: int, weight: Real) -> None:
    """The scores behind the step, its slopes and its curvatures: argmin weight·(log Σ e^z − z_own) + Σ (z − a)²/(2v²).

    Newton's direction by the formula of Sherman and Morrison. Where r, the largest difference of its parts, is small, all of
    it, else log(1 + r)/r of it: along it the second derivative grows by e^r at most, so the objective falls at every step,
    from wherever it starts.
    """
    on = room.whole
    for start in range(0, lines, ns.LANES):
        for k in range(ns.LANES):
            ns.one_vector()
            c = start + k
            on.moved[c] = on.score[c]
    for _ in range(MOST_STEPS):
        softmax(on.moved, on.chance)
        along, left = 0.0, 1.0
        for start in range(0, lines, ns.LANES):
            for k in range(ns.LANES):
                ns.one_vector()
                c = start + k
                steep = weight * on.variance[c]
                short = 1.0 / (1.0 + steep * on.chance[c])
                slope = on.chance[c] - ns.where(c == own, 1.0, 0.0)
                pull, change = (on.score[c] - on.moved[c] - steep * slope) * short, steep * on.chance[c] * short
                along += on.chance[c] * pull
                left -= on.chance[c] * change
                on.pull[c], on.change[c] = pull, change
        share = along / left
        for start in range(0, lines, ns.LANES):
            for k in range(ns.LANES):
                ns.one_vector()
                c = start + k
                on.pull[c] += on.change[c] * share
        spread = largest(on.pull) + largest_below(on.pull)
        part = 1.0 if spread <= WHOLE else ns.log1p(spread) / spread
        for start in range(0, lines, ns.LANES):
            for k in range(ns.LANES):
                ns.one_vector()
                c = start + k
                on.moved[c] += part * on.pull[c]
        if not spread > CLOSE:
            break
    softmax(on.moved, on.chance)
    for start in range(0, lines, ns.LANES):
        for k in range(ns.LANES):
            ns.one_vector()
            c = start + k
            chance = on.chance[c]
            on.pull[c] = weight * (chance - ns.where(c == own, 1.0, 0.0))
            on.change[c] = weight * chance * (1.0 - chance)


def softmax(scores: Any, chances: Any) -> tuple[Real, Real]:
    """Fills in the probabilities that these scores are log-odds of; returns the highest, and Σ e^(score − highest)."""
    top, total = largest(scores), 0.0
    for start in range(0, len(scores), ns.LANES):
        for k in range(ns.LANES):
            ns.one_vector()
            c = start + k
            chance = ns.exp(scores[c] - top)
            chances[c] = chance
            total += chance
    part = 1.0 / total
    for start in range(0, len(scores), ns.LANES):
        for k in range(ns.LANES):
            ns.one_vector()
            c = start + k
            chances[c] *= part
    return top, total


def largest(line: Any) -> Real:
    """Of whole vectors: eight numbers are compared in three turns."""
    found = line[0]
    for c in range(0, len(line), ns.LANES):
        one, other = ns.maximum(line[c], line[c + 1]), ns.maximum(line[c + 2], line[c + 3])
        third, fourth = ns.maximum(line[c + 4], line[c + 5]), ns.maximum(line[c + 6], line[c + 7])
        found = ns.maximum(found, ns.maximum(ns.maximum(one, other), ns.maximum(third, fourth)))
    return found


def largest_below(line: Any) -> Real:
    """The same of −line."""
    found = line[0]
    for c in range(0, len(line), ns.LANES):
        one, other = ns.minimum(line[c], line[c + 1]), ns.minimum(line[c + 2], line[c + 3])
        third, fourth = ns.minimum(line[c + 4], line[c + 5]), ns.minimum(line[c + 6], line[c + 7])
        found = ns.minimum(found, ns.minimum(ns.minimum(one, other), ns.minimum(third, fourth)))
    return -found
