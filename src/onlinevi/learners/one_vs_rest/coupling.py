"""Classes, each against the rest: how their log-odds become probabilities that sum to 1.

Divided by their sum, probabilities of several classes are too timid where classes are well apart, and a softmax of log-odds
too bold where they are not. P(k) ∝ p_k/(1 − p_k)^β has the one at β = 0 and the other at β = 1. Exponential weights at rate 1
over a few β, by the log-loss of what was said before each label: on any stream at most ln 7 more in all than the best β.

Learners that are better at each class by itself may be worse at all of them. So where a learner says what a part of it says
alone, that is a second opinion, and the mean of both log-odds a third: each under every β, at most ln 21 more than the best.

The loops are compiled: one event alone would else cost more here than in all that its classes learn from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import Real, Vector, compose, ns

BOLDNESS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)

SUPPORT, AGAINST = range(2)
"""The rows of a table of logarithms, a column a class: log p, and −log(1 − p)."""

LEAST = 1e-300
"""A probability below this has the log-odds of this one."""

_NO_WEIGHTS = np.empty(0)


class Weighed(NamedTuple):
    """Some rows under every β: a column each."""

    before: Vector
    """The total log-loss of each β before each row."""
    after: Vector
    """The totals after all rows."""
    loss: Vector
    """−log of the probability said of each row's class; finite where that is too small for a number."""


def start(opinions: int = 1) -> Vector:
    """The totals before the first row."""
    return np.zeros(opinions * len(BOLDNESS))


def opinions(scores: Vector, first: Vector | None) -> Vector:
    """What is weighed of each row: a column a class, or as many again for each further opinion."""
    return scores if first is None else np.column_stack([scores, first, 0.5 * (scores + first)])


def weigh(totals: Vector, scores: Vector, classes: Any, seen: Sequence[bool], weights: Vector | None = None) -> Weighed:
    """Weigh every β by these rows, whose classes are given by number; any split gives the same bits.

    ``scores`` has a column for each class and opinion, as the number of totals tells.
    Only classes that have come take part, so that a class known from the start and one that joins weigh the same.
    """
    after, before, loss = np.array(totals), np.empty((len(scores), len(totals))), np.empty(len(scores))
    given, numbers = _NO_WEIGHTS if weights is None else np.array(weights), np.array(classes, dtype=float)
    weigh_rows(np.ascontiguousarray(scores), numbers, np.array(seen, dtype=float), given, after, before, loss)
    return Weighed(before, after, loss)


