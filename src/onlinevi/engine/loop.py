"""The only loop over a stream: loss × family × rule, dense or sparse rows, for predictors linear in the weights.

A pass changes the packed state it is given (``packed.py`` names its head); callers give it a copy. docs/engine.md tells of the
processor, and why some lines stand where they do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinevi.engine import ns
from onlinevi.engine.holes import (
    advance,
    as_numbers,
    cast,
    catch_up,
    event_at,
    expected,
    forget,
    has_small_steps,
    in_float32,
    interleave,
    into_ball,
    is_dense,
    is_flat,
    is_robust,
    late_forgetting,
    may_explode,
    missing_mean_square,
    moments,
    per_variance,
    position,
    prefetch_next,
    prefetch_row,
    put_back,
    rate_is_adaptive,
    restore,
    slopes_after_step,
    squares,
    valid_label,
)
from onlinevi.engine.packed import RECORD, SETTING, SUM
from onlinevi.engine.schedules import adaptive_rate, rate_at, rates_against_prior
from onlinevi.engine.types import Event, Expected, Moments, Rates, Real, Slopes, StepInputs

NEAR = 500_000
"""A state of so many doubles, 4 MB, is not far away: to ask for its parts ahead of time costs more than it gains."""

NOT_FINITE = -1
"""Returned by a pass whose belief overflowed: every row was finite, the steps were not."""


def one_pass(
    rows: Any,
    labels: Any,
    weights: Any,
    state: Any,
    sizes: Any,
    settings: Any,
    prior_and_box: Any,
    parameters: Any,
    record: Any,
) -> int:
    """Play the paper's game over a block of rows: decide, see the row, pay, update. Changes ``state``, fills ``record``.

    Returns how many rows were used. Fewer than all: the next row was refused, and the state is as that row found it.
    """
    numbers = as_numbers(state)
    packed = numbers[len(SUM) * (len(numbers) // len(state)) :]
    vectors, drift, copy = interleave(packed, rows, sizes)
    mean = vectors[0]
    late, decay = late_forgetting(packed, sizes), ns.log1p(settings[SETTING.discount] - 1.0)
    left = np.empty(len(drift) if in_float32() else 0, numbers.dtype)
    weighted, lead = len(weights) > 0, settings[SETTING.lead]
    rates_vary = settings[SETTING.step_power] + settings[SETTING.prior_power] > 0.0
    rates = Rates(settings[SETTING.step_scale], 0.0, per_variance())
    ridge, moves_always, has_prior_term, wider = 0.0, False, False, 1.0 / ns.sqrt(settings[SETTING.discount])
    if is_dense():
        ridge, moves_always = settings[SETTING.ridge], settings[SETTING.moves_always] > 0.0
        has_prior_term = ns.isfinite(settings[SETTING.prior_scale])
        rates = rates_against_prior(settings[SETTING.step_scale], settings[SETTING.prior_scale], rates.per_variance)
    # The sums live in registers during the pass: the next row need not wait for this one's to reach memory.
    count, cost_sum, expected_sum = state[SUM.count], state[SUM.loss], state[SUM.expected]
    product_sum, square_sum, largest_square = state[SUM.product], state[SUM.gradient_square], state[SUM.largest_square]
    weight_sum, weight_squares, size_sum = state[SUM.weight], state[SUM.weight_square], state[SUM.square]
    sloped, slope_squares, magnitude_sum = state[SUM.sloped], state[SUM.slope_square], state[SUM.magnitude]
    used, recorded, far = len(labels), 0, len(state) > NEAR
    may_skip = not (weighted or moves_always or is_robust())

    for i in range(len(labels)):
        if weighted and weights[i] == 0.0:
            continue
        y = labels[i]
        event = event_at(rows, i)

        prefetch_next(rows, event)
        if far and i + 1 < len(labels):
            prefetch_row(vectors, rows, event_at(rows, i + 1))

        # Decide, then see the label and pay.
        catch_up(vectors, rows, event, late, prior_and_box, decay, count)
        law = in_doubles(moments(vectors, rows, event))
        spread = ns.sqrt(law.variance + law.missing_variance)
        loss = Expected(0.0, 0.0, 0.0)
        cost = decision_slope = expected_cost = 0.0
        idle = is_flat(y, law.prediction, *parameters)
        if not idle:  # a branch that can be guessed: the step need not wait for the prediction
            loss = expected(y, law.prediction, 0.0, *parameters)
            cost, decision_slope = loss.value, loss.slope
            if spread > 0.0:  # at a constant spread of 0 the compiler leaves a few instructions of the loss
                loss = expected(y, law.prediction, spread, *parameters)
            expected_cost = loss.value
            # may_skip again, and first: without it the compiler joins the comparisons, and the next event waits for them all.
            idle = may_skip and cost == 0.0 and expected_cost == 0.0 and loss.slope == 0.0 and loss.curvature == 0.0

        # Nothing to pay and nothing to learn: the sums stay as they are.
        if idle and may_skip:
            sizes_of_row = law.prediction + law.variance + law.missing_variance + law.row_square + law.spread_square
            if ns.isfinite(sizes_of_row) and valid_label(y, *parameters):
                count += 1.0
                if len(record) > 0:
                    write_record(record[recorded], law.prediction, spread, cost, mean, rows, event)
                    recorded += 1
                continue

        slope, curvature, pull, weight, size = loss.slope, loss.curvature, ridge, 1.0, 0.0
        if weighted:
            weight = weights[i]
            cost, expected_cost = weight * cost, weight * expected_cost
            slope, curvature, pull = weight * slope, weight * curvature, weight * pull
        product = slope * law.prediction + curvature * spread * spread
        std_gradient = curvature * ns.sqrt(law.spread_square)
        gradient_square = slope * slope * law.row_square + std_gradient * std_gradient
        if ridge > 0.0:
            means, stds = squares(vectors)
            size = means + stds
            cost += 0.5 * pull * means
            expected_cost += 0.5 * pull * size
            gradient_square += 2.0 * pull * product + pull * pull * size
            product += pull * size

        # A bad row is found here, before anything has changed.
        costs = cost_sum + cost + expected_sum + expected_cost + product_sum + product + square_sum + gradient_square
        finite = ns.isfinite(law.prediction + law.variance + law.missing_variance + costs)
        if may_explode():
            finite = finite and not law.variance > settings[SETTING.widest] * law.row_square
        if not (finite and valid_label(y, *parameters)) or (weighted and not weights[i] > 0.0):
            put_back(vectors, rows, event, late)
            used = i
            break
        count += 1.0
        if weighted:
            weight_sum += weights[i]
            weight_squares += weights[i] * weights[i]
        cost_sum += cost
        expected_sum += expected_cost
        product_sum += product
        magnitude_sum += ns.absolute(slope * law.prediction)
        square_sum += gradient_square
        largest_square = ns.maximum(largest_square, gradient_square)
        size_sum += size
        if len(record) > 0:
            write_record(record[recorded], law.prediction, spread, cost, mean, rows, event)
            recorded += 1

        # An outlier counts less in the step alone: what was paid and seen is summed as it is.
        share = 1.0
        if is_robust():
            share = trust(decision_slope, ns.sqrt(slope_squares / sloped), settings[SETTING.robust])
            sloped = settings[SETTING.discount] * sloped + (weight if decision_slope != 0.0 else 0.0)
            slope_squares = settings[SETTING.discount] * slope_squares + weight * share * decision_slope * decision_slope

        # Update. Where nothing pulls, nothing moves.
        if slope == 0.0 and curvature == 0.0 and not moves_always:
            continue
        if rates_vary:
            when = count + lead
            rates = Rates(rate_at(settings[SETTING.step_scale], settings[SETTING.step_power], when), 0.0, rates.per_variance)
            if has_prior_term:
                prior_rate = rate_at(settings[SETTING.prior_scale], settings[SETTING.prior_power], when)
                rates = rates_against_prior(rates.step, prior_rate, rates.per_variance)
        if rate_is_adaptive():  # compiled in: as data it would make every step wait for its row's gradient
            rates = Rates(adaptive_rate(settings[SETTING.step_scale], square_sum), 0.0, rates.per_variance)
        seen = Slopes(slope, curvature)
        trusted = Slopes(share * slope, share * curvature)
        taken = slopes_after_step(vectors, rows, event, y, law, trusted, share * weight, rates, parameters)
        if len(drift) > 0:
            drift_before_step(drift, left, mean, rows, event, cast(count))
        inputs = cast_inputs(StepInputs(law, seen, taken, pull, rates, wider, False))
        change = rates.step * taken.curvature * (law.row_square if rates.per_variance else law.variance)
        if has_small_steps() and 0.0 <= change <= settings[SETTING.small_step]:
            advance(vectors, rows, event, as_small_step(inputs), prior_and_box)
        else:
            advance(vectors, rows, event, inputs, prior_and_box)
        if settings[SETTING.discount] < 1.0:
            forget(vectors, prior_and_box, cast(settings[SETTING.discount]), count)
        into_ball(vectors, settings)
        if len(drift) > 0:
            drift_after_step(drift, left, mean, rows, event, cast(count))

    if not weighted:
        weight_sum += count - state[SUM.count]
        weight_squares += count - state[SUM.count]
    state[SUM.count], state[SUM.loss], state[SUM.expected] = count, cost_sum, expected_sum
    state[SUM.product], state[SUM.gradient_square], state[SUM.largest_square] = product_sum, square_sum, largest_square
    state[SUM.weight], state[SUM.weight_square], state[SUM.square] = weight_sum, weight_squares, size_sum
    state[SUM.magnitude] = magnitude_sum
    if is_robust():
        state[SUM.sloped], state[SUM.slope_square] = sloped, slope_squares
    restore(packed, copy)
    if not_finite(state[: len(SUM)]) + not_finite(packed) > 0.0:
        return NOT_FINITE
    return used


def write_record(line: Any, prediction: Any, spread: Any, cost: Any, mean: Any, rows: Any, event: Event) -> None:
    """Fill a line of the record."""
    line[RECORD.prediction], line[RECORD.spread], line[RECORD.loss] = prediction, spread, cost
    if len(line) > RECORD.missing_mean_square:
        line[RECORD.missing_mean_square] = missing_mean_square(mean, rows, event)


def not_finite(numbers: Any) -> Any:
    """How many numbers are not finite: counted to the end, which is faster than to stop at the first."""
    count = 0.0
    for k in range(np.uint64(len(numbers))):
        count += 0.0 if ns.isfinite(numbers[k]) else 1.0
    return count


def many_passes(
    rows: Any,
    labels: Any,
    weights: Any,
    states: Any,
    sizes: Any,
    settings: Any,
    priors_and_boxes: Any,
    parameters: Any,
    records: Any,
) -> int:
    """One pass for each of several learners that differ in settings only, over a block that stays in cache.

    Returns how many rows all of them used; a learner that was stopped has used fewer than it was given.
    """
    least = len(labels)
    for k in range(len(states)):
        used = one_pass(rows, labels, weights, states[k], sizes, settings[k], priors_and_boxes[k], parameters, records[k])
        least = min(least, used)
    return least


def foresee_many(rows: Any, states: Any, sizes: Any, records: Any) -> None:
    """What each of several learners says of the rows of a block, as a record has it; no label is known, no state changes."""
    for k in range(len(states)):
        numbers = as_numbers(states[k])
        vectors = interleave(numbers[len(SUM) * (len(numbers) // len(states[k])) :], rows, sizes).vectors
        for i in range(records.shape[1]):
            event = event_at(rows, i)
            law = in_doubles(moments(vectors, rows, event))
            spread = ns.sqrt(law.variance + law.missing_variance)
            write_record(records[k, i], law.prediction, spread, np.nan, vectors[0], rows, event)


def in_doubles(law: Moments) -> Moments:
    """What is counted once an event is a double, whatever the numbers of the state."""
    return Moments(
        np.float64(law.prediction),
        np.float64(law.variance),
        np.float64(law.mean_gain),
        np.float64(law.row_square),
        np.float64(law.spread_square),
        np.float64(law.missing_variance),
    )


def cast_inputs(inputs: StepInputs) -> StepInputs:
    """What a loop over coordinates reads of an event, in the numbers of the state."""
    law, seen, taken, ridge, rates, wider, small = inputs
    return StepInputs(
        law,
        Slopes(cast(seen.slope), cast(seen.curvature)),
        Slopes(cast(taken.slope), cast(taken.curvature)),
        cast(ridge),
        Rates(cast(rates.step), cast(rates.pull), rates.per_variance),
        cast(wider),
        small,
    )


def as_small_step(inputs: StepInputs) -> StepInputs:
    """The same with what is known of a small step as constants: the compiler makes a short loop of its own for them."""
    law, seen, taken, _, rates, wider, _ = inputs
    return StepInputs(law, seen, taken, cast(0.0), Rates(rates.step, cast(0.0), rates.per_variance), wider, True)


def drift_before_step(drift: Any, left: Any, mean: Any, rows: Any, event: Event, count: Any) -> None:
    """Begin to add t·(new mean − old mean) to the drift, from which the average of all decisions is mean − drift/t.

    Unlike a sum of decisions it changes only where the row has values. In float32, −t·old would drown the rest: the old mean
    is kept in ``left``, and the difference is taken first.
    """
    for k in range(event.start, event.stop):
        j = position(rows, k)
        if in_float32():
            left[j] = mean[j]
        else:
            drift[j] += -count * mean[j]


def drift_after_step(drift: Any, left: Any, mean: Any, rows: Any, event: Event, count: Any) -> None:
    """Add the rest, with the mean behind the step."""
    for k in range(event.start, event.stop):
        j = position(rows, k)
        drift[j] += count * (mean[j] - left[j]) if in_float32() else count * mean[j]


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
