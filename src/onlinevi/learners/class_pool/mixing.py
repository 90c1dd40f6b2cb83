"""How several opinions on several classes are weighed, row by row: by Bayes' rule, with a share dealt out anew.

Probabilities of a learner may be too timid or too bold. So each learner has several opinions, P(c) ∝ p_c^β for a few β: an
opinion is a learner and a boldness, and all are weighed alike.
"""

from __future__ import annotations

import math
from typing import Any

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
    number = len(room)
    for i in range(len(paid)):
        mix_row(tables, i, boldness, state, said[i])
        least, likely, total = math.inf, 0.0, 0.0
        for n in range(number):
            room[n] = cost_of(
                tables[n // len(boldness)], i, codes[i], costs[n // len(boldness), i], boldness[n % len(boldness)]
            )
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


def cost_of(table: Any, i: int, own: int, cost: Any, bold: Any) -> Any:
    """−log of the probability of the label's class at this boldness; of one that joins with this row as it is."""
    if bold == 1.0 or table[i, own] == 0.0:
        return cost
    return bold * cost + log_whole(table, i, bold)


def log_whole(table: Any, i: int, bold: Any) -> Any:
    """log Σ p^β."""
    total = 0.0
    for c in range(table.shape[1]):
        total += powered(table[i, c], bold)
    return ns.log(total)


def powered(chance: Any, bold: Any) -> Any:
    return ns.exp(bold * ns.log(ns.maximum(chance, LEAST))) if chance > 0.0 else 0.0


def mix_row(tables: Any, i: int, boldness: Any, state: Any, line: Any) -> None:
    """The weighted mean of the opinions at a row."""
    number = len(tables) * len(boldness)
    for c in range(len(line)):
        line[c] = 0.0
    for n in range(number):
        table, bold, weight = tables[n // len(boldness)], boldness[n % len(boldness)], state[HEAD + number + n]
        if bold == 1.0:
            for c in range(len(line)):
                line[c] += weight * table[i, c]
        elif weight > 0.0:
            whole = log_whole(table, i, bold)
            part = weight * ns.exp(-whole) if whole > -math.inf else 0.0  # where no class is known nothing is said
            for c in range(len(line)):
                line[c] += part * powered(table[i, c], bold)


def look_each(tables: Any, boldness: Any, state: Any, said: Any) -> None:
    """The same for rows whose labels nobody knows."""
    for i in range(len(said)):
        mix_row(tables, i, boldness, state, said[i])


mix_rows, look_rows = compose(mix_each, {}), compose(look_each, {})
