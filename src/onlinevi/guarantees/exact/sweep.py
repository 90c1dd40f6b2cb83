"""The compiled loop of a grid: weigh its points, decide, see the label, add each point's loss."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from onlinevi.engine import Kernel, compose, ns, rate_at
from onlinevi.engine.holes import expected, valid_label
from onlinevi.losses import Loss

# The settings that a pass reads as data.
SCALE, POWER, RIDGE, COUNT = range(4)

NEGLIGIBLE = -100.0
"""e^−100 of the largest weight: a million such points change no digit of any mean, so their exponentials are not taken."""


def grid_pass(
    rows: Any, labels: Any, totals: Any, axes: Any, log_priors: Any, settings: Any, parameters: Any, record: Any
) -> int:
    """Exponential weights over a block of rows. Changes ``totals``, fills ``record`` with (prediction, spread, loss).

    Returns how many rows were used. Fewer than all: the next row was refused, and the totals are as that row found them.
    """
    first, second = axes
    log_first, log_second = log_priors
    ridge = settings[RIDGE]
    for i in range(len(labels)):
        x, u, y = rows[i, 0], rows[i, 1], labels[i]
        rate = rate_at(settings[SCALE], settings[POWER], settings[COUNT] + i + 1.0)

        # Decide: the posterior mean.
        peak = -math.inf
        for j in range(len(first)):
            for k in range(len(second)):
                peak = ns.maximum(peak, log_first[j] + log_second[k] - rate * totals[j, k])
        # Second moments are taken around the middle of the box: what cancels is below a thousandth of a cell.
        middle = x * first[len(first) // 2] + u * second[len(second) // 2]
        mass = mean_first = mean_second = square = 0.0
        for j in range(len(first)):
            row_mass = row_second = 0.0
            for k in range(len(second)):
                exponent = log_first[j] + log_second[k] - rate * totals[j, k] - peak
                if exponent > NEGLIGIBLE:
                    weight = ns.exp(exponent)
                    off = x * first[j] + u * second[k] - middle
                    row_mass += weight
                    row_second += weight * second[k]
                    square += weight * off * off
            mass += row_mass
            mean_first += row_mass * first[j]
            mean_second += row_second
        mean_first, mean_second, square = mean_first / mass, mean_second / mass, square / mass
        prediction = x * mean_first + u * mean_second
        off = prediction - middle
        spread = ns.sqrt(ns.maximum(square - off * off, 0.0))

        # See the label and pay. A bad row is found here, before anything has changed; so is a grid without any weight.
        cost = expected(y, prediction, 0.0, *parameters).value
        cost += 0.5 * ridge * (mean_first * mean_first + mean_second * mean_second)
        # A comparison, for isfinite(s) asks whether s − s is a number, and sums that may be reordered cancel to 0 there.
        if not (ns.absolute(prediction + spread + cost) < math.inf and valid_label(y, *parameters)):
            return i
        record[i, 0], record[i, 1], record[i, 2] = prediction, spread, cost

        for j in range(len(first)):
            for k in range(len(second)):
                loss = expected(y, x * first[j] + u * second[k], 0.0, *parameters).value
                totals[j, k] += loss + 0.5 * ridge * (first[j] * first[j] + second[k] * second[k])
    return len(labels)


@cache
def kernel(loss: type[Loss]) -> Kernel:
    """``grid_pass`` compiled for one loss."""
    return compose(grid_pass, {expected: loss.expected, valid_label: loss.valid_label})