def probabilities(totals: Vector, scores: Vector) -> Vector:
    """The weighted mean over all β: by the same totals for all rows, or by a row of totals for each."""
    number = np.shape(totals)[-1] // len(BOLDNESS)
    shares = np.empty((len(scores), scores.shape[1] // number))
    share_rows(np.array(np.atleast_2d(totals)), np.ascontiguousarray(scores), shares)
    return shares


def decided(totals: Vector, told: Vector) -> Vector:
    """The log-odds of these means, a column a class: −∞ for one that is not known yet, else finite."""
    shares = probabilities(totals, told)
    others, known = np.zeros(shares.shape), ~np.isneginf(told[:, : shares.shape[1]])
    others[:, 1:] = np.cumsum(shares, axis=1)[:, :-1]
    others[:, :-1] += np.cumsum(shares[:, ::-1], axis=1)[:, -2::-1]
    odds = np.log(np.maximum(shares, LEAST)) - np.log(np.maximum(others, LEAST))
    return np.where(known, odds, -np.inf)


# --- row by row


def weigh_each(scores: Any, classes: Any, seen: Any, weights: Any, totals: Any, before: Any, loss: Any) -> None:
    """Fills ``before`` and ``loss``, a row each, and adds to ``totals`` what every β has paid among the classes seen."""
    logs, paid = np.empty((2, scores.shape[1])), np.empty(len(totals))
    everybody, terms, all_seen = np.ones(len(seen)), np.empty(len(seen)), True
    for k in range(len(seen)):
        all_seen = all_seen and seen[k] > 0.0
    for i in range(len(scores)):
        own, weight = int(classes[i]), weights[i] if len(weights) > 0 else 1.0
        fill_logs(scores[i], logs)
        for b in range(len(totals)):
            first, boldness = placed(b, len(seen))
            before[i, b] = totals[b]
            paid[b] = log_whole(logs, first, everybody, boldness, terms) - log_part(logs, first + own, boldness)
        loss[i] = log_mean(before[i], paid)
        for b in range(len(totals)):
            first, boldness = placed(b, len(seen))
            among = paid[b]
            if not all_seen:
                among = log_whole(logs, first, seen, boldness, terms) - log_part(logs, first + own, boldness)
            totals[b] += weight * among


def share_each(totals: Any, scores: Any, shares: Any) -> None:
    """Fills ``shares``, a row each."""
    logs, everybody, terms = np.empty((2, scores.shape[1])), np.ones(shares.shape[1]), np.empty(shares.shape[1])
    for i in range(len(scores)):
        own = totals[i if len(totals) > 1 else 0]
        fill_logs(scores[i], logs)
        least, whole = smallest(own), 0.0
        for k in range(len(everybody)):
            shares[i, k] = 0.0
        for b in range(len(own)):
            first, boldness = placed(b, len(everybody))
            weight, log_sum = ns.exp(least - own[b]), log_whole(logs, first, everybody, boldness, terms)
            whole += weight
            for k in range(len(everybody)):
                shares[i, k] += weight * ns.exp(log_part(logs, first + k, boldness) - log_sum)
        for k in range(len(everybody)):
            shares[i, k] /= whole


def fill_logs(scores: Any, logs: Any) -> None:
    """log p and −log(1 − p) of each class, at log-odds of any size; −∞ and 0 for a class that is not known yet."""
    for k in range(len(scores)):
        rest = ns.log1p(ns.exp(-ns.absolute(scores[k])))
        logs[SUPPORT, k], logs[AGAINST, k] = ns.minimum(scores[k], 0.0) - rest, ns.maximum(scores[k], 0.0) + rest


def placed(b: int, number: int) -> tuple[int, Real]:
    """Where the opinion of the total with this number begins among the columns, and its boldness."""
    return number * (b // len(BOLDNESS)), BOLDNESS[b % len(BOLDNESS)]


def log_part(logs: Any, k: int, boldness: Real) -> Real:
    """log p_k/(1 − p_k)^β."""
    return logs[SUPPORT, k] + boldness * logs[AGAINST, k]


def log_whole(logs: Any, first: int, takes_part: Any, boldness: Real, terms: Any) -> Real:
    """The logarithm of the sum over the classes that take part; 0 where none of them is known, and all have the share 0.

    ``terms`` is room for a number a class. They are summed one by one, so that classes which are not known yet, and add
    nothing, change no bit: in vectors their number would decide which terms are summed first.
    """
    largest, total = -math.inf, 0.0
    for k in range(len(takes_part)):
        if takes_part[k] > 0.0:
            largest = ns.maximum(largest, log_part(logs, first + k, boldness))
    if largest == -math.inf:
        return 0.0
    for k in range(len(takes_part)):
        terms[k] = ns.exp(log_part(logs, first + k, boldness) - largest) if takes_part[k] > 0.0 else 0.0
    for k in range(len(takes_part)):
        ns.one_by_one()
        total += terms[k]
    return largest + ns.log(total)


def log_mean(totals: Any, paid: Any) -> Real:
    """−log of the mean of e^(−paid) by the weights e^(−total)."""
    least, least_paid = smallest(totals), math.inf
    for b in range(len(totals)):
        least_paid = ns.minimum(least_paid, totals[b] - least + paid[b])
    weights = mean = 0.0
    for b in range(len(totals)):
        weights += ns.exp(least - totals[b])
        mean += ns.exp(least_paid - (totals[b] - least + paid[b]))
    return least_paid + ns.log(weights) - ns.log(mean)


def smallest(totals: Any) -> Real:
    least = math.inf
    for b in range(len(totals)):
        least = ns.minimum(least, totals[b])
    return least


weigh_rows, share_rows = compose(weigh_each, {}), compose(share_each, {})
