"""How several opinions on several classes are weighed, row by row: by Bayes' rule, with a share dealt out anew.

Probabilities of a learner may be too timid or too bold. So each learner has several opinions, P(c) ∝ p_c^β for a few β: an
opinion is a learner and a boldness, and all are weighed alike.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlinevi.engine import compose, ns

COUNT, LOSS, WEIGHT_SQUARE = range(3)
HEAD = 3
"""Behind it lies what each opinion has paid, and behind that the weights."""
LEAST = 1e-300
"""A probability below this has the logarithm of this one."""


def mix_each(
    tables: Any, costs: Any, codes: Any, weights: Any, boldness: Any, state: Any, share: Any, room: Any, said: Any, paid: Any
) -> None:
    """Fills in the probabilities said of each row, and −log of that of its class; weighs the opinions by what they paid.

    ``tables`` has for each learner, row and class a probability, ``costs`` −log of that of the label's class; ``room`` is for
    the costs of the opinions.
    """
    number, logs, powers = len(room), new_line(tables.shape[2]), new_line(tables.shape[2])
    for i in range(len(paid)):
        mix_row(tables, i, boldness, state, room, logs, powers, said[i])
        least, likely, total = math.inf, 0.0, 0.0
        for n in range(number):
            own, bold = tables[n // len(boldness), i, codes[i]], boldness[n % len(boldness)]
            cost = costs[n // len(boldness), i]
            # One that joins with this row costs as much at any boldness.
            room[n] = cost if bold == 1.0 or own == 0.0 else bold * cost + room[n]
            if state[HEAD + number + n] > 0.0:
                least = ns.minimum(least, room[n])
        for n in range(number):
            likely += state[HEAD + number + n] * ns.exp(least - room[n])
        paid[i] = least - ns.log(likely)
        weight = weights[i] if len(weights) > 0 else 1.0
        for n in range(number):
            state[HEAD + n] += weight * room[n]
            state[HEAD + number + n] *= ns.exp(weight * (least - room[n]))
            total += state[HEAD + number + n]
        for n in range(number):
            state[HEAD + number + n] = (1.0 - share) * (state[HEAD + number + n] / total) + share / number
        state[COUNT] += 1.0
        state[LOSS] += weight * paid[i]
        state[WEIGHT_SQUARE] += (weight - 1.0) * (weight - 1.0)


def mix_row(tables: Any, i: int, boldness: Any, state: Any, room: Any, logs: Any, powers: Any, line: Any) -> None:
    """The weighted mean of the opinions at a row; leaves in ``room`` log Σ p^β of each."""
    number = len(room)
    for c in range(len(line)):
        line[c] = 0.0
    for m in range(len(tables)):
        for c in range(len(line)):
            chance = tables[m, i, c]
            logs[c] = ns.log(ns.maximum(chance, LEAST)) if chance > 0.0 else -math.inf
        for b in range(len(boldness)):
            n = m * len(boldness) + b
            weight = state[HEAD + number + n]
            if boldness[b] == 1.0:
                room[n] = 0.0
                for c in range(len(line)):
                    line[c] += weight * tables[m, i, c]
            else:
                total = raise_all(logs, boldness[b], powers)
                room[n] = ns.log(total)
                part = weight / total if total > 0.0 else 0.0  # where no class is known nothing is said
                for c in range(len(line)):
                    line[c] += part * powers[c]


def raise_all(logs: Any, bold: Any, powers: Any) -> Any:
    """Fills in p^β, and gives their sum."""
    total = 0.0
    for first in range(0, len(logs), ns.LANES):
        for k in range(ns.LANES):
            ns.one_vector()
            power = ns.exp(bold * logs[first + k])
            powers[first + k] = power
            total += power
    return total


def new_line(count: int) -> Any:
    """Room for a number of each class, none of them likely, and as many more as make whole vectors."""
    line = np.empty(count + (ns.LANES - count % ns.LANES) % ns.LANES)
    for k in range(len(line)):
        line[k] = -math.inf
    return line


def look_each(tables: Any, boldness: Any, state: Any, said: Any) -> None:
    """The same for rows whose labels nobody knows."""
    logs, powers, room = new_line(tables.shape[2]), new_line(tables.shape[2]), np.empty(len(tables) * len(boldness))
    for i in range(len(said)):
        mix_row(tables, i, boldness, state, room, logs, powers, said[i])


mix_rows, look_rows = compose(mix_each, {}), compose(look_each, {})
