"""The compiled loop over what several learners said: weigh them, pool their predictions, see the label, weigh anew."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import RECORD, Function, Kernel, Real, Vector, compose, ns, rate_at
from onlinevi.engine.holes import expected, odds, valid_label
from onlinevi.losses import Loss, quick_expected

# The head of a packed state. Behind it lie, a number for each learner: total losses, weights where a share is dealt out, and
# the shifts and sizes of residuals where quantiles are pooled.
COUNT, LOSS, GAP = range(3)
HEAD = 3

# The settings, read as data.
SCALE, POWER, ADAPTIVE, SHARE, LEVEL, KNOWN, CHI_SQUARE = range(7)

# The columns of what is played: those of a learner's record, the variance that the learners see themselves, averaged, and
# that of their predictions.
WITHIN, BETWEEN = 3, 4
PLAYED = 5

GREATEST_RATE, LEAST_GAP = 1e300, 1e-290
"""While nothing has been paid for weighing, the adaptive rate has no bound: the best learners so far take all the weight. So
it is where labels are below 1e-145, and their squares all but 0."""


LARGEST = 1e300
"""Half the rate times a lag is cut off here: such a learner has no weight by χ² whatever the level."""


class Opinion(NamedTuple):
    """What one learner says of an event, as pooling needs it."""

    support: Real
    """What is averaged: the prediction, or the probability of the label +1."""
    against: Real
    """The probability of −1; 0 where predictions are averaged."""
    cost: Real
    """What it costs by itself."""


# --- holes


def opinion(y: Real, a: Real, v: Real, parameters: Any) -> Opinion:
    raise TypeError("opinion is a hole of the compiled loop: compose a kernel first")


def weigh(weights: Any, lags: Any, prior: Any, rate: Real) -> Real:
    raise TypeError("weigh is a hole of the compiled loop: compose a kernel first")


def price(costs: Any, dealt: Any, rate: Real) -> Real:
    raise TypeError("price is a hole of the compiled loop: compose a kernel first")


def decision(support: Real, against: Real) -> Real:
    raise TypeError("decision is a hole of the compiled loop: compose a kernel first")


# --- predictions are pooled by their mean


def stated(y: Real, a: Real, v: Real, parameters: Any) -> Opinion:
    return Opinion(a, 0.0, expected(y, a, 0.0, *parameters).value)


def mean_of(support: Real, against: Real) -> Real:
    return support


# --- probabilities are pooled by their mean; the decision is the score that has the pooled one


def believed(y: Real, a: Real, v: Real, parameters: Any) -> Opinion:
    support, against = odds(a, v, *parameters)
    return Opinion(support, against, -ns.log(ns.where(y > 0.0, support, against)))


def believe(means: Any, spreads: Any, parameters: Any, says: Any) -> None:
    """The same for many predictions, before a label is seen: fills ``says`` with what is for +1 and what against."""
    for k in range(len(means)):
        said = believed(1.0, means[k], spreads[k], parameters)
        says[0, k], says[1, k] = said.support, said.against


def believed_at(loss: Loss, a: Vector, v: Vector) -> Vector:
    """The probabilities of +1, then those of −1."""
    says = np.empty((2, *a.shape))
    _believe(type(loss))(a.ravel(), v.ravel(), loss.parameters, says.reshape(2, -1))  # type: ignore[arg-type]
    return says


@cache
def _believe(loss: type[Loss]) -> Kernel:
    assert loss.odds is not None
    return compose(believe, {expected: quick_expected(loss), odds: loss.odds})


def log_odds(support: Real, against: Real) -> Real:
    return ns.log(support) - ns.log(against)


def mix(
    labels: Any,
    importance: Any,
    said: Any,
    places: Any,
    unsure: Any,
    state: Any,
    prior: Any,
    settings: Any,
    parameters: Any,
    played: Any,
    shown: Any,
) -> int:
    """Weigh, predict, pay and reweigh, event by event. Changes ``state``; fills ``played`` and, unless empty, ``shown``.

    ``said`` holds a record for each learner, of the rows with weight > 0 only, the k-th learner's at ``places[k]``; ``played``
    gets the same rows, ``shown`` the weights. ``unsure`` is 0 for a learner that is pooled itself, whose spread is that of
    its learners alone, else 1. ``prior`` is in logarithms. Returns how many rows were used, as a pass does.
    """
    number, weighted = len(prior), len(importance) > 0
    adaptive, share, level = settings[ADAPTIVE] > 0.0, settings[SHARE], settings[LEVEL]
    totals, behind = state[HEAD : HEAD + number], HEAD + number
    shared, shifts, sizes = state[behind : behind + number], state[behind : behind + number], state[behind + number :]
    weights, costs, predictions = np.empty(number), np.empty(number), np.empty(number)
    spreads, held, lags, dealt = np.empty(number), np.zeros(number), np.empty(number), np.empty(number)
    for k in range(number):
        dealt[k] = ns.exp(prior[k])
    event = 0
    for i in range(len(labels)):
        if weighted and importance[i] == 0.0:
            continue
        y, scale = labels[i], importance[i] if weighted else 1.0
        rate, whole = weigh_past(weights, lags, totals, shared, state, prior, settings)

        # Pool, then see the label and pay.
        hear(predictions, spreads, costs, held, said, places, event)
        support, against = settle(y, scale, predictions, spreads, costs, weights, shifts, unsure, settings, parameters)
        within, between = part_variances(predictions, spreads, held, weights, unsure)
        hedged = sums = 0.0
        for k in range(number):
            hedged += weights[k] * costs[k]
            sums += totals[k] + costs[k]
        answer = decision(support, against)
        cost = scale * expected(y, answer, 0.0, *parameters).value
        # The learners took this row by their own losses: the shared one may be undefined there, or overflow.
        if not (ns.isfinite(sums + state[LOSS] + cost + within + between) and valid_label(y, *parameters)):
            return i
        played[event, RECORD.prediction], played[event, RECORD.spread] = answer, ns.sqrt(within + between)
        played[event, RECORD.loss] = cost
        played[event, WITHIN], played[event, BETWEEN] = within, between
        if len(shown) > 0:
            for k in range(number):
                shown[event, k] = weights[k]

        # Reweigh.
        state[COUNT] += 1.0
        state[LOSS] += cost
        for k in range(number):
            totals[k] += costs[k]
        if share > 0.0:
            deal_out(shared, costs, dealt, rate, share)
        elif adaptive:  # what weighing cost beyond the price of the rate
            state[GAP] += ns.maximum(hedged - mixed(lags, costs, rate, whole), 0.0)
        else:
            state[GAP] += price(costs, dealt, rate)
        if level > 0.0:
            for k in range(number):
                track(shifts, sizes, k, y - said[places[k], event, RECORD.prediction], level, state[COUNT])
        event += 1
    return len(labels)


def foresee(said: Any, places: Any, unsure: Any, state: Any, prior: Any, settings: Any, parameters: Any, played: Any) -> None:
    """What is predicted where no label is known: fills ``played`` as ``mix`` does, but for the loss."""
    number = len(prior)
    totals, behind = state[HEAD : HEAD + number], HEAD + number
    shared, shifts = state[behind : behind + number], state[behind : behind + number]
    weights, costs, predictions = np.empty(number), np.empty(number), np.empty(number)
    spreads, held, lags = np.empty(number), np.zeros(number), np.empty(number)
    weigh_past(weights, lags, totals, shared, state, prior, settings)
    for event in range(len(played)):
        hear(predictions, spreads, costs, held, said, places, event)
        support, against = settle(1.0, 1.0, predictions, spreads, costs, weights, shifts, unsure, settings, parameters)
        within, between = part_variances(predictions, spreads, held, weights, unsure)
        played[event, RECORD.prediction], played[event, RECORD.spread] = decision(support, against), ns.sqrt(within + between)
        played[event, RECORD.loss] = np.nan
        played[event, WITHIN], played[event, BETWEEN] = within, between


def weigh_past(weights: Any, lags: Any, totals: Any, shared: Any, state: Any, prior: Any, settings: Any) -> tuple[Real, Real]:
    """Weights, from all of the past. Returns the rate, and the sum of the weights relative to the largest."""
    rate = rate_at(settings[SCALE], settings[POWER], state[COUNT] + 1.0)
    if settings[ADAPTIVE] > 0.0:
        rate = hedge_rate(len(weights), state[GAP])
    if settings[SHARE] > 0.0:
        for k in range(len(weights)):
            weights[k] = shared[k]
        return rate, 1.0
    lag_behind(lags, totals)
    return rate, weigh(weights, lags, prior, rate)


def hear(predictions: Any, spreads: Any, costs: Any, held: Any, said: Any, places: Any, event: int) -> None:
    """What each learner said of an event, and what it paid, from the records."""
    for k in range(len(predictions)):
        at = places[k]
        predictions[k], spreads[k] = said[at, event, RECORD.prediction], said[at, event, RECORD.spread]
        costs[k] = said[at, event, RECORD.loss]
        if said.shape[2] > RECORD.missing_mean_square:
            held[k] = said[at, event, RECORD.missing_mean_square]


def settle(
    y: Real,
    scale: Real,
    predictions: Any,
    spreads: Any,
    costs: Any,
    weights: Any,
    shifts: Any,
    unsure: Any,
    settings: Any,
    parameters: Any,
) -> tuple[Real, Real]:
    """The mean of what is pooled, for and against; shifts ``predictions``, and says in ``costs`` what each costs by itself."""
    support = against = 0.0
    if settings[KNOWN] > 0.0:
        for k in range(len(weights)):
            support += weights[k] * predictions[k]
    else:
        for k in range(len(weights)):
            predictions[k] += shifts[k] if settings[LEVEL] > 0.0 else 0.0
            says = opinion(y, predictions[k], unsure[k] * spreads[k], parameters)
            costs[k] = scale * says.cost
            support += weights[k] * says.support
            against += weights[k] * says.against
    return support, against


def part_variances(predictions: Any, spreads: Any, held: Any, weights: Any, unsure: Any) -> tuple[Real, Real]:
    """The variance that the learners see themselves, averaged, and that of their predictions."""
    centre = within = between = 0.0
    for k in range(len(weights)):
        centre += weights[k] * predictions[k]
    for k in range(len(weights)):
        gap = predictions[k] - centre
        within += weights[k] * ns.maximum(spreads[k] * spreads[k] - unsure[k] * held[k], 0.0)
        between += weights[k] * (gap * gap + held[k])
    return within, between


def hedge_rate(number: int, gap: Real) -> Real:
    """AdaHedge's: ln N / Σ gaps."""
    return ns.log(max(number, 2)) / gap if gap > LEAST_GAP else GREATEST_RATE


