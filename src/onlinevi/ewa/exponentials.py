"""e^x of many numbers at once: a call to the C library for each would cost more than all else that weighing does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlinevi import ns
from onlinevi.types import Real

LOG_2, PER_LOG_2 = math.log(2.0), 1.0 / math.log(2.0)
LEAST = -708.0
"""Below it e^x leaves the normal floats: it counts as 0."""


def decay(x: Real) -> Real:
    """e^x for x ≤ 0 and −∞, to an error of 3e-16 + 1e-16·|x|: the second is what rounding x alone costs. Runs in vector registers.

    2^n·e^r with n the integer next to x/log 2, whose bits are written as those of a float, and Taylor's polynomial for e^r,
    summed as a tree.
    """
    inside = ns.maximum(x, LEAST)
    n = np.int32(PER_LOG_2 * inside - 0.5)
    r = inside - n * LOG_2
    r2 = r * r
    r4 = r2 * r2
    p0 = (1.0 + r) + (1.0 / 2.0 + 1.0 / 6.0 * r) * r2
    p4 = (1.0 / 24.0 + 1.0 / 120.0 * r) + (1.0 / 720.0 + 1.0 / 5040.0 * r) * r2
    p8 = (1.0 / 40320.0 + 1.0 / 362880.0 * r) + (1.0 / 3628800.0 + 1.0 / 39916800.0 * r) * r2
    power = np.int64((np.int64(n) + np.int64(1023)) << np.int64(52)).view(np.float64)
    return ns.where(x < LEAST, 0.0, power * (p0 + (p4 + (p8 + 1.0 / 479001600.0 * r4) * r4) * r4))


def exponentiate(values: Any, most: Real) -> Real:
    """Logarithms become what they are of, relative to the largest, ``most``, in place; returns the sum."""
    total = 0.0
    for k in range(len(values)):
        values[k] = decay(values[k] - most)
        total += values[k]
    return total
