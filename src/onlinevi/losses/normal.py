"""The standard normal law, shared by the losses with a kink."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlinevi.engine import Real, Vector, ns

SQRT_HALF = math.sqrt(0.5)
INV_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)

POINT_MASS = 1e-290
"""A spread below this counts as none: density / spread would overflow."""


def bump(r: Real) -> Real:
    """e^(−r²/2): the density without its constant."""
    return ns.exp(-0.5 * r * r)


def cumulative(gap: Real, spread: Real, bump_r: Real) -> Real:
    """Φ(r) of r = gap/spread, given bump(r), which its callers need anyway; the left tail keeps its digits."""
    tail = 0.5 * bump_r * scaled_tail(SQRT_HALF * ns.absolute(gap), spread)
    return ns.where(gap < 0.0, tail, 1.0 - tail)


FARTHEST = 40.0
"""Beyond so many stds Φ is 0 or 1."""


def normal_cdf(r: Any) -> Vector:
    """Φ(r) of arrays, infinite values among them. scipy has it too, and takes a quarter of a second to import."""
    within = np.clip(np.asarray(r, dtype=float), -FARTHEST, FARTHEST)
    found = cumulative(within, 1.0, bump(within))
    return np.asarray(np.where(within < 0.0, np.minimum(found, 0.5), np.maximum(found, 0.5)))  # rounding changes no side


def scaled_tail(top: Real, bottom: Real) -> Real:
    """e^(x²)·erfc(x) for x = top/bottom ≥ 0, to 2e-15: a polynomial in q = (x − 3.75)/(x + 3.75), over 1 + 2x.

    Its terms are summed as a tree, and q is a quotient of its own: a processor waits for a chain of operations, here not for
    that of x, rather than for their number. Interpolated at Chebyshev points.
    """
    scale = bottom / (bottom + 2.0 * top)
    q = (top - 3.75 * bottom) / (top + 3.75 * bottom)
    q2 = q * q
    q4 = q2 * q2
    q8 = q4 * q4
    p0 = (1.2375126308378261 - 0.14024059858554686 * q) + (0.0035854154857922218 + 0.08227673849011187 * q) * q2
    p4 = (-0.10880393015489652 + 0.09230432116176848 * q) + (-0.05869339838338856 + 0.028362277396913042 * q) * q2
    p8 = (-0.009746581222643222 + 0.0017556260305671993 * q) + (0.0002937215349257143 - 0.00029015491299394817 * q) * q2
    p12 = (5.162577762063891e-05 + 2.2386666286993252e-05 * q) + (-1.139939149641738e-05 - 9.78099927946729e-07 * q) * q2
    p16 = (1.6957121903295755e-06 - 5.1766286258511114e-08 * q) + (-2.1417377757617212e-07 + 1.9199785285935027e-08 * q) * q2
    p20 = 1.752560461090395e-08 - 2.03292172142306e-09 * q
    return ((p0 + p4 * q4) + (p8 + p12 * q4) * q8 + (p16 + p20 * q4) * (q8 * q8)) * scale