def lag_behind(lags: Any, totals: Any) -> None:
    """How much more each learner has lost than the best: all that weights depend on, and no digit goes to what they share."""
    best = least(totals)
    for k in range(len(totals)):
        lags[k] = totals[k] - best


def least(values: Any) -> Real:
    found = values[0]
    for k in range(1, len(values)):
        found = ns.minimum(found, values[k])
    return found


def temper(weights: Any, lags: Any, prior: Any, rate: Real) -> None:
    """Log-weights: log prior − rate·lag."""
    for k in range(len(lags)):
        weights[k] = prior[k] - rate * lags[k]


def temper_all(weights: Any, lags: Any, prior: Any, rate: Real) -> Real:
    """Exponential weights; returns their sum relative to the largest."""
    temper(weights, lags, prior, rate)
    return normalise(weights)


def no_price(costs: Any, dealt: Any, rate: Real) -> Real:
    """What exponential weights cost depends on the range of losses, which nobody knows."""
    return 0.0


def level_off(weights: Any, lags: Any, prior: Any, rate: Real) -> Real:
    """prior·[level − rate/2·lag]₊, as ``tempered.chi_square`` has it, in place."""
    number, level, nearer = len(lags), np.inf, 0.0
    while nearer < level:
        level = nearer if nearer > 0.0 else np.inf
        counted, nearer = 0.0, 1.0
        for k in range(number):
            weights[k] = ns.exp(prior[k])
            cost = ns.minimum(0.5 * rate * lags[k], LARGEST)
            if cost < level:
                counted += weights[k]
                nearer += weights[k] * cost
        nearer = nearer / counted
    total = 0.0
    for k in range(number):
        weights[k] *= ns.maximum(level - ns.minimum(0.5 * rate * lags[k], LARGEST), 0.0)
        total += weights[k]
    for k in range(number):
        weights[k] /= total
    return total


