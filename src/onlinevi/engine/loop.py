"""The only loop over a stream: loss × family × rule, dense or sparse rows, for predictors linear in the weights.

A pass changes the packed state it is given (``learners/state.py`` names its parts); callers give it a copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinevi.engine import ns
from onlinevi.engine.holes import (
    advance,
    as_numbers,
    ask_ahead,
    bounded,
    by_gradients,
    event_at,
    expect,
    expected,
    filled,
    forget,
    has_gentle_steps,
    held,
    in_floats,
    laid_out,
    moments,
    number,
    per_variance,
    position,
    rests,
    returned,
    settle,
    squares,
    valid_label,
)
from onlinevi.engine.schedules import adapted, rate_at, weigh
from onlinevi.engine.types import Event, Expected, Moments, Rates, Real, Slopes, Turn

# The head of a packed state; behind it lie the belief, the gradient totals, and the drift where decisions are averaged.
# SLOPED and SLOPE_SQUARE are for robust losses, of slopes at the decision: Σ weight where there is one, Σ weight·trust·slope².
COUNT, WEIGHT, WEIGHT_SQUARE, LOSS, EXPECTED, PRODUCT, GRADIENT_SQUARE, SQUARE, LARGEST_SQUARE = range(9)
SLOPED, SLOPE_SQUARE = 9, 10
HEAD = 11

# Settings that a pass reads as data, so that changing one compiles nothing. PER_VARIANCE is for JAX: here it is compiled in.
STEP_SCALE, STEP_POWER, PRIOR_SCALE, PRIOR_POWER, PER_VARIANCE, LEAD, MOVES_ALWAYS, RIDGE, DISCOUNT, ROBUST, GENTLE = range(11)
SETTINGS = 11

# The columns of a record. The last is for missing values, where asked: what of spread² is the square of means.
PREDICTION, SPREAD, COST, HELD = range(4)

NEAR = 500_000
"""A state of so many doubles, 4 MB, is not far away: to ask for its parts ahead of time costs more than it gains."""

NOT_FINITE = -1
"""Returned by a pass whose belief overflowed: every row was finite, the steps were not."""


def one_pass(
    rows: Any, labels: Any, weights: Any, state: Any, sizes: Any, settings: Any, frame: Any, parameters: Any, record: Any
) -> int:
    """Play the paper's game over a block of rows: decide, see the row, pay, update. Changes ``state``, fills ``record``.

    Returns how many rows were used. Fewer than all: the next row was refused, and the state is as that row found it.
    """
    numbers = as_numbers(state)
    packed = numbers[HEAD * (len(numbers) // len(state)) :]
    vectors, drift, copy = laid_out(packed, rows, sizes)
    mean = vectors[0]
    left = np.empty(len(drift) if in_floats() else 0, numbers.dtype)
    weighted, lead, rates_vary = len(weights) > 0, settings[LEAD], settings[STEP_POWER] + settings[PRIOR_POWER] > 0.0
    rates = Rates(settings[STEP_SCALE], 0.0, per_variance(), False)
    ridge, moves_always, has_prior_term = 0.0, False, False
    if filled():
        ridge, moves_always, has_prior_term = settings[RIDGE], settings[MOVES_ALWAYS] > 0.0, ns.isfinite(settings[PRIOR_SCALE])
        rates = weigh(settings[STEP_SCALE], settings[PRIOR_SCALE], rates.per_variance)
    # The sums live in registers during the pass: the next row need not wait for this one's to reach memory.
    count, cost_sum, expected_sum = state[COUNT], state[LOSS], state[EXPECTED]
    product_sum, square_sum, largest_square = state[PRODUCT], state[GRADIENT_SQUARE], state[LARGEST_SQUARE]
    weight_sum, weight_squares, size_sum = state[WEIGHT], state[WEIGHT_SQUARE], state[SQUARE]
    sloped, slope_squares = state[SLOPED], state[SLOPE_SQUARE]
    used, recorded, far = len(labels), 0, len(state) > NEAR
    may_rest = not (weighted or moves_always or bounded())

    for i in range(len(labels)):
        if weighted and weights[i] == 0.0:
            continue
        y = labels[i]
        event = event_at(rows, i)

        ask_ahead(rows, event)
        if far and i + 1 < len(labels):
            expect(vectors, rows, event_at(rows, i + 1))

        # Decide, then see the label and pay.
        law = in_doubles(moments(vectors, rows, event))
        spread = ns.sqrt(law.variance + law.blur)
        loss = Expected(0.0, 0.0, 0.0)
        cost = steep = expected_cost = 0.0
        idle = rests(y, law.prediction, *parameters)
        if not idle:  # a branch that can be guessed: the step need not wait for the prediction
            loss = expected(y, law.prediction, 0.0, *parameters)
            cost, steep = loss.value, loss.slope
            if spread > 0.0:  # at a constant spread of 0 the compiler leaves a few instructions of the loss
                loss = expected(y, law.prediction, spread, *parameters)
            expected_cost = loss.value
            # may_rest again, and first: without it the compiler joins the comparisons, and the next event waits for them all.
            idle = may_rest and cost == 0.0 and expected_cost == 0.0 and loss.slope == 0.0 and loss.curvature == 0.0

        # Nothing to pay and nothing to learn: the sums stay as they are.
        if idle and may_rest:
            sizes_of_row = law.prediction + law.variance + law.blur + law.row_square + law.spread_square
            if ns.isfinite(sizes_of_row) and valid_label(y, *parameters):
                count += 1.0
                if len(record) > 0:
                    note(record[recorded], law.prediction, spread, cost, mean, rows, event)
                    recorded += 1
                continue

        slope, curvature, pull, weight, size = loss.slope, loss.curvature, ridge, 1.0, 0.0
        if weighted:
            weight = weights[i]
            cost, expected_cost = weight * cost, weight * expected_cost
            slope, curvature, pull = weight * slope, weight * curvature, weight * pull
        product = slope * law.prediction + curvature * spread * spread
        steepness = curvature * ns.sqrt(law.spread_square)
        gradient_square = slope * slope * law.row_square + steepness * steepness
        if ridge > 0.0:
            means, stds = squares(vectors)
            size = means + stds
            cost += 0.5 * pull * means
            expected_cost += 0.5 * pull * size
            gradient_square += 2.0 * pull * product + pull * pull * size
            product += pull * size

        # A bad row is found here, before anything has changed.
        costs = cost_sum + cost + expected_sum + expected_cost + product_sum + product + square_sum + gradient_square
        finite = ns.isfinite(law.prediction + law.variance + law.blur + costs)
        if not (finite and valid_label(y, *parameters)) or (weighted and not weights[i] > 0.0):
            used = i
            break
        count += 1.0
        if weighted:
            weight_sum += weights[i]
            weight_squares += weights[i] * weights[i]
        cost_sum += cost
        expected_sum += expected_cost
        product_sum += product
        square_sum += gradient_square
        largest_square = ns.maximum(largest_square, gradient_square)
        size_sum += size
        if len(record) > 0:
            note(record[recorded], law.prediction, spread, cost, mean, rows, event)
            recorded += 1

        # An outlier counts less in the step alone: what was paid and seen is summed as it is.
        share = 1.0
        if bounded():
            share = trust(steep, ns.sqrt(slope_squares / sloped), settings[ROBUST])
            sloped = settings[DISCOUNT] * sloped + (weight if steep != 0.0 else 0.0)
            slope_squares = settings[DISCOUNT] * slope_squares + weight * share * steep * steep

        # Update. Where nothing pulls, nothing moves.
        if slope == 0.0 and curvature == 0.0 and not moves_always:
            continue
        if rates_vary:
            when = count + lead
            rates = Rates(rate_at(settings[STEP_SCALE], settings[STEP_POWER], when), 0.0, rates.per_variance, False)
            if has_prior_term:
                rates = weigh(rates.step, rate_at(settings[PRIOR_SCALE], settings[PRIOR_POWER], when), rates.per_variance)
        if by_gradients():  # compiled in: as data it would make every step wait for its row's gradient
            rates = Rates(adapted(settings[STEP_SCALE], square_sum), 0.0, rates.per_variance, False)
        seen = Slopes(slope, curvature)
        trusted = Slopes(share * slope, share * curvature)
        taken = settle(vectors, rows, event, y, law, trusted, share * weight, rates, parameters)
        if len(drift) > 0:
            leave_decision(drift, left, mean, rows, event, number(count))
        turn = in_numbers(Turn(law, seen, taken, pull, rates))
        change = rates.step * taken.curvature * (law.row_square if rates.per_variance else law.variance)
        if has_gentle_steps() and 0.0 <= change <= settings[GENTLE]:
            advance(vectors, rows, event, gently(turn), frame)
        else:
            advance(vectors, rows, event, turn, frame)
        if settings[DISCOUNT] < 1.0:
            forget(vectors, frame, number(settings[DISCOUNT]), count)
        if len(drift) > 0:
            reach_decision(drift, left, mean, rows, event, number(count))

    if not weighted:
        weight_sum += count - state[COUNT]
        weight_squares += count - state[COUNT]
    state[COUNT], state[LOSS], state[EXPECTED] = count, cost_sum, expected_sum
    state[PRODUCT], state[GRADIENT_SQUARE], state[LARGEST_SQUARE] = product_sum, square_sum, largest_square
    state[WEIGHT], state[WEIGHT_SQUARE], state[SQUARE] = weight_sum, weight_squares, size_sum
    if bounded():
        state[SLOPED], state[SLOPE_SQUARE] = sloped, slope_squares
    returned(packed, copy)
    if not_finite(state[:HEAD]) + not_finite(packed) > 0.0:
        return NOT_FINITE
    return used


def note(line: Any, prediction: Any, spread: Any, cost: Any, mean: Any, rows: Any, event: Event) -> None:
    """A line of the record."""
    line[PREDICTION], line[SPREAD], line[COST] = prediction, spread, cost
    if len(line) > HELD:
        line[HELD] = held(mean, rows, event)


def not_finite(numbers: Any) -> Any:
    """How many are not: counted to the end, which is faster than to stop at the first."""
    count = 0.0
    for k in range(np.uint64(len(numbers))):
        count += 0.0 if ns.isfinite(numbers[k]) else 1.0
    return count


def many_passes(
    rows: Any, labels: Any, weights: Any, states: Any, sizes: Any, settings: Any, frames: Any, parameters: Any, records: Any
) -> int:
    """One pass for each of several learners that differ in settings only, over a block that stays in cache.

    Returns how many rows all of them used; a learner that was stopped has used fewer than it was given.
    """
    least = len(labels)
    for k in range(len(states)):
        used = one_pass(rows, labels, weights, states[k], sizes, settings[k], frames[k], parameters, records[k])
        least = min(least, used)
    return least


def in_doubles(law: Moments) -> Moments:
    """What is counted once an event is a double, whatever the numbers of the state."""
    return Moments(
        np.float64(law.prediction),
        np.float64(law.variance),
        np.float64(law.reach),
        np.float64(law.row_square),
        np.float64(law.spread_square),
        np.float64(law.blur),
    )


def in_numbers(turn: Turn) -> Turn:
    """What a loop over coordinates reads of an event, in the numbers of the state."""
    law, seen, taken, ridge, rates = turn
    return Turn(
        law,
        Slopes(number(seen.slope), number(seen.curvature)),
        Slopes(number(taken.slope), number(taken.curvature)),
        number(ridge),
        Rates(number(rates.step), number(rates.pull), rates.per_variance, False),
    )


def gently(turn: Turn) -> Turn:
    """The same with what is known of a gentle step as constants: the compiler makes a short loop of its own for them."""
    law, seen, taken, _, rates = turn
    return Turn(law, seen, taken, number(0.0), Rates(rates.step, number(0.0), rates.per_variance, True))


def leave_decision(drift: Any, left: Any, mean: Any, rows: Any, event: Event, count: Any) -> None:
    """Before and after a step, these two sum t·(new mean − old mean): the average of all decisions is mean − drift/t.

    Unlike a sum of decisions it changes only where the row has values. In floats, −t·old would drown the rest: the
    difference is taken first, from the mean that was left.
    """
    for k in range(event.start, event.stop):
        j = position(rows, k)
        if in_floats():
            left[j] = mean[j]
        else:
            drift[j] += -count * mean[j]


def reach_decision(drift: Any, left: Any, mean: Any, rows: Any, event: Event, count: Any) -> None:
    for k in range(event.start, event.stop):
        j = position(rows, k)
        drift[j] += count * (mean[j] - left[j]) if in_floats() else count * mean[j]


FURTHEST = 1e100
"""Slopes count as at most this many bounds: the square of more would leave no weight to divide by."""


def trust(slope: Real, usual: Real, bound: Real) -> Real:
    """How much an event counts whose slope is out of the usual: 1/(1 + (slope/(bound·usual))²), 1 while nothing is usual.

    So trust·|slope| ≤ bound·usual/2.

    The inverse multiquadric weight of Duran-Martin et al. 2024, "Outlier-robust Kalman filtering through generalised Bayes".
    """
    if not usual > 0.0:
        return 1.0
    far = ns.minimum(ns.absolute(slope) / usual / bound, FURTHEST)
    return 1.0 / (1.0 + far * far)
