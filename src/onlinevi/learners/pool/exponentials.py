"""e^x of many numbers at once."""

from __future__ import annotations

from typing import Any

from onlinevi.engine import Real, ns


def exponentiate(values: Any, most: Real) -> Real:
    """Logarithms become what they are of, relative to the largest, ``most``, in place; returns the sum."""
    total = 0.0
    for k in range(len(values)):
        values[k] = ns.exp(values[k] - most)
        total += values[k]
    return total