def spread_price(costs: Any, dealt: Any, rate: Real) -> Real:
    """rate/4·(variance of the costs under the prior): what χ² weights can lose at an event beside the divergence."""
    mean = square = 0.0
    for k in range(len(costs)):
        mean += dealt[k] * costs[k]
    for k in range(len(costs)):
        square += dealt[k] * (costs[k] - mean) * (costs[k] - mean)
    return 0.25 * rate * square


def mixed(lags: Any, costs: Any, rate: Real, whole: Real) -> Real:
    """The mix loss of an event, the growth of −log Σ prior·e^(−rate·lag) / rate; ``whole`` is that sum before it.

    Both sums are relative to their largest term, the best learner's: AdaHedge's prior is uniform. Uses up ``lags``.
    """
    for k in range(len(lags)):
        lags[k] += costs[k]
    best = least(lags)
    for k in range(len(lags)):
        lags[k] = rate * (best - lags[k])
    return best - ns.log(exponentiate(lags, 0.0) / whole) / rate


def normalise(weights: Any) -> Real:
    """Log-weights become weights that sum to 1; returns their sum relative to the largest."""
    most = weights[0]
    for k in range(1, len(weights)):
        most = ns.maximum(most, weights[k])
    total = exponentiate(weights, most)
    for k in range(len(weights)):
        weights[k] /= total
    return total


