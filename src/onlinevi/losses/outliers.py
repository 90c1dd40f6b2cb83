"""How much an event counts whose slope is out of the usual: the inverse multiquadric weight of weighted-likelihood filters.

Duran-Martin, Altamirano, Shestopaloff, Sánchez-Betancourt, Knoblauch, Jones, Briol and Murphy 2024, "Outlier-robust Kalman
filtering through generalised Bayes".
"""

from __future__ import annotations

from onlinevi import ns
from onlinevi.types import Real

FURTHEST = 1e100
"""Slopes count as at most this many bounds: the square of more would leave no weight to divide by."""


def trust(slope: Real, usual: Real, bound: Real) -> Real:
    """1/(1 + (slope/(bound·usual))²), so that trust·|slope| ≤ bound·usual/2; 1 while nothing usual is known."""
    if not usual > 0.0:
        return 1.0
    far = ns.minimum(ns.absolute(slope) / usual / bound, FURTHEST)
    return 1.0 / (1.0 + far * far)
