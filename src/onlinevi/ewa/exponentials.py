"""e^x of many numbers at once."""

from __future__ import annotations

from typing import Any

from onlinevi import ns
from onlinevi.types import Real


def exponentiate(values: Any, most: Real) -> Real:
    """Logarithms become what they are of, relative to the largest, ``most``, in place; returns the sum."""
    total = 0.0
    for k in range(len(values)):
        values[k] = ns.exp(values[k] - most)
        total += values[k]
    return total