def exponentiate(values: Any, most: Real) -> Real:
    """Make of logarithms what they are of, relative to the largest, ``most``, in place; returns the sum."""
    total = 0.0
    for k in range(len(values)):
        values[k] = ns.exp(values[k] - most)
        total += values[k]
    return total


def deal_out(weights: Any, costs: Any, dealt: Any, rate: Real, share: Real) -> None:
    """Fixed share: after each event a share of all weight is dealt out anew by the prior, so that none is ever lost.

    So weights cannot underflow, and need no logarithms.
    """
    best, total = least(costs), 0.0
    for k in range(len(costs)):
        weights[k] *= ns.exp(rate * (best - costs[k]))
        total += weights[k]
    for k in range(len(costs)):
        weights[k] = (1.0 - share) * (weights[k] / total) + share * dealt[k]


MEMORY, PACE = 100.0, 0.03
"""How many events the size of residuals remembers, and how far, in such sizes, a shift moves at once."""


def track(shifts: Any, sizes: Any, k: int, residual: Real, level: Real, count: Real) -> None:
    """Move a shift towards the quantile of the residuals at ``level``: up where they lie above it, else down."""
    sizes[k] += (ns.absolute(residual) - sizes[k]) / ns.minimum(count, MEMORY)
    shifts[k] += PACE * sizes[k] * (level if residual > shifts[k] else level - 1.0)


@cache
def kernel(loss: type[Loss], by_probability: bool, by_chi_square: bool, loop: Function = mix) -> Kernel:
    """``mix``, or ``foresee``, compiled for a loss, a way to pool and a way to weigh."""
    pooled: dict[Function, Function]
    pooled = {opinion: believed, decision: log_odds} if by_probability else {opinion: stated, decision: mean_of}
    if loss.odds is not None:
        pooled[odds] = loss.odds
    pooled |= {weigh: level_off, price: spread_price} if by_chi_square else {weigh: temper_all, price: no_price}
    return compose(loop, {expected: quick_expected(loss), valid_label: loss.valid_label, **pooled})
